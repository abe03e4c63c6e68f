/*
 * resample_cuda.cuh - what the files of resampling on the GPU share: a request as the kernels are
 * given it, and the types of its voxels. No operation is fused: each is rounded by itself, as on
 * the CPU; or it is exact, and then made as is quickest.
 */
#ifndef NOCTULE_RESAMPLE_CUDA_CUH
#define NOCTULE_RESAMPLE_CUDA_CUH

#include "kernels/cuda/cuda.cuh"
#include "kernels/resample/resample.h"

#include <type_traits>

/* What the kernels are given; all memory is the device's. */
struct resample_job {
    struct image_extent from, to;
    struct resample_tables tables;
    const void *voxels;
    void *resampled;
    enum image_pixel pixel; /* of the result */
    int32_t outside;
};

/* The weights of a place of the grid, in two halves. */
struct resample_due {
    double2 low, high;
};

/* What order 3 has between its axes (resample_spline.cu). */
struct resample_between_axes {
    double *first, *second; /* after the first axis, and after the second */
    double *marks;
    uint32_t *missed;   /* of each warp of an axis */
    int32_t *firsts[3]; /* of an axis, the first place behind each sample */
    struct resample_due
        *due[3]; /* and the last ones behind each sample but the first, from the last one on */
};

/* The closest value of the result's type. */
template <typename Result>
__device__ static __forceinline__ Result
resample_kept(int32_t value)
{
    constexpr int32_t least = std::is_signed<Result>::value ? -32768 : 0;
    constexpr int32_t most = least + (sizeof(Result) == 1 ? 255 : 65535);

    return (Result)min(max(value, least), most);
}

/* What with(a value of the pixel's type) returns. */
template <typename With>
static inline auto
resample_typed(enum image_pixel pixel, const With &with)
{
    switch (pixel) {
    case IMAGE_UINT8:
        return with(uint8_t());
    case IMAGE_INT16:
        return with(int16_t());
    case IMAGE_UINT16:
        break;
    }
    return with(uint16_t());
}

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
bool resample_spline_fits(const struct image_extent *from, const struct resample_demand *demand);
void resample_place_spline(struct kernels_arena *arena, const struct image_extent *from,
                           const struct image_extent *to, struct resample_between_axes *between);

/* resample_cuda.cu: the tables of a request sent, and its kernels queued; for benchmarks apart. */
int cuda_resample_begin(struct kernels_lane *lane, const struct resample_request *request,
                        struct resample_job *job, struct error *error);
int cuda_resample_queue(struct kernels_lane *lane, const struct resample_job *job,
                        struct error *error);

#endif
