/* gpu.h - lists the GPUs that can be opened as devices, and checks their driver. */
#ifndef NOCTULE_KERNELS_GPU_H
#define NOCTULE_KERNELS_GPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define KERNELS_UUID 48
#define KERNELS_PCI  16

/* A GPU that kernels_device_options.device can select. */
struct kernels_gpu {
    int index;
    char uuid[KERNELS_UUID]; /* "GPU-" and 36 characters */
    char name[64];
    char pci[KERNELS_PCI]; /* PCI address: "0000:3b:00.0"; "": unknown */
    int64_t memory_bytes;
};

/* Lists at most `capacity` GPUs and returns their number. Returns 0 without a driver or if the CUDA
 * backend was not built. Creates no context. */
int kernels_gpus(struct kernels_gpu *gpus, int capacity);

/* Returns the CUDA version of the backend, 1000 per major and 10 per minor version; 0: not
 * built. */
int kernels_cuda_version(void);

/* Returns whether a driver for CUDA up to `driver` supports a program built with `program`. From
 * CUDA 11 on, a driver serves programs of its major version or an older one. */
bool kernels_driver_serves(int driver, int program);
/* Writes the reason why a driver is rejected, and the required one. */
void kernels_driver_refusal(int driver, int program, char *text, size_t size);

/* Implementations of the CUDA backend. */
int cuda_gpus(struct kernels_gpu *gpus, int capacity);
int cuda_version(void);

#ifdef __cplusplus
}
#endif
#endif
