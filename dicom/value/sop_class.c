#include "dicom/value/sop_class.h"

#include <stddef.h>
#include <string.h>

#define ROOT "1.2.840.10008.5.1.4.1.1."

static const struct {
    const char *uid;
    const char *modality;
} storage_classes[] = {
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

const char *
storage_class_modality(const char *uid)
{
    for (size_t i = 0; i < sizeof(storage_classes) / sizeof(storage_classes[0]); i++)
        if (strcmp(storage_classes[i].uid, uid) == 0)
            return storage_classes[i].modality;
    return NULL;
}
