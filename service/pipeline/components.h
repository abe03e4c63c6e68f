/* components.h - how many pieces a mask falls into. */
#ifndef NOCTULE_COMPONENTS_H
#define NOCTULE_COMPONENTS_H

#include "base/image.h"

/*
 * Pieces of a mask: voxels that share a face are of one. A sweep over the slices that joins runs of
 * voxels with those of the row and the slice before; only two slices are held. -ENOMEM.
 */
int components_count(const struct image_extent *extent, const struct image_mask *mask,
                     int64_t *count);

#endif
