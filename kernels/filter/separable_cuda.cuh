/* separable_cuda.cuh - the part of separable_cuda.cu that the benchmark times. */
#ifndef NOCTULE_KERNELS_FILTER_SEPARABLE_CUDA_CUH
#define NOCTULE_KERNELS_FILTER_SEPARABLE_CUDA_CUH

#include "kernels/cuda/cuda.cuh"
#include "kernels/filter/separable.h"

/* Queues a filter, with codes in device memory. */
int cuda_separable_queue(struct cuda_lane *lane, const struct filter_task *job, int32_t **codes, struct error *error);

#endif
