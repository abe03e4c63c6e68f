/*
 * measure_shared.h - what groups of texture options have measured that holds for later ones: values of
 * families that are of a region's voxels and intensities alone (family.h), whatever their levels and
 * matrices. Groups have the same voxels and intensities where their options have the same grid and
 * re-segmentation.
 */
#ifndef NOCTULE_SERVICE_PIPELINE_MEASURE_MEASURE_SHARED_H
#define NOCTULE_SERVICE_PIPELINE_MEASURE_MEASURE_SHARED_H

#include "service/pipeline/measure/measure_keep.h"

struct shared_value;

/* Begins as zeros; of one job, whose options are borrowed. */
struct shared_values {
    struct shared_value *items;
    size_t count;
};

/* Fills values[definition_count] where a group before has measured them; else false. */
bool shared_values_take(const struct shared_values *shared, const struct measured *measured,
                        struct feature_value *values);

/* Keeps them for later groups, of a family that shares them. 0 or -ENOMEM. */
int shared_values_add(struct shared_values *shared, const struct measured *measured,
                      const struct feature_value *values);

void shared_values_clear(struct shared_values *shared);

#endif
