/* level_set_pack.cu - stage 1 of Trapani 2018 on CUDA: the range bits, the initial region, and the
 * tiles where the flood begins. */
#include "kernels/cuda/cuda.cuh"
#include "kernels/level_set/level_set_cuda.cuh"
#include "kernels/level_set/level_set_launch.cuh"
#include "kernels/range/range.h"
extern "C" {
#include "kernels/level_set/level_set_shape.h"
}
#include "kernels/level_set/shape_line.h"

#include <limits.h>

enum {
    PACK_THREADS = 256,
    PACK_LOADS = 4,                    /* loads of 16 bytes (8 for uint8) in flight per thread */
    PACK_COLUMNS = 2048,               /* wider rows are split */
    PACK_PITCH = PACK_COLUMNS / 8 + 8, /* bytes; allows for unaligned ends of a split row */
    PACK_LABELS = 4,                   /* labels at a time */
    DRAW_THREADS = 128,
    CLASSIFY_WARPS = 4,
    CLEAR_THREADS = 512,
    CLEAR_BLOCKS = 2048,
    OUTLINE_THREADS = 1024,
    RELEASE_THREADS = 1024,
};

/* Sizes */

bool
level_set_measure(struct level_set_job *job, struct image_extent extent, enum image_pixel pixel, size_t labels)
{
    const int64_t size[3] = {extent.columns, extent.rows, extent.slices};
    const int64_t side[3] = {TILE_COLUMNS, TILE_ROWS, TILE_SLICES};
    uint32_t *const along[3] = {&job->tiles_x, &job->tiles_y, &job->tiles_z};
    uint64_t tiles, places = 1;

    job->columns = extent.columns;
    job->rows = extent.rows;
    job->slices = extent.slices;
    job->words_per_row = (extent.columns - 1) / 64 + 1;
    job->words = job->words_per_row * extent.rows * extent.slices;
    job->pixel = pixel;
    for (int axis = 0; axis < 3; axis++) {
        if ((size[axis] - 1) / side[axis] >= INT32_MAX)
            return false;
        *along[axis] = (uint32_t)((size[axis] - 1) / side[axis] + 1);
    }
    /* At most 2^33 voxels, so that this does not overflow. */
    tiles = (uint64_t)job->tiles_x * job->tiles_y * job->tiles_z;
    if (tiles * labels > (uint64_t)1 << 28 || labels > (uint64_t)1 << 28)
        return false;
    /* Room for the tiles, and for one END per block of the flood. */
    while (places < tiles * labels + 4096)
        places *= 2;
    job->tiles = (uint32_t)tiles;
    job->labels = (uint32_t)labels;
    job->queue_mask = (uint32_t)places - 1;
    return true;
}

bool
level_set_can_unite(const struct level_set_job *job)
{
    return (int64_t)job->tiles * TILE_WORDS * (TILE_COLUMNS / 2) < UINT32_MAX;
}

int64_t
level_set_budget(const struct level_set_job *job)
{
    const int64_t least = 500000, voxels_a_cycle = 150;

    return least + job->columns * job->rows * job->slices / voxels_a_cycle;
}

/* Values in range */

struct level_set_pass
level_set_make_pass(enum image_pixel pixel, struct image_range range, struct image_range padding)
{
    struct image_range intervals[2];
    struct level_set_pass pass = {};

    pass.intervals = (uint32_t)range_intervals(pixel, range, padding, intervals);
    for (uint32_t i = 0; i < pass.intervals; i++) {
        const int32_t lo = intervals[i].lo, hi = intervals[i].hi;

        pass.minus_low[i] = ((uint32_t)-lo & 0xFFFF) * 0x10001;
        pass.span[i] = (uint32_t)(hi - lo) * 0x10001;
        pass.minus_span[i] = ((uint32_t)(lo - hi) & 0xFFFF) * 0x10001;
    }
    return pass;
}

/*
 * Range bits. A block takes up to 32 rows of a slice, of up to 2048 columns each: contiguous memory
 * if rows are whole. It reads aligned pieces of eight values for any alignment of rows. The bits
 * are shifted into place when copied from shared memory to the tiles.
 */
struct pack_item {
    int64_t first; /* voxel */
    uint32_t x;    /* in tiles */
    uint32_t y;
    uint32_t z;       /* in slices */
    uint32_t rows;    /* number that exist */
    uint32_t columns; /* of this item */
    uint32_t strips;  /* contiguous parts of memory */
    uint32_t strip;   /* voxels per strip */
};

__device__ static __forceinline__ struct pack_item
pack_item_of(const struct level_set_job &job, int64_t number, int64_t first_slice)
{
    const uint32_t cuts = (job.tiles_x - 1) / (PACK_COLUMNS / TILE_COLUMNS) + 1;
    struct pack_item item;

    item.x = (uint32_t)(number % cuts) * (PACK_COLUMNS / TILE_COLUMNS);
    number /= cuts;
    item.y = (uint32_t)(number % job.tiles_y);
    item.z = (uint32_t)(first_slice + number / job.tiles_y);
    item.rows = (uint32_t)min((int64_t)TILE_ROWS, job.rows - (int64_t)item.y * TILE_ROWS);
    item.columns = (uint32_t)min((int64_t)PACK_COLUMNS, job.columns - (int64_t)item.x * TILE_COLUMNS);
    item.first = (item.z * job.rows + (int64_t)item.y * TILE_ROWS) * job.columns + (int64_t)item.x * TILE_COLUMNS;
    item.strips = cuts == 1 ? 1 : item.rows;
    item.strip = cuts == 1 ? item.rows * item.columns : item.columns;
    return item;
}

/* Returns the voxel at which piece `piece` begins, a multiple of 8, or -1 beyond the item. */
__device__ static __forceinline__ int64_t
pack_piece(const struct level_set_job &job, const struct pack_item &item, uint32_t piece, uint32_t pieces, uint32_t *at)
{
    int64_t first = item.first;

    *at = piece;
    if (item.strips > 1) {
        uint32_t row = piece / pieces;

        piece -= row * pieces;
        if (row >= item.strips)
            return -1;
        first += row * job.columns;
        *at = row * PACK_PITCH + piece;
    }
    int64_t voxel = (first & ~INT64_C(7)) + (int64_t)piece * 8;
    return voxel < first + item.strip ? voxel : -1;
}

template <typename Value, int LABELS>
__device__ static __forceinline__ void
pack_read(const struct level_set_job &job, const struct pack_item &item, const struct level_set_pass *passes,
          uint8_t (*bytes)[TILE_ROWS * PACK_PITCH + 16])
{
    using eight = level_set_eight<Value>;
    const Value *voxels = (const Value *)job.voxels;
    const uint32_t pieces = (item.strip + 7) / 8 + 1;

    for (uint32_t piece = threadIdx.x; piece < pieces * item.strips; piece += PACK_THREADS * PACK_LOADS) {
        eight loaded[PACK_LOADS];
        uint32_t at[PACK_LOADS];
        bool exists[PACK_LOADS];

#pragma unroll
        for (int i = 0; i < PACK_LOADS; i++) {
            int64_t voxel = pack_piece(job, item, piece + (uint32_t)i * PACK_THREADS, pieces, &at[i]);

            exists[i] = voxel >= 0;
            if (exists[i])
                loaded[i] = __ldcs((const eight *)(voxels + voxel));
        }
#pragma unroll
        for (int i = 0; i < PACK_LOADS; i++)
#pragma unroll
            for (int label = 0; label < LABELS; label++)
                if (exists[i])
                    bytes[label][at[i]] = (uint8_t)level_set_in_range<Value>(loaded[i], passes[label]);
    }
}

template <int LABELS>
__device__ static __forceinline__ void
pack_write(const struct level_set_job &job, const struct pack_item &item, uint32_t first_label,
           const uint8_t (*bytes)[TILE_ROWS * PACK_PITCH + 16])
{
    const uint32_t words = (item.columns - 1) / 64 + 1;
    const uint32_t tiles_before = (item.z / TILE_SLICES * job.tiles_y + item.y) * job.tiles_x;

    for (uint32_t i = threadIdx.x; i < words * TILE_ROWS; i += PACK_THREADS) {
        uint32_t row = i % TILE_ROWS, word = i / TILE_ROWS, at = word * 64;
        uint64_t exist = level_set_columns(job, item.x + word);

        if (row >= item.rows)
            continue;
        if (item.strips == 1)
            at += (uint32_t)(item.first & 7) + row * item.columns;
        else
            at += row * PACK_PITCH * 8 + (uint32_t)(item.first + row * job.columns & 7);
#pragma unroll
        for (int label = 0; label < LABELS; label++) {
            const size_t tile = (size_t)(first_label + (uint32_t)label) * job.tiles + tiles_before + item.x + word;
            const uint32_t *from = (const uint32_t *)bytes[label] + (at >> 5), shift = at & 31;
            const uint32_t low = __funnelshift_r(from[0], from[1], shift);
            const uint32_t high = __funnelshift_r(from[1], from[2], shift);

            job.range[tile * TILE_WORDS + item.z % TILE_SLICES * TILE_ROWS + row] =
                ((uint64_t)high << 32 | low) & exist;
        }
    }
}

template <typename Value, int LABELS>
__global__ void
__launch_bounds__(PACK_THREADS)
    pack(const __grid_constant__ struct level_set_job job, uint32_t first_label, int64_t first, int64_t items)
{
    __shared__ __align__(8) uint8_t bytes[LABELS][TILE_ROWS * PACK_PITCH + 16];

    ptx_let_next_begin();
    for (int64_t number = blockIdx.x; number < items; number += gridDim.x) {
        struct pack_item item = pack_item_of(job, number, first);
        struct level_set_pass passes[LABELS];

#pragma unroll
        for (int label = 0; label < LABELS; label++)
            passes[label] = job.passes[(first_label + (uint32_t)label) * job.slices + item.z];
        pack_read<Value, LABELS>(job, item, passes, bytes);
        __syncthreads();
        pack_write<LABELS>(job, item, first_label, bytes);
        __syncthreads();
    }
    ptx_wait_for_last(); /* no results of it are needed here */
}

template <typename Value>
static void
launch_pack(const struct level_set_job *job, int64_t first, int64_t count, cudaStream_t stream)
{
    static void (*const packs[PACK_LABELS])(const struct level_set_job, uint32_t, int64_t,
                                            int64_t) = {pack<Value, 1>, pack<Value, 2>, pack<Value, 3>, pack<Value, 4>};
    int64_t cuts = (job->tiles_x - 1) / (PACK_COLUMNS / TILE_COLUMNS) + 1;
    int64_t items = cuts * job->tiles_y * count;
    unsigned blocks = (unsigned)(items < INT_MAX ? items : INT_MAX);

    for (uint32_t label = 0; label < job->labels; label += PACK_LABELS) {
        const uint32_t left = job->labels - label;

        launch_early(packs[left < PACK_LABELS ? left - 1 : PACK_LABELS - 1], blocks, PACK_THREADS, 0, stream, *job,
                     label, first, items);
    }
}

void
level_set_pack(const struct level_set_job *job, int64_t first, int64_t count, cudaStream_t stream)
{
    if (job->pixel == IMAGE_UINT8)
        launch_pack<uint8_t>(job, first, count, stream);
    else
        launch_pack<uint16_t>(job, first, count, stream);
}

/* Returns the position of the range bits for a word of one label's region. */
__device__ static __forceinline__ size_t
range_number(const struct level_set_job &job, int64_t word)
{
    const int64_t row = word / job.words_per_row, x = word % job.words_per_row;
    const int64_t y = row % job.rows, z = row / job.rows;
    const int64_t tile = (z / TILE_SLICES * job.tiles_y + y / TILE_ROWS) * job.tiles_x + x;

    return (size_t)(tile * TILE_WORDS + z % TILE_SLICES * TILE_ROWS + y % TILE_ROWS);
}

__global__ void
__launch_bounds__(CLEAR_THREADS)
    bound_range(const __grid_constant__ struct level_set_job job, const uint64_t *mask, uint64_t *range)
{
    for (int64_t word = (int64_t)blockIdx.x * CLEAR_THREADS + threadIdx.x; word < job.words;
         word += (int64_t)gridDim.x * CLEAR_THREADS)
        range[range_number(job, word)] &= mask[word];
}

/* Covers the words of one label, several per thread. */
static unsigned
word_blocks(const struct level_set_job *job)
{
    const int64_t most = CLEAR_BLOCKS, blocks = (job->words - 1) / CLEAR_THREADS + 1;

    return (unsigned)(blocks < most ? blocks : most);
}

/* The mask is copied to `initial`, which the flood overwrites later. */
cudaError_t
level_set_bound(const struct level_set_job *job, uint32_t label, const uint64_t *mask, cudaStream_t stream)
{
    const size_t first = (size_t)label * job->tiles * TILE_WORDS;
    cudaError_t error = CUDA_OF(cudaMemcpyAsync(job->initial + first, mask, (size_t)job->words * sizeof(*mask),
                                                cudaMemcpyHostToDevice, stream));

    if (error == cudaSuccess)
        bound_range<<<word_blocks(job), CLEAR_THREADS, 0, stream>>>(*job, job->initial + first, job->range + first);
    return error;
}

__global__ void
__launch_bounds__(CLEAR_THREADS) cut_region(const __grid_constant__ struct level_set_job job, uint32_t label)
{
    const uint64_t *range = job.range + (size_t)label * job.tiles * TILE_WORDS;
    uint64_t *region = job.inside + label * job.words;
    uint32_t cut = 0;

    for (int64_t word = (int64_t)blockIdx.x * CLEAR_THREADS + threadIdx.x; word < job.words;
         word += (int64_t)gridDim.x * CLEAR_THREADS) {
        const uint64_t own = region[word], outside = own ? own & ~range[range_number(job, word)] : 0;

        if (!outside)
            continue;
        region[word] = own ^ outside;
        cut += (uint32_t)__popcll(outside);
    }
    cut = __reduce_add_sync(~0u, cut);
    if (threadIdx.x % 32 == 0 && cut)
        atomicAdd((unsigned long long *)&job.voxels_in[label], -(unsigned long long)cut);
}

void
level_set_cut(const struct level_set_job *job, uint32_t label, cudaStream_t stream)
{
    cut_region<<<word_blocks(job), CLEAR_THREADS, 0, stream>>>(*job, label);
}

/* The initial region */

/* Clears the state of a run, in pieces of 16 bytes, and marks layers as ready or not. */
__global__ void
__launch_bounds__(CLEAR_THREADS)
    clear(const __grid_constant__ struct level_set_job job, size_t zeros, size_t regions, uint32_t layer)
{
    const size_t first = (size_t)((uint4 *)job.layer - (uint4 *)job.state);
    const size_t last = first + (job.tiles_z - 1) / sizeof(uint4);
    const size_t step = (size_t)gridDim.x * CLEAR_THREADS;

    ptx_let_next_begin();
    for (size_t i = (size_t)blockIdx.x * CLEAR_THREADS + threadIdx.x; i < zeros + regions; i += step) {
        const uint32_t value = i >= first && i <= last ? layer : 0;
        uint4 *piece = i < zeros ? (uint4 *)job.state + i : (uint4 *)job.inside + (i - zeros);

        *piece = make_uint4(value, value, value, value);
    }
}

void
level_set_begin(const struct level_set_job *job, bool resident, cudaStream_t stream)
{
    const size_t zeros = job->zeros / sizeof(uint4);
    const size_t regions = ((size_t)job->labels * (size_t)job->words + 1) / 2;
    const size_t most = CLEAR_BLOCKS, blocks = (zeros + regions - 1) / CLEAR_THREADS + 1;

    clear<<<(unsigned)(blocks < most ? blocks : most), CLEAR_THREADS, 0, stream>>>(*job, zeros, regions,
                                                                                   resident ? 0x01010101 : 0);
}

/* Inclusive, in tiles. */
struct tile_box {
    uint32_t first[3];
    uint32_t last[3];
};

/* Rows of the shape's box, one per thread; then its words, one per lane. */
struct draw_rows {
    int64_t first_y, count_y, first_z, count;
};

__global__ void
__launch_bounds__(DRAW_THREADS)
    draw(const __grid_constant__ struct level_set_job job, uint32_t label,
         const __grid_constant__ struct kernels_shape shape, const __grid_constant__ struct draw_rows rows)
{
    __shared__ int64_t first[DRAW_THREADS], last[DRAW_THREADS], where[DRAW_THREADS];
    int64_t number = (int64_t)blockIdx.x * DRAW_THREADS + threadIdx.x;
    uint64_t *region = job.inside + label * job.words;

    first[threadIdx.x] = 0;
    last[threadIdx.x] = -1;
    if (number < rows.count) {
        int64_t y = rows.first_y + number % rows.count_y, z = rows.first_z + number / rows.count_y;
        struct shape_interval columns = shape_find_row(&shape, y, z, job.columns);

        first[threadIdx.x] = columns.first;
        last[threadIdx.x] = columns.last;
        where[threadIdx.x] = (z * job.rows + y) * job.words_per_row;
    }
    __syncwarp();
    for (unsigned row = threadIdx.x / 32 * 32, end = row + 32; row < end; row++) {
        if (first[row] > last[row])
            continue;
        for (int64_t word = first[row] / 64 + threadIdx.x % 32; word <= last[row] / 64; word += 32) {
            uint64_t bits = ~UINT64_C(0);

            if (word == first[row] / 64)
                bits &= ~UINT64_C(0) << first[row] % 64;
            if (word == last[row] / 64)
                bits &= ~UINT64_C(0) >> (63 - last[row] % 64);
            region[where[row] + word] |= bits;
        }
    }
}

/* Finds the tiles that may have voxels of the region. Returns false if it is empty. */
static bool
level_set_pack_find_box(const struct level_set_job *job, const struct kernels_level_set_label *label,
                        struct tile_box *box)
{
    const int64_t size[3] = {job->columns, job->rows, job->slices};
    const int64_t tile[3] = {TILE_COLUMNS, TILE_ROWS, TILE_SLICES};
    bool any = label->mask != NULL;

    for (int axis = 0; axis < 3; axis++) {
        box->first[axis] = any ? 0 : UINT32_MAX;
        box->last[axis] = any ? (uint32_t)((size[axis] - 1) / tile[axis]) : 0;
    }
    for (size_t s = 0; s < label->shape_count; s++) {
        struct shape_interval side[3];

        for (int axis = 0; axis < 3; axis++)
            side[axis] = shape_extent(&label->shapes[s], axis, size[axis]);
        if (side[0].first > side[0].last || side[1].first > side[1].last || side[2].first > side[2].last)
            continue;
        for (int axis = 0; axis < 3; axis++) {
            uint32_t first = (uint32_t)(side[axis].first / tile[axis]);
            uint32_t last = (uint32_t)(side[axis].last / tile[axis]);

            box->first[axis] = first < box->first[axis] ? first : box->first[axis];
            box->last[axis] = last > box->last[axis] ? last : box->last[axis];
        }
        any = true;
    }
    return any;
}

/* Tiles */

__device__ static __forceinline__ void
level_set_pack_push(const struct level_set_job &job, uint32_t tile)
{
    atomicAdd(&job.counts->outstanding, 1);
    job.queue[atomicAdd(&job.counts->tail, 1) & job.queue_mask] = tile + 1;
}

/* Values seen in a tile: `around` includes the voxels one further. */
struct seen {
    uint64_t ones, zeros;
    bool ones_around, zeros_around;
    uint32_t voxels;
};

/* Reads a row of a tile or, with y or z just outside it, of its surroundings. */
__device__ static __forceinline__ void
see_row(const struct level_set_job &job, uint64_t *region, const struct level_set_place &place, int row, int slice,
        struct seen *seen)
{
    int64_t y = (int64_t)place.y * TILE_ROWS + row, z = (int64_t)place.z * TILE_SLICES + slice;
    bool row_inside = row >= 0 && row < TILE_ROWS, slice_inside = slice >= 0 && slice < TILE_SLICES;
    uint64_t exist = level_set_columns(job, place.x), *word;

    if (y < 0 || y >= job.rows || z < 0 || z >= job.slices || (!row_inside && !slice_inside))
        return;
    word = region + (z * job.rows + y) * job.words_per_row + place.x;
    if (!row_inside || !slice_inside) {
        seen->ones_around |= (*word & exist) != 0;
        seen->zeros_around |= (~*word & exist) != 0;
        return;
    }
    if (*word & ~exist)
        *word &= exist; /* clears a mask's padding */
    seen->ones |= *word & exist;
    seen->zeros |= ~*word & exist;
    seen->voxels += (uint32_t)__popcll(*word & exist);
    if (place.x > 0) {
        seen->ones_around |= word[-1] >> 63 != 0;
        seen->zeros_around |= word[-1] >> 63 == 0;
    }
    if (place.x + 1 < job.tiles_x) {
        seen->ones_around |= (word[1] & 1) != 0;
        seen->zeros_around |= (word[1] & 1) == 0;
    }
}

__device__ static __forceinline__ void
note_tile(const struct level_set_job &job, uint32_t tile, const struct level_set_place &place, bool ones, bool zeros,
          bool begins)
{
    job.kind[tile] = ones && zeros ? TILE_MIXED : ones ? 1 : 0;
    if (!begins)
        return;
    if (job.layer[place.z]) {
        job.state[tile] = STATE_INITIAL | STATE_QUEUED;
        level_set_pack_push(job, tile);
    } else {
        job.state[tile] = STATE_INITIAL;
    }
}

/* One warp per tile. */
__global__ void __launch_bounds__(32 * CLASSIFY_WARPS)
    classify(const __grid_constant__ struct level_set_job job, uint32_t label,
             const __grid_constant__ struct tile_box box)
{
    const uint32_t size_x = box.last[0] - box.first[0] + 1, size_y = box.last[1] - box.first[1] + 1;
    const uint32_t groups = (size_x - 1) / CLASSIFY_WARPS + 1;
    uint64_t *region = job.inside + label * job.words;
    const int rows = TILE_ROWS + 2, slices = TILE_SLICES + 2;
    struct seen seen = {};
    struct level_set_place place;

    place.label = label;
    place.x = box.first[0] + blockIdx.x % groups * CLASSIFY_WARPS + threadIdx.x / 32;
    place.y = box.first[1] + blockIdx.x / groups % size_y;
    place.z = box.first[2] + blockIdx.x / groups / size_y;
    if (place.x > box.last[0])
        return;
#pragma unroll 4
    for (int i = (int)(threadIdx.x % 32); i < rows * slices; i += 32)
        see_row(job, region, place, i % rows - 1, i / rows - 1, &seen);
    bool ones = __any_sync(~0u, seen.ones != 0), zeros = __any_sync(~0u, seen.zeros != 0);
    bool ones_around = __any_sync(~0u, seen.ones_around);
    bool zeros_around = __any_sync(~0u, seen.zeros_around);
    uint32_t voxels = __reduce_add_sync(~0u, seen.voxels);

    if (threadIdx.x % 32 != 0)
        return;
    if (voxels)
        atomicAdd((unsigned long long *)&job.voxels_in[label], voxels);
    uint32_t tile = ((label * job.tiles_z + place.z) * job.tiles_y + place.y) * job.tiles_x + place.x;
    note_tile(job, tile, place, ones, zeros, (ones || ones_around) && (zeros || zeros_around));
}

/*
 * A single shape, the usual case: draws and classifies in one kernel. A block takes all tiles at
 * one place along y and z. The rows' least and greatest ends determine whether a tile is inside or
 * outside. If they do not, the tile counts as mixed, which is always correct.
 */
struct ends {
    int32_t least_first, greatest_first, least_last, greatest_last;
    bool empty; /* some row has no voxel */
};

__device__ static __forceinline__ void
take_ends(struct ends *ends, const struct shape_interval &row)
{
    if (row.first > row.last) {
        ends->empty = true;
        return;
    }
    ends->least_first = min(ends->least_first, (int32_t)row.first);
    ends->greatest_first = max(ends->greatest_first, (int32_t)row.first);
    ends->least_last = min(ends->least_last, (int32_t)row.last);
    ends->greatest_last = max(ends->greatest_last, (int32_t)row.last);
}

/* Joins the ends of all threads of the block. `shared` must have five words. */
__device__ static struct ends
join_ends(struct ends own, int32_t *shared)
{
    if (threadIdx.x == 0) {
        shared[0] = shared[2] = INT32_MAX;
        shared[1] = shared[3] = -1;
    }
    bool empty = __syncthreads_or(own.empty);
    own.least_first = __reduce_min_sync(~0u, own.least_first);
    own.greatest_first = __reduce_max_sync(~0u, own.greatest_first);
    own.least_last = __reduce_min_sync(~0u, own.least_last);
    own.greatest_last = __reduce_max_sync(~0u, own.greatest_last);
    if (threadIdx.x % 32 == 0) {
        atomicMin(&shared[0], own.least_first);
        atomicMax(&shared[1], own.greatest_first);
        atomicMin(&shared[2], own.least_last);
        atomicMax(&shared[3], own.greatest_last);
    }
    __syncthreads();
    return {shared[0], shared[1], shared[2], shared[3], empty};
}

/* Returns whether columns first .. last of all rows are in the shape (1), outside (0), or
 * undetermined. */
__device__ static __forceinline__ uint32_t
kind_of(const struct ends &ends, int64_t first, int64_t last)
{
    if (!ends.empty && ends.greatest_first <= first && last <= ends.least_last)
        return 1;
    return ends.least_first > last || ends.greatest_last < first ? 0 : TILE_MIXED;
}

/* Returns the bits first .. last of a word, which may partly lie outside it. */
__device__ static __forceinline__ uint64_t
bits_between(int64_t first, int64_t last)
{
    if (last < 0 || first > 63 || first > last)
        return 0;
    return ~UINT64_C(0) << (first > 0 ? first : 0) & ~UINT64_C(0) >> (last < 63 ? 63 - last : 0);
}

__global__ void
__launch_bounds__(OUTLINE_THREADS)
    outline(const __grid_constant__ struct level_set_job job, uint32_t label,
            const __grid_constant__ struct kernels_shape shape, const __grid_constant__ struct tile_box box)
{
    __shared__ int32_t first[TILE_WORDS], last[TILE_WORDS], inner_ends[4], outer_ends[4];
    const uint32_t size_y = box.last[1] - box.first[1] + 1;
    const int rows = TILE_ROWS + 2, slices = TILE_SLICES + 2;
    const struct level_set_place place = {label, 0, box.first[1] + blockIdx.x % size_y,
                                          box.first[2] + blockIdx.x / size_y};
    const int64_t begin_y = (int64_t)place.y * TILE_ROWS, begin_z = (int64_t)place.z * TILE_SLICES;
    struct ends inner = {INT32_MAX, -1, INT32_MAX, -1, false}, outer = inner;
    uint32_t voxels = 0;

    ptx_let_next_begin();
    for (int i = (int)threadIdx.x; i < rows * slices; i += OUTLINE_THREADS) {
        int row = i % rows - 1, slice = i / rows - 1;
        bool row_inside = row >= 0 && row < TILE_ROWS;
        bool slice_inside = slice >= 0 && slice < TILE_SLICES;
        int64_t y = begin_y + row, z = begin_z + slice;
        struct shape_interval columns = {0, -1};
        bool exists = y >= 0 && y < job.rows && z >= 0 && z < job.slices;

        if (exists && (row_inside || slice_inside)) {
            columns = shape_find_row(&shape, y, z, job.columns);
            take_ends(&outer, columns);
        }
        if (!row_inside || !slice_inside)
            continue;
        if (exists) {
            take_ends(&inner, columns);
            voxels += (uint32_t)(columns.last - columns.first + 1);
        }
        first[slice * TILE_ROWS + row] = (int32_t)columns.first;
        last[slice * TILE_ROWS + row] = (int32_t)columns.last;
    }
    inner = join_ends(inner, inner_ends);
    outer = join_ends(outer, outer_ends);
    voxels = __reduce_add_sync(~0u, voxels);
    ptx_wait_for_last();
    if (threadIdx.x % 32 == 0 && voxels)
        atomicAdd((unsigned long long *)&job.voxels_in[label], voxels);
    for (uint32_t x = box.first[0] + threadIdx.x; x <= box.last[0]; x += OUTLINE_THREADS) {
        uint32_t tile = ((label * job.tiles_z + place.z) * job.tiles_y + place.y) * job.tiles_x + x;
        int64_t from = (int64_t)x * TILE_COLUMNS, to = min(from + TILE_COLUMNS, job.columns) - 1;
        uint32_t kind = kind_of(inner, from, to);
        uint32_t around = kind_of(outer, from - (from > 0), to + (to + 1 < job.columns));

        note_tile(job, tile, place, kind != 0, kind != 1, around == TILE_MIXED);
    }
    const uint32_t size_x = box.last[0] - box.first[0] + 1;
    for (uint32_t i = threadIdx.x; i < TILE_WORDS * size_x; i += OUTLINE_THREADS) {
        uint32_t row = i / size_x, x = box.first[0] + i % size_x;
        int64_t y = begin_y + row % TILE_ROWS, z = begin_z + row / TILE_ROWS;
        int64_t from = (int64_t)x * TILE_COLUMNS;
        uint64_t bits = bits_between(first[row] - from, last[row] - from);

        if (bits)
            job.inside[label * job.words + (z * job.rows + y) * job.words_per_row + x] = bits;
    }
}

cudaError_t
level_set_draw(const struct level_set_job *job, uint32_t number, const struct kernels_level_set_label *label,
               cudaStream_t stream)
{
    const uint32_t tiles[3] = {job->tiles_x, job->tiles_y, job->tiles_z};
    struct tile_box box;
    uint32_t size[3], places;

    if (!level_set_pack_find_box(job, label, &box))
        return cudaSuccess;
    for (int axis = 0; axis < 3; axis++) { /* with the neighbouring tiles */
        box.first[axis] -= box.first[axis] > 0;
        box.last[axis] += box.last[axis] + 1 < tiles[axis];
        size[axis] = box.last[axis] - box.first[axis] + 1;
    }
    places = size[1] * size[2];
    if (label->shape_count == 1 && !label->mask && job->columns <= INT32_MAX) {
        launch_early(outline, places, OUTLINE_THREADS, 0, stream, *job, number, label->shapes[0], box);
        return cudaSuccess;
    }
    if (label->mask) {
        size_t words = (size_t)job->words;
        cudaError_t error = CUDA_OF(cudaMemcpyAsync(job->inside + number * words, label->mask,
                                                    words * sizeof(*label->mask), cudaMemcpyHostToDevice, stream));
        if (error != cudaSuccess)
            return error;
    }
    for (size_t i = 0; i < label->shape_count; i++) {
        const struct kernels_shape *shape = &label->shapes[i];
        const struct shape_interval y = shape_extent(shape, 1, job->rows), z = shape_extent(shape, 2, job->slices);
        const int64_t across = y.last - y.first + 1;
        const struct draw_rows rows = {y.first, across, z.first, across * (z.last - z.first + 1)};

        if (y.first <= y.last && z.first <= z.last)
            draw<<<(unsigned)((rows.count - 1) / DRAW_THREADS + 1), DRAW_THREADS, 0, stream>>>(*job, number, *shape,
                                                                                               rows);
    }
    classify<<<((size[0] - 1) / CLASSIFY_WARPS + 1) * places, 32 * CLASSIFY_WARPS, 0, stream>>>(*job, number, box);
    return cudaSuccess;
}

/* One block. */
__global__ void
__launch_bounds__(RELEASE_THREADS)
    release(const __grid_constant__ struct level_set_job job, uint32_t first, uint32_t count)
{
    const uint32_t a_layer = job.tiles_x * job.tiles_y, tiles = count * a_layer;

    if (threadIdx.x < count)
        job.layer[first + threadIdx.x] = 1;
    for (uint32_t i = RELEASE_THREADS + threadIdx.x; i < count; i += RELEASE_THREADS)
        job.layer[first + i] = 1;
    __syncthreads();
    for (uint32_t label = 0; label < job.labels; label++)
        for (uint32_t i = threadIdx.x; i < tiles; i += RELEASE_THREADS) {
            uint32_t tile = label * job.tiles + first * a_layer + i, state = job.state[tile];

            if (state & (STATE_INITIAL | STATE_PENDING) && !(state & STATE_QUEUED)) {
                job.state[tile] = state | STATE_QUEUED;
                level_set_pack_push(job, tile);
            }
        }
}

void
level_set_release(const struct level_set_job *job, uint32_t first, uint32_t count, cudaStream_t stream)
{
    release<<<1, RELEASE_THREADS, 0, stream>>>(*job, first, count);
}
