/*
 * morphology_cpu.c - configurations and sums on the CPU. A word holds 64 adjacent cells, whose
 * voxels are eight words. Uniform cells are counted by population counts, other cells, at the
 * surface, eight at a time.
 */
#include "kernels/morphology/morphology.h"

#include "kernels/cpu/device.h"

#include <string.h>

enum { CORNERS = 8, CELLS = 64 };

struct morphing {
    const struct cpu_lane *lane;
    const struct morphology_region *region;
    int64_t words; /* words per row */
    uint64_t *counts;
};

/* Returns a word of a row of bits, or 0 beyond the volume. */
static uint64_t
region_word(const struct morphing *job, int64_t y, int64_t z, int64_t word)
{
    const struct image_extent *extent = &job->lane->base.extent;
    const int64_t left = extent->columns - 64 * word;
    const uint64_t inside = left < 64 ? (UINT64_C(1) << left) - 1 : ~UINT64_C(0);

    if (y < 0 || z < 0 || y >= extent->rows || z >= extent->slices || left <= 0)
        return 0;
    return job->region->bits ? job->region->bits[(z * extent->rows + y) * job->words + word] & inside : inside;
}

/* ------------------------------------------------------------------------ configurations ---- */

/* Moves bit i of byte k to bit k of byte i (Warren, Hacker's Delight, 7-3). */
static uint64_t
transpose_bits(uint64_t bits)
{
    uint64_t swapped = (bits ^ bits >> 7) & 0x00AA00AA00AA00AA;

    bits ^= swapped ^ swapped << 7;
    swapped = (bits ^ bits >> 14) & 0x0000CCCC0000CCCC;
    bits ^= swapped ^ swapped << 14;
    swapped = (bits ^ bits >> 28) & 0x00000000F0F0F0F0;
    return bits ^ swapped ^ swapped << 28;
}

static void
configurations_add_word(const uint64_t corners[CORNERS], uint64_t *counts)
{
    uint64_t any = 0, all = ~UINT64_C(0), mixed;

    for (int corner = 0; corner < CORNERS; corner++) {
        any |= corners[corner];
        all &= corners[corner];
    }
    mixed = any & ~all;
    for (int byte = 0; byte < CELLS / 8; byte++) {
        if (mixed >> 8 * byte & 0xFF) {
            /* Count the cells of one byte of the corners' words. */
            uint64_t bits = 0;

            for (int corner = 0; corner < CORNERS; corner++)
                bits |= (corners[corner] >> 8 * byte & 0xFF) << 8 * corner;
            for (bits = transpose_bits(bits); bits; bits >>= 8)
                counts[bits & 0xFF]++;
            all &= ~(UINT64_C(0xFF) << 8 * byte);
        }
    }
    counts[MORPHOLOGY_CONFIGURATIONS - 1] += (uint64_t)__builtin_popcountll(all);
}

/* Counts cells whose first voxels lie in row y of slice z. They begin at column -1, so that words
 * are shifted. */
static void
configurations_add_row(const struct morphing *job, int64_t y, int64_t z, uint64_t *counts)
{
    const int64_t columns = job->lane->base.extent.columns;
    uint64_t carry[CORNERS / 2] = {0};

    for (int64_t word = 0; word <= columns / CELLS; word++) {
        uint64_t corners[CORNERS], any = 0;

        for (int row = 0; row < CORNERS / 2; row++) {
            const uint64_t bits = region_word(job, y + (row & 1), z + (row >> 1), word);

            corners[2 * row] = bits << 1 | carry[row];
            corners[2 * row + 1] = bits;
            carry[row] = bits >> 63;
            any |= corners[2 * row] | bits;
        }
        if (any)
            configurations_add_word(corners, counts);
    }
}

/* ---------------------------------------------------------------------------------- sums ---- */

static void
sums_add_slice(const struct morphing *job, int64_t z, uint64_t sums[MORPHOLOGY_SUMS])
{
    const struct kernels_lane *lane = &job->lane->base;
    const size_t table = job->region->table_count > 1 ? (size_t)z : 0;
    const uint64_t *kept = job->region->kept + table * morphology_table(lane->pixel);

    for (int64_t y = 0; y < lane->extent.rows; y++) {
        uint64_t row[MORPHOLOGY_SUMS] = {0};

        for (int64_t word = 0; word < job->words; word++) {
            /* Add the kept voxels of a word, without the terms common to a row. */
            uint64_t bits = region_word(job, y, z, word);
            const int64_t begin = (z * lane->extent.rows + y) * lane->extent.columns;

            for (; bits; bits &= bits - 1) {
                const uint64_t x = (uint64_t)(64 * word + __builtin_ctzll(bits));
                const uint64_t value = cpu_lane_value(job->lane, begin + (int64_t)x);
                const uint64_t counts = kept[value / 64] >> value % 64 & 1;

                row[MORPHOLOGY_VOXELS] += counts;
                row[MORPHOLOGY_X] += counts * x;
                row[MORPHOLOGY_VALUE] += counts * value;
                row[MORPHOLOGY_VALUE_X] += counts * value * x;
            }
        }
        row[MORPHOLOGY_Y] = row[MORPHOLOGY_VOXELS] * (uint64_t)y;
        row[MORPHOLOGY_VALUE_Y] = row[MORPHOLOGY_VALUE] * (uint64_t)y;
        for (int sum = 0; sum < MORPHOLOGY_SUMS; sum++)
            sums[sum] += row[sum];
    }
}

/* ------------------------------------------------------------------------- the operation ---- */

/* Counts the slice, and the cells between it and the previous slice. */
static void
morphing_count_slice(void *context, int64_t z)
{
    const struct morphing *job = context;
    const struct image_extent *extent = &job->lane->base.extent;
    uint64_t counts[MORPHOLOGY_CONFIGURATIONS] = {0};

    for (int64_t y = -1; y < extent->rows; y++)
        configurations_add_row(job, y, z - 1, counts);
    for (int i = 1; i < MORPHOLOGY_CONFIGURATIONS; i++)
        if (counts[i] > 0)
            __atomic_fetch_add(&job->counts[i], counts[i], __ATOMIC_RELAXED);
    if (z < extent->slices)
        sums_add_slice(job, z, job->counts + MORPHOLOGY_CONFIGURATIONS + (size_t)z * MORPHOLOGY_SUMS);
}

static int
cpu_morphology_run(struct kernels_lane *lane, const void *given, struct error *error)
{
    const struct morphology_request *request = given;
    struct morphing job = {
        .lane = cpu_lane_of(lane),
        .region = request->region,
        .words = (lane->extent.columns + 63) / 64,
        .counts = request->counts,
    };

    (void)error;
    memset(request->counts, 0, morphology_size(lane->extent.slices) * sizeof(*request->counts));
    cpu_pool_for(cpu_device_of(lane)->pool, lane->extent.slices + 1, morphing_count_slice, &job);
    return 0;
}

const struct kernels_op cpu_morphology_op = {
    .name = "morphology",
    .transient = true,
    .needs = kernels_op_asked,
    .run = cpu_morphology_run,
};
