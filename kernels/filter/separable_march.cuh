/* separable_march.cuh - parts of the separable filters on the GPU. */
#ifndef NOCTULE_KERNELS_FILTER_SEPARABLE_MARCH_CUH
#define NOCTULE_KERNELS_FILTER_SEPARABLE_MARCH_CUH

#include "kernels/cuda/cuda.cuh"
#include "kernels/filter/separable.h"

enum separable_input_kind { SEPARABLE_UINT8, SEPARABLE_INT16, SEPARABLE_UINT16, SEPARABLE_VALUES, SEPARABLE_CODES };

/* Values without padding and offset have a request of such. Of codes, their sizes count. */
struct separable_input {
    const void *from;
    enum separable_input_kind kind;
    struct filter_request request;
};

/* Reads stored values: those at `from` + a place, or 0 for negative places, unless all are INSIDE. The caller must use them
 * later, so that reads overlap. */
template <bool INSIDE, typename Stored, size_t COUNT>
static __device__ __forceinline__ void
separable_read_as(const Stored *from, const int32_t (&places)[COUNT], int32_t (&stored)[COUNT])
{
#pragma unroll
    for (size_t i = 0; i < COUNT; i++)
        stored[i] = !INSIDE && places[i] < 0 ? 0 : from[places[i]];
}

/* A slice that is read: `at` is its first value, and `within` is whether it is in the volume. */
struct separable_slice {
    const unsigned char *at;
    bool within;
};

static __device__ __noinline__ int32_t
separable_outside(int32_t i, int32_t side, enum filter_boundary boundary)
{
    return (int32_t)filter_place(i, side, boundary);
}

/* Returns the bytes of a slice. */
static __device__ __forceinline__ int64_t
separable_slice_bytes(const struct separable_input &input, int64_t voxels)
{
    return voxels * (input.kind == SEPARABLE_UINT8                                     ? 1
                     : input.kind == SEPARABLE_INT16 || input.kind == SEPARABLE_UINT16 ? 2
                                                                                       : 4);
}

/* Finds slice z. `follows`: the last one was z - 1. A pointer that only grows needs one addition. */
static __device__ __forceinline__ void
separable_go(const struct separable_input &input, int64_t bytes, int32_t z, int32_t slices,
             enum filter_boundary boundary, bool follows, struct separable_slice &slice)
{
    if (follows & (z > 0) & (z < slices)) {
        slice.at += bytes;
        return;
    }
    const int32_t place = separable_outside(z, slices, boundary);

    slice.within = place >= 0;
    slice.at = (const unsigned char *)input.from + max(place, 0) * bytes;
}

template <bool INSIDE = false, size_t COUNT>
static __device__ __forceinline__ void
separable_read(const struct separable_input &input, const unsigned char *at, const int32_t (&places)[COUNT],
               int32_t (&stored)[COUNT])
{
    switch (input.kind) {
    case SEPARABLE_UINT8:
        separable_read_as<INSIDE>((const uint8_t *)at, places, stored);
        break;
    case SEPARABLE_INT16:
        separable_read_as<INSIDE>((const int16_t *)at, places, stored);
        break;
    case SEPARABLE_UINT16:
        separable_read_as<INSIDE>((const uint16_t *)at, places, stored);
        break;
    case SEPARABLE_VALUES:
    case SEPARABLE_CODES:
        separable_read_as<INSIDE>((const int32_t *)at, places, stored);
        break;
    }
}

/* Finds the values of stored values; 0 for negative places. */
template <bool INSIDE = false, size_t COUNT>
static __device__ __forceinline__ void
separable_values(const struct separable_input &input, const int32_t (&places)[COUNT], int32_t (&stored)[COUNT])
{
    const struct filter_request &request = input.request;

    if (input.kind == SEPARABLE_CODES) {
#pragma unroll
        for (size_t i = 0; i < COUNT; i++)
            stored[i] = !INSIDE && places[i] < 0 ? 0 : abs(stored[i]);
    } else if (request.padding.lo <= request.padding.hi) {
#pragma unroll
        for (size_t i = 0; i < COUNT; i++)
            stored[i] = !INSIDE && places[i] < 0 ? 0 : filter_value(&request, stored[i]);
    } else {
#pragma unroll
        for (size_t i = 0; i < COUNT; i++)
            stored[i] = !INSIDE && places[i] < 0 ? 0 : filter_clip(&request, stored[i] + request.offset);
    }
}

/* Where responses go. */
struct separable_output {
    int32_t *codes;
    double factor;
};

/* Returns the slices of a block that walks along z: `tiles` blocks cover a slice, `blocks` run on a multiprocessor at a time, and
 * each reads `around` more slices than it writes. */
int32_t separable_depth(const struct cuda_device *device, int blocks, int64_t tiles, int64_t slices, int64_t around);

enum { SEPARABLE_BOX_HALF = 7 }; /* max places to each side of a box that one kernel sums */

/* Returns whether one kernel computes the mean, or the energy. */
bool separable_box_fits(const struct separable_plan *plan, const struct image_extent *extent);

/* Queues it for slices `first` .. `end` - 1. `narrow`: sums fit 32 bits. The input must not be the output. */
int separable_box_queue(struct cuda_lane *lane, const struct separable_plan *plan, const struct separable_input *input,
                        const struct separable_output *output, bool narrow, int64_t first, int64_t end,
                        struct error *error);

/* Returns whether one kernel computes the filter: all kernels have few taps, and one row of weights. */
bool separable_march_fits(const struct separable_plan *plan, const struct image_extent *extent);

/* Queues the filter. The weights of the plan are in host memory. */
int separable_march_queue(struct cuda_lane *lane, const struct separable_plan *plan,
                          const struct separable_input *input, const struct separable_output *output,
                          struct error *error);

/* Returns whether two kernels compute the filter, a Laplacian of Gaussian, by two planes of sums. */
bool separable_walk_fits(const struct separable_plan *plan, const struct image_extent *extent);

/* Queues it. The weights of the plan are in the device's memory. */
int separable_walk_queue(struct cuda_lane *lane, const struct separable_plan *plan, const struct separable_input *input,
                         const struct separable_output *output, double *planes, struct error *error);

#endif
