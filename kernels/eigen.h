/* eigen.h - eigenvalues of small symmetric matrices. */
#ifndef NOCTULE_EIGEN_H
#define NOCTULE_EIGEN_H

/*
 * All eigenvalues of the symmetric n x n matrix, which is overwritten; in no particular order. By
 * Householder's reduction to tridiagonal form and the implicit QL method (Golub and Van Loan,
 * Matrix Computations, 8.3); `work` has room for n numbers.
 */
void eigenvalues_symmetric(double *matrix, int n, double *eigenvalues, double *work);

#endif
