/*
 * runs_cpu.c - runs of levels on the CPU. Each run is walked once, from its first voxel; short ones
 * are counted in the thread's table, others in the caller's.
 */
#include "kernels/texture/texture_cpu.h"

#include <string.h>

enum { RUNS_SHORT = 64 }; /* runs below this length have a counter in a thread's table */

struct cpu_runs {
    uint16_t *levels; /* of the box */
    uint32_t *tables; /* [TEXTURE_MAX_LEVELS][RUNS_SHORT] per thread */
};

struct running {
    struct cpu_lane *lane;
    const struct texture_runs *request;
    struct texture_boxed boxed;
    struct texture_blocks blocks; /* for each direction */
    uint64_t *counts;
    int64_t next, table;
};

static struct cpu_runs *
cpu_runs_state(const struct kernels_lane *lane)
{
    return kernels_state(lane, KERNELS_RUNS);
}

/* Runs that begin in a row; `step` leads to the next voxel of a run. */
static void
runs_count_row(const struct running *job, const uint16_t *row, int64_t step, uint32_t *table,
               uint64_t *counts)
{
    for (int64_t x = 0; x < job->boxed.box.size[0]; x++) {
        const uint16_t *at = row + x, level = *at;
        int64_t length = 0;

        if (level == 0 || at[-step] == level)
            continue;
        for (; *at == level; at += step)
            length++;
        if (length < RUNS_SHORT)
            table[(level - 1) * RUNS_SHORT + length]++;
        else
            texture_add(&counts[(level - 1) * job->request->longest + length - 1], 1);
    }
}

static void
runs_empty_table(const struct running *job, uint32_t *table, uint64_t *counts)
{
    const size_t used = (size_t)job->request->levels.levels * RUNS_SHORT;

    for (size_t i = 0; i < used; i++)
        if (table[i] > 0)
            texture_add(&counts[(int64_t)(i / RUNS_SHORT) * job->request->longest +
                                (int64_t)(i % RUNS_SHORT) - 1],
                        table[i]);
    memset(table, 0, used * sizeof(*table));
}

static void
runs_count_block(const struct running *job, int64_t i, uint32_t *table)
{
    const struct texture_runs *request = job->request;
    const size_t direction = (size_t)(i / job->blocks.count);
    const struct texture_offset *offset = &request->directions[direction];
    const int64_t step = offset->z * job->boxed.slice + offset->y * job->boxed.row + offset->x;
    const struct texture_block block = texture_block_at(&job->blocks, i % job->blocks.count);
    const size_t slice = request->per_slice ? (size_t)(job->boxed.box.first[2] + block.z) : 0;
    uint64_t *counts = job->counts + (slice * request->direction_count + direction) *
                                         (size_t)(request->levels.levels * request->longest);

    for (int64_t y = block.first; y < block.end; y++)
        runs_count_row(job, job->boxed.levels + block.z * job->boxed.slice + y * job->boxed.row,
                       step, table, counts);
    runs_empty_table(job, table, counts);
}

static void
runs_count_blocks(void *context)
{
    struct running *job = context;
    uint32_t *table =
        cpu_runs_state(&job->lane->base)->tables +
        __atomic_fetch_add(&job->table, 1, __ATOMIC_RELAXED) * TEXTURE_MAX_LEVELS * RUNS_SHORT;
    const int64_t blocks = job->blocks.count * (int64_t)job->request->direction_count;
    int64_t i;

    memset(table, 0, sizeof(*table) * TEXTURE_MAX_LEVELS * RUNS_SHORT);
    while ((i = __atomic_fetch_add(&job->next, 1, __ATOMIC_RELAXED)) < blocks)
        runs_count_block(job, i, table);
}

static void
cpu_runs_place(struct kernels_lane *lane, struct kernels_memory *memory)
{
    struct cpu_runs *own = cpu_runs_state(lane);

    own->levels = cpu_boxed_take(lane, memory, sizeof(*own->levels));
    own->tables = kernels_take(&memory->host, (size_t)lane->device->threads,
                               sizeof(*own->tables) * TEXTURE_MAX_LEVELS * RUNS_SHORT);
}

static int
cpu_runs_run(struct kernels_lane *lane, const void *given, struct error *error)
{
    const struct texture_runs_request *request = given;
    const struct texture_runs *runs = request->runs;
    struct running job = {.lane = cpu_lane_of(lane), .request = runs, .counts = request->counts};

    (void)error;
    memset(request->counts, 0,
           texture_runs_size(runs, lane->extent.slices) * sizeof(*request->counts));
    cpu_boxed_fill(job.lane, &runs->levels, runs->region, 1, cpu_runs_state(lane)->levels,
                   &job.boxed);
    if (job.boxed.box.size[0] == 0)
        return 0;
    job.blocks = texture_blocks_of_box(&job.boxed.box);
    cpu_pool_run(cpu_device_of(lane)->pool, runs_count_blocks, &job);
    return 0;
}

const struct kernels_op cpu_runs_op = {
    .name = "texture (runs)",
    .state_size = sizeof(struct cpu_runs),
    .transient = true,
    .needs = kernels_op_asked,
    .place = cpu_runs_place,
    .run = cpu_runs_run,
};
