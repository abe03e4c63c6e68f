/*
 * measure_diameters.c - see measure_quantities.h.
 *
 * The ends of a longest diameter are corners of the convex hull of an outline. Coordinates are twice those of voxels, so
 * that the middle of an edge is an integer and the hull is exact.
 */
#include "service/pipeline/measure/measure_quantities.h"

#include "service/pipeline/components.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct hull_corner {
    int64_t x, y;
};

/* The hull of a component of a slice. */
struct hulled {
    int64_t *ends[2]; /* per line: the smallest x, and the largest one with its sign changed */
    struct hull_corner *corners;
    size_t count;
    double half[2]; /* mm per coordinate */
};

/*
 * Adds the corners of one side, whose smallest x per line is given, from the first line to the last. Corners of the other
 * side have the opposite sign.
 */
static void
hull_add_side(struct hulled *hull, const int64_t *ends, int64_t first, int64_t lines)
{
    const size_t begin = hull->count;
    for (int64_t line = 0; line < lines; line++) {
        const struct hull_corner next = {ends[line], first + line};
        while (hull->count >= begin + 2) {
            const struct hull_corner *a = &hull->corners[hull->count - 2], *b = &hull->corners[hull->count - 1];
            if ((b->x - a->x) * (next.y - a->y) < (next.x - a->x) * (b->y - a->y))
                break;
            hull->count--;
        }
        hull->corners[hull->count++] = next;
    }
}

/* Makes the hull of the runs of a component, with its corners in the order around it. */
static void
hull_make(struct hulled *hull, const struct component_run *runs, size_t count)
{
    const int64_t first = 2 * runs[0].row - 1, lines = 2 * runs[count - 1].row + 2 - first;
    for (int64_t line = 0; line < lines; line++)
        hull->ends[0][line] = hull->ends[1][line] = INT64_MAX;
    for (size_t i = 0; i < count; i++)
        for (int64_t step = -1; step <= 1; step++) {
            const int64_t line = 2 * runs[i].row + step - first, side = step == 0 ? 1 : 0;
            const int64_t ends[2] = {2 * runs[i].first - side, -(2 * runs[i].last + side)};
            for (int s = 0; s < 2; s++)
                hull->ends[s][line] = ends[s] < hull->ends[s][line] ? ends[s] : hull->ends[s][line];
        }
    hull->count = 0;
    hull_add_side(hull, hull->ends[0], first, lines);
    const size_t left = hull->count;
    hull_add_side(hull, hull->ends[1], first, lines);
    for (size_t i = left, j = hull->count - 1; i <= j; i++, j--) {
        const struct hull_corner swapped = hull->corners[i];
        hull->corners[i] = (struct hull_corner){-hull->corners[j].x, hull->corners[j].y};
        hull->corners[j] = (struct hull_corner){-swapped.x, swapped.y};
    }
}

/* Returns the square of the distance of two corners in mm. */
static double
hull_square(const struct hulled *hull, size_t i, size_t j)
{
    const double x = (double)(hull->corners[i].x - hull->corners[j].x) * hull->half[0];
    const double y = (double)(hull->corners[i].y - hull->corners[j].y) * hull->half[1];
    return x * x + y * y;
}

/*
 * Returns the longest chord at right angles to that of two corners, the first one of equals. Its length is a concave function of the place along
 * them, which is linear between corners, so that one of the longest chords is at a corner.
 */
static struct diameter
hull_across(const struct hulled *hull, size_t from, size_t to, double length)
{
    const double x = (double)(hull->corners[to].x - hull->corners[from].x) * hull->half[0] / length;
    const double y = (double)(hull->corners[to].y - hull->corners[from].y) * hull->half[1] / length;
    struct diameter most = {.length = 0};
    for (size_t i = 0; i < hull->count; i++) {
        const struct hull_corner *at = &hull->corners[i];
        const double along = (double)at->x * hull->half[0] * x + (double)at->y * hull->half[1] * y;
        double ends[2] = {INFINITY, -INFINITY};
        for (size_t j = 0; j < hull->count; j++) {
            double own[2], beside[2];
            for (size_t k = 0; k < 2; k++) {
                const struct hull_corner *corner = &hull->corners[(j + k) % hull->count];
                const double mm[2] = {(double)corner->x * hull->half[0], (double)corner->y * hull->half[1]};
                own[k] = mm[0] * x + mm[1] * y;
                beside[k] = mm[1] * x - mm[0] * y;
            }
            if (along < fmin(own[0], own[1]) || along > fmax(own[0], own[1]))
                continue;
            const double share = own[0] == own[1] ? 0 : (along - own[0]) / (own[1] - own[0]);
            const double place = beside[0] + (beside[1] - beside[0]) * share;
            ends[0] = fmin(ends[0], own[0] == own[1] ? fmin(beside[0], beside[1]) : place);
            ends[1] = fmax(ends[1], own[0] == own[1] ? fmax(beside[0], beside[1]) : place);
        }
        if (ends[1] - ends[0] <= most.length)
            continue;
        most.length = ends[1] - ends[0];
        for (int end = 0; end < 2; end++) {
            most.ends[end][0] = along * x - ends[end] * y;
            most.ends[end][1] = along * y + ends[end] * x;
        }
    }
    return most;
}

/* Takes the diameters of a hull in this slice if they are longer. *square: of the longest diameter so far. */
static void
hull_measure(const struct hulled *hull, int64_t slice, double *square, struct diameters *diameters)
{
    double most = 0;
    for (size_t i = 0; i < hull->count; i++)
        for (size_t j = 0; j < i; j++)
            most = fmax(most, hull_square(hull, i, j));
    if (most < *square)
        return;
    if (most > *square)
        *diameters = (struct diameters){.longest.length = sqrt(most)};
    *square = most;
    for (size_t i = 0; i < hull->count; i++)
        for (size_t j = 0; j < i; j++) {
            if (hull_square(hull, i, j) != most)
                continue;
            const struct diameter across = hull_across(hull, i, j, diameters->longest.length);
            const size_t corners[2] = {j, i};
            if (across.length <= diameters->across.length)
                continue;
            diameters->across = across;
            diameters->slice = slice;
            for (int end = 0; end < 2; end++) {
                diameters->longest.ends[end][0] = (double)hull->corners[corners[end]].x * hull->half[0];
                diameters->longest.ends[end][1] = (double)hull->corners[corners[end]].y * hull->half[1];
            }
        }
}

int
diameters_find(const struct image_extent *extent, const uint64_t *bits, const double spacing[3],
               struct diameters *diameters)
{
    const size_t lines = 2 * (size_t)extent->rows + 2;
    const int64_t words = (extent->columns + 63) / 64 * extent->rows;
    struct hulled hull = {.ends = {malloc(2 * lines * sizeof *hull.ends[0])},
                          .corners = malloc(2 * lines * sizeof *hull.corners),
                          .half = {spacing[0] / 2, spacing[1] / 2}};
    double square = 0;
    int rc = hull.ends[0] && hull.corners ? 0 : -ENOMEM;
    *diameters = (struct diameters){.slice = 0};
    hull.ends[1] = rc == 0 ? hull.ends[0] + lines : NULL;
    for (int64_t z = 0; z < extent->slices && rc == 0; z++) {
        struct component_run *runs;
        size_t count;
        rc = components_of_slice(extent, bits + z * words, &runs, &count);
        for (size_t i = 0, end; rc == 0 && i < count; i = end) {
            for (end = i + 1; end < count && runs[end].component == runs[i].component;)
                end++;
            hull_make(&hull, runs + i, end - i);
            hull_measure(&hull, z, &square, diameters);
        }
        free(runs);
    }
    free(hull.ends[0]);
    free(hull.corners);
    return rc;
}
