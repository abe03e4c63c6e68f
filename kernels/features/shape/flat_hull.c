#include "kernels/features/shape/flat_hull.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

int
flat_hull_open(struct flat_hull *hull, size_t most, const double step[2])
{
    *hull = (struct flat_hull){.ends = {malloc(2 * most * sizeof(*hull->ends[0]))},
                               .corners = malloc(2 * most * sizeof(*hull->corners)),
                               .step = {step[0], step[1]}};
    if (!hull->ends[0] || !hull->corners)
        return -ENOMEM;
    hull->ends[1] = hull->ends[0] + most;
    return 0;
}

void
flat_hull_close(struct flat_hull *hull)
{
    free(hull->ends[0]);
    free(hull->corners);
    *hull = (struct flat_hull){.count = 0};
}

void
flat_hull_begin(struct flat_hull *hull, int64_t first, int64_t lines)
{
    hull->first = first;
    hull->lines = lines;
    for (int64_t line = 0; line < lines; line++)
        hull->ends[0][line] = hull->ends[1][line] = INT64_MAX;
}

void
flat_hull_add(struct flat_hull *hull, int64_t y, int64_t left, int64_t right)
{
    int64_t *ends[2] = {&hull->ends[0][y - hull->first], &hull->ends[1][y - hull->first]};

    *ends[0] = left < *ends[0] ? left : *ends[0];
    *ends[1] = -right < *ends[1] ? -right : *ends[1];
}

/*
 * Adds the corners of one side, whose smallest x per line is given, from the first line to the last. Corners of the other
 * side have the opposite sign.
 */
static void
flat_add_side(struct flat_hull *hull, const int64_t *ends)
{
    const size_t begin = hull->count;

    for (int64_t line = 0; line < hull->lines; line++) {
        const struct flat_corner next = {ends[line], hull->first + line};

        if (next.x == INT64_MAX)
            continue;
        while (hull->count >= begin + 2) {
            const struct flat_corner *a = &hull->corners[hull->count - 2], *b = &hull->corners[hull->count - 1];

            if ((b->x - a->x) * (next.y - a->y) < (next.x - a->x) * (b->y - a->y))
                break;
            hull->count--;
        }
        hull->corners[hull->count++] = next;
    }
}

void
flat_hull_make(struct flat_hull *hull)
{
    hull->count = 0;
    flat_add_side(hull, hull->ends[0]);
    const size_t left = hull->count;

    flat_add_side(hull, hull->ends[1]);
    for (size_t i = left, j = hull->count; i < j--; i++) {
        const struct flat_corner swapped = hull->corners[i];

        hull->corners[i] = (struct flat_corner){-hull->corners[j].x, hull->corners[j].y};
        if (i < j)
            hull->corners[j] = (struct flat_corner){-swapped.x, swapped.y};
    }
}

double
flat_hull_square(const struct flat_hull *hull, size_t i, size_t j)
{
    const double x = (double)(hull->corners[i].x - hull->corners[j].x) * hull->step[0];
    const double y = (double)(hull->corners[i].y - hull->corners[j].y) * hull->step[1];

    return x * x + y * y;
}

double
flat_hull_farthest(const struct flat_hull *hull)
{
    double most = 0;

    for (size_t i = 0; i < hull->count; i++)
        for (size_t j = 0; j < i; j++)
            most = fmax(most, flat_hull_square(hull, i, j));
    return most;
}
