/*
 * zones_whole.cu - tiles of one level. The seams need one number and one label for each,
 * independent of its neighbours. Image backgrounds have many. Lists the mixed tiles for
 * zones_tiles.cu.
 */
#include "kernels/texture/zones/zones_cuda.cuh"

namespace
{
enum {
    WHOLE_THREADS = 32, /* one warp per block: few warps cover all tiles */
    WHOLE_BUNDLES = ZONES_THREADS / ZONES_BUNDLE,
    WHOLE_VOXELS = ZONES_THREADS * ZONES_WIDTH,
};

/* Returns the position of a word, numbered as in a tile. */
__device__ __forceinline__ size_t
whole_at(const struct zones_job &job, const struct zones_place &begin, uint32_t word)
{
    const uint32_t rows = zones_rows(job);

    return zones_word_at(job, begin.x, begin.y + word % rows, begin.z + word / rows);
}

/* Returns the level of a tile that has only one and no voxel without, otherwise 0. */
__device__ __forceinline__ uint32_t
whole_level(const struct zones_job &job, const struct zones_place &begin)
{
    const uint32_t rows = zones_rows(job);
    uint32_t level = 0, differ = 0;

    if (begin.y + rows > job.rows || begin.z + ZONES_THREADS / rows > job.slices)
        return 0;
#pragma unroll
    for (uint32_t i = 0; i < WHOLE_BUNDLES; i++) {
        const uint32_t word = i * ZONES_BUNDLE;
        const uint32_t own = job.whole[zones_bundle_at(job, begin.x, begin.y + word % rows, begin.z + word / rows)];

        level = i == 0 ? own : level;
        differ |= own ^ level;
    }
    return differ ? 0 : level;
}

/* All lanes of the warp must call it. */
__device__ __forceinline__ uint32_t
whole_by_steps(const struct zones_job &job, const struct zones_place &begin)
{
    constexpr uint32_t quads = ZONES_WIDTH * sizeof(*job.steps) / sizeof(uint4);
    uint32_t least = ~0u;

    for (uint32_t i = threadIdx.x; i < ZONES_THREADS * quads; i += WHOLE_THREADS) {
        const uint4 *steps = (const uint4 *)(job.steps + whole_at(job, begin, i / quads) * ZONES_WIDTH);
        const uint4 four = __ldg(&steps[i % quads]);

        least = __vminu2(least, __vminu2(__vminu2(four.x, four.y), __vminu2(four.z, four.w)));
    }
    return __reduce_min_sync(~0u, min(least & 0xFFFF, least >> 16));
}

/* Writes the number and the label at this place for a tile. All lanes of the warp must call it. */
__device__ __forceinline__ void
whole_tell(const struct zones_job &job, const struct zones_place &begin, uint32_t level, uint32_t number,
           uint32_t label)
{
    const uint32_t rows = zones_rows(job), x = begin.x * ZONES_WIDTH;
    uint32_t least = 0;

    if (job.distances && job.steps)
        least = whole_by_steps(job, begin);
    else if (job.distances) { /* from the border of the volume: smallest at an end */
        least = min(min(x + 1, job.columns - (x + ZONES_WIDTH - 1)), min(begin.y + 1, job.rows - (begin.y + rows - 1)));
        if (!job.flat)
            least = min(least, min(begin.z + 1, job.slices - (begin.z + ZONES_THREADS / rows - 1)));
    }

    for (uint32_t word = threadIdx.x; word < ZONES_THREADS; word += WHOLE_THREADS)
        job.crossings[whole_at(job, begin, word)] = make_uint2(1, label);
    if (threadIdx.x > 0)
        return;
    job.labels[label] = job.parents[number] = number;
    job.groups[number] = (job.per_slice ? (job.first[2] + begin.z) << TEXTURE_ZONE_LEVEL_BITS : 0) | level;
    job.sizes[number] = WHOLE_VOXELS;
    if (job.distances)
        job.least[number] = least;
}

/* Returns the first of `lanes` places, taken once for the warp. */
__device__ __forceinline__ uint32_t
whole_take(uint32_t *used, uint32_t lanes)
{
    const uint32_t first = threadIdx.x == 0 && lanes ? atomicAdd(used, (uint32_t)__popc(lanes)) : 0;

    return __shfl_sync(~0u, first, 0);
}

__global__ void
__launch_bounds__(WHOLE_THREADS) zones_whole(const __grid_constant__ struct zones_job job, uint32_t tiles)
{
    const uint32_t tile = blockIdx.x * WHOLE_THREADS + threadIdx.x, before = (1u << threadIdx.x) - 1;
    const uint32_t rows = zones_rows(job), high = (job.rows - 1) / rows + 1;
    const struct zones_place begin = {tile % job.words, tile / job.words % high * rows,
                                      tile / job.words / high * (ZONES_THREADS / rows)};
    const uint32_t level = tile < tiles ? whole_level(job, begin) : 0;
    const uint32_t whole = __ballot_sync(~0u, level > 0), others = __ballot_sync(~0u, level == 0 && tile < tiles);
    uint32_t number = whole_take(job.numbers, whole), label = whole_take(job.label_count, whole);
    const uint32_t listed = whole_take(job.tile_count, others);

    if (others >> threadIdx.x & 1)
        job.tiles[listed + (uint32_t)__popc(others & before)] = begin;
    for (uint32_t left = whole; left; left &= left - 1) {
        const int lane = __ffs((int)left) - 1;
        const struct zones_place there = {__shfl_sync(~0u, begin.x, lane), __shfl_sync(~0u, begin.y, lane),
                                          __shfl_sync(~0u, begin.z, lane)};

        whole_tell(job, there, __shfl_sync(~0u, level, lane), number++, label++);
    }
}
} // namespace

void
zones_whole_queue(const struct zones_job *job, cudaStream_t stream)
{
    const uint32_t tiles = zones_tiles_of(*job);

    zones_whole<<<(tiles - 1) / WHOLE_THREADS + 1, WHOLE_THREADS, 0, stream>>>(*job, tiles);
}
