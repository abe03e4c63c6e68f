/*
 * masur2022.cuh - the kernels of Masur 2022 (algorithms 1 to 3) as its authors list them, on bytes:
 * what the patterns of kernels/ are compared with. Blocks are 16 x 16 threads, a thread a pixel;
 * TLBAP's comparisons are strict and LANADP's averages integers. A slice a block in z.
 */
#ifndef NOCTULE_MASUR2022_CUH
#define NOCTULE_MASUR2022_CUH

#include <cstdint>
#include <cuda_runtime.h>

struct masur2022 {
    const uint8_t *images; /* on the device, width * height * slices */
    int width, height, slices;
    int threshold_millionths; /* an integer comparison in place of the listing's th * max */
    uint8_t *tlbap, *lanadp;  /* on the device, as large as the images; edges are left alone */
};

/* Both patterns, a kernel each; `shared`: algorithm 3 brings a block's pixels to shared memory. */
void masur2022_run(const masur2022 &run, bool shared, cudaStream_t stream);

#endif
