/*
 * fuzzy_object.cu - see fuzzy_object.cuh.
 *
 * A block makes the edges of one tile. A warp moves along z with ROWS rows of it, 32 adjacent
 * voxels wide. A ballot of its lanes is a word of edges.
 */
#include "kernels/fuzzy/fuzzy_object.cuh"

#include "kernels/cuda/cuda.cuh"

#include <algorithm>

enum {
    ROWS = 8, /* rows per warp */
    WARPS = EDGE_TILE_ROWS / ROWS,
    THREADS = 32 * WARPS,
    BLOCKS_PER_PROCESSOR = 4,
    SMALL_SPAN = 8190,    /* twice the difference fits in 15 bits, the table in 32 KiB */
    NOWHERE = -(1 << 20), /* a value whose sum with any value is below all sums */
    NO_PIXEL = -(1 << 15) - 1,
    NO_PIXEL_EITHER = 1 << 16,
};

struct pack_arguments {
    const void *voxels;
    struct fuzzy_reach reach; /* padding is clipped to the pixel type */
    struct edge_flood_volume volume;
};

/* A thread's columns: `lane` and 32 + lane of a warp's rows. Places beyond the volume are moved to
 * its last voxel, so that all loads are unconditional and issued at once. */
template <typename Voxel> struct pack_lane {
    const Voxel *first; /* in the warp's first row and the volume's first slice */
    uint32_t second;    /* offset of the second column from the first */
    uint32_t far;       /* offset of column 63 of row `lane` from `first`, for lane < ROWS */
    uint32_t after;     /* offset of column 64 from that; 0: beyond the volume */
    uint32_t last_row;  /* of ROWS + 1, inside the volume */
    uint32_t rows[2];   /* number inside the volume, per column */
    uint32_t far_rows;  /* 1: row `lane` is inside */
    uint32_t row;       /* first row within the tile */
};

/* Stored values of a slice: the warp's rows and the one after them. */
struct pack_stored {
    int32_t at[ROWS + 1][2];
    int32_t far[2]; /* columns 63 and 64 */
};

/* Values relative to the smallest. NOWHERE: padding, or beyond the volume. SMALL: doubled, so that
 * a sum is the byte offset of its 16-bit entry. */
struct pack_values {
    int32_t at[ROWS + 1][2];
    int32_t far[2];
};

template <typename Voxel>
static __device__ __forceinline__ struct pack_lane<Voxel>
lane_of(const struct pack_arguments &arguments) {
    const struct edge_flood_volume &volume = arguments.volume;
    const uint32_t lane = threadIdx.x % 32, columns = (uint32_t)volume.size[0];
    const uint32_t size = (uint32_t)volume.size[1];
    const uint32_t x0 = blockIdx.x % volume.tiles[0] * EDGE_TILE_COLUMNS;
    const uint32_t x = min(x0 + lane, columns - 1), last_x = min(x0 + 63, columns - 1);
    struct pack_lane<Voxel> own;

    own.row = threadIdx.x / 32 * ROWS;
    const uint32_t y = blockIdx.x / volume.tiles[0] % volume.tiles[1] * EDGE_TILE_ROWS + own.row;
    const uint32_t inside = min(size - min(y, size), ROWS + 1);
    own.first = (const Voxel *)arguments.voxels + (size_t)min(y, size - 1) * columns + x;
    own.second = min(x0 + lane + 32, columns - 1) - x;
    own.last_row = inside > 0 ? inside - 1 : 0;
    own.far = min(lane % ROWS, own.last_row) * columns + last_x - x;
    own.after = x0 + 64 < columns ? 1 : 0;
    own.rows[0] = x0 + lane < columns ? inside : 0;
    own.rows[1] = x0 + lane + 32 < columns ? inside : 0;
    own.far_rows = lane % ROWS < inside ? 1 : 0;
    return own;

}

template <typename Voxel>
static __device__ __forceinline__ void
load_rows(const struct pack_arguments &arguments, const struct pack_lane<Voxel> &lane, int64_t z,
          struct pack_stored *stored)

{
    const int64_t *size = arguments.volume.size;
    const uint32_t columns = (uint32_t)size[0];
    const Voxel *slice = lane.first + min(z, size[2] - 1) * size[1] * size[0];

#pragma unroll
    for (uint32_t i = 0; i <= ROWS; i++) {
        const Voxel *row = slice + (size_t)min(i, lane.last_row) * columns;

        stored->at[i][0] = row[0];
        stored->at[i][1] = row[lane.second];
    }
    stored->far[0] = slice[lane.far];
    stored->far[1] = slice[lane.far + lane.after];
}

template <bool SMALL>
static __device__ __forceinline__ int32_t
value_of(const struct fuzzy_reach &reach, int32_t stored, bool inside)
{
    const uint32_t padding = (uint32_t)(reach.padding.hi - reach.padding.lo);
    const bool counts = inside && (uint32_t)(stored - reach.padding.lo) > padding;

    return counts ? (stored - reach.low) * (SMALL ? 2 : 1) : (int32_t)NOWHERE;
}

template <typename Voxel, bool SMALL>
static __device__ __forceinline__ void
find_values(const struct pack_arguments &arguments, const struct pack_lane<Voxel> &lane, int64_t z,
            const struct pack_stored &stored, struct pack_values *values)
{
    const struct fuzzy_reach &reach = arguments.reach;
    const bool inside = z < arguments.volume.size[2];
    const uint32_t rows[2] = {inside ? lane.rows[0] : 0, inside ? lane.rows[1] : 0};
    const bool far = inside && lane.far_rows != 0;

#pragma unroll
    for (uint32_t i = 0; i <= ROWS; i++)
#pragma unroll
        for (int k = 0; k < 2; k++)
            values->at[i][k] = value_of<SMALL>(reach, stored.at[i][k], i < rows[k]);
    values->far[0] = value_of<SMALL>(reach, stored.far[0], far);
    values->far[1] = value_of<SMALL>(reach, stored.far[1], far && lane.after != 0);
}

/* The table of reaches, and its last place. */
struct pack_table {
    const void *reach;
    uint32_t last;
};

/* Returns, for 32 pairs of neighbours, whether their affinity is above the threshold. */
template <bool SMALL>
static __device__ __forceinline__ uint32_t
edges_of(const struct pack_table &table, int32_t a, int32_t b)
{
    const uint32_t sum = min((uint32_t)(a + b), table.last);
    const int32_t reach = SMALL ? (int32_t) * (const int16_t *)((const char *)table.reach + sum)
                                : __ldg((const int32_t *)table.reach + sum);

    return __ballot_sync(~0u, abs(a - b) <= reach);
}

/* Makes the edges along x and y of the warp's rows of a slice. */
template <bool SMALL>
static __device__ __forceinline__ void
fuzzy_object_pack_slice(const struct edge_flood_volume &volume, const struct pack_table &table,
                        const struct pack_values &values, uint32_t row, uint32_t slice)
{
    const bool first = threadIdx.x % 32 == 0;
    const int next = (int)(threadIdx.x + 1) % 32;
    const size_t place = (size_t)blockIdx.x * EDGE_TILE_HALVES + edge_flood_place(slice, row, 0);
    const uint32_t leaving = edges_of<SMALL>(table, values.far[0], values.far[1]);

#pragma unroll
    for (int i = 0; i < ROWS; i++) {
        const int32_t *value = values.at[i], *after = values.at[i + 1];
        const int32_t right = __shfl_sync(~0u, first ? value[1] : value[0], next);
        uint2 x, y;

        x.x = edges_of<SMALL>(table, value[0], right);
        x.y = edges_of<SMALL>(table, value[1], __shfl_sync(~0u, value[1], next));
        x.y = (x.y & ~(1u << 31)) | leaving >> i << 31;
        y.x = edges_of<SMALL>(table, value[0], after[0]);
        y.y = edges_of<SMALL>(table, value[1], after[1]);
        if (first) {
            *(uint2 *)&volume.edge[0][place + i * EDGE_NEXT_ROW] = x;
            *(uint2 *)&volume.edge[1][place + i * EDGE_NEXT_ROW] = y;
        }
    }
    /* For the next tile: two groups of 8 rows make one of 16. */
    if (first && blockIdx.x % volume.tiles[0] + 1 < volume.tiles[0])
        ((uint8_t *)&volume
             .west[(size_t)(blockIdx.x + 1) * EDGE_TILE_SIDE + edge_flood_side(slice, row)])[row / ROWS % 2] =
            (uint8_t)leaving;
}

template <typename Voxel, bool SMALL>
static __global__ void
__launch_bounds__(THREADS, BLOCKS_PER_PROCESSOR) pack_tiles(const __grid_constant__ struct pack_arguments arguments)
{
    extern __shared__ int16_t shared[];
    const struct edge_flood_volume &volume = arguments.volume;
    const uint32_t sums = 2 * (uint32_t)arguments.reach.span + 1;
    const int64_t z0 = (int64_t)(blockIdx.x / volume.tiles[0] / volume.tiles[1]) * EDGE_TILE_ROWS;
    const struct pack_table table = {SMALL ? (const void *)shared : arguments.reach.reach, (SMALL ? 2 : 1) * sums};
    const struct pack_lane<Voxel> lane = lane_of<Voxel>(arguments);
    struct pack_stored stored;
    struct pack_values values, after;

    load_rows(arguments, lane, z0, &stored);
    if (SMALL)
        for (uint32_t i = threadIdx.x; i <= sums; i += THREADS)
            shared[i] = (int16_t)(2 * arguments.reach.reach[i]);
    for (uint32_t i = threadIdx.x; i < EDGE_TILE_HALVES / 4; i += THREADS)
        ((uint4 *)volume.settled)[(size_t)blockIdx.x * (EDGE_TILE_HALVES / 4) + i] = make_uint4(0, 0, 0, 0);
    __syncthreads();
    find_values<Voxel, SMALL>(arguments, lane, z0, stored, &values);
    for (uint32_t slice = 0; slice < EDGE_TILE_ROWS; slice++) {
        load_rows(arguments, lane, z0 + slice + 1, &stored);
        fuzzy_object_pack_slice<SMALL>(volume, table, values, lane.row, slice);
        find_values<Voxel, SMALL>(arguments, lane, z0 + slice + 1, stored, &after);
        /* Make the edges along z from the slice to the next. */
        const size_t place = (size_t)blockIdx.x * EDGE_TILE_HALVES + edge_flood_place(lane.row, slice, 0);

#pragma unroll
        for (int i = 0; i < ROWS; i += 2) {
            uint4 z;

            z.x = edges_of<SMALL>(table, values.at[i][0], after.at[i][0]);
            z.y = edges_of<SMALL>(table, values.at[i][1], after.at[i][1]);
            z.z = edges_of<SMALL>(table, values.at[i + 1][0], after.at[i + 1][0]);
            z.w = edges_of<SMALL>(table, values.at[i + 1][1], after.at[i + 1][1]);
            if (threadIdx.x % 32 == 0)
                *(uint4 *)&volume.edge[2][place + i * EDGE_NEXT_SLICE] = z;
        }
        values = after;
    }
}

typedef void pack_kernel(const struct pack_arguments);

template <bool SMALL>
static pack_kernel *
pack_of(enum image_pixel pixel)
{
    switch (pixel) {
    case IMAGE_UINT8:
        return pack_tiles<uint8_t, SMALL>;
    case IMAGE_INT16:
        return pack_tiles<int16_t, SMALL>;
    case IMAGE_UINT16:
        return pack_tiles<uint16_t, SMALL>;
    }
    return NULL;
}

cudaError_t
fuzzy_object_edges(const void *voxels, enum image_pixel pixel, const struct fuzzy_reach *reach,
                   const struct edge_flood_volume *volume, cudaStream_t stream)
{
    const bool small = reach->span <= SMALL_SPAN;
    const size_t entries = small ? 2 * (size_t)reach->span + 2 : 0;
    struct pack_arguments arguments = {voxels, *reach, *volume};
    struct image_range *padding = &arguments.reach.padding;
    pack_kernel *pack = small ? pack_of<true>(pixel) : pack_of<false>(pixel);
    cudaError_t error = CUDA_OF(cudaMemsetAsync(volume->border, 0, volume->zeros, stream));

    /* Padding outside the pixel type has no effect, and would overflow differences. */
    if (padding->lo > padding->hi)
        padding->hi = padding->lo = NO_PIXEL;
    padding->lo = std::clamp(padding->lo, (int32_t)NO_PIXEL, (int32_t)NO_PIXEL_EITHER);
    padding->hi = std::clamp(padding->hi, (int32_t)NO_PIXEL, (int32_t)NO_PIXEL_EITHER);
    if (error != cudaSuccess)
        return error;
    pack<<<volume->tile_count, THREADS, entries * sizeof(int16_t), stream>>>(arguments);
    return CUDA_OF(cudaGetLastError());
}
