/*
 * affinity.h - what both backends of fuzzy connectedness share: the affinity as look-up tables, made
 * once on the host, since exp differs in its last bit between libraries and devices.
 */
#ifndef NOCTULE_AFFINITY_H
#define NOCTULE_AFFINITY_H

#include "kernels/fuzzy/fuzzy.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Values are counted from `low`, the smallest stored value that occurs: v = stored - low, 0 ..
 * span. first has 2 * span + 1 entries (v of one neighbour plus v of the other), second span + 1
 * (their difference). The affinity is floor(65535 * (first[s] + second[d])), at most 65535: see
 * struct kernels_fuzzy_object.
 */
struct fuzzy_tables {
    int32_t low;
    int32_t span;
    double *first;
    double *second;
};

/* Fills the tables, whose arrays are the caller's and large enough. Any thread. */
void fuzzy_fill_tables(const struct kernels_fuzzy_object *object, struct fuzzy_tables *tables);

/*
 * For every sum, up to which difference is the affinity above the threshold? reach[s], -1 when none
 * will do; the last of the 2 * span + 2 entries, for sums beyond the table, is -1. False when
 * `second` rises somewhere, as rounding might have it: then there is no such number.
 */
bool fuzzy_fill_reach(const struct fuzzy_tables *tables, uint16_t threshold, int32_t *reach);

/* The affinity of two neighbours of this sum and difference; padding is the caller's business. */
static inline uint16_t
fuzzy_affinity_of(const struct fuzzy_tables *tables, int32_t sum, int32_t difference)
{
    double scaled = 65535.0 * (tables->first[sum] + tables->second[difference]);

    return scaled >= 65535.0 ? 65535 : (uint16_t)scaled;
}

/* The same of two values that are counted from `low`. */
static inline uint16_t
fuzzy_affinity(const struct fuzzy_tables *tables, int32_t a, int32_t b)
{
    return fuzzy_affinity_of(tables, a + b, a > b ? a - b : b - a);
}

#ifdef __cplusplus
}
#endif
#endif
