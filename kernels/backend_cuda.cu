/*
 * backend_cuda.cu - the CUDA backend: devices, lanes, memory, uploads, and the value range.
 *
 * A volume is cut into slabs of whole slices, each at least SLAB_BYTES where the volume has as
 * much: smaller copies lose bandwidth. Whoever announces the last slice of a slab queues its upload
 * and the work that may begin with it; so the copy of one slab runs beside the kernels of those
 * before, and the rest of the slices are still being decoded.
 *
 * The current device belongs to a host thread: every entry sets it.
 */
#include "cuda.cuh"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
    PIECE = 256, /* what the arenas round to */
    SLAB_BYTES = 8 << 20,
    GROWTH = 2 << 20,
    EXTREMES_THREADS = 512,
    EXTREMES_BLOCKS_A_PROCESSOR = 4,
};

/* Device memory that is left to others: contexts, printf buffers, kernels loaded late. */
static const size_t device_reserve = (size_t)512 << 20;

/* Pinned memory cannot be swapped: this much of what is available stays with the host. */
static const size_t host_reserve = (size_t)1 << 30;

/* Arenas */

static size_t
round_up(size_t bytes, size_t to)
{
    return (bytes + to - 1) / to * to;
}

void *
cuda_arena_take(struct cuda_arena *arena, size_t bytes)
{
    void *piece = arena->memory + arena->used;

    arena->used += round_up(bytes, PIECE);
    return piece;
}

bool
cuda_needs_add(size_t *sum, size_t count, size_t size)
{
    size_t bytes;

    return !__builtin_mul_overflow(count, size, &bytes) &&
           !__builtin_add_overflow(bytes, (size_t)PIECE - 1, &bytes) &&
           !__builtin_add_overflow(*sum, bytes / PIECE * PIECE, sum);
}

static void
arena_free(struct cuda_arena *arena)
{
    if (arena->memory && arena->pinned)
        (void)cudaFreeHost(arena->memory);
    else if (arena->memory)
        (void)cudaFree(arena->memory);
    arena->memory = NULL;
    arena->size = 0;
}

static cudaError_t
arena_allocate(struct cuda_arena *arena, size_t size)
{
    if (arena->pinned)
        return CUDA_OF(cudaHostAlloc((void **)&arena->memory, size, cudaHostAllocDefault));
    return CUDA_OF(cudaMalloc((void **)&arena->memory, size));
}

/* Host memory that could be had without swapping; SIZE_MAX where the system does not say. */
static size_t
host_available(void)
{
    FILE *file = fopen("/proc/meminfo", "re");
    unsigned long long kib = SIZE_MAX >> 10;
    char line[128];

    while (file && fgets(line, sizeof(line), file))
        if (sscanf(line, "MemAvailable: %llu kB", &kib) == 1)
            break;
    if (file)
        fclose(file);
    return (size_t)kib << 10;
}

static int
no_memory(const struct cuda_lane *lane, const char *kind, size_t wanted, size_t available,
          char *reason, size_t reason_size)
{
    const struct kernels_extent *extent = &lane->base.extent;

    return kernels_fail(-ENOMEM, reason, reason_size,
                        "%lld x %lld x %lld voxels need %zu bytes of %s memory, %zu can be had",
                        (long long)extent->columns, (long long)extent->rows,
                        (long long)extent->slices, wanted, kind, available);
}

/* The arena is emptied before it grows, so what it has counts as available. */
static int
arena_reserve(struct cuda_lane *lane, struct cuda_arena *arena, size_t wanted, size_t available,
              char *reason, size_t reason_size)
{
    const char *kind = arena->pinned ? "pinned" : "GPU";
    cudaError_t error;

    arena->used = 0;
    if (wanted <= arena->size)
        return 0;
    available += arena->size;
    if (wanted > available)
        return no_memory(lane, kind, wanted, available, reason, reason_size);
    arena_free(arena);
    wanted = round_up(wanted, GROWTH);
    error = arena_allocate(arena, wanted);
    if (error == cudaErrorMemoryAllocation) {
        arena->memory = NULL;
        (void)cudaGetLastError(); /* or the next launch would report it */
        return no_memory(lane, kind, wanted, available, reason, reason_size);
    }
    if (error != cudaSuccess) {
        arena->memory = NULL;
        return cuda_failed(cuda_device_of(&lane->base), error, "taking memory", reason,
                           reason_size);
    }
    arena->size = wanted;
    return 0;
}

static size_t
less_reserve(size_t available, size_t reserve)
{
    return available > reserve ? available - reserve : 0;
}

/* What other lanes hold is not free; the mutex keeps two from taking the same. */
static int
reserve_locked(struct cuda_lane *lane, const struct cuda_needs *needs, char *reason,
               size_t reason_size)
{
    size_t available, total;
    int error;

    CUDA_TRY(cuda_device_of(&lane->base), cudaMemGetInfo(&available, &total));
    error = arena_reserve(lane, &lane->device, needs->device,
                          less_reserve(available, device_reserve), reason, reason_size);
    return error ? error
                 : arena_reserve(lane, &lane->pinned, needs->pinned,
                                 less_reserve(host_available(), host_reserve), reason, reason_size);
}

static int
reserve(struct cuda_lane *lane, const struct cuda_needs *needs, char *reason, size_t reason_size)
{
    pthread_mutex_t *mutex = &cuda_device_of(&lane->base)->memory;
    int error;

    pthread_mutex_lock(mutex);
    error = reserve_locked(lane, needs, reason, reason_size);
    pthread_mutex_unlock(mutex);
    return error;
}

/* Errors */

int
cuda_failed(struct cuda_device *device, cudaError_t error, const char *call, char *reason,
            size_t reason_size)
{
    int name = (int)strcspn(call, "(");

    (void)cudaGetLastError(); /* or the next launch would report it again */
    if (error == cudaErrorMemoryAllocation)
        return kernels_fail(-ENOMEM, reason, reason_size, "%.*s: %s", name, call,
                            cudaGetErrorString(error));
    if (!__atomic_exchange_n(&device->failing, true, __ATOMIC_ACQ_REL)) {
        snprintf(device->failure, sizeof(device->failure), "%.*s: %s", name, call,
                 cudaGetErrorString(error));
        __atomic_store_n(&device->failed, true, __ATOMIC_RELEASE);
    }
    return kernels_fail(-EIO, reason, reason_size, "the GPU has failed: %.*s: %s", name, call,
                        cudaGetErrorString(error));
}

/* Makes the device the calling thread's; -EIO once it has failed. */
static int
enter(struct cuda_device *device, char *reason, size_t reason_size)
{
    if (__atomic_load_n(&device->failed, __ATOMIC_ACQUIRE))
        return kernels_fail(-EIO, reason, reason_size, "the GPU has failed: %s", device->failure);
    CUDA_TRY(device, cudaSetDevice(device->index));
    return 0;
}

/*
 * The value range on the device. Values are counted from the smallest of their type (`bias`), so
 * that all are unsigned; those from skip to skip + span are left out.
 */
struct extremes {
    uint32_t smallest; /* UINT32_MAX when there is none */
    uint32_t largest;
};

struct skipped {
    uint32_t bias;
    uint32_t skip;
    uint32_t span;
};

__device__ __forceinline__ void
take_value(struct extremes *own, uint32_t value, struct skipped skipped)
{
    value ^= skipped.bias;
    bool kept = value - skipped.skip > skipped.span;

    own->smallest = min(own->smallest, kept ? value : UINT32_MAX);
    own->largest = max(own->largest, kept ? value : 0);
}

template <typename Value>
__device__ __forceinline__ void
take_piece(struct extremes *own, uint4 piece, struct skipped skipped)
{
    const uint32_t words[4] = {piece.x, piece.y, piece.z, piece.w};

#pragma unroll
    for (unsigned i = 0; i < 4; i++)
#pragma unroll
        for (unsigned shift = 0; shift < 32; shift += 8 * sizeof(Value))
            take_value(own, (Value)(words[i] >> shift), skipped);
}

/* extremes[0] becomes the smallest value and extremes[1] the complement of the largest: atomicMin
 * gets to both from all ones. */
template <typename Value>
__global__ void
__launch_bounds__(EXTREMES_THREADS)
    find_extremes(const Value *values, size_t count, struct skipped skipped, uint32_t *extremes)
{
    const size_t a_piece = sizeof(uint4) / sizeof(Value);
    const uint4 *pieces = (const uint4 *)values;
    size_t thread = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    size_t step = (size_t)gridDim.x * blockDim.x;
    struct extremes own = {UINT32_MAX, 0};

#pragma unroll 4
    for (size_t i = thread; i < count / a_piece; i += step)
        take_piece<Value>(&own, pieces[i], skipped);
    for (size_t i = count / a_piece * a_piece + thread; i < count; i += step)
        take_value(&own, values[i], skipped);
    own.smallest = __reduce_min_sync(0xFFFFFFFF, own.smallest);
    own.largest = __reduce_max_sync(0xFFFFFFFF, own.largest);
    if (threadIdx.x % warpSize == 0 && own.smallest != UINT32_MAX) {
        atomicMin(&extremes[0], own.smallest);
        atomicMin(&extremes[1], ~own.largest);
    }
}

/* Devices */

static void
write_uuid(const cudaUUID_t *uuid, char text[KERNELS_UUID])
{
    const unsigned char *byte = (const unsigned char *)uuid->bytes;
    int length = snprintf(text, KERNELS_UUID, "GPU-");

    for (int i = 0; i < 16; i++)
        length += snprintf(text + length, (size_t)(KERNELS_UUID - length),
                           i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x", byte[i]);
}

/* Neither this nor the properties of a device make a context. */
static cudaError_t
count_devices(int *count)
{
    cudaError_t error = CUDA_OF(cudaGetDeviceCount(count));

    if (error != cudaSuccess) {
        *count = 0;
        (void)cudaGetLastError();
    }
    return error;
}

static bool
describe_gpu(int index, struct kernels_gpu *gpu)
{
    struct cudaDeviceProp properties;

    if (CUDA_OF(cudaGetDeviceProperties(&properties, index)) != cudaSuccess) {
        (void)cudaGetLastError();
        return false;
    }
    gpu->index = index;
    gpu->memory_bytes = (int64_t)properties.totalGlobalMem;
    snprintf(gpu->name, sizeof(gpu->name), "%.*s", (int)sizeof(gpu->name) - 1, properties.name);
    write_uuid(&properties.uuid, gpu->uuid);
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

static int
no_devices(cudaError_t error, char *reason, size_t reason_size)
{
    int driver = 0;

    (void)CUDA_OF(cudaDriverGetVersion(&driver));
    if (driver == 0)
        return kernels_fail(-ENODEV, reason, reason_size, "there is no NVIDIA driver here");
    if (error == cudaErrorInsufficientDriver)
        return kernels_fail(-ENODEV, reason, reason_size,
                            "the NVIDIA driver knows CUDA up to %d.%d, this program needs %d.%d",
                            driver / 1000, driver % 1000 / 10, CUDART_VERSION / 1000,
                            CUDART_VERSION % 1000 / 10);
    return kernels_fail(-ENODEV, reason, reason_size, "there is no GPU here: %s",
                        cudaGetErrorString(error));
}

/* "" or NULL: the first; digits: an index; else a UUID. */
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
find_device(const char *wanted, struct kernels_gpu *gpu, char *reason, size_t reason_size)
{
    int count;
    cudaError_t error = count_devices(&count);

    if (count == 0)
        return no_devices(error == cudaSuccess ? cudaErrorNoDevice : error, reason, reason_size);
    for (int i = 0; i < count; i++)
        if (describe_gpu(i, gpu) && is_wanted(gpu, wanted))
            return 0;
    return kernels_fail(-ENODEV, reason, reason_size, "none of %d GPUs is \"%s\"", count,
                        wanted ? wanted : "");
}

static void
describe(struct cuda_device *device, const struct kernels_gpu *gpu,
         const struct cudaDeviceProp *properties)
{
    int threads = device->base.threads;

    snprintf(device->base.description, sizeof(device->base.description),
             "%s (GPU %d), %.0f GiB, compute capability %d.%d, %d thread%s", gpu->name, gpu->index,
             (double)gpu->memory_bytes / (1 << 30), properties->major, properties->minor, threads,
             threads == 1 ? "" : "s");
}

/* Makes the context, which takes a good part of a second. */
static int
start_device(struct cuda_device *device, const struct kernels_gpu *gpu, char *reason,
             size_t reason_size)
{
    struct cudaDeviceProp properties;
    struct cudaFuncAttributes attributes;
    cudaError_t error;

    device->index = gpu->index;
    /* Lanes wait for milliseconds, and decoding needs the processors. */
    CUDA_TRY(device, cudaInitDevice(gpu->index, cudaDeviceScheduleBlockingSync,
                                    cudaInitDeviceFlagsAreValid));
    CUDA_TRY(device, cudaSetDevice(gpu->index));
    CUDA_TRY(device, cudaGetDeviceProperties(&properties, gpu->index));
    error = CUDA_OF(cudaFuncGetAttributes(&attributes, find_extremes<uint8_t>));
    if (error == cudaErrorNoKernelImageForDevice || error == cudaErrorUnsupportedPtxVersion)
        return kernels_fail(-ENODEV, reason, reason_size,
                            "%s has compute capability %d.%d, which this program was not built for",
                            gpu->name, properties.major, properties.minor);
    if (error != cudaSuccess)
        return cuda_failed(device, error, "cudaFuncGetAttributes", reason, reason_size);
    device->multiprocessors = properties.multiProcessorCount;
    device->l2_bytes = (size_t)properties.l2CacheSize;
    device->shared_per_block = properties.sharedMemPerBlockOptin;
    describe(device, gpu, &properties);
    return 0;
}

static int
device_open(const struct kernels_device_options *options, struct kernels_device **result,
            char *reason, size_t reason_size)
{
    struct kernels_gpu gpu;
    struct cuda_device *device;
    int error = find_device(options->device, &gpu, reason, reason_size);

    if (error)
        return error;
    device = (struct cuda_device *)calloc(1, sizeof(*device));
    if (!device)
        return kernels_fail(-ENOMEM, reason, reason_size, "no memory to open %s", gpu.name);
    device->base.backend = &kernels_backend_cuda;
    device->base.threads = options->threads > 0 ? options->threads : kernels_processors();
    error = start_device(device, &gpu, reason, reason_size);
    if (error) {
        free(device);
        return error;
    }
    pthread_mutex_init(&device->memory, NULL);
    *result = &device->base;
    return 0;
}

static void
device_close(struct kernels_device *base)
{
    struct cuda_device *device = (struct cuda_device *)base;

    pthread_mutex_destroy(&device->memory);
    free(device);
}

/* Lanes */

static int
open_streams(struct cuda_lane *lane, char *reason, size_t reason_size)
{
    struct cuda_device *device = cuda_device_of(&lane->base);

    CUDA_TRY(device, cudaStreamCreateWithFlags(&lane->upload, cudaStreamNonBlocking));
    CUDA_TRY(device, cudaStreamCreateWithFlags(&lane->work, cudaStreamNonBlocking));
    CUDA_TRY(device, cudaStreamCreateWithFlags(&lane->download, cudaStreamNonBlocking));
    CUDA_TRY(device, cudaEventCreateWithFlags(&lane->uploaded, cudaEventDisableTiming));
    return 0;
}

static void
close_streams(struct cuda_lane *lane)
{
    if (lane->uploaded)
        (void)cudaEventDestroy(lane->uploaded);
    if (lane->download)
        (void)cudaStreamDestroy(lane->download);
    if (lane->work)
        (void)cudaStreamDestroy(lane->work);
    if (lane->upload)
        (void)cudaStreamDestroy(lane->upload);
}

/* A job that was given up may still be running. */
static int
wait_for_streams(struct cuda_lane *lane, char *reason, size_t reason_size)
{
    struct cuda_device *device = cuda_device_of(&lane->base);

    CUDA_TRY(device, cudaStreamSynchronize(lane->upload));
    CUDA_TRY(device, cudaStreamSynchronize(lane->work));
    CUDA_TRY(device, cudaStreamSynchronize(lane->download));
    return 0;
}

static int
open_algorithms(struct cuda_lane *lane, char *reason, size_t reason_size)
{
    int error = cuda_level_set_open(lane);

    if (error)
        return kernels_fail(error, reason, reason_size, "cannot open a lane for level sets: %s",
                            strerror(-error));
    error = cuda_fuzzy_open(lane);
    if (error) {
        cuda_level_set_close(lane);
        kernels_fail(error, reason, reason_size, "cannot open a lane for fuzzy connectedness: %s",
                     strerror(-error));
    }
    return error;
}

static int
lane_open(struct kernels_device *base, struct kernels_lane **result, char *reason,
          size_t reason_size)
{
    struct cuda_device *device = (struct cuda_device *)base;
    struct cuda_lane *lane;
    int error = enter(device, reason, reason_size);

    if (error)
        return error;
    lane = (struct cuda_lane *)calloc(1, sizeof(*lane));
    if (!lane)
        return kernels_fail(-ENOMEM, reason, reason_size, "no memory to open a lane");
    lane->base.device = base;
    lane->pinned.pinned = true;
    error = open_streams(lane, reason, reason_size);
    if (!error)
        error = open_algorithms(lane, reason, reason_size);
    if (error) {
        close_streams(lane);
        free(lane);
        return error;
    }
    pthread_mutex_init(&lane->mutex, NULL);
    *result = &lane->base;
    return 0;
}

static void
lane_close(struct kernels_lane *base)
{
    struct cuda_lane *lane = cuda_lane_of(base);

    (void)cudaSetDevice(cuda_device_of(base)->index);
    (void)cudaStreamSynchronize(lane->upload);
    (void)cudaStreamSynchronize(lane->work);
    (void)cudaStreamSynchronize(lane->download);
    cuda_fuzzy_close(lane);
    cuda_level_set_close(lane);
    arena_free(&lane->pinned);
    arena_free(&lane->device);
    close_streams(lane);
    pthread_mutex_destroy(&lane->mutex);
    free(lane->slab_missing);
    free(lane);
}

/* A job's volume */

static int64_t
slice_voxels(const struct kernels_lane *lane)
{
    return lane->extent.columns * lane->extent.rows;
}

static size_t
slice_bytes(const struct kernels_lane *lane)
{
    return (size_t)slice_voxels(lane) * kernels_pixel_size(lane->pixel);
}

/* Slab i is slices first_of_slab(i) .. first_of_slab(i + 1) - 1; slab_of is the inverse. */
static int64_t
first_of_slab(const struct cuda_lane *lane, int64_t slab)
{
    return slab * lane->base.extent.slices / lane->slab_count;
}

static int64_t
slab_of(const struct cuda_lane *lane, int64_t z)
{
    return ((z + 1) * lane->slab_count - 1) / lane->base.extent.slices;
}

static int
cut_into_slabs(struct cuda_lane *lane)
{
    int64_t slices = lane->base.extent.slices;
    size_t bytes = slice_bytes(&lane->base);
    int64_t each = (int64_t)((SLAB_BYTES + bytes - 1) / bytes);

    lane->slab_count = slices > each ? slices / each : 1;
    if (lane->slab_count > lane->slab_capacity) {
        int64_t *grown =
            (int64_t *)realloc(lane->slab_missing, (size_t)lane->slab_count * sizeof(*grown));
        if (!grown)
            return -ENOMEM;
        lane->slab_missing = grown;
        lane->slab_capacity = lane->slab_count;
    }
    for (int64_t i = 0; i < lane->slab_count; i++)
        lane->slab_missing[i] = first_of_slab(lane, i + 1) - first_of_slab(lane, i);
    return 0;
}

static bool
volume_needs(const struct cuda_lane *lane, struct cuda_needs *needs)
{
    size_t slices = (size_t)lane->base.extent.slices, bytes = slice_bytes(&lane->base);

    return cuda_needs_add(&needs->device, slices, bytes) &&
           cuda_needs_add(&needs->pinned, slices, bytes) &&
           cuda_needs_add(&needs->device, 2, sizeof(*lane->device_extremes)) &&
           cuda_needs_add(&needs->pinned, 2, sizeof(*lane->host_extremes)) &&
           cuda_level_set_needs(lane, needs) && cuda_fuzzy_needs(lane, needs);
}

static void
place_volume(struct cuda_lane *lane)
{
    size_t bytes = (size_t)lane->base.extent.slices * slice_bytes(&lane->base);

    lane->device_voxels = cuda_arena_take(&lane->device, bytes);
    lane->host_voxels = cuda_arena_take(&lane->pinned, bytes);
    lane->device_extremes = (uint32_t *)cuda_arena_take(&lane->device, 2 * sizeof(uint32_t));
    lane->host_extremes = (uint32_t *)cuda_arena_take(&lane->pinned, 2 * sizeof(uint32_t));
    cuda_level_set_place(lane);
    cuda_fuzzy_place(lane);
}

static int
volume_begin(struct kernels_lane *base, void **voxels, char *reason, size_t reason_size)
{
    struct cuda_lane *lane = cuda_lane_of(base);
    struct cuda_needs needs = {0, 0};
    int error = enter(cuda_device_of(base), reason, reason_size);

    if (!error)
        error = wait_for_streams(lane, reason, reason_size);
    if (error)
        return error;
    if (!volume_needs(lane, &needs))
        return no_memory(lane, "GPU", SIZE_MAX, 0, reason, reason_size);
    error = reserve(lane, &needs, reason, reason_size);
    if (error)
        return error;
    if (cut_into_slabs(lane))
        return kernels_fail(-ENOMEM, reason, reason_size, "no memory to keep track of slabs");
    place_volume(lane);
    *voxels = lane->host_voxels;
    return 0;
}

static int
queue_slab(struct cuda_lane *lane, int64_t slab, char *reason, size_t reason_size)
{
    struct cuda_device *device = cuda_device_of(&lane->base);
    int64_t first = first_of_slab(lane, slab), count = first_of_slab(lane, slab + 1) - first;
    size_t offset = (size_t)first * slice_bytes(&lane->base);

    CUDA_TRY(device, cudaMemcpyAsync((char *)lane->device_voxels + offset,
                                     (char *)lane->host_voxels + offset,
                                     (size_t)count * slice_bytes(&lane->base),
                                     cudaMemcpyHostToDevice, lane->upload));
    CUDA_TRY(device, cudaEventRecord(lane->uploaded, lane->upload));
    CUDA_TRY(device, cudaStreamWaitEvent(lane->work, lane->uploaded, 0));
    if (lane->base.demand.level_set_labels == 0)
        return 0;
    return cuda_level_set_slab(lane, first, count, reason, reason_size);
}

static int
slab_is_whole(struct cuda_lane *lane, int64_t slab)
{
    char reason[KERNELS_REASON];
    int error = enter(cuda_device_of(&lane->base), reason, sizeof(reason));

    if (error)
        return error;
    pthread_mutex_lock(&lane->mutex);
    error = queue_slab(lane, slab, reason, sizeof(reason));
    pthread_mutex_unlock(&lane->mutex);
    return error;
}

/* The thread that finds a slab whole sees what all others have written into it. */
static int
volume_ready(struct kernels_lane *base, int64_t first, int64_t count)
{
    struct cuda_lane *lane = cuda_lane_of(base);
    int64_t end = first + count;

    while (first < end) {
        int64_t slab = slab_of(lane, first), next = first_of_slab(lane, slab + 1);
        int64_t mine = (next < end ? next : end) - first;

        if (__atomic_sub_fetch(&lane->slab_missing[slab], mine, __ATOMIC_ACQ_REL) == 0) {
            int error = slab_is_whole(lane, slab);
            if (error)
                return error;
        }
        first += mine;
    }
    return 0;
}

static int
level_set_begin(struct kernels_lane *base, const struct kernels_level_set_label *labels,
                char *reason, size_t reason_size)
{
    int error = enter(cuda_device_of(base), reason, reason_size);

    if (error || base->demand.level_set_labels == 0)
        return error;
    return cuda_level_set_begin(cuda_lane_of(base), labels, reason, reason_size);
}

static int
level_set_finish(struct kernels_lane *base, struct kernels_mask *masks, char *reason,
                 size_t reason_size)
{
    int error = enter(cuda_device_of(base), reason, reason_size);

    if (error || base->demand.level_set_labels == 0)
        return error;
    return cuda_level_set_finish(cuda_lane_of(base), masks, reason, reason_size);
}

static int
level_set_codes(struct kernels_lane *base, size_t label, int8_t *codes)
{
    int error = enter(cuda_device_of(base), NULL, 0);

    return error ? error : cuda_level_set_codes(cuda_lane_of(base), label, codes);
}

static int
fuzzy_run(struct kernels_lane *base, const struct kernels_fuzzy_object *objects, bool relative,
          struct kernels_fuzzy_result *results, char *reason, size_t reason_size)
{
    int error = enter(cuda_device_of(base), reason, reason_size);

    if (error || base->demand.fuzzy_objects == 0)
        return error;
    return cuda_fuzzy_run(cuda_lane_of(base), objects, relative, results, reason, reason_size);
}

static struct skipped
skipped_values(int32_t low, int32_t high, struct kernels_range padding)
{
    /* Nothing is as far from the smallest value as 2^31. */
    struct skipped skipped = {low < 0 ? 0x8000u : 0, 1u << 31, 0};

    padding.lo = padding.lo > low ? padding.lo : low;
    padding.hi = padding.hi < high ? padding.hi : high;
    if (padding.lo <= padding.hi) {
        skipped.skip = (uint32_t)(padding.lo - low);
        skipped.span = (uint32_t)(padding.hi - padding.lo);
    }
    return skipped;
}

static void
launch_extremes(struct cuda_lane *lane, struct skipped skipped)
{
    size_t count = (size_t)(slice_voxels(&lane->base) * lane->base.extent.slices);
    size_t wanted =
        (count * kernels_pixel_size(lane->base.pixel) / sizeof(uint4)) / EXTREMES_THREADS + 1;
    size_t most =
        (size_t)cuda_device_of(&lane->base)->multiprocessors * EXTREMES_BLOCKS_A_PROCESSOR;
    unsigned blocks = (unsigned)(wanted < most ? wanted : most);

    if (lane->base.pixel == KERNELS_UINT8)
        find_extremes<<<blocks, EXTREMES_THREADS, 0, lane->work>>>(
            (const uint8_t *)lane->device_voxels, count, skipped, lane->device_extremes);
    else
        find_extremes<<<blocks, EXTREMES_THREADS, 0, lane->work>>>(
            (const uint16_t *)lane->device_voxels, count, skipped, lane->device_extremes);
}

int
cuda_volume_range(struct cuda_lane *lane, struct kernels_range padding, struct kernels_range *range,
                  char *reason, size_t reason_size)
{
    struct cuda_device *device = cuda_device_of(&lane->base);
    int32_t low = lane->base.pixel == KERNELS_INT16 ? INT16_MIN : 0;
    int32_t high = low + (lane->base.pixel == KERNELS_UINT8 ? UINT8_MAX : UINT16_MAX);
    const size_t size = 2 * sizeof(uint32_t);

    CUDA_TRY(device, cudaMemsetAsync(lane->device_extremes, 0xFF, size, lane->work));
    launch_extremes(lane, skipped_values(low, high, padding));
    CUDA_LAUNCHED(device);
    CUDA_TRY(device, cudaMemcpyAsync(lane->host_extremes, lane->device_extremes, size,
                                     cudaMemcpyDeviceToHost, lane->work));
    CUDA_TRY(device, cudaStreamSynchronize(lane->work));
    if (lane->host_extremes[0] == UINT32_MAX)
        return -ENODATA;
    range->lo = low + (int32_t)lane->host_extremes[0];
    range->hi = low + (int32_t)~lane->host_extremes[1];
    return 0;
}

static int
volume_range(struct kernels_lane *base, struct kernels_range padding, struct kernels_range *range)
{
    int error = enter(cuda_device_of(base), NULL, 0);

    return error ? error : cuda_volume_range(cuda_lane_of(base), padding, range, NULL, 0);
}

const struct kernels_backend kernels_backend_cuda = {
    /* .name = */ "cuda",
    /* .device_open = */ device_open,
    /* .device_close = */ device_close,
    /* .lane_open = */ lane_open,
    /* .lane_close = */ lane_close,
    /* .volume_begin = */ volume_begin,
    /* .level_set_begin = */ level_set_begin,
    /* .volume_ready = */ volume_ready,
    /* .level_set_finish = */ level_set_finish,
    /* .level_set_codes = */ level_set_codes,
    /* .fuzzy_run = */ fuzzy_run,
    /* .volume_range = */ volume_range,
};
