/*
 * level_set_cuda.cu - the level set of Trapani 2018 as an operation: memory, order of work,
 * results.
 *
 * If labels were announced before the first slice, each slab is thresholded when it is ready. The
 * flood then runs in every complete layer of tiles. Bits that would cross into an incomplete layer
 * wait in its inboxes. Otherwise the whole volume is one slab, at the run. The kernels are in
 * level_set_pack.cu, level_set_flood.cu and level_set_unite.cu.
 */
#include "kernels/cuda/cuda.cuh"
#include "kernels/level_set/level_set_cuda.cuh"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    CODES_THREADS = 256,
    CODES_SLICES = 32, /* slices at a time if the tables of level_set_unite provide no room */
};

struct cuda_level_set {
    struct kernels_level_set_demand demand;
    const struct kernels_level_set_label *begun; /* from the hint; NULL: no hint, or already run */
    bool found;                                  /* the regions are final */
    struct level_set_job job;
    int blocks;
    int64_t *layer_missing; /* missing slices, one per layer of tiles */
    int8_t *codes;          /* device memory */
    int64_t codes_slices;   /* number of slices that fit */
    /* Pinned: */
    struct level_set_pass *passes;
    uint64_t *masks;
    int64_t *voxels_in; /* followed by `counts`, as on the device */
    struct level_set_counts *counts;
};

static struct cuda_level_set *
cuda_level_set_state(const struct kernels_lane *lane)
{
    return (struct cuda_level_set *)kernels_state(lane, KERNELS_LEVEL_SET);
}

void
level_set_place_zeros(struct level_set_job *job, struct kernels_arena *arena)
{
    const size_t tiles = (size_t)job->labels * job->tiles, begin = arena->used;

    cuda_take(arena, &job->state, tiles);
    cuda_take(arena, &job->queue, (size_t)job->queue_mask + 1);
    cuda_take(arena, &job->kind, tiles);
    cuda_take(arena, &job->layer, job->tiles_z);
    cuda_take(arena, &job->voxels_in, job->labels);
    cuda_take(arena, &job->counts, 1);
    job->zeros = arena->used - begin;
}

/* A lane */

static int
level_set_open(struct kernels_lane *lane, struct error *error)
{
    /* Range bits are made before the flood, whose kernel is therefore independent of the pixel
     * type. */
    CUDA_TRY(cuda_device_of(lane), level_set_blocks(&cuda_level_set_state(lane)->blocks));
    return 0;
}

static bool
cuda_level_set_needs(struct kernels_lane *lane, const void *demand)
{
    struct cuda_level_set *own = cuda_level_set_state(lane);

    own->demand = *(const struct kernels_level_set_demand *)demand;
    own->begun = NULL;
    own->found = false;
    return level_set_measure(&own->job, lane->extent, lane->pixel, own->demand.labels);
}

static void
level_set_place_all(struct kernels_lane *lane, struct kernels_memory *memory)
{
    struct cuda_level_set *own = cuda_level_set_state(lane);
    struct level_set_job *job = &own->job;
    struct kernels_arena *device = &memory->device, *pinned = &memory->host;
    const size_t labels = job->labels, tiles = job->tiles, slices = (size_t)job->slices;
    const bool unites = level_set_can_unite(job);
    struct level_set_pass *passes;

    job->voxels = cuda_lane_of(lane)->device_voxels;
    job->parent = NULL;
    own->codes_slices = unites || job->slices < (int64_t)CODES_SLICES ? job->slices : (int64_t)CODES_SLICES;
    if (unites) {
        cuda_take(device, &job->parent, tiles * TILE_WORDS * (TILE_COLUMNS / 2) + 1); /* nodes */
        cuda_take(device, &job->first_node, tiles * TILE_WORDS);
        own->codes = (int8_t *)job->parent;
    } else {
        cuda_take(device, &own->codes, (size_t)(own->codes_slices * job->columns * job->rows));
    }
    cuda_take(device, &passes, labels, slices);
    job->passes = passes;
    cuda_take(device, &job->range, labels, tiles * TILE_WORDS);
    cuda_take(device, &job->initial, labels, tiles * TILE_WORDS);
    cuda_take(device, &job->inside, labels, (size_t)job->words);
    cuda_take(device, &job->inbox, labels, tiles * INBOX_WORDS);
    level_set_place_zeros(job, device);
    cuda_take(pinned, &own->passes, labels, slices);
    cuda_take(pinned, &own->masks, labels, (size_t)job->words);
    cuda_take(pinned, &own->voxels_in, labels);
    cuda_take(pinned, &own->counts, 1);
    cuda_take(pinned, &own->layer_missing, job->tiles_z);
}

/* A job */

/* Stores the labels. No slice is prepared yet. */
static int
level_set_begin_labels(struct kernels_lane *base, const void *given, struct error *error)
{
    const struct kernels_level_set_label *labels = ((const struct level_set_request *)given)->labels;
    struct cuda_lane *lane = cuda_lane_of(base);
    struct cuda_device *device = cuda_device_of(base);
    struct cuda_level_set *own = cuda_level_set_state(base);
    const struct level_set_job *job = &own->job;

    own->begun = labels;
    own->found = false;
    for (uint32_t z = 0; z < job->tiles_z; z++) {
        int64_t left = job->slices - (int64_t)z * TILE_SLICES;
        own->layer_missing[z] = left < (int64_t)TILE_SLICES ? left : (int64_t)TILE_SLICES;
    }
    for (uint32_t i = 0; i < job->labels; i++) {
        const struct kernels_level_set_label *label = &labels[i];

        for (int64_t z = 0; z < job->slices; z++)
            own->passes[i * job->slices + z] =
                level_set_make_pass(job->pixel, label->ranges[label->range_count > 1 ? z : 0], label->padding);
    }
    CUDA_SEND(lane, (void *)(uintptr_t)job->passes, own->passes, (size_t)(job->labels * job->slices));
    level_set_begin(job, false, lane->work);
    CUDA_LAUNCHED(device);
    for (uint32_t i = 0; i < job->labels; i++) {
        CUDA_TRY(device, level_set_draw(job, i, &labels[i], lane->work));
        CUDA_LAUNCHED(device);
    }
    return 0;
}

static int
cuda_level_set_ready(struct kernels_lane *base, int64_t first, int64_t count, struct error *error)
{
    struct cuda_lane *lane = cuda_lane_of(base);
    struct cuda_device *device = cuda_device_of(base);
    struct cuda_level_set *own = cuda_level_set_state(base);
    const struct level_set_job *job = &own->job;
    int64_t budget = job->parent ? level_set_budget(job) : 0;
    uint32_t from = 0, layers = 0;

    level_set_pack(job, first, count, lane->work);
    CUDA_LAUNCHED(device);
    for (uint32_t i = 0; i < job->labels; i++)
        for (size_t m = 0; m < own->begun[i].within_count; m++) {
            CUDA_TRY(device, level_set_bound(job, i, own->begun[i].within[m], lane->work));
            CUDA_LAUNCHED(device);
        }
    /* Record the slices as ready. Find the adjacent layers that become complete. */
    for (int64_t z = first; z < first + count; z++) {
        const uint32_t layer = (uint32_t)(z / TILE_SLICES);

        if (--own->layer_missing[layer] > 0)
            continue;
        from = layers == 0 ? layer : from;
        layers = layer - from + 1;
    }
    if (layers == 0)
        return 0;
    level_set_release(job, from, layers, lane->work);
    CUDA_LAUNCHED(device);
    CUDA_TRY(device, level_set_flood(job, own->blocks, budget, lane->work));
    CUDA_LAUNCHED(device);
    return 0;
}

/* Begins without a hint, or after a hint with other labels, whose passes may still be in
 * transfer. */
static int
begin_resident(struct kernels_lane *lane, const void *request, struct error *error)
{
    int rc;

    if (cuda_level_set_state(lane)->begun)
        CUDA_TRY(cuda_device_of(lane), cudaStreamSynchronize(cuda_lane_of(lane)->work));
    rc = level_set_begin_labels(lane, request, error);
    return rc ? rc : cuda_level_set_ready(lane, 0, lane->extent.slices, error);
}

/* Queues the copy of the regions and counts to the host, and waits. A region that is not final yet
 * may be cut: the flood would remove the same voxels, or keep them. */
static int
fetch(struct cuda_lane *lane, const struct kernels_level_set_label *labels, struct error *error)
{
    const struct cuda_level_set *own = cuda_level_set_state(&lane->base);
    const struct level_set_job *job = &own->job;
    const size_t words = job->labels * (size_t)job->words;
    const char *numbers = (const char *)own->voxels_in, *end = (const char *)(own->counts + 1);

    for (uint32_t i = 0; i < job->labels; i++)
        if (labels[i].strict) {
            level_set_cut(job, i, lane->work);
            CUDA_LAUNCHED(cuda_device_of(&lane->base));
        }
    CUDA_FETCH(lane, own->masks, job->inside, words);
    CUDA_FETCH(lane, own->voxels_in, (const char *)job->voxels_in, (size_t)(end - numbers));
    CUDA_TRY(cuda_device_of(&lane->base), cudaStreamSynchronize(lane->work));
    return 0;
}

static int
unite_all(struct cuda_lane *lane, const struct kernels_level_set_label *labels, struct error *error)
{
    struct cuda_device *device = cuda_device_of(&lane->base);
    const struct level_set_job *job = &cuda_level_set_state(&lane->base)->job;

    for (uint32_t i = 0; i < job->labels; i++) {
        CUDA_TRY(device, level_set_unite(job, i, lane->work));
        CUDA_LAUNCHED(device);
    }
    return fetch(lane, labels, error);
}

static int
cuda_level_set_run(struct kernels_lane *base, const void *given, struct error *error)
{
    const struct level_set_request *request = (const struct level_set_request *)given;
    struct cuda_lane *lane = cuda_lane_of(base);
    struct cuda_level_set *own = cuda_level_set_state(base);
    const struct level_set_job *job = &own->job;
    int rc = 0;

    if (own->begun != request->labels)
        rc = begin_resident(base, request, error);
    if (!rc)
        rc = fetch(lane, request->labels, error);
    if (!rc && own->counts->stopped)
        rc = unite_all(lane, request->labels, error);
    for (uint32_t i = 0; i < job->labels && !rc; i++) {
        request->masks[i].bits = own->masks + i * (size_t)job->words;
        request->masks[i].words_per_row = job->words_per_row;
        request->masks[i].voxels = own->voxels_in[i];
    }
    own->begun = NULL;
    own->found = !rc;
    return rc;
}

const struct kernels_op cuda_level_set_op = {
    .name = "the level set",
    .state_size = sizeof(struct cuda_level_set),
    .open = level_set_open,
    .needs = cuda_level_set_needs,
    .place = level_set_place_all,
    .begin = level_set_begin_labels,
    .ready = cuda_level_set_ready,
    .run = cuda_level_set_run,
};

/* Computes stage 3, with one block per row. */

__device__ static __forceinline__ bool
region_bit(const struct level_set_job &job, const uint64_t *region, int64_t x, int64_t y, int64_t z)
{
    return region[(z * job.rows + y) * job.words_per_row + x / 64] >> x % 64 & 1;
}

__global__ void
__launch_bounds__(CODES_THREADS) write_codes(const __grid_constant__ struct level_set_job job, uint32_t label,
                                             int64_t first, int64_t rows, int8_t *codes)
{
    const uint64_t *region = job.inside + label * job.words;

    for (int64_t row = blockIdx.x; row < rows; row += gridDim.x)
        for (int64_t x = threadIdx.x; x < job.columns; x += CODES_THREADS) {
            int64_t y = row % job.rows, z = first + row / job.rows;
            bool inside = region_bit(job, region, x, y, z);
            bool border = (x > 0 && region_bit(job, region, x - 1, y, z) != inside) ||
                          (x + 1 < job.columns && region_bit(job, region, x + 1, y, z) != inside) ||
                          (y > 0 && region_bit(job, region, x, y - 1, z) != inside) ||
                          (y + 1 < job.rows && region_bit(job, region, x, y + 1, z) != inside) ||
                          (z > 0 && region_bit(job, region, x, y, z - 1) != inside) ||
                          (z + 1 < job.slices && region_bit(job, region, x, y, z + 1) != inside);

            codes[row * job.columns + x] = (int8_t)((inside ? 1 : -2) + border);
        }
}

static int
cuda_level_set_codes_run(struct kernels_lane *base, const void *given, struct error *error)
{
    const struct level_set_codes_request *request = (const struct level_set_codes_request *)given;
    const struct cuda_level_set *own = cuda_level_set_state(base);
    struct cuda_lane *lane = cuda_lane_of(base);
    const struct level_set_job *job = &own->job;
    const int64_t slice = job->columns * job->rows;

    if (base->phase[KERNELS_LEVEL_SET] == KERNELS_OP_ABSENT || !own->found || request->label >= own->demand.labels)
        return error_set(error, -EINVAL, CODE_COMPUTE_FAILED, "there is no label %zu", request->label);
    for (int64_t z = 0; z < job->slices; z += own->codes_slices) {
        const int64_t left = job->slices - z, count = left < own->codes_slices ? left : own->codes_slices;
        const int64_t rows = job->rows * count;

        write_codes<<<(unsigned)(rows < INT32_MAX ? rows : INT32_MAX), CODES_THREADS, 0, lane->work>>>(
            *job, (uint32_t)request->label, z, rows, own->codes);
        CUDA_LAUNCHED(cuda_device_of(base));
        CUDA_FETCH(lane, request->codes + z * slice, own->codes, (size_t)(count * slice));
    }
    CUDA_TRY(cuda_device_of(base), cudaStreamSynchronize(lane->work));
    return 0;
}

const struct kernels_op cuda_level_set_codes_op = {
    .name = "state codes",
    .run = cuda_level_set_codes_run,
};
