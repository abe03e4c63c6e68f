/*
 * patterns_cpu.c - local patterns (Masur 2022) on the CPU.
 *
 * A thread takes blocks of rows in strips of columns, so that three rows of values stay in the L1
 * cache for all patterns. Values are 16-bit lanes in signed order for every pixel type, so that one
 * set of loops suffices. A table has, for each m, the smallest integer that is at least threshold *
 * m, to compare neighbours with.
 */
#include "kernels/texture/texture_cpu.h"

#include <string.h>

enum {
    STRIP = 1024, /* columns; must be whole words of regions */
    WORD = 64,
    BINS = 256,
    COPIES = 4,            /* per histogram */
    REGIONS_TOGETHER = 32, /* regions per pass of a thread */
    WHOLE = 1000000,       /* a threshold of 1, in millionths */
};

_Static_assert(REGIONS_TOGETHER *TEXTURE_PATTERNS *COPIES *BINS * sizeof(uint32_t) <=
                   sizeof(((struct texture_space *)NULL)->high),
               "histograms of all regions of a pass fit into a thread's tables");

struct cpu_patterns {
    struct texture_patterns_state base;
    struct texture_space *spaces;
    int16_t *bounds; /* for TLBAP, one per largest value of a window */
};

struct patterning {
    struct cpu_lane *lane;
    const struct cpu_patterns *own;
    const struct texture_patterns *request;
    bool maps; /* in this pass */
    size_t first_region;
    size_t region_count; /* in this pass */
    struct texture_blocks blocks;
    int64_t next;
    int64_t space;
};

/* State of a thread. */
struct strip {
    const struct patterning *patterning;
    uint32_t (*tables)[TEXTURE_PATTERNS][COPIES][BINS]; /* one per region of this pass */
    int64_t pending;                                    /* voxels counted since the last flush */
    int64_t first;                                      /* columns of the volume, including edges */
    int64_t count;
    int16_t values[3][STRIP + 2]; /* row y is at y % 3, from the column before the first */
    int16_t bound[STRIP];
    uint8_t codes[TEXTURE_PATTERNS][STRIP]; /* of the strip's columns; undefined on edges and beyond */
};

/* ------------------------------------------------------------------------------ codes ---- */

/* Loads the strip's part of a row as lanes, with one more column at each end. */
static void
cpu_patterns_load_row(struct strip *strip, int64_t row, int16_t *values)
{
    const struct cpu_lane *lane = strip->patterning->lane;
    int64_t columns = lane->base.extent.columns, skip = strip->first == 0;
    int64_t from = strip->first - 1 + skip, end = strip->first + strip->count + 1;
    int64_t count = (end < columns ? end : columns) - from;
    const void *voxels = lane->voxels.memory;

    values += skip;
    from += row * columns;
    switch (lane->base.pixel) {
    case IMAGE_UINT8:
        for (int64_t i = 0; i < count; i++)
            values[i] = ((const uint8_t *)voxels)[from + i];
        return;
    case IMAGE_INT16:
        memcpy(values, (const int16_t *)voxels + from, (size_t)count * sizeof(*values));
        return;
    case IMAGE_UINT16:
        for (int64_t i = 0; i < count; i++)
            values[i] = (int16_t)(((const uint16_t *)voxels)[from + i] ^ 0x8000);
        return;
    }
}

static void
find_codes(struct strip *strip, int64_t y)
{
    const struct patterning *patterning = strip->patterning;
    const struct texture_patterns *request = patterning->request;
    const struct isa *isa = cpu_device_of(&patterning->lane->base)->isa;
    int64_t whole = (strip->count + WORD - 1) / WORD * WORD; /* the loops' tails are slow */
    struct isa_windows windows = {{strip->values[(y - 1) % 3], strip->values[y % 3], strip->values[(y + 1) % 3]},
                                  whole};

    if (request->wanted[TEXTURE_LBP])
        isa->beyond16(&windows, windows.row[1] + 1, false, strip->codes[TEXTURE_LBP]);
    if (request->wanted[TEXTURE_TLBAP]) {
        const int16_t *bounds = patterning->own->bounds;
        const int16_t *centre = windows.row[1] + 1;

        isa->largest16(&windows, strip->bound);
        for (int64_t i = 0; i < windows.count; i++)
            strip->bound[i] = bounds[(uint16_t)strip->bound[i]];
        for (int64_t i = 0; i < windows.count; i++)
            strip->bound[i] = strip->bound[i] > centre[i] ? strip->bound[i] : centre[i];
        isa->beyond16(&windows, strip->bound, request->strict, strip->codes[TEXTURE_TLBAP]);
    }
    if (request->wanted[TEXTURE_LANADP]) {
        const enum isa_average of_integers = patterning->lane->base.pixel == IMAGE_INT16 ? ISA_TRUNCATED : ISA_FLOOR;

        isa->adjacent16(&windows, request->integer_average ? of_integers : ISA_EXACT, strip->codes[TEXTURE_LANADP]);
    }
}

/* ------------------------------------------------------------------------- histograms ---- */

static void
tally_word(const uint8_t codes[WORD], uint32_t tables[COPIES][BINS])
{
    const uint64_t first = codes[0] * UINT64_C(0x0101010101010101);
    uint64_t eight = first;

    /* Compare eight codes at a time, since most differences are near the beginning. */
    for (int i = 0; i < WORD && eight == first; i += 8)
        memcpy(&eight, codes + i, sizeof(eight));
    if (eight == first) {
        tables[0][codes[0]] += WORD;
        return;
    }
    for (int i = 0; i < WORD; i += COPIES) {
        tables[0][codes[i]]++;
        tables[1][codes[i + 1]]++;
        tables[2][codes[i + 2]]++;
        tables[3][codes[i + 3]]++;
    }
}

static void
cpu_patterns_tally_row(struct strip *strip, size_t region, int64_t row)
{
    const struct patterning *patterning = strip->patterning;
    const struct texture_patterns *request = patterning->request;
    const struct kernels_lane *lane = &patterning->lane->base;
    const uint64_t *bits_of = request->regions[patterning->first_region + region];

    for (int64_t x = 0; x < strip->count; x += WORD) {
        int64_t word = (strip->first + x) / WORD, left = lane->extent.columns - 1 - word * WORD;
        uint64_t off_the_edges = left >= WORD ? ~UINT64_C(0) : left > 0 ? (UINT64_C(1) << left) - 1 : 0;
        uint64_t bits = texture_region_word(lane, bits_of, row, word) & off_the_edges;

        if (word == 0)
            bits &= ~UINT64_C(1);
        for (int p = 0; p < TEXTURE_PATTERNS && bits; p++) {
            uint32_t(*tables)[BINS] = strip->tables[region][p];
            const uint8_t *codes = strip->codes[p] + x;
            unsigned copy = 0;

            if (request->wanted[p] && bits == ~UINT64_C(0))
                tally_word(codes, tables);
            else if (request->wanted[p])
                for (uint64_t some = bits; some; some &= some - 1)
                    tables[copy++ % COPIES][codes[__builtin_ctzll(some)]]++;
        }
    }
}

static void
empty_tables(struct strip *strip)
{
    const struct patterning *patterning = strip->patterning;

    for (size_t r = 0; r < patterning->region_count; r++)
        for (size_t p = 0; p < TEXTURE_PATTERNS; p++)
            for (size_t bin = 0; bin < BINS; bin++) {
                size_t pattern = (patterning->first_region + r) * TEXTURE_PATTERNS + p;
                uint32_t(*table)[BINS] = strip->tables[r][p];
                uint64_t sum = (uint64_t)table[0][bin] + table[1][bin] + table[2][bin] + table[3][bin];

                texture_add(&patterning->request->histograms[pattern * BINS + bin], sum);
            }
    memset(strip->tables, 0, patterning->region_count * sizeof(*strip->tables));
    strip->pending = 0;
}

/* ------------------------------------------------------------------------------ blocks ---- */

/* Handles rows first .. end - 1 of patterns, which are voxel rows first + 1 .. end. */
static void
do_strip(struct strip *strip, const struct texture_block *block)
{
    const struct patterning *patterning = strip->patterning;
    int64_t row = block->z * patterning->lane->base.extent.rows;

    cpu_patterns_load_row(strip, row + block->first, strip->values[block->first % 3]);
    cpu_patterns_load_row(strip, row + block->first + 1, strip->values[(block->first + 1) % 3]);
    for (int64_t y = block->first + 1; y <= block->end; y++) {
        cpu_patterns_load_row(strip, row + y + 1, strip->values[(y + 1) % 3]);
        find_codes(strip, y);
        if (patterning->maps) {
            struct image_extent extent = patterning->lane->base.extent;
            int64_t skip = strip->first == 0;
            int64_t end =
                strip->first + strip->count < extent.columns - 1 ? strip->first + strip->count : extent.columns - 1;
            int64_t at = (block->z * (extent.rows - 2) + y - 1) * (extent.columns - 2) + strip->first + skip - 1;

            for (int p = 0; p < TEXTURE_PATTERNS; p++) {
                uint8_t *map = patterning->own->base.maps[p];

                if (map && strip->first + skip < end)
                    memcpy(map + at, strip->codes[p] + skip, (size_t)(end - strip->first - skip));
            }
        }
        if (strip->pending > TEXTURE_MOST_PENDING)
            empty_tables(strip);
        strip->pending += strip->count;
        for (size_t r = 0; r < patterning->region_count; r++)
            cpu_patterns_tally_row(strip, r, row + y);
    }
}

static void
find_patterns(void *context)
{
    struct patterning *patterning = context;
    int64_t columns = patterning->lane->base.extent.columns, i;
    struct texture_space *space = patterning->own->spaces + __atomic_fetch_add(&patterning->space, 1, __ATOMIC_RELAXED);
    struct strip strip = {.patterning = patterning, .tables = (void *)space->high};

    memset(strip.tables, 0, patterning->region_count * sizeof(*strip.tables));
    while ((i = __atomic_fetch_add(&patterning->next, 1, __ATOMIC_RELAXED)) < patterning->blocks.count) {
        struct texture_block block = texture_block_at(&patterning->blocks, i);

        for (strip.first = 0; strip.first < columns; strip.first += STRIP) {
            strip.count = columns - strip.first < STRIP ? columns - strip.first : STRIP;
            do_strip(&strip, &block);
        }
    }
    empty_tables(&strip);
}

static void
cpu_patterns_place(struct kernels_lane *lane, struct kernels_memory *memory)
{
    struct cpu_patterns *own = kernels_state(lane, KERNELS_PATTERNS);

    own->spaces = kernels_take(&memory->host, (size_t)lane->device->threads, sizeof(*own->spaces));
    own->bounds = kernels_take(&memory->host, TEXTURE_VALUES, sizeof(*own->bounds));
}

static int
cpu_patterns_run(struct kernels_lane *lane, const void *given, struct error *error)
{
    const struct texture_patterns *request = given;
    const struct cpu_patterns *own = kernels_state(lane, KERNELS_PATTERNS);
    struct patterning patterning = {.lane = cpu_lane_of(lane), .own = own, .request = request, .maps = true};
    int32_t values = lane->pixel == IMAGE_UINT8 ? BINS : TEXTURE_VALUES;
    int32_t smallest = lane->pixel == IMAGE_INT16 ? INT16_MIN : 0;
    int32_t bias = lane->pixel == IMAGE_UINT16 ? 0x8000 : 0; /* a stored value less its lane */

    (void)error;
    if (request->region_count > 0)
        memset(request->histograms, 0, request->region_count * TEXTURE_PATTERNS * BINS * sizeof(*request->histograms));
    if (lane->extent.columns < 3 || lane->extent.rows < 3)
        return 0;
    /* Compute the comparison lane for each largest value of a window, as a lane. */
    for (int32_t value = smallest; value < smallest + values; value++) {
        int64_t product = (int64_t)value * request->threshold_millionths, rest = product % WHOLE;
        int64_t bound = product / WHOLE + (request->strict ? -(rest < 0) : rest > 0); /* rounded down or up */

        own->bounds[(uint16_t)(value - bias)] = (int16_t)(bound - bias);
    }
    patterning.blocks =
        texture_blocks_of(lane->extent.columns, lane->extent.rows - 2, lane->extent.slices, TEXTURE_BLOCK_VOXELS);
    do {
        size_t left = request->region_count - patterning.first_region;

        patterning.region_count = left < REGIONS_TOGETHER ? left : REGIONS_TOGETHER;
        patterning.next = patterning.space = 0;
        cpu_pool_run(cpu_device_of(lane)->pool, find_patterns, &patterning);
        patterning.maps = false;
        patterning.first_region += patterning.region_count;
    } while (patterning.first_region < request->region_count);
    return 0;
}

const struct kernels_op cpu_patterns_op = {
    .name = "texture (local patterns)",
    .state_size = sizeof(struct cpu_patterns),
    .transient = true,
    .needs = texture_patterns_needs,
    .place = cpu_patterns_place,
    .run = cpu_patterns_run,
    .keep = texture_patterns_keep,
};
