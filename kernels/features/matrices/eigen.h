/*
 * eigen.h - eigenvalues of small dense symmetric matrices, always by the same operations in the
 * same order. Pure functions; any thread.
 */
#ifndef NOCTULE_EIGEN_H
#define NOCTULE_EIGEN_H

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Reduces the symmetric n x n matrix (row-major; only i >= j is read, all may be overwritten) to
 * tridiagonal form by Householder's reflections (Golub and Van Loan, Matrix Computations, 8.3.1):
 * n diagonal elements, n - 1 below it. `work` has room for 3 n numbers. Elements are expected to be
 * of ordinary size: what is below 1e-140 counts as 0.
 */
void eigen_tridiagonal(double *matrix, int n, double *diagonal, double *below, double *work);

/*
 * The eigenvalue of a tridiagonal matrix that `rank` (0 .. n - 1) others stand below, by bisection
 * on the number of negative pivots (8.4.1), to rounding beside the largest one.
 */
double eigen_of_rank(const double *diagonal, const double *below, int n, int rank);

/*
 * The largest magnitude of an eigenvalue of the symmetric matrix, which is overwritten as
 * eigen_tridiagonal does; n >= 1; `work` has room for 5 n numbers.
 */
double eigen_spectral_norm(double *matrix, int n, double *work);

#ifdef __cplusplus
}
#endif
#endif
