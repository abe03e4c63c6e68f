/* eigen.c - see eigen.h. */
#include "eigen.h"

#include <float.h>
#include <math.h>

/*
 * Takes out the part of row `last` left of its subdiagonal: the reflection I - u u' / h from both
 * sides of the leading last x last block. Returns the subdiagonal element. `work` gets the vector
 * of the rank-two update.
 */
static double
reflect(double *a, int n, int last, double *work)
{
    double *u = a + last * n;
    double norm = 0, h, sign, projection = 0;

    for (int k = 0; k < last; k++)
        norm = hypot(norm, u[k]);
    if (norm == 0 || last == 1)
        return u[last - 1];
    sign = u[last - 1] > 0 ? -norm : norm; /* away from cancellation */
    h = norm * norm - u[last - 1] * sign;
    u[last - 1] -= sign;
    for (int i = 0; i < last; i++) {
        double sum = 0;
        for (int k = 0; k < last; k++)
            sum += a[i * n + k] * u[k];
        work[i] = sum / h;
        projection += work[i] * u[i];
    }
    for (int i = 0; i < last; i++)
        work[i] -= projection / (2 * h) * u[i];
    for (int i = 0; i < last; i++)
        for (int k = 0; k < last; k++)
            a[i * n + k] -= u[i] * work[k] + work[i] * u[k];
    return sign;
}

/* One implicit QL step on diagonal d and off-diagonal e from `first` to `last`. */
static void
ql_step(double *d, double *e, int first, int last)
{
    double g = (d[first + 1] - d[first]) / (2 * e[first]);
    double r = hypot(g, 1), s = 1, c = 1, p = 0;

    g = d[last] - d[first] + e[first] / (g + copysign(r, g));
    for (int i = last - 1; i >= first; i--) {
        double f = s * e[i], b = c * e[i];

        r = hypot(f, g);
        e[i + 1] = r;
        if (r == 0) { /* a rotation that has nothing to turn */
            d[i + 1] -= p;
            e[last] = 0;
            return;
        }
        s = f / r;
        c = g / r;
        g = d[i + 1] - p;
        r = (d[i] - g) * s + 2 * c * b;
        p = s * r;
        d[i + 1] = g + p;
        g = c * r - b;
    }
    d[first] -= p;
    e[first] = g;
    e[last] = 0;
}

/* The first index from `first` on whose off-diagonal element is nothing beside its neighbours. */
static int
split_at(const double *d, const double *e, int first, int n)
{
    int last = first;

    while (last + 1 < n && fabs(e[last]) > DBL_EPSILON * (fabs(d[last]) + fabs(d[last + 1])) &&
           fabs(e[last]) > DBL_MIN)
        last++;
    return last;
}

void
eigenvalues_symmetric(double *matrix, int n, double *eigenvalues, double *work)
{
    double *d = eigenvalues, *e = work;

    for (int i = n - 1; i > 0; i--) {
        double below = reflect(matrix, n, i, work);

        d[i] = matrix[i * n + i];
        matrix[i] = below; /* row 0 is free from here on, but for its first i elements */
    }
    d[0] = matrix[0];
    for (int i = 1; i < n; i++)
        e[i - 1] = matrix[i];
    e[n - 1] = 0;
    for (int first = 0; first < n; first++) {
        int last;
        while ((last = split_at(d, e, first, n)) != first)
            ql_step(d, e, first, last);
    }
}
