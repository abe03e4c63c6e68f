/* ref_contours.h - the mask of contours by its definition, voxel by voxel and edge by edge. */
#ifndef NOCTULE_REF_CONTOURS_H
#define NOCTULE_REF_CONTOURS_H

#include "kernels/mask/contours.h"

#include <stdbool.h>

/* Whether the centre of voxel (x, y, z) is in the mask; what is on no plane is on none here. */
bool ref_contours_has(const struct image_planes *planes, const struct contour *contours,
                      int64_t count, const int64_t voxel[3]);

#endif
