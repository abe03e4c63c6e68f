/*
 * measurements.h - the measurements of a job as a report tells them (dicom/sr.h): each feature with
 * its concept, its unit and the settings that define it, in a group for each region.
 *
 * Concepts. A feature is named by its IBSI code; where IBSI has none, by SNOMED's (standard
 * deviation) or one of ours, its name in capitals. Settings that are codes are modifiers:
 * aggregation (IBSI 5QB6), discretisation, symmetry, and the directions where they are not all of
 * the aggregation's; settings that are numbers are parameters: levels, bin width, Chebyshev
 * distance, and both ends of the re-segmentation range.
 */
#ifndef NOCTULE_MEASUREMENTS_H
#define NOCTULE_MEASUREMENTS_H

#include "feature.h"

#include "sr.h"

struct measurements {
    struct sr_group *groups; /* one a region, in the set's order */
    size_t group_count;
    struct sr_measurement *items;   /* storage of the groups' */
    struct measurement_text *texts; /* of the items */
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
