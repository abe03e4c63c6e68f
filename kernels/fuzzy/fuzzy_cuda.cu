/*
 * fuzzy_cuda.cu - paper 003 on the GPU: tables, seeds and results around the scene of
 * fuzzy_scene.cuh, one object after the other, and relative connectedness. An object whose scene is
 * not needed is a flood over edges, fuzzy_object.cuh, unless that takes too long.
 */
#include "kernels/cuda/cuda.cuh"
#include "kernels/fuzzy/fuzzy.h"
#include "kernels/fuzzy/fuzzy_object.cuh"
#include "kernels/fuzzy/fuzzy_scene.cuh"

#include <errno.h>
#include <stdlib.h>

#define SEED_BATCH       4096
#define RELATIVE_THREADS 256

struct cuda_fuzzy {
    struct fuzzy_grid grid;
    struct fuzzy_scene_memory memory;
    struct edge_flood_volume edges; /* in the same memory */
    size_t voxels, words, words_per_row, objects;
    double *first, *second, *host_first, *host_second;
    uint32_t *table, *host_table;
    int32_t *reach, *host_reach;
    uint32_t *seeds, *host_seeds;
    struct edge_flood_counts *host_counts;
    uint16_t *scene, *host_scene;         /* of all objects when relative, else of one; wanted */
    unsigned long long *bits, *host_bits; /* one plane an object */
    unsigned long long *count, *host_count;
    uint16_t *threshold, *host_threshold;
};

int
cuda_fuzzy_open(struct cuda_lane *lane)
{
    lane->fuzzy = (struct cuda_fuzzy *)calloc(1, sizeof *lane->fuzzy);
    return lane->fuzzy == NULL ? -ENOMEM : 0;
}

void
cuda_fuzzy_close(struct cuda_lane *lane)
{
    free(lane->fuzzy);
    lane->fuzzy = NULL;
}

/* Either counts a piece of both arenas or takes it. */
struct pieces {
    struct cuda_lane *lane; /* NULL: count */
    struct cuda_needs *needs;
    bool fits;
};

template <typename Element>
static void
piece(struct pieces *pieces, Element **device, Element **pinned, size_t count)
{
    if (pieces->lane == NULL) {
        pieces->fits =
            pieces->fits &&
            (device == NULL || cuda_needs_add(&pieces->needs->device, count, sizeof(Element))) &&
            (pinned == NULL || cuda_needs_add(&pieces->needs->pinned, count, sizeof(Element)));
        return;
    }
    if (device != NULL)
        *device = (Element *)cuda_arena_take(&pieces->lane->device, count * sizeof(Element));
    if (pinned != NULL)
        *pinned = (Element *)cuda_arena_take(&pieces->lane->pinned, count * sizeof(Element));
}

static void
measure(struct cuda_fuzzy *fuzzy, const struct kernels_lane *lane)
{
    const struct image_extent *extent = &lane->extent;

    fuzzy->grid = fuzzy_grid_of(*extent);
    fuzzy->voxels = (size_t)(extent->columns * extent->rows * extent->slices);
    fuzzy->words_per_row = (size_t)fuzzy_ceil(extent->columns, 64);
    fuzzy->words = fuzzy->words_per_row * (size_t)(extent->rows * extent->slices);
    fuzzy->objects = lane->demand.fuzzy_objects;
}

static void
all_pieces(struct pieces *pieces, struct cuda_fuzzy *fuzzy, const struct kernels_lane *lane)
{
    size_t values = lane->pixel == IMAGE_UINT8 ? 1 << 8 : 1 << 16;
    size_t objects = fuzzy->objects, scenes = lane->demand.fuzzy_scenes;
    size_t scene_bytes = fuzzy_scene_place(&fuzzy->grid, NULL, &fuzzy->memory);
    size_t edge_bytes = edge_flood_place_volume(lane->extent, NULL, &fuzzy->edges);
    unsigned char *start = NULL;

    piece(pieces, &start, (unsigned char **)NULL,
          edge_bytes > scene_bytes ? edge_bytes : scene_bytes);
    fuzzy_scene_place(&fuzzy->grid, start, &fuzzy->memory);
    edge_flood_place_volume(lane->extent, start, &fuzzy->edges);
    piece(pieces, &fuzzy->first, &fuzzy->host_first, 2 * values);
    piece(pieces, &fuzzy->second, &fuzzy->host_second, values);
    piece(pieces, &fuzzy->table, &fuzzy->host_table, 3 * values + 2);
    piece(pieces, &fuzzy->reach, &fuzzy->host_reach, 2 * values);
    piece(pieces, &fuzzy->seeds, &fuzzy->host_seeds, SEED_BATCH);
    piece(pieces, (struct edge_flood_counts **)NULL, &fuzzy->host_counts, 1);
    piece(pieces, &fuzzy->bits, &fuzzy->host_bits, objects * fuzzy->words);
    piece(pieces, &fuzzy->count, &fuzzy->host_count, objects);
    piece(pieces, &fuzzy->threshold, &fuzzy->host_threshold, objects);
    piece(pieces, &fuzzy->scene, (uint16_t **)NULL,
          (lane->demand.fuzzy_relative ? objects : (scenes != 0 ? 1 : 0)) * fuzzy->voxels);
    piece(pieces, (uint16_t **)NULL, &fuzzy->host_scene, scenes * fuzzy->voxels);
}

bool
cuda_fuzzy_needs(const struct cuda_lane *lane, struct cuda_needs *needs)
{
    struct pieces pieces = {NULL, needs, true};
    struct cuda_fuzzy fuzzy;

    if (lane->base.demand.fuzzy_objects == 0)
        return true;
    measure(&fuzzy, &lane->base);
    if (fuzzy.grid.tile_count == 0 ||
        edge_flood_place_volume(lane->base.extent, NULL, &fuzzy.edges) == 0)
        return false;
    all_pieces(&pieces, &fuzzy, &lane->base);
    return pieces.fits;
}

void
cuda_fuzzy_place(struct cuda_lane *lane)
{
    struct pieces pieces = {lane, NULL, true};

    if (lane->base.demand.fuzzy_objects == 0)
        return;
    measure(lane->fuzzy, &lane->base);
    all_pieces(&pieces, lane->fuzzy, &lane->base);
}

/* Waits for the stream, so that nothing of the object before is on its way any more. */
static int
make_tables(struct cuda_lane *lane, const struct kernels_fuzzy_object *object,
            struct fuzzy_tables *tables, char *reason, size_t reason_size)
{
    struct image_range range;
    int error = cuda_volume_range(lane, object->padding, &range, reason, reason_size);

    if (error == -ENODATA)
        range.lo = range.hi = 0; /* all is padding: no affinity is looked up */
    else if (error != 0)
        return error;
    tables->low = range.lo;
    tables->span = range.hi - range.lo;
    tables->first = lane->fuzzy->host_first;
    tables->second = lane->fuzzy->host_second;
    fuzzy_fill_tables(object, tables);
    return 0;
}

static int
upload_tables(struct cuda_lane *lane, const struct kernels_fuzzy_object *object,
              const struct fuzzy_tables *tables, struct fuzzy_lookup *lookup, char *reason,
              size_t reason_size)
{
    struct cuda_device *device = cuda_device_of(&lane->base);
    struct cuda_fuzzy *fuzzy = lane->fuzzy;
    size_t differences = (size_t)tables->span + 1, sums = 2 * (size_t)tables->span + 1;

    fuzzy_fix_tables(tables, fuzzy->host_table, lookup);
    lookup->table = fuzzy->table;
    lookup->first = fuzzy->first;
    lookup->second = fuzzy->second;
    lookup->padding = object->padding;
    CUDA_TRY(device, cudaMemcpyAsync(fuzzy->first, fuzzy->host_first, sums * sizeof(double),
                                     cudaMemcpyHostToDevice, lane->work));
    CUDA_TRY(device,
             cudaMemcpyAsync(fuzzy->second, fuzzy->host_second, differences * sizeof(double),
                             cudaMemcpyHostToDevice, lane->work));
    CUDA_TRY(device, cudaMemcpyAsync(fuzzy->table, fuzzy->host_table,
                                     fuzzy_fixed_entries(lookup) * sizeof(uint32_t),
                                     cudaMemcpyHostToDevice, lane->work));
    return 0;
}

static __global__ void
mark_seeds(uint32_t *marks, const uint32_t *seeds, uint32_t count)
{
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i < count)
        atomicOr(&marks[seeds[i] >> 5], 1u << (seeds[i] & 31));
}

static uint32_t
seed_place(const struct fuzzy_grid *grid, const struct kernels_voxel *seed)
{
    uint32_t x = (uint32_t)seed->x, y = (uint32_t)seed->y, z = (uint32_t)seed->z;
    uint32_t tile = ((z >> 4) * grid->tiles[1] + (y >> 4)) * grid->tiles[0] + (x >> 4);

    return tile * FUZZY_TILE_VOXELS + ((z & 15) << 8 | (y & 15) << 4 | (x & 15));
}

static int
upload_seeds(struct cuda_lane *lane, const struct kernels_fuzzy_object *object, char *reason,
             size_t reason_size)
{
    struct cuda_device *device = cuda_device_of(&lane->base);
    struct cuda_fuzzy *fuzzy = lane->fuzzy;

    CUDA_TRY(device,
             cudaMemsetAsync(fuzzy->memory.seeds, 0,
                             (size_t)fuzzy->grid.tile_count * (FUZZY_TILE_VOXELS / 8), lane->work));
    for (size_t first = 0; first < object->seed_count; first += SEED_BATCH) {
        size_t left = object->seed_count - first, count = left < SEED_BATCH ? left : SEED_BATCH;

        if (first != 0)
            CUDA_TRY(device, cudaStreamSynchronize(lane->work)); /* the batch before has gone */
        for (size_t i = 0; i < count; i++)
            fuzzy->host_seeds[i] = seed_place(&fuzzy->grid, &object->seeds[first + i]);
        CUDA_TRY(device, cudaMemcpyAsync(fuzzy->seeds, fuzzy->host_seeds, count * sizeof(uint32_t),
                                         cudaMemcpyHostToDevice, lane->work));
        mark_seeds<<<SEED_BATCH / 256, 256, 0, lane->work>>>(fuzzy->memory.seeds, fuzzy->seeds,
                                                             (uint32_t)count);
        CUDA_LAUNCHED(device);
    }
    return 0;
}

/* Every voxel above thresholds to the one object that is strongest there. One warp 64 voxels. */
static __global__ void
__launch_bounds__(RELATIVE_THREADS)
    resolve(const uint16_t *scenes, const uint16_t *thresholds, size_t objects, size_t voxels,
            struct image_extent extent, size_t words, size_t words_per_row,
            unsigned long long *bits, unsigned long long *counts)
{
    size_t stride = (size_t)gridDim.x * blockDim.x / 32;
    uint32_t lane = threadIdx.x & 31;

    for (size_t word = ((size_t)blockIdx.x * blockDim.x + threadIdx.x) / 32; word < words;
         word += stride) {
        int64_t row = (int64_t)(word / words_per_row);
        int64_t x0 = (int64_t)(word % words_per_row) * 64;
        size_t owner[2];

        for (int i = 0; i < 2; i++) {
            int64_t x = x0 + i * 32 + lane;
            size_t voxel = (size_t)(row * extent.columns + x);
            uint32_t strongest = 0;

            owner[i] = objects;
            for (size_t object = 0; x < extent.columns && object < objects; object++) {
                uint32_t value = scenes[object * voxels + voxel];

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

/* Settles the seeds of the flood. */
static int
settle_seeds(struct cuda_lane *lane, const struct kernels_fuzzy_object *object, char *reason,
             size_t reason_size)
{
    struct cuda_device *device = cuda_device_of(&lane->base);
    const struct image_extent *extent = &lane->base.extent;
    struct cuda_fuzzy *fuzzy = lane->fuzzy;

    for (size_t first = 0; first < object->seed_count; first += SEED_BATCH) {
        size_t left = object->seed_count - first, count = left < SEED_BATCH ? left : SEED_BATCH;

        if (first != 0)
            CUDA_TRY(device, cudaStreamSynchronize(lane->work)); /* the batch before has gone */
        for (size_t i = 0; i < count; i++) {
            const struct kernels_voxel *seed = &object->seeds[first + i];

            fuzzy->host_seeds[i] =
                (uint32_t)(seed->x + extent->columns * (seed->y + extent->rows * seed->z));
        }
        CUDA_TRY(device, cudaMemcpyAsync(fuzzy->seeds, fuzzy->host_seeds, count * sizeof(uint32_t),
                                         cudaMemcpyHostToDevice, lane->work));
        CUDA_TRY(device, edge_flood_seed(&fuzzy->edges, fuzzy->seeds, (uint32_t)count, lane->work));
    }
    return 0;
}

/* The object without its scene; *found is false when it is not to be had that way. Waits. */
static int
flood_object(struct cuda_lane *lane, const struct kernels_fuzzy_object *object,
             const struct fuzzy_tables *tables, size_t index, bool *found, char *reason,
             size_t reason_size)
{
    struct cuda_device *device = cuda_device_of(&lane->base);
    struct cuda_fuzzy *fuzzy = lane->fuzzy;
    const struct fuzzy_reach reach = {fuzzy->reach, tables->low, tables->span, object->padding};
    const size_t entries = 2 * (size_t)tables->span + 2;
    int error;

    *found = false;
    if (object->seed_count == 0 || object->threshold == UINT16_MAX ||
        !fuzzy_fill_reach(tables, object->threshold, fuzzy->host_reach))
        return 0;
    CUDA_TRY(device,
             cudaMemcpyAsync(fuzzy->reach, fuzzy->host_reach, entries * sizeof *fuzzy->reach,
                             cudaMemcpyHostToDevice, lane->work));
    CUDA_TRY(device, fuzzy_object_edges(lane->device_voxels, lane->base.pixel, &reach,
                                        &fuzzy->edges, lane->work));
    error = settle_seeds(lane, object, reason, reason_size);
    if (error != 0)
        return error;
    CUDA_TRY(device, edge_flood_run(&fuzzy->edges, device->multiprocessors, lane->work));
    CUDA_TRY(device, edge_flood_write(&fuzzy->edges, fuzzy->bits + index * fuzzy->words,
                                      fuzzy->count + index, lane->work));
    CUDA_TRY(device,
             cudaMemcpyAsync(fuzzy->host_counts, fuzzy->edges.counts, sizeof *fuzzy->host_counts,
                             cudaMemcpyDeviceToHost, lane->work));
    CUDA_TRY(device, cudaStreamSynchronize(lane->work));
    *found = fuzzy->host_counts->stopped == 0;
    return 0;
}

static int
run_object(struct cuda_lane *lane, const struct kernels_fuzzy_object *object, size_t index,
           bool relative, char *reason, size_t reason_size)
{
    struct cuda_device *device = cuda_device_of(&lane->base);
    struct cuda_fuzzy *fuzzy = lane->fuzzy;
    struct fuzzy_tables tables;
    struct fuzzy_volume volume;
    struct fuzzy_output output;
    bool found = false;
    int error = make_tables(lane, object, &tables, reason, reason_size);

    if (error == 0 && !object->scene && !relative)
        error = flood_object(lane, object, &tables, index, &found, reason, reason_size);
    if (error != 0 || found)
        return error;
    volume.voxels = lane->device_voxels;
    volume.pixel = lane->base.pixel;
    volume.grid = fuzzy->grid;
    error = upload_tables(lane, object, &tables, &volume.lookup, reason, reason_size);
    if (error == 0)
        error = upload_seeds(lane, object, reason, reason_size);
    if (error != 0)
        return error;
    fuzzy_lookup_binary(&volume.lookup, !object->scene && !relative, object->threshold);
    output.scene = relative        ? fuzzy->scene + index * fuzzy->voxels
                   : object->scene ? fuzzy->scene
                                   : NULL;
    output.bits = relative ? NULL : fuzzy->bits + index * fuzzy->words;
    output.words_per_row = (int64_t)fuzzy->words_per_row;
    output.count = relative ? NULL : fuzzy->count + index;
    output.threshold = object->threshold;
    CUDA_TRY(device, fuzzy_scene_run(&volume, &fuzzy->memory, &output, device->multiprocessors,
                                     lane->work));
    return 0;
}

static int
fetch_scene(struct cuda_lane *lane, size_t index, bool relative, size_t *fetched,
            struct kernels_fuzzy_result *result, char *reason, size_t reason_size)
{
    struct cuda_fuzzy *fuzzy = lane->fuzzy;
    uint16_t *host = fuzzy->host_scene + *fetched * fuzzy->voxels;
    const uint16_t *scene = fuzzy->scene + (relative ? index * fuzzy->voxels : 0);

    CUDA_TRY(cuda_device_of(&lane->base),
             cudaMemcpyAsync(host, scene, fuzzy->voxels * sizeof(uint16_t), cudaMemcpyDeviceToHost,
                             lane->work));
    result->scene = host;
    (*fetched)++;
    return 0;
}

static int
run_relative(struct cuda_lane *lane, const struct kernels_fuzzy_object *objects, char *reason,
             size_t reason_size)
{
    struct cuda_device *device = cuda_device_of(&lane->base);
    struct cuda_fuzzy *fuzzy = lane->fuzzy;

    for (size_t i = 0; i < fuzzy->objects; i++)
        fuzzy->host_threshold[i] = objects[i].threshold;
    CUDA_TRY(device, cudaMemcpyAsync(fuzzy->threshold, fuzzy->host_threshold,
                                     fuzzy->objects * sizeof(uint16_t), cudaMemcpyHostToDevice,
                                     lane->work));
    resolve<<<(unsigned)device->multiprocessors * 8, RELATIVE_THREADS, 0, lane->work>>>(
        fuzzy->scene, fuzzy->threshold, fuzzy->objects, fuzzy->voxels, lane->base.extent,
        fuzzy->words, fuzzy->words_per_row, fuzzy->bits, fuzzy->count);
    CUDA_LAUNCHED(device);
    return 0;
}

static int
fetch_objects(struct cuda_lane *lane, struct kernels_fuzzy_result *results, char *reason,
              size_t reason_size)
{
    struct cuda_device *device = cuda_device_of(&lane->base);
    struct cuda_fuzzy *fuzzy = lane->fuzzy;
    size_t objects = fuzzy->objects;

    CUDA_TRY(device, cudaMemcpyAsync(fuzzy->host_bits, fuzzy->bits,
                                     objects * fuzzy->words * sizeof(uint64_t),
                                     cudaMemcpyDeviceToHost, lane->work));
    CUDA_TRY(device, cudaMemcpyAsync(fuzzy->host_count, fuzzy->count, objects * sizeof(uint64_t),
                                     cudaMemcpyDeviceToHost, lane->work));
    CUDA_TRY(device, cudaStreamSynchronize(lane->work));
    for (size_t i = 0; i < objects; i++) {
        results[i].object.bits = (const uint64_t *)(fuzzy->host_bits + i * fuzzy->words);
        results[i].object.words_per_row = (int64_t)fuzzy->words_per_row;
        results[i].object.voxels = (int64_t)fuzzy->host_count[i];
    }
    return 0;
}

int
cuda_fuzzy_run(struct cuda_lane *lane, const struct kernels_fuzzy_object *objects, bool relative,
               struct kernels_fuzzy_result *results, char *reason, size_t reason_size)
{
    struct cuda_fuzzy *fuzzy = lane->fuzzy;
    size_t fetched = 0;
    int error = 0;

    CUDA_TRY(cuda_device_of(&lane->base),
             cudaMemsetAsync(fuzzy->count, 0, fuzzy->objects * sizeof *fuzzy->count, lane->work));
    for (size_t i = 0; error == 0 && i < fuzzy->objects; i++) {
        results[i].scene = NULL;
        error = run_object(lane, &objects[i], i, relative, reason, reason_size);
        if (error == 0 && objects[i].scene)
            error = fetch_scene(lane, i, relative, &fetched, &results[i], reason, reason_size);
    }
    if (error == 0 && relative)
        error = run_relative(lane, objects, reason, reason_size);
    return error != 0 ? error : fetch_objects(lane, results, reason, reason_size);
}
