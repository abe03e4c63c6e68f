/*
 * runtime.cc - implements the calls of the CUDA runtime (NVIDIA's "CUDA Runtime API") in host memory.
 *
 * A queued call completes before it returns, which is one of the orders that streams allow. Unwritten memory is not
 * zero, and a device cannot allocate more than its memory.
 *
 * NOCTULE_EMULATOR_GPUS names a folder. Each file in it is a GPU; the file name is its UUID. The first line is its
 * state: empty (works), "broken" (cannot be opened), "lost N" (the N-th kernel of a process loses the device),
 * "deadly" (listing it kills the process). The optional second line is its PCI bus address. The file is read on each
 * use, so a test can change it at any time. Without the variable there is one working GPU.
 */
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <string>
#include <vector>

/* Must follow the library headers, which use a word that this header defines. */
#include "tests/emulator/include/cuda_runtime.h"

enum {
    PROCESSORS = 3,            /* makes blocks cooperate, and grids divide unevenly */
    BLOCKS = 2,                /* max per multiprocessor */
    SHARED_UNASKED = 48 << 10, /* limit without cudaFuncSetAttribute */
};

using emulator::SHARED;
using emulator::UNDEFINED;

static const size_t memory_bytes = (size_t)8 << 30;
static const std::string only_uuid = "GPU-00000000-0000-4000-8000-000000000000";

static thread_local cudaError_t last = cudaSuccess;
static thread_local int device;
static std::atomic<int> kernels;
static std::atomic<bool> is_lost;

static std::mutex mutex;
static auto &shared_asked = *new std::map<const void *, int>;
static auto &sizes = *new std::map<const void *, size_t>; /* of device memory */
static size_t taken;

static cudaError_t
told(cudaError_t error)
{
    if (error != cudaSuccess)
        last = error;
    return error;
}

/* Returns the result of a call that reaches the device: an error from the loss of the device on. */
static cudaError_t
met()
{
    return told(is_lost ? cudaErrorLaunchFailure : cudaSuccess);
}

struct gpu {
    std::string uuid, how, pci;
};

/* Returns the GPUs, sorted by UUID. */
static std::vector<struct gpu>
gpus()
{
    const char *folder = getenv("NOCTULE_EMULATOR_GPUS");
    std::map<std::string, struct gpu> found;
    std::vector<struct gpu> all;
    std::error_code error;

    if (!folder)
        return {{only_uuid, "", ""}};
    for (const auto &entry : std::filesystem::directory_iterator(folder, error)) {
        struct gpu gpu = {entry.path().filename(), "", ""};
        std::ifstream file(entry.path());
        std::getline(file, gpu.how);
        std::getline(file, gpu.pci);
        if (gpu.uuid[0] != '.')
            found[gpu.uuid] = gpu;
    }
    for (const auto &[uuid, gpu] : found)
        all.push_back(gpu);
    return all;
}

static bool
find_gpu(int index, struct gpu *gpu)
{
    const std::vector<struct gpu> all = gpus();

    if (index < 0 || (size_t)index >= all.size())
        return false;
    *gpu = all[(size_t)index];
    return true;
}

bool
emulator::may_launch(const void *kernel, dim3 grid, dim3 size, size_t shared)
{
    std::lock_guard<std::mutex> held(mutex);
    const auto asked = shared_asked.find(kernel);
    const size_t most = asked == shared_asked.end() ? (size_t)SHARED_UNASKED : (size_t)asked->second;
    const uint64_t threads = (uint64_t)size.x * size.y * size.z;
    struct gpu gpu;
    int loses;

    if (shared > std::max<size_t>(most, SHARED_UNASKED) || threads == 0 || threads > 1024 ||
        (uint64_t)grid.x * grid.y * grid.z == 0 || grid.x > INT32_MAX || grid.y > UINT16_MAX || grid.z > UINT16_MAX) {
        last = cudaErrorInvalidConfiguration;
        return false;
    }
    kernels++;
    if (!find_gpu(device, &gpu) || (sscanf(gpu.how.c_str(), "lost %d", &loses) == 1 && kernels >= loses))
        is_lost = true;
    return met() == cudaSuccess;
}

extern "C" {

cudaError_t CUDARTAPI
cudaEventRecord(cudaEvent_t, cudaStream_t)
{
    return met();
}

cudaError_t CUDARTAPI
cudaEventSynchronize(cudaEvent_t)
{
    return met();
}

cudaError_t CUDARTAPI
cudaStreamSynchronize(cudaStream_t)
{
    return met();
}

cudaError_t CUDARTAPI
cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned)
{
    return met();
}

cudaError_t CUDARTAPI
cudaFuncSetAttribute(const void *kernel, cudaFuncAttribute which, int value)
{
    std::lock_guard<std::mutex> held(mutex);

    if (which != cudaFuncAttributeMaxDynamicSharedMemorySize)
        return cudaSuccess;
    if (value < 0 || value > SHARED)
        return told(cudaErrorInvalidValue);
    shared_asked[kernel] = value;
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
cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *, int, size_t)
{
    *blocks = BLOCKS;
    return cudaSuccess;
}

cudaError_t CUDARTAPI
cudaInitDevice(int index, unsigned, unsigned)
{
    struct gpu gpu;

    if (!find_gpu(index, &gpu))
        return told(cudaErrorInvalidDevice);
    return told(gpu.how == "broken" ? cudaErrorUnknown : cudaSuccess);
}

cudaError_t CUDARTAPI
cudaSetDevice(int index)
{
    if (index < 0 || (size_t)index >= gpus().size())
        return told(cudaErrorInvalidDevice);
    device = index;
    return cudaSuccess;
}

cudaError_t CUDARTAPI
cudaGetDevice(int *index)
{
    *index = device;
    return cudaSuccess;
}

cudaError_t CUDARTAPI
cudaGetDeviceCount(int *count)
{
    *count = 0;
    for (const struct gpu &gpu : gpus()) {
        if (gpu.how == "deadly")
            raise(SIGKILL);
        ++*count;
    }
    return told(*count > 0 ? cudaSuccess : cudaErrorNoDevice);
}

cudaError_t CUDARTAPI
cudaDeviceGetAttribute(int *value, cudaDeviceAttr which, int)
{
    switch (which) {
    case cudaDevAttrMultiProcessorCount:
        *value = PROCESSORS;
        return cudaSuccess;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
        *value = SHARED;
        return cudaSuccess;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
        *value = SHARED + 1024;
        return cudaSuccess;
    case cudaDevAttrClockRate:
        *value = 1000000; /* kHz, the rate of clock64 */
        return cudaSuccess;
    default:
        return told(cudaErrorInvalidValue);
    }
}

cudaError_t CUDARTAPI
cudaGetDeviceProperties(cudaDeviceProp *found, int index)
{
    struct gpu gpu;

    if (!find_gpu(index, &gpu))
        return told(cudaErrorInvalidDevice);
    *found = cudaDeviceProp();
    strcpy(found->name, "Emulator");
    found->major = 9;
    found->multiProcessorCount = PROCESSORS;
    found->totalGlobalMem = memory_bytes;
    found->sharedMemPerBlockOptin = SHARED;
    found->sharedMemPerMultiprocessor = SHARED + 1024;
    found->maxThreadsPerMultiProcessor = 2048;
    found->l2CacheSize = 1 << 20;
    sscanf(gpu.pci.c_str(), "%x:%x:%x", (unsigned *)&found->pciDomainID, (unsigned *)&found->pciBusID,
           (unsigned *)&found->pciDeviceID);
    for (size_t i = 0, at = strlen("GPU-"); i < sizeof found->uuid.bytes && at < gpu.uuid.size(); i++, at += 2) {
        at += gpu.uuid[at] == '-';
        found->uuid.bytes[i] = (char)std::stoi(gpu.uuid.substr(at, 2), nullptr, 16);
    }
    return cudaSuccess;
}

cudaError_t CUDARTAPI
cudaDriverGetVersion(int *version)
{
    *version = CUDART_VERSION;
    return cudaSuccess;
}

cudaError_t CUDARTAPI
cudaGetLastError()
{
    return std::exchange(last, cudaSuccess);
}

cudaError_t CUDARTAPI
cudaPeekAtLastError()
{
    return last;
}

cudaError_t CUDARTAPI
cudaMemGetInfo(size_t *left, size_t *all)
{
    std::lock_guard<std::mutex> held(mutex);

    *all = memory_bytes;
    *left = memory_bytes - taken;
    return cudaSuccess;
}

cudaError_t CUDARTAPI
cudaHostAlloc(void **memory, size_t bytes, unsigned)
{
    *memory = malloc(bytes);
    if (!*memory)
        return told(cudaErrorMemoryAllocation);
    memset(*memory, UNDEFINED, bytes);
    return cudaSuccess;
}

cudaError_t CUDARTAPI
cudaHostRegister(void *memory, size_t bytes, unsigned)
{
    memset(memory, UNDEFINED, bytes);
    return cudaSuccess;
}

cudaError_t CUDARTAPI
cudaHostUnregister(void *)
{
    return cudaSuccess;
}

cudaError_t CUDARTAPI
cudaFreeHost(void *memory)
{
    free(memory);
    return cudaSuccess;
}

cudaError_t CUDARTAPI
cudaMalloc(void **memory, size_t bytes)
{
    std::lock_guard<std::mutex> held(mutex);

    if (bytes > memory_bytes - taken || posix_memalign(memory, 256, bytes))
        return told(cudaErrorMemoryAllocation);
    memset(*memory, UNDEFINED, bytes);
    sizes[*memory] = bytes;
    taken += bytes;
    return cudaSuccess;
}

cudaError_t CUDARTAPI
cudaFree(void *memory)
{
    std::lock_guard<std::mutex> held(mutex);
    const auto found = sizes.find(memory);

    if (!memory)
        return cudaSuccess;
    if (found == sizes.end())
        return told(cudaErrorInvalidValue);
    taken -= found->second;
    sizes.erase(found);
    free(memory);
    return cudaSuccess;
}

cudaError_t CUDARTAPI
cudaEventCreateWithFlags(cudaEvent_t *event, unsigned)
{
    *event = (cudaEvent_t)malloc(1);
    return told(*event ? cudaSuccess : cudaErrorMemoryAllocation);
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
    *stream = (cudaStream_t)malloc(1);
    return told(*stream ? cudaSuccess : cudaErrorMemoryAllocation);
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
    if (met() == cudaSuccess)
        memcpy(to, from, bytes);
    return met();
}

cudaError_t CUDARTAPI
cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
                  cudaMemcpyKind, cudaStream_t)
{
    for (size_t row = 0; met() == cudaSuccess && row < height; row++)
        memcpy((char *)to + row * to_pitch, (const char *)from + row * from_pitch, width);
    return met();
}

cudaError_t CUDARTAPI
cudaMemsetAsync(void *memory, int value, size_t bytes, cudaStream_t)
{
    if (met() == cudaSuccess)
        memset(memory, value, bytes);
    return met();
}

const char *CUDARTAPI
cudaGetErrorString(cudaError_t error)
{
    static const std::map<cudaError_t, const char *> texts = {
        {cudaErrorMemoryAllocation, "out of memory"},
        {cudaErrorLaunchFailure, "unspecified launch failure"},
        {cudaErrorInvalidConfiguration, "invalid configuration argument"},
        {cudaErrorInvalidDevice, "invalid device ordinal"},
        {cudaErrorNoDevice, "no CUDA-capable device is detected"},
    };
    const auto found = texts.find(error);

    return found == texts.end() ? "unknown error" : found->second;
}

} /* extern "C" */
