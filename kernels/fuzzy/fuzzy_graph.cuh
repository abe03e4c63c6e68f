/*
 * fuzzy_graph.cuh - Boruvka's levels on the graph of the tiles' nodes, and the results back down to
 * the voxels: see fuzzy_map.cuh.
 *
 * Level 0, the nodes of the tiles, has its own kernels. All other levels are steps of one kernel,
 * whose blocks synchronise between steps. Only the device knows the number of levels. A small level
 * is faster on a single block, which synchronises sooner.
 *
 * Every step reads the sizes of its level from device memory, and loops over them with a stride.
 */
#ifndef NOCTULE_KERNELS_FUZZY_FUZZY_GRAPH_CUH
#define NOCTULE_KERNELS_FUZZY_FUZZY_GRAPH_CUH

#include "kernels/fuzzy/fuzzy_tile.cuh"

#include <cooperative_groups.h>

#define GRAPH_THREADS 256
#define GRAPH_BATCH   4 /* items per thread at a time */
#define CLIMB_THREADS 512
#define CLIMB_BLOCKS  3   /* per multiprocessor */
#define CLIMB_ALONE   512 /* max nodes and edges of a level for a single block */
#define MAP_ROWS      8
#define PAIR_ROOM     16 /* slots per node */
#define PAIR_STEPS    8  /* max slots to try */

/* Reserves places of a counter, `count` for each warp of the block. Returns the warp's first. */
static __device__ uint32_t
block_take(uint32_t *counter, uint32_t count)
{
    __shared__ uint32_t warps[CLIMB_THREADS / 32];
    __shared__ uint32_t start;
    uint32_t warp = threadIdx.x >> 5, before = 0, total = 0;

    __syncthreads(); /* ends the reads of the previous call */
    if ((threadIdx.x & 31) == 0)
        warps[warp] = count;
    __syncthreads();
    for (uint32_t i = 0; i < blockDim.x / 32; i++) {
        before += i < warp ? warps[i] : 0;
        total += warps[i];
    }
    if (threadIdx.x == 0)
        start = total == 0 ? 0 : atomicAdd(counter, total);
    __syncthreads();
    return start + before;
}

/* Blocks that execute a step together. */
struct graph_team {
    uint32_t block, blocks;
};

/* A block's part of a step: `batch` rounds of its threads at a time, from `first` on. */
struct graph_share {
    uint32_t first, step, batch;
};

/* Distributes few items over all threads. With many, a thread takes several at a time, which
 * overlaps their loads and shares one addition to a counter. */
static __device__ __forceinline__ struct graph_share
share_of(const struct graph_team &team, uint32_t start, uint32_t end)
{
    uint32_t threads = team.blocks * blockDim.x;
    uint32_t batch = min((uint32_t)GRAPH_BATCH, (end - start + threads - 1) / threads);
    struct graph_share share;

    share.first = start + team.block * blockDim.x * batch;
    share.step = threads * batch;
    share.batch = batch;
    return share;
}

static __device__ __forceinline__ uint32_t
item_of(const struct graph_share &share, uint32_t i)
{
    return share.first + i * blockDim.x + threadIdx.x;
}

/* Returns the node of a tile's component. */
static __device__ __forceinline__ uint32_t
node_of(const struct fuzzy_map_memory &memory, uint32_t tile, uint32_t place)
{
    uint32_t component = memory.component[(size_t)tile * FUZZY_TILE_VOXELS + place];

    if (component == TILE_NONE)
        return FUZZY_NO_NODE;
    return component == TILE_SEEDED ? 0 : memory.base[tile] + component;
}

/* Level 0: finds the ends of the edges that the tiles' components chose. */
static __global__ void
choose_first(const struct fuzzy_map_memory memory)
{
    uint32_t nodes = memory.levels[0].nodes, stride = gridDim.x * blockDim.x;

    for (uint32_t node = 1 + blockIdx.x * blockDim.x + threadIdx.x; node < nodes; node += stride) {
        uint32_t place = memory.chosen[node];

        memory.chosen[node] = node_of(memory, place / FUZZY_TILE_VOXELS, place % FUZZY_TILE_VOXELS);
    }
    if (blockIdx.x == 0 && threadIdx.x == 0)
        memory.chosen[0] = 0;
}

/* Numbers a share's nodes that stay, with one bit each in `roots`, as nodes of the next level. */
static __device__ __forceinline__ void
number_roots(const struct graph_share &share, uint32_t roots, uint32_t *counter, uint32_t *parent)
{
    uint32_t number = block_take(counter, __reduce_add_sync(0xffffffff, __popc(roots)));

#pragma unroll
    for (uint32_t i = 0; i < GRAPH_BATCH; i++) {
        bool root = (roots >> i & 1) != 0;
        uint32_t all = lanes_with(root);

        if (root)
            parent[item_of(share, i)] = number + lanes_before(all);
        number += __popc(all);
    }
}

/* Numbers the nodes of level 1, the roots of level 0: of two that chose the same edge, the smaller stays. */
static __global__ void
number_first(const struct fuzzy_map_memory memory)
{
    const struct graph_team team = {blockIdx.x, gridDim.x};
    uint32_t nodes = memory.levels[0].nodes;
    struct graph_share share = share_of(team, 0, nodes);

    for (; share.first < nodes; share.first += share.step) {
        uint32_t roots = 0;

#pragma unroll
        for (uint32_t i = 0; i < GRAPH_BATCH; i++) {
            uint32_t node = item_of(share, i);
            uint32_t other = i < share.batch && node < nodes ? memory.chosen[node] : FUZZY_NO_NODE;
            bool stays = other != FUZZY_NO_NODE && node < other && memory.chosen[other] == node;

            roots |= (stays ? 1u : 0u) << i;
        }
        number_roots(share, roots, &memory.levels[1].nodes, memory.parent);
    }
}

/*
 * Other levels: a node takes the strongest edge offered to it. A node without edges is never
 * reached. Of two that take the same edge, the smaller stays and becomes a node of the next level.
 */
static __device__ void
choose(const struct fuzzy_map_memory &memory, const struct graph_team &team, int level)
{
    const uint2 *ends = memory.edges[level & 1].nodes;
    uint32_t nodes = memory.levels[level].nodes;
    uint64_t offset = memory.levels[level].offset;
    struct graph_share share = share_of(team, 0, nodes);

    for (; share.first < nodes; share.first += share.step) {
        unsigned long long best[GRAPH_BATCH];
        uint32_t chosen[GRAPH_BATCH], roots = 0;

#pragma unroll
        for (uint32_t i = 0; i < GRAPH_BATCH; i++) {
            uint32_t node = item_of(share, i);

            best[i] = i < share.batch && node < nodes ? memory.best[node] : 0;
        }
#pragma unroll
        for (uint32_t i = 0; i < GRAPH_BATCH; i++) {
            uint2 both = best[i] != 0 ? ends[(uint32_t)best[i]] : make_uint2(0, 0);

            chosen[i] = both.x == item_of(share, i) ? both.y : both.x;
        }
#pragma unroll
        for (uint32_t i = 0; i < GRAPH_BATCH; i++) {
            bool first = best[i] != 0 && item_of(share, i) < chosen[i];

            roots |= (first && memory.best[chosen[i]] == best[i] ? 1u : 0u) << i;
        }
#pragma unroll
        for (uint32_t i = 0; i < GRAPH_BATCH; i++) {
            uint32_t node = item_of(share, i);

            if (i >= share.batch || node >= nodes)
                continue;
            memory.chosen[node] = best[i] != 0 || node == 0 ? chosen[i] : FUZZY_NO_NODE;
            memory.strongest[offset + node] = (uint16_t)(best[i] >> 32);
        }
        number_roots(share, roots, &memory.levels[level + 1].nodes, memory.parent + offset);
    }
}

/* Returns the root of a node, and halves the path for other threads. A root is recognised by its
 * partner. */
static __device__ uint32_t
root_of(uint32_t *chosen, uint32_t node)
{
    uint32_t at = node, next = __ldcg(&chosen[at]);

    for (;;) {
        uint32_t after;

        if (next == 0)
            return 0;
        after = __ldcg(&chosen[next]);
        if (after == 0)
            return 0;
        if (after == at) /* the two chose the same edge */
            return min(at, next);
        if (__ldcg(&chosen[after]) == next) /* next and after chose the same edge */
            return min(next, after);
        __stcg(&chosen[at], after);
        at = after;
        next = __ldcg(&chosen[at]);
    }
}

/* Finds every node's node of the next level, and clears the next level's offers. */
static __device__ void
find_parents(const struct fuzzy_map_memory &memory, const struct graph_team &team, int level)
{
    uint32_t nodes = memory.levels[level].nodes, next = memory.levels[level + 1].nodes;
    uint32_t stride = team.blocks * blockDim.x, self = team.block * blockDim.x + threadIdx.x;
    uint64_t offset = memory.levels[level].offset;
    uint32_t *parent = memory.parent + offset;

    for (uint32_t node = self; node < nodes; node += stride) {
        uint32_t root;

        if (node == 0) {
            parent[node] = 0;
        } else if (__ldcg(&memory.chosen[node]) == FUZZY_NO_NODE) {
            parent[node] = FUZZY_NO_NODE;
        } else {
            root = root_of(memory.chosen, node);
            if (root != node)
                parent[node] = root == 0 ? 0 : parent[root];
        }
    }
    for (uint32_t node = self; node < next; node += stride)
        memory.best[node] = 0;
    if (self == 0)
        memory.levels[level + 1].offset = offset + nodes;
}

static __global__ void
find_first_parents(const struct fuzzy_map_memory memory)
{
    const struct graph_team team = {blockIdx.x, gridDim.x};

    find_parents(memory, team, 0);
}

struct graph_edge {
    uint2 ends;
    uint32_t affinity;
};

/* Returns the edge between the parents of an edge's ends, with affinity 0 if they are equal. Both
 * ends of a missing edge are node 0. */
static __device__ __forceinline__ struct graph_edge
lifted(const uint32_t *parent, uint2 ends, uint32_t affinity)
{
    struct graph_edge edge = {{parent[ends.x], parent[ends.y]}, affinity};

    if (edge.ends.x == edge.ends.y)
        edge.affinity = 0;
    return edge;
}

static __device__ __forceinline__ void
offer_edge(unsigned long long *best, uint32_t node, unsigned long long key)
{
    if (node != 0 && __ldcg(&best[node]) < key)
        atomicMax(&best[node], key);
}

/* Appends the block's edges with affinity over 0 to a level, and offers them to their ends. */
template <unsigned COUNT>
static __device__ __forceinline__ void
append_edges(const struct fuzzy_map_memory &memory, int level, const struct graph_edge (&found)[COUNT])
{
    const struct fuzzy_edges edges = memory.edges[level & 1];
    uint32_t count = 0, first;

#pragma unroll
    for (unsigned i = 0; i < COUNT; i++)
        count += __popc(lanes_with(found[i].affinity != 0));
    first = block_take(&memory.levels[level].edges, count);
#pragma unroll
    for (unsigned i = 0; i < COUNT; i++) {
        uint32_t all = lanes_with(found[i].affinity != 0), place = first + lanes_before(all);
        unsigned long long key = (unsigned long long)found[i].affinity << 32 | place;

        first += __popc(all);
        if (found[i].affinity == 0)
            continue;
        edges.nodes[place] = found[i].ends;
        edges.affinity[place] = (uint16_t)found[i].affinity;
        offer_edge(memory.best, found[i].ends.x, key);
        offer_edge(memory.best, found[i].ends.y, key);
    }
}

/*
 * If there are few nodes, many edges connect the same two. Then edges go through a hash table that
 * keeps the strongest of each pair, with 24 bits per node and 16 for the affinity. Only that one
 * matters for the next level. An edge that finds no slot in a few steps is appended directly.
 */
static __device__ __forceinline__ uint32_t
pair_slots(const struct fuzzy_map_memory &memory, int level)
{
    uint32_t nodes = memory.levels[level + 1].nodes, slots = memory.pair_slots;

    if (nodes > memory.pair_slots / PAIR_ROOM)
        return 0;
    while (slots > 4096 && slots / 2 >= nodes * PAIR_ROOM)
        slots /= 2;
    return slots;
}

/* Returns whether the table has this edge or a stronger one. */
static __device__ bool
insert_pair(unsigned long long *pairs, uint32_t slots, const struct graph_edge &edge)
{
    unsigned long long low = min(edge.ends.x, edge.ends.y), high = max(edge.ends.x, edge.ends.y);
    unsigned long long key = low << 40 | high << 16 | edge.affinity;
    uint32_t hash = (edge.ends.x ^ edge.ends.y) * 0x9e3779b1u ^ (edge.ends.x + edge.ends.y) * 0x85ebca6bu;

    hash ^= hash >> 15;
    for (uint32_t step = 0; step < PAIR_STEPS; step++) {
        unsigned long long *slot = &pairs[(hash + step) & (slots - 1)], held = __ldcg(slot);

        if (held == 0)
            held = atomicCAS(slot, 0ull, key);
        if (held == 0)
            return true;
        if (held >> 16 == key >> 16) {
            if (held < key)
                atomicMax(slot, key);
            return true;
        }
    }
    return false;
}

/* Makes the edges of the next level from a list of this level's. */
static __device__ __forceinline__ void
lift_list(const struct fuzzy_map_memory &memory, const struct graph_team &team, int level,
          const struct fuzzy_edges &edges, uint32_t start, uint32_t end)
{
    const uint32_t *parent = memory.parent + memory.levels[level].offset;
    uint32_t slots = pair_slots(memory, level);
    struct graph_share share = share_of(team, start, end);

    for (; share.first < end; share.first += share.step) {
        struct graph_edge found[GRAPH_BATCH];

        /* Loads of one kind are issued together. The next kind depends on them. */
#pragma unroll
        for (uint32_t i = 0; i < GRAPH_BATCH; i++) {
            uint32_t edge = item_of(share, i);

            found[i].affinity = i < share.batch && edge < end ? edges.affinity[edge] : 0;
        }
#pragma unroll
        for (uint32_t i = 0; i < GRAPH_BATCH; i++)
            found[i].ends = found[i].affinity != 0 ? edges.nodes[item_of(share, i)] : make_uint2(0, 0);
#pragma unroll
        for (uint32_t i = 0; i < GRAPH_BATCH; i++)
            found[i] = lifted(parent, found[i].ends, found[i].affinity);
#pragma unroll
        for (uint32_t i = 0; i < GRAPH_BATCH; i++)
            if (slots != 0 && found[i].affinity != 0 && insert_pair(memory.pairs, slots, found[i]))
                found[i].affinity = 0;
        append_edges(memory, level + 1, found);
    }
}

/* After the lifts of a level: appends the table's edges to the next level, and empties the
 * table. */
static __device__ void
drain_pairs(const struct fuzzy_map_memory &memory, const struct graph_team &team, int level)
{
    uint32_t slots = pair_slots(memory, level);
    struct graph_share share = share_of(team, 0, slots);

    for (; share.first < slots; share.first += share.step) {
        struct graph_edge found[GRAPH_BATCH];

#pragma unroll
        for (uint32_t i = 0; i < GRAPH_BATCH; i++) {
            uint32_t slot = item_of(share, i);
            unsigned long long held = i < share.batch && slot < slots ? memory.pairs[slot] : 0;

            if (held != 0)
                memory.pairs[slot] = 0;
            found[i].ends = make_uint2((uint32_t)(held >> 40), (uint32_t)(held >> 16) & 0xffffff);
            found[i].affinity = (uint32_t)held & 0xffff;
        }
        append_edges(memory, level + 1, found);
    }
}

/* Makes level 1 from the forests inside the tiles: at most one edge per node. */
static __global__ void
__launch_bounds__(GRAPH_THREADS) lift_forest(const struct fuzzy_map_memory memory)
{
    const struct graph_team team = {blockIdx.x, gridDim.x};

    lift_list(memory, team, 0, memory.forest, 1, memory.levels[0].nodes);
}

/* Makes level 1 from the edges across the far faces of the tiles. One block per tile. */
static __global__ void
__launch_bounds__(GRAPH_THREADS) lift_faces(const struct fuzzy_map_memory memory, const struct fuzzy_grid grid)
{
    uint32_t tile = blockIdx.x, y = threadIdx.x >> 4, x = threadIdx.x & 15;
    uint32_t steps[3] = {1, grid.tiles[0], grid.tiles[0] * grid.tiles[1]};
    uint32_t near[3] = {y << 8 | x << 4 | 15, y << 8 | 15 << 4 | x, 15 << 8 | threadIdx.x};
    uint32_t slots = pair_slots(memory, 0);
    struct graph_edge found[3];

#pragma unroll
    for (uint32_t axis = 0; axis < 3; axis++) {
        uint32_t affinity = memory.faces[(size_t)tile * FUZZY_TILE_FACES + axis * 256 + threadIdx.x];
        uint2 ends = make_uint2(0, 0);

        if (affinity != 0) {
            ends.x = node_of(memory, tile, near[axis]);
            ends.y = node_of(memory, tile + steps[axis], near[axis] ^ 15u << 4 * axis);
        }
        found[axis] = lifted(memory.parent, ends, affinity);
    }
#pragma unroll
    for (uint32_t axis = 0; axis < 3; axis++)
        if (slots != 0 && found[axis].affinity != 0 && insert_pair(memory.pairs, slots, found[axis]))
            found[axis].affinity = 0;
    append_edges(memory, 1, found);
}

/* Computes the result of a level from that of the next. After the last level, it is 0 except at
 * node 0. */
static __device__ void
descend(const struct fuzzy_map_memory &memory, const struct graph_team &team, int level)
{
    uint32_t nodes = memory.levels[level].nodes;
    const uint32_t *parents = memory.parent + memory.levels[level].offset;
    const uint16_t *strongest = memory.strongest + memory.levels[level].offset;
    const uint16_t *above = memory.connected + memory.levels[level + 1].offset;
    uint16_t *connected = memory.connected + memory.levels[level].offset;
    bool last = level > 0 && memory.levels[level].edges == 0;
    struct graph_share share = share_of(team, 0, nodes);

    for (; share.first < nodes; share.first += share.step) {
        uint32_t parent[GRAPH_BATCH], value[GRAPH_BATCH];

#pragma unroll
        for (uint32_t i = 0; i < GRAPH_BATCH; i++) {
            uint32_t node = item_of(share, i);
            bool below = !last && i < share.batch && node < nodes;

            parent[i] = below ? parents[node] : FUZZY_NO_NODE;
            value[i] = below ? strongest[node] : 0;
        }
#pragma unroll
        for (uint32_t i = 0; i < GRAPH_BATCH; i++)
            value[i] = parent[i] == FUZZY_NO_NODE ? 0 : min(value[i], (uint32_t)above[parent[i]]);
#pragma unroll
        for (uint32_t i = 0; i < GRAPH_BATCH; i++) {
            uint32_t node = item_of(share, i);

            if (i < share.batch && node < nodes)
                connected[node] = (uint16_t)(node == 0 ? 65535 : value[i]);
        }
    }
}

/* Takes one level's nodes and edges to the next. `meet` waits for all blocks of the team. */
template <typename Meet>
static __device__ void
climb_level(const struct fuzzy_map_memory &memory, const struct graph_team &team, int level, const Meet &meet)
{
    choose(memory, team, level);
    meet();
    find_parents(memory, team, level);
    meet();
    lift_list(memory, team, level, memory.edges[level & 1], 0, memory.levels[level].edges);
    meet();
    drain_pairs(memory, team, level);
    meet();
}

/* Runs from the edges of level 1, some of which are still in the table of pairs, to the results of
 * all levels. All blocks must run at once. */
static __global__ void
__launch_bounds__(CLIMB_THREADS, CLIMB_BLOCKS) climb(const struct fuzzy_map_memory memory)
{
    const struct graph_team team = {blockIdx.x, gridDim.x};
    auto meet = [] { cooperative_groups::this_grid().sync(); };
    int level = 1;

    drain_pairs(memory, team, 0);
    meet();
    while (memory.levels[level].edges != 0 && max(memory.levels[level].nodes, memory.levels[level].edges) > CLIMB_ALONE)
        climb_level(memory, team, level++, meet);
    if (memory.levels[level].edges == 0) {
        descend(memory, team, level);
    } else if (team.block == 0) { /* the remaining levels up and back down on one block */
        const struct graph_team alone = {0, 1};
        auto meet_alone = [] { __syncthreads(); };
        int top = level;

        for (; memory.levels[top].edges != 0; top++)
            climb_level(memory, alone, top, meet_alone);
        for (; top >= level; top--) {
            descend(memory, alone, top);
            meet_alone();
        }
    }
    while (level-- > 0) {
        meet();
        descend(memory, team, level);
    }
}

/* Position of the first of a lane's two voxels of a row, of 64 along x. */
struct map_lane {
    int64_t x;
    size_t tile; /* first voxel */
    uint32_t base;
};

static __device__ __forceinline__ uint32_t
map_value(const struct fuzzy_map_memory &memory, uint32_t base, uint32_t component, uint32_t cap)
{
    if (component == TILE_NONE)
        return 0;
    return component == TILE_SEEDED ? cap : min(cap, (uint32_t)memory.connected[base + component]);
}

/* Reads the map of MAP_ROWS rows from `row` on, two voxels per word, 0 beyond the volume. Issues
 * all loads at once. */
static __device__ __forceinline__ void
map_rows(const struct fuzzy_map_memory &memory, const struct fuzzy_grid &grid, const struct map_lane &at, uint32_t row,
         int64_t y0, int64_t z, uint32_t (&value)[MAP_ROWS])
{
    uint32_t component[MAP_ROWS];

#pragma unroll
    for (uint32_t j = 0; j < MAP_ROWS; j++) {
        size_t place = at.tile + ((row + j) << 4 | (2 * threadIdx.x & 15));
        bool inside = at.x < grid.size[0] && y0 + j < grid.size[1] && z < grid.size[2];

        component[j] = inside ? *(const uint32_t *)(memory.component + place) : 0xffffffff;
        value[j] = inside ? *(const uint32_t *)(memory.cap + place) : 0;
    }
#pragma unroll
    for (uint32_t j = 0; j < MAP_ROWS; j++)
        value[j] = map_value(memory, at.base, component[j] & 0xffff, value[j] & 0xffff) |
                   map_value(memory, at.base, component[j] >> 16, value[j] >> 16) << 16;
}

static __device__ __forceinline__ void
write_row(const struct fuzzy_output &output, int64_t columns, int64_t x, int64_t line, uint32_t value)
{
    uint16_t *map = output.map + line * columns + x;

    if (x >= columns)
        return;
    if (columns % 2 == 0) {
        *(uint32_t *)map = value;
        return;
    }
    map[0] = (uint16_t)value;
    if (x + 1 < columns)
        map[1] = (uint16_t)(value >> 16);
}

/* Interleaves the bits of `even`, at even positions, with those of `odd`. */
static __device__ unsigned long long
interleaved(uint32_t even, uint32_t odd)
{
    unsigned long long bits[2] = {even, odd};

    for (unsigned long long &one : bits) {
        one = (one | one << 16) & 0x0000ffff0000ffffull;
        one = (one | one << 8) & 0x00ff00ff00ff00ffull;
        one = (one | one << 4) & 0x0f0f0f0f0f0f0f0full;
        one = (one | one << 2) & 0x3333333333333333ull;
        one = (one | one << 1) & 0x5555555555555555ull;
    }
    return bits[0] | bits[1] << 1;
}

/* Writes the map row by row. A block has four tiles along x, a warp MAP_ROWS rows of 64 voxels. */
static __global__ void
__launch_bounds__(GRAPH_THREADS)
    write_map(const struct fuzzy_map_memory memory, const struct fuzzy_grid grid, const struct fuzzy_output output)
{
    const uint32_t rows = FUZZY_TILE_SIDE * FUZZY_TILE_SIDE, lane = threadIdx.x & 31;
    int64_t group = blockIdx.x % output.words_per_row;
    uint64_t rest = blockIdx.x / output.words_per_row;
    int64_t z0 = (int64_t)(rest / grid.tiles[1]) * FUZZY_TILE_SIDE;
    uint32_t voxels = 0, tile;
    struct map_lane at;

    at.x = group * 64 + 2 * lane;
    tile = (uint32_t)(rest * grid.tiles[0]) + (uint32_t)(min(at.x, grid.size[0] - 1) / FUZZY_TILE_SIDE);
    at.tile = (size_t)tile * FUZZY_TILE_VOXELS;
    at.base = memory.base[tile];
    for (uint32_t row = (threadIdx.x >> 5) * MAP_ROWS; row < rows; row += GRAPH_THREADS / 32 * MAP_ROWS) {
        int64_t y0 = (int64_t)(rest % grid.tiles[1]) * FUZZY_TILE_SIDE + (row & 15);
        int64_t z = z0 + (row >> 4);
        uint32_t value[MAP_ROWS], even = 0, odd = 0;

        map_rows(memory, grid, at, row, y0, z, value);
#pragma unroll
        for (uint32_t j = 0; j < MAP_ROWS; j++) {
            uint32_t low = lanes_with((value[j] & 0xffff) > output.threshold);
            uint32_t high = lanes_with(value[j] >> 16 > output.threshold);

            if (output.map != NULL && y0 + j < grid.size[1] && z < grid.size[2])
                write_row(output, grid.size[0], at.x, z * grid.size[1] + y0 + j, value[j]);
            even = lane == j ? low : even;
            odd = lane == j ? high : odd;
        }
        voxels += __popc(even) + __popc(odd);
        if (output.bits != NULL && lane < MAP_ROWS && y0 + lane < grid.size[1] && z < grid.size[2])
            output.bits[(z * grid.size[1] + y0 + lane) * output.words_per_row + group] = interleaved(even, odd);
    }
    voxels = __reduce_add_sync(0xffffffff, voxels);
    if (lane == 0 && voxels != 0 && output.count != NULL)
        atomicAdd(output.count, (unsigned long long)voxels);
}

#endif
