/* range_cpu.c - finds the smallest and largest stored value in one pass over the volume; implements
 * range_cpu.h. */
#include "kernels/range/range_cpu.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

/* All threads process slices. A mutex guards the merge. */
struct range_job {
    struct cpu_lane *lane;
    struct isa_extremes empty; /* initial value per slice */
    pthread_mutex_t mutex;
    struct isa_extremes extremes;
};

static void
range_slice(void *context, int64_t z)
{
    struct range_job *job = context;
    const struct kernels_lane *lane = &job->lane->base;
    const struct isa *isa = cpu_device_of(lane)->isa;
    struct isa_extremes own = job->empty;
    int64_t count = image_slice_voxels(&lane->extent);

    if (lane->pixel == IMAGE_UINT8)
        isa->extremes8((const uint8_t *)job->lane->voxels.memory + z * count, count, &own);
    else
        isa->extremes16((const uint16_t *)job->lane->voxels.memory + z * count, count, &own);
    pthread_mutex_lock(&job->mutex);
    if (own.smallest < job->extremes.smallest)
        job->extremes.smallest = own.smallest;
    if (own.largest > job->extremes.largest)
        job->extremes.largest = own.largest;
    pthread_mutex_unlock(&job->mutex);
}

static int
cpu_range_run(struct kernels_lane *lane, const void *given, struct error *error)
{
    const struct range_request *request = given;
    struct image_range limits = image_pixel_range(lane->pixel);
    struct image_range padding = range_clip(request->padding, lane->pixel);
    struct range_job job = {.lane = cpu_lane_of(lane)};
    struct isa_extremes *empty = &job.empty;

    (void)error;
    empty->bias = lane->pixel == IMAGE_INT16 ? 0x8000 : 0;
    empty->smallest = (uint16_t)(limits.hi - limits.lo);
    if (padding.lo <= padding.hi) {
        empty->skipping = true;
        empty->skip.low = (uint16_t)(padding.lo - limits.lo);
        empty->skip.span = (uint16_t)(padding.hi - padding.lo);
    }
    job.extremes = *empty;
    pthread_mutex_init(&job.mutex, NULL);
    cpu_pool_for(cpu_device_of(lane)->pool, lane->extent.slices, range_slice, &job);
    pthread_mutex_destroy(&job.mutex);
    /* If all voxels are padding, smallest stays above largest. */
    if (job.extremes.smallest > job.extremes.largest)
        return -ENODATA;
    request->range->lo = limits.lo + job.extremes.smallest;
    request->range->hi = limits.lo + job.extremes.largest;
    return 0;
}

const struct kernels_op cpu_range_op = {.name = "the value range", .run = cpu_range_run};

/* Finds the at most two intervals in range other than padding. Returns false if there are none. */
static bool
find_intervals(enum image_pixel pixel, struct image_range range, struct image_range padding,
               struct isa_interval pass[2])
{
    struct image_range intervals[2];
    int count = range_intervals(pixel, range, padding, intervals);

    for (int i = 0; i < 2 && count > 0; i++) {
        const struct image_range *interval = &intervals[i < count ? i : 0];

        pass[i] = (struct isa_interval){(uint16_t)interval->lo, (uint16_t)(interval->hi - interval->lo)};
    }
    return count > 0;
}

/* Packs `count` voxels of a row from a column on. */
static int64_t
pack_voxels(const struct cpu_lane *lane, int64_t row, int64_t column, int64_t count, const struct isa_interval pass[2],
            uint64_t *bits)
{
    const struct kernels_lane *base = &lane->base;
    const struct isa *isa = cpu_device_of(base)->isa;
    const int64_t first = row * base->extent.columns + column;
    const void *voxels = lane->voxels.memory;

    if (base->pixel == IMAGE_UINT8)
        return isa->pack8((const uint8_t *)voxels + first, count, pass, bits);
    return isa->pack16((const uint16_t *)voxels + first, count, pass, bits);
}

int64_t
range_pack_slice(const struct cpu_lane *lane, struct image_range range, struct image_range padding, int64_t z,
                 uint64_t *bits)
{
    const struct kernels_lane *base = &lane->base;
    const int64_t columns = base->extent.columns, rows = base->extent.rows;
    const int64_t words = (columns + 63) / 64;
    struct isa_interval pass[2];
    int64_t runs = 0;

    if (!find_intervals(base->pixel, range, padding, pass)) {
        memset(bits, 0, (size_t)(words * rows) * sizeof(*bits));
        return 0;
    }
    for (int64_t row = z * rows; row < (z + 1) * rows; row++, bits += words)
        runs += pack_voxels(lane, row, 0, columns, pass, bits);
    return runs;
}

enum { NARROW_WORDS = 16 }; /* words at a time */

void
range_narrow_slice(const struct cpu_lane *lane, struct image_range range, struct image_range padding, int64_t z,
                   uint64_t *bits)
{
    const int64_t rows = lane->base.extent.rows, columns = lane->base.extent.columns, words = (columns + 63) / 64;
    uint64_t found[NARROW_WORDS];
    struct isa_interval pass[2];

    if (!find_intervals(lane->base.pixel, range, padding, pass)) {
        memset(bits, 0, (size_t)(words * rows) * sizeof(*bits));
        return;
    }
    for (int64_t row = z * rows; row < (z + 1) * rows; row++, bits += words)
        for (int64_t word = 0, end; word < words; word = end) {
            end = word + 1;
            if (bits[word] == 0)
                continue;
            while (end < words && bits[end] != 0 && end - word < NARROW_WORDS)
                end++;
            pack_voxels(lane, row, 64 * word, (end < words ? 64 * end : columns) - 64 * word, pass, found);
            for (int64_t i = word; i < end; i++)
                bits[i] &= found[i - word];
        }
}

void
range_clip_voxels(const struct cpu_lane *lane, const struct range_clipping *clip, int64_t first, int64_t count,
                  uint16_t *clipped)
{
    const struct isa *isa = cpu_device_of(&lane->base)->isa;
    const void *voxels = lane->voxels.memory;

    if (lane->base.pixel == IMAGE_UINT8)
        isa->clip8((const uint8_t *)voxels + first, count, clip, clipped);
    else
        isa->clip16((const uint16_t *)voxels + first, count, clip, clipped);
}
