/*
 * hong2018.cuh - the methods of Hong 2018 as its authors describe them, as the baseline of the GLCM of kernels/.
 *
 * Images are bytes whose level is floor(g L / 256), computed when a pixel is read. A pair belongs to its first pixel.
 * Counts are 32 bits, raw and directional.
 */
#ifndef NOCTULE_HONG2018_CUH
#define NOCTULE_HONG2018_CUH

#include <cstdint>
#include <cuda_runtime.h>

struct hong2018 {
    const uint8_t *image; /* on the device, width * height */
    int64_t width, height;
    int levels; /* 8, 16 or 32 */
    int dx, dy;
    uint32_t *counts; /* on the device, levels * levels; overwritten */
};

/* Scheme 1: one thread per pixel, one atomic addition in global memory. */
void hong2018_scheme_1(const hong2018 &run, cudaStream_t stream);

/*
 * Scheme 2: R copies in a block's shared memory, where thread i votes in copy i mod R. Blocks have 1024 threads for 8
 * levels and 512 for more. There are as many copies as 48 KB hold for two blocks.
 */
void hong2018_scheme_2(const hong2018 &run, cudaStream_t stream);

/*
 * Scheme 3: scheme 2 on `slabs` of rows with a halo. Each slab is copied from pinned memory on one of two streams, so
 * that copies and kernels overlap. Overwrites `image`, which must be the run's, and waits for both streams.
 */
void hong2018_scheme_3(const hong2018 &run, const uint8_t *pinned, int slabs, uint8_t *image,
                       const cudaStream_t streams[2]);

#endif
