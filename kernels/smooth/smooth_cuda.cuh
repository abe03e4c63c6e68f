/* smooth_cuda.cuh - the part of smooth_cuda.cu that the benchmark times. */
#ifndef NOCTULE_KERNELS_SMOOTH_SMOOTH_CUDA_CUH
#define NOCTULE_KERNELS_SMOOTH_SMOOTH_CUDA_CUH

#include "kernels/cuda/cuda.cuh"
#include "kernels/smooth/smooth_plan.h"

/* Queues the passes, with results in device memory. */
int cuda_smooth_queue(struct cuda_lane *lane, const struct smooth_plan *plan, struct error *error);

#endif
