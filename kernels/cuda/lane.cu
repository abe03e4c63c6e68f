/*
 * lane.cu - the CUDA backend: lanes, their memory, and the upload of a volume.
 *
 * A volume is cut into slabs of whole slices, each at least SLAB_BYTES where the volume has as
 * much: smaller copies lose bandwidth. Whoever announces the last slice of a slab queues its upload
 * and the work that may begin with it; so the copy of one slab runs beside the kernels of those
 * before, and the rest of the slices are still being decoded.
 *
 * The current device belongs to a host thread: every entry sets it.
 */
#include "kernels/cuda/cuda.cuh"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PIECE = 256, /* what the arenas round to */
    SLAB_BYTES = 8 << 20,
    GROWTH = 2 << 20,
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
    const struct image_extent *extent = &lane->base.extent;

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

    lane->device.used = 0;
    lane->pinned.used = 0;
    /* Asking what is free is not for every job: it takes its time. */
    if (needs->device <= lane->device.size && needs->pinned <= lane->pinned.size)
        return 0;
    pthread_mutex_lock(mutex);
    error = reserve_locked(lane, needs, reason, reason_size);
    pthread_mutex_unlock(mutex);
    return error;
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
        return kernels_fail(error, reason, reason_size,
                            "cannot open a lane for fuzzy connectedness: %s", strerror(-error));
    }
    error = cuda_texture_open(lane);
    if (error) {
        cuda_fuzzy_close(lane);
        cuda_level_set_close(lane);
        kernels_fail(error, reason, reason_size, "cannot open a lane for texture: %s",
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
    int error = cuda_enter(device, reason, reason_size);

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
    cuda_texture_close(lane);
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
    return (size_t)slice_voxels(lane) * image_pixel_size(lane->pixel);
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
           cuda_level_set_needs(lane, needs) && cuda_fuzzy_needs(lane, needs) &&
           cuda_texture_needs(lane, needs);
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
    cuda_texture_place(lane);
}

static int
volume_begin(struct kernels_lane *base, void **voxels, char *reason, size_t reason_size)
{
    struct cuda_lane *lane = cuda_lane_of(base);
    struct cuda_needs needs = {0, 0};
    int error = cuda_enter(cuda_device_of(base), reason, reason_size);

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
    int error = cuda_enter(cuda_device_of(&lane->base), reason, sizeof(reason));

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
    int error = cuda_enter(cuda_device_of(base), reason, reason_size);

    if (error || base->demand.level_set_labels == 0)
        return error;
    return cuda_level_set_begin(cuda_lane_of(base), labels, reason, reason_size);
}

static int
level_set_finish(struct kernels_lane *base, struct image_mask *masks, char *reason,
                 size_t reason_size)
{
    int error = cuda_enter(cuda_device_of(base), reason, reason_size);

    if (error || base->demand.level_set_labels == 0)
        return error;
    return cuda_level_set_finish(cuda_lane_of(base), masks, reason, reason_size);
}

static int
level_set_codes(struct kernels_lane *base, size_t label, int8_t *codes)
{
    int error = cuda_enter(cuda_device_of(base), NULL, 0);

    return error ? error : cuda_level_set_codes(cuda_lane_of(base), label, codes);
}

static int
fuzzy_run(struct kernels_lane *base, const struct kernels_fuzzy_object *objects, bool relative,
          struct kernels_fuzzy_result *results, char *reason, size_t reason_size)
{
    int error = cuda_enter(cuda_device_of(base), reason, reason_size);

    if (error || base->demand.fuzzy_objects == 0)
        return error;
    return cuda_fuzzy_run(cuda_lane_of(base), objects, relative, results, reason, reason_size);
}

static int
volume_range(struct kernels_lane *base, struct image_range padding, struct image_range *range)
{
    int error = cuda_enter(cuda_device_of(base), NULL, 0);

    return error ? error : cuda_volume_range(cuda_lane_of(base), padding, range, NULL, 0);
}

static int
glcm_run(struct kernels_lane *base, const struct texture_glcm *request, uint64_t *counts,
         char *reason, size_t reason_size)
{
    int error = cuda_enter(cuda_device_of(base), reason, reason_size);

    return error ? error : cuda_glcm_run(cuda_lane_of(base), request, counts, reason, reason_size);
}

static int
histogram_run(struct kernels_lane *base, const uint64_t *region, bool per_slice, uint64_t *counts,
              char *reason, size_t reason_size)
{
    int error = cuda_enter(cuda_device_of(base), reason, reason_size);

    return error ? error
                 : cuda_histogram_run(cuda_lane_of(base), region, per_slice, counts, reason,
                                      reason_size);
}

static int
patterns_run(struct kernels_lane *base, const struct texture_patterns *request, char *reason,
             size_t reason_size)
{
    int error = cuda_enter(cuda_device_of(base), reason, reason_size);

    return error ? error : cuda_patterns_run(cuda_lane_of(base), request, reason, reason_size);
}

const struct kernels_backend kernels_backend_cuda = {
    /* .name = */ "cuda",
    /* .device_open = */ cuda_device_open,
    /* .device_close = */ cuda_device_close,
    /* .lane_open = */ lane_open,
    /* .lane_close = */ lane_close,
    /* .volume_begin = */ volume_begin,
    /* .level_set_begin = */ level_set_begin,
    /* .volume_ready = */ volume_ready,
    /* .level_set_finish = */ level_set_finish,
    /* .level_set_codes = */ level_set_codes,
    /* .fuzzy_run = */ fuzzy_run,
    /* .volume_range = */ volume_range,
    /* .glcm_run = */ glcm_run,
    /* .histogram_run = */ histogram_run,
    /* .patterns_run = */ patterns_run,
};
