/*
 * shape.h - how large a region is and where it lies: of all of its voxels, padding, which has no
 * value, included. Pure functions; any thread.
 */
#ifndef NOCTULE_FEATURE_SHAPE_H
#define NOCTULE_FEATURE_SHAPE_H

#include "base/image.h"
#include "kernels/features/family.h"

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

/* The region in space: counts of voxels, sums of coordinates and of their products, extremes. */
struct shape_place {
    int64_t voxels;
    int64_t sum[3];           /* of x, y, z */
    shape_product square[3];  /* of x x, y y, z z */
    shape_product product[3]; /* of y z, z x, x y */
    int64_t first[3];         /* of the bounding box, inclusive; > last when empty */
    int64_t last[3];
};

/* From bits laid out as struct image_mask; NULL: every voxel. */
void shape_place_of(const uint64_t *bits, const struct image_extent *extent,
                    struct shape_place *place);

#ifdef __cplusplus
}
#endif
#endif
