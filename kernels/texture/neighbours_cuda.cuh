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

/* Launches a kernel of one of these files, which may take up to `most` bytes of shared memory. */
template <typename Kernel, typename... Arguments>
static cudaError_t
neighbours_launch(Kernel *kernel, dim3 grid, uint32_t threads, size_t shared, size_t most,
                  cudaStream_t stream, const Arguments &...arguments)
{
    const cudaError_t status =
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)most);

    if (status == cudaSuccess)
        kernel<<<grid, threads, shared, stream>>>(arguments...);
    return status;
}

#endif
