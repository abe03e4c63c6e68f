/*
 * morphology_cuda.cu - configurations and sums on the GPU. A thread has 64 cells side by side, whose
 * voxels are eight words: most are of one kind, which their bits count, the rest goes into the block's
 * table. Sums are a block's by slice.
 */
#include "kernels/cuda/cuda.cuh"
#include "kernels/morphology/morphology.h"
#include "kernels/texture/texture_cuda.cuh"

enum {
    MORPHOLOGY_THREADS = 256,
    MORPHOLOGY_BLOCKS = 8, /* per multiprocessor */
    MORPHOLOGY_WARP = 32,
    MORPHOLOGY_CORNERS = 8,
    MORPHOLOGY_PARTS = 16,   /* blocks of a slice's sums */
    MORPHOLOGY_MOST = 65535, /* slices at a time: a grid's most in y */
};

struct cuda_morphology {
    size_t words; /* of a region */
    uint64_t *bits, *kept;
    unsigned long long *counts;
};

struct morphology_job {
    const void *voxels;
    const uint64_t *bits; /* NULL: every voxel */
    const uint64_t *kept;
    size_t table; /* words from one table to the next; 0: there is one */
    int64_t columns, rows, slices, words;
    int64_t first[3], end[3]; /* of the region's box */
    uint32_t bias;
    unsigned long long *counts;
};

static struct cuda_morphology *
cuda_morphology_state(const struct kernels_lane *lane)
{
    return (struct cuda_morphology *)kernels_state(lane, KERNELS_MORPHOLOGY);
}

/* A word of a row of bits, or 0 beyond the volume. */
static __device__ __forceinline__ uint64_t
morphology_word(const struct morphology_job &job, int64_t y, int64_t z, int64_t word)
{
    const int64_t left = job.columns - 64 * word;
    const uint64_t inside = left < 64 ? (1ull << left) - 1 : ~0ull;

    if (y < 0 || z < 0 || word < 0 || y >= job.rows || z >= job.slices || left <= 0)
        return 0;
    return job.bits ? job.bits[(z * job.rows + y) * job.words + word] & inside : inside;
}

/* Cells of columns 64 word - 1 .. 64 word + 62, whose first voxels lie in row y of slice z. */
static __device__ __forceinline__ void
morphology_count_cells(const struct morphology_job &job, int64_t word, int64_t y, int64_t z,
                       uint32_t *counters, uint32_t *full)
{
    uint64_t corners[MORPHOLOGY_CORNERS], any = 0, all = ~0ull;

#pragma unroll
    for (int row = 0; row < MORPHOLOGY_CORNERS / 2; row++) {
        const uint64_t bits = morphology_word(job, y + (row & 1), z + (row >> 1), word);
        const uint64_t before = morphology_word(job, y + (row & 1), z + (row >> 1), word - 1);

        corners[2 * row] = bits << 1 | before >> 63;
        corners[2 * row + 1] = bits;
        any |= corners[2 * row] | bits;
        all &= corners[2 * row] & bits;
    }
    *full += (uint32_t)__popcll(all);
    for (uint64_t mixed = any & ~all; mixed; mixed &= mixed - 1) {
        const int cell = __ffsll((long long)mixed) - 1;
        uint32_t configuration = 0;

#pragma unroll
        for (int corner = 0; corner < MORPHOLOGY_CORNERS; corner++)
            configuration |= (uint32_t)(corners[corner] >> cell & 1) << corner;
        atomicAdd(&counters[configuration], 1u);
    }
}

static __global__ void
__launch_bounds__(MORPHOLOGY_THREADS) morphology_count_configurations(struct morphology_job job)
{
    __shared__ uint32_t counters[MORPHOLOGY_CONFIGURATIONS];
    const int64_t word = job.first[0] / 64, across = job.end[0] / 64 + 1 - word;
    const int64_t rows = job.end[1] - job.first[1] + 1;
    const int64_t cells = across * rows * (job.end[2] - job.first[2] + 1);
    uint32_t full = 0;

    for (int i = threadIdx.x; i < MORPHOLOGY_CONFIGURATIONS; i += MORPHOLOGY_THREADS)
        counters[i] = 0;
    __syncthreads();
    for (int64_t i = (int64_t)blockIdx.x * MORPHOLOGY_THREADS + threadIdx.x; i < cells;
         i += (int64_t)gridDim.x * MORPHOLOGY_THREADS)
        morphology_count_cells(job, word + i % across, job.first[1] - 1 + i / across % rows,
                               job.first[2] - 1 + i / across / rows, counters, &full);
    if (full > 0)
        atomicAdd(&counters[MORPHOLOGY_CONFIGURATIONS - 1], full);
    __syncthreads();
    for (int i = threadIdx.x; i < MORPHOLOGY_CONFIGURATIONS; i += MORPHOLOGY_THREADS)
        if (counters[i] > 0)
            atomicAdd(&job.counts[i], (unsigned long long)counters[i]);
}

/* The sum of all threads of a warp, in its first. */
static __device__ __forceinline__ unsigned long long
morphology_warp_sum(unsigned long long own)
{
    for (int from = MORPHOLOGY_WARP / 2; from > 0; from /= 2)
        own += __shfl_down_sync(UINT32_MAX, own, from);
    return own;
}

/* Adds a piece's voxels, from column x of row y on. */
template <typename Value>
static __device__ __forceinline__ void
morphology_add_piece(const struct texture_piece<Value> &piece, const uint64_t *kept, uint32_t bias,
                     uint32_t x, uint32_t y, unsigned long long sums[MORPHOLOGY_SUMS])
{
    uint32_t voxels = 0, along = 0, sum = 0, sum_along = 0; /* columns from x on */

#pragma unroll
    for (uint32_t k = 0; k < texture_piece<Value>::VALUES; k++) {
        const uint32_t value = piece.value(k) ^ bias;

        if (!(piece.in >> k & 1) || !(kept[value / 64] >> value % 64 & 1))
            continue;
        voxels++;
        along += k;
        sum += value;
        sum_along += value * k;
    }
    sums[MORPHOLOGY_VOXELS] += voxels;
    sums[MORPHOLOGY_X] += (uint64_t)voxels * x + along;
    sums[MORPHOLOGY_Y] += (uint64_t)voxels * y;
    sums[MORPHOLOGY_VALUE] += sum;
    sums[MORPHOLOGY_VALUE_X] += (uint64_t)sum * x + sum_along;
    sums[MORPHOLOGY_VALUE_Y] += (uint64_t)sum * y;
}

/* Part blockIdx.x of a slice's rows of the box. */
template <typename Value>
static __device__ __forceinline__ void
morphology_sum_part(const struct morphology_job &job, int64_t z)
{
    const uint32_t values = texture_piece<Value>::VALUES;
    const uint64_t *kept = job.kept + (size_t)z * job.table;
    const int64_t rows = job.end[1] - job.first[1];
    const uint32_t first_row = (uint32_t)(job.first[1] + rows * blockIdx.x / gridDim.x),
                   end_row = (uint32_t)(job.first[1] + rows * (blockIdx.x + 1) / gridDim.x);
    const uint32_t first = (uint32_t)job.first[0] / values,
                   across = ((uint32_t)job.end[0] - 1) / values + 1 - first;
    unsigned long long sums[MORPHOLOGY_SUMS] = {};

    /* Below 2^30 of 2^33 voxels. */
    for (uint32_t i = threadIdx.x; i < (end_row - first_row) * across; i += MORPHOLOGY_THREADS) {
        const uint32_t row = i / across, y = first_row + row;
        const uint32_t x = (first + i - row * across) * values;
        const size_t at = (size_t)(z * job.rows + y);
        struct texture_piece<Value> piece;

        texture_load_piece((const Value *)job.voxels + at * (size_t)job.columns + x,
                           job.bits ? job.bits + at * (size_t)job.words : NULL,
                           (uint32_t)job.columns, x, &piece);
        if (piece.in != 0)
            morphology_add_piece(piece, kept, job.bias, x, y, sums);
    }
    for (int sum = 0; sum < MORPHOLOGY_SUMS; sum++) {
        const unsigned long long own = morphology_warp_sum(sums[sum]);

        if (threadIdx.x % MORPHOLOGY_WARP == 0 && own > 0)
            atomicAdd(&job.counts[MORPHOLOGY_CONFIGURATIONS + z * MORPHOLOGY_SUMS + sum], own);
    }
}

template <typename Value>
static __global__ void
__launch_bounds__(MORPHOLOGY_THREADS) morphology_sum_slices(struct morphology_job job)
{
    for (int64_t z = job.first[2] + blockIdx.y; z < job.end[2]; z += gridDim.y)
        morphology_sum_part<Value>(job, z);
}

static size_t
morphology_table(const struct kernels_lane *lane)
{
    return (lane->pixel == IMAGE_UINT8 ? 256 : 65536) / 64;
}

static void
cuda_morphology_place(struct kernels_lane *lane, struct kernels_memory *memory)
{
    struct cuda_morphology *own = cuda_morphology_state(lane);
    const struct image_extent *extent = &lane->extent;

    own->words = ((size_t)extent->columns + 63) / 64 * (size_t)(extent->rows * extent->slices);
    cuda_take(&memory->device, &own->bits, own->words);
    cuda_take(&memory->device, &own->kept, (size_t)extent->slices, morphology_table(lane));
    cuda_take(&memory->device, &own->counts, morphology_size(extent->slices));
}

static int
morphology_launch(struct cuda_lane *lane, const struct morphology_job *job, struct error *error)
{
    struct cuda_device *device = cuda_device_of(&lane->base);
    const unsigned blocks = (unsigned)(device->multiprocessors * MORPHOLOGY_BLOCKS);
    const int64_t slices = job->end[2] - job->first[2];
    const dim3 parts(MORPHOLOGY_PARTS,
                     slices < MORPHOLOGY_MOST ? (unsigned)slices : (unsigned)MORPHOLOGY_MOST);

    CUDA_TRY(device,
             cudaMemsetAsync(job->counts, 0, morphology_size(job->slices) * sizeof(*job->counts),
                             lane->work));
    morphology_count_configurations<<<blocks, MORPHOLOGY_THREADS, 0, lane->work>>>(*job);
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
    const struct cuda_morphology *own = cuda_morphology_state(base);
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
    job.table = region->table_count > 1 ? morphology_table(base) : 0;
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
    CUDA_SEND(lane, own->kept, region->kept, region->table_count * morphology_table(base));
    rc = morphology_launch(lane, &job, error);
    if (rc)
        return rc;
    return cuda_result_copy(lane, request->counts, own->counts, size * sizeof(*request->counts),
                            error);
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
