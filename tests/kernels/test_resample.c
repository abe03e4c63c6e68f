/*
 * test_resample.c - compares resampling on every lane with its definition; checks grids, masks, and rejected
 * requests.
 */
#include "tests/kernels/resample_cases.h"
#include "tests/kernels/variants.h"
#include "tests/unit/suite.h"

#include <errno.h>
#include <string.h>

static struct error error;

static void
open_all(void)
{
    variants_open(3);
}

/* Runs a case. Sets `resampled` to the lane's memory with the grid's volume. */
static int
resample_in(struct kernels_lane *lane, const struct resample_case *each, const void *voxels, const void **resampled)
{
    const struct resample_demand demand = resample_demand_of(each);
    const struct kernels_demand asked = {.of = {[KERNELS_RESAMPLE] = &demand}};
    struct resample_request request = resample_request_of(each);
    const struct image_extent *extent = &each->planes.extent;
    double *samples = resample_give_samples(each, voxels, &request);
    void *memory;
    int rc = kernels_volume_begin(lane, *extent, each->pixel, &asked, &memory, &error);

    ck_assert_msg(rc == 0, "%s", error.message);
    if (samples)
        memset(memory, 0, (size_t)image_voxels(extent) * image_pixel_size(each->pixel));
    else
        memcpy(memory, voxels, (size_t)image_voxels(extent) * image_pixel_size(each->pixel));
    ck_assert_int_eq(kernels_volume_ready(lane, 0, extent->slices, &error), 0);
    rc = kernels_resample(lane, &request, resampled, &error);
    free(samples);
    return rc;
}

static void *
random_voxels(const struct resample_case *each, uint64_t seed)
{
    const struct image_range range = image_pixel_range(each->pixel);
    void *voxels = allocate(image_voxels(&each->planes.extent), image_pixel_size(each->pixel));
    uint64_t random = seed;

    for (int64_t i = 0; i < image_voxels(&each->planes.extent); i++)
        ref_store(each->pixel, voxels, i,
                  range.lo + (int32_t)ref_random_below(&random, (int64_t)range.hi - range.lo + 1));
    return voxels;
}

static void
expect_reference(const struct resample_case *each, const void *voxels)
{
    const struct resample_demand demand = resample_demand_of(each);
    const size_t bytes = (size_t)image_voxels(&each->grid.extent) * resample_voxel_size(&demand);
    const struct resample_request request = resample_request_of(each);
    void *expected = allocate((int64_t)bytes, 1);

    ref_resample(&request, each->pixel, voxels, &demand, expected);
    for (size_t i = 0; i < variant_count; i++) {
        const void *resampled;
        ck_assert_msg(resample_in(variants[i].lane, each, voxels, &resampled) == 0, "%s", error.message);
        for (int64_t v = 0; v < image_voxels(&each->grid.extent); v++)
            if (!resample_equal(each, resampled, expected, v))
                ck_abort_msg("%s, %d threads, order %d, values %d: voxel %lld", variants[i].isa, variants[i].threads,
                             each->order, each->values, (long long)v);
    }
    free(expected);
}

START_TEST(random_planes_and_grids)
{
    static const int orders[] = {RESAMPLE_NEAREST, RESAMPLE_LINEAR, RESAMPLE_CUBIC};

    for (uint64_t seed = test_share_first(); seed < 30; seed += test_share()) {
        struct resample_case each;
        resample_make_case(&each, seed, orders[_i]);
        void *voxels = random_voxels(&each, seed);
        expect_reference(&each, voxels);
        resample_make_real(&each, seed);
        expect_reference(&each, voxels);
        free(voxels);
    }
}

END_TEST

/* Returns the index in the whole grid of voxel i of a part. */
static int64_t
voxel_of_part(const struct resample_grid *whole, const struct resample_grid *part, int64_t i)
{
    const int64_t x = part->first[0] + i % part->extent.columns;
    const int64_t y = part->first[1] + i / part->extent.columns % part->extent.rows;
    const int64_t z = part->first[2] + i / part->extent.columns / part->extent.rows;

    return (z * whole->extent.rows + y) * whole->extent.columns + x;
}

/* Checks that any part of a grid has the same values as the whole. */
START_TEST(parts_equal_the_whole)
{
    static const int orders[] = {RESAMPLE_NEAREST, RESAMPLE_LINEAR, RESAMPLE_CUBIC};

    for (uint64_t seed = test_share_first(); seed < 30; seed += test_share()) {
        struct resample_case each;
        uint64_t random = seed;
        const void *resampled;
        resample_make_case(&each, seed, orders[_i]);
        const struct resample_grid whole = each.grid;
        void *voxels = random_voxels(&each, seed);
        const size_t bytes = (size_t)image_voxels(&whole.extent) * image_pixel_size(each.result);
        void *expected = allocate((int64_t)bytes, 1);
        ck_assert_int_eq(resample_in(variants[0].lane, &each, voxels, &resampled), 0);
        memcpy(expected, resampled, bytes);
        for (int axis = 0; axis < 3; axis++) {
            int64_t *side = resample_side(&each.grid.extent, axis);
            each.grid.first[axis] = ref_random_below(&random, *side);
            *side = 1 + ref_random_below(&random, *side - each.grid.first[axis]);
        }
        ck_assert_int_eq(resample_in(variants[0].lane, &each, voxels, &resampled), 0);
        for (int64_t i = 0; i < image_voxels(&each.grid.extent); i++)
            ck_assert_int_eq(ref_stored(each.result, resampled, i),
                             ref_stored(each.result, expected, voxel_of_part(&whole, &each.grid, i)));
        free(expected);
        free(voxels);
    }
}

END_TEST

/* A grid that is narrowed to a box must contain everything that a mask in the box becomes on the whole grid. */
START_TEST(around_a_box)
{
    for (uint64_t seed = test_share_first(); seed < 40; seed += test_share()) {
        struct resample_case each;
        uint64_t random = seed;
        int64_t first[3], size[3], voxels, left = 0;
        resample_make_case(&each, 4 * seed + 2, RESAMPLE_CUBIC); /* regular planes, spaced */
        struct image_extent from = each.planes.extent;
        struct resample_grid part = each.grid;
        const int64_t words = (from.columns + 63) / 64, to = (part.extent.columns + 63) / 64;
        uint64_t *bits = allocate(words * from.rows * from.slices, sizeof(*bits));
        uint64_t *all = allocate(to * part.extent.rows * part.extent.slices, sizeof(*all));
        for (int axis = 0; axis < 3; axis++) {
            first[axis] = ref_random_below(&random, *resample_side(&from, axis));
            size[axis] = 1 + ref_random_below(&random, *resample_side(&from, axis) - first[axis]);
        }
        for (int64_t z = first[2]; z < first[2] + size[2]; z++)
            for (int64_t y = first[1]; y < first[1] + size[1]; y++)
                for (int64_t x = first[0]; x < first[0] + size[0]; x++)
                    bits[(z * from.rows + y) * words + x / 64] |= UINT64_C(1) << x % 64;
        ck_assert_int_eq(kernels_resample_linear_mask(&each.planes, &each.grid, bits, all, &voxels, &error), 0);
        resample_around(&each.planes, first, size, 0, &part);
        ck_assert_int_eq(kernels_resample_linear_mask(&each.planes, &part, bits, all, &left, &error), 0);
        ck_assert_int_eq(left, voxels);
        resample_around(&each.planes, first, size, 3, &part);
        for (int axis = 0; axis < 3; axis++)
            ck_assert_int_ge(part.first[axis], 0);
        free(bits);
        free(all);
    }
}

END_TEST

/* Makes axial planes 1 mm or `step` apart, with pixels of 1 mm. */
static struct resample_case
upright(int64_t columns, int64_t rows, int64_t slices, double step, int order)
{
    struct resample_case each = {.order = order, .pixel = IMAGE_INT16, .result = IMAGE_INT16, .outside = -7};

    each.planes = (struct image_planes){
        .extent = {columns, rows, slices}, .axes = {1, 0, 0, 0, 1, 0}, .spacing = {1, 1}, .thickness = step};
    for (int64_t z = 0; z < slices; z++)
        each.origins[3 * z + 2] = step * (double)z;
    return each;
}

static int32_t
only_value(struct resample_case *each, const int16_t *voxels, int64_t i)
{
    const void *resampled;
    each->planes.origins = each->origins;
    ck_assert_msg(resample_in(variants[0].lane, each, voxels, &resampled) == 0, "%s", error.message);
    return ref_stored(IMAGE_INT16, resampled, i);
}

/* Halves must round up, also below 0. A half-way place must count as half way though 3 mm are 2.9999999999919993. */
START_TEST(halves)
{
    static const int16_t voxels[] = {-2, -1, 4, 7};

    for (int order = 0; order < 2; order++) {
        struct resample_case each = upright(1, 1, 4, 2.9999999999919993, order);
        each.grid = (struct resample_grid){{1, 1, 3}, {1, 1, 3}, {0, 0, 1.5}, {0}, false, false};
        ck_assert_int_eq(only_value(&each, voxels, 0), -1);
        ck_assert_int_eq(only_value(&each, voxels, 1), order ? 2 : 4);
        ck_assert_int_eq(only_value(&each, voxels, 2), order ? 6 : 7);
    }
}

END_TEST

/* Half a sample beyond the ends has the value of the last one; places farther out have no value. */
START_TEST(beyond_the_ends)
{
    static const int16_t voxels[] = {10, 20, 30};

    static const struct {
        double place;
        int32_t value;
    } places[] = {{-0.50001, -7}, {-0.5, 10}, {-0.25, 10}, {0, 10}, {2, 30}, {2.49999, 30}, {2.5, 30}, {2.50001, -7}};

    for (int axis = 0; axis < 3; axis++)
        for (int order = 0; order < 2; order++)
            for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
                struct resample_case each = upright(axis == 0 ? 3 : 1, axis == 1 ? 3 : 1, axis == 2 ? 3 : 1, 1, order);
                each.grid = (struct resample_grid){{1, 1, 1}, {1, 1, 1}, {0, 0, 0}, {0}, false, false};
                each.grid.origin[axis] = places[i].place;
                ck_assert_int_eq(only_value(&each, voxels, 0), places[i].value);
            }
}

END_TEST

/* Samples at the same places must keep their values, for every order. */
START_TEST(the_same_grid)
{
    struct resample_case each = upright(37, 11, 9, 1.25, _i);
    const void *resampled;

    each.planes.origins = each.origins;
    resample_spaced(&each.planes, (const double[3]){0, 0, 0}, &each.grid);
    void *voxels = random_voxels(&each, 5);
    ck_assert_int_eq(resample_in(variants[0].lane, &each, voxels, &resampled), 0);
    ck_assert_mem_eq(resampled, voxels, 37 * 11 * 9 * sizeof(int16_t));
    free(voxels);
}

END_TEST

/* Undershoots below 0 must stay if the result type is signed, and become 0 if not. */
START_TEST(a_spline_swings_beyond)
{
    static const uint16_t voxels[] = {0, 0, 0, 9000, 9000, 9000};

    for (int result = IMAGE_INT16; result <= IMAGE_UINT16; result++) {
        struct resample_case each = upright(6, 1, 1, 1, RESAMPLE_CUBIC);
        const void *resampled;
        each.planes.origins = each.origins;
        each.pixel = IMAGE_UINT16;
        each.result = (enum image_pixel)result;
        each.outside = 0;
        each.grid = (struct resample_grid){{2, 1, 1}, {2, 1, 1}, {1.5, 0, 0}, {0}, false, false};
        ck_assert_int_eq(resample_in(variants[0].lane, &each, voxels, &resampled), 0);
        const int32_t below = ref_stored(each.result, resampled, 0);
        ck_assert(result == IMAGE_INT16 ? below < -500 : below == 0);
        ck_assert_int_gt(ref_stored(each.result, resampled, 1), 9500);
    }
}

END_TEST

/* Planes within the geometry check's tolerance count as exactly regular: half a mean step is a half. */
START_TEST(regular_planes)
{
    static const int16_t voxels[] = {10, 20, 30, 40};

    for (int regular = 0; regular < 2; regular++) {
        struct resample_case each = upright(1, 1, 4, 2, RESAMPLE_NEAREST);
        each.origins[3] = regular ? 0.019 : 0.021;
        each.origins[5] = 2.019;
        each.grid = (struct resample_grid){{1, 1, 1}, {1, 1, 1}, {0, 0, 1.005}, {0}, false, false};
        ck_assert_int_eq(only_value(&each, voxels, 0), regular ? 20 : 10);
    }
}

END_TEST

/* A spline must pass through its samples: a parabola between its ends. */
START_TEST(a_spline_of_a_parabola)
{
    struct resample_case each = upright(1, 1, 80, 1, RESAMPLE_CUBIC);
    int16_t voxels[80];

    for (int z = 0; z < 80; z++)
        voxels[z] = (int16_t)(8 * z * z / 2);
    each.grid = (struct resample_grid){{1, 1, 1}, {1, 1, 1}, {0, 0, 39.5}, {0}, false, false};
    ck_assert_int_eq(only_value(&each, voxels, 0), 4 * 39.5 * 39.5);
}

END_TEST

/* ---- grids ---- */

static void
expect_side(const struct resample_grid *grid, int axis, int64_t count, double spacing, double origin)
{
    const int64_t sides[] = {grid->extent.columns, grid->extent.rows, grid->extent.slices};

    ck_assert_int_eq(sides[axis], count);
    ck_assert_double_eq_tol(grid->spacing[axis], spacing, 1e-9);
    ck_assert_double_eq_tol(grid->origin[axis], origin, 1e-9);
}

/* As IBSI's phantom: 204 x 201 x 60 voxels of 0.977 x 0.977 x 3 mm become 100 x 99 x 90 of 2 mm. */
START_TEST(voxels_of_two_mm)
{
    struct resample_case each = upright(204, 201, 60, 2.9999999999919993, RESAMPLE_LINEAR);

    each.planes.origins = each.origins;
    each.planes.spacing[0] = each.planes.spacing[1] = 0.97699999809265;
    resample_spaced(&each.planes, (const double[3]){2, 2, 2}, &each.grid);
    expect_side(&each.grid, 0, 100, 2, (203 * 0.97699999809265 - 99 * 2) / 2);
    expect_side(&each.grid, 1, 99, 2, (200 * 0.97699999809265 - 98 * 2) / 2);
    expect_side(&each.grid, 2, 90, 2, (59 * 2.9999999999919993 - 89 * 2) / 2);
}

END_TEST

/*
 * The grid of pyradiomics: 9 samples of 2 mm begin at -1 mm. Voxels of 3 mm have their centres at 0.5, 3.5, ... 15.5 mm: the
 * next one, at 18.5, lies beyond 17 mm. From the end they are at 15.5, 12.5, ... 0.5.
 */
START_TEST(voxels_from_the_corner)
{
    struct resample_case each = upright(9, 1, 9, 2, RESAMPLE_LINEAR);

    each.planes.origins = each.origins;
    each.planes.spacing[0] = 2;
    resample_cornered(&each.planes, (const double[3]){3, 0, 3}, false, &each.grid);
    expect_side(&each.grid, 0, 6, 3, 0.5);
    expect_side(&each.grid, 1, 1, 1, 0);
    expect_side(&each.grid, 2, 6, 3, 0.5);
    resample_cornered(&each.planes, (const double[3]){3, 0, 3}, true, &each.grid);
    expect_side(&each.grid, 0, 6, 3, 0.5);
    expect_side(&each.grid, 2, 6, 3, 0.5);
    resample_cornered(&each.planes, (const double[3]){0, 0, 1}, true, &each.grid);
    expect_side(&each.grid, 2, 18, 1, -0.5);
}

END_TEST

/*
 * pyradiomics 3.0.1 has 6 voxels of 5 mm for 12 samples of 2.1 mm, and 3 of 2 mm for 5 of 1 mm. The centre of the last one is
 * beyond the samples' outer face, or on it: SimpleITK sets it to 0, and no mask has it.
 */
START_TEST(voxels_beyond_the_samples)
{
    const uint64_t bits[] = {1, 1, 1, 1, 1};
    double values[] = {7, 8, 9};
    uint64_t mask[3];
    int64_t voxels;
    struct resample_case each = upright(1, 1, 12, 2.1, RESAMPLE_LINEAR);

    each.planes.origins = each.origins;
    resample_cornered(&each.planes, (const double[3]){0, 0, 5}, false, &each.grid);
    expect_side(&each.grid, 2, 6, 5, 1.45);
    each = upright(1, 1, 5, 1, RESAMPLE_LINEAR);
    each.planes.origins = each.origins;
    for (int from_end = 0; from_end < 2; from_end++) {
        resample_cornered(&each.planes, (const double[3]){0, 0, 2}, from_end, &each.grid);
        expect_side(&each.grid, 2, 3, 2, from_end ? -0.5 : 0.5);
        ck_assert_int_eq(kernels_resample_nearest_mask(&each.planes, &each.grid, bits, mask, &voxels, &error), 0);
        ck_assert(voxels == 2 && mask[1] == 1 && mask[from_end ? 0 : 2] == 0);
        resample_clear_beyond(&each.planes, &each.grid, values);
        ck_assert(values[1] == 8 && values[2] == 0 && values[0] == (from_end ? 0 : 7));
    }
}

END_TEST

/* Voxels of 4 mm on planes of 2 mm lie half way: at 1, 5, 9 mm, between the planes 0 and 1, 2 and 3, 4 and 5. */
START_TEST(a_mask_takes_its_nearest_plane)
{
    struct resample_case each = upright(1, 1, 6, 2, RESAMPLE_LINEAR);
    const uint64_t bits[] = {1, 0, 0, 1, 0, 1};
    uint64_t mask[3];
    int64_t voxels;

    each.planes.origins = each.origins;
    resample_cornered(&each.planes, (const double[3]){0, 0, 4}, false, &each.grid);
    expect_side(&each.grid, 2, 3, 4, 1);
    ck_assert_int_eq(kernels_resample_nearest_mask(&each.planes, &each.grid, bits, mask, &voxels, &error), 0);
    ck_assert(voxels == 2 && mask[0] == 0 && mask[1] == 1 && mask[2] == 1); /* the later ones: planes 1, 3, 5 */
    resample_cornered(&each.planes, (const double[3]){0, 0, 4}, true, &each.grid);
    expect_side(&each.grid, 2, 3, 4, 1);
    ck_assert_int_eq(kernels_resample_nearest_mask(&each.planes, &each.grid, bits, mask, &voxels, &error), 0);
    ck_assert(voxels == 1 && mask[0] == 1 && mask[1] == 0 && mask[2] == 0); /* the earlier ones: planes 0, 2, 4 */
}

END_TEST

/* Planes that step 3 mm up and 2 mm along the rows, and 1 mm up: shifts from 0 to -4 and +1. */
START_TEST(tilted_planes_become_upright)
{
    struct resample_case each = upright(20, 10, 4, 0, RESAMPLE_LINEAR);
    static const double heights[] = {0, 3, 4, 7};

    each.planes.origins = each.origins;
    each.planes.spacing[1] = 0.8;
    for (int z = 0; z < 4; z++) {
        each.origins[3 * z] = z % 2 ? 0.5 : -0.25 * z;
        each.origins[3 * z + 1] = -2.0 * z;
        each.origins[3 * z + 2] = heights[z];
    }
    resample_straight(&each.planes, 0, &each.grid);
    expect_side(&each.grid, 0, 20 + 2, 1, -1);
    expect_side(&each.grid, 1, 10 + 8, 0.8, -6.4);
    expect_side(&each.grid, 2, 8, 1, 0);
    resample_straight(&each.planes, 2, &each.grid);
    expect_side(&each.grid, 2, 4, 2, 0);
}

END_TEST

/* Checks that exactly the places within reach have a value if all the planes have one. */
START_TEST(the_reach_contains_all_defined_voxels)
{
    int64_t within = 0, beyond = 0;
    const uint64_t step = test_share() > 1 ? 7 : 1; /* for enough places of both kinds */

    for (uint64_t seed = 0; seed < 30; seed += step) {
        struct resample_case each;
        resample_make_case(&each, seed, RESAMPLE_LINEAR);
        each.pixel = each.result = IMAGE_INT16;
        each.outside = -7;
        int16_t *voxels = allocate(image_voxels(&each.planes.extent), sizeof(*voxels));
        const int16_t *resampled;
        ck_assert_int_eq(resample_in(variants[0].lane, &each, voxels, (const void **)&resampled), 0);
        for (int64_t k = 0; k < each.grid.extent.slices; k++) {
            int64_t first[2], last[2];
            resample_reach(&each.planes, &each.grid, k, first, last);
            for (int64_t j = 0; j < each.grid.extent.rows; j++)
                for (int64_t i = 0; i < each.grid.extent.columns; i++) {
                    const bool reached = i >= first[0] && i <= last[0] && j >= first[1] && j <= last[1];
                    if (*resampled++ != (reached ? 0 : -7))
                        ck_abort_msg("case %llu", (unsigned long long)seed);
                    within += reached;
                    beyond += !reached;
                }
        }
        free(voxels);
    }
    ck_assert(within > 1000 && beyond > 1000);
}

END_TEST

/* ---- masks ---- */

/* Makes bits of columns only, because rows are padded to whole words. */
static uint64_t *
make_random_mask(const struct image_extent *extent, uint64_t seed)
{
    const int64_t words = (extent->columns + 63) / 64, rows = extent->rows * extent->slices;
    uint64_t *bits = allocate(words * rows, sizeof(*bits)), random = seed;

    for (int64_t i = 0; i < words * rows; i++) {
        const int64_t rest = extent->columns - i % words * 64;

        bits[i] = ref_random(&random) & (rest < 64 ? (UINT64_C(1) << rest) - 1 : UINT64_MAX);
    }
    return bits;
}

static int64_t
mask_words(const struct image_extent *extent)
{
    return (extent->columns + 63) / 64 * extent->rows * extent->slices;
}

/* Makes cases of any size, and planes and grids of one row, column or slice. */
static void
make_thin_case(struct resample_case *each, uint64_t seed, int order)
{
    resample_make_case(each, seed, order);
    if (seed % 3 == 0)
        return;
    each->planes.extent.columns = seed % 4 ? each->planes.extent.columns : 1;
    each->planes.extent.rows = seed % 5 ? each->planes.extent.rows : 1;
    each->grid.extent.columns = seed % 7 ? each->grid.extent.columns : 1;
    each->grid.extent.rows = seed % 8 ? each->grid.extent.rows : 1;
    each->grid.extent.slices = seed % 11 ? each->grid.extent.slices : 1;
}

START_TEST(masks_return_to_the_planes)
{
    for (uint64_t seed = test_share_first(); seed < 120; seed += test_share()) {
        struct resample_case each;
        make_thin_case(&each, seed, RESAMPLE_NEAREST);
        const int64_t words = mask_words(&each.planes.extent);
        uint64_t *bits = make_random_mask(&each.grid.extent, seed);
        uint64_t *mask = allocate(words, sizeof(*mask)), *expected = allocate(words, sizeof(*mask));
        int64_t voxels;

        memset(mask, 0xFF, (size_t)words * sizeof(*mask));
        ck_assert_int_eq(kernels_resample_mask(&each.planes, &each.grid, bits, mask, &voxels, &error), 0);
        ck_assert_int_eq(voxels, ref_resample_mask(&each.planes, &each.grid, bits, expected));
        ck_assert_mem_eq(mask, expected, (size_t)words * sizeof(*mask));
        free(bits);
        free(mask);
        free(expected);
    }
}

END_TEST

START_TEST(maps_return_to_the_planes)
{
    for (uint64_t seed = test_share_first(); seed < 120; seed += test_share()) {
        struct resample_case each;
        make_thin_case(&each, seed, RESAMPLE_NEAREST);
        const int64_t voxels = image_voxels(&each.planes.extent);
        const int64_t grid_voxels = image_voxels(&each.grid.extent);
        uint16_t *map = allocate(grid_voxels, sizeof(*map));
        uint16_t *back = allocate(voxels, sizeof(*back)), *expected = allocate(voxels, sizeof(*back));
        uint64_t random = seed;

        for (int64_t i = 0; i < grid_voxels; i++)
            map[i] = (uint16_t)(1 + ref_random_below(&random, UINT16_MAX));
        memset(back, 0xFF, (size_t)voxels * sizeof(*back));
        ck_assert_int_eq(kernels_resample_map(&each.planes, &each.grid, map, back, &error), 0);
        ref_resample_map(&each.planes, &each.grid, map, expected);
        ck_assert_mem_eq(back, expected, (size_t)voxels * sizeof(*back));
        free(map);
        free(back);
        free(expected);
    }
}

END_TEST

/* Makes a region that leaves most rows empty, and noise. */
static uint64_t *
make_mask_case(const struct image_extent *extent, uint64_t seed)
{
    uint64_t *bits = make_random_mask(extent, seed);
    const int64_t words = (extent->columns + 63) / 64;

    for (int64_t i = 0; seed % 2 && i < words * extent->rows * extent->slices; i++)
        if (i / words % 5 > 1)
            bits[i] = 0;
    return bits;
}

/* Checks a mask against order 1 on a volume of 0 and 1. */
static void
expect_linear_mask(const struct resample_case *each, uint64_t seed)
{
    const struct resample_request request = {&each->planes, &each->grid, RESAMPLE_LINEAR, 0, NULL, NULL};
    const struct resample_demand demand = {each->grid.extent, RESAMPLE_LINEAR, IMAGE_UINT8, RESAMPLE_STORED};
    const struct image_extent *from = &each->planes.extent, *to = &each->grid.extent;
    const int64_t from_words = (from->columns + 63) / 64, words = (to->columns + 63) / 64;
    uint64_t *bits = make_mask_case(from, seed), *mask = allocate(mask_words(to), sizeof(*mask));
    uint8_t *volume = allocate(image_voxels(from), 1), *expected = allocate(image_voxels(to), 1);
    int64_t voxels, counted = 0;

    for (int64_t i = 0; i < image_voxels(from); i++)
        volume[i] = bits[i / from->columns * from_words + i % from->columns / 64] >> i % from->columns % 64 & 1;
    memset(mask, 0xFF, (size_t)mask_words(to) * sizeof(*mask));
    ck_assert_int_eq(kernels_resample_linear_mask(&each->planes, &each->grid, bits, mask, &voxels, &error), 0);
    ref_resample(&request, IMAGE_UINT8, volume, &demand, expected);
    for (int64_t i = 0; i < image_voxels(to); i++) {
        const int64_t x = i % to->columns;
        const int bit = mask[i / to->columns * words + x / 64] >> x % 64 & 1;
        if (bit != expected[i])
            ck_abort_msg("case %llu: voxel %lld is %d", (unsigned long long)seed, (long long)i, bit);
        counted += bit;
    }
    ck_assert_int_eq(voxels, counted);
    free(bits);
    free(mask);
    free(volume);
    free(expected);
}

START_TEST(masks_on_the_grid_include_half_covered_voxels)
{
    for (uint64_t seed = test_share_first(); seed < 40; seed += test_share()) {
        struct resample_case each;
        make_thin_case(&each, seed, RESAMPLE_LINEAR);
        expect_linear_mask(&each, seed);
    }
}

END_TEST

START_TEST(annotated_masks_are_resampled_to_the_grid)
{
    for (uint64_t seed = test_share_first(); seed < 60; seed += test_share()) {
        struct resample_case each;
        resample_make_case(&each, seed, RESAMPLE_NEAREST);
        const int64_t words = mask_words(&each.grid.extent);
        uint64_t *drawn = make_random_mask(&each.planes.extent, seed);
        uint64_t *mask = allocate(words, sizeof(*mask)), *expected = allocate(words, sizeof(*mask));
        int64_t voxels;

        memset(mask, 0xFF, (size_t)words * sizeof(*mask));
        ck_assert_int_eq(kernels_resample_drawn(&each.planes, &each.grid, drawn, mask, &voxels, &error), 0);
        ck_assert_int_eq(voxels, ref_resample_drawn(&each.planes, &each.grid, drawn, expected));
        ck_assert_mem_eq(mask, expected, (size_t)words * sizeof(*mask));
        free(drawn);
        free(mask);
        free(expected);
    }
}

END_TEST

/* Makes the upright grid, with a slice on the last plane and slices no farther apart than the closest planes. */
static void
lay_out_as_jobs_do(struct resample_case *each)
{
    double normal[3];

    image_planes_normal(&each->planes, normal);
    const double *last = each->origins + 3 * (each->planes.extent.slices - 1);
    const double height = image_planes_along(last, each->origins, normal);
    resample_straight(&each->planes, 0, &each->grid);
    const double steps = fmax(ceil(height / each->grid.spacing[2] - 1e-6), 1);
    each->grid.spacing[2] = height / steps;
    each->grid.extent.slices = (int64_t)steps + 1;
}

/* Also with all planes shifted by half a pixel, or half way between two slices. */
START_TEST(annotated_masks_return_to_the_planes)
{
    for (uint64_t seed = test_share_first(); seed < 60; seed += test_share()) {
        struct resample_case each;
        int64_t there, back;
        resample_make_case(&each, 2 * seed, RESAMPLE_NEAREST);
        if (each.planes.extent.slices < 2)
            continue;
        for (int64_t z = 0; z < each.planes.extent.slices && seed % 3 == 0; z++) {
            const double height = z < 2 ? (double)z : (double)z + 0.5;

            memcpy(each.planes.axes, (const double[6]){1, 0, 0, 0, 1, 0}, sizeof(each.planes.axes));
            each.origins[3 * z] = 0;
            each.origins[3 * z + 1] = (double)z * 0.5 * each.planes.spacing[1];
            each.origins[3 * z + 2] = height;
        }
        lay_out_as_jobs_do(&each);
        const int64_t words = mask_words(&each.planes.extent);
        uint64_t *drawn = make_random_mask(&each.planes.extent, seed);
        uint64_t *mask = allocate(mask_words(&each.grid.extent), sizeof(*mask));
        uint64_t *again = allocate(words, sizeof(*again));

        ck_assert_int_eq(kernels_resample_drawn(&each.planes, &each.grid, drawn, mask, &there, &error), 0);
        ck_assert_int_eq(kernels_resample_mask(&each.planes, &each.grid, mask, again, &back, &error), 0);
        ck_assert_mem_eq(again, drawn, (size_t)words * sizeof(*again));
        free(drawn);
        free(mask);
        free(again);
    }
}

END_TEST

/* One of two pixels is a half, which is enough; one of four is not. */
START_TEST(a_half_of_a_mask_is_enough)
{
    struct resample_case each = upright(4, 4, 1, 1, RESAMPLE_LINEAR);
    const uint64_t bits[] = {0x6, 0x0, 0x3, 0x0}; /* .xx. .... xx.. .... */
    uint64_t mask[2];
    int64_t voxels;

    each.planes.origins = each.origins;
    resample_spaced(&each.planes, (const double[3]){2, 0, 0}, &each.grid);
    ck_assert_int_eq(kernels_resample_linear_mask(&each.planes, &each.grid, bits, (uint64_t[4]){0}, &voxels, &error),
                     0);
    ck_assert_int_eq(voxels, 3);
    resample_spaced(&each.planes, (const double[3]){2, 2, 0}, &each.grid);
    ck_assert_int_eq(kernels_resample_linear_mask(&each.planes, &each.grid, bits, mask, &voxels, &error), 0);
    ck_assert_int_eq(voxels, 1);
    ck_assert(mask[0] == 0 && mask[1] == 1);
}

END_TEST

/* ---- rejected requests ---- */

START_TEST(refusals)
{
    static int16_t voxels[4 * 3 * 5];
    const void *resampled;

    for (int wrong = 0; wrong < 14; wrong++) {
        struct resample_case each = upright(4, 3, 5, 1, wrong < 9 ? RESAMPLE_LINEAR : RESAMPLE_CUBIC);
        each.planes.origins = each.origins;
        resample_spaced(&each.planes, (const double[3]){2, 2, 2}, &each.grid);
        each.grid.spacing[2] = wrong == 0 ? 0 : each.grid.spacing[2];
        each.grid.spacing[1] = wrong == 1 ? -1 : each.grid.spacing[1];
        each.grid.origin[0] = wrong == 2 ? INFINITY : each.grid.origin[0];
        each.planes.spacing[0] = wrong == 3 ? 0 : each.planes.spacing[0];
        each.planes.spacing[1] = wrong == 4 ? NAN : each.planes.spacing[1];
        each.origins[8] = wrong == 5 ? 1 : each.origins[8];
        each.origins[8] = wrong == 6 ? 0.5 : each.origins[8];
        each.outside = wrong == 7 ? 32768 : each.outside;
        each.outside = wrong == 8 ? -32769 : each.outside;
        each.origins[8] = wrong == 9 ? 2.05 : each.origins[8];
        each.origins[9] = wrong == 10 ? 0.05 : each.origins[9];
        each.grid.origin[0] = wrong == 11 ? -0.51 : each.grid.origin[0];
        each.grid.origin[2] = wrong == 12 ? 0.51 : each.grid.origin[2];
        const int rc = resample_in(variants[0].lane, &each, voxels, &resampled);
        ck_assert_msg(rc == (wrong < 13 ? -EINVAL : 0), "%d: %d %s", wrong, rc, error.message);
    }
}

END_TEST

START_TEST(out_of_order)
{
    static int16_t voxels[4 * 3 * 5];
    struct resample_case each = upright(4, 3, 5, 1, RESAMPLE_LINEAR);
    const struct kernels_demand none = {0};
    const void *resampled;
    void *memory;

    each.planes.origins = each.origins;
    resample_spaced(&each.planes, (const double[3]){2, 2, 2}, &each.grid);
    const struct resample_request request = resample_request_of(&each);
    const struct resample_demand demand = {each.grid.extent, RESAMPLE_CUBIC, IMAGE_INT16, RESAMPLE_STORED};
    const struct resample_demand too_large = {
        {INT64_C(1) << 12, INT64_C(1) << 12, 1 << 12}, RESAMPLE_LINEAR, IMAGE_INT16, RESAMPLE_STORED};
    const struct kernels_demand asked[] = {{.of = {[KERNELS_RESAMPLE] = &demand}},
                                           {.of = {[KERNELS_RESAMPLE] = &too_large}}};
    struct kernels_lane *lane = variants[0].lane;
    ck_assert_int_eq(kernels_volume_begin(lane, each.planes.extent, IMAGE_INT16, &none, &memory, &error), 0);
    ck_assert_int_eq(kernels_resample(lane, &request, &resampled, &error), -EINVAL);
    ck_assert_int_eq(kernels_volume_begin(lane, each.planes.extent, IMAGE_INT16, &asked[0], &memory, &error), 0);
    memcpy(memory, voxels, sizeof(voxels));
    ck_assert_int_eq(kernels_resample(lane, &request, &resampled, &error), -EBUSY);
    ck_assert_int_eq(kernels_volume_ready(lane, 0, 5, &error), 0);
    ck_assert_int_eq(kernels_resample(lane, &request, &resampled, &error), -EINVAL);
    ck_assert_int_eq(kernels_volume_begin(lane, each.planes.extent, IMAGE_INT16, &asked[1], &memory, &error), -ENOMEM);
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("resample");
    TCase *tests = tcase_create("resample");

    tcase_add_unchecked_fixture(tests, open_all, variants_close);
    tcase_add_loop_test(tests, random_planes_and_grids, 0, 3);
    tcase_add_loop_test(tests, parts_equal_the_whole, 0, 3);
    tcase_add_test(tests, around_a_box);
    tcase_add_test(tests, halves);
    tcase_add_test(tests, beyond_the_ends);
    tcase_add_loop_test(tests, the_same_grid, RESAMPLE_NEAREST, RESAMPLE_LINEAR + 1);
    tcase_add_loop_test(tests, the_same_grid, RESAMPLE_CUBIC, RESAMPLE_CUBIC + 1);
    tcase_add_test(tests, regular_planes);
    tcase_add_test(tests, a_spline_swings_beyond);
    tcase_add_test(tests, a_spline_of_a_parabola);
    tcase_add_test(tests, voxels_of_two_mm);
    tcase_add_test(tests, voxels_from_the_corner);
    tcase_add_test(tests, voxels_beyond_the_samples);
    tcase_add_test(tests, a_mask_takes_its_nearest_plane);
    tcase_add_test(tests, tilted_planes_become_upright);
    tcase_add_test(tests, the_reach_contains_all_defined_voxels);
    tcase_add_test(tests, masks_return_to_the_planes);
    tcase_add_test(tests, maps_return_to_the_planes);
    tcase_add_test(tests, masks_on_the_grid_include_half_covered_voxels);
    tcase_add_test(tests, a_half_of_a_mask_is_enough);
    tcase_add_test(tests, annotated_masks_are_resampled_to_the_grid);
    tcase_add_test(tests, annotated_masks_return_to_the_planes);
    tcase_add_test(tests, refusals);
    tcase_add_test(tests, out_of_order);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
