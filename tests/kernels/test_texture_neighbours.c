/*
 * test_texture_neighbours.c - compares neighbourhoods, runs and zones of levels on the CPU with plain loops: every
 * count, on each available instruction set, with 1, 2 and 3 threads.
 */
#include "tests/kernels/ref_texture.h"
#include "tests/kernels/ref_volumes.h"
#include "tests/kernels/variants.h"
#include "tests/share.h"

#include <errno.h>
#include <string.h>

enum { RANDOM_JOBS = 120, VALUES = 256 };

static struct error error;
static uint64_t random_state;

static void
open_variants(void)
{
    variants_open(3);
}

/* ---------------------------------------------------------------------- the volumes ---- */

enum content { NOISE, FEW_LEVELS, ONE_LEVEL, STRIPES, SMOOTH, CONTENTS };

/* Region: all, scattered, a box, one voxel, empty. */
enum kind { ALL, SCATTERED, BOX, ONE_VOXEL, NOTHING, KINDS };

struct job {
    struct image_extent extent;
    enum image_pixel pixel;
    void *voxels;
    uint64_t *region;
    uint16_t *level_of;
    struct texture_levels levels;
};

static void
fill_voxels(struct job *job, enum content content)
{
    const int32_t smallest = ref_texture_smallest(job->pixel);

    if (content == SMOOTH) {
        ref_smooth(job->extent, job->pixel, 255, random_state, job->voxels);
        return;
    }
    for (int64_t i = 0; i < ref_voxels(job->extent); i++) {
        const int64_t x = i % job->extent.columns;
        int64_t value = 7;

        if (content == NOISE)
            value = ref_random_below(&random_state, VALUES);
        else if (content == FEW_LEVELS)
            value = ref_random_below(&random_state, 2);
        else if (content == STRIPES)
            value = x / 3 * 40 % VALUES;
        ref_store(job->pixel, job->voxels, i, smallest + (int32_t)value);
    }
}

static int64_t
region_words(const struct job *job)
{
    return (job->extent.columns + 63) / 64 * job->extent.rows * job->extent.slices;
}

/* Sets the padding bits of rows at random. */
static void
fill_region(struct job *job, enum kind kind)
{
    const int64_t words = (job->extent.columns + 63) / 64;
    const int64_t chosen = ref_random_below(&random_state, ref_voxels(job->extent));
    const int64_t edge = ref_random_below(&random_state, 3);

    for (int64_t i = 0; i < region_words(job) * 64; i++) {
        const int64_t x = i / 64 % words * 64 + i % 64, row = i / 64 / words;
        const int64_t y = row % job->extent.rows;
        bool in = ref_random_below(&random_state, 4) > 0;

        if (x < job->extent.columns && kind == BOX)
            in = x >= edge && y >= edge && x + edge < job->extent.columns;
        else if (x < job->extent.columns && kind != SCATTERED)
            in = kind == ONE_VOXEL && row * job->extent.columns + x == chosen;
        job->region[i / 64] |= (uint64_t)in << i % 64;
    }
}

/* Makes levels, sorted or not, in one table or one per slice; some values have no level. */
static void
fill_levels(struct job *job)
{
    static const int counts[] = {2, 3, 8, 32, 64, 255, 256};
    const size_t values = ref_texture_values(job->pixel);
    const bool holes = ref_random_below(&random_state, 2), mixed = ref_random_below(&random_state, 2);

    job->levels.levels = counts[ref_random_below(&random_state, 7)];
    job->levels.table_count = ref_random_below(&random_state, 3) ? 1 : (size_t)job->extent.slices;
    job->level_of = allocate((int64_t)(job->levels.table_count * values), sizeof(*job->level_of));
    job->levels.level_of = job->level_of;
    for (size_t i = 0; i < job->levels.table_count * values; i++) {
        const size_t value = (i % values + i / values) % VALUES, levels = (size_t)job->levels.levels;

        job->level_of[i] = (uint16_t)(1 + (mixed ? value * 7 % levels : value * levels / VALUES));
        if (holes && value % 5 == 3)
            job->level_of[i] = 0;
    }
}

static struct image_extent
random_extent(int64_t number)
{
    struct image_extent extent = {1 + ref_random_below(&random_state, 40), 1 + ref_random_below(&random_state, 12),
                                  1 + ref_random_below(&random_state, 7)};

    if (number % 20 == 0) /* longer than one batch */
        return (struct image_extent){1500 + ref_random_below(&random_state, 1000), 3, 2};
    if (number % 20 == 10) /* longer than a table counts */
        return (struct image_extent){3, 90, 70};
    if (number % 5 == 1)
        extent.slices = 1;
    if (number % 5 == 2)
        extent.columns = 1;
    return extent;
}

static void
open_job(struct job *job, int64_t number)
{
    const enum kind kind = (enum kind)ref_random_below(&random_state, KINDS);

    *job = (struct job){.extent = random_extent(number), .pixel = (enum image_pixel)ref_random_below(&random_state, 3)};
    job->voxels = allocate(ref_voxels(job->extent), image_pixel_size(job->pixel));
    fill_voxels(job, (enum content)ref_random_below(&random_state, CONTENTS));
    if (kind != ALL) {
        job->region = allocate(region_words(job), sizeof(*job->region));
        fill_region(job, kind);
    }
    fill_levels(job);
    for (size_t i = 0; i < variant_count; i++) {
        const struct kernels_demand demand = {REF_TEXTURE_DEMAND};
        void *voxels;

        ck_assert_int_eq(kernels_volume_begin(variants[i].lane, job->extent, job->pixel, &demand, &voxels, NULL), 0);
        memcpy(voxels, job->voxels, (size_t)ref_voxels(job->extent) * image_pixel_size(job->pixel));
        ck_assert_int_eq(kernels_volume_ready(variants[i].lane, 0, job->extent.slices, NULL), 0);
    }
}

static void
close_job(struct job *job)
{
    free(job->voxels);
    free(job->region);
    free(job->level_of);
}

/* --------------------------------------------------------------------- the two counts ---- */

static void
check_neighbours(const struct job *job, int64_t number)
{
    struct texture_neighbours request = {
        .levels = job->levels,
        .region = job->region,
        .distance = number % 4 ? 1 : 1 + (int)ref_random_below(&random_state, TEXTURE_MAX_DISTANCE),
        .alpha = number % 3 ? 0 : (int)ref_random_below(&random_state, TEXTURE_MAX_LEVELS + 1),
        .in_slice = number % 2,
        .per_slice = number % 4 == 1,
    };
    const size_t entries = (request.per_slice ? (size_t)job->extent.slices : 1) * TEXTURE_NEIGHBOUR_KINDS *
                           (size_t)job->levels.levels * texture_neighbours_width(&request);
    uint64_t *expected = allocate((int64_t)entries, sizeof(*expected));
    uint64_t *counts = allocate((int64_t)entries, sizeof(*counts));

    ref_texture_neighbours(job->extent, job->pixel, job->voxels, &request, expected);
    for (size_t i = 0; i < variant_count; i++) {
        memset(counts, 0xA5, entries * sizeof(*counts));
        ck_assert_msg(texture_neighbours_run(variants[i].lane, &request, counts, &error) == 0, "%s", error.message);
        variant_assert_same(counts, expected, entries, number, &variants[i]);
    }
    free(expected);
    free(counts);
}

static void
check_runs(const struct job *job, int64_t number)
{
    struct texture_offset directions[13];
    struct texture_runs request = {
        .levels = job->levels,
        .region = job->region,
        .directions = directions,
        .direction_count = ref_directions(number % 2, 1, directions),
        .longest = number % 3,
        .per_slice = number % 4 == 1,
    };
    const int64_t sides[3] = {job->extent.columns, job->extent.rows, job->extent.slices};

    for (int axis = 0; axis < (number % 2 ? 2 : 3); axis++) /* axes of the directions */
        request.longest = sides[axis] > request.longest ? sides[axis] : request.longest;
    const size_t entries = texture_runs_size(&request, job->extent.slices);
    uint64_t *expected = allocate((int64_t)entries, sizeof(*expected));
    uint64_t *counts = allocate((int64_t)entries, sizeof(*counts));

    ref_texture_runs(job->extent, job->pixel, job->voxels, &request, expected);
    for (size_t i = 0; i < variant_count; i++) {
        memset(counts, 0xA5, entries * sizeof(*counts));
        ck_assert_msg(texture_runs_run(variants[i].lane, &request, counts, &error) == 0, "%s", error.message);
        variant_assert_same(counts, expected, entries, number, &variants[i]);
    }
    free(expected);
    free(counts);
}

static void
check_zones(const struct job *job, int64_t number)
{
    const struct texture_zones request = {
        .levels = job->levels,
        .region = job->region,
        .distances = number / 2 % 2,
        .in_slice = number % 2,
        .per_slice = number % 4 == 1,
    };
    const int64_t size = ref_voxels(job->extent);
    uint64_t *expected = allocate(size, sizeof(*expected)), *keys = allocate(size, sizeof(*keys));

    for (size_t i = 0; i < variant_count; i++) {
        struct texture_zone_list lists[TEXTURE_ZONE_KINDS] = {{NULL, 0}};

        ck_assert_msg(texture_zones_run(variants[i].lane, &request, lists, &error) == 0, "%s", error.message);
        for (int kind = 0; kind <= request.distances; kind++) {
            const uint64_t zones = ref_texture_zones(job->extent, job->pixel, job->voxels, &request,
                                                     (enum texture_zone_kind)kind, expected);

            ck_assert_uint_eq(ref_texture_listed(&lists[kind], keys), zones);
            variant_assert_same(keys, expected, zones, number, &variants[i]);
        }
        if (!request.distances)
            ck_assert_uint_eq(lists[TEXTURE_ZONE_DISTANCES].count, 0);
        for (int kind = 0; kind < TEXTURE_ZONE_KINDS; kind++)
            free(lists[kind].zones);
    }
    free(expected);
    free(keys);
}

START_TEST(random_jobs)
{
    for (int64_t number = test_share_first(); number < RANDOM_JOBS; number += test_share()) {
        struct job job;

        random_state = (uint64_t)number + 1;
        open_job(&job, number);
        check_neighbours(&job, number);
        check_runs(&job, number);
        check_zones(&job, number);
        close_job(&job);
    }
}

END_TEST

/* ------------------------------------------------------------------ boxes of regions ---- */

START_TEST(boxes)
{
    const struct image_extent extent = {130, 3, 4};
    uint64_t region[3 * 3 * 4] = {0};
    struct texture_box box;

    texture_box_of(NULL, &extent, &box);
    ck_assert(box.first[0] == 0 && box.size[0] == 130 && box.size[1] == 3 && box.size[2] == 4);
    region[2] = ~UINT64_C(3); /* only padding */
    texture_box_of(region, &extent, &box);
    ck_assert(box.size[0] == 0 && box.size[1] == 0 && box.size[2] == 0);
    region[(2 * 3 + 1) * 3 + 1] = UINT64_C(1) << 5; /* (69, 1, 2) */
    region[(3 * 3 + 1) * 3 + 2] = 2;                /* (129, 1, 3) */
    texture_box_of(region, &extent, &box);
    ck_assert(box.first[0] == 69 && box.size[0] == 61);
    ck_assert(box.first[1] == 1 && box.size[1] == 1);
    ck_assert(box.first[2] == 2 && box.size[2] == 2);
}

END_TEST

/* --------------------------------------------------------------- rejected requests ---- */

static uint16_t level_of[VALUES];
static const struct texture_levels levels = {8, level_of, 1};
static const struct texture_offset along = {1, 0, 0}, far = {2, 0, 0}, none = {0, 0, 0}, up = {0, 0, 1};

static void
begin_bytes(struct image_extent extent)
{
    const struct kernels_demand demand = {REF_TEXTURE_DEMAND};
    void *voxels;

    ck_assert_int_eq(kernels_volume_begin(variants[0].lane, extent, IMAGE_UINT8, &demand, &voxels, NULL), 0);
    ck_assert_int_eq(kernels_volume_ready(variants[0].lane, 0, extent.slices, NULL), 0);
}

START_TEST(refusals_of_neighbours)
{
    static const struct texture_neighbours wrong[] = {
        {.levels = levels, .distance = 0},
        {.levels = levels, .distance = TEXTURE_MAX_DISTANCE + 1},
        {.levels = levels, .distance = 1, .alpha = -1},
        {.levels = levels, .distance = 1, .alpha = TEXTURE_MAX_LEVELS + 1},
        {.levels = levels, .distance = 1, .per_slice = true},
        {.levels = {1, level_of, 1}, .distance = 1},
    };
    uint64_t counts[TEXTURE_NEIGHBOUR_KINDS * 8 * 27];

    begin_bytes((struct image_extent){4, 3, 2});
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        ck_assert_int_eq(texture_neighbours_run(variants[0].lane, &wrong[i], counts, &error), -EINVAL);
}

END_TEST

START_TEST(refusals_of_runs)
{
    const struct texture_runs wrong[] = {
        {.levels = levels, .direction_count = 1, .longest = 9},
        {.levels = levels, .directions = &along, .direction_count = 0, .longest = 9},
        {.levels = levels, .directions = &far, .direction_count = 1, .longest = 9},
        {.levels = levels, .directions = &none, .direction_count = 1, .longest = 9},
        {.levels = levels, .directions = &up, .direction_count = 1, .longest = 9, .per_slice = true},
        {.levels = levels, .directions = &along, .direction_count = 1, .longest = 8},
        {.levels = levels, .directions = &along, .direction_count = 1, .longest = TEXTURE_MAX_RUN + 1},
    };
    uint64_t counts[8];

    begin_bytes((struct image_extent){9, 1, 2});
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        ck_assert_int_eq(texture_runs_run(variants[0].lane, &wrong[i], counts, &error), -EINVAL);
    begin_bytes((struct image_extent){TEXTURE_MAX_RUN + 1, 1, 1});
    ck_assert_int_eq(texture_runs_run(variants[0].lane, &wrong[6], counts, &error), -E2BIG);
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("texture_neighbours");
    TCase *tcase = tcase_create("texture_neighbours");
    SRunner *runner;
    int failed;

    tcase_add_unchecked_fixture(tcase, open_variants, variants_close);
    tcase_add_test(tcase, random_jobs);
    tcase_add_test(tcase, boxes);
    tcase_add_test(tcase, refusals_of_neighbours);
    tcase_add_test(tcase, refusals_of_runs);
    suite_add_tcase(suite, tcase);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
