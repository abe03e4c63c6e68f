/*
 * ref_peaks.h - computes means of balls by the definition of kernels/peaks/peaks.h, one voxel at a time, and makes
 * cases.
 */
#ifndef NOCTULE_REF_PEAKS_H
#define NOCTULE_REF_PEAKS_H

#include "kernels/peaks/peaks.h"

void ref_peaks(struct image_extent extent, enum image_pixel pixel, const void *voxels, const struct peaks *request,
               struct peaks_found *found);

/* A random volume with a region, paddings, rescales and a range; small enough for the reference. */
struct peaks_case {
    struct image_extent extent;
    enum image_pixel pixel;
    void *voxels;
    uint64_t *region; /* NULL: everything */
    struct image_rescale *rescales;
    struct image_range *paddings;
    struct peaks request;
};

void peaks_make_case(struct peaks_case *each, uint64_t seed);
void peaks_free_case(struct peaks_case *each);

/* Runs a whole job. Returns its first error. */
int peaks_run_case(struct kernels_lane *lane, const struct peaks_case *each, struct peaks_found *found,
                   struct error *error);

#endif
