/*
 * peaks_cpu.c - means of balls on the CPU. Stores prefix sums of each row of the region's box and
 * its surroundings, so that a ball's row is a difference of two. Threads add the rows of the balls
 * around a chunk of voxels.
 */
#include "kernels/peaks/peaks.h"
#include "kernels/texture/texture_cpu.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

enum { PEAKS_CHUNK = 1024 };

struct cpu_peaks {
    uint64_t *sums; /* one more than the voxels of a row */
};

struct peaking {
    struct cpu_lane *lane;
    const struct peaks *peaks;
    const struct peaks_ball *ball;
    bool per_slice;            /* rescales and paddings */
    struct texture_box box;    /* the region's */
    int64_t first[3], size[3]; /* the voxels that its balls use */
    uint64_t *sums;            /* for these voxels */
    int32_t smallest;
    pthread_mutex_t mutex; /* guards the result */
    struct peaks_found *found;
};

/* Balls around adjacent voxels. */
struct peaks_chunk {
    uint64_t sums[PEAKS_CHUNK]; /* over slices with the current rescale */
    double totals[PEAKS_CHUNK]; /* real-world values of previous slices */
    uint64_t voxels[PEAKS_CHUNK];
};

/* Reads a stored value. Returns whether it is not padding. */
static bool
peaks_stored_at(const struct peaking *job, int64_t x, int64_t y, int64_t z, int32_t *stored)
{
    const struct kernels_lane *lane = &job->lane->base;
    const int64_t voxel = (z * lane->extent.rows + y) * lane->extent.columns + x;
    const void *voxels = job->lane->voxels.memory;
    const struct image_range *padding = &job->peaks->paddings[job->per_slice ? z : 0];

    if (lane->pixel == IMAGE_UINT8)
        *stored = ((const uint8_t *)voxels)[voxel];
    else
        *stored = lane->pixel == IMAGE_INT16 ? ((const int16_t *)voxels)[voxel] : ((const uint16_t *)voxels)[voxel];
    return *stored < padding->lo || padding->hi < *stored;
}

/* ------------------------------------------------------------------------ sums of rows ---- */

static uint64_t *
peaks_sums_of(const struct peaking *job, int64_t y, int64_t z)
{
    return job->sums + ((z - job->first[2]) * job->size[1] + y - job->first[1]) * (job->size[0] + 1);
}

static void
peaks_sum_slice(void *context, int64_t i)
{
    const struct peaking *job = context;
    const int64_t z = job->first[2] + i;

    for (int64_t y = job->first[1]; y < job->first[1] + job->size[1]; y++) {
        uint64_t *sums = peaks_sums_of(job, y, z);

        sums[0] = 0;
        for (int64_t x = 0; x < job->size[0]; x++) {
            int32_t stored;

            sums[x + 1] = sums[x];
            if (peaks_stored_at(job, job->first[0] + x, y, z, &stored))
                sums[x + 1] += peaks_item((uint32_t)(stored - job->smallest));
        }
    }
}

/* --------------------------------------------------------------------------- the balls ---- */

/* Returns the sum around voxel x of a row, including its surroundings. */
static uint64_t
peaks_span(const struct peaking *job, const uint64_t *sums, int64_t x, int64_t reach)
{
    const int64_t end = x + reach + 1 < job->size[0] ? x + reach + 1 : job->size[0];

    return sums[end] - sums[x > reach ? x - reach : 0];
}

static void
peaks_add_row(const struct peaking *job, const uint64_t *restrict sums, int64_t first, int64_t count, int64_t reach,
              uint64_t *restrict chunk)
{
    int64_t inner = reach - first, outer = job->size[0] - reach - first;

    inner = inner < 0 ? 0 : inner > count ? count : inner;
    outer = outer < inner ? inner : outer > count ? count : outer;
    for (int64_t x = 0; x < inner; x++)
        chunk[x] += peaks_span(job, sums, first + x, reach);
    for (int64_t x = inner; x < outer; x++)
        chunk[x] += sums[first + x + reach + 1] - sums[first + x - reach];
    for (int64_t x = outer; x < count; x++)
        chunk[x] += peaks_span(job, sums, first + x, reach);
}

/* Converts the sums of slices with the rescale of slice z to values. */
static void
peaks_flush(const struct peaking *job, int64_t z, int64_t count, struct peaks_chunk *chunk)
{
    const struct image_rescale *rescale = &job->peaks->rescales[job->per_slice ? z : 0];

    for (int64_t x = 0; x < count; x++) {
        const uint64_t voxels = peaks_voxels(chunk->sums[x]);

        chunk->totals[x] +=
            rescale->slope * peaks_stored(chunk->sums[x], job->smallest) + rescale->intercept * (double)voxels;
        chunk->voxels[x] += voxels;
        chunk->sums[x] = 0;
    }
}

static void
peaks_add_rows(const struct peaking *job, int64_t first, int64_t count, int64_t y, int64_t z, struct peaks_chunk *chunk)
{
    int64_t slice = -1;

    memset(chunk, 0, sizeof(*chunk));
    for (size_t r = 0; r < job->ball->row_count; r++) {
        const struct peaks_row *row = &job->ball->rows[r];
        const int64_t other = y + row->y, deep = z + row->z;

        if (other < job->first[1] || other >= job->first[1] + job->size[1] || deep < job->first[2] ||
            deep >= job->first[2] + job->size[2])
            continue;
        if (job->per_slice && slice >= 0 && deep != slice)
            peaks_flush(job, slice, count, chunk);
        slice = deep;
        peaks_add_row(job, peaks_sums_of(job, other, deep), first - job->first[0], count, row->reach, chunk->sums);
    }
    peaks_flush(job, slice, count, chunk);
}

/* Takes the mean around a voxel if the voxel's value is in range. */
static void
peaks_take(const struct peaking *job, int64_t x, int64_t y, int64_t z, const struct peaks_chunk *chunk, int64_t at,
           struct peaks_found *found)
{
    const struct image_rescale *rescale = &job->peaks->rescales[job->per_slice ? z : 0];
    int32_t stored;
    const bool has_value = peaks_stored_at(job, x, y, z, &stored);
    const double value = rescale->slope * (double)stored + rescale->intercept;
    double mean;

    if (!has_value || !(job->peaks->kept[0] <= value && value <= job->peaks->kept[1]))
        return;
    mean = chunk->totals[at] / (double)chunk->voxels[at] + 0.0; /* not -0 */
    found->balls++;
    if (mean > found->global)
        found->global = mean;
    if (value == job->peaks->largest && mean > found->local)
        found->local = mean;
}

/* Handles columns of the box's row i in the region, 64 at a time. */
static void
peaks_look(void *context, int64_t i)
{
    struct peaking *job = context;
    struct peaks_found found = {-INFINITY, -INFINITY, 0};
    const int64_t y = job->box.first[1] + i % job->box.size[1], z = job->box.first[2] + i / job->box.size[1];
    const struct kernels_lane *lane = &job->lane->base;
    const int64_t row = z * lane->extent.rows + y, words = texture_words_per_row(lane);
    const int64_t at_once = PEAKS_CHUNK / 64;
    struct peaks_chunk chunk;

    for (int64_t begin = 0; begin < words; begin += at_once) {
        int64_t word = begin, end = begin + at_once < words ? begin + at_once : words;

        while (word < end && texture_region_word(lane, job->peaks->region, row, word) == 0)
            word++;
        while (end > word && texture_region_word(lane, job->peaks->region, row, end - 1) == 0)
            end--;
        if (word == end)
            continue;
        const int64_t first = word * 64 > job->first[0] ? word * 64 : job->first[0];
        const int64_t last = end * 64 < job->first[0] + job->size[0] ? end * 64 : job->first[0] + job->size[0];

        peaks_add_rows(job, first, last - first, y, z, &chunk);
        for (; word < end; word++)
            for (uint64_t bits = texture_region_word(lane, job->peaks->region, row, word); bits; bits &= bits - 1) {
                const int64_t x = word * 64 + __builtin_ctzll(bits);

                peaks_take(job, x, y, z, &chunk, x - first, &found);
            }
    }
    if (found.balls == 0)
        return;
    pthread_mutex_lock(&job->mutex);
    job->found->balls += found.balls;
    job->found->global = fmax(job->found->global, found.global);
    job->found->local = fmax(job->found->local, found.local);
    pthread_mutex_unlock(&job->mutex);
}

/* ----------------------------------------------------------------------- the operation ---- */

static void
cpu_peaks_place(struct kernels_lane *lane, struct kernels_memory *memory)
{
    struct cpu_peaks *own = kernels_state(lane, KERNELS_PEAKS);
    const struct image_extent *extent = &lane->extent;

    own->sums = kernels_take(&memory->host, (size_t)(extent->columns + 1) * (size_t)extent->rows,
                             (size_t)extent->slices * sizeof(*own->sums));
}

static int
cpu_peaks_run(struct kernels_lane *lane, const void *given, struct error *error)
{
    const struct peaks_request *request = given;
    const struct cpu_peaks *own = kernels_state(lane, KERNELS_PEAKS);
    struct cpu_pool *pool = cpu_device_of(lane)->pool;
    struct peaking job = {
        .lane = cpu_lane_of(lane),
        .peaks = request->peaks,
        .ball = request->ball,
        .per_slice = request->peaks->table_count > 1,
        .sums = own->sums,
        .smallest = image_pixel_range(lane->pixel).lo,
        .mutex = PTHREAD_MUTEX_INITIALIZER,
        .found = request->found,
    };

    (void)error;
    texture_region_box(lane, request->peaks->region, &job.box);
    if (job.box.size[0] == 0)
        return 0;
    /* Find the box, and the part of the volume within its reach. */
    const struct image_extent *extent = &job.lane->base.extent;
    const int64_t sides[3] = {extent->columns, extent->rows, extent->slices};

    for (int axis = 0; axis < 3; axis++) {
        const int64_t first = job.box.first[axis] - job.ball->reach[axis];
        const int64_t end = job.box.first[axis] + job.box.size[axis] + job.ball->reach[axis];

        job.first[axis] = first > 0 ? first : 0;
        job.size[axis] = (end < sides[axis] ? end : sides[axis]) - job.first[axis];
    }
    cpu_pool_for(pool, job.size[2], peaks_sum_slice, &job);
    cpu_pool_for(pool, job.box.size[1] * job.box.size[2], peaks_look, &job);
    return 0;
}

const struct kernels_op cpu_peaks_op = {
    .name = "local intensity",
    .state_size = sizeof(struct cpu_peaks),
    .transient = true,
    .needs = kernels_op_asked,
    .place = cpu_peaks_place,
    .run = cpu_peaks_run,
};
