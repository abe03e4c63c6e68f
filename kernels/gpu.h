/* gpu.h - the GPUs that could be opened as devices. */
#ifndef NOCTULE_GPU_H
#define NOCTULE_GPU_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define KERNELS_UUID 48
#define KERNELS_PCI  16

/* A GPU that can be opened: what kernels_device_options.device takes. */
struct kernels_gpu {
    int index;
    char uuid[KERNELS_UUID]; /* "GPU-" and 36 characters */
    char name[64];
    char pci[KERNELS_PCI]; /* on the bus: "0000:3b:00.0"; "": not known */
    int64_t memory_bytes;
};

/* Lists at most `capacity` GPUs and returns how many there are; 0 also without a driver or where
 * the CUDA backend was not built. Creates no context. */
int kernels_gpus(struct kernels_gpu *gpus, int capacity);

/* The CUDA backend's answer. */
int cuda_gpus(struct kernels_gpu *gpus, int capacity);

#ifdef __cplusplus
}
#endif
#endif
