/*
 * lags.h - sums over pairs of a region's voxels by their distance along each axis, for Moran's I
 * and Geary's C (IBSI 3.1.28, 3.1.29). Counts all pairs by integer transforms. Counts are exact and
 * bit-identical on every backend. Shapes, errors, threads: as in texture.h.
 */
#ifndef NOCTULE_KERNELS_MORPHOLOGY_LAGS_H
#define NOCTULE_KERNELS_MORPHOLOGY_LAGS_H

#include "kernels/morphology/morphology.h"
#include "kernels/texture/texture.h"

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Limits of a region's box, padded so that pairs at opposite ends do not wrap. */
#define LAGS_POINTS  (INT64_C(1) << 24)
#define LAGS_LONGEST 4096

struct lags {
    struct morphology_region region;
    uint32_t least; /* value 0 of the sums: the least kept value, relative to the smallest of the type */
};

/* Sums over ordered pairs a, b of kept voxels with the values v and w. */
enum lags_kind {
    LAGS_PAIRS,    /* sum of 1 */
    LAGS_VALUES,   /* sum of v */
    LAGS_PRODUCTS, /* sum of v w */
    LAGS_SQUARES,  /* sum of v v */
    LAGS_KINDS,
};

/* Sets the transform lengths for a box of these sizes. Returns false if it is too large. */
bool lags_lengths(const int64_t size[3], int64_t length[3]);

/* Returns the number of counts. The box must be that of the region's bits. */
static inline size_t
lags_size(const struct texture_box *box)
{
    return LAGS_KINDS * (size_t)(box->size[0] * box->size[1] * box->size[2]);
}

/*
 * Overwrites counts[((kind * size[2] + z) * size[1] + y) * size[0] + x] with the sum over pairs.
 * These are x, y and z apart along the axes, in either direction. Returns -E2BIG if the box is too
 * large.
 */
int lags_run(struct kernels_lane *lane, const struct lags *request, uint64_t *counts, struct error *error);

/* Private to kernels/: the request of the operation. */
struct lags_request {
    const struct lags *lags;
    struct texture_box box;
    int64_t length[3];
    uint64_t *counts;
};

/* Returns the size in points of each of three arrays that suffice for any region of the volume. */
int64_t lags_points(const struct image_extent *extent);

#ifdef __cplusplus
}
#endif
#endif
