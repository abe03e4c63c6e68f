/*
 * hull.h - the convex hull of points with whole coordinates, exactly: quickhull (Barber 1996), whose only
 * questions are signs of determinants that 64 bits hold. Any thread.
 */
#ifndef NOCTULE_HULL_H
#define NOCTULE_HULL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HULL_MOST (1 << 19) /* of a coordinate */

struct hull_point {
    int32_t at[3]; /* 0 .. HULL_MOST, or that range moved */
};

/* The facets whose outsides are seen from where the first coordinate is low, or high, without end. Each side by itself
 * is of the points that lie there; and the hull is of both, with the walls between their rims along that axis. */
enum hull_side { HULL_LOWER, HULL_UPPER, HULL_SIDES };

__extension__ typedef __int128 hull_sum;

/* Triangles with corners among `points`, seen from outside counter-clockwise. */
struct hull {
    struct hull_point *points; /* those that are a corner */
    size_t point_count;
    int32_t (*facets)[3];
    size_t facet_count;
    int32_t (*rim)[2]; /* its edges as their facets have them */
    size_t rim_count;
    /* Of hull_measure: six times what lies behind the side, to where the first coordinate is 0, and its area. */
    hull_sum behind;
    double area;
};

/* 0, -ENOMEM, or -EDOM where all points lie in a plane along the first axis (there may be none). The caller clears it.
 * At most 2^31 - 2 points; the same may stand there twice. */
int hull_make(const struct hull_point *points, size_t count, enum hull_side side,
              struct hull *hull);
void hull_clear(struct hull *hull);

/* Each side by itself, with so many mm from one coordinate to the next along each axis. */
void hull_measure(struct hull *side, const double step[3]);

/* Of both sides, once measured. The diameter is the distance of the two points that are farthest apart, of sides that
 * need not be: 0 or -ENOMEM. */
double hull_volume(const struct hull sides[HULL_SIDES], const double step[3]);
double hull_area(const struct hull sides[HULL_SIDES], const double step[3]);
int hull_diameter(const struct hull sides[HULL_SIDES], const double step[3], double *diameter);

#ifdef __cplusplus
}
#endif
#endif
