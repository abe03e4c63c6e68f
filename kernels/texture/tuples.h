/*
 * tuples.h - offsets of co-occurrence matrices gathered into tuples of voxels.
 *
 * Counting how often each combination of levels stands at the points of a tuple counts several
 * pairs at once: each offset that is the way from one point to another is a pair, and its matrix a
 * margin of the tuple's table. Two points have 1 pair, three 3, four 6. An offset that finds no
 * company makes a chain of points, one offset from each other, that is anchored at some rows or
 * slices only, so that no pair counts twice. Points outside of the
 * volume have level 0, which stands in no matrix, so that tuples need no other care at the borders.
 */
#ifndef NOCTULE_TEXTURE_TUPLES_H
#define NOCTULE_TEXTURE_TUPLES_H

#include "kernels/texture/texture.h"

enum {
    TUPLE_POINTS = 4,
    TUPLE_PAIRS = 6,
    TUPLE_WIDTH = 16,    /* most columns between the points of a tuple of three and more */
    TUPLES_TOGETHER = 16 /* offsets that are gathered together */
};

struct tuple_pair {
    int from, to;  /* points: the voxel and its neighbour */
    size_t offset; /* which one of those given */
};

/* The first point of each axis is at 0: all coordinates are 0 or more. */
struct tuple {
    int points;
    struct texture_offset at[TUPLE_POINTS];
    int pairs;
    struct tuple_pair pair[TUPLE_PAIRS];
    int32_t rows; /* of a chain: anchors are the first `rows` of every (points - 1) * rows; or 0 */
    int32_t slices; /* likewise */
};

/* Whether the tuple is anchored here; counted from the first row and slice that has an anchor. */
static inline bool
tuple_is_anchored(const struct tuple *tuple, int64_t row, int64_t slice)
{
    if (tuple->rows > 0)
        return row % ((tuple->points - 1) * tuple->rows) < tuple->rows;
    if (tuple->slices > 0)
        return slice % ((tuple->points - 1) * tuple->slices) < tuple->slices;
    return true;
}

/*
 * Gathers offsets, at most TUPLES_TOGETHER, into tuples of at most `points` points; each is a pair
 * of exactly one tuple. Returns how many tuples there are.
 */
size_t tuples_gather(const struct texture_offset *offsets, size_t count, int points,
                     struct tuple tuples[TUPLES_TOGETHER]);

#endif
