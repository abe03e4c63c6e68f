/*
 * lags.h - what pairs of a region's voxels have in common, by how far they are apart: what Moran's I and
 * Geary's C are sums of (IBSI 3.1.28, 3.1.29). All pairs are counted, by transforms of whole numbers, so that counts are
 * exact, and bit-identical on every backend. Conventions (shapes, errors, threads) are those of texture.h.
 */
#ifndef NOCTULE_LAGS_H
#define NOCTULE_LAGS_H

#include "kernels/morphology/morphology.h"
#include "kernels/texture/texture.h"

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Of a region's box, with room for pairs that are as far apart as it is wide. */
#define LAGS_POINTS  (INT64_C(1) << 24)
#define LAGS_LONGEST 4096

struct lags {
    struct morphology_region region;
    uint32_t
        least; /* values are counted from it: the least that a kept voxel has, from the smallest of the type */
};

/* Sums over ordered pairs a, b of kept voxels, which have the values v and w. */
enum lags_kind {
    LAGS_PAIRS,    /* of 1 */
    LAGS_VALUES,   /* of v */
    LAGS_PRODUCTS, /* of v w */
    LAGS_SQUARES,  /* of v v */
    LAGS_KINDS,
};

/* The lengths of transforms that hold a box of these sizes; false: it is too large. */
bool lags_lengths(const int64_t size[3], int64_t length[3]);

/* The box is that of the region's bits. */
static inline size_t
lags_size(const struct texture_box *box)
{
    return LAGS_KINDS * (size_t)(box->size[0] * box->size[1] * box->size[2]);
}

/* counts[((kind * size[2] + z) * size[1] + y) * size[0] + x] of pairs that are x, y and z apart along the axes,
 * whichever comes first, is overwritten. -E2BIG where the box is too large. */
int lags_run(struct kernels_lane *lane, const struct lags *request, uint64_t *counts,
             struct error *error);

/* Within kernels/: what the operation is given. */
struct lags_request {
    const struct lags *lags;
    struct texture_box box;
    int64_t length[3];
    uint64_t *counts;
};

/* Three arrays of so many points are enough for any region of the volume. */
int64_t lags_points(const struct image_extent *extent);

#ifdef __cplusplus
}
#endif
#endif
