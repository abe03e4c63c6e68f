/*
 * test_cuda_mask.c - compares masks on the GPU with their definitions, voxel for voxel, and with the CPU's for
 * volumes that are too large for those.
 *
 *   kernels_test_cuda_mask [--quick]    --quick: a selection for compute-sanitizer
 *
 * The case small alone (CK_RUN_CASE) is small enough for racecheck. Exits with 77 ("skipped" for CTest) if there is
 * no GPU.
 */
#include "tests/kernels/gpu_pair.h"
#include "tests/kernels/ref_mask.h"
#include "tests/kernels/ref_volumes.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

enum { RANDOM_JOBS = 1000, QUICK_JOBS = 48 };

static struct error error;

static void
check_job(const struct ref_mask_job *job, const char *name, uint64_t number)
{
    struct ref_mask_found expected[REF_MASKS];
    const char *message;

    ref_mask_expect(job, expected);
    message = ref_mask_compare(lanes[1], job, expected, NULL);
    if (*message)
        ck_abort_msg("%s %llu: %s", name, (unsigned long long)number, message);
    ref_mask_found_free(job, expected);
}

START_TEST(random_jobs_match_the_definition)
{
    for (uint64_t seed = 0; seed < (quick ? QUICK_JOBS : RANDOM_JOBS); seed++) {
        struct ref_mask_job *job = ref_mask_random(seed);

        check_job(job, "job", seed);
        ref_mask_free(job);
    }
}

END_TEST

static void
check_beside_cpu(const struct ref_mask_job *job, const char *name, uint64_t number)
{
    const int64_t words = (job->extent.columns + 63) / 64 * job->extent.rows * job->extent.slices;
    struct kernels_demand demand = {.of = {[KERNELS_MASK] = &job->demand}};
    struct kernels_mask_result result;
    struct ref_mask_found expected;
    const char *message;
    void *voxels;

    ck_assert_int_eq(kernels_volume_begin(lanes[0], job->extent, job->pixel, &demand, &voxels, &error), 0);
    memcpy(voxels, job->voxels, (size_t)ref_voxels(job->extent) * image_pixel_size(job->pixel));
    ck_assert_int_eq(kernels_volume_ready(lanes[0], 0, job->extent.slices, NULL), 0);
    ck_assert_int_eq(kernels_mask_run(lanes[0], 0, &job->requests[0].given, &result, &error), 0);
    expected = (struct ref_mask_found){
        .voxels = result.mask.voxels, .found = result.components_found, .kept = result.components_kept};
    memcpy(expected.first, result.first, sizeof(expected.first));
    memcpy(expected.last, result.last, sizeof(expected.last));
    expected.bits = malloc((size_t)words * sizeof(*expected.bits));
    ck_assert_ptr_nonnull(expected.bits);
    memcpy(expected.bits, result.mask.bits, (size_t)words * sizeof(*expected.bits));
    message = ref_mask_compare(lanes[1], job, &expected, NULL);
    if (*message)
        ck_abort_msg("%s %llu: %s", name, (unsigned long long)number, message);
    free(expected.bits);
}

/* A warp computes a piece of a row and reads words beyond its ends. Uses balls up to its limit. */
START_TEST(balls_extend_over_several_words)
{
    static const double spacing[3] = {0.1, 2, 2};
    static const double reaches[] = {0, 3, 6.4, 7.05, 13, 40, 90};
    static const struct image_extent extents[] = {{300, 9, 5}, {2048, 3, 2}, {2500, 3, 2}};
    const struct image_extent extent = extents[_i];
    uint8_t *in = malloc((size_t)ref_voxels(extent));

    ck_assert_ptr_nonnull(in);
    for (size_t r = 0; r < sizeof(reaches) / sizeof(reaches[0]); r++)
        for (int kind = KERNELS_MASK_GROW; kind <= KERNELS_MASK_CUT_BRIDGES; kind++) {
            const struct kernels_mask_step step = {(enum kernels_mask_step_kind)kind, reaches[r], false, false};
            bool sparse = kind == KERNELS_MASK_GROW || kind == KERNELS_MASK_CLOSE;
            struct ref_mask_job *job;

            ref_noise(extent, sparse ? 0.002 : 0.998, r, in);
            job = ref_mask_of(extent, spacing, in, &step, 1);
            job->demand.reach_mm = 96;      /* 960 voxels */
            if (kind == KERNELS_MASK_CLOSE) /* the definition takes hours on a padded copy */
                check_beside_cpu(job, "ball", r * 10 + (uint64_t)kind);
            else
                check_job(job, "ball", r * 10 + (uint64_t)kind);
            ref_mask_free(job);
        }
    free(in);
}

END_TEST

/* Checks that balls beyond a warp's reach go to the CPU. */
START_TEST(balls_beyond_are_refused)
{
    const struct kernels_mask_demand masks = {1, {0.1, 1, 1}, 97, false, false};
    const struct kernels_demand demand = {.of = {[KERNELS_MASK] = &masks}};
    void *voxels;

    ck_assert_int_eq(
        kernels_volume_begin(lanes[1], (struct image_extent){2500, 3, 2}, IMAGE_UINT8, &demand, &voxels, &error),
        -ENOMEM);
    ck_assert_int_eq(
        kernels_volume_begin(lanes[0], (struct image_extent){2500, 3, 2}, IMAGE_UINT8, &demand, &voxels, &error), 0);
}

END_TEST

/* Every kind of step once. */
static const struct kernels_mask_step all_steps[][REF_MASK_STEPS] = {
    {{KERNELS_MASK_FILL_SLICES, 0, false, false},
     {KERNELS_MASK_OPEN, 2.5, false, false},
     {KERNELS_MASK_KEEP_AT_LEAST, 0.2, false, false},
     {KERNELS_MASK_CLOSE, 6, false, false},
     {KERNELS_MASK_FILL_VOLUME, 0, false, false}},
    {{KERNELS_MASK_KEEP, 3, true, false},
     {KERNELS_MASK_CUT_BRIDGES, 1.7, false, false},
     {KERNELS_MASK_DROP_BELOW, 0.01, false, false},
     {KERNELS_MASK_GROW, 2, false, false},
     {KERNELS_MASK_SHRINK, 1, false, false}},
    {{KERNELS_MASK_OPEN, 1.7, false, true},
     {KERNELS_MASK_CLOSE, 4, false, true},
     {KERNELS_MASK_DROP_MEAN_BELOW, 60, true, false},
     {KERNELS_MASK_GROW, 9, false, true},
     {KERNELS_MASK_CUT_BRIDGES, 2, false, true}},
};

enum { STEP_LISTS = sizeof(all_steps) / sizeof(all_steps[0]) };

enum content { NOISE_31, NOISE_90, BALL, MAZE, SERPENTINE, BOARD, CONTENTS };

static void
draw(enum content content, struct image_extent extent, uint8_t *in)
{
    switch (content) {
    case NOISE_31:
        ref_noise(extent, 0.31, 1, in);
        break;
    case NOISE_90:
        ref_noise(extent, 0.9, 1, in);
        break;
    case BALL:
        ref_sphere(extent, (double)extent.columns / 3, in);
        break;
    case MAZE:
        ref_random_maze(extent, 1, in);
        break;
    case SERPENTINE:
        ref_serpentine(extent, 1, in);
        break;
    case BOARD:
        ref_checkerboard(extent, in);
        break;
    case CONTENTS:
        break;
    }
}

static void
check_large(struct image_extent extent, enum content content)
{
    static const double spacing[3] = {0.8, 0.8, 1};
    uint8_t *in = malloc((size_t)ref_voxels(extent));

    ck_assert_ptr_nonnull(in);
    draw(content, extent, in);
    for (size_t s = 0; s < STEP_LISTS; s++) {
        struct ref_mask_job *job = ref_mask_of(extent, spacing, in, all_steps[s], REF_MASK_STEPS);

        job->demand.reach_mm = 10;
        check_beside_cpu(job, "content and steps", (uint64_t)content * 10 + s);
        ref_mask_free(job);
    }
    free(in);
}

/*
 * Each reach along z has its own kernel, and those beyond the last one share another. The ball is narrow along each
 * axis in turn. Rows end within a word, and volumes within a block's part. Rows of 15 words are made in pieces.
 */
START_TEST(balls_of_each_radius)
{
    static const double spacings[][3] = {{1, 1, 1}, {3, 1, 1}, {1, 3, 1}};
    static const struct image_extent extents[] = {{330, 75, 70}, {60, 9, 40}, {930, 40, 11}};
    const double reach = _i;

    for (size_t e = 0; e < sizeof(extents) / sizeof(extents[0]); e++)
        for (int kind = KERNELS_MASK_GROW; kind <= KERNELS_MASK_CLOSE; kind++) {
            const struct kernels_mask_step step = {(enum kernels_mask_step_kind)kind, reach, false, false};
            const struct image_extent extent = extents[e];
            uint8_t *in = malloc((size_t)ref_voxels(extent));
            bool sparse = kind == KERNELS_MASK_GROW || kind == KERNELS_MASK_CLOSE;
            struct ref_mask_job *job;

            ck_assert_ptr_nonnull(in);
            ref_noise(extent, sparse ? 0.0005 : 0.9995, (uint64_t)_i, in);
            job = ref_mask_of(extent, spacings[_i % 3], in, &step, 1);
            check_beside_cpu(job, "reach", (uint64_t)_i * 100 + (uint64_t)kind);
            ref_mask_free(job);
            free(in);
        }
}

END_TEST

START_TEST(large_volumes_are_the_cpus)
{
    check_large((struct image_extent){512, 300, 90}, (enum content)_i);
    check_large((struct image_extent){3000, 700, 1}, (enum content)_i);
}

END_TEST

START_TEST(a_small_volume_is_the_cpus)
{
    for (int content = 0; content < CONTENTS; content += 2)
        check_large((struct image_extent){70, 20, 9}, (enum content)content);
}

END_TEST

#ifdef NOCTULE_CUDA

enum { FAULT_JOBS = STEP_LISTS + 3 };

struct fault_jobs {
    struct ref_mask_job *jobs[FAULT_JOBS];
    struct ref_mask_found expected[FAULT_JOBS][REF_MASKS];
};

/* Runs whole jobs, with sets, and with every kind of step. Returns the first error. */
static int
run_jobs(struct kernels_lane *lane, void *context)
{
    struct fault_jobs *whole = context;
    int rc = 0;

    for (size_t i = 0; i < FAULT_JOBS && rc == 0; i++) {
        const char *message = ref_mask_compare(lane, whole->jobs[i], whole->expected[i], &rc);

        if (rc == 0 && *message)
            ck_abort_msg("%s", message);
    }
    return rc;
}

START_TEST(any_call_may_fail)
{
    static const double spacing[3] = {1, 1, 1};
    const struct image_extent extent = {40, 9, 5};
    struct fault_jobs whole;
    uint8_t in[40 * 9 * 5];

    ref_noise(extent, 0.9, 2, in);
    for (size_t i = 0; i < FAULT_JOBS; i++) {
        whole.jobs[i] =
            i < STEP_LISTS ? ref_mask_of(extent, spacing, in, all_steps[i], REF_MASK_STEPS) : ref_mask_random(i + 1);
        ref_mask_expect(whole.jobs[i], whole.expected[i]);
    }
    fail_each_call((enum cuda_fault_kind)_i, run_jobs, &whole);
    for (size_t i = 0; i < FAULT_JOBS; i++) {
        ref_mask_found_free(whole.jobs[i], whole.expected[i]);
        ref_mask_free(whole.jobs[i]);
    }
}

END_TEST

#endif

static Suite *
make_suite(void)
{
    Suite *suite = suite_create("cuda_mask");
    TCase *parity = gpu_pair_case(suite, "parity"), *small = gpu_pair_case(suite, "small");

    tcase_add_test(small, a_small_volume_is_the_cpus);
    tcase_add_test(parity, random_jobs_match_the_definition);
    tcase_add_test(parity, balls_beyond_are_refused);
    if (quick)
        return suite;
    tcase_add_loop_test(parity, balls_extend_over_several_words, 0, 3);
    tcase_add_loop_test(parity, large_volumes_are_the_cpus, 0, CONTENTS);
    tcase_add_loop_test(parity, balls_of_each_radius, 0, 19);
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
