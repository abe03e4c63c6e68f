/*
 * fuzzy.h - what both backends of fuzzy connectedness share: the affinity as look-up tables, made
 * once on the host, since exp differs in its last bit between libraries and devices.
 */
#ifndef NOCTULE_FUZZY_H
#define NOCTULE_FUZZY_H

#include "kernels.h"

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

/* The affinity of two neighbours; padding is the caller's business. */
static inline uint16_t
fuzzy_affinity(const struct fuzzy_tables *tables, int32_t a, int32_t b)
{
    double sum = tables->first[a + b] + tables->second[a > b ? a - b : b - a];
    double scaled = 65535.0 * sum;

    return scaled >= 65535.0 ? 65535 : (uint16_t)scaled;
}

#ifdef __cplusplus
}
#endif
#endif
