/*
 * spectral_cpu.c - filters with a transfer function on the CPU. Threads transform slices along x and y, then lines along z
 * back and forth, then slices back. FFT_LANES transforms are computed together: pairs of rows, or adjacent columns.
 */
#include "kernels/filter/spectral_cpu.h"
#include "kernels/filter/separable.h"

/* Memory of a thread. */
struct spectral_memory {
    struct fft_lanes *space;
    struct spectral_ring_lanes *rings;
};

struct spectral_task {
    struct cpu_lane *lane;
    const struct filter_task *filter;
    const struct cpu_spectral *own;
    void (*stage)(const struct spectral_task *task, const struct spectral_memory *memory, int64_t i);
    int64_t count;         /* of items of the stage */
    int64_t claimed, next; /* memory and items, atomic */
    double scale;          /* code / sum */
};

static struct fft_lanes *
spectrum_row(const struct spectral_task *task, int64_t y, int64_t z)
{
    return task->own->spectrum + (z * task->lane->base.extent.rows + y) * task->own->groups;
}

/* Transforms rows y .. y + 2 FFT_LANES - 1 of slice z. */
static void
spectral_rows(const struct spectral_task *task, struct fft_lanes *space, int64_t y, int64_t z)
{
    const struct image_extent *extent = &task->lane->base.extent;
    const int64_t columns = extent->columns;
    const struct fft_lanes *found;

    for (int64_t i = 0; i < 2 * FFT_LANES; i++)
        for (int64_t x = 0; x < columns; x++)
            space[x].part[i % 2][i / 2] =
                y + i < extent->rows
                    ? spectral_input(task->lane, task->filter->request, (z * extent->rows + y + i) * columns + x)
                    : 0;
    found = spectral_transform(task->lane, &task->own->plan.axis[0].fft, false, space, space);
    for (int lane = 0; lane < FFT_LANES && y + 2 * lane < extent->rows; lane++) {
        struct fft_lanes *first = spectrum_row(task, y + 2 * lane, z), *second = first + task->own->groups;

        for (int64_t k = 0; k < task->own->plan.kept; k++) {
            const struct fft_lanes *low = &found[k], *high = &found[k > 0 ? columns - k : 0];
            const struct fft_value a = {low->part[0][lane], low->part[1][lane]};
            const struct fft_value b = {high->part[0][lane], high->part[1][lane]};

            first[k / FFT_LANES].part[0][k % FFT_LANES] = (a.re + b.re) / 2;
            first[k / FFT_LANES].part[1][k % FFT_LANES] = (a.im - b.im) / 2;
            if (y + 2 * lane + 1 < extent->rows) {
                second[k / FFT_LANES].part[0][k % FFT_LANES] = (a.im + b.im) / 2;
                second[k / FFT_LANES].part[1][k % FFT_LANES] = (b.re - a.re) / 2;
            }
        }
    }
}

/* Transforms the columns of a slice in place. */
static void
spectral_columns(const struct spectral_task *task, struct fft_lanes *space, int64_t z, bool inverse)
{
    const int64_t rows = task->lane->base.extent.rows, groups = task->own->groups;

    for (int64_t g = 0; g < groups; g++) {
        struct fft_lanes *column = spectrum_row(task, 0, z) + g;
        const struct fft_lanes *found;

        for (int64_t y = 0; y < rows; y++)
            space[y] = column[y * groups];
        found = spectral_transform(task->lane, &task->own->plan.axis[1].fft, inverse, space, space);
        for (int64_t y = 0; y < rows; y++)
            column[y * groups] = found[y];
    }
}

/* Writes the codes of rows y .. y + 2 FFT_LANES - 1 of slice z. */
static void
spectral_rows_back(const struct spectral_task *task, struct fft_lanes *space, int64_t y, int64_t z)
{
    const struct image_extent *extent = &task->lane->base.extent;
    const int64_t columns = extent->columns;
    const struct fft_lanes *found;

    for (int lane = 0; lane < FFT_LANES; lane++) {
        const struct fft_lanes *first = spectrum_row(task, y + 2 * lane, z), *second = first + task->own->groups;
        const bool has_first = y + 2 * lane < extent->rows, has_second = y + 2 * lane + 1 < extent->rows;

        for (int64_t x = 0; x < columns; x++) {
            const int64_t k = 2 * x <= columns ? x : columns - x;
            const double sign = x == 0 || 2 * x == columns ? 0 : x == k ? 1 : -1;
            struct fft_value a = {0}, b = {0};

            if (has_first && k < task->own->plan.kept)
                a = (struct fft_value){first[k / FFT_LANES].part[0][k % FFT_LANES],
                                       sign * first[k / FFT_LANES].part[1][k % FFT_LANES]};
            if (has_second && k < task->own->plan.kept)
                b = (struct fft_value){second[k / FFT_LANES].part[0][k % FFT_LANES],
                                       sign * second[k / FFT_LANES].part[1][k % FFT_LANES]};
            space[x].part[0][lane] = a.re - b.im;
            space[x].part[1][lane] = a.im + b.re;
        }
    }
    found = spectral_transform(task->lane, &task->own->plan.axis[0].fft, true, space, space);
    for (int64_t i = 0; i < 2 * FFT_LANES && y + i < extent->rows; i++)
        for (int64_t x = 0; x < columns; x++)
            task->own->codes[(z * extent->rows + y + i) * columns + x] =
                filter_code(found[x].part[i % 2][i / 2] * task->scale);
}

static void
spectral_slice(const struct spectral_task *task, const struct spectral_memory *memory, int64_t z)
{
    for (int64_t y = 0; y < task->lane->base.extent.rows; y += 2 * FFT_LANES)
        spectral_rows(task, memory->space, y, z);
    spectral_columns(task, memory->space, z, false);
}

static void
spectral_slice_back(const struct spectral_task *task, const struct spectral_memory *memory, int64_t z)
{
    spectral_columns(task, memory->space, z, true);
    for (int64_t y = 0; y < task->lane->base.extent.rows; y += 2 * FFT_LANES)
        spectral_rows_back(task, memory->space, y, z);
}

/* Returns whether the transfer function is 0 at all places of a group of columns in a row. */
static bool
spectral_group_is_zero(const struct spectral_task *task, int64_t g, int64_t y)
{
    const int64_t columns = task->own->plan.axis[0].fft.side;

    for (int64_t k = g * FFT_LANES; k < (g + 1) * FFT_LANES && k < columns; k++) {
        const struct spectral_sums sums = spectral_sums_at(&task->own->plan, k, y);

        if (!spectral_is_zero(&task->own->plan, sums.plus, sums.minus))
            return false;
    }
    return true;
}

/* Multiplies the lines along z of a group of columns at row y with the transfer function. */
static void
spectral_depth(const struct spectral_task *task, struct fft_lanes *space, struct spectral_rings *rings, int64_t g,
               int64_t y)
{
    const struct spectral_plan *plan = &task->own->plan;
    const int64_t side = plan->axis[2].fft.side, slices = task->lane->base.extent.slices;
    const bool is_zero = spectral_group_is_zero(task, g, y);

    for (int64_t first = 0; first < slices; first += side) { /* one, or the slices */
        struct fft_lanes *found;

        for (int64_t z = 0; z < side && is_zero; z++)
            spectrum_row(task, y, first + z)[g] = (struct fft_lanes){0};
        if (is_zero)
            continue;

        for (int64_t z = 0; z < side; z++)
            space[z] = spectrum_row(task, y, first + z)[g];
        found = spectral_transform(task->lane, &task->own->plan.axis[2].fft, false, space, space);
        cpu_device_of(&task->lane->base)->isa->spectral_apply(plan, g * FFT_LANES, y, rings, found);
        found = spectral_transform(task->lane, &task->own->plan.axis[2].fft, true, space, found);
        for (int64_t z = 0; z < side; z++)
            spectrum_row(task, y, first + z)[g] = found[z];
    }
}

/* Does so at the two rows that have equal squares of f, which share its rings. */
static void
spectral_depths(const struct spectral_task *task, const struct spectral_memory *memory, int64_t y)
{
    const struct spectral_plan *plan = &task->own->plan;
    const int64_t side = plan->axis[1].fft.side, other = side - 1 + side % 2 - y;

    for (int64_t g = 0; g < task->own->groups; g++) {
        struct spectral_rings rings[2] = {{.value = memory->rings},
                                          {.value = memory->rings + spectral_half(&plan->axis[2])}};

        spectral_depth(task, memory->space, rings, g, y);
        if (other < side && other != y)
            spectral_depth(task, memory->space, rings, g, other);
    }
}

static void
spectral_body(void *context)
{
    struct spectral_task *task = context;
    const int64_t thread = __atomic_fetch_add(&task->claimed, 1, __ATOMIC_RELAXED);
    const struct spectral_memory memory = {
        task->own->spaces + thread * task->own->space,
        task->own->rings + thread * 2 * spectral_half(&task->own->plan.axis[2]),
    };

    for (int64_t i; (i = __atomic_fetch_add(&task->next, 1, __ATOMIC_RELAXED)) < task->count;)
        task->stage(task, &memory, i);
}

static void
spectral_run_stage(struct spectral_task *task,
                   void (*stage)(const struct spectral_task *, const struct spectral_memory *, int64_t), int64_t count)
{
    task->stage = stage;
    task->count = count;
    task->claimed = task->next = 0;
    cpu_pool_run(cpu_device_of(&task->lane->base)->pool, spectral_body, task);
}

static bool
cpu_spectral_needs(struct kernels_lane *lane, const void *demand)
{
    struct cpu_spectral *own = kernels_state(lane, KERNELS_SPECTRAL);
    int64_t longest = 0;

    own->demand = *(const struct filter_demand *)demand;
    own->plan = (struct spectral_plan){0}; /* a run refuses impossible filters */
    own->gabor.plan = (struct gabor_plan){0};
    if (own->demand.options.kind == FILTER_GABOR) {
        if (gabor_plan_make(&own->demand, &lane->extent, &own->gabor.plan) != 0)
            own->gabor.plan = (struct gabor_plan){0};
        cpu_gabor_size(&own->gabor);
        return true;
    }
    if (spectral_plan_make(&own->demand, &lane->extent, &own->plan) != 0)
        own->plan = (struct spectral_plan){0};
    own->groups = (own->plan.kept + FFT_LANES - 1) / FFT_LANES;
    for (int axis = 0; axis < 3; axis++)
        longest = own->plan.axis[axis].fft.side > longest ? own->plan.axis[axis].fft.side : longest;
    own->space = 3 * longest;
    return true;
}

static void
cpu_spectral_place(struct kernels_lane *lane, struct kernels_memory *memory)
{
    struct cpu_spectral *own = kernels_state(lane, KERNELS_SPECTRAL);
    const struct image_extent *extent = &lane->extent;

    if (own->demand.options.kind == FILTER_RIESZ_LOG) /* its memory is at the begin, as that of all operations */
        cpu_separable_op.place(lane, memory);
    if (own->demand.options.kind == FILTER_GABOR) {
        cpu_gabor_place(lane, &own->gabor, memory);
        return;
    }
    for (int axis = 0; axis < 3; axis++) {
        own->tables[axis] = kernels_take(&memory->host, (size_t)own->plan.axis[axis].fft.side * SPECTRAL_TABLE,
                                         sizeof(*own->tables[axis]));
        own->roots[axis] =
            kernels_take(&memory->host, (size_t)own->plan.axis[axis].fft.values, sizeof(*own->roots[axis]));
    }
    own->spectrum =
        kernels_take(&memory->host, (size_t)(own->groups * extent->rows * extent->slices), sizeof(*own->spectrum));
    own->spaces = kernels_take(&memory->host, (size_t)lane->device->threads, (size_t)own->space * sizeof(*own->spaces));
    own->rings = kernels_take(&memory->host, (size_t)lane->device->threads,
                              (size_t)(2 * spectral_half(&own->plan.axis[2])) * sizeof(*own->rings));
}

static void
cpu_spectral_keep(struct kernels_lane *lane, struct kernels_memory *memory)
{
    struct cpu_spectral *own = kernels_state(lane, KERNELS_SPECTRAL);

    own->codes = kernels_take(&memory->host, (size_t)image_voxels(&lane->extent), sizeof(*own->codes));
}

static int
cpu_spectral_run(struct kernels_lane *lane, const void *request, struct error *error)
{
    const struct filter_task *filter = request;
    struct cpu_spectral *own = kernels_state(lane, KERNELS_SPECTRAL);
    struct filter_request between = *filter->request;
    struct filter_task first = {.request = filter->request, .step = 1, .codes = &between.values};
    const struct filter_task rest = {.request = &between, .step = filter->step, .codes = filter->codes};
    struct spectral_task task = {.lane = cpu_lane_of(lane), .filter = &rest, .own = own};
    int rc = 0;

    *filter->codes = own->codes;
    if (own->demand.options.kind == FILTER_GABOR) {
        cpu_gabor_run(cpu_lane_of(lane), own, filter);
        return 0;
    }
    if (own->demand.options.kind == FILTER_RIESZ_LOG) {
        first.step = filter_step_of(separable_bound(&own->demand) * filter->request->limit);
        between.limit = INT32_MAX;
        rc = cpu_separable_op.run(lane, &first, error);
    }
    if (rc)
        return rc;
    for (int axis = 0; axis < 3; axis++) {
        spectral_fill(&own->demand, &own->plan, axis, own->tables[axis]);
        fft_fill(&own->plan.axis[axis].fft, own->roots[axis]);
    }
    task.scale = own->plan.scale * first.step / filter->step;
    spectral_run_stage(&task, spectral_slice, lane->extent.slices);
    spectral_run_stage(&task, spectral_depths, spectral_half(&own->plan.axis[1]));
    spectral_run_stage(&task, spectral_slice_back, lane->extent.slices);
    return 0;
}

const struct kernels_op cpu_spectral_op = {
    .name = "the spectral filter",
    .state_size = sizeof(struct cpu_spectral),
    .transient = true,
    .needs = cpu_spectral_needs,
    .place = cpu_spectral_place,
    .keep = cpu_spectral_keep,
    .run = cpu_spectral_run,
};
