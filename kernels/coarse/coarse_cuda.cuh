/* coarse_cuda.cuh - the part of coarse_cuda.cu that the benchmark times. */
#ifndef NOCTULE_KERNELS_COARSE_COARSE_CUDA_CUH
#define NOCTULE_KERNELS_COARSE_COARSE_CUDA_CUH

#include "kernels/coarse/coarse.h"
#include "kernels/cuda/cuda.cuh"

/* Queues the kernel, with the blocks in device memory: sets *blocks. */
int cuda_coarse_queue(struct cuda_lane *lane, const struct coarse_request *request, int16_t **blocks,
                      struct error *error);

#endif
