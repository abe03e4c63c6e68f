/* fuzzy_load.cuh - loads a tile: values, affinities without the weakest edges, first choices. */
#ifndef NOCTULE_KERNELS_FUZZY_FUZZY_LOAD_CUH
#define NOCTULE_KERNELS_FUZZY_FUZZY_LOAD_CUH

#include "kernels/fuzzy/fuzzy_tile.cuh"

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

/* Returns the same place, counted on the far face only. */
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

/* Returns a value relative to `low`. Padding and voxels beyond the volume get values so far from
 * all others, and from each other, that the tables yield 0. */
template <typename Voxel>
static __device__ __forceinline__ int32_t
value_at(const struct contract_arguments &arguments, int64_t x, int64_t y, int64_t z)
{
    const Voxel *voxels = (const Voxel *)arguments.voxels;
    const int64_t *size = arguments.grid.size;

    if ((uint64_t)x < (uint64_t)size[0] && (uint64_t)y < (uint64_t)size[1] && (uint64_t)z < (uint64_t)size[2]) {
        int32_t stored = voxels[(z * size[1] + y) * size[0] + x];

        if (stored < arguments.lookup.padding.lo || stored > arguments.lookup.padding.hi)
            return stored - arguments.lookup.low;
    }
    return ((x + y + z) & 1) != 0 ? -(1 << 20) : -(2 << 20);
}

/* Returns the key of the thread's edge that leaves the tile across `axis`. */
template <typename Voxel>
static __device__ uint32_t
leaving_key(const struct contract_arguments &arguments, const struct tile_origin &origin, const uint32_t *table,
            uint32_t columns, struct tile_memory *tile, uint32_t axis)
{
    uint32_t side, affinity, place = threadIdx.x;
    uint32_t voxel = leaving_voxel(axis, place, &side);
    int64_t at[3] = {origin.at[0] + (voxel & 15), origin.at[1] + (voxel >> 4 & 15), origin.at[2] + (voxel >> 8)};
    int32_t value;

    at[axis] += side != 0 ? 1 : -1;
    value = value_at<Voxel>(arguments, at[0], at[1], at[2]);
    affinity = voxel >> 8 < 2 * columns ? affinity_of(arguments.lookup, table, tile->values[voxel], value) : 0;
    if (side != 0) {
        tile->faces.values[axis][far_place(axis, place)] = value;
        tile->faces.affinity[axis][far_place(axis, place)] = (uint16_t)affinity;
    }
    return affinity == 0 ? 0 : affinity << 16 | axis << 9 | place;
}

/* Computes affinities of the edges inside the tile, stored at their nearer voxel. */
static __device__ void
inside_affinities(const struct fuzzy_lookup &lookup, const uint32_t *table, const int32_t *values, uint32_t columns,
                  struct tile_memory *tile)
{
#pragma unroll
    for (uint32_t i = 0; i < TILE_COLUMN && i < columns; i++) {
        uint32_t voxel = threadIdx.x + i * TILE_THREADS;
        int32_t value = values[voxel];

#pragma unroll
        for (uint32_t axis = 0; axis < 3; axis++) {
            bool inside = (voxel >> 4 * axis & 15) < (axis == 2 ? 2 * columns - 1 : 15);
            uint32_t affinity = inside ? affinity_of(lookup, table, value, values[voxel + (1u << 4 * axis)]) : 0;

            tile->affinity[axis][voxel] = (uint16_t)affinity;
        }
    }
}

static __device__ __forceinline__ uint32_t
inside_key(const struct tile_memory *tile, uint32_t axis, uint32_t voxel)
{
    return (uint32_t)tile->affinity[axis][voxel] << 16 | TILE_INSIDE | axis << 12 | voxel;
}

/* Returns the affinity and, in the low bits, the offset of the edge from a voxel's first one. */
static __device__ __forceinline__ uint32_t
near_key(const struct tile_memory *tile, uint32_t axis, uint32_t voxel, uint32_t from)
{
    return ((uint32_t)tile->affinity[axis][voxel] << 16) + from;
}

/*
 * Of the square at the thread's place on a far face, two edges cross the face and one lies on
 * either side. Returns the weaker crossing edge, as its place on the face, if it is the weakest of
 * all, otherwise TILE_FACE. Half of the threads handle each axis of the face.
 */
static __device__ __forceinline__ uint32_t
weakest_across(const struct tile_memory *tile, const struct fuzzy_lookup &lookup, const uint32_t *table, uint32_t axis)
{
    bool high = threadIdx.x >= TILE_FACE;
    uint32_t place = threadIdx.x % TILE_FACE, next = place + (high ? 16 : 1);
    uint32_t along = high ? (axis == 2 ? 1 : 2) : (axis == 0 ? 1 : 0), one, other, near, far;
    /* The tile's voxel at the place. */
    uint32_t voxel = axis == 0   ? place << 4 | 15
                     : axis == 1 ? (place >> 4) << 8 | 15 << 4 | (place & 15)
                                 : 15 << 8 | place;

    if ((high ? place >> 4 : place & 15) == 15)
        return TILE_FACE;
    one = tile->faces.affinity[axis][place];
    other = tile->faces.affinity[axis][next];
    near = tile->affinity[along][voxel];
    far = affinity_of(lookup, table, tile->faces.values[axis][place], tile->faces.values[axis][next]);
    if (min(one, other) > min(near, far))
        return TILE_FACE;
    return one <= other ? place : next;
}

/*
 * The weakest edge of a cycle is in no maximum spanning forest, with edges ordered by key. Around
 * squares, this drops half of all edges in noise before the first round. At the tile's end, a voxel
 * stands for the one beyond: the edge between them does not exist and is the weakest. All weakest
 * edges must be found before any is dropped. An edge that is the weakest of two squares is dropped
 * twice. Of a square across a far face, only crossing edges are dropped, from this side: the other
 * side never chooses them.
 */
static __device__ void
drop_weakest(struct tile_memory *tile, const struct fuzzy_lookup &lookup, const uint32_t *table, uint32_t columns)
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
        weakest[i][0] =
            min(min(own[0], near_key(tile, 0, voxel + y, 16)), min(own[1], near_key(tile, 1, voxel + x, 1 << 12 | 1)));
        weakest[i][1] =
            min(min(own[0], near_key(tile, 0, voxel + z, 256)), min(own[2], near_key(tile, 2, voxel + x, 2 << 12 | 1)));
        weakest[i][2] = min(min(own[1], near_key(tile, 1, voxel + z, 1 << 12 | 256)),
                            min(own[2], near_key(tile, 2, voxel + y, 2 << 12 | 16)));
        /* Two per register. */
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

/* Writes the remaining edges across the far faces for the graph. */
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

/* Makes the first choices: a voxel's strongest edge inside the tile. Every voxel is a component. */
static __device__ void
first_keys(struct tile_memory *tile, struct tile_thread *self, const uint32_t *seeds, uint32_t columns)
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

#endif
