/* level_set_threshold.cuh - loads the range bits of a tile into a block's memory. A lazy flood
 * makes them from voxels at the first visit. */
#ifndef NOCTULE_KERNELS_LEVEL_SET_LEVEL_SET_THRESHOLD_CUH
#define NOCTULE_KERNELS_LEVEL_SET_LEVEL_SET_THRESHOLD_CUH

#include "kernels/cuda/ptx.cuh"
#include "kernels/level_set/level_set_tile.cuh"

enum {
    GROUP = 8,                  /* threads that threshold a row; all rows of a slice at once */
    BATCH = 8,                  /* slices thresholded at once, while others load */
    SHALLOW = 2,                /* batches in flight */
    DEEP = TILE_SLICES / BATCH, /* batches in flight if all fit */
};

/* Voxels of a tile to threshold, separate per thread. A row that is not aligned to a piece has a
 * ninth piece. A warp has as many of these per batch as lanes. */
template <typename Value> struct batch {
    using eight = level_set_eight<Value>;

    eight own[BATCH][THREADS];
    eight ninth[THREADS];
};

template <typename Value> struct pieces {
    struct level_set_pass passes[TILE_SLICES];
    struct batch<Value> batches[DEEP]; /* or fewer, used in rotation */
};

/* Returns the bytes for `depth` batches in flight. */
template <typename Value>
__host__ __device__ constexpr size_t
pieces_size(uint32_t depth)
{
    return sizeof(struct pieces<Value>) - (DEEP - depth) * sizeof(struct batch<Value>);
}

/* A thread's part of a tile: its eighth of a row and, in each batch, one ninth piece of a row.
 * Pieces of eight values have 32-bit numbers. */
struct row_part {
    int64_t voxel;        /* start of the row in the tile's first slice */
    int64_t ninth_voxel;  /* start of the ninth piece's row */
    int64_t slice;        /* voxels from slice to slice */
    uint32_t end;         /* of the volume, in pieces */
    int32_t slices;       /* number that exist; 0 if the row does not */
    int32_t ninth_slice;  /* in the batch */
    int32_t ninth_slices; /* as `slices` */
    bool aligned;         /* all rows begin with a piece: no ninth pieces */
};

static_assert(BATCH * (32 / GROUP) == 32, "a ninth piece a lane");

__device__ static __forceinline__ struct row_part
row_part_of(const struct level_set_job &job, const struct visitor &own)
{
    const int64_t first_y = (int64_t)own.place.y * TILE_ROWS;
    const int64_t z = (int64_t)own.place.z * TILE_SLICES;
    const int64_t first = z * job.rows * job.columns + (int64_t)own.place.x * TILE_COLUMNS;
    const int64_t y = first_y + threadIdx.x / GROUP;
    const int64_t ninth_y = first_y + threadIdx.x / 32 * (32 / GROUP) + threadIdx.x % (32 / GROUP);
    const int32_t slices = (int32_t)min((int64_t)TILE_SLICES, job.slices - z);
    struct row_part part;

    part.slice = job.rows * job.columns;
    part.end = (uint32_t)((part.slice * job.slices + 7) >> 3);
    part.voxel = first + y * job.columns;
    part.slices = y < job.rows ? slices : 0;
    part.ninth_voxel = first + ninth_y * job.columns;
    part.ninth_slice = (int32_t)(threadIdx.x % 32 / (32 / GROUP));
    part.ninth_slices = ninth_y < job.rows ? slices : 0;
    part.aligned = job.columns % 8 == 0;
    return part;
}

/* Loads BATCH slices from `slice` on. */
template <typename Value>
__device__ static __forceinline__ void
send_for_slices(const struct level_set_job &job, const struct row_part &part, struct batch<Value> *batch, int slice)
{
    using eight = level_set_eight<Value>;
    const eight *voxels = (const eight *)job.voxels;
    int64_t voxel = part.voxel + slice * part.slice;

#pragma unroll
    for (int i = 0; i < BATCH; i++, voxel += part.slice) {
        const uint32_t piece = (uint32_t)(voxel >> 3) + threadIdx.x % GROUP;
        const bool exists = slice + i < part.slices && piece < part.end;

        ptx_copy<sizeof(eight)>(&batch->own[i][threadIdx.x], exists ? voxels + piece : voxels, exists);
    }
    if (!part.aligned) {
        const int of = slice + part.ninth_slice;
        const uint32_t piece = (uint32_t)((part.ninth_voxel + of * part.slice) >> 3) + GROUP;
        const bool exists = of < part.ninth_slices && piece < part.end;

        ptx_copy<sizeof(eight)>(&batch->ninth[threadIdx.x], exists ? voxels + piece : voxels, exists);
    }
    ptx_copies_end_group();
}

/* Thresholds the same slices after loading. `pass` returns the values in range of each. */
template <typename Value, typename Pass>
__device__ static __forceinline__ void
threshold_slices(const struct row_part &part, const struct batch<Value> *batch, const Pass &pass, uint32_t *range,
                 int slice)
{
    const uint32_t lane = threadIdx.x % GROUP, row = threadIdx.x / GROUP;
    uint32_t bits[BATCH];

#pragma unroll
    for (int i = 0; i < BATCH; i++)
        bits[i] = level_set_in_range<Value>(batch->own[i][threadIdx.x], pass(slice + i));
    if (!part.aligned) {
        const uint32_t ninth = level_set_in_range<Value>(batch->ninth[threadIdx.x], pass(slice + part.ninth_slice));
        const uint32_t step = (uint32_t)part.slice;
        uint32_t shift = (uint32_t)part.voxel + (uint32_t)slice * step;

#pragma unroll
        for (int i = 0; i < BATCH; i++, shift += step) {
            uint32_t next = __shfl_down_sync(~0u, bits[i], 1, GROUP);
            uint32_t last = __shfl_sync(~0u, ninth, i * (32 / GROUP) + (int)(row % (32 / GROUP)));

            bits[i] = (bits[i] | (lane == GROUP - 1 ? last : next) << 8) >> (shift & 7);
        }
    }
#pragma unroll
    for (int i = 0; i < BATCH; i++)
        ((uint8_t *)&range[half_at((uint32_t)(slice + i), row, 0)])[lane] = (uint8_t)bits[i];
}

/*
 * Lazily makes the range bits of the tile, for the visit and `range`. Eight threads per row read
 * eight values each at aligned addresses. The row begins within the first eight. `depth` batches of
 * slices load at once.
 */
template <typename Value>
__device__ static void
threshold(const struct level_set_job &job, const struct visitor &own, struct visit *visit, struct pieces<Value> *pieces,
          uint32_t depth)
{
    const struct row_part part = row_part_of(job, own);
    const int64_t z = (int64_t)own.place.z * TILE_SLICES;
    const struct level_set_pass *passes = job.passes + own.place.label * job.slices + z;
    const uint32_t own_slice = threadIdx.x % TILE_SLICES;
    uint4 *range = (uint4 *)(job.range + (size_t)visit->tile * TILE_WORDS);

    for (uint32_t i = 0; i < depth; i++)
        send_for_slices(job, part, &pieces->batches[i], (int)i * BATCH);
    const struct level_set_pass pass = passes[min((int64_t)own_slice, job.slices - 1 - z)];
    struct level_set_pass all = passes[0];
    if (threadIdx.x < TILE_SLICES)
        pieces->passes[own_slice] = pass;
    const bool simple = __syncthreads_and(pass.intervals == 1 && all.intervals == 1 &&
                                          pass.minus_low[0] == all.minus_low[0] && pass.span[0] == all.span[0]);
    all.intervals = 1;
#pragma unroll 1
    for (int slice = 0; slice < TILE_SLICES; slice += BATCH) {
        struct batch<Value> *batch = &pieces->batches[(uint32_t)(slice / BATCH) % depth];

        if (depth == SHALLOW)
            ptx_copies_wait<SHALLOW - 1>();
        else
            ptx_copies_wait<DEEP - 1>();
        if (simple)
            threshold_slices(
                part, batch, [&](int) { return all; }, visit->range, slice);
        else
            threshold_slices(
                part, batch, [&](int of) { return pieces->passes[of]; }, visit->range, slice);
        if (slice + (int)depth * BATCH < TILE_SLICES)
            send_for_slices(job, part, batch, slice + (int)depth * BATCH);
        else
            ptx_copies_end_group();
    }
    __syncthreads();
    for (uint32_t piece = threadIdx.x; piece < PIECES; piece += THREADS) {
        const uint32_t at = half_at(piece / (TILE_ROWS / 2), piece % (TILE_ROWS / 2) * 2, 0);
        const uint2 *rows = (const uint2 *)&visit->range[at];

        range[piece] = make_uint4(rows[0].x, rows[0].y, rows[1].x, rows[1].y);
    }
}

/* Begins to copy the range bits of the tile to the visit's mask. */
__device__ static __forceinline__ void
send_for_range(const struct level_set_job &job, struct visit *visit)
{
    const uint64_t *range = job.range + (size_t)visit->tile * TILE_WORDS;

#pragma unroll
    for (uint32_t i = 0; i < TILE_WORDS / THREADS; i++) {
        uint32_t word = threadIdx.x + i * THREADS;

        ptx_copy<8>(&visit->range[half_at(word / TILE_ROWS, word % TILE_ROWS, 0)], &range[word], true);
    }
    ptx_copies_end_group();
}

#endif
