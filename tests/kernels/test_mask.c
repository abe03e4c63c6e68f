/*
 * test_mask.c - compares masks of the CPU backend with their definitions, voxel by voxel, on each available
 * instruction set, with 1, 2 and 3 threads.
 */
#include "kernels/mask/mask.h"
#include "tests/kernels/ref_mask.h"
#include "tests/kernels/ref_volumes.h"
#include "tests/kernels/variants.h"
#include "tests/share.h"
#include "tests/unit/suite.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { RANDOM_JOBS = 400 };

static struct error error;

static void
open_variants(void)
{
    variants_open(3);
}

static void
check_job(const struct ref_mask_job *job, const char *name, uint64_t number)
{
    struct ref_mask_found expected[REF_MASKS];

    ref_mask_expect(job, expected);
    for (size_t v = 0; v < variant_count; v++) {
        const char *message = ref_mask_compare(variants[v].lane, job, expected, NULL);

        if (*message)
            ck_abort_msg("%s %llu, %s, %d threads: %s", name, (unsigned long long)number, variants[v].isa,
                         variants[v].threads, message);
    }
    ref_mask_found_free(job, expected);
}

START_TEST(random_jobs_match_the_definition)
{
    for (uint64_t seed = 0; seed < RANDOM_JOBS; seed++) {
        if (!test_share_has(seed))
            continue;
        struct ref_mask_job *job = ref_mask_random(seed);

        check_job(job, "job", seed);
        ref_mask_free(job);
    }
}

END_TEST

static void
check_steps(struct image_extent extent, const double spacing[3], const uint8_t *in,
            const struct kernels_mask_step *steps, size_t count, const char *name)
{
    struct ref_mask_job *job = ref_mask_of(extent, spacing, in, steps, count);

    check_job(job, name, count);
    ref_mask_free(job);
}

static const struct image_extent adversarial[] = {
    {40, 40, 12}, {70, 30, 9}, {512, 5, 5}, {129, 64, 1}, {1, 33, 33},
};

/* Checks every single step on all contents with walls and corridors one voxel wide. */
START_TEST(mazes_and_boards)
{
    static const double spacing[3] = {1, 1, 1.5};
    static const struct kernels_mask_step steps[] = {
        {KERNELS_MASK_KEEP, 1, false, false},
        {KERNELS_MASK_KEEP, 3, true, false},
        {KERNELS_MASK_KEEP_AT_LEAST, 0.5, false, false},
        {KERNELS_MASK_DROP_BELOW, 0.004, true, false},
        {KERNELS_MASK_FILL_SLICES, 0, false, false},
        {KERNELS_MASK_FILL_SLICES, 0, true, false},
        {KERNELS_MASK_FILL_VOLUME, 0, false, false},
        {KERNELS_MASK_FILL_VOLUME, 0, true, false},
        {KERNELS_MASK_GROW, 1, false, false},
        {KERNELS_MASK_SHRINK, 1, false, false},
        {KERNELS_MASK_OPEN, 2.5, false, false},
        {KERNELS_MASK_CLOSE, 1.9, false, false},
        {KERNELS_MASK_CUT_BRIDGES, 1, false, false},
        {KERNELS_MASK_CUT_BRIDGES, 1, true, false},
        {KERNELS_MASK_GROW, 2.1, false, true},
        {KERNELS_MASK_SHRINK, 1, false, true},
        {KERNELS_MASK_OPEN, 1.5, false, true},
        {KERNELS_MASK_CLOSE, 2, false, true},
        {KERNELS_MASK_CUT_BRIDGES, 1, false, true},
        {KERNELS_MASK_DROP_MEAN_BELOW, 100, false, false},
        {KERNELS_MASK_DROP_MEAN_BELOW, 100.1, true, false},
    };
    const size_t count = sizeof(steps) / sizeof(steps[0]);
    const struct image_extent extent = adversarial[_i];
    uint8_t *in = allocate(ref_voxels(extent), 1);

    for (int kind = 0; kind < 8; kind++) {
        if (kind < 3)
            ref_serpentine(extent, kind, in);
        else if (kind == 3)
            ref_spiral(extent, in);
        else if (kind == 4)
            ref_random_maze(extent, 3, in);
        else if (kind == 5)
            ref_checkerboard(extent, in);
        else
            memset(in, kind - 6, (size_t)ref_voxels(extent));
        for (size_t s = 0; s < count; s++)
            if (test_share_has((uint64_t)kind * count + s))
                check_steps(extent, spacing, in, &steps[s], 1, "maze");
    }
    free(in);
}

END_TEST

/* Checks a ball of more than a word, of more than the row, and of only its centre. */
START_TEST(balls_of_all_sizes)
{
    static const double finest[3] = {0.1, 2, 2}, flat[3] = {1, 1, 50}, even[3] = {0.8, 0.8, 1};
    static const double reaches[] = {0, 0.05, 1, 6.4, 7.05, 13, 40, 100};
    const struct image_extent extent = {300, 9, 5}, square = {30, 30, 3};

    for (size_t r = 0; r < sizeof(reaches) / sizeof(reaches[0]); r++)
        for (int kind = KERNELS_MASK_GROW; kind <= KERNELS_MASK_CUT_BRIDGES && test_share_has(r); kind++) {
            const struct kernels_mask_step step = {(enum kernels_mask_step_kind)kind, reaches[r], false, false};
            bool sparse = kind == KERNELS_MASK_GROW || kind == KERNELS_MASK_CLOSE;

            if (kind == KERNELS_MASK_CLOSE && step.amount > 13) /* the reference is slow */
                continue;
            uint8_t *in = allocate(ref_voxels(extent), 1);
            char name[64];
            ref_noise(extent, sparse ? 0.01 : 0.995, r, in);
            snprintf(name, sizeof(name), "step %d, ball of %g mm", kind, reaches[r]);
            check_steps(extent, finest, in, &step, 1, name);
            ref_noise(square, sparse ? 0.03 : 0.97, r, in);
            check_steps(square, flat, in, &step, 1, name);
            check_steps(square, even, in, &step, 1, name);
            free(in);
        }
}

END_TEST

/*
 * Rows of more and of fewer words than the longest vector, and slices of more rows than one thread's part. Balls
 * leave the volume on all sides, or have one voxel.
 */
START_TEST(balls_in_all_shapes)
{
    static const struct image_extent shapes[] = {
        {260, 131, 2}, {600, 9, 2}, {500, 18, 2}, {20, 300, 2}, {65, 131, 2}, {7, 17, 40},
    };
    static const double spacings[2][3] = {{0.8, 0.8, 1}, {0.7421875, 0.9, 2.5}};
    static const double reaches[] = {0.5, 1, 3.3, 6};
    const struct image_extent extent = shapes[_i];
    uint8_t *in = allocate(ref_voxels(extent), 1);

    for (int kind = KERNELS_MASK_GROW; kind <= KERNELS_MASK_CLOSE; kind++)
        for (size_t r = 0; r < sizeof(reaches) / sizeof(reaches[0]); r++) {
            const struct kernels_mask_step step = {(enum kernels_mask_step_kind)kind, reaches[r], false, false};
            const bool sparse = kind == KERNELS_MASK_GROW || kind == KERNELS_MASK_CLOSE;

            if (!test_share_has((uint64_t)_i * 16 + (uint64_t)kind * 4 + r))
                continue;
            ref_noise(extent, sparse ? 0.004 : 0.999, r, in);
            check_steps(extent, spacings[r % 2], in, &step, 1, "shape, noise");
            memset(in, 1, (size_t)ref_voxels(extent));
            in[ref_voxels(extent) / 3] = 0;
            check_steps(extent, spacings[r % 2], in, &step, 1, "shape, all but one");
            memset(in, 0, (size_t)ref_voxels(extent));
            in[ref_voxels(extent) / 3] = in[0] = in[ref_voxels(extent) - 1] = 1;
            check_steps(extent, spacings[r % 2], in, &step, 1, "shape, three");
        }
    free(in);
}

END_TEST

/* A closing by any ball leaves a single voxel, and a row, as they are, also at the faces of the volume. */
START_TEST(closings_do_not_reach_the_faces)
{
    static const struct image_extent extents[] = {{9, 1, 1}, {7, 5, 4}, {66, 3, 2}};
    static const double spacing[3] = {1, 1.5, 2}, reaches[] = {0.5, 1, 3, 12};
    const struct image_extent extent = extents[_i];
    uint8_t *in = allocate(ref_voxels(extent), 1);

    for (int64_t last = 0; last < ref_voxels(extent); last++)
        for (size_t r = 0; r < sizeof(reaches) / sizeof(reaches[0]); r++) {
            const struct kernels_mask_step step = {KERNELS_MASK_CLOSE, reaches[r], false, r % 2 > 0};
            struct ref_mask_job *job, *same;
            struct ref_mask_found expected;

            memset(in, 0, (size_t)ref_voxels(extent));
            for (int64_t at = last / extent.columns * extent.columns; at < last; at++)
                in[at] = r > 1;
            in[last] = 1;
            job = ref_mask_of(extent, spacing, in, &step, 1);
            same = ref_mask_of(extent, spacing, in, NULL, 0);
            ref_mask_expect(same, &expected);
            for (size_t v = 0; v < variant_count; v++)
                ck_assert_str_eq(ref_mask_compare(variants[v].lane, job, &expected, NULL), "");
            ref_mask_found_free(same, &expected);
            ref_mask_free(same);
            ref_mask_free(job);
        }
    free(in);
}

END_TEST

/* Values of components vary about the limit. The longest row has more components than are averaged at once. */
START_TEST(components_are_dropped_by_their_means)
{
    static const struct image_extent extents[] = {{40, 30, 20}, {130, 70, 1}, {7, 3, 50}, {65, 1, 9}, {400000, 1, 1}};
    const struct image_extent extent = extents[_i];
    uint8_t *in = allocate(ref_voxels(extent), 1);

    for (uint64_t seed = 0; seed < (_i < 4 ? 12 : 2); seed++) {
        struct kernels_mask_step step = {KERNELS_MASK_DROP_MEAN_BELOW, -2.5 + 0.25 * (double)(seed % 5), seed % 2 > 0,
                                         false};
        uint64_t random = seed;
        struct ref_mask_job *job;

        ref_noise(extent, _i < 4 ? 0.4 + 0.05 * (double)(seed / 2) : 0.5, seed, in);
        job = ref_mask_of(extent, (const double[3]){1, 1, 1}, in, &step, 1);
        for (int64_t at = 0; at < ref_voxels(extent); at++)
            ((int16_t *)job->voxels)[at] =
                (int16_t)(in[at] ? ref_random_below(&random, 4) - 4 : -32768 + ref_random_below(&random, 9));
        job->requests[0].ranges[0] = (struct image_range){-4, -1};
        check_job(job, "means", seed);
        ref_mask_free(job);
    }
    free(in);
}

END_TEST

/* Few separate components, as many as are within reach of each other, and all numbers between. */
START_TEST(cores_of_all_densities)
{
    static const struct image_extent shapes[] = {{24, 24, 8}, {130, 20, 1}, {70, 6, 12}};
    static const double spacings[2][3] = {{1, 1, 1}, {1, 0.5, 3}};
    static const double reaches[] = {0, 1, 1.5};
    const struct image_extent extent = shapes[_i];
    uint8_t *in = allocate(ref_voxels(extent), 1);

    for (uint64_t number = 0; number < 24; number++) {
        const struct kernels_mask_step step = {KERNELS_MASK_CUT_BRIDGES, reaches[number % 3], number / 3 % 2 > 0,
                                               false};

        if (!test_share_has(number))
            continue;
        ref_noise(extent, 0.6 + 0.1 * (double)(number / 6), number, in);
        check_steps(extent, spacings[number % 2], in, &step, 1, "cores");
    }
    free(in);
}

END_TEST

/* A row of crosses that touch: each must lose the touching part, for numbers below and above the reporting limit. */
START_TEST(crosses_are_parted)
{
    static const int64_t counts[] = {1, 2, 3, 17, 4096, 4097};
    static const double spacing[3] = {1, 1, 1};
    static const struct kernels_mask_step step = {KERNELS_MASK_CUT_BRIDGES, 1, false, false};
    const int64_t count = counts[_i];
    const struct image_extent extent = {3 * count, 3, 3};
    uint8_t *in = allocate(ref_voxels(extent), 1);
    struct ref_mask_found expected;
    struct ref_mask_job *job, *parted;

    for (int64_t at = 0; at < ref_voxels(extent); at++) {
        const int64_t away[3] = {at % extent.columns % 3 - 1, at / extent.columns % 3 - 1, at / extent.columns / 3 - 1};

        in[at] = away[0] * away[0] + away[1] * away[1] + away[2] * away[2] <= 1;
    }
    job = ref_mask_of(extent, spacing, in, &step, 1);
    for (int64_t at = 0; at < ref_voxels(extent); at++)
        in[at] = in[at] && (at % extent.columns % 3 == 1 || at % extent.columns == 0 ||
                            at % extent.columns == extent.columns - 1);
    parted = ref_mask_of(extent, spacing, in, NULL, 0);
    ref_mask_expect(parted, &expected);
    expected.found = expected.kept = count;
    for (size_t v = 0; v < variant_count; v++)
        ck_assert_str_eq(ref_mask_compare(variants[v].lane, job, &expected, NULL), "");
    ref_mask_found_free(parted, &expected);
    ref_mask_free(parted);
    ref_mask_free(job);
    free(in);
}

END_TEST

/* Two cubes joined by a bar are one component. After the cut they must be two, each whole. */
START_TEST(bridges_are_cut)
{
    static const double spacing[3] = {1, 1, 1};
    const struct image_extent extent = {40, 15, 15};
    const struct kernels_mask_step steps[2] = {{KERNELS_MASK_CUT_BRIDGES, 2, false, false},
                                               {KERNELS_MASK_KEEP, 1, false, false}};
    uint8_t *in = allocate(ref_voxels(extent), 1);
    int64_t found = 0, kept = 0, voxels = 0;

    for (int64_t at = 0; at < ref_voxels(extent); at++) {
        int64_t x = at % 40, y = at / 40 % 15, z = at / 40 / 15;
        bool cube = y >= 2 && y <= 12 && z >= 2 && z <= 12 && ((x >= 3 && x <= 15) || x >= 20);

        in[at] = (cube && x < 36) || (y == 7 && z == 7 && x >= 3 && x < 36);
    }
    check_steps(extent, spacing, in, steps, 2, "bridge");
    struct ref_mask_job *job = ref_mask_of(extent, spacing, in, steps, 2);

    ref_mask_step(job, &steps[0], in, &found, &kept);
    ck_assert_int_eq(found, 2);
    ref_mask_step(job, &steps[1], in, &found, &kept);
    ref_mask_free(job);
    ck_assert_int_eq(found, 2);
    ck_assert_int_eq(kept, 1);
    for (int64_t at = 0; at < ref_voxels(extent); at++)
        voxels += in[at];
    ck_assert_int_gt(voxels, 1500); /* only the larger cube, without its corners */
    ck_assert_int_le(voxels, 11 * 11 * 16);
    free(in);
}

END_TEST

/* Checks that the call fails with COMPUTE_FAILED and does not write. */
static void
assert_refused(struct kernels_lane *lane, const struct kernels_mask_request *given, size_t place, int rc)
{
    struct kernels_mask_result result;

    ck_assert_int_eq(kernels_mask_run(lane, place, given, &result, &error), rc);
    ck_assert_int_eq(error.code, CODE_COMPUTE_FAILED);
}

static void
begin(struct kernels_lane *lane, const struct kernels_mask_demand *masks)
{
    const struct kernels_demand demand = {.of = {[KERNELS_MASK] = masks}};
    void *voxels;

    ck_assert_int_eq(kernels_volume_begin(lane, (struct image_extent){4, 4, 4}, IMAGE_UINT8, &demand, &voxels, NULL),
                     0);
    memset(voxels, 0, 64);
}

START_TEST(requests_are_checked)
{
    static const struct kernels_mask_step wrong[] = {
        {KERNELS_MASK_KEEP, 0, false, false},
        {KERNELS_MASK_KEEP, 1.5, false, false},
        {KERNELS_MASK_KEEP, 257, false, false},
        {KERNELS_MASK_KEEP_AT_LEAST, -0.1, false, false},
        {KERNELS_MASK_KEEP_AT_LEAST, 1.1, false, false},
        {KERNELS_MASK_DROP_BELOW, -1, false, false},
        {KERNELS_MASK_DROP_BELOW, INFINITY, false, false},
        {KERNELS_MASK_GROW, 2.1, false, false},
        {KERNELS_MASK_OPEN, -1, false, false},
        {KERNELS_MASK_CUT_BRIDGES, 1, false, false},
        {KERNELS_MASK_CLOSE, 1, false, false},
        {KERNELS_MASK_DROP_MEAN_BELOW, NAN, false, false},
        {KERNELS_MASK_STEPS, 1, false, false},
    };
    struct kernels_mask_demand demand = {2, {1, 1, 1}, 2, false, false};
    struct kernels_lane *lane = variants[0].lane;
    struct image_range ranges[3] = {{0, 1}, {0, 1}, {0, 1}};
    struct kernels_mask_request given = {.ranges = ranges, .range_count = 1};
    uint64_t *memory;

    begin(lane, &demand);
    assert_refused(lane, &given, 0, -EBUSY);
    ck_assert_int_eq(kernels_mask_memory(lane, 0, &memory, &error), -EBUSY);
    ck_assert_int_eq(kernels_volume_ready(lane, 0, 4, NULL), 0);
    assert_refused(lane, &given, 2, -EINVAL);
    ck_assert_int_eq(kernels_mask_memory(lane, 2, &memory, &error), -EINVAL);
    given.range_count = 3;
    assert_refused(lane, &given, 0, -EINVAL);
    given.range_count = 1;
    given.step_count = 1;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        given.steps = &wrong[i];
        assert_refused(lane, &given, 1, -EINVAL);
    }
    given.step_count = 0;
    for (int axis = 0; axis < 3; axis++) {
        struct kernels_mask_demand unsound = demand;

        unsound.spacing[axis] = axis - 1;
        if (axis == 2)
            unsound.reach_mm = -1;
        begin(lane, &unsound);
        ck_assert_int_eq(kernels_volume_ready(lane, 0, 4, NULL), 0);
        assert_refused(lane, &given, 0, -EINVAL);
    }
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("mask");
    TCase *tests = tcase_create("masks");

    tcase_add_unchecked_fixture(tests, open_variants, variants_close);
    tcase_add_test(tests, requests_are_checked);
    tcase_add_test(tests, bridges_are_cut);
    tcase_add_test(tests, random_jobs_match_the_definition);
    tcase_add_test(tests, balls_of_all_sizes);
    tcase_add_loop_test(tests, balls_in_all_shapes, 0, 6);
    tcase_add_loop_test(tests, closings_do_not_reach_the_faces, 0, 3);
    tcase_add_loop_test(tests, components_are_dropped_by_their_means, 0, 5);
    tcase_add_loop_test(tests, cores_of_all_densities, 0, 3);
    tcase_add_loop_test(tests, crosses_are_parted, 0, 6);
    tcase_add_loop_test(tests, mazes_and_boards, 0, sizeof(adversarial) / sizeof(adversarial[0]));
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
