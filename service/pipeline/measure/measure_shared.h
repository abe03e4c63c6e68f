/*
 * measure_shared.h - features that later groups of texture options can reuse: those of families
 * that depend only on a region's voxels and intensities (family.h), not on levels or matrices.
 * Groups have the same voxels and intensities if they have the same grid and re-segmentation, and no filter.
 */
#ifndef NOCTULE_SERVICE_PIPELINE_MEASURE_MEASURE_SHARED_H
#define NOCTULE_SERVICE_PIPELINE_MEASURE_MEASURE_SHARED_H

#include "service/pipeline/measure/measure_keep.h"

struct shared_value;

/* Must begin as zeros; for one job, whose options are borrowed. */
struct shared_values {
    struct shared_value *items;
    size_t count;
};

/* Fills values[definition_count] and returns true if an earlier group measured them. */
bool shared_values_take(const struct shared_values *shared, const struct measured *measured,
                        struct feature_value *values);

/* Keeps the values of a family that shares them. Returns 0 or -ENOMEM. */
int shared_values_add(struct shared_values *shared, const struct measured *measured,
                      const struct feature_value *values);

void shared_values_clear(struct shared_values *shared);

#endif
