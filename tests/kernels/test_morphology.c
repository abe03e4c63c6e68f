/*
 * test_morphology.c - compares counts of shape on the CPU with plain loops: every count, on each available
 * instruction set, with 1, 2 and 3 threads.
 */
#include "tests/kernels/ref_morphology.h"
#include "tests/kernels/ref_texture.h"
#include "tests/kernels/ref_volumes.h"
#include "tests/kernels/variants.h"

#include <errno.h>
#include <string.h>

enum { RANDOM_JOBS = 120 };

static struct error error;
static uint64_t random_state;

static void
open_variants(void)
{
    variants_open(3);
}

/* Region: all, scattered, a ball with holes, one voxel, empty; in one slice if there is only one. */
enum kind { ALL, SCATTERED, BALL, ONE_VOXEL, NOTHING, KINDS };

struct job {
    struct image_extent extent;
    enum image_pixel pixel;
    void *voxels;
    uint64_t *bits, *kept;
    struct morphology_region region;
};

static bool
job_has(const struct job *job, enum kind kind, int64_t x, int64_t y, int64_t z)
{
    const struct image_extent *extent = &job->extent;
    const int64_t from[3] = {2 * x - extent->columns, 2 * y - extent->rows, 2 * z - extent->slices};

    if (kind == SCATTERED)
        return ref_random_below(&random_state, 4) > 0;
    if (kind == BALL)
        return from[0] * from[0] + from[1] * from[1] + from[2] * from[2] < 15 * 15 &&
               ref_random_below(&random_state, 20) > 0;
    return kind == ONE_VOXEL && x == extent->columns / 2 && y == extent->rows / 2 && z == 0;
}

/* Sets the padding bits of rows at random. */
static void
fill_bits(struct job *job, enum kind kind)
{
    const int64_t words = (job->extent.columns + 63) / 64;

    for (int64_t i = 0; i < words * 64 * job->extent.rows * job->extent.slices; i++) {
        const int64_t x = i / 64 % words * 64 + i % 64, row = i / 64 / words;
        const bool in = x >= job->extent.columns
                            ? ref_random_below(&random_state, 2)
                            : job_has(job, kind, x, row % job->extent.rows, row / job->extent.rows);

        job->bits[i / 64] |= (uint64_t)in << i % 64;
    }
}

static struct image_extent
random_extent(int64_t number)
{
    struct image_extent extent = {1 + ref_random_below(&random_state, 140), 1 + ref_random_below(&random_state, 14),
                                  1 + ref_random_below(&random_state, 9)};

    if (number % 5 == 1)
        extent.slices = 1;
    if (number % 5 == 2)
        extent.columns = 1 + 63 * ref_random_below(&random_state, 3);
    return extent;
}

static void
open_job(struct job *job, int64_t number)
{
    const enum kind kind = (enum kind)(number % KINDS);
    const bool some = ref_random_below(&random_state, 2);

    *job = (struct job){.extent = random_extent(number), .pixel = (enum image_pixel)ref_random_below(&random_state, 3)};
    const size_t words = ref_texture_values(job->pixel) / 64;

    job->voxels = allocate(ref_voxels(job->extent), image_pixel_size(job->pixel));
    for (int64_t i = 0; i < ref_voxels(job->extent) * (int64_t)image_pixel_size(job->pixel); i++)
        ((uint8_t *)job->voxels)[i] = (uint8_t)ref_random(&random_state);
    job->region.table_count = ref_random_below(&random_state, 3) ? 1 : (size_t)job->extent.slices;
    job->kept = allocate((int64_t)(words * job->region.table_count), sizeof(*job->kept));
    for (size_t i = 0; i < words * job->region.table_count; i++)
        job->kept[i] = some ? ref_random(&random_state) : ~UINT64_C(0);
    if (kind != ALL) {
        job->bits =
            allocate((job->extent.columns + 63) / 64 * job->extent.rows * job->extent.slices, sizeof(*job->bits));
        fill_bits(job, kind);
    }
    job->region.bits = job->bits;
    job->region.kept = job->kept;
}

static void
begin_job(const struct job *job, struct kernels_lane *lane)
{
    const struct kernels_demand demand = {REF_TEXTURE_DEMAND};
    void *voxels;

    ck_assert_int_eq(kernels_volume_begin(lane, job->extent, job->pixel, &demand, &voxels, NULL), 0);
    memcpy(voxels, job->voxels, (size_t)ref_voxels(job->extent) * image_pixel_size(job->pixel));
    ck_assert_int_eq(kernels_volume_ready(lane, 0, job->extent.slices, NULL), 0);
}

static void
close_job(struct job *job)
{
    free(job->voxels);
    free(job->bits);
    free(job->kept);
}

/* Returns the minimum of the kept values; 0 if there are none or, at random, instead of it. */
static uint32_t
least_of(const struct job *job)
{
    uint32_t least = UINT32_MAX;

    for (int64_t i = 0; i < ref_voxels(job->extent); i++) {
        const int64_t x = i % job->extent.columns, row = i / job->extent.columns;
        const uint32_t value = (uint32_t)(ref_stored(job->pixel, job->voxels, i) - ref_texture_smallest(job->pixel));

        if (value < least && ref_morphology_keeps(job->extent, job->pixel, job->voxels, &job->region, x,
                                                  row % job->extent.rows, row / job->extent.rows))
            least = value;
    }
    return least == UINT32_MAX || ref_random_below(&random_state, 3) == 0 ? 0 : least;
}

/* The jobs must be small, because pairs are counted one by one. */
START_TEST(random_lags)
{
    for (int64_t number = test_share_first(); number < RANDOM_JOBS; number += test_share()) {
        struct texture_box box;
        struct job job;

        random_state = (uint64_t)number + 1;
        open_job(&job, number);
        texture_box_of(job.bits, &job.extent, &box);
        if (ref_voxels(job.extent) > 4000) {
            close_job(&job);
            continue;
        }
        const struct lags request = {job.region, least_of(&job)};
        uint64_t *expected = allocate((int64_t)lags_size(&box), sizeof(*expected));
        uint64_t *counts = allocate((int64_t)lags_size(&box), sizeof(*counts));

        ref_lags(job.extent, job.pixel, job.voxels, &request, expected);
        for (size_t i = 0; i < variant_count; i++) {
            begin_job(&job, variants[i].lane);
            memset(counts, 0xA5, lags_size(&box) * sizeof(*counts));
            ck_assert_msg(lags_run(variants[i].lane, &request, counts, &error) == 0, "%s", error.message);
            variant_assert_same(counts, expected, lags_size(&box), number, &variants[i]);
        }
        free(expected);
        free(counts);
        close_job(&job);
    }
}

END_TEST

/* Checks that with the largest values and the most voxels no sum reaches the prime. */
START_TEST(lags_of_a_full_box)
{
    const int64_t edge = test_share() > 1 ? 32 : 128; /* the maximum, except with sanitizers */
    const struct image_extent extent = {edge, edge, edge};
    const struct kernels_demand demand = {REF_TEXTURE_DEMAND};
    static uint64_t kept[1024];
    const struct lags request = {{NULL, kept, 1}, 0};
    const uint64_t values = 65535;
    uint64_t *counts = allocate(LAGS_KINDS * ref_voxels(extent), sizeof(*counts));
    struct kernels_lane *lane = variants[variant_count - 1].lane;
    void *voxels;

    kept[1023] = ~UINT64_C(0);
    ck_assert_int_eq(kernels_volume_begin(lane, extent, IMAGE_UINT16, &demand, &voxels, NULL), 0);
    memset(voxels, 0xFF, (size_t)ref_voxels(extent) * 2);
    ck_assert_int_eq(kernels_volume_ready(lane, 0, extent.slices, NULL), 0);
    ck_assert_msg(lags_run(lane, &request, counts, &error) == 0, "%s", error.message);
    for (int64_t i = 0; i < ref_voxels(extent); i++) {
        const int64_t apart[3] = {i % edge, i / edge % edge, i / edge / edge};
        uint64_t pairs = 1;

        for (int axis = 0; axis < 3; axis++)
            pairs *= (uint64_t)(edge - apart[axis]) * (apart[axis] ? 2 : 1);
        ck_assert_uint_eq(counts[LAGS_PAIRS * ref_voxels(extent) + i], pairs);
        ck_assert_uint_eq(counts[LAGS_VALUES * ref_voxels(extent) + i], pairs * values);
        ck_assert_uint_eq(counts[LAGS_PRODUCTS * ref_voxels(extent) + i], pairs * values * values);
        ck_assert_uint_eq(counts[LAGS_SQUARES * ref_voxels(extent) + i], pairs * values * values);
    }
    free(counts);
}

END_TEST

START_TEST(lengths)
{
    static const struct {
        int64_t size[3], length[3];
        bool fits;
    } boxes[] = {
        {{1, 1, 1}, {1, 1, 1}, true},       {{2, 3, 4}, {3, 6, 8}, true},
        {{7, 12, 13}, {16, 24, 32}, true},  {{128, 128, 128}, {256, 256, 256}, true},
        {{2048, 1, 1}, {4096, 1, 1}, true}, {{129, 128, 128}, {0, 0, 0}, false},
        {{2049, 1, 1}, {0, 0, 0}, false},
    };

    for (size_t i = 0; i < sizeof(boxes) / sizeof(boxes[0]); i++) {
        int64_t length[3];

        ck_assert_int_eq(lags_lengths(boxes[i].size, length), boxes[i].fits);
        for (int axis = 0; axis < 3 && boxes[i].fits; axis++)
            ck_assert_int_eq(length[axis], boxes[i].length[axis]);
    }
}

END_TEST

START_TEST(random_jobs)
{
    for (int64_t number = test_share_first(); number < RANDOM_JOBS; number += test_share()) {
        struct job job;

        random_state = (uint64_t)number + 1;
        open_job(&job, number);
        const size_t size = morphology_size(job.extent.slices);
        uint64_t *expected = allocate((int64_t)size, sizeof(*expected));
        uint64_t *counts = allocate((int64_t)size, sizeof(*counts));

        ref_morphology(job.extent, job.pixel, job.voxels, &job.region, expected);
        for (size_t i = 0; i < variant_count; i++) {
            begin_job(&job, variants[i].lane);
            memset(counts, 0xA5, size * sizeof(*counts));
            ck_assert_msg(morphology_run(variants[i].lane, &job.region, counts, &error) == 0, "%s", error.message);
            variant_assert_same(counts, expected, size, number, &variants[i]);
        }
        free(expected);
        free(counts);
        close_job(&job);
    }
}

END_TEST

START_TEST(refusals)
{
    const struct image_extent extent = {3, 3, 3};
    const struct kernels_demand demand = {REF_TEXTURE_DEMAND}, none = {0};
    const uint64_t kept[3 * 4] = {0};
    const struct morphology_region region = {NULL, kept, 1}, no_table = {NULL, NULL, 1}, two_tables = {NULL, kept, 2};
    struct kernels_lane *lane = variants[0].lane;
    uint64_t counts[MORPHOLOGY_CONFIGURATIONS + 3 * MORPHOLOGY_SUMS];
    void *voxels;

    ck_assert_int_eq(kernels_volume_begin(lane, extent, IMAGE_UINT8, &demand, &voxels, NULL), 0);
    ck_assert_int_eq(morphology_run(lane, &region, counts, &error), -EBUSY);
    ck_assert_int_eq(kernels_volume_ready(lane, 0, 3, NULL), 0);
    ck_assert_int_eq(morphology_run(lane, &no_table, counts, &error), -EINVAL);
    ck_assert_int_eq(morphology_run(lane, &two_tables, counts, &error), -EINVAL);
    ck_assert_int_eq(morphology_run(lane, &region, NULL, &error), -EINVAL);
    ck_assert_int_eq(morphology_run(lane, &region, counts, &error), 0);
    ck_assert_int_eq(lags_run(lane, &(struct lags){no_table, 0}, counts, &error), -EINVAL);
    ck_assert_int_eq(lags_run(lane, &(struct lags){two_tables, 0}, counts, &error), -EINVAL);
    ck_assert_int_eq(lags_run(lane, &(struct lags){region, 0}, NULL, &error), -EINVAL);
    ck_assert_int_eq(lags_run(lane, &(struct lags){region, 0}, counts, &error), 0);
    ck_assert_int_eq(kernels_volume_begin(lane, (struct image_extent){2049, 1, 1}, IMAGE_UINT8, &demand, &voxels, NULL),
                     0);
    ck_assert_int_eq(kernels_volume_ready(lane, 0, 1, NULL), 0);
    ck_assert_int_eq(lags_run(lane, &(struct lags){region, 0}, counts, &error), -E2BIG);
    ck_assert_int_eq(kernels_volume_begin(lane, extent, IMAGE_UINT8, &none, &voxels, NULL), 0);
    ck_assert_int_eq(kernels_volume_ready(lane, 0, 3, NULL), 0);
    ck_assert_int_eq(morphology_run(lane, &region, counts, &error), -EINVAL);
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("morphology");
    TCase *tcase = tcase_create("morphology");
    SRunner *runner;
    int failed;

    tcase_add_unchecked_fixture(tcase, open_variants, variants_close);
    tcase_add_test(tcase, random_jobs);
    tcase_add_test(tcase, random_lags);
    tcase_add_test(tcase, lags_of_a_full_box);
    tcase_add_test(tcase, lengths);
    tcase_add_test(tcase, refusals);
    suite_add_tcase(suite, tcase);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
