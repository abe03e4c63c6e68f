/* measure_keep.h - keeps the counts of a family that are results themselves. */
#ifndef NOCTULE_SERVICE_PIPELINE_MEASURE_MEASURE_KEEP_H
#define NOCTULE_SERVICE_PIPELINE_MEASURE_MEASURE_KEEP_H

#include "service/pipeline/measure/measure.h"

#include "kernels/features/family.h"

/* A set of a family for a region. */
struct measured {
    const struct texture_region *named;
    const struct feature_region *region;
    const struct feature_family *family;
    size_t set;
};

/*
 * Adds the kept counts of a set to the features: its histogram, or, if the options request them,
 * the matrices of an aggregation. Matrices are merged as the aggregation merges them, symmetric if
 * the options require it, without those that have no pair. They belong to the next feature that is
 * added. Returns 0 or -ENOMEM.
 */
int texture_keep(const struct measured *measured, const uint64_t *counts, struct feature_set *features);

/*
 * Returns the maximum number of bytes that it keeps per set of a region (see `bytes` in family.h).
 */
size_t texture_keep_bytes(const struct feature_family *family, size_t set, const struct feature_region *largest);

#endif
