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

/* Reads stored values: those at `from` + a place, or 0 for negative places. The caller must use them later, so that reads overlap. */
template <typename Stored, size_t COUNT>
static __device__ __forceinline__ void
separable_read_as(const Stored *from, const int32_t (&places)[COUNT], int32_t (&stored)[COUNT])
{
#pragma unroll
    for (size_t i = 0; i < COUNT; i++)
        stored[i] = places[i] < 0 ? 0 : from[places[i]];
}

template <size_t COUNT>
static __device__ __forceinline__ void
separable_read(const struct separable_input &input, int64_t first, const int32_t (&places)[COUNT],
               int32_t (&stored)[COUNT])
{
    switch (input.kind) {
    case SEPARABLE_UINT8:
        separable_read_as((const uint8_t *)input.from + first, places, stored);
        break;
    case SEPARABLE_INT16:
        separable_read_as((const int16_t *)input.from + first, places, stored);
        break;
    case SEPARABLE_UINT16:
        separable_read_as((const uint16_t *)input.from + first, places, stored);
        break;
    case SEPARABLE_VALUES:
    case SEPARABLE_CODES:
        separable_read_as((const int32_t *)input.from + first, places, stored);
        break;
    }
}

/* Returns the value of a stored value. */
static __device__ __forceinline__ int32_t
separable_value(const struct separable_input &input, int32_t stored)
{
    return filter_value(&input.request, input.kind == SEPARABLE_CODES ? abs(stored) : stored);
}

/* Where responses go. */
struct separable_output {
    int32_t *codes;
    double factor;
};

enum { SEPARABLE_BOX_HALF = 7 }; /* max places to each side of a box that one kernel sums */

/* Returns whether one kernel computes the mean, or the energy. */
bool separable_box_fits(const struct separable_plan *plan, const struct image_extent *extent);

/* Queues it. `narrow`: sums fit 32 bits. The input must not be the output. */
int separable_box_queue(struct cuda_lane *lane, const struct separable_plan *plan, const struct separable_input *input,
                        const struct separable_output *output, bool narrow, struct error *error);

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
