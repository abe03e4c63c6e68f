/* test_kernels.c - devices, lanes, rejected calls, memory, and the value range of a volume. */
#include "kernels/cpu/device.h"
#include "kernels/level_set/level_set.h"
#include "kernels/range/range.h"
#include "tests/kernels/ref_volumes.h"

#include <check.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

static struct kernels_device *device;
static struct kernels_lane *lane;
static struct error error;

static const struct image_extent extent = {5, 4, 3};
static const struct image_range any = {-10, 10};
static const struct kernels_shape point = {.kind = KERNELS_SPHERE};
static const struct kernels_level_set_label sound = {
    .shapes = &point, .shape_count = 1, .ranges = &any, .range_count = 1, .padding = {1, 0}};

static void
open_lane(void)
{
    struct kernels_device_options options = {.backend = "cpu", .threads = 2};

    ck_assert_int_eq(kernels_device_open(&options, &device, &error), 0);
    ck_assert_int_eq(kernels_lane_open(device, &lane, &error), 0);
    error.message[0] = '\0';
}

static void
close_lane(void)
{
    kernels_lane_close(lane);
    kernels_device_close(device);
}

static void *
begin(size_t labels)
{
    void *voxels = NULL;

    ck_assert_int_eq(kernels_volume_begin(
                         lane, extent, IMAGE_INT16,
                         &(struct kernels_demand){.of[KERNELS_LEVEL_SET] =
                                                      labels > 0 ? &(struct kernels_level_set_demand){labels} : NULL},
                         &voxels, NULL),
                     0);
    memset(voxels, 0, 5 * 4 * 3 * 2);
    return voxels;
}

START_TEST(a_device_describes_itself)
{
    ck_assert_str_eq(kernels_device_backend(device), "cpu");
    ck_assert_ptr_nonnull(strstr(kernels_device_description(device), "2 threads"));
    ck_assert_int_eq(kernels_device_threads(device), 2);
}

END_TEST

START_TEST(a_device_uses_all_processors_by_default)
{
    struct kernels_device_options options = {.backend = "cpu", .threads = 0};
    struct kernels_device *whole;

    ck_assert_int_eq(kernels_device_open(&options, &whole, NULL), 0);
    ck_assert_int_ge(kernels_device_threads(whole), 1);
    kernels_device_close(whole);
}

END_TEST

START_TEST(unknown_devices_are_refused)
{
    struct kernels_device_options unknown = {.backend = "abacus", .threads = 1};
    struct kernels_device_options negative = {.backend = "cpu", .threads = -1};
    struct kernels_device_options sound_options = {.backend = "cpu", .threads = 1};
    struct kernels_device *none;

    ck_assert_int_eq(kernels_device_open(&unknown, &none, &error), -ENODEV);
    ck_assert_ptr_nonnull(strstr(error.message, "abacus"));
    ck_assert_int_eq(kernels_device_open(&negative, &none, &error), -EINVAL);
    ck_assert_int_eq(cpu_device_open(&sound_options, "SSE9", &none, &error), -ENODEV);
    ck_assert_ptr_nonnull(strstr(error.message, "SSE9"));
    ck_assert_int_eq(kernels_device_open(&unknown, &none, NULL), -ENODEV);
}

END_TEST

START_TEST(closing_null_has_no_effect)
{
    kernels_lane_close(NULL);
    kernels_device_close(NULL);
}

END_TEST

START_TEST(impossible_volumes_are_refused)
{
    static const struct {
        struct image_extent extent;
        int rc;
    } cases[] = {
        {{0, 1, 1}, -EINVAL},
        {{1, -1, 1}, -EINVAL},
        {{1, 1, 0}, -EINVAL},
        {{KERNELS_MAX_VOXELS, 2, 1}, -E2BIG},
        {{1 << 11, 1 << 11, (1 << 11) + 1}, -E2BIG},
        {{INT64_MAX, INT64_MAX, INT64_MAX}, -E2BIG},
        {{1, INT64_MAX, 2}, -E2BIG},
    };

    void *voxels;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        error.message[0] = '\0';
        ck_assert_int_eq(
            kernels_volume_begin(lane, cases[i].extent, IMAGE_UINT8, &(struct kernels_demand){0}, &voxels, &error),
            cases[i].rc);
        ck_assert_str_ne(error.message, "");
    }
    ck_assert_int_eq(
        kernels_volume_begin(lane, extent, (enum image_pixel)7, &(struct kernels_demand){0}, &voxels, &error), -EINVAL);
    ck_assert_uint_eq(image_pixel_size((enum image_pixel)7), 0);
}

END_TEST

START_TEST(more_than_the_available_memory_is_refused)
{
    static const size_t counts[] = {1000000, SIZE_MAX / 2, SIZE_MAX};
    struct image_extent large = {1 << 11, 1 << 11, 1 << 11};
    void *voxels;

    for (size_t i = 0; i < 3; i++) {
        ck_assert_int_eq(kernels_volume_begin(lane, large, IMAGE_INT16,
                                              &(struct kernels_demand){.of[KERNELS_LEVEL_SET] = &(
                                                                           struct kernels_level_set_demand){counts[i]}},
                                              &voxels, &error),
                         -ENOMEM);
        ck_assert_ptr_nonnull(strstr(error.message, "2048"));
    }
    ck_assert_int_eq(kernels_volume_ready(lane, 0, 1, NULL), -EINVAL);
    begin(1); /* the lane still works */
}

END_TEST

/* Returns the size of this process's address space in bytes. */
static rlim_t
address_space(void)
{
    FILE *file = fopen("/proc/self/statm", "r");
    unsigned long pages = 0;

    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fscanf(file, "%lu", &pages), 1);
    fclose(file);
    return (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE);
}

START_TEST(more_than_the_limit_is_out_of_memory)
{
    struct image_extent large = {512, 512, 512};
    struct rlimit before, tight;
    void *voxels;
    int rc;

    begin(1);
    ck_assert_int_eq(getrlimit(RLIMIT_AS, &before), 0);
    tight = before;
    tight.rlim_cur = address_space() + (64 << 20);
    ck_assert_int_eq(setrlimit(RLIMIT_AS, &tight), 0);
    rc = kernels_volume_begin(lane, large, IMAGE_INT16,
                              &(struct kernels_demand){.of[KERNELS_LEVEL_SET] = &(struct kernels_level_set_demand){1}},
                              &voxels, &error);
    ck_assert_int_eq(setrlimit(RLIMIT_AS, &before), 0);
    ck_assert_int_eq(rc, -ENOMEM);
    ck_assert_int_eq(
        kernels_volume_begin(lane, large, IMAGE_INT16,
                             &(struct kernels_demand){.of[KERNELS_LEVEL_SET] = &(struct kernels_level_set_demand){1}},
                             &voxels, NULL),
        0);
}

END_TEST

START_TEST(unsound_labels_are_refused)
{
    const struct image_range three[3] = {{0, 1}, {0, 1}, {0, 1}};
    const struct kernels_shape bad[] = {
        {.kind = (enum kernels_shape_kind)9},
        {.kind = KERNELS_SPHERE, .center = {NAN}},
        {.kind = KERNELS_SPHERE, .center = {0, 0, INFINITY}},
        {.kind = KERNELS_SPHERE, .radius = {-1}},
        {.kind = KERNELS_SPHERE, .radius = {INFINITY}},
        {.kind = KERNELS_BOX, .radius = {1, 1, -0.5}},
        {.kind = KERNELS_ELLIPSOID, .radius = {1, NAN, 1}},
    };
    struct kernels_level_set_label label = {
        .shapes = &point, .shape_count = 1, .ranges = three, .range_count = 2, .padding = {1, 0}};

    begin(1);
    ck_assert_int_eq(kernels_level_set_begin(lane, &label, 1, &error), -EINVAL);
    ck_assert_ptr_nonnull(strstr(error.message, "2 ranges"));
    label.range_count = 0;
    ck_assert_int_eq(kernels_level_set_begin(lane, &label, 1, &error), -EINVAL);
    label = (struct kernels_level_set_label){
        .shapes = &point, .shape_count = 1, .ranges = NULL, .range_count = 1, .padding = {1, 0}};
    ck_assert_int_eq(kernels_level_set_begin(lane, &label, 1, &error), -EINVAL);
    label = (struct kernels_level_set_label){
        .shapes = NULL, .shape_count = 1, .ranges = three, .range_count = 3, .padding = {1, 0}};
    ck_assert_int_eq(kernels_level_set_begin(lane, &label, 1, &error), -EINVAL);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        label = (struct kernels_level_set_label){
            .shapes = &bad[i], .shape_count = 1, .ranges = three, .range_count = 3, .padding = {1, 0}};
        ck_assert_int_eq(kernels_level_set_begin(lane, &label, 1, &error), -EINVAL);
    }
    label = (struct kernels_level_set_label){
        .shapes = &point, .shape_count = 1, .ranges = three, .range_count = 3, .padding = {1, 0}};
    ck_assert_int_eq(kernels_level_set_begin(lane, &label, 1, &error), 0);
}

END_TEST

START_TEST(calls_out_of_order_are_refused)
{
    struct kernels_level_set_label two[] = {sound, sound};
    struct image_mask masks[2];
    struct image_range range;
    int8_t codes[60];

    ck_assert_int_eq(kernels_volume_ready(lane, 0, 1, NULL), -EINVAL);
    ck_assert_int_eq(kernels_level_set_begin(lane, &sound, 1, &error), -EINVAL);
    ck_assert_int_eq(kernels_level_set_run(lane, &sound, 1, masks, &error), -EINVAL);
    ck_assert_int_eq(kernels_volume_range(lane, any, &range, NULL), -EINVAL);

    begin(2);
    ck_assert_int_eq(kernels_level_set_begin(lane, &sound, 1, &error), -EINVAL);
    ck_assert_int_eq(kernels_level_set_begin(lane, two, 2, &error), 0);
    ck_assert_int_eq(kernels_level_set_begin(lane, two, 2, &error), -EINVAL);

    ck_assert_int_eq(kernels_volume_ready(lane, 0, 3, NULL), 0);
    ck_assert_int_eq(kernels_level_set_codes(lane, 0, codes, NULL), -EINVAL);
    ck_assert_int_eq(kernels_level_set_run(lane, two, 1, masks, &error), -EINVAL);
    ck_assert_int_eq(kernels_level_set_run(lane, two, 2, masks, &error), 0);
    ck_assert_int_eq(kernels_level_set_codes(lane, 1, codes, NULL), 0);
    ck_assert_int_eq(kernels_level_set_codes(lane, 2, codes, NULL), -EINVAL);

    begin(2);
    ck_assert_int_eq(kernels_volume_ready(lane, 0, 1, NULL), 0);
    ck_assert_int_eq(kernels_level_set_begin(lane, two, 2, &error), -EINVAL);
    ck_assert_int_eq(kernels_volume_ready(lane, 1, 2, NULL), 0);
    ck_assert_int_eq(kernels_level_set_run(lane, two, 2, masks, &error), 0);
}

END_TEST

/* A job must not use memory that it did not request, even if the job before had it. */
START_TEST(results_outside_the_request_are_refused)
{
    struct image_mask mask;
    int8_t codes[60];

    begin(1);
    ck_assert_int_eq(kernels_volume_ready(lane, 0, 3, NULL), 0);
    ck_assert_int_eq(kernels_level_set_run(lane, &sound, 1, &mask, &error), 0);
    begin(0);
    ck_assert_int_eq(kernels_volume_ready(lane, 0, 3, NULL), 0);
    ck_assert_int_eq(kernels_level_set_run(lane, &sound, 1, &mask, &error), -EINVAL);
    ck_assert_str_ne(error.message, "");
    ck_assert_int_eq(kernels_level_set_codes(lane, 0, codes, &error), -EINVAL);
}

END_TEST

START_TEST(slices_are_announced_once)
{
    struct image_mask mask;
    struct image_range range;

    begin(1);
    ck_assert_int_eq(kernels_level_set_begin(lane, &sound, 1, NULL), 0);
    ck_assert_int_eq(kernels_volume_ready(lane, -1, 1, NULL), -EINVAL);
    ck_assert_int_eq(kernels_volume_ready(lane, 0, -1, NULL), -EINVAL);
    ck_assert_int_eq(kernels_volume_ready(lane, 2, 2, NULL), -EINVAL);
    ck_assert_int_eq(kernels_volume_ready(lane, 1, INT64_MAX, NULL), -EINVAL);
    ck_assert_int_eq(kernels_volume_ready(lane, 4, 0, NULL), -EINVAL);
    ck_assert_int_eq(kernels_volume_ready(lane, 3, 0, NULL), 0);
    ck_assert_int_eq(kernels_volume_ready(lane, 2, 1, NULL), 0);
    ck_assert_int_eq(kernels_volume_ready(lane, 2, 1, NULL), -EALREADY);
    ck_assert_int_eq(kernels_volume_ready(lane, 0, 1, NULL), 0);
    ck_assert_int_eq(kernels_level_set_run(lane, &sound, 1, &mask, &error), -EBUSY);
    ck_assert_ptr_nonnull(strstr(error.message, "1 of 3 slices"));
    ck_assert_int_eq(kernels_volume_range(lane, any, &range, NULL), -EBUSY);
    ck_assert_int_eq(kernels_volume_ready(lane, 1, 1, NULL), 0);
    ck_assert_int_eq(kernels_level_set_run(lane, &sound, 1, &mask, &error), 0);
}

END_TEST

START_TEST(rows_are_announced_once)
{
    struct image_range range;

    begin(0);
    ck_assert_int_eq(kernels_rows_ready(lane, 3, 0, 1, NULL), -EINVAL);
    ck_assert_int_eq(kernels_rows_ready(lane, -1, 0, 1, NULL), -EINVAL);
    ck_assert_int_eq(kernels_rows_ready(lane, 0, -1, 1, NULL), -EINVAL);
    ck_assert_int_eq(kernels_rows_ready(lane, 0, 2, 3, NULL), -EINVAL);
    ck_assert_int_eq(kernels_rows_ready(lane, 0, 2, -1, NULL), -EINVAL);
    ck_assert_int_eq(kernels_rows_ready(lane, 0, 4, 0, NULL), 0);
    ck_assert_int_eq(kernels_volume_ready(lane, 1, 2, NULL), 0);
    ck_assert_int_eq(kernels_rows_ready(lane, 0, 3, 1, NULL), 0);
    ck_assert_int_eq(kernels_rows_ready(lane, 0, 0, 2, NULL), 0);
    ck_assert_int_eq(kernels_volume_range(lane, any, &range, &error), -EBUSY);
    ck_assert_ptr_nonnull(strstr(error.message, "1 of 3 slices"));
    ck_assert_int_eq(kernels_rows_ready(lane, 0, 2, 1, NULL), 0);
    ck_assert_int_eq(kernels_rows_ready(lane, 0, 2, 1, NULL), -EALREADY);
    ck_assert_int_eq(kernels_rows_ready(lane, 1, 0, 1, NULL), -EALREADY);
    ck_assert_int_eq(kernels_volume_range(lane, (struct image_range){1, 0}, &range, &error), 0);
}

END_TEST

/* Checks that a lane can run smaller and larger jobs in turn, also after a cancelled job. */
START_TEST(a_lane_runs_consecutive_jobs)
{
    for (int64_t side = 1; side < 40; side += 3) {
        struct image_extent cube = {side, side, side};
        struct image_range zero = {0, 0};
        struct kernels_shape all = {KERNELS_BOX, {0, 0, 0}, {100, 100, 100}};
        struct kernels_level_set_label label = {
            .shapes = &all, .shape_count = 1, .ranges = &zero, .range_count = 1, .padding = {1, 0}};
        struct image_mask mask;
        void *voxels;

        begin(3);
        ck_assert_int_eq(kernels_volume_begin(
                             lane, cube, IMAGE_UINT8,
                             &(struct kernels_demand){.of[KERNELS_LEVEL_SET] = &(struct kernels_level_set_demand){1}},
                             &voxels, NULL),
                         0);
        memset(voxels, 0, (size_t)(side * side * side));
        ck_assert_int_eq(kernels_level_set_begin(lane, &label, 1, NULL), 0);
        ck_assert_int_eq(kernels_volume_ready(lane, 0, side, NULL), 0);
        ck_assert_int_eq(kernels_level_set_run(lane, &label, 1, &mask, NULL), 0);
        ck_assert_int_eq(mask.voxels, side * side * side);
    }
}

END_TEST

/* Returns whether all pages of these bytes are resident. Unwritten memory is not. */
static bool
is_resident(void *bytes, size_t size)
{
    unsigned char pages[1 << 13];
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), count = size / page;

    ck_assert_uint_le(count, sizeof(pages));
    ck_assert_int_eq(mincore(bytes, count * page, pages), 0);
    for (size_t i = 0; i < count; i++)
        if (!(pages[i] & 1))
            return false;
    return true;
}

/* Checks that the memory of the largest job stays, so that later jobs neither allocate nor touch new pages. */
START_TEST(a_lane_reuses_its_memory_in_the_next_job)
{
    const struct image_extent large = {256, 256, 128}, small = {64, 64, 8};
    const size_t bytes = (size_t)256 * 256 * 128 * 2;
    const struct kernels_demand demand = {.of = {NULL}};
    void *first, *between, *again;

    ck_assert_int_eq(kernels_volume_begin(lane, large, IMAGE_INT16, &demand, &first, NULL), 0);
    ck_assert(!is_resident(first, bytes));
    memset(first, 1, bytes);
    ck_assert_int_eq(kernels_volume_begin(lane, small, IMAGE_INT16, &demand, &between, NULL), 0);
    ck_assert_int_eq(kernels_volume_begin(lane, large, IMAGE_INT16, &demand, &again, NULL), 0);
    ck_assert_ptr_eq(between, first);
    ck_assert_ptr_eq(again, first);
    ck_assert(is_resident(again, bytes));
}

END_TEST

START_TEST(a_volume_needs_no_labels)
{
    struct image_range range, none = {1, 0};
    int16_t *voxels = begin(0);

    voxels[7] = -3;
    voxels[59] = 9;
    ck_assert_int_eq(kernels_volume_ready(lane, 0, 3, NULL), 0);
    ck_assert_int_eq(kernels_volume_range(lane, none, &range, NULL), 0);
    ck_assert_int_eq(range.lo, -3);
    ck_assert_int_eq(range.hi, 9);
}

END_TEST

static int64_t
value_of(enum image_pixel pixel, const void *voxels, int64_t i)
{
    if (pixel == IMAGE_UINT8)
        return ((const uint8_t *)voxels)[i];
    if (pixel == IMAGE_INT16)
        return ((const int16_t *)voxels)[i];
    return ((const uint16_t *)voxels)[i];
}

static void
check_range(struct kernels_lane *on, uint64_t *random)
{
    struct image_extent size = {1 + ref_random_below(random, 150), 1 + ref_random_below(random, 4),
                                1 + ref_random_below(random, 5)};
    enum image_pixel pixel = (enum image_pixel)ref_random_below(random, 3);
    int64_t lowest = INT64_MAX, highest = INT64_MIN;
    int32_t lo = (int32_t)ref_random_below(random, 70000) - 35000;
    struct image_range padding = {lo, lo + (int32_t)ref_random_below(random, 40000) - 1}, range;
    void *voxels;

    ck_assert_int_eq(kernels_volume_begin(on, size, pixel, &(struct kernels_demand){0}, &voxels, NULL), 0);
    for (int64_t i = 0; i < ref_voxels(size); i++) {
        int64_t value;
        ref_paint(pixel, &(uint8_t){1}, 1, (int32_t)(ref_random(random) & 0xFFFF), 0,
                  (char *)voxels + (size_t)i * image_pixel_size(pixel));
        value = value_of(pixel, voxels, i);
        if (padding.lo <= value && value <= padding.hi)
            continue;
        lowest = value < lowest ? value : lowest;
        highest = value > highest ? value : highest;
    }
    ck_assert_int_eq(kernels_volume_ready(on, 0, size.slices, NULL), 0);
    if (lowest > highest) {
        ck_assert_int_eq(kernels_volume_range(on, padding, &range, NULL), -ENODATA);
        return;
    }
    ck_assert_int_eq(kernels_volume_range(on, padding, &range, NULL), 0);
    ck_assert_int_eq(range.lo, lowest);
    ck_assert_int_eq(range.hi, highest);
}

START_TEST(value_ranges_equal_plain_loops)
{
    static const char *const names[] = {"scalar", "AVX2", "AVX-512"};
    struct kernels_device_options options = {.backend = "cpu", .threads = 2};
    const char *name = isa_find(names[_i]) ? names[_i] : NULL;
    struct kernels_device *own;
    struct kernels_lane *on;
    uint64_t random = 4;

    ck_assert_int_eq(cpu_device_open(&options, name, &own, NULL), 0);
    ck_assert_int_eq(kernels_lane_open(own, &on, NULL), 0);
    for (int round = 0; round < 1000; round++)
        check_range(on, &random);
    kernels_lane_close(on);
    kernels_device_close(own);
}

END_TEST

START_TEST(only_padding_has_no_range)
{
    struct image_range zero = {0, 0}, all = {INT32_MIN, INT32_MAX}, range;
    int16_t *voxels = begin(0);

    ck_assert_int_eq(kernels_volume_ready(lane, 0, 3, NULL), 0);
    ck_assert_int_eq(kernels_volume_range(lane, zero, &range, NULL), -ENODATA);
    ck_assert_int_eq(kernels_volume_range(lane, all, &range, NULL), -ENODATA);
    voxels[30] = INT16_MAX;
    ck_assert_int_eq(kernels_volume_range(lane, zero, &range, NULL), 0);
    ck_assert_int_eq(range.lo, INT16_MAX);
    ck_assert_int_eq(range.hi, INT16_MAX);
    voxels[30] = INT16_MIN;
    ck_assert_int_eq(kernels_volume_range(lane, zero, &range, NULL), 0);
    ck_assert_int_eq(range.lo, INT16_MIN);
    ck_assert_int_eq(range.hi, INT16_MIN);
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("kernels");
    TCase *all = tcase_create("all");
    SRunner *runner = srunner_create(suite);

    tcase_add_checked_fixture(all, open_lane, close_lane);
    tcase_add_test(all, a_device_describes_itself);
    tcase_add_test(all, a_device_uses_all_processors_by_default);
    tcase_add_test(all, unknown_devices_are_refused);
    tcase_add_test(all, closing_null_has_no_effect);
    tcase_add_test(all, impossible_volumes_are_refused);
    tcase_add_test(all, more_than_the_available_memory_is_refused);
    tcase_add_test(all, more_than_the_limit_is_out_of_memory);
    tcase_add_test(all, unsound_labels_are_refused);
    tcase_add_test(all, calls_out_of_order_are_refused);
    tcase_add_test(all, results_outside_the_request_are_refused);
    tcase_add_test(all, slices_are_announced_once);
    tcase_add_test(all, rows_are_announced_once);
    tcase_add_test(all, a_lane_runs_consecutive_jobs);
    tcase_add_test(all, a_lane_reuses_its_memory_in_the_next_job);
    tcase_add_test(all, a_volume_needs_no_labels);
    tcase_add_loop_test(all, value_ranges_equal_plain_loops, 0, 3);
    tcase_add_test(all, only_padding_has_no_range);
    suite_add_tcase(suite, all);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
