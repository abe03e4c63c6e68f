/* image_type_cpu.c - image types on the CPU: threads take rows, or adjacent lines. */
#include "kernels/cpu/device.h"
#include "kernels/filter/image_type_lbp.h"
#include "kernels/filter/image_type_steps.h"

#include <string.h>

struct cpu_image_type {
    struct image_type_demand demand; /* first: requests are checked against it */
    struct image_type_plan plan;
    struct image_type_memory memory;
    struct image_type_table *table;
    double *responses;
    double *spaces; /* of LBP3D: memory of a block, one per thread */
    size_t space;
};

struct image_type_work {
    const struct isa *isa;
    const struct cpu_image_type *own;
    const struct image_type_task *task;
    const struct image_type_step *step; /* NULL: copies values */
    void (*run)(const struct image_type_work *work, int64_t item);
    int64_t count, next; /* next: atomic */
    struct lbp_plan lbp;
    size_t bodies; /* atomic: threads that take blocks of LBP3D */
};

static bool
cpu_image_type_needs(struct kernels_lane *lane, const void *demand)
{
    struct cpu_image_type *own = kernels_state(lane, KERNELS_IMAGE_TYPE);

    own->demand = *(const struct image_type_demand *)demand;
    if (image_type_plan_make(&own->demand, &lane->extent, &own->plan)) /* a run refuses it */
        own->plan = (struct image_type_plan){.responses = 0};
    return true;
}

static void
cpu_image_type_place(struct kernels_lane *lane, struct kernels_memory *memory)
{
    struct cpu_image_type *own = kernels_state(lane, KERNELS_IMAGE_TYPE);
    const size_t count = image_type_elements(own->plan.copies);

    own->memory.at[IMAGE_TYPE_VALUES] = kernels_take(&memory->host, count, sizeof(double));
    for (int place = IMAGE_TYPE_FIRST; place <= IMAGE_TYPE_SECOND; place++)
        own->memory.at[place] = kernels_take(&memory->host, own->plan.between ? count : 0, sizeof(double));
    if (own->plan.responses > 0 && own->demand.options.kind == FILTER_PYRADIOMICS_LBP_3D) {
        own->table = kernels_take(&memory->host, 1, sizeof(*own->table));
        own->space = lbp_space(own->demand.options.radius);
        own->spaces = kernels_take(&memory->host, (size_t)lane->device->threads, own->space * sizeof(*own->spaces));
    }
}

static void
cpu_image_type_keep(struct kernels_lane *lane, struct kernels_memory *memory)
{
    struct cpu_image_type *own = kernels_state(lane, KERNELS_IMAGE_TYPE);
    const int64_t *size = own->plan.demand.size;

    own->responses =
        kernels_take(&memory->host, (size_t)(size[0] * size[1] * size[2] * own->plan.responses), sizeof(double));
}

/* ------------------------------------------------------------------------------------ items -- */

static void
image_type_copy_row(const struct image_type_work *work, int64_t row)
{
    image_type_copy(&work->own->plan, work->task->request, row, work->own->memory.at[IMAGE_TYPE_VALUES]);
}

static void
image_type_voxels(const struct image_type_work *work, int64_t row)
{
    const struct image_type_step *step = work->step;
    const int64_t down = row % step->size[1], deep = row / step->size[1];

    for (int64_t across = 0; across < step->size[0]; across++)
        image_type_item_at(step, &work->own->memory, row * step->size[0] + across, across, down, deep);
}

/* Filters the voxels again that have taps beyond the last column. One or two such taps do not change the sum. */
static void
image_type_row_end(const struct image_type_step *step, const double *from, double *to)
{
    const int64_t last = step->count / 2 - 2;

    for (int64_t end = step->period - step->begin; end - last < step->size[0]; end += step->period)
        for (int64_t x = end > last ? end - last : 0; x < end && x < step->size[0]; x++)
            to[x] = image_type_taps(step, from + x, image_type_beyond(step, x));
}

/* Filters a row along an axis. Rows are read beyond their ends. */
static void
image_type_row(const struct image_type_work *work, int64_t row)
{
    const struct image_type_step *step = work->step;
    const int64_t strides[3] = {1, step->sides[0], step->sides[0] * step->sides[1]}, count = step->size[0];
    const int64_t y = row % step->size[1], z = row / step->size[1], whole = count - count % ISA_WEIGH;
    const double *from = work->own->memory.at[step->from] + z * strides[2] + y * strides[1];
    double *to = work->own->memory.at[step->to], rest[ISA_WEIGH];
    const int beyond = step->axis == 0 ? 0 : image_type_beyond(step, step->axis == 1 ? y : z);
    const double *rows[FILTER_MAX_WAVELET];
    double taps[FILTER_MAX_WAVELET];

    to += ((step->to_reversed ? step->size[2] - 1 - z : z) * step->size[1] + y) * count;
    for (int i = 0; i < step->count; i++) {
        const int t = image_type_tap(i, beyond);

        taps[i] = step->taps[t];
        rows[i] = from + (step->count - 1 - t) * strides[step->axis];
    }
    work->isa->weigh_apart64(rows, taps, step->count, whole, to);
    for (int t = 0; t < step->count; t++)
        rows[t] += whole;
    if (whole < count) {
        work->isa->weigh_apart64(rows, taps, step->count, ISA_WEIGH, rest);
        memcpy(to + whole, rest, (size_t)(count - whole) * sizeof(*to));
    }
    if (step->axis == 0)
        image_type_row_end(step, from, to);
}

static void
image_type_recur_lines(const struct image_type_work *work, int64_t item)
{
    const struct image_type_step *step = work->step;
    const int64_t across = step->size[image_type_across(step)];
    const int64_t groups = (across + IMAGE_TYPE_LINES - 1) / IMAGE_TYPE_LINES;
    const struct image_type_lines lines =
        image_type_lines_of(step, &work->own->memory, item / groups * across + item % groups * IMAGE_TYPE_LINES);

    work->isa->recur_lines(step, &lines);
}

/* ------------------------------------------------------------------------------------- runs -- */

static void
image_type_lbp_body(void *context)
{
    struct image_type_work *work = context;
    const size_t body = __atomic_fetch_add(&work->bodies, 1, __ATOMIC_RELAXED);
    int64_t block;

    while ((block = __atomic_fetch_add(&work->next, 1, __ATOMIC_RELAXED)) < work->count)
        lbp_block(&work->lbp, block, work->own->spaces + body * work->own->space);
}

static void
image_type_body(void *context)
{
    struct image_type_work *work = context;
    int64_t item;

    while ((item = __atomic_fetch_add(&work->next, 1, __ATOMIC_RELAXED)) < work->count)
        work->run(work, item);
}

static void
image_type_do(const struct cpu_lane *lane, struct image_type_work *work,
              void (*run)(const struct image_type_work *work, int64_t item), int64_t count)
{
    work->run = run;
    work->count = count;
    work->next = 0;
    cpu_pool_run(cpu_device_of(&lane->base)->pool, image_type_body, work);
}

static void
image_type_do_step(const struct cpu_lane *lane, struct image_type_work *work)
{
    const struct image_type_step *step = work->step;
    const int64_t *size = step->size;

    if (step->action == IMAGE_TYPE_TAPS) {
        image_type_do(lane, work, image_type_row, size[1] * size[2]);
    } else if (step->action == IMAGE_TYPE_LBP_3D) {
        work->lbp = (struct lbp_plan){.isa = work->isa, .step = step, .memory = &work->own->memory};
        lbp_plan_make(&work->lbp);
        work->count = lbp_blocks(&work->lbp);
        work->next = 0;
        work->bodies = 0;
        cpu_pool_run(cpu_device_of(&lane->base)->pool, image_type_lbp_body, work);
    } else if (step->action == IMAGE_TYPE_RECURSION || step->action == IMAGE_TYPE_SPLINE) {
        const int64_t across = size[image_type_across(step)];

        image_type_do(lane, work, image_type_recur_lines,
                      (across + IMAGE_TYPE_LINES - 1) / IMAGE_TYPE_LINES * (image_type_items(step) / across));
    } else
        image_type_do(lane, work, image_type_voxels, size[1] * size[2]);
}

static int
cpu_image_type_run(struct kernels_lane *lane, const void *request, struct error *error)
{
    const struct image_type_task *task = request;
    struct cpu_image_type *own = kernels_state(lane, KERNELS_IMAGE_TYPE);
    struct image_type_plan *plan = &own->plan;
    const int64_t count = plan->demand.size[0] * plan->demand.size[1] * plan->demand.size[2];
    struct image_type_work work = {.own = own, .task = task, .isa = cpu_device_of(lane)->isa};

    (void)error;
    for (int i = 0; i < plan->responses; i++)
        task->responses[i] = own->memory.at[IMAGE_TYPE_RESPONSES + i] = own->responses + i * count;
    for (int64_t i = 0; i < count && plan->none; i++)
        own->responses[i] = NAN;
    if (plan->none)
        return 0;
    image_type_plan_set(plan, task);
    if (own->demand.options.kind == FILTER_PYRADIOMICS_LBP_3D)
        image_type_table_make(&own->demand, own->table);
    own->memory.table = own->table;
    image_type_do(cpu_lane_of(lane), &work, image_type_copy_row, plan->copies[1] * plan->copies[2]);
    for (int i = 0; i < plan->count; i++) {
        work.step = &plan->steps[i];
        image_type_do_step(cpu_lane_of(lane), &work);
    }
    return 0;
}

const struct kernels_op cpu_image_type_op = {
    .name = "the image type",
    .state_size = sizeof(struct cpu_image_type),
    .transient = true,
    .needs = cpu_image_type_needs,
    .place = cpu_image_type_place,
    .keep = cpu_image_type_keep,
    .run = cpu_image_type_run,
};
