/*
 * ref_drive.h - processes a volume in memory through a lane like a decoder: several threads announce slices. Tests
 * check the results, benchmarks time them.
 */
#ifndef NOCTULE_REF_DRIVE_H
#define NOCTULE_REF_DRIVE_H

#include "kernels/level_set/level_set.h"

/*
 * Announces slices order[0 .. slices - 1] (NULL: ascending) from `threads` threads; each free thread takes the next.
 * Returns 0 or the first error.
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
    bool no_hint; /* only the run names the labels */
};

/*
 * Runs a whole level set job. If seconds is not NULL, sets it to the time from kernels_volume_begin to the masks.
 * This excludes the copy of the voxels into the lane.
 */
int ref_segment(struct kernels_lane *lane, const struct ref_job *job, struct image_mask *masks, double *seconds);

/* Returns the seconds of a monotonic clock. */
double ref_clock(void);

#endif
