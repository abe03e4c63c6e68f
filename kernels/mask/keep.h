/* keep.h - what steps keep, and what they need to be known of them: for both backends. */
#ifndef NOCTULE_KEEP_MASK_H
#define NOCTULE_KEEP_MASK_H

#include "kernels/mask/mask.h"

#ifdef __cplusplus
extern "C" {
#endif

bool mask_step_has_ball(enum kernels_mask_step_kind kind);

/* The voxels that a component needs to stay by KEEP_AT_LEAST or DROP_BELOW, where the largest has
 * so many; above that when none stays. */
int64_t mask_least_size(const struct kernels_mask_step *step, const double spacing[3],
                        int64_t largest);

#ifdef __cplusplus
}
#endif
#endif
