/*
 * histogram_cuda.cu - counts each stored value on the GPU.
 *
 * 8-bit values have one counter per lane in shared memory. 16-bit values have one counter each, as
 * many as fit. A block that finds larger values counts those in another pass.
 *
 * The last block of a histogram copies it to host memory, from the lowest to the highest value that
 * occurs. Most of 65536 counters are 0.
 */
#include "kernels/texture/texture_cuda.cuh"

#include <time.h>

enum {
    THREADS = 1024,
    WARP = 32,
    BYTES = 1 << 8,
    VALUES = 1 << 16,
    LOOKED_FOR = 200000, /* ns of polling before a thread sleeps */
};

/* Per type: counters per value, blocks per multiprocessor, and pieces, one of which is being
 * counted. */
template <typename Value> struct histogram_kind {
    static const uint32_t COPIES = sizeof(Value) == 1 ? WARP : 1, BLOCKS = sizeof(Value) == 1 ? 2 : 1,
                          BUFFERS = sizeof(Value) == 1 ? 2 : 3;
};

/* Counters behind the others: values above the window, and voxels outside the region. */
enum { SPARE_LARGER, SPARE_OTHERS, SPARES };

/* Precedes a histogram's counters, on the device and on the host. Must be zeroed initially. */
struct histogram_span {
    uint32_t above; /* 65536 less the lowest value that occurs */
    uint32_t end;   /* highest value that occurs plus 1 */
    /* blocks that ended; on the host, nonzero when the histogram is ready */
    unsigned long long ended;
};

/* A histogram's span and counters. */
struct histogram_place {
    struct histogram_span *span;
    unsigned long long *counts;
};

struct histogram_job {
    struct glcm_volume volume;
    uint32_t first, slice_count; /* slices: the first of histogram 0; number per histogram */
    uint32_t values, window;     /* window: values for which a block has counters */
    unsigned long long *counts, *host_counts;
};

/* A thread's walk through every n-th piece of a histogram's rows. */
template <typename Value> struct histogram_walk {
    const Value *at, *end;
    const uint64_t *bits;    /* of the row; NULL: no region */
    uint32_t x, across;      /* across: columns rounded up to whole pieces */
    uint32_t x_on, words_on; /* to the next piece; to its row, without a carry */
    size_t on, back;         /* values to the next piece; subtracted at a carry */
    uint32_t steps;          /* equal in all threads */
};

/* Returns a histogram's size in 8-byte words. */
static __host__ __device__ __forceinline__ size_t
histogram_size(size_t values)
{
    return sizeof(struct histogram_span) / sizeof(unsigned long long) + values;
}

static __host__ __device__ __forceinline__ struct histogram_place
histogram_place_of(unsigned long long *counts, size_t values, size_t i)
{
    struct histogram_span *span = (struct histogram_span *)(counts + i * histogram_size(values));

    return {span, (unsigned long long *)(span + 1)};
}

/* Returns a walk at the thread's first piece. */
template <typename Value>
static __device__ __forceinline__ histogram_walk<Value>
histogram_begin(const struct histogram_job &job)
{
    const struct glcm_volume &volume = job.volume;
    const uint32_t of_piece = texture_piece<Value>::VALUES;
    const uint32_t across = (volume.columns + of_piece - 1) / of_piece;
    const uint32_t first = blockIdx.x * blockDim.x + threadIdx.x, every = gridDim.x * blockDim.x;
    const uint64_t rows = (uint64_t)job.slice_count * volume.rows;
    const uint64_t row = (uint64_t)(job.first + blockIdx.y) * volume.rows;
    struct histogram_walk<Value> walk;

    walk.x = first % across * of_piece;
    walk.at = (const Value *)volume.voxels + (row + first / across) * volume.columns + walk.x;
    walk.end = (const Value *)volume.voxels + (row + rows) * volume.columns;
    walk.bits = volume.region ? volume.region + (row + first / across) * volume.words_per_row : NULL;
    walk.across = across * of_piece;
    walk.x_on = every % across * of_piece;
    walk.words_on = every / across * volume.words_per_row;
    walk.on = (size_t)(every / across) * volume.columns + walk.x_on;
    walk.back = walk.across - volume.columns;
    walk.steps = (uint32_t)((rows * across + every - 1) / every);
    return walk;
}

/* Fetches the thread's next piece. After the last one it has no voxels of the region. */
template <typename Value>
static __device__ __forceinline__ void
histogram_fetch(const struct glcm_volume &volume, struct histogram_walk<Value> *walk,
                struct texture_piece<Value> *piece)
{
    piece->in = 0;
    if (walk->at < walk->end)
        texture_load_piece(walk->at, walk->bits, volume.columns, walk->x, piece);
    walk->at += walk->on;
    walk->x += walk->x_on;
    if (walk->bits)
        walk->bits += walk->words_on;
    if (walk->x >= walk->across) {
        walk->x -= walk->across;
        walk->at -= walk->back;
        if (walk->bits)
            walk->bits += volume.words_per_row;
    }
}

/* Adds a block's counters for values from `lowest` on. Sums all copies of a counter: each thread
 * begins at another bank. */
template <uint32_t COPIES>
static __device__ __forceinline__ void
histogram_add(const uint32_t *counters, uint32_t count, uint32_t lowest, const struct histogram_place &place)
{
    uint32_t above = 0, end = 0;

    for (uint32_t i = threadIdx.x; i < count; i += THREADS) {
        unsigned long long sum = 0;

        for (uint32_t copy = 0; copy < COPIES; copy++)
            sum += counters[i * COPIES + (copy + threadIdx.x) % COPIES];
        if (sum == 0)
            continue;
        atomicAdd(&place.counts[lowest + i], sum);
        above = max(above, VALUES - lowest - i);
        end = lowest + i + 1;
    }
    above = __reduce_max_sync(~0u, above);
    end = __reduce_max_sync(~0u, end);
    if (threadIdx.x % WARP == 0 && end > 0) {
        atomicMax(&place.span->above, above);
        atomicMax(&place.span->end, end);
    }
}

/* Copies the histogram to the host in its last block. */
static __device__ __forceinline__ void
histogram_end(const struct histogram_job &job, const struct histogram_place &place)
{
    const struct histogram_place host = histogram_place_of(job.host_counts, job.values, blockIdx.y);

    __threadfence();
    __syncthreads();
    if (!__syncthreads_or(threadIdx.x == 0 && atomicAdd(&place.span->ended, 1ull) + 1 == gridDim.x))
        return;
    __threadfence();
    const uint32_t above = __ldcg(&place.span->above), end = __ldcg(&place.span->end);

    for (uint32_t i = VALUES - above + threadIdx.x; i < end; i += blockDim.x)
        host.counts[i] = __ldcg(&place.counts[i]);
    if (threadIdx.x == 0) {
        host.span->above = above;
        host.span->end = end;
    }
    __threadfence_system();
    __syncthreads();
    if (threadIdx.x == 0)
        *(volatile unsigned long long *)&host.span->ended = 1;
}

/* ALL: every voxel is in the region. Offsets are in bytes. That of an 8-bit value needs one shift. */
template <bool ALL, typename Value>
static __device__ __forceinline__ void
histogram_count_piece(const struct texture_piece<Value> &piece, uint32_t bias, uint32_t lowest, uint32_t count,
                      unsigned char *counters)
{
    const uint32_t other = (count + SPARE_OTHERS) * histogram_kind<Value>::COPIES * (uint32_t)sizeof(uint32_t);

#pragma unroll
    for (uint32_t k = 0; k < texture_piece<Value>::VALUES; k++) {
        const uint32_t word = piece.words[k / texture_piece<Value>::OF_WORD], byte = k % 4;
        const uint32_t offset = sizeof(Value) == 1
                                    ? (byte == 0 ? word << 7 : word >> (8 * byte - 7)) & 0xFF << 7
                                    : min((piece.value(k) ^ bias) - lowest, count + SPARE_LARGER) * sizeof(uint32_t);

        atomicAdd((uint32_t *)(counters + (ALL || piece.in >> k & 1 ? offset : other)), 1u);
    }
}

/* Counts part blockIdx.x of histogram blockIdx.y. */
template <typename Value>
static __global__ void
__launch_bounds__(THREADS, histogram_kind<Value>::BLOCKS) histogram_count(struct histogram_job job)
{
    extern __shared__ __align__(16) uint32_t shared_counters[];
    const uint32_t copies = histogram_kind<Value>::COPIES;
    const uint32_t all = (1u << texture_piece<Value>::VALUES) - 1;
    const uint32_t bias = sizeof(Value) == 1 ? 0 : job.volume.bias;
    const struct histogram_place place = histogram_place_of(job.counts, job.values, blockIdx.y);
    unsigned char *counters = (unsigned char *)(shared_counters + threadIdx.x % copies);
    bool larger = true;

    for (uint32_t lowest = 0; larger && lowest < VALUES; lowest += job.window) {
        const uint32_t count = sizeof(Value) == 1 ? BYTES : min(job.window, VALUES - lowest);
        struct histogram_walk<Value> walk = histogram_begin<Value>(job);
        struct texture_piece<Value> pieces[histogram_kind<Value>::BUFFERS];

        texture_clear_counters<THREADS>(shared_counters, (count + SPARES) * copies);
        glcm_each_row(
            pieces, walk.steps, [&](struct texture_piece<Value> *piece) { histogram_fetch(job.volume, &walk, piece); },
            [&](const struct texture_piece<Value> &piece) {
                if (piece.in == all)
                    histogram_count_piece<true>(piece, bias, lowest, count, counters);
                else if (piece.in != 0)
                    histogram_count_piece<false>(piece, bias, lowest, count, counters);
            });
        __syncthreads();
        larger = sizeof(Value) > 1 && shared_counters[(count + SPARE_LARGER) * copies] != 0;
        histogram_add<histogram_kind<Value>::COPIES>(shared_counters, count, lowest, place);
        __syncthreads();
    }
    histogram_end(job, place);
}

static void
cuda_histogram_place(struct kernels_lane *lane, struct kernels_memory *memory)
{
    cuda_counted_place(lane, memory, (struct cuda_counted *)kernels_state(lane, KERNELS_HISTOGRAM));
}

static int64_t
histogram_clock(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

/* Waits for the job's histograms, and copies the values that occur. First polls for a short time:
 * waking a sleeping thread takes as long as counting a histogram. */
static int
histogram_take(struct cuda_lane *lane, const struct histogram_job *job, size_t count, uint64_t *counts,
               struct error *error)
{
    const int64_t begun = histogram_clock();
    size_t there = 0;

    memset(counts, 0, count * job->values * sizeof(*counts));
    do {
        const struct histogram_place place = histogram_place_of(job->host_counts, job->values, there);

        there += __atomic_load_n(&place.span->ended, __ATOMIC_ACQUIRE) != 0;
    } while (there < count && histogram_clock() - begun < LOOKED_FOR);
    if (there < count)
        CUDA_TRY(cuda_device_of(&lane->base), cudaStreamSynchronize(lane->work));
    for (size_t i = 0; i < count; i++) {
        const struct histogram_place place = histogram_place_of(job->host_counts, job->values, i);
        const size_t first = VALUES - place.span->above;

        if (first < place.span->end)
            memcpy(counts + i * job->values + first, place.counts + first, (place.span->end - first) * sizeof(*counts));
    }
    return 0;
}

/* Runs `count` histograms, the first of which is that of the job's first slice. */
static int
run_histograms(struct cuda_lane *lane, const struct histogram_job *job, size_t count, uint64_t *counts,
               struct error *error)
{
    struct cuda_device *device = cuda_device_of(&lane->base);
    const size_t counters = (job->window + SPARES) * sizeof(uint32_t);
    const unsigned parts = cuda_texture_parts(lane, count);

    for (size_t i = 0; i < count; i++)
        histogram_place_of(job->host_counts, job->values, i).span->ended = 0;
    CUDA_TRY(device,
             cudaMemsetAsync(job->counts, 0, count * histogram_size(job->values) * sizeof(*job->counts), lane->work));
    if (lane->base.pixel == IMAGE_UINT8)
        histogram_count<uint8_t><<<dim3(parts * histogram_kind<uint8_t>::BLOCKS, (unsigned)count), THREADS,
                                   counters * histogram_kind<uint8_t>::COPIES, lane->work>>>(*job);
    else
        histogram_count<uint16_t><<<dim3(parts, (unsigned)count), THREADS, counters, lane->work>>>(*job);
    CUDA_LAUNCHED(device);
    return histogram_take(lane, job, count, counts, error);
}

static int
cuda_histogram_run(struct kernels_lane *base, const void *given, struct error *error)
{
    const struct texture_histogram_request *request = (const struct texture_histogram_request *)given;
    struct cuda_lane *lane = cuda_lane_of(base);
    struct cuda_device *device = cuda_device_of(base);
    const struct cuda_counted *counted = (const struct cuda_counted *)kernels_state(base, KERNELS_HISTOGRAM);
    const size_t values = texture_values(lane);
    const size_t histograms = request->per_slice ? (size_t)base->extent.slices : 1;
    const size_t batch = TEXTURE_COUNTERS / histogram_size(values);
    struct histogram_job job = {};
    struct glcm_volume *volume = &job.volume;
    int rc;

    CUDA_TRY(device, cudaFuncSetAttribute(histogram_count<uint16_t>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                          (int)device->shared_per_block));
    job.volume = cuda_texture_volume(lane);
    rc = cuda_counted_region(lane, counted, request->region, &job.volume.region, error);
    if (!request->per_slice) { /* only the slices of the region's box */
        struct texture_box box;

        texture_region_box(base, request->region, &box);
        volume->voxels = (const char *)volume->voxels +
                         (size_t)(box.first[2] * image_slice_voxels(&base->extent)) * image_pixel_size(base->pixel);
        if (volume->region)
            volume->region += (size_t)(box.first[2] * base->extent.rows) * volume->words_per_row;
        volume->slices = (uint32_t)box.size[2];
    }
    job.slice_count = request->per_slice ? 1 : job.volume.slices;
    job.values = (uint32_t)values;
    job.window = (uint32_t)texture_least(values, device->shared_per_block / sizeof(uint32_t) - SPARES);
    job.counts = counted->counts;
    job.host_counts = counted->host_counts;
    for (size_t first = 0; rc == 0 && first < histograms; first += batch) {
        job.first = (uint32_t)first;
        rc = run_histograms(lane, &job, texture_least(batch, histograms - first), request->counts + first * values,
                            error);
    }
    return rc;
}

const struct kernels_op cuda_histogram_op = {
    .name = "texture (histogram)",
    .state_size = sizeof(struct cuda_counted),
    .transient = true,
    .awaits = true,
    .needs = kernels_op_asked,
    .place = cuda_histogram_place,
    .run = cuda_histogram_run,
};
