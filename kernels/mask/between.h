/*
 * between.h - fills planes of a mask between drawn planes, by interpolation of their shapes (Raya &
 * Udupa 1990).
 *
 * On a drawn plane, a pixel has a signed distance between pixel centres. For a pixel in the mask,
 * it is the distance to the nearest pixel outside. For another pixel, it is minus the distance to
 * the nearest pixel inside. On a plane between two consecutive drawn planes, the distance is
 * interpolated linearly, pixel by pixel, along the slant of a tilted stack. Pixels with at least 0
 * belong to the mask. The region beyond the image does not count: if a plane has no pixel of the
 * other kind, the distance is infinite. Planes next to an empty drawn plane stay empty.
 *
 * Arithmetic is in integers. Squared distances use the row spacing in column spacings, rounded to
 * 2^-16. The position between two planes, along the normal, is rounded to 2^-16 of their distance.
 * At most one of the two distances has the other sign, so that no root is needed.
 *
 * Threads: one, plain C. The cost grows with the pixels that differ between two drawn planes, and
 * with their distance to pixels that agree: that many rows are searched, at most
 * LIMIT_ROI_BETWEEN_MI.
 */
#ifndef NOCTULE_KERNELS_MASK_BETWEEN_H
#define NOCTULE_KERNELS_MASK_BETWEEN_H

#include "base/error.h"
#include "base/planes.h"

#include <stdbool.h>

/*
 * Fills the planes of `bits` (as in struct image_mask; they must be 0) between the first and the
 * last `drawn` plane. Adds the number of voxels set to *voxels. Returns OUT_OF_MEMORY (-ENOMEM), or
 * SIZE_IMPLAUSIBLE (-EBADMSG) for pixels 2^10 times as high as wide and beyond the limit. After an
 * error the mask is undefined.
 */
int kernels_mask_between(const struct image_planes *planes, const bool *drawn, uint64_t *bits, int64_t *voxels,
                         struct error *error);

#endif
