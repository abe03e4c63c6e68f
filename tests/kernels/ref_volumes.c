#include "tests/kernels/ref_volumes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int64_t
ref_voxels(struct image_extent extent)
{
    return extent.columns * extent.rows * extent.slices;
}

void *
ref_allocate(int64_t count, size_t size)
{
    void *memory = calloc(count > 0 ? (size_t)count : 1, size);

    if (!memory)
        abort();
    return memory;
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
ref_sphere(struct image_extent extent, double radius, uint8_t *in)
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

/* A volume with exchanged axes: index of (along, across, up). */
struct view {
    int64_t size[3];
    int64_t step[3];
};

static struct view
view_along(struct image_extent extent, int axis)
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
ref_serpentine(struct image_extent extent, int axis, uint8_t *in)
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
ref_random_maze(struct image_extent extent, uint64_t seed, uint8_t *in)
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
            if (cell[axis] + side >= 0 && cell[axis] + side < size[axis] && !in[at + 2 * side * step[axis]])
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

/* Draws a square spiral from (0, 0) inwards. Returns its inner end. */
static int64_t
wind(struct image_extent extent, uint8_t *in)
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
        /* The first leg runs along the border, from which the fourth one must keep its distance. */
        if (leg == 0)
            low[1] += 2;
    }
    return where[0] * step[0] + where[1] * step[1];
}

void
ref_spiral(struct image_extent extent, uint8_t *in)
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
ref_checkerboard(struct image_extent extent, uint8_t *in)
{
    for (int64_t z = 0; z < extent.slices; z++)
        for (int64_t y = 0; y < extent.rows; y++)
            for (int64_t x = 0; x < extent.columns; x++)
                *in++ = (x + y + z) % 2 == 0;
}

void
ref_noise(struct image_extent extent, double density, uint64_t seed, uint8_t *in)
{
    int64_t count = ref_voxels(extent);

    for (int64_t i = 0; i < count; i++)
        in[i] = (double)(ref_random(&seed) >> 11) < density * 0x1p53;
}

int32_t
ref_stored(enum image_pixel pixel, const void *voxels, int64_t i)
{
    switch (pixel) {
    case IMAGE_UINT8:
        return ((const uint8_t *)voxels)[i];
    case IMAGE_INT16:
        return ((const int16_t *)voxels)[i];
    case IMAGE_UINT16:
        return ((const uint16_t *)voxels)[i];
    }
    return 0;
}

void
ref_store(enum image_pixel pixel, void *voxels, int64_t i, int32_t value)
{
    if (pixel == IMAGE_UINT8)
        ((uint8_t *)voxels)[i] = (uint8_t)value;
    else
        ((uint16_t *)voxels)[i] = (uint16_t)value;
}

void
ref_paint(enum image_pixel pixel, const uint8_t *in, int64_t count, int32_t in_value, int32_t out_value, void *voxels)
{
    for (int64_t i = 0; i < count; i++)
        ref_store(pixel, voxels, i, in[i] ? in_value : out_value);
}

/* Returns a number in 0 .. 1 that depends only on its place in a lattice. */
static double
lattice_value(uint64_t seed, int64_t x, int64_t y, int64_t z)
{
    uint64_t state = seed ^ ((uint64_t)x << 42 | (uint64_t)y << 21 | (uint64_t)z);

    return (double)(ref_random(&state) >> 11) * 0x1p-53;
}

/* Returns the lattice's value on one line of voxels along x, at x = 0, spacing, 2 * spacing, ... */
static double
lattice_node(uint64_t seed, int64_t node, int64_t spacing, int64_t y, int64_t z)
{
    double down = (double)(y % spacing) / (double)spacing;
    double back = (double)(z % spacing) / (double)spacing;
    double sides[2];

    for (int side = 0; side < 2; side++) {
        double near = lattice_value(seed, node, y / spacing, z / spacing + side);
        double far = lattice_value(seed, node, y / spacing + 1, z / spacing + side);
        sides[side] = near + (far - near) * down;
    }
    return sides[0] + (sides[1] - sides[0]) * back;
}

static void
add_lattice(uint64_t seed, int64_t spacing, double strength, int64_t y, int64_t z, int64_t columns, double *line)
{
    double left = 0, right = lattice_node(seed, 0, spacing, y, z);

    for (int64_t x = 0; x < columns; x++) {
        if (x % spacing == 0) {
            left = right;
            right = lattice_node(seed, x / spacing + 1, spacing, y, z);
        }
        line[x] += strength * (left + (right - left) * (double)(x % spacing) / (double)spacing);
    }
}

void
ref_smooth(struct image_extent extent, enum image_pixel pixel, int32_t top, uint64_t seed, void *voxels)
{
    size_t bytes = (size_t)extent.columns * sizeof(double);
    double *line = malloc(bytes);

    if (!line)
        abort();
    for (int64_t row = 0; row < extent.rows * extent.slices; row++) {
        int64_t y = row % extent.rows, z = row / extent.rows;

        memset(line, 0, bytes);
        add_lattice(seed, 16, 4.0 / 7, y, z, extent.columns, line);
        add_lattice(seed + 1, 8, 2.0 / 7, y, z, extent.columns, line);
        add_lattice(seed + 2, 4, 1.0 / 7, y, z, extent.columns, line);
        for (int64_t x = 0; x < extent.columns; x++)
            ref_store(pixel, voxels, row * extent.columns + x, (int32_t)(line[x] * top));
    }
    free(line);
}

void
ref_plateaus(struct image_extent extent, enum image_pixel pixel, int32_t top, int32_t levels, uint64_t seed,
             void *voxels)
{
    ref_smooth(extent, pixel, top, seed, voxels);
    for (int64_t i = 0; i < ref_voxels(extent); i++) {
        int32_t level = ref_stored(pixel, voxels, i) * levels / (top + 1);
        ref_store(pixel, voxels, i, level * top / (levels - 1));
    }
}

void
ref_scatter(struct image_extent extent, enum image_pixel pixel, int32_t top, uint64_t seed, void *voxels)
{
    for (int64_t i = 0; i < ref_voxels(extent); i++)
        ref_store(pixel, voxels, i, (int32_t)ref_random_below(&seed, top + 1));
}

void
ref_islands(struct image_extent extent, enum image_pixel pixel, int count, int32_t value, uint64_t seed, void *voxels)
{
    int64_t size[3] = {extent.columns, extent.rows, extent.slices};

    while (count-- > 0) {
        int64_t first[3], end[3];

        for (int axis = 0; axis < 3; axis++) {
            first[axis] = ref_random_below(&seed, size[axis]);
            end[axis] = first[axis] + 1 + ref_random_below(&seed, size[axis] / 3 + 1);
            end[axis] = end[axis] < size[axis] ? end[axis] : size[axis];
        }
        for (int64_t z = first[2]; z < end[2]; z++)
            for (int64_t y = first[1]; y < end[1]; y++)
                for (int64_t x = first[0]; x < end[0]; x++)
                    ref_store(pixel, voxels, (z * extent.rows + y) * extent.columns + x, value);
    }
}

/* The end of a growing tube. */
struct tip {
    double at[3];
    double direction[3];
    double radius;
};

enum { MAX_TIPS = 64 };

static double
random_side(uint64_t *state)
{
    return (double)(ref_random(state) >> 11) * 0x1p-52 - 1;
}

static void
turn(struct tip *tip, double most, uint64_t *state)
{
    double length = 0;

    for (int axis = 0; axis < 3; axis++) {
        tip->direction[axis] += most * random_side(state);
        length += tip->direction[axis] * tip->direction[axis];
    }
    for (int axis = 0; axis < 3; axis++)
        tip->direction[axis] /= length > 0 ? sqrt(length) : 1;
}

static void
paint_ball(struct image_extent extent, const struct tip *tip, uint8_t *in)
{
    int64_t size[3] = {extent.columns, extent.rows, extent.slices}, first[3], last[3];

    for (int axis = 0; axis < 3; axis++) {
        first[axis] = (int64_t)ceil(fmax(tip->at[axis] - tip->radius, 0));
        last[axis] = (int64_t)floor(fmin(tip->at[axis] + tip->radius, (double)(size[axis] - 1)));
    }
    for (int64_t z = first[2]; z <= last[2]; z++)
        for (int64_t y = first[1]; y <= last[1]; y++)
            for (int64_t x = first[0]; x <= last[0]; x++) {
                double dx = (double)x - tip->at[0], dy = (double)y - tip->at[1];
                double dz = (double)z - tip->at[2];

                if (dx * dx + dy * dy + dz * dz <= tip->radius * tip->radius)
                    in[(z * extent.rows + y) * extent.columns + x] = 1;
            }
}

static bool
is_outside(struct image_extent extent, const struct tip *tip)
{
    return tip->at[0] < 0 || tip->at[0] >= (double)extent.columns || tip->at[1] < 0 ||
           tip->at[1] >= (double)extent.rows || tip->at[2] < 0 || tip->at[2] >= (double)extent.slices;
}

/* Grows a tree from its root: every tip wanders, gets thinner, and sometimes forks. */
static void
grow_tree(struct image_extent extent, struct tip root, uint64_t *state, uint8_t *in)
{
    struct tip tips[MAX_TIPS] = {root};
    int count = 1;

    while (count > 0) {
        struct tip tip = tips[--count];

        while (tip.radius > 0.8 && !is_outside(extent, &tip)) {
            paint_ball(extent, &tip, in);
            for (int axis = 0; axis < 3; axis++)
                tip.at[axis] += tip.direction[axis];
            turn(&tip, 0.25, state);
            tip.radius *= 0.9985;
            if (count < MAX_TIPS && ref_random_below(state, 40) == 0) {
                tips[count] = tip;
                tips[count].radius *= 0.8;
                turn(&tips[count++], 1.5, state);
            }
        }
    }
}

/* Returns an approximately normal number of standard deviation 1: the sum of four uniform ones. */
static double
random_normal(uint64_t *state)
{
    uint64_t bits = ref_random(state);
    double sum = 0;

    for (int part = 0; part < 4; part++)
        sum += (double)(bits >> 16 * part & 0xFFFF) * 0x1p-15 - 1;
    return sum * sqrt(0.75);
}

static void
paint_vessels(int64_t count, enum image_pixel pixel, int32_t top, const uint8_t *in, uint64_t *state, void *voxels)
{
    for (int64_t i = 0; i < count; i++) {
        double value = in[i] ? top * (0.75 + 0.04 * random_normal(state)) : top * (0.25 + 0.07 * random_normal(state));

        ref_store(pixel, voxels, i, (int32_t)value);
    }
}

void
ref_vessels(struct image_extent extent, enum image_pixel pixel, int32_t top, int trees, uint64_t seed, void *voxels,
            struct kernels_voxel *roots)
{
    int64_t count = ref_voxels(extent), shortest = extent.columns;
    uint8_t *in = calloc((size_t)count, 1);

    if (!in)
        abort();
    shortest = extent.rows < shortest ? extent.rows : shortest;
    shortest = extent.slices < shortest ? extent.slices : shortest;
    for (int i = 0; i < trees; i++) {
        struct tip tip = {.radius = 1 + (double)shortest / 20};

        roots[i] = (struct kernels_voxel){ref_random_below(&seed, extent.columns), ref_random_below(&seed, extent.rows),
                                          ref_random_below(&seed, extent.slices)};
        tip.at[0] = (double)roots[i].x;
        tip.at[1] = (double)roots[i].y;
        tip.at[2] = (double)roots[i].z;
        turn(&tip, 1, &seed);
        grow_tree(extent, tip, &seed, in);
    }
    paint_vessels(count, pixel, top, in, &seed, voxels);
    free(in);
}
