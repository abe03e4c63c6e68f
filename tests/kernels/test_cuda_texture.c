/*
 * test_cuda_texture.c - compares texture on the GPU with the CPU's, number for number.
 *
 *   kernels_test_cuda_texture [--quick]    --quick: a selection for compute-sanitizer
 *
 * The case small alone (CK_RUN_CASE) is small enough for racecheck.
 *
 * Matrices, value histograms and maps of small volumes are also compared with the references. Exits with 77
 * ("skipped" for CTest) if there is no GPU. NOCTULE_TEST_VOLUMES may name volumes of real series, as for test_cuda.c.
 */
#include "kernels/texture/region.h"
#include "tests/kernels/gpu_pair.h"
#include "tests/kernels/ref_morphology.h"
#include "tests/kernels/ref_patterns.h"
#include "tests/kernels/ref_texture.h"
#include "tests/kernels/ref_volumes.h"

#include <check.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PIXELS = 3, MOST_OFFSETS = 16, SMALL = 20000 };

enum content { RANDOM, CONSTANT, GRADIENT, FEW, EXTREME, CHECKERBOARD, EVERY, CONTENTS };

enum region { WHOLE, SOME, ONE_VOXEL, EMPTY, REGIONS };

static const void *voxels_now; /* of the volume in both lanes */
static enum image_pixel pixel_now;
static struct error error;
static uint64_t random_state;

static const struct image_extent extents[] = {
    {64, 33, 3},  {16, 5, 2},   {1, 1, 1},   {1, 40, 3},  {37, 1, 4}, {3, 3, 3},    {65, 17, 5},
    {530, 12, 2}, {544, 21, 1}, {128, 2, 9}, {48, 48, 7}, {4, 70, 2}, {1040, 6, 1}, {31, 100, 1},
};

enum { EXTENTS = sizeof(extents) / sizeof(extents[0]), QUICK_EXTENTS = 4 };

static uint32_t
random_below(uint32_t end)
{
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)((random_state >> 33) % end);
}

static void *
allocate(size_t count, size_t size)
{
    void *memory = calloc(count > 0 ? count : 1, size);

    ck_assert_ptr_nonnull(memory);
    return memory;
}

static size_t
voxels_of(struct image_extent extent)
{
    return (size_t)(extent.columns * extent.rows * extent.slices);
}

static size_t
words_of(struct image_extent extent)
{
    return (size_t)((extent.columns + 63) / 64 * extent.rows * extent.slices);
}

static size_t
values_of(enum image_pixel pixel)
{
    return pixel == IMAGE_UINT8 ? 256 : 65536;
}

/* Returns a value, counted from the smallest of the pixel type. */
static uint32_t
value_of(enum content content, uint32_t values, size_t i, struct image_extent extent)
{
    switch (content) {
    case RANDOM:
        return random_below(values);
    case CONSTANT:
        return values / 2 + 77;
    case GRADIENT:
        return (uint32_t)(i % (size_t)extent.columns + i / (size_t)extent.columns * 3) % values;
    case FEW:
        return values / 2 + random_below(4);
    case EXTREME:
        return random_below(2) ? values - 1 - random_below(2) : random_below(2);
    case CHECKERBOARD:
        return (i % (size_t)extent.columns + i / (size_t)extent.columns) % 2 ? values - 1 : 0;
    case EVERY:
        return (uint32_t)(i * 37) % values;
    case CONTENTS:
        break;
    }
    return 0;
}

static void
fill(enum content content, enum image_pixel pixel, struct image_extent extent, void *voxels)
{
    for (size_t i = 0; i < voxels_of(extent); i++) {
        uint32_t value = value_of(content, (uint32_t)values_of(pixel), i, extent);

        if (pixel == IMAGE_UINT8)
            ((uint8_t *)voxels)[i] = (uint8_t)value;
        else
            ((uint16_t *)voxels)[i] = (uint16_t)(pixel == IMAGE_INT16 ? value ^ 0x8000 : value);
    }
}

static void
begin_with(const void *source, enum image_pixel pixel, struct image_extent extent)
{
    const struct kernels_demand demand = {REF_TEXTURE_DEMAND};

    for (int i = 0; i < 2; i++) {
        void *voxels;

        ck_assert_msg(kernels_volume_begin(lanes[i], extent, pixel, &demand, &voxels, &error) == 0, "%s",
                      error.message);
        memcpy(voxels, source, voxels_of(extent) * image_pixel_size(pixel));
        ck_assert_int_eq(kernels_volume_ready(lanes[i], 0, extent.slices, NULL), 0);
        voxels_now = voxels;
    }
    pixel_now = pixel;
}

static void
begin(enum content content, enum image_pixel pixel, struct image_extent extent)
{
    void *voxels = allocate(voxels_of(extent), image_pixel_size(pixel));

    fill(content, pixel, extent, voxels);
    begin_with(voxels, pixel, extent);
    free(voxels);
}

/* NULL: every voxel. Padding bits of a row may have any value. */
static uint64_t *
make_region(enum region kind, struct image_extent extent)
{
    const size_t words_per_row = (size_t)(extent.columns + 63) / 64;
    const uint32_t one_in = 1 + random_below(3);
    uint64_t *region;

    if (kind == WHOLE)
        return NULL;
    region = allocate(words_of(extent), sizeof(*region));
    for (size_t i = 0; i < words_of(extent); i++)
        for (int bit = 0; bit < 64; bit++) {
            const bool padding = (int64_t)(i % words_per_row) * 64 + bit >= extent.columns;

            if ((kind == SOME || padding) && random_below(one_in) == 0)
                region[i] |= UINT64_C(1) << bit;
        }
    if (kind == ONE_VOXEL)
        region[(size_t)(extent.rows / 2) * words_per_row] |= 1;
    return region;
}

/* Compares without Check, which records every assertion and is slow for millions. */
static void
assert_same(const uint64_t *cpu, const uint64_t *gpu, size_t count, const char *what)
{
    for (size_t i = 0; i < count; i++)
        if (cpu[i] != gpu[i])
            ck_abort_msg("%s: number %zu is %llu on the CPU, %llu on the GPU", what, i, (unsigned long long)cpu[i],
                         (unsigned long long)gpu[i]);
}

/* Levels */

enum binning { PAPER, WITH_GAPS, BY_SLICE, BINNINGS };

/* PAPER: floor(value * levels / values) + 1. WITH_GAPS: some values have no level. */
static uint16_t *
make_levels(enum binning binning, enum image_pixel pixel, size_t tables, int levels)
{
    const size_t values = values_of(pixel);
    uint16_t *level_of = allocate(tables * values, sizeof(*level_of));

    for (size_t i = 0; i < tables * values; i++) {
        level_of[i] = (uint16_t)(i % values * (size_t)levels / values + 1);
        if (binning == BY_SLICE)
            level_of[i] = (uint16_t)(1 + (level_of[i] + i / values * 3) % (size_t)levels);
        if (binning != PAPER && random_below(5) == 0)
            level_of[i] = 0;
    }
    return level_of;
}

static void
compare_glcm(const struct texture_glcm *request, struct image_extent extent, const char *what)
{
    const size_t levels = (size_t)request->levels.levels;
    const size_t count = (request->per_slice ? (size_t)extent.slices : 1) * request->offset_count * levels * levels;
    uint64_t *counts[2];

    for (int i = 0; i < 2; i++) {
        counts[i] = allocate(count, sizeof(uint64_t));
        memset(counts[i], 0xEE, count * sizeof(uint64_t));
        ck_assert_msg(texture_glcm_run(lanes[i], request, counts[i], &error) == 0, "%s", error.message);
    }
    assert_same(counts[0], counts[1], count, what);
    if (voxels_of(extent) <= SMALL) {
        memset(counts[0], 0, count * sizeof(uint64_t));
        ref_texture_glcm(extent, pixel_now, voxels_now, request, counts[0]);
        assert_same(counts[0], counts[1], count, what);
    }
    free(counts[0]);
    free(counts[1]);
}

static void
check_glcm(struct image_extent extent, enum binning binning, int levels, const struct texture_offset *offsets,
           size_t count)
{
    const size_t tables = binning == BY_SLICE ? (size_t)extent.slices : 1;
    uint16_t *level_of = make_levels(binning, pixel_now, tables, levels);
    const int first = (int)random_below(2 * REGIONS);
    char what[256];

    for (int way = first; way < first + 2 * REGIONS; way += 3) {
        uint64_t *region = make_region((enum region)(way % REGIONS), extent);
        struct texture_glcm request = {.levels = {levels, level_of, tables},
                                       .region = region,
                                       .offsets = offsets,
                                       .offset_count = count,
                                       .per_slice = (way / REGIONS) % 2 != 0};

        snprintf(what, sizeof(what), "%dx%dx%d, pixel %d, binning %d, %d levels, %zu offsets, region %d, per slice %d",
                 (int)extent.columns, (int)extent.rows, (int)extent.slices, (int)pixel_now, (int)binning, levels, count,
                 way % REGIONS, request.per_slice);
        compare_glcm(&request, extent, what);
        free(region);
    }
    free(level_of);
}

/* The thirteen directions of 3-D, half of them reversed. */
static size_t
nearest(struct texture_offset *offsets)
{
    size_t count = 0;

    for (int z = -1; z <= 1; z++)
        for (int y = -1; y <= 1; y++)
            for (int x = -1; x <= 1; x++)
                if (z > 0 || (z == 0 && (y > 0 || (y == 0 && x > 0)))) {
                    int sign = count % 2 ? -1 : 1;

                    offsets[count++] = (struct texture_offset){sign * x, sign * y, sign * z};
                }
    return count;
}

static size_t
farther(struct texture_offset *offsets)
{
    static const struct texture_offset some[] = {
        {4, 0, 0},   {4, -4, 0},  {0, 2, 0},   {1, 3, 0},  {-1, 5, 0},  {1, -2, 0},  {-255, 0, 0}, {17, 0, 1},
        {-16, 1, 0}, {15, -1, 0}, {-3, 2, -1}, {32, 0, 0}, {0, 0, 255}, {5, 255, 0}, {1, 0, 0},    {1, 0, 0},
    };

    memcpy(offsets, some, sizeof(some));
    return sizeof(some) / sizeof(some[0]);
}

/* Runs each number of levels with each offset, near and far. Contents and tables take turns. */
START_TEST(matrices_are_the_cpus)
{
    static const int levels[] = {2, 8, 32, 11, 12, 16, 64, 100, 200, 256, 128, 4, 42, 43};
    const size_t count = quick ? 4 : sizeof(levels) / sizeof(levels[0]);
    struct texture_offset offsets[MOST_OFFSETS];

    random_state = (uint64_t)_i + 1;
    for (size_t i = 0; i < count; i++) {
        const enum binning binning = (enum binning)((i + (size_t)_i) % BINNINGS);
        const size_t fewer = levels[i] > 64 ? 10 : 0;

        begin((enum content)((i + (size_t)_i) % CONTENTS), (enum image_pixel)(i % PIXELS), extents[_i]);
        check_glcm(extents[_i], binning, levels[i], offsets, nearest(offsets) - fewer);
        begin(i % 2 ? RANDOM : CHECKERBOARD, IMAGE_UINT8, extents[_i]);
        check_glcm(extents[_i], PAPER, levels[i], offsets, farther(offsets) - fewer);
    }
}

END_TEST

/* Counts more matrices than fit the lane's counters, in more slices than tables. */
START_TEST(matrices_are_computed_in_batches)
{
    const struct image_extent extent = {20, 6, 40};
    struct texture_offset offsets[MOST_OFFSETS];

    random_state = 5;
    begin(RANDOM, IMAGE_INT16, extent);
    check_glcm(extent, BY_SLICE, 200, offsets, nearest(offsets));
}

END_TEST

/* Compares neighbourhoods and runs of both lanes and, for small volumes, of the references. */
static void
compare_counts(struct image_extent extent, const struct texture_neighbours *neighbours, const struct texture_runs *runs,
               size_t count, const char *what)
{
    uint64_t *counts[3];

    for (int i = 0; i < 3; i++)
        counts[i] = allocate(count, sizeof(uint64_t));
    for (int i = 0; i < 2; i++) {
        const int rc = neighbours ? texture_neighbours_run(lanes[i], neighbours, counts[i], &error)
                                  : texture_runs_run(lanes[i], runs, counts[i], &error);

        ck_assert_msg(rc == 0, "%s: %s", what, error.message);
    }
    assert_same(counts[0], counts[1], count, what);
    if (voxels_of(extent) <= SMALL && neighbours)
        ref_texture_neighbours(extent, pixel_now, voxels_now, neighbours, counts[2]);
    if (voxels_of(extent) <= SMALL && runs)
        ref_texture_runs(extent, pixel_now, voxels_now, runs, counts[2]);
    if (voxels_of(extent) <= SMALL)
        assert_same(counts[2], counts[1], count, what);
    for (int i = 0; i < 3; i++)
        free(counts[i]);
}

static void
check_neighbours(struct image_extent extent, const struct texture_levels *levels, const uint64_t *region, int way)
{
    struct texture_neighbours request = {.levels = *levels,
                                         .region = region,
                                         .distance = 1 + way / 2 % TEXTURE_MAX_DISTANCE,
                                         .alpha = way % 3,
                                         .in_slice = way % 2,
                                         .per_slice = way % 4 == 1};
    const size_t count = (request.per_slice ? (size_t)extent.slices : 1) * TEXTURE_NEIGHBOUR_KINDS *
                         (size_t)levels->levels * texture_neighbours_width(&request);
    char what[128];

    snprintf(what, sizeof(what), "neighbours of %dx%dx%d, %d levels, way %d", (int)extent.columns, (int)extent.rows,
             (int)extent.slices, levels->levels, way);
    compare_counts(extent, &request, NULL, count, what);
}

static void
check_runs(struct image_extent extent, const struct texture_levels *levels, const uint64_t *region, int way)
{
    struct texture_offset directions[13];
    struct texture_runs request = {.levels = *levels,
                                   .region = region,
                                   .directions = directions,
                                   .direction_count = ref_directions(way % 2, 1, directions),
                                   .longest = extent.columns,
                                   .per_slice = way % 4 == 1};
    char what[128];

    request.longest = extent.rows > request.longest ? extent.rows : request.longest;
    if (way % 2 == 0) /* some directions lead along z */
        request.longest = extent.slices > request.longest ? extent.slices : request.longest;
    snprintf(what, sizeof(what), "runs of %dx%dx%d, %d levels, way %d", (int)extent.columns, (int)extent.rows,
             (int)extent.slices, levels->levels, way);
    compare_counts(extent, NULL, &request, texture_runs_size(&request, extent.slices), what);
}

/* Equal neighbours of few and of more levels have bit planes: in space, in slices, slice by slice. */
START_TEST(equal_neighbours_are_the_cpus)
{
    static const int levels[] = {2, 16, 17, 32, 33, 64, 65};
    const struct image_extent extent = extents[_i];

    random_state = (uint64_t)_i + 61;
    for (int way = 0; way < (quick ? 3 : 24); way++) {
        const int count = levels[(way + _i) % 7];
        uint16_t *level_of = make_levels((enum binning)(way / 3 % 2), IMAGE_INT16, 1, count);
        uint64_t *region = make_region((enum region)(way / 3 % REGIONS), extent);
        const struct texture_neighbours request = {.levels = {count, level_of, 1},
                                                   .region = region,
                                                   .distance = 1,
                                                   .in_slice = way % 3 != 0,
                                                   .per_slice = way % 3 == 2};
        const size_t matrices = request.per_slice ? (size_t)extent.slices : 1;
        char what[128];

        begin((enum content)(way % CONTENTS), IMAGE_INT16, extent);
        snprintf(what, sizeof(what), "equal neighbours of %dx%dx%d, %d levels, way %d", (int)extent.columns,
                 (int)extent.rows, (int)extent.slices, count, way);
        compare_counts(extent, &request, NULL,
                       matrices * TEXTURE_NEIGHBOUR_KINDS * (size_t)count * texture_neighbours_width(&request), what);
        free(region);
        free(level_of);
    }
}

END_TEST

/* Lines of levels that seldom change, along each axis, have runs that are longer than the counters allow. */
START_TEST(long_runs_are_the_cpus)
{
    static const struct image_extent long_ones[] = {{896, 8, 8}, {6, 900, 2}, {5, 3, 900}, {TEXTURE_MAX_RUN, 1, 1}};
    static const size_t along[] = {1, 6, 5 * 3, 1};
    static const int levels[] = {32, 256, 2, 200};
    const struct image_extent extent = long_ones[_i];
    uint8_t *voxels = allocate(voxels_of(extent), 1);

    random_state = (uint64_t)_i + 8;
    for (size_t i = 0; i < voxels_of(extent); i++)
        voxels[i] = i < along[_i] || random_below(90) == 0 ? (uint8_t)(random_below(3) * 100) : voxels[i - along[_i]];
    if (extent.columns == TEXTURE_MAX_RUN) /* one run */
        memset(voxels, 100, TEXTURE_MAX_RUN);
    begin_with(voxels, IMAGE_UINT8, extent);
    for (int i = 0; i < 4; i++) {
        uint16_t *level_of = make_levels(PAPER, IMAGE_UINT8, 1, levels[i]);
        const struct texture_levels table = {levels[i], level_of, 1};

        check_runs(extent, &table, NULL, i % 2);
        free(level_of);
    }
    free(voxels);
}

END_TEST

static void
check_zones_of(struct image_extent extent, const struct texture_zones *request, enum texture_zone_kind kind,
               const struct texture_zone_list lists[2])
{
    uint64_t *keys[3], count[3] = {0};

    for (int i = 0; i < 3; i++)
        keys[i] = allocate(voxels_of(extent), sizeof(uint64_t));
    for (int i = 0; i < 2; i++)
        count[i] = ref_texture_listed(&lists[i], keys[i]);
    ck_assert_uint_eq(count[0], count[1]);
    assert_same(keys[0], keys[1], count[0], "zones");
    if (voxels_of(extent) <= SMALL) {
        count[2] = ref_texture_zones(extent, pixel_now, voxels_now, request, kind, keys[2]);
        ck_assert_uint_eq(count[2], count[1]);
        assert_same(keys[2], keys[1], count[2], "zones");
    }
    for (int i = 0; i < 3; i++)
        free(keys[i]);
}

static void
check_zones(struct image_extent extent, const struct texture_levels *levels, const uint64_t *region, int way)
{
    const struct texture_zones request = {
        .levels = *levels, .region = region, .distances = way / 2 % 2, .in_slice = way % 2, .per_slice = way % 4 == 1};
    struct texture_zone_list lists[2][TEXTURE_ZONE_KINDS] = {{{NULL, 0}}};

    for (int i = 0; i < 2; i++)
        ck_assert_msg(texture_zones_run(lanes[i], &request, lists[i], &error) == 0, "%s", error.message);
    for (int kind = 0; kind <= request.distances; kind++)
        check_zones_of(extent, &request, (enum texture_zone_kind)kind,
                       (struct texture_zone_list[]){lists[0][kind], lists[1][kind]});
    for (int i = 0; i < 2 * TEXTURE_ZONE_KINDS; i++)
        free(lists[i / TEXTURE_ZONE_KINDS][i % TEXTURE_ZONE_KINDS].zones);
}

/* Keeps each value that has a level. */
static void
check_morphology(struct image_extent extent, const struct texture_levels *levels, const uint64_t *region)
{
    const size_t size = morphology_size(extent.slices), values = values_of(pixel_now);
    const size_t entries = levels->table_count * values;
    uint64_t *kept = allocate(entries / 64, sizeof(*kept)), *counts[3];
    const struct morphology_region request = {region, kept, levels->table_count};

    for (size_t i = 0; i < entries; i++)
        kept[i / 64] |= (uint64_t)(levels->level_of[i] > 0) << i % 64;
    for (int i = 0; i < 3; i++)
        counts[i] = allocate(size, sizeof(uint64_t));
    for (int i = 0; i < 2; i++)
        ck_assert_msg(morphology_run(lanes[i], &request, counts[i], &error) == 0, "%s", error.message);
    assert_same(counts[0], counts[1], size, "morphology");
    ref_morphology(extent, pixel_now, voxels_now, &request, counts[2]);
    assert_same(counts[2], counts[1], size, "morphology");
    for (int i = 0; i < 3; i++)
        free(counts[i]);
    free(kept);
}

/* Checks the same voxels, from the smallest value. Compares with the reference if they are few. */
static void
check_lags(struct image_extent extent, const struct texture_levels *levels, const uint64_t *region)
{
    const size_t entries = levels->table_count * values_of(pixel_now);
    uint64_t *kept = allocate(entries / 64, sizeof(*kept)), *counts[3];
    const struct lags request = {{region, kept, levels->table_count}, 0};
    struct texture_box box;

    texture_box_of(region, &extent, &box);
    for (size_t i = 0; i < entries; i++)
        kept[i / 64] |= (uint64_t)(levels->level_of[i] > 0) << i % 64;
    for (int i = 0; i < 3; i++)
        counts[i] = allocate(lags_size(&box), sizeof(uint64_t));
    for (int i = 0; i < 2; i++)
        ck_assert_msg(lags_run(lanes[i], &request, counts[i], &error) == 0, "%s", error.message);
    assert_same(counts[0], counts[1], lags_size(&box), "lags");
    if (voxels_of(extent) <= SMALL / 10) {
        ref_lags(extent, pixel_now, voxels_now, &request, counts[2]);
        assert_same(counts[2], counts[1], lags_size(&box), "lags");
    }
    for (int i = 0; i < 3; i++)
        free(counts[i]);
    free(kept);
}

/* Holds a region and levels. Each of the two may be NULL. */
static void
hold(struct kernels_lane *lane, const uint64_t *region, const struct texture_levels *levels)
{
    ck_assert_int_eq(texture_region_hold(lane, region, &error), 0);
    if (levels)
        ck_assert_int_eq(texture_levels_hold(lane, levels, &error), 0);
}

START_TEST(neighbours_runs_and_zones_are_the_cpus)
{
    static const int levels[] = {2, 32, 256, 8, 64};

    random_state = (uint64_t)_i + 41;
    for (int way = 0; way < (quick ? 4 : 12); way++) {
        const enum binning binning = (enum binning)(way % BINNINGS);
        const size_t tables = binning == BY_SLICE ? (size_t)extents[_i].slices : 1;
        const enum image_pixel pixel = (enum image_pixel)(way % PIXELS);
        const int count = levels[(way + _i) % 5];
        uint16_t *level_of = make_levels(binning, pixel, tables, count);
        uint64_t *region = make_region((enum region)(way % REGIONS), extents[_i]);
        const struct texture_levels table = {count, level_of, tables};

        begin((enum content)((way + _i) % CONTENTS), pixel, extents[_i]);
        for (int i = 0; i < 2; i++)
            hold(lanes[i], way % 4 < 2 ? region : NULL, way % 3 < 2 ? &table : NULL);
        check_neighbours(extents[_i], &table, region, way);
        check_runs(extents[_i], &table, region, way);
        check_zones(extents[_i], &table, region, way);
        check_morphology(extents[_i], &table, region);
        check_lags(extents[_i], &table, region);
        for (int i = 0; i < 2; i++)
            texture_region_release(lanes[i]);
        free(level_of);
        free(region);
    }
}

END_TEST

/*
 * Makes regions of several tiles along each axis, in all ways: a ball that touches the borders, with or without
 * holes, and sheets.
 */
static uint64_t *
make_ball(struct image_extent extent, bool holes)
{
    const int64_t words_per_row = (extent.columns + 63) / 64;
    uint64_t *region = allocate(words_of(extent), sizeof(*region));

    for (int64_t z = 0; z < extent.slices; z++)
        for (int64_t y = 0; y < extent.rows; y++)
            for (int64_t x = 0; x < extent.columns; x++) {
                const int64_t across[3] = {2 * x - extent.columns + 1, 2 * y - extent.rows + 1,
                                           2 * z - extent.slices + 1};

                if (across[0] * across[0] * 4 <
                        5 * extent.columns * extent.columns - 4 * across[1] * across[1] - 4 * across[2] * across[2] &&
                    (!holes || random_below(500) > 0))
                    region[(z * extent.rows + y) * words_per_row + x / 64] |= UINT64_C(1) << x % 64;
            }
    return region;
}

/* Operations that several threads run on one lane. */
enum { BESIDE_RUNS, BESIDE_NEAR, BESIDE_GLCM, BESIDE_ZONES, BESIDE_HISTOGRAM, BESIDE, ROUNDS = 6 };

struct beside {
    struct kernels_lane *lane;
    struct image_extent extent;
    struct texture_levels levels;
    const uint64_t *region;
    int operation, rc;
    struct error error;
    uint64_t *counts; /* of zones: their keys and their number */
};

static size_t
beside_size(const struct beside *beside)
{
    const size_t levels = (size_t)beside->levels.levels;
    const size_t sizes[BESIDE] = {13 * levels * (size_t)beside->extent.columns, TEXTURE_NEIGHBOUR_KINDS * levels * 27,
                                  13 * levels * levels, 2 + TEXTURE_ZONE_KINDS * voxels_of(beside->extent),
                                  values_of(IMAGE_UINT8)};

    return sizes[beside->operation];
}

static int
beside_zones(struct beside *beside)
{
    const struct texture_zones request = {.levels = beside->levels, .region = beside->region, .distances = true};
    struct texture_zone_list lists[TEXTURE_ZONE_KINDS] = {{NULL, 0}};
    const int rc = texture_zones_run(beside->lane, &request, lists, &beside->error);

    for (int kind = 0; kind < TEXTURE_ZONE_KINDS; kind++) {
        if (rc == 0)
            beside->counts[kind] =
                ref_texture_listed(&lists[kind], beside->counts + 2 + (size_t)kind * voxels_of(beside->extent));
        free(lists[kind].zones);
    }
    return rc;
}

static void *
beside_run(void *context)
{
    struct beside *beside = context;
    struct texture_offset offsets[MOST_OFFSETS];
    const struct texture_runs runs = {.levels = beside->levels,
                                      .region = beside->region,
                                      .directions = offsets,
                                      .direction_count = nearest(offsets),
                                      .longest = beside->extent.columns};
    const struct texture_neighbours near = {.levels = beside->levels, .region = beside->region, .distance = 1};
    const struct texture_glcm glcm = {
        .levels = beside->levels, .region = beside->region, .offsets = offsets, .offset_count = nearest(offsets)};

    if (beside->operation == BESIDE_RUNS)
        beside->rc = texture_runs_run(beside->lane, &runs, beside->counts, &beside->error);
    else if (beside->operation == BESIDE_NEAR)
        beside->rc = texture_neighbours_run(beside->lane, &near, beside->counts, &beside->error);
    else if (beside->operation == BESIDE_GLCM)
        beside->rc = texture_glcm_run(beside->lane, &glcm, beside->counts, &beside->error);
    else if (beside->operation == BESIDE_ZONES)
        beside->rc = beside_zones(beside);
    else
        beside->rc = texture_histogram_run(beside->lane, beside->region, false, beside->counts, &beside->error);
    return NULL;
}

/* Runs two threads per operation on the GPU at once. Each must get the result of one thread on the CPU. */
static void
check_beside(const struct beside *of)
{
    struct beside cpu[BESIDE], gpu[2 * BESIDE];
    pthread_t threads[2 * BESIDE];

    for (int i = 0; i < 3 * BESIDE; i++) {
        struct beside *one = i < BESIDE ? &cpu[i] : &gpu[i - BESIDE];

        *one = *of;
        one->operation = i % BESIDE;
        one->lane = lanes[i >= BESIDE];
        one->counts = allocate(beside_size(one), sizeof(uint64_t));
        if (i < BESIDE)
            (void)beside_run(one);
    }
    for (int i = 0; i < 2 * BESIDE; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, beside_run, &gpu[i]), 0);
    for (int i = 0; i < 2 * BESIDE; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < 2 * BESIDE; i++) {
        ck_assert_msg(gpu[i].rc == 0, "%s", gpu[i].error.message);
        ck_assert_msg(cpu[i % BESIDE].rc == 0, "%s", cpu[i % BESIDE].error.message);
        assert_same(cpu[i % BESIDE].counts, gpu[i].counts, beside_size(&gpu[i]), "beside");
        free(gpu[i].counts);
    }
    for (int i = 0; i < BESIDE; i++)
        free(cpu[i].counts);
}

/*
 * Uses few levels, and so many that zones have more keys than one batch, and matrices more counts than there is
 * memory for.
 */
START_TEST(runs_of_several_threads_equal_the_cpu)
{
    const struct image_extent extent = {128, 100, 90};
    uint64_t *region = allocate(words_of(extent), sizeof(*region));

    random_state = 83;
    for (size_t i = 0; i < words_of(extent); i++) /* its last slices are outside the region */
        region[i] = i < words_of(extent) / 90 * 85 ? ~UINT64_C(0) : 0;
    for (int round = 0; round < (quick ? 2 : ROUNDS); round++) {
        const int levels = round % 2 ? 256 : 16;
        uint16_t *level_of = make_levels(PAPER, IMAGE_UINT8, 1, levels);

        begin(RANDOM, IMAGE_UINT8, extent);
        for (int i = 0; i < 2; i++)
            hold(lanes[i], round < 4 ? region : NULL,
                 round % 4 < 2 ? &(struct texture_levels){levels, level_of, 1} : NULL);
        check_beside(&(struct beside){.extent = extent, .levels = {levels, level_of, 1}, .region = region});
        for (int i = 0; i < 2; i++)
            texture_region_release(lanes[i]);
        free(level_of);
    }
    free(region);
}

END_TEST

START_TEST(zones_of_many_tiles_equal_the_cpu)
{
    static const struct image_extent many[] = {
        {70, 37, 35}, {33, 17, 17}, {64, 32, 32}, {100, 530, 3}, {5, 300, 40}, {129, 9, 50}, {300, 260, 2},
    };
    static const int levels[] = {2, 32, 256, 5, 64, 3};

    random_state = (uint64_t)_i + 67;
    for (int i = 0; i < (quick ? 2 : (int)(sizeof(many) / sizeof(many[0]))); i++)
        for (int way = 0; way < 4; way++) {
            const enum binning binning = (enum binning)((way + i) % BINNINGS);
            const size_t tables = binning == BY_SLICE ? (size_t)many[i].slices : 1;
            const enum image_pixel pixel = (enum image_pixel)((way + _i) % PIXELS);
            const int count = levels[(way + i + _i) % 6];
            uint16_t *level_of = make_levels(binning, pixel, tables, count);
            uint64_t *region = way % 2 == _i % 2 ? NULL : make_ball(many[i], _i != CONSTANT);

            begin((enum content)_i, pixel, many[i]);
            for (int kind = 0; kind < 4; kind++)
                check_zones(many[i], &(struct texture_levels){count, level_of, tables}, region, kind);
            free(level_of);
            free(region);
        }
}

END_TEST

/*
 * Returns the directions of a distance in a slice, and other offsets. Some of these can be counted together with the
 * directions, others cannot.
 */
static size_t
flat(int distance, struct texture_offset *offsets)
{
    const int32_t d = distance;
    const struct texture_offset some[] = {
        {d, 0, 0},  {d, -d, 0}, {0, -d, 0}, {-d, -d, 0}, {31, -d, 0}, {-d, d, 0}, {-31, d, 0}, {-d, 0, 0},
        {31, 0, 0}, {0, d, 0},  {0, 8, 0},  {1, -8, 0},  {d, 0, 0},   {d, 0, 0},  {-1, d, 0},  {-1, d + 1, 0},
    };

    memcpy(offsets, some, sizeof(some));
    return sizeof(some) / sizeof(some[0]);
}

static const struct image_extent wide[] = {
    {1024, 5, 1}, {1040, 33, 2}, {992, 17, 1},  {1008, 3, 2},  {512, 20, 5},   {500, 9, 4},
    {2048, 1, 3}, {96, 12, 40},  {3000, 40, 1}, {16400, 4, 1}, {8192, 100, 1}, {640, 64, 30},
};

enum { WIDE = sizeof(wide) / sizeof(wide[0]), QUICK_WIDE = 2 };

/* Few levels in long rows have a counting of their own, in sets of up to four matrices. */
START_TEST(few_levels_are_the_cpus)
{
    static const int levels[] = {8, 5, 4, 7, 2, 3, 8};
    struct texture_offset offsets[MOST_OFFSETS];

    random_state = (uint64_t)_i + 41;
    for (int i = 0; i < (quick ? 2 : 7); i++) {
        const size_t count = flat(1 + (i + _i) % 7, offsets);

        begin((enum content)((i + _i) % CONTENTS), (enum image_pixel)((i + _i) % 2 * (i % PIXELS)), wide[_i]);
        check_glcm(wide[_i], i % 2 ? (enum binning)(_i % BINNINGS) : PAPER, levels[i], offsets, count);
        for (size_t k = 0; k < 4; k++)
            check_glcm(wide[_i], PAPER, levels[i], offsets + k, 1 + (size_t)i % 3);
    }
}

END_TEST

static void
compare_histograms(struct image_extent extent, const uint64_t *region, bool per_slice)
{
    const size_t count = (per_slice ? (size_t)extent.slices : 1) * values_of(pixel_now);
    uint64_t *counts[2];

    for (int i = 0; i < 2; i++) {
        counts[i] = allocate(count, sizeof(uint64_t));
        memset(counts[i], 0xEE, count * sizeof(uint64_t));
        ck_assert_int_eq(texture_histogram_run(lanes[i], region, per_slice, counts[i], &error), 0);
    }
    assert_same(counts[0], counts[1], count, "value histogram");
    if (voxels_of(extent) <= SMALL) {
        memset(counts[0], 0, count * sizeof(uint64_t));
        ref_texture_histogram(extent, pixel_now, voxels_now, region, per_slice, counts[0]);
        assert_same(counts[0], counts[1], count, "value histogram by its definition");
    }
    free(counts[0]);
    free(counts[1]);
}

START_TEST(histograms_are_the_cpus)
{
    random_state = (uint64_t)_i + 9;
    for (int pixel = 0; pixel < PIXELS; pixel++) {
        begin((enum content)((_i + pixel) % CONTENTS), (enum image_pixel)pixel, extents[_i]);
        for (int kind = 0; kind < REGIONS; kind++) {
            uint64_t *region = make_region((enum region)kind, extents[_i]);

            compare_histograms(extents[_i], region, kind % 2 != 0);
            free(region);
        }
    }
}

END_TEST

/* Rows of more pieces than a block has threads. */
START_TEST(wide_images_are_the_cpus)
{
    static const struct image_extent extent = {4200, 3, 2};

    random_state = (uint64_t)_i + 77;
    uint16_t *level_of = make_levels(WITH_GAPS, (enum image_pixel)_i, 1, 32);
    const struct texture_levels table = {32, level_of, 1};

    begin(RANDOM, (enum image_pixel)_i, extent);
    for (int kind = 0; kind < REGIONS; kind++) {
        uint64_t *region = make_region((enum region)kind, extent);

        compare_histograms(extent, region, false);
        check_morphology(extent, &table, region);
        free(region);
    }
    free(level_of);
}

END_TEST

/* Patterns */

static size_t
codes_in(struct image_extent extent)
{
    if (extent.columns < 3 || extent.rows < 3)
        return 0;
    return (size_t)((extent.columns - 2) * (extent.rows - 2) * extent.slices);
}

/* Compares one pattern's codes with Masur 2022's text or its listing. */
static void
compare_with_reference(const struct texture_patterns *request, int pattern, struct image_extent extent,
                       const uint8_t *map, const char *what)
{
    const size_t voxels = (size_t)(extent.columns * extent.rows);
    const size_t codes = codes_in(extent) / (size_t)extent.slices;
    int32_t *values = allocate(voxels, sizeof(*values));
    uint8_t *expected = allocate(codes, 1);
    const struct ref_slice slice = {extent.columns, extent.rows, values};

    for (size_t z = 0; z < (size_t)extent.slices && codes > 0; z++) {
        for (size_t i = 0; i < voxels; i++)
            values[i] = ref_stored(pixel_now, voxels_now, (int64_t)(z * voxels + i));
        if (pattern == TEXTURE_LBP)
            ref_lbp_text(&slice, expected);
        else if (pattern == TEXTURE_TLBAP)
            (request->strict ? ref_tlbap_listing : ref_tlbap_text)(&slice, request->threshold_millionths, expected);
        else
            (request->integer_average ? ref_lanadp_listing : ref_lanadp_text)(&slice, expected);
        ck_assert_msg(memcmp(expected, map + z * codes, codes) == 0, "%s: pattern %d of slice %zu is not its reference",
                      what, pattern, z);
    }
    free(values);
    free(expected);
}

static void
compare_patterns(struct texture_patterns request, struct image_extent extent, const char *what)
{
    const size_t codes = codes_in(extent);
    const size_t bins = request.region_count * TEXTURE_PATTERNS * 256;
    static uint64_t others[65536]; /* of a later operation, which must not change maps */
    uint64_t *histograms[2];
    const uint8_t *maps[2][TEXTURE_PATTERNS];

    for (int i = 0; i < 2; i++) {
        histograms[i] = allocate(bins, sizeof(uint64_t));
        memset(histograms[i], 0xEE, bins * sizeof(uint64_t));
        request.histograms = request.region_count > 0 ? histograms[i] : NULL;
        memcpy(request.maps, request.wanted, sizeof(request.maps));
        ck_assert_msg(texture_patterns_run(lanes[i], &request, &error) == 0, "%s", error.message);
        for (int p = 0; p < TEXTURE_PATTERNS; p++)
            maps[i][p] = texture_patterns_map(lanes[i], (enum texture_pattern)p);
        ck_assert_int_eq(texture_histogram_run(lanes[i], NULL, false, others, &error), 0);
    }
    for (int p = 0; p < TEXTURE_PATTERNS; p++) {
        ck_assert((maps[0][p] != NULL) == request.wanted[p] && (maps[1][p] != NULL) == request.wanted[p]);
        for (size_t i = 0; i < codes && request.wanted[p]; i++)
            if (maps[0][p][i] != maps[1][p][i])
                ck_abort_msg("%s: code %zu of pattern %d is %d on the CPU, %d on the GPU", what, i, p, maps[0][p][i],
                             maps[1][p][i]);
        if (request.wanted[p] && voxels_of(extent) <= SMALL)
            compare_with_reference(&request, p, extent, maps[1][p], what);
    }
    assert_same(histograms[0], histograms[1], bins, what);
    free(histograms[0]);
    free(histograms[1]);
}

static void
check_patterns(struct image_extent extent, int32_t threshold, int way)
{
    uint64_t *region = make_region((enum region)(1 + way % (REGIONS - 1)), extent);
    const uint64_t *regions[2] = {region, NULL};
    struct texture_patterns request = {.wanted = {true, true, true},
                                       .threshold_millionths = threshold,
                                       .strict = (way & 1) != 0,
                                       .integer_average = (way & 2) != 0,
                                       .regions = regions,
                                       .region_count = (size_t)(way % 3)};
    char what[128];

    if (way >= 4)
        request.wanted[way % TEXTURE_PATTERNS] = false;
    snprintf(what, sizeof(what), "%dx%dx%d, threshold %d, way %d", (int)extent.columns, (int)extent.rows,
             (int)extent.slices, threshold, way);
    compare_patterns(request, extent, what);
    free(region);
}

START_TEST(patterns_are_the_cpus)
{
    static const int32_t thresholds[] = {900000, 0, 1000000, 1, 999999, 333333, 500000, 123457};

    random_state = (uint64_t)_i + 3;
    for (int pixel = 0; pixel < PIXELS; pixel++)
        for (int content = 0; content < (quick ? 2 : CONTENTS); content++) {
            begin((enum content)content, (enum image_pixel)pixel, extents[_i]);
            for (int way = 0; way < 8; way++)
                check_patterns(
                    extents[_i],
                    thresholds[(size_t)(way + content + pixel) % (sizeof(thresholds) / sizeof(thresholds[0]))], way);
        }
}

END_TEST

/* Checks that every threshold is exact. */
START_TEST(thresholds_are_exact)
{
    const struct image_extent extent = {64, 64, 1};

    random_state = 17;
    for (int pixel = 0; pixel < PIXELS; pixel++) {
        begin(RANDOM, (enum image_pixel)pixel, extent);
        for (int i = 0; i < (quick ? 5 : 400); i++)
            check_patterns(extent, (int32_t)random_below(1000001), i % 2);
    }
}

END_TEST

/* Uses strips of every length, also for the last one. With more rows, each thread takes more. */
START_TEST(strips_are_the_cpus)
{
    static const int64_t rows[] = {5, 6, 7, 8, 50, 51, 52, 100}, slices[] = {1, 700, 8000};
    int way = 0;

    random_state = 19;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        for (size_t j = 0; j < (quick ? 1 : sizeof(slices) / sizeof(slices[0])); j++) {
            const struct image_extent extent = {12, rows[i], slices[j]};

            begin(RANDOM, IMAGE_UINT8, extent);
            check_patterns(extent, 900000, way++ % 4);
        }
}

END_TEST

START_TEST(any_patterns_are_the_cpus)
{
    const struct image_extent extent = {140, 20, 2};

    random_state = 37;
    begin(FEW, IMAGE_UINT8, extent);
    for (unsigned wanted = 1; wanted < 1U << TEXTURE_PATTERNS; wanted++)
        for (unsigned way = 0; way < 4; way++) {
            struct texture_patterns request = {
                .threshold_millionths = 900000, .strict = (way & 1) != 0, .integer_average = (way & 2) != 0};
            char what[64];

            for (int p = 0; p < TEXTURE_PATTERNS; p++)
                request.wanted[p] = (wanted >> p & 1) != 0;
            snprintf(what, sizeof(what), "patterns %u, way %u", wanted, way);
            compare_patterns(request, extent, what);
        }
}

END_TEST

/* Runs one request of each kind. */
START_TEST(a_small_image_is_the_cpus)
{
    const struct image_extent extent = {40, 9, 2};
    struct texture_offset offsets[MOST_OFFSETS];

    random_state = 29;
    begin(RANDOM, IMAGE_UINT8, extent);
    nearest(offsets);
    check_glcm(extent, PAPER, 8, offsets, 4);
    compare_histograms(extent, NULL, false);
    check_patterns(extent, 500000, 0);
    begin(RANDOM, IMAGE_UINT8, wide[0]);
    check_glcm(wide[0], PAPER, 8, offsets, flat(1, offsets) / 2);
}

END_TEST

/* Maps of several batches: many slices, and a slice larger than a batch. */
START_TEST(maps_are_computed_in_batches)
{
    static const struct image_extent large[] = {{1024, 1024, 37}, {6000, 5000, 1}, {16384, 2050, 1}};

    random_state = 23;
    for (size_t i = 0; i < sizeof(large) / sizeof(large[0]); i++) {
        begin(RANDOM, i == 2 ? IMAGE_UINT16 : IMAGE_UINT8, large[i]); /* the last one arrives in pieces of rows */
        check_patterns(large[i], 900000, 2);
    }
}

END_TEST

/* Announces a volume in both lanes: on the GPU by thirds of slices, the last ones first, after the patterns have begun. */
static void
begin_ahead(enum image_pixel pixel, struct image_extent extent, const struct texture_patterns *request)
{
    const struct texture_patterns none = {.threshold_millionths = 1};
    struct kernels_demand demand = {REF_TEXTURE_DEMAND};
    void *source = allocate(voxels_of(extent), image_pixel_size(pixel));

    fill(RANDOM, pixel, extent, source);
    for (int i = 0; i < 2; i++) {
        void *voxels;

        demand.of[KERNELS_PATTERNS] = i ? &texture_patterns_demand_ahead : &texture_patterns_demands[0];
        ck_assert_int_eq(kernels_volume_begin(lanes[i], extent, pixel, &demand, &voxels, &error), 0);
        memcpy(voxels, source, voxels_of(extent) * image_pixel_size(pixel));
        ck_assert_int_eq(texture_patterns_begin(lanes[i], &none, &error), -EINVAL);
        ck_assert_int_eq(texture_patterns_begin(lanes[i], request, &error), 0);
        for (int64_t part = 0; part < 3 * extent.slices; part++) {
            const int64_t third = 2 - part % 3, first = third * extent.rows / 3;

            ck_assert_int_eq(kernels_rows_ready(lanes[i], extent.slices - 1 - part / 3, first,
                                                (third + 1) * extent.rows / 3 - first, &error),
                             0);
        }
        voxels_now = voxels;
    }
    pixel_now = pixel;
    free(source);
}

/* Codes made during the upload are counted in any regions, held or not, and those of other settings are made as usual. */
START_TEST(patterns_are_made_ahead)
{
    static const struct image_extent all[] = {{16384, 4200, 1}, {16383, 2101, 2}, {70, 90, 5}, {64, 3, 1}, {9, 2, 3}};
    const struct image_extent extent = all[_i / 2];

    random_state = (uint64_t)_i + 51;
    uint64_t *region = make_region(SOME, extent);
    const uint64_t *regions[] = {region, NULL, region};
    struct texture_patterns request = {.wanted = {true, _i % 2 == 0, true}, .threshold_millionths = 900000};
    static uint64_t values[65536];
    uint64_t *counts[2];

    begin_ahead(_i % 3 ? IMAGE_UINT16 : IMAGE_UINT8, extent, &request);
    request.regions = regions;
    request.region_count = 3;
    for (int way = 0; way < 4; way++) {
        for (int i = 0; i < 2; i++) {
            counts[i] = allocate(3 * TEXTURE_PATTERNS * 256, sizeof(uint64_t));
            request.histograms = counts[i];
            request.strict = way == 2;
            if (way % 2)
                hold(lanes[i], region, NULL);
            else /* memory that operations share does not have the codes */
                ck_assert_int_eq(texture_histogram_run(lanes[i], NULL, false, values, &error), 0);
            ck_assert_msg(texture_patterns_run(lanes[i], &request, &error) == 0, "%s", error.message);
            texture_region_release(lanes[i]);
        }
        assert_same(counts[0], counts[1], 3 * TEXTURE_PATTERNS * 256, "patterns ahead");
        for (int i = 0; i < 2; i++)
            free(counts[i]);
    }
    free(region);
}

END_TEST

/* Pictures of one slice, with rows or columns as long as those of Hong 2018's largest. */
START_TEST(pictures_are_the_cpus)
{
    static const struct image_extent pictures[] = {{16384, 3, 1}, {3, 16384, 1}, {16383, 17, 1}};
    const struct image_extent extent = pictures[_i % 3];
    const enum image_pixel pixel = (enum image_pixel)((_i / 3 + 1) % PIXELS);
    struct texture_offset offsets[MOST_OFFSETS];

    random_state = (uint64_t)_i + 5;
    nearest(offsets);
    begin((enum content)(_i % 2 ? EXTREME : RANDOM), pixel, extent);
    check_patterns(extent, 900000, _i);
    check_glcm(extent, WITH_GAPS, 32, offsets, 4);
    for (int kind = WHOLE; kind <= SOME; kind++) {
        uint64_t *region = make_region((enum region)kind, extent);

        compare_histograms(extent, region, false);
        free(region);
    }
}

END_TEST

/* Uses sizes at which every kind of counting runs on all of the GPU's blocks. */
START_TEST(large_images_are_the_cpus)
{
    static const struct texture_offset offsets[] = {{1, 0, 0},   {1, -1, 0}, {0, -1, 0},
                                                    {-1, -1, 0}, {4, 0, 0},  {4, -4, 0}};

    for (int content = 0; content < 3; content++) {
        const struct image_extent extent = {2048, 1500, 1}, deep = {1024, 40, 60};
        struct texture_offset all[MOST_OFFSETS];

        begin((enum content)content, IMAGE_UINT8, extent);
        for (int levels = 8; levels <= 32; levels += 24)
            check_glcm(extent, PAPER, levels, offsets, 6);
        begin((enum content)content, IMAGE_UINT8, deep);
        check_glcm(deep, PAPER, 32, offsets, 6);
        check_glcm(deep, PAPER, 32, all, nearest(all));
    }
}

END_TEST

/* Counters of one pair of levels exceed the maximum of half a counter twice. */
START_TEST(halves_do_not_overflow)
{
    static const struct texture_offset offsets[] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
    const struct image_extent extent = {4096, 4096, 16};

    random_state = 3;
    begin(CONSTANT, IMAGE_UINT8, extent);
    check_glcm(extent, PAPER, 32, offsets, 3);
    check_glcm(extent, PAPER, 8, offsets, 2);
}

END_TEST

/* Real series */

static void *
load_volume(const char *path, struct image_extent extent, enum image_pixel pixel)
{
    const size_t size = image_pixel_size(pixel), count = voxels_of(extent);
    void *voxels = allocate(count, size);
    FILE *file = fopen(path, "rb");

    ck_assert_msg(file != NULL, "%s: %s", path, strerror(errno));
    ck_assert_msg(fread(voxels, size, count, file) == count, "%s is too short", path);
    fclose(file);
    return voxels;
}

static void
check_series(const char *path, struct image_extent extent, enum image_pixel pixel)
{
    void *voxels = load_volume(path, extent, pixel);
    struct texture_offset offsets[MOST_OFFSETS];

    begin_with(voxels, pixel, extent);
    free(voxels);
    for (int levels = 8; levels <= 128; levels *= 4)
        check_glcm(extent, PAPER, levels, offsets, nearest(offsets));
    compare_histograms(extent, NULL, false);
    for (int way = 0; way < 4; way++)
        check_patterns(extent, 900000, way);
}

START_TEST(real_series_are_the_cpus)
{
    static const char *const pixel_names[] = {"uint8", "int16", "uint16"};
    char *list = strdup(getenv("NOCTULE_TEST_VOLUMES")), *rest = list, *entry;

    random_state = 29;
    ck_assert_ptr_nonnull(list);
    while ((entry = strtok_r(rest, ";", &rest))) {
        struct image_extent extent;
        char path[4096], name[8];
        int pixel = 0;

        ck_assert_msg(
            sscanf(entry, "%4095[^:]:%ld,%ld,%ld:%7s", path, &extent.columns, &extent.rows, &extent.slices, name) == 5,
            "%s is no volume", entry);
        while (pixel < PIXELS && strcmp(pixel_names[pixel], name) != 0)
            pixel++;
        ck_assert_msg(pixel < PIXELS, "%s has no pixel type", entry);
        check_series(path, extent, (enum image_pixel)pixel);
    }
    free(list);
}

END_TEST

#ifdef NOCTULE_CUDA

/* Runs a whole job, in a region of everything. Returns its first error. */
static int
run_job(struct kernels_lane *lane, void *context)
{
    uint64_t *counts = context;
    const struct image_extent extent = {32, 8, 2};
    const struct kernels_demand demand = {REF_TEXTURE_DEMAND};
    const struct texture_offset offsets[2] = {{1, 0, 0}, {0, 1, 0}};
    static uint16_t level_of[256];
    static uint64_t region[16];
    const uint64_t *regions[1] = {region};
    struct texture_glcm glcm = {.levels = {8, level_of, 1}, .region = region, .offsets = offsets, .offset_count = 2};
    const struct texture_patterns patterns = {
        .wanted = {true}, .maps = {true}, .regions = regions, .region_count = 1, .histograms = counts};
    const struct texture_neighbours neighbours = {.levels = {8, level_of, 1}, .region = region, .distance = 1};
    const struct texture_runs runs = {
        .levels = {8, level_of, 1}, .region = region, .directions = offsets, .direction_count = 2, .longest = 32};
    const struct texture_zones zones = {.levels = {8, level_of, 1}, .region = region, .distances = true};
    struct texture_zone_list lists[TEXTURE_ZONE_KINDS] = {{NULL, 0}};
    void *voxels;
    int rc = kernels_volume_begin(lane, extent, IMAGE_UINT8, &demand, &voxels, &error);

    memset(region, 0xFF, sizeof(region));
    for (int i = 0; i < 256; i++)
        level_of[i] = (uint16_t)(i % 8 + 1);
    if (!rc)
        memset(voxels, 5, voxels_of(extent));
    if (!rc)
        rc = kernels_volume_ready(lane, 0, extent.slices, NULL);
    if (!rc)
        rc = texture_region_hold(lane, region, &error);
    if (!rc)
        rc = texture_levels_hold(lane, &neighbours.levels, &error);
    if (!rc)
        rc = texture_histogram_run(lane, region, false, counts, &error);
    if (!rc)
        rc = texture_patterns_run(lane, &patterns, &error);
    if (!rc)
        rc = texture_neighbours_run(lane, &neighbours, counts, &error);
    if (!rc)
        rc = texture_runs_run(lane, &runs, counts, &error);
    if (!rc)
        rc = texture_zones_run(lane, &zones, lists, &error);
    for (int kind = 0; kind < TEXTURE_ZONE_KINDS; kind++)
        free(lists[kind].zones);
    if (!rc)
        rc = texture_glcm_run(lane, &glcm, counts, &error);
    glcm.levels.levels = 256; /* uses another counting */
    glcm.offset_count = 1;
    return rc ? rc : texture_glcm_run(lane, &glcm, counts, &error);
}

START_TEST(any_call_may_fail)
{
    uint64_t *counts = allocate(65536, sizeof(uint64_t));

    fail_each_call((enum cuda_fault_kind)_i, run_job, counts);
    ck_assert_uint_eq(counts[5 * 256 + 5], 31 * 8 * 2);
    free(counts);
}

END_TEST

#endif

static Suite *
make_suite(void)
{
    Suite *suite = suite_create("cuda_texture");
    TCase *parity = gpu_pair_case(suite, "parity"), *small = gpu_pair_case(suite, "small"),
          *zones = gpu_pair_case(suite, "zones"), *neighbours = gpu_pair_case(suite, "neighbours"),
          *pictures = gpu_pair_case(suite, "pictures");
    const int some = quick ? QUICK_EXTENTS : EXTENTS;

    tcase_add_test(small, a_small_image_is_the_cpus);
    tcase_add_loop_test(parity, matrices_are_the_cpus, 0, some);
    tcase_add_loop_test(parity, few_levels_are_the_cpus, 0, quick ? QUICK_WIDE : WIDE);
    tcase_add_loop_test(parity, neighbours_runs_and_zones_are_the_cpus, 0, some);
    tcase_add_loop_test(neighbours, equal_neighbours_are_the_cpus, 0, some);
    tcase_add_loop_test(parity, long_runs_are_the_cpus, 0, 4);
    tcase_add_loop_test(zones, zones_of_many_tiles_equal_the_cpu, 0, CONTENTS);
    tcase_add_test(parity, runs_of_several_threads_equal_the_cpu);
    tcase_add_loop_test(parity, histograms_are_the_cpus, 0, some);
    tcase_add_loop_test(parity, wide_images_are_the_cpus, 0, PIXELS);
    tcase_add_loop_test(parity, patterns_are_the_cpus, 0, some);
    tcase_add_test(parity, thresholds_are_exact);
    tcase_add_test(parity, strips_are_the_cpus);
    tcase_add_test(parity, any_patterns_are_the_cpus);
    tcase_add_loop_test(pictures, pictures_are_the_cpus, 0, quick ? 3 : 3 * PIXELS);
    tcase_add_loop_test(parity, patterns_are_made_ahead, quick ? 4 : 0, 10);
    if (quick)
        return suite;
    tcase_add_test(parity, matrices_are_computed_in_batches);
    tcase_add_test(parity, maps_are_computed_in_batches);
    tcase_add_test(parity, large_images_are_the_cpus);
    tcase_add_test(parity, halves_do_not_overflow);
    if (getenv("NOCTULE_TEST_VOLUMES"))
        tcase_add_test(parity, real_series_are_the_cpus);
#ifdef NOCTULE_CUDA
    gpu_add_faults(suite, any_call_may_fail);
#endif
    return suite;
}

int
main(int argc, char **argv)
{
    return gpu_suite_run(argc, argv, make_suite);
}
