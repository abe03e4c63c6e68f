/*
 * fuzzy_tile.cuh - the contraction of one tile in shared memory: see fuzzy_map.cuh.
 *
 * A key is affinity << 16 | place: of an edge inside the tile TILE_INSIDE | axis << 12 | the nearer
 * voxel; of an edge that leaves it axis << 9 | its place on the two faces across that axis, which
 * grows with its place in the volume. So of two keys the greater is the same one seen from either
 * end. TILE_FINAL marks a component that chooses no more.
 */
#ifndef NOCTULE_FUZZY_TILE_CUH
#define NOCTULE_FUZZY_TILE_CUH

#include "kernels/fuzzy/fuzzy_map.cuh"

#define TILE_THREADS 512
#define TILE_FACE    256
#define TILE_COLUMN  8 /* voxels of a thread, every second one along z */
#define TILE_INSIDE  0x8000u
#define TILE_FINAL   0x4000u
#define TILE_SEED    0xffffffffu
#define TILE_NONE    0xffffu /* component: no edges, the map is 0 */
#define TILE_SEEDED  0xfffeu /* component: holds a seed */

/* Across the far faces: what lies there, and the affinities of the edges that lead there. */
struct tile_faces {
    int32_t values[3][TILE_FACE];
    uint16_t affinity[3][TILE_FACE];
};

/*
 * Components are numbered from 0; `root` leads from each to the one that stands for what they have
 * become since they were numbered. What shares memory is never alive at the same time.
 */
struct tile_memory {
    union {
        uint32_t table[FUZZY_SMALL_TABLE];
        uint32_t best[FUZZY_TILE_VOXELS]; /* keys of roots */
    };

    union {
        int32_t values[FUZZY_TILE_VOXELS];

        struct {
            uint16_t root[FUZZY_TILE_VOXELS];

            union {
                uint16_t cap[FUZZY_TILE_VOXELS];  /* of components, since they were numbered */
                uint16_t rank[FUZZY_TILE_VOXELS]; /* of components: as in fuzzy_map_memory */
            };
        };
    };

    uint16_t affinity[3][FUZZY_TILE_VOXELS];

    union {
        struct tile_faces faces;

        struct {
            uint16_t label[FUZZY_TILE_VOXELS];  /* a voxel's component */
            uint16_t parent[FUZZY_TILE_VOXELS]; /* of roots, for one round; or their new number */
        };
    };

    uint32_t warps[TILE_THREADS / 32];
    uint32_t base;
};

struct contract_arguments {
    const void *voxels;
    struct fuzzy_grid grid;
    struct fuzzy_lookup lookup;
    struct fuzzy_map_memory memory;
};

/* What a thread keeps: its voxels, and its components, are threadIdx.x + i * TILE_THREADS. The
 * place of an edge is then threadIdx.x + its bit * TILE_THREADS. */
struct tile_thread {
    uint32_t components; /* of the tile */
    uint32_t roots;      /* which of the thread's are roots, one bit each */
    uint32_t alive;      /* edges between components, bit axis * 8 + i */
    uint32_t waiting;    /* the same, both ends final */
    uint32_t leaving[3]; /* keys of its edges that leave the tile, one an axis; 0: none */
    uint32_t caps[TILE_COLUMN / 2]; /* of its voxels, two in one register */
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

/* The voxel of the tile at a place on the far face across `axis`. */
static __device__ __forceinline__ uint32_t
face_voxel(uint32_t axis, uint32_t place)
{
    if (axis == 0)
        return place << 4 | 15;
    if (axis == 1)
        return (place >> 4) << 8 | 15 << 4 | (place & 15);
    return 15 << 8 | place;
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

/* How many voxels of a thread there are: the last ones may lie beyond the volume, of which one
 * slice at most is looked at. */
static __device__ __forceinline__ uint32_t
columns_of(const struct fuzzy_grid &grid, const struct tile_origin &origin)
{
    int64_t left = (grid.size[2] - origin.at[2]) / 2 + 1;

    return left < TILE_COLUMN ? (uint32_t)left : TILE_COLUMN;
}

static __device__ __forceinline__ bool
is_padding(const struct fuzzy_lookup &lookup, int32_t stored)
{
    return stored >= lookup.padding.lo && stored <= lookup.padding.hi;
}

/* A value counted from `low`. Padding, and what lies beyond the volume, is so far from everything,
 * its own kind next to it included, that the tables give 0. */
template <typename Voxel>
static __device__ __forceinline__ int32_t
value_at(const struct contract_arguments &arguments, int64_t x, int64_t y, int64_t z)
{
    const Voxel *voxels = (const Voxel *)arguments.voxels;
    const int64_t *size = arguments.grid.size;

    if ((uint64_t)x < (uint64_t)size[0] && (uint64_t)y < (uint64_t)size[1] &&
        (uint64_t)z < (uint64_t)size[2]) {
        int32_t stored = voxels[(z * size[1] + y) * size[0] + x];

        if (!is_padding(arguments.lookup, stored))
            return stored - arguments.lookup.low;
    }
    return ((x + y + z) & 1) != 0 ? -(1 << 20) : -(2 << 20);
}

template <typename Voxel>
static __device__ void
load_values(const struct contract_arguments &arguments, const struct tile_origin &origin,
            uint32_t columns, int32_t *values)
{
    int64_t x = origin.at[0] + (threadIdx.x & 15), y = origin.at[1] + (threadIdx.x >> 4 & 15);

#pragma unroll
    for (uint32_t i = 0; i < TILE_COLUMN && i < columns; i++) {
        uint32_t voxel = threadIdx.x + i * TILE_THREADS;

        values[voxel] = value_at<Voxel>(arguments, x, y, origin.at[2] + (voxel >> 8));
    }
}

/* The key of the thread's edge that leaves the tile across `axis`. */
template <typename Voxel>
static __device__ uint32_t
leaving_key(const struct contract_arguments &arguments, const struct tile_origin &origin,
            const uint32_t *table, uint32_t columns, struct tile_memory *tile, uint32_t axis)
{
    uint32_t side, affinity, place = threadIdx.x;
    uint32_t voxel = leaving_voxel(axis, place, &side);
    int64_t at[3] = {origin.at[0] + (voxel & 15), origin.at[1] + (voxel >> 4 & 15),
                     origin.at[2] + (voxel >> 8)};
    int32_t value;

    at[axis] += side != 0 ? 1 : -1;
    value = value_at<Voxel>(arguments, at[0], at[1], at[2]);
    affinity = voxel >> 8 < 2 * columns
                   ? affinity_of(arguments.lookup, table, tile->values[voxel], value)
                   : 0;
    if (side != 0) {
        tile->faces.values[axis][far_place(axis, place)] = value;
        tile->faces.affinity[axis][far_place(axis, place)] = (uint16_t)affinity;
    }
    return affinity == 0 ? 0 : affinity << 16 | axis << 9 | place;
}

/* Affinities of the edges inside the tile, held by their nearer voxel. */
static __device__ void
inside_affinities(const struct fuzzy_lookup &lookup, const uint32_t *table, const int32_t *values,
                  uint32_t columns, struct tile_memory *tile)
{
#pragma unroll
    for (uint32_t i = 0; i < TILE_COLUMN && i < columns; i++) {
        uint32_t voxel = threadIdx.x + i * TILE_THREADS;
        int32_t value = values[voxel];

#pragma unroll
        for (uint32_t axis = 0; axis < 3; axis++) {
            bool inside = (voxel >> 4 * axis & 15) < (axis == 2 ? 2 * columns - 1 : 15);
            uint32_t affinity =
                inside ? affinity_of(lookup, table, value, values[voxel + (1u << 4 * axis)]) : 0;

            tile->affinity[axis][voxel] = (uint16_t)affinity;
        }
    }
}

static __device__ __forceinline__ uint32_t
inside_key(const struct tile_memory *tile, uint32_t axis, uint32_t voxel)
{
    return (uint32_t)tile->affinity[axis][voxel] << 16 | TILE_INSIDE | axis << 12 | voxel;
}

/* The affinity and, beneath, how far the edge is from the first one of a voxel. */
static __device__ __forceinline__ uint32_t
near_key(const struct tile_memory *tile, uint32_t axis, uint32_t voxel, uint32_t from)
{
    return ((uint32_t)tile->affinity[axis][voxel] << 16) + from;
}

/*
 * Of the square at the thread's place on a far face, two edges across and one on either side: the
 * weaker one across, if it is the weakest of all, as its place on the face; else TILE_FACE.
 * Half of the threads look along each axis of the face.
 */
static __device__ __forceinline__ uint32_t
weakest_across(const struct tile_memory *tile, const struct fuzzy_lookup &lookup,
               const uint32_t *table, uint32_t axis)
{
    bool high = threadIdx.x >= TILE_FACE;
    uint32_t place = threadIdx.x % TILE_FACE, next = place + (high ? 16 : 1);
    uint32_t along = high ? (axis == 2 ? 1 : 2) : (axis == 0 ? 1 : 0), one, other, near, far;

    if ((high ? place >> 4 : place & 15) == 15)
        return TILE_FACE;
    one = tile->faces.affinity[axis][place];
    other = tile->faces.affinity[axis][next];
    near = tile->affinity[along][face_voxel(axis, place)];
    far =
        affinity_of(lookup, table, tile->faces.values[axis][place], tile->faces.values[axis][next]);
    if (min(one, other) > min(near, far))
        return TILE_FACE;
    return one <= other ? place : next;
}

/*
 * The weakest edge of a cycle is in no maximum spanning forest, the order of edges being that of
 * keys. Around squares that is half of all edges in noise, and no round has to look at them. Where
 * the tile ends, a voxel stands for the one beyond: the edge between them does not exist, and is
 * the weakest. All are found before any goes; the weakest of two squares goes twice. Of a square
 * across a far face only edges across go, from here: nobody ever chooses them from the other side.
 */
static __device__ void
drop_weakest(struct tile_memory *tile, const struct fuzzy_lookup &lookup, const uint32_t *table,
             uint32_t columns)
{
    uint16_t *affinities = &tile->affinity[0][0];
    uint32_t x = (threadIdx.x & 15) < 15 ? 1 : 0, y = (threadIdx.x >> 4 & 15) < 15 ? 16 : 0;
    uint32_t weakest[TILE_COLUMN][3], across[3];

#pragma unroll
    for (uint32_t axis = 0; axis < 3; axis++)
        across[axis] = weakest_across(tile, lookup, table, axis);
#pragma unroll
    for (uint32_t i = 0; i < TILE_COLUMN && i < columns; i++) {
        uint32_t voxel = threadIdx.x + i * TILE_THREADS, z = voxel >> 8 < 2 * columns - 1 ? 256 : 0;
        uint32_t own[3];

        for (uint32_t axis = 0; axis < 3; axis++)
            own[axis] = near_key(tile, axis, voxel, axis << 12);
        weakest[i][0] = min(min(own[0], near_key(tile, 0, voxel + y, 16)),
                            min(own[1], near_key(tile, 1, voxel + x, 1 << 12 | 1)));
        weakest[i][1] = min(min(own[0], near_key(tile, 0, voxel + z, 256)),
                            min(own[2], near_key(tile, 2, voxel + x, 2 << 12 | 1)));
        weakest[i][2] = min(min(own[1], near_key(tile, 1, voxel + z, 1 << 12 | 256)),
                            min(own[2], near_key(tile, 2, voxel + y, 2 << 12 | 16)));
        /* Two in one register. */
        weakest[i][0] = __byte_perm(weakest[i][0], weakest[i][1], 0x5410);
    }
    __syncthreads();
#pragma unroll
    for (uint32_t axis = 0; axis < 3; axis++)
        if (across[axis] < TILE_FACE)
            tile->faces.affinity[axis][across[axis]] = 0;
#pragma unroll
    for (uint32_t i = 0; i < TILE_COLUMN && i < columns; i++) {
        uint16_t *own = affinities + threadIdx.x + i * TILE_THREADS;

        own[weakest[i][0] & 0xffff] = 0;
        own[weakest[i][0] >> 16] = 0;
        own[weakest[i][2] & 0xffff] = 0;
    }
}

/* Writes out for the graph what is left of the edges across the far faces. */
static __device__ void
write_faces(uint16_t *faces, const struct tile_memory *tile, struct tile_thread *self)
{
#pragma unroll
    for (uint32_t axis = 0; axis < 3; axis++) {
        uint32_t side, place = far_place(axis, threadIdx.x), affinity;

        leaving_voxel(axis, threadIdx.x, &side);
        if (side == 0)
            continue;
        affinity = tile->faces.affinity[axis][place];
        faces[axis * TILE_FACE + place] = (uint16_t)affinity;
        if (affinity == 0)
            self->leaving[axis] = 0;
    }
}

/* The first choice: a voxel's strongest edge inside the tile. Every voxel is a component. */
static __device__ void
first_keys(struct tile_memory *tile, struct tile_thread *self, const uint32_t *seeds,
           uint32_t columns)
{
    self->alive = 0;
    self->components = columns * TILE_THREADS;
    self->roots = (1u << TILE_COLUMN) - 1;
#pragma unroll
    for (uint32_t i = 0; i < TILE_COLUMN && i < columns; i++) {
        uint32_t voxel = threadIdx.x + i * TILE_THREADS;
        uint32_t key = 0;

#pragma unroll
        for (uint32_t axis = 0; axis < 3; axis++) {
            uint32_t own = inside_key(tile, axis, voxel);

            self->alive |= (own >> 16 != 0 ? 1u : 0u) << (axis * 8 + i);
            key = max(key, own);
            if ((voxel >> 4 * axis & 15) != 0)
                key = max(key, inside_key(tile, axis, voxel - (1u << 4 * axis)));
        }
        if (key >> 16 == 0)
            key = 0;
        if ((seeds[voxel >> 5] >> (voxel & 31) & 1) != 0)
            key = TILE_SEED;
        tile->best[voxel] = key;
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

static __device__ __forceinline__ uint32_t
root_at(const struct tile_memory *tile, uint32_t voxel)
{
    return tile->root[tile->label[voxel]];
}

/* What an edge inside the tile lies between, and what that has chosen so far. */
struct tile_ends {
    uint32_t *best[2];
    uint32_t held[2];
    uint32_t key; /* 0: it lies within one component */
};

/* One branch for both, and so now and then an offer of too little, is faster than two. */
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
 * Offers the thread's edges between components to both of their ends. What is final is so because
 * its key is greater than any of its edges inside, so an offer does it no harm. Without branches,
 * since threads come here with other edges each.
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
        offer(&tile->best[root], look(&tile->best[root]), self->leaving[axis]);
    }
}

static __device__ __forceinline__ bool
chooses(uint32_t key)
{
    return (key & (TILE_INSIDE | TILE_FINAL)) == TILE_INSIDE;
}

/* Where a root hooks: onto the other end of the edge inside that it chose; of two that chose the
 * same edge, the smaller stays. */
static __device__ __forceinline__ uint32_t
target_of(const struct tile_memory *tile, uint32_t root)
{
    uint32_t key = tile->best[root], voxel, near, far, other;

    if (!chooses(key))
        return root;
    voxel = key & 0xfff;
    near = root_at(tile, voxel);
    far = root_at(tile, voxel + (1u << 4 * (key >> 12 & 3)));
    other = near == root ? far : near;
    return tile->best[other] != key || other < root ? other : root;
}

/* In the first round voxels hook; as target_of. */
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

/* Every root hooks; true if one of the thread's did. */
static __device__ bool
hook(struct tile_memory *tile, const struct tile_thread *self)
{
    bool hooked = false;

    for (uint32_t i = 0, root = threadIdx.x; root < self->components; i++, root += TILE_THREADS) {
        uint32_t target;

        if ((self->roots >> i & 1) == 0)
            continue;
        target = target_of(tile, root);
        hooked = hooked || target != root;
        tile->parent[root] = (uint16_t)target;
    }
    return hooked;
}

/* No path into a component is stronger than the edge it chose. */
static __device__ void
lower_caps(struct tile_memory *tile, const struct tile_thread *self)
{
    for (uint32_t one = threadIdx.x; one < self->components; one += TILE_THREADS)
        tile->cap[one] = (uint16_t)min((uint32_t)tile->cap[one], tile->best[tile->root[one]] >> 16);
}

static __device__ __forceinline__ uint32_t
settled(uint32_t key)
{
    return chooses(key) ? 0 : key | TILE_FINAL;
}

/* The root over something that is none. */
static __device__ __forceinline__ uint32_t
top_of(const struct tile_memory *tile, uint32_t target)
{
    uint32_t next;

    while ((next = tile->parent[target]) != target)
        target = next;
    return target;
}

/* The same in the first round, in which nothing is under a root yet. */
static __device__ void
settle_voxels(struct tile_memory *tile, uint32_t columns)
{
#pragma unroll
    for (uint32_t i = 0; i < TILE_COLUMN && i < columns; i++) {
        uint32_t voxel = threadIdx.x + i * TILE_THREADS, target = tile->parent[voxel];

        if (target == voxel)
            tile->best[voxel] = settled(tile->best[voxel]);
        tile->root[voxel] = (uint16_t)top_of(tile, target);
    }
}

/* Roots find the root they are under now; those that stay forget their choice, or keep it for good
 * when it was no edge inside. */
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

/* What hooked is a root no more, and what hooked before follows. */
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

/* The lanes of the warp for which it holds, all of them being here. */
static __device__ __forceinline__ uint32_t
lanes_with(bool holds)
{
    return __ballot_sync(0xffffffff, holds);
}

static __device__ __forceinline__ uint32_t
lanes_before(uint32_t lanes)
{
    return __popc(lanes & ((1u << (threadIdx.x & 31)) - 1));
}

/* The sum of `mine` over the threads before this one, and over all. */
static __device__ uint32_t
block_sum(struct tile_memory *tile, uint32_t mine, uint32_t *total)
{
    uint32_t lane = threadIdx.x & 31, warp = threadIdx.x >> 5, before = mine, other;

    for (uint32_t step = 1; step < 32; step *= 2) {
        other = __shfl_up_sync(0xffffffff, before, step);
        before += lane >= step ? other : 0;
    }
    if (lane == 31)
        tile->warps[warp] = before;
    __syncthreads();
    other = lane < TILE_THREADS / 32 ? tile->warps[lane] : 0;
    *total = __reduce_add_sync(0xffffffff, other);
    return before - mine + __reduce_add_sync(0xffffffff, lane < warp ? other : 0);
}

static __device__ __forceinline__ void
lower_cap(struct tile_thread *self, uint32_t i, uint32_t cap)
{
    self->caps[i / 2] =
        __vminu2(self->caps[i / 2], i % 2 == 0 ? cap | 0xffff0000 : cap << 16 | 0xffff);
}

/* Gives the roots new numbers, when all components were roots before this round. All that have no
 * edge, as beyond the volume, become one component, the last. FIRST: the components are voxels. */
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

/* Merges components until the strongest edge of each leaves the tile. */
static __device__ void
contract(struct tile_memory *tile, struct tile_thread *self, uint32_t columns)
{
    bool numbered = true;

    hook_voxels(tile, self, columns);
    __syncthreads();
    settle_voxels(tile, columns);
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
        lower_caps(tile, self);
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

/* Where an edge that leaves the tile ends, as a place in the next one. */
static __device__ uint32_t
far_end(const struct fuzzy_grid &grid, uint32_t tile, uint32_t key)
{
    uint32_t axis = key >> 9 & 3, side, voxel = leaving_voxel(axis, key & 511, &side);
    uint32_t step = axis == 0 ? 1 : (axis == 1 ? grid.tiles[0] : grid.tiles[0] * grid.tiles[1]);

    return (tile + (side != 0 ? step : 0u - step)) * FUZZY_TILE_VOXELS + (voxel ^ 15u << 4 * axis);
}

/* Writes out what a component is that becomes a node of the graph. */
static __device__ void
write_node(const struct contract_arguments &arguments, uint32_t tile, uint32_t node, uint32_t key)
{
    const struct fuzzy_map_memory &memory = arguments.memory;

    memory.chosen[node] = far_end(arguments.grid, tile, key);
    memory.strongest[node] = (uint16_t)(key >> 16);
    memory.forest.affinity[node] = 0;
}

static __device__ __forceinline__ bool
is_node(uint32_t key)
{
    return key >> 16 != 0 && key != TILE_SEED;
}

/* Ranks the roots that become nodes, and takes as many of the graph; returns the first. */
static __device__ uint32_t
rank_roots(const struct contract_arguments &arguments, struct tile_memory *tile,
           const struct tile_thread *self, uint32_t number)
{
    uint32_t mine = 0, rank, total;

    for (uint32_t i = 0, root = threadIdx.x; root < self->components; i++, root += TILE_THREADS)
        mine += (self->roots >> i & 1) != 0 && is_node(tile->best[root]);
    rank = block_sum(tile, mine, &total);
    if (threadIdx.x == 0) {
        tile->base = atomicAdd(&arguments.memory.levels[0].nodes, total);
        arguments.memory.base[number] = tile->base;
    }
    __syncthreads();
    for (uint32_t i = 0, root = threadIdx.x; root < self->components; i++, root += TILE_THREADS) {
        uint32_t key;

        if ((self->roots >> i & 1) == 0)
            continue;
        key = tile->best[root];
        tile->parent[root] = key == TILE_SEED ? TILE_SEEDED : TILE_NONE;
        if (is_node(key)) {
            write_node(arguments, number, tile->base + rank, key);
            tile->parent[root] = (uint16_t)rank++;
        }
        tile->best[root] = key == TILE_SEED ? key : 0;
    }
    return tile->base;
}

/* Writes out the tile's voxels and nodes; leaves the ranks of the components behind, and the roots
 * that may still hook without a choice. */
static __device__ uint32_t
write_components(const struct contract_arguments &arguments, struct tile_memory *tile,
                 struct tile_thread *self, uint32_t number, uint32_t columns)
{
    const struct fuzzy_map_memory &memory = arguments.memory;
    uint32_t base;

#pragma unroll
    for (uint32_t i = 0; i < TILE_COLUMN && i < columns; i++) {
        uint32_t label = tile->label[threadIdx.x + i * TILE_THREADS];

        lower_cap(self, i, tile->cap[label]);
    }
    base = rank_roots(arguments, tile, self, number);
    __syncthreads();
    for (uint32_t one = threadIdx.x; one < self->components; one += TILE_THREADS)
        tile->rank[one] = tile->parent[tile->root[one]];
    __syncthreads();
#pragma unroll
    for (uint32_t i = 0; i < TILE_COLUMN && i < columns; i++) {
        uint32_t voxel = threadIdx.x + i * TILE_THREADS;
        size_t place = (size_t)number * FUZZY_TILE_VOXELS + voxel;

        memory.component[place] = tile->rank[tile->label[voxel]];
        memory.cap[place] = (uint16_t)(self->caps[i / 2] >> i % 2 * 16);
    }
    return base;
}

/* Writes the edges by which roots were hooked, each at the rank of its root. */
static __device__ void
write_forest(const struct fuzzy_edges &forest, const struct tile_memory *tile,
             const struct tile_thread *self, uint32_t base)
{
    for (uint32_t i = 0, root = threadIdx.x; root < self->components; i++, root += TILE_THREADS) {
        uint32_t key, voxel, near, far, place;

        if ((self->roots >> i & 1) == 0 || tile->parent[root] == root)
            continue;
        key = tile->best[root];
        voxel = key & 0xfff;
        near = tile->rank[tile->label[voxel]];
        far = tile->rank[tile->label[voxel + (1u << 4 * (key >> 12 & 3))]];
        place = base + tile->rank[root];
        forest.nodes[place] =
            make_uint2(near == TILE_SEEDED ? 0 : base + near, far == TILE_SEEDED ? 0 : base + far);
        forest.affinity[place] = (uint16_t)(key >> 16);
    }
}

/*
 * The edges of a warp's threads as a list of places, so that no thread waits for one with more of
 * them. It lies behind the keys of the components.
 */
struct warp_edges {
    uint16_t *places;
    uint32_t count;
    bool fits;
};

/* Neighbours in the list are neighbours along x, whose labels lie in other banks. */
static __device__ struct warp_edges
list_edges(struct tile_memory *tile, const struct tile_thread *self)
{
    uint32_t warp = threadIdx.x >> 5;
    uint32_t room = (FUZZY_TILE_VOXELS - self->components) * 2 / (TILE_THREADS / 32);
    struct warp_edges list;

    list.places = (uint16_t *)(tile->best + self->components) + warp * room;
    list.count = __reduce_add_sync(0xffffffff, __popc(self->alive));
    list.fits = list.count <= room;
    list.count = 0;
    for (uint32_t bit = 0; list.fits && bit < 3 * TILE_COLUMN; bit++) {
        bool has = (self->alive >> bit & 1) != 0;
        uint32_t all = lanes_with(has);

        if (has)
            list.places[list.count + lanes_before(all)] =
                (uint16_t)(threadIdx.x + bit * TILE_THREADS);
        list.count += __popc(all);
    }
    __syncwarp();
    return list;
}

/* As offer_inside; keeps what still lies between components. */
static __device__ void
offer_list(struct tile_memory *tile, struct warp_edges *list)
{
    uint32_t lane = threadIdx.x & 31, kept = 0;

    for (uint32_t first = 0; first < list->count; first += 32) {
        bool active = first + lane < list->count;
        uint32_t place = active ? list->places[first + lane] : 0;
        struct tile_ends ends = ends_of<false>(tile, place);
        bool between = active && ends.key != 0 && (ends.held[0] & ends.held[1] & TILE_FINAL) == 0;
        uint32_t all = lanes_with(between);

        if (!between)
            ends.key = 0;
        offer_ends(ends);
        __syncwarp();
        if (between)
            list->places[kept + lanes_before(all)] = (uint16_t)place;
        kept += __popc(all);
        __syncwarp();
    }
    list->count = kept;
}

/* The forest of the edges inside the tile that are left. */
static __device__ void
span(const struct fuzzy_edges &forest, struct tile_memory *tile, struct tile_thread *self,
     uint32_t base)
{
    struct warp_edges list;

    self->alive |= self->waiting;
    list = list_edges(tile, self);
    for (;;) {
        bool hooked;

        if (list.fits)
            offer_list(tile, &list);
        else
            offer_inside<false>(tile, self);
        __syncthreads();
        hooked = hook(tile, self);
        if (__syncthreads_or(hooked) == 0)
            return;
        write_forest(forest, tile, self, base);
        settle(tile, self);
        __syncthreads();
        follow(tile, self);
        __syncthreads();
    }
}

/* Empties the table of pairs, which costs nothing beside the rest. */
static __device__ __forceinline__ void
clear_pairs(const struct fuzzy_map_memory &memory)
{
    uint32_t stride = gridDim.x * TILE_THREADS;

    for (uint32_t i = blockIdx.x * TILE_THREADS + threadIdx.x; i < memory.pair_slots; i += stride)
        memory.pairs[i] = 0;
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
    uint32_t columns = columns_of(arguments.grid, origin);
    struct tile_thread self;
    uint32_t base;

    clear_pairs(arguments.memory);
    self.waiting = 0;
    load_values<Voxel>(arguments, origin, columns, tile->values);
    if (SMALL)
        for (uint32_t i = threadIdx.x; i < fuzzy_fixed_entries(&lookup); i += TILE_THREADS)
            tile->table[i] = lookup.table[i];
    __syncthreads();
    inside_affinities(lookup, table, tile->values, columns, tile);
#pragma unroll
    for (uint32_t axis = 0; axis < 3; axis++)
        self.leaving[axis] = leaving_key<Voxel>(arguments, origin, table, columns, tile, axis);
    __syncthreads();
    drop_weakest(tile, lookup, table, columns);
    __syncthreads();
    write_faces(arguments.memory.faces + (size_t)origin.tile * FUZZY_TILE_FACES, tile, &self);
    first_keys(tile, &self, arguments.memory.seeds + (size_t)origin.tile * (FUZZY_TILE_VOXELS / 32),
               columns);
    __syncthreads();
    offer_leaving<true>(tile, &self);
    __syncthreads();
    contract(tile, &self, columns);
    base = write_components(arguments, tile, &self, origin.tile, columns);
    span(arguments.memory.forest, tile, &self, base);
}

#endif
