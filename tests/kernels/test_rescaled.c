/*
 * test_rescaled.c - compares operations on slices with slopes of 1, 2, 4 and 8 with the plain references on the same values
 * in one scale. Also checks that the number of threads has no influence on values that have no common scale.
 */
#include "kernels/rescaled/rescaled.h"
#include "tests/kernels/ref_coarse.h"
#include "tests/kernels/ref_fuzzy.h"
#include "tests/kernels/ref_mask.h"
#include "tests/kernels/ref_smooth.h"
#include "tests/kernels/ref_volumes.h"

#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { CASES = 60, SIDE = 24 };

static struct error error;

/* A volume with a rescale per slice, and its values in one scale. Padding is the stored value 0. */
struct pair {
    struct rescaled_values values;
    uint16_t *stored, *whole;
    struct image_rescale rescales[SIDE];
    struct image_range limits[SIDE];
    int64_t voxels, words;
};

static void
make_pair(struct pair *pair, uint64_t *seed)
{
    const struct image_extent extent = {1 + ref_random_below(seed, 5 * SIDE), 1 + ref_random_below(seed, SIDE),
                                        1 + ref_random_below(seed, SIDE)};

    pair->voxels = image_voxels(&extent);
    pair->words = (extent.columns + 63) / 64 * extent.rows * extent.slices;
    pair->stored = calloc((size_t)pair->voxels, sizeof(*pair->stored));
    pair->whole = calloc((size_t)pair->voxels, sizeof(*pair->whole));
    ck_assert(pair->stored && pair->whole);
    ref_smooth(extent, IMAGE_UINT16, 4095, ref_random(seed), pair->stored);
    for (int64_t z = 0; z < extent.slices; z++) {
        const int power = (int)ref_random_below(seed, 4);

        pair->rescales[z] = (struct image_rescale){1 << power, 0};
        pair->limits[z] = (struct image_range){0, UINT16_MAX};
        for (int64_t i = z * image_slice_voxels(&extent); i < (z + 1) * image_slice_voxels(&extent); i++) {
            pair->stored[i] = ref_random_below(seed, 20) == 0 ? 0 : (uint16_t)(pair->stored[i] >> power);
            pair->whole[i] = (uint16_t)(pair->stored[i] << power);
        }
    }
    pair->values = (struct rescaled_values){.voxels = pair->stored,
                                            .pixel = IMAGE_UINT16,
                                            .extent = extent,
                                            .rescales = pair->rescales,
                                            .limits = pair->limits,
                                            .padding = {0, 0},
                                            .whole = true,
                                            .threads = 3};
}

static void
free_pair(struct pair *pair)
{
    free(pair->stored);
    free(pair->whole);
}

static void
random_region(const struct pair *pair, double share, uint64_t *seed, uint64_t *bits)
{
    const int64_t columns = pair->values.extent.columns;

    memset(bits, 0, (size_t)pair->words * sizeof(*bits));
    for (int64_t i = 0; i < pair->voxels; i++)
        bits[i / columns * ((columns + 63) / 64) + i % columns / 64] |=
            (uint64_t)((double)ref_random_below(seed, 1000) < 1000 * share) << i % columns % 64;
}

START_TEST(filters)
{
    uint64_t seed = 1;

    for (int i = 0; i < CASES; i++) {
        struct pair pair;

        make_pair(&pair, &seed);
        uint64_t *bits[2] = {calloc((size_t)pair.words, 8), calloc((size_t)pair.words, 8)};
        uint64_t *region = calloc((size_t)pair.words, 8);
        int32_t *filtered = calloc((size_t)pair.voxels, sizeof(*filtered));
        const double spacing[3] = {1, 1.5, 2.5};
        struct smooth_request request = {.sigma_mm = 0.1 * (double)ref_random_below(&seed, 60),
                                         .hi = UINT16_MAX,
                                         .range = {500, 2500},
                                         .padding = {0, 0},
                                         .region = i % 2 ? region : NULL,
                                         .bits = bits[0]};
        struct rescaled_filter filter = {.spacing = {1, 1.5, 2.5},
                                         .sigma_mm = request.sigma_mm,
                                         .rescale = {1, 0},
                                         .range = {500, 2500},
                                         .region = request.region,
                                         .bits = bits[1]};

        random_region(&pair, 0.7, &seed, region);
        ref_smooth_values(pair.values.extent, IMAGE_UINT16, pair.whole, spacing, &request, filtered);
        ref_smooth_results(pair.values.extent, filtered, &request);
        ck_assert_int_eq(rescaled_smooth(&pair.values, &filter, &error), 0);
        ck_assert_mem_eq(bits[0], bits[1], (size_t)pair.words * 8);
        /* values that have no common scale */
        pair.values.whole = false;
        for (int64_t z = 0; z < pair.values.extent.slices; z++)
            pair.rescales[z] =
                (struct image_rescale){0.1 * (double)(1 + ref_random_below(&seed, 90)), 0.01 * (double)z};
        ck_assert_int_eq(rescaled_smooth(&pair.values, &filter, &error), 0);
        filter.bits = bits[0];
        pair.values.threads = 1;
        ck_assert_int_eq(rescaled_smooth(&pair.values, &filter, &error), 0);
        ck_assert_mem_eq(bits[0], bits[1], (size_t)pair.words * 8);
        filter.sigma_mm = 30;
        ck_assert_int_eq(rescaled_smooth(&pair.values, &filter, &error), -E2BIG);
        free(bits[0]);
        free(bits[1]);
        free(region);
        free(filtered);
        free_pair(&pair);
    }
}

END_TEST

START_TEST(blocks)
{
    uint64_t seed = 2;

    for (int i = 0; i < CASES; i++) {
        const double spacing[3] = {1, 1, 1};
        struct pair pair;

        make_pair(&pair, &seed);
        /* offset 32768, as the service sets for 16-bit pixels */
        struct coarse_request request = {.hi = UINT16_MAX, .offset = 32768, .scale = 1, .padding = {0, 0}};

        coarse_grid_find(pair.values.extent, spacing, (double)(1 + ref_random_below(&seed, 9)), &request.grid);
        const int64_t count = image_voxels(&request.grid.extent);
        int16_t *found[2] = {calloc((size_t)count, 2), calloc((size_t)count, 2)};

        request.blocks = found[0];
        ref_coarse(pair.values.extent, IMAGE_UINT16, pair.whole, &request, found[0]);
        for (int64_t z = 0; z < pair.values.extent.slices; z++)
            pair.rescales[z].intercept = -32768;
        pair.values.padded = -32768;
        ck_assert_int_eq(rescaled_blocks(&pair.values, &request.grid, found[1], &error), 0);
        ck_assert_mem_eq(found[0], found[1], (size_t)count * 2);
        free(found[0]);
        free(found[1]);
        free_pair(&pair);
    }
}

END_TEST

START_TEST(means)
{
    uint64_t seed = 3;
    const double spacing[3] = {1, 1, 1};

    for (int i = 0; i < CASES; i++) {
        struct pair pair;

        make_pair(&pair, &seed);
        const int64_t columns = pair.values.extent.columns;
        const struct kernels_mask_step step = {
            .kind = KERNELS_MASK_DROP_MEAN_BELOW, .amount = (double)ref_random_below(&seed, 2500), .corners = i % 2};
        uint64_t *bits[2] = {calloc((size_t)pair.words, 8), calloc((size_t)pair.words, 8)};
        uint8_t *in = calloc((size_t)pair.voxels, 1);
        int64_t counts[2];

        random_region(&pair, 0.1 + 0.13 * (i % 7), &seed, bits[0]);
        for (int64_t v = 0; v < pair.voxels; v++)
            in[v] = image_has(bits[0], columns, v / columns, v % columns);
        struct ref_mask_job *job = ref_mask_of(pair.values.extent, spacing, in, &step, 1);
        void *drawn = job->voxels;

        job->voxels = pair.whole;
        job->pixel = IMAGE_UINT16;
        ref_mask_step(job, &step, in, &counts[0], &counts[1]);
        job->voxels = drawn;
        ref_mask_free(job);
        ck_assert_int_eq(rescaled_keep_means(&pair.values, bits[0], step.corners, step.amount, bits[1], &error), 0);
        for (int64_t v = 0; v < pair.voxels; v++)
            ck_assert_int_eq(in[v], image_has(bits[1], columns, v / columns, v % columns));
        free(bits[0]);
        free(bits[1]);
        free(in);
        free_pair(&pair);
    }
}

END_TEST

START_TEST(connectedness)
{
    uint64_t seed = 4;

    for (int i = 0; i < CASES; i++) {
        struct rescaled_fuzzy found[2] = {{NULL, NULL}, {NULL, NULL}};
        struct kernels_fuzzy_object objects[2];
        struct kernels_voxel seeds[2];
        struct pair pair;
        uint16_t *maps[2];

        make_pair(&pair, &seed);
        const int64_t columns = pair.values.extent.columns;
        uint64_t *start = calloc((size_t)pair.words, 8);
        uint8_t *in = calloc((size_t)pair.voxels, 1);

        random_region(&pair, 0.01, &seed, start);
        for (int k = 0; k < 2; k++) {
            seeds[k] = (struct kernels_voxel){ref_random_below(&seed, columns),
                                              ref_random_below(&seed, pair.values.extent.rows),
                                              ref_random_below(&seed, pair.values.extent.slices)};
            objects[k] = (struct kernels_fuzzy_object){.seeds = &seeds[k],
                                                       .seed_count = 1,
                                                       .start = k == 1 && i % 2 ? start : NULL,
                                                       .mean = 1000 + 700 * k,
                                                       .sigma = 400,
                                                       .homogeneity_sigma = 200 + (double)i,
                                                       .weight = 0.5,
                                                       .threshold = (uint16_t)(20000 + 500 * i),
                                                       .padding = {0, 0},
                                                       .map = k == i % 2};
            maps[k] = calloc((size_t)pair.voxels, sizeof(**maps));
            ref_fuzzy_map(pair.values.extent, IMAGE_UINT16, pair.whole, &objects[k], maps[k]);
        }
        for (int run = 0; run < 2; run++) { /* the second one has the memory of the first */
            ck_assert_int_eq(rescaled_fuzzy(&pair.values, objects, 2, i % 3 == 0, found, &error), 0);
            for (size_t k = 0; k < 2; k++) {
                ref_fuzzy_object(pair.voxels, objects, maps, 2, k, i % 3 == 0, in);
                for (int64_t v = 0; v < pair.voxels; v++)
                    ck_assert_int_eq(in[v], image_has(found[k].bits, columns, v / columns, v % columns));
                if (objects[k].map)
                    ck_assert_mem_eq(found[k].map, maps[k], (size_t)pair.voxels * sizeof(**maps));
            }
        }
        objects[1].sigma = 0;
        ck_assert_int_eq(rescaled_fuzzy(&pair.values, objects, 2, false, found, &error), -EINVAL);
        for (int k = 0; k < 2; k++) {
            free(maps[k]);
            free(found[k].bits);
            free(found[k].map);
        }
        free(start);
        free(in);
        free_pair(&pair);
    }
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("rescaled");
    TCase *tcase = tcase_create("rescaled");
    SRunner *runner;
    int failed;

    tcase_add_test(tcase, filters);
    tcase_add_test(tcase, blocks);
    tcase_add_test(tcase, means);
    tcase_add_test(tcase, connectedness);
    suite_add_tcase(suite, tcase);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
