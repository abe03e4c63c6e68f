/*
 * fuzzy_map.cuh - the 16-bit connectedness map (Udupa 1996) as a maximum spanning forest.
 *
 * A voxel's value is the bottleneck of its path to a seed in a maximum spanning forest of the
 * 6-connected grid. Boruvka: every component takes its strongest edge, and
 *   F(v) = min(strongest edge of C0(v), of C1(v), ...) over the components C0, C1, ... that v is
 * in, round by round, until one has a seed. Components with a seed never choose. Two steps:
 *
 *  - contract: one block per tile of 16^3 voxels, affinities and labels in shared memory. The
 *    weakest edge around each square is dropped first: it is in no forest (cycle property). A
 *    component merges while its strongest edge stays inside the tile. One whose strongest edge
 *    leaves the tile is final. Then the forest of the tile's own edges between the remaining
 *    components is found in the same way: no other edge inside the tile can be in the forest of
 *    the volume.
 *  - the graph of the remaining components, at most a twelfth of the voxels, in global memory,
 *    level by level.
 *
 * Equal affinities are ordered by (inside its tile or not, place in the volume), equally from both
 * ends. Choices therefore form no cycle except two components that choose the same edge. Edges of
 * affinity 0 do not exist. Only the numbering of nodes depends on the order of blocks. The map is
 * exact.
 */
#ifndef NOCTULE_KERNELS_FUZZY_FUZZY_MAP_CUH
#define NOCTULE_KERNELS_FUZZY_FUZZY_MAP_CUH

#include "kernels/fuzzy/affinity.h"
#include "kernels/op.h"

#include <cuda_runtime.h>

#define FUZZY_TILE_SIDE   16
#define FUZZY_TILE_VOXELS 4096
#define FUZZY_TILE_FACES  768  /* edges to the next tiles along x, y and z */
#define FUZZY_SMALL_TABLE 4096 /* max entries of a table in shared memory */
#define FUZZY_LEVELS      34   /* each level at least halves the nodes, at most 2^32 */
#define FUZZY_NO_NODE     UINT32_C(0xffffffff)

/*
 * The affinity in 16.16 fixed point: table[0 .. sums] for a + b - sum_low, table[sums + 1 ..] for
 * |a - b|, 0 beyond either. Their sum is at most two units too small. Its integer part is therefore
 * right unless the fraction is at an edge, where the doubles decide.
 */
struct fuzzy_lookup {
    const uint32_t *table;
    int32_t sum_low;
    uint32_t sums, differences; /* entries of the two parts except their last, which is 0 */
    const double *first, *second;
    int32_t low, span; /* as in struct fuzzy_tables */
    struct image_range padding;
    /* affinities up to `above` become 0, and the others get the bits of `set` */
    uint32_t above, set;
};

struct fuzzy_grid {
    int64_t size[3];
    uint32_t tiles[3];
    uint32_t tile_count;
};

/* Two nodes and the affinity of the edge between them; 0: no edge. */
struct fuzzy_edges {
    uint2 *nodes;
    uint16_t *affinity;
};

/* One level of the graph. Node 0 represents all components with a seed. */
struct fuzzy_level {
    uint32_t nodes;
    uint32_t edges;
    uint64_t offset; /* of its nodes in the arrays of all levels */
};

/* Device memory of the map, with sizes as in fuzzy_map_place. */
struct fuzzy_map_memory {
    uint16_t *component;      /* per tile: node - base of the tile, or TILE_NONE, or TILE_SEEDED */
    uint16_t *cap;            /* per tile: min over the components of the tile */
    uint32_t *seeds;          /* one bit per voxel, per tile */
    uint16_t *faces;          /* affinities across the far faces, FUZZY_TILE_FACES per tile */
    uint32_t *base;           /* first node of each tile */
    uint32_t *chosen;         /* a node's neighbour, then its root (one level at a time) */
    uint32_t *parent;         /* all levels: the node of the next level */
    uint16_t *strongest;      /* all levels */
    uint16_t *connected;      /* all levels: the result */
    unsigned long long *best; /* one level */
    struct fuzzy_edges forest, edges[2];
    unsigned long long *pairs;  /* a hash table: the strongest edge between two nodes */
    uint32_t pair_slots;        /* a power of two */
    struct fuzzy_level *levels; /* FUZZY_LEVELS + 1 */
};

/* Results: any pointer may be NULL. The count is added to. */
struct fuzzy_output {
    uint16_t *map;            /* x fastest, tightly packed */
    unsigned long long *bits; /* as in struct image_mask */
    int64_t words_per_row;
    unsigned long long *count;
    uint32_t threshold;
};

/* A volume on the device and its affinities. */
struct fuzzy_volume {
    const void *voxels;
    enum image_pixel pixel;
    struct fuzzy_grid grid;
    struct fuzzy_lookup lookup;
};

static inline int64_t
fuzzy_ceil(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

static inline struct fuzzy_grid
fuzzy_grid_of(struct image_extent extent)
{
    struct fuzzy_grid grid = {{extent.columns, extent.rows, extent.slices}, {0, 0, 0}, 0};
    uint64_t count = 1;

    for (int axis = 0; axis < 3; axis++) {
        grid.tiles[axis] = (uint32_t)fuzzy_ceil(grid.size[axis], FUZZY_TILE_SIDE);
        count *= grid.tiles[axis];
    }
    /* Places in tiles are 32-bit numbers. */
    grid.tile_count = count * FUZZY_TILE_VOXELS > UINT32_MAX ? 0 : (uint32_t)count;
    return grid;
}

/* Fills `table` (at most 3 * span + 4 entries) and the lookup that describes it. */
void fuzzy_fix_tables(const struct fuzzy_tables *tables, uint32_t *table, struct fuzzy_lookup *lookup);

static inline __host__ __device__ uint32_t
fuzzy_fixed_entries(const struct fuzzy_lookup *lookup)
{
    return lookup->sums + lookup->differences + 2;
}

/* With `binary`, all affinities above the threshold become 65535 and others 0: this finds the same
 * object sooner. */
static inline void
fuzzy_lookup_binary(struct fuzzy_lookup *lookup, bool binary, uint16_t threshold)
{
    lookup->above = binary ? threshold : 0;
    lookup->set = binary ? 65535 : 0;
}

void fuzzy_map_place(const struct fuzzy_grid *grid, struct kernels_arena *arena, struct fuzzy_map_memory *memory);

/* Queues the map on the stream. memory->seeds must be set. */
cudaError_t fuzzy_map_run(const struct fuzzy_volume *volume, const struct fuzzy_map_memory *memory,
                          const struct fuzzy_output *output, int multiprocessors, cudaStream_t stream);

#endif
