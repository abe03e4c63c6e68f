/* test_eigen.c - checks eigenvalues of matrices with known ones, and of others by their invariants. */
#include "kernels/features/matrices/eigen.h"

#include "tests/kernels/ref_volumes.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const int sizes[] = {1, 2, 3, 4, 5, 7, 8, 31, 64, 100, 255, 256};

#define SIZES (sizeof(sizes) / sizeof(sizes[0]))

/* Returns a number in -1 .. 1. */
static double
number(uint64_t *random)
{
    return (double)ref_random_below(random, 2000001) / 1e6 - 1;
}

static double *
matrix_of(int n)
{
    double *matrix = calloc((size_t)n * (size_t)n, sizeof(*matrix));

    ck_assert_ptr_nonnull(matrix);
    return matrix;
}

/* Returns all eigenvalues, ascending. Overwrites the matrix. */
static double *
eigenvalues_of(double *matrix, int n)
{
    double *values = malloc(6 * (size_t)n * sizeof(*values));
    double *diagonal = values + n, *below = diagonal + n;

    ck_assert_ptr_nonnull(values);
    eigen_tridiagonal(matrix, n, diagonal, below, below + n);
    for (int rank = 0; rank < n; rank++)
        values[rank] = eigen_of_rank(diagonal, below, n, rank);
    return values;
}

static double
norm_of(const double *matrix, int n)
{
    const size_t square = (size_t)n * (size_t)n;
    double *copy = matrix_of(n), *work = malloc(5 * (size_t)n * sizeof(*work)), norm;

    ck_assert_ptr_nonnull(work);
    memcpy(copy, matrix, square * sizeof(*copy));
    norm = eigen_spectral_norm(copy, n, work);
    free(work);
    free(copy);
    return norm;
}

/* Multiplies both sides by I - 2 v v' / v'v of a random v, which does not change the eigenvalues. */
static void
turn(double *matrix, int n, uint64_t *random)
{
    double *v = malloc(2 * (size_t)n * sizeof(*v)), *product = v + n, squares = 0, projection = 0;

    ck_assert_ptr_nonnull(v);
    for (int i = 0; i < n; i++) {
        v[i] = number(random) + 0.001;
        squares += v[i] * v[i];
    }
    for (int i = 0; i < n; i++) {
        product[i] = 0;
        for (int k = 0; k < n; k++)
            product[i] += matrix[i * n + k] * v[k];
        projection += product[i] * v[i];
    }
    for (int i = 0; i < n; i++)
        for (int k = 0; k < n; k++)
            matrix[i * n + k] += 4 * projection / (squares * squares) * v[i] * v[k] -
                                 2 / squares * (v[i] * product[k] + product[i] * v[k]);
    free(v);
}

static int
ascending(const void *left, const void *right)
{
    const double *a = left, *b = right;

    return (*a > *b) - (*a < *b);
}

/* Turns the matrix three times, and checks its eigenvalues. */
static void
check_known(double *known, int n, double scale)
{
    double *matrix = matrix_of(n), *found;
    uint64_t random = (uint64_t)n;

    for (int i = 0; i < n; i++)
        matrix[i * n + i] = known[i];
    for (int i = 0; i < 3; i++)
        turn(matrix, n, &random);
    qsort(known, (size_t)n, sizeof(*known), ascending);
    ck_assert_double_eq_tol(norm_of(matrix, n), fmax(fabs(known[0]), fabs(known[n - 1])), 1e-13 * scale);
    found = eigenvalues_of(matrix, n);
    for (int i = 0; i < n; i++)
        ck_assert_double_eq_tol(found[i], known[i], 1e-13 * scale);
    free(found);
    free(matrix);
}

START_TEST(turned_diagonals)
{
    const int n = sizes[_i];
    double *known = malloc((size_t)n * sizeof(*known));
    uint64_t random = 7;

    for (int i = 0; i < n; i++)
        known[i] = number(&random);
    check_known(known, n, 1);
    for (int i = 0; i < n; i++) /* clustered, equal, opposite, and over many magnitudes */
        known[i] = i % 3 == 0 ? 1 : i % 3 == 1 ? -1 : pow(10, -i);
    check_known(known, n, 1);
    for (int i = 0; i < n; i++)
        known[i] = 1e6 * number(&random);
    check_known(known, n, 1e6);
    free(known);
}

END_TEST

START_TEST(second_differences)
{
    const int n = sizes[_i];
    double *matrix = matrix_of(n), *found;

    for (int i = 0; i < n; i++) {
        matrix[i * n + i] = 2;
        if (i > 0)
            matrix[i * n + i - 1] = matrix[(i - 1) * n + i] = -1;
    }
    found = eigenvalues_of(matrix, n);
    for (int i = 0; i < n; i++)
        ck_assert_double_eq_tol(found[i], 2 - 2 * cos((i + 1) * acos(-1) / (n + 1)), 1e-13);
    free(found);
    free(matrix);
}

END_TEST

START_TEST(random_matrices)
{
    const int n = sizes[_i];
    double *matrix = matrix_of(n), *found, trace = 0, squares = 0;
    uint64_t random = 3;

    for (int i = 0; i < n; i++)
        for (int k = 0; k <= i; k++) {
            double value = number(&random);
            matrix[i * n + k] = matrix[k * n + i] = value;
            trace += i == k ? value : 0;
            squares += i == k ? value * value : 2 * value * value;
        }
    found = eigenvalues_of(matrix, n);
    for (int i = 0; i < n; i++) {
        trace -= found[i];
        squares -= found[i] * found[i];
        ck_assert(i == 0 || found[i] >= found[i - 1]);
    }
    ck_assert_double_eq_tol(trace, 0, 1e-12 * n);
    ck_assert_double_eq_tol(squares, 0, 1e-12 * n * n);
    free(found);
    free(matrix);
}

END_TEST

START_TEST(zero_matrices)
{
    double *matrix = matrix_of(256);
    uint64_t random = 1;

    ck_assert_double_eq(norm_of(matrix, 256), 0);
    for (int i = 0; i < 256 * 256; i++)
        matrix[i] = 1e-160 * number(&random);
    ck_assert_double_eq_tol(norm_of(matrix, 256), 0, 1e-139);
    matrix[0] = -3;
    ck_assert_double_eq_tol(norm_of(matrix, 256), 3, 1e-14);
    ck_assert_double_eq_tol(norm_of(matrix, 1), 3, 1e-15);
    free(matrix);
}

END_TEST

START_TEST(only_the_lower_half_is_read)
{
    double matrix[9] = {1, NAN, NAN, 2, 1, NAN, 0, 0, 0.5};

    ck_assert_double_eq_tol(norm_of(matrix, 3), 3, 1e-14);
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("eigen");
    TCase *tcase = tcase_create("eigen");
    SRunner *runner;
    int failed;

    tcase_add_loop_test(tcase, turned_diagonals, 0, (int)SIZES);
    tcase_add_loop_test(tcase, second_differences, 0, (int)SIZES);
    tcase_add_loop_test(tcase, random_matrices, 0, (int)SIZES);
    tcase_add_test(tcase, zero_matrices);
    tcase_add_test(tcase, only_the_lower_half_is_read);
    suite_add_tcase(suite, tcase);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
