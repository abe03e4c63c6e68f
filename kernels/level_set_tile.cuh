/*
 * level_set_tile.cuh - a tile in a block's hands: how level_set_flood.cu brings one class of R to
 * its fixed point.
 *
 * The class's mask and what is settled of it stand in shared memory as 32-bit halves of rows. Each
 * thread holds 8 of them in registers, in turn along y and along z; the four parts of a line are
 * neighbours in a warp and hand settled bits on from one to the next, so that one sweep goes
 * through the whole tile. Along x one addition fills a whole run.
 */
#ifndef NOCTULE_LEVEL_SET_TILE_CUH
#define NOCTULE_LEVEL_SET_TILE_CUH

#include "level_set_cuda.cuh"

enum {
    THREADS = 256,
    LINE = 8, /* halves of rows that a thread holds */
    PARTS = TILE_ROWS / LINE,
    /* In shared memory: no bank conflicts along y nor along z. */
    ROWS_GAP = 8,    /* after 16 rows */
    SLICES_GAP = 24, /* after LINE slices */
    PITCH = 2 * TILE_ROWS + ROWS_GAP + 2,
    HALVES = TILE_SLICES * PITCH + (TILE_SLICES / LINE - 1) * SLICES_GAP,
    PIECES = TILE_WORDS / 2, /* of 16 bytes a tile: two rows */
};

/* Of a block, in shared memory. */
struct visit {
    __align__(16) uint32_t settled[HALVES]; /* where half_at says */
    __align__(16) uint32_t mask[HALVES];    /* at first the range bits */
    uint32_t tile;
    uint32_t kind;
    uint32_t state;            /* when the visit began */
    uint32_t neighbour[FACES]; /* NOTHING: the volume ends there */
    uint32_t kinds[FACES];
    uint32_t sends;   /* bit 2 * face + class: something new crosses the face; and OPEN */
    uint32_t stopped; /* the flood is given up: when the visit began */
};

/* Of a thread. */
struct visitor {
    struct level_set_place place;
    uint32_t kind;
    bool first;       /* the tile's first visit */
    uint32_t half;    /* 0: columns 0 .. 31 of the tile */
    uint32_t across;  /* the slice of a line along y, the row of one along z */
    uint32_t part;    /* of the line: which LINE halves */
    uint32_t columns; /* along y: those that exist, where rows do */
    int32_t rows;     /* along y: how many of the part exist; may be negative */
    int32_t grown;    /* voxels that came into the region */
    /* Along y, before the visit and as it goes on: */
    uint32_t initial[LINE];
    uint32_t late[LINE]; /* settled later than that */
};

/* Where half a row of the tile stands in shared memory. */
__device__ static __forceinline__ uint32_t
half_at(uint32_t slice, uint32_t row, uint32_t half)
{
    return slice * PITCH + slice / LINE * SLICES_GAP + row * 2 + row / 16 * ROWS_GAP + half;
}

/* Of two rows, one after the other. */
__device__ static __forceinline__ uint32_t
piece_at(uint32_t piece)
{
    return half_at(piece / (TILE_ROWS / 2), piece % (TILE_ROWS / 2) * 2, 0);
}

/* The first half of the thread's line along y. */
__device__ static __forceinline__ uint32_t
along_y_at(const struct visitor &own)
{
    return half_at(own.across, own.part * LINE, own.half);
}

/* Half i of the thread's line along y. */
__device__ static __forceinline__ uint32_t
existing(const struct visitor &own, int i)
{
    return i < own.rows ? own.columns : 0;
}

__device__ static __forceinline__ struct visitor
visitor_of(const struct level_set_job &job, const struct visit *visit)
{
    const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    struct visitor own;

    own.place = level_set_place_of(job, visit->tile);
    own.kind = visit->kind;
    own.first = !(visit->state & STATE_VISITED);
    own.half = lane % 2;
    own.part = lane / 2 % PARTS;
    own.across = lane / (2 * PARTS) + warp * (32 / (2 * PARTS));
    own.columns = (uint32_t)(level_set_columns(job, own.place.x) >> 32 * own.half);
    own.rows = (int32_t)min((int64_t)TILE_ROWS, job.rows - (int64_t)own.place.y * TILE_ROWS) -
               (int32_t)(own.part * LINE);
    if ((int64_t)own.place.z * TILE_SLICES + own.across >= job.slices)
        own.rows = 0;
    own.grown = 0;
    return own;
}

/* Along x: every run of the mask that holds a settled voxel, as far as this half of the row. */
__device__ static __forceinline__ uint32_t
fill_runs(uint32_t settled, uint32_t mask)
{
    const uint32_t turned = __brev(settled), other = __brev(mask);

    return settled | (mask & ~(mask + settled)) | __brev(other & ~(other + turned));
}

/*
 * What comes into each part of a line from the one before. `out`: what leaves a part on its own,
 * `through`: what goes through it. Parts are two lanes apart, the last one first where DOWN.
 */
template <bool DOWN>
__device__ static __forceinline__ uint32_t
hand_on(uint32_t out, uint32_t through, uint32_t part)
{
    const uint32_t rank = DOWN ? PARTS - 1 - part : part;
    uint32_t before;

#pragma unroll
    for (uint32_t step = 1; step < PARTS; step *= 2) {
        uint32_t further = DOWN ? __shfl_down_sync(~0u, through, 2 * step)
                                : __shfl_up_sync(~0u, through, 2 * step);
        before = DOWN ? __shfl_down_sync(~0u, out, 2 * step) : __shfl_up_sync(~0u, out, 2 * step);
        if (rank >= step) {
            out |= through & before;
            through &= further;
        }
    }
    before = DOWN ? __shfl_down_sync(~0u, out, 2) : __shfl_up_sync(~0u, out, 2);
    return rank ? before : 0;
}

__device__ static __forceinline__ void
sweep_up(uint32_t settled[LINE], const uint32_t mask[LINE], uint32_t through, uint32_t part)
{
#pragma unroll
    for (int i = 1; i < LINE; i++)
        settled[i] |= mask[i] & settled[i - 1];
    uint32_t in = hand_on<false>(settled[LINE - 1], through, part);
#pragma unroll
    for (int i = 0; i < LINE; i++) {
        in &= mask[i];
        settled[i] |= in;
    }
}

__device__ static __forceinline__ void
sweep_down(uint32_t settled[LINE], const uint32_t mask[LINE], uint32_t through, uint32_t part)
{
#pragma unroll
    for (int i = LINE - 2; i >= 0; i--)
        settled[i] |= mask[i] & settled[i + 1];
    uint32_t in = hand_on<true>(settled[0], through, part);
#pragma unroll
    for (int i = LINE - 1; i >= 0; i--) {
        in &= mask[i];
        settled[i] |= in;
    }
}

/* Along x, from one half into the other too. */
__device__ static __forceinline__ void
sweep_columns(uint32_t settled[LINE], const uint32_t mask[LINE], uint32_t half)
{
    uint32_t in[LINE], any = 0;

#pragma unroll
    for (int i = 0; i < LINE; i++)
        settled[i] = fill_runs(settled[i], mask[i]);
#pragma unroll
    for (int i = 0; i < LINE; i++) {
        uint32_t other = __shfl_xor_sync(~0u, settled[i], 1);

        in[i] = (half ? other >> 31 : other << 31) & mask[i] & ~settled[i];
        any |= in[i];
    }
    if (!__any_sync(~0u, any != 0))
        return;
#pragma unroll
    for (int i = 0; i < LINE; i++)
        settled[i] = fill_runs(settled[i] | in[i], mask[i]);
}

/* Writes a line, `step` words from one half to the next. Returns whether it has changed. */
__device__ static __forceinline__ bool
put_line(uint32_t *line, int step, const uint32_t now[LINE])
{
    uint32_t changed = 0;

#pragma unroll
    for (int i = 0; i < LINE; i++)
        changed |= now[i] ^ line[i * step];
#pragma unroll
    for (int i = 0; i < LINE; i++)
        line[i * step] = now[i];
    return changed != 0;
}

__device__ static __forceinline__ uint32_t
all_of(const uint32_t mask[LINE])
{
    uint32_t all = ~0u;

#pragma unroll
    for (int i = 0; i < LINE; i++)
        all &= mask[i];
    return all;
}

/*
 * To the fixed point of the tile. `settled` is this thread's line along y, which is in shared
 * memory as well; on return both are final.
 */
__device__ static __forceinline__ void
settle(const struct visitor &own, struct visit *visit, const uint32_t mask[LINE],
       uint32_t settled[LINE])
{
    const uint32_t z_at = half_at(own.part * LINE, own.across, own.half);
    const uint32_t through = all_of(mask);
    uint32_t *along_y = &visit->settled[along_y_at(own)], *along_z = &visit->settled[z_at];

    for (;;) {
        sweep_up(settled, mask, through, own.part);
        sweep_columns(settled, mask, own.half);
        sweep_down(settled, mask, through, own.part);
        bool changed = put_line(along_y, 2, settled);
        __syncthreads();

        uint32_t line[LINE], across[LINE];
#pragma unroll
        for (int i = 0; i < LINE; i++) {
            line[i] = along_z[i * PITCH];
            across[i] = visit->mask[z_at + (uint32_t)i * PITCH];
        }
        sweep_up(line, across, all_of(across), own.part);
        sweep_down(line, across, all_of(across), own.part);
        changed |= put_line(along_z, PITCH, line);
        if (!__syncthreads_or(changed))
            return;
#pragma unroll
        for (int i = 0; i < LINE; i++)
            settled[i] = along_y[i * 2];
    }
}

#endif
