/*
 * hong2018.cuh - the methods of Hong 2018 as its authors describe them: what the GLCM of kernels/
 * is compared with.
 *
 * Images are bytes whose level is floor(g L / 256); the levels are made as pixels are read. A pair
 * belongs to its first pixel; counts are 32 bits, raw and directional.
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

/* Scheme 1: a thread a pixel, one atomic addition in global memory. */
void hong2018_scheme_1(const hong2018 &run, cudaStream_t stream);

/* Scheme 2: R copies in a block's shared memory, thread i votes in copy i mod R; blocks of 1024
 * threads for 8 levels and 512 for more, and as many copies as 48 KB hold for two blocks. */
void hong2018_scheme_2(const hong2018 &run, cudaStream_t stream);

/* Scheme 3: scheme 2 on `slabs` of rows with a halo, each copied from pinned memory on one of two
 * streams, so that copies run beside kernels. `image`, that of the run, is overwritten; waits for
 * both. */
void hong2018_scheme_3(const hong2018 &run, const uint8_t *pinned, int slabs, uint8_t *image,
                       const cudaStream_t streams[2]);

#endif
