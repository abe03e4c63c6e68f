/*
 * coarse_cpu.c - mean values of blocks on the CPU. A thread adds the rows of a row of blocks, element by element, and
 * then adds the sums along x.
 */
#include "kernels/coarse/coarse_rule.h"
#include "kernels/range/range_cpu.h"

#include <string.h>

enum { COARSE_ROWS = 1 << 16 }; /* max rows whose sums fit 32 bits */

struct cpu_coarse {
    unsigned char *spaces; /* one per thread */
    size_t space_size;
};

/* Memory of a thread. */
struct coarse_space {
    uint64_t *totals; /* of blocks */
    uint32_t *sums;   /* of columns */
    uint16_t *row;    /* clipped */
};

struct coarse_job {
    struct cpu_lane *lane;
    const struct coarse_request *request;
    struct range_clipping clip;
    int64_t claimed, next; /* memory and rows of blocks, atomic */
};

static void
cpu_coarse_place(struct kernels_lane *lane, struct kernels_memory *memory)
{
    struct cpu_coarse *own = kernels_state(lane, KERNELS_COARSE);
    const size_t columns = (size_t)lane->extent.columns;

    own->space_size = (columns * (sizeof(uint64_t) + sizeof(uint32_t) + sizeof(uint16_t)) + 7) / 8 * 8;
    own->spaces = kernels_take(&memory->host, (size_t)lane->device->threads, own->space_size);
}

static void
coarse_fold(const struct coarse_job *job, struct coarse_space *space)
{
    const struct kernels_lane *lane = &job->lane->base;
    const int64_t factor = job->request->grid.factor[0], whole = lane->extent.columns / factor;
    const int64_t rest = lane->extent.columns - whole * factor;
    const struct isa *isa = cpu_device_of(lane)->isa;

    isa->fold32(space->sums, whole, factor, space->totals);
    if (rest > 0)
        isa->fold32(space->sums + whole * factor, 1, rest, space->totals + whole);
    memset(space->sums, 0, (size_t)lane->extent.columns * sizeof(*space->sums));
}

/* Computes row i of the blocks. */
static void
coarse_sum_row(const struct coarse_job *job, struct coarse_space *space, int64_t i)
{
    const struct kernels_lane *lane = &job->lane->base;
    const struct isa *isa = cpu_device_of(lane)->isa;
    const struct coarse_grid *grid = &job->request->grid;
    const int64_t y = i % grid->extent.rows * grid->factor[1], z = i / grid->extent.rows * grid->factor[2];
    const int64_t height = lane->extent.rows - y < grid->factor[1] ? lane->extent.rows - y : grid->factor[1];
    const int64_t depth = lane->extent.slices - z < grid->factor[2] ? lane->extent.slices - z : grid->factor[2];
    const int64_t factor = grid->factor[0], whole = lane->extent.columns / factor;
    const int64_t rest = lane->extent.columns - whole * factor;
    const struct coarse_rule rule = coarse_rule_for(job->request, factor * height * depth);
    const struct coarse_rule last = coarse_rule_for(job->request, rest > 0 ? rest * height * depth : 1);
    int16_t *blocks = job->request->blocks + i * grid->extent.columns;

    memset(space->totals, 0, (size_t)grid->extent.columns * sizeof(*space->totals));
    memset(space->sums, 0, (size_t)lane->extent.columns * sizeof(*space->sums));
    for (int64_t k = 0; k < height * depth; k++) {
        const int64_t row = (z + k / height) * lane->extent.rows + y + k % height;

        range_clip_voxels(job->lane, &job->clip, row * lane->extent.columns, lane->extent.columns, space->row);
        isa->add16(space->row, lane->extent.columns, space->sums);
        if ((k + 1) % COARSE_ROWS == 0)
            coarse_fold(job, space);
    }
    coarse_fold(job, space);
    isa->blocks16(space->totals, whole, &rule, blocks);
    isa->blocks16(space->totals + whole, rest > 0, &last, blocks + whole);
}

static void
coarse_sum_rows(void *context)
{
    struct coarse_job *job = context;
    const struct coarse_grid *grid = &job->request->grid;
    const int64_t rows = grid->extent.rows * grid->extent.slices, columns = job->lane->base.extent.columns;
    const struct cpu_coarse *own = kernels_state(&job->lane->base, KERNELS_COARSE);
    const int64_t claimed = __atomic_fetch_add(&job->claimed, 1, __ATOMIC_RELAXED);
    struct coarse_space space;

    space.totals = (uint64_t *)(void *)(own->spaces + (size_t)claimed * own->space_size);
    space.sums = (uint32_t *)(void *)(space.totals + columns);
    space.row = (uint16_t *)(void *)(space.sums + columns);

    for (int64_t i; (i = __atomic_fetch_add(&job->next, 1, __ATOMIC_RELAXED)) < rows;)
        coarse_sum_row(job, &space, i);
}

static int
cpu_coarse_run(struct kernels_lane *lane, const void *given, struct error *error)
{
    const struct coarse_request *request = given;
    struct coarse_job job = {.lane = cpu_lane_of(lane), .request = request};

    (void)error;
    job.clip = range_clipping_for(lane->pixel, (struct image_range){request->lo, request->hi}, request->padding, 0);
    cpu_pool_run(cpu_device_of(lane)->pool, coarse_sum_rows, &job);
    return 0;
}

const struct kernels_op cpu_coarse_op = {
    .name = "the grid of blocks",
    .state_size = sizeof(struct cpu_coarse),
    .transient = true,
    .needs = kernels_op_asked,
    .place = cpu_coarse_place,
    .run = cpu_coarse_run,
};
