/*
 * test_cuda.c - compares the CUDA backend with the CPU's and the references, bit for bit.
 *
 *   kernels_test_cuda [--quick]    --quick: a selection for compute-sanitizer
 *
 * The cases level_set and fuzzy alone (CK_RUN_CASE) are small enough for racecheck.
 *
 * Exits with 77 ("skipped" for CTest) if there is no GPU. NOCTULE_TEST_VOLUMES may name volumes of real series, as
 * FILE:COLUMNS,ROWS,SLICES:PIXEL, separated by ";". The files have stored values as dump_volume writes them. PIXEL is
 * uint8, int16 or uint16.
 */
#include "kernels/cuda/fault.h"
#include "kernels/range/range.h"
#include "tests/kernels/gpu_suite.h"
#include "tests/kernels/ref_jobs.h"
#include "tests/kernels/ref_volumes.h"

#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ANNOUNCERS = 8 };

static struct kernels_device *cpu, *gpu;
static struct kernels_lane *cpu_lane, *gpu_lane;
static struct error error;

static const struct image_range none = {1, 0};

static void *
allocate(int64_t count, size_t size)
{
    void *memory = calloc(count > 0 ? (size_t)count : 1, size);

    ck_assert_ptr_nonnull(memory);
    return memory;
}

static void
open_backend(const char *backend, struct kernels_device **device, struct kernels_lane **lane)
{
    struct kernels_device_options options = {.backend = backend, .threads = 4};
    int rc = kernels_device_open(&options, device, &error);

    ck_assert_msg(rc == 0, "%s: %s", backend, error.message);
    rc = kernels_lane_open(*device, lane, &error);
    ck_assert_msg(rc == 0, "%s: %s", backend, error.message);
}

static void
open_both(void)
{
    open_backend("cpu", &cpu, &cpu_lane);
    open_backend("cuda", &gpu, &gpu_lane);
}

static void
close_both(void)
{
    kernels_lane_close(gpu_lane);
    kernels_device_close(gpu);
    kernels_lane_close(cpu_lane);
    kernels_device_close(cpu);
}

/* Checks that the GPU's lane and the CPU's give the references' results. */
static void
check_job(const struct ref_whole *whole, const char *what)
{
    struct ref_expected expected;
    const char *difference;

    ref_expect(whole, &expected);
    difference = ref_compare(gpu_lane, whole, &expected);
    ck_assert_msg(*difference == '\0', "%s, GPU: %s", what, difference);
    difference = ref_compare(cpu_lane, whole, &expected);
    ck_assert_msg(*difference == '\0', "%s, CPU: %s", what, difference);
    ref_expected_free(&expected);
}

/* Devices */

START_TEST(a_gpu_is_opened_by_index_and_uuid)
{
    struct kernels_gpu gpus[8];
    int count = kernels_gpus(gpus, 8);
    char index[16];

    ck_assert_int_ge(count, 1);
    for (int i = 0; i < count && i < 8; i++) {
        snprintf(index, sizeof(index), "%d", gpus[i].index);
        ck_assert_int_eq((int)strlen(gpus[i].uuid), 40);
        ck_assert_int_gt(gpus[i].memory_bytes, 0);
        for (int by_uuid = 0; by_uuid < 2; by_uuid++) {
            struct kernels_device_options options = {
                .backend = "cuda", .device = by_uuid ? gpus[i].uuid : index, .threads = 3};
            struct kernels_device *device;

            ck_assert_int_eq(kernels_device_open(&options, &device, &error), 0);
            ck_assert_str_eq(kernels_device_backend(device), "cuda");
            ck_assert_ptr_nonnull(strstr(kernels_device_description(device), gpus[i].name));
            ck_assert_int_eq(kernels_device_threads(device), 3);
            kernels_device_close(device);
        }
    }
}

END_TEST

START_TEST(a_missing_gpu_is_refused)
{
    static const char *const unknown[] = {"9999", "0x", "GPU-00000000-0000-0000-0000-000000000000", "abacus"};

    for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++) {
        struct kernels_device_options options = {.backend = "cuda", .device = unknown[i]};
        struct kernels_device *device;

        ck_assert_int_eq(kernels_device_open(&options, &device, &error), -ENODEV);
        ck_assert_ptr_nonnull(strstr(error.message, unknown[i]));
    }
}

END_TEST

START_TEST(auto_is_the_gpu)
{
    struct kernels_device_options options = {.backend = "auto"};
    struct kernels_device *device;

    ck_assert_int_eq(kernels_device_open(&options, &device, &error), 0);
    ck_assert_str_eq(kernels_device_backend(device), "cuda");
    ck_assert_int_ge(kernels_device_threads(device), 1);
    kernels_device_close(device);
}

END_TEST

/* The value range */

static void
check_range(uint64_t *random)
{
    struct image_extent extent = {1 + ref_random_below(random, 300), 1 + ref_random_below(random, 40),
                                  1 + ref_random_below(random, 9)};
    enum image_pixel pixel = (enum image_pixel)ref_random_below(random, 3);
    int32_t lo = (int32_t)ref_random_below(random, 70000) - 35000;
    struct image_range padding = {lo, lo + (int32_t)ref_random_below(random, 60000) - 1};
    struct kernels_demand nothing = {0};
    struct kernels_lane *lanes[] = {cpu_lane, gpu_lane};
    struct image_range ranges[2];
    int errors[2];
    int64_t count = ref_voxels(extent);
    uint16_t *values = allocate(count, 2);
    void *voxels;

    for (int64_t i = 0; i < count; i++)
        values[i] = (uint16_t)(0x7000 + ref_random_below(random, 0x2000));
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(kernels_volume_begin(lanes[i], extent, pixel, &nothing, &voxels, NULL), 0);
        memcpy(voxels, values, (size_t)count * image_pixel_size(pixel));
        ck_assert_int_eq(ref_announce(lanes[i], extent.slices, 2, NULL), 0);
        errors[i] = kernels_volume_range(lanes[i], padding, &ranges[i], NULL);
    }
    ck_assert_int_eq(errors[0], errors[1]);
    ck_assert(errors[0] == 0 || errors[0] == -ENODATA);
    if (errors[0] == 0) {
        ck_assert_int_eq(ranges[0].lo, ranges[1].lo);
        ck_assert_int_eq(ranges[0].hi, ranges[1].hi);
    }
    free(values);
}

START_TEST(value_ranges_are_the_cpus)
{
    uint64_t random = 5;

    for (int round = 0; round < (quick ? 40 : 1500); round++)
        check_range(&random);
}

END_TEST

/* Puts the only largest value into each slice in turn, in a volume of several slabs. */
START_TEST(every_slice_is_uploaded)
{
    struct image_extent extent = {700, 512, quick ? 25 : 200};
    int64_t slice = extent.columns * extent.rows, order[200];
    struct kernels_demand nothing = {0};
    uint64_t random = 6;
    uint16_t *voxels;
    void *memory;

    for (int64_t z = 0; z < extent.slices; z += quick ? 7 : 3) {
        struct image_range range;

        ck_assert_int_eq(kernels_volume_begin(gpu_lane, extent, IMAGE_UINT16, &nothing, &memory, NULL), 0);
        voxels = memory;
        memset(voxels, 0, (size_t)ref_voxels(extent) * sizeof(*voxels));
        voxels[z * slice + ref_random_below(&random, slice)] = (uint16_t)(z + 1);
        ref_shuffle(&random, order, extent.slices);
        ck_assert_int_eq(ref_announce(gpu_lane, extent.slices, ANNOUNCERS, order), 0);
        ck_assert_int_eq(kernels_volume_range(gpu_lane, none, &range, NULL), 0);
        ck_assert_int_eq(range.lo, 0);
        ck_assert_int_eq(range.hi, z + 1);
    }
}

END_TEST

/* As every_slice_is_uploaded, with slices that are copied in pieces of rows. */
/* Announces slices, or 3, 5 or 7 parts of each: from the bottom, or every other one first. */
static void
announce_in_parts(struct image_extent extent, int64_t way)
{
    const int64_t parts = 1 + way % 4 * 2;

    if (parts == 1)
        ck_assert_int_eq(kernels_volume_ready(gpu_lane, 0, extent.slices, NULL), 0);
    for (int64_t i = 0; parts > 1 && i < extent.slices * parts; i++) {
        const int64_t part = way % 2 ? parts - 1 - i % parts : i % parts * 2 % parts;
        const int64_t first = part * extent.rows / parts, end = (part + 1) * extent.rows / parts;

        ck_assert_int_eq(kernels_rows_ready(gpu_lane, i / parts, first, end - first, NULL), 0);
    }
}

START_TEST(every_row_is_uploaded)
{
    static const struct image_extent extents[] = {{16384, 3073, 1}, {16385, 2100, 2}};
    struct kernels_demand nothing = {0};
    uint64_t random = 8;

    for (size_t i = 0; i < sizeof(extents) / sizeof(extents[0]); i++) {
        const struct image_extent extent = extents[i];
        const int64_t rows = extent.rows * extent.slices, rounds = quick ? 3 : 40;

        for (int64_t round = 0; round < rounds; round++) {
            const int64_t row = round * (rows - 1) / (rounds - 1);
            struct image_range range;
            void *memory;

            ck_assert_int_eq(kernels_volume_begin(gpu_lane, extent, IMAGE_UINT16, &nothing, &memory, NULL), 0);
            memset(memory, 0, (size_t)ref_voxels(extent) * sizeof(uint16_t));
            ((uint16_t *)memory)[row * extent.columns + ref_random_below(&random, extent.columns)] =
                (uint16_t)(row + 1);
            announce_in_parts(extent, round);
            ck_assert_int_eq(kernels_volume_range(gpu_lane, none, &range, NULL), 0);
            ck_assert_int_eq(range.lo, 0);
            ck_assert_int_eq(range.hi, row + 1);
        }
    }
}

END_TEST

/* Random jobs, one after the other on one lane */

START_TEST(random_jobs_are_the_references)
{
    for (uint64_t seed = 0; seed < (quick ? 15 : 1500); seed++) {
        struct ref_whole *whole = ref_random_job(seed);
        char what[64];

        snprintf(what, sizeof(what), "random job %llu", (unsigned long long)seed);
        check_job(whole, what);
        ref_random_job_free(whole);
    }
}

END_TEST

/* Patterns of in and out */

/*
 * Checks a pattern with shapes that let both floods run through the whole volume. The in-range flood starts from a
 * corner, the other from a box that covers nearly all. The object also grows from the corner, and competes with
 * another from the opposite corner.
 */
static void
check_pattern(struct image_extent extent, const uint8_t *in, const char *what)
{
    double large = (double)(extent.columns + extent.rows + extent.slices);
    const struct kernels_shape corner = {.kind = KERNELS_SPHERE, .radius = {1.5}};
    const struct kernels_shape half = {.kind = KERNELS_BOX, .center = {large, 0, 0}, .radius = {large, large, large}};
    const struct kernels_shape most = {
        .kind = KERNELS_BOX, .center = {1 + large, 0, 0}, .radius = {large, large, large}};
    struct image_range range = {5, 5};
    const struct kernels_level_set_label labels[] = {
        {.shapes = &corner, .shape_count = 1, .ranges = &range, .range_count = 1, .padding = none},
        {.shapes = &half, .shape_count = 1, .ranges = &range, .range_count = 1, .padding = none},
        {.shapes = &most, .shape_count = 1, .ranges = &range, .range_count = 1, .padding = none}};
    const struct kernels_voxel first = {0, 0, 0}, last = {extent.columns - 1, extent.rows - 1, extent.slices - 1};
    const struct kernels_fuzzy_object objects[] = {{.seeds = &first,
                                                    .seed_count = 1,
                                                    .mean = 5,
                                                    .sigma = 1,
                                                    .homogeneity_sigma = 1,
                                                    .weight = 0.5,
                                                    .threshold = 40000,
                                                    .padding = none,
                                                    .map = true},
                                                   {.seeds = &last,
                                                    .seed_count = 1,
                                                    .mean = 0,
                                                    .sigma = 2,
                                                    .homogeneity_sigma = 3,
                                                    .weight = 0.7,
                                                    .threshold = 20000,
                                                    .padding = none}};
    uint8_t *voxels = allocate(ref_voxels(extent), 1);
    struct ref_whole whole = {.job = {.extent = extent,
                                      .pixel = IMAGE_UINT8,
                                      .voxels = voxels,
                                      .labels = labels,
                                      .label_count = 3,
                                      .threads = ANNOUNCERS},
                              .objects = objects,
                              .object_count = 2,
                              .relative = extent.rows % 2 == 0};

    ref_paint(IMAGE_UINT8, in, ref_voxels(extent), 5, 0, voxels);
    check_job(&whole, what);
    ref_paint(IMAGE_UINT8, in, ref_voxels(extent), 0, 5, voxels);
    check_job(&whole, what);
    free(voxels);
}

static void
check_patterns(struct image_extent extent)
{
    int64_t count = ref_voxels(extent);
    uint8_t *in = allocate(count, 1);

    for (int axis = 0; axis < 3; axis++) {
        ref_serpentine(extent, axis, in);
        check_pattern(extent, in, "serpentine");
    }
    ref_random_maze(extent, 1, in);
    check_pattern(extent, in, "random maze");
    ref_spiral(extent, in);
    check_pattern(extent, in, "spiral");
    ref_checkerboard(extent, in);
    check_pattern(extent, in, "checkerboard");
    ref_noise(extent, 0.4, 2, in);
    check_pattern(extent, in, "noise");
    ref_sphere(extent, (double)extent.rows / 3, in);
    check_pattern(extent, in, "sphere");
    memset(in, 0, (size_t)count);
    check_pattern(extent, in, "all out of range");
    memset(in, 1, (size_t)count);
    check_pattern(extent, in, "all in range");
    free(in);
}

/* The first ones are the quick selection. */
static const struct image_extent extents[] = {
    {65, 9, 8},   {33, 20, 17}, {1, 1, 1},     {1, 1, 40},    {1, 40, 1},   {200, 1, 1},  {9, 66, 7},   {8, 9, 67},
    {64, 12, 12}, {70, 1, 900}, {130, 90, 50}, {600, 34, 20}, {64, 64, 80}, {900, 90, 1}, {1, 600, 50},
};

enum { QUICK_EXTENTS = 2, EXTENTS = sizeof(extents) / sizeof(extents[0]) };

START_TEST(patterns_are_the_references)
{
    check_patterns(extents[_i]);
}

END_TEST

/* Several slabs and many tiles: paths of maximum length, and a front of maximum width. */
START_TEST(large_patterns_are_the_references)
{
    struct image_extent extent = {300, 260, 120};
    uint8_t *in = allocate(ref_voxels(extent), 1);

    ref_serpentine(extent, 0, in);
    check_pattern(extent, in, "large serpentine along x");
    ref_serpentine(extent, 2, in);
    check_pattern(extent, in, "large serpentine along z");
    ref_random_maze(extent, 1, in);
    check_pattern(extent, in, "large random maze");
    ref_sphere(extent, 100, in);
    check_pattern(extent, in, "large sphere");
    free(in);
}

END_TEST

/* Grey volumes */

enum grey { SMOOTH, VESSELS, PLATEAUS, SCATTER, GREYS };

static void
draw_grey(enum grey grey, struct image_extent extent, enum image_pixel pixel, int32_t top, void *voxels)
{
    struct kernels_voxel roots[2];

    switch (grey) {
    case SMOOTH:
        ref_smooth(extent, pixel, top, 1, voxels);
        break;
    case VESSELS:
        ref_vessels(extent, pixel, top, 2, 2, voxels, roots);
        break;
    case PLATEAUS:
        ref_plateaus(extent, pixel, top, 5, 3, voxels);
        break;
    case SCATTER:
        ref_scatter(extent, pixel, top, 4, voxels);
        break;
    case GREYS:
        break;
    }
    ref_islands(extent, pixel, 2, 0, 5, voxels); /* the padding value below */
}

/* Checks two objects at two strengths, with seeds inside and on borders, in volumes with padding. */
static void
check_grey(enum grey grey, struct image_extent extent, enum image_pixel pixel, bool relative)
{
    const int32_t top = pixel == IMAGE_UINT8 ? 255 : 3000;
    const struct image_range padding = {0, 0}, range = {top / 3, top};
    const struct kernels_shape shape = {
        KERNELS_ELLIPSOID,
        {(double)extent.columns / 2, (double)extent.rows / 2, (double)extent.slices / 2},
        {(double)extent.columns / 5, (double)extent.rows / 4, (double)extent.slices / 3}};
    const struct kernels_level_set_label label = {
        .shapes = &shape, .shape_count = 1, .ranges = &range, .range_count = 1, .padding = padding};
    const struct kernels_voxel middle[] = {
        {extent.columns / 2, extent.rows / 2, extent.slices / 2},
        {extent.columns / 3, extent.rows / 3, extent.slices / 3},
    };
    const struct kernels_voxel border[] = {{0, extent.rows - 1, 0}, {extent.columns - 1, 0, extent.slices - 1}};
    struct kernels_fuzzy_object objects[] = {{.seeds = middle,
                                              .seed_count = 2,
                                              .mean = 0.75 * top,
                                              .sigma = 0.2 * top,
                                              .homogeneity_sigma = 0.1 * top,
                                              .weight = 0.5,
                                              .threshold = 45000,
                                              .padding = padding,
                                              .map = true},
                                             {.seeds = border,
                                              .seed_count = 2,
                                              .mean = 0.25 * top,
                                              .sigma = 0.1 * top,
                                              .homogeneity_sigma = 0.05 * top,
                                              .weight = 0.3,
                                              .threshold = 30000,
                                              .padding = none,
                                              .map = relative}};
    void *voxels = allocate(ref_voxels(extent), image_pixel_size(pixel));
    struct ref_whole whole = {.job = {.extent = extent,
                                      .pixel = pixel,
                                      .voxels = voxels,
                                      .labels = &label,
                                      .label_count = 1,
                                      .threads = ANNOUNCERS},
                              .objects = objects,
                              .object_count = 2,
                              .relative = relative,
                              .fuzzy_first = relative};
    char what[80];

    draw_grey(grey, extent, pixel, top, voxels);
    snprintf(what, sizeof(what), "grey volume %d, pixel %d, %lld columns", (int)grey, (int)pixel,
             (long long)extent.columns);
    check_job(&whole, what);
    free(voxels);
}

START_TEST(grey_volumes_are_the_references)
{
    static const struct image_extent small = {70, 37, 21}, large = {200, 190, 90};

    for (int pixel = 0; pixel < (quick ? 1 : 3); pixel++) {
        check_grey((enum grey)_i, small, (enum image_pixel)pixel, pixel % 2 == 0);
        if (!quick)
            check_grey((enum grey)_i, large, (enum image_pixel)pixel, pixel % 2 == 1);
    }
}

END_TEST

/* One job each, of a few tiles; only labels, or only an object */

START_TEST(a_small_level_set_is_the_reference)
{
    const struct image_extent extent = {70, 36, 34};
    const struct kernels_shape shape = {KERNELS_SPHERE, {35, 18, 17}, {9}};
    const struct image_range range = {1200, 3000};
    const struct kernels_level_set_label label = {
        .shapes = &shape, .shape_count = 1, .ranges = &range, .range_count = 1, .padding = none};
    int16_t *voxels = allocate(ref_voxels(extent), sizeof(*voxels));
    const struct ref_whole whole = {.job = {.extent = extent,
                                            .pixel = IMAGE_INT16,
                                            .voxels = voxels,
                                            .labels = &label,
                                            .label_count = 1,
                                            .threads = 1}};

    ref_smooth(extent, IMAGE_INT16, 3000, 9, voxels);
    check_job(&whole, "a small level set");
    free(voxels);
}

END_TEST

START_TEST(a_small_object_is_the_reference)
{
    const struct image_extent extent = {24, 12, 10};
    const struct kernels_voxel seed = {12, 6, 5};
    const struct kernels_fuzzy_object object = {.seeds = &seed,
                                                .seed_count = 1,
                                                .mean = 1500,
                                                .sigma = 700,
                                                .homogeneity_sigma = 400,
                                                .weight = 0.5,
                                                .threshold = 30000,
                                                .padding = none,
                                                .map = _i == 1};
    int16_t *voxels = allocate(ref_voxels(extent), sizeof(*voxels));
    const struct ref_whole whole = {.job = {.extent = extent, .pixel = IMAGE_INT16, .voxels = voxels, .threads = 1},
                                    .objects = &object,
                                    .object_count = 1};

    ref_smooth(extent, IMAGE_INT16, 3000, 9, voxels);
    check_job(&whole, "a small object");
    free(voxels);
}

END_TEST

/* Order, lanes, sizes */

static void
random_order(uint64_t seed, int64_t *order, int64_t count)
{
    ref_shuffle(&seed, order, count);
}

/* Many threads announce the slices of many slabs, in another order each time. */
START_TEST(any_order_of_slices_gives_the_same_result)
{
    struct image_extent extent = {512, 512, quick ? 33 : 150};
    int64_t count = ref_voxels(extent), *order = allocate(extent.slices, sizeof(*order));
    const struct kernels_shape shape = {KERNELS_SPHERE, {256, 256, 20}, {30}};
    const struct image_range range = {1000, 3000};
    const struct kernels_level_set_label label = {
        .shapes = &shape, .shape_count = 1, .ranges = &range, .range_count = 1, .padding = none};
    int16_t *voxels = allocate(count, sizeof(*voxels));
    struct ref_whole whole = {.job = {.extent = extent,
                                      .pixel = IMAGE_INT16,
                                      .voxels = voxels,
                                      .labels = &label,
                                      .label_count = 1,
                                      .threads = ANNOUNCERS,
                                      .order = order}};
    struct ref_expected expected;

    ref_smooth(extent, IMAGE_INT16, 3000, 9, voxels);
    ref_expect(&whole, &expected);
    for (uint64_t round = 0; round < (quick ? 1 : 20); round++) {
        random_order(round, order, extent.slices);
        const char *difference = ref_compare(gpu_lane, &whole, &expected);
        ck_assert_msg(*difference == '\0', "round %d: %s", (int)round, difference);
    }
    ref_expected_free(&expected);
    free(voxels);
    free(order);
}

END_TEST

/* A lane of its own that runs jobs of growing and shrinking sizes. */
struct lane_work {
    uint64_t first_seed;
    int jobs;
    char difference[2 * sizeof(struct error)];
};

static void *
work_on_lane(void *argument)
{
    struct lane_work *work = argument;
    struct kernels_lane *lane;

    struct error why;

    if (kernels_lane_open(gpu, &lane, &why)) {
        snprintf(work->difference, sizeof(work->difference), "%s", why.message);
        return NULL;
    }
    for (int i = 0; i < work->jobs && work->difference[0] == '\0'; i++) {
        struct ref_whole *whole = ref_random_job(work->first_seed + (uint64_t)i);
        struct ref_expected expected;

        ref_expect(whole, &expected);
        for (int round = 0; round < 3; round++)
            snprintf(work->difference, sizeof(work->difference), "%s", ref_compare(lane, whole, &expected));
        ref_expected_free(&expected);
        ref_random_job_free(whole);
    }
    kernels_lane_close(lane);
    return NULL;
}

START_TEST(lanes_work_side_by_side)
{
    enum { LANES = 3 };
    struct lane_work works[LANES] = {{0}};
    pthread_t threads[LANES];

    for (int i = 0; i < LANES; i++) {
        works[i].first_seed = 100000 + 1000 * (uint64_t)i;
        works[i].jobs = quick ? 2 : 150;
        ck_assert_int_eq(pthread_create(&threads[i], NULL, work_on_lane, &works[i]), 0);
    }
    for (int i = 0; i < LANES; i++)
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
    for (int i = 0; i < LANES; i++)
        ck_assert_msg(works[i].difference[0] == '\0', "lane %d: %s", i, works[i].difference);
}

END_TEST

/* Checks that pinned memory is reserved for the largest job, and that later jobs use it unchanged. */
START_TEST(memory_is_reused_by_the_next_job)
{
    const struct image_extent large = {256, 256, 128}, small = {64, 64, 8};
    const struct kernels_demand demand = {.of = {NULL}};
    void *first, *voxels;

    ck_assert_int_eq(kernels_volume_begin(gpu_lane, large, IMAGE_INT16, &demand, &first, NULL), 0);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(kernels_volume_begin(gpu_lane, i == 0 ? small : large, IMAGE_INT16, &demand, &voxels, NULL),
                         0);
        ck_assert_ptr_eq(voxels, first);
    }
}

END_TEST

/* Cancels a job at any point, and checks that the lane takes the next one. */
START_TEST(a_job_may_be_cancelled)
{
    int64_t side = quick ? 60 : 300;
    struct image_extent extent = {side, side, 120};
    const struct kernels_shape shape = {KERNELS_SPHERE, {(double)side / 2, (double)side / 2, 60}, {50}};
    const struct image_range range = {0, 0};
    const struct kernels_level_set_label label = {
        .shapes = &shape, .shape_count = 1, .ranges = &range, .range_count = 1, .padding = none};
    struct kernels_demand demand = {.of[KERNELS_LEVEL_SET] = &(struct kernels_level_set_demand){1}};
    void *voxels;

    for (int64_t slices = 0; slices <= extent.slices; slices += 40) {
        struct ref_whole *whole = ref_random_job((uint64_t)slices);

        ck_assert_int_eq(kernels_volume_begin(gpu_lane, extent, IMAGE_INT16, &demand, &voxels, NULL), 0);
        memset(voxels, 0, (size_t)ref_voxels(extent) * 2);
        ck_assert_int_eq(kernels_level_set_begin(gpu_lane, &label, 1, NULL), 0);
        ck_assert_int_eq(kernels_volume_ready(gpu_lane, 0, slices, NULL), 0);
        check_job(whole, "after a job that was given up");
        ref_random_job_free(whole);
    }
}

END_TEST

START_TEST(an_oversized_job_is_out_of_memory)
{
    static const size_t labels[] = {200, 1000000, SIZE_MAX / 2, SIZE_MAX};
    struct image_extent large = {1 << 11, 1 << 11, 1 << 11};
    struct ref_whole *whole = ref_random_job(1);
    void *voxels;

    for (size_t i = 0; i < sizeof(labels) / sizeof(labels[0]); i++) {
        struct kernels_demand demand = {.of[KERNELS_LEVEL_SET] = &(struct kernels_level_set_demand){labels[i]}};

        ck_assert_int_eq(kernels_volume_begin(gpu_lane, large, IMAGE_INT16, &demand, &voxels, &error), -ENOMEM);
        ck_assert_msg(strstr(error.message, "2048") && strstr(error.message, "memory"), "%s", error.message);
        ck_assert_int_eq(kernels_volume_ready(gpu_lane, 0, 1, NULL), -EINVAL);
        check_job(whole, "after one that did not fit");
    }
    ref_random_job_free(whole);
}

END_TEST

/* Indices beyond 2^31, also in bytes: two rooms of zeros, joined by one hole in the wall between them. */
START_TEST(more_than_2_31_voxels_are_flooded)
{
    struct image_extent extent = {2048, 2048, 520};
    int64_t slice = extent.columns * extent.rows, wall = 517, hole = slice - 1;
    const struct image_range range = {0, 0};
    const struct kernels_shape shape = {.kind = KERNELS_SPHERE, .radius = {3}};
    const struct kernels_level_set_label label = {
        .shapes = &shape, .shape_count = 1, .ranges = &range, .range_count = 1, .padding = none};
    struct kernels_demand demand = {.of[KERNELS_LEVEL_SET] = &(struct kernels_level_set_demand){1}};
    struct image_mask mask;
    void *voxels;

    ck_assert_int_eq(kernels_volume_begin(gpu_lane, extent, IMAGE_UINT8, &demand, &voxels, NULL), 0);
    memset(voxels, 0, (size_t)ref_voxels(extent));
    memset((uint8_t *)voxels + wall * slice, 1, (size_t)hole);
    ck_assert_int_eq(kernels_level_set_begin(gpu_lane, &label, 1, NULL), 0);
    ck_assert_int_eq(ref_announce(gpu_lane, extent.slices, 2, NULL), 0);
    ck_assert_int_eq(kernels_level_set_run(gpu_lane, &label, 1, &mask, NULL), 0);
    ck_assert_int_eq(mask.voxels, ref_voxels(extent) - slice + 1);
    ck_assert_uint_eq(mask.bits[(wall * slice + hole) / 64], UINT64_C(1) << 63);
    ck_assert_uint_eq(mask.bits[(wall * slice + hole) / 64 - 1], 0);
    ck_assert_uint_eq(mask.bits[ref_voxels(extent) / 64 - 1], UINT64_MAX);
}

END_TEST

/* Real series */

static const char *const pixel_names[] = {"uint8", "int16", "uint16"};

static void *
load_volume(const char *path, struct image_extent extent, enum image_pixel pixel)
{
    size_t size = image_pixel_size(pixel), count = (size_t)ref_voxels(extent);
    void *voxels = allocate((int64_t)count, size);
    FILE *file = fopen(path, "rb");

    ck_assert_msg(file != NULL, "%s: %s", path, strerror(errno));
    ck_assert_msg(fread(voxels, size, count, file) == count, "%s is too short", path);
    fclose(file);
    return voxels;
}

/* Checks a label of a range around the middle value, and an object from there. */
static void
check_series(const char *path, struct image_extent extent, enum image_pixel pixel)
{
    void *voxels = load_volume(path, extent, pixel);
    const struct kernels_voxel middle = {extent.columns / 2, extent.rows / 2, extent.slices / 2};
    int64_t index = (middle.z * extent.rows + middle.y) * extent.columns + middle.x;
    int32_t value = ref_stored(pixel, voxels, index);
    const struct image_range range = {value - 60, value + 60};
    const struct kernels_shape shape = {
        KERNELS_SPHERE, {(double)middle.x, (double)middle.y, (double)middle.z}, {(double)extent.columns / 8}};
    const struct kernels_level_set_label label = {
        .shapes = &shape, .shape_count = 1, .ranges = &range, .range_count = 1, .padding = none};
    const struct kernels_fuzzy_object object = {.seeds = &middle,
                                                .seed_count = 1,
                                                .mean = value,
                                                .sigma = 60,
                                                .homogeneity_sigma = 20,
                                                .weight = 0.5,
                                                .threshold = 32767,
                                                .padding = none,
                                                .map = true};
    const struct ref_whole whole = {.job = {.extent = extent,
                                            .pixel = pixel,
                                            .voxels = voxels,
                                            .labels = &label,
                                            .label_count = 1,
                                            .threads = ANNOUNCERS},
                                    .objects = &object,
                                    .object_count = 1};

    check_job(&whole, path);
    free(voxels);
}

START_TEST(real_series_are_the_references)
{
    char *list = strdup(getenv("NOCTULE_TEST_VOLUMES")), *rest = list, *entry;

    ck_assert_ptr_nonnull(list);
    while ((entry = strtok_r(rest, ";", &rest))) {
        struct image_extent extent;
        char path[4096], name[8];
        int pixel = 0;

        ck_assert_msg(
            sscanf(entry, "%4095[^:]:%ld,%ld,%ld:%7s", path, &extent.columns, &extent.rows, &extent.slices, name) == 5,
            "%s is no volume", entry);
        while (pixel < 3 && strcmp(pixel_names[pixel], name) != 0)
            pixel++;
        ck_assert_msg(pixel < 3, "%s has no pixel type", entry);
        check_series(path, extent, (enum image_pixel)pixel);
    }
    free(list);
}

END_TEST

/* Faults */

#ifdef NOCTULE_CUDA

/* Checks that the first job uses the reserved memory: it makes one call less, the one that pins memory. */
START_TEST(memory_is_reserved_before_the_first_job)
{
    const struct image_extent extent = {256, 256, 128};
    const struct kernels_demand demand = {.of = {NULL}};
    struct kernels_lane *fresh;
    int64_t calls[2];
    void *voxels;

    for (int reserved = 0; reserved < 2; reserved++) {
        ck_assert_int_eq(kernels_lane_open(gpu, &fresh, NULL), 0);
        if (reserved)
            ck_assert_int_eq(kernels_lane_reserve(fresh, 64 << 20), 0);
        cuda_fault_at(0, CUDA_FAULT_UNKNOWN);
        ck_assert_int_eq(kernels_volume_begin(fresh, extent, IMAGE_INT16, &demand, &voxels, NULL), 0);
        calls[reserved] = cuda_fault_calls();
        memset(voxels, 1, (size_t)256 * 256 * 128 * 2);
        kernels_lane_close(fresh);
    }
    ck_assert_int_eq(calls[1], calls[0] - 1);
}

END_TEST

/*
 * Checks a lane after an error: an out-of-memory error is transient, but a failed device must stay failed and report
 * it.
 */
static void
check_lane_after(struct kernels_lane *lane, int rc, const struct ref_whole *whole, const struct ref_expected *expected)
{
    struct ref_results results;

    cuda_fault_at(0, CUDA_FAULT_UNKNOWN);
    if (rc == -ENOMEM) {
        ck_assert_str_eq(ref_compare(lane, whole, expected), "");
        return;
    }
    ck_assert_int_eq(rc, -EIO);
    error.message[0] = '\0';
    ck_assert_int_eq(ref_run(lane, whole, &results, NULL, &error), -EIO);
    ck_assert_ptr_nonnull(strstr(error.message, "failed"));
}

/* Runs the objects as competitors, then each alone: one of them then does not need a map. */
static int
run_everything(struct kernels_lane *lane, const struct ref_whole *whole)
{
    struct ref_whole apart = *whole;
    struct ref_results results;
    struct image_range range;
    int8_t *codes = allocate(ref_voxels(whole->job.extent), 1);
    int rc = ref_run(lane, whole, &results, NULL, &error);

    apart.relative = false;
    if (!rc)
        rc = ref_run(lane, &apart, &results, NULL, &error);
    if (!rc)
        rc = kernels_volume_range(lane, none, &range, NULL);
    if (!rc)
        rc = kernels_level_set_codes(lane, 0, codes, NULL);
    free(codes);
    return rc;
}

/* Runs everything from opening the device to closing it while a call fails. Sets *calls to the number of calls. */
static int
attempt(const struct ref_whole *whole, const struct ref_expected *expected, int64_t *calls)
{
    struct kernels_device_options options = {.backend = "cuda", .threads = 1};
    struct kernels_device *device = NULL;
    struct kernels_lane *lane = NULL;
    int rc = kernels_device_open(&options, &device, &error);

    if (!rc)
        rc = kernels_lane_open(device, &lane, &error);
    if (rc)
        ck_assert_str_ne(error.message, "");
    else
        rc = run_everything(lane, whole);
    *calls = cuda_fault_calls();
    if (lane)
        check_lane_after(lane, rc ? rc : -ENOMEM, whole, expected);
    if (lane)
        kernels_lane_close(lane);
    if (device)
        kernels_device_close(device);
    return rc;
}

/* Makes the n-th call fail, for n = 1, 2, ... until there is no such call. */
START_TEST(any_call_may_fail)
{
    struct image_extent extent = {90, 40, 30};
    const struct kernels_shape shape = {KERNELS_SPHERE, {45, 20, 15}, {9}};
    const struct image_range range = {0, 1500};
    const struct kernels_level_set_label label = {
        .shapes = &shape, .shape_count = 1, .ranges = &range, .range_count = 1, .padding = none};
    const struct kernels_voxel seed = {45, 20, 15};
    const struct kernels_fuzzy_object objects[] = {{.seeds = &seed,
                                                    .seed_count = 1,
                                                    .mean = 1500,
                                                    .sigma = 500,
                                                    .homogeneity_sigma = 200,
                                                    .weight = 0.5,
                                                    .threshold = 30000,
                                                    .padding = none,
                                                    .map = true},
                                                   {.seeds = &seed,
                                                    .seed_count = 1,
                                                    .mean = 500,
                                                    .sigma = 500,
                                                    .homogeneity_sigma = 200,
                                                    .weight = 0.5,
                                                    .threshold = 30000,
                                                    .padding = none}};
    uint16_t *voxels = allocate(ref_voxels(extent), sizeof(*voxels));
    const struct ref_whole whole = {.job = {.extent = extent,
                                            .pixel = IMAGE_UINT16,
                                            .voxels = voxels,
                                            .labels = &label,
                                            .label_count = 1,
                                            .threads = 1},
                                    .objects = objects,
                                    .object_count = 2,
                                    .relative = true};
    struct ref_expected expected;
    int64_t calls;

    ref_smooth(extent, IMAGE_UINT16, 3000, 1, voxels);
    ref_expect(&whole, &expected);
    for (int64_t nth = 1;; nth++) {
        cuda_fault_at(nth, (enum cuda_fault_kind)_i);
        int rc = attempt(&whole, &expected, &calls);
        cuda_fault_at(0, CUDA_FAULT_UNKNOWN);
        if (calls < nth) {
            ck_assert_int_eq(rc, 0);
            ck_assert_int_gt(nth, 20);
            break;
        }
        ck_assert_msg(rc == -EIO || rc == -ENOMEM || rc == -ENODEV, "call %d: %s", (int)nth, strerror(-rc));
        const char *difference = ref_compare(cpu_lane, &whole, &expected);
        ck_assert_msg(*difference == '\0', "the CPU after call %d: %s", (int)nth, difference);
    }
    ref_expected_free(&expected);
    free(voxels);
}

END_TEST

#endif

static TCase *
add_case(Suite *suite, const char *name)
{
    TCase *tcase = tcase_create(name);

    suite_add_tcase(suite, tcase);
    tcase_add_unchecked_fixture(tcase, open_both, close_both);
    return tcase;
}

static Suite *
make_suite(void)
{
    Suite *suite = suite_create("cuda");
    TCase *devices = add_case(suite, "devices"), *parity = add_case(suite, "parity");
    TCase *level_set = add_case(suite, "level_set"), *fuzzy = add_case(suite, "fuzzy");
    TCase *lanes = add_case(suite, "lanes");

    tcase_add_test(devices, a_gpu_is_opened_by_index_and_uuid);
    tcase_add_test(devices, a_missing_gpu_is_refused);
    tcase_add_test(devices, auto_is_the_gpu);
    tcase_add_test(devices, value_ranges_are_the_cpus);
    tcase_add_test(devices, every_slice_is_uploaded);
    tcase_add_test(devices, every_row_is_uploaded);
    tcase_add_test(parity, random_jobs_are_the_references);
    tcase_add_loop_test(parity, patterns_are_the_references, 0, quick ? QUICK_EXTENTS : EXTENTS);
    if (!quick)
        tcase_add_test(parity, large_patterns_are_the_references);
    tcase_add_loop_test(parity, grey_volumes_are_the_references, 0, GREYS);
    if (getenv("NOCTULE_TEST_VOLUMES"))
        tcase_add_test(parity, real_series_are_the_references);
    tcase_add_test(level_set, a_small_level_set_is_the_reference);
    tcase_add_loop_test(fuzzy, a_small_object_is_the_reference, 0, 2);
    tcase_add_test(lanes, any_order_of_slices_gives_the_same_result);
    tcase_add_test(lanes, lanes_work_side_by_side);
    tcase_add_test(lanes, memory_is_reused_by_the_next_job);
    tcase_add_test(lanes, a_job_may_be_cancelled);
    tcase_add_test(lanes, an_oversized_job_is_out_of_memory);
    if (quick)
        return suite;
    tcase_add_test(lanes, more_than_2_31_voxels_are_flooded);
#ifdef NOCTULE_CUDA
    tcase_add_test(lanes, memory_is_reserved_before_the_first_job);
    tcase_add_loop_test(add_case(suite, "faults"), any_call_may_fail, CUDA_FAULT_UNKNOWN, CUDA_FAULT_LOST + 1);
#endif
    return suite;
}

int
main(int argc, char **argv)
{
    return gpu_suite_run(argc, argv, make_suite);
}
