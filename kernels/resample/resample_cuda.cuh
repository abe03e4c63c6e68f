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
    const void *voxels; /* stored values, or rescaled doubles in rows of `pitch` */
    void *resampled;
    enum image_pixel pixel; /* of stored results */
    enum resample_values values;
    bool has_samples; /* of the request */
    int32_t outside;
    int64_t pitch;
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

/* Clamps a stored value to the result's type; doubles are not clamped. */
template <typename Result, typename Value>
__device__ static __forceinline__ Result
resample_kept(Value value)
{
    if constexpr (std::is_same<Result, double>::value)
        return (double)value;
    else {
        constexpr int32_t least = std::is_signed<Result>::value ? -32768 : 0;
        constexpr int32_t most = least + (sizeof(Result) == 1 ? 255 : 65535);

        return (Result)min(max((int32_t)value, least), most);
    }
}

/* Rounds to a stored value, unless the result is a double. No value exceeds 2^31. A sum with 1.5 * 2^52 has the integer
 * in its lower bits. */
template <typename Result>
__device__ static __forceinline__ Result
resample_result(double value)
{
    if constexpr (std::is_same<Result, double>::value)
        return value;
    else
        return resample_kept<Result>(__double2loint(__dadd_rd(__dadd_rn(value, 0.5), 0x1.8p52)));
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

/* Returns the result of with(a value of the result's type). */
template <typename With>
static inline auto
resample_typed_result(const struct resample_job &job, const With &with)
{
    return job.values == RESAMPLE_STORED ? resample_typed(job.pixel, with) : with(double());
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
