/*
 * matrices.h - keeps the co-occurrence matrices that features are of, where a pipeline
 * wants them for themselves.
 */
#ifndef NOCTULE_TEXTURE_MATRICES_H
#define NOCTULE_TEXTURE_MATRICES_H

#include "service/common/feature.h"

#include "kernels/features/family.h"

/*
 * Where the options want them, adds the matrices that an aggregation makes of a set's raw counts to
 * the features: merged as it merges, symmetric where the options say so, without those that have no
 * pair. The next feature that is added is the first of theirs. 0 or -ENOMEM.
 */
int texture_matrices_keep(const struct feature_region *region, size_t set, const uint64_t *counts,
                          struct feature_set *features);

#endif
