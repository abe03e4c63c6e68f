/* shape.h - size and position of a region, from all its voxels including padding without a value.
 * Pure functions. Threads: any. */
#ifndef NOCTULE_KERNELS_FEATURES_SHAPE_SHAPE_H
#define NOCTULE_KERNELS_FEATURES_SHAPE_SHAPE_H

#include "base/image.h"
#include "kernels/features/family.h"
#include "kernels/morphology/morphology.h"

#ifdef __cplusplus
extern "C" {
#endif

enum shape_feature {
    SHAPE_VOXEL_COUNT,
    SHAPE_VOLUME_ML,  /* IBSI YEKZ, voxel counting */
    SHAPE_CENTROID_X, /* mm, LPS */
    SHAPE_CENTROID_Y,
    SHAPE_CENTROID_Z,
    SHAPE_BOX_X, /* edges of the bounding box along columns, rows, slices: mm */
    SHAPE_BOX_Y,
    SHAPE_BOX_Z,
    SHAPE_FEATURES,
};

__extension__ typedef __int128 shape_product;

/* The region in space: number of voxels, sums of coordinates and their products, extremes. */
struct shape_place {
    int64_t voxels;
    int64_t sum[3];           /* of x, y, z */
    shape_product square[3];  /* of x x, y y, z z */
    shape_product product[3]; /* of y z, z x, x y */
    int64_t first[3];         /* bounding box, inclusive; first > last if empty */
    int64_t last[3];
};

/* Computes it from bits as in struct image_mask; NULL: every voxel. Uses threads of the lane (NULL: this thread). */
void shape_place_of(const struct kernels_lane *lane, const uint64_t *bits, const struct image_extent *extent,
                    struct shape_place *place);

/* Makes `made`, the region's two masks in the form of the morphology operations. It uses *kept. The
 * caller must free *kept, also after an error. Returns 0 or -ENOMEM. */
int shape_kept_make(const struct feature_region *region, struct morphology_region *made, uint64_t **kept,
                    struct error *error);

#ifdef __cplusplus
}
#endif
#endif
