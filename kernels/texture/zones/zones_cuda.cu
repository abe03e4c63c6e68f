/* zones_cuda.cu - zones of levels on the GPU: parts of zones per tile, seams between tiles, and
 * zones per key. Only the keys, which are few, are copied to the host. */
#include "kernels/texture/zones/zone_tally.h"
#include "kernels/texture/zones/zones_cuda.cuh"

#include <algorithm>
#include <cerrno>
#include <cmath>

enum {
    ZONES_FACTS = 4, /* numbers, labels, keys in use, and mixed tiles */
    /* keys copied with their number: enough for 32 levels and 512 voxels across */
    ZONES_AT_ONCE = 10240,
    ZONES_LIST = (1 + 2 * ZONES_AT_ONCE) * sizeof(unsigned long long),
    ZONES_MOST = TEXTURE_COUNTERS / 2 - 1,
};

struct cuda_zones {
    struct cuda_counted counted;
    uint16_t *tables, *steps;
    uint4 *records;
    uint2 *crossings;
    uint32_t *ends, *labels;
    uint32_t *parents, *sizes, *groups, *least;
    uint16_t *whole;
    struct zones_place *tiles;
    uint32_t *facts, *order;
    unsigned long long *keys; /* keys, followed by as many counts */
    size_t places;            /* room for keys */
};

static struct cuda_zones *
cuda_zones_state(const struct kernels_lane *lane)
{
    return (struct cuda_zones *)kernels_state(lane, KERNELS_ZONES);
}

/* Returns the number of table places for the max number of keys of a box with so many groups,
 * computed as in features/matrices/zones.c. */
static size_t
zones_places(double columns, double rows, double slices, double groups)
{
    const double voxels = columns * rows * slices;
    const double sizes = std::min(std::sqrt(2 * voxels * groups) + groups, voxels);
    const double distances = std::min(groups * (std::min(columns, rows) / 2 + 1), voxels);
    size_t places = 1024;

    while ((double)places < 2 * (sizes + distances))
        places *= 2;
    return places;
}

static void
cuda_zones_place(struct kernels_lane *lane, struct kernels_memory *memory)
{
    struct cuda_zones *own = cuda_zones_state(lane);
    const struct image_extent *extent = &lane->extent;
    const size_t words =
        ((size_t)extent->columns + ZONES_WIDTH - 1) / ZONES_WIDTH * (size_t)(extent->rows * extent->slices);
    const size_t bundles = ((size_t)extent->columns + ZONES_WIDTH - 1) / ZONES_WIDTH *
                           zones_bundles((uint32_t)extent->rows) * (size_t)extent->slices;
    const double columns = (double)extent->columns, rows = (double)extent->rows;

    own->places = zones_places(columns, rows, (double)extent->slices, TEXTURE_MAX_LEVELS);
    cuda_counted_place(lane, memory, &own->counted);
    cuda_take(&memory->device, &own->tables, TEXTURE_TABLES, texture_values(cuda_lane_of(lane)));
    cuda_take(&memory->device, &own->steps, words, ZONES_WIDTH);
    cuda_take(&memory->device, &own->records, words, ZONES_QUADS);
    cuda_take(&memory->device, &own->ends, words);
    cuda_take(&memory->device, &own->crossings, words);
    cuda_take(&memory->device, &own->whole, bundles);
    cuda_take(&memory->device, &own->tiles, bundles);
    for (uint32_t **each : {&own->labels, &own->parents, &own->sizes, &own->groups, &own->least})
        cuda_take(&memory->device, each, words, ZONES_REACH);
    cuda_take(&memory->device, &own->facts, ZONES_FACTS);
    cuda_take(&memory->device, &own->order, own->places);
    cuda_take(&memory->device, &own->keys, own->places, 2);
}

static __global__ void
zones_list(struct zones_table table, uint32_t first, uint32_t most, unsigned long long *list)
{
    const uint32_t end = min(*table.used, first + most);

    if (blockIdx.x == 0 && threadIdx.x == 0)
        list[0] = *table.used;
    for (uint32_t i = first + blockIdx.x * blockDim.x + threadIdx.x; i < end; i += gridDim.x * blockDim.x) {
        const uint32_t at = table.order[i];

        list[1 + 2 * (i - first)] = table.keys[at];
        list[2 + 2 * (i - first)] = table.counts[at];
    }
}

static int
zones_tally_keys(const struct kernels_lane *lane, const unsigned long long *list, size_t count,
                 struct zone_tally *tallies, struct error *error)
{
    for (size_t i = 0; i < count; i++) {
        const bool distance = (list[2 * i] & ZONES_DISTANCE_KEY) != 0;

        if (zone_tally_add(&tallies[distance ? TEXTURE_ZONE_DISTANCES : TEXTURE_ZONE_SIZES],
                           list[2 * i] & ~ZONES_DISTANCE_KEY, list[2 * i + 1]))
            return kernels_no_memory(lane, error);
    }
    return 0;
}

/* Fetches all keys while other operations run. Returns -EAGAIN if there were too many, which are
 * then lost. */
static int
zones_fetch_beside(struct cuda_lane *lane, const struct zones_job *job, struct cuda_result *result, bool **has_turn,
                   struct zone_tally *tallies, struct error *error)
{
    struct cuda_device *device = cuda_device_of(&lane->base);
    const struct cuda_counted *counted = &cuda_zones_state(&lane->base)->counted;
    const unsigned long long *list = (const unsigned long long *)result->memory;
    int rc;

    zones_list<<<64, ZONES_THREADS, 0, lane->work>>>(job->table, 0, ZONES_AT_ONCE, counted->counts);
    CUDA_LAUNCHED(device);
    rc = cuda_result_fetch(lane, result, counted->counts, ZONES_LIST, has_turn, error);
    if (rc == 0 && list[0] > ZONES_AT_ONCE)
        return -EAGAIN;
    return rc ? rc : zones_tally_keys(&lane->base, list + 1, list[0], tallies, error);
}

/* Fetches at most `most` keys from `first` on. Returns the total number. */
static int
zones_fetch(struct cuda_lane *lane, const struct zones_job *job, uint32_t first, uint32_t most, size_t *all,
            struct zone_tally *tallies, struct error *error)
{
    struct cuda_device *device = cuda_device_of(&lane->base);
    const struct cuda_counted *counted = &cuda_zones_state(&lane->base)->counted;

    zones_list<<<64, ZONES_THREADS, 0, lane->work>>>(job->table, first, most, counted->counts);
    CUDA_LAUNCHED(device);
    CUDA_FETCH(lane, counted->host_counts, counted->counts, 1 + 2 * (size_t)most);
    CUDA_TRY(device, cudaStreamSynchronize(lane->work));
    *all = counted->host_counts[0];
    return zones_tally_keys(&lane->base, counted->host_counts + 1, std::min(*all - first, (size_t)most), tallies,
                            error);
}

/* With one table per slice, handles as many slices at a time as tables fit. */
static int
zones_queue_words(struct cuda_lane *lane, const struct texture_levels *levels, struct zones_job *job,
                  struct error *error)
{
    const bool several = levels->table_count > 1;
    const uint32_t batch = several ? (uint32_t)TEXTURE_TABLES : job->slices;

    job->values = several ? texture_values(lane) : 0;
    for (uint32_t z = 0; z < job->slices; z += batch) {
        const uint32_t count = std::min(batch, job->slices - z);
        const int rc = cuda_levels_send(lane, levels, job->first[2] + z, count, cuda_zones_state(&lane->base)->tables,
                                        &job->tables, error);

        if (rc)
            return rc;
        job->table_slice = z;
        zones_words_queue(job, lane->base.pixel, z, count, lane->work);
        CUDA_LAUNCHED(cuda_device_of(&lane->base));
    }
    return 0;
}

static int
zones_send_region(struct cuda_lane *lane, const uint64_t *region, struct zones_job *job, struct error *error)
{
    const struct cuda_counted *counted = &cuda_zones_state(&lane->base)->counted;
    const size_t slice = (size_t)job->volume.rows * job->volume.words_per_row;
    const uint64_t *held = cuda_region_bits(lane, region);
    const int rc = cuda_await_slices(lane, job->first[2], job->first[2] + job->slices, error);

    if (rc)
        return rc;
    job->volume.region = held || !region ? held : counted->region;
    if (region && !held)
        CUDA_SEND(lane, counted->region + job->first[2] * slice, region + job->first[2] * slice, job->slices * slice);
    return 0;
}

/* Queues the counting of zones in the job's slices of the box. */
static int
zones_queue_slices(struct cuda_lane *lane, const struct texture_zones *zones, struct zones_job *job,
                   struct error *error)
{
    struct cuda_device *device = cuda_device_of(&lane->base);
    const struct cuda_zones *own = cuda_zones_state(&lane->base);
    const size_t places =
        zones_places(job->columns, job->rows, job->slices, (double)job->levels * (job->per_slice ? job->slices : 1));
    int rc;

    job->table = {own->keys, own->keys + places, own->order, own->facts + 2, (uint32_t)(places - 1)};
    CUDA_TRY(device, cudaMemsetAsync(own->facts, 0, ZONES_FACTS * sizeof(*own->facts), lane->work));
    CUDA_TRY(device, cudaMemsetAsync(own->keys, 0, 2 * places * sizeof(*own->keys), lane->work));
    if (job->steps) {
        zones_steps_queue(job, own->steps, lane->work);
        CUDA_LAUNCHED(device);
    }
    rc = zones_queue_words(lane, &zones->levels, job, error);
    if (rc)
        return rc;
    zones_whole_queue(job, lane->work);
    CUDA_LAUNCHED(device);
    CUDA_TRY(device, zones_tiles_queue(job, device->multiprocessors, lane->work));
    CUDA_LAUNCHED(device);
    zones_seams_queue(job, device->multiprocessors, lane->work);
    CUDA_LAUNCHED(device);
    return 0;
}

static int
zones_run_slices(struct cuda_lane *lane, const struct texture_zones *zones, struct zones_job *job,
                 struct zone_tally *tallies, struct error *error)
{
    int rc = zones_queue_slices(lane, zones, job, error);
    size_t all = 0;

    if (rc == 0)
        rc = zones_fetch(lane, job, 0, ZONES_AT_ONCE, &all, tallies, error);
    for (size_t first = ZONES_AT_ONCE; rc == 0 && first < all; first += ZONES_MOST)
        rc = zones_fetch(lane, job, (uint32_t)first, (uint32_t)std::min(all - first, (size_t)ZONES_MOST), &all, tallies,
                         error);
    return rc;
}

/* Runs all slices at once while other operations run. If there are too many keys, counts them again
 * and keeps the turn to the end. */
static int
zones_run_beside(struct cuda_lane *lane, const struct texture_zones *zones, struct zones_job *job,
                 struct cuda_result *result, struct zone_tally *tallies, struct error *error)
{
    bool *has_turn;
    int rc = zones_queue_slices(lane, zones, job, error);

    if (rc == 0)
        rc = zones_fetch_beside(lane, job, result, &has_turn, tallies, error);
    cuda_result_give_back(lane, result);
    if (rc != -EAGAIN)
        return rc;
    cuda_turn_take_again(lane, has_turn);
    rc = zones_send_region(lane, zones->region, job, error);
    return rc ? rc : zones_run_slices(lane, zones, job, tallies, error);
}

/* Returns the number of slices at a time whose keys fit. */
static uint32_t
zones_slices_at_once(const struct zones_job *job, size_t places)
{
    uint32_t slices = job->slices;

    while (job->per_slice && slices > 1 &&
           zones_places(job->columns, job->rows, slices, (double)job->levels * slices) > places)
        slices = (slices + 1) / 2;
    return slices;
}

static int
cuda_zones_run(struct kernels_lane *base, const void *given, struct error *error)
{
    const struct texture_zones_request *request = (const struct texture_zones_request *)given;
    const struct texture_zones *zones = request->zones;
    const struct cuda_zones *own = cuda_zones_state(base);
    struct cuda_lane *lane = cuda_lane_of(base);
    struct zones_job job = {};
    struct texture_box box;
    int rc;

    texture_region_box(base, zones->region, &box);
    /* words are aligned to the region's */
    const uint32_t margin = (uint32_t)(box.first[0] % ZONES_WIDTH);
    if (box.size[0] == 0)
        return 0;
    job.volume = cuda_texture_volume(lane);
    for (int axis = 0; axis < 3; axis++)
        job.first[axis] = (uint32_t)box.first[axis];
    job.columns = (uint32_t)box.size[0];
    job.rows = (uint32_t)box.size[1];
    job.slices = (uint32_t)box.size[2];
    job.first[0] -= margin;
    job.columns += margin;
    job.words = (job.columns - 1) / ZONES_WIDTH + 1;
    job.levels = (uint32_t)zones->levels.levels;
    job.distances = zones->distances;
    job.flat = zones->in_slice || job.slices == 1;
    job.per_slice = zones->per_slice;
    job.steps = zones->distances && zones->region ? own->steps : NULL;
    job.records = own->records;
    job.ends = own->ends;
    job.crossings = own->crossings;
    job.whole = own->whole;
    job.tiles = own->tiles;
    job.tile_count = own->facts + 3;
    job.labels = own->labels;
    job.parents = own->parents;
    job.sizes = own->sizes;
    job.groups = own->groups;
    job.least = own->least;
    job.numbers = own->facts;
    job.label_count = own->facts + 1;
    rc = zones_send_region(lane, zones->region, &job, error);
    const uint32_t all = job.slices, first = job.first[2], at_once = zones_slices_at_once(&job, own->places);
    struct cuda_result *result = rc == 0 && at_once >= all ? cuda_result_take(lane, ZONES_LIST) : NULL;

    if (result)
        return zones_run_beside(lane, zones, &job, result, request->tallies, error);
    for (uint32_t z = 0; rc == 0 && z < all; z += at_once) {
        job.first[2] = first + z;
        job.slices = std::min(at_once, all - z);
        rc = zones_run_slices(lane, zones, &job, request->tallies, error);
    }
    return rc;
}

const struct kernels_op cuda_zones_op = {
    .name = "texture (zones)",
    .state_size = sizeof(struct cuda_zones),
    .transient = true,
    .awaits = true,
    .needs = kernels_op_asked,
    .place = cuda_zones_place,
    .run = cuda_zones_run,
};
