/*
 * measurements.h - the measurements of a job in the terms of a report (dicom/objects/sr/sr.h,
 * sr_terms.h), with a group per region.
 */
#ifndef NOCTULE_SERVICE_PIPELINE_RESULTS_MEASUREMENTS_H
#define NOCTULE_SERVICE_PIPELINE_RESULTS_MEASUREMENTS_H

#include "service/common/jobs/feature_document.h"

#include "dicom/objects/sr/sr.h"

struct measurements {
    struct sr_group *groups; /* one per region, in the set's order */
    size_t group_count;
    struct sr_measurement *items;                 /* storage of the items of all groups */
    char (*words)[SR_MAX_WORDS][FEATURE_SETTING]; /* storage of their texts */
};

/*
 * Converts a set in which the features of a region follow each other. The first `listed` segments get a group also
 * without features, after those with features. `value_unit` is the UCUM unit of the image's values. The set and the unit must outlive the
 * measurements. Returns 0 or -ENOMEM.
 */
int measurements_make(const struct feature_set *set, size_t listed, const char *value_unit,
                      struct measurements *measurements);
void measurements_free(struct measurements *measurements);

#endif
