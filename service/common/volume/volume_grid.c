#include "service/common/volume/volume_grid.h"

#include <math.h>
#include <stdio.h>

#define GRID_TIE 1e-6 /* voxels: rounding of coordinates must not decide ties */

/* Returns six times the volume of the tetrahedron of three axes of the matrix, signed. */
static double
grid_determinant(const double m[12])
{
    return m[0] * (m[5] * m[10] - m[6] * m[9]) - m[1] * (m[4] * m[10] - m[6] * m[8]) +
           m[2] * (m[4] * m[9] - m[5] * m[8]);
}

bool
volume_grid_regular(const struct volume_grid *grid)
{
    double lengths = 1;
    for (int axis = 0; axis < 3; axis++) {
        const double *at = grid->to_mm + axis;
        lengths *= sqrt(at[0] * at[0] + at[4] * at[4] + at[8] * at[8]);
    }
    const double place = grid->to_mm[3] + grid->to_mm[7] + grid->to_mm[11];
    return isfinite(place) && isfinite(lengths) && fabs(grid_determinant(grid->to_mm)) > 1e-6 * lengths;
}

/* One of the 48 ways in which the axes of a box can lie on those of another. */
struct grid_turn {
    int axis[3]; /* of `from`, per axis of `to` */
    bool back[3];
};

/* Returns the largest distance of corresponding voxel centres, which is that of a corner; sets the voxel of `to`. */
static double
grid_distance(const struct volume_grid *from, const struct volume_grid *to, const struct grid_turn *turn,
              int64_t voxel[3])
{
    double largest = -1;
    for (int corner = 0; corner < 8; corner++) {
        int64_t at[3];
        double shift[3];
        for (int row = 0; row < 3; row++)
            shift[row] = from->to_mm[4 * row + 3] - to->to_mm[4 * row + 3];
        for (int axis = 0; axis < 3; axis++) {
            const int64_t last = to->size[axis] - 1;
            at[axis] = corner >> axis & 1 ? last : 0;
            const int64_t there = turn->back[axis] ? last - at[axis] : at[axis];
            for (int row = 0; row < 3; row++)
                shift[row] += from->to_mm[4 * row + turn->axis[axis]] * (double)there -
                              to->to_mm[4 * row + axis] * (double)at[axis];
        }
        const double distance = sqrt(shift[0] * shift[0] + shift[1] * shift[1] + shift[2] * shift[2]);
        if (distance <= largest)
            continue;
        largest = distance;
        for (int axis = 0; axis < 3; axis++)
            voxel[axis] = at[axis];
    }
    return largest;
}

bool
volume_grid_same(const struct volume_grid *from, const struct volume_grid *to, struct volume_walk *walk, char why[160])
{
    static const int orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    double smallest = INFINITY;
    int64_t place[3] = {0};
    bool fits = false;
    for (int i = 0; i < 48; i++) {
        const int *order = orders[i / 8];
        const struct grid_turn turn = {{order[0], order[1], order[2]}, {i & 1, i & 2, i & 4}};
        int64_t voxel[3] = {0};
        if (from->size[order[0]] != to->size[0] || from->size[order[1]] != to->size[1] ||
            from->size[order[2]] != to->size[2])
            continue;
        fits = true;
        const double distance = grid_distance(from, to, &turn, voxel);
        if (!(distance < smallest))
            continue;
        smallest = distance;
        for (int axis = 0; axis < 3; axis++)
            place[axis] = voxel[axis];
        const int64_t strides[3] = {1, from->size[0], from->size[0] * from->size[1]};
        walk->first = 0;
        for (int axis = 0; axis < 3; axis++) {
            const int64_t stride = strides[turn.axis[axis]];
            walk->first += turn.back[axis] ? stride * (from->size[turn.axis[axis]] - 1) : 0;
            walk->stride[axis] = turn.back[axis] ? -stride : stride;
        }
    }
    if (smallest <= VOLUME_GRID_MM)
        return true;
    if (fits)
        snprintf(why, 160, "voxel (%lld, %lld, %lld) is %.4g mm from its place", (long long)place[0],
                 (long long)place[1], (long long)place[2], smallest);
    else
        snprintf(why, 160, "%lld x %lld x %lld voxels, not %lld x %lld x %lld", (long long)from->size[0],
                 (long long)from->size[1], (long long)from->size[2], (long long)to->size[0], (long long)to->size[1],
                 (long long)to->size[2]);
    return false;
}

/* Returns the index of the nearest of `size` voxels along an axis, or -1. */
static int64_t
grid_nearest(double at, int64_t size)
{
    if (!(at >= -0.5 - GRID_TIE && at <= (double)size - 0.5 + GRID_TIE))
        return -1;
    const int64_t index = (int64_t)ceil(at - 0.5 - GRID_TIE);
    return index < 0 ? 0 : index < size ? index : size - 1;
}

void
volume_nearest_row(const struct volume_grid *from, const struct volume_grid *to, int64_t y, int64_t z, int64_t *indices)
{
    const double *m = from->to_mm, determinant = grid_determinant(m);
    double start[3], step[3];
    for (int axis = 0; axis < 3; axis++) {
        /* Row `axis` of the inverse matrix: the cross product of the two other columns. */
        const int a = (axis + 1) % 3, b = (axis + 2) % 3;
        start[axis] = step[axis] = 0;
        for (int row = 0; row < 3; row++) {
            const int p = 4 * ((row + 1) % 3), q = 4 * ((row + 2) % 3);
            const double *line = to->to_mm + 4 * row;
            const double inverse = (m[p + a] * m[q + b] - m[q + a] * m[p + b]) / determinant;
            start[axis] += inverse * (line[1] * (double)y + line[2] * (double)z + line[3] - m[4 * row + 3]);
            step[axis] += inverse * line[0];
        }
    }
    for (int64_t x = 0; x < to->size[0]; x++) {
        int64_t at[3];
        for (int axis = 0; axis < 3; axis++)
            at[axis] = grid_nearest(start[axis] + (double)x * step[axis], from->size[axis]);
        indices[x] = at[0] < 0 || at[1] < 0 || at[2] < 0 ? -1 : (at[2] * from->size[1] + at[1]) * from->size[0] + at[0];
    }
}
