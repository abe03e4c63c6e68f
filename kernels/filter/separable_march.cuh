/* separable_march.cuh - parts of the separable filters on the GPU. */
#ifndef NOCTULE_KERNELS_FILTER_SEPARABLE_MARCH_CUH
#define NOCTULE_KERNELS_FILTER_SEPARABLE_MARCH_CUH

#include "kernels/cuda/cuda.cuh"
#include "kernels/filter/separable.h"

enum separable_input_kind { SEPARABLE_UINT8, SEPARABLE_INT16, SEPARABLE_UINT16, SEPARABLE_VALUES, SEPARABLE_CODES };

struct separable_input {
    const void *from;
    enum separable_input_kind kind;
    struct filter_request request;
};

static __device__ __forceinline__ int32_t
separable_value(const struct separable_input &input, int64_t i)
{
    switch (input.kind) {
    case SEPARABLE_UINT8:
        return filter_value(&input.request, ((const uint8_t *)input.from)[i]);
    case SEPARABLE_INT16:
        return filter_value(&input.request, ((const int16_t *)input.from)[i]);
    case SEPARABLE_UINT16:
        return filter_value(&input.request, ((const uint16_t *)input.from)[i]);
    case SEPARABLE_VALUES:
        return filter_clip(&input.request, ((const int32_t *)input.from)[i]);
    case SEPARABLE_CODES:
        break;
    }
    return abs(((const int32_t *)input.from)[i]);
}

/* Where responses go: codes and, of an extreme of more terms than one kernel pools, doubles between the kernels. */
struct separable_output {
    double *pooled; /* NULL: not needed */
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
bool separable_march_fits(const struct separable_plan *plan);

/* Returns whether it needs `pooled`. */
bool separable_march_pools(const struct separable_plan *plan);

/* Queues the filter. The weights of the plan are in host memory. */
int separable_march_queue(struct cuda_lane *lane, const struct separable_plan *plan,
                          const struct separable_input *input, const struct separable_output *output,
                          struct error *error);

#endif
