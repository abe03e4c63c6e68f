/* flat_hull.h - the exact convex hull of points on the lines of a plane, in integers. Threads: any, one hull each. */
#ifndef NOCTULE_KERNELS_FEATURES_SHAPE_FLAT_HULL_H
#define NOCTULE_KERNELS_FEATURES_SHAPE_FLAT_HULL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct flat_corner {
    int64_t x, y;
};

struct flat_hull {
    int64_t *ends[2];            /* per line: the smallest x, and the largest one with its sign changed */
    int64_t first, lines;        /* y of the first line, and their number */
    struct flat_corner *corners; /* in the order around the hull */
    size_t count;
    double step[2]; /* mm per coordinate */
};

/* Reserves memory for `most` lines. Returns 0 or -ENOMEM. The caller must close it, also after an error. */
int flat_hull_open(struct flat_hull *hull, size_t most, const double step[2]);
void flat_hull_close(struct flat_hull *hull);

/* Begins a hull without points on lines first .. first + lines - 1, then adds the points of a line at two x. */
void flat_hull_begin(struct flat_hull *hull, int64_t first, int64_t lines);
void flat_hull_add(struct flat_hull *hull, int64_t y, int64_t left, int64_t right);

/* Finds the corners. */
void flat_hull_make(struct flat_hull *hull);

/* Return the square of the distance of two corners, and of the two that are farthest apart, in mm2; 0: no points. */
double flat_hull_square(const struct flat_hull *hull, size_t i, size_t j);
double flat_hull_farthest(const struct flat_hull *hull);

#ifdef __cplusplus
}
#endif
#endif
