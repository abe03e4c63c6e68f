/*
 * test_fuzzy_grow.c - compares maps grown voxel by voxel with the reference. Checks the selection of objects to grow,
 * and that no write goes beyond the space.
 */
#include "kernels/fuzzy/fuzzy_grow_cpu.h"
#include "tests/kernels/ref_fuzzy.h"
#include "tests/kernels/ref_volumes.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

enum {
    TOP = 250,
    CHUNK_BYTES = 64,
};

static void *
allocate(size_t bytes)
{
    void *memory = aligned_alloc(64, (bytes + 63) / 64 * 64);

    ck_assert_ptr_nonnull(memory);
    memset(memory, 0xA5, bytes);
    return memory;
}

/* A volume to grow in, and the expected map. */
struct field {
    struct image_extent extent;
    enum image_pixel pixel;
    int64_t count;
    uint8_t *in;
    uint16_t *voxels; /* or bytes */
    struct kernels_voxel seeds[2];
    struct kernels_fuzzy_object object;
};

static struct field
make_field(struct image_extent extent, enum image_pixel pixel)
{
    struct field field = {.extent = extent, .pixel = pixel, .count = ref_voxels(extent)};

    field.in = allocate((size_t)field.count);
    field.voxels = allocate((size_t)field.count * sizeof(uint16_t));
    field.object = (struct kernels_fuzzy_object){
        .seed_count = 1, .mean = TOP, .sigma = 15, .homogeneity_sigma = 15, .weight = 0.5, .padding = {1, 0}};
    return field;
}

static void
field_free(struct field *field)
{
    free(field->in);
    free(field->voxels);
}

/* Draws corridors with varying strengths, between walls of 0. */
static void
paint(struct field *field)
{
    uint64_t random = 7;

    for (int64_t i = 0; i < field->count; i++) {
        uint16_t value = (uint16_t)(field->in[i] ? TOP - ref_random_below(&random, 40) : 0);

        if (field->pixel == IMAGE_UINT8)
            ((uint8_t *)field->voxels)[i] = (uint8_t)value;
        else
            field->voxels[i] = value;
    }
}

/* Grows with this much space. Compares the map and returns true on success. */
static bool
grows(struct field *field, size_t space_size)
{
    size_t bytes = (size_t)field->count * sizeof(uint16_t);
    double first[2 * TOP + 1], second[TOP + 1];
    struct fuzzy_growth growth = {.extent = field->extent,
                                  .pixel = field->pixel,
                                  .voxels = field->voxels,
                                  .object = &field->object,
                                  .tables = {0, TOP, first, second},
                                  .space_size = space_size};
    uint16_t *expected = allocate(bytes);
    bool grown;

    field->object.seeds = field->seeds;
    fuzzy_fill_tables(&field->object, &growth.tables);
    growth.map = allocate(bytes);
    memset(growth.map, 0, bytes);
    growth.buckets = allocate(FUZZY_STRENGTHS * sizeof(uint32_t));
    growth.space = allocate(space_size + CHUNK_BYTES);
    memset((char *)growth.space + space_size, 0x5A, CHUNK_BYTES);
    grown = fuzzy_grow(&growth);
    for (size_t i = 0; i < CHUNK_BYTES; i++)
        ck_assert_int_eq(((char *)growth.space)[space_size + i], 0x5A);
    ref_fuzzy_map(field->extent, field->pixel, field->voxels, &field->object, expected);
    if (grown)
        ck_assert_mem_eq(growth.map, expected, bytes);
    free(expected);
    free(growth.map);
    free(growth.buckets);
    free(growth.space);
    return grown;
}

static const enum image_pixel pixels[] = {IMAGE_UINT8, IMAGE_INT16, IMAGE_UINT16};

static const size_t plenty = 1 << 22;

START_TEST(paths_and_mazes_are_grown)
{
    struct field field = make_field((struct image_extent){67, 51, 33}, pixels[_i]);

    for (int axis = 0; axis < 3; axis++) {
        ref_serpentine(field.extent, axis, field.in);
        paint(&field);
        ck_assert(grows(&field, plenty));
    }
    for (uint64_t seed = 0; seed < 5; seed++) {
        ref_random_maze(field.extent, seed, field.in);
        paint(&field);
        ck_assert(grows(&field, plenty));
    }
    field_free(&field);
}

END_TEST

/* A dense box: small in the volume it must be grown, large it must not. */
START_TEST(only_small_dense_objects_are_grown)
{
    struct field field = make_field((struct image_extent){64, 64, 64}, IMAGE_INT16);

    for (int64_t side = 8; side <= 16; side += 8) {
        for (int64_t i = 0; i < field.count; i++)
            field.in[i] = i % 64 < side && i / 64 % 64 < side && i / 4096 < side;
        paint(&field);
        ck_assert_int_eq(grows(&field, plenty), side == 8);
    }
    field_free(&field);
}

END_TEST

/* A corridor from the seed to a box: the object is thin first, and dense later. */
START_TEST(growth_of_dense_objects_is_stopped)
{
    struct field field = make_field((struct image_extent){4000, 16, 16}, IMAGE_INT16);

    for (int64_t i = 0; i < field.count; i++)
        field.in[i] = i < 4000 || i % 4000 >= 3900;
    memset(field.in, 1, 4000);
    field.seeds[0] = (struct kernels_voxel){0, 0, 0};
    paint(&field);
    ck_assert(!grows(&field, plenty));
    field_free(&field);
}

END_TEST

/* With too little space the growth must stop, and must not write beyond the space. */
START_TEST(little_space)
{
    struct field field = make_field((struct image_extent){67, 51, 33}, IMAGE_UINT16);
    int succeeded = 0;

    ref_random_maze(field.extent, 3, field.in);
    paint(&field);
    for (size_t chunks = 0; chunks < 600; chunks += 1 + chunks / 4)
        succeeded += grows(&field, chunks * CHUNK_BYTES);
    ck_assert_int_gt(succeeded, 0);
    ck_assert(!grows(&field, 0));
    ck_assert(!grows(&field, (size_t)5 * CHUNK_BYTES));
    field.object.seed_count = 0;
    ck_assert(grows(&field, 0));
    field_free(&field);
}

END_TEST

/* Any bounds of padding, including those beyond every pixel type. */
START_TEST(padding_of_any_bounds)
{
    static const struct image_range paddings[] = {
        {INT32_MIN, INT32_MAX}, {INT32_MIN, -1}, {TOP + 1, INT32_MAX}, {INT32_MIN, 215}, {220, 225}, {0, 0},
        {INT32_MAX, INT32_MIN},
    };
    struct field field = make_field((struct image_extent){41, 33, 9}, pixels[_i]);

    ref_random_maze(field.extent, 4, field.in);
    paint(&field);
    for (size_t i = 0; i < sizeof(paddings) / sizeof(paddings[0]); i++) {
        field.object.padding = paddings[i];
        ck_assert(grows(&field, plenty));
    }
    field_free(&field);
}

END_TEST

/* Two seeds at the ends of the volume, and the same one twice. */
START_TEST(several_seeds)
{
    struct field field = make_field((struct image_extent){67, 51, 33}, IMAGE_INT16);

    ref_serpentine(field.extent, 0, field.in);
    paint(&field);
    field.object.seed_count = 2;
    field.seeds[1] = (struct kernels_voxel){66, 50, 32};
    ck_assert(grows(&field, plenty));
    field.seeds[1] = field.seeds[0];
    ck_assert(grows(&field, plenty));
    field_free(&field);
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("fuzzy_grow");
    TCase *tests = tcase_create("fuzzy_grow");

    tcase_add_loop_test(tests, paths_and_mazes_are_grown, 0, 3);
    tcase_add_test(tests, only_small_dense_objects_are_grown);
    tcase_add_test(tests, growth_of_dense_objects_is_stopped);
    tcase_add_test(tests, little_space);
    tcase_add_loop_test(tests, padding_of_any_bounds, 0, 3);
    tcase_add_test(tests, several_seeds);
    suite_add_tcase(suite, tests);

    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
