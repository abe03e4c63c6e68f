/*
 * kept.h - a region's two masks as the operations of morphology take them. Any thread.
 */
#ifndef NOCTULE_KEPT_H
#define NOCTULE_KEPT_H

#include "kernels/features/family.h"
#include "kernels/morphology/morphology.h"

#ifdef __cplusplus
extern "C" {
#endif

/* `made` is of *kept, which the caller frees, after an error too. 0 or -ENOMEM. */
int kept_make(const struct feature_region *region, struct morphology_region *made, uint64_t **kept,
              struct error *error);

#ifdef __cplusplus
}
#endif
#endif
