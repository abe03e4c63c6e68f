/* enclosed_cuda.cuh - the kernels of enclosed_cuda.cu alone, for benchmarks. */
#ifndef NOCTULE_KERNELS_ENCLOSED_ENCLOSED_CUDA_CUH
#define NOCTULE_KERNELS_ENCLOSED_ENCLOSED_CUDA_CUH

#include "kernels/cuda/cuda.cuh"
#include "kernels/enclosed/enclosed.h"

/* Queues all work between the mask on the device, which the run before has left there, and the result. */
int cuda_enclosed_queue(struct cuda_lane *lane, const struct enclosed_plan *plan, struct error *error);

#endif
