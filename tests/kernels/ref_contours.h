/* ref_contours.h - computes the mask of contours by its definition, voxel by voxel and edge by edge. */
#ifndef NOCTULE_REF_CONTOURS_H
#define NOCTULE_REF_CONTOURS_H

#include "kernels/mask/contours.h"

#include <stdbool.h>

/*
 * Fills the mask of plane z, rows of columns. Each contour lies on its nearest plane. `centres`: see struct
 * contours_request.
 */
void ref_contours_plane(const struct image_planes *planes, const struct contour *contours, int64_t count, int64_t z,
                        bool centres, bool *mask);

#endif
