/*
 * geometry_series.c - checks that a series has one patient, one study, one modality, and one frame
 * of reference.
 */
#include "base/error.h"
#include "base/text.h"
#include "dicom/read/geometry/geometry_internal.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

/* Attributes that all instances must share, in the order of the checks. */
static const struct trait {
    size_t offset; /* of its text in struct dicom_instance */
    enum code code;
    bool of_images;  /* skipped frames and 2-D images may differ */
    bool acceptable; /* limits->allow_missing accepts different values */
    const char *what, *remedy;
} traits[] = {
    {offsetof(struct dicom_instance, series_uid), CODE_SERIES_MIXED, false, false, "Series Instance UID (0020,000E)",
     "Give the files of one series."},
    {offsetof(struct dicom_instance, patient), CODE_MIXED_PATIENTS, false, false,
     "Patient ID (0010,0020) or its issuer", "Find out to which patient they belong."},
    {offsetof(struct dicom_instance, patient_name), CODE_MIXED_PATIENTS, false, true, "Patient's Name (0010,0010)",
     "Find out to which patient they belong. If they are of one patient, accept them (--accept-missing)."},
    {offsetof(struct dicom_instance, study_uid), CODE_MIXED_STUDIES, false, false, "Study Instance UID (0020,000D)",
     "Send the images of each study as a separate series."},
    {offsetof(struct dicom_instance, modality), CODE_MIXED_MODALITIES, true, false, "Modality (0008,0060)",
     "Send the images of each modality as a separate series."},
    {offsetof(struct dicom_instance, frame_of_reference_uid), CODE_MIXED_FRAMES_OF_REFERENCE, true, true,
     "Frame of Reference UID (0020,0052)",
     "Send the images of each patient coordinate system as a separate series. If positions are of "
     "one system nevertheless, accept them (--accept-missing)."},
};

static const char *
trait_of(const struct dicom_instance *instance, const struct trait *trait)
{
    return (const char *)instance + trait->offset;
}

/* Returns the first instance by UID to which the trait applies, and which differs in it from
 * `other`, or NULL. */
static const struct dicom_instance *
series_first(struct dicom_instance *const *instances, int32_t count, const struct trait *trait,
             const struct dicom_instance *other)
{
    const struct dicom_instance *first = NULL;
    for (int32_t i = 0; i < count; i++) {
        const struct dicom_instance *instance = instances[i];
        bool concerned = !trait->of_images;
        for (int32_t f = 0; f < instance->frame_count && !concerned; f++)
            concerned = instance->frames[f].excluded == CODE_NONE && !instance->flat;
        int order = first ? strcmp(instance->sop_instance_uid, first->sop_instance_uid) : -1;
        if (order == 0)
            order = strcmp(instance->path, first->path);
        if (concerned && order < 0 && (!other || strcmp(trait_of(instance, trait), trait_of(other, trait)) != 0))
            first = instance;
    }
    return first;
}

int
geometry_check_series(struct dicom_instance *const *instances, int32_t count, bool accept, struct error *error)
{
    for (size_t i = 0; i < sizeof(traits) / sizeof(traits[0]); i++) {
        const struct trait *trait = &traits[i];
        if (trait->acceptable && accept)
            continue;
        const struct dicom_instance *a = series_first(instances, count, trait, NULL);
        const struct dicom_instance *b = a ? series_first(instances, count, trait, a) : NULL;
        if (b)
            return error_set_files(error, -EINVAL, trait->code, a->path, b->path, "%s and %s differ in %s. %s",
                                   text_base_name(a->path), text_base_name(b->path), trait->what, trait->remedy);
    }
    return 0;
}
