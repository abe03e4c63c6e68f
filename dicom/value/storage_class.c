#include "dicom/value/storage_class.h"

#include <stddef.h>
#include <string.h>

#define ROOT "1.2.840.10008.5.1.4.1.1."

struct storage_class {
    const char *uid;
    const char *is; /* modality, or kind of annotation object */
    bool flat;      /* 2-D images */
};

static const struct storage_class storage_images[] = {
    {ROOT "2", "CT", false},     /* CT Image */
    {ROOT "2.1", "CT", false},   /* Enhanced CT Image */
    {ROOT "2.2", "CT", false},   /* Legacy Converted Enhanced CT Image */
    {ROOT "4", "MR", false},     /* MR Image */
    {ROOT "4.1", "MR", false},   /* Enhanced MR Image */
    {ROOT "4.4", "MR", false},   /* Legacy Converted Enhanced MR Image */
    {ROOT "128", "PT", false},   /* Positron Emission Tomography Image */
    {ROOT "130", "PT", false},   /* Enhanced PET Image */
    {ROOT "128.1", "PT", false}, /* Legacy Converted Enhanced PET Image */
    {ROOT "1", "CR", true},      /* Computed Radiography Image */
    {ROOT "1.1", "DX", true},    /* Digital X-Ray Image, for presentation */
    {ROOT "1.1.1", "DX", true},  /* Digital X-Ray Image, for processing */
    {ROOT "1.2", "MG", true},    /* Digital Mammography X-Ray Image, for presentation */
    {ROOT "1.2.1", "MG", true},  /* Digital Mammography X-Ray Image, for processing */
    {ROOT "3", "US", true},      /* Ultrasound Multi-frame Image, retired */
    {ROOT "3.1", "US", true},    /* Ultrasound Multi-frame Image */
    {ROOT "6", "US", true},      /* Ultrasound Image, retired */
    {ROOT "6.1", "US", true},    /* Ultrasound Image */
    {ROOT "7", "OT", true},      /* Secondary Capture Image */
    {ROOT "7.2", "OT", true},    /* Multi-frame Grayscale Byte Secondary Capture Image */
    {ROOT "7.3", "OT", true},    /* Multi-frame Grayscale Word Secondary Capture Image */
    {ROOT "7.4", "OT", true},    /* Multi-frame True Color Secondary Capture Image */
    {ROOT "12.1", "XA", true},   /* X-Ray Angiographic Image */
    {ROOT "12.2", "RF", true},   /* X-Ray Radiofluoroscopic Image */
    {ROOT "20", "NM", true},     /* Nuclear Medicine Image, planar: peek.cc */
};

static const struct storage_class storage_objects[] = {
    {ROOT "481.3", "rtstruct", false}, /* RT Structure Set */
    {ROOT "66.4", "seg", false},       /* Segmentation */
    {ROOT "66.7", "seg", false},       /* Label Map Segmentation */
    {ROOT "88.22", "sr", false},       /* Enhanced SR */
    {ROOT "88.33", "sr", false},       /* Comprehensive SR */
    {ROOT "88.34", "sr", false},       /* Comprehensive 3D SR */
};

static const struct storage_class *
storage_class_find(const struct storage_class *classes, size_t count, const char *uid)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(classes[i].uid, uid) == 0)
            return &classes[i];
    return NULL;
}

static const struct storage_class *
storage_class_of_image(const char *uid)
{
    return storage_class_find(storage_images, sizeof(storage_images) / sizeof(storage_images[0]), uid);
}

const char *
storage_class_modality(const char *uid)
{
    const struct storage_class *image = storage_class_of_image(uid);
    return image ? image->is : NULL;
}

bool
storage_class_is_flat(const char *uid)
{
    const struct storage_class *image = storage_class_of_image(uid);
    return image && image->flat;
}

const char *
storage_class_object(const char *uid)
{
    const struct storage_class *object =
        storage_class_find(storage_objects, sizeof(storage_objects) / sizeof(storage_objects[0]), uid);
    return object ? object->is : NULL;
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
