/*
 * host_runtime.cc - a CUDA runtime of host memory whose kernels do nothing, in place of the library's.
 *
 * For what the host does around them, where there is no GPU: whether each call returns, in whichever order threads
 * make them. Results say nothing. Copies are made, all else succeeds at once.
 */
#include <cuda_runtime_api.h>

#include <cstdlib>
#include <cstring>

extern "C" {

/* What nvcc's host code calls. */
void **__cudaRegisterFatBinary(void *);
void __cudaRegisterFatBinaryEnd(void **);
void __cudaUnregisterFatBinary(void **);
void __cudaRegisterFunction(void **, const char *, char *, const char *, int, void *, void *,
                            void *, void *, int *);
unsigned __cudaPushCallConfiguration(dim3, dim3, size_t, void *);
cudaError_t __cudaPopCallConfiguration(dim3 *, dim3 *, size_t *, void *);
cudaError_t __cudaGetKernel(cudaKernel_t *, const void *);
cudaError_t __cudaLaunchKernel(cudaKernel_t, dim3, dim3, void **, size_t, cudaStream_t);

void **
__cudaRegisterFatBinary(void *)
{
    static void *binary;
    return &binary;
}

void
__cudaRegisterFatBinaryEnd(void **)
{
}

void
__cudaUnregisterFatBinary(void **)
{
}

void
__cudaRegisterFunction(void **, const char *, char *, const char *, int, void *, void *, void *,
                       void *, int *)
{
}

unsigned
__cudaPushCallConfiguration(dim3, dim3, size_t, void *)
{
    return 0;
}

cudaError_t
__cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream)
{
    *grid = *block = dim3(1, 1, 1);
    *shared = 0;
    *static_cast<void **>(stream) = nullptr;
    return cudaSuccess;
}

cudaError_t
__cudaGetKernel(cudaKernel_t *kernel, const void *)
{
    *kernel = nullptr;
    return cudaSuccess;
}

cudaError_t CUDARTAPI
__cudaLaunchKernel(cudaKernel_t, dim3, dim3, void **, size_t, cudaStream_t)
{
    return cudaSuccess;
}

cudaError_t CUDARTAPI
cudaLaunchKernelExC(const cudaLaunchConfig_t *, const void *, void **)
{
    return cudaSuccess;
}

cudaError_t CUDARTAPI
cudaLaunchCooperativeKernel(const void *, dim3, dim3, void **, size_t, cudaStream_t)
{
    return cudaSuccess;
}

cudaError_t CUDARTAPI
cudaEventRecord(cudaEvent_t, cudaStream_t)
{
    return cudaSuccess;
}

cudaError_t CUDARTAPI
cudaEventSynchronize(cudaEvent_t)
{
    return cudaSuccess;
}

cudaError_t CUDARTAPI
cudaStreamSynchronize(cudaStream_t)
{
    return cudaSuccess;
}

cudaError_t CUDARTAPI
cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned)
{
    return cudaSuccess;
}

cudaError_t CUDARTAPI
cudaFuncSetAttribute(const void *, cudaFuncAttribute, int)
{
    return cudaSuccess;
}

cudaError_t CUDARTAPI
cudaInitDevice(int, unsigned, unsigned)
{
    return cudaSuccess;
}

cudaError_t CUDARTAPI
cudaSetDevice(int)
{
    return cudaSuccess;
}

cudaError_t CUDARTAPI
cudaGetLastError()
{
    return cudaSuccess;
}

cudaError_t CUDARTAPI
cudaDeviceGetAttribute(int *value, cudaDeviceAttr, int)
{
    *value = 132;
    return cudaSuccess;
}

cudaError_t CUDARTAPI
cudaDriverGetVersion(int *version)
{
    *version = CUDART_VERSION;
    return cudaSuccess;
}

cudaError_t CUDARTAPI
cudaGetDevice(int *device)
{
    *device = 0;
    return cudaSuccess;
}

cudaError_t CUDARTAPI
cudaGetDeviceCount(int *count)
{
    *count = 1;
    return cudaSuccess;
}

cudaError_t CUDARTAPI
cudaGetDeviceProperties(cudaDeviceProp *found, int)
{
    *found = cudaDeviceProp();
    strcpy(found->name, "host memory");
    found->major = 9;
    found->multiProcessorCount = 132;
    found->totalGlobalMem = size_t(8) << 30;
    found->sharedMemPerBlockOptin = 227 << 10;
    found->sharedMemPerMultiprocessor = 228 << 10;
    found->maxThreadsPerMultiProcessor = 2048;
    return cudaSuccess;
}

cudaError_t CUDARTAPI
cudaFuncGetAttributes(cudaFuncAttributes *found, const void *)
{
    *found = cudaFuncAttributes();
    found->maxThreadsPerBlock = 1024;
    return cudaSuccess;
}

cudaError_t CUDARTAPI
cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, const void *, int, size_t,
                                                       unsigned)
{
    *blocks = 2;
    return cudaSuccess;
}

cudaError_t CUDARTAPI
cudaMemGetInfo(size_t *left, size_t *all)
{
    *left = *all = size_t(8) << 30;
    return cudaSuccess;
}

cudaError_t CUDARTAPI
cudaHostAlloc(void **memory, size_t bytes, unsigned)
{
    *memory = calloc(1, bytes);
    return cudaSuccess;
}

cudaError_t CUDARTAPI
cudaMalloc(void **memory, size_t bytes)
{
    *memory = calloc(1, bytes);
    return cudaSuccess;
}

cudaError_t CUDARTAPI
cudaFree(void *memory)
{
    free(memory);
    return cudaSuccess;
}

cudaError_t CUDARTAPI
cudaFreeHost(void *memory)
{
    free(memory);
    return cudaSuccess;
}

cudaError_t CUDARTAPI
cudaEventCreateWithFlags(cudaEvent_t *event, unsigned)
{
    *event = static_cast<cudaEvent_t>(malloc(1));
    return cudaSuccess;
}

cudaError_t CUDARTAPI
cudaEventDestroy(cudaEvent_t event)
{
    free(event);
    return cudaSuccess;
}

cudaError_t CUDARTAPI
cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned)
{
    *stream = static_cast<cudaStream_t>(malloc(1));
    return cudaSuccess;
}

cudaError_t CUDARTAPI
cudaStreamDestroy(cudaStream_t stream)
{
    free(stream);
    return cudaSuccess;
}

cudaError_t CUDARTAPI
cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind, cudaStream_t)
{
    memcpy(to, from, bytes);
    return cudaSuccess;
}

cudaError_t CUDARTAPI
cudaMemsetAsync(void *memory, int value, size_t bytes, cudaStream_t)
{
    memset(memory, value, bytes);
    return cudaSuccess;
}

const char *CUDARTAPI
cudaGetErrorString(cudaError_t)
{
    return "made up";
}

} /* extern "C" */
