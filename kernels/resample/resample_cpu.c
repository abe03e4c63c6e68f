/*
 * resample_cpu.c - resamples a volume on the CPU.
 *
 * Orders 0 and 1: a thread takes slices of the grid. For each row it mixes two rows of each of two
 * planes, samples along them, and mixes the planes. Order 3: a thread takes slices of the volume
 * for the first two axes, with results in double, then rows of the grid for the third. The
 * coefficients of a line depend on each other, so that many lines are processed in parallel.
 */
#include "kernels/cpu/device.h"
#include "kernels/resample/resample.h"

#include <math.h>
#include <string.h>

enum { LINES = 8 }; /* filtered together if contiguous */

struct cpu_resample {
    struct resample_demand demand; /* first: requests are checked against it */
    struct resample_tables tables;
    void *voxels;
    double *mixed;  /* order 3: all slices, resampled along rows and columns */
    double *spaces; /* one per thread */
};

static struct cpu_resample *
cpu_resample_state(const struct kernels_lane *lane)
{
    return kernels_state(lane, KERNELS_RESAMPLE);
}

static bool
cpu_resample_needs(struct kernels_lane *lane, const void *demand)
{
    struct cpu_resample *own = cpu_resample_state(lane);

    own->demand = *(const struct resample_demand *)demand;
    return resample_fits(lane, &own->demand);
}

/* Returns the size of a thread's work space in doubles. */
static size_t
cpu_resample_space(const struct kernels_lane *lane)
{
    const struct image_extent *from = &lane->extent, *to = &cpu_resample_state(lane)->demand.extent;

    if (cpu_resample_state(lane)->demand.order == RESAMPLE_CUBIC)
        return (size_t)(from->columns * (LINES + 1) + from->rows * to->columns + to->columns);
    return (size_t)(2 * (from->columns + 1) + 2 * to->columns);
}

static void
cpu_resample_place(struct kernels_lane *lane, struct kernels_memory *memory)
{
    struct cpu_resample *own = cpu_resample_state(lane);
    const struct image_extent *to = &own->demand.extent;
    const size_t threads = (size_t)lane->device->threads;

    resample_place_tables(&memory->host, lane, &own->demand, &own->tables);
    own->voxels = kernels_take(&memory->host, (size_t)image_voxels(to), resample_voxel_size(&own->demand));
    own->spaces = kernels_take(&memory->host, cpu_resample_space(lane), threads * sizeof(double));
    if (own->demand.order == RESAMPLE_CUBIC)
        own->mixed =
            kernels_take(&memory->host, (size_t)image_slice_voxels(to), (size_t)lane->extent.slices * sizeof(double));
}

struct resampling {
    struct cpu_lane *lane;
    const struct cpu_resample *own;
    const struct resample_request *request;
    void (*work)(const struct resampling *resampling, double *space, int64_t i);
    int64_t count;
    int64_t next, space; /* next work item, and next free space */
};

static void
resampling_body(void *context)
{
    struct resampling *resampling = context;
    const size_t space = (size_t)__atomic_fetch_add(&resampling->space, 1, __ATOMIC_RELAXED) *
                         cpu_resample_space(&resampling->lane->base);
    int64_t i;

    while ((i = __atomic_fetch_add(&resampling->next, 1, __ATOMIC_RELAXED)) < resampling->count)
        resampling->work(resampling, resampling->own->spaces + space, i);
}

/* Loads a row of the volume as doubles, rescaled if the request asks for it, or a row of its samples. */
static void
resampling_load(const struct resampling *resampling, int64_t y, int64_t z, double *values)
{
    const struct image_extent *extent = &resampling->lane->base.extent;
    const int64_t columns = extent->columns, first = (z * extent->rows + y) * columns;
    const void *voxels = resampling->lane->voxels.memory;

    if (resampling->request->samples) {
        memcpy(values, resampling->request->samples + first, (size_t)columns * sizeof(*values));
        return;
    }
    switch (resampling->lane->base.pixel) {
    case IMAGE_UINT8:
        for (int64_t x = 0; x < columns; x++)
            values[x] = ((const uint8_t *)voxels)[first + x];
        break;
    case IMAGE_INT16:
        for (int64_t x = 0; x < columns; x++)
            values[x] = ((const int16_t *)voxels)[first + x];
        break;
    case IMAGE_UINT16:
        for (int64_t x = 0; x < columns; x++)
            values[x] = ((const uint16_t *)voxels)[first + x];
        break;
    }
    if (!resampling->request->rescales)
        return;
    const struct image_rescale rescale = resampling->request->rescales[z];
    for (int64_t x = 0; x < columns; x++)
        values[x] = rescale.slope * values[x] + rescale.intercept;
}

/* Returns floor(value + 0.5) for values that can be truncated to integers. Uses comparisons, so
 * that loops vectorise. */
static inline int32_t
resampling_round(double value, struct image_range range)
{
    value = value < range.lo ? range.lo : value;
    value = value > range.hi ? range.hi : value;
    value += 0.5;
    const int32_t whole = (int32_t)value;
    return whole - (value < whole);
}

static void
resampling_store(const struct resampling *resampling, int64_t j, int64_t k, const double *values)
{
    const struct image_extent *grid = &resampling->own->demand.extent;
    const int64_t columns = grid->columns, first = (k * grid->rows + j) * columns;
    const enum image_pixel pixel = resampling->own->demand.pixel;
    const struct image_range range = image_pixel_range(pixel);
    void *voxels = resampling->own->voxels;

    if (resampling->own->demand.values != RESAMPLE_STORED)
        memcpy((double *)voxels + first, values, (size_t)columns * sizeof(*values));
    else if (pixel == IMAGE_UINT8)
        for (int64_t i = 0; i < columns; i++)
            ((uint8_t *)voxels)[first + i] = (uint8_t)resampling_round(values[i], range);
    else
        for (int64_t i = 0; i < columns; i++)
            ((uint16_t *)voxels)[first + i] = (uint16_t)resampling_round(values[i], range);
}

/* ---- orders 0 and 1 ---- */

static void
resampling_mix(const double *a, const double *b, double part, int64_t count, double *mixed)
{
    for (int64_t i = 0; i < count; i++)
        mixed[i] = (1 - part) * a[i] + part * b[i];
}

/* Computes row j of the grid on a plane, NAN outside. `rows` must have room for two rows of the
 * volume. */
static void
resampling_on_plane(const struct resampling *resampling, int64_t j, int64_t z, double *rows, double *values)
{
    const int64_t columns = resampling->lane->base.extent.columns;
    const struct image_extent *to = &resampling->own->demand.extent;
    const struct resample_tables *tables = &resampling->own->tables;
    const struct resample_pair *taps = tables->taps[0] + z * tables->step[0];
    const struct resample_pair tap = tables->taps[1][z * tables->step[1] + j];
    double *other = rows + columns + 1;

    if (tap.at < 0) {
        for (int64_t i = 0; i < to->columns; i++)
            values[i] = NAN;
        return;
    }
    resampling_load(resampling, tap.at, z, rows);
    if (tap.part > 0) {
        resampling_load(resampling, tap.at + 1, z, other);
        resampling_mix(rows, other, tap.part, columns, rows);
    }
    rows[columns] = rows[columns - 1];
    for (int64_t i = 0; i < to->columns; i++) {
        const int32_t at = taps[i].at < 0 ? 0 : taps[i].at;
        const double value = (1 - taps[i].part) * rows[at] + taps[i].part * rows[at + 1];

        values[i] = taps[i].at < 0 ? NAN : value;
    }
}

/* Computes slice k of the grid. */
static void
resampling_slice(const struct resampling *resampling, double *space, int64_t k)
{
    const struct image_extent *to = &resampling->own->demand.extent;
    const struct resample_pair tap = resampling->own->tables.taps[2][k];
    const double outside = resampling->request->outside;
    double *rows = space, *values = rows + 2 * (resampling->lane->base.extent.columns + 1);
    double *other = values + to->columns;

    for (int64_t j = 0; j < to->rows; j++) {
        if (tap.at < 0) {
            for (int64_t i = 0; i < to->columns; i++)
                values[i] = outside;
        } else
            resampling_on_plane(resampling, j, tap.at, rows, values);
        if (tap.part > 0) {
            resampling_on_plane(resampling, j, tap.at + 1, rows, other);
            resampling_mix(values, other, tap.part, to->columns, values);
        }
        for (int64_t i = 0; i < to->columns; i++)
            values[i] = isnan(values[i]) ? outside : values[i];
        resampling_store(resampling, j, k, values);
    }
}

/* ---- order 3 ---- */

/* Computes the spline coefficients of `lines` parallel lines of `count` samples in place. Sample k
 * of line i is at values[k * stride + i]. */
static void
resampling_filter(const struct resample_start *start, int64_t count, int64_t lines, int64_t stride, double *values)
{
    if (count == 1)
        return;
    for (int64_t k = 0; k < count; k++)
        for (int64_t i = 0; i < lines; i++)
            values[k * stride + i] *= RESAMPLE_GAIN;
    /* Computes the sum of the first sample in place: its own term comes first. */
    for (int64_t i = 0; i < lines; i++)
        values[i] *= start->weight[0];
    for (int64_t k = 1; k < start->count; k++)
        for (int64_t i = 0; i < lines; i++)
            values[i] += start->weight[k] * values[k * stride + i];
    for (int64_t k = 1; k < count; k++)
        for (int64_t i = 0; i < lines; i++)
            values[k * stride + i] += RESAMPLE_POLE * values[(k - 1) * stride + i];
    for (int64_t i = 0, k = count - 1; i < lines; i++)
        values[k * stride + i] = start->end * (RESAMPLE_POLE * values[(k - 1) * stride + i] + values[k * stride + i]);
    for (int64_t k = count - 2; k >= 0; k--)
        for (int64_t i = 0; i < lines; i++)
            values[k * stride + i] = RESAMPLE_POLE * (values[(k + 1) * stride + i] - values[k * stride + i]);
}

/* Evaluates one place on all lines. */
static void
resampling_evaluate(const struct resample_weights *weights, int64_t lines, int64_t stride, const double *values,
                    double *mixed)
{
    const double *a = values + weights->at[0] * stride, *b = values + weights->at[1] * stride;
    const double *c = values + weights->at[2] * stride, *d = values + weights->at[3] * stride;
    const double *w = weights->weight;

    for (int64_t i = 0; i < lines; i++)
        mixed[i] = ((w[0] * a[i] + w[1] * b[i]) + w[2] * c[i]) + w[3] * d[i];
}

/* Resamples rows y .. y + count - 1 of a slice along x, into rows of the grid's columns. */
static void
resampling_along_rows(const struct resampling *resampling, int64_t y, int64_t z, int64_t count, double *lines,
                      double *mixed)
{
    const struct resample_tables *tables = &resampling->own->tables;
    const int64_t columns = resampling->lane->base.extent.columns;
    const int64_t to = resampling->own->demand.extent.columns;
    double values[LINES];

    /* Loads each row behind the lines, and transposes it from there. */
    for (int64_t i = 0; i < count; i++) {
        resampling_load(resampling, y + i, z, lines + columns * LINES);
        for (int64_t x = 0; x < columns; x++)
            lines[x * LINES + i] = lines[columns * LINES + x];
    }
    resampling_filter(&tables->starts[0], columns, count, LINES, lines);
    for (int64_t k = 0; k < to; k++) {
        resampling_evaluate(&tables->weights[0][k], count, LINES, lines, values);
        for (int64_t i = 0; i < count; i++)
            mixed[i * to + k] = values[i];
    }
}

/* Resamples slice z of the volume along x and y. */
static void
resampling_plane(const struct resampling *resampling, double *space, int64_t z)
{
    const struct resample_tables *tables = &resampling->own->tables;
    const struct image_extent *from = &resampling->lane->base.extent, *to = &resampling->own->demand.extent;
    double *lines = space, *mixed = lines + from->columns * (LINES + 1);
    double *target = resampling->own->mixed + z * to->rows * to->columns;

    for (int64_t y = 0; y < from->rows; y += LINES)
        resampling_along_rows(resampling, y, z, from->rows - y < LINES ? from->rows - y : LINES, lines,
                              mixed + y * to->columns);
    resampling_filter(&tables->starts[1], from->rows, to->columns, to->columns, mixed);
    for (int64_t j = 0; j < to->rows; j++)
        resampling_evaluate(&tables->weights[1][j], to->columns, to->columns, mixed, target + j * to->columns);
}

/* Resamples row j of all slices of the grid along z. */
static void
resampling_across(const struct resampling *resampling, double *space, int64_t j)
{
    const struct resample_tables *tables = &resampling->own->tables;
    const struct image_extent *to = &resampling->own->demand.extent;
    double *mixed = resampling->own->mixed + j * to->columns;

    resampling_filter(&tables->starts[2], resampling->lane->base.extent.slices, to->columns, image_slice_voxels(to),
                      mixed);
    for (int64_t k = 0; k < to->slices; k++) {
        resampling_evaluate(&tables->weights[2][k], to->columns, image_slice_voxels(to), mixed, space);
        resampling_store(resampling, j, k, space);
    }
}

static int
cpu_resample_run(struct kernels_lane *lane, const void *given, struct error *error)
{
    const struct resample_run *run = given;
    struct cpu_resample *own = cpu_resample_state(lane);
    struct resampling resampling = {.lane = cpu_lane_of(lane), .own = own, .request = run->request};
    struct cpu_pool *pool = cpu_device_of(lane)->pool;

    (void)error;
    resample_fill_tables(run->request, &own->tables);
    resampling.work = resampling_slice;
    resampling.count = own->demand.extent.slices;
    if (own->demand.order == RESAMPLE_CUBIC) {
        resampling.work = resampling_plane;
        resampling.count = lane->extent.slices;
        cpu_pool_run(pool, resampling_body, &resampling);
        resampling.work = resampling_across;
        resampling.count = own->demand.extent.rows;
        resampling.next = resampling.space = 0;
    }
    cpu_pool_run(pool, resampling_body, &resampling);
    *run->voxels = own->voxels;
    return 0;
}

const struct kernels_op cpu_resample_op = {
    .name = "resampling",
    .state_size = sizeof(struct cpu_resample),
    .needs = cpu_resample_needs,
    .place = cpu_resample_place,
    .run = cpu_resample_run,
};
