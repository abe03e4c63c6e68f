/* image_type_cuda.cuh - declarations that image types on the GPU share with their benchmark. */
#ifndef NOCTULE_KERNELS_FILTER_IMAGE_TYPE_CUDA_CUH
#define NOCTULE_KERNELS_FILTER_IMAGE_TYPE_CUDA_CUH

#include "kernels/cuda/cuda.cuh"
#include "kernels/filter/image_type_steps.h"

/* Queues the image type of values that are on the device. */
int cuda_image_type_queue(struct cuda_lane *lane, struct error *error);

#endif
