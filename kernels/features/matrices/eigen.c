/*
 * eigen.c - see eigen.h.
 *
 * The reduction makes one pass over the matrix per reflection. It delays a reflection's rank-two
 * update until the product with the next reflection's vector, and does both together.
 */
#include "kernels/features/matrices/eigen.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* The delayed update: element (i, k) decreases by u[i] w[k] + w[i] u[k]. */
struct update {
    const double *u, *w;
};

/* Replaces the `count` elements left of the diagonal by the vector u of the reflection I - u u' / h
 * that leaves only the last of them. Returns the new value of the last one. */
static double
make_reflection(double *u, int count, double *h)
{
    double squares = 0, left;

    for (int k = 0; k < count; k++)
        squares += u[k] * u[k];
    if (squares < 1e-280) {
        memset(u, 0, (size_t)count * sizeof(*u));
        *h = 1;
        return 0;
    }
    left = u[count - 1] > 0 ? -sqrt(squares) : sqrt(squares); /* avoids cancellation */
    *h = squares - u[count - 1] * left;
    u[count - 1] -= left;
    return left;
}

/*
 * Updates the first i elements of row i, and adds its part of the product with v to y[0 .. i - 1].
 * Returns its own element of the product without the diagonal. Four alternating sums avoid waiting
 * for each addition.
 */
static double
update_and_multiply_row(double *restrict row, int i, struct update update, const double *restrict v, double *restrict y)
{
    const double *restrict u = update.u, *restrict w = update.w;
    const double ui = u[i], wi = w[i], vi = v[i];
    double sums[4] = {0, 0, 0, 0};
    int k = 0;

    for (; k + 4 <= i; k += 4)
        for (int lane = 0; lane < 4; lane++) {
            const double element = row[k + lane] - (ui * w[k + lane] + wi * u[k + lane]);

            row[k + lane] = element;
            y[k + lane] += vi * element;
            sums[lane] += v[k + lane] * element;
        }
    for (; k < i; k++) {
        row[k] -= ui * w[k] + wi * u[k];
        y[k] += vi * row[k];
        sums[0] += v[k] * row[k];
    }
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

void
eigen_tridiagonal(double *matrix, int n, double *diagonal, double *below, double *work)
{
    double *w[2] = {work + n, work + 2 * n};
    struct update update = {work, work}; /* no update yet */

    memset(work, 0, (size_t)n * sizeof(*work));
    for (int last = n - 1; last >= 0; last--) {
        double *row = matrix + (size_t)last * (size_t)n, h, projection = 0;
        double *y = w[last & 1];

        for (int k = 0; k <= last; k++)
            row[k] -= update.u[last] * update.w[k] + update.w[last] * update.u[k];
        diagonal[last] = row[last];
        if (last == 0)
            break;
        below[last - 1] = make_reflection(row, last, &h);
        /* Update the leading block, and multiply it by the reflection's vector: y = A u. */
        for (int i = 0; i < last; i++) {
            double *other = matrix + (size_t)i * (size_t)n;
            const double sum = update_and_multiply_row(other, i, update, row, y);

            other[i] -= 2 * update.u[i] * update.w[i];
            y[i] = sum + other[i] * row[i];
        }
        /* Compute, from y and h, the w of the update for a reflection on both sides. */
        for (int k = 0; k < last; k++) {
            y[k] /= h;
            projection += y[k] * row[k];
        }
        for (int k = 0; k < last; k++)
            y[k] -= projection / (2 * h) * row[k];
        update = (struct update){row, y};
    }
}

double
eigen_of_rank(const double *diagonal, const double *below, int n, int rank)
{
    /* A bound of the eigenvalues' magnitudes (Gershgorin). */
    double bound = 0;

    for (int i = 0; i < n; i++) {
        double reach = fabs(diagonal[i]);

        reach += i > 0 ? fabs(below[i - 1]) : 0;
        reach += i + 1 < n ? fabs(below[i]) : 0;
        bound = fmax(bound, reach);
    }

    double low = -bound, high = bound;

    while (high - low > DBL_EPSILON * bound + DBL_MIN) {
        const double middle = low + (high - low) / 2;

        /* The negative pivots of the matrix with `middle` subtracted from the diagonal are as many
         * as the eigenvalues below it. A pivot of 0 counts as a tiny negative one. */
        double pivot = 1;
        int count = 0;

        for (int i = 0; i < n; i++) {
            const double beside = i > 0 ? below[i - 1] : 0;

            pivot = diagonal[i] - middle - beside * (beside / pivot);
            if (fabs(pivot) < DBL_MIN)
                pivot = -DBL_MIN;
            count += pivot < 0;
        }
        if (count <= rank)
            low = middle;
        else
            high = middle;
    }
    return low + (high - low) / 2;
}

double
eigen_spectral_norm(double *matrix, int n, double *work)
{
    double *diagonal = work, *below = work + n;

    eigen_tridiagonal(matrix, n, diagonal, below, work + 2 * n);
    return fmax(fabs(eigen_of_rank(diagonal, below, n, 0)), fabs(eigen_of_rank(diagonal, below, n, n - 1)));
}
