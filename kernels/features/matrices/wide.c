/*
 * wide.c - see wide.h.
 *
 * Threads of the lane count pairs and runs by direction, and neighbours and zones by rows. They compare a row of voxels with
 * its neighbours at one offset at a time.
 */
#include "kernels/features/matrices/wide.h"

#include "kernels/features/matrices/directions.h"
#include "kernels/texture/zones/zone_tally.h"

#include <stdlib.h>
#include <string.h>

enum {
    WIDE_CHUNK = 512, /* columns with neighbours that are added up together */
    WIDE_ROWS = 16,   /* of a block */
};

#define WIDE_OTHERS ((size_t)16 << 20) /* max bytes of the counts of neighbours that parts make for themselves */

/* A region's levels, the box of its bits, and a request with its counts. Rows are those of the box, through its slices. */
struct wide {
    const uint32_t *levels;
    struct image_extent extent;
    struct texture_box box;
    int64_t rows;
    size_t level_count;
    const void *request;
    uint64_t *counts;
};

static struct wide
wide_of(const struct feature_region *region, const void *request, uint64_t *counts)
{
    struct wide wide = {.levels = region->wide,
                        .extent = feature_extent(region->volume),
                        .level_count = (size_t)region->levels,
                        .request = request,
                        .counts = counts};

    texture_box_of(region->bits, &wide.extent, &wide.box);
    wide.rows = wide.box.size[1] * wide.box.size[2];
    return wide;
}

static int64_t
wide_index(const struct wide *wide, const int64_t at[3])
{
    return (at[2] * wide->extent.rows + at[1]) * wide->extent.columns + at[0];
}

/* Rows of voxels of the box that have their neighbour at an offset in the box, too. */
struct wide_rows {
    int64_t first[3], end[3]; /* of these voxels */
    int64_t row, last;
    int64_t at[3], count; /* the row's voxels, without those at its ends that have no level */
    int64_t step;         /* to the neighbours */
    const uint32_t *own, *other;
};

/* Begins before row `first`. Rows from `end` on do not follow. */
static struct wide_rows
wide_rows_of(const struct wide *wide, struct texture_offset offset, int64_t first, int64_t end)
{
    const int64_t apart[3] = {offset.x, offset.y, offset.z};
    struct wide_rows rows = {.row = first - 1, .last = (end < wide->rows ? end : wide->rows) - 1};

    for (int axis = 0; axis < 3; axis++) {
        rows.first[axis] = wide->box.first[axis] + (apart[axis] < 0 ? -apart[axis] : 0);
        rows.end[axis] = wide->box.first[axis] + wide->box.size[axis] - (apart[axis] > 0 ? apart[axis] : 0);
    }
    rows.step = wide_index(wide, apart);
    return rows;
}

static bool
wide_next_row(const struct wide *wide, struct wide_rows *rows)
{
    rows->count = 0;
    while (rows->count <= 0 && rows->row < rows->last) {
        rows->row++;
        rows->at[0] = rows->first[0];
        rows->at[1] = wide->box.first[1] + rows->row % wide->box.size[1];
        rows->at[2] = wide->box.first[2] + rows->row / wide->box.size[1];
        if (rows->at[1] < rows->first[1] || rows->at[1] >= rows->end[1] || rows->at[2] < rows->first[2] ||
            rows->at[2] >= rows->end[2])
            continue;
        rows->count = rows->end[0] - rows->first[0];
        rows->own = wide->levels + wide_index(wide, rows->at);
        for (; rows->count > 0 && rows->own[0] == 0; rows->count--, rows->own++)
            rows->at[0]++;
        while (rows->count > 0 && rows->own[rows->count - 1] == 0)
            rows->count--;
        rows->other = rows->own + rows->step;
    }
    return rows->count > 0;
}

/* Voxels first .. end - 1 of a row. */
struct wide_span {
    int64_t first, end;
};

/* Returns which of `count` voxels of a row, from `there` on, are in the box. */
static struct wide_span
wide_span_of(const struct wide *wide, const int64_t there[3], int64_t count)
{
    const int64_t *size = wide->box.size, *first = wide->box.first;
    const int64_t x = there[0] - first[0], y = there[1] - first[1], z = there[2] - first[2];

    if (y < 0 || y >= size[1] || z < 0 || z >= size[2])
        return (struct wide_span){0, 0};
    return (struct wide_span){x < 0 ? -x : 0, size[0] - x < count ? size[0] - x : count};
}

#define WIDE_EACH_ROW(wide, offset, first, end, rows)                                                                  \
    for (struct wide_rows rows = wide_rows_of(wide, offset, first, end); wide_next_row(wide, &(rows));)

static const struct texture_offset wide_own = {0, 0, 0};

static void
wide_glcm_direction(void *context, int64_t direction)
{
    const struct wide *wide = context;
    const struct texture_glcm *request = wide->request;
    const size_t levels = wide->level_count;

    WIDE_EACH_ROW(wide, request->offsets[direction], 0, wide->rows, rows)
    {
        const size_t slice = request->per_slice ? (size_t)rows.at[2] : 0;
        uint64_t *counts = wide->counts + (slice * request->offset_count + (size_t)direction) * levels * levels;

        for (int64_t x = 0; x < rows.count; x++)
            if (rows.own[x] > 0 && rows.other[x] > 0)
                counts[(rows.own[x] - 1) * levels + rows.other[x] - 1]++;
    }
}

void
wide_glcm(const struct feature_region *region, const struct texture_glcm *request, uint64_t *counts)
{
    struct wide wide = wide_of(region, request, counts);

    kernels_lane_for(region->volume->lane, (int64_t)request->offset_count, wide_glcm_direction, &wide);
}

/* Returns the counts of a level's runs by length. */
static uint64_t *
wide_run_counts(const struct wide *wide, int64_t z, size_t direction, uint32_t level)
{
    const struct texture_runs *request = wide->request;
    const size_t matrix = (request->per_slice ? (size_t)z : 0) * request->direction_count + direction;

    return wide->counts + (matrix * wide->level_count + level - 1) * (size_t)request->longest;
}

/* Returns the length of the run that begins at a voxel, which is at least 2. */
static int64_t
wide_run(const struct wide *wide, const int64_t at[3], const struct texture_offset *step)
{
    const int64_t steps[3] = {step->x, step->y, step->z}, apart = wide_index(wide, steps);
    const uint32_t *own = wide->levels + wide_index(wide, at);
    int64_t room = INT64_MAX, length = 2; /* room: voxels of the box along the step */

    for (int axis = 0; axis < 3; axis++) {
        const int64_t before = at[axis] - wide->box.first[axis];
        const int64_t along = steps[axis] < 0 ? before + 1 : wide->box.size[axis] - before;

        room = steps[axis] != 0 && along < room ? along : room;
    }
    while (length < room && own[length * apart] == own[0])
        length++;
    return length;
}

static void
wide_runs_direction(void *context, int64_t direction)
{
    const struct wide *wide = context;
    const struct texture_runs *request = wide->request;
    const struct texture_offset *step = &request->directions[direction];

    WIDE_EACH_ROW(wide, *step, 0, wide->rows, rows)
    for (int64_t first = 0; first < rows.count; first += WIDE_CHUNK) {
        const int64_t count = rows.count - first < WIDE_CHUNK ? rows.count - first : WIDE_CHUNK;
        const int64_t at[3] = {rows.at[0] + first, rows.at[1], rows.at[2]};
        const uint32_t *own = rows.own + first, *other = rows.other + first;
        const struct wide_span inside =
            wide_span_of(wide, (int64_t[3]){at[0] - step->x, at[1] - step->y, at[2] - step->z}, count);
        uint8_t begins[WIDE_CHUNK]; /* 1 where a run of more than one voxel begins */

        for (int64_t x = 0; x < count; x++)
            begins[x] = (own[x] > 0) & (own[x] == other[x]);
        for (int64_t x = inside.first; x < inside.end; x++)
            begins[x] &= own[x] != own[x - rows.step];
        for (int64_t x = 0; x < count; x++)
            if (begins[x]) {
                const int64_t length = wide_run(wide, (int64_t[3]){at[0] + x, at[1], at[2]}, step);
                uint64_t *counts = wide_run_counts(wide, at[2], (size_t)direction, own[x]);

                counts[length - 1]++;
                counts[0] -= (uint64_t)length;
            }
    }
}

void
wide_runs(const struct feature_region *region, const struct texture_runs *request, uint64_t *counts)
{
    struct wide wide = wide_of(region, request, counts);

    /* All voxels are runs of one, until longer ones are found. */
    WIDE_EACH_ROW(&wide, wide_own, 0, wide.rows, rows)
    for (int64_t x = 0; x < rows.count; x++)
        if (rows.own[x] > 0)
            wide_run_counts(&wide, rows.at[2], 0, rows.own[x])[0]++;
    for (int64_t z = 0; z < (request->per_slice ? wide.extent.slices : 1); z++)
        for (size_t d = 1; d < request->direction_count; d++)
            for (uint32_t level = 1; level <= wide.level_count; level++)
                wide_run_counts(&wide, z, d, level)[0] = wide_run_counts(&wide, z, 0, level)[0];
    kernels_lane_for(region->volume->lane, (int64_t)request->direction_count, wide_runs_direction, &wide);
}

/* Sums for the voxels of a chunk. */
struct wide_sums {
    uint32_t present[WIDE_CHUNK], alike[WIDE_CHUNK], sum[WIDE_CHUNK];
};

/* Adds a neighbour of each voxel; voxels without a level also get sums. */
static void
wide_add_neighbour(const uint32_t *restrict own, const uint32_t *restrict other, int64_t count, uint32_t alpha,
                   uint32_t *restrict present, uint32_t *restrict alike, uint32_t *restrict sum)
{
    for (int64_t x = 0; x < count; x++) {
        const uint32_t there = other[x] > 0, near = other[x] - own[x] + alpha <= 2 * alpha;

        present[x] += there;
        alike[x] += there & near;
        sum[x] += other[x];
    }
}

/* Adds up the neighbours of voxels of a row, from at on. */
static void
wide_add_neighbours(const struct wide *wide, const int64_t at[3], int64_t count, struct wide_sums *sums)
{
    const struct texture_neighbours *request = wide->request;
    const int64_t reach = request->distance, deep = request->in_slice ? 0 : reach;
    const uint32_t *own = wide->levels + wide_index(wide, at);

    memset(sums, 0, sizeof(*sums));
    for (int64_t z = -deep; z <= deep; z++)
        for (int64_t y = -reach; y <= reach; y++)
            for (int64_t x = -reach; x <= reach; x++) {
                const struct wide_span inside =
                    wide_span_of(wide, (int64_t[3]){at[0] + x, at[1] + y, at[2] + z}, count);
                const int64_t first = inside.first, apart = wide_index(wide, (int64_t[3]){x, y, z});

                if (x != 0 || y != 0 || z != 0)
                    wide_add_neighbour(own + first, own + first + apart, inside.end - first, (uint32_t)request->alpha,
                                       sums->present + first, sums->alike + first, sums->sum + first);
            }
}

/* Neighbours that parts count, each in every so many blocks of rows. */
struct wide_neighbouring {
    struct wide wide;
    size_t width, plane; /* of a level; of a kind */
    int64_t parts, block;
    bool per_slice;   /* each block is a slice with its own counts */
    uint64_t *others; /* counts of all parts but the first, unless per_slice */
};

static void
wide_count_neighbours(const struct wide_neighbouring *job, const uint32_t *own, int64_t count,
                      const struct wide_sums *sums, uint64_t *counts)
{
    for (int64_t x = 0; x < count; x++) {
        if (own[x] == 0)
            continue;
        uint64_t *of_level = counts + (own[x] - 1) * job->width;

        of_level[TEXTURE_ALIKE * job->plane + sums->alike[x]]++;
        of_level[TEXTURE_PRESENT * job->plane + sums->present[x]]++;
        of_level[TEXTURE_DEVIATION * job->plane + sums->present[x]] +=
            (uint64_t)llabs((int64_t)sums->present[x] * own[x] - (int64_t)sums->sum[x]);
    }
}

static void
wide_neighbours_part(void *context, int64_t part)
{
    const struct wide_neighbouring *job = context;
    const struct wide *wide = &job->wide;
    const size_t entries = TEXTURE_NEIGHBOUR_KINDS * job->plane;
    struct wide_sums sums;

    for (int64_t block = part; block * job->block < wide->rows; block += job->parts)
        WIDE_EACH_ROW(wide, wide_own, block * job->block, (block + 1) * job->block, rows)
    for (int64_t first = 0; first < rows.count; first += WIDE_CHUNK) {
        const int64_t count = rows.count - first < WIDE_CHUNK ? rows.count - first : WIDE_CHUNK;
        uint64_t *counts = part > 0 ? job->others + (size_t)(part - 1) * entries : wide->counts;

        if (job->per_slice)
            counts = wide->counts + (size_t)rows.at[2] * entries;
        wide_add_neighbours(wide, (int64_t[3]){rows.at[0] + first, rows.at[1], rows.at[2]}, count, &sums);
        wide_count_neighbours(job, rows.own + first, count, &sums, counts);
    }
}

void
wide_neighbours(const struct feature_region *region, const struct texture_neighbours *request, uint64_t *counts)
{
    const struct kernels_lane *lane = region->volume->lane;
    struct wide_neighbouring job = {.wide = wide_of(region, request, counts),
                                    .width = texture_neighbours_width(request),
                                    .parts = kernels_lane_threads(lane),
                                    .per_slice = request->per_slice && region->volume->slices > 1};

    job.plane = job.wide.level_count * job.width;
    const size_t entries = TEXTURE_NEIGHBOUR_KINDS * job.plane;
    const int64_t fit = 1 + (int64_t)(WIDE_OTHERS / (entries * sizeof(*counts)));

    job.block = job.per_slice ? job.wide.box.size[1] : WIDE_ROWS;
    if (!job.per_slice) {
        job.parts = job.parts < fit ? job.parts : fit;
        job.others = calloc((size_t)(job.parts - 1) * entries, sizeof(*job.others));
        job.parts = job.others ? job.parts : 1;
    }
    kernels_lane_for(lane, job.parts, wide_neighbours_part, &job);
    for (size_t i = 0; job.others && i < (size_t)(job.parts - 1) * entries; i++)
        counts[i % entries] += job.others[i];
    free(job.others);
}

/* ---- zones ---- */

#define WIDE_ROOT UINT32_C(0x80000000) /* marks the first voxel of a zone; the rest is its size */

/* Per voxel of the volume: `parents` has a voxel of its zone with a smaller index, or itself, and `distances` its distance. */
struct wide_zoning {
    struct wide wide;
    const uint64_t *bits;
    struct directions directions;
    uint32_t *parents, *distances; /* distances: NULL if they are not requested */
    int axis;                      /* along which distances are lowered */
};

/* Lowers the distances along a line, in both directions, by city-block steps. Lines along rows first set them: 0 outside the
 * region. */
static void
wide_sweep(void *context, int64_t line)
{
    const struct wide_zoning *zoning = context;
    const struct image_extent *extent = &zoning->wide.extent;
    const int64_t sides[3] = {extent->columns, extent->rows, extent->slices};
    const int64_t strides[3] = {1, extent->columns, image_slice_voxels(extent)};
    const int64_t side = sides[zoning->axis], stride = strides[zoning->axis];
    uint32_t *first = zoning->distances + line / stride * stride * side + line % stride;

    for (int64_t x = 0; x < side && zoning->axis == 0; x++)
        first[x] = image_has(zoning->bits, side, line, x) ? UINT32_MAX : 0;
    for (int back = 0; back < 2; back++) {
        uint32_t steps = 0;

        for (int64_t i = 0; i < side; i++) {
            uint32_t *at = first + (back ? side - 1 - i : i) * stride;

            steps = steps + 1 < *at ? steps + 1 : *at;
            *at = steps;
        }
    }
}

/* Returns the first voxel so far of a voxel's zone. Other threads may unite zones meanwhile. */
static uint32_t
wide_root(uint32_t *parents, uint32_t voxel)
{
    uint32_t parent, next;

    while ((parent = __atomic_load_n(&parents[voxel], __ATOMIC_RELAXED)) != voxel) {
        next = __atomic_load_n(&parents[parent], __ATOMIC_RELAXED);
        if (next != parent)
            __atomic_store_n(&parents[voxel], next, __ATOMIC_RELAXED);
        voxel = parent;
    }
    return voxel;
}

/* Unites two zones. The root with the smaller index becomes that of both, so that threads may unite in any order. */
static void
wide_unite(uint32_t *parents, uint32_t a, uint32_t b)
{
    while ((a = wide_root(parents, a)) != (b = wide_root(parents, b))) {
        uint32_t larger = a < b ? b : a;

        __atomic_compare_exchange_n(&parents[larger], &larger, a < b ? a : b, false, __ATOMIC_RELAXED,
                                    __ATOMIC_RELAXED);
    }
}

static void
wide_begin_zones(void *context, int64_t part)
{
    const struct wide_zoning *zoning = context;

    WIDE_EACH_ROW(&zoning->wide, wide_own, part * WIDE_ROWS, (part + 1) * WIDE_ROWS, rows)
    for (int64_t x = 0, i = rows.own - zoning->wide.levels; x < rows.count; x++, i++)
        zoning->parents[i] = (uint32_t)i;
}

/* Skips pairs that the pairs before them in both rows connect: the first direction is along rows. */
static void
wide_unite_zones(void *context, int64_t part)
{
    const struct wide_zoning *zoning = context;

    for (size_t d = 0; d < zoning->directions.count; d++)
        WIDE_EACH_ROW(&zoning->wide, zoning->directions.offsets[d], part * WIDE_ROWS, (part + 1) * WIDE_ROWS, rows)
    for (int64_t x = 0, i = rows.own - zoning->wide.levels; x < rows.count; x++, i++)
        if (rows.own[x] > 0 && rows.own[x] == rows.other[x] &&
            (d == 0 || x == 0 || rows.own[x] != rows.own[x - 1] || rows.own[x] != rows.other[x - 1]))
            wide_unite(zoning->parents, (uint32_t)i, (uint32_t)(i + rows.step));
}

/* Adds up the voxels of the zones in their roots. All voxels before this one already link to their root directly. */
static void
wide_add_voxel(const struct wide_zoning *zoning, int64_t voxel)
{
    uint32_t *parents = zoning->parents, *distances = zoning->distances, root = parents[voxel];

    if (root == voxel) {
        parents[voxel] = WIDE_ROOT | 1;
        return;
    }
    if (!(parents[root] & WIDE_ROOT))
        root = parents[voxel] = parents[root];
    parents[root]++;
    if (distances && distances[voxel] < distances[root])
        distances[root] = distances[voxel];
}

static int
wide_tally(const struct wide_zoning *zoning, const struct texture_zones *request, struct zone_tally *tallies)
{
    const struct wide *wide = &zoning->wide;
    int rc = 0;

    WIDE_EACH_ROW(wide, wide_own, 0, wide->rows, rows)
    for (int64_t x = 0; x < rows.count; x++)
        wide_add_voxel(zoning, rows.own - wide->levels + x);
    WIDE_EACH_ROW(wide, wide_own, 0, wide->rows, rows)
    for (int64_t x = 0, i = rows.own - wide->levels; x < rows.count && rc == 0; x++, i++) {
        const uint64_t slice = request->per_slice ? (uint64_t)rows.at[2] : 0;
        const uint64_t group = (slice << WIDE_ZONE_LEVEL_BITS | rows.own[x]) << WIDE_ZONE_VALUE_BITS;

        if (rows.own[x] == 0 || !(zoning->parents[i] & WIDE_ROOT))
            continue;
        rc = zone_tally_add(&tallies[TEXTURE_ZONE_SIZES], group | (zoning->parents[i] & ~WIDE_ROOT), 1);
        if (zoning->distances && rc == 0)
            rc = zone_tally_add(&tallies[TEXTURE_ZONE_DISTANCES], group | zoning->distances[i], 1);
    }
    return rc;
}

int
wide_zones(const struct feature_region *region, const struct texture_zones *request,
           struct texture_zone_list lists[TEXTURE_ZONE_KINDS], struct error *error)
{
    const struct kernels_lane *lane = region->volume->lane;
    struct wide_zoning zoning = {.wide = wide_of(region, NULL, NULL), .bits = region->bits};
    const struct image_extent *extent = &zoning.wide.extent;
    const int64_t sides[3] = {extent->columns, extent->rows, extent->slices}, voxels = image_voxels(extent);
    const int64_t parts = (zoning.wide.rows + WIDE_ROWS - 1) / WIDE_ROWS;
    const struct glcm_options near = {.aggregation =
                                          request->in_slice ? AGGREGATION_2D_AVERAGED : AGGREGATION_3D_AVERAGED,
                                      .distances = (int[]){1},
                                      .distance_count = 1};
    struct zone_tally tallies[TEXTURE_ZONE_KINDS] = {{.room = 0}};
    int rc;

    if (voxels >= INT64_C(1) << WIDE_ZONE_VALUE_BITS)
        return error_set(error, -E2BIG, CODE_VOLUME_TOO_LARGE, "zones of more than %d levels exceed 2^31 voxels",
                         TEXTURE_MAX_LEVELS);
    directions_make(&near, 0, &zoning.directions);
    zoning.parents = malloc((size_t)voxels * sizeof(*zoning.parents));
    zoning.distances = request->distances ? malloc((size_t)voxels * sizeof(*zoning.distances)) : NULL;
    rc = zoning.parents && (zoning.distances || !request->distances) ? 0 : -ENOMEM;
    if (rc == 0) {
        kernels_lane_for(lane, parts, wide_begin_zones, &zoning);
        kernels_lane_for(lane, parts, wide_unite_zones, &zoning);
        for (; zoning.distances && zoning.axis < (request->in_slice ? 2 : 3); zoning.axis++)
            kernels_lane_for(lane, voxels / sides[zoning.axis], wide_sweep, &zoning);
        rc = wide_tally(&zoning, request, tallies);
    }
    for (int kind = 0; kind < TEXTURE_ZONE_KINDS; kind++)
        if (rc == 0)
            zone_tally_list(&tallies[kind], &lists[kind]);
        else
            free(tallies[kind].zones);
    free(zoning.parents);
    free(zoning.distances);
    return rc ? error_set_system(error, rc, "count zones") : 0;
}
