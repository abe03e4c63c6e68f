/*
 * texture_runs_cpu.c - runs of levels on the CPU. Walks each run of two or more voxels once, from its first
 * voxel. Short runs are counted in the thread's table, others in the caller's. Runs of one voxel,
 * the majority, are the rest of a level's voxels and are not searched for.
 */
#include "kernels/texture/texture_cpu.h"

#include <string.h>

enum {
    RUNS_SHORT = 64,  /* shorter runs have a counter in a thread's table */
    RUNS_CHUNK = 512, /* columns processed together; a multiple of RUNS_WORD */
    RUNS_WORD = 8,
};

struct cpu_runs {
    uint16_t *levels; /* of the box */
    uint32_t *tables; /* [TEXTURE_MAX_LEVELS][RUNS_SHORT] per thread */
};

struct running {
    struct cpu_lane *lane;
    const struct cpu_runs *own;
    const struct texture_runs *request;
    struct texture_boxed boxed;
    struct texture_blocks blocks; /* per direction */
    uint64_t *counts;
    int64_t next, table;
};

/* Adds runs of a level and length, and subtracts their voxels from the runs of one. */
static void
runs_add(const struct running *job, int64_t level, int64_t length, uint64_t runs, uint64_t *counts)
{
    counts += (level - 1) * job->request->longest;
    texture_add(&counts[length - 1], runs);
    texture_add(&counts[0], -(runs * (uint64_t)length));
}

/* Counts runs that begin in a row. `step` is the distance between voxels of a run. */
static void
runs_count_row(const struct running *job, const uint16_t *row, int64_t step, uint32_t *table, uint64_t *counts)
{
    for (int64_t first = 0; first < job->boxed.box.size[0]; first += RUNS_CHUNK) {
        const int64_t left = job->boxed.box.size[0] - first;
        const int64_t count = left < RUNS_CHUNK ? left : RUNS_CHUNK;
        const uint16_t *own = row + first, *before = own - step, *after = own + step;
        uint8_t begins[RUNS_CHUNK]; /* 1 where a run of more than one voxel begins */
        uint64_t word;

        for (int64_t x = 0; x < count; x++)
            begins[x] = (own[x] > 0) & (own[x] != before[x]) & (own[x] == after[x]);
        for (int64_t x = count; x % RUNS_WORD > 0; x++)
            begins[x] = 0;
        for (int64_t x = 0; x < count; x += RUNS_WORD) {
            memcpy(&word, begins + x, sizeof(word));
            for (; word; word &= word - 1) {
                const uint16_t *at = own + x + __builtin_ctzll(word) / 8;
                const uint16_t level = *at;
                int64_t length = 2;

                for (at += 2 * step; *at == level; at += step)
                    length++;
                if (length < RUNS_SHORT)
                    table[(level - 1) * RUNS_SHORT + length]++;
                else
                    runs_add(job, level, length, 1, counts);
            }
        }
    }
}

/* Counts all voxels of slice z of the box as runs of one, by level and in each direction. */
static void
runs_count_voxels(void *context, int64_t z)
{
    const struct running *job = context;
    const struct texture_runs *request = job->request;
    const size_t slice = request->per_slice ? (size_t)(job->boxed.box.first[2] + z) : 0;
    uint64_t *counts =
        job->counts + slice * request->direction_count * (size_t)(request->levels.levels * request->longest);
    uint32_t voxels[2][TEXTURE_WIDE_LEVELS] = {{0}}; /* two tables: equal levels often follow each other */

    for (int64_t y = 0; y < job->boxed.box.size[1]; y++) {
        const uint16_t *row = job->boxed.levels + z * job->boxed.slice + y * job->boxed.row;

        for (int64_t x = 0; x < job->boxed.box.size[0]; x++)
            voxels[x % 2][row[x]]++;
    }
    for (size_t d = 0; d < request->direction_count; d++)
        for (int64_t level = 1; level <= request->levels.levels; level++)
            texture_add(&counts[((int64_t)d * request->levels.levels + level - 1) * request->longest],
                        (uint64_t)voxels[0][level] + voxels[1][level]);
}

static void
runs_count_blocks(void *context)
{
    struct running *job = context;
    const struct texture_runs *request = job->request;
    const struct texture_boxed *boxed = &job->boxed;
    const size_t used = (size_t)request->levels.levels * RUNS_SHORT;
    uint32_t *table =
        job->own->tables + __atomic_fetch_add(&job->table, 1, __ATOMIC_RELAXED) * TEXTURE_MAX_LEVELS * RUNS_SHORT;
    const int64_t blocks = job->blocks.count * (int64_t)request->direction_count;
    int64_t i;

    memset(table, 0, sizeof(*table) * TEXTURE_MAX_LEVELS * RUNS_SHORT);
    while ((i = __atomic_fetch_add(&job->next, 1, __ATOMIC_RELAXED)) < blocks) {
        const size_t direction = (size_t)(i / job->blocks.count);
        const struct texture_offset *offset = &request->directions[direction];
        const int64_t step = offset->z * boxed->slice + offset->y * boxed->row + offset->x;
        const struct texture_block block = texture_block_at(&job->blocks, i % job->blocks.count);
        const size_t slice = request->per_slice ? (size_t)(boxed->box.first[2] + block.z) : 0;
        uint64_t *counts = job->counts + (slice * request->direction_count + direction) *
                                             (size_t)(request->levels.levels * request->longest);

        for (int64_t y = block.first; y < block.end; y++)
            runs_count_row(job, boxed->levels + block.z * boxed->slice + y * boxed->row, step, table, counts);
        for (size_t k = 0; k < used; k++)
            if (table[k] > 0)
                runs_add(job, (int64_t)(k / RUNS_SHORT) + 1, (int64_t)(k % RUNS_SHORT), table[k], counts);
        memset(table, 0, used * sizeof(*table));
    }
}

static void
cpu_runs_place(struct kernels_lane *lane, struct kernels_memory *memory)
{
    struct cpu_runs *own = kernels_state(lane, KERNELS_RUNS);

    own->levels = cpu_boxed_take(lane, memory, sizeof(*own->levels));
    own->tables = kernels_take(&memory->host, (size_t)lane->device->threads,
                               sizeof(*own->tables) * TEXTURE_MAX_LEVELS * RUNS_SHORT);
}

static int
cpu_runs_run(struct kernels_lane *lane, const void *given, struct error *error)
{
    const struct texture_runs_request *request = given;
    const struct texture_runs *runs = request->runs;
    const struct cpu_runs *own = kernels_state(lane, KERNELS_RUNS);
    struct running job = {.lane = cpu_lane_of(lane), .own = own, .request = runs, .counts = request->counts};

    (void)error;
    memset(request->counts, 0, texture_runs_size(runs, lane->extent.slices) * sizeof(*request->counts));
    cpu_boxed_fill(job.lane, &runs->levels, runs->region, 1, own->levels, &job.boxed);
    if (job.boxed.box.size[0] == 0)
        return 0;
    job.blocks =
        texture_blocks_of(job.boxed.box.size[0], job.boxed.box.size[1], job.boxed.box.size[2], TEXTURE_BLOCK_VOXELS);
    cpu_pool_for(cpu_device_of(lane)->pool, job.boxed.box.size[2], runs_count_voxels, &job);
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
