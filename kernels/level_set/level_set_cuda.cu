/*
 * level_set_cuda.cu - paper 001 as a job of a lane: memory, order of work, what comes back.
 *
 * Each slab is thresholded once it is there, and the flood runs in every layer of tiles that is
 * whole; what would cross into a layer that is not waits in its inboxes. The kernels stand in
 * level_set_pack.cu, level_set_flood.cu and level_set_unite.cu.
 */
#include "kernels/cuda/cuda.cuh"
#include "kernels/level_set/level_set_cuda.cuh"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    ALIGNMENT = 256,
    CODES_THREADS = 256,
    CODES_SLICES = 32, /* at a time where the tables of level_set_unite lend no room */
};

struct cuda_level_set {
    struct level_set_job job;
    const struct kernels_level_set_label *labels;
    int blocks;
    int64_t *layer_missing; /* slices, one a layer of tiles */
    int8_t *codes;          /* on the device */
    int64_t codes_slices;   /* for which there is room */
    /* Pinned: */
    struct level_set_pass *passes;
    uint64_t *masks;
    int64_t *voxels_in; /* and `counts`, as on the device */
    struct level_set_counts *counts;
};

/* Arrays that begin as zeros, in the order of the struct. */

static size_t
up(size_t bytes)
{
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

size_t
level_set_zeros(const struct level_set_job *job)
{
    size_t tiles = (size_t)job->labels * job->tiles;

    return up(tiles * sizeof(*job->state)) +
           up(((size_t)job->queue_mask + 1) * sizeof(*job->queue)) +
           up(tiles * sizeof(*job->kind)) + up(job->tiles_z * sizeof(*job->layer)) +
           up(job->labels * sizeof(*job->voxels_in)) + up(sizeof(*job->counts));
}

void
level_set_place_zeros(struct level_set_job *job, void *memory)
{
    size_t tiles = (size_t)job->labels * job->tiles;
    char *next = (char *)memory;

    job->state = (uint32_t *)next;
    next += up(tiles * sizeof(*job->state));
    job->queue = (uint32_t *)next;
    next += up(((size_t)job->queue_mask + 1) * sizeof(*job->queue));
    job->kind = (uint8_t *)next;
    next += up(tiles * sizeof(*job->kind));
    job->layer = (uint8_t *)next;
    next += up(job->tiles_z * sizeof(*job->layer));
    job->voxels_in = (int64_t *)next;
    next += up(job->labels * sizeof(*job->voxels_in));
    job->counts = (struct level_set_counts *)next;
}

/* From `voxels_in` to the end of `counts`: what the host wants beside the regions. */
static size_t
small_numbers(const struct level_set_job *job)
{
    return up(job->labels * sizeof(*job->voxels_in)) + sizeof(*job->counts);
}

/* A lane */

int
cuda_level_set_open(struct cuda_lane *lane)
{
    struct cuda_level_set *own = (struct cuda_level_set *)calloc(1, sizeof(*own));

    if (!own)
        return -ENOMEM;
    /* Range bits are made before the flood, which then knows nothing of pixels. */
    if (CUDA_OF(level_set_blocks(IMAGE_UINT16, false, &own->blocks)) != cudaSuccess) {
        (void)cudaGetLastError();
        free(own);
        return -EIO;
    }
    lane->level_set = own;
    return 0;
}

void
cuda_level_set_close(struct cuda_lane *lane)
{
    free(lane->level_set);
    lane->level_set = NULL;
}

static bool
measure(const struct cuda_lane *lane, struct level_set_job *job)
{
    return level_set_measure(job, lane->base.extent, lane->base.pixel,
                             lane->base.demand.level_set_labels);
}

static size_t
nodes(const struct level_set_job *job)
{
    return (size_t)job->tiles * TILE_WORDS * (TILE_COLUMNS / 2) + 1;
}

static int64_t
code_slices(const struct level_set_job *job)
{
    if (level_set_can_unite(job))
        return job->slices;
    return job->slices < (int64_t)CODES_SLICES ? job->slices : (int64_t)CODES_SLICES;
}

bool
cuda_level_set_needs(const struct cuda_lane *lane, struct cuda_needs *needs)
{
    struct level_set_job job = {};
    size_t labels = lane->base.demand.level_set_labels, tiles, slices;

    if (labels == 0)
        return true;
    if (!measure(lane, &job))
        return false;
    tiles = labels * job.tiles;
    slices = (size_t)job.slices;
    if (level_set_can_unite(&job) &&
        (!cuda_needs_add(&needs->device, nodes(&job), sizeof(*job.parent)) ||
         !cuda_needs_add(&needs->device, (size_t)job.tiles * TILE_WORDS, sizeof(*job.first_node))))
        return false;
    if (!level_set_can_unite(&job) && !cuda_needs_add(&needs->device, (size_t)code_slices(&job),
                                                      (size_t)(job.columns * job.rows)))
        return false;
    return cuda_needs_add(&needs->device, labels * slices, sizeof(*job.passes)) &&
           cuda_needs_add(&needs->device, tiles * TILE_WORDS, sizeof(*job.range)) &&
           cuda_needs_add(&needs->device, tiles * TILE_WORDS, sizeof(*job.initial)) &&
           cuda_needs_add(&needs->device, labels * (size_t)job.words, sizeof(*job.inside)) &&
           cuda_needs_add(&needs->device, tiles * INBOX_WORDS, sizeof(*job.inbox)) &&
           cuda_needs_add(&needs->device, level_set_zeros(&job), 1) &&
           cuda_needs_add(&needs->pinned, labels * slices, sizeof(*job.passes)) &&
           cuda_needs_add(&needs->pinned, labels * (size_t)job.words, sizeof(*job.inside)) &&
           cuda_needs_add(&needs->pinned, small_numbers(&job), 1) &&
           cuda_needs_add(&needs->pinned, job.tiles_z, sizeof(int64_t));
}

static void
place_pinned(struct cuda_lane *lane)
{
    struct cuda_level_set *own = lane->level_set;
    const struct level_set_job *job = &own->job;
    struct cuda_arena *arena = &lane->pinned;
    size_t labels = job->labels;

    own->passes = (struct level_set_pass *)cuda_arena_take(arena, labels * (size_t)job->slices *
                                                                      sizeof(*own->passes));
    own->masks =
        (uint64_t *)cuda_arena_take(arena, labels * (size_t)job->words * sizeof(*own->masks));
    own->voxels_in = (int64_t *)cuda_arena_take(arena, small_numbers(job));
    own->counts = (struct level_set_counts *)((char *)own->voxels_in + small_numbers(job)) - 1;
    own->layer_missing =
        (int64_t *)cuda_arena_take(arena, job->tiles_z * sizeof(*own->layer_missing));
}

static void
place_device(struct cuda_lane *lane)
{
    struct cuda_level_set *own = lane->level_set;
    struct level_set_job *job = &own->job;
    struct cuda_arena *arena = &lane->device;
    size_t tiles = (size_t)job->labels * job->tiles;

    job->parent = NULL;
    if (level_set_can_unite(job)) {
        job->parent = (uint32_t *)cuda_arena_take(arena, nodes(job) * sizeof(*job->parent));
        job->first_node = (uint32_t *)cuda_arena_take(arena, (size_t)job->tiles * TILE_WORDS *
                                                                 sizeof(*job->first_node));
        own->codes = (int8_t *)job->parent;
    } else {
        own->codes =
            (int8_t *)cuda_arena_take(arena, (size_t)(code_slices(job) * job->columns * job->rows));
    }
    own->codes_slices = code_slices(job);
    job->passes = (struct level_set_pass *)cuda_arena_take(
        arena, (size_t)(job->labels * job->slices) * sizeof(*job->passes));
    job->range = (uint64_t *)cuda_arena_take(arena, tiles * TILE_WORDS * sizeof(*job->range));
    job->initial = (uint64_t *)cuda_arena_take(arena, tiles * TILE_WORDS * sizeof(*job->initial));
    job->inside =
        (uint64_t *)cuda_arena_take(arena, job->labels * (size_t)job->words * sizeof(*job->inside));
    job->inbox = (uint32_t *)cuda_arena_take(arena, tiles * INBOX_WORDS * sizeof(*job->inbox));
    level_set_place_zeros(job, cuda_arena_take(arena, level_set_zeros(job)));
}

void
cuda_level_set_place(struct cuda_lane *lane)
{
    struct cuda_level_set *own = lane->level_set;

    if (lane->base.demand.level_set_labels == 0)
        return;
    measure(lane, &own->job);
    own->job.voxels = lane->device_voxels;
    place_device(lane);
    place_pinned(lane);
}

/* A job */

static void
fill_passes(const struct cuda_level_set *own)
{
    const struct level_set_job *job = &own->job;
    struct level_set_pass *pass = own->passes;

    for (uint32_t i = 0; i < job->labels; i++) {
        const struct kernels_level_set_label *label = &own->labels[i];

        for (int64_t z = 0; z < job->slices; z++)
            *pass++ = level_set_make_pass(job->pixel, label->ranges[label->range_count > 1 ? z : 0],
                                          label->padding);
    }
}

int
cuda_level_set_begin(struct cuda_lane *lane, const struct kernels_level_set_label *labels,
                     char *reason, size_t reason_size)
{
    struct cuda_device *device = cuda_device_of(&lane->base);
    struct cuda_level_set *own = lane->level_set;
    const struct level_set_job *job = &own->job;

    own->labels = labels;
    for (uint32_t z = 0; z < job->tiles_z; z++) {
        int64_t left = job->slices - (int64_t)z * TILE_SLICES;
        own->layer_missing[z] = left < (int64_t)TILE_SLICES ? left : (int64_t)TILE_SLICES;
    }
    fill_passes(own);
    CUDA_TRY(device, cudaMemcpyAsync((void *)(uintptr_t)job->passes, own->passes,
                                     (size_t)(job->labels * job->slices) * sizeof(*own->passes),
                                     cudaMemcpyHostToDevice, lane->work));
    level_set_begin(job, false, lane->work);
    CUDA_LAUNCHED(device);
    for (uint32_t i = 0; i < job->labels; i++) {
        CUDA_TRY(device, level_set_draw(job, i, &labels[i], lane->work));
        CUDA_LAUNCHED(device);
    }
    return 0;
}

/* Counts the slices as there and finds the layers, side by side, that are whole by that. */
static bool
whole_layers(struct cuda_level_set *own, int64_t first, int64_t count, uint32_t *from,
             uint32_t *layers)
{
    *layers = 0;
    for (int64_t z = first; z < first + count; z++) {
        uint32_t layer = (uint32_t)(z / TILE_SLICES);

        if (--own->layer_missing[layer] > 0)
            continue;
        *from = *layers == 0 ? layer : *from;
        *layers = layer - *from + 1;
    }
    return *layers > 0;
}

int
cuda_level_set_slab(struct cuda_lane *lane, int64_t first, int64_t count, char *reason,
                    size_t reason_size)
{
    struct cuda_device *device = cuda_device_of(&lane->base);
    struct cuda_level_set *own = lane->level_set;
    const struct level_set_job *job = &own->job;
    int64_t budget = job->parent ? level_set_budget(job) : 0;
    uint32_t from, layers;

    level_set_pack(job, first, count, lane->work);
    CUDA_LAUNCHED(device);
    if (!whole_layers(own, first, count, &from, &layers))
        return 0;
    level_set_release(job, from, layers, lane->work);
    CUDA_LAUNCHED(device);
    CUDA_TRY(device, level_set_flood(job, false, own->blocks, budget, lane->work));
    CUDA_LAUNCHED(device);
    return 0;
}

/* Queues the regions and counts for the host and waits for them. */
static int
fetch(struct cuda_lane *lane, char *reason, size_t reason_size)
{
    struct cuda_device *device = cuda_device_of(&lane->base);
    const struct cuda_level_set *own = lane->level_set;
    const struct level_set_job *job = &own->job;
    const size_t words = job->labels * (size_t)job->words;

    CUDA_TRY(device, cudaMemcpyAsync(own->masks, job->inside, words * sizeof(*own->masks),
                                     cudaMemcpyDeviceToHost, lane->work));
    CUDA_TRY(device, cudaMemcpyAsync(own->voxels_in, job->voxels_in, small_numbers(job),
                                     cudaMemcpyDeviceToHost, lane->work));
    CUDA_TRY(device, cudaStreamSynchronize(lane->work));
    return 0;
}

static int
unite_all(struct cuda_lane *lane, char *reason, size_t reason_size)
{
    struct cuda_device *device = cuda_device_of(&lane->base);
    const struct level_set_job *job = &lane->level_set->job;

    for (uint32_t i = 0; i < job->labels; i++) {
        CUDA_TRY(device, level_set_unite(job, i, lane->work));
        CUDA_LAUNCHED(device);
    }
    return fetch(lane, reason, reason_size);
}

int
cuda_level_set_finish(struct cuda_lane *lane, struct image_mask *masks, char *reason,
                      size_t reason_size)
{
    const struct cuda_level_set *own = lane->level_set;
    const struct level_set_job *job = &own->job;
    int error = fetch(lane, reason, reason_size);

    if (!error && own->counts->stopped)
        error = unite_all(lane, reason, reason_size);
    for (uint32_t i = 0; i < job->labels && !error; i++) {
        masks[i].bits = own->masks + i * (size_t)job->words;
        masks[i].words_per_row = job->words_per_row;
        masks[i].voxels = own->voxels_in[i];
    }
    return error;
}

/* Stage 3. A block a row. */

__device__ static __forceinline__ bool
region_bit(const struct level_set_job &job, const uint64_t *region, int64_t x, int64_t y, int64_t z)
{
    return region[(z * job.rows + y) * job.words_per_row + x / 64] >> x % 64 & 1;
}

__device__ static __forceinline__ bool
is_border(const struct level_set_job &job, const uint64_t *region, int64_t x, int64_t y, int64_t z,
          bool inside)
{
    return (x > 0 && region_bit(job, region, x - 1, y, z) != inside) ||
           (x + 1 < job.columns && region_bit(job, region, x + 1, y, z) != inside) ||
           (y > 0 && region_bit(job, region, x, y - 1, z) != inside) ||
           (y + 1 < job.rows && region_bit(job, region, x, y + 1, z) != inside) ||
           (z > 0 && region_bit(job, region, x, y, z - 1) != inside) ||
           (z + 1 < job.slices && region_bit(job, region, x, y, z + 1) != inside);
}

__global__ void
__launch_bounds__(CODES_THREADS)
    write_codes(const __grid_constant__ struct level_set_job job, uint32_t label, int64_t first,
                int64_t rows, int8_t *codes)
{
    const uint64_t *region = job.inside + label * job.words;

    for (int64_t row = blockIdx.x; row < rows; row += gridDim.x)
        for (int64_t x = threadIdx.x; x < job.columns; x += CODES_THREADS) {
            int64_t y = row % job.rows, z = first + row / job.rows;
            bool inside = region_bit(job, region, x, y, z);
            bool border = is_border(job, region, x, y, z, inside);

            codes[row * job.columns + x] = (int8_t)((inside ? 1 : -2) + border);
        }
}

void
level_set_codes(const struct level_set_job *job, uint32_t label, int64_t first, int64_t count,
                int8_t *codes, cudaStream_t stream)
{
    int64_t rows = job->rows * count;

    write_codes<<<(unsigned)(rows < INT32_MAX ? rows : INT32_MAX), CODES_THREADS, 0, stream>>>(
        *job, label, first, rows, codes);
}

static int
fetch_codes(struct cuda_lane *lane, uint32_t label, int8_t *codes, char *reason, size_t reason_size)
{
    struct cuda_device *device = cuda_device_of(&lane->base);
    const struct cuda_level_set *own = lane->level_set;
    const struct level_set_job *job = &own->job;
    const int64_t slice = job->columns * job->rows;

    for (int64_t z = 0; z < job->slices; z += own->codes_slices) {
        int64_t left = job->slices - z, count = left < own->codes_slices ? left : own->codes_slices;

        level_set_codes(job, label, z, count, own->codes, lane->work);
        CUDA_LAUNCHED(device);
        CUDA_TRY(device, cudaMemcpyAsync(codes + z * slice, own->codes, (size_t)(count * slice),
                                         cudaMemcpyDeviceToHost, lane->work));
    }
    CUDA_TRY(device, cudaStreamSynchronize(lane->work));
    return 0;
}

int
cuda_level_set_codes(struct cuda_lane *lane, size_t label, int8_t *codes)
{
    return fetch_codes(lane, (uint32_t)label, codes, NULL, 0);
}
