/*
 * extent.h - where in a volume its segments are: the voxels that are in any of them, counted plane
 * by plane along each axis of the stack.
 */
#ifndef NOCTULE_SERVICE_PIPELINE_RESULTS_EXTENT_H
#define NOCTULE_SERVICE_PIPELINE_RESULTS_EXTENT_H

#include "base/image.h"

struct segments_extent {
    int32_t first, last; /* slices with a voxel in a segment; all of them where none has one */
    /* On each axis the plane with the most voxels, of several the one nearest to the middle, of two
     * the first; the middle of the volume where there are none. */
    int32_t fullest[3];
};

/* 0 or -ENOMEM. */
int segments_extent_find(const struct image_mask *const *masks, size_t count,
                         struct image_extent volume, int threads, struct segments_extent *extent);

#endif
