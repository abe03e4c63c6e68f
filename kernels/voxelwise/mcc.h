/*
 * mcc.h - the maximal correlation coefficients of the GLCMs of a window, one per direction. Private to kernels/.
 *
 * A coefficient is the largest magnitude of an eigenvalue of (p_ij - p_i p_j) / sqrt(p_i p_j) (features/matrices/glcm.c). The
 * matrix has a row per level of the window, ascending, in all directions. All backends run the same operations:
 *
 * 1. From counts c in both orders and their sum t, element i, k is (c_ik t - c_i c_k) (f_i f_k) with f_i = 1 / sqrt(c_i t), or
 *    f_i = 0 if c_i is 0.
 * 2. Householder's reflections remove rows from the last to the third. A row left of its diagonal is v. With s = v v,
 *    r = sqrt(s) and its last element e: u is v with e + r (e > 0) or e - r instead of e, and g = 1 / (s + |e| r), or g = 0 if s is
 *    below MCC_NONE. With y = (A u) g, whose sums begin with the first level, and K = (y u) (0.5 g), w = y - K u. Element i, k
 *    decreases by u_i w_k + w_i u_k. Products v v and y u add in MCC_PARTS parts: level i to part (n - 1 - i) modulo MCC_PARTS,
 *    descending; then part p + MCC_PARTS / 2 to part p, and so on.
 *    Left are the diagonal d and the squares b of the elements below it: s, and 0 if s is below MCC_NONE.
 * 3. The largest eigenvalue of +d, b and that of -d, b are found from above by Laguerre's method (mcc_next). It begins at 1,
 *    which no eigenvalue exceeds except by rounding. The result is within 1e-13.
 *
 * Windows have at least two levels; of others the coefficient is not used.
 */
#ifndef NOCTULE_KERNELS_VOXELWISE_MCC_H
#define NOCTULE_KERNELS_VOXELWISE_MCC_H

#include "kernels/filter/filter_private.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    MCC_DIRECTIONS = 13,
    MCC_PARTS = 32,
    MCC_ROUNDS = 100, /* of a search, at most; clusters of eigenvalues in tests need 21 */
    MCC_SINGLE = 8,   /* rounds that expect one largest eigenvalue */
};

#define MCC_NONE    1e-280
#define MCC_SMALL   0x1p-44       /* the width of the interval of a result */
#define MCC_NEAR    0x1p-18       /* at this distance, rounding leaves that width exact enough */
#define MCC_SHORTER (1 - 0x1p-22) /* a factor of steps, and a difference, to remain above the eigenvalue */
#define MCC_LESS    0x1p-49

/* A window for its coefficients: the ranks of levels among those that occur, from 1; 0: no level. */
struct mcc_window {
    int side, levels; /* levels: how many occur */
    const uint16_t *ranks;
};

/* Numbers that the loop of isa.h needs for windows of up to n levels. */
#define MCC_SPACE(n) ((size_t)(n) * ((size_t)(n) + 13) / 2 * 8)

/* A search: x is above the eigenvalue or, after a step too far, between it and `above`. */
struct mcc_search {
    double x, above;
    int rounds;
    bool done; /* x is the result */
};

/*
 * Defines a structure of sums over the rows of the matrix with x subtracted from its diagonal, and a function that adds a row by
 * its pivot q. Pivots are negative if x is above all eigenvalues. Then `first` is the sum of 1 / (x - eigenvalue), and `second`
 * that of its square: the derivatives of the logarithm of the determinant.
 */
#define MCC_SUMS(NAME, REAL, INLINE)                                                                                   \
    struct NAME {                                                                                                      \
        REAL c, g, e; /* of the last row; c: to subtract from the next pivot */                                        \
        REAL first, second;                                                                                            \
    };                                                                                                                 \
                                                                                                                       \
    INLINE void NAME##_add(struct NAME *sums, REAL q, REAL square_below)                                               \
    {                                                                                                                  \
        const REAL inverse = 1 / q, g = (sums->c * sums->g - 1) * inverse;                                             \
                                                                                                                       \
        sums->e = g * g + sums->c * (sums->g * sums->g + sums->e) * inverse;                                           \
        sums->g = g;                                                                                                   \
        sums->c = square_below * inverse;                                                                              \
        sums->first += g;                                                                                              \
        sums->second += sums->e;                                                                                       \
    }

/*
 * Moves x by the sums at x of n rows; `negative`: all pivots were. The largest eigenvalue is at most first / second below x, and
 * at least the step for one eigenvalue. If that is not near enough after MCC_SINGLE rounds, there are as many as that quotient
 * says, about, and the step is that for so many equal ones. It may be too far.
 */
FILTER_INLINE void
mcc_next(struct mcc_search *search, bool negative, double first, double second, int n)
{
    search->rounds++;
    if (negative) {
        const double farthest = first / second, rest = n * second - first * first, square = rest > 0 ? rest : 0;
        const double nearest = n / (first + sqrt((n - 1) * square)), equal = floor(first * farthest);
        const bool single = search->rounds <= MCC_SINGLE || !(equal > 1 && equal < n);
        const double step = single ? nearest : n / (first + sqrt((n - equal) / equal * square));

        search->above = search->x;
        search->done = (farthest <= MCC_NEAR && farthest - nearest <= MCC_SMALL) || search->rounds == MCC_ROUNDS;
        search->x -= search->done ? nearest : step * MCC_SHORTER - MCC_LESS;
    } else {
        search->x += (search->above - search->x) / 2; /* which is 1 in the first round, and remains */
        search->done = search->above - search->x <= MCC_SMALL || search->rounds == MCC_ROUNDS;
    }
}

#ifdef __cplusplus
}
#endif
#endif
