/*
 * test_cuda_fuzzy.c - objects without a requested map, which the GPU finds by a flood over edges, compared with the
 * CPU and the reference. Also maps that use each form of the graph.
 *
 *   kernels_test_cuda_fuzzy [--quick]    --quick: a selection for compute-sanitizer
 *
 * Exits with 77 ("skipped" for CTest) if there is no GPU.
 */
#include "tests/kernels/gpu_pair.h"
#include "tests/kernels/ref_jobs.h"
#include "tests/kernels/ref_volumes.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ANNOUNCERS = 4, MOST_SEEDS = 6, MANY_SEEDS = 9001 };

enum content {
    SMOOTH,
    VESSELS,
    PLATEAUS,
    SCATTER,
    NOISE,
    MAZE,
    ALONG_X, /* serpentines: the slowest for a flood */
    ALONG_Y,
    ALONG_Z,
    CHECKERBOARD,
    EMPTY,
    FULL,
    CONTENTS
};

static const struct image_range none = {1, 0};

static void *
allocate(int64_t count, size_t size)
{
    void *memory = calloc((size_t)count, size);

    ck_assert_ptr_nonnull(memory);
    return memory;
}

static void
open_both_with_4(void)
{
    open_both_with(4);
}

static void
draw_pattern(enum content content, struct image_extent extent, uint64_t seed, uint8_t *in)
{
    if (content == NOISE)
        ref_noise(extent, 0.4, seed, in);
    else if (content == MAZE)
        ref_random_maze(extent, seed, in);
    else if (content == ALONG_X || content == ALONG_Y || content == ALONG_Z)
        ref_serpentine(extent, (int)content - ALONG_X, in);
    else if (content == CHECKERBOARD)
        ref_checkerboard(extent, in);
    else
        memset(in, content == FULL, (size_t)ref_voxels(extent));
}

static void *
draw(enum content content, struct image_extent extent, enum image_pixel pixel, int32_t top, uint64_t seed)
{
    int64_t count = ref_voxels(extent);
    void *voxels = allocate(count, image_pixel_size(pixel));
    uint8_t *in = allocate(count, 1);
    struct kernels_voxel root;

    if (content == SMOOTH)
        ref_smooth(extent, pixel, top, seed, voxels);
    else if (content == VESSELS)
        ref_vessels(extent, pixel, top, 1, seed, voxels, &root);
    else if (content == PLATEAUS)
        ref_plateaus(extent, pixel, top, 4, seed, voxels);
    else if (content == SCATTER)
        ref_scatter(extent, pixel, top, seed, voxels);
    else {
        draw_pattern(content, extent, seed, in);
        ref_paint(pixel, in, count, top, content == EMPTY ? 0 : top / 3, voxels);
    }
    free(in);
    return voxels;
}

/* Checks that both backends give the reference's result. */
static void
check_job(struct image_extent extent, enum image_pixel pixel, const void *voxels,
          const struct kernels_fuzzy_object *objects, size_t count, const char *what)
{
    const struct ref_whole whole = {.job = {.extent = extent, .pixel = pixel, .voxels = voxels, .threads = ANNOUNCERS},
                                    .objects = objects,
                                    .object_count = count};
    struct ref_expected expected;

    ref_expect(&whole, &expected);
    for (int i = 0; i < 2; i++) {
        const char *difference = ref_compare(lanes[i], &whole, &expected);

        ck_assert_msg(*difference == '\0', "%s, %s: %s", what, backends[i], difference);
    }
    ref_expected_free(&expected);
}

static struct kernels_voxel
random_voxel(uint64_t *random, struct image_extent extent)
{
    return (struct kernels_voxel){ref_random_below(random, extent.columns), ref_random_below(random, extent.rows),
                                  ref_random_below(random, extent.slices)};
}

/* Makes seeds anywhere, also in padding, with one of them twice; or none. */
static struct kernels_fuzzy_object
random_object(uint64_t *random, struct image_extent extent, int32_t top, struct kernels_voxel *seeds)
{
    static const uint16_t thresholds[] = {0, 1, 9000, 20000, 32767, 50000, 65534, 65535};
    static const double weights[] = {0, 0.3, 0.5, 1};
    struct kernels_fuzzy_object object = {
        .seeds = seeds,
        .seed_count = (size_t)ref_random_below(random, MOST_SEEDS + 1),
        .mean = (double)ref_random_below(random, 2 * top + 1) / 2,
        .sigma = top * (0.02 + 0.1 * (double)ref_random_below(random, 8)),
        .homogeneity_sigma = top * (0.02 + 0.05 * (double)ref_random_below(random, 8)),
        .weight = weights[ref_random_below(random, 4)],
        .threshold = thresholds[ref_random_below(random, 8)],
        .padding = none,
        .map = ref_random_below(random, 6) == 0,
    };

    for (size_t i = 0; i < object.seed_count; i++)
        seeds[i] = random_voxel(random, extent);
    if (object.seed_count > 1)
        seeds[1] = seeds[0];
    if (ref_random_below(random, 2) == 0)
        object.padding = (struct image_range){0, (int32_t)ref_random_below(random, 3)};
    return object;
}

/* Returns an extent near the tile's 64 x 32 x 32, sometimes with one thin axis. */
static struct image_extent
random_extent(uint64_t *random)
{
    static const int64_t columns[] = {1, 2, 31, 32, 33, 63, 64, 65, 96, 127, 128, 129, 200, 300};
    static const int64_t others[] = {1, 2, 3, 15, 16, 17, 31, 32, 33, 47, 63, 64, 65, 70};
    int64_t size[3] = {columns[ref_random_below(random, 14)], others[ref_random_below(random, 14)],
                       others[ref_random_below(random, 14)]};
    int64_t thin = ref_random_below(random, 9);

    if (thin < 3)
        size[thin] = 1;
    return (struct image_extent){size[0], size[1], size[2]};
}

static void
check_random(uint64_t seed)
{
    /* With the widest of the values, the table has 16-bit entries; with the next ones it does not. */
    static const int32_t tops[] = {7, 255, 4000, 8190, 8191, 32767};
    uint64_t random = seed;
    struct image_extent extent = random_extent(&random);
    enum image_pixel pixel = (enum image_pixel)ref_random_below(&random, 3);
    int32_t top = tops[ref_random_below(&random, pixel == IMAGE_UINT8 ? 2 : 6)];
    size_t count = 1 + (size_t)ref_random_below(&random, REF_MOST);
    struct kernels_voxel seeds[REF_MOST][MOST_SEEDS];
    struct kernels_fuzzy_object objects[REF_MOST];
    void *voxels = draw((enum content)ref_random_below(&random, CONTENTS), extent, pixel, top, seed);
    char what[96];

    ref_islands(extent, pixel, (int)ref_random_below(&random, 3), 0, seed, voxels);
    for (size_t i = 0; i < count; i++)
        objects[i] = random_object(&random, extent, top, seeds[i]);
    snprintf(what, sizeof(what), "volume %llu of %lldx%lldx%lld", (unsigned long long)seed, (long long)extent.columns,
             (long long)extent.rows, (long long)extent.slices);
    check_job(extent, pixel, voxels, objects, count, what);
    free(voxels);
}

START_TEST(random_objects_are_the_references)
{
    for (uint64_t seed = 0; seed < (quick ? 12 : 500); seed++)
        check_random(seed);
}

END_TEST

START_TEST(objects_in_many_tiles_are_the_references)
{
    static const struct image_extent extents[] = {{270, 135, 100}, {2100, 130, 1}, {70, 1, 1300}};
    enum image_pixel pixel = _i % 2 == 0 ? IMAGE_UINT8 : IMAGE_INT16;

    for (size_t i = 0; i < sizeof(extents) / sizeof(extents[0]); i++) {
        const struct image_extent extent = extents[i];
        const struct kernels_voxel seeds[] = {
            {0, 0, 0}, {extent.columns - 1, extent.rows - 1, 0}, {extent.columns / 2, 0, extent.slices - 1}};
        struct kernels_fuzzy_object objects[] = {{.seeds = seeds,
                                                  .seed_count = 1,
                                                  .mean = 200,
                                                  .sigma = 30,
                                                  .homogeneity_sigma = 20,
                                                  .weight = 0.5,
                                                  .threshold = 40000,
                                                  .padding = none},
                                                 {0}};
        void *voxels = draw((enum content)_i, extent, pixel, 200, 3);
        char what[64];

        objects[1] = objects[0];
        objects[1].seed_count = 3;
        objects[1].threshold = 20000;
        objects[1].sigma = 150;
        snprintf(what, sizeof(what), "content %d, %lld columns", _i, (long long)extent.columns);
        check_job(extent, pixel, voxels, objects, 2, what);
        free(voxels);
    }
}

END_TEST

/* Uses more than one batch of seeds, many in one tile. */
START_TEST(objects_of_many_seeds_equal_the_reference)
{
    const struct image_extent extent = {130, 66, 40};
    struct kernels_voxel *seeds = allocate(MANY_SEEDS, sizeof(*seeds));
    const struct kernels_fuzzy_object object = {.seeds = seeds,
                                                .seed_count = MANY_SEEDS,
                                                .mean = 150,
                                                .sigma = 20,
                                                .homogeneity_sigma = 30,
                                                .weight = 0.5,
                                                .threshold = 45000,
                                                .padding = {0, 9}};
    void *voxels = draw(SCATTER, extent, IMAGE_UINT8, 255, 4);
    uint64_t random = 8;

    for (int i = 0; i < MANY_SEEDS; i++)
        seeds[i] = random_voxel(&random, extent);
    check_job(extent, IMAGE_UINT8, voxels, &object, 1, "many seeds");
    free(voxels);
    free(seeds);
}

END_TEST

/* All blocks climb the first levels together; one block climbs the rest. */
START_TEST(a_map_of_many_nodes_equals_the_reference)
{
    const struct image_extent extent = {130, 66, 35};
    const struct kernels_voxel seed = {64, 33, 17};
    const struct kernels_fuzzy_object object = {.seeds = &seed,
                                                .seed_count = 1,
                                                .mean = 150,
                                                .sigma = 40,
                                                .homogeneity_sigma = 60,
                                                .weight = 0.5,
                                                .threshold = 30000,
                                                .padding = none,
                                                .map = true};
    void *voxels = draw(SCATTER, extent, IMAGE_UINT8, 255, 5);

    check_job(extent, IMAGE_UINT8, voxels, &object, 1, "many nodes");
    free(voxels);
}

END_TEST

/* Pairs on both sides of a tile's face: many nodes, but no edge above the first level. */
START_TEST(a_map_of_pairs_across_tiles_equals_the_reference)
{
    const struct image_extent extent = {48, 64, 64};
    const struct kernels_voxel seed = {15, 2, 2};
    const struct kernels_fuzzy_object object = {.seeds = &seed,
                                                .seed_count = 1,
                                                .mean = 100,
                                                .sigma = 50,
                                                .homogeneity_sigma = 50,
                                                .weight = 0.5,
                                                .threshold = 9000,
                                                .padding = {0, 0},
                                                .map = true};
    uint8_t *voxels = allocate(ref_voxels(extent), 1);
    uint64_t random = 9;

    for (int64_t z = 0; z < extent.slices; z += 2)
        for (int64_t y = 0; y < extent.rows; y += 2)
            for (int64_t x = 15; x <= 16; x++)
                voxels[(z * extent.rows + y) * extent.columns + x] = (uint8_t)(50 + ref_random_below(&random, 100));
    check_job(extent, IMAGE_UINT8, voxels, &object, 1, "pairs");
    free(voxels);
}

END_TEST

static Suite *
make_suite(void)
{
    Suite *suite = suite_create("cuda_fuzzy");
    TCase *objects = tcase_create("objects");

    suite_add_tcase(suite, objects);
    tcase_add_unchecked_fixture(objects, open_both_with_4, close_both);
    tcase_add_test(objects, random_objects_are_the_references);
    tcase_add_test(objects, objects_of_many_seeds_equal_the_reference);
    tcase_add_test(objects, a_map_of_many_nodes_equals_the_reference);
    tcase_add_test(objects, a_map_of_pairs_across_tiles_equals_the_reference);
    if (!quick)
        tcase_add_loop_test(objects, objects_in_many_tiles_are_the_references, 0, CONTENTS);
    return suite;
}

int
main(int argc, char **argv)
{
    return gpu_suite_run(argc, argv, make_suite);
}
