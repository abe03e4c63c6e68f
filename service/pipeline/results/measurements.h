/*
 * measurements.h - the measurements of a job as a report tells them (dicom/objects/sr/sr.h): each feature in
 * the terms of reports (dicom/objects/sr/sr_terms.h), in a group for each region.
 */
#ifndef NOCTULE_SERVICE_PIPELINE_RESULTS_MEASUREMENTS_H
#define NOCTULE_SERVICE_PIPELINE_RESULTS_MEASUREMENTS_H

#include "service/common/jobs/feature_document.h"

#include "dicom/objects/sr/sr.h"

struct measurements {
    struct sr_group *groups; /* one per region, in the set's order */
    size_t group_count;
    struct sr_measurement *items;   /* storage of the groups' */
    char (*words)[FEATURE_SETTING]; /* the same */
};

/*
 * Of a set that has at least one feature, the features of a region one after the other;
 * `value_unit` is the UCUM unit of the image's values. The set and the unit outlive the
 * measurements. 0 or -ENOMEM.
 */
int measurements_make(const struct feature_set *set, const char *value_unit,
                      struct measurements *measurements);
void measurements_free(struct measurements *measurements);

#endif
