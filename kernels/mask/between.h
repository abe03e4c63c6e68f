/*
 * between.h - planes of a mask between those that were drawn, by the shape of these (Raya & Udupa 1990).
 *
 * On a drawn plane a pixel has a signed distance: from its centre to the nearest pixel's centre that
 * is not in the mask, or, of one that is not itself, less that to the nearest which is. On a plane
 * between two drawn ones that have none between them it is linear between theirs, pixel by pixel as
 * they lie in the images, along the slant of a tilted stack; what has at least 0 belongs to the mask.
 * Beyond the image lies nothing: a plane without such a pixel is infinitely far from it, and nothing
 * is drawn towards one that is empty.
 *
 * All in whole numbers: squared distances with a row's step in columns' steps, rounded to 2^-16, and
 * the place between two planes, along the normal, rounded to 2^-16 of their distance. As at most one of
 * the two has the other sign, no root is needed.
 *
 * Plain C on one thread. The cost grows with the pixels that two drawn planes differ in, and with how
 * far those lie from where they agree: as many rows are searched, LIMIT_ROI_BETWEEN_MI at most.
 */
#ifndef NOCTULE_BETWEEN_H
#define NOCTULE_BETWEEN_H

#include "base/error.h"
#include "base/planes.h"

#include <stdbool.h>

/*
 * Fills the planes of `bits` (as in struct image_mask; 0 there) between the first and the last that
 * were `drawn`; *voxels grows by what is set. OUT_OF_MEMORY (-ENOMEM); SIZE_IMPLAUSIBLE (-EBADMSG)
 * for pixels that are 2^10 times as high as they are wide, and beyond the limit; the mask is then undefined.
 */
int kernels_mask_between(const struct image_planes *planes, const bool *drawn, uint64_t *bits,
                         int64_t *voxels, struct error *error);

#endif
