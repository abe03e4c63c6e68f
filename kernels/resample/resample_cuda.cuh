/*
 * resample_cuda.cuh - declarations shared by the resampling files of the GPU: the kernels' job, and
 * voxel types. Operations must not be fused: each rounds separately, as on the CPU. Exact
 * operations may use the fastest form.
 */
#ifndef NOCTULE_KERNELS_RESAMPLE_RESAMPLE_CUDA_CUH
#define NOCTULE_KERNELS_RESAMPLE_RESAMPLE_CUDA_CUH

#include "kernels/cuda/cuda.cuh"
#include "kernels/resample/resample.h"

#include <type_traits>

/* Parameters of the kernels, with all pointers in device memory. */
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

/* Memory of order 3 between its axes (resample_spline.cu). */
struct resample_between_axes {
    double *first, *second; /* after the first axis, and after the second */
    double *marks;
    uint32_t *missed;            /* per warp of an axis */
    int32_t *firsts[3];          /* per axis, the first place after each sample */
    struct resample_due *due[3]; /* and the last places after each sample except the first, from the last one on */
};

/* Clamps to the result's type. */
template <typename Result>
__device__ static __forceinline__ Result
resample_kept(int32_t value)
{
    constexpr int32_t least = std::is_signed<Result>::value ? -32768 : 0;
    constexpr int32_t most = least + (sizeof(Result) == 1 ? 255 : 65535);

    return (Result)min(max(value, least), most);
}

/* Returns the result of with(a value of the pixel's type). */
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

/* resample_pass.cu: queues orders 0 and 1 on the lane's work stream, for the lane's pixel type. */
int resample_queue_pass(struct cuda_lane *lane, const struct resample_job *job, int order, struct error *error);

/* resample_spline.cu: queues order 3. */
int resample_queue_spline(struct cuda_lane *lane, const struct resample_job *job,
                          const struct resample_between_axes *between, struct error *error);
bool resample_spline_fits(const struct image_extent *from, const struct resample_demand *demand);
void resample_place_spline(struct kernels_arena *arena, const struct image_extent *from, const struct image_extent *to,
                           struct resample_between_axes *between);

/* resample_cuda.cu: sends the tables of a request, and queues its kernels; separate for
 * benchmarks. */
int cuda_resample_begin(struct kernels_lane *lane, const struct resample_request *request, struct resample_job *job,
                        struct error *error);
int cuda_resample_queue(struct kernels_lane *lane, const struct resample_job *job, struct error *error);

#endif
