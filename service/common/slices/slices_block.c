/* slices_block.c - see slices_block.h. Compilers make vector instructions of the operations on a row. */
#include "service/common/slices/slices_block.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

enum { WAY_MEDIAN, WAY_UPPER, WAY_MEAN, WAYS };

enum { LANE_BITS = 16, WIDTH_ALL = 15 };

typedef unsigned __int128 block_whole __attribute__((vector_size(2 * BLOCK_LANES))); /* shifts move lanes */
typedef uint16_t block_bits __attribute__((vector_size(2 * BLOCK_LANES)));

/* Returns the mean, rounded down, without an overflow. */
static inline block_lanes
block_mean(block_lanes a, block_lanes b)
{
    return (a & b) + ((a ^ b) >> 1);
}

/* Returns the mean of lanes and their neighbours to the left and right. */
static inline block_lanes
block_smooth(block_lanes row)
{
    static const block_lanes first = {-1}, last = {0, 0, 0, 0, 0, 0, 0, -1};
    const block_lanes left = (block_lanes)((block_whole)row << LANE_BITS) | (row & first);
    const block_lanes right = (block_lanes)((block_whole)row >> LANE_BITS) | (row & last);
    return block_mean(block_mean(left, right), row);
}

/* Returns the median of two neighbours and their sum less the one between them. Sums are modulo 2^16. */
static inline block_lanes
block_median(block_lanes a, block_lanes b, block_lanes between)
{
    const block_lanes slope = (block_lanes)((block_bits)a + (block_bits)b - (block_bits)between);
    block_lanes median;
#pragma GCC unroll 1
    for (int i = 0; i < BLOCK_LANES; i++) { /* compilers have instructions for it */
        const int16_t low = a[i] < b[i] ? a[i] : b[i], high = a[i] < b[i] ? b[i] : a[i];
        const int16_t floored = slope[i] < low ? low : slope[i];
        median[i] = floored > high ? high : floored;
    }
    return median;
}

/* Predicts lanes by rows before them. `first` predicts the first row. The last lanes of narrow blocks are not kept. */
static inline block_lanes
block_predict(const block_lanes *at, int32_t y, int32_t z, int way, block_lanes first, bool narrow)
{
    if (y == 0)
        return z > 0 ? at[-BLOCK_PARTS * BLOCK_EDGE] : first;
    const block_lanes upper = at[-BLOCK_PARTS];
    if (z > 0 && way == WAY_MEDIAN)
        return block_median(upper, at[-BLOCK_PARTS * BLOCK_EDGE], at[-BLOCK_PARTS * (BLOCK_EDGE + 1)]);
    const block_lanes smooth = narrow ? upper : block_smooth(upper);
    return z > 0 && way == WAY_MEAN ? block_mean(smooth, at[-BLOCK_PARTS * BLOCK_EDGE]) : smooth;
}

/* Computes the differences of a row from its prediction, as 2d or -2d - 1. Returns the bits they need: 0 to 14, or 16. */
static inline int
block_difference(const struct block *block, int32_t y, int32_t z, int way, block_lanes first,
                 block_bits row[BLOCK_PARTS])
{
    const block_lanes *at = block->rows[BLOCK_EDGE * z + y];
    block_bits all = {0};
#pragma GCC unroll 2
    for (int i = 0; i < BLOCK_PARTS; i++) {
        const block_lanes predicted = block_predict(at + i, y, z, way, first, block->size[0] < BLOCK_EDGE);
        const block_lanes difference = (block_lanes)((block_bits)at[i] - (block_bits)predicted);
        row[i] = ((block_bits)difference << 1) ^ (block_bits)(difference >> (LANE_BITS - 1));
        all |= row[i];
    }
    uint64_t words[2];
    memcpy(words, &all, sizeof words);
    uint64_t any = words[0] | words[1];
    any |= any >> 32;
    any |= any >> 16;
    any &= UINT16_MAX;
    const int width = any ? 64 - __builtin_clzll(any) : 0;
    return width < WIDTH_ALL ? width : LANE_BITS;
}

static inline block_lanes
block_spread(int16_t value)
{
    return (block_lanes){0} + value;
}

/* Chooses the prediction that needs the fewest bits in a slice. */
static int
block_choose(const struct block *block, block_lanes first)
{
    int chosen = WAY_UPPER, fewest = INT32_MAX;
    for (int way = 0; way < WAYS && block->size[2] > 1; way++) {
        block_bits row[BLOCK_PARTS];
        int bits = 0;
        for (int32_t y = 1; y < block->size[1]; y++)
            bits += block_difference(block, y, block->size[2] / 2, way, first, row);
        if (bits < fewest) {
            fewest = bits;
            chosen = way;
        }
    }
    return chosen;
}

/* Appends a word of the lanes. */
static inline uint8_t *
block_put(const block_bits words[BLOCK_PARTS], size_t bytes, uint8_t *to)
{
    if (bytes == BLOCK_PARTS * sizeof *words) /* for which compilers call no function */
        memcpy(to, words, BLOCK_PARTS * sizeof *words);
    else
        memcpy(to, words, bytes);
    return to + bytes;
}

/* Returns whether all voxels have this value. */
static bool
block_is(const struct block *block, block_lanes value)
{
    block_lanes differs = {0};
    for (int32_t z = 0; z < block->size[2]; z++) {
        for (int32_t y = 0; y < block->size[1]; y++)
            differs |= (block->rows[BLOCK_EDGE * z + y][0] ^ value) | (block->rows[BLOCK_EDGE * z + y][1] ^ value);
        uint64_t words[2];
        memcpy(words, &differs, sizeof words);
        if (words[0] | words[1])
            return false;
    }
    return true;
}

uint8_t *
block_pack(const struct block *block, uint8_t *to)
{
    const int16_t value = block->rows[0][0][0];
    const block_lanes first = block_spread(value);
    const int way = block_is(block, first) ? WAYS : block_choose(block, first);
    const int32_t rows = block->size[1] * block->size[2];
    const size_t bytes = 2 * (size_t)block->size[0];
    uint8_t *widths = to + 3, *at = widths + (rows + 1) / 2;
    block_bits row[BLOCK_PARTS], kept[BLOCK_PARTS] = {{0}};
    int used = 0; /* bits of `kept` */
    to[0] = (uint8_t)way;
    memcpy(to + 1, &value, sizeof value);
    if (way == WAYS)
        return widths;
    memset(widths, 0, (size_t)(rows + 1) / 2);
    for (int32_t z = 0, n = 0; z < block->size[2]; z++) {
        for (int32_t y = 0; y < block->size[1]; y++, n++) {
            const int width = block_difference(block, y, z, way, first, row);
            if (width == 0)
                continue;
            widths[n / 2] |= (uint8_t)((width < WIDTH_ALL ? width : WIDTH_ALL) << 4 * (n & 1));
            for (int i = 0; i < BLOCK_PARTS; i++)
                kept[i] |= row[i] << used;
            used += width;
            if (used < LANE_BITS)
                continue;
            at = block_put(kept, bytes, at);
            used -= LANE_BITS;
            for (int i = 0; i < BLOCK_PARTS; i++)
                kept[i] = used > 0 ? row[i] >> (width - used) : (block_bits){0};
        }
    }
    return used > 0 ? block_put(kept, bytes, at) : at;
}

/* Returns the words that the lanes need. */
static int32_t
block_words(const uint8_t *widths, int32_t rows)
{
    int32_t bits = 0;
    for (int32_t n = 0; n < rows; n++) {
        const int width = widths[n / 2] >> 4 * (n & 1) & 15;
        bits += width < WIDTH_ALL ? width : LANE_BITS;
    }
    return (bits + LANE_BITS - 1) / LANE_BITS;
}

/* The lanes of a block that are being read. */
struct block_reading {
    const uint8_t *at;
    size_t bytes; /* of a word of all lanes */
    block_bits words[BLOCK_PARTS];
    int left; /* bits of them */
};

static inline void
block_take_row(struct block_reading *reading, int width, block_bits row[BLOCK_PARTS])
{
    const int left = reading->left;
    for (int i = 0; i < BLOCK_PARTS; i++)
        row[i] = left > 0 ? reading->words[i] >> (LANE_BITS - left) : (block_bits){0};
    if (left < width) {
        if (reading->bytes == sizeof reading->words) /* for which compilers call no function */
            memcpy(reading->words, reading->at, sizeof reading->words);
        else
            memcpy(reading->words, reading->at, reading->bytes);
        reading->at += reading->bytes;
        reading->left += LANE_BITS;
        for (int i = 0; i < BLOCK_PARTS; i++)
            row[i] |= reading->words[i] << left;
    }
    reading->left -= width;
    for (int i = 0; i < BLOCK_PARTS; i++)
        row[i] &= (uint16_t)((1 << width) - 1);
}

const uint8_t *
block_unpack(struct block *block, int32_t slices, const uint8_t *from, const uint8_t *end)
{
    const int32_t rows = block->size[1] * block->size[2];
    const uint8_t *widths = from + 3;
    int16_t value;
    if (end - from < 3 || from[0] > WAYS)
        return NULL;
    const int way = from[0];
    memcpy(&value, from + 1, sizeof value);
    const block_lanes first = block_spread(value);
    if (way == WAYS) {
        for (int32_t i = 0; i < slices * BLOCK_EDGE; i++)
            block->rows[i][0] = block->rows[i][1] = first;
        return widths;
    }
    if (end - widths < (rows + 1) / 2)
        return NULL;
    struct block_reading reading = {.at = widths + (rows + 1) / 2, .bytes = 2 * (size_t)block->size[0]};
    const int64_t bytes = (int64_t)reading.bytes * block_words(widths, rows);
    const uint8_t *after = reading.at + bytes;
    if (end - reading.at < bytes)
        return NULL;
    for (int32_t z = 0, n = 0; z < slices; z++) {
        for (int32_t y = 0; y < block->size[1]; y++, n++) {
            block_lanes *at = block->rows[BLOCK_EDGE * z + y];
            const int width = widths[n / 2] >> 4 * (n & 1) & 15;
            block_bits row[BLOCK_PARTS];
            block_take_row(&reading, width < WIDTH_ALL ? width : LANE_BITS, row);
            for (int i = 0; i < BLOCK_PARTS; i++) {
                const block_lanes predicted = block_predict(at + i, y, z, way, first, block->size[0] < BLOCK_EDGE);
                at[i] = (block_lanes)((block_bits)predicted + ((row[i] >> 1) ^ -(row[i] & 1)));
            }
        }
    }
    return after;
}
