/*
 * lane.cu - the CUDA backend: lanes, their memory, and the upload of a volume.
 *
 * A volume is divided into slabs of whole slices, each at least SLAB_BYTES if the volume is large
 * enough: smaller copies lose bandwidth. Larger slices are uploaded in pieces of rows. The thread that
 * announces the last row of a piece queues its upload. With the last piece of a slab, it also queues the
 * work that may begin with the slab. Uploads overlap with the kernels of earlier slabs and with the
 * decoding of later slices and rows.
 *
 * The current device belongs to a host thread, so that every entry must set it.
 */
#include "kernels/cuda/cuda.cuh"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
    PIECE = 256, /* alignment of the operations' memory */
    SLAB_BYTES = 8 << 20,
    ROWS_BYTES = 32 << 20, /* pieces of a larger slice: each copy takes some 5 microseconds more */
    GROWTH = 2 << 20,      /* a huge page */
    PAGES_BYTES = 8 << 20  /* that a thread makes at once */
};

/* Pinned memory cannot be swapped: this much of the available memory stays with the host. */
static const size_t host_reserve = (size_t)1 << 30;

/* Memory */

static size_t
round_up(size_t bytes, size_t to)
{
    return (bytes + to - 1) / to * to;
}

static void
cuda_block_free(struct cuda_block *block)
{
    if (block->mapped) {
        (void)cudaHostUnregister(block->memory);
        munmap(block->memory, block->size);
    } else if (block->memory && block->pinned)
        (void)cudaFreeHost(block->memory);
    else if (block->memory)
        (void)cudaFree(block->memory);
    block->memory = NULL;
    block->size = 0;
    block->mapped = false;
}

struct cuda_pages {
    unsigned char *memory;
    size_t size;
};

/* Makes pages resident. If the system cannot, cudaHostRegister does, in one thread. */
static void
make_pages(void *context, int64_t i)
{
    const struct cuda_pages *pages = (const struct cuda_pages *)context;
    const size_t first = (size_t)i * PAGES_BYTES, end = first + PAGES_BYTES;

    (void)madvise(pages->memory + first, (end < pages->size ? end : pages->size) - first, MADV_POPULATE_WRITE);
}

/* Takes pinned memory: huge pages, made in several threads. cudaHostAlloc takes seven times as long, and is used if such
 * pages cannot be pinned. */
static cudaError_t
take_pinned(struct cuda_device *device, struct cuda_block *block, size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct cuda_pages pages = {(unsigned char *)memory, size};

    if (memory == MAP_FAILED)
        return cudaErrorMemoryAllocation;
    (void)madvise(memory, size, MADV_HUGEPAGE);
    cpu_pool_for(device->pool, (int64_t)((size + PAGES_BYTES - 1) / PAGES_BYTES), make_pages, &pages);
    block->memory = pages.memory;
    block->mapped = cudaHostRegister(memory, size, cudaHostRegisterDefault) == cudaSuccess;
    if (block->mapped)
        return cudaSuccess;
    (void)cudaGetLastError(); /* otherwise the next launch reports it */
    munmap(memory, size);
    return cudaHostAlloc((void **)&block->memory, size, cudaHostAllocDefault);
}

/* Returns the host memory available without swapping, or SIZE_MAX if unknown. */
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
no_memory(const struct cuda_lane *lane, const char *kind, size_t wanted, size_t available, struct error *error)
{
    const struct image_extent *extent = &lane->base.extent;

    return error_set(
        error, -ENOMEM, CODE_COMPUTE_FAILED, "%lld x %lld x %lld voxels need %zu bytes of %s memory, %zu can be had",
        (long long)extent->columns, (long long)extent->rows, (long long)extent->slices, wanted, kind, available);
}

/* Empties the block before it grows, so that its memory counts as available. */
static int
cuda_block_reserve(struct cuda_lane *lane, struct cuda_block *block, size_t wanted, size_t available,
                   struct error *error)
{
    const char *kind = block->pinned ? "pinned" : "GPU";
    cudaError_t status;

    if (wanted <= block->size)
        return 0;
    available += block->size;
    if (wanted > available)
        return no_memory(lane, kind, wanted, available, error);
    cuda_block_free(block);
    wanted = round_up(wanted, GROWTH);
    status = block->pinned ? CUDA_OF(take_pinned(cuda_device_of(&lane->base), block, wanted))
                           : CUDA_OF(cudaMalloc((void **)&block->memory, wanted));
    if (status == cudaErrorMemoryAllocation) {
        block->memory = NULL;
        (void)cudaGetLastError(); /* otherwise the next launch reports it */
        return no_memory(lane, kind, wanted, available, error);
    }
    if (status != cudaSuccess) {
        block->memory = NULL;
        return cuda_failed(cuda_device_of(&lane->base), status, "taking memory", error);
    }
    block->size = wanted;
    return 0;
}

static size_t
less_reserve(size_t available, size_t reserve)
{
    return available > reserve ? available - reserve : 0;
}

/* Memory of other lanes is not free. The mutex keeps two lanes from reserving the same memory. */
static int
reserve_locked(struct cuda_lane *lane, size_t device, size_t pinned, struct error *error)
{
    struct cuda_device *of = cuda_device_of(&lane->base);
    const size_t had = lane->device.size;
    size_t available, total, allowed;
    int rc;

    CUDA_TRY(of, cudaMemGetInfo(&available, &total));
    available = less_reserve(available, CUDA_DEVICE_RESERVE);
    allowed = less_reserve(total, of->left + CUDA_DEVICE_RESERVE + of->held);
    rc = cuda_block_reserve(lane, &lane->device, device, available < allowed ? available : allowed, error);
    of->held += lane->device.size - had; /* modulo: it may have shrunk */
    return rc ? rc
              : cuda_block_reserve(lane, &lane->pinned, pinned, less_reserve(host_available(), host_reserve), error);
}

static int
cuda_reserve(struct cuda_lane *lane, size_t device, size_t pinned, struct error *error)
{
    pthread_mutex_t *mutex = &cuda_device_of(&lane->base)->memory;
    int rc;

    /* Querying the free memory is slow. Skip it if the blocks suffice. */
    if (device <= lane->device.size && pinned <= lane->pinned.size)
        return 0;
    pthread_mutex_lock(mutex);
    rc = reserve_locked(lane, device, pinned, error);
    pthread_mutex_unlock(mutex);
    return rc;
}

/* Lanes */

static int
open_streams(struct cuda_lane *lane, struct error *error)
{
    struct cuda_device *device = cuda_device_of(&lane->base);

    CUDA_TRY(device, cudaStreamCreateWithFlags(&lane->upload, cudaStreamNonBlocking));
    CUDA_TRY(device, cudaStreamCreateWithFlags(&lane->work, cudaStreamNonBlocking));
    CUDA_TRY(device, cudaStreamCreateWithFlags(&lane->download, cudaStreamNonBlocking));
    for (struct cuda_result &result : lane->results.each)
        CUDA_TRY(device, cudaEventCreateWithFlags(&result.arrived, cudaEventDisableTiming | cudaEventBlockingSync));
    return 0;
}

static void
close_streams(struct cuda_lane *lane)
{
    for (struct cuda_result &result : lane->results.each)
        if (result.arrived)
            (void)cudaEventDestroy(result.arrived);
    for (int64_t i = 0; i < lane->piece_capacity; i++)
        (void)cudaEventDestroy(lane->uploaded[i]);
    if (lane->download)
        (void)cudaStreamDestroy(lane->download);
    if (lane->work)
        (void)cudaStreamDestroy(lane->work);
    if (lane->upload)
        (void)cudaStreamDestroy(lane->upload);
}

static int
cuda_lane_open(struct kernels_device *base, struct kernels_lane **result, struct error *error)
{
    struct cuda_device *device = (struct cuda_device *)base;
    struct cuda_lane *lane;
    pthread_mutexattr_t kind;
    int rc = cuda_enter(device, error);

    if (rc)
        return rc;
    lane = (struct cuda_lane *)calloc(1, sizeof(*lane));
    if (!lane)
        return error_set(error, -ENOMEM, CODE_COMPUTE_FAILED, "no memory to open a lane");
    lane->base.device = base;
    lane->pinned.pinned = true;
    rc = open_streams(lane, error);
    if (rc) {
        close_streams(lane);
        free(lane);
        return rc;
    }
    pthread_mutex_init(&lane->mutex, NULL);
    /* An error-checking mutex: a thread that locks it twice gets an error instead of a deadlock. */
    pthread_mutexattr_init(&kind);
    pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_ERRORCHECK);
    pthread_mutex_init(&lane->turn, &kind);
    pthread_mutexattr_destroy(&kind);
    *result = &lane->base;
    return 0;
}

static void
cuda_lane_close(struct kernels_lane *base)
{
    struct cuda_lane *lane = cuda_lane_of(base);
    struct cuda_device *device = cuda_device_of(base);

    (void)cudaSetDevice(device->index);
    (void)cudaStreamSynchronize(lane->upload);
    (void)cudaStreamSynchronize(lane->work);
    (void)cudaStreamSynchronize(lane->download);
    cuda_block_free(&lane->pinned);
    pthread_mutex_lock(&device->memory);
    device->held -= lane->device.size;
    cuda_block_free(&lane->device);
    pthread_mutex_unlock(&device->memory);
    close_streams(lane);
    pthread_mutex_destroy(&lane->mutex);
    pthread_mutex_destroy(&lane->turn);
    free(lane->slab_left);
    free(lane->piece_missing);
    free(lane->piece_queued);
    free(lane->piece_awaited);
    free(lane->uploaded);
    free(lane);
}

static int
cuda_lane_reserve(struct kernels_lane *lane, size_t bytes)
{
    return cuda_reserve(cuda_lane_of(lane), 0, bytes, NULL);
}

/* A job's volume */

static size_t
slice_bytes(const struct kernels_lane *lane)
{
    return (size_t)image_slice_voxels(&lane->extent) * image_pixel_size(lane->pixel);
}

/* Slab i has slices first_of_slab(i) .. first_of_slab(i + 1) - 1. slab_of is the inverse. */
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

/* Piece i of the upload has rows first_row_of(i) .. first_row_of(i + 1) - 1 of the volume. piece_of is the inverse. A slab
 * of several slices is one piece. */
static int64_t
first_row_of(const struct cuda_lane *lane, int64_t piece)
{
    const int64_t slab = piece / lane->slab_pieces, rows = lane->base.extent.rows;
    const int64_t first = first_of_slab(lane, slab) * rows, end = first_of_slab(lane, slab + 1) * rows;

    return first + piece % lane->slab_pieces * (end - first) / lane->slab_pieces;
}

static int64_t
piece_of(const struct cuda_lane *lane, int64_t row)
{
    const int64_t rows = lane->base.extent.rows, slab = slab_of(lane, row / rows);
    const int64_t first = first_of_slab(lane, slab) * rows, end = first_of_slab(lane, slab + 1) * rows;

    return slab * lane->slab_pieces + ((row - first + 1) * lane->slab_pieces - 1) / (end - first);
}

template <typename Each>
static bool
lane_grow(Each **each, int64_t from, int64_t to)
{
    Each *grown = (Each *)realloc(*each, (size_t)to * sizeof(*grown));

    if (!grown)
        return false;
    memset(grown + from, 0, (size_t)(to - from) * sizeof(*grown));
    *each = grown;
    return true;
}

/* Cuts the volume into slabs of slices, and larger slices into pieces of rows. */
static int
cut_into_slabs(struct cuda_lane *lane, struct error *error)
{
    const struct image_extent *extent = &lane->base.extent;
    const size_t bytes = slice_bytes(&lane->base);
    const int64_t each = (int64_t)((SLAB_BYTES + bytes - 1) / bytes);
    const int64_t slabs = extent->slices > each ? extent->slices / each : 1;
    const int64_t parts = (int64_t)(bytes / ROWS_BYTES);

    lane->slab_count = slabs;
    lane->slab_pieces = parts < 1 ? 1 : parts < extent->rows ? parts : extent->rows;
    const int64_t pieces = slabs * lane->slab_pieces;
    if ((slabs > lane->slab_capacity && !lane_grow(&lane->slab_left, lane->slab_capacity, slabs)) ||
        (pieces > lane->piece_capacity && (!lane_grow(&lane->piece_missing, lane->piece_capacity, pieces) ||
                                           !lane_grow(&lane->piece_queued, lane->piece_capacity, pieces) ||
                                           !lane_grow(&lane->piece_awaited, lane->piece_capacity, pieces) ||
                                           !lane_grow(&lane->uploaded, lane->piece_capacity, pieces))))
        return error_set(error, -ENOMEM, CODE_COMPUTE_FAILED, "no memory to keep track of slabs");
    lane->slab_capacity = slabs > lane->slab_capacity ? slabs : lane->slab_capacity;
    for (; lane->piece_capacity < pieces; lane->piece_capacity++)
        CUDA_TRY(cuda_device_of(&lane->base),
                 cudaEventCreateWithFlags(&lane->uploaded[lane->piece_capacity], cudaEventDisableTiming));
    for (int64_t i = 0; i < slabs; i++)
        lane->slab_left[i] = lane->slab_pieces;
    for (int64_t i = 0; i < pieces; i++) {
        lane->piece_missing[i] = first_row_of(lane, i + 1) - first_row_of(lane, i);
        lane->piece_queued[i] = lane->piece_awaited[i] = false;
    }
    return 0;
}

bool
cuda_rows_are_queued(const struct cuda_lane *lane, int64_t first, int64_t end)
{
    bool all = true;

    for (int64_t i = piece_of(lane, first); first < end && i <= piece_of(lane, end - 1); i++)
        all &= lane->piece_queued[i];
    return all;
}

int
cuda_await_rows(struct cuda_lane *lane, int64_t first, int64_t end, struct error *error)
{
    for (int64_t i = piece_of(lane, first); first < end && i <= piece_of(lane, end - 1); i++) {
        if (!lane->piece_awaited[i])
            CUDA_TRY(cuda_device_of(&lane->base), cudaStreamWaitEvent(lane->work, lane->uploaded[i], 0));
        lane->piece_awaited[i] = true;
    }
    return 0;
}

int
cuda_await_slices(struct cuda_lane *lane, int64_t first, int64_t end, struct error *error)
{
    return cuda_await_rows(lane, first * lane->base.extent.rows, end * lane->base.extent.rows, error);
}

static int
cuda_lane_enter(struct kernels_lane *lane, struct error *error)
{
    return cuda_enter(cuda_device_of(lane), error);
}

/* Places the volume at the beginning of both blocks, with the operations' memory behind it. */
static int
cuda_volume_begin(struct kernels_lane *base, struct kernels_memory *memory, void **voxels, struct error *error)
{
    struct cuda_lane *lane = cuda_lane_of(base);
    const size_t bytes = round_up((size_t)base->extent.slices * slice_bytes(base), PIECE);
    size_t device, pinned;
    int rc;

    for (cudaStream_t stream : {lane->upload, lane->work, lane->download}) /* an abandoned job may still be running */
        CUDA_TRY(cuda_device_of(base), cudaStreamSynchronize(stream));
    if (__builtin_add_overflow(bytes, memory->device.used, &device) ||
        __builtin_add_overflow(bytes, memory->host.used, &pinned))
        return no_memory(lane, "GPU", SIZE_MAX, 0, error);
    rc = cuda_reserve(lane, device, pinned, error);
    if (rc)
        return rc;
    rc = cut_into_slabs(lane, error);
    if (rc)
        return rc;
    lane->results.memory = NULL;
    lane->device_voxels = lane->device.memory;
    lane->host_voxels = lane->pinned.memory;
    memory->device.memory = lane->device.memory + bytes;
    memory->host.memory = lane->pinned.memory + bytes;
    *voxels = lane->host_voxels;
    return 0;
}

/* Queues the upload of a piece, and the work that may begin with its slab. */
static int
queue_piece(struct cuda_lane *lane, int64_t piece, struct error *error)
{
    struct cuda_device *device = cuda_device_of(&lane->base);
    const size_t row_bytes = (size_t)lane->base.extent.columns * image_pixel_size(lane->base.pixel);
    const size_t offset = (size_t)first_row_of(lane, piece) * row_bytes;
    const size_t end = (size_t)first_row_of(lane, piece + 1) * row_bytes;
    const int64_t slab = piece / lane->slab_pieces, first = first_of_slab(lane, slab);
    const int64_t count = first_of_slab(lane, slab + 1) - first;
    bool hinted = false; /* an operation begins its work before all slices are ready */

    CUDA_TRY(device, cudaMemcpyAsync((char *)lane->device_voxels + offset, (char *)lane->host_voxels + offset,
                                     end - offset, cudaMemcpyHostToDevice, lane->upload));
    CUDA_TRY(device, cudaEventRecord(lane->uploaded[piece], lane->upload));
    lane->piece_queued[piece] = true;
    for (int i = 0; i < KERNELS_OPS; i++) {
        const struct kernels_op *op = lane->base.device->backend->ops[i];
        const bool begun = lane->base.phase[i] == KERNELS_OP_BEGUN;
        const int rc = begun && op->queued ? op->queued(&lane->base, error) : 0;

        if (rc)
            return rc;
        hinted |= begun && !op->awaits;
    }
    if (--lane->slab_left[slab] > 0)
        return 0;
    if (hinted) {
        int rc = cuda_await_slices(lane, first, first + count, error);

        if (rc)
            return rc;
    }
    return kernels_slices_arrived(&lane->base, first, count, error);
}

/* The thread that completes a piece sees all other threads' writes to it. */
static int
rows_ready(struct kernels_lane *base, int64_t first, int64_t count, struct error *error)
{
    struct cuda_lane *lane = cuda_lane_of(base);
    const int64_t end = first + count;

    while (first < end) {
        const int64_t piece = piece_of(lane, first), next = first_row_of(lane, piece + 1);
        const int64_t mine = (next < end ? next : end) - first;

        if (__atomic_sub_fetch(&lane->piece_missing[piece], mine, __ATOMIC_ACQ_REL) == 0) {
            int rc = cuda_enter(cuda_device_of(base), error);
            if (rc)
                return rc;
            pthread_mutex_lock(&lane->mutex);
            rc = queue_piece(lane, piece, error);
            pthread_mutex_unlock(&lane->mutex);
            if (rc)
                return rc;
        }
        first += mine;
    }
    return 0;
}

const struct kernels_backend kernels_backend_cuda = {
    .name = "cuda",
    .device_open = cuda_device_open,
    .device_close = cuda_device_close,
    .device_leave = cuda_device_leave,
    .device_memory = cuda_device_memory,
    .lane_open = cuda_lane_open,
    .lane_close = cuda_lane_close,
    .lane_reserve = cuda_lane_reserve,
    .lane_enter = cuda_lane_enter,
    .volume_begin = cuda_volume_begin,
    .rows_ready = rows_ready,
    .ops =
        {
#define OP(NAME, name) &cuda_##name##_op,
#include "kernels/ops.def"
#undef OP
        },
    .turn_take = cuda_turn_take,
    .turn_leave = cuda_turn_leave,
};
