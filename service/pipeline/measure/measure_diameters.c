/*
 * measure_diameters.c - see measure_quantities.h.
 *
 * The ends of a longest diameter are corners of the convex hull of an outline. Coordinates are twice those of voxels, so
 * that the middle of an edge is an integer and the hull is exact.
 */
#include "service/pipeline/measure/measure_quantities.h"

#include "kernels/features/shape/flat_hull.h"
#include "service/pipeline/components.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Makes the hull of the runs of a component, with its corners in the order around it. */
static void
hull_make_of(struct flat_hull *hull, const struct component_run *runs, size_t count)
{
    const int64_t first = 2 * runs[0].row - 1;
    flat_hull_begin(hull, first, 2 * runs[count - 1].row + 2 - first);
    for (size_t i = 0; i < count; i++)
        for (int64_t step = -1; step <= 1; step++) {
            const int64_t side = step == 0 ? 1 : 0;
            flat_hull_add(hull, 2 * runs[i].row + step, 2 * runs[i].first - side, 2 * runs[i].last + side);
        }
    flat_hull_make(hull);
}

/*
 * Returns the longest chord at right angles to that of two corners, the first one of equals. Its length is a concave function of the place along
 * them, which is linear between corners, so that one of the longest chords is at a corner.
 */
static struct diameter
hull_across(const struct flat_hull *hull, size_t from, size_t to, double length)
{
    const double x = (double)(hull->corners[to].x - hull->corners[from].x) * hull->step[0] / length;
    const double y = (double)(hull->corners[to].y - hull->corners[from].y) * hull->step[1] / length;
    struct diameter most = {.length = 0};
    for (size_t i = 0; i < hull->count; i++) {
        const struct flat_corner *at = &hull->corners[i];
        const double along = (double)at->x * hull->step[0] * x + (double)at->y * hull->step[1] * y;
        double ends[2] = {INFINITY, -INFINITY};
        for (size_t j = 0; j < hull->count; j++) {
            double own[2], beside[2];
            for (size_t k = 0; k < 2; k++) {
                const struct flat_corner *corner = &hull->corners[(j + k) % hull->count];
                const double mm[2] = {(double)corner->x * hull->step[0], (double)corner->y * hull->step[1]};
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
hull_measure(const struct flat_hull *hull, int64_t slice, double *square, struct diameters *diameters)
{
    const double most = flat_hull_farthest(hull);
    if (most < *square)
        return;
    if (most > *square)
        *diameters = (struct diameters){.longest.length = sqrt(most)};
    *square = most;
    for (size_t i = 0; i < hull->count; i++)
        for (size_t j = 0; j < i; j++) {
            if (flat_hull_square(hull, i, j) != most)
                continue;
            const struct diameter across = hull_across(hull, i, j, diameters->longest.length);
            const size_t corners[2] = {j, i};
            if (across.length <= diameters->across.length)
                continue;
            diameters->across = across;
            diameters->slice = slice;
            for (int end = 0; end < 2; end++) {
                diameters->longest.ends[end][0] = (double)hull->corners[corners[end]].x * hull->step[0];
                diameters->longest.ends[end][1] = (double)hull->corners[corners[end]].y * hull->step[1];
            }
        }
}

int
diameters_find(const struct image_extent *extent, const uint64_t *bits, const double spacing[3],
               struct diameters *diameters)
{
    const size_t lines = 2 * (size_t)extent->rows + 2;
    const int64_t words = (extent->columns + 63) / 64 * extent->rows;
    struct flat_hull hull;
    double square = 0;
    int rc = flat_hull_open(&hull, lines, (const double[2]){spacing[0] / 2, spacing[1] / 2});
    *diameters = (struct diameters){.slice = 0};
    for (int64_t z = 0; z < extent->slices && rc == 0; z++) {
        struct component_run *runs;
        size_t count;
        rc = components_of_slice(extent, bits + z * words, &runs, &count);
        for (size_t i = 0, end; rc == 0 && i < count; i = end) {
            for (end = i + 1; end < count && runs[end].component == runs[i].component;)
                end++;
            hull_make_of(&hull, runs + i, end - i);
            hull_measure(&hull, z, &square, diameters);
        }
        free(runs);
    }
    flat_hull_close(&hull);
    return rc;
}
