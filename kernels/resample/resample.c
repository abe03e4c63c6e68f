/* resample.c - see resample.h: grids, tables, and checks of requests. */
#include "kernels/resample/resample.h"
#include "kernels/op.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Positions are rounded to such parts of a sample: to a coarse one that is NEAR, else to a fine one. */
#define COARSE 0x1p16
#define FINE   0x1p40
#define NEAR   0x1p-30

/* Max deviation of a step between regular planes from the mean one. */
#define REGULAR_SHARE 0.01
#define REGULAR_MM    0.02

/* Rounding errors up to this do not add a voxel to a whole number of voxels. */
#define WHOLE 1e-6

/* ---- planes in mm along rows, columns and normal ---- */

/* Returns the shift by the planes' origins. */
static double
resample_told_shift(const struct resample_frame *frame, int64_t plane, int axis)
{
    const struct image_planes *planes = frame->planes;

    return image_planes_along(planes->origins + 3 * plane, planes->origins,
                              axis < 2 ? planes->axes + 3 * axis : frame->normal);
}

static bool
resample_is_regular(const struct resample_frame *frame)
{
    const double tolerance = fmax(REGULAR_SHARE * frame->step, REGULAR_MM);

    for (int64_t z = 1; z < frame->planes->extent.slices; z++)
        for (int axis = 0; axis < 3; axis++) {
            const double shift = resample_told_shift(frame, z, axis) - resample_told_shift(frame, z - 1, axis);

            if (!(fabs(shift - (axis == 2 ? frame->step : 0)) <= tolerance))
                return false;
        }
    return true;
}

struct resample_frame
resample_frame_of(const struct image_planes *planes)
{
    const int64_t slices = planes->extent.slices;
    struct resample_frame frame = {.planes = planes, .step = planes->thickness};

    image_planes_normal(planes, frame.normal);
    if (slices > 1)
        frame.step = resample_told_shift(&frame, slices - 1, 2) / (double)(slices - 1);
    frame.regular = resample_is_regular(&frame);
    return frame;
}

double
resample_shift(const struct resample_frame *frame, int64_t plane, int axis)
{
    if (!frame->regular)
        return resample_told_shift(frame, plane, axis);
    return axis == 2 ? (double)plane * frame->step : 0;
}

/* Finds the least and greatest position of planes along an axis, relative to the first plane's
 * origin. */
static void
resample_bounds(const struct resample_frame *frame, int axis, double bounds[2])
{
    bounds[0] = bounds[1] = 0;
    for (int64_t z = 1; z < frame->planes->extent.slices; z++) {
        const double shift = resample_shift(frame, z, axis);

        bounds[0] = fmin(bounds[0], shift);
        bounds[1] = fmax(bounds[1], shift);
    }
}

/* ---- grids ---- */

int64_t *
resample_side(struct image_extent *extent, int axis)
{
    return axis == 0 ? &extent->columns : axis == 1 ? &extent->rows : &extent->slices;
}

static double
resample_least_step(const struct resample_frame *frame)
{
    double least = INFINITY;

    if (frame->regular)
        return frame->step;
    for (int64_t z = 1; z < frame->planes->extent.slices; z++)
        least = fmin(least, resample_shift(frame, z, 2) - resample_shift(frame, z - 1, 2));
    return least;
}

void
resample_straight(const struct image_planes *planes, double mm, struct resample_grid *grid)
{
    const struct resample_frame frame = resample_frame_of(planes);

    *grid = (struct resample_grid){.extent = planes->extent};
    for (int axis = 0; axis < 2; axis++) {
        const double spacing = planes->spacing[axis];
        double bounds[2];

        resample_bounds(&frame, axis, bounds);
        const double first = floor(bounds[0] / spacing + WHOLE);
        const double last = ceil(bounds[1] / spacing - WHOLE);
        *resample_side(&grid->extent, axis) += (int64_t)(last - first);
        grid->spacing[axis] = spacing;
        grid->origin[axis] = first * spacing;
    }
    const double height = resample_shift(&frame, planes->extent.slices - 1, 2);
    grid->spacing[2] = mm > 0 ? mm : resample_least_step(&frame);
    grid->extent.slices = (int64_t)floor(height / grid->spacing[2] + WHOLE) + 1;
}

void
resample_spaced(const struct image_planes *planes, const double mm[3], struct resample_grid *grid)
{
    const struct resample_frame frame = resample_frame_of(planes);
    struct image_extent extent = planes->extent;

    *grid = (struct resample_grid){.extent = planes->extent};
    for (int axis = 0; axis < 3; axis++) {
        const double own = axis < 2 ? planes->spacing[axis] : frame.step;
        const double spacing = mm[axis] > 0 ? mm[axis] : own;
        double bounds[2];

        resample_bounds(&frame, axis, bounds);
        if (axis < 2)
            bounds[1] += (double)(*resample_side(&extent, axis) - 1) * own;
        const double covered = bounds[1] - bounds[0] + own;
        const double count = fmax(ceil(covered / spacing - WHOLE), 1);
        *resample_side(&grid->extent, axis) = (int64_t)count;
        grid->spacing[axis] = spacing;
        grid->origin[axis] = bounds[0] + ((bounds[1] - bounds[0]) - (count - 1) * spacing) / 2;
    }
}

void
resample_cornered(const struct image_planes *planes, const double mm[3], bool from_end, struct resample_grid *grid)
{
    const struct resample_frame frame = resample_frame_of(planes);
    struct image_extent extent = planes->extent;

    *grid = (struct resample_grid){.extent = planes->extent, .from_end = from_end, .mirrors = true};
    for (int axis = 0; axis < 3; axis++) {
        const double own = axis < 2 ? planes->spacing[axis] : frame.step;
        const double spacing = mm[axis] > 0 ? mm[axis] : own;
        const double samples = (double)*resample_side(&extent, axis);
        const double first = (spacing - own) / 2;
        const double count = fmax(ceil(samples * own / spacing - WHOLE), 1);

        *resample_side(&grid->extent, axis) = (int64_t)count;
        grid->spacing[axis] = spacing;
        grid->origin[axis] = axis == 2 && from_end ? (samples - 1) * own - first - (count - 1) * spacing : first;
    }
}

/* Rounds to a whole number and clamps it to a grid's side. */
static int64_t
resample_clamped(double voxel, int64_t side)
{
    return (int64_t)fmin(fmax(voxel, 0), (double)(side - 1));
}

/* A sample contributes to voxels less than one sample away. */
void
resample_around(const struct image_planes *planes, const int64_t first[3], const int64_t size[3], double margin_mm,
                struct resample_grid *grid)
{
    const struct resample_frame frame = resample_frame_of(planes);

    for (int axis = 0; axis < 3; axis++) {
        const double own = axis < 2 ? planes->spacing[axis] : frame.step;
        const double lo = (double)(first[axis] - 1) * own - margin_mm - grid->origin[axis];
        const double hi = (double)(first[axis] + size[axis]) * own + margin_mm - grid->origin[axis];
        int64_t *side = resample_side(&grid->extent, axis);

        grid->first[axis] = resample_clamped(floor(lo / grid->spacing[axis]), *side);
        *side = resample_clamped(ceil(hi / grid->spacing[axis]), *side) - grid->first[axis] + 1;
    }
}

/* ---- places ---- */

double
resample_rounded(double place)
{
    const double coarse = floor(place * COARSE + 0.5) / COARSE;

    return fabs(place - coarse) <= NEAR ? coarse : floor(place * FINE + 0.5) / FINE;
}

double
resample_between(const struct resample_frame *frame, double height)
{
    int64_t low = 0, high = frame->planes->extent.slices - 1;

    if (frame->regular)
        return resample_rounded(height / frame->step);
    while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;

        if (resample_shift(frame, middle, 2) <= height)
            low = middle;
        else
            high = middle;
    }
    const double below = resample_shift(frame, low, 2);
    return resample_rounded((double)low + (height - below) / (resample_shift(frame, high, 2) - below));
}

double
resample_beside(const struct image_planes *planes, double mm, double shift, int axis)
{
    return resample_rounded((mm - shift) / planes->spacing[axis]);
}

double
resample_mm(const struct resample_grid *grid, int axis, int64_t i)
{
    return grid->origin[axis] + (double)(grid->first[axis] + i) * grid->spacing[axis];
}

static bool
resample_reaches(double place, int64_t samples)
{
    return place >= -0.5 && place <= (double)samples - 0.5;
}

/* Clamps a position to the samples. */
static double
resample_within(double place, int64_t samples)
{
    return fmin(fmax(place, 0), (double)(samples - 1));
}

bool
resample_is_beyond(const struct resample_grid *grid, int axis, double place, int64_t samples)
{
    return axis == 2 && grid->from_end ? place <= -0.5 : place >= (double)samples - 0.5;
}

void
resample_clear_beyond(const struct image_planes *planes, const struct resample_grid *grid, double *values)
{
    const struct resample_frame frame = resample_frame_of(planes);
    struct image_extent to = grid->extent, from = planes->extent;
    const int64_t count = image_voxels(&to);
    int64_t stride = 1; /* of neighbours along the axis */

    for (int axis = 0; axis < 3; axis++) {
        const int64_t side = *resample_side(&to, axis);

        for (int64_t i = 0; i < side; i++) {
            const double mm = resample_mm(grid, axis, i);
            const double place = axis < 2 ? resample_beside(planes, mm, 0, axis) : resample_between(&frame, mm);

            if (!resample_is_beyond(grid, axis, place, *resample_side(&from, axis)))
                continue;
            for (int64_t at = i * stride; at < count; at += side * stride)
                memset(values + at, 0, (size_t)stride * sizeof(*values));
        }
        stride *= side;
    }
}

int32_t
resample_nearest(double place, int64_t samples)
{
    if (!resample_reaches(place, samples))
        return -1;
    return (int32_t)resample_within(floor(place + 0.5), samples);
}

static struct resample_pair
resample_tap_at(double place, int64_t samples, int order)
{
    struct resample_pair tap = {0, resample_nearest(place, samples)};

    if (order == RESAMPLE_NEAREST || tap.at < 0)
        return tap;
    const double within = resample_within(place, samples);
    tap.at = (int32_t)within;
    tap.part = within - (double)tap.at;
    return tap;
}

/* ---- splines ---- */

static int32_t
resample_mirrored(int64_t at, int64_t samples)
{
    if (samples == 1)
        return 0;
    const int64_t period = 2 * (samples - 1), within = llabs(at) % period;
    return (int32_t)(within < samples ? within : period - within);
}

static struct resample_weights
resample_weights_at(double place, int64_t samples, bool mirrors)
{
    const double last = (double)(samples - 1), turned = place < 0 ? -place : place > last ? 2 * last - place : place;
    const double within = resample_within(mirrors ? turned : place, samples), whole = floor(within);
    const double f = within - whole, g = 1 - f;
    struct resample_weights weights = {
        .weight = {g * g * g / 6, 2.0 / 3 - f * f * (2 - f) / 2, 2.0 / 3 - g * g * (2 - g) / 2, f * f * f / 6}};

    for (int64_t i = 0; i < 4; i++)
        weights.at[i] = resample_mirrored((int64_t)whole - 1 + i, samples);
    return weights;
}

/* Sums over all mirrored samples, or the number that affects a double's bits. A single sample is
 * its own coefficient and has no start. */
static struct resample_start
resample_start_of(int64_t samples)
{
    struct resample_start start = {.end = RESAMPLE_POLE / (RESAMPLE_POLE * RESAMPLE_POLE - 1),
                                   .count = (int32_t)(samples < RESAMPLE_REACH ? samples : RESAMPLE_REACH)};
    double powers[2 * RESAMPLE_REACH] = {1};

    for (int i = 1; i < 2 * RESAMPLE_REACH; i++)
        powers[i] = powers[i - 1] * RESAMPLE_POLE;
    for (int64_t i = 0; i < start.count; i++) {
        start.weight[i] = powers[i];
        if (samples > RESAMPLE_REACH || samples == 1)
            continue;
        if (i > 0 && i < samples - 1)
            start.weight[i] += powers[2 * samples - 2 - i];
        start.weight[i] /= 1 - powers[2 * samples - 2];
    }
    return start;
}

/* ---- tables ---- */

size_t
resample_table_size(const struct kernels_lane *lane, const struct resample_demand *demand, int axis)
{
    struct image_extent extent = demand->extent;
    const size_t side = (size_t)*resample_side(&extent, axis);

    if (demand->order == RESAMPLE_CUBIC || axis == 2)
        return side;
    return side * (size_t)lane->extent.slices;
}

void
resample_place_tables(struct kernels_arena *arena, const struct kernels_lane *lane,
                      const struct resample_demand *demand, struct resample_tables *tables)
{
    for (int axis = 0; axis < 3; axis++) {
        const size_t size = resample_table_size(lane, demand, axis);

        if (demand->order == RESAMPLE_CUBIC)
            tables->weights[axis] = kernels_take(arena, size, sizeof(struct resample_weights));
        else
            tables->taps[axis] = kernels_take(arena, size, sizeof(struct resample_pair));
    }
    tables->starts = kernels_take(arena, 3, sizeof(*tables->starts));
}

struct resample_pair
resample_tap_beside(const struct resample_frame *frame, const struct resample_grid *grid, int64_t plane, int axis,
                    int64_t i, int order)
{
    struct image_extent from = frame->planes->extent;
    const double shift = resample_shift(frame, plane, axis);

    return resample_tap_at(resample_beside(frame->planes, resample_mm(grid, axis, i), shift, axis),
                           *resample_side(&from, axis), order);
}

struct resample_pair
resample_tap_between(const struct resample_frame *frame, const struct resample_grid *grid, int64_t k, int order)
{
    return resample_tap_at(resample_between(frame, resample_mm(grid, 2, k)), frame->planes->extent.slices, order);
}

static void
resample_fill_taps(const struct resample_request *request, struct resample_tables *tables)
{
    const struct image_planes *planes = request->planes;
    const struct resample_grid *grid = request->grid;
    const struct resample_frame frame = resample_frame_of(planes);
    struct image_extent to = grid->extent;

    for (int axis = 0; axis < 2; axis++) {
        const int64_t side = *resample_side(&to, axis);
        const int64_t apart = frame.regular ? 1 : planes->extent.slices;

        tables->step[axis] = frame.regular ? 0 : side;
        for (int64_t z = 0; z < apart; z++)
            for (int64_t i = 0; i < side; i++)
                tables->taps[axis][z * side + i] = resample_tap_beside(&frame, grid, z, axis, i, request->order);
    }
    for (int64_t k = 0; k < to.slices; k++)
        tables->taps[2][k] = resample_tap_between(&frame, grid, k, request->order);
}

/* Returns the position along an axis of the grid for regular planes. */
static double
resample_regular_place(const struct resample_frame *frame, const struct resample_grid *grid, int axis, int64_t i)
{
    const double mm = resample_mm(grid, axis, i);

    return axis == 2 ? resample_between(frame, mm) : resample_beside(frame->planes, mm, 0, axis);
}

void
resample_fill_tables(const struct resample_request *request, struct resample_tables *tables)
{
    if (request->order == RESAMPLE_CUBIC) {
        const struct resample_frame frame = resample_frame_of(request->planes);
        struct image_extent from = request->planes->extent, to = request->grid->extent;

        for (int axis = 0; axis < 3; axis++) {
            const int64_t samples = *resample_side(&from, axis);

            tables->starts[axis] = resample_start_of(samples);
            for (int64_t i = 0; i < *resample_side(&to, axis); i++)
                tables->weights[axis][i] = resample_weights_at(resample_regular_place(&frame, request->grid, axis, i),
                                                               samples, request->grid->mirrors);
        }
    } else
        resample_fill_taps(request, tables);
}

/* ---- requests ---- */

static bool
resample_side_is_sound(int64_t side)
{
    return side >= 1 && side <= INT32_MAX;
}

bool
resample_fits(const struct kernels_lane *lane, const struct resample_demand *demand)
{
    const struct image_extent *grid = &demand->extent;
    int64_t voxels;

    for (int axis = 0; axis < 3; axis++) {
        struct image_extent from = lane->extent, to = *grid;

        if (!resample_side_is_sound(*resample_side(&from, axis)) || !resample_side_is_sound(*resample_side(&to, axis)))
            return false;
    }
    return !__builtin_mul_overflow(grid->columns * grid->rows, grid->slices, &voxels) && voxels <= KERNELS_MAX_VOXELS;
}

static int
resample_refuse(struct error *error, const char *what)
{
    return error_set(error, -EINVAL, CODE_COMPUTE_FAILED, "a volume is not resampled: %s", what);
}

static bool
resample_same(const struct image_extent *a, const struct image_extent *b)
{
    return a->columns == b->columns && a->rows == b->rows && a->slices == b->slices;
}

static bool
resample_is_length(double mm)
{
    return isfinite(mm) && mm > 0;
}

static int
resample_check_planes(const struct image_planes *planes, struct error *error)
{
    if (!resample_is_length(planes->spacing[0]) || !resample_is_length(planes->spacing[1]) ||
        (planes->extent.slices == 1 && !resample_is_length(planes->thickness)))
        return resample_refuse(error, "its spacing is none");
    const struct resample_frame frame = resample_frame_of(planes);
    for (int64_t z = 1; z < planes->extent.slices; z++)
        if (!resample_is_length(resample_shift(&frame, z, 2) - resample_shift(&frame, z - 1, 2)))
            return resample_refuse(error, "its planes do not ascend");
    return 0;
}

static int
resample_check(struct kernels_lane *lane, const struct resample_request *request, struct error *error)
{
    const struct resample_demand *demand = kernels_state(lane, KERNELS_RESAMPLE);
    const struct image_range range = image_pixel_range(demand->pixel);
    const struct resample_grid *grid = request->grid;

    if (request->order != demand->order || !resample_same(&grid->extent, &demand->extent))
        return resample_refuse(error, "the memory was reserved for another grid or order");
    if (!resample_same(&request->planes->extent, &lane->extent))
        return resample_refuse(error, "its planes are of another size");
    if ((demand->values == RESAMPLE_RESCALED) != (request->rescales || request->samples))
        return resample_refuse(error, "the memory was reserved for other values");
    if (demand->values == RESAMPLE_STORED && (request->outside < range.lo || request->outside > range.hi))
        return resample_refuse(error, "the value for voxels outside does not fit the pixel type");
    for (int axis = 0; axis < 3; axis++)
        if (!resample_is_length(grid->spacing[axis]) || !isfinite(grid->origin[axis]))
            return resample_refuse(error, "the grid's spacing or origin is none");
    const int rc = resample_check_planes(request->planes, error);
    if (rc || request->order != RESAMPLE_CUBIC)
        return rc;
    /* Check that a spline is possible: regular planes, and a grid within half a sample of them, unless it is a mirror beyond. */
    const struct resample_frame frame = resample_frame_of(request->planes);
    struct image_extent from = request->planes->extent, to = grid->extent;

    if (!frame.regular)
        return resample_refuse(error, "a spline does not run through irregular planes");
    for (int axis = 0; axis < 3 && !grid->mirrors; axis++) {
        const int64_t samples = *resample_side(&from, axis), side = *resample_side(&to, axis);

        if (!resample_reaches(resample_regular_place(&frame, grid, axis, 0), samples) ||
            !resample_reaches(resample_regular_place(&frame, grid, axis, side - 1), samples))
            return resample_refuse(error, "a spline does not reach beyond its planes");
    }
    return 0;
}

int
kernels_resample(struct kernels_lane *lane, const struct resample_request *request, const void **voxels,
                 struct error *error)
{
    const struct resample_run run = {request, voxels};
    int rc = kernels_op_check(lane, KERNELS_RESAMPLE, error);

    if (!rc)
        rc = resample_check(lane, request, error);
    return rc ? rc : kernels_op_run(lane, KERNELS_RESAMPLE, &run, error);
}
