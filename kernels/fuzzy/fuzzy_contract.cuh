/* fuzzy_contract.cuh - merges a tile's components, round by round, along their chosen edges. */
#ifndef NOCTULE_KERNELS_FUZZY_FUZZY_CONTRACT_CUH
#define NOCTULE_KERNELS_FUZZY_FUZZY_CONTRACT_CUH

#include "kernels/fuzzy/fuzzy_tile.cuh"

static __device__ __forceinline__ uint32_t
look(const uint32_t *best)
{
    return *(volatile const uint32_t *)best;
}

static __device__ __forceinline__ uint32_t
root_at(const struct tile_memory *tile, uint32_t voxel)
{
    return tile->root[tile->label[voxel]];
}

/* The two ends of an edge inside the tile, and their choices so far. */
struct tile_ends {
    uint32_t *best[2];
    uint32_t held[2];
    uint32_t key; /* 0: within one component */
};

/* One branch for both, with occasional weaker offers, is faster than two. */
static __device__ __forceinline__ void
offer_ends(const struct tile_ends &ends)
{
    if (ends.key <= min(ends.held[0], ends.held[1]))
        return;
    atomicMax(ends.best[0], ends.key);
    atomicMax(ends.best[1], ends.key);
}

/* ROOTS: all components are roots. */
template <bool ROOTS>
static __device__ __forceinline__ struct tile_ends
ends_of(struct tile_memory *tile, uint32_t place)
{
    uint32_t voxel = place & 0xfff, other = voxel + (1u << 4 * (place >> 12));
    uint32_t a = ROOTS ? tile->label[voxel] : root_at(tile, voxel);
    uint32_t b = ROOTS ? tile->label[other] : root_at(tile, other);
    struct tile_ends ends = {{&tile->best[a], &tile->best[b]}, {0, 0}, 0};

    ends.held[0] = look(ends.best[0]);
    ends.held[1] = look(ends.best[1]);
    if (a != b)
        ends.key = (uint32_t)(&tile->affinity[0][0])[place] << 16 | TILE_INSIDE | place;
    return ends;
}

/*
 * Offers the thread's edges between components to both ends. A final component has a greater key
 * than its edges inside the tile, so that offers cannot change it. Without branches, since each
 * thread has different edges.
 */
template <bool ROOTS>
static __device__ void
offer_inside(struct tile_memory *tile, struct tile_thread *self)
{
    uint32_t alive = 0;

    for (uint32_t left = self->alive; left != 0;) {
        uint32_t bit = 31 - __clz((int)left), mask = 1u << bit;
        struct tile_ends ends = ends_of<ROOTS>(tile, threadIdx.x + bit * TILE_THREADS);
        uint32_t between = ends.key != 0 ? mask : 0;
        uint32_t waiting = (ends.held[0] & ends.held[1] & TILE_FINAL) != 0 ? between : 0;

        left ^= mask;
        alive |= between ^ waiting;
        self->waiting |= waiting;
        offer_ends(ends);
    }
    self->alive = alive;
    __syncwarp();
}

/* FIRST: voxels are their own roots. */
template <bool FIRST>
static __device__ void
offer_leaving(struct tile_memory *tile, const struct tile_thread *self)
{
#pragma unroll
    for (uint32_t axis = 0; axis < 3; axis++) {
        uint32_t side, voxel = leaving_voxel(axis, threadIdx.x, &side), root;

        if (self->leaving[axis] == 0)
            continue;
        root = FIRST ? voxel : root_at(tile, voxel);
        if (self->leaving[axis] > look(&tile->best[root]))
            atomicMax(&tile->best[root], self->leaving[axis]);
    }
}

static __device__ __forceinline__ bool
chooses(uint32_t key)
{
    return (key & (TILE_INSIDE | TILE_FINAL)) == TILE_INSIDE;
}

/* Hooks voxels in the first round, by the rule of hook. */
static __device__ void
hook_voxels(struct tile_memory *tile, struct tile_thread *self, uint32_t columns)
{
#pragma unroll
    for (uint32_t i = 0; i < TILE_COLUMN && i < columns; i++) {
        uint32_t voxel = threadIdx.x + i * TILE_THREADS, key = tile->best[voxel];
        uint32_t target = voxel;

        self->caps[i / 2] = i % 2 == 0 ? key >> 16 : (key & 0xffff0000) | self->caps[i / 2];
        if (chooses(key)) {
            uint32_t near = key & 0xfff;
            uint32_t other = near == voxel ? voxel + (1u << 4 * (key >> 12 & 3)) : near;

            if (tile->best[other] != key || other < voxel)
                target = other;
        }
        tile->parent[voxel] = (uint16_t)target;
    }
}

/* Hooks every root onto the other end of its chosen edge inside the tile. If both ends chose the same edge, the smaller
 * one stays. Returns whether one of the thread's roots hooked. */
static __device__ bool
hook(struct tile_memory *tile, const struct tile_thread *self)
{
    bool hooked = false;

    for (uint32_t i = 0, root = threadIdx.x; root < self->components; i++, root += TILE_THREADS) {
        uint32_t key = tile->best[root], target = root;

        if ((self->roots >> i & 1) == 0)
            continue;
        if (chooses(key)) {
            uint32_t voxel = key & 0xfff, near = root_at(tile, voxel);
            uint32_t far = root_at(tile, voxel + (1u << 4 * (key >> 12 & 3))), other = near == root ? far : near;

            if (tile->best[other] != key || other < root)
                target = other;
        }
        hooked = hooked || target != root;
        tile->parent[root] = (uint16_t)target;
    }
    return hooked;
}

static __device__ __forceinline__ uint32_t
settled(uint32_t key)
{
    return chooses(key) ? 0 : key | TILE_FINAL;
}

/* Returns the root of a component that may not be a root. */
static __device__ __forceinline__ uint32_t
top_of(const struct tile_memory *tile, uint32_t target)
{
    uint32_t next;

    while ((next = tile->parent[target]) != target)
        target = next;
    return target;
}

/* Finds the new root of each root. Roots that stay reset their choice, or keep it permanently if it
 * was not an edge inside the tile. */
static __device__ void
settle(struct tile_memory *tile, const struct tile_thread *self)
{
    for (uint32_t i = 0, root = threadIdx.x; root < self->components; i++, root += TILE_THREADS) {
        uint32_t target;

        if ((self->roots >> i & 1) == 0)
            continue;
        target = tile->parent[root];
        if (target == root)
            tile->best[root] = settled(tile->best[root]);
        else
            tile->root[root] = (uint16_t)top_of(tile, target);
    }
}

/* Hooked components are no longer roots, and those below them follow. */
static __device__ void
follow(struct tile_memory *tile, struct tile_thread *self)
{
    for (uint32_t i = 0, one = threadIdx.x; one < self->components; i++, one += TILE_THREADS) {
        if ((self->roots >> i & 1) == 0)
            tile->root[one] = tile->root[tile->root[one]];
        else if (tile->parent[one] != one)
            self->roots &= ~(1u << i);
    }
}

static __device__ __forceinline__ void
lower_cap(struct tile_thread *self, uint32_t i, uint32_t cap)
{
    self->caps[i / 2] = __vminu2(self->caps[i / 2], i % 2 == 0 ? cap | 0xffff0000 : cap << 16 | 0xffff);
}

/*
 * Renumbers the roots. All components must have been roots before this round. Components without
 * edges, for example beyond the volume, become one component, the last. FIRST: the components are
 * voxels.
 */
template <bool FIRST>
static __device__ void
renumber(struct tile_memory *tile, struct tile_thread *self, uint32_t columns)
{
    uint32_t kept[TILE_COLUMN], roots = 0, lone = 0, number, total;

#pragma unroll
    for (uint32_t i = 0; i < TILE_COLUMN; i++) {
        uint32_t one = threadIdx.x + i * TILE_THREADS;

        if (one >= self->components || tile->parent[one] != one)
            continue;
        kept[i] = tile->best[one];
        if (FIRST && kept[i] == TILE_FINAL)
            lone |= 1u << i;
        else
            roots |= 1u << i;
    }
    number = block_sum(tile, __popc(roots), &total);
#pragma unroll
    for (uint32_t i = 0; i < TILE_COLUMN; i++) {
        if (FIRST && (lone >> i & 1) != 0)
            tile->parent[threadIdx.x + i * TILE_THREADS] = (uint16_t)total;
        if ((roots >> i & 1) == 0)
            continue;
        tile->parent[threadIdx.x + i * TILE_THREADS] = (uint16_t)number;
        tile->best[number++] = kept[i];
    }
    self->components = FIRST ? min(total + 1, (uint32_t)FUZZY_TILE_VOXELS) : total;
    if (FIRST && threadIdx.x == 0 && total < self->components)
        tile->best[total] = TILE_FINAL;
    __syncthreads();
#pragma unroll
    for (uint32_t i = 0; i < TILE_COLUMN && i < columns; i++) {
        uint32_t voxel = threadIdx.x + i * TILE_THREADS;
        uint32_t label = FIRST ? voxel : tile->label[voxel];

        if (!FIRST)
            lower_cap(self, i, tile->cap[label]);
        tile->label[voxel] = tile->parent[tile->root[label]];
    }
    __syncthreads();
    self->roots = (1u << TILE_COLUMN) - 1;
    for (uint32_t one = threadIdx.x; one < self->components; one += TILE_THREADS) {
        tile->root[one] = (uint16_t)one;
        tile->cap[one] = 65535;
    }
}

/* Merges components until each one's strongest edge leaves the tile. */
static __device__ void
contract(struct tile_memory *tile, struct tile_thread *self, uint32_t columns)
{
    bool numbered = true;

    hook_voxels(tile, self, columns);
    __syncthreads();
    /* As settle: no component is below a root yet. */
#pragma unroll
    for (uint32_t i = 0; i < TILE_COLUMN && i < columns; i++) {
        uint32_t voxel = threadIdx.x + i * TILE_THREADS, target = tile->parent[voxel];

        if (target == voxel)
            tile->best[voxel] = settled(tile->best[voxel]);
        tile->root[voxel] = (uint16_t)top_of(tile, target);
    }
    __syncthreads();
    renumber<true>(tile, self, columns);
    for (;;) {
        bool hooked;

        __syncthreads();
        offer_leaving<false>(tile, self);
        if (numbered)
            offer_inside<true>(tile, self);
        else
            offer_inside<false>(tile, self);
        __syncthreads();
        /* No path into a component is stronger than the edge it chose. */
        for (uint32_t one = threadIdx.x; one < self->components; one += TILE_THREADS)
            tile->cap[one] = (uint16_t)min((uint32_t)tile->cap[one], tile->best[tile->root[one]] >> 16);
        hooked = hook(tile, self);
        hooked = __syncthreads_or(hooked) != 0;
        settle(tile, self);
        __syncthreads();
        if (!hooked)
            return;
        numbered = self->components > TILE_THREADS;
        if (numbered)
            renumber<false>(tile, self, columns);
        else
            follow(tile, self);
    }
}

#endif
