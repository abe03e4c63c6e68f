/* neighbours_cuda.cuh - what is asked of neighbourhoods, for neighbours_cuda.cu and what it counts with. */
#ifndef NOCTULE_NEIGHBOURS_CUDA_CUH
#define NOCTULE_NEIGHBOURS_CUDA_CUH

#include "kernels/texture/boxed_cuda.cuh"

struct neighbours_job {
    struct cuda_box box;
    struct cuda_bytes bytes; /* of neighbours_bits.cuh */
    int32_t distance, deep;  /* deep: 0 within slices */
    int32_t alpha;
    uint32_t levels, width, entries; /* entries: of a matrix, all kinds */
    bool per_slice;
};

#endif
