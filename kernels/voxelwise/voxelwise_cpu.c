/* voxelwise_cpu.c - maps of features on the CPU: threads take runs of voxels. */
#include "kernels/cpu/device.h"
#include "kernels/voxelwise/voxelwise_steps.h"

enum { VOXELWISE_RUN = 64 }; /* voxels per turn of a thread */

struct cpu_voxelwise {
    struct voxelwise_tables *tables;
    struct voxelwise_memory *memories; /* one per thread */
    double **spaces;                   /* likewise, for coefficients */
};

struct voxelwise_work {
    const struct voxelwise_task *task;
    const struct voxelwise_memory *memories;
    double *const *spaces;
    const struct isa *isa;
    struct voxelwise_plan plan;
    enum voxelwise_family family;
    double *maps;
    int64_t next; /* atomic, as is the next */
    int threads;
};

static void
cpu_voxelwise_place(struct kernels_lane *lane, struct kernels_memory *memory)
{
    struct cpu_voxelwise *own = kernels_state(lane, KERNELS_VOXELWISE);
    const int threads = kernels_lane_threads(lane);
    size_t counts = 0, numbers = 0;

    for (int family = 0; family < VOXELWISE_FAMILIES; family++) {
        const size_t each[2] = {voxelwise_counts(family, VOXELWISE_MAX_RADIUS, VOXELWISE_MAX_LEVELS),
                                voxelwise_numbers(family, VOXELWISE_MAX_RADIUS, VOXELWISE_MAX_LEVELS)};

        counts = each[0] > counts ? each[0] : counts;
        numbers = each[1] > numbers ? each[1] : numbers;
    }
    own->tables = kernels_take(&memory->host, 1, sizeof(*own->tables));
    own->memories = kernels_take(&memory->host, (size_t)threads, sizeof(*own->memories));
    own->spaces = kernels_take(&memory->host, (size_t)threads, sizeof(*own->spaces));
    for (int thread = 0; thread < threads; thread++) {
        const struct voxelwise_memory each = {
            .window = kernels_take(&memory->host, VOXELWISE_WINDOW, sizeof(uint16_t)),
            .counts = kernels_take(&memory->host, counts, sizeof(uint16_t)),
            .numbers = kernels_take(&memory->host, numbers, sizeof(double)),
        };

        double *space = kernels_take(&memory->host, MCC_SPACE(VOXELWISE_MAX_LEVELS), sizeof(double));

        if (own->memories) {
            own->memories[thread] = each;
            own->spaces[thread] = space;
        }
    }
}

/* Computes the coefficients of the window around a voxel. */
static void
cpu_voxelwise_correlate(const struct voxelwise_work *work, const struct voxelwise_memory *memory, int64_t voxel,
                        double *space, double coefficients[MCC_DIRECTIONS])
{
    struct mcc_window window = {.side = work->plan.side, .ranks = memory->window};

    voxelwise_take(&work->plan, voxel, memory->window, NULL);
    window.levels = voxelwise_rank(&work->plan, memory->window, memory->counts);
    if (window.levels > 1)
        work->isa->mcc_window(&window, space, coefficients);
}

static void
voxelwise_body(void *context)
{
    struct voxelwise_work *work = context;
    const struct voxelwise_request *request = work->task->request;
    const int thread = __atomic_fetch_add(&work->threads, 1, __ATOMIC_RELAXED);
    const bool correlates = voxelwise_correlates(&work->plan, work->family);
    struct voxelwise_memory memory = work->memories[thread];
    double coefficients[MCC_DIRECTIONS] = {0};
    int64_t first;

    memory.coefficients = correlates ? coefficients : NULL;
    memory.apart = 1;
    while ((first = __atomic_fetch_add(&work->next, VOXELWISE_RUN, __ATOMIC_RELAXED)) < request->count)
        for (int64_t i = first; i < first + VOXELWISE_RUN && i < request->count; i++) {
            if (correlates)
                cpu_voxelwise_correlate(work, &memory, request->voxels[i], work->spaces[thread], coefficients);
            voxelwise_voxel(&work->plan, work->family, &memory, request->voxels[i], work->maps + i, request->stride);
        }
}

static int
cpu_voxelwise_run(struct kernels_lane *lane, const void *request, struct error *error)
{
    const struct voxelwise_task *task = request;
    struct cpu_voxelwise *own = kernels_state(lane, KERNELS_VOXELWISE);
    double *maps = task->request->maps;

    (void)error;
    voxelwise_tables_make(task->plan.radius, task->plan.levels, own->tables);
    for (int family = 0; family < VOXELWISE_FAMILIES; family++) {
        struct voxelwise_work work = {.task = task,
                                      .memories = own->memories,
                                      .spaces = own->spaces,
                                      .isa = cpu_device_of(lane)->isa,
                                      .plan = task->plan,
                                      .family = family,
                                      .maps = maps};

        if (task->features[family] == 0)
            continue;
        for (int axis = 0; axis < 3; axis++)
            work.plan.size[axis] = task->request->size[axis];
        work.plan.grey = task->request->levels;
        work.plan.values = task->request->values;
        work.plan.tables = own->tables;
        work.plan.features = task->features[family];
        cpu_pool_run(cpu_device_of(lane)->pool, voxelwise_body, &work);
        maps += __builtin_popcount(task->features[family]) * task->request->stride;
    }
    return 0;
}

const struct kernels_op cpu_voxelwise_op = {
    .name = "the maps of features",
    .state_size = sizeof(struct cpu_voxelwise),
    .transient = true,
    .needs = kernels_op_asked,
    .place = cpu_voxelwise_place,
    .run = cpu_voxelwise_run,
};
