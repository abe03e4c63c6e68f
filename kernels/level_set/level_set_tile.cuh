/*
 * level_set_tile.cuh - brings a tile to its fixed point within a block, for level_set_flood.cu.
 *
 * Both classes of R settle at once: a settled bit spreads to neighbours with the same bit of R
 * ("linked"). Bits of R and settled bits are 32-bit half rows in shared memory. Each thread has 8
 * of them in registers, alternately along y and z. The four parts of a line are neighbours in a
 * warp and pass settled bits to the next, so that one sweep goes through the whole tile. Along x,
 * one addition fills all runs of linked voxels.
 */
#ifndef NOCTULE_KERNELS_LEVEL_SET_LEVEL_SET_TILE_CUH
#define NOCTULE_KERNELS_LEVEL_SET_LEVEL_SET_TILE_CUH

#include "kernels/level_set/level_set_cuda.cuh"

enum {
    THREADS = 256,
    LINE = 8, /* half rows per thread */
    PARTS = TILE_ROWS / LINE,
    /* Layout in shared memory without bank conflicts along y or z. */
    ROWS_GAP = 8,    /* after 16 rows */
    SLICES_GAP = 24, /* after LINE slices */
    PITCH = 2 * TILE_ROWS + ROWS_GAP + 2,
    HALVES = TILE_SLICES * PITCH + (TILE_SLICES / LINE - 1) * SLICES_GAP,
    PIECES = TILE_WORDS / 2, /* 16-byte pieces per tile: two rows each */
};

/* A block's visit, in shared memory. */
struct visit {
    __align__(16) uint32_t range[HALVES];   /* at half_at; undefined beyond the volume */
    __align__(16) uint32_t settled[HALVES]; /* initially the region, if that is read */
    uint32_t tile;
    uint32_t kind;
    uint32_t state; /* at the beginning of the visit */
    uint32_t neighbour[FACES];
    uint32_t wanted; /* bit 2 * face + class: the neighbour there needs the bits */
    uint32_t traits;
    uint32_t sends;   /* bit 2 * face + class: new bits cross the face */
    uint32_t stopped; /* the flood was stopped before the visit began */
};

/* Traits of the tile's voxels before they settle. */
enum {
    TRAIT_OUT = 1, /* out of range */
    TRAIT_IN = 2,
    TRAIT_SETTLED = 4,
    TRAIT_OPEN = 8,
    TRAIT_ARRIVED = 16, /* settled by a neighbour's bits */
};

/* A thread's state. */
struct visitor {
    struct level_set_place place;
    uint32_t half;        /* 0: columns 0 .. 31 of the tile */
    uint32_t across;      /* slice of a line along y, row of a line along z */
    uint32_t part;        /* index of the line's part of LINE halves */
    uint32_t columns;     /* along y: columns that exist, where rows do */
    int32_t rows;         /* along y: rows of the part that exist; may be negative */
    int32_t slices;       /* along z: slices that exist; may be negative */
    int32_t grown;        /* voxels added to the region */
    uint32_t range[LINE]; /* along y */
};

/* Returns the place of half a row in shared memory. */
__device__ static __forceinline__ uint32_t
half_at(uint32_t slice, uint32_t row, uint32_t half)
{
    return slice * PITCH + slice / LINE * SLICES_GAP + row * 2 + row / 16 * ROWS_GAP + half;
}

/* Returns the first half of the thread's line along y. */
__device__ static __forceinline__ uint32_t
along_y_at(const struct visitor &own)
{
    return half_at(own.across, own.part * LINE, own.half);
}

/* Returns the voxels that exist in half i of the thread's line along y. */
__device__ static __forceinline__ uint32_t
existing(const struct visitor &own, int i)
{
    return i < own.rows ? own.columns : 0;
}

__device__ static __forceinline__ struct visitor
visitor_of(const struct level_set_job &job, const struct level_set_place &place)
{
    const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    struct visitor own;

    own.place = place;
    own.half = lane % 2;
    own.part = lane / 2 % PARTS;
    own.across = lane / (2 * PARTS) + warp * (32 / (2 * PARTS));
    own.columns = (uint32_t)(level_set_columns(job, own.place.x) >> 32 * own.half);
    own.rows =
        (int32_t)min((int64_t)TILE_ROWS, job.rows - (int64_t)own.place.y * TILE_ROWS) - (int32_t)(own.part * LINE);
    own.slices = (int32_t)min((int64_t)TILE_SLICES, job.slices - (int64_t)own.place.z * TILE_SLICES);
    if ((int32_t)own.across >= own.slices)
        own.rows = 0;
    own.slices -= (int32_t)(own.part * LINE);
    own.grown = 0;
    return own;
}

/* Fills upwards along x: each run of links that begins at a settled voxel. */
__device__ static __forceinline__ uint32_t
follow_links(uint32_t settled, uint32_t links)
{
    const uint32_t next = settled << 1 & links;

    return settled | next | (links & ~(links + next));
}

/* Fills along x in this half of the row. Bit i of `links`: voxel i is linked with voxel i - 1. */
__device__ static __forceinline__ uint32_t
fill_runs(uint32_t settled, uint32_t links)
{
    return follow_links(settled, links) | __brev(follow_links(__brev(settled), __brev(links >> 1)));
}

/*
 * Returns the bits that enter each part of a line from the previous one. `out`: bits that leave a
 * part on its own. `through`: bits that pass through it, from the last half of the previous part to
 * its own last. Parts are two lanes apart, in reverse order if DOWN.
 */
template <bool DOWN>
__device__ static __forceinline__ uint32_t
hand_on(uint32_t out, uint32_t through, uint32_t part)
{
    const uint32_t rank = DOWN ? PARTS - 1 - part : part;
    uint32_t before;

#pragma unroll
    for (uint32_t step = 1; step < PARTS; step *= 2) {
        uint32_t further = DOWN ? __shfl_down_sync(~0u, through, 2 * step) : __shfl_up_sync(~0u, through, 2 * step);
        before = DOWN ? __shfl_down_sync(~0u, out, 2 * step) : __shfl_up_sync(~0u, out, 2 * step);
        if (rank >= step) {
            out |= through & before;
            through &= further;
        }
    }
    before = DOWN ? __shfl_down_sync(~0u, out, 2) : __shfl_up_sync(~0u, out, 2);
    return rank ? before : 0;
}

/* The links of a line: half i with the previous one, which may be the last of the previous part;
 * and the line's last half with the next one. */
struct links {
    uint32_t before[LINE];
    uint32_t after;
};

__device__ static __forceinline__ struct links
links_of(const uint32_t range[LINE])
{
    const uint32_t last = __shfl_up_sync(~0u, range[LINE - 1], 2);
    struct links links;

    links.before[0] = ~(range[0] ^ last);
#pragma unroll
    for (int i = 1; i < LINE; i++)
        links.before[i] = ~(range[i] ^ range[i - 1]);
    return links;
}

__device__ static __forceinline__ void
sweep_up(uint32_t settled[LINE], const struct links &links, uint32_t part)
{
    uint32_t through = links.before[0];

#pragma unroll
    for (int i = 1; i < LINE; i++) {
        settled[i] |= links.before[i] & settled[i - 1];
        through &= links.before[i];
    }
    uint32_t in = hand_on<false>(settled[LINE - 1], through, part);
#pragma unroll
    for (int i = 0; i < LINE; i++) {
        in &= links.before[i];
        settled[i] |= in;
    }
}

__device__ static __forceinline__ void
sweep_down(uint32_t settled[LINE], const struct links &links, uint32_t part)
{
    uint32_t through = links.after;

#pragma unroll
    for (int i = LINE - 1; i > 0; i--) {
        settled[i - 1] |= links.before[i] & settled[i];
        through &= links.before[i];
    }
    uint32_t in = hand_on<true>(settled[0], through, part) & links.after;
#pragma unroll
    for (int i = LINE - 1; i > 0; i--) {
        settled[i] |= in;
        in &= links.before[i];
    }
    settled[0] |= in;
}

/* Returns as bit i the bit of half i where this half of the tile meets the other. */
__device__ static __forceinline__ uint32_t
inner_edge(const uint32_t line[LINE], uint32_t half)
{
    uint32_t edge = 0;

#pragma unroll
    for (int i = 0; i < LINE; i++)
        edge |= (half ? line[i] & 1 : line[i] >> 31) << i;
    return edge;
}

/* Sweeps along x, including from one half to the other. `joined`: inner_edge of the links between
 * them. */
__device__ static __forceinline__ void
sweep_columns(const struct visitor &own, uint32_t joined, uint32_t settled[LINE])
{
    uint32_t links[LINE];

#pragma unroll
    for (int i = 0; i < LINE; i++) {
        links[i] = ~(own.range[i] ^ own.range[i] << 1) & existing(own, i) & ~1u;
        settled[i] = fill_runs(settled[i], links[i]);
    }
    const uint32_t edge = inner_edge(settled, own.half);
    const uint32_t in = __shfl_xor_sync(~0u, edge, 1) & ~edge & joined;

    if (!__any_sync(~0u, in != 0))
        return;
#pragma unroll
    for (int i = 0; i < LINE; i++)
        settled[i] = fill_runs(settled[i] | (in >> i & 1) << (own.half ? 0 : 31), links[i]);
}

/* Returns whether the line has every voxel that exists. */
__device__ static __forceinline__ bool
all_exist(const struct visitor &own, const uint32_t line[LINE])
{
    uint32_t missing = 0;

#pragma unroll
    for (int i = 0; i < LINE; i++)
        missing |= existing(own, i) & ~line[i];
    return missing == 0;
}

/* Settles the tile to its fixed point. `settled` is this thread's line along y, also in shared
 * memory; both are final on return. */
__device__ static __forceinline__ void
settle(const struct visitor &own, struct visit *visit, uint32_t settled[LINE])
{
    const uint32_t z_at = half_at(own.part * LINE, own.across, own.half);
    uint32_t *along_y = &visit->settled[along_y_at(own)], *along_z = &visit->settled[z_at];
    struct links along = links_of(own.range);
    const uint32_t edge = inner_edge(own.range, own.half);
    uint32_t joined = ~(edge ^ __shfl_xor_sync(~0u, edge, 1));

    if (!(own.columns >> (own.half ? 0 : 31) & 1))
        joined = 0;
#pragma unroll
    for (int i = 0; i < LINE; i++)
        along.before[i] &= existing(own, i);
    along.after = __shfl_down_sync(~0u, along.before[0], 2);
    for (;;) {
        uint32_t line[LINE], across[LINE];
        bool changed = false;

        sweep_up(settled, along, own.part);
        sweep_columns(own, joined, settled);
        sweep_down(settled, along, own.part);
#pragma unroll
        for (int i = 0; i < LINE; i++) {
            changed |= settled[i] != along_y[i * 2];
            along_y[i * 2] = settled[i];
        }
        if (!__syncthreads_or(!all_exist(own, settled)))
            return;
#pragma unroll
        for (int i = 0; i < LINE; i++) {
            line[i] = along_z[i * PITCH];
            across[i] = visit->range[z_at + (uint32_t)i * PITCH];
        }
        struct links links = links_of(across);
#pragma unroll
        for (int i = 0; i < LINE; i++)
            links.before[i] = i < own.slices ? links.before[i] : 0;
        links.after = __shfl_down_sync(~0u, links.before[0], 2);
        sweep_up(line, links, own.part);
        sweep_down(line, links, own.part);
#pragma unroll
        for (int i = 0; i < LINE; i++) {
            changed |= line[i] != along_z[i * PITCH];
            along_z[i * PITCH] = line[i];
        }
        if (!__syncthreads_or(changed))
            break;
#pragma unroll
        for (int i = 0; i < LINE; i++)
            settled[i] = along_y[i * 2];
    }
#pragma unroll
    for (int i = 0; i < LINE; i++)
        settled[i] = along_y[i * 2];
}

#endif
