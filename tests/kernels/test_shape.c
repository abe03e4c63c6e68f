/*
 * test_shape.c - compares rows of the parametric shapes with the tests of kernels.h, voxel by voxel, at critical
 * roundings: halves, thirds, huge and tiny numbers.
 */
#include "kernels/level_set/level_set_shape.h"
#include "tests/kernels/ref_level_set.h"
#include "tests/kernels/ref_volumes.h"

#include <check.h>
#include <stdlib.h>

static bool
holds(struct shape_interval interval, int64_t index)
{
    return interval.first <= index && index <= interval.last;
}

/* Counts voxels for which a row disagrees with the definition. */
static int64_t
wrong_in_rows(const struct kernels_shape *shape, struct image_extent extent)
{
    int64_t wrong = 0;

    for (int64_t z = 0; z < extent.slices; z++) {
        for (int64_t y = 0; y < extent.rows; y++) {
            struct shape_interval row = shape_row(shape, y, z, extent.columns);
            for (int64_t x = 0; x < extent.columns; x++)
                wrong += holds(row, x) != ref_in_shape(shape, x, y, z);
        }
    }
    return wrong;
}

/* Counts voxels of the shape outside the intervals of its axes. */
static int64_t
left_out(const struct kernels_shape *shape, struct image_extent extent)
{
    struct shape_interval columns = shape_extent(shape, 0, extent.columns);
    struct shape_interval rows = shape_extent(shape, 1, extent.rows);
    struct shape_interval slices = shape_extent(shape, 2, extent.slices);
    int64_t wrong = 0;

    for (int64_t z = 0; z < extent.slices; z++)
        for (int64_t y = 0; y < extent.rows; y++)
            for (int64_t x = 0; x < extent.columns; x++)
                wrong += ref_in_shape(shape, x, y, z) && !(holds(columns, x) && holds(rows, y) && holds(slices, z));
    return wrong;
}

static const double numbers[] = {0,    0.25,  0.5,    1.0 / 3, 1,    0x1.fffffffffffffp-1,
                                 1.5,  2,     2.5,    3.7,     5,    7.49,
                                 11,   1e-9,  1e-200, 1e9,     1e15, 1e16,
                                 1e17, 1e100, 1e155,  1e200,   1e300};

static double
pick(uint64_t *random)
{
    return numbers[ref_random_below(random, sizeof(numbers) / sizeof(numbers[0]))];
}

START_TEST(rows_equal_the_definition)
{
    struct image_extent extent = {23, 7, 6};
    uint64_t random = 3;

    for (int round = 0; round < 5000; round++) {
        struct kernels_shape shape = {.kind = (enum kernels_shape_kind)_i};
        for (int i = 0; i < 3; i++) {
            double center = pick(&random);
            shape.center[i] = ref_random_below(&random, 4) ? center : -center;
            /* The surface must pass near the volume even if the centre is far away. */
            shape.radius[i] = ref_random_below(&random, 2) ? pick(&random) : center;
        }
        ck_assert_int_eq(wrong_in_rows(&shape, extent), 0);
        ck_assert_int_eq(left_out(&shape, extent), 0);
    }
}

END_TEST

START_TEST(a_whole_sphere_equals_the_definition)
{
    struct image_extent extent = {129, 131, 127};
    const struct kernels_shape shapes[] = {
        {KERNELS_SPHERE, {64, 65, 63}, {50}},
        {KERNELS_SPHERE, {63.5, 65.25, 1.0 / 3}, {61.7}},
        {KERNELS_ELLIPSOID, {64, 65, 63}, {50, 40, 30}},
        {KERNELS_ELLIPSOID, {60.1, 65.7, 63.9}, {1.0 / 3, 77, 200}},
        {KERNELS_ELLIPSOID, {64, 65, 63}, {0, 20, 30}},
        {KERNELS_BOX, {64, 65, 63}, {0, 20.5, 30}},
    };

    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        ck_assert_int_eq(wrong_in_rows(&shapes[i], extent), 0);
        ck_assert_int_eq(left_out(&shapes[i], extent), 0);
    }
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("shape");
    TCase *all = tcase_create("all");
    SRunner *runner = srunner_create(suite);

    tcase_add_loop_test(all, rows_equal_the_definition, KERNELS_SPHERE, KERNELS_BOX + 1);
    tcase_add_test(all, a_whole_sphere_equals_the_definition);
    suite_add_tcase(suite, all);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
