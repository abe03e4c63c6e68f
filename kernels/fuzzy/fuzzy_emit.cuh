/* fuzzy_emit.cuh - output of a contracted tile for the graph: its voxels' components, nodes, and
 * the forest of its own edges between them. */
#ifndef NOCTULE_KERNELS_FUZZY_FUZZY_EMIT_CUH
#define NOCTULE_KERNELS_FUZZY_FUZZY_EMIT_CUH

#include "kernels/fuzzy/fuzzy_contract.cuh"

static __device__ __forceinline__ bool
is_node(uint32_t key)
{
    return key >> 16 != 0 && key != TILE_SEED;
}

/* Ranks the roots that become nodes, reserves as many nodes of the graph, and writes them. Returns the first. */
static __device__ uint32_t
rank_roots(const struct contract_arguments &arguments, struct tile_memory *tile, const struct tile_thread *self,
           uint32_t number)
{
    const struct fuzzy_map_memory &memory = arguments.memory;
    const struct fuzzy_grid &grid = arguments.grid;
    uint32_t mine = 0, rank, total;

    for (uint32_t i = 0, root = threadIdx.x; root < self->components; i++, root += TILE_THREADS)
        mine += (self->roots >> i & 1) != 0 && is_node(tile->best[root]);
    rank = block_sum(tile, mine, &total);
    if (threadIdx.x == 0) {
        tile->base = atomicAdd(&memory.levels[0].nodes, total);
        memory.base[number] = tile->base;
    }
    __syncthreads();
    for (uint32_t i = 0, root = threadIdx.x; root < self->components; i++, root += TILE_THREADS) {
        uint32_t key, axis, side, voxel, step;

        if ((self->roots >> i & 1) == 0)
            continue;
        key = tile->best[root];
        tile->parent[root] = key == TILE_SEED ? TILE_SEEDED : TILE_NONE;
        if (is_node(key)) {
            /* The place in the next tile where the edge that leaves the tile ends. */
            axis = key >> 9 & 3;
            voxel = leaving_voxel(axis, key & 511, &side);
            step = axis == 0 ? 1 : (axis == 1 ? grid.tiles[0] : grid.tiles[0] * grid.tiles[1]);
            memory.chosen[tile->base + rank] =
                (number + (side != 0 ? step : 0u - step)) * FUZZY_TILE_VOXELS + (voxel ^ 15u << 4 * axis);
            memory.strongest[tile->base + rank] = (uint16_t)(key >> 16);
            memory.forest.affinity[tile->base + rank] = 0;
            tile->parent[root] = (uint16_t)rank++;
        }
        tile->best[root] = key == TILE_SEED ? key : 0;
    }
    return tile->base;
}

/* Writes the tile's voxels and nodes. Keeps the ranks of the components, and the roots that may
 * still hook, without a choice. */
static __device__ uint32_t
write_components(const struct contract_arguments &arguments, struct tile_memory *tile, struct tile_thread *self,
                 uint32_t number, uint32_t columns)
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

/* The edges of a warp's threads as a list of places, which balances their number between threads.
 * It is stored behind the keys of the components. */
struct warp_edges {
    uint16_t *places;
    uint32_t count;
    bool fits;
};

/* Consecutive list entries are neighbours along x, with labels in different banks. */
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
            list.places[list.count + lanes_before(all)] = (uint16_t)(threadIdx.x + bit * TILE_THREADS);
        list.count += __popc(all);
    }
    __syncwarp();
    return list;
}

/* As offer_inside, for the list. Keeps edges that are still between components. */
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

/* Finds the forest of the remaining edges inside the tile. */
static __device__ void
span(const struct fuzzy_edges &forest, struct tile_memory *tile, struct tile_thread *self, uint32_t base)
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
        /* Write the edges by which roots were hooked, each at the rank of its root. */
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
        settle(tile, self);
        __syncthreads();
        follow(tile, self);
        __syncthreads();
    }
}

#endif
