/* neighbours_cuda.cuh - the job of neighbours_cuda.cu and its variants. */
#ifndef NOCTULE_KERNELS_TEXTURE_NEIGHBOURS_CUDA_CUH
#define NOCTULE_KERNELS_TEXTURE_NEIGHBOURS_CUDA_CUH

#include "kernels/texture/boxed_cuda.cuh"

struct neighbours_job {
    struct cuda_box box;
    struct cuda_bytes bytes; /* for neighbours_bits.cuh */
    int32_t distance, deep;  /* deep: 0 within slices */
    int32_t alpha;
    uint32_t levels, width, entries; /* entries: per matrix, all kinds */
    bool per_slice;
};

/* Launches a kernel of these files, which may use up to `most` bytes of shared memory. */
template <typename Kernel, typename... Arguments>
static cudaError_t
neighbours_launch(Kernel *kernel, dim3 grid, uint32_t threads, size_t shared, size_t most, cudaStream_t stream,
                  const Arguments &...arguments)
{
    const cudaError_t status = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)most);

    if (status == cudaSuccess)
        kernel<<<grid, threads, shared, stream>>>(arguments...);
    return status;
}

#endif
