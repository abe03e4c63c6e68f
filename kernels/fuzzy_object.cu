/*
 * fuzzy_object.cu - see fuzzy_object.cuh.
 *
 * A block makes the edges of one tile. A warp goes along z with ROWS rows of it, 32 voxels side by
 * side; what all of them say of an edge is a word.
 */
#include "fuzzy_object.cuh"

#include "cuda.cuh"

enum {
    ROWS = 8, /* of a warp */
    WARPS = EDGE_TILE_ROWS / ROWS,
    THREADS = 32 * WARPS,
    SMALL_SPAN = 8190,    /* twice the difference fits into 15 bits, the table into 32 KiB */
    NOWHERE = -(1 << 20), /* a value whose sum with any value is below all sums */
};

struct pack_arguments {
    const void *voxels;
    struct fuzzy_reach reach;
    struct edge_flood_volume volume;
};

/* Of a thread. */
struct pack_lane {
    int64_t x[2]; /* columns, 32 apart */
    int64_t y;    /* the warp's first row */
    uint32_t row; /* the same within the tile */
    int32_t sum_low;
    uint32_t last_sum;
    uint32_t tile;
};

/* The values of a warp's rows in one slice, and of the row after them. */
struct pack_rows {
    int32_t value[ROWS + 1][2];
    int32_t beyond[ROWS]; /* in the column after the tile's last; lane 0 */
};

/* SMALL: values, sums and reaches are doubled, so that a sum is the place of its 16-bit entry. */
template <typename Voxel, bool SMALL>
static __device__ __forceinline__ int32_t
load_value(const struct pack_arguments &arguments, int64_t x, int64_t row)
{
    const struct kernels_range padding = arguments.reach.padding;
    int32_t stored;

    if (x >= arguments.volume.size[0])
        return NOWHERE;
    stored = ((const Voxel *)arguments.voxels)[row * arguments.volume.size[0] + x];
    if (stored >= padding.lo && stored <= padding.hi)
        return NOWHERE;
    return SMALL ? 2 * stored : stored;
}

/* A lane's values; those outside of the volume are NOWHERE. */
template <typename Voxel, bool SMALL>
static __device__ __forceinline__ void
load_rows(const struct pack_arguments &arguments, const struct pack_lane &lane, int64_t z,
          struct pack_rows *rows)
{
    const int64_t *size = arguments.volume.size;
    const int64_t after = lane.x[1] + 32; /* in lane 0 */

#pragma unroll
    for (int i = 0; i <= ROWS; i++) {
        const bool inside = lane.y + i < size[1] && z < size[2];
        const int64_t row = z * size[1] + lane.y + i;

        rows->value[i][0] = inside ? load_value<Voxel, SMALL>(arguments, lane.x[0], row) : NOWHERE;
        rows->value[i][1] = inside ? load_value<Voxel, SMALL>(arguments, lane.x[1], row) : NOWHERE;
        if (i < ROWS)
            rows->beyond[i] = inside && threadIdx.x % 32 == 0
                                  ? load_value<Voxel, SMALL>(arguments, after, row)
                                  : NOWHERE;
    }
}

/* For 32 pairs of neighbours: whether their affinity is above the threshold. */
template <bool SMALL>
static __device__ __forceinline__ uint32_t
edges_of(const struct pack_lane &lane, const void *table, int32_t a, int32_t b)
{
    const uint32_t sum = min((uint32_t)(a + b - lane.sum_low), lane.last_sum);
    const int32_t reach = SMALL ? (int32_t) * (const int16_t *)((const char *)table + sum)
                                : __ldg((const int32_t *)table + sum);

    return __ballot_sync(~0u, abs(a - b) <= reach);
}

/* Both halves of a row lie side by side. */
static __device__ __forceinline__ void
put_row(uint32_t *edges, const struct pack_lane &lane, uint32_t place, uint32_t low, uint32_t high)
{
    if (threadIdx.x % 32 == 0)
        *(uint2 *)&edges[(size_t)lane.tile * EDGE_TILE_HALVES + place] = make_uint2(low, high);
}

/* The edges along x and y of the warp's rows of a slice. */
template <bool SMALL>
static __device__ __forceinline__ void
pack_slice(const struct pack_arguments &arguments, const struct pack_lane &lane, const void *table,
           const struct pack_rows &rows, uint32_t slice)
{
    const bool first = threadIdx.x % 32 == 0;
    const int next = (int)(threadIdx.x + 1) % 32;
    uint32_t leaving = 0;

#pragma unroll
    for (int i = 0; i < ROWS; i++) {
        const int32_t *value = rows.value[i], *after = rows.value[i + 1];
        const uint32_t place = edge_flood_place(slice, lane.row + (uint32_t)i, 0);
        int32_t right[2];
        uint32_t half[2];

        right[0] = __shfl_sync(~0u, first ? value[1] : value[0], next);
        right[1] = __shfl_sync(~0u, first ? rows.beyond[i] : value[1], next);
#pragma unroll
        for (int k = 0; k < 2; k++)
            half[k] = edges_of<SMALL>(lane, table, value[k], right[k]);
        leaving |= half[1] >> 31 << i;
        put_row(arguments.volume.edge[0], lane, place, half[0], half[1]);
#pragma unroll
        for (int k = 0; k < 2; k++)
            half[k] = edges_of<SMALL>(lane, table, value[k], after[k]);
        put_row(arguments.volume.edge[1], lane, place, half[0], half[1]);
    }
    /* The next tile's: two groups of 8 rows make one of 16. */
    if (first && lane.x[0] + EDGE_TILE_COLUMNS < arguments.volume.size[0])
        ((uint8_t *)arguments.volume
             .west)[((size_t)(lane.tile + 1) * EDGE_TILE_SIDE + edge_flood_side(slice, lane.row)) *
                        2 +
                    lane.row / ROWS % 2] = (uint8_t)leaving;
}

/* The edges along z from a slice to the next. */
template <bool SMALL>
static __device__ __forceinline__ void
pack_between(const struct pack_arguments &arguments, const struct pack_lane &lane,
             const void *table, const struct pack_rows &rows, const struct pack_rows &after,
             uint32_t slice)
{
#pragma unroll
    for (int i = 0; i < ROWS; i++) {
        uint32_t half[2];

#pragma unroll
        for (int k = 0; k < 2; k++)
            half[k] = edges_of<SMALL>(lane, table, rows.value[i][k], after.value[i][k]);
        put_row(arguments.volume.edge[2], lane, edge_flood_place(lane.row + (uint32_t)i, slice, 0),
                half[0], half[1]);
    }
}

static __device__ struct pack_lane
lane_of(const struct pack_arguments &arguments)
{
    const uint32_t *tiles = arguments.volume.tiles, tile = blockIdx.x;
    struct pack_lane lane;

    lane.tile = tile;
    lane.row = threadIdx.x / 32 * ROWS;
    lane.x[0] = (int64_t)(tile % tiles[0]) * EDGE_TILE_COLUMNS + threadIdx.x % 32;
    lane.x[1] = lane.x[0] + 32;
    lane.y = (int64_t)(tile / tiles[0] % tiles[1]) * EDGE_TILE_ROWS + lane.row;
    return lane;
}

template <typename Voxel, bool SMALL>
static __global__ void
__launch_bounds__(THREADS) pack_tiles(const __grid_constant__ struct pack_arguments arguments)
{
    extern __shared__ int16_t shared[];
    const struct edge_flood_volume &volume = arguments.volume;
    const uint32_t sums = 2 * (uint32_t)arguments.reach.span + 1;
    const int64_t z0 = (int64_t)(blockIdx.x / volume.tiles[0] / volume.tiles[1]) * EDGE_TILE_ROWS;
    const void *table = SMALL ? (const void *)shared : arguments.reach.reach;
    struct pack_lane lane = lane_of(arguments);
    struct pack_rows rows, after;

    lane.sum_low = (SMALL ? 4 : 2) * arguments.reach.low;
    lane.last_sum = (SMALL ? 2 : 1) * sums;
    if (SMALL)
        for (uint32_t i = threadIdx.x; i <= sums; i += THREADS)
            shared[i] = (int16_t)(2 * arguments.reach.reach[i]);
    for (uint32_t i = threadIdx.x; i < EDGE_TILE_HALVES / 4; i += THREADS)
        ((uint4 *)volume.settled)[(size_t)lane.tile * (EDGE_TILE_HALVES / 4) + i] =
            make_uint4(0, 0, 0, 0);
    __syncthreads();
    load_rows<Voxel, SMALL>(arguments, lane, z0, &rows);
    for (uint32_t slice = 0; slice < EDGE_TILE_ROWS; slice++) {
        pack_slice<SMALL>(arguments, lane, table, rows, slice);
        load_rows<Voxel, SMALL>(arguments, lane, z0 + slice + 1, &after);
        pack_between<SMALL>(arguments, lane, table, rows, after, slice);
        rows = after;
    }
}

template <typename Voxel>
static void
pack_volume(const struct pack_arguments *arguments, cudaStream_t stream)
{
    const size_t entries = 2 * (size_t)arguments->reach.span + 2;
    const unsigned tiles = arguments->volume.tile_count;

    if (arguments->reach.span <= SMALL_SPAN)
        pack_tiles<Voxel, true><<<tiles, THREADS, entries * sizeof(int16_t), stream>>>(*arguments);
    else
        pack_tiles<Voxel, false><<<tiles, THREADS, 0, stream>>>(*arguments);
}

cudaError_t
fuzzy_object_edges(const void *voxels, enum kernels_pixel pixel, const struct fuzzy_reach *reach,
                   const struct edge_flood_volume *volume, cudaStream_t stream)
{
    struct pack_arguments arguments = {voxels, *reach, *volume};
    cudaError_t error = edge_flood_begin(volume, stream);

    if (error != cudaSuccess)
        return error;
    switch (pixel) {
    case KERNELS_UINT8:
        pack_volume<uint8_t>(&arguments, stream);
        break;
    case KERNELS_INT16:
        pack_volume<int16_t>(&arguments, stream);
        break;
    case KERNELS_UINT16:
        pack_volume<uint16_t>(&arguments, stream);
        break;
    }
    return CUDA_OF(cudaGetLastError());
}
