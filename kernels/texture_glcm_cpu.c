/*
 * texture_glcm_cpu.c - value histograms and grey level co-occurrence matrices on the CPU.
 */
#include "backend_cpu.h"

#include <string.h>

static int64_t
words_per_row(const struct kernels_lane *lane)
{
    return (lane->extent.columns + 63) / 64;
}

static bool
in_region(const struct kernels_lane *lane, const uint64_t *region, int64_t x, int64_t row)
{
    return !region || (region[row * words_per_row(lane) + x / 64] >> x % 64 & 1);
}

/* Counted from the smallest of the pixel type. */
static size_t
value_at(struct kernels_lane *lane, int64_t i)
{
    const void *voxels = cpu_lane_of(lane)->voxels.memory;

    if (lane->pixel == KERNELS_UINT8)
        return ((const uint8_t *)voxels)[i];
    return (uint16_t)(((const uint16_t *)voxels)[i] ^ (lane->pixel == KERNELS_INT16 ? 0x8000 : 0));
}

struct job {
    struct kernels_lane *lane;
    const struct texture_glcm *request;
    const uint64_t *region;
    bool per_slice;
    size_t values;
    uint64_t *counts;
};

static size_t
level_at(const struct job *job, int64_t x, int64_t y, int64_t z)
{
    struct kernels_extent extent = job->lane->extent;
    const struct texture_levels *levels = &job->request->levels;
    int64_t row = z * extent.rows + y;

    if (x < 0 || y < 0 || z < 0 || x >= extent.columns || y >= extent.rows || z >= extent.slices ||
        !in_region(job->lane, job->region, x, row))
        return 0;
    size_t table = levels->table_count == 1 ? 0 : (size_t)z;
    return levels->level_of[table * job->values + value_at(job->lane, row * extent.columns + x)];
}

static void
count_pairs(void *context, int64_t z)
{
    const struct job *job = context;
    const struct texture_glcm *request = job->request;
    struct kernels_extent extent = job->lane->extent;
    size_t levels = (size_t)request->levels.levels, first = job->per_slice ? (size_t)z : 0;

    for (size_t o = 0; o < request->offset_count; o++) {
        struct texture_offset by = request->offsets[o];
        uint64_t *matrix = job->counts + (first * request->offset_count + o) * levels * levels;

        for (int64_t y = 0; y < extent.rows; y++)
            for (int64_t x = 0; x < extent.columns; x++) {
                size_t a = level_at(job, x, y, z), b = level_at(job, x + by.x, y + by.y, z + by.z);

                if (a && b)
                    __atomic_fetch_add(&matrix[(a - 1) * levels + b - 1], 1, __ATOMIC_RELAXED);
            }
    }
}

int
cpu_glcm_run(struct kernels_lane *lane, const struct texture_glcm *request, uint64_t *counts,
             char *reason, size_t reason_size)
{
    size_t levels = (size_t)request->levels.levels;
    size_t matrices = request->per_slice ? (size_t)lane->extent.slices : 1;
    struct job job = {.lane = lane,
                      .request = request,
                      .region = request->region,
                      .per_slice = request->per_slice,
                      .values = lane->pixel == KERNELS_UINT8 ? 256 : 65536,
                      .counts = counts};

    (void)reason;
    (void)reason_size;
    memset(counts, 0, matrices * request->offset_count * levels * levels * sizeof(*counts));
    cpu_pool_for(cpu_device_of(lane)->pool, lane->extent.slices, count_pairs, &job);
    return 0;
}

static void
count_values(void *context, int64_t z)
{
    const struct job *job = context;
    struct kernels_extent extent = job->lane->extent;
    uint64_t *counts = job->counts + (job->per_slice ? (size_t)z * job->values : 0);

    for (int64_t row = z * extent.rows; row < (z + 1) * extent.rows; row++)
        for (int64_t x = 0; x < extent.columns; x++)
            if (in_region(job->lane, job->region, x, row))
                __atomic_fetch_add(&counts[value_at(job->lane, row * extent.columns + x)], 1,
                                   __ATOMIC_RELAXED);
}

int
cpu_histogram_run(struct kernels_lane *lane, const uint64_t *region, bool per_slice,
                  uint64_t *counts, char *reason, size_t reason_size)
{
    struct job job = {.lane = lane,
                      .region = region,
                      .per_slice = per_slice,
                      .values = lane->pixel == KERNELS_UINT8 ? 256 : 65536,
                      .counts = counts};

    (void)reason;
    (void)reason_size;
    memset(counts, 0, (per_slice ? (size_t)lane->extent.slices : 1) * job.values * sizeof(*counts));
    cpu_pool_for(cpu_device_of(lane)->pool, lane->extent.slices, count_values, &job);
    return 0;
}
