/*
 * zones_cpu.c - zones of levels on the CPU. Threads unite the voxels of slabs of slices, the seams
 * between them are united after that. A root is the first voxel of its zone, so that one pass in
 * order adds up sizes, or finds the smallest distances, in the roots themselves.
 */
#include "kernels/texture/texture_cpu.h"

#include <string.h>

#define ZONES_ROOT                                                                                 \
    UINT32_C(0x80000000) /* a root that the last pass has seen; the rest is its value */

enum { ZONES_SLABS = 4 }; /* per thread */

struct cpu_zones {
    uint16_t *levels;    /* of the box */
    uint32_t *parents;   /* likewise, numbers of voxels in that memory */
    uint16_t *distances; /* likewise */
};

struct zoning {
    struct cpu_lane *lane;
    const struct texture_zones *request;
    struct texture_boxed boxed;
    const uint16_t *levels; /* the memory */
    uint32_t *parents;
    uint16_t *distances;
    int64_t slab; /* slices */
};

static struct cpu_zones *
cpu_zones_state(const struct kernels_lane *lane)
{
    return kernels_state(lane, KERNELS_ZONES);
}

/* The number of a voxel of the box. */
static int64_t
zones_number(const struct zoning *job, int64_t x, int64_t y, int64_t z)
{
    const struct texture_boxed *boxed = &job->boxed;

    return (z + boxed->margin) * boxed->slice + (y + boxed->margin) * boxed->row + x +
           boxed->margin;
}

static uint32_t
zones_find(uint32_t *parents, uint32_t voxel)
{
    while (parents[voxel] != voxel) {
        parents[voxel] = parents[parents[voxel]];
        voxel = parents[voxel];
    }
    return voxel;
}

static void
zones_unite(uint32_t *parents, uint32_t a, uint32_t b)
{
    a = zones_find(parents, a);
    b = zones_find(parents, b);
    if (a < b)
        parents[b] = a;
    else
        parents[a] = b;
}

/* With those before it in its row and slice, and of the slice before it. */
static void
zones_unite_voxel(const struct zoning *job, int64_t voxel, bool own_slice, bool slice_before)
{
    const int64_t row = job->boxed.row, slice = job->boxed.slice;
    const int64_t before[4] = {-1, -row - 1, -row, -row + 1};

    for (int i = 0; i < 4 && own_slice; i++)
        if (job->levels[voxel + before[i]] == job->levels[voxel])
            zones_unite(job->parents, (uint32_t)voxel, (uint32_t)(voxel + before[i]));
    for (int64_t y = -row; y <= row && slice_before; y += row)
        for (int64_t x = -1; x <= 1; x++)
            if (job->levels[voxel - slice + y + x] == job->levels[voxel])
                zones_unite(job->parents, (uint32_t)voxel, (uint32_t)(voxel - slice + y + x));
}

static void
zones_unite_slice(const struct zoning *job, int64_t z, bool own_slice, bool slice_before)
{
    for (int64_t y = 0; y < job->boxed.box.size[1]; y++)
        for (int64_t x = 0; x < job->boxed.box.size[0]; x++) {
            const int64_t voxel = zones_number(job, x, y, z);

            if (own_slice)
                job->parents[voxel] = (uint32_t)voxel;
            if (job->levels[voxel] > 0)
                zones_unite_voxel(job, voxel, own_slice, slice_before);
        }
}

static void
zones_unite_slab(void *context, int64_t slab)
{
    const struct zoning *job = context;
    const int64_t first = slab * job->slab;

    for (int64_t z = first; z < first + job->slab && z < job->boxed.box.size[2]; z++)
        zones_unite_slice(job, z, true, z > first && !job->request->in_slice);
}

/* --------------------------------------------------------------------- the distances ---- */

/* The smallest of those beside it on one side, and one more. */
static uint16_t
zones_step(const struct zoning *job, int64_t voxel, int64_t to)
{
    const int64_t slice = job->request->in_slice ? 0 : job->boxed.slice;
    uint16_t least = job->distances[voxel + to];
    const uint16_t other = job->distances[voxel + to * job->boxed.row];

    least = other < least ? other : least;
    if (slice > 0 && job->distances[voxel + to * slice] < least)
        least = job->distances[voxel + to * slice];
    return (uint16_t)(least + 1);
}

/* City-block distances to what is not of the region: one pass in order and one back are exact. */
static void
zones_measure(const struct zoning *job)
{
    const struct texture_box *box = &job->boxed.box;
    const struct kernels_lane *lane = &job->lane->base;

    memset(job->distances, 0,
           (size_t)(job->boxed.slice * (box->size[2] + 2 * job->boxed.margin)) *
               sizeof(*job->distances));
    for (int64_t i = 0; i < box->size[0] * box->size[1] * box->size[2]; i++) {
        const int64_t x = i % box->size[0], y = i / box->size[0] % box->size[1];
        const int64_t z = i / box->size[0] / box->size[1], column = box->first[0] + x;
        const int64_t row = (box->first[2] + z) * lane->extent.rows + box->first[1] + y;
        const int64_t voxel = zones_number(job, x, y, z);

        if (texture_region_word(lane, job->request->region, row, column / 64) >> column % 64 & 1)
            job->distances[voxel] = zones_step(job, voxel, -1);
    }
    for (int64_t i = box->size[0] * box->size[1] * box->size[2] - 1; i >= 0; i--) {
        const int64_t x = i % box->size[0], y = i / box->size[0] % box->size[1];
        const int64_t voxel = zones_number(job, x, y, i / box->size[0] / box->size[1]);
        const uint16_t back = zones_step(job, voxel, 1);

        if (back < job->distances[voxel])
            job->distances[voxel] = back;
    }
}

/* ------------------------------------------------------------------------ the result ---- */

/* A root precedes its zone. */
static void
zones_add_voxel(const struct zoning *job, uint32_t voxel)
{
    const uint32_t distance = job->request->of_distances ? job->distances[voxel] : 0;
    uint32_t root = voxel;

    if (job->parents[voxel] == voxel) {
        job->parents[voxel] = ZONES_ROOT | (job->request->of_distances ? distance : 1);
        return;
    }
    while (!(job->parents[root] & ZONES_ROOT))
        root = job->parents[root];
    if (!job->request->of_distances)
        job->parents[root]++;
    else if ((ZONES_ROOT | distance) < job->parents[root])
        job->parents[root] = ZONES_ROOT | distance;
}

static uint64_t
zones_list(const struct zoning *job, bool add, uint64_t *keys)
{
    const struct texture_box *box = &job->boxed.box;
    uint64_t count = 0;

    for (int64_t z = 0; z < box->size[2]; z++)
        for (int64_t y = 0; y < box->size[1]; y++)
            for (int64_t x = 0; x < box->size[0]; x++) {
                const int64_t voxel = zones_number(job, x, y, z);

                if (job->levels[voxel] == 0)
                    continue;
                if (add)
                    zones_add_voxel(job, (uint32_t)voxel);
                else if (job->parents[voxel] & ZONES_ROOT)
                    keys[count++] =
                        texture_zone_key(job->request->per_slice ? box->first[2] + z : 0,
                                         job->levels[voxel], job->parents[voxel] & ~ZONES_ROOT);
            }
    return count;
}

static void
cpu_zones_place(struct kernels_lane *lane, struct kernels_memory *memory)
{
    struct cpu_zones *own = cpu_zones_state(lane);

    own->levels = cpu_boxed_take(lane, memory, sizeof(*own->levels));
    own->parents = cpu_boxed_take(lane, memory, sizeof(*own->parents));
    own->distances = cpu_boxed_take(lane, memory, sizeof(*own->distances));
}

static int
cpu_zones_run(struct kernels_lane *lane, const void *given, struct error *error)
{
    const struct texture_zones_request *request = given;
    const struct cpu_zones *own = cpu_zones_state(lane);
    struct zoning job = {.lane = cpu_lane_of(lane),
                         .request = request->zones,
                         .levels = own->levels,
                         .parents = own->parents,
                         .distances = own->distances};
    int64_t slices;

    (void)error;
    cpu_boxed_fill(job.lane, &request->zones->levels, request->zones->region, 1, own->levels,
                   &job.boxed);
    slices = job.boxed.box.size[2];
    job.slab = request->zones->in_slice ? 1 : slices / (ZONES_SLABS * lane->device->threads) + 1;
    if (slices > 0)
        cpu_pool_for(cpu_device_of(lane)->pool, (slices + job.slab - 1) / job.slab,
                     zones_unite_slab, &job);
    for (int64_t z = job.slab; z < slices && !request->zones->in_slice; z += job.slab)
        zones_unite_slice(&job, z, false, true);
    if (request->zones->of_distances && slices > 0)
        zones_measure(&job);
    zones_list(&job, true, NULL);
    *request->count = zones_list(&job, false, request->keys);
    return 0;
}

const struct kernels_op cpu_zones_op = {
    .name = "texture (zones)",
    .state_size = sizeof(struct cpu_zones),
    .transient = true,
    .needs = kernels_op_asked,
    .place = cpu_zones_place,
    .run = cpu_zones_run,
};
