/*
 * phantom_draw.c - draws the bodies of a scene and a maze, one plane at a time.
 *
 * Rows are painted in runs, not voxel by voxel: 300 planes of 512 x 512 take about a second.
 */
#include "tests/tools/phantom_scene.h"

#include "tests/tools/part10.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* Part of a row, relative to the volume; from > to: empty. */
struct span {
    double from, to;
};

static const struct span nowhere = {1, 0};

static struct span
ball_span(const double center[3], const double radius[3], double y, double z)
{
    const double v = (y - center[1]) / radius[1], w = (z - center[2]) / radius[2];
    const double left = 1 - v * v - w * w;
    if (left < 0)
        return nowhere;
    const double half = radius[0] * sqrt(left);
    return (struct span){center[0] - half, center[0] + half};
}

static struct span
box_span(const struct body *body, double y, double z)
{
    if (fabs(y - body->center[1]) > body->radius[1] || fabs(z - body->center[2]) > body->radius[2])
        return nowhere;
    return (struct span){body->center[0] - body->radius[0], body->center[0] + body->radius[0]};
}

static struct span
span_common(struct span a, struct span b)
{
    return (struct span){fmax(a.from, b.from), fmin(a.to, b.to)};
}

static struct span
span_hull(struct span a, struct span b)
{
    if (a.from > a.to)
        return b;
    return b.from > b.to ? a : (struct span){fmin(a.from, b.from), fmax(a.to, b.to)};
}

/* Returns the range where a + b u is within [0, limit]. */
static struct span
linear_span(double a, double b, double limit)
{
    if (b == 0)
        return a >= 0 && a <= limit ? (struct span){-HUGE_VAL, HUGE_VAL} : nowhere;
    const double first = -a / b, second = (limit - a) / b;
    return (struct span){fmin(first, second), fmax(first, second)};
}

/* Returns the range where a u^2 - 2 b u + c is at most 0; a must not be negative. */
static struct span
quadratic_span(double a, double b, double c)
{
    if (a < 1e-12)
        return c <= 0 ? (struct span){-HUGE_VAL, HUGE_VAL} : nowhere;
    const double root = b * b - a * c;
    if (root < 0)
        return nowhere;
    return (struct span){(b - sqrt(root)) / a, (b + sqrt(root)) / a};
}

/* Returns the span of a cylinder of radius 1 with a ball at each end. All lengths are in radii. */
static struct span
tube_span(const struct body *body, double y, double z)
{
    const double *r = body->radius, *a = body->center, *b = body->end;
    const double d[3] = {(b[0] - a[0]) / r[0], (b[1] - a[1]) / r[1], (b[2] - a[2]) / r[2]};
    const double v = (y - a[1]) / r[1], w = (z - a[2]) / r[2];
    const double along = v * d[1] + w * d[2];
    const double length = d[0] * d[0] + d[1] * d[1] + d[2] * d[2];
    /* Find where the squared part of (u, v, w) perpendicular to d is at most 1, and the foot lies on d. */
    struct span side =
        quadratic_span(1 - d[0] * d[0] / length, d[0] * along / length, v * v + w * w - along * along / length - 1);
    side = span_common(side, linear_span(along, d[0], length));
    if (side.from <= side.to)
        side = (struct span){a[0] + side.from * r[0], a[0] + side.to * r[0]};
    return span_hull(side, span_hull(ball_span(a, r, y, z), ball_span(b, r, y, z)));
}

/* Returns the part of the row at (y, z) inside the body. */
static struct span
body_span(const struct body *body, double y, double z)
{
    if (!(body->radius[0] > 0 && body->radius[1] > 0 && body->radius[2] > 0))
        return nowhere;
    switch (body->shape) {
    case BODY_BOX:
        return box_span(body, y, z);
    case BODY_TUBE:
        return tube_span(body, y, z);
    case BODY_ELLIPSOID:
        break;
    }
    return ball_span(body->center, body->radius, y, z);
}

static void
paint_row(const struct scene *scene, int32_t columns, double y, double z, uint8_t *row)
{
    memset(row, TISSUE_AIR, (size_t)columns);
    for (int i = 0; i < scene->body_count; i++) {
        const struct body *body = &scene->bodies[i];
        const struct span span = body_span(body, y, z);
        /* Voxel x has its centre at (x + 0.5) / columns. */
        double first = ceil(span.from * columns - 0.5);
        double last = floor(span.to * columns - 0.5);
        int32_t from = (int32_t)fmax(first, 0), to = (int32_t)fmin(last, columns - 1);
        for (int32_t x = from; x <= to; x++)
            if (!body->over || body->over >> row[x] & 1)
                row[x] = (uint8_t)body->tissue;
    }
}

/* Adds noise to each value: the sum of four nibbles, -1 .. 1 times `width`. */
static void
add_noise(int32_t width, uint64_t seed, int32_t columns, int32_t *row)
{
    uint64_t random = 0;
    for (int32_t x = 0; x < columns; x++) {
        random = x % 4 == 0 ? part10_mix(seed, (uint64_t)x) : random >> 16;
        int32_t sum = (int32_t)((random & 15) + (random >> 4 & 15) + (random >> 8 & 15) + (random >> 12 & 15));
        row[x] += width * (sum - 30) / 30;
    }
}

/*
 * Even rows of even slices are corridors along x. Odd rows join them at alternating ends. Odd slices join the ends of
 * the even slices next to them, so that there is one path.
 */
static bool
maze_is_open(const struct phantom *phantom, int32_t x, int32_t y, int32_t z)
{
    const int32_t last_row = (phantom->rows - 1) / 2 * 2;
    const int32_t turns = last_row / 2; /* joints per slice */
    const int32_t right = phantom->columns - 1;
    const int32_t far_end = turns % 2 ? 0 : right; /* end of the last row of a slice */
    if (z % 2 == 0) {
        if (y > last_row)
            return false;
        return y % 2 == 0 || x == (y / 2 % 2 ? 0 : right);
    }
    bool at_far_end = z / 2 % 2 == 0;
    return at_far_end ? y == last_row && x == far_end : y == 0 && x == 0;
}

static void
draw_maze_row(const struct phantom *phantom, int32_t y, int32_t z, uint8_t *row)
{
    for (int32_t x = 0; x < phantom->columns; x++)
        row[x] = maze_is_open(phantom, x, y, z) ? TISSUE_CORRIDOR : TISSUE_AIR;
}

/* Finds the centre of a row, relative to the volume; with a tilt, relative to an upright volume around it. */
static void
find_row(const struct phantom *phantom, bool sheared, int32_t row, int32_t slice, double *y, double *z)
{
    *y = (row + 0.5) / phantom->rows;
    *z = (slice + 0.5) / phantom->slices;
    if (!sheared)
        return;
    const double height = phantom->rows * phantom->spacing[1];
    double down[3];
    phantom_column_direction(phantom, down);
    *z += (*y - 0.5) * height * down[2] / (phantom->slices * phantom->spacing[2]);
    *y = 0.5 + (*y - 0.5) * down[1];
}

static void
draw_scene(const struct phantom *phantom, const struct scene *scene, int32_t slice, uint8_t *tissues)
{
    for (int32_t row = 0; row < phantom->rows; row++) {
        uint8_t *at = tissues + (ptrdiff_t)row * phantom->columns;
        double y, z;
        if (phantom->kind == PHANTOM_MAZE) {
            draw_maze_row(phantom, row, slice, at);
            continue;
        }
        find_row(phantom, scene->sheared, row, slice, &y, &z);
        paint_row(scene, phantom->columns, y, z, at);
    }
}

void
phantom_draw_tissues(const struct phantom *phantom, int32_t slice, uint8_t *tissues)
{
    struct scene scene;
    scene_make(&scene, phantom);
    draw_scene(phantom, &scene, slice, tissues);
}

/*
 * Replaces each of `count` values, `step` apart, by twice itself plus both neighbours. At the ends, the value is its
 * own neighbour.
 */
static void
blur_line(int32_t *values, int32_t count, ptrdiff_t step)
{
    int32_t before = values[0];
    for (int32_t i = 0; i < count; i++, values += step) {
        const int32_t here = *values, after = i + 1 < count ? values[step] : here;
        *values = before + 2 * here + after;
        before = here;
    }
}

/* Applies the binomial filter of 3 x 3. */
static void
blur_plane(int32_t columns, int32_t rows, int32_t *values)
{
    for (int32_t y = 0; y < rows; y++)
        blur_line(values + (ptrdiff_t)y * columns, columns, 1);
    for (int32_t x = 0; x < columns; x++)
        blur_line(values + x, rows, columns);
    for (ptrdiff_t i = 0; i < (ptrdiff_t)columns * rows; i++)
        values[i] = (int32_t)lround(values[i] / 16.0);
}

void
phantom_draw(const struct phantom *phantom, const struct phantom_plane *plane, const struct phantom_drawing *drawing)
{
    struct scene scene;
    scene_make(&scene, phantom);
    const uint64_t other = (uint64_t)plane->volume << 32 | (uint64_t)plane->echo;
    uint64_t plane_seed = part10_mix(part10_mix(phantom->seed, (uint64_t)plane->slice), other);
    draw_scene(phantom, &scene, plane->slice, drawing->tissues);
    int32_t *values = drawing->values;
    for (ptrdiff_t i = 0; i < (ptrdiff_t)phantom->rows * phantom->columns; i++)
        values[i] = scene.value[drawing->tissues[i]];
    if (scene.blurred)
        blur_plane(phantom->columns, phantom->rows, values);
    for (int32_t y = 0; y < phantom->rows && scene.noise; y++)
        add_noise(scene.noise, part10_mix(plane_seed, (uint64_t)y), phantom->columns,
                  values + (ptrdiff_t)y * phantom->columns);
}
