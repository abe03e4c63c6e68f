/*
 * edge_flood_cuda.cuh - which voxels are joined to seeds along edges between 6-neighbours, on
 * packed bits: what edge_flood.c is on the CPU.
 *
 * A tile has 64 x 32 x 32 voxels. Persistent blocks take tiles off a queue, bring one to its own
 * fixed point in registers and shared memory, and queue the neighbours in which an edge leads to a
 * voxel that is not known to be settled. A tile reads what its neighbours have settled for itself;
 * voxels only ever settle, so that an old value costs a visit and never a mistake. A tile is
 * visited by one block at a time.
 *
 * A path of one voxel's width through many tiles is the worst case. When the flood has taken longer
 * than it should the blocks stop, and the caller finds the voxels in another way.
 */
#ifndef NOCTULE_EDGE_FLOOD_CUDA_CUH
#define NOCTULE_EDGE_FLOOD_CUDA_CUH

#include "kernels/op.h"

#include <cuda_runtime.h>

enum {
    EDGE_TILE_COLUMNS = 64,
    EDGE_TILE_ROWS = 32,                                    /* and slices */
    EDGE_TILE_HALVES = 2 * EDGE_TILE_ROWS * EDGE_TILE_ROWS, /* of rows: 32 bits each */
    EDGE_TILE_SIDE = 2 * EDGE_TILE_ROWS, /* groups of 16 bits on a face across x */
    EDGE_NEXT_ROW = 128, /* places from a row to the next within 16 rows; the same of a slice */
    EDGE_NEXT_SLICE = 2,
};

/* What a flood counts; zero at its beginning. */
struct edge_flood_counts {
    uint32_t head; /* tickets of the queue that were drawn; of the places that were filled */
    uint32_t tail;
    uint32_t outstanding; /* tiles queued or being visited */
    uint32_t stopped;     /* the flood took too long and is not complete */
};

/*
 * A volume on the device. Tiles are numbered x fastest. A bit of edge[axis] joins its voxel and the
 * next one along the axis, in the next tile too; it is 0 where there is none. edge[0], edge[1] and
 * settled hold the half of a row at edge_flood_place, edge[2] at the place with row and slice
 * exchanged.
 */
struct edge_flood_volume {
    int64_t size[3];
    uint32_t tiles[3];
    uint32_t tile_count;
    uint32_t queue_mask;
    uint32_t *edge[3]; /* EDGE_TILE_HALVES a tile */
    uint32_t *settled; /* the same */
    uint16_t *west;    /* edges from the tile before along x: EDGE_TILE_SIDE a tile */
    /* From here on zero at the beginning of a run: */
    uint16_t *border; /* settled in the first column and in the last: twice EDGE_TILE_SIDE a tile */
    uint32_t *state;  /* one a tile */
    uint32_t *queue;  /* number of a tile + 1; 0: empty */
    struct edge_flood_counts *counts;
    size_t zeros; /* bytes, from border on */
};

/* Of a half of a row within its tile: in this order the threads of a visit read them. */
static inline __host__ __device__ uint32_t
edge_flood_place(uint32_t slice, uint32_t row, uint32_t half)
{
    return (row & 15) << 7 | (slice >> 4) << 6 | (row >> 4) << 5 | (slice & 15) << 1 | half;
}

/* Of 16 rows of a slice, from 0 or 16, on a face across x. */
static inline __host__ __device__ uint32_t
edge_flood_side(uint32_t slice, uint32_t row)
{
    return slice << 1 | row >> 4;
}

/* Fills in the sizes; false when a number does not fit. Then the pieces are taken. */
bool edge_flood_measure(struct image_extent extent, struct edge_flood_volume *volume);
void edge_flood_place_volume(struct edge_flood_volume *volume, struct kernels_arena *arena);

/*
 * All of these only queue work on the stream:
 *
 *   begin   the zeros
 *   seed    settles voxels, each x + columns * (y + rows * z), and queues their tiles; `settled`
 *           and all edges are there
 *   run     to the fixed point, unless it is stopped
 *   write   the settled voxels as in struct image_mask, and adds their number to *count; nothing
 *           if it was stopped
 */
cudaError_t edge_flood_begin(const struct edge_flood_volume *volume, cudaStream_t stream);
cudaError_t edge_flood_seed(const struct edge_flood_volume *volume, const uint32_t *seeds,
                            uint32_t count, cudaStream_t stream);
cudaError_t edge_flood_run(const struct edge_flood_volume *volume, int multiprocessors,
                           cudaStream_t stream);
cudaError_t edge_flood_write(const struct edge_flood_volume *volume, unsigned long long *bits,
                             unsigned long long *count, cudaStream_t stream);

#endif
