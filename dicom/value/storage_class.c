#include "dicom/value/storage_class.h"

#include <stddef.h>
#include <string.h>

#define ROOT "1.2.840.10008.5.1.4.1.1."

struct storage_class {
    const char *uid;
    const char *is; /* modality, or kind of annotation object */
};

static const struct storage_class storage_images[] = {
    {ROOT "2", "CT"},     /* CT Image */
    {ROOT "2.1", "CT"},   /* Enhanced CT Image */
    {ROOT "2.2", "CT"},   /* Legacy Converted Enhanced CT Image */
    {ROOT "4", "MR"},     /* MR Image */
    {ROOT "4.1", "MR"},   /* Enhanced MR Image */
    {ROOT "4.4", "MR"},   /* Legacy Converted Enhanced MR Image */
    {ROOT "128", "PT"},   /* Positron Emission Tomography Image */
    {ROOT "130", "PT"},   /* Enhanced PET Image */
    {ROOT "128.1", "PT"}, /* Legacy Converted Enhanced PET Image */
};

static const struct storage_class storage_objects[] = {
    {ROOT "481.3", "rtstruct"}, /* RT Structure Set */
    {ROOT "66.4", "seg"},       /* Segmentation */
    {ROOT "66.7", "seg"},       /* Label Map Segmentation */
    {ROOT "88.22", "sr"},       /* Enhanced SR */
    {ROOT "88.33", "sr"},       /* Comprehensive SR */
    {ROOT "88.34", "sr"},       /* Comprehensive 3D SR */
};

static const char *
storage_class_find(const struct storage_class *classes, size_t count, const char *uid)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(classes[i].uid, uid) == 0)
            return classes[i].is;
    return NULL;
}

const char *
storage_class_modality(const char *uid)
{
    return storage_class_find(storage_images, sizeof(storage_images) / sizeof(storage_images[0]), uid);
}

const char *
storage_class_object(const char *uid)
{
    return storage_class_find(storage_objects, sizeof(storage_objects) / sizeof(storage_objects[0]), uid);
}

bool
storage_class_is_taken(const char *uid)
{
    return storage_class_modality(uid) || storage_class_object(uid);
}

static bool
storage_class_starts(const char *uid, const char *prefix)
{
    return strncmp(uid, prefix, strlen(prefix)) == 0;
}

bool
storage_class_is_other(const char *uid)
{
    if (!*uid || storage_class_is_taken(uid))
        return false;
    return !storage_class_starts(uid, "1.2.840.10008.") || (storage_class_starts(uid, "1.2.840.10008.5.1.4.") &&
                                                            !storage_class_starts(uid, "1.2.840.10008.5.1.4.1.2."));
}
