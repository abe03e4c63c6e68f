/* affinity.h - the affinity of fuzzy connectedness as look-up tables for both backends. They are
 * made once on the host, since exp differs in its last bit between libraries and devices. */
#ifndef NOCTULE_KERNELS_FUZZY_AFFINITY_H
#define NOCTULE_KERNELS_FUZZY_AFFINITY_H

#include "kernels/fuzzy/fuzzy.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Values are relative to `low`, the smallest stored value that occurs: v = stored - low, 0 .. span.
 * first has 2 * span + 1 entries (the sum of both neighbours' v), second span + 1 (their
 * difference). The affinity is floor(65535 * (first[s] + second[d])), at most 65535: see struct
 * kernels_fuzzy_object.
 */
struct fuzzy_tables {
    int32_t low;
    int32_t span;
    double *first;
    double *second;
};

/* Returns exp(-distance^2 / (2 sigma^2)). */
double fuzzy_gaussian(double distance, double sigma);

/* Fills the tables. The caller owns the arrays, which must be large enough. Threads: any. */
void fuzzy_fill_tables(const struct kernels_fuzzy_object *object, struct fuzzy_tables *tables);

/*
 * Finds, for every sum, the max difference with an affinity above the threshold: reach[s], -1 if
 * there is none. The last of the 2 * span + 2 entries, for sums beyond the table, is -1. Returns
 * false if `second` increases anywhere, due to rounding: then reach is undefined.
 */
bool fuzzy_fill_reach(const struct fuzzy_tables *tables, uint16_t threshold, int32_t *reach);

/* Returns the affinity of two neighbours with this sum and difference. Ignores padding. */
static inline uint16_t
fuzzy_affinity_of(const struct fuzzy_tables *tables, int32_t sum, int32_t difference)
{
    double scaled = 65535.0 * (tables->first[sum] + tables->second[difference]);

    return scaled >= 65535.0 ? 65535 : (uint16_t)scaled;
}

/* Returns the affinity of two values relative to `low`. */
static inline uint16_t
fuzzy_affinity(const struct fuzzy_tables *tables, int32_t a, int32_t b)
{
    return fuzzy_affinity_of(tables, a + b, a > b ? a - b : b - a);
}

#ifdef __cplusplus
}
#endif
#endif
