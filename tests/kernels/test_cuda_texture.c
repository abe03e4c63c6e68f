/*
 * test_cuda_texture.c - texture on the GPU beside the CPU's: number for number the same.
 *
 *   kernels_test_cuda_texture [--quick]    --quick: a selection for compute-sanitizer
 *
 * The CPU's numbers stand beside the references in test_texture.c. Exits with 77, which is
 * "skipped" to CTest, where there is no GPU.
 */
#include "fault_cuda.h"
#include "texture.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SKIPPED = 77, PIXELS = 3, MOST_OFFSETS = 16 };

enum content { RANDOM, CONSTANT, GRADIENT, FEW, EXTREME, CONTENTS };

static bool quick;
static struct kernels_device *devices[2]; /* the CPU, the GPU */
static struct kernels_lane *lanes[2];
static char reason[KERNELS_REASON];
static uint64_t random_state;

static const struct kernels_extent extents[] = {
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

static void
open_both(void)
{
    static const char *const backends[2] = {"cpu", "cuda"};

    for (int i = 0; i < 2; i++) {
        struct kernels_device_options options = {.backend = backends[i], .threads = 2};

        ck_assert_int_eq(kernels_device_open(&options, &devices[i], reason, sizeof(reason)), 0);
        ck_assert_int_eq(kernels_lane_open(devices[i], &lanes[i], reason, sizeof(reason)), 0);
    }
}

static void
close_both(void)
{
    for (int i = 0; i < 2; i++) {
        kernels_lane_close(lanes[i]);
        kernels_device_close(devices[i]);
    }
}

static size_t
voxels_of(struct kernels_extent extent)
{
    return (size_t)(extent.columns * extent.rows * extent.slices);
}

static size_t
words_of(struct kernels_extent extent)
{
    return (size_t)((extent.columns + 63) / 64 * extent.rows * extent.slices);
}

static size_t
values_of(enum kernels_pixel pixel)
{
    return pixel == KERNELS_UINT8 ? 256 : 65536;
}

/* Counted from the smallest of the pixel type. */
static uint32_t
value_of(enum content content, uint32_t values, size_t i, struct kernels_extent extent)
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
    case CONTENTS:
        break;
    }
    return 0;
}

static void
fill(enum content content, enum kernels_pixel pixel, struct kernels_extent extent, void *voxels)
{
    for (size_t i = 0; i < voxels_of(extent); i++) {
        uint32_t value = value_of(content, (uint32_t)values_of(pixel), i, extent);

        if (pixel == KERNELS_UINT8)
            ((uint8_t *)voxels)[i] = (uint8_t)value;
        else
            ((uint16_t *)voxels)[i] = (uint16_t)(pixel == KERNELS_INT16 ? value ^ 0x8000 : value);
    }
}

/* The same volume in both lanes. */
static void
begin(enum content content, enum kernels_pixel pixel, struct kernels_extent extent)
{
    const struct kernels_demand demand = {.texture = true};
    const size_t bytes = voxels_of(extent) * kernels_pixel_size(pixel);
    void *voxels[2];

    for (int i = 0; i < 2; i++)
        ck_assert_msg(kernels_volume_begin(lanes[i], extent, pixel, &demand, &voxels[i], reason,
                                           sizeof(reason)) == 0,
                      "%s", reason);
    fill(content, pixel, extent, voxels[0]);
    memcpy(voxels[1], voxels[0], bytes);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(kernels_volume_ready(lanes[i], 0, extent.slices), 0);
}

/* Bits that pad a row may be anything. */
static uint64_t *
random_region(struct kernels_extent extent, uint32_t one_in)
{
    uint64_t *region = allocate(words_of(extent), sizeof(*region));

    for (size_t i = 0; i < words_of(extent); i++)
        for (int bit = 0; bit < 64; bit++)
            region[i] |= (uint64_t)(random_below(one_in) == 0) << bit;
    return region;
}

static void
assert_same(const uint64_t *cpu, const uint64_t *gpu, size_t count, const char *what)
{
    for (size_t i = 0; i < count; i++)
        ck_assert_msg(cpu[i] == gpu[i], "%s: number %zu is %llu on the CPU, %llu on the GPU", what,
                      i, (unsigned long long)cpu[i], (unsigned long long)gpu[i]);
}

/* Levels */

enum binning { PAPER, WITH_GAPS, BY_SLICE, BINNINGS };

/* PAPER: floor(value * levels / values) + 1. WITH_GAPS: some values are left out. */
static uint16_t *
make_levels(enum binning binning, enum kernels_pixel pixel, size_t tables, int levels)
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
compare_glcm(const struct texture_glcm *request, struct kernels_extent extent, const char *what)
{
    const size_t levels = (size_t)request->levels.levels;
    const size_t count =
        (request->per_slice ? (size_t)extent.slices : 1) * request->offset_count * levels * levels;
    uint64_t *counts[2];

    for (int i = 0; i < 2; i++) {
        counts[i] = allocate(count, sizeof(uint64_t));
        memset(counts[i], 0xEE, count * sizeof(uint64_t));
        ck_assert_msg(texture_glcm_run(lanes[i], request, counts[i], reason, sizeof(reason)) == 0,
                      "%s", reason);
    }
    assert_same(counts[0], counts[1], count, what);
    free(counts[0]);
    free(counts[1]);
}

static void
check_glcm(enum content content, enum kernels_pixel pixel, struct kernels_extent extent,
           enum binning binning, int levels, const struct texture_offset *offsets, size_t count)
{
    const size_t tables = binning == BY_SLICE ? (size_t)extent.slices : 1;
    uint16_t *level_of = make_levels(binning, pixel, tables, levels);
    uint64_t *region = random_region(extent, 1 + random_below(3));
    char what[256];

    begin(content, pixel, extent);
    for (int way = 0; way < 4; way++) {
        struct texture_glcm request = {.levels = {levels, level_of, tables},
                                       .region = way & 1 ? region : NULL,
                                       .offsets = offsets,
                                       .offset_count = count,
                                       .per_slice = (way & 2) != 0};

        snprintf(what, sizeof(what),
                 "%dx%dx%d, pixel %d, content %d, binning %d, %d levels, region %d, per slice %d",
                 (int)extent.columns, (int)extent.rows, (int)extent.slices, (int)pixel,
                 (int)content, (int)binning, levels, way & 1, way >> 1);
        compare_glcm(&request, extent, what);
    }
    free(region);
    free(level_of);
}

/* The thirteen of 3-D, half of them turned round. */
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
        {4, 0, 0},    {4, -4, 0},  {0, 2, 0},   {1, 3, 0},   {-1, 5, 0},  {1, -2, 0},
        {-255, 0, 0}, {17, 0, 1},  {-16, 1, 0}, {15, -1, 0}, {-3, 2, -1}, {32, 0, 0},
        {0, 0, 255},  {5, 255, 0}, {1, 0, 0},   {1, 0, 0},
    };

    memcpy(offsets, some, sizeof(some));
    return sizeof(some) / sizeof(some[0]);
}

START_TEST(matrices_are_the_cpus)
{
    static const int levels[] = {2, 8, 32, 11, 12, 16, 64, 100, 200, 256, 128, 4};
    struct texture_offset offsets[MOST_OFFSETS];

    random_state = (uint64_t)_i + 1;
    for (size_t i = 0; i < (quick ? 3 : sizeof(levels) / sizeof(levels[0])); i++)
        for (int binning = 0; binning < BINNINGS; binning++) {
            enum kernels_pixel pixel = (enum kernels_pixel)((i + (size_t)binning) % PIXELS);
            enum content content = (enum content)random_below(CONTENTS);
            size_t count = i % 2 ? nearest(offsets) : farther(offsets);

            check_glcm(content, pixel, extents[_i], (enum binning)binning, levels[i], offsets,
                       count);
            count = i % 2 ? farther(offsets) : nearest(offsets);
            check_glcm(RANDOM, KERNELS_UINT8, extents[_i], (enum binning)binning, levels[i],
                       offsets, count);
        }
}

END_TEST

/* More matrices than fit the lane's counters, in more slices than tables. */
START_TEST(matrices_come_in_batches)
{
    const struct kernels_extent extent = {20, 6, 40};
    struct texture_offset offsets[MOST_OFFSETS];

    random_state = 5;
    check_glcm(RANDOM, KERNELS_INT16, extent, BY_SLICE, 200, offsets, nearest(offsets));
}

END_TEST

START_TEST(histograms_are_the_cpus)
{
    const struct kernels_extent extent = extents[_i];

    random_state = (uint64_t)_i + 9;
    for (int pixel = 0; pixel < PIXELS; pixel++) {
        const size_t values = values_of((enum kernels_pixel)pixel);
        uint64_t *region = random_region(extent, 2);

        begin((enum content)((_i + pixel) % CONTENTS), (enum kernels_pixel)pixel, extent);
        for (int way = 0; way < 4; way++) {
            const size_t count = (way & 2 ? (size_t)extent.slices : 1) * values;
            uint64_t *counts[2];

            for (int i = 0; i < 2; i++) {
                counts[i] = allocate(count, sizeof(uint64_t));
                memset(counts[i], 0xEE, count * sizeof(uint64_t));
                ck_assert_int_eq(texture_histogram_run(lanes[i], way & 1 ? region : NULL,
                                                       (way & 2) != 0, counts[i], reason,
                                                       sizeof(reason)),
                                 0);
            }
            assert_same(counts[0], counts[1], count, "value histogram");
            free(counts[0]);
            free(counts[1]);
        }
        free(region);
    }
}

END_TEST

/* Patterns */

static size_t
codes_in(struct kernels_extent extent)
{
    if (extent.columns < 3 || extent.rows < 3)
        return 0;
    return (size_t)((extent.columns - 2) * (extent.rows - 2) * extent.slices);
}

static void
compare_patterns(struct texture_patterns request, struct kernels_extent extent, const char *what)
{
    const size_t codes = codes_in(extent);
    const size_t bins = request.region_count * TEXTURE_PATTERNS * 256;
    uint64_t *histograms[2];
    uint8_t *maps[2][TEXTURE_PATTERNS];

    for (int i = 0; i < 2; i++) {
        histograms[i] = allocate(bins, sizeof(uint64_t));
        memset(histograms[i], 0xEE, bins * sizeof(uint64_t));
        request.histograms = request.region_count > 0 ? histograms[i] : NULL;
        for (int p = 0; p < TEXTURE_PATTERNS; p++) {
            maps[i][p] = allocate(codes + 1, 1);
            memset(maps[i][p], 0xEE, codes + 1);
            request.maps[p] = request.wanted[p] ? maps[i][p] : NULL;
        }
        ck_assert_msg(texture_patterns_run(lanes[i], &request, reason, sizeof(reason)) == 0, "%s",
                      reason);
    }
    for (int p = 0; p < TEXTURE_PATTERNS; p++) {
        for (size_t i = 0; i <= codes; i++)
            ck_assert_msg(maps[0][p][i] == maps[1][p][i],
                          "%s: code %zu of pattern %d is %d on the CPU, %d on the GPU", what, i, p,
                          maps[0][p][i], maps[1][p][i]);
        free(maps[0][p]);
        free(maps[1][p]);
    }
    assert_same(histograms[0], histograms[1], bins, what);
    free(histograms[0]);
    free(histograms[1]);
}

static void
check_patterns(struct kernels_extent extent, int32_t threshold, int way)
{
    uint64_t *region = random_region(extent, 2);
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
    snprintf(what, sizeof(what), "%dx%dx%d, threshold %d, way %d", (int)extent.columns,
             (int)extent.rows, (int)extent.slices, threshold, way);
    compare_patterns(request, extent, what);
    free(region);
}

START_TEST(patterns_are_the_cpus)
{
    static const int32_t thresholds[] = {900000, 0, 1000000, 1, 999999, 333333, 500000, 123457};

    random_state = (uint64_t)_i + 3;
    for (int pixel = 0; pixel < PIXELS; pixel++)
        for (int content = 0; content < (quick ? 2 : CONTENTS); content++) {
            begin((enum content)content, (enum kernels_pixel)pixel, extents[_i]);
            for (int way = 0; way < 8; way++)
                check_patterns(extents[_i],
                               thresholds[(size_t)(way + content + pixel) %
                                          (sizeof(thresholds) / sizeof(thresholds[0]))],
                               way);
        }
}

END_TEST

/* Every threshold of a byte is exact. */
START_TEST(thresholds_are_exact)
{
    const struct kernels_extent extent = {64, 64, 1};

    random_state = 17;
    begin(RANDOM, KERNELS_UINT8, extent);
    for (int i = 0; i < (quick ? 5 : 400); i++)
        check_patterns(extent, (int32_t)random_below(1000001), i % 2);
}

END_TEST

/* Maps of several batches: many slices, and a slice that does not fit one. */
START_TEST(maps_come_in_batches)
{
    static const struct kernels_extent large[] = {{1024, 1024, 37}, {6000, 5000, 1}};

    random_state = 23;
    for (size_t i = 0; i < sizeof(large) / sizeof(large[0]); i++) {
        begin(RANDOM, KERNELS_UINT8, large[i]);
        check_patterns(large[i], 900000, 2);
    }
}

END_TEST

/* The sizes at which every kind of counting goes over all of the GPU's blocks. */
START_TEST(large_images_are_the_cpus)
{
    static const struct texture_offset offsets[] = {{1, 0, 0},   {1, -1, 0}, {0, -1, 0},
                                                    {-1, -1, 0}, {4, 0, 0},  {4, -4, 0}};

    for (int levels = 8; levels <= 32; levels += 24)
        for (int content = 0; content < 3; content++)
            check_glcm((enum content)content, KERNELS_UINT8, (struct kernels_extent){2048, 1500, 1},
                       PAPER, levels, offsets, 6);
}

END_TEST

#if defined(NOCTULE_CUDA) && defined(NOCTULE_CRASH_POINTS)

/* A whole job; its first error. */
static int
run_job(struct kernels_lane *lane, uint64_t *counts, uint8_t *map)
{
    const struct kernels_extent extent = {32, 8, 2};
    const struct kernels_demand demand = {.texture = true};
    const struct texture_offset offset = {1, 0, 0};
    static uint16_t level_of[256];
    const uint64_t *regions[1] = {NULL};
    const struct texture_glcm glcm = {
        .levels = {256, level_of, 1}, .offsets = &offset, .offset_count = 1};
    const struct texture_patterns patterns = {.wanted = {true},
                                              .maps = {map},
                                              .regions = regions,
                                              .region_count = 1,
                                              .histograms = counts};
    void *voxels;
    int error =
        kernels_volume_begin(lane, extent, KERNELS_UINT8, &demand, &voxels, reason, sizeof(reason));

    for (int i = 0; i < 256; i++)
        level_of[i] = (uint16_t)(i + 1);
    if (!error)
        memset(voxels, 5, voxels_of(extent));
    if (!error)
        error = kernels_volume_ready(lane, 0, extent.slices);
    if (!error)
        error = texture_histogram_run(lane, NULL, false, counts, reason, sizeof(reason));
    if (!error)
        error = texture_patterns_run(lane, &patterns, reason, sizeof(reason));
    return error ? error : texture_glcm_run(lane, &glcm, counts, reason, sizeof(reason));
}

/* Each call of the CUDA runtime fails in turn: an error is told, and closing works. */
START_TEST(any_call_may_fail)
{
    uint64_t *counts = allocate(65536, sizeof(*counts));
    uint8_t map[30 * 6 * 2];
    int error = -EIO;

    for (int64_t nth = 1; error != 0; nth++) {
        struct kernels_device_options options = {.backend = "cuda"};
        struct kernels_device *device = NULL;
        struct kernels_lane *lane = NULL;

        cuda_fault_at(nth, (enum cuda_fault_kind)_i);
        error = kernels_device_open(&options, &device, reason, sizeof(reason));
        if (!error)
            error = kernels_lane_open(device, &lane, reason, sizeof(reason));
        if (!error)
            error = run_job(lane, counts, map);
        ck_assert_msg(error != 0 || nth > cuda_fault_calls(), "call %lld failed unnoticed",
                      (long long)nth);
        cuda_fault_at(0, CUDA_FAULT_UNKNOWN);
        if (lane)
            kernels_lane_close(lane);
        if (device)
            kernels_device_close(device);
    }
    ck_assert_uint_eq(counts[5 * 256 + 5], 31 * 8 * 2);
    free(counts);
}

END_TEST

#endif

static Suite *
make_suite(void)
{
    Suite *suite = suite_create("cuda_texture");
    TCase *parity = tcase_create("parity");
    const int some = quick ? QUICK_EXTENTS : EXTENTS;

    suite_add_tcase(suite, parity);
    tcase_add_unchecked_fixture(parity, open_both, close_both);
    tcase_add_loop_test(parity, matrices_are_the_cpus, 0, some);
    tcase_add_loop_test(parity, histograms_are_the_cpus, 0, some);
    tcase_add_loop_test(parity, patterns_are_the_cpus, 0, some);
    tcase_add_test(parity, thresholds_are_exact);
    if (quick)
        return suite;
    tcase_add_test(parity, matrices_come_in_batches);
    tcase_add_test(parity, maps_come_in_batches);
    tcase_add_test(parity, large_images_are_the_cpus);
#if defined(NOCTULE_CUDA) && defined(NOCTULE_CRASH_POINTS)
    TCase *faults = tcase_create("faults");

    suite_add_tcase(suite, faults);
    tcase_add_loop_test(faults, any_call_may_fail, CUDA_FAULT_UNKNOWN, CUDA_FAULT_LOST + 1);
#endif
    return suite;
}

int
main(int argc, char **argv)
{
    quick = argc > 1 && strcmp(argv[1], "--quick") == 0;
    if (kernels_gpus(NULL, 0) == 0) {
        puts("skipped: there is no GPU, or no driver for it, or the CUDA backend was not built");
        return SKIPPED;
    }

    SRunner *runner = srunner_create(make_suite());
    srunner_set_fork_status(runner, CK_NOFORK); /* a driver does not survive fork */
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
