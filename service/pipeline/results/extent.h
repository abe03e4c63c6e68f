/*
 * extent.h - finds where the segments of a volume are: counts the voxels in any segment, plane by
 * plane along each axis of the stack.
 */
#ifndef NOCTULE_SERVICE_PIPELINE_RESULTS_EXTENT_H
#define NOCTULE_SERVICE_PIPELINE_RESULTS_EXTENT_H

#include "base/image.h"

struct segments_extent {
    /* slices with a voxel in a segment; all slices if there is no such voxel */
    int32_t first, last;
    /*
     * The plane with the most voxels, per axis: of several the one nearest to the middle, of two
     * the first; without voxels the middle of the volume.
     */
    int32_t fullest[3];
};

/* Returns 0 or -ENOMEM. */
int segments_extent_find(const struct image_mask *const *masks, size_t count, struct image_extent volume, int threads,
                         struct segments_extent *extent);

#endif
