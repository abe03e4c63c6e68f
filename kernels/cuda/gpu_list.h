/* gpu_list.h - the CUDA backend's answer to kernels_gpus. */
#ifndef NOCTULE_CUDA_GPU_LIST_H
#define NOCTULE_CUDA_GPU_LIST_H

#include "kernels/gpu.h"

#ifdef __cplusplus
extern "C" {
#endif

int cuda_gpus(struct kernels_gpu *gpus, int capacity);

#ifdef __cplusplus
}
#endif
#endif
