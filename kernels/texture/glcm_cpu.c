/*
 * glcm_cpu.c - grey level co-occurrence matrices on the CPU.
 *
 * The first pass converts voxels to levels, 0 outside the region, in rows separated by zeros. The
 * second counts tuples of levels (tuples.h), one tuple after the other, so that a single table is
 * in the L1 cache. With four voxels of 8 levels, one increment counts six pairs; with three of 32
 * levels, three. Counters have 16 bits, so that twice as many fit, and are flushed before they
 * overflow. Threads count blocks of rows in their own tables, and add their margins to the caller's
 * matrices.
 */
#include "kernels/texture/texture_cpu.h"

#include <stdlib.h>
#include <string.h>

enum {
    MARGIN = TUPLE_WIDTH + ISA_TALLY, /* zeros behind each row of levels, and before the first */
    CHUNK = 1024,                     /* columns counted at a time */
    SLICE_VOXELS = 1 << 20,           /* voxels per block if tables are flushed after each */
    SMALL_TABLE = 7 << 10,            /* max entries for four copies in the L1 cache */
    MIDDLE_TABLE = 10 << 10,          /* max entries for two copies */
    LOW_TABLE = 1 << 16,              /* max entries with 16-bit counters */
    SAMPLED_ROWS = 64,
    NEAR_LEVELS = 2,
    BUSY_TABLE = 4, /* min tuples per table entry, so that flushing the table pays off */
};

/* ------------------------------------------------------------------------ the memory ---- */

/* A row's voxels that may have a level: first .. end - 1. Empty if first >= end. */
struct glcm_row {
    int64_t first;
    int64_t end;
};

struct cpu_glcm {
    void *levels;          /* of every voxel: uint8_t, or uint16_t for 256 levels */
    void *empty;           /* a row without levels */
    struct glcm_row *rows; /* one per row of the volume */
    struct texture_space *spaces;
};

/* Returns the distance between rows of levels. */
static int64_t
stride_of(const struct kernels_lane *lane)
{
    return lane->extent.columns + MARGIN;
}

static bool
glcm_needs(struct kernels_lane *lane, const void *demand)
{
    int64_t levels;

    (void)demand;
    return !__builtin_mul_overflow(stride_of(lane), lane->extent.rows * lane->extent.slices, &levels);
}

static void
cpu_glcm_place(struct kernels_lane *lane, struct kernels_memory *memory)
{
    struct cpu_glcm *own = kernels_state(lane, KERNELS_GLCM);
    size_t stride = (size_t)stride_of(lane), rows = (size_t)(lane->extent.rows * lane->extent.slices);

    own->levels = kernels_take(&memory->host, stride * rows + MARGIN, sizeof(uint16_t));
    own->empty = kernels_take(&memory->host, stride + MARGIN, sizeof(uint16_t));
    own->rows = kernels_take(&memory->host, rows, sizeof(*own->rows));
    own->spaces = kernels_take(&memory->host, (size_t)lane->device->threads, sizeof(*own->spaces));
}

/* -------------------------------------------------------------------- voxels to levels ---- */

struct levelling {
    struct cpu_lane *lane;
    const struct cpu_glcm *own;
    const struct texture_glcm *request;
    bool wide;
    struct texture_blocks blocks;
    int64_t voxels; /* number that may have a level */
};

#define LEVELS_OF(NAME, VALUE, LEVEL)                                                                                  \
    static void NAME(const VALUE *values, const uint16_t *table, uint16_t bias, int64_t count, LEVEL *levels)          \
    {                                                                                                                  \
        for (int64_t i = 0; i < count; i++)                                                                            \
            levels[i] = (LEVEL)table[values[i] ^ bias];                                                                \
    }

LEVELS_OF(levels_uint8, uint8_t, uint8_t)
LEVELS_OF(wide_levels_uint8, uint8_t, uint16_t)
LEVELS_OF(wide_levels_uint16, uint16_t, uint16_t)

/* Finds the levels of voxels from .. from + count - 1, ignoring the region. `levels` is the place
 * of the first. */
static void
level_voxels(const struct levelling *levelling, int64_t z, int64_t from, int64_t count, void *levels)
{
    const struct cpu_lane *lane = levelling->lane;
    const struct texture_levels *tables = &levelling->request->levels;
    size_t values = lane->base.pixel == IMAGE_UINT8 ? 256 : TEXTURE_VALUES;
    const uint16_t *table = tables->level_of + (tables->table_count > 1 ? (size_t)z * values : 0);
    const void *voxels = lane->voxels.memory;
    const struct isa *isa = cpu_device_of(&lane->base)->isa;
    uint16_t bias = lane->base.pixel == IMAGE_INT16 ? 0x8000 : 0;

    if (lane->base.pixel == IMAGE_UINT8 && levelling->wide)
        wide_levels_uint8((const uint8_t *)voxels + from, table, 0, count, levels);
    else if (lane->base.pixel == IMAGE_UINT8)
        levels_uint8((const uint8_t *)voxels + from, table, 0, count, levels);
    else if (levelling->wide)
        wide_levels_uint16((const uint16_t *)voxels + from, table, bias, count, levels);
    else
        isa->level16((const uint16_t *)voxels + from, count, table, bias, levels);
}

static struct glcm_row
row_within(const struct kernels_lane *lane, const uint64_t *region, int64_t row)
{
    struct glcm_row within = {0, lane->extent.columns};
    int64_t first = 0, last = texture_words_per_row(lane) - 1;

    if (!region)
        return within;
    while (first <= last && !texture_region_word(lane, region, row, first))
        first++;
    if (first > last)
        return (struct glcm_row){0, 0};
    while (!texture_region_word(lane, region, row, last))
        last--;
    within.first = first * 64 + __builtin_ctzll(texture_region_word(lane, region, row, first));
    within.end = last * 64 + 64 - __builtin_clzll(texture_region_word(lane, region, row, last));
    return within;
}

static void
level_word(const struct levelling *levelling, int64_t z, int64_t row, int64_t word, void *levels)
{
    const struct kernels_lane *lane = &levelling->lane->base;
    int64_t left = lane->extent.columns - word * 64, count = left < 64 ? left : 64;
    uint64_t bits = texture_region_word(lane, levelling->request->region, row, word);

    if (!bits) {
        memset(levels, 0, (size_t)count << levelling->wide);
        return;
    }
    level_voxels(levelling, z, row * lane->extent.columns + word * 64, count, levels);
    if (__builtin_popcountll(bits) < count) {
        /* Set levels to 0 for clear bits of the word. */
        const bool wide = levelling->wide;

        for (int64_t i = 0; i < count; i++) {
            uint64_t in = bits >> i & 1;

            if (wide)
                ((uint16_t *)levels)[i] = (uint16_t)(((uint16_t *)levels)[i] & -in);
            else
                ((uint8_t *)levels)[i] = (uint8_t)(((uint8_t *)levels)[i] & -in);
        }
    }
}

static unsigned char *
levels_at(const struct levelling *levelling, int64_t row, int64_t x)
{
    int64_t at = MARGIN + row * stride_of(&levelling->lane->base) + x;

    return (unsigned char *)levelling->own->levels + (at << levelling->wide);
}

/* Writes only the zeros behind a row that has no voxel of the region. */
static void
level_block(void *context, int64_t i)
{
    struct levelling *levelling = context;
    const struct kernels_lane *lane = &levelling->lane->base;
    struct texture_block block = texture_block_at(&levelling->blocks, i);
    int64_t columns = lane->extent.columns, voxels = 0;

    for (int64_t y = block.first; y < block.end; y++) {
        int64_t row = block.z * levelling->blocks.rows + y;
        struct glcm_row within = row_within(lane, levelling->request->region, row);

        levelling->own->rows[row] = within;
        memset(levels_at(levelling, row, columns), 0, (size_t)MARGIN << levelling->wide);
        if (!levelling->request->region)
            level_voxels(levelling, block.z, row * columns, columns, levels_at(levelling, row, 0));
        for (int64_t word = 0; within.first < within.end && levelling->request->region && word * 64 < columns; word++)
            level_word(levelling, block.z, row, word, levels_at(levelling, row, word * 64));
        voxels += within.end - within.first;
    }
    __atomic_fetch_add(&levelling->voxels, voxels, __ATOMIC_RELAXED);
}

/* Returns the number of voxels that may have a level. */
static int64_t
find_levels(struct cpu_lane *lane, const struct texture_glcm *request, bool wide)
{
    const struct kernels_lane *base = &lane->base;
    const struct cpu_glcm *own = kernels_state(base, KERNELS_GLCM);
    struct levelling levelling = {.lane = lane,
                                  .own = own,
                                  .request = request,
                                  .wide = wide,
                                  .blocks = texture_blocks_of(base->extent.columns, base->extent.rows,
                                                              base->extent.slices, TEXTURE_BLOCK_VOXELS)};

    memset(own->levels, 0, MARGIN * sizeof(uint16_t));
    memset(own->empty, 0, ((size_t)stride_of(base) + MARGIN) * sizeof(uint16_t));
    cpu_pool_for(cpu_device_of(base)->pool, levelling.blocks.count, level_block, &levelling);
    return levelling.voxels;
}

/* --------------------------------------------------------------------------- counting ---- */

/* Tuples of one group, and data shared by all threads. */
struct glcm_counting {
    struct cpu_lane *lane;
    const struct cpu_glcm *own;
    const struct texture_glcm *request;
    bool wide;
    const struct tuple *tuples;
    size_t tuple_count;
    size_t first_offset; /* the group's first offset in the request */
    struct texture_blocks blocks[TUPLES_TOGETHER];
    uint64_t *counts;
    int64_t next;  /* next block of a tuple to claim; tuples are consecutive */
    int64_t space; /* next space to claim */
};

/* Counters of a thread. */
struct counter {
    const struct glcm_counting *counting;
    struct texture_space *space;
    const struct tuple *tuple;
    size_t entries; /* per table */
    struct isa_counters counters;
    size_t copies;   /* copies of the table of low counters; 0 for wide indices */
    int64_t z;       /* the anchor's slice, if flushed per slice */
    int64_t pending; /* tuples counted since the last flush */
    int64_t low;     /* tuples counted since low counters were last relieved */
};

static size_t
base_of(const struct glcm_counting *counting)
{
    return (size_t)counting->request->levels.levels + 1;
}

static uint64_t
taken_from(const struct isa_counters *counters, size_t copies, size_t entry)
{
    uint64_t sum = counters->high[entry];

    counters->high[entry] = 0;
    for (size_t i = 0; i < copies; i++) {
        sum += counters->low[i][entry];
        counters->low[i][entry] = 0;
    }
    return sum;
}

/* Returns the matrix of a pair whose anchor lies in the counter's slice. */
static uint64_t *
matrix_of(const struct counter *counter, const struct tuple_pair *pair)
{
    const struct glcm_counting *counting = counter->counting;
    const struct texture_glcm *request = counting->request;
    size_t levels = (size_t)request->levels.levels;
    size_t z = request->per_slice ? (size_t)(counter->z + counter->tuple->at[pair->from].z) : 0;

    return counting->counts + (z * request->offset_count + counting->first_offset + pair->offset) * levels * levels;
}

/* Adds a line to a pair's margin, for the given levels of the other points. */
static void
add_line(const struct counter *counter, const struct tuple_pair *pair, const size_t *level,
         const uint64_t *restrict line, uint64_t *restrict sums)
{
    size_t base = base_of(counter->counting);
    int last = counter->tuple->points - 1;

    if (pair->to == last)
        for (size_t i = 0; i < base; i++)
            sums[level[pair->from] * base + i] += line[i];
    else if (pair->from == last)
        for (size_t i = 0; i < base; i++)
            sums[i * base + level[pair->to]] += line[i];
    else
        for (size_t i = 0; i < base; i++)
            sums[level[pair->from] * base + level[pair->to]] += line[i];
}

/* Adds all entries of the tables to the margins, line by line of the last point's levels, and then to the matrices. */
static void
empty_margins(struct counter *counter)
{
    const struct tuple *tuple = counter->tuple;
    size_t base = base_of(counter->counting), levels = base - 1, last = (size_t)tuple->points - 1;
    size_t level[TUPLE_POINTS] = {0};

    memset(counter->space->sums, 0, sizeof(counter->space->sums));
    for (size_t entry = 0; entry < counter->entries; entry += base) {
        uint64_t line[TEXTURE_TUPLE_LEVELS], any = 0;

        for (size_t i = 0; i < base; i++)
            any += line[i] = taken_from(&counter->counters, counter->copies, entry + i);
        if (any > 0)
            for (int p = 0; p < tuple->pairs; p++)
                add_line(counter, &tuple->pair[p], level, line, counter->space->sums[p]);
        for (size_t i = last; i-- > 0 && ++level[i] == base;)
            level[i] = 0;
    }
    for (int p = 0; p < tuple->pairs; p++)
        for (size_t i = 1; i < base; i++)
            for (size_t j = 1; j < base; j++) {
                uint64_t sum = counter->space->sums[p][i * base + j];

                if (sum > 0)
                    texture_add(&matrix_of(counter, &tuple->pair[p])[(i - 1) * levels + j - 1], sum);
            }
}

static void
empty(struct counter *counter)
{
    if (counter->pending == 0)
        return;
    if (counter->tuple->points == 2) {
        const struct tuple_pair *pair = &counter->tuple->pair[0];
        size_t base = base_of(counter->counting), levels = base - 1;

        for (size_t first = 0; first < base; first++)
            for (size_t second = 0; second < base; second++) {
                uint64_t sum = taken_from(&counter->counters, counter->copies, first * base + second);
                size_t i = pair->from == 0 ? first : second, j = pair->from == 0 ? second : first;

                if (sum > 0 && i > 0 && j > 0)
                    texture_add(&matrix_of(counter, pair)[(i - 1) * levels + j - 1], sum);
            }
    } else
        empty_margins(counter);
    counter->pending = counter->low = 0;
}

/* The rows of levels at the points of a tuple, and the anchors' columns to count. */
struct glcm_line {
    const unsigned char *row[TUPLE_POINTS]; /* shifted, so that all use the anchor's column */
    int64_t first;
    int64_t end;
};

/* Finds the rows of levels of the points, or the empty row. Returns false if no pair of the tuple can
 * have two levels. */
static bool
find_line(const struct counter *counter, int64_t y, int64_t z, struct glcm_line *line)
{
    const struct tuple *tuple = counter->tuple;
    const struct kernels_lane *lane = &counter->counting->lane->base;
    const struct cpu_glcm *own = counter->counting->own;
    struct image_extent extent = lane->extent;
    bool both = tuple->points == 2, wide = counter->counting->wide;
    int found = 0;

    for (int i = 0; i < tuple->points; i++) {
        const struct texture_offset at = tuple->at[i];
        int64_t row = (z + at.z) * extent.rows + y + at.y;

        line->row[i] = (const unsigned char *)own->empty + ((MARGIN + at.x) << wide);
        if (z + at.z < 0 || z + at.z >= extent.slices || y + at.y < 0 || y + at.y >= extent.rows)
            continue;
        int64_t first = own->rows[row].first - at.x, end = own->rows[row].end - at.x;

        if (first >= end)
            continue;
        line->row[i] = (const unsigned char *)own->levels + ((MARGIN + row * stride_of(lane) + at.x) << wide);
        if (found == 0 || (both ? first > line->first : first < line->first))
            line->first = first;
        if (found == 0 || (both ? end < line->end : end > line->end))
            line->end = end;
        found++;
    }
    return found >= 2 && line->first < line->end;
}

/* Must be called before `more` tuples are counted. */
static void
relieve(struct counter *counter, int64_t more)
{
    const struct isa *isa = cpu_device_of(&counter->counting->lane->base)->isa;

    if (counter->pending > TEXTURE_MOST_PENDING)
        empty(counter);
    if (counter->low + more > INT16_MAX) {
        for (size_t i = 0; i < counter->copies; i++)
            isa->relieve16(counter->counters.low[i], (int64_t)counter->entries, counter->counters.high);
        counter->low = 0;
    }
    counter->pending += more;
    counter->low += more;
}

/* Also counts zeros behind the end, which no matrix includes. */
static void
cpu_glcm_count_line(struct counter *counter, const struct glcm_line *line)
{
    if (counter->counting->wide) {
        relieve(counter, line->end - line->first);
        const uint16_t *a = (const uint16_t *)(const void *)line->row[0];
        const uint16_t *b = (const uint16_t *)(const void *)line->row[1];
        uint32_t *counters = counter->counters.high;

        for (int64_t x = line->first; x < line->end; x++)
            counters[a[x] * TEXTURE_WIDE_LEVELS + b[x]]++;
        return;
    }
    struct isa_tuple tuple = {
        .points = counter->tuple->points, .base = (uint16_t)base_of(counter->counting), .wide = counter->copies == 0};

    for (int64_t from = line->first; from < line->end; from += CHUNK) {
        int64_t left = line->end - from < CHUNK ? line->end - from : CHUNK;
        int64_t count = (left + ISA_TALLY - 1) / ISA_TALLY * ISA_TALLY;

        for (int i = 0; i < tuple.points; i++)
            tuple.level[i] = line->row[i] + from;
        relieve(counter, count);
        cpu_device_of(&counter->counting->lane->base)->isa->tally_tuples8(&tuple, count, &counter->counters);
    }
}

/* Counts block i of the tuple. Anchors begin before the volume if points lie behind them. */
static void
count_block(struct counter *counter, const struct texture_blocks *blocks, int64_t i)
{
    const struct tuple *tuple = counter->tuple;
    struct texture_block block = texture_block_at(blocks, i);
    int32_t above = 0, before = 0;
    struct glcm_line line = {0};

    for (int p = 0; p < tuple->points; p++) {
        above = tuple->at[p].y > above ? tuple->at[p].y : above;
        before = tuple->at[p].z > before ? tuple->at[p].z : before;
    }
    counter->z = block.z - before;
    for (int64_t row = block.first; row < block.end; row++)
        if (tuple_is_anchored(tuple, row, block.z) && find_line(counter, row - above, counter->z, &line))
            cpu_glcm_count_line(counter, &line);
    if (counter->counting->request->per_slice)
        empty(counter);
}

static void
count_tuples(void *context)
{
    struct glcm_counting *counting = context;
    int64_t i = __atomic_fetch_add(&counting->next, 1, __ATOMIC_RELAXED), before = 0;
    struct counter counter = {.counting = counting};

    counter.space = counting->own->spaces + __atomic_fetch_add(&counting->space, 1, __ATOMIC_RELAXED);
    for (size_t t = 0; t < counting->tuple_count; t++) {
        const struct texture_blocks *blocks = &counting->blocks[t];

        if (i >= before + blocks->count) {
            before += blocks->count;
            continue;
        }
        size_t entries = 1;

        counter.tuple = &counting->tuples[t];
        for (int k = 0; k < counting->tuples[t].points; k++)
            entries *= base_of(counter.counting);
        counter.entries = entries;
        counter.copies = entries <= SMALL_TABLE ? 4 : entries <= MIDDLE_TABLE ? 2 : entries <= LOW_TABLE;
        counter.counters.high = counter.space->high;
        for (size_t k = 0; k < 4 && counter.copies > 0; k++)
            counter.counters.low[k] = counter.space->low + k % counter.copies * entries;
        memset(counter.space->low, 0, counter.copies * entries * sizeof(uint16_t));
        memset(counter.space->high, 0, entries * sizeof(uint32_t));
        while (i < before + blocks->count) {
            count_block(&counter, blocks, i - before);
            i = __atomic_fetch_add(&counting->next, 1, __ATOMIC_RELAXED);
        }
        empty(&counter);
        before += blocks->count;
    }
}

/* Returns whether most voxels have nearly their neighbour's level, as in images. Samples some
 * rows. */
static bool
levels_are_smooth(const struct kernels_lane *lane)
{
    const struct cpu_glcm *own = kernels_state(lane, KERNELS_GLCM);
    int64_t rows = lane->extent.rows * lane->extent.slices, step = rows / SAMPLED_ROWS + 1, near = 0, pairs = 0;

    for (int64_t row = step / 2; row < rows; row += step) {
        struct glcm_row within = own->rows[row];
        const uint8_t *levels = (const uint8_t *)own->levels + MARGIN + row * stride_of(lane);

        for (int64_t x = within.first; x + 1 < within.end; x++)
            near += abs(levels[x] - levels[x + 1]) <= NEAR_LEVELS;
        pairs += within.end - within.first;
    }
    return near > pairs / 2;
}

/*
 * Returns the number of points of a tuple: the max with a narrow index, and a table worth flushing.
 * Three points with a wide index are used only for smooth levels: the table exceeds the L1 cache,
 * but their part of it fits.
 */
static int
points_for(const struct kernels_lane *lane, const struct texture_glcm *request, int64_t tuples)
{
    int64_t base = request->levels.levels + 1, entries = base * base;
    int points = 2;

    while (points < TUPLE_POINTS && entries * base <= TEXTURE_VALUES && entries * base * BUSY_TABLE <= tuples) {
        entries *= base;
        points++;
    }
    if (entries * base > TEXTURE_VALUES && points == 2 && entries * base <= TEXTURE_ENTRIES &&
        entries * base * BUSY_TABLE <= tuples && levels_are_smooth(lane))
        points++;
    return points;
}

static int
cpu_glcm_run(struct kernels_lane *lane, const void *given, struct error *error)
{
    const struct texture_glcm_request *asked = given;
    const struct texture_glcm *request = asked->glcm;
    uint64_t *counts = asked->counts;
    size_t levels = (size_t)request->levels.levels;
    size_t matrices = request->per_slice ? (size_t)lane->extent.slices : 1;
    bool wide = levels + 1 == TEXTURE_WIDE_LEVELS;
    int64_t voxels = find_levels(cpu_lane_of(lane), request, wide);
    int points = points_for(lane, request, voxels / (request->per_slice ? lane->extent.slices : 1));
    struct tuple tuples[TUPLES_TOGETHER];
    struct glcm_counting counting = {
        .lane = cpu_lane_of(lane),
        .own = kernels_state(lane, KERNELS_GLCM),
        .request = request,
        .wide = wide,
        .tuples = tuples,
        .counts = counts,
    };

    (void)error;
    memset(counts, 0, matrices * request->offset_count * levels * levels * sizeof(*counts));
    for (size_t o = 0; o < request->offset_count; o += TUPLES_TOGETHER) {
        size_t left = request->offset_count - o;

        counting.first_offset = o;
        counting.tuple_count =
            tuples_gather(request->offsets + o, left < TUPLES_TOGETHER ? left : TUPLES_TOGETHER, points, tuples);
        counting.next = counting.space = 0;
        for (size_t t = 0; t < counting.tuple_count; t++) {
            int64_t rows = 0, slices = 0; /* of anchors behind the volume */

            for (int p = 0; p < tuples[t].points; p++) {
                rows = tuples[t].at[p].y > rows ? tuples[t].at[p].y : rows;
                slices = tuples[t].at[p].z > slices ? tuples[t].at[p].z : slices;
            }
            counting.blocks[t] =
                texture_blocks_of(lane->extent.columns, lane->extent.rows + rows, lane->extent.slices + slices,
                                  request->per_slice ? SLICE_VOXELS : TEXTURE_BLOCK_VOXELS);
        }
        cpu_pool_run(cpu_device_of(lane)->pool, count_tuples, &counting);
    }
    return 0;
}

const struct kernels_op cpu_glcm_op = {
    .name = "texture (co-occurrence)",
    .state_size = sizeof(struct cpu_glcm),
    .transient = true,
    .needs = glcm_needs,
    .place = cpu_glcm_place,
    .run = cpu_glcm_run,
};
