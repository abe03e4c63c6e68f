/* eigen.c - see eigen.h. */
#include "kernels/features/matrices/eigen.h"

#include "kernels/features/matrices/eigen_steps.h"

void
eigen_tridiagonal(double *matrix, int n, double *diagonal, double *below, double *work)
{
    eigen_reduce(matrix, n, diagonal, below, work);
}

double
eigen_of_rank(const double *diagonal, const double *below, int n, int rank)
{
    return eigen_find(diagonal, below, n, rank);
}

double
eigen_spectral_norm(double *matrix, int n, double *work)
{
    return eigen_norm(matrix, n, work);
}
