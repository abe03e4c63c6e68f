/*
 * edge_flood_cuda.cuh - finds the voxels joined to seeds along edges between 6-neighbours, on
 * packed bits: the GPU counterpart of edge_flood.c.
 *
 * A tile has 64 x 32 x 32 voxels. Persistent blocks take tiles off a queue, and bring each to its fixed point in
 * registers and shared memory. A block queues a neighbour if an edge leads to a voxel there that may not be settled. A
 * tile reads its neighbours' settled voxels. Voxels only ever settle, so that a stale value costs a visit but causes no
 * error. At most one block visits a tile at a time.
 *
 * The worst case is a path of one voxel's width through many tiles. If the flood takes too long,
 * the blocks stop, and the caller must use another method.
 */
#ifndef NOCTULE_KERNELS_FUZZY_EDGE_FLOOD_CUDA_CUH
#define NOCTULE_KERNELS_FUZZY_EDGE_FLOOD_CUDA_CUH

#include "kernels/op.h"

#include <cuda_runtime.h>

enum {
    EDGE_TILE_COLUMNS = 64,
    EDGE_TILE_ROWS = 32,                                    /* and slices */
    EDGE_TILE_HALVES = 2 * EDGE_TILE_ROWS * EDGE_TILE_ROWS, /* half rows: 32 bits each */
    EDGE_TILE_SIDE = 2 * EDGE_TILE_ROWS,                    /* groups of 16 bits on a face across x */
    EDGE_NEXT_ROW = 128,                                    /* places from a row or slice to the next within 16 */
    EDGE_NEXT_SLICE = 2,
};

/* Counters of a flood; zero initially. */
struct edge_flood_counts {
    uint32_t head; /* tickets drawn from the queue; filled places */
    uint32_t tail;
    uint32_t outstanding; /* tiles queued or being visited */
    uint32_t stopped;     /* the flood took too long and is incomplete */
};

/*
 * A volume on the device. Tiles are numbered x fastest. A bit of edge[axis] joins its voxel and the
 * next one along the axis, also in the next tile. It is 0 if there is none. edge[0], edge[1] and
 * settled have a half row at edge_flood_place; edge[2] has it at the place with row and slice
 * exchanged.
 */
struct edge_flood_volume {
    int64_t size[3];
    uint32_t tiles[3];
    uint32_t tile_count;
    uint32_t queue_mask;
    uint32_t *edge[3]; /* EDGE_TILE_HALVES per tile */
    uint32_t *settled; /* as edge */
    uint16_t *west;    /* edges from the previous tile along x: EDGE_TILE_SIDE per tile */
    /* Zero at the beginning of a run from here on: */
    uint16_t *border; /* settled in the first and last column: twice EDGE_TILE_SIDE per tile */
    uint32_t *state;  /* one per tile */
    uint32_t *queue;  /* number of a tile + 1; 0: empty */
    struct edge_flood_counts *counts;
    size_t zeros; /* bytes, from border on */
};

/* Returns the place of a half row within its tile: the order in which a visit's threads read
 * them. */
static inline __host__ __device__ uint32_t
edge_flood_place(uint32_t slice, uint32_t row, uint32_t half)
{
    return (row & 15) << 7 | (slice >> 4) << 6 | (row >> 4) << 5 | (slice & 15) << 1 | half;
}

/* Returns the place of 16 rows of a slice, from 0 or 16, on a face across x. */
static inline __host__ __device__ uint32_t
edge_flood_side(uint32_t slice, uint32_t row)
{
    return slice << 1 | row >> 4;
}

/* Sets the sizes. Returns false if a number overflows. Must precede edge_flood_place_volume. */
bool edge_flood_measure(struct image_extent extent, struct edge_flood_volume *volume);
void edge_flood_place_volume(struct edge_flood_volume *volume, struct kernels_arena *arena);

/*
 * All of these only queue work on the stream:
 *
 *   seed    Settles voxels, each x + columns * (y + rows * z), and queues their tiles. `settled`
 *           and all edges must be ready.
 *   run     Runs to the fixed point, unless it is stopped.
 *   write   Writes the settled voxels as in struct image_mask, and adds their number to *count;
 *           writes no voxels if the flood was stopped.
 */

cudaError_t edge_flood_seed(const struct edge_flood_volume *volume, const uint32_t *seeds, uint32_t count,
                            cudaStream_t stream);
cudaError_t edge_flood_run(const struct edge_flood_volume *volume, int multiprocessors, cudaStream_t stream);
cudaError_t edge_flood_write(const struct edge_flood_volume *volume, unsigned long long *bits,
                             unsigned long long *count, cudaStream_t stream);

#endif
