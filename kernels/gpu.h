/* gpu.h - the GPUs that could be opened as devices, and what their driver has to be. */
#ifndef NOCTULE_GPU_H
#define NOCTULE_GPU_H

#include <stdbool.h>
#include <stddef.h>
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

/* Versions of CUDA are 1000 a major and 10 a minor one. This is the one that the backend was made with; 0: it was not. */
int kernels_cuda_version(void);

/* Does a driver that is for CUDA up to `driver` serve a program that was made with `program`? From CUDA 11 on one for the
 * same major version does, or for a later one. */
bool kernels_driver_serves(int driver, int program);
/* Why one does not, and which would. */
void kernels_driver_refusal(int driver, int program, char *text, size_t size);

/* The CUDA backend's answers. */
int cuda_gpus(struct kernels_gpu *gpus, int capacity);
int cuda_version(void);

#ifdef __cplusplus
}
#endif
#endif
