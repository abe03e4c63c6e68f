/* ref_smooth.h - filters by the definition of kernels/smooth/smooth.h, one voxel at a time, and makes cases. */
#ifndef NOCTULE_REF_SMOOTH_H
#define NOCTULE_REF_SMOOTH_H

#include "kernels/smooth/smooth.h"

/* Writes the filtered stored values. */
void ref_smooth_values(struct image_extent extent, enum image_pixel pixel, const void *voxels, const double spacing[3],
                       const struct smooth_request *request, int32_t *filtered);

/* Writes the results of the request into its memory, from the filtered values. */
void ref_smooth_results(struct image_extent extent, const int32_t *filtered, const struct smooth_request *request);

/* A random volume, region and request. `bits` and `histogram` of the request have memory of the case. */
struct smooth_case {
    struct image_extent extent;
    enum image_pixel pixel;
    void *voxels;
    uint64_t *region;
    double spacing[3];
    struct smooth_request request;
};

void smooth_make_case(struct smooth_case *each, uint64_t seed);
void smooth_free_case(struct smooth_case *each);

/* Returns the number of words of a mask of the volume. */
size_t smooth_words(const struct smooth_case *each);

/* Runs a whole job. Returns its first error. */
int smooth_run_case(struct kernels_lane *lane, const struct smooth_case *each, struct error *error);

#endif
