/*
 * fuzzy_cpu.c - fuzzy connectedness on the CPU, exact, in time linear in the volume.
 *
 * A single object is one flood (edge_flood.c) over the edges with an affinity above its threshold.
 * A map is found bit by bit, the highest first. `own` has the higher bits of each voxel. The next
 * bit, `step`, is set where a path with all affinities at least own + step reaches the voxel. The
 * last part of such a path runs over strong enough edges through voxels with the same known bits.
 * It begins at a seed, or at a strong enough edge from a voxel with larger known bits. Each bit is
 * therefore one flood over all voxels, sixteen in total. The map of a thin or small object is grown
 * voxel by voxel instead (fuzzy_grow_cpu.c).
 *
 * Competing objects are found one after the other, keeping the strongest strength so far.
 */
#include "kernels/cpu/device.h"
#include "kernels/fuzzy/affinity.h"
#include "kernels/fuzzy/edge_flood.h"
#include "kernels/fuzzy/fuzzy.h"
#include "kernels/fuzzy/fuzzy_grow_cpu.h"
#include "kernels/fuzzy/seeds.h"
#include "kernels/range/range.h"

#include <errno.h>
#include <string.h>

enum {
    CHUNK = 512,  /* columns per step, whose affinities fit in the L1 cache */
    SIDE = 32,    /* rows, and slices, per block of a thread */
    BESIDE = 32,  /* readable elements before and after a map or affinities */
    TOP_BIT = 15, /* of a strength */
    STRONGEST = 65535,
};

struct cpu_fuzzy {
    struct kernels_fuzzy_demand demand;
    double *first; /* the tables of affinity.h, sized for any span of the pixel type */
    double *second;
    uint64_t **objects;    /* one packed volume per object */
    uint64_t *edge[3];     /* packed, of one step */
    uint64_t *settled;     /* packed, of one step; NULL if no map is computed */
    void *space;           /* tiles_space bytes */
    uint16_t *affinity[3]; /* one per voxel, with the next one along an axis; NULL as settled */
    uint32_t *buckets;     /* voxels by strength; NULL as settled */
    uint16_t *maps;        /* the requested maps, and one for work if others are computed */
    uint16_t *best;        /* strongest so far of several objects; NULL if no objects compete */
};

/* Returns the elements from one map to the next. */
static size_t
map_stride(const struct kernels_lane *lane)
{
    return ((size_t)image_voxels(&lane->extent) + 3 * BESIDE - 1) / BESIDE * BESIDE;
}

static bool
objects_compete(const struct kernels_fuzzy_demand *demand)
{
    return demand->relative && demand->objects > 1;
}

static bool
cpu_fuzzy_needs(struct kernels_lane *lane, const void *demand)
{
    struct cpu_fuzzy *own = kernels_state(lane, KERNELS_FUZZY);

    own->demand = *(const struct kernels_fuzzy_demand *)demand;
    return true;
}

static void
cpu_fuzzy_place(struct kernels_lane *lane, struct kernels_memory *memory)
{
    struct cpu_fuzzy *fuzzy = kernels_state(lane, KERNELS_FUZZY);
    const struct kernels_fuzzy_demand demand = fuzzy->demand;
    struct kernels_arena *arena = &memory->host;
    struct bits_extent extent = bits_extent(lane->extent.columns, lane->extent.rows, lane->extent.slices);
    size_t words = (size_t)bits_words(&extent);
    /* The requested maps, and one for work if others are computed. */
    size_t maps = demand.maps + (objects_compete(&demand) && demand.maps < demand.objects);
    size_t span = lane->pixel == IMAGE_UINT8 ? UINT8_MAX : UINT16_MAX;
    size_t stride = map_stride(lane), count = demand.objects;
    uint64_t *objects;
    uint16_t *affinity;

    *fuzzy = (struct cpu_fuzzy){.demand = demand};
    fuzzy->first = kernels_take(arena, 2 * span + 1, sizeof(*fuzzy->first));
    fuzzy->second = kernels_take(arena, span + 1, sizeof(*fuzzy->second));
    fuzzy->objects = kernels_take(arena, count, sizeof(*fuzzy->objects));
    objects = kernels_take(arena, count, words * sizeof(*objects));
    for (size_t i = 0; arena->memory && i < count; i++)
        fuzzy->objects[i] = objects + i * words;
    for (int axis = 0; axis < 3; axis++)
        fuzzy->edge[axis] = kernels_take(arena, words, sizeof(*fuzzy->edge[axis]));
    fuzzy->space = kernels_take(arena, tiles_space(&extent), 1);
    if (maps == 0)
        return;
    fuzzy->settled = kernels_take(arena, words, sizeof(*fuzzy->settled));
    affinity = kernels_take(arena, stride, 3 * sizeof(*affinity));
    for (int axis = 0; arena->memory && axis < 3; axis++)
        fuzzy->affinity[axis] = affinity + (size_t)axis * stride;
    fuzzy->buckets = kernels_take(arena, FUZZY_STRENGTHS, sizeof(*fuzzy->buckets));
    fuzzy->maps = kernels_take(arena, maps, stride * sizeof(*fuzzy->maps));
    if (objects_compete(&demand))
        fuzzy->best = kernels_take(arena, stride, sizeof(*fuzzy->best));
}

struct run;

typedef void row_function(const struct run *run, int64_t row);

/* State of one object's computation. */
struct run {
    struct cpu_lane *lane;
    const struct cpu_fuzzy *fuzzy;
    const struct isa *isa;
    struct bits_extent extent;
    const struct kernels_fuzzy_object *object;
    struct fuzzy_tables tables;
    bool padded;
    uint16_t *map;  /* NULL: only the object is requested */
    uint64_t *bits; /* the object */
    size_t index;
    int64_t *voxels; /* number of voxels of the object */
    uint16_t step;   /* the current bit of the map */
    uint16_t raised; /* the previous bit */
    row_function *ahead;
    row_function *row;
};

/* Runs a block's rows of one slice. */
static void
run_slice(const struct run *run, row_function *row, int64_t y, int64_t z)
{
    const int64_t *size = run->extent.size;
    int64_t end = y + SIDE < size[1] ? y + SIDE : size[1];

    for (; row && y < end; y++)
        row(run, z * size[1] + y);
}

/* Processes slice after slice, so that rows shared with neighbouring slices stay in the cache. */
static void
run_block(void *context, int64_t block)
{
    const struct run *run = context;
    const int64_t *size = run->extent.size;
    int64_t across = (size[1] + SIDE - 1) / SIDE;
    int64_t y = block % across * SIDE, z = block / across * SIDE;
    int64_t end = z + SIDE < size[2] ? z + SIDE : size[2];

    run_slice(run, run->ahead, y, z);
    for (; z < end; z++) {
        if (z + 1 < end)
            run_slice(run, run->ahead, y, z + 1);
        run_slice(run, run->row, y, z);
    }
}

/* Runs `row` on every row, on all threads. Before a row, runs `ahead` (unless NULL) on its block's
 * rows in its own slice and the adjacent ones. */
static void
cpu_fuzzy_each_row(struct run *run, row_function *ahead, row_function *row)
{
    const int64_t *size = run->extent.size;
    int64_t blocks = ((size[1] + SIDE - 1) / SIDE) * ((size[2] + SIDE - 1) / SIDE);

    run->ahead = ahead;
    run->row = row;
    cpu_pool_for(cpu_device_of(&run->lane->base)->pool, blocks, run_block, run);
}

/* Stored values of a part of a row, relative to the smallest, and a mask of those that are not
 * padding (all ones or 0). Padding counts as 0, since it may lie outside the tables. */
struct values {
    uint16_t above[CHUNK + 1];
    uint16_t valid[CHUNK + 1];
};

/* Loads a value and its padding mask. */
TILES_INLINE void
load_value(int32_t value, int32_t low, struct image_range padding, int64_t i, struct values *values)
{
    bool valid = value < padding.lo || value > padding.hi;

    values->above[i] = valid ? (uint16_t)(value - low) : 0;
    values->valid[i] = valid ? UINT16_MAX : 0;
}

static void
cpu_fuzzy_load_values(const struct run *run, int64_t first, int64_t count, struct values *values)
{
    const void *voxels = run->lane->voxels.memory;
    struct image_range padding = run->object->padding;
    int32_t low = run->tables.low;

    switch (run->lane->base.pixel) {
    case IMAGE_UINT8:
        for (int64_t i = 0; i < count; i++)
            load_value(((const uint8_t *)voxels)[first + i], low, padding, i, values);
        break;
    case IMAGE_INT16:
        for (int64_t i = 0; i < count; i++)
            load_value(((const int16_t *)voxels)[first + i], low, padding, i, values);
        break;
    case IMAGE_UINT16:
        for (int64_t i = 0; i < count; i++)
            load_value(((const uint16_t *)voxels)[first + i], low, padding, i, values);
        break;
    }
}

/* Computes the affinities of `count` voxels with those at b. */
static void
find_affinity(const struct run *run, const struct values *a, const struct values *b, int64_t shift, int64_t count,
              uint16_t *affinity)
{
    const struct isa_pair pair = {a->above, b->above + shift, run->tables.first, run->tables.second};

    run->isa->affinity16(&pair, count, affinity);
    if (!run->padded)
        return;
    for (int64_t i = 0; i < count; i++)
        affinity[i] &= a->valid[i] & b->valid[shift + i];
}

/* A part of a row, and its affinities with the next voxels along each axis. */
struct chunk {
    int64_t row;
    int64_t from;
    int64_t count;
    uint16_t *affinity[3];
};

/* At the end of the volume, the affinity is 0. */
static void
find_affinities(const struct run *run, const struct chunk *chunk)
{
    const struct bits_extent *extent = &run->extent;
    int64_t columns = extent->size[0], rows = extent->size[1], count = chunk->count;
    int64_t first = chunk->row * columns + chunk->from;
    bool ends = chunk->from + count == columns;
    bool next[2] = {chunk->row % rows + 1 < rows, chunk->row / rows + 1 < extent->size[2]};
    int64_t step[2] = {columns, columns * rows};
    struct values own, other;

    cpu_fuzzy_load_values(run, first, count + !ends, &own);
    find_affinity(run, &own, &own, 1, count - ends, chunk->affinity[0]);
    if (ends)
        chunk->affinity[0][count - 1] = 0;
    for (int i = 0; i < 2; i++) {
        if (next[i]) {
            cpu_fuzzy_load_values(run, first + step[i], count, &other);
            find_affinity(run, &own, &other, 0, count, chunk->affinity[1 + i]);
        } else {
            memset(chunk->affinity[1 + i], 0, (size_t)count * sizeof(uint16_t));
        }
    }
}

static struct chunk
chunk_at(const struct run *run, int64_t row, int64_t from)
{
    int64_t left = run->extent.size[0] - from;

    return (struct chunk){.row = row, .from = from, .count = left < CHUNK ? left : CHUNK};
}

/* Stores the affinities of a row for sixteen floods. */
static void
keep_affinities(const struct run *run, int64_t row)
{
    int64_t columns = run->extent.size[0];

    for (int64_t from = 0; from < columns; from += CHUNK) {
        struct chunk chunk = chunk_at(run, row, from);

        for (int axis = 0; axis < 3; axis++)
            chunk.affinity[axis] = run->fuzzy->affinity[axis] + BESIDE + row * columns + from;
        find_affinities(run, &chunk);
    }
}

/* Finds the edges of a row with an affinity above the threshold. */
static void
find_strong_edges(const struct run *run, int64_t row)
{
    static const uint16_t zeros[CHUNK];
    uint16_t affinity[3][CHUNK];
    uint64_t none[CHUNK / 64] = {0};

    for (int64_t from = 0; from < run->extent.size[0]; from += CHUNK) {
        struct chunk chunk = chunk_at(run, row, from);
        int64_t at = row * run->extent.words_per_row + from / 64;

        for (int axis = 0; axis < 3; axis++)
            chunk.affinity[axis] = affinity[axis];
        find_affinities(run, &chunk);
        for (int axis = 0; axis < 3; axis++) {
            const struct isa_join join = {zeros, zeros, affinity[axis], (uint16_t)(run->object->threshold + 1)};

            run->isa->join16(&join, chunk.count, run->fuzzy->edge[axis] + at, none);
        }
    }
}

/* Finds the edges of a row to the next voxels along an axis, between voxels with equal known bits.
 * Also finds the voxels that one of their two neighbours on the axis settles directly. */
static void
join_along(const struct run *run, int64_t row, int axis, bool has_before, bool has_next)
{
    const struct cpu_fuzzy *fuzzy = run->fuzzy;
    int64_t columns = run->extent.size[0], words = run->extent.words_per_row;
    int64_t step = axis == 0 ? 1 : axis == 1 ? columns : columns * run->extent.size[1];
    const uint16_t *own = run->map + row * columns;
    const uint16_t *affinity = fuzzy->affinity[axis] + BESIDE + row * columns;
    const struct isa_join next = {own, own + step, affinity, run->step};
    const struct isa_join before = {own, own - step, affinity - step, run->step};
    uint64_t *edges = fuzzy->edge[axis] + row * words, *settled = fuzzy->settled + row * words;

    if (has_next)
        run->isa->join16(&next, columns, edges, settled);
    else
        memset(edges, 0, (size_t)words * sizeof(*edges));
    if (has_before)
        run->isa->join16(&before, columns, NULL, settled);
}

/* Affinities beyond the ends of a row are 0: the one after it, and the last one of the previous
 * row. */
static void
join_row(const struct run *run, int64_t row)
{
    int64_t words = run->extent.words_per_row;
    int64_t y = row % run->extent.size[1], z = row / run->extent.size[1];

    memset(run->fuzzy->settled + row * words, 0, (size_t)words * sizeof(uint64_t));
    join_along(run, row, 0, true, true);
    join_along(run, row, 1, y > 0, y + 1 < run->extent.size[1]);
    join_along(run, row, 2, z > 0, z + 1 < run->extent.size[2]);
}

static void
raise_row(const struct run *run, int64_t row)
{
    int64_t columns = run->extent.size[0];

    run->isa->raise16(run->fuzzy->settled + row * run->extent.words_per_row, columns, run->raised,
                      run->map + row * columns);
}

/* Returns whether other blocks read the row while they join their rows: neighbouring blocks, or,
 * for the last row of a slice, the block with the first row of the next slice. */
static bool
is_outer(const struct run *run, int64_t row)
{
    int64_t y = row % run->extent.size[1], z = row / run->extent.size[1] % SIDE;

    return y % SIDE == 0 || y % SIDE == SIDE - 1 || y + 1 == run->extent.size[1] || z == 0 || z == SIDE - 1;
}

static void
raise_outer_row(const struct run *run, int64_t row)
{
    if (is_outer(run, row))
        raise_row(run, row);
}

static void
raise_inner_row(const struct run *run, int64_t row)
{
    if (!is_outer(run, row))
        raise_row(run, row);
}

static void
clear_map(const struct run *run, int64_t row)
{
    int64_t columns = run->extent.size[0];

    memset(run->map + row * columns, 0, (size_t)columns * sizeof(*run->map));
}

static void
cpu_fuzzy_settle_seeds(const struct run *run, uint64_t *bits)
{
    for (size_t i = 0; i < run->object->seed_count; i++) {
        const struct kernels_voxel *seed = &run->object->seeds[i];
        int64_t row = seed->z * run->extent.size[1] + seed->y;

        bits[row * run->extent.words_per_row + seed->x / 64] |= UINT64_C(1) << seed->x % 64;
    }
    for (int64_t i = 0; run->object->start && i < bits_words(&run->extent); i++)
        bits[i] |= run->object->start[i];
}

static void
cpu_fuzzy_flood(const struct run *run, uint64_t *settled, const struct tiles_box *box)
{
    const struct cpu_fuzzy *fuzzy = run->fuzzy;
    const struct edge_volume volume = {
        .extent = run->extent,
        .edge = {fuzzy->edge[0], fuzzy->edge[1], fuzzy->edge[2]},
        .settled = settled,
        .space = fuzzy->space,
    };

    edge_flood_run(&volume, box, run->isa, cpu_device_of(&run->lane->base)->pool);
}

/* The memory of the affinities, which is contiguous, serves as work space before they are
 * stored. */
static bool
grow_map(const struct run *run)
{
    const struct kernels_lane *lane = &run->lane->base;
    const struct cpu_fuzzy *fuzzy = run->fuzzy;
    const struct fuzzy_growth growth = {
        .extent = lane->extent,
        .pixel = lane->pixel,
        .voxels = run->lane->voxels.memory,
        .object = run->object,
        .tables = run->tables,
        .map = run->map,
        .buckets = fuzzy->buckets,
        .space = fuzzy->affinity[0],
        .space_size = 3 * map_stride(lane) * sizeof(uint16_t),
    };

    return fuzzy_grow(&growth);
}

static void
flood_map(struct run *run)
{
    const int64_t *size = run->extent.size;
    const struct tiles_box all = {{0, 0, 0}, {size[0] - 1, size[1] - 1, size[2] - 1}};

    cpu_fuzzy_each_row(run, NULL, keep_affinities);
    run->fuzzy->affinity[0][BESIDE - 1] = 0; /* the one before the first row */
    cpu_fuzzy_each_row(run, NULL, clear_map);
    for (int bit = TOP_BIT; bit >= 0; bit--) {
        run->step = (uint16_t)(1U << bit);
        /* Raise the voxels settled by the previous flood shortly before they are joined, while they are in the cache.
         * Rows that several blocks read are raised first. */
        if (bit < TOP_BIT)
            cpu_fuzzy_each_row(run, NULL, raise_outer_row);
        cpu_fuzzy_each_row(run, bit < TOP_BIT ? raise_inner_row : NULL, join_row);
        cpu_fuzzy_settle_seeds(run, run->fuzzy->settled);
        cpu_fuzzy_flood(run, run->fuzzy->settled, &all);
        run->raised = run->step;
    }
    cpu_fuzzy_each_row(run, NULL, raise_row);
}

/* Without a map. No strength exceeds the highest threshold. */
static void
find_object(struct run *run)
{
    struct tiles_box box = {{INT64_MAX, INT64_MAX, INT64_MAX}, {-1, -1, -1}};
    struct fuzzy_seeds seeds = fuzzy_seeds_of(run->object, &run->lane->base.extent);
    struct kernels_voxel seed;

    while (fuzzy_seeds_next(&seeds, &seed)) {
        const int64_t at[3] = {seed.x, seed.y, seed.z};

        for (int axis = 0; axis < 3; axis++) {
            box.first[axis] = at[axis] < box.first[axis] ? at[axis] : box.first[axis];
            box.last[axis] = at[axis] > box.last[axis] ? at[axis] : box.last[axis];
        }
    }

    memset(run->bits, 0, (size_t)bits_words(&run->extent) * sizeof(*run->bits));
    if (box.last[0] < 0 || run->object->threshold == STRONGEST) /* no seed */
        return;
    cpu_fuzzy_each_row(run, NULL, find_strong_edges);
    cpu_fuzzy_settle_seeds(run, run->bits);
    cpu_fuzzy_flood(run, run->bits, &box);
}

/* Finds the voxels of a row with a strength above the threshold. */
static void
cut_row(const struct run *run, int64_t row)
{
    int64_t columns = run->extent.size[0], words = run->extent.words_per_row;
    uint16_t threshold = run->object->threshold;
    const struct isa_interval above = {(uint16_t)(threshold + 1), (uint16_t)(STRONGEST - threshold - 1)};
    const struct isa_interval pass[2] = {above, above};
    uint64_t *bits = run->bits + row * words;

    if (threshold == STRONGEST)
        memset(bits, 0, (size_t)words * sizeof(*bits));
    else
        run->isa->pack16(run->map + row * columns, columns, pass, bits);
}

/* Compares a row of the object with the previous objects. The object keeps the voxels that it wins. The others lose
 * these, and voxels where the object equals the best of them. */
static void
compete_row(const struct run *run, int64_t row)
{
    int64_t columns = run->extent.size[0], words = run->extent.words_per_row;

    for (int64_t at = row * words; at < (row + 1) * words; at++) {
        int64_t first = row * columns + 64 * (at - row * words);
        const uint16_t *map = run->map + first;
        uint16_t *best = run->fuzzy->best + first;
        uint64_t won = 0, tied = 0;

        if (!run->bits[at])
            continue;
        for (uint64_t left = run->bits[at]; left; left &= left - 1) {
            int i = __builtin_ctzll(left);

            won |= (uint64_t)(map[i] > best[i]) << i;
            tied |= (uint64_t)(map[i] == best[i]) << i;
            best[i] = map[i] > best[i] ? map[i] : best[i];
        }
        run->bits[at] = won;
        for (size_t other = 0; other < run->index; other++)
            run->fuzzy->objects[other][at] &= ~(won | tied);
    }
}

/* Prepares the part of the tables that this volume's values need. */
static void
prepare(struct run *run, const struct kernels_fuzzy_object *object)
{
    struct kernels_lane *lane = &run->lane->base;
    struct image_range range;

    run->object = object;
    run->padded = object->padding.lo <= object->padding.hi;
    if (kernels_volume_range(lane, object->padding, &range, NULL))
        range = (struct image_range){0, 0}; /* all voxels are padding */
    run->tables = (struct fuzzy_tables){range.lo, range.hi - range.lo, run->fuzzy->first, run->fuzzy->second};
    fuzzy_fill_tables(object, &run->tables);
}

static void
cpu_fuzzy_count_row(const struct run *run, int64_t row)
{
    const uint64_t *bits = run->bits + row * run->extent.words_per_row;
    int64_t voxels = 0;

    for (int64_t i = 0; i < run->extent.words_per_row; i++)
        voxels += __builtin_popcountll(bits[i]);
    __atomic_fetch_add(run->voxels, voxels, __ATOMIC_RELAXED);
}

static int
cpu_fuzzy_run(struct kernels_lane *lane, const void *given, struct error *error)
{
    const struct fuzzy_request *request = given;
    const struct kernels_fuzzy_object *objects = request->objects;
    const struct cpu_fuzzy *fuzzy = kernels_state(lane, KERNELS_FUZZY);
    bool competing = objects_compete(&fuzzy->demand);
    struct run run = {.lane = cpu_lane_of(lane),
                      .fuzzy = fuzzy,
                      .isa = cpu_device_of(lane)->isa,
                      .extent = bits_extent(lane->extent.columns, lane->extent.rows, lane->extent.slices)};
    size_t wanted = 0;

    (void)error;
    run.map = fuzzy->best; /* of several objects, cleared as a map */
    if (competing)
        cpu_fuzzy_each_row(&run, NULL, clear_map);
    for (size_t i = 0; i < request->count; i++) {
        bool map = objects[i].map;
        size_t place = map ? wanted++ : fuzzy->demand.maps;

        run.index = i;
        run.bits = fuzzy->objects[i];
        run.map = map || competing ? fuzzy->maps + place * map_stride(lane) + BESIDE : NULL;
        prepare(&run, &objects[i]);
        if (run.map) {
            cpu_fuzzy_each_row(&run, NULL, clear_map);
            if (!grow_map(&run))
                flood_map(&run);
            cpu_fuzzy_each_row(&run, NULL, cut_row);
        } else {
            find_object(&run);
        }
        if (competing)
            cpu_fuzzy_each_row(&run, NULL, compete_row);
        request->results[i].map = map ? run.map : NULL;
    }
    for (size_t i = 0; i < request->count; i++) {
        struct image_mask *object = &request->results[i].object;

        run.bits = fuzzy->objects[i];
        *object = (struct image_mask){run.bits, run.extent.words_per_row, 0};
        run.voxels = &object->voxels;
        cpu_fuzzy_each_row(&run, NULL, cpu_fuzzy_count_row);
    }
    return 0;
}

const struct kernels_op cpu_fuzzy_op = {
    .name = "fuzzy connectedness",
    .state_size = sizeof(struct cpu_fuzzy),
    .needs = cpu_fuzzy_needs,
    .place = cpu_fuzzy_place,
    .run = cpu_fuzzy_run,
};
