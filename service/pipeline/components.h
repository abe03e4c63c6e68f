/*
 * components.h - how many pieces a mask falls into: voxels that share a face are of one.
 *
 * The mask is cut into bands of slices. A sweep over a band joins runs of voxels with those of the row and the slice
 * before; only the band's lowest slice and two others are held. Bands may be swept by several threads at a time, each
 * by one; where two meet they are joined in the end.
 */
#ifndef NOCTULE_SERVICE_PIPELINE_COMPONENTS_H
#define NOCTULE_SERVICE_PIPELINE_COMPONENTS_H

#include "base/image.h"

struct components;

/* As many bands as are asked for, and no more than there are slices; extent and mask are borrowed. 0 or -ENOMEM. */
int components_begin(const struct image_extent *extent, const struct image_mask *mask,
                     int64_t bands, struct components **components);
int64_t components_bands(const struct components *components);

/* Each band once. 0 or -ENOMEM. */
int components_sweep(struct components *components, int64_t band);

/* Once all bands are swept. 0 or -ENOMEM. */
int components_join(const struct components *components, int64_t *count);

void components_free(struct components *components); /* or NULL */

#endif
