/*
 * morphology_cuda.cu - configurations and sums on the GPU.
 *
 * A lane has 32 adjacent cells in each of several rows. The words of their eight corners are bit
 * planes of the configurations, and are counted as bit products (tally_cuda.cuh). Most cells are
 * uniform and are counted from their words. Words with other cells queue in shared memory until the
 * warp has 32.
 *
 * Blocks compute sums per slice.
 */
#include "kernels/cuda/cuda.cuh"
#include "kernels/morphology/morphology.h"
#include "kernels/morphology/tally_cuda.cuh"
#include "kernels/texture/texture_cuda.cuh"

enum {
    MORPHOLOGY_THREADS = 256,
    MORPHOLOGY_WARP = 32,
    MORPHOLOGY_CELLS = 32, /* cells per word */
    MORPHOLOGY_CORNERS = TALLY_PLANES,
    MORPHOLOGY_ROWS = 32,    /* rows of cells per lane */
    MORPHOLOGY_BUFFERS = 3,  /* rows or pieces, one of which is being counted */
    MORPHOLOGY_BLOCKS = 16,  /* blocks of sums per multiprocessor */
    MORPHOLOGY_MOST = 65535, /* max slices per launch: a grid's limit in y */
};

struct cuda_morphology {
    size_t words; /* words of a region's bits */
    uint64_t *bits, *kept;
    unsigned long long *counts;
};

struct morphology_job {
    const void *voxels;
    const uint64_t *bits; /* NULL: every voxel */
    const uint64_t *kept;
    size_t table; /* words from one table to the next; 0: one table */
    int64_t columns, rows, slices, words;
    int64_t first[3], end[3]; /* of the region's box */
    uint32_t bias;
    unsigned long long *counts;
};

/* Words of a row of voxels in a cell's two slices, and the words before them. */
struct morphology_row {
    uint32_t words[2], before[2];
};

/* Position of a lane's next cells, and a mask of the valid bits there. */
struct morphology_column {
    const uint32_t *at[2]; /* NULL: no region */
    uint32_t inside[2], before[2];
    int64_t y;
};

/* Starts at row y of the box, or at the row before. */
static __device__ __forceinline__ struct morphology_column
morphology_column_at(const struct morphology_job &job, int64_t word, int64_t y, int64_t z)
{
    const int64_t left = job.columns - word * MORPHOLOGY_CELLS;
    const uint32_t inside = left >= MORPHOLOGY_CELLS ? ~0u : left > 0 ? (1u << left) - 1 : 0;
    struct morphology_column column;

#pragma unroll
    for (int k = 0; k < 2; k++) {
        const bool exists = z + k >= job.first[2] && z + k < job.end[2];

        column.at[k] = NULL;
        if (job.bits)
            column.at[k] = (const uint32_t *)(job.bits + ((z + k) * job.rows + y) * job.words) + word;
        column.inside[k] = exists ? inside : 0;
        column.before[k] = exists && word > 0 ? ~0u : 0;
    }
    column.y = y;
    return column;
}

static __device__ __forceinline__ void
morphology_fetch_row(const struct morphology_job &job, struct morphology_column *column, struct morphology_row *row)
{
    const bool exists = column->y >= job.first[1] && column->y < job.end[1];

#pragma unroll
    for (int k = 0; k < 2; k++) {
        row->words[k] = row->before[k] = exists && !job.bits ? ~0u : 0;
        if (exists && job.bits && column->inside[k])
            row->words[k] = __ldg(column->at[k]);
        if (exists && job.bits && column->before[k])
            row->before[k] = __ldg(column->at[k] - 1);
        if (job.bits)
            column->at[k] += 2 * job.words;
    }
    column->y++;
}

/* Words of the warp that wait to be counted. The part in front has the oldest words. */
struct morphology_queue {
    struct tally_planes parts[2];
};

struct morphology_counts {
    struct tally tally;
    uint32_t queued; /* words queued since the beginning */
    uint32_t full;   /* uniform cells of the lane, counted from words */
};

/* Counts 32 cells per lane. */
static __device__ __forceinline__ void
morphology_count_cells(const uint32_t corners[MORPHOLOGY_CORNERS], struct morphology_queue *queue,
                       struct morphology_counts *counts)
{
    const uint32_t lanes_before = (1u << threadIdx.x % MORPHOLOGY_WARP) - 1;
    uint32_t any = 0, all = ~0u;

#pragma unroll
    for (int corner = 0; corner < MORPHOLOGY_CORNERS; corner++) {
        any |= corners[corner];
        all &= corners[corner];
    }
    const bool mixed = any != all;
    const uint32_t lanes = __ballot_sync(~0u, mixed), part = counts->queued / MORPHOLOGY_WARP;
    const uint32_t place = counts->queued + (uint32_t)__popc(lanes & lanes_before);

    if (mixed)
#pragma unroll
        for (int corner = 0; corner < MORPHOLOGY_CORNERS; corner++)
            queue->parts[place / MORPHOLOGY_WARP % 2].plane[corner][place % MORPHOLOGY_WARP] = corners[corner];
    else
        counts->full += (uint32_t)__popc(all);
    counts->queued += (uint32_t)__popc(lanes);
    if (counts->queued / MORPHOLOGY_WARP > part)
        tally_add(queue->parts[part % 2], &counts->tally);
}

/* Counts `rows` rows of cells of a column. */
static __device__ __forceinline__ void
morphology_count_column(const struct morphology_job &job, struct morphology_column column, uint32_t count,
                        struct morphology_queue *queue, struct morphology_counts *counts)
{
    uint32_t corners[MORPHOLOGY_CORNERS] = {};
    const auto take = [&](const struct morphology_row &row) {
#pragma unroll
        for (int k = 0; k < 2; k++) {
            uint32_t *of_slice = corners + MORPHOLOGY_CORNERS / 2 * k;

            of_slice[0] = of_slice[2];
            of_slice[1] = of_slice[3];
            of_slice[3] = row.words[k] & column.inside[k];
            of_slice[2] = __funnelshift_l(row.before[k] & column.before[k], of_slice[3], 1);
        }
    };
    struct morphology_row rows[MORPHOLOGY_BUFFERS], first;

    morphology_fetch_row(job, &column, &first);
    take(first);
    glcm_each_row(
        rows, count, [&](struct morphology_row *row) { morphology_fetch_row(job, &column, row); },
        [&](const struct morphology_row &row) {
            take(row);
            morphology_count_cells(corners, queue, counts);
        });
}

/* Counts the columns of blockIdx.x * MORPHOLOGY_THREADS lanes on, in band blockIdx.y of rows. */
static __global__ void
__launch_bounds__(MORPHOLOGY_THREADS) morphology_count_configurations(struct morphology_job job)
{
    __shared__ struct morphology_queue queues[MORPHOLOGY_THREADS / MORPHOLOGY_WARP];
    __shared__ uint32_t counters[MORPHOLOGY_CONFIGURATIONS];
    const int64_t word = job.first[0] / MORPHOLOGY_CELLS, across = job.end[0] / MORPHOLOGY_CELLS + 1 - word;
    const int64_t i = (int64_t)blockIdx.x * MORPHOLOGY_THREADS + threadIdx.x;
    const int64_t y = job.first[1] - 1 + (int64_t)blockIdx.y * MORPHOLOGY_ROWS;
    const struct morphology_column column =
        morphology_column_at(job, word + i % across, y, job.first[2] - 1 + i / across);
    struct morphology_queue *queue = &queues[threadIdx.x / MORPHOLOGY_WARP];
    struct morphology_counts counts = {};

    tally_begin(&counts.tally);
    texture_clear_counters<MORPHOLOGY_THREADS>(counters, MORPHOLOGY_CONFIGURATIONS);
    morphology_count_column(job, column, (uint32_t)min((int64_t)MORPHOLOGY_ROWS, job.end[1] - y), queue, &counts);
    /* Count the remaining words. Unused words hold empty cells, whose count is not used. */
    struct tally_planes *part = &queue->parts[counts.queued / MORPHOLOGY_WARP % 2];
    const uint32_t lane = threadIdx.x % MORPHOLOGY_WARP;

    if (lane >= counts.queued % MORPHOLOGY_WARP)
#pragma unroll
        for (int corner = 0; corner < MORPHOLOGY_CORNERS; corner++)
            part->plane[corner][lane] = 0;
    tally_add(*part, &counts.tally);
    tally_end(counts.tally, counters);
    if (counts.full > 0)
        atomicAdd(&counters[MORPHOLOGY_CONFIGURATIONS - 1], counts.full);
    __syncthreads();
    for (int i = threadIdx.x; i < MORPHOLOGY_CONFIGURATIONS; i += MORPHOLOGY_THREADS)
        if (i > 0 && counters[i] > 0)
            atomicAdd(&job.counts[i], (unsigned long long)counters[i]);
}

/* Table of kept values: one bit each. */
template <typename Value> struct morphology_kept;

template <> struct morphology_kept<uint8_t> {
    uint8_t ones[256];

    __device__ void take(const uint64_t *kept, uint32_t)
    {
        for (uint32_t i = threadIdx.x; i < sizeof(ones); i += MORPHOLOGY_THREADS)
            ones[i] = kept[i / 64] >> i % 64 & 1;
    }

    /* Returns a 1 for each kept value of a word. */
    __device__ uint32_t of(uint32_t word) const
    {
        return ones[word & 0xFF] | ones[word >> 8 & 0xFF] << 8 | ones[word >> 16 & 0xFF] << 16 |
               (uint32_t)ones[word >> 24] << 24;
    }
};

template <> struct morphology_kept<uint16_t> {
    uint32_t bits[(1 << 16) / 32]; /* in the order of stored values */

    __device__ void take(const uint64_t *kept, uint32_t bias)
    {
        for (uint32_t i = threadIdx.x; i < sizeof(bits) / sizeof(*bits); i += MORPHOLOGY_THREADS)
            bits[i] = ((const uint32_t *)kept)[i ^ bias / 32];
    }

    __device__ uint32_t of(uint32_t word) const
    {
        const uint32_t low = __funnelshift_r(bits[(word & 0xFFFF) / 32], 0, word),
                       high = __funnelshift_r(bits[word >> 21], 0, word >> 16);

        return (low & 1) | (high & 1) << 16;
    }
};

/* Adds the values of a word, times the bytes of `weights`, to a sum. */
template <typename Value>
static __device__ __forceinline__ uint32_t
morphology_weigh(uint32_t values, uint32_t weights, uint32_t sum)
{
    return sizeof(Value) == 1 ? __dp4a(values, weights, sum) : __dp2a_lo(values, weights, sum);
}

/* Adds a piece's voxels, from column x of row y on. */
template <typename Value>
static __device__ __forceinline__ void
morphology_add_piece(const struct texture_piece<Value> &piece, const struct morphology_kept<Value> &kept, uint32_t bias,
                     uint32_t x, uint32_t y, unsigned long long sums[MORPHOLOGY_SUMS])
{
    const uint32_t of_word = texture_piece<Value>::OF_WORD, each = 0x01010101;
    uint32_t voxels = 0, along = 0, sum = 0, sum_along = 0; /* columns relative to x */

#pragma unroll
    for (uint32_t i = 0; i < TEXTURE_PIECE_WORDS; i++) {
        const uint32_t columns = 0x03020100 + each * of_word * i;
        const uint32_t ones = kept.of(piece.words[i]) & texture_piece_ones(piece, i);
        const uint32_t values = (piece.words[i] ^ (bias << 16 | bias)) & ones * ((1u << 8 * sizeof(Value)) - 1);

        voxels = morphology_weigh<Value>(ones, each, voxels);
        along = morphology_weigh<Value>(ones, columns, along);
        sum = morphology_weigh<Value>(values, each, sum);
        sum_along = morphology_weigh<Value>(values, columns, sum_along);
    }
    sums[MORPHOLOGY_VOXELS] += voxels;
    sums[MORPHOLOGY_X] += (uint64_t)voxels * x + along;
    sums[MORPHOLOGY_Y] += (uint64_t)voxels * y;
    sums[MORPHOLOGY_VALUE] += sum;
    sums[MORPHOLOGY_VALUE_X] += (uint64_t)sum * x + sum_along;
    sums[MORPHOLOGY_VALUE_Y] += (uint64_t)sum * y;
}

/* Adds the pieces at column x of a slice's rows y .. end - 1, with a stride of rows. */
template <typename Value>
static __device__ __forceinline__ void
morphology_add_column(const struct morphology_job &job, const struct morphology_kept<Value> &kept, int64_t z,
                      uint32_t x, uint32_t y, uint32_t end, uint32_t every, unsigned long long sums[MORPHOLOGY_SUMS])
{
    const uint32_t steps = y < end ? (end - y + every - 1) / every : 0;
    const size_t row = (size_t)(z * job.rows) + y;
    const Value *at = (const Value *)job.voxels + row * (size_t)job.columns + x;
    const uint64_t *bits = job.bits ? job.bits + row * (size_t)job.words : NULL;
    struct texture_piece<Value> pieces[MORPHOLOGY_BUFFERS];

    glcm_each_row(
        pieces, steps,
        [&](struct texture_piece<Value> *piece) {
            texture_load_piece(at, bits, (uint32_t)job.columns, x, piece);
            at += (size_t)every * (size_t)job.columns;
            if (bits)
                bits += (size_t)every * (size_t)job.words;
        },
        [&](const struct texture_piece<Value> &piece) {
            if (piece.in != 0)
                morphology_add_piece(piece, kept, job.bias, x, y, sums);
            y += every;
        });
}

/* Adds part blockIdx.x of the rows of the box, of every gridDim.y-th slice. */
template <typename Value>
static __global__ void
__launch_bounds__(MORPHOLOGY_THREADS) morphology_sum_slices(struct morphology_job job)
{
    __shared__ struct morphology_kept<Value> kept;
    const uint32_t values = texture_piece<Value>::VALUES;
    const int64_t rows = job.end[1] - job.first[1];
    const uint32_t first_row = (uint32_t)(job.first[1] + rows * blockIdx.x / gridDim.x),
                   end_row = (uint32_t)(job.first[1] + rows * (blockIdx.x + 1) / gridDim.x);
    const uint32_t first = (uint32_t)job.first[0] / values, across = ((uint32_t)job.end[0] - 1) / values + 1 - first;
    const uint32_t abreast = min(across, (uint32_t)MORPHOLOGY_THREADS), every = MORPHOLOGY_THREADS / abreast,
                   row = threadIdx.x / abreast;

    for (int64_t z = job.first[2] + blockIdx.y; z < job.end[2]; z += gridDim.y) {
        unsigned long long sums[MORPHOLOGY_SUMS] = {};

        kept.take(job.kept + (size_t)z * job.table, job.bias);
        __syncthreads();
        if (row < every)
            for (uint32_t piece = threadIdx.x % abreast; piece < across; piece += abreast)
                morphology_add_column(job, kept, z, (first + piece) * values, first_row + row, end_row, every, sums);
        for (int sum = 0; sum < MORPHOLOGY_SUMS; sum++) {
            unsigned long long own = sums[sum];

            for (int from = MORPHOLOGY_WARP / 2; from > 0; from /= 2)
                own += __shfl_down_sync(UINT32_MAX, own, from);
            if (threadIdx.x % MORPHOLOGY_WARP == 0 && own > 0)
                atomicAdd(&job.counts[MORPHOLOGY_CONFIGURATIONS + z * MORPHOLOGY_SUMS + sum], own);
        }
        __syncthreads();
    }
}

static void
cuda_morphology_place(struct kernels_lane *lane, struct kernels_memory *memory)
{
    struct cuda_morphology *own = (struct cuda_morphology *)kernels_state(lane, KERNELS_MORPHOLOGY);
    const struct image_extent *extent = &lane->extent;

    own->words = ((size_t)extent->columns + 63) / 64 * (size_t)(extent->rows * extent->slices);
    cuda_take(&memory->device, &own->bits, own->words);
    cuda_take(&memory->device, &own->kept, (size_t)extent->slices, morphology_table(lane->pixel));
    cuda_take(&memory->device, &own->counts, morphology_size(extent->slices));
}

static int
morphology_launch(struct cuda_lane *lane, const struct morphology_job *job, struct error *error)
{
    struct cuda_device *device = cuda_device_of(&lane->base);
    const int64_t rows = job->end[1] - job->first[1], slices = job->end[2] - job->first[2];
    const int64_t across = job->end[0] / MORPHOLOGY_CELLS + 1 - job->first[0] / MORPHOLOGY_CELLS;
    const int64_t blocks = (int64_t)device->multiprocessors * MORPHOLOGY_BLOCKS;
    const dim3 columns((unsigned)((across * (slices + 1) - 1) / MORPHOLOGY_THREADS + 1),
                       (unsigned)(rows / MORPHOLOGY_ROWS + 1));
    const dim3 parts((unsigned)texture_most(1, (size_t)(blocks / slices)),
                     (unsigned)texture_least((size_t)slices, MORPHOLOGY_MOST));

    CUDA_TRY(device, cudaMemsetAsync(job->counts, 0, morphology_size(job->slices) * sizeof(*job->counts), lane->work));
    morphology_count_configurations<<<columns, MORPHOLOGY_THREADS, 0, lane->work>>>(*job);
    CUDA_LAUNCHED(device);
    if (lane->base.pixel == IMAGE_UINT8)
        morphology_sum_slices<uint8_t><<<parts, MORPHOLOGY_THREADS, 0, lane->work>>>(*job);
    else
        morphology_sum_slices<uint16_t><<<parts, MORPHOLOGY_THREADS, 0, lane->work>>>(*job);
    CUDA_LAUNCHED(device);
    return 0;
}

static int
cuda_morphology_run(struct kernels_lane *base, const void *given, struct error *error)
{
    const struct morphology_request *request = (const struct morphology_request *)given;
    const struct morphology_region *region = request->region;
    struct cuda_lane *lane = cuda_lane_of(base);
    const struct cuda_morphology *own = (const struct cuda_morphology *)kernels_state(base, KERNELS_MORPHOLOGY);
    const uint64_t *held = cuda_region_bits(lane, region->bits);
    const size_t size = morphology_size(base->extent.slices);
    struct morphology_job job = {};
    struct texture_box box;
    int rc;

    texture_region_box(base, region->bits, &box);
    if (box.size[0] == 0) {
        memset(request->counts, 0, size * sizeof(*request->counts));
        return 0;
    }
    for (int axis = 0; axis < 3; axis++) {
        job.first[axis] = box.first[axis];
        job.end[axis] = box.first[axis] + box.size[axis];
    }
    job.voxels = lane->device_voxels;
    job.bits = held || !region->bits ? held : own->bits;
    job.kept = own->kept;
    job.table = region->table_count > 1 ? morphology_table(base->pixel) : 0;
    job.columns = base->extent.columns;
    job.rows = base->extent.rows;
    job.slices = base->extent.slices;
    job.words = (base->extent.columns + 63) / 64;
    job.bias = base->pixel == IMAGE_INT16 ? 0x8000 : 0;
    job.counts = own->counts;
    rc = cuda_await_slices(lane, job.first[2], job.end[2], error);
    if (rc)
        return rc;
    if (region->bits && !held)
        CUDA_SEND(lane, own->bits, region->bits, own->words);
    CUDA_SEND(lane, own->kept, region->kept, region->table_count * morphology_table(base->pixel));
    rc = morphology_launch(lane, &job, error);
    if (rc)
        return rc;
    return cuda_result_copy(lane, request->counts, own->counts, size * sizeof(*request->counts), error);
}

const struct kernels_op cuda_morphology_op = {
    .name = "morphology",
    .state_size = sizeof(struct cuda_morphology),
    .transient = true,
    .awaits = true,
    .needs = kernels_op_asked,
    .place = cuda_morphology_place,
    .run = cuda_morphology_run,
};
