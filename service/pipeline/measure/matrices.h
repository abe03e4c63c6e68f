/*
 * matrices.h - keeps the co-occurrence matrices that features are of, where a pipeline
 * wants them for themselves.
 */
#ifndef NOCTULE_TEXTURE_MATRICES_H
#define NOCTULE_TEXTURE_MATRICES_H

#include "service/common/feature.h"
#include "service/pipeline/measure/settings.h"

/*
 * Adds the matrices that an aggregation makes of raw counts[slices][offsets->count][levels][levels]
 * to the set: merged as it merges, symmetric where settings say so, without those that have no
 * pair. The set's next feature is the first of theirs. 0 or -ENOMEM.
 */
int texture_matrices_keep(const struct glcm_settings *settings,
                          const struct texture_matrices *offsets, const uint64_t *counts,
                          size_t slices, struct feature_set *set);

#endif
