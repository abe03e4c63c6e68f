/*
 * fuzzy_tile.cuh - the contraction of one tile in shared memory: see fuzzy_scene.cuh.
 *
 * A key is affinity << 16 | place: of an edge inside the tile TILE_INSIDE | axis << 12 | the nearer
 * voxel; of an edge that leaves it axis << 9 | its place on the two faces across that axis, which
 * grows with its place in the volume. So of two keys the greater is the same one seen from either
 * end. TILE_FINAL marks a component that chooses no more.
 */
#ifndef NOCTULE_FUZZY_TILE_CUH
#define NOCTULE_FUZZY_TILE_CUH

#include "fuzzy_scene.cuh"

#define TILE_THREADS 512
#define TILE_COLUMN  8 /* voxels of a thread, along z */
#define TILE_INSIDE  0x8000u
#define TILE_FINAL   0x4000u
#define TILE_PLACE   0x3fffu
#define TILE_SEED    0xffffffffu
#define TILE_NONE    0xffffu /* component: no edges, the scene is 0 */
#define TILE_SEEDED  0xfffeu /* component: holds a seed */

struct tile_memory {
    uint32_t best[FUZZY_TILE_VOXELS]; /* of a component, at its root; before: the voxels' values */
    uint16_t affinity[3][FUZZY_TILE_VOXELS];
    uint16_t label[FUZZY_TILE_VOXELS];  /* the root of a voxel's component */
    uint16_t parent[FUZZY_TILE_VOXELS]; /* of roots */

    union {
        uint32_t table[FUZZY_SMALL_TABLE];
        uint16_t rank[FUZZY_TILE_VOXELS];
    };

    uint32_t warps[TILE_THREADS / 32];
    uint32_t base;
};

struct contract_arguments {
    const void *voxels;
    struct fuzzy_grid grid;
    struct fuzzy_lookup lookup;
    struct fuzzy_scene_memory memory;
};

/* What a thread keeps: its voxels are column + (i << 8). */
struct tile_thread {
    uint32_t column;
    uint32_t roots;      /* which of them are roots, one bit each */
    uint32_t alive;      /* edges between components, bit axis * 8 + i */
    uint32_t waiting;    /* the same, both ends final */
    uint32_t leaving[3]; /* keys of its edges that leave the tile, one an axis; 0: none */
    uint32_t cap[TILE_COLUMN];
};

static __device__ __noinline__ uint32_t
exact_affinity(const struct fuzzy_lookup &lookup, int32_t a, int32_t b)
{
    int32_t sum = a + b, difference = abs(a - b);
    double scaled;

    if (sum < 0 || sum > 2 * lookup.span || difference > lookup.span)
        return 0;
    scaled = __dmul_rn(65535.0, __dadd_rn(lookup.first[sum], lookup.second[difference]));
    return scaled >= 65535.0 ? 65535u : (uint32_t)scaled;
}

static __device__ __forceinline__ uint32_t
affinity_of(const struct fuzzy_lookup &lookup, const uint32_t *table, int32_t a, int32_t b)
{
    uint32_t sum = min((uint32_t)(a + b - lookup.sum_low), lookup.sums);
    uint32_t difference = min((uint32_t)abs(a - b), lookup.differences);
    uint32_t fixed = table[sum] + table[lookup.sums + 1 + difference];

    uint32_t affinity = fixed >> 16;

    if (((fixed + 2) & 0xffff) <= 2 && fixed != 0)
        affinity = exact_affinity(lookup, a, b);
    return affinity > lookup.above ? affinity | lookup.set : 0;
}

/* The voxel inside the tile of the edge that leaves it across `axis` at `place` (0 .. 511), and on
 * which side: see tile_thread. */
static __device__ __forceinline__ uint32_t
leaving_voxel(uint32_t axis, uint32_t place, uint32_t *side)
{
    if (axis == 0) { /* z, y, side */
        *side = place & 1;
        return (place >> 5) << 8 | ((place >> 1) & 15) << 4 | *side * 15;
    }
    if (axis == 1) { /* z, side, x */
        *side = (place >> 4) & 1;
        return (place >> 5) << 8 | *side * 15 << 4 | (place & 15);
    }
    *side = place >> 8; /* side, y, x */
    return *side * 15 << 8 | (place & 255);
}

/* The same place counted on the far face alone. */
static __device__ __forceinline__ uint32_t
far_place(uint32_t axis, uint32_t place)
{
    if (axis == 0)
        return place >> 1;
    if (axis == 1)
        return (place >> 5) << 4 | (place & 15);
    return place & 255;
}

struct tile_origin {
    uint32_t tile;
    int64_t at[3];
};

static __device__ __forceinline__ struct tile_origin
tile_origin_of(const struct fuzzy_grid &grid, uint32_t tile)
{
    struct tile_origin origin;

    origin.tile = tile;
    origin.at[0] = (int64_t)(tile % grid.tiles[0]) * FUZZY_TILE_SIDE;
    origin.at[1] = (int64_t)(tile / grid.tiles[0] % grid.tiles[1]) * FUZZY_TILE_SIDE;
    origin.at[2] = (int64_t)(tile / grid.tiles[0] / grid.tiles[1]) * FUZZY_TILE_SIDE;
    return origin;
}

static __device__ __forceinline__ bool
is_padding(const struct fuzzy_lookup &lookup, int32_t stored)
{
    return stored >= lookup.padding.lo && stored <= lookup.padding.hi;
}

/* Values counted from `low`. Padding, and what lies beyond the volume, is so far from everything,
 * its own kind next to it included, that the tables give 0. */
template <typename Voxel>
static __device__ void
load_values(const struct contract_arguments &arguments, const struct tile_origin &origin,
            uint32_t column, int32_t *values)
{
    const Voxel *voxels = (const Voxel *)arguments.voxels;
    const struct fuzzy_grid &grid = arguments.grid;
    int64_t x = origin.at[0] + (column & 15), y = origin.at[1] + (column >> 4 & 15);

#pragma unroll
    for (uint32_t i = 0; i < TILE_COLUMN; i++) {
        uint32_t voxel = column + (i << 8);
        int64_t z = origin.at[2] + (voxel >> 8);
        int32_t value = ((x + y + z) & 1) != 0 ? -(1 << 20) : -(2 << 20);

        if (x < grid.size[0] && y < grid.size[1] && z < grid.size[2]) {
            int32_t stored = voxels[(z * grid.size[1] + y) * grid.size[0] + x];

            if (!is_padding(arguments.lookup, stored))
                value = stored - arguments.lookup.low;
        }
        values[voxel] = value;
    }
}

/* The key of the thread's edge that leaves the tile across `axis`, whose far ones are written out
 * for the graph. */
template <typename Voxel>
static __device__ uint32_t
leaving_key(const struct contract_arguments &arguments, const struct tile_origin &origin,
            const uint32_t *table, const int32_t *values, uint32_t axis)
{
    const Voxel *voxels = (const Voxel *)arguments.voxels;
    const struct fuzzy_grid &grid = arguments.grid;
    uint32_t side, affinity = 0, place = threadIdx.x;
    uint32_t voxel = leaving_voxel(axis, place, &side);
    int64_t at[3] = {origin.at[0] + (voxel & 15), origin.at[1] + (voxel >> 4 & 15),
                     origin.at[2] + (voxel >> 8)};

    at[axis] += side != 0 ? 1 : -1;
    if (at[axis] >= 0 && at[0] < grid.size[0] && at[1] < grid.size[1] && at[2] < grid.size[2]) {
        int32_t stored = voxels[(at[2] * grid.size[1] + at[1]) * grid.size[0] + at[0]];

        if (!is_padding(arguments.lookup, stored))
            affinity =
                affinity_of(arguments.lookup, table, values[voxel], stored - arguments.lookup.low);
    }
    if (side != 0)
        arguments.memory
            .faces[(size_t)origin.tile * FUZZY_TILE_FACES + axis * 256 + far_place(axis, place)] =
            (uint16_t)affinity;
    return affinity == 0 ? 0 : affinity << 16 | axis << 9 | place;
}

/* Affinities of the edges inside the tile, held by their nearer voxel; which of them exist. */
static __device__ void
inside_affinities(const struct fuzzy_lookup &lookup, const uint32_t *table, const int32_t *values,
                  struct tile_memory *tile, struct tile_thread *self)
{
    uint32_t column = self->column;

    self->alive = 0;
#pragma unroll
    for (uint32_t i = 0; i < TILE_COLUMN; i++) {
        uint32_t voxel = column + (i << 8);
        int32_t value = values[voxel];

#pragma unroll
        for (uint32_t axis = 0; axis < 3; axis++) {
            bool inside = (voxel >> 4 * axis & 15) < 15;
            uint32_t affinity =
                inside ? affinity_of(lookup, table, value, values[voxel + (1u << 4 * axis)]) : 0;

            tile->affinity[axis][voxel] = (uint16_t)affinity;
            self->alive |= (affinity != 0 ? 1u : 0u) << (axis * 8 + i);
        }
    }
}

/* The first choice: a voxel's strongest edge inside the tile. */
static __device__ void
first_keys(struct tile_memory *tile, const struct tile_thread *self, const uint32_t *seeds)
{
#pragma unroll
    for (uint32_t i = 0; i < TILE_COLUMN; i++) {
        uint32_t voxel = self->column + (i << 8);
        uint32_t key = 0;

#pragma unroll
        for (uint32_t axis = 0; axis < 3; axis++) {
            uint32_t step = 1u << 4 * axis, place = TILE_INSIDE | axis << 12;

            key = max(key, (uint32_t)tile->affinity[axis][voxel] << 16 | place | voxel);
            if ((voxel >> 4 * axis & 15) != 0)
                key = max(key, (uint32_t)tile->affinity[axis][voxel - step] << 16 | place |
                                   (voxel - step));
        }
        if (key >> 16 == 0)
            key = 0;
        if ((seeds[voxel >> 5] >> (voxel & 31) & 1) != 0)
            key = TILE_SEED;
        tile->best[voxel] = key;
        tile->label[voxel] = (uint16_t)voxel;
    }
}

static __device__ __forceinline__ void
offer(uint32_t *best, uint32_t held, uint32_t key)
{
    if (key > held)
        atomicMax(best, key);
}

static __device__ __forceinline__ uint32_t
look(const uint32_t *best)
{
    return *(volatile const uint32_t *)best;
}

/* Offers the thread's edges between components to both of their ends. */
static __device__ void
offer_inside(struct tile_memory *tile, struct tile_thread *self)
{
    for (uint32_t left = self->alive; left != 0; left &= left - 1) {
        uint32_t bit = __ffs(left) - 1;
        uint32_t axis = bit >> 3, voxel = self->column + ((bit & 7) << 8);
        uint32_t a = tile->label[voxel], b = tile->label[voxel + (1u << 4 * axis)];
        uint32_t best_a, best_b, key;

        if (a == b) {
            self->alive &= ~(1u << bit);
            continue;
        }
        best_a = look(&tile->best[a]);
        best_b = look(&tile->best[b]);
        if ((best_a & best_b & TILE_FINAL) != 0) {
            self->alive &= ~(1u << bit);
            self->waiting |= 1u << bit;
            continue;
        }
        key = (uint32_t)tile->affinity[axis][voxel] << 16 | TILE_INSIDE | axis << 12 | voxel;
        /* What is final is so because its key is greater than any of its edges inside: no harm. */
        if ((best_a & TILE_FINAL) == 0)
            offer(&tile->best[a], best_a, key);
        if ((best_b & TILE_FINAL) == 0)
            offer(&tile->best[b], best_b, key);
    }
}

static __device__ void
offer_leaving(struct tile_memory *tile, const struct tile_thread *self)
{
#pragma unroll
    for (uint32_t axis = 0; axis < 3; axis++) {
        uint32_t side, voxel = leaving_voxel(axis, threadIdx.x, &side), root, held;

        if (self->leaving[axis] == 0)
            continue;
        root = tile->label[voxel];
        held = look(&tile->best[root]);
        if ((held & TILE_FINAL) == 0)
            offer(&tile->best[root], held, self->leaving[axis]);
    }
}

/* The root at the other end of a root's chosen edge. */
static __device__ __forceinline__ uint32_t
other_end(const struct tile_memory *tile, uint32_t root, uint32_t key)
{
    uint32_t voxel = key & 0xfff, axis = key >> 12 & 3;
    uint32_t near = tile->label[voxel], far = tile->label[voxel + (1u << 4 * axis)];

    return near == root ? far : near;
}

static __device__ __forceinline__ bool
chooses(uint32_t key)
{
    return (key & (TILE_INSIDE | TILE_FINAL)) == TILE_INSIDE;
}

/* Every root that chose an edge inside hooks onto its other end; of two that chose the same edge,
 * the smaller stays. True if one did. */
static __device__ bool
hook(struct tile_memory *tile, const struct tile_thread *self)
{
    bool hooked = false;

#pragma unroll
    for (uint32_t i = 0; i < TILE_COLUMN; i++) {
        uint32_t root = self->column + (i << 8), key, target;

        if ((self->roots >> i & 1) == 0)
            continue;
        key = tile->best[root];
        target = root;
        if (chooses(key)) {
            uint32_t other = other_end(tile, root, key);

            if (tile->best[other] != key || other < root)
                target = other;
        }
        hooked = hooked || target != root;
        tile->parent[root] = (uint16_t)target;
    }
    return hooked;
}

/* Roots find the root they are under now; those that stay forget their choice, or keep it for good
 * when it was no edge inside. */
static __device__ void
settle(struct tile_memory *tile, struct tile_thread *self)
{
#pragma unroll
    for (uint32_t i = 0; i < TILE_COLUMN; i++) {
        uint32_t root = self->column + (i << 8), target, next;

        if ((self->roots >> i & 1) == 0)
            continue;
        target = tile->parent[root];
        if (target == root) {
            tile->best[root] = chooses(tile->best[root]) ? 0 : tile->best[root] | TILE_FINAL;
            continue;
        }
        while ((next = tile->parent[target]) != target)
            target = next;
        tile->label[root] = (uint16_t)target;
    }
}

static __device__ void
relabel(struct tile_memory *tile, struct tile_thread *self)
{
#pragma unroll
    for (uint32_t i = 0; i < TILE_COLUMN; i++) {
        uint32_t voxel = self->column + (i << 8);

        if ((self->roots >> i & 1) == 0)
            tile->label[voxel] = tile->label[tile->label[voxel]];
    }
}

/* After relabel: what hooked is a root no more. */
static __device__ void
drop_roots(const struct tile_memory *tile, struct tile_thread *self)
{
#pragma unroll
    for (uint32_t i = 0; i < TILE_COLUMN; i++) {
        uint32_t voxel = self->column + (i << 8);

        if ((self->roots >> i & 1) != 0 && tile->parent[voxel] != voxel)
            self->roots &= ~(1u << i);
    }
}

static __device__ __forceinline__ void
lower_caps(const struct tile_memory *tile, struct tile_thread *self)
{
#pragma unroll
    for (uint32_t i = 0; i < TILE_COLUMN; i++)
        self->cap[i] = min(self->cap[i], tile->best[tile->label[self->column + (i << 8)]] >> 16);
}

/* Merges components until the strongest edge of each leaves the tile. */
static __device__ void
contract(struct tile_memory *tile, struct tile_thread *self)
{
    for (;;) {
        bool hooked;

        lower_caps(tile, self);
        hooked = hook(tile, self);
        hooked = __syncthreads_or(hooked) != 0;
        settle(tile, self);
        if (!hooked)
            break;
        __syncthreads();
        relabel(tile, self);
        drop_roots(tile, self);
        __syncthreads();
        offer_inside(tile, self);
        offer_leaving(tile, self);
        __syncthreads();
    }
    __syncthreads();
}

/* Numbers the components that are nodes of the graph and takes as many numbers of it. */
static __device__ uint32_t
number_components(struct tile_memory *tile, const struct tile_thread *self,
                  struct fuzzy_level *first)
{
    uint32_t lane = threadIdx.x & 31, warp = threadIdx.x >> 5, mine = 0, before, total = 0;

#pragma unroll
    for (uint32_t i = 0; i < TILE_COLUMN; i++) {
        uint32_t key = tile->best[self->column + (i << 8)];

        mine += (self->roots >> i & 1) != 0 && key >> 16 != 0 && key != TILE_SEED;
    }
    before = mine;
    for (uint32_t step = 1; step < 32; step *= 2) {
        uint32_t other = __shfl_up_sync(0xffffffff, before, step);

        before += lane >= step ? other : 0;
    }
    if (lane == 31)
        tile->warps[warp] = before;
    __syncthreads();
    before -= mine;
    for (uint32_t i = 0; i < TILE_THREADS / 32; i++) {
        before += i < warp ? tile->warps[i] : 0;
        total += tile->warps[i];
    }
    if (threadIdx.x == 0)
        tile->base = atomicAdd(&first->nodes, total);
#pragma unroll
    for (uint32_t i = 0; i < TILE_COLUMN; i++) {
        uint32_t root = self->column + (i << 8), key;

        if ((self->roots >> i & 1) == 0)
            continue;
        key = tile->best[root];
        tile->parent[root] =
            key == TILE_SEED ? TILE_SEEDED : (key >> 16 != 0 ? (uint16_t)before++ : TILE_NONE);
    }
    __syncthreads();
    return tile->base;
}

/* Where an edge that leaves the tile ends, as a place in the next one. */
static __device__ uint32_t
far_end(const struct fuzzy_grid &grid, uint32_t tile, uint32_t key)
{
    uint32_t axis = key >> 9 & 3, side, voxel = leaving_voxel(axis, key & 511, &side);
    uint32_t step = axis == 0 ? 1 : (axis == 1 ? grid.tiles[0] : grid.tiles[0] * grid.tiles[1]);

    return (tile + (side != 0 ? step : 0u - step)) * FUZZY_TILE_VOXELS + (voxel ^ 15u << 4 * axis);
}

/* Writes out the tile's share of the voxels and of the nodes. */
static __device__ void
write_components(const struct contract_arguments &arguments, struct tile_memory *tile,
                 const struct tile_thread *self, const struct tile_origin &origin, uint32_t base)
{
    const struct fuzzy_scene_memory &memory = arguments.memory;

#pragma unroll
    for (uint32_t i = 0; i < TILE_COLUMN; i++) {
        uint32_t voxel = self->column + (i << 8);
        size_t place = (size_t)origin.tile * FUZZY_TILE_VOXELS + voxel;
        uint16_t rank = tile->parent[tile->label[voxel]];

        tile->rank[voxel] = rank;
        memory.component[place] = rank;
        memory.cap[place] = (uint16_t)self->cap[i];
        if ((self->roots >> i & 1) != 0 && rank < TILE_SEEDED) {
            uint32_t key = tile->best[voxel];

            memory.chosen[base + rank] = far_end(arguments.grid, origin.tile, key);
            memory.strongest[base + rank] = (uint16_t)(key >> 16);
            memory.forest.affinity[base + rank] = 0;
        }
    }
}

/* Writes the edge by which a root was hooked, at the number of its component. */
static __device__ void
write_forest(const struct fuzzy_edges &forest, const struct tile_memory *tile,
             const struct tile_thread *self, uint32_t base)
{
#pragma unroll
    for (uint32_t i = 0; i < TILE_COLUMN; i++) {
        uint32_t root = self->column + (i << 8), key, voxel, near, far;

        if ((self->roots >> i & 1) == 0 || tile->parent[root] == root)
            continue;
        key = tile->best[root];
        voxel = key & 0xfff;
        near = tile->rank[voxel];
        far = tile->rank[voxel + (1u << 4 * (key >> 12 & 3))];
        forest.nodes[base + tile->rank[root]] =
            make_uint2(near == TILE_SEEDED ? 0 : base + near, far == TILE_SEEDED ? 0 : base + far);
        forest.affinity[base + tile->rank[root]] = (uint16_t)(key >> 16);
    }
}

/* The forest of the edges inside the tile that are left. */
static __device__ void
span(const struct fuzzy_edges &forest, struct tile_memory *tile, struct tile_thread *self,
     uint32_t base)
{
    self->alive |= self->waiting;
#pragma unroll
    for (uint32_t i = 0; i < TILE_COLUMN; i++) {
        uint32_t voxel = self->column + (i << 8);

        if ((self->roots >> i & 1) != 0 && tile->best[voxel] != TILE_SEED)
            tile->best[voxel] = 0;
    }
    __syncthreads();
    for (;;) {
        bool hooked;

        offer_inside(tile, self);
        __syncthreads();
        hooked = hook(tile, self);
        if (__syncthreads_or(hooked) == 0)
            return;
        write_forest(forest, tile, self, base);
        __syncthreads();
        settle(tile, self);
        __syncthreads();
        relabel(tile, self);
        drop_roots(tile, self);
        __syncthreads();
    }
}

/* One block a tile. */
template <typename Voxel, bool SMALL>
static __global__ void
__launch_bounds__(TILE_THREADS, 3)
    contract_tiles(const __grid_constant__ struct contract_arguments arguments)
{
    extern __shared__ __align__(16) unsigned char shared[];
    struct tile_memory *tile = (struct tile_memory *)shared;
    struct tile_origin origin = tile_origin_of(arguments.grid, blockIdx.x);
    const struct fuzzy_lookup &lookup = arguments.lookup;
    const uint32_t *table = SMALL ? tile->table : lookup.table;
    int32_t *values = (int32_t *)tile->best;
    struct tile_thread self;
    uint32_t base;

    self.column = (threadIdx.x & 255) | (threadIdx.x >> 8) << 11;
    self.roots = (1u << TILE_COLUMN) - 1;
    self.waiting = 0;
    load_values<Voxel>(arguments, origin, self.column, values);
    if (SMALL)
        for (uint32_t i = threadIdx.x; i < lookup.sums + lookup.differences + 2; i += TILE_THREADS)
            tile->table[i] = lookup.table[i];
    __syncthreads();
    inside_affinities(lookup, table, values, tile, &self);
#pragma unroll
    for (uint32_t axis = 0; axis < 3; axis++)
        self.leaving[axis] = leaving_key<Voxel>(arguments, origin, table, values, axis);
    __syncthreads();
    first_keys(tile, &self,
               arguments.memory.seeds + (size_t)origin.tile * (FUZZY_TILE_VOXELS / 32));
#pragma unroll
    for (uint32_t i = 0; i < TILE_COLUMN; i++)
        self.cap[i] = 65535;
    __syncthreads();
    offer_leaving(tile, &self);
    __syncthreads();
    contract(tile, &self);
    base = number_components(tile, &self, arguments.memory.levels);
    if (threadIdx.x == 0)
        arguments.memory.base[origin.tile] = base;
    write_components(arguments, tile, &self, origin, base);
    __syncthreads();
    span(arguments.memory.forest, tile, &self, base);
}

#endif
