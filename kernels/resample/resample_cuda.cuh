/*
 * resample_cuda.cuh - what the files of resampling on the GPU share: a request as the kernels are
 * given it. No operation is fused: each is rounded by itself, as on the CPU; or it is exact, and then
 * made as is quickest.
 */
#ifndef NOCTULE_RESAMPLE_CUDA_CUH
#define NOCTULE_RESAMPLE_CUDA_CUH

#include "kernels/cuda/cuda.cuh"
#include "kernels/resample/resample.h"

/* What the kernels are given; all memory is the device's. */
struct resample_job {
    struct image_extent from, to;
    struct resample_tables tables;
    const void *voxels;
    void *resampled;
    bool bytes;               /* a voxel of the result; else two */
    struct image_range range; /* of its pixel type */
    int32_t outside;
};

/* What order 3 has between its axes (resample_spline.cu). */
struct resample_between_axes {
    double *first, *second; /* after the first axis, and after the second */
    double *marks;
};

static inline unsigned
resample_blocks(int64_t count, int64_t each)
{
    return (unsigned)((count + each - 1) / each);
}

/* Of the lane's pixel type, queued on its work. resample_pass.cu: orders 0 and 1. */
int resample_queue_pass(struct cuda_lane *lane, const struct resample_job *job, int order,
                        struct error *error);

/* resample_spline.cu: order 3. */
int resample_queue_spline(struct cuda_lane *lane, const struct resample_job *job,
                          const struct resample_between_axes *between, struct error *error);
void resample_place_spline(struct kernels_arena *arena, const struct image_extent *from,
                           const struct image_extent *to, struct resample_between_axes *between);

/* resample_cuda.cu: the tables of a request sent, and its kernels queued; for benchmarks apart. */
int cuda_resample_begin(struct kernels_lane *lane, const struct resample_request *request,
                        struct resample_job *job, struct error *error);
int cuda_resample_queue(struct kernels_lane *lane, const struct resample_job *job,
                        struct error *error);

#endif
