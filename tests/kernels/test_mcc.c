/*
 * test_mcc.c - checks maximal correlation coefficients of windows with known ones, and of others by the eigenvalues of whole
 * matrices (eigen.h), with each instruction set; and the search of eigenvalues.
 */
#include "kernels/cpu/isa.h"
#include "kernels/features/matrices/eigen.h"
#include "kernels/voxelwise/voxelwise_steps.h"

#include "tests/kernels/ref_volumes.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static const char *const isa_names[] = {"scalar", "AVX2", "AVX-512"};

/* A window: ranks from 1, side^3; 0: no level. */
struct window {
    int side, levels;
    uint16_t ranks[VOXELWISE_WINDOW];
};

/* Replaces any levels, 0 to 255, by their ranks, as a map of features does. */
static void
rank(struct window *window)
{
    const struct voxelwise_plan plan = {.side = window->side, .levels = 255};
    uint16_t counts[256];

    window->levels = voxelwise_rank(&plan, window->ranks, counts);
}

/* Computes the coefficients with each instruction set, which must give the same bits. */
static void
compute(const struct window *window, double found[MCC_DIRECTIONS])
{
    const struct mcc_window request = {window->side, window->levels, window->ranks};
    double *space = ref_allocate((int64_t)MCC_SPACE(window->levels), sizeof(*space)), other[MCC_DIRECTIONS];

    for (int i = 0; i < 3; i++) {
        const struct isa *isa = isa_find(isa_names[i]);

        if (!isa)
            continue;
        memset(space, 0xff, MCC_SPACE(window->levels) * sizeof(*space)); /* NAN */
        isa->mcc_window(&request, space, i == 0 ? found : other);
        ck_assert_msg(i == 0 || memcmp(found, other, sizeof(other)) == 0, "%s differs", isa_names[i]);
    }
    free(space);
}

/* Returns the rank of a voxel; 0: beyond the window. */
static int
rank_at(const struct window *window, int x, int y, int z)
{
    const int side = window->side;
    const bool within = x >= 0 && x < side && y >= 0 && y < side && z >= 0 && z < side;

    return within ? window->ranks[(z * side + y) * side + x] : 0;
}

/* Returns the coefficient of a direction by all eigenvalues of the whole matrix; NAN: fewer than two levels have pairs. */
static double
expect(const struct window *window, int number)
{
    const int n = window->levels, way = number + 14;
    double *matrix = ref_allocate(n * n, sizeof(*matrix)), *sums = ref_allocate(n, sizeof(*sums)), total = 0, norm;
    double *work = ref_allocate(5 * n, sizeof(*work));
    int occurring = 0, row = 0;

    for (int i = 0; i < window->side * window->side * window->side; i++) {
        const int x = i % window->side, y = i / window->side % window->side, z = i / window->side / window->side;
        const int a = rank_at(window, x, y, z);
        const int b = rank_at(window, x + way % 3 - 1, y + way / 3 % 3 - 1, z + way / 9 - 1);

        if (a == 0 || b == 0)
            continue;
        matrix[(a - 1) * n + b - 1]++;
        matrix[(b - 1) * n + a - 1]++;
        sums[a - 1]++;
        sums[b - 1]++;
        total += 2;
    }
    for (int i = 0; i < n; i++)
        occurring += sums[i] > 0;
    for (int i = 0; i < n; i++) {
        int column = 0;

        for (int k = 0; k < n && sums[i] > 0; k++)
            if (sums[k] > 0)
                matrix[row * occurring + column++] =
                    (matrix[i * n + k] * total - sums[i] * sums[k]) / (total * sqrt(sums[i] * sums[k]));
        row += sums[i] > 0;
    }
    norm = occurring > 1 ? eigen_spectral_norm(matrix, occurring, work) : NAN;
    free(work);
    free(matrix);
    free(sums);
    return norm < 1 || isnan(norm) ? norm : 1;
}

static void
check_window(const struct window *window, uint64_t seed)
{
    double found[MCC_DIRECTIONS];

    compute(window, found);
    for (int number = 0; number < MCC_DIRECTIONS; number++) {
        const double expected = expect(window, number);

        ck_assert_msg(isnan(expected) || fabs(found[number] - expected) < 1e-13,
                      "window %llu, direction %d: %.17g, not %.17g", (unsigned long long)seed, number, found[number],
                      expected);
    }
}

/* Windows of noise, of blocks and of layers, with holes, with 2 to 255 levels. */
START_TEST(random_windows)
{
    static struct window window;

    for (uint64_t seed = 0; seed < 900; seed++) {
        uint64_t state = seed * 31 + 7;
        const int64_t levels = 2 + ref_random_below(&state, seed % 10 == 0 ? 254 : seed % 3 == 0 ? 6 : 40);
        const int block = 1 + (int)ref_random_below(&state, 3);

        window.side = seed % 30 == 0 ? 7 + 2 * (int)ref_random_below(&state, 3) : 3 + 2 * (int)(seed % 2);
        for (int i = 0; i < window.side * window.side * window.side; i++) {
            const int z = i / window.side / window.side / block, y = i / window.side % window.side / block;
            const int x = i % window.side / block;
            const int64_t noise = 1 + ref_random_below(&state, levels), layers = 1 + (x + 2 * y + 3 * z) % levels;
            const bool hole = seed % 4 == 1 && ref_random_below(&state, 3) == 0;

            window.ranks[i] = (uint16_t)(hole ? 0 : seed % 7 == 2 ? layers : seed % 7 == 5 ? 1 + x % 2 : noise);
        }
        rank(&window);
        if (window.levels > 1)
            check_window(&window, seed);
    }
}

END_TEST

/* Checks the directions first .. end - 1 against a known coefficient. */
static void
check_known(struct window *window, int first, int end, double expected)
{
    double found[MCC_DIRECTIONS];

    rank(window);
    compute(window, found);
    for (int number = first; number < end; number++)
        ck_assert_msg(fabs(found[number] - expected) < 1e-13, "direction %d: %.17g, not %.17g", number, found[number],
                      expected);
}

/* The level of a voxel follows from that of its neighbour in a checkerboard. Slices of levels of their own follow likewise. */
START_TEST(dependent_levels)
{
    static struct window window = {.side = 5};

    for (int i = 0; i < 125; i++)
        window.ranks[i] = (uint16_t)(1 + (i % 5 + i / 5 % 5 + i / 25) % 2);
    check_known(&window, 0, MCC_DIRECTIONS, 1);
    for (int parts = 2; parts <= 3; parts++) {
        for (int i = 0; i < 125; i++)
            window.ranks[i] = (uint16_t)(i / 25 % 2 == 0 && i / 50 < parts ? 1 + i / 25 + i % 5 / 3 : 0);
        check_known(&window, 0, 4, 1); /* directions within a slice */
    }
}

END_TEST

/* Lines of two levels along x. In both orders, 1 1, 2 2, 1 2 and 2 1 are equally frequent, or 4, 4, 2 and 2. */
START_TEST(hand_counts)
{
    static struct window even = {.side = 3, .ranks = {1, 1, 0, 2, 2, 0, 1, 2, 1}};
    static struct window uneven = {.side = 3, .ranks = {1, 1, 1, 2, 2, 1, 1, 2, 2}};

    check_known(&even, 0, 1, 0);
    check_known(&uneven, 0, 1, 1.0 / 3);
}

END_TEST

MCC_SUMS(scalar_sums, double, static inline)

/* Returns the largest eigenvalue by the search, and the number of its rounds. */
static double
search_largest(const double *diagonal, const double *squares, int n, int *rounds)
{
    struct mcc_search search = {.x = 1, .above = 1};

    while (!search.done) {
        struct scalar_sums sums = {0};
        bool negative = true;

        for (int i = 0; i < n; i++) {
            const double q = diagonal[i] - search.x - sums.c;

            negative &= q < 0;
            scalar_sums_add(&sums, q, i + 1 < n ? squares[i] : 0);
        }
        mcc_next(&search, negative, sums.first, sums.second, n);
    }
    *rounds = search.rounds;
    return search.x;
}

/* Eigenvalues on the diagonal: equal ones, clusters, opposite ones, and the largest possible. */
START_TEST(searches_of_diagonals)
{
    static const double squares[64];
    double diagonal[64];
    int rounds, most = 0;

    for (int n = 1; n <= 64; n += 1 + n / 8)
        for (int same = 1; same <= n; same += 1 + same / 4)
            for (double largest = 1; largest > 1e-6; largest *= 0.73)
                for (int kind = 0; kind < 3; kind++) {
                    const double apart = kind == 0 ? 1e-9 : kind == 1 ? 1e-3 : 0.5;

                    for (int i = 0; i < n; i++)
                        diagonal[i] = i < same ? largest : largest - apart * (i - same + 1);
                    ck_assert_double_eq_tol(search_largest(diagonal, squares, n, &rounds), largest, 2e-13);
                    most = rounds > most ? rounds : most;
                }
    ck_assert_int_lt(most, 30);
    for (int i = 0; i < 64; i++)
        diagonal[i] = 0;
    ck_assert_double_eq_tol(search_largest(diagonal, squares, 64, &rounds), 0, 1e-13);
    diagonal[9] = 1 + 1e-12; /* by rounding */
    ck_assert_double_eq(search_largest(diagonal, squares, 64, &rounds), 1);
}

END_TEST

/* A matrix of a, and b beside the diagonal: a + 2 b cos(pi / (n + 1)). */
START_TEST(searches_of_chains)
{
    double diagonal[64], squares[64];
    int rounds;

    for (int n = 1; n <= 64; n++)
        for (double b = 0.49; b > 1e-9; b *= 0.3)
            for (double a = 1 - 2 * b; a > -1; a -= 0.4) {
                for (int i = 0; i < n; i++) {
                    diagonal[i] = a;
                    squares[i] = b * b;
                }
                const double largest = a + 2 * b * cos(acos(-1) / (n + 1));

                if (largest >= 0)
                    ck_assert_double_eq_tol(search_largest(diagonal, squares, n, &rounds), largest, 1e-13);
            }
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("mcc");
    TCase *tcase = tcase_create("mcc");
    SRunner *runner;
    int failed;

    tcase_add_test(tcase, random_windows);
    tcase_add_test(tcase, dependent_levels);
    tcase_add_test(tcase, hand_counts);
    tcase_add_test(tcase, searches_of_diagonals);
    tcase_add_test(tcase, searches_of_chains);
    suite_add_tcase(suite, tcase);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
