/* ref_volumes.c - see ref_volumes.h. */
#include "ref_volumes.h"

#include <stdlib.h>
#include <string.h>

int64_t
ref_voxels(struct kernels_extent extent)
{
    return extent.columns * extent.rows * extent.slices;
}

uint64_t
ref_random(uint64_t *state)
{
    uint64_t z = (*state += UINT64_C(0x9E3779B97F4A7C15));

    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

int64_t
ref_random_below(uint64_t *state, int64_t below)
{
    return (int64_t)(ref_random(state) % (uint64_t)below);
}

void
ref_sphere(struct kernels_extent extent, double radius, uint8_t *in)
{
    for (int64_t z = 0; z < extent.slices; z++)
        for (int64_t y = 0; y < extent.rows; y++)
            for (int64_t x = 0; x < extent.columns; x++) {
                double dx = (double)(x - extent.columns / 2);
                double dy = (double)(y - extent.rows / 2);
                double dz = (double)(z - extent.slices / 2);
                *in++ = dx * dx + dy * dy + dz * dz <= radius * radius;
            }
}

/* A volume whose axes were exchanged: index of (along, across, up). */
struct view {
    int64_t size[3];
    int64_t step[3];
};

static struct view
view_along(struct kernels_extent extent, int axis)
{
    int64_t size[3] = {extent.columns, extent.rows, extent.slices};
    int64_t step[3] = {1, extent.columns, extent.columns * extent.rows};
    struct view view;

    for (int i = 0; i < 3; i++) {
        view.size[i] = size[(axis + i) % 3];
        view.step[i] = step[(axis + i) % 3];
    }
    return view;
}

static uint8_t *
voxel_at(const struct view *view, uint8_t *in, int64_t along, int64_t across, int64_t up)
{
    return in + along * view->step[0] + across * view->step[1] + up * view->step[2];
}

void
ref_serpentine(struct kernels_extent extent, int axis, uint8_t *in)
{
    struct view view = view_along(extent, axis);
    int64_t lanes = (view.size[1] + 1) / 2, floors = (view.size[2] + 1) / 2;

    memset(in, 0, (size_t)ref_voxels(extent));
    for (int64_t corridor = 0; corridor < lanes * floors; corridor++) {
        int64_t level = corridor / lanes, turn = corridor % lanes;
        int64_t lane = level % 2 ? lanes - 1 - turn : turn;
        int64_t end = corridor % 2 ? 0 : view.size[0] - 1;

        for (int64_t i = 0; i < view.size[0]; i++)
            *voxel_at(&view, in, i, 2 * lane, 2 * level) = 1;
        if (turn + 1 < lanes)
            *voxel_at(&view, in, end, 2 * lane + (level % 2 ? -1 : 1), 2 * level) = 1;
        else if (level + 1 < floors)
            *voxel_at(&view, in, end, 2 * lane, 2 * level + 1) = 1;
    }
}

void
ref_random_maze(struct kernels_extent extent, uint64_t seed, uint8_t *in)
{
    int64_t size[3] = {(extent.columns + 1) / 2, (extent.rows + 1) / 2, (extent.slices + 1) / 2};
    int64_t step[3] = {1, extent.columns, extent.columns * extent.rows};
    int64_t(*path)[3] = malloc((size_t)(size[0] * size[1] * size[2]) * sizeof(*path));
    int64_t length = 1;

    if (!path)
        abort();
    memset(in, 0, (size_t)ref_voxels(extent));
    memset(path[0], 0, sizeof(path[0]));
    in[0] = 1;
    while (length > 0) {
        int64_t *cell = path[length - 1];
        int64_t at = 2 * (cell[0] * step[0] + cell[1] * step[1] + cell[2] * step[2]);
        int ways[6], count = 0;

        for (int way = 0; way < 6; way++) {
            int axis = way / 2, side = way % 2 ? 1 : -1;
            if (cell[axis] + side >= 0 && cell[axis] + side < size[axis] &&
                !in[at + 2 * side * step[axis]])
                ways[count++] = way;
        }
        if (count == 0) {
            length--;
            continue;
        }
        int way = ways[ref_random_below(&seed, count)], axis = way / 2, side = way % 2 ? 1 : -1;
        in[at + side * step[axis]] = 1;
        in[at + 2 * side * step[axis]] = 1;
        memcpy(path[length], cell, sizeof(path[length]));
        path[length++][axis] += side;
    }
    free(path);
}

/* A square spiral from (0, 0) inwards; returns its inner end. */
static int64_t
wind(struct kernels_extent extent, uint8_t *in)
{
    int64_t size[2] = {extent.columns, extent.rows}, step[2] = {1, extent.columns};
    int64_t low[2] = {0, 0}, high[2] = {size[0] - 1, size[1] - 1};
    int64_t where[2] = {0, 0};

    in[0] = 1;
    for (int leg = 0;; leg++) {
        int axis = leg % 2, side = leg % 4 < 2 ? 1 : -1;
        int64_t to = side > 0 ? high[axis] : low[axis];

        if (leg > 0 && (to - where[axis]) * side < 2)
            break;
        for (; where[axis] != to; where[axis] += side)
            in[where[0] * step[0] + where[1] * step[1]] = 1;
        in[where[0] * step[0] + where[1] * step[1]] = 1;
        if (side > 0)
            high[axis] -= 2;
        else
            low[axis] += 2;
        /* The first leg runs along the border that the fourth one has to keep away from. */
        if (leg == 0)
            low[1] += 2;
    }
    return where[0] * step[0] + where[1] * step[1];
}

void
ref_spiral(struct kernels_extent extent, uint8_t *in)
{
    int64_t slice = extent.columns * extent.rows;

    memset(in, 0, (size_t)ref_voxels(extent));
    for (int64_t z = 0; z < extent.slices; z += 2) {
        int64_t inner = wind(extent, in + z * slice);
        if (z + 1 < extent.slices)
            in[(z + 1) * slice + (z % 4 ? 0 : inner)] = 1;
    }
}

void
ref_checkerboard(struct kernels_extent extent, uint8_t *in)
{
    for (int64_t z = 0; z < extent.slices; z++)
        for (int64_t y = 0; y < extent.rows; y++)
            for (int64_t x = 0; x < extent.columns; x++)
                *in++ = (x + y + z) % 2 == 0;
}

void
ref_noise(struct kernels_extent extent, double density, uint64_t seed, uint8_t *in)
{
    int64_t count = ref_voxels(extent);

    for (int64_t i = 0; i < count; i++)
        in[i] = (double)(ref_random(&seed) >> 11) < density * 0x1p53;
}

void
ref_paint(enum kernels_pixel pixel, const uint8_t *in, int64_t count, int32_t in_value,
          int32_t out_value, void *voxels)
{
    for (int64_t i = 0; i < count; i++) {
        int32_t value = in[i] ? in_value : out_value;
        if (pixel == KERNELS_UINT8)
            ((uint8_t *)voxels)[i] = (uint8_t)value;
        else
            ((uint16_t *)voxels)[i] = (uint16_t)value;
    }
}
