/*
 * neighbours_cpu.c - neighbourhoods on the CPU. For a row at a time, adds up the number of
 * neighbours, the sum of their levels, and the number of alike ones, neighbour by neighbour. Then
 * counts each voxel in its thread's table, which is added to the caller's.
 */
#include "kernels/texture/texture_cpu.h"

#include <stdlib.h>
#include <string.h>

enum {
    NEIGHBOURS_CHUNK = 1024, /* columns processed together */
    NEIGHBOURS_TABLE = TEXTURE_NEIGHBOUR_KINDS * TEXTURE_MAX_LEVELS * (2 * TEXTURE_MAX_DISTANCE + 1) *
                       (2 * TEXTURE_MAX_DISTANCE + 1) * (2 * TEXTURE_MAX_DISTANCE + 1),
};

struct cpu_neighbours {
    uint16_t *levels; /* of the box */
    uint64_t *tables; /* one per thread */
};

struct neighbouring {
    struct cpu_lane *lane;
    const struct cpu_neighbours *own;
    const struct texture_neighbours *request;
    struct texture_boxed boxed;
    struct texture_blocks blocks;
    size_t width, entries; /* of a kind; of a whole matrix */
    uint64_t *counts;
    int64_t next, table;
};

/* Sums for the voxels of a chunk. */
struct neighbour_sums {
    uint16_t count[NEIGHBOURS_CHUNK], alike[NEIGHBOURS_CHUNK];
    uint32_t sum[NEIGHBOURS_CHUNK];
};

static void
add_neighbour(const uint16_t *restrict own, const uint16_t *restrict other, int64_t count, uint16_t alpha,
              struct neighbour_sums *restrict sums)
{
    const uint16_t apart = (uint16_t)(2 * alpha);

    for (int64_t x = 0; x < count; x++) {
        const uint16_t level = other[x];
        const uint16_t there = level > 0, from = (uint16_t)(level - own[x] + alpha);

        sums->count[x] = (uint16_t)(sums->count[x] + there);
        sums->alike[x] = (uint16_t)(sums->alike[x] + (there & (from <= apart)));
        sums->sum[x] += level;
    }
}

static void
neighbours_count_row(const struct neighbouring *job, const uint16_t *row, uint64_t *table)
{
    const size_t plane = (size_t)job->request->levels.levels * job->width;
    const int64_t distance = job->request->distance, deep = job->request->in_slice ? 0 : distance;

    for (int64_t first = 0; first < job->boxed.box.size[0]; first += NEIGHBOURS_CHUNK) {
        const int64_t left = job->boxed.box.size[0] - first;
        const int64_t count = left < NEIGHBOURS_CHUNK ? left : NEIGHBOURS_CHUNK;
        const uint16_t *own = row + first;
        struct neighbour_sums sums;

        memset(&sums, 0, sizeof(sums));
        for (int64_t z = -deep; z <= deep; z++)
            for (int64_t y = -distance; y <= distance; y++)
                for (int64_t x = -distance; x <= distance; x++)
                    if (x != 0 || y != 0 || z != 0)
                        add_neighbour(own, own + z * job->boxed.slice + y * job->boxed.row + x, count,
                                      (uint16_t)job->request->alpha, &sums);
        for (int64_t x = 0; x < count; x++) {
            uint64_t *of_level = table + (size_t)(own[x] - 1) * job->width;

            if (own[x] == 0)
                continue;
            of_level[TEXTURE_ALIKE * plane + sums.alike[x]]++;
            of_level[TEXTURE_PRESENT * plane + sums.count[x]]++;
            of_level[TEXTURE_DEVIATION * plane + sums.count[x]] +=
                (uint64_t)labs((long)sums.count[x] * own[x] - (long)sums.sum[x]);
        }
    }
}

/* Adds the table to the matrix of slice z of the box. */
static void
empty_table(const struct neighbouring *job, int64_t z, uint64_t *table)
{
    const size_t matrix = job->request->per_slice ? (size_t)(job->boxed.box.first[2] + z) : 0;

    for (size_t i = 0; i < job->entries; i++)
        texture_add(&job->counts[matrix * job->entries + i], table[i]);
    memset(table, 0, job->entries * sizeof(*table));
}

static void
neighbours_count_blocks(void *context)
{
    struct neighbouring *job = context;
    uint64_t *table = job->own->tables + __atomic_fetch_add(&job->table, 1, __ATOMIC_RELAXED) * NEIGHBOURS_TABLE;
    int64_t i, z = -1;

    memset(table, 0, job->entries * sizeof(*table));
    while ((i = __atomic_fetch_add(&job->next, 1, __ATOMIC_RELAXED)) < job->blocks.count) {
        const struct texture_block block = texture_block_at(&job->blocks, i);

        if (job->request->per_slice && z >= 0 && block.z != z)
            empty_table(job, z, table);
        z = block.z;
        for (int64_t y = block.first; y < block.end; y++)
            neighbours_count_row(job, job->boxed.levels + z * job->boxed.slice + y * job->boxed.row, table);
    }
    if (z >= 0)
        empty_table(job, z, table);
}

static void
cpu_neighbours_place(struct kernels_lane *lane, struct kernels_memory *memory)
{
    struct cpu_neighbours *own = kernels_state(lane, KERNELS_NEIGHBOURS);

    own->levels = cpu_boxed_take(lane, memory, sizeof(*own->levels));
    own->tables = kernels_take(&memory->host, (size_t)lane->device->threads, NEIGHBOURS_TABLE * sizeof(*own->tables));
}

static int
cpu_neighbours_run(struct kernels_lane *lane, const void *given, struct error *error)
{
    const struct texture_neighbours_request *request = given;
    const struct texture_neighbours *neighbours = request->neighbours;
    struct neighbouring job = {
        .lane = cpu_lane_of(lane),
        .own = kernels_state(lane, KERNELS_NEIGHBOURS),
        .request = neighbours,
        .width = texture_neighbours_width(neighbours),
        .counts = request->counts,
    };

    (void)error;
    job.entries = TEXTURE_NEIGHBOUR_KINDS * (size_t)neighbours->levels.levels * job.width;
    memset(request->counts, 0,
           (neighbours->per_slice ? (size_t)lane->extent.slices : 1) * job.entries * sizeof(*request->counts));
    cpu_boxed_fill(job.lane, &neighbours->levels, neighbours->region, neighbours->distance, job.own->levels,
                   &job.boxed);
    if (job.boxed.box.size[0] == 0)
        return 0;
    job.blocks =
        texture_blocks_of(job.boxed.box.size[0], job.boxed.box.size[1], job.boxed.box.size[2], TEXTURE_BLOCK_VOXELS);
    cpu_pool_run(cpu_device_of(lane)->pool, neighbours_count_blocks, &job);
    return 0;
}

const struct kernels_op cpu_neighbours_op = {
    .name = "texture (neighbourhoods)",
    .state_size = sizeof(struct cpu_neighbours),
    .transient = true,
    .needs = kernels_op_asked,
    .place = cpu_neighbours_place,
    .run = cpu_neighbours_run,
};
