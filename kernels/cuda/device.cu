/*
 * device.cu - finds, opens and closes a GPU, and handles its errors.
 *
 * Listing the devices creates no context. Opening one does.
 */
#include "kernels/cuda/cuda.cuh"
#include "kernels/gpu.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { POOL_THREADS = 8 /* more do not read memory faster */ };

int
cuda_failed(struct cuda_device *device, cudaError_t status, const char *call, struct error *error)
{
    int name = (int)strcspn(call, "(");

    (void)cudaGetLastError(); /* otherwise the next launch reports it again */
    if (status == cudaErrorMemoryAllocation)
        return error_set(error, -ENOMEM, CODE_COMPUTE_FAILED, "%.*s: %s", name, call, cudaGetErrorString(status));
    if (!__atomic_exchange_n(&device->failing, true, __ATOMIC_ACQ_REL)) {
        snprintf(device->failure, sizeof(device->failure), "%.*s: %s", name, call, cudaGetErrorString(status));
        __atomic_store_n(&device->failed, true, __ATOMIC_RELEASE);
    }
    return error_set(error, -EIO, CODE_COMPUTE_DEVICE_LOST, "the GPU has failed: %.*s: %s", name, call,
                     cudaGetErrorString(status));
}

int
cuda_enter(struct cuda_device *device, struct error *error)
{
    if (__atomic_load_n(&device->failed, __ATOMIC_ACQUIRE))
        return error_set(error, -EIO, CODE_COMPUTE_DEVICE_LOST, "the GPU has failed: %s", device->failure);
    CUDA_TRY(device, cudaSetDevice(device->index));
    return 0;
}

/* Counting devices and reading their properties create no context. */
static cudaError_t
count_devices(int *count)
{
    cudaError_t status = CUDA_OF(cudaGetDeviceCount(count));

    if (status != cudaSuccess) {
        *count = 0;
        (void)cudaGetLastError();
    }
    return status;
}

static bool
describe_gpu(int index, struct kernels_gpu *gpu)
{
    struct cudaDeviceProp properties;
    const unsigned char *byte = (const unsigned char *)properties.uuid.bytes;

    if (CUDA_OF(cudaGetDeviceProperties(&properties, index)) != cudaSuccess) {
        (void)cudaGetLastError();
        return false;
    }
    gpu->index = index;
    gpu->memory_bytes = (int64_t)properties.totalGlobalMem;
    snprintf(gpu->name, sizeof(gpu->name), "%.*s", (int)sizeof(gpu->name) - 1, properties.name);
    snprintf(gpu->pci, sizeof(gpu->pci), "%04x:%02x:%02x.0", properties.pciDomainID & 0xffff,
             properties.pciBusID & 0xff, properties.pciDeviceID & 0xff);
    int length = snprintf(gpu->uuid, KERNELS_UUID, "GPU-");

    for (int i = 0; i < 16; i++)
        length += snprintf(gpu->uuid + length, (size_t)(KERNELS_UUID - length),
                           i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x", byte[i]);
    return true;
}

int
cuda_gpus(struct kernels_gpu *gpus, int capacity)
{
    int count, listed = 0;
    struct kernels_gpu gpu;

    count_devices(&count);
    for (int i = 0; i < count; i++) {
        if (!describe_gpu(i, &gpu))
            continue;
        if (listed < capacity)
            gpus[listed] = gpu;
        listed++;
    }
    return listed;
}

int
cuda_version()
{
    return CUDART_VERSION;
}

static int
no_devices(cudaError_t status, struct error *error)
{
    char why[256];
    int driver = 0;

    (void)CUDA_OF(cudaDriverGetVersion(&driver));
    if (driver == 0)
        return error_set(error, -ENODEV, CODE_COMPUTE_FAILED, "there is no NVIDIA driver here");
    if (status == cudaErrorInsufficientDriver) {
        kernels_driver_refusal(driver, cuda_version(), why, sizeof why);
        return error_set(error, -ENODEV, CODE_COMPUTE_FAILED, "%s", why);
    }
    return error_set(error, -ENODEV, CODE_COMPUTE_FAILED, "there is no GPU here: %s", cudaGetErrorString(status));
}

/* Returns whether the GPU matches: "" or NULL, the first; digits, an index; otherwise a UUID. */
static bool
is_wanted(const struct kernels_gpu *gpu, const char *wanted)
{
    char *end;

    if (!wanted || *wanted == '\0')
        return true;
    if (!isdigit((unsigned char)*wanted))
        return strcasecmp(gpu->uuid, wanted) == 0;
    return strtol(wanted, &end, 10) == gpu->index && *end == '\0';
}

static int
find_device(const char *wanted, struct kernels_gpu *gpu, struct error *error)
{
    int count;
    cudaError_t status = count_devices(&count);

    if (count == 0)
        return no_devices(status == cudaSuccess ? cudaErrorNoDevice : status, error);
    for (int i = 0; i < count; i++)
        if (describe_gpu(i, gpu) && is_wanted(gpu, wanted))
            return 0;
    return error_set(error, -ENODEV, CODE_COMPUTE_FAILED, "none of %d GPUs is \"%s\"", count, wanted ? wanted : "");
}

/* Used to check that the program has code for the device. */
__global__ void
any_kernel()
{
}

/* Creates the context, which takes most of a second. */
static int
start_device(struct cuda_device *device, const struct kernels_gpu *gpu, struct error *error)
{
    struct cudaDeviceProp properties;
    struct cudaFuncAttributes attributes;
    cudaError_t status;

    device->index = gpu->index;
    /* Block instead of spinning: lanes wait for milliseconds, and decoding needs the processors. */
    CUDA_TRY(device, cudaInitDevice(gpu->index, cudaDeviceScheduleBlockingSync, cudaInitDeviceFlagsAreValid));
    CUDA_TRY(device, cudaSetDevice(gpu->index));
    CUDA_TRY(device, cudaGetDeviceProperties(&properties, gpu->index));
    status = CUDA_OF(cudaFuncGetAttributes(&attributes, any_kernel));
    if (status == cudaErrorNoKernelImageForDevice || status == cudaErrorUnsupportedPtxVersion)
        return error_set(error, -ENODEV, CODE_COMPUTE_FAILED,
                         "%s has compute capability %d.%d, which this program was not built for", gpu->name,
                         properties.major, properties.minor);
    if (status != cudaSuccess)
        return cuda_failed(device, status, "cudaFuncGetAttributes", error);
    device->multiprocessors = properties.multiProcessorCount;
    device->l2_bytes = (size_t)properties.l2CacheSize;
    device->shared_per_block = properties.sharedMemPerBlockOptin;
    snprintf(device->base.description, sizeof(device->base.description),
             "%s (GPU %d), %.0f GiB, compute capability %d.%d, %d thread%s", gpu->name, gpu->index,
             (double)gpu->memory_bytes / (1 << 30), properties.major, properties.minor, device->base.threads,
             device->base.threads == 1 ? "" : "s");
    return 0;
}

int
cuda_device_open(const struct kernels_device_options *options, struct kernels_device **result, struct error *error)
{
    struct kernels_gpu gpu;
    struct cuda_device *device;
    int rc = find_device(options->device, &gpu, error);

    if (rc)
        return rc;
    device = (struct cuda_device *)calloc(1, sizeof(*device));
    if (!device)
        return error_set(error, -ENOMEM, CODE_COMPUTE_FAILED, "no memory to open %s", gpu.name);
    device->base.backend = &kernels_backend_cuda;
    device->base.threads = options->threads > 0 ? options->threads : kernels_processors();
    rc = start_device(device, &gpu, error);
    if (rc == 0 &&
        cpu_pool_open(device->base.threads < POOL_THREADS ? device->base.threads : POOL_THREADS, &device->pool))
        rc = error_set(error, -ENOMEM, CODE_COMPUTE_FAILED, "no threads to open %s", gpu.name);
    if (rc) {
        free(device);
        return rc;
    }
    pthread_mutex_init(&device->memory, NULL);
    device->base.pool = device->pool;
    *result = &device->base;
    return 0;
}

void
cuda_device_close(struct kernels_device *base)
{
    struct cuda_device *device = (struct cuda_device *)base;

    cpu_pool_close(device->pool);
    pthread_mutex_destroy(&device->memory);
    free(device);
}

void
cuda_device_leave(struct kernels_device *base, size_t bytes)
{
    struct cuda_device *device = (struct cuda_device *)base;

    pthread_mutex_lock(&device->memory);
    device->left = bytes;
    pthread_mutex_unlock(&device->memory);
}

int
cuda_device_memory(struct kernels_device *base, struct kernels_gpu_memory *memory)
{
    struct cuda_device *device = (struct cuda_device *)base;
    struct error error;
    size_t available, total;
    int rc = cuda_enter(device, &error);

    if (rc)
        return rc;
    pthread_mutex_lock(&device->memory);
    memory->held = (int64_t)device->held;
    cudaError_t status = CUDA_OF(cudaMemGetInfo(&available, &total));
    pthread_mutex_unlock(&device->memory);
    if (status != cudaSuccess)
        return cuda_failed(device, status, "cudaMemGetInfo", &error);
    memory->free = (int64_t)available;
    memory->usable = (int64_t)total - CUDA_DEVICE_RESERVE;
    return 0;
}
