/*
 * fuzzy_cuda.cu - fuzzy connectedness on the GPU: tables, seeds and results for the map of
 * fuzzy_map.cuh, one object after the other, and relative connectedness. An object whose map is not
 * needed is found by a flood over edges (fuzzy_object.cuh), unless that takes too long.
 */
#include "kernels/cuda/cuda.cuh"
#include "kernels/fuzzy/affinity.h"
#include "kernels/fuzzy/fuzzy_map.cuh"
#include "kernels/fuzzy/fuzzy_object.cuh"
#include "kernels/fuzzy/seeds.h"
#include "kernels/range/range.h"

#include <errno.h>
#include <stdlib.h>

#define SEED_BATCH       4096
#define RELATIVE_THREADS 256

struct cuda_fuzzy {
    struct kernels_fuzzy_demand demand;
    struct fuzzy_grid grid;
    struct fuzzy_map_memory memory;
    struct edge_flood_volume edges; /* shares the map's memory */
    size_t voxels, words, words_per_row;
    double *first, *second, *host_first, *host_second;
    uint32_t *table, *host_table;
    int32_t *reach, *host_reach;
    uint32_t *seeds, *host_seeds;
    struct edge_flood_counts *host_counts;
    /* of all objects if relative, otherwise of one; and the requested maps */
    uint16_t *map, *host_map;
    unsigned long long *bits, *host_bits; /* one plane per object */
    unsigned long long *count, *host_count;
    uint16_t *threshold, *host_threshold;
};

static struct cuda_fuzzy *
cuda_fuzzy_state(const struct kernels_lane *lane)
{
    return (struct cuda_fuzzy *)kernels_state(lane, KERNELS_FUZZY);
}

static bool
cuda_fuzzy_needs(struct kernels_lane *lane, const void *demand)
{
    struct cuda_fuzzy *fuzzy = cuda_fuzzy_state(lane);
    const struct image_extent *extent = &lane->extent;

    fuzzy->demand = *(const struct kernels_fuzzy_demand *)demand;
    fuzzy->grid = fuzzy_grid_of(*extent);
    fuzzy->voxels = (size_t)image_voxels(extent);
    fuzzy->words_per_row = (size_t)fuzzy_ceil(extent->columns, 64);
    fuzzy->words = fuzzy->words_per_row * (size_t)(extent->rows * extent->slices);
    return fuzzy->grid.tile_count != 0 && edge_flood_measure(*extent, &fuzzy->edges);
}

/* Takes the same from both memories. */
template <typename Element>
static void
take_both(struct kernels_memory *memory, Element **device, Element **pinned, size_t count, size_t each = 1)
{
    cuda_take(&memory->device, device, count, each);
    cuda_take(&memory->host, pinned, count, each);
}

static void
cuda_fuzzy_place(struct kernels_lane *lane, struct kernels_memory *memory)
{
    struct cuda_fuzzy *fuzzy = cuda_fuzzy_state(lane);
    size_t values = lane->pixel == IMAGE_UINT8 ? 1 << 8 : 1 << 16;
    size_t objects = fuzzy->demand.objects, maps = fuzzy->demand.maps;
    struct kernels_arena map = memory->device, flood = memory->device; /* used alternately */

    fuzzy_map_place(&fuzzy->grid, &map, &fuzzy->memory);
    edge_flood_place_volume(&fuzzy->edges, &flood);
    memory->device = flood.used > map.used ? flood : map;
    take_both(memory, &fuzzy->first, &fuzzy->host_first, values, 2);
    take_both(memory, &fuzzy->second, &fuzzy->host_second, values);
    take_both(memory, &fuzzy->table, &fuzzy->host_table, 3 * values + 2);
    take_both(memory, &fuzzy->reach, &fuzzy->host_reach, values, 2);
    take_both(memory, &fuzzy->seeds, &fuzzy->host_seeds, SEED_BATCH);
    cuda_take(&memory->host, &fuzzy->host_counts, 1);
    take_both(memory, &fuzzy->bits, &fuzzy->host_bits, objects, fuzzy->words);
    take_both(memory, &fuzzy->count, &fuzzy->host_count, objects);
    take_both(memory, &fuzzy->threshold, &fuzzy->host_threshold, objects);
    cuda_take(&memory->device, &fuzzy->map, fuzzy->demand.relative ? objects : (maps != 0 ? 1 : 0), fuzzy->voxels);
    cuda_take(&memory->host, &fuzzy->host_map, maps, fuzzy->voxels);
}

/* Waits for the stream, so that transfers of the previous object have ended. */
static int
cuda_fuzzy_make_tables(struct cuda_lane *lane, const struct kernels_fuzzy_object *object, struct fuzzy_tables *tables,
                       struct error *error)
{
    struct image_range range;
    const struct range_request request = {object->padding, &range};
    /* Must not call kernels_volume_range, which waits for the turn that this run holds. */
    int rc = cuda_range_op.run(&lane->base, &request, error);

    if (rc == -ENODATA)
        range.lo = range.hi = 0; /* all voxels are padding: no affinity is looked up */
    else if (rc != 0)
        return rc;
    tables->low = range.lo;
    tables->span = range.hi - range.lo;
    tables->first = cuda_fuzzy_state(&lane->base)->host_first;
    tables->second = cuda_fuzzy_state(&lane->base)->host_second;
    fuzzy_fill_tables(object, tables);
    return 0;
}

static __global__ void
mark_seeds(uint32_t *marks, const uint32_t *seeds, uint32_t count)
{
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i < count)
        atomicOr(&marks[seeds[i] >> 5], 1u << (seeds[i] & 31));
}

/* Sends the next batch of seeds: as places in the map's tiles or, for the flood, as x + columns * (y + rows * z). The
 * batch is empty at the end. */
static int
send_seeds(struct cuda_lane *lane, struct fuzzy_seeds *seeds, bool in_tiles, uint32_t *count, struct error *error)
{
    struct cuda_fuzzy *fuzzy = cuda_fuzzy_state(&lane->base);
    const struct fuzzy_grid *grid = &fuzzy->grid;
    const bool is_first = seeds->listed == 0 && seeds->word == 0;
    struct kernels_voxel seed;

    *count = 0;
    if (!is_first) /* the previous batch has been sent */
        CUDA_TRY(cuda_device_of(&lane->base), cudaStreamSynchronize(lane->work));
    while (*count < SEED_BATCH && fuzzy_seeds_next(seeds, &seed)) {
        const uint32_t x = (uint32_t)seed.x, y = (uint32_t)seed.y, z = (uint32_t)seed.z;
        const uint32_t tile = ((z >> 4) * grid->tiles[1] + (y >> 4)) * grid->tiles[0] + (x >> 4);

        fuzzy->host_seeds[(*count)++] = in_tiles
                                            ? tile * FUZZY_TILE_VOXELS + ((z & 15) << 8 | (y & 15) << 4 | (x & 15))
                                            : (uint32_t)(seed.x + grid->size[0] * (seed.y + grid->size[1] * seed.z));
    }
    if (*count > 0)
        CUDA_SEND(lane, fuzzy->seeds, fuzzy->host_seeds, *count);
    return 0;
}

static int
upload_seeds(struct cuda_lane *lane, const struct kernels_fuzzy_object *object, struct error *error)
{
    struct cuda_device *device = cuda_device_of(&lane->base);
    struct cuda_fuzzy *fuzzy = cuda_fuzzy_state(&lane->base);
    struct fuzzy_seeds seeds = fuzzy_seeds_of(object, &lane->base.extent);
    uint32_t count;

    CUDA_TRY(device, cudaMemsetAsync(fuzzy->memory.seeds, 0, (size_t)fuzzy->grid.tile_count * (FUZZY_TILE_VOXELS / 8),
                                     lane->work));
    do {
        int rc = send_seeds(lane, &seeds, true, &count, error);

        if (rc != 0)
            return rc;
        mark_seeds<<<SEED_BATCH / 256, 256, 0, lane->work>>>(fuzzy->memory.seeds, fuzzy->seeds, count);
        CUDA_LAUNCHED(device);
    } while (count == SEED_BATCH);
    return 0;
}

/* Assigns every voxel above several thresholds to the object that is strictly strongest there. One
 * warp handles 64 voxels. */
static __global__ void
__launch_bounds__(RELATIVE_THREADS)
    resolve(const uint16_t *maps, const uint16_t *thresholds, size_t objects, size_t voxels, struct image_extent extent,
            size_t words, size_t words_per_row, unsigned long long *bits, unsigned long long *counts)
{
    size_t stride = (size_t)gridDim.x * blockDim.x / 32;
    uint32_t lane = threadIdx.x & 31;

    for (size_t word = ((size_t)blockIdx.x * blockDim.x + threadIdx.x) / 32; word < words; word += stride) {
        int64_t row = (int64_t)(word / words_per_row);
        int64_t x0 = (int64_t)(word % words_per_row) * 64;
        size_t owner[2];

        for (int i = 0; i < 2; i++) {
            int64_t x = x0 + i * 32 + lane;
            size_t voxel = (size_t)(row * extent.columns + x);
            uint32_t strongest = 0;

            owner[i] = objects;
            for (size_t object = 0; x < extent.columns && object < objects; object++) {
                uint32_t value = maps[object * voxels + voxel];

                if (value <= thresholds[object] || value < strongest)
                    continue;
                owner[i] = value == strongest ? objects : object;
                strongest = value;
            }
        }
        for (size_t object = 0; object < objects; object++) {
            uint32_t low = __ballot_sync(0xffffffff, owner[0] == object);
            uint32_t high = __ballot_sync(0xffffffff, owner[1] == object);

            if (lane != 0)
                continue;
            bits[object * words + word] = (unsigned long long)high << 32 | low;
            if ((low | high) != 0)
                atomicAdd(&counts[object], (unsigned long long)(__popc(low) + __popc(high)));
        }
    }
}

/* Finds the object without its map. Sets *found to false if that is not possible. Waits. */
static int
flood_object(struct cuda_lane *lane, const struct kernels_fuzzy_object *object, const struct fuzzy_tables *tables,
             size_t index, bool *found, struct error *error)
{
    struct cuda_device *device = cuda_device_of(&lane->base);
    struct cuda_fuzzy *fuzzy = cuda_fuzzy_state(&lane->base);
    const struct fuzzy_reach reach = {fuzzy->reach, tables->low, tables->span, object->padding};
    struct fuzzy_seeds seeds = fuzzy_seeds_of(object, &lane->base.extent), first = seeds;
    struct kernels_voxel seed;
    uint32_t count;

    *found = false;
    if (!fuzzy_seeds_next(&first, &seed) || object->threshold == UINT16_MAX ||
        !fuzzy_fill_reach(tables, object->threshold, fuzzy->host_reach))
        return 0;
    CUDA_SEND(lane, fuzzy->reach, fuzzy->host_reach, 2 * (size_t)tables->span + 2);
    CUDA_TRY(device, fuzzy_object_edges(lane->device_voxels, lane->base.pixel, &reach, &fuzzy->edges, lane->work));
    do {
        const int rc = send_seeds(lane, &seeds, false, &count, error);

        if (rc != 0)
            return rc;
        if (count > 0)
            CUDA_TRY(device, edge_flood_seed(&fuzzy->edges, fuzzy->seeds, count, lane->work));
    } while (count == SEED_BATCH);
    CUDA_TRY(device, edge_flood_run(&fuzzy->edges, device->multiprocessors, lane->work));
    CUDA_TRY(device,
             edge_flood_write(&fuzzy->edges, fuzzy->bits + index * fuzzy->words, fuzzy->count + index, lane->work));
    CUDA_FETCH(lane, fuzzy->host_counts, fuzzy->edges.counts, 1);
    CUDA_TRY(device, cudaStreamSynchronize(lane->work));
    *found = fuzzy->host_counts->stopped == 0;
    return 0;
}

static int
run_object(struct cuda_lane *lane, const struct kernels_fuzzy_object *object, size_t index, bool relative,
           struct error *error)
{
    struct cuda_device *device = cuda_device_of(&lane->base);
    struct cuda_fuzzy *fuzzy = cuda_fuzzy_state(&lane->base);
    struct fuzzy_tables tables;
    struct fuzzy_volume volume;
    struct fuzzy_output output;
    bool found = false;
    int rc = cuda_fuzzy_make_tables(lane, object, &tables, error);

    if (rc == 0 && !object->map && !relative)
        rc = flood_object(lane, object, &tables, index, &found, error);
    if (rc != 0 || found)
        return rc;
    volume.voxels = lane->device_voxels;
    volume.pixel = lane->base.pixel;
    volume.grid = fuzzy->grid;
    fuzzy_fix_tables(&tables, fuzzy->host_table, &volume.lookup);
    volume.lookup.table = fuzzy->table;
    volume.lookup.first = fuzzy->first;
    volume.lookup.second = fuzzy->second;
    volume.lookup.padding = object->padding;
    CUDA_SEND(lane, fuzzy->first, fuzzy->host_first, 2 * (size_t)tables.span + 1);
    CUDA_SEND(lane, fuzzy->second, fuzzy->host_second, (size_t)tables.span + 1);
    CUDA_SEND(lane, fuzzy->table, fuzzy->host_table, fuzzy_fixed_entries(&volume.lookup));
    rc = upload_seeds(lane, object, error);
    if (rc != 0)
        return rc;
    fuzzy_lookup_binary(&volume.lookup, !object->map && !relative, object->threshold);
    output.map = relative ? fuzzy->map + index * fuzzy->voxels : object->map ? fuzzy->map : NULL;
    output.bits = relative ? NULL : fuzzy->bits + index * fuzzy->words;
    output.words_per_row = (int64_t)fuzzy->words_per_row;
    output.count = relative ? NULL : fuzzy->count + index;
    output.threshold = object->threshold;
    CUDA_TRY(device, fuzzy_map_run(&volume, &fuzzy->memory, &output, device->multiprocessors, lane->work));
    return 0;
}

static int
run_relative(struct cuda_lane *lane, const struct kernels_fuzzy_object *objects, struct error *error)
{
    struct cuda_device *device = cuda_device_of(&lane->base);
    struct cuda_fuzzy *fuzzy = cuda_fuzzy_state(&lane->base);

    for (size_t i = 0; i < fuzzy->demand.objects; i++)
        fuzzy->host_threshold[i] = objects[i].threshold;
    CUDA_SEND(lane, fuzzy->threshold, fuzzy->host_threshold, fuzzy->demand.objects);
    resolve<<<(unsigned)device->multiprocessors * 8, RELATIVE_THREADS, 0, lane->work>>>(
        fuzzy->map, fuzzy->threshold, fuzzy->demand.objects, fuzzy->voxels, lane->base.extent, fuzzy->words,
        fuzzy->words_per_row, fuzzy->bits, fuzzy->count);
    CUDA_LAUNCHED(device);
    return 0;
}

static int
cuda_fuzzy_run(struct kernels_lane *base, const void *given, struct error *error)
{
    const struct fuzzy_request *request = (const struct fuzzy_request *)given;
    const struct kernels_fuzzy_object *objects = request->objects;
    const bool relative = request->relative;
    struct cuda_lane *lane = cuda_lane_of(base);
    struct cuda_fuzzy *fuzzy = cuda_fuzzy_state(base);
    size_t fetched = 0;
    int rc = 0;

    CUDA_TRY(cuda_device_of(base), cudaMemsetAsync(fuzzy->count, 0, request->count * sizeof *fuzzy->count, lane->work));
    for (size_t i = 0; rc == 0 && i < request->count; i++) {
        request->results[i].map = NULL;
        rc = run_object(lane, &objects[i], i, relative, error);
        if (rc == 0 && objects[i].map) {
            uint16_t *host = fuzzy->host_map + fetched++ * fuzzy->voxels;

            CUDA_FETCH(lane, host, fuzzy->map + (relative ? i * fuzzy->voxels : 0), fuzzy->voxels);
            request->results[i].map = host;
        }
    }
    if (rc == 0 && relative)
        rc = run_relative(lane, objects, error);
    if (rc != 0)
        return rc;
    CUDA_FETCH(lane, fuzzy->host_bits, fuzzy->bits, request->count * fuzzy->words);
    CUDA_FETCH(lane, fuzzy->host_count, fuzzy->count, request->count);
    CUDA_TRY(cuda_device_of(base), cudaStreamSynchronize(lane->work));
    for (size_t i = 0; i < request->count; i++) {
        struct image_mask *object = &request->results[i].object;

        object->bits = (const uint64_t *)(fuzzy->host_bits + i * fuzzy->words);
        object->words_per_row = (int64_t)fuzzy->words_per_row;
        object->voxels = (int64_t)fuzzy->host_count[i];
    }
    return 0;
}

const struct kernels_op cuda_fuzzy_op = {
    .name = "fuzzy connectedness",
    .state_size = sizeof(struct cuda_fuzzy),
    .needs = cuda_fuzzy_needs,
    .place = cuda_fuzzy_place,
    .run = cuda_fuzzy_run,
};
