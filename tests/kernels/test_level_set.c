/*
 * test_level_set.c - compares the level set of every backend with Trapani 2018 as written.
 *
 * Every volume runs on a third of the variants in turn: each available instruction set with 1, 2, 3 and 8 threads.
 * Slices are announced in random order, every other time without the hint of kernels_level_set_begin. Masks, counts
 * and codes must equal the reference's.
 */
#include "kernels/fuzzy/fuzzy.h"
#include "tests/kernels/ref_drive.h"
#include "tests/kernels/ref_level_set.h"
#include "tests/kernels/ref_volumes.h"
#include "tests/kernels/variants.h"
#include "tests/share.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    RANDOM_VOLUMES = 3000,
    MAX_SHAPES = 4,
    MAX_LABELS = 3,
};

static size_t jobs_checked;

static void
open_variants(void)
{
    variants_open(4);
}

/* The reference's result for one label. Bits have the layout of kernels.h, with padding 0. */
struct expected {
    int8_t *codes;
    uint64_t *bits;
    int64_t words;
    int64_t voxels;
};

static void
pack_states(struct image_extent extent, const int8_t *states, struct expected *expected)
{
    int64_t words_per_row = (extent.columns + 63) / 64;

    expected->words = words_per_row * extent.rows * extent.slices;
    expected->bits = allocate(expected->words, sizeof(*expected->bits));
    for (int64_t i = 0; i < ref_voxels(extent); i++) {
        int64_t row = i / extent.columns, x = i % extent.columns;
        if (states[i] > 0) {
            expected->bits[row * words_per_row + x / 64] |= UINT64_C(1) << x % 64;
            expected->voxels++;
        }
    }
}

static struct expected
expect(const struct ref_job *job, const struct kernels_level_set_label *label, bool automaton)
{
    int64_t count = ref_voxels(job->extent);
    struct expected expected = {.codes = allocate(count, 1)};
    int8_t *states = allocate(count, 1);

    ref_level_set_start(job->extent, job->pixel, job->voxels, label, states);
    if (automaton)
        ref_level_set_iterate(job->extent, states);
    else
        ref_level_set_search(job->extent, states);
    ref_level_set_codes(job->extent, states, expected.codes);
    pack_states(job->extent, states, &expected);
    free(states);
    return expected;
}

static void
expected_free(struct expected *expected)
{
    free(expected->codes);
    free(expected->bits);
}

static void
check_variant(const struct variant *variant, const struct ref_job *job, const struct expected *expected, bool no_hint,
              const char *what)
{
    struct image_mask masks[MAX_LABELS];
    int64_t count = ref_voxels(job->extent);
    struct ref_job own = *job;
    int8_t *codes = allocate(count, 1);

    own.threads = variant->threads;
    own.no_hint = no_hint || job->no_hint;
    ck_assert_int_eq(ref_segment(variant->lane, &own, masks, NULL), 0);
    for (size_t i = 0; i < job->label_count; i++) {
        ck_assert_int_eq(masks[i].words_per_row, (job->extent.columns + 63) / 64);
        ck_assert_msg(memcmp(masks[i].bits, expected[i].bits, (size_t)expected[i].words * sizeof(uint64_t)) == 0,
                      "%s, label %zu: wrong mask on %s with %d threads", what, i, variant->isa, variant->threads);
        ck_assert_int_eq(masks[i].voxels, expected[i].voxels);
        ck_assert_int_eq(kernels_level_set_codes(variant->lane, i, codes, NULL), 0);
        ck_assert_msg(memcmp(codes, expected[i].codes, (size_t)count) == 0,
                      "%s, label %zu: wrong codes on %s with %d threads", what, i, variant->isa, variant->threads);
    }
    free(codes);
}

static void
shuffle(uint64_t *random, int64_t *order, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        int64_t j = ref_random_below(random, i + 1);
        order[i] = order[j];
        order[j] = i;
    }
}

/* Checks a job. The automaton is the definition. On large volumes, the search gives the same result in less time. */
static void
check_job(struct ref_job *job, bool automaton, const char *what)
{
    struct expected expected[MAX_LABELS];
    uint64_t random = (uint64_t)ref_voxels(job->extent);
    int64_t *order = allocate(job->extent.slices, sizeof(*order));

    shuffle(&random, order, job->extent.slices);
    job->order = order;
    for (size_t i = 0; i < job->label_count; i++)
        expected[i] = expect(job, &job->labels[i], automaton);
    for (size_t i = jobs_checked % 3; i < variant_count; i += 3)
        check_variant(&variants[i], job, expected, (i / 3 + jobs_checked) % 2, what);
    jobs_checked++;
    for (size_t i = 0; i < job->label_count; i++)
        expected_free(&expected[i]);
    free(order);
}

static struct image_extent
random_extent(uint64_t *random)
{
    static const int64_t columns[] = {1, 2, 3, 5, 7, 13, 31, 33, 63, 64, 65, 127, 128, 129, 193};
    static const int64_t others[] = {1, 1, 2, 3, 5, 7, 11, 17, 23};
    struct image_extent extent = {
        columns[ref_random_below(random, sizeof(columns) / sizeof(columns[0]))],
        others[ref_random_below(random, sizeof(others) / sizeof(others[0]))],
        others[ref_random_below(random, sizeof(others) / sizeof(others[0]))],
    };

    /* Make x thin in some jobs: another axis gets the long side. */
    if (ref_random_below(random, 3) == 0) {
        int64_t long_side = extent.columns;
        extent.columns = extent.slices;
        extent.slices = long_side;
    }
    return extent;
}

/* Draws values 0 .. 7 with runs along x, and the ends of the pixel type. */
static void
random_values(uint64_t *random, enum image_pixel pixel, int64_t count, void *voxels)
{
    int64_t steadiness = 1 + ref_random_below(random, 6);
    int32_t value = 0;

    for (int64_t i = 0; i < count; i++) {
        int64_t dice = ref_random_below(random, 100);
        if (ref_random_below(random, steadiness) == 0)
            value = (int32_t)ref_random_below(random, 8);
        ref_paint(pixel, &(uint8_t){1}, 1,
                  dice == 0   ? 0x7FFF
                  : dice == 1 ? 0x8000
                              : value,
                  0, (char *)voxels + (size_t)i * image_pixel_size(pixel));
    }
}

/* Makes no mask, an empty or a full one, or boxes. Padding bits are random, because the caller need not clear them. */
static uint64_t *
random_mask(uint64_t *random, struct image_extent extent)
{
    int64_t words_per_row = (extent.columns + 63) / 64, rows = extent.rows * extent.slices;
    int64_t kind = ref_random_below(random, 6);
    uint64_t *mask = allocate(rows * words_per_row, sizeof(*mask));
    uint8_t *in = allocate(ref_voxels(extent), 1);

    memset(in, kind == 1, (size_t)ref_voxels(extent));
    if (kind > 1)
        ref_islands(extent, IMAGE_UINT8, (int)kind, 1, ref_random(random), in);
    for (int64_t bit = 0; bit < rows * words_per_row * 64; bit++) {
        int64_t x = bit % (words_per_row * 64), row = bit / (words_per_row * 64);
        bool set = x < extent.columns ? in[row * extent.columns + x] : ref_random(random) & 1;

        mask[bit / 64] |= (uint64_t)set << bit % 64;
    }
    free(in);
    return mask;
}

static void
check_random_volume(uint64_t seed)
{
    uint64_t random = seed;
    struct ref_job job = {.extent = random_extent(&random), .pixel = (enum image_pixel)ref_random_below(&random, 3)};
    struct kernels_level_set_label labels[MAX_LABELS] = {0};
    struct kernels_shape shapes[MAX_LABELS][MAX_SHAPES];
    struct image_range *ranges[MAX_LABELS];
    uint64_t *masks[MAX_LABELS], *bounds[MAX_LABELS];
    void *voxels = allocate(ref_voxels(job.extent), 2);
    const bool bounded = ref_random_below(&random, 3) == 0; /* and without a hint */
    char what[64];

    random_values(&random, job.pixel, ref_voxels(job.extent), voxels);
    job.voxels = voxels;
    job.labels = labels;
    job.label_count = 1 + (size_t)ref_random_below(&random, MAX_LABELS);
    for (size_t i = 0; i < job.label_count; i++) {
        bool for_each = ref_random_below(&random, 3) == 0;

        labels[i].shape_count = (size_t)ref_random_below(&random, MAX_SHAPES + 1);
        labels[i].shapes = shapes[i];
        labels[i].range_count = for_each ? (size_t)job.extent.slices : 1;
        labels[i].ranges = ranges[i] = allocate(job.extent.slices, sizeof(*ranges[i]));
        labels[i].padding = ref_random_padding(&random);
        masks[i] = random_mask(&random, job.extent);
        labels[i].mask = ref_random_below(&random, 2) ? masks[i] : NULL;
        bounds[i] = random_mask(&random, job.extent);
        labels[i].within = (const uint64_t *const *)&bounds[i];
        labels[i].within_count = bounded ? (size_t)ref_random_below(&random, 2) : 0;
        labels[i].strict = ref_random_below(&random, 2) > 0;
        for (size_t s = 0; s < labels[i].shape_count; s++)
            shapes[i][s] = ref_random_shape(&random, job.extent);
        for (size_t r = 0; r < labels[i].range_count; r++)
            ranges[i][r] = ref_random_range(&random);
    }
    job.no_hint = bounded;
    snprintf(what, sizeof(what), "random volume %llu", (unsigned long long)seed);
    check_job(&job, true, what);
    for (size_t i = 0; i < job.label_count; i++) {
        free(ranges[i]);
        free(masks[i]);
        free(bounds[i]);
    }
    free(voxels);
}

START_TEST(random_volumes_equal_the_automaton)
{
    for (uint64_t seed = test_share_first(); seed < RANDOM_VOLUMES; seed += test_share())
        check_random_volume(seed);
}

END_TEST

/*
 * Checks in and out voxels from a generator, with shapes that let both floods run through the whole volume. The
 * in-range flood starts from a corner, the other from a shape that covers nearly all.
 */
static void
check_pattern(struct image_extent extent, const uint8_t *in, bool automaton, const char *what)
{
    static uint64_t number;
    double large = (double)(extent.columns + extent.rows + extent.slices);
    const struct kernels_shape corner = {.kind = KERNELS_SPHERE, .radius = {1.5}};
    const struct kernels_shape half = {.kind = KERNELS_BOX, .center = {large, 0, 0}, .radius = {large, large, large}};
    const struct kernels_shape most = {
        .kind = KERNELS_BOX,
        .center = {1 + large, 0, 0},
        .radius = {large, large, large},
    };
    struct image_range range = {5, 5};
    struct kernels_level_set_label labels[] = {
        {.shapes = &corner, .shape_count = 1, .ranges = &range, .range_count = 1, .padding = {1, 0}},
        {.shapes = &half, .shape_count = 1, .ranges = &range, .range_count = 1, .padding = {1, 0}},
        {.shapes = &most, .shape_count = 1, .ranges = &range, .range_count = 1, .padding = {1, 0}}};
    uint8_t *voxels = allocate(ref_voxels(extent), 1);
    struct ref_job job = {.extent = extent, .pixel = IMAGE_UINT8, .voxels = voxels, .labels = labels, .label_count = 3};

    ref_paint(IMAGE_UINT8, in, ref_voxels(extent), 5, 0, voxels);
    if (test_share_has(number++))
        check_job(&job, automaton, what);
    ref_paint(IMAGE_UINT8, in, ref_voxels(extent), 0, 5, voxels);
    if (test_share_has(number++))
        check_job(&job, automaton, what);
    free(voxels);
}

static void
check_patterns(struct image_extent extent, bool automaton)
{
    int64_t count = ref_voxels(extent);
    uint8_t *in = allocate(count, 1);

    for (int axis = 0; axis < 3; axis++) {
        ref_serpentine(extent, axis, in);
        check_pattern(extent, in, automaton, "serpentine");
    }
    ref_random_maze(extent, 1, in);
    check_pattern(extent, in, automaton, "random maze");
    ref_spiral(extent, in);
    check_pattern(extent, in, automaton, "spiral");
    ref_checkerboard(extent, in);
    check_pattern(extent, in, automaton, "checkerboard");
    ref_noise(extent, 0.4, 2, in);
    check_pattern(extent, in, automaton, "noise");
    ref_sphere(extent, (double)extent.rows / 3, in);
    check_pattern(extent, in, automaton, "sphere");
    memset(in, 0, (size_t)count);
    check_pattern(extent, in, automaton, "all out of range");
    memset(in, 1, (size_t)count);
    check_pattern(extent, in, automaton, "all in range");
    free(in);
}

static const struct image_extent small_extents[] = {
    {1, 1, 1}, {1, 1, 40}, {1, 40, 1}, {200, 1, 1}, {65, 9, 8}, {9, 66, 7}, {8, 9, 67}, {64, 12, 12},
};

START_TEST(patterns_equal_the_automaton)
{
    check_patterns(small_extents[_i], true);
}

END_TEST

/*
 * Several tiles along each axis; sizes at which the bits are packed along y and z; thin ones, whose tiles have other
 * shapes.
 */
static const struct image_extent medium_extents[] = {
    {200, 80, 70}, {1100, 34, 20}, {128, 64, 128}, {5000, 90, 1}, {70, 1, 5000}, {1, 3000, 50},
};

START_TEST(larger_patterns_equal_the_search)
{
    check_patterns(medium_extents[_i], false);
}

END_TEST

START_TEST(the_references_agree)
{
    struct image_extent extent = {41, 23, 19};
    int64_t count = ref_voxels(extent);
    int8_t *one = allocate(count, 1), *other = allocate(count, 1);
    uint64_t random = 7;

    ck_assert_int_gt(count, 0);
    for (int64_t i = 0; i < count; i++)
        one[i] = other[i] = (int8_t[]){-1, -1, -1, 2, 2, 2, -2, 1}[ref_random_below(&random, 8)];
    ref_level_set_iterate(extent, one);
    ref_level_set_search(extent, other);
    ck_assert_mem_eq(one, other, (size_t)count);
    free(one);
    free(other);
}

END_TEST

/* Checks the accuracy section of the paper: a sphere is found exactly, from inside and from outside. */
START_TEST(a_sphere_is_found_from_inside_and_outside)
{
    struct image_extent extent = {96, 96, 96};
    int64_t count = ref_voxels(extent);
    uint8_t *in = allocate(count, 1);
    int16_t *voxels = allocate(count, 2);
    struct image_range range = {900, 1100};
    struct kernels_shape shapes[] = {{KERNELS_SPHERE, {48, 48, 48}, {12}}, {KERNELS_SPHERE, {48, 48, 48}, {48}}};
    struct kernels_level_set_label labels[] = {
        {.shapes = &shapes[0], .shape_count = 1, .ranges = &range, .range_count = 1, .padding = {1, 0}},
        {.shapes = &shapes[1], .shape_count = 1, .ranges = &range, .range_count = 1, .padding = {1, 0}}};
    struct ref_job job = {extent, IMAGE_INT16, voxels, labels, 2, 2, NULL, false};
    struct image_mask masks[2];
    int64_t wrong = 0;

    ref_sphere(extent, 24, in);
    ref_paint(IMAGE_INT16, in, count, 1000, -1000, voxels);
    ck_assert_int_eq(ref_segment(variants[0].lane, &job, masks, NULL), 0);
    for (int64_t i = 0; i < count; i++) {
        for (int label = 0; label < 2; label++) {
            uint64_t word = masks[label].bits[i / 96 * 2 + i % 96 / 64];
            wrong += (word >> i % 96 % 64 & 1) != in[i];
        }
    }
    ck_assert_int_eq(wrong, 0);
    free(in);
    free(voxels);
}

END_TEST

/*
 * Checks a mask in one corner of a volume of several tiles and a shape in the opposite one, packed along every axis.
 * The flood must begin with the box around both.
 */
static void
check_mask(struct image_extent extent, int axis, bool with_shape)
{
    int64_t words_per_row = (extent.columns + 63) / 64;
    uint64_t *mask = allocate(words_per_row * extent.rows * extent.slices, sizeof(*mask));
    uint8_t *in = allocate(ref_voxels(extent), 1);
    struct image_range range = {1, 1};
    struct kernels_shape shape = {.kind = KERNELS_SPHERE, .radius = {2}};
    struct kernels_level_set_label label = {.shapes = &shape,
                                            .shape_count = with_shape,
                                            .ranges = &range,
                                            .range_count = 1,
                                            .padding = {1, 0},
                                            .mask = mask};
    struct ref_job job = {extent, IMAGE_UINT8, in, &label, 1, 1, NULL, false};

    shape.center[0] = (double)(extent.columns - 1);
    shape.center[1] = (double)(extent.rows - 1);
    shape.center[2] = (double)(extent.slices - 1);
    mask[0] = 1;
    ref_serpentine(extent, axis, in);
    check_job(&job, false, with_shape ? "mask and shape" : "mask");
    memset(mask, 0, (size_t)(words_per_row * extent.rows * extent.slices) * sizeof(*mask));
    mask[words_per_row * extent.rows * extent.slices - 1] = UINT64_C(1) << (extent.columns - 1) % 64;
    check_job(&job, false, with_shape ? "far mask and shape" : "far mask");
    free(mask);
    free(in);
}

START_TEST(a_mask_is_an_initial_region)
{
    for (int axis = 0; axis < 3; axis++) {
        check_mask((struct image_extent){129, 130, 65}, axis, false);
        check_mask((struct image_extent){129, 130, 65}, axis, true);
    }
}

END_TEST

/*
 * Indices beyond 2^31: two rooms of zeros, joined by one hole in the wall between them. This cannot run with
 * ThreadSanitizer, which keeps several shadow bytes for each of these 2 GiB.
 */
#ifndef __SANITIZE_THREAD__
START_TEST(more_than_2_31_voxels_are_flooded)
{
    struct image_extent extent = {2048, 2048, 520};
    int64_t slice = extent.columns * extent.rows, wall = 517, hole = slice - 1;
    struct image_range range = {0, 0};
    struct kernels_shape shape = {.kind = KERNELS_SPHERE, .radius = {3}};
    struct kernels_level_set_label label = {
        .shapes = &shape, .shape_count = 1, .ranges = &range, .range_count = 1, .padding = {1, 0}};
    struct image_mask mask;
    struct kernels_device_options options = {.backend = "cpu", .threads = 2};
    struct kernels_device *device;
    struct kernels_lane *lane;
    void *voxels;

    ck_assert_int_eq(kernels_device_open(&options, &device, NULL), 0);
    ck_assert_int_eq(kernels_lane_open(device, &lane, NULL), 0);
    ck_assert_int_eq(
        kernels_volume_begin(lane, extent, IMAGE_UINT8,
                             &(struct kernels_demand){.of[KERNELS_LEVEL_SET] = &(struct kernels_level_set_demand){1}},
                             &voxels, NULL),
        0);
    memset(voxels, 0, (size_t)ref_voxels(extent));
    memset((uint8_t *)voxels + wall * slice, 1, (size_t)hole);
    ck_assert_int_eq(kernels_level_set_begin(lane, &label, 1, NULL), 0);
    ck_assert_int_eq(ref_announce(lane, extent.slices, 2, NULL), 0);
    ck_assert_int_eq(kernels_level_set_run(lane, &label, 1, &mask, NULL), 0);
    ck_assert_int_eq(mask.voxels, ref_voxels(extent) - slice + 1);
    ck_assert_uint_eq(mask.bits[(wall * slice + hole) / 64], UINT64_C(1) << 63);
    ck_assert_uint_eq(mask.bits[(wall * slice + hole) / 64 - 1], 0);
    ck_assert_uint_eq(mask.bits[ref_voxels(extent) / 64 - 1], UINT64_MAX);
    kernels_lane_close(lane);
    kernels_device_close(device);
}

END_TEST
#endif

static void
check_final(const struct image_mask *mask, const struct expected *expected)
{
    ck_assert_int_eq(mask->voxels, expected->voxels);
    ck_assert_mem_eq(mask->bits, expected->bits, (size_t)expected->words * sizeof(uint64_t));
}

/*
 * Checks that an object of fuzzy connectedness in the lane gives the same initial region as its copy. Labels that
 * differ from the hint must replace those of the hint, in every run of the level set.
 */
static void
check_chain(struct kernels_lane *lane, const uint8_t *in, struct image_extent extent)
{
    const struct kernels_voxel seed = {extent.columns / 2, extent.rows / 2, extent.slices / 2};
    const struct kernels_fuzzy_object object = {.seeds = &seed,
                                                .seed_count = 1,
                                                .mean = 1,
                                                .sigma = 1,
                                                .homogeneity_sigma = 1,
                                                .weight = 0.5,
                                                .threshold = 60000,
                                                .padding = {1, 0}};
    const struct kernels_demand demand = {.of = {[KERNELS_LEVEL_SET] = &(struct kernels_level_set_demand){1},
                                                 [KERNELS_FUZZY] = &(struct kernels_fuzzy_demand){.objects = 1}}};
    const struct image_range range = {0, 0};
    const struct kernels_shape shape = {KERNELS_SPHERE, {0, 0, 0}, {9}};
    const struct kernels_level_set_label hinted = {
        .shapes = &shape, .shape_count = 1, .ranges = &range, .range_count = 1, .padding = {1, 0}};
    struct ref_job job = {.extent = extent, .pixel = IMAGE_UINT8, .voxels = in};
    struct kernels_fuzzy_result result;
    struct image_mask mask;
    void *voxels;

    ck_assert_int_eq(kernels_volume_begin(lane, extent, IMAGE_UINT8, &demand, &voxels, NULL), 0);
    memcpy(voxels, in, (size_t)ref_voxels(extent));
    ck_assert_int_eq(kernels_level_set_begin(lane, &hinted, 1, NULL), 0);
    ck_assert_int_eq(ref_announce(lane, extent.slices, 2, NULL), 0);
    ck_assert_int_eq(kernels_fuzzy_run(lane, &object, 1, false, &result, NULL), 0);
    ck_assert_int_gt(result.object.voxels, 1);

    const struct kernels_level_set_label from_object = {
        .ranges = &range, .range_count = 1, .padding = {1, 0}, .mask = result.object.bits};
    struct expected chained = expect(&job, &from_object, false);
    struct expected plain = expect(&job, &hinted, false);
    for (int round = 0; round < 2; round++) {
        ck_assert_int_eq(kernels_level_set_run(lane, &from_object, 1, &mask, NULL), 0);
        check_final(&mask, &chained);
        ck_assert_int_eq(kernels_level_set_run(lane, &hinted, 1, &mask, NULL), 0);
        check_final(&mask, &plain);
    }
    expected_free(&chained);
    expected_free(&plain);
}

START_TEST(an_object_in_the_lane_is_an_initial_region)
{
    const struct image_extent extent = {100, 80, 60};
    uint8_t *in = allocate(ref_voxels(extent), 1);

    ref_noise(extent, 0.4, 3, in);
    in[(30 * 80 + 40) * 100 + 50] = in[(30 * 80 + 40) * 100 + 51] = 1;
    for (size_t i = 0; i < variant_count; i++)
        check_chain(variants[i].lane, in, extent);
    free(in);
}

END_TEST

static void *
run_lane(void *argument)
{
    const struct lane_job *lane_job = argument;
    struct image_extent extent = {100, 80, 60};
    int64_t count = ref_voxels(extent);
    uint8_t *in = allocate(count, 1);
    struct image_range range = {1, 1};
    struct kernels_shape shape = {KERNELS_SPHERE, {50, 40, 30}, {20}};
    struct kernels_level_set_label label = {
        .shapes = &shape, .shape_count = 1, .ranges = &range, .range_count = 1, .padding = {1, 0}};
    struct ref_job job = {extent, IMAGE_UINT8, in, &label, 1, 2, NULL, false};
    struct variant variant = {"the best", 2, lane_job->device, NULL};
    struct expected expected;

    ref_noise(extent, 0.5, lane_job->seed, in);
    expected = expect(&job, &label, false);
    ck_assert_int_eq(kernels_lane_open(lane_job->device, &variant.lane, NULL), 0);
    for (unsigned i = test_share_first(); i < 50; i += test_share())
        check_variant(&variant, &job, &expected, i % 2, "two lanes");
    kernels_lane_close(variant.lane);
    expected_free(&expected);
    free(in);
    return NULL;
}

START_TEST(lanes_work_side_by_side)
{
    lanes_run_beside(run_lane);
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("level_set");
    TCase *small = tcase_create("small"), *large = tcase_create("large");

    tcase_add_unchecked_fixture(small, open_variants, variants_close);
    tcase_add_test(small, the_references_agree);
    tcase_add_test(small, random_volumes_equal_the_automaton);
    tcase_add_loop_test(small, patterns_equal_the_automaton, 0, sizeof(small_extents) / sizeof(small_extents[0]));
    suite_add_tcase(suite, small);
    tcase_add_unchecked_fixture(large, open_variants, variants_close);
    tcase_add_loop_test(large, larger_patterns_equal_the_search, 0, sizeof(medium_extents) / sizeof(medium_extents[0]));
    tcase_add_test(large, a_sphere_is_found_from_inside_and_outside);
    tcase_add_test(large, a_mask_is_an_initial_region);
    tcase_add_test(large, an_object_in_the_lane_is_an_initial_region);
    tcase_add_test(large, lanes_work_side_by_side);
#ifndef __SANITIZE_THREAD__
    tcase_add_test(large, more_than_2_31_voxels_are_flooded);
#endif
    suite_add_tcase(suite, large);

    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
