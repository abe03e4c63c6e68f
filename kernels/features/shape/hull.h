/* hull.h - the exact convex hull of points with integer coordinates: quickhull (Barber 1996) with
 * determinants that fit in 64 bits. Threads: any. */
#ifndef NOCTULE_KERNELS_FEATURES_SHAPE_HULL_H
#define NOCTULE_KERNELS_FEATURES_SHAPE_HULL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HULL_MOST (1 << 19) /* max coordinate */

struct hull_point {
    int32_t at[3]; /* 0 .. HULL_MOST, or that range shifted */
};

/*
 * The facets visible from infinitely low or high first coordinates. Each side is computed
 * separately from its points. The hull consists of both, and of walls between their rims along that
 * axis.
 */
enum hull_side { HULL_LOWER, HULL_UPPER, HULL_SIDES };

__extension__ typedef __int128 hull_sum;

/* Triangles with corners in `points`, counter-clockwise as seen from outside. */
struct hull {
    struct hull_point *points; /* only corners */
    size_t point_count;
    int32_t (*facets)[3];
    size_t facet_count;
    int32_t (*rim)[2]; /* its edges as in their facets */
    size_t rim_count;
    /* From hull_measure: six times the volume between the side and first coordinate 0, and the
     * side's area. */
    hull_sum behind;
    double area;
};

/*
 * Makes a side of the hull. Returns 0, -ENOMEM, or -EDOM if all points (possibly none) lie in a
 * plane along the first axis. The caller must clear it. At most 2^31 - 2 points; duplicates are
 * allowed.
 */
int hull_make(const struct hull_point *points, size_t count, enum hull_side side, struct hull *hull);
void hull_clear(struct hull *hull);

/* Measures a side, with `step` mm per coordinate along each axis. */
void hull_measure(struct hull *side, const double step[3]);

/* Return results for both sides, which must have been measured. hull_diameter finds the distance of
 * the two points farthest apart, without measured sides, and returns 0 or -ENOMEM. */
double hull_volume(const struct hull sides[HULL_SIDES], const double step[3]);
double hull_area(const struct hull sides[HULL_SIDES], const double step[3]);
int hull_diameter(const struct hull sides[HULL_SIDES], const double step[3], double *diameter);

#ifdef __cplusplus
}
#endif
#endif
