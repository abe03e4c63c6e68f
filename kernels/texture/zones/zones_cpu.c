/*
 * zones_cpu.c - zones of levels on the CPU. Threads unite the voxels of slabs of slices, then the
 * seams between slabs. A root is the first voxel of its zone, so that one ordered pass adds up
 * sizes and smallest distances in the roots.
 *
 * The preceding neighbours (13 per voxel) with the same level form a 13-bit number. Adjacent
 * neighbours are already in one zone. A table therefore has the minimum set of neighbours to unite
 * with for each number.
 */
#include "kernels/texture/texture_cpu.h"
#include "kernels/texture/zones/zone_tally.h"

#include <stdlib.h>
#include <string.h>

#define ZONES_ROOT UINT32_C(0x80000000) /* marks a root visited by the last pass; the rest is its size */

enum {
    ZONES_SLABS = 4,    /* per thread */
    ZONES_CHUNK = 1024, /* columns compared at once */
    ZONES_BEFORE = 13,
    ZONES_OF_SLICE = 0x000F, /* bits of neighbours in the voxel's own slice */
    ZONES_OF_OTHER = 0x1FF0, /* bits of neighbours in the previous slice */
    ZONES_FAR = INT16_MAX,   /* more than any distance in a box of less than 2^31 voxels */
};

static const int8_t zones_before[ZONES_BEFORE][3] = {
    {-1, 0, 0},  {-1, -1, 0}, {0, -1, 0},   {1, -1, 0},  {0, 0, -1},  {-1, 0, -1}, {1, 0, -1},
    {0, -1, -1}, {0, 1, -1},  {-1, -1, -1}, {1, -1, -1}, {-1, 1, -1}, {1, 1, -1},
};

struct cpu_zones {
    uint16_t *levels;    /* of the box */
    uint32_t *parents;   /* of the box; voxel numbers */
    uint16_t *distances; /* of the box */
    uint16_t fewest[1 << ZONES_BEFORE];
};

struct zoning {
    struct cpu_lane *lane;
    const struct texture_zones *request;
    struct texture_boxed boxed;
    const struct cpu_zones *own;
    int64_t before[ZONES_BEFORE]; /* offsets of a voxel's preceding neighbours */
    int64_t slab;                 /* slices per slab */
};

/* Returns the number of a voxel of the box. */
static int64_t
zones_number(const struct zoning *job, int64_t x, int64_t y, int64_t z)
{
    const struct texture_boxed *boxed = &job->boxed;

    return (z + boxed->margin) * boxed->slice + (y + boxed->margin) * boxed->row + x + boxed->margin;
}

/* -------------------------------------------------------------------------- the unions ---- */

static int
cpu_zones_open(struct kernels_lane *lane, struct error *error)
{
    struct cpu_zones *own = kernels_state(lane, KERNELS_ZONES);
    unsigned touching[ZONES_BEFORE] = {0}; /* the neighbours that touch each neighbour */

    (void)error;
    for (int i = 0; i < ZONES_BEFORE; i++)
        for (int j = 0; j < ZONES_BEFORE; j++) {
            bool touches = true;

            for (int axis = 0; axis < 3; axis++)
                touches &= abs(zones_before[i][axis] - zones_before[j][axis]) <= 1;
            touching[i] |= (unsigned)touches << j;
        }
    for (unsigned alike = 1; alike < 1u << ZONES_BEFORE; alike++) {
        const unsigned first = alike & -alike;
        unsigned together = first, before = 0; /* the neighbours that are connected to the first */

        while (together != before) {
            before = together;
            for (unsigned left = before; left; left &= left - 1)
                together |= alike & touching[__builtin_ctz(left)];
        }
        own->fewest[alike] = (uint16_t)(first | own->fewest[alike & ~together]);
    }
    return 0;
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
zones_compare(const struct zoning *job, const uint16_t *restrict own, int64_t count, unsigned asked,
              uint16_t *restrict alike)
{
    memset(alike, 0, (size_t)count * sizeof(*alike));
    for (int i = 0; i < ZONES_BEFORE; i++) {
        const uint16_t *other = own + job->before[i];
        const uint16_t bit = (uint16_t)(asked & 1u << i);

        for (int64_t x = 0; x < count && bit > 0; x++)
            alike[x] = (uint16_t)(alike[x] | (other[x] == own[x] ? bit : 0));
    }
    for (int64_t x = 0; x < count; x++)
        alike[x] = own[x] > 0 ? alike[x] : 0;
}

static void
zones_unite_slice(const struct zoning *job, int64_t z, unsigned asked)
{
    uint32_t *parents = job->own->parents;

    for (int64_t y = 0; y < job->boxed.box.size[1]; y++) {
        /* Unite voxels with the preceding neighbours in `asked`. */
        for (int64_t first = 0; first < job->boxed.box.size[0]; first += ZONES_CHUNK) {
            const int64_t left = job->boxed.box.size[0] - first;
            const int64_t count = left < ZONES_CHUNK ? left : ZONES_CHUNK;
            const int64_t voxel = zones_number(job, first, y, z);
            uint16_t alike[ZONES_CHUNK];

            zones_compare(job, job->own->levels + voxel, count, asked, alike);
            for (int64_t x = 0; x < count; x++) {
                if (asked & ZONES_OF_SLICE)
                    parents[voxel + x] = (uint32_t)(voxel + x);
                for (unsigned with = job->own->fewest[alike[x]]; with; with &= with - 1) {
                    const int64_t other = voxel + x + job->before[__builtin_ctz(with)];
                    const uint32_t a = zones_find(parents, (uint32_t)(voxel + x));
                    const uint32_t b = zones_find(parents, (uint32_t)other);

                    parents[a < b ? b : a] = a < b ? a : b;
                }
            }
        }
    }
}

static void
zones_unite_slab(void *context, int64_t slab)
{
    const struct zoning *job = context;
    const int64_t first = slab * job->slab;

    for (int64_t z = first; z < first + job->slab && z < job->boxed.box.size[2]; z++)
        zones_unite_slice(job, z,
                          z > first && !job->request->in_slice ? ZONES_OF_SLICE | ZONES_OF_OTHER : ZONES_OF_SLICE);
}

/* --------------------------------------------------------------------- the distances ---- */

/* Measures distances along a row to voxels outside the region, in both directions. */
static void
zones_measure_row(const struct zoning *job, int64_t y, int64_t z)
{
    const struct texture_box *box = &job->boxed.box;
    const struct kernels_lane *lane = &job->lane->base;
    const int64_t row = (box->first[2] + z) * lane->extent.rows + box->first[1] + y;
    uint16_t *at = job->own->distances + zones_number(job, 0, y, z), steps = 0;

    for (int64_t x = 0; x < box->size[0]; x++) {
        const int64_t column = box->first[0] + x;
        const bool inside = texture_region_word(lane, job->request->region, row, column / 64) >> column % 64 & 1;

        steps = (uint16_t)(inside ? steps + (steps < ZONES_FAR) : 0);
        at[x] = steps;
    }
    steps = 0;
    for (int64_t x = box->size[0] - 1; x >= 0; x--) {
        steps = (uint16_t)(steps < at[x] ? steps + 1 : at[x]);
        at[x] = steps;
    }
}

/* Updates a row from its neighbouring row. */
static void
zones_step(uint16_t *restrict row, const uint16_t *restrict beside, int64_t count)
{
    for (int64_t x = 0; x < count; x++) {
        const uint16_t steps = (uint16_t)(beside[x] + 1);

        row[x] = steps < row[x] ? steps : row[x];
    }
}

/* Sweeps forth and back through `count` rows, `apart` elements from each other, with zeros
 * beyond. */
static void
zones_sweep(const struct zoning *job, uint16_t *first, int64_t apart, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        zones_step(first + i * apart, first + (i - 1) * apart, job->boxed.box.size[0]);
    for (int64_t i = count - 1; i >= 0; i--)
        zones_step(first + i * apart, first + (i + 1) * apart, job->boxed.box.size[0]);
}

/* Measures slice i - margin of the box, or one of the margin. */
static void
zones_measure_slice(void *context, int64_t i)
{
    const struct zoning *job = context;
    const int64_t rows = job->boxed.box.size[1], z = i - job->boxed.margin;

    memset(job->own->distances + i * job->boxed.slice, 0, (size_t)job->boxed.slice * sizeof(*job->own->distances));
    if (z < 0 || z >= job->boxed.box.size[2])
        return;
    for (int64_t y = 0; y < rows; y++)
        zones_measure_row(job, y, z);
    zones_sweep(job, job->own->distances + zones_number(job, 0, 0, z), job->boxed.row, rows);
}

static void
zones_measure_across(void *context, int64_t y)
{
    const struct zoning *job = context;

    zones_sweep(job, job->own->distances + zones_number(job, 0, y, 0), job->boxed.slice, job->boxed.box.size[2]);
}

/* ------------------------------------------------------------------------ the result ---- */

/* A root precedes its zone. All voxels before this one already link to their root directly. */
static void
zones_add_voxel(const struct zoning *job, uint32_t voxel)
{
    uint32_t *parents = job->own->parents, root = parents[voxel];
    uint16_t *distances = job->own->distances;

    if (root == voxel) {
        parents[voxel] = ZONES_ROOT | 1;
        return;
    }
    if (!(parents[root] & ZONES_ROOT))
        root = parents[voxel] = parents[root];
    parents[root]++;
    if (job->request->distances && distances[voxel] < distances[root])
        distances[root] = distances[voxel];
}

static int
zones_tally(const struct zoning *job, struct zone_tally *tallies)
{
    const int64_t *size = job->boxed.box.size;
    int rc = 0;

    for (int64_t row = 0; row < size[1] * size[2]; row++) {
        const int64_t first = zones_number(job, 0, row % size[1], row / size[1]);

        for (int64_t voxel = first; voxel < first + job->boxed.box.size[0]; voxel++)
            if (job->own->levels[voxel] > 0)
                zones_add_voxel(job, (uint32_t)voxel);
    }
    for (int64_t row = 0; row < size[1] * size[2] && rc == 0; row++) {
        const int64_t z = row / size[1];
        const int64_t slice = job->request->per_slice ? job->boxed.box.first[2] + z : 0;
        const int64_t first = zones_number(job, 0, row % size[1], z);

        for (int64_t voxel = first; voxel < first + job->boxed.box.size[0] && rc == 0; voxel++) {
            const uint32_t level = job->own->levels[voxel], parent = job->own->parents[voxel];

            if (level == 0 || !(parent & ZONES_ROOT))
                continue;
            rc = zone_tally_add(&tallies[TEXTURE_ZONE_SIZES], texture_zone_key(slice, level, parent & ~ZONES_ROOT), 1);
            if (rc == 0 && job->request->distances)
                rc = zone_tally_add(&tallies[TEXTURE_ZONE_DISTANCES],
                                    texture_zone_key(slice, level, job->own->distances[voxel]), 1);
        }
    }
    return rc;
}

static void
cpu_zones_place(struct kernels_lane *lane, struct kernels_memory *memory)
{
    struct cpu_zones *own = kernels_state(lane, KERNELS_ZONES);

    own->levels = cpu_boxed_take(lane, memory, sizeof(*own->levels));
    own->parents = cpu_boxed_take(lane, memory, sizeof(*own->parents));
    own->distances = cpu_boxed_take(lane, memory, sizeof(*own->distances));
}

static int
cpu_zones_run(struct kernels_lane *lane, const void *given, struct error *error)
{
    const struct texture_zones_request *request = given;
    struct zoning job = {
        .lane = cpu_lane_of(lane), .request = request->zones, .own = kernels_state(lane, KERNELS_ZONES)};

    cpu_boxed_fill(job.lane, &request->zones->levels, request->zones->region, 1, job.own->levels, &job.boxed);
    if (job.boxed.box.size[0] == 0)
        return 0;
    const struct texture_boxed *boxed = &job.boxed;
    const int64_t slices = boxed->box.size[2];
    const int threads = job.lane->base.device->threads;

    for (int i = 0; i < ZONES_BEFORE; i++)
        job.before[i] = zones_before[i][0] + zones_before[i][1] * boxed->row + zones_before[i][2] * boxed->slice;
    job.slab = job.request->in_slice ? 1 : slices / (ZONES_SLABS * threads) + 1;
    cpu_pool_for(cpu_device_of(&job.lane->base)->pool, (slices + job.slab - 1) / job.slab, zones_unite_slab, &job);
    for (int64_t z = job.slab; z < slices && !job.request->in_slice; z += job.slab)
        zones_unite_slice(&job, z, ZONES_OF_OTHER);
    if (request->zones->distances) {
        /* Compute exact city-block distances to voxels outside the region, axis by axis. */
        struct cpu_pool *pool = cpu_device_of(&job.lane->base)->pool;

        cpu_pool_for(pool, job.boxed.box.size[2] + 2 * job.boxed.margin, zones_measure_slice, &job);
        if (!job.request->in_slice)
            cpu_pool_for(pool, job.boxed.box.size[1], zones_measure_across, &job);
    }
    return zones_tally(&job, request->tallies) ? kernels_no_memory(lane, error) : 0;
}

const struct kernels_op cpu_zones_op = {
    .name = "texture (zones)",
    .state_size = sizeof(struct cpu_zones),
    .transient = true,
    .open = cpu_zones_open,
    .needs = kernels_op_asked,
    .place = cpu_zones_place,
    .run = cpu_zones_run,
};
