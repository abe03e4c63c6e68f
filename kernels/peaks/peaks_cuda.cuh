/* peaks_cuda.cuh - declarations shared by the two implementations of ball means on the GPU:
 * peaks_cuda.cu, peaks_march.cu. */
#ifndef NOCTULE_KERNELS_PEAKS_PEAKS_CUDA_CUH
#define NOCTULE_KERNELS_PEAKS_PEAKS_CUDA_CUH

#include "kernels/peaks/peaks.h"
#include "kernels/texture/texture_cuda.cuh"

enum { PEAKS_THREADS = 256, PEAKS_WARP = 32 };

/* Results, consecutive in the counters. */
enum { PEAKS_LOCAL, PEAKS_GLOBAL, PEAKS_BALLS, PEAKS_NUMBERS };

struct peaks_job {
    struct glcm_volume volume;
    int64_t box_first[3], box_size[3]; /* the region's */
    int64_t first[3], size[3];         /* the voxels that its balls use */
    uint64_t *sums;
    const struct peaks_row *rows;
    uint32_t row_count;
    const struct image_rescale *rescales;
    const struct image_range *paddings;
    bool per_slice;
    int32_t smallest;
    double kept[2], largest;
    unsigned long long *found;
};

/* Returns the value relative to the smallest. */
template <typename Value>
static __device__ __forceinline__ uint32_t
peaks_value_at(const struct peaks_job &job, int64_t x, int64_t y, int64_t z)
{
    const size_t at = (size_t)((z * job.volume.rows + y) * job.volume.columns + x);

    return (uint32_t)((const Value *)job.volume.voxels)[at] ^ job.volume.bias;
}

static __device__ __forceinline__ bool
peaks_has_value(const struct peaks_job &job, int64_t z, uint32_t value)
{
    const struct image_range padding = job.paddings[job.per_slice ? z : 0];
    const int32_t stored = (int32_t)value + job.smallest;

    return stored < padding.lo || padding.hi < stored;
}

/* Maps doubles to integers in the same order; 0 is not used. */
static __device__ __forceinline__ unsigned long long
peaks_ordered(double value)
{
    const unsigned long long bits = (unsigned long long)__double_as_longlong(value);

    return bits >> 63 ? ~bits : bits | 1ull << 63;
}

static __device__ __forceinline__ unsigned long long
peaks_warp_most(unsigned long long value)
{
    for (int step = PEAKS_WARP / 2; step > 0; step /= 2) {
        const unsigned long long other = __shfl_down_sync(UINT32_MAX, value, step);

        value = other > value ? other : value;
    }
    return value;
}

/* Largest means as such integers, and the number of balls. */
struct peaks_most {
    unsigned long long local, global;
    unsigned balls;
};

template <typename Value, typename Mean>
static __device__ __forceinline__ void
peaks_look_around(const struct peaks_job &job, int64_t x, int64_t y, int64_t z, const Mean &mean_around,
                  struct peaks_most *most)
{
    const struct image_rescale rescale = job.rescales[job.per_slice ? z : 0];
    const uint32_t stored = peaks_value_at<Value>(job, x, y, z);
    const double value =
        __dadd_rn(__dmul_rn(rescale.slope, (double)((int32_t)stored + job.smallest)), rescale.intercept);

    if (!peaks_has_value(job, z, stored) || !(job.kept[0] <= value && value <= job.kept[1]))
        return;
    const unsigned long long mean = peaks_ordered(mean_around());

    most->balls++;
    most->global = mean > most->global ? mean : most->global;
    if (value == job.largest)
        most->local = mean > most->local ? mean : most->local;
}

/* All threads must call it. */
static __device__ __forceinline__ void
peaks_put(const struct peaks_job &job, const struct peaks_most &most)
{
    const unsigned long long local = peaks_warp_most(most.local);
    const unsigned long long global = peaks_warp_most(most.global);
    const unsigned balls = __reduce_add_sync(UINT32_MAX, most.balls);

    if (threadIdx.x % PEAKS_WARP == 0 && balls > 0) {
        atomicMax(&job.found[PEAKS_LOCAL], local);
        atomicMax(&job.found[PEAKS_GLOBAL], global);
        atomicAdd(&job.found[PEAKS_BALLS], (unsigned long long)balls);
    }
}

/* peaks_march.cu: computes balls of few rows and slices, as in most images, without the job's sums.
 * Sets *done to false if the balls are larger. */
int cuda_peaks_march(const struct cuda_lane *lane, const struct peaks_request *request, const struct peaks_job *job,
                     bool *done, struct error *error);

#endif
