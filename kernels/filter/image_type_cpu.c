/* image_type_cpu.c - image types on the CPU: threads take runs of items. */
#include "kernels/cpu/device.h"
#include "kernels/filter/image_type_steps.h"

enum { IMAGE_TYPE_RUN = 1024, IMAGE_TYPE_LINES = 16 }; /* items per turn of a thread */

struct cpu_image_type {
    struct image_type_demand demand; /* first: requests are checked against it */
    struct image_type_plan plan;
    struct image_type_memory memory;
    double *table;
};

struct image_type_work {
    const struct image_type_step *step;
    const struct image_type_memory *memory;
    int64_t count, run, next; /* next: atomic */
};

static bool
cpu_image_type_needs(struct kernels_lane *lane, const void *demand)
{
    struct cpu_image_type *own = kernels_state(lane, KERNELS_IMAGE_TYPE);

    own->demand = *(const struct image_type_demand *)demand;
    if (image_type_plan_make(&own->demand, &lane->extent, &own->plan)) /* a run refuses it */
        own->plan.count = 0;
    return true;
}

static void
cpu_image_type_place(struct kernels_lane *lane, struct kernels_memory *memory)
{
    struct cpu_image_type *own = kernels_state(lane, KERNELS_IMAGE_TYPE);

    for (int place = IMAGE_TYPE_FIRST; place <= IMAGE_TYPE_SECOND; place++)
        own->memory.at[place] = kernels_take(&memory->host, (size_t)own->plan.between, sizeof(double));
    own->table = kernels_take(&memory->host, IMAGE_TYPE_TABLE, sizeof(double));
}

static void
cpu_image_type_keep(struct kernels_lane *lane, struct kernels_memory *memory)
{
    struct cpu_image_type *own = kernels_state(lane, KERNELS_IMAGE_TYPE);

    own->memory.at[IMAGE_TYPE_RESPONSES] =
        kernels_take(&memory->host, (size_t)image_voxels(&lane->extent), sizeof(double));
}

static void
image_type_body(void *context)
{
    struct image_type_work *work = context;
    int64_t first;

    while ((first = __atomic_fetch_add(&work->next, work->run, __ATOMIC_RELAXED)) < work->count)
        for (int64_t i = first; i < first + work->run && i < work->count; i++)
            image_type_item(work->step, work->memory, i);
}

static int
cpu_image_type_run(struct kernels_lane *lane, const void *request, struct error *error)
{
    const struct image_type_task *task = request;
    struct cpu_image_type *own = kernels_state(lane, KERNELS_IMAGE_TYPE);
    double *responses = own->memory.at[IMAGE_TYPE_RESPONSES];

    (void)error;
    *task->responses = responses;
    for (int64_t i = 0; i < image_voxels(&lane->extent); i++)
        responses[i] = NAN;
    if (own->plan.none)
        return 0;
    image_type_plan_set(&own->plan, task);
    if (own->demand.options.kind == FILTER_PYRADIOMICS_LBP_3D)
        image_type_table(&own->demand, own->table);
    own->memory.values = task->request->values;
    own->memory.table = own->table;
    for (int i = 0; i < own->plan.count; i++) {
        const struct image_type_step *step = &own->plan.steps[i];
        struct image_type_work work = {.step = step, .memory = &own->memory, .count = image_type_items(step)};

        work.run = step->action >= IMAGE_TYPE_RECURSION ? IMAGE_TYPE_LINES : IMAGE_TYPE_RUN;
        cpu_pool_run(cpu_device_of(lane)->pool, image_type_body, &work);
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
