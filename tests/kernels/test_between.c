/* test_between.c - interpolated planes between drawn ones, compared with signed distances, and rejected input. */
#include "kernels/mask/between.h"
#include "tests/kernels/ref_volumes.h"
#include "tests/share.h"
#include "tests/unit/edge.h"
#include "tests/unit/growth.h"

#include <check.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS = 70, ROWS = 33, SLICES = 9, WORDS = 2 };

static uint64_t bits[SLICES * ROWS * WORDS];
static double origins[3 * SLICES];
static struct image_planes planes = {{COLUMNS, ROWS, SLICES}, {1, 0, 0, 0, 1, 0}, {1, 1}, 1, origins};
static struct error error;

static void
begin(double high)
{
    memset(bits, 0, sizeof(bits));
    planes.spacing[1] = high;
    for (int z = 0; z < SLICES; z++)
        origins[3 * z + 2] = z + 0.25 * (z % 3);
}

static bool
has(int z, int y, int x)
{
    return bits[(z * ROWS + y) * WORDS + x / 64] >> x % 64 & 1;
}

static void
set(int z, int y, int x)
{
    bits[(z * ROWS + y) * WORDS + x / 64] |= UINT64_C(1) << x % 64;
}

/* Draws two ellipses in a random place. Their parts may or may not touch. */
static void
draw(int z, uint64_t *random)
{
    for (int part = 0; part < 2; part++) {
        const double cx = (double)ref_random_below(random, COLUMNS), rx = 3 + (double)ref_random_below(random, 15);
        const double cy = (double)ref_random_below(random, ROWS), ry = 2 + (double)ref_random_below(random, 9);

        for (int y = 0; y < ROWS; y++)
            for (int x = 0; x < COLUMNS; x++)
                if ((x - cx) * (x - cx) / rx / rx + (y - cy) * (y - cy) / ry / ry <= 1)
                    set(z, y, x);
    }
}

/* Returns the distance at the pixel's centre, positive inside. */
static double
signed_distance(int z, int y, int x)
{
    const bool own = has(z, y, x);
    double best = INFINITY;

    for (int b = 0; b < ROWS; b++)
        for (int a = 0; a < COLUMNS; a++)
            if (has(z, b, a) != own)
                best = fmin(best, hypot(a - x, (b - y) * planes.spacing[1]));
    return own ? best : -best;
}

/* Checks linear interpolation between the two planes. Distances close to 0 are not checked. */
static void
expect_between(int low, int high)
{
    for (int y = 0; y < ROWS; y++)
        for (int x = 0; x < COLUMNS; x++) {
            const double a = signed_distance(low, y, x), b = signed_distance(high, y, x);

            for (int z = low + 1; z < high; z++) {
                const double part =
                    (origins[3 * z + 2] - origins[3 * low + 2]) / (origins[3 * high + 2] - origins[3 * low + 2]);
                const double value = (1 - part) * a + part * b;

                if (fabs(value) > 1e-2)
                    ck_assert_msg(has(z, y, x) == (value > 0), "%d, %d, %d: %g", x, y, z, value);
            }
        }
}

START_TEST(shapes_are_linear_between_drawn_planes)
{
    static const bool drawn[SLICES] = {[1] = true, [2] = true, [5] = true, [7] = true};
    int64_t voxels = 0, expected = 0;
    uint64_t random = 4 + (uint64_t)_i;

    begin(_i % 3 ? 0.7 : 1);
    for (int z = 0; z < SLICES; z++)
        if (drawn[z])
            draw(z, &random);
    for (int i = 0; i < SLICES * ROWS * WORDS; i++)
        expected -= __builtin_popcountll(bits[i]);
    ck_assert_int_eq(kernels_mask_between(&planes, drawn, bits, &voxels, &error), 0);
    expect_between(2, 5);
    expect_between(5, 7);
    for (int i = 0; i < SLICES * ROWS * WORDS; i++)
        expected += __builtin_popcountll(bits[i]);
    ck_assert_int_eq(voxels, expected);
    for (int i = 0; i < ROWS * WORDS; i++)
        ck_assert(bits[i] == 0 && bits[8 * ROWS * WORDS + i] == 0);
}

END_TEST

/* Half way between x < 4 and x < 7 is x < 6: the pixel at 5 is as far inside as outside. */
START_TEST(voxels_on_the_border_are_included)
{
    static const bool drawn[SLICES] = {[3] = true, [5] = true};
    int64_t voxels = 0;

    begin(1);
    origins[3 * 4 + 2] = (origins[3 * 3 + 2] + origins[3 * 5 + 2]) / 2 + 1e-9;
    for (int y = 0; y < ROWS; y++)
        for (int x = 0; x < 7; x++) {
            set(5, y, x);
            if (x < 4)
                set(3, y, x);
        }
    ck_assert_int_eq(kernels_mask_between(&planes, drawn, bits, &voxels, &error), 0);
    ck_assert_int_eq(voxels, 6 * ROWS);
    ck_assert(has(4, 2, 5) && !has(4, 2, 6));
}

END_TEST

/* A full plane has no border, and an empty one draws no pixels towards it. */
START_TEST(full_and_empty_planes)
{
    static const bool drawn[SLICES] = {[0] = true, [2] = true, [4] = true, [6] = true};
    int64_t voxels = 0;

    begin(1);
    for (int y = 0; y < ROWS; y++)
        for (int x = 0; x < COLUMNS; x++)
            set(2, y, x);
    set(4, 9, 9);
    ck_assert_int_eq(kernels_mask_between(&planes, drawn, bits, &voxels, &error), 0);
    ck_assert_int_eq(voxels, COLUMNS * ROWS);
    ck_assert(has(3, 0, 0) && !has(1, 9, 9) && !has(5, 9, 9));
}

END_TEST

START_TEST(pixels_like_needles_are_refused)
{
    static const bool drawn[SLICES] = {[0] = true, [2] = true};
    int64_t voxels = 0;

    begin(1025);
    ck_assert_int_eq(kernels_mask_between(&planes, drawn, bits, &voxels, &error), -EBADMSG);
    ck_assert_int_eq(error.code, CODE_SIZE_IMPLAUSIBLE);
    begin(1024);
    ck_assert_int_eq(kernels_mask_between(&planes, drawn, bits, &voxels, &error), 0);
}

END_TEST

/* ---- cost ---- */

/* Drawn planes with one between each two, alternately full and empty, so that every pixel differs. */
struct alternation {
    struct image_planes planes;
    bool *drawn;
    double *origins;
    uint64_t *bits;
    int64_t words; /* words per plane */
};

static void
alternation_make(struct alternation *made, int32_t columns, int32_t rows, int32_t gaps)
{
    const size_t slices = 2 * (size_t)gaps + 1;

    *made = (struct alternation){.drawn = calloc(slices, sizeof(bool)),
                                 .origins = calloc(3 * slices, sizeof(double)),
                                 .words = rows * (columns / 64)};
    made->bits = calloc(slices, (size_t)made->words * sizeof(uint64_t));
    ck_assert(made->drawn && made->origins && made->bits && columns % 64 == 0);
    made->planes =
        (struct image_planes){{columns, rows, (int32_t)slices}, {1, 0, 0, 0, 1, 0}, {1, 1}, 1, made->origins};
    for (size_t z = 0; z < slices; z++) {
        made->origins[3 * z + 2] = (double)z;
        made->drawn[z] = z % 2 == 0;
        if (z % 4 == 0)
            memset(made->bits + (int64_t)z * made->words, 0xFF, (size_t)made->words * sizeof(uint64_t));
    }
}

static int
alternation_fill(struct alternation *made)
{
    int64_t voxels = 0;
    return kernels_mask_between(&made->planes, made->drawn, made->bits, &voxels, &error);
}

static void
alternation_free(struct alternation *made)
{
    free(made->drawn);
    free(made->origins);
    free(made->bits);
}

/* Each of two rows is searched for a pixel's counterpart, on either plane. */
START_TEST(limit_of_rows_between)
{
    if (!test_turn_has(2))
        return;
    static const struct edge edge = EDGE(ROI_BETWEEN_MI);
    const int32_t columns = 32768, gaps = (int32_t)((edge.most << 20) / 4 / 2 / columns);
    struct alternation made;

    ck_assert_int_eq(gaps % 2, 0);
    alternation_make(&made, columns, 2, gaps + 1);
    memcpy(made.bits + 2 * (gaps + 1) * made.words, made.bits + 2 * gaps * made.words,
           (size_t)made.words * sizeof(uint64_t));
    ck_assert_int_eq(alternation_fill(&made), 0);
    made.bits[2 * (gaps + 1) * made.words] ^= 1;
    ck_assert_int_eq(alternation_fill(&made), -EBADMSG);
    ck_assert_int_eq(error.code, edge.code);
    alternation_free(&made);
}

END_TEST

static double
alternation_cost(const void *kind, size_t n)
{
    struct alternation made;

    (void)kind;
    alternation_make(&made, 512, 16, (int32_t)n);
    const double begun = growth_clock();
    ck_assert_int_eq(alternation_fill(&made), 0);
    const double seconds = growth_clock() - begun;
    alternation_free(&made);
    return seconds;
}

START_TEST(cost_is_linear)
{
    expect_linear("drawn planes", alternation_cost, NULL, 100);
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("between");
    TCase *tests = tcase_create("between");

    tcase_add_loop_test(tests, shapes_are_linear_between_drawn_planes, 0, 9);
    tcase_add_test(tests, voxels_on_the_border_are_included);
    tcase_add_test(tests, full_and_empty_planes);
    tcase_add_test(tests, pixels_like_needles_are_refused);
    tcase_add_test(tests, limit_of_rows_between);
    tcase_add_test(tests, cost_is_linear);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
