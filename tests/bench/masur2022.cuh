/*
 * masur2022.cuh - the kernels of Masur 2022 (algorithms 1 to 3) as its authors list them, on bytes, as the baseline
 * of the patterns of kernels/. Blocks have 16 x 16 threads, one per pixel, and z selects the slice. TLBAP's
 * comparisons are strict and LANADP's averages integers.
 */
#ifndef NOCTULE_MASUR2022_CUH
#define NOCTULE_MASUR2022_CUH

#include <cstdint>
#include <cuda_runtime.h>

struct masur2022 {
    const uint8_t *images; /* on the device, width * height * slices */
    int width, height, slices;
    int threshold_millionths; /* an integer comparison instead of the listing's th * max */
    uint8_t *tlbap, *lanadp;  /* on the device, as large as the images; edges are not written */
};

/* Runs both patterns, one kernel each. `shared`: algorithm 3 copies a block's pixels to shared memory. */
void masur2022_run(const masur2022 &run, bool shared, cudaStream_t stream);

#endif
