/*
 * measure_keep.h - keeps a family's counts where they are a result of their own.
 */
#ifndef NOCTULE_SERVICE_PIPELINE_MEASURE_MEASURE_KEEP_H
#define NOCTULE_SERVICE_PIPELINE_MEASURE_MEASURE_KEEP_H

#include "service/pipeline/measure/measure.h"

#include "kernels/features/family.h"

/* A family's set of a region. */
struct measured {
    const struct texture_region *named;
    const struct feature_region *region;
    const struct feature_family *family;
    size_t set;
};

/*
 * Adds what the family keeps of a set's counts to the features: its histogram; or, where the options
 * want them, the matrices that an aggregation makes of raw counts: merged as it merges, symmetric
 * where the options say so, without those that have no pair. The next feature that is added is the
 * first of theirs. 0 or -ENOMEM.
 */
int texture_keep(const struct measured *measured, const uint64_t *counts,
                 struct feature_set *features);

/* The most bytes that it keeps of a set of a region, as of `bytes` (family.h). */
size_t texture_keep_bytes(const struct feature_family *family, size_t set,
                          const struct feature_region *largest);

#endif
