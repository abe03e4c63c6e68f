/*
 * test_fuzzy.c - compares fuzzy connectedness of the CPU backend with the bucket Dijkstra: every map and every
 * object, bit for bit, on each available instruction set, with 1, 2 and 3 threads.
 */
#include "kernels/fuzzy/affinity.h"
#include "kernels/fuzzy/fuzzy.h"
#include "tests/kernels/ref_fuzzy.h"
#include "tests/kernels/ref_volumes.h"
#include "tests/kernels/variants.h"
#include "tests/share.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    RANDOM_VOLUMES = 400,
    MAX_OBJECTS = 4,
    MAX_SEEDS = 5,
};

static const struct image_range no_padding = {1, 0};

static size_t jobs_checked;

static void
open_variants(void)
{
    variants_open(3);
}

struct job {
    struct image_extent extent;
    enum image_pixel pixel;
    void *voxels;
    struct kernels_fuzzy_object objects[MAX_OBJECTS];
    size_t count;
    bool relative;
};

static struct kernels_fuzzy_demand
demand_of(const struct job *job)
{
    struct kernels_fuzzy_demand demand = {.objects = job->count, .relative = job->relative};

    for (size_t i = 0; i < job->count; i++)
        demand.maps += job->objects[i].map;
    return demand;
}

static int
run(struct kernels_lane *lane, const struct job *job, struct kernels_fuzzy_result *results)
{
    const struct kernels_fuzzy_demand objects = demand_of(job);
    const struct kernels_demand demand = {.of[KERNELS_FUZZY] = &objects};
    void *voxels;
    int rc = kernels_volume_begin(lane, job->extent, job->pixel, &demand, &voxels, NULL);

    if (rc)
        return rc;
    memcpy(voxels, job->voxels, (size_t)ref_voxels(job->extent) * image_pixel_size(job->pixel));
    rc = kernels_volume_ready(lane, 0, job->extent.slices, NULL);
    if (rc)
        return rc;
    return kernels_fuzzy_run(lane, job->objects, job->count, job->relative, results, NULL);
}

struct expected {
    uint16_t *maps[MAX_OBJECTS];
    uint64_t *bits[MAX_OBJECTS];
    int64_t voxels[MAX_OBJECTS];
};

static int64_t
words_of(struct image_extent extent)
{
    return (extent.columns + 63) / 64 * extent.rows * extent.slices;
}

static struct expected
expect(const struct job *job)
{
    int64_t count = ref_voxels(job->extent), words_per_row = (job->extent.columns + 63) / 64;
    struct expected expected = {0};
    uint8_t *in = allocate(count, 1);

    for (size_t i = 0; i < job->count; i++) {
        expected.maps[i] = allocate(count, sizeof(uint16_t));
        ref_fuzzy_map(job->extent, job->pixel, job->voxels, &job->objects[i], expected.maps[i]);
    }
    for (size_t i = 0; i < job->count; i++) {
        ref_fuzzy_object(count, job->objects, expected.maps, job->count, i, job->relative, in);
        expected.bits[i] = allocate(words_of(job->extent), sizeof(uint64_t));
        for (int64_t v = 0; v < count; v++) {
            int64_t row = v / job->extent.columns, x = v % job->extent.columns;

            expected.bits[i][row * words_per_row + x / 64] |= (uint64_t)in[v] << x % 64;
            expected.voxels[i] += in[v];
        }
    }
    free(in);
    return expected;
}

static void
expected_free(struct expected *expected)
{
    for (size_t i = 0; i < MAX_OBJECTS; i++) {
        free(expected->maps[i]);
        free(expected->bits[i]);
    }
}

static void
check_variant(const struct variant *variant, const struct job *job, const struct expected *expected, const char *what)
{
    struct kernels_fuzzy_result results[MAX_OBJECTS];
    size_t map_bytes = (size_t)ref_voxels(job->extent) * sizeof(uint16_t);

    ck_assert_int_eq(run(variant->lane, job, results), 0);
    for (size_t i = 0; i < job->count; i++) {
        ck_assert_msg(!results[i].map == !job->objects[i].map,
                      "%s, object %zu: a map is where none was wanted, or none where one was", what, i);
        ck_assert_msg(!results[i].map || memcmp(results[i].map, expected->maps[i], map_bytes) == 0,
                      "%s, object %zu: wrong map on %s with %d threads", what, i, variant->isa, variant->threads);
        ck_assert_int_eq(results[i].object.words_per_row, (job->extent.columns + 63) / 64);
        ck_assert_msg(
            memcmp(results[i].object.bits, expected->bits[i], (size_t)words_of(job->extent) * sizeof(uint64_t)) == 0,
            "%s, object %zu: wrong object on %s with %d threads", what, i, variant->isa, variant->threads);
        ck_assert_int_eq(results[i].object.voxels, expected->voxels[i]);
    }
}

/* Checks a third of the variants in turn, with the requested maps, and without maps. */
static void
check_job(struct job *job, const char *what)
{
    struct expected expected = expect(job);

    for (size_t i = jobs_checked++ % 3; i < variant_count; i += 3) {
        struct job without = *job;

        check_variant(&variants[i], job, &expected, what);
        for (size_t object = 0; object < job->count; object++)
            without.objects[object].map = false;
        check_variant(&variants[i], &without, &expected, what);
    }
    expected_free(&expected);
}

static struct image_extent
random_extent(uint64_t *random)
{
    static const int64_t columns[] = {1, 2, 3, 7, 31, 63, 64, 65, 127, 129, 513, 700};
    static const int64_t others[] = {1, 1, 2, 3, 5, 9, 17, 35};
    struct image_extent extent = {columns[ref_random_below(random, 12)], others[ref_random_below(random, 8)],
                                  others[ref_random_below(random, 8)]};

    /* Make x thin in some jobs. */
    if (ref_random_below(random, 3) == 0) {
        int64_t long_side = extent.columns;
        extent.columns = extent.slices;
        extent.slices = long_side;
    }
    return extent;
}

static void
random_voxels(uint64_t *random, const struct job *job, int32_t top)
{
    struct image_extent extent = job->extent;
    struct kernels_voxel root;
    uint64_t seed = ref_random(random);
    uint8_t *in = allocate(ref_voxels(extent), 1);

    switch (ref_random_below(random, 6)) {
    case 0:
        ref_smooth(extent, job->pixel, top, seed, job->voxels);
        break;
    case 1:
        ref_vessels(extent, job->pixel, top, 1, seed, job->voxels, &root);
        break;
    case 2:
        ref_plateaus(extent, job->pixel, top, 3, seed, job->voxels);
        break;
    case 3:
        ref_scatter(extent, job->pixel, top, seed, job->voxels);
        break;
    case 4:
        ref_random_maze(extent, seed, in);
        ref_paint(job->pixel, in, ref_voxels(extent), top, 0, job->voxels);
        break;
    case 5:
        ref_serpentine(extent, (int)(seed % 3), in);
        ref_paint(job->pixel, in, ref_voxels(extent), top, top / 2, job->voxels);
        break;
    }
    free(in);
}

static struct kernels_fuzzy_object
random_object(uint64_t *random, const struct job *job, int32_t top, struct kernels_voxel *seeds)
{
    static const uint16_t thresholds[] = {0, 1, 20000, 32767, 32768, 50000, 65534, 65535};
    static const double weights[] = {0, 0.3, 0.5, 1};
    struct image_extent extent = job->extent;
    struct kernels_fuzzy_object object = {
        .seeds = seeds,
        .seed_count = (size_t)ref_random_below(random, MAX_SEEDS + 1),
        .mean = (double)ref_random_below(random, 2 * top + 1) / 2,
        .sigma = top * (0.01 + 0.1 * (double)ref_random_below(random, 8)),
        .homogeneity_sigma = top * (0.01 + 0.05 * (double)ref_random_below(random, 8)),
        .weight = weights[ref_random_below(random, 4)],
        .threshold = thresholds[ref_random_below(random, 8)],
        .padding = no_padding,
        .map = ref_random_below(random, 2),
    };

    for (size_t i = 0; i < object.seed_count; i++)
        seeds[i] =
            (struct kernels_voxel){ref_random_below(random, extent.columns), ref_random_below(random, extent.rows),
                                   ref_random_below(random, extent.slices)};
    if (object.seed_count > 1 && ref_random_below(random, 2))
        seeds[1] = seeds[0];
    if (ref_random_below(random, 2))
        object.padding.hi = (object.padding.lo = 0) + (int32_t)ref_random_below(random, 3);
    return object;
}

/* Makes some start voxels, sometimes none. The caller must free them. */
static uint64_t *
random_start(uint64_t *random, struct image_extent extent)
{
    static const double densities[] = {0, 0.001, 0.05, 1};
    const double density = densities[ref_random_below(random, 4)];
    const int64_t words = (extent.columns + 63) / 64;
    uint64_t *bits = allocate(words * extent.rows * extent.slices, sizeof(*bits));

    for (int64_t row = 0; row < extent.rows * extent.slices; row++)
        for (int64_t x = 0; x < extent.columns; x++)
            if ((double)ref_random_below(random, 1000) < 1000 * density)
                bits[row * words + x / 64] |= UINT64_C(1) << x % 64;
    return bits;
}

static void
check_random_volume(uint64_t seed)
{
    uint64_t random = seed;
    struct job job = {.extent = random_extent(&random),
                      .pixel = (enum image_pixel)ref_random_below(&random, 3),
                      .count = 1 + (size_t)ref_random_below(&random, MAX_OBJECTS),
                      .relative = ref_random_below(&random, 2)};
    struct kernels_voxel seeds[MAX_OBJECTS][MAX_SEEDS];
    int32_t tops[] = {7, 255, 4000, 32767};
    int32_t top = tops[ref_random_below(&random, job.pixel == IMAGE_UINT8 ? 2 : 4)];
    uint64_t *start;
    char what[64];

    job.voxels = allocate(ref_voxels(job.extent), 2);
    random_voxels(&random, &job, top);
    ref_islands(job.extent, job.pixel, (int)ref_random_below(&random, 3), 0, seed, job.voxels);
    for (size_t i = 0; i < job.count; i++)
        job.objects[i] = random_object(&random, &job, top, seeds[i]);
    start = random_start(&random, job.extent);
    if (ref_random_below(&random, 2))
        job.objects[job.count - 1].start = start;
    /* Use the same object twice, so that everything is a tie. */
    if (job.count > 1 && ref_random_below(&random, 3) == 0)
        job.objects[1] = job.objects[0];
    snprintf(what, sizeof(what), "random volume %llu", (unsigned long long)seed);
    check_job(&job, what);
    free(job.voxels);
    free(start);
}

START_TEST(random_volumes_equal_the_reference)
{
    for (uint64_t seed = test_share_first(); seed < RANDOM_VOLUMES; seed += test_share())
        check_random_volume(seed);
}

END_TEST

/* Several tiles along each axis, and thin volumes of several tiles; the paths wind through all. */
static const struct image_extent large_extents[] = {
    {264, 40, 20}, {65, 70, 40}, {2500, 50, 1}, {70, 1, 1000}, {1, 1500, 20},
};

START_TEST(volumes_of_many_tiles_equal_the_reference)
{
    struct kernels_voxel seeds[2];
    struct job job = {.extent = large_extents[_i], .pixel = IMAGE_INT16, .count = 1};
    int64_t count = ref_voxels(job.extent);
    uint8_t *in = allocate(count, 1);

    job.voxels = allocate(count, 2);
    job.objects[0] = (struct kernels_fuzzy_object){.seeds = seeds,
                                                   .seed_count = 1,
                                                   .mean = 300,
                                                   .sigma = 30,
                                                   .homogeneity_sigma = 20,
                                                   .weight = 0.5,
                                                   .threshold = 40000,
                                                   .padding = no_padding,
                                                   .map = true};
    ref_vessels(job.extent, job.pixel, 400, 1, 5, job.voxels, seeds);
    check_job(&job, "vessels");
    ref_smooth(job.extent, job.pixel, 400, 6, job.voxels);
    check_job(&job, "smooth");
    seeds[0] = (struct kernels_voxel){0, 0, 0};
    for (int axis = 0; axis < 3; axis++) {
        ref_serpentine(job.extent, axis, in);
        ref_paint(job.pixel, in, count, 300, 200, job.voxels);
        check_job(&job, "serpentine");
    }
    ref_random_maze(job.extent, 3, in);
    ref_paint(job.pixel, in, count, 300, 0, job.voxels);
    check_job(&job, "random maze");
    free(in);
    free(job.voxels);
}

END_TEST

/* Checks one row of values with affinities computed by hand: weight 1, sigma 1, mean 10. */
static void
check_row(const int16_t *values, int64_t count, struct job *job, const uint16_t *map)
{
    struct kernels_fuzzy_result results[MAX_OBJECTS];

    job->extent = (struct image_extent){count, 1, 1};
    job->pixel = IMAGE_INT16;
    job->voxels = allocate(count, sizeof(*values));
    memcpy(job->voxels, values, (size_t)count * sizeof(*values));
    ck_assert_int_eq(run(variants[0].lane, job, results), 0);
    for (int64_t i = 0; i < count; i++)
        ck_assert_int_eq(results[0].map[i], map[i]);
    free(job->voxels);
}

START_TEST(a_row_worked_out_by_hand)
{
    /* exp(-1/8) and exp(-1/2) of 65535: half and one sigma from the mean. */
    const uint16_t half = 57834, one = 39748;
    const int16_t values[] = {10, 10, 11, 10, 12, 10};
    const int16_t padded[] = {10, 10, -5, 10, 10};
    struct kernels_voxel seeds[] = {{0, 0, 0}, {2, 0, 0}};
    struct job job = {.count = 1,
                      .objects = {{.seeds = seeds,
                                   .seed_count = 1,
                                   .mean = 10,
                                   .sigma = 1,
                                   .homogeneity_sigma = 1,
                                   .weight = 1,
                                   .padding = {-5, -5},
                                   .map = true}}};

    check_row(values, 6, &job, (uint16_t[]){65535, 65535, half, half, one, one});
    check_row(padded, 5, &job, (uint16_t[]){65535, 65535, 0, 0, 0});
    job.objects[0].seed_count = 2;
    check_row(padded, 5, &job, (uint16_t[]){65535, 65535, 65535, 0, 0});
    job.objects[0].seed_count = 0;
    check_row(values, 6, &job, (uint16_t[]){0, 0, 0, 0, 0, 0});
}

END_TEST

/* Only padding; a seed still counts. */
START_TEST(only_padding)
{
    int16_t voxels[4 * 3 * 2] = {0};
    struct kernels_voxel seed = {3, 2, 1};
    struct job job = {.extent = {4, 3, 2},
                      .pixel = IMAGE_INT16,
                      .voxels = voxels,
                      .count = 1,
                      .objects = {{.seeds = &seed, .seed_count = 1, .sigma = 1, .homogeneity_sigma = 1, .map = true}}};

    check_job(&job, "padding");
}

END_TEST

/* Checks that each sum's reach is right for all differences. A table that rises has no reach. */
START_TEST(the_range_of_a_sum_is_that_of_its_affinities)
{
    enum { SPAN = 60 };

    static const uint16_t thresholds[] = {0, 1, 20000, 32767, 45000, 65534, 65535};
    double first[2 * SPAN + 1], second[SPAN + 1];
    const struct fuzzy_tables tables = {-7, SPAN, first, second};
    int32_t reach[2 * SPAN + 2];

    for (int weight = 0; weight <= 4; weight++) {
        const struct kernels_fuzzy_object object = {
            .mean = 20, .sigma = 11, .homogeneity_sigma = 6, .weight = weight / 4.0};

        fuzzy_fill_tables(&object, &(struct fuzzy_tables){-7, SPAN, first, second});
        for (size_t i = 0; i < sizeof(thresholds) / sizeof(thresholds[0]); i++) {
            ck_assert(fuzzy_fill_reach(&tables, thresholds[i], reach));
            for (int32_t s = 0; s <= 2 * SPAN; s++)
                for (int32_t d = 0; d <= SPAN; d++)
                    ck_assert_int_eq(d <= reach[s], fuzzy_affinity_of(&tables, s, d) > thresholds[i]);
            ck_assert_int_eq(reach[2 * SPAN + 1], -1);
        }
    }
    second[SPAN] = nextafter(second[SPAN - 1], 2);
    ck_assert(!fuzzy_fill_reach(&tables, 20000, reach));
}

END_TEST

/* Uses values over the whole range of the type, for the largest tables. */
START_TEST(the_whole_range_of_values)
{
    struct kernels_voxel seed = {0, 0, 0};
    struct job job = {.extent = {130, 9, 5}, .count = 2};
    int64_t count = ref_voxels(job.extent);
    uint64_t random = 9;

    job.voxels = allocate(count, 2);
    for (int64_t i = 0; i < count; i++)
        ((uint16_t *)job.voxels)[i] = (uint16_t)ref_random(&random);
    ((uint16_t *)job.voxels)[0] = 0x8000;
    ((uint16_t *)job.voxels)[1] = 0x7FFF;
    ((uint16_t *)job.voxels)[2] = 0xFFFF;
    ((uint16_t *)job.voxels)[3] = 0;
    for (size_t i = 0; i < 2; i++)
        job.objects[i] = (struct kernels_fuzzy_object){.seeds = &seed,
                                                       .seed_count = 1,
                                                       .sigma = 10000,
                                                       .homogeneity_sigma = 20000,
                                                       .weight = 0.25,
                                                       .threshold = 9000,
                                                       .padding = no_padding,
                                                       .map = true};
    job.objects[1].padding = (struct image_range){INT32_MIN, -32000};
    for (job.pixel = IMAGE_INT16; job.pixel <= IMAGE_UINT16; job.pixel++)
        check_job(&job, "whole range");
    free(job.voxels);
}

END_TEST

/* Checks that a job does not depend on the memory that an earlier, larger job left in the lane. */
START_TEST(jobs_are_independent_of_earlier_ones)
{
    for (uint64_t seed = 0; seed < 15; seed++) {
        check_random_volume(7000 + seed);
        check_random_volume(7000);
    }
}

END_TEST

static void *
run_lane(void *argument)
{
    const struct lane_job *lane_job = argument;
    struct variant variant = {"the best", 3, lane_job->device, NULL};
    struct kernels_voxel seed;
    struct job job = {.extent = {100, 40, 30}, .pixel = IMAGE_UINT8, .count = 1};
    struct expected expected;

    job.voxels = allocate(ref_voxels(job.extent), 1);
    ref_vessels(job.extent, job.pixel, 200, 1, lane_job->seed, job.voxels, &seed);
    job.objects[0] = (struct kernels_fuzzy_object){.seeds = &seed,
                                                   .seed_count = 1,
                                                   .mean = 150,
                                                   .sigma = 20,
                                                   .homogeneity_sigma = 20,
                                                   .weight = 0.5,
                                                   .threshold = 30000,
                                                   .padding = no_padding,
                                                   .map = true};
    expected = expect(&job);
    ck_assert_int_eq(kernels_lane_open(lane_job->device, &variant.lane, NULL), 0);
    for (int i = 0; i < 10; i++)
        check_variant(&variant, &job, &expected, "two lanes");
    kernels_lane_close(variant.lane);
    expected_free(&expected);
    free(job.voxels);
    return NULL;
}

START_TEST(lanes_work_side_by_side)
{
    lanes_run_beside(run_lane);
}

END_TEST

static const struct kernels_fuzzy_object sound = {.sigma = 1, .homogeneity_sigma = 1, .weight = 0.5, .padding = {1, 0}};

static void
begin(struct kernels_lane *lane, size_t objects)
{
    const struct kernels_demand demand = {.of[KERNELS_FUZZY] = &(struct kernels_fuzzy_demand){.objects = objects}};
    void *voxels;

    ck_assert_int_eq(kernels_volume_begin(lane, (struct image_extent){5, 4, 3}, IMAGE_UINT8, &demand, &voxels, NULL),
                     0);
    memset(voxels, 0, 60);
}

START_TEST(unsound_objects_are_refused)
{
    struct kernels_lane *lane = variants[0].lane;
    struct kernels_voxel outside[] = {{-1, 0, 0}, {5, 0, 0}, {0, -1, 0}, {0, 4, 0}, {0, 0, -1}, {0, 0, 3}};
    struct kernels_fuzzy_object bad[] = {sound, sound, sound, sound, sound, sound, sound, sound, sound};
    struct kernels_fuzzy_result result;
    struct error error = {0};

    bad[0].mean = NAN;
    bad[1].sigma = 0;
    bad[2].sigma = 1e-200; /* its square is 0 */
    bad[3].sigma = 1e200;  /* its square is infinite */
    bad[4].homogeneity_sigma = -1;
    bad[5].homogeneity_sigma = INFINITY;
    bad[6].weight = 1.01;
    bad[7].weight = NAN;
    bad[8].seed_count = 1; /* without seeds */
    begin(lane, 1);
    ck_assert_int_eq(kernels_volume_ready(lane, 0, 3, NULL), 0);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        ck_assert_int_eq(kernels_fuzzy_run(lane, &bad[i], 1, false, &result, &error), -EINVAL);
    for (size_t i = 0; i < sizeof(outside) / sizeof(outside[0]); i++) {
        struct kernels_fuzzy_object object = sound;

        object.seeds = &outside[i];
        object.seed_count = 1;
        ck_assert_int_eq(kernels_fuzzy_run(lane, &object, 1, false, &result, &error), -EINVAL);
        ck_assert_ptr_nonnull(strstr(error.message, "outside"));
    }
    ck_assert_int_eq(kernels_fuzzy_run(lane, &sound, 1, false, &result, NULL), 0);
    ck_assert_int_eq(result.object.voxels, 0);
}

END_TEST

START_TEST(calls_out_of_order_are_refused)
{
    struct kernels_lane *lane = variants[0].lane;
    struct kernels_fuzzy_object objects[2] = {sound, sound};
    struct kernels_fuzzy_result results[2];
    struct error error = {0};

    begin(lane, 1);
    ck_assert_int_eq(kernels_volume_ready(lane, 0, 2, NULL), 0);
    ck_assert_int_eq(kernels_fuzzy_run(lane, objects, 1, false, results, &error), -EBUSY);
    ck_assert_int_eq(kernels_volume_ready(lane, 2, 1, NULL), 0);
    ck_assert_int_eq(kernels_fuzzy_run(lane, objects, 2, false, results, &error), -EINVAL);
    ck_assert_int_eq(kernels_fuzzy_run(lane, objects, 1, true, results, &error), -EINVAL);
    objects[0].map = true;
    ck_assert_int_eq(kernels_fuzzy_run(lane, objects, 1, false, results, &error), -EINVAL);
    objects[0].map = false;
    ck_assert_int_eq(kernels_fuzzy_run(lane, objects, 1, false, results, NULL), 0);
    ck_assert_int_eq(kernels_fuzzy_run(lane, objects, 1, false, results, NULL), 0);
}

END_TEST

START_TEST(missing_memory_is_reported_at_once)
{
    struct kernels_lane *lane = variants[0].lane;
    const struct kernels_fuzzy_demand demands[] = {
        {.objects = SIZE_MAX / 8},
        {.objects = 1 << 20, .maps = 1 << 20},
        {.objects = SIZE_MAX, .maps = SIZE_MAX, .relative = true},
    };
    const struct image_extent extent = {1 << 11, 1 << 11, 1 << 11};
    struct error error = {0};
    void *voxels;

    for (size_t i = 0; i < sizeof(demands) / sizeof(demands[0]); i++) {
        error.message[0] = '\0';
        ck_assert_int_eq(kernels_volume_begin(lane, extent, IMAGE_UINT8,
                                              &(struct kernels_demand){.of[KERNELS_FUZZY] = &demands[i]}, &voxels,
                                              &error),
                         -ENOMEM);
        ck_assert_ptr_nonnull(strstr(error.message, "no memory"));
    }
    check_random_volume(1);
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("fuzzy");
    TCase *tests = tcase_create("fuzzy");

    tcase_add_unchecked_fixture(tests, open_variants, variants_close);
    tcase_add_test(tests, a_row_worked_out_by_hand);
    tcase_add_test(tests, only_padding);
    tcase_add_test(tests, the_range_of_a_sum_is_that_of_its_affinities);
    tcase_add_test(tests, the_whole_range_of_values);
    tcase_add_test(tests, random_volumes_equal_the_reference);
    tcase_add_loop_test(tests, volumes_of_many_tiles_equal_the_reference, 0,
                        sizeof(large_extents) / sizeof(large_extents[0]));
    tcase_add_test(tests, jobs_are_independent_of_earlier_ones);
    tcase_add_test(tests, lanes_work_side_by_side);
    tcase_add_test(tests, unsound_objects_are_refused);
    tcase_add_test(tests, calls_out_of_order_are_refused);
    tcase_add_test(tests, missing_memory_is_reported_at_once);
    suite_add_tcase(suite, tests);

    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
