/*
 * tuples.h - groups offsets of co-occurrence matrices into tuples of voxels.
 *
 * A table of level combinations at the points of a tuple counts several pairs at once. Each offset
 * between two points is a pair, and its matrix is a margin of the table. Two points have 1 pair,
 * three 3, four 6. A single offset makes a chain of points, each at that offset from the previous
 * one. A chain is anchored at some rows or slices only, so that no pair counts twice. Points
 * outside the volume have level 0, which no matrix includes, so that borders need no special case.
 */
#ifndef NOCTULE_KERNELS_TEXTURE_TUPLES_H
#define NOCTULE_KERNELS_TEXTURE_TUPLES_H

#include "kernels/texture/texture.h"

enum {
    TUPLE_POINTS = 4,
    TUPLE_PAIRS = 6,
    TUPLE_WIDTH = 16,    /* max columns between the points of a tuple of three or more */
    TUPLES_TOGETHER = 16 /* max offsets per call */
};

struct tuple_pair {
    int from, to;  /* points: the voxel and its neighbour */
    size_t offset; /* index into the given offsets */
};

/* The smallest coordinate per axis is 0. */
struct tuple {
    int points;
    struct texture_offset at[TUPLE_POINTS];
    int pairs;
    struct tuple_pair pair[TUPLE_PAIRS];
    int32_t rows;   /* chains: anchors are the first `rows` of every (points - 1) * rows; or 0 */
    int32_t slices; /* as `rows` */
};

/* Returns whether the tuple is anchored here, relative to the first row and slice with an
 * anchor. */
static inline bool
tuple_is_anchored(const struct tuple *tuple, int64_t row, int64_t slice)
{
    if (tuple->rows > 0)
        return row % ((tuple->points - 1) * tuple->rows) < tuple->rows;
    if (tuple->slices > 0)
        return slice % ((tuple->points - 1) * tuple->slices) < tuple->slices;
    return true;
}

/* Groups at most TUPLES_TOGETHER offsets into tuples of at most `points` points. Each offset is a
 * pair of exactly one tuple. Returns the number of tuples. */
size_t tuples_gather(const struct texture_offset *offsets, size_t count, int points,
                     struct tuple tuples[TUPLES_TOGETHER]);

#endif
