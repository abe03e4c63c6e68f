/*
 * ref_drive.h - takes a volume in memory through a lane the way a decoder would: slices announced
 * by several threads. Tests check what comes out, benchmarks time it.
 */
#ifndef NOCTULE_REF_DRIVE_H
#define NOCTULE_REF_DRIVE_H

#include "kernels/level_set/level_set.h"

/*
 * Announces slices order[0 .. slices - 1] (NULL: ascending), each by whichever of `threads` threads
 * is free. 0 or the first error.
 */
int ref_announce(struct kernels_lane *lane, int64_t slices, int threads, const int64_t *order);

struct ref_job {
    struct image_extent extent;
    enum image_pixel pixel;
    const void *voxels;
    const struct kernels_level_set_label *labels;
    size_t label_count;
    int threads;
    const int64_t *order;
    bool no_hint; /* the labels are named by the run alone */
};

/*
 * A whole level set job. If seconds is not NULL it becomes the time from kernels_volume_begin to
 * the masks, without the time that this function takes to copy the voxels into the lane.
 */
int ref_segment(struct kernels_lane *lane, const struct ref_job *job, struct image_mask *masks,
                double *seconds);

/* Seconds of a clock that only runs forward. */
double ref_clock(void);

#endif
