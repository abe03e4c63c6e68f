/*
 * separable_cpu.c - separable filters on the CPU. Threads take slices for the passes along x and y, whose results are
 * planes of doubles for the whole volume, and then rows for the pass along z. Sums over boxes have one plane, and add and
 * subtract one value per step: a double holds their integers exactly.
 */
#include "kernels/cpu/device.h"
#include "kernels/filter/separable.h"

#include <stdlib.h>
#include <string.h>

struct cpu_separable {
    struct filter_demand demand; /* first: requests are checked against it */
    struct separable_plan plan;
    int64_t pitch, padded; /* doubles of a row of a plane, and of a row with its surroundings */
    int64_t space;         /* bytes per thread */
    int planes;
    double *plane; /* planes of the terms, and the pooled responses of an extreme */
    int32_t *codes;
    unsigned char *spaces;
};

struct separable_run {
    struct cpu_lane *lane;
    const struct cpu_separable *own;
    const struct filter_task *job;
    void (*weigh)(const double *const *rows, const double *weights, int64_t taps, int64_t count, double *sums);
    const int32_t *codes; /* a box of absolute codes; NULL: of values */
    double factor;        /* code / sum */
    int plane;            /* of an extreme */
    void (*work)(const struct separable_run *run, unsigned char *space, int64_t i);
    int64_t count;
    int64_t next, claimed; /* work items and memory, atomic */
};

/* The memory of a thread. */
struct separable_space {
    const double **rows;
    double *weights;
    double *zeros, *line, *sums, *total;
    double *filtered; /* a slice for each kernel along x */
    int32_t *values;
};

static struct cpu_separable *
cpu_separable_state(const struct kernels_lane *lane)
{
    return kernels_state(lane, KERNELS_SEPARABLE);
}

static struct separable_space
separable_space_of(const struct cpu_separable *own, unsigned char *memory)
{
    struct separable_space space;

    space.rows = (const double **)(void *)memory;
    space.weights = (double *)(void *)(space.rows + SEPARABLE_WIDTH + 1);
    space.zeros = space.weights + SEPARABLE_WIDTH + 1;
    space.line = space.zeros + own->pitch;
    space.sums = space.line + own->padded;
    space.total = space.sums + own->pitch;
    space.values = (int32_t *)(void *)(space.total + own->pitch);
    space.filtered = (double *)(void *)(space.values + 2 * own->padded);
    return space;
}

static bool
cpu_separable_needs(struct kernels_lane *lane, const void *demand)
{
    struct cpu_separable *own = cpu_separable_state(lane);
    const struct separable_plan *plan = &own->plan;

    own->demand = *(const struct filter_demand *)demand;
    /* A run refuses what has no plan. */
    if (separable_plan_make(&own->demand, &lane->extent, &own->plan))
        own->plan.box = true;
    own->pitch = (lane->extent.columns + ISA_WEIGH - 1) / ISA_WEIGH * ISA_WEIGH;
    own->padded = own->pitch + 2 * (FILTER_MAX_REACH + 1);
    own->planes = plan->box ? 1 : plan->extreme ? 2 : plan->plane_count > 0 ? plan->plane_count : 1;
    own->space = 2 * (SEPARABLE_WIDTH + 1) + 3 * own->pitch + 2 * own->padded;
    own->space += own->pitch * lane->extent.rows * (plan->box ? 1 : plan->kernel_count);
    return true;
}

static void
cpu_separable_place(struct kernels_lane *lane, struct kernels_memory *memory)
{
    struct cpu_separable *own = cpu_separable_state(lane);
    const size_t rows = (size_t)(lane->extent.rows * lane->extent.slices), pitch = (size_t)own->pitch * sizeof(double);

    own->plane = kernels_take(&memory->host, rows * (size_t)own->planes, pitch);
    own->codes = kernels_take(&memory->host, (size_t)image_voxels(&lane->extent), sizeof(*own->codes));
    own->spaces = kernels_take(&memory->host, (size_t)lane->device->threads, (size_t)own->space * sizeof(double));
    for (int axis = 0; axis < 3 && !own->plan.box; axis++)
        own->plan.axis[axis].weights = kernels_take(&memory->host, separable_weights(&own->plan, axis), sizeof(double));
}

static void
separable_body(void *context)
{
    struct separable_run *run = context;
    unsigned char *space = run->own->spaces + __atomic_fetch_add(&run->claimed, 1, __ATOMIC_RELAXED) * run->own->space *
                                                  (int64_t)sizeof(double);
    int64_t i;

    while ((i = __atomic_fetch_add(&run->next, 1, __ATOMIC_RELAXED)) < run->count)
        run->work(run, space, i);
}

static void
separable_do(struct separable_run *run, int64_t count,
             void (*work)(const struct separable_run *run, unsigned char *space, int64_t i))
{
    run->work = work;
    run->count = count;
    run->next = run->claimed = 0;
    cpu_pool_run(cpu_device_of(&run->lane->base)->pool, separable_body, run);
}

static double *
separable_plane_row(const struct separable_run *run, int plane, int64_t y, int64_t z)
{
    const struct image_extent *extent = &run->lane->base.extent;

    return run->own->plane + ((plane * extent->slices + z) * extent->rows + y) * run->own->pitch;
}

/* Loads the values, or absolute codes, of a row. */
static void
separable_load(const struct separable_run *run, int64_t row, int32_t *values)
{
    const int64_t columns = run->lane->base.extent.columns, first = row * columns;
    const struct filter_request *request = run->job->request;
    const void *voxels = run->lane->voxels.memory;

    if (run->codes)
        for (int64_t x = 0; x < columns; x++)
            values[x] = abs(run->codes[first + x]);
    else if (request->values)
        for (int64_t x = 0; x < columns; x++)
            values[x] = filter_clip(request, request->values[first + x]);
    else
        for (int64_t x = 0; x < columns; x++)
            values[x] = filter_value(request, image_value(voxels, run->lane->base.pixel, first + x));
}

/* ---------------------------------------------------------------------------------- terms -- */

/* Filters along an axis: the taps are rows that begin `stride` doubles apart. */
static void
separable_along(const struct separable_run *run, const struct separable_space *space, int number, int kernel, int64_t i,
                const double *rows, int64_t stride)
{
    const struct separable_axis *axis = &run->own->plan.axis[number];
    const double *weights = separable_row(axis, kernel, i);
    int taps = 0;

    for (int p = 0; p < separable_width(axis); p++) {
        const int64_t place = filter_place(i - axis->before + p, axis->side, run->own->demand.options.boundary);

        if (place < 0 || weights[p] == 0) /* adds 0 */
            continue;
        space->rows[taps] = rows + place * stride;
        space->weights[taps++] = weights[p];
    }
    run->weigh(space->rows, space->weights, taps, run->own->pitch, space->sums);
}

/* Filters a row along x. */
static void
separable_along_x(const struct separable_run *run, const struct separable_space *space, int kernel, double *filtered)
{
    const struct separable_axis *axis = &run->own->plan.axis[0];
    const int width = separable_width(axis);
    const double *inner = separable_row(axis, kernel, axis->edge < axis->side ? axis->edge : 0);
    const int64_t ends = axis->rows == axis->side ? axis->side : 2 * axis->edge;

    for (int p = 0; p < width; p++)
        space->rows[p] = space->line + p;
    run->weigh(space->rows, inner, width, run->own->pitch, filtered);
    for (int64_t end = 0; end < ends; end++) {
        const int64_t x = end < axis->edge ? end : axis->rows == axis->side ? end : axis->side - 1 - (end - axis->edge);
        const double *weights = separable_row(axis, kernel, x);
        double sum = 0;

        for (int p = 0; p < width; p++)
            sum = __builtin_fma(weights[p], space->line[x + p], sum);
        filtered[x] = sum;
    }
}

/* Fills the planes of a slice, or the current one of an extreme. */
static void
separable_slice(const struct separable_run *run, unsigned char *memory, int64_t z)
{
    const struct cpu_separable *own = run->own;
    const struct separable_plan *plan = &own->plan;
    const struct image_extent *extent = &run->lane->base.extent;
    const struct separable_space space = separable_space_of(own, memory);
    const struct separable_axis *axis = &plan->axis[0];

    for (int64_t y = 0; y < extent->rows; y++) {
        separable_load(run, z * extent->rows + y, space.values);
        memset(space.line, 0, (size_t)own->padded * sizeof(*space.line));
        for (int64_t x = -axis->before; x < extent->columns + axis->after; x++) {
            const int64_t place = filter_place(x, extent->columns, own->demand.options.boundary);

            space.line[x + axis->before] = place < 0 ? 0 : space.values[place];
        }
        for (int k = 0; k < plan->kernel_count; k++)
            if (plan->extreme ? plan->terms[plan->planes[run->plane].first].kernel[0] == k : separable_uses(plan, 0, k))
                separable_along_x(run, &space, k, space.filtered + (k * extent->rows + y) * own->pitch);
    }
    for (int p = plan->extreme ? run->plane : 0; p < (plan->extreme ? run->plane + 1 : plan->plane_count); p++)
        for (int64_t y = 0; y < extent->rows; y++) {
            double *total = separable_plane_row(run, plan->extreme ? 0 : p, y, z);

            memset(total, 0, (size_t)own->pitch * sizeof(*total));
            for (int t = 0; t < (plan->extreme ? 1 : plan->planes[p].count); t++) {
                const struct separable_term *term = &plan->terms[plan->planes[p].first + t];

                separable_along(run, &space, 1, term->kernel[1], y,
                                space.filtered + term->kernel[0] * extent->rows * own->pitch, own->pitch);
                for (int64_t x = 0; x < extent->columns; x++)
                    total[x] += plan->extreme || term->sign > 0 ? space.sums[x] : -space.sums[x];
            }
        }
}

static void
separable_store(const struct separable_run *run, int64_t row, const double *sums)
{
    const int64_t columns = run->lane->base.extent.columns;

    for (int64_t x = 0; x < columns; x++)
        run->own->codes[row * columns + x] = filter_code(sums[x] * run->factor);
}

/* Filters a row of all slices along z. */
static void
separable_row_of_slices(const struct separable_run *run, unsigned char *memory, int64_t y)
{
    const struct separable_plan *plan = &run->own->plan;
    const struct image_extent *extent = &run->lane->base.extent;
    const struct separable_space space = separable_space_of(run->own, memory);
    const int64_t stride = extent->rows * run->own->pitch;
    const int first = plan->extreme ? run->plane : 0, end = plan->extreme ? run->plane + 1 : plan->plane_count;

    for (int64_t z = 0; z < extent->slices; z++) {
        double *total = plan->extreme ? separable_plane_row(run, 1, y, z) : space.total;

        if (first == 0)
            memset(total, 0, (size_t)run->own->pitch * sizeof(*total));
        for (int p = first; p < end; p++)
            for (int t = 0; t < (plan->extreme ? plan->planes[p].count : 1); t++) {
                const struct separable_term *term = &plan->terms[plan->planes[p].first + t];

                separable_along(run, &space, 2, term->kernel[2], z,
                                separable_plane_row(run, plan->extreme ? 0 : p, y, 0), stride);
                for (int64_t x = 0; x < extent->columns; x++)
                    total[x] =
                        separable_pool(plan->extreme ? run->own->demand.options.pooling : FILTER_MEAN_OF,
                                       plan->extreme ? term->sign : 1, first == 0 && t == 0, total[x], space.sums[x]);
            }
        if (end == plan->plane_count || plan->plane_count == 0)
            separable_store(run, z * extent->rows + y, total);
    }
}

/* ---------------------------------------------------------------------------------- boxes -- */

/* Sums each value and its surroundings: `count` values. */
static void
box_line(const struct separable_run *run, const double *from, int64_t count, int half, double *to)
{
    const enum filter_boundary boundary = run->own->demand.options.boundary;
    double sum = 0;

    for (int64_t i = -half; i < half; i++) {
        const int64_t place = filter_place(i, count, boundary);

        sum += place < 0 ? 0 : from[place];
    }
    for (int64_t i = 0; i < count; i++) {
        const int64_t in = filter_place(i + half, count, boundary), out = filter_place(i - half, count, boundary);

        sum += in < 0 ? 0 : from[in];
        to[i] = sum;
        sum -= out < 0 ? 0 : from[out];
    }
}

/* As box_line() for `columns` adjacent lines: totals[columns] is the sum so far. */
static void
box_rows(const struct separable_run *run, const double *from, int64_t count, int64_t stride, int half, double *totals,
         void (*use)(const struct separable_run *run, int64_t i, int64_t other, const double *totals), int64_t other)
{
    const enum filter_boundary boundary = run->own->demand.options.boundary;
    const int64_t columns = run->lane->base.extent.columns;

    memset(totals, 0, (size_t)columns * sizeof(*totals));
    for (int64_t i = -half; i < count + half; i++) {
        const int64_t in = filter_place(i, count, boundary), out = filter_place(i - 2 * half - 1, count, boundary);

        for (int64_t x = 0; x < columns && in >= 0; x++)
            totals[x] += from[in * stride + x];
        for (int64_t x = 0; x < columns && out >= 0 && i - 2 * half - 1 >= -half; x++)
            totals[x] -= from[out * stride + x];
        if (i >= half)
            use(run, i - half, other, totals);
    }
}

static void
box_keep(const struct separable_run *run, int64_t y, int64_t z, const double *totals)
{
    memcpy(separable_plane_row(run, 0, y, z), totals, (size_t)run->lane->base.extent.columns * sizeof(*totals));
}

static void
box_slice(const struct separable_run *run, unsigned char *memory, int64_t z)
{
    const struct image_extent *extent = &run->lane->base.extent;
    const struct separable_space space = separable_space_of(run->own, memory);

    for (int64_t y = 0; y < extent->rows; y++) {
        separable_load(run, z * extent->rows + y, space.values);
        for (int64_t x = 0; x < extent->columns; x++)
            space.line[x] = space.values[x];
        box_line(run, space.line, extent->columns, run->own->plan.half[0], space.filtered + y * run->own->pitch);
    }
    box_rows(run, space.filtered, extent->rows, run->own->pitch, run->own->plan.half[1], space.total, box_keep, z);
}

static void
box_store(const struct separable_run *run, int64_t z, int64_t y, const double *totals)
{
    const struct image_extent *extent = &run->lane->base.extent;
    int32_t *codes = run->own->codes + (z * extent->rows + y) * extent->columns;

    for (int64_t x = 0; x < extent->columns; x++)
        codes[x] = filter_code(totals[x] * run->factor);
}

static void
box_row_of_slices(const struct separable_run *run, unsigned char *memory, int64_t y)
{
    const struct image_extent *extent = &run->lane->base.extent;
    const struct separable_space space = separable_space_of(run->own, memory);

    box_rows(run, separable_plane_row(run, 0, y, 0), extent->slices, extent->rows * run->own->pitch,
             run->own->plan.half[2], space.total, box_store, y);
}

/* ------------------------------------------------------------------------------------ run -- */

static int
cpu_separable_run(struct kernels_lane *lane, const void *given, struct error *error)
{
    const struct filter_task *job = given;
    const struct cpu_separable *own = cpu_separable_state(lane);
    const struct separable_plan *plan = &own->plan;
    struct separable_run run = {
        .lane = cpu_lane_of(lane), .own = own, .job = job, .weigh = cpu_device_of(lane)->isa->weigh64};

    (void)error;
    for (int axis = 0; axis < 3 && !plan->box; axis++)
        separable_fill(plan, axis, plan->axis[axis].weights);
    memset(own->spaces, 0, (size_t)lane->device->threads * (size_t)own->space * sizeof(double));
    run.factor = plan->scale / job->step;
    for (run.plane = 0; !plan->box && run.plane < (plan->extreme ? plan->plane_count : 1); run.plane++) {
        separable_do(&run, lane->extent.slices, separable_slice);
        separable_do(&run, lane->extent.rows, separable_row_of_slices);
    }
    if (plan->box || plan->energy) {
        run.codes = plan->box ? NULL : own->codes;
        run.factor = plan->box ? plan->box_scale / job->step : plan->box_scale;
        separable_do(&run, lane->extent.slices, box_slice);
        separable_do(&run, lane->extent.rows, box_row_of_slices);
    }
    *job->codes = own->codes;
    return 0;
}

const struct kernels_op cpu_separable_op = {
    .name = "a separable filter",
    .state_size = sizeof(struct cpu_separable),
    .transient = true,
    .needs = cpu_separable_needs,
    .place = cpu_separable_place,
    .run = cpu_separable_run,
};
