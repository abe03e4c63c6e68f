/* eigen.h - eigenvalues of small dense symmetric matrices, by fixed operations in a fixed order.
 * Pure functions. Threads: any. */
#ifndef NOCTULE_KERNELS_FEATURES_MATRICES_EIGEN_H
#define NOCTULE_KERNELS_FEATURES_MATRICES_EIGEN_H

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Reduces the symmetric n x n matrix to tridiagonal form by Householder's reflections (Golub and
 * Van Loan, Matrix Computations, 8.3.1). The matrix is row-major; reads only i >= j, may overwrite
 * all. Writes n diagonal elements and n - 1 below it. `work` must have room for 3 n numbers.
 * Elements below 1e-140 count as 0.
 */
void eigen_tridiagonal(double *matrix, int n, double *diagonal, double *below, double *work);

/* Returns the eigenvalue of a tridiagonal matrix that is greater than `rank` (0 .. n - 1) others.
 * Bisects on the number of negative pivots (8.4.1), up to rounding relative to the largest one. */
double eigen_of_rank(const double *diagonal, const double *below, int n, int rank);

/* Returns the largest magnitude of an eigenvalue of the symmetric matrix, n >= 1. Overwrites the
 * matrix as eigen_tridiagonal does. `work` must have room for 5 n numbers. */
double eigen_spectral_norm(double *matrix, int n, double *work);

#ifdef __cplusplus
}
#endif
#endif
