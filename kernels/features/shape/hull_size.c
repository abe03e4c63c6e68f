/* hull_size.c - volume, area and diameter of a hull (hull.h). */
#include "kernels/features/shape/hull.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* A corner, with axes ordered from the longest extent of the hull on. */
struct placed {
    double at[3];  /* integers */
    double along;  /* mm from the centre of their box along the first of these axes */
    double square; /* squared mm from that centre */
};

void
hull_measure(struct hull *side, const double step[3])
{
    side->behind = 0;
    side->area = 0;
    for (size_t f = 0; f < side->facet_count; f++) {
        const struct hull_point *a = &side->points[side->facets[f][0]];
        int64_t edges[2][3], normal[3], along = 0;
        double square = 0;

        for (int edge = 0; edge < 2; edge++)
            for (int i = 0; i < 3; i++)
                edges[edge][i] = side->points[side->facets[f][edge + 1]].at[i] - a->at[i];
        for (int i = 0; i < 3; i++) {
            const int next = (i + 1) % 3, last = (i + 2) % 3;

            normal[i] = edges[0][next] * edges[1][last] - edges[0][last] * edges[1][next];
            const double mm = (double)normal[i] * step[next] * step[last];

            along += side->points[side->facets[f][i]].at[0];
            square += mm * mm;
        }
        side->behind += (hull_sum)normal[0] * along;
        side->area += sqrt(square) / 2;
    }
}

double
hull_volume(const struct hull sides[HULL_SIDES], const double step[3])
{
    return (double)(sides[HULL_LOWER].behind + sides[HULL_UPPER].behind) / 6 * (step[0] * step[1] * step[2]);
}

/* Returns the area of the wall between first coordinate `from` and the rim. */
static double
hull_wall_area(const struct hull *hull, int32_t from, const double step[3])
{
    double sum = 0;

    for (size_t r = 0; r < hull->rim_count; r++) {
        const int32_t *a = hull->points[hull->rim[r][0]].at, *b = hull->points[hull->rim[r][1]].at;
        const double y = (b[1] - a[1]) * step[1], z = (b[2] - a[2]) * step[2];

        sum += sqrt(y * y + z * z) * (double)(a[0] + b[0] - 2 * from);
    }
    return sum / 2 * step[0];
}

double
hull_area(const struct hull sides[HULL_SIDES], const double step[3])
{
    const int32_t from = sides[HULL_LOWER].point_count > 0 ? sides[HULL_LOWER].points[0].at[0] : 0;

    return sides[HULL_LOWER].area + sides[HULL_UPPER].area +
           (hull_wall_area(&sides[HULL_UPPER], from, step) - hull_wall_area(&sides[HULL_LOWER], from, step));
}

/* ------------------------------------------------------------------------------ the diameter ---- */

static int
corner_compare(const void *left, const void *right)
{
    const struct placed *a = left, *b = right;

    return (a->along > b->along) - (a->along < b->along);
}

static double
corners_square(const struct placed *a, const struct placed *b, const double step[3])
{
    double square = 0;

    for (int i = 0; i < 3; i++) {
        const double side = (b->at[i] - a->at[i]) * step[i];

        square += side * side;
    }
    return square;
}

/* Orders axes and `step` by the longest axis. Returns the corner farthest from the centre of their
 * box. */
static const struct placed *
corners_place(struct placed *placed, size_t count, double step[3])
{
    const double steps[3] = {step[0], step[1], step[2]};
    const struct placed *farthest = placed;
    double ends[3][2];
    int longest = 0;

    for (int i = 0; i < 3; i++) {
        ends[i][0] = ends[i][1] = placed[0].at[i];
        for (size_t p = 1; p < count; p++) {
            ends[i][0] = fmin(ends[i][0], placed[p].at[i]);
            ends[i][1] = fmax(ends[i][1], placed[p].at[i]);
        }
        if ((ends[i][1] - ends[i][0]) * steps[i] > (ends[longest][1] - ends[longest][0]) * steps[longest])
            longest = i;
    }
    for (size_t p = 0; p < count; p++) {
        const double at[3] = {placed[p].at[0], placed[p].at[1], placed[p].at[2]};

        placed[p].square = 0;
        for (int i = 0; i < 3; i++) {
            const int axis = (longest + i) % 3;
            const double middle = (ends[axis][0] + ends[axis][1]) / 2;
            const double from = (at[axis] - middle) * steps[axis];

            step[i] = steps[axis];
            placed[p].at[i] = at[axis];
            placed[p].square += from * from;
            placed[p].along = i == 0 ? from : placed[p].along;
        }
        if (placed[p].square > farthest->square)
            farthest = &placed[p];
    }
    return farthest;
}

/* Returns the first corner at or after `from` with at least this position along the axis. */
static size_t
corners_from(const struct placed *placed, size_t from, size_t end, double along)
{
    while (from < end) {
        const size_t half = from + (end - from) / 2;

        if (placed[half].along < along)
            from = half + 1;
        else
            end = half;
    }
    return from;
}

/*
 * For points a and b, |a - b|^2 + |a + b|^2 = 2 |a|^2 + 2 |b|^2. In a pair farther apart than the
 * farthest known, b is therefore near -a, also along the first axis. Neither point is too near the
 * centre.
 */
int
hull_diameter(const struct hull sides[HULL_SIDES], const double step[3], double *diameter)
{
    const double slack = 1 + 1e-9; /* for rounding errors */
    const size_t all = sides[HULL_LOWER].point_count + sides[HULL_UPPER].point_count;
    struct placed *placed = malloc((all + 1) * sizeof(*placed));
    double steps[3] = {step[0], step[1], step[2]}, most, best = 0;
    size_t count = 0;

    if (!placed)
        return -ENOMEM;
    for (int side = 0; side < HULL_SIDES; side++)
        for (size_t p = 0; p < sides[side].point_count; p++, count++)
            for (int i = 0; i < 3; i++)
                placed[count].at[i] = sides[side].points[p].at[i];
    const struct placed farthest = *corners_place(placed, count, steps);

    count = 0;
    most = farthest.square;
    for (size_t p = 0; p < all; p++)
        best = fmax(best, corners_square(&farthest, &placed[p], steps));
    for (size_t p = 0; p < all; p++)
        if (2 * (placed[p].square + most) * slack >= best)
            placed[count++] = placed[p];
    qsort(placed, count, sizeof(*placed), corner_compare);
    for (size_t a = 0; a < count; a++) {
        const double near = sqrt(fmax(0, 2 * (placed[a].square + most) * slack - best)) * slack;
        const double end = near - placed[a].along;

        for (size_t b = corners_from(placed, a + 1, count, -near - placed[a].along);
             b < count && placed[b].along <= end; b++)
            best = fmax(best, corners_square(&placed[a], &placed[b], steps));
    }
    free(placed);
    *diameter = sqrt(best);
    return 0;
}
