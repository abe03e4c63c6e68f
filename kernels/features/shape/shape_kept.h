/* shape_kept.h - a region's two masks in the form of the morphology operations. Threads: any. */
#ifndef NOCTULE_KERNELS_FEATURES_SHAPE_SHAPE_KEPT_H
#define NOCTULE_KERNELS_FEATURES_SHAPE_SHAPE_KEPT_H

#include "kernels/features/family.h"
#include "kernels/morphology/morphology.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Makes `made`, which uses *kept. The caller must free *kept, also after an error. Returns 0 or
 * -ENOMEM. */
int kept_make(const struct feature_region *region, struct morphology_region *made, uint64_t **kept,
              struct error *error);

#ifdef __cplusplus
}
#endif
#endif
