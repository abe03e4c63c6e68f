/*
 * level_set_threshold.cuh - the range bits of a tile on their way into a block's hands: made from
 * voxels at the first visit of a lazy flood, else loaded.
 */
#ifndef NOCTULE_LEVEL_SET_THRESHOLD_CUH
#define NOCTULE_LEVEL_SET_THRESHOLD_CUH

#include "level_set_tile.cuh"

enum {
    GROUP = 8, /* threads that threshold a row; all rows of a slice at once */
    BATCH = 8, /* slices that are thresholded at once, while as many are on their way */
};

/* BYTES from the device's memory to shared memory past the registers; zeros unless it exists. */
template <int BYTES>
__device__ static __forceinline__ void
send_for(void *to, const void *from, bool exists)
{
    uint32_t address = (uint32_t)__cvta_generic_to_shared(to);

    if (BYTES == 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(from),
                     "r"(exists ? 16 : 0)
                     : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"(address), "l"(from),
                     "r"(exists ? 8 : 0)
                     : "memory");
}

/* Ends a group of what the thread has sent for. */
__device__ static __forceinline__ void
end_group(void)
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

/* Until all groups of the thread are there but the last `PENDING`. */
template <int PENDING>
__device__ static __forceinline__ void
wait_for_groups(void)
{
    asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
}

/*
 * Where the voxels of a tile wait to be thresholded: each thread's own. A row that does not begin
 * with a piece ends within a ninth: a warp has as many of these in a batch as lanes.
 */
template <typename Value> struct pieces {
    using eight = typename level_set_eight<Value>::type;

    eight own[2][BATCH][THREADS];
    eight ninth[2][THREADS];
    struct level_set_pass passes[TILE_SLICES];
};

/* Of a tile, for one thread: its eighth of a row and, in each batch, one ninth piece of a row. */
struct row_part {
    int64_t voxel, slice; /* the row's first in the tile's first slice; from slice to slice */
    int64_t end;          /* of the volume, in pieces */
    int32_t slices;       /* that exist; 0 where the row does not */
    int64_t ninth_voxel;  /* as `voxel`, of the ninth piece's row */
    int32_t ninth_slice;  /* in the batch */
    int32_t ninth_slices; /* as `slices` */
    bool aligned;         /* all rows begin with a piece: there is no ninth */
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
    part.end = (part.slice * job.slices + 7) / 8;
    part.voxel = first + y * job.columns;
    part.slices = y < job.rows ? slices : 0;
    part.ninth_voxel = first + ninth_y * job.columns;
    part.ninth_slice = (int32_t)(threadIdx.x % 32 / (32 / GROUP));
    part.ninth_slices = ninth_y < job.rows ? slices : 0;
    part.aligned = job.columns % 8 == 0;
    return part;
}

/* BATCH slices from `slice` on. */
template <typename Value>
__device__ static __forceinline__ void
send_for_slices(const struct level_set_job &job, const struct row_part &part,
                struct pieces<Value> *pieces, int slice)
{
    using eight = typename level_set_eight<Value>::type;
    const eight *voxels = (const eight *)job.voxels;
    const int batch = slice / BATCH % 2;

#pragma unroll
    for (int i = 0; i < BATCH; i++) {
        const int64_t piece = (part.voxel + (slice + i) * part.slice) / 8 + threadIdx.x % GROUP;
        const bool exists = slice + i < part.slices && piece < part.end;

        send_for<sizeof(eight)>(&pieces->own[batch][i][threadIdx.x],
                                exists ? voxels + piece : voxels, exists);
    }
    if (!part.aligned) {
        const int of = slice + part.ninth_slice;
        const int64_t piece = (part.ninth_voxel + of * part.slice) / 8 + GROUP;
        const bool exists = of < part.ninth_slices && piece < part.end;

        send_for<sizeof(eight)>(&pieces->ninth[batch][threadIdx.x],
                                exists ? voxels + piece : voxels, exists);
    }
    end_group();
}

/* The same slices, which are there. */
template <typename Value, bool SINGLE>
__device__ static __forceinline__ uint32_t
threshold_piece(const typename level_set_eight<Value>::type &eight, struct level_set_pass pass)
{
    if (SINGLE)
        pass.intervals = 1; /* without a branch: slices are worked on side by side */
    return level_set_in_range<Value>(eight, pass);
}

template <typename Value, bool SINGLE>
__device__ static __forceinline__ void
threshold_slices(const struct row_part &part, const struct pieces<Value> *pieces, uint32_t *mask,
                 int slice)
{
    const uint32_t lane = threadIdx.x % GROUP, row = threadIdx.x / GROUP;
    const int batch = slice / BATCH % 2;
    uint32_t bits[BATCH];

#pragma unroll
    for (int i = 0; i < BATCH; i++)
        bits[i] = threshold_piece<Value, SINGLE>(pieces->own[batch][i][threadIdx.x],
                                                 pieces->passes[slice + i]);
    if (!part.aligned) {
        const uint32_t ninth = threshold_piece<Value, SINGLE>(
            pieces->ninth[batch][threadIdx.x], pieces->passes[slice + part.ninth_slice]);

#pragma unroll
        for (int i = 0; i < BATCH; i++) {
            const uint32_t shift = (uint32_t)(part.voxel + (slice + i) * part.slice) & 7;
            uint32_t next = __shfl_down_sync(~0u, bits[i], 1, GROUP);
            uint32_t last = __shfl_sync(~0u, ninth, i * (32 / GROUP) + (int)(row % (32 / GROUP)));

            bits[i] = (bits[i] | (lane == GROUP - 1 ? last : next) << 8) >> shift;
        }
    }
#pragma unroll
    for (int i = 0; i < BATCH; i++)
        ((uint8_t *)&mask[half_at((uint32_t)(slice + i), row, 0)])[lane] = (uint8_t)bits[i];
}

/*
 * Lazily: the range bits of the tile, into the visit's mask and `range`. Eight threads a row, eight
 * values each at aligned addresses; the row begins within the first eight.
 */
template <typename Value>
__device__ static void
threshold(const struct level_set_job &job, const struct visitor &own, struct visit *visit,
          struct pieces<Value> *pieces)
{
    const struct row_part part = row_part_of(job, own);
    const int64_t z = (int64_t)own.place.z * TILE_SLICES;
    const struct level_set_pass *passes = job.passes + own.place.label * job.slices + z;
    uint4 *range = (uint4 *)(job.range + (size_t)visit->tile * TILE_WORDS);

    send_for_slices(job, part, pieces, 0);
    send_for_slices(job, part, pieces, BATCH);
    const uint32_t own_slice = threadIdx.x % TILE_SLICES;
    const struct level_set_pass pass = passes[min((int64_t)own_slice, job.slices - 1 - z)];
    if (threadIdx.x < TILE_SLICES)
        pieces->passes[own_slice] = pass;
    const bool single = __syncthreads_and(pass.intervals == 1);
#pragma unroll 1
    for (int slice = 0; slice < TILE_SLICES; slice += BATCH) {
        wait_for_groups<1>();
        if (single)
            threshold_slices<Value, true>(part, pieces, visit->range, slice);
        else
            threshold_slices<Value, false>(part, pieces, visit->range, slice);
        if (slice + 2 * BATCH < TILE_SLICES)
            send_for_slices(job, part, pieces, slice + 2 * BATCH);
        else
            end_group();
    }
    __syncthreads();
    for (uint32_t piece = threadIdx.x; piece < PIECES; piece += THREADS) {
        const uint2 *rows = (const uint2 *)&visit->range[piece_at(piece)];

        range[piece] = make_uint4(rows[0].x, rows[0].y, rows[1].x, rows[1].y);
    }
}

/* The range bits of the tile are on their way into the visit's mask. */
__device__ static __forceinline__ void
send_for_range(const struct level_set_job &job, struct visit *visit)
{
    const uint64_t *range = job.range + (size_t)visit->tile * TILE_WORDS;

#pragma unroll
    for (uint32_t i = 0; i < TILE_WORDS / THREADS; i++) {
        uint32_t word = threadIdx.x + i * THREADS;

        send_for<8>(&visit->range[half_at(word / TILE_ROWS, word % TILE_ROWS, 0)], &range[word],
                    true);
    }
    end_group();
}

#endif
