/* mcc_cuda.cuh - the coefficients of mcc.h of a batch of voxels on the GPU. Private to kernels/voxelwise/. */
#ifndef NOCTULE_KERNELS_VOXELWISE_MCC_CUDA_CUH
#define NOCTULE_KERNELS_VOXELWISE_MCC_CUDA_CUH

#include "kernels/cuda/cuda.cuh"
#include "kernels/voxelwise/voxelwise_steps.h"

enum {
    MCC_SIDES = 3,                         /* matrices of up to 8, 16 and 32 rows */
    MCC_LISTS = 5,                         /* and of up to 64, and any */
    MCC_WORDS = VOXELWISE_MAX_LEVELS / 32, /* bits of levels */
    MCC_VOXELS = 1 << 15,                  /* max voxels per part of a batch */
};

/* Memory of a lane. */
struct mcc_memory {
    uint32_t *occurring;  /* [MCC_WORDS][MCC_VOXELS]: bits of levels from 0 */
    int32_t *lists;       /* [MCC_LISTS][MCC_VOXELS]: voxels of the part by the side of their matrices */
    int32_t *listed;      /* [MCC_LISTS] */
    double *coefficients; /* [MCC_DIRECTIONS][stride] */
};

/* Takes the memory for batches of `stride` voxels. */
void mcc_place(struct kernels_arena *device, struct mcc_memory *memory, size_t stride);

/* A batch of voxels: places in the volumes of a plan, after `first` is subtracted. */
struct mcc_batch {
    struct mcc_memory memory;
    const int64_t *voxels;
    int64_t first, count, stride;
    unsigned char *room; /* MCC_ROOM bytes at least, free for each part */
    size_t room_bytes;
};

/* Room of a part: elements of the reduced matrices of all directions. */
#define MCC_ROOM ((size_t)MCC_VOXELS * MCC_DIRECTIONS * 2 * 32 * sizeof(double))

/* Queues the kernels of a batch. */
int mcc_queue(struct cuda_lane *lane, const struct voxelwise_plan *plan, const struct mcc_batch *batch,
              struct error *error);

#endif
