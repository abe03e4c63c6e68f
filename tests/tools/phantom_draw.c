/*
 * phantom_draw.c - the pictures: ellipsoids, balls and a maze, one plane at a time.
 *
 * Bodies are given in parts of the volume, so that every size shows all of them; a skull is at
 * least a voxel and a half thick, so that it stays closed. Later bodies cover earlier ones. Rows
 * are painted in runs, not voxel by voxel: 300 planes of 512 x 512 take about a second.
 */
#include "tests/tools/phantom.h"

#include "tests/tools/part10.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#define MAX_BODIES 12

struct body {
    double center[3], radius[3]; /* in parts of the volume */
    int32_t value;
    bool box;
};

struct scene {
    struct body bodies[MAX_BODIES];
    int body_count;
    int32_t outside;
    int32_t noise; /* half its width, 0: none */
};

static void
add_body(struct scene *scene, int32_t value, double x, double y, double z, double rx, double ry,
         double rz)
{
    struct body *body = &scene->bodies[scene->body_count++];
    *body = (struct body){.center = {x, y, z}, .radius = {rx, ry, rz}, .value = value};
}

/* What is left of a radius within a wall that is a part of the volume thick, or 1.5 voxels. */
static double
within(double radius, double wall, int32_t size)
{
    double thickness = fmax(wall, 1.5 / size);
    return fmax(radius - thickness, 0);
}

struct tissue {
    int32_t scalp, skull, grey, white, ventricle;
};

static void
add_head(struct scene *scene, const struct phantom *phantom, const struct tissue *tissue)
{
    /* A volume of few slices is cut from the middle of a tall head. */
    const double height = phantom->slices < 4 ? 100.0 : 0.44;
    const double outer[3] = {0.36, 0.43, height};
    const int32_t size[3] = {phantom->columns, phantom->rows, phantom->slices};
    double brain[3];
    for (int axis = 0; axis < 3; axis++)
        brain[axis] = within(outer[axis], 0.05, size[axis]);
    add_body(scene, tissue->scalp, 0.5, 0.5, 0.5, outer[0] + 0.03, outer[1] + 0.03, height + 0.03);
    add_body(scene, tissue->skull, 0.5, 0.5, 0.5, outer[0], outer[1], outer[2]);
    add_body(scene, tissue->grey, 0.5, 0.5, 0.5, brain[0], brain[1], brain[2]);
    add_body(scene, tissue->white, 0.5, 0.5, 0.5, 0.85 * brain[0], 0.85 * brain[1],
             0.85 * brain[2]);
    add_body(scene, tissue->ventricle, 0.44, 0.47, 0.52, 0.035, 0.12, 0.10);
    add_body(scene, tissue->ventricle, 0.56, 0.47, 0.52, 0.035, 0.12, 0.10);
}

static void
make_ct_head(struct scene *scene, const struct phantom *phantom)
{
    static const struct tissue hounsfield = {
        .scalp = 50, .skull = 1000, .grey = 38, .white = 33, .ventricle = 5};
    scene->outside = -1000;
    scene->noise = 10;
    add_body(scene, 200, 0.5, 0.975, 0.5, 0.4, 0.01, 10.0);
    scene->bodies[0].box = true; /* the table */
    add_head(scene, phantom, &hounsfield);
}

static void
make_mr_brain(struct scene *scene, const struct phantom *phantom)
{
    static const struct tissue signal = {
        .scalp = 110, .skull = 8, .grey = 44, .white = 66, .ventricle = 14};
    scene->outside = 6;
    scene->noise = 5;
    add_head(scene, phantom, &signal);
}

static void
make_pet(struct scene *scene)
{
    scene->outside = 20;
    scene->noise = 20;
    add_body(scene, 2000, 0.5, 0.5, 0.5, 0.40, 0.30, 10.0);
    add_body(scene, 20000, 0.45, 0.45, 0.5, 0.08, 0.08, 0.12);
    add_body(scene, 12000, 0.62, 0.55, 0.5, 0.05, 0.05, 0.20);
}

static void
make_sphere(struct scene *scene, const struct phantom *phantom)
{
    const int32_t size[3] = {phantom->columns, phantom->rows, phantom->slices};
    int32_t smallest = size[0];
    for (int axis = 1; axis < 3; axis++)
        smallest = size[axis] < smallest ? size[axis] : smallest;
    scene->outside = -1000;
    add_body(scene, 40, 0.5, 0.5, 0.5, 0.25 * smallest / size[0], 0.25 * smallest / size[1],
             0.25 * smallest / size[2]);
}

static void
make_scene(struct scene *scene, const struct phantom *phantom)
{
    *scene = (struct scene){.body_count = 0};
    switch (phantom->kind) {
    case PHANTOM_CT_HEAD:
        make_ct_head(scene, phantom);
        break;
    case PHANTOM_MR_BRAIN:
        make_mr_brain(scene, phantom);
        break;
    case PHANTOM_PET:
        make_pet(scene);
        break;
    case PHANTOM_SPHERE:
        make_sphere(scene, phantom);
        break;
    case PHANTOM_MAZE:
        break;
    }
}

/* Half the width of the body in the row at (y, z), in parts of the volume; negative: not there. */
static double
half_width(const struct body *body, double y, double z)
{
    if (!(body->radius[0] > 0 && body->radius[1] > 0 && body->radius[2] > 0))
        return -1;
    double v = (y - body->center[1]) / body->radius[1];
    double w = (z - body->center[2]) / body->radius[2];
    if (body->box)
        return fabs(v) <= 1 && fabs(w) <= 1 ? body->radius[0] : -1;
    double left = 1 - v * v - w * w;
    return left < 0 ? -1 : body->radius[0] * sqrt(left);
}

static void
paint_row(const struct scene *scene, int32_t columns, double y, double z, int32_t *row)
{
    for (int32_t x = 0; x < columns; x++)
        row[x] = scene->outside;
    for (int i = 0; i < scene->body_count; i++) {
        const struct body *body = &scene->bodies[i];
        double half = half_width(body, y, z);
        if (half < 0)
            continue;
        /* Voxel x has its centre at (x + 0.5) / columns. */
        double first = ceil((body->center[0] - half) * columns - 0.5);
        double last = floor((body->center[0] + half) * columns - 0.5);
        int32_t from = (int32_t)fmax(first, 0), to = (int32_t)fmin(last, columns - 1);
        for (int32_t x = from; x <= to; x++)
            row[x] = body->value;
    }
}

/* Adds the sum of four nibbles of noise, -1 .. 1 times `width`, to each value. */
static void
add_noise(int32_t width, uint64_t seed, int32_t columns, int32_t *row)
{
    uint64_t random = 0;
    for (int32_t x = 0; x < columns; x++) {
        random = x % 4 == 0 ? part10_mix(seed, (uint64_t)x) : random >> 16;
        int32_t sum = (int32_t)((random & 15) + (random >> 4 & 15) + (random >> 8 & 15) +
                                (random >> 12 & 15));
        row[x] += width * (sum - 30) / 30;
    }
}

/*
 * Even rows of even slices are corridors along x. Odd rows join them at alternating ends, and odd
 * slices join the ends of what two even slices make, so that it is one path.
 */
static bool
maze_is_open(const struct phantom *phantom, int32_t x, int32_t y, int32_t z)
{
    const int32_t last_row = (phantom->rows - 1) / 2 * 2;
    const int32_t turns = last_row / 2; /* joints of a slice */
    const int32_t right = phantom->columns - 1;
    const int32_t far_end = turns % 2 ? 0 : right; /* where the last row of a slice ends */
    if (z % 2 == 0) {
        if (y > last_row)
            return false;
        return y % 2 == 0 || x == (y / 2 % 2 ? 0 : right);
    }
    bool at_far_end = z / 2 % 2 == 0;
    return at_far_end ? y == last_row && x == far_end : y == 0 && x == 0;
}

static void
draw_maze_row(const struct phantom *phantom, int32_t y, int32_t z, int32_t *row)
{
    for (int32_t x = 0; x < phantom->columns; x++)
        row[x] = maze_is_open(phantom, x, y, z) ? 40 : -1000;
}

void
phantom_draw(const struct phantom *phantom, const struct phantom_plane *plane, int32_t *values)
{
    struct scene scene;
    make_scene(&scene, phantom);
    const uint64_t other = (uint64_t)plane->volume << 32 | (uint64_t)plane->echo;
    uint64_t plane_seed = part10_mix(part10_mix(phantom->seed, (uint64_t)plane->slice), other);
    double z = (plane->slice + 0.5) / phantom->slices;
    for (int32_t y = 0; y < phantom->rows; y++) {
        int32_t *row = values + (ptrdiff_t)y * phantom->columns;
        if (phantom->kind == PHANTOM_MAZE) {
            draw_maze_row(phantom, y, plane->slice, row);
            continue;
        }
        paint_row(&scene, phantom->columns, (y + 0.5) / phantom->rows, z, row);
        if (scene.noise)
            add_noise(scene.noise, part10_mix(plane_seed, (uint64_t)y), phantom->columns, row);
    }
}
