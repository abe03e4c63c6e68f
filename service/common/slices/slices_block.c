/* slices_block.c - see slices_block.h. Compilers make vector instructions of the operations on lanes. */
#include "service/common/slices/slices_block.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

enum { WAY_MEDIAN, WAY_UPPER, WAY_MEAN, WAYS };

enum { LANE_BITS = 16, WIDTH_ALL = 15 };

/* The tables of widths, the first rows and the first slice add 0.42 to 0.64 bits in real series. */
enum { OTHER_BITS = 9 * BLOCK_BIT / 16 };

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

/* Computes the differences of a part of a row from its prediction, as 2d or -2d - 1. */
static inline block_bits
block_difference(const struct block *block, int32_t y, int32_t z, int part, int way, block_lanes first)
{
    const block_lanes *at = block->rows[BLOCK_EDGE * z + y] + part;
    const block_lanes predicted = block_predict(at, y, z, way, first, block->size[0] < BLOCK_EDGE);
    const block_lanes difference = (block_lanes)((block_bits)*at - (block_bits)predicted);
    return ((block_bits)difference << 1) ^ (block_bits)(difference >> (LANE_BITS - 1));
}

/* Returns the bits that all lanes have room in: 0 to 14, or 15 for 16. */
static inline int
block_width(block_bits lanes)
{
    uint64_t words[2];
    memcpy(words, &lanes, sizeof words);
    uint64_t any = words[0] | words[1];
    any |= any >> 32;
    any |= any >> 16;
    any &= UINT16_MAX;
    const int width = any ? 64 - __builtin_clzll(any) : 0;
    return width < WIDTH_ALL ? width : WIDTH_ALL;
}

static inline int
block_parts(const struct block *block)
{
    return block->size[0] > BLOCK_LANES ? BLOCK_PARTS : 1;
}

static inline block_lanes
block_spread(int16_t value)
{
    return (block_lanes){0} + value;
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

struct block_choice
block_choose(const struct block *block)
{
    const block_lanes first = block_spread(block->rows[0][0][0]);
    const int parts = block_parts(block);
    const int32_t widths = parts * (block->size[1] / 2);
    struct block_choice chosen = {.way = WAYS};
    if (block_is(block, first))
        return chosen;
    int32_t fewest = INT32_MAX;
    for (int way = block->size[2] > 1 ? WAY_MEDIAN : WAY_UPPER; way < (block->size[2] > 1 ? WAYS : WAY_MEAN); way++) {
        int32_t bits = 0;
        for (int32_t y = 1; y < block->size[1]; y += 2)
            for (int part = 0; part < parts; part++)
                bits += block_width(block_difference(block, y, block->size[2] / 2, part, way, first));
        if (bits < fewest) {
            fewest = bits;
            chosen.way = way;
        }
    }
    chosen.bits = OTHER_BITS + (widths > 0 ? BLOCK_BIT * fewest / widths : 0);
    return chosen;
}

void
block_round(struct block *block, int shift)
{
    for (int32_t z = 0; z < block->size[2] && shift > 0; z++)
        for (int32_t y = 0; y < block->size[1]; y++)
            for (int i = 0; i < BLOCK_PARTS; i++) {
                block_lanes *row = &block->rows[BLOCK_EDGE * z + y][i];
                const block_lanes halves = *row >> (shift - 1);
                *row = (halves >> 1) + (halves & 1);
            }
}

/* Multiplies the voxels of the first slices by 2^shift. Those that would be larger than `most` become it. */
static void
block_scale(struct block *block, int32_t slices, int shift, int16_t most)
{
    const block_lanes top = block_spread(most), quotient = block_spread((int16_t)(most >> shift));
    for (int32_t i = 0; i < slices * BLOCK_EDGE && shift > 0; i++)
        for (int part = 0; part < BLOCK_PARTS; part++) {
            block_lanes *row = &block->rows[i][part];
            const block_lanes above = *row > quotient;
            *row = ((block_lanes)((block_bits)*row << shift) & ~above) | (top & above);
        }
}

/* ------------------------------------------------------------------------------- widths ---- */

/* Bits of a width in the table of a slice, by the table's form. Widths have the base added. */
static const int width_bits[] = {0, 1, 2, 4};

enum { FORMS = sizeof width_bits / sizeof *width_bits, SLICE_WIDTHS = BLOCK_PARTS * BLOCK_EDGE };

/* Sums the widths, each at least `base`. */
static inline int
block_sum_widths(const uint8_t widths[SLICE_WIDTHS], uint8_t base)
{
    int sum = 0;
    for (int i = 0; i < SLICE_WIDTHS; i++)
        sum += widths[i] > base ? widths[i] : base;
    return sum;
}

/* Raises the widths to the base, and writes their differences from it. */
static inline __attribute__((always_inline)) void
block_put_above(uint8_t widths[SLICE_WIDTHS], uint8_t base, int bits, uint8_t *to)
{
    for (int i = 0; i < SLICE_WIDTHS; i++)
        widths[i] = widths[i] > base ? widths[i] : base;
    for (int i = 0; i < SLICE_WIDTHS * bits / 8; i++) {
        unsigned byte = 0;
        for (int k = 0; k < 8 / bits; k++)
            byte |= (unsigned)(widths[8 / bits * i + k] - base) << bits * k;
        to[i] = (uint8_t)byte;
    }
}

/* Writes the table of widths of a slice in the form that needs the fewest bits, and raises the widths to those of the table. */
static uint8_t *
block_put_widths(uint8_t widths[SLICE_WIDTHS], int32_t count, uint8_t *to)
{
    int most = 0, base = 0, form = 0, fewest = INT32_MAX;
    for (int i = 0; i < SLICE_WIDTHS; i++)
        most = widths[i] > most ? widths[i] : most;
    for (int tried = 0; tried < FORMS; tried++) {
        const int above = most - (1 << width_bits[tried]) + 1, low = above > 0 ? above : 0;
        const int bits = count * width_bits[tried] + BLOCK_LANES * block_sum_widths(widths, (uint8_t)low);
        if (bits < fewest) {
            fewest = bits;
            form = tried;
            base = low;
        }
        if (low == 0)
            break;
    }
    *to++ = (uint8_t)(form << 4 | base);
    switch (form) {
    case 0:
        memset(widths, base, SLICE_WIDTHS);
        break;
    case 1:
        block_put_above(widths, (uint8_t)base, 1, to);
        break;
    case 2:
        block_put_above(widths, (uint8_t)base, 2, to);
        break;
    default:
        block_put_above(widths, (uint8_t)base, 4, to);
    }
    return to + (count * width_bits[form] + 7) / 8;
}

/* Reads a table of widths. Adds their bits. Returns its end, or NULL if it is damaged. */
static const uint8_t *
block_take_widths(const uint8_t *from, const uint8_t *end, int32_t count, uint8_t *widths, int32_t *sum)
{
    if (from == end || *from >> 4 >= FORMS)
        return NULL;
    const int base = *from & 15, bits = width_bits[*from >> 4];
    from++;
    if (end - from < (count * bits + 7) / 8)
        return NULL;
    for (int32_t i = 0; i < count; i++) {
        const int width = base + (from[i * bits / 8] >> i * bits % 8 & ((1 << bits) - 1));
        if (width > WIDTH_ALL)
            return NULL;
        widths[i] = (uint8_t)(width < WIDTH_ALL ? width : LANE_BITS);
        *sum += widths[i];
    }
    return from + (count * bits + 7) / 8;
}

/* ------------------------------------------------------------------------------- values ---- */

/* Words of lanes that are being written. */
struct block_writing {
    uint8_t *at;
    size_t bytes; /* of a word */
    block_bits kept;
    unsigned used; /* bits of `kept` */
};

/* Appends bits of lanes. Always stores a word, since the processor mispredicts half of the branches here. */
static inline void
block_put(struct block_writing *writing, block_bits lanes, unsigned width)
{
    const block_bits kept = writing->kept | lanes << writing->used;
    const unsigned used = writing->used + width, full = used / LANE_BITS, left = used % LANE_BITS;
    const unsigned over = full * (width - left); /* 0 to 16 */
    const block_bits whole = (block_bits)block_spread((int16_t)-full);
    memcpy(writing->at, &kept, sizeof kept);
    writing->at += full * writing->bytes;
    writing->kept = (kept & ~whole) | (lanes >> over / 2 >> (over + 1) / 2 & whole);
    writing->used = left;
}

uint8_t *
block_pack(const struct block *block, int way, int shift, uint8_t *to)
{
    const int16_t value = block->rows[0][0][0];
    const block_lanes first = block_spread(value);
    const int parts = block_parts(block);
    const int32_t count = parts * block->size[1];
    to[0] = (uint8_t)(shift << 4 | way);
    memcpy(to + 1, &value, sizeof value);
    if (way == WAYS)
        return to + 3;
    uint8_t widths[BLOCK_EDGE][SLICE_WIDTHS];
    block_bits differences[BLOCK_EDGE][SLICE_WIDTHS];
    uint8_t *at = to + 3;
    if (count < SLICE_WIDTHS)
        memset(widths, 0, sizeof widths);
    for (int32_t z = 0; z < block->size[2]; z++) {
        for (int32_t y = 0, n = 0; y < block->size[1]; y++)
            for (int part = 0; part < parts; part++, n++) {
                differences[z][n] = block_difference(block, y, z, part, way, first);
                widths[z][n] = (uint8_t)block_width(differences[z][n]);
            }
        at = block_put_widths(widths[z], count, at);
    }
    struct block_writing writing = {.at = at, .bytes = 2 * (size_t)(parts > 1 ? BLOCK_LANES : block->size[0])};
    for (int32_t z = 0; z < block->size[2]; z++)
        for (int32_t n = 0; n < count; n++)
            block_put(&writing, differences[z][n], widths[z][n] < WIDTH_ALL ? widths[z][n] : LANE_BITS);
    if (writing.used > 0)
        memcpy(writing.at, &writing.kept, sizeof writing.kept);
    return writing.at + (writing.used > 0 ? writing.bytes : 0);
}

/* Reads `width` bits of each lane, from bit `at` of the words. */
static inline block_bits
block_take_lanes(const uint8_t *words, size_t bytes, int32_t at, int width)
{
    const uint8_t *from = words + bytes * (size_t)(at / LANE_BITS);
    const int skipped = at % LANE_BITS;
    block_bits low, high;
    memcpy(&low, from, sizeof low);
    memcpy(&high, from + bytes, sizeof high);
    return (low >> skipped | high << 1 << (LANE_BITS - 1 - skipped)) & (uint16_t)((1 << width) - 1);
}

const uint8_t *
block_unpack(struct block *block, int32_t slices, int16_t most, const uint8_t *from, const uint8_t *end)
{
    int16_t value;
    if (end - from < 3 || (from[0] & 15) > WAYS)
        return NULL;
    const int way = from[0] & 15, shift = from[0] >> 4;
    memcpy(&value, from + 1, sizeof value);
    const block_lanes first = block_spread(value);
    from += 3;
    if (way == WAYS) {
        for (int32_t i = 0; i < slices * BLOCK_EDGE; i++)
            block->rows[i][0] = block->rows[i][1] = first;
        block_scale(block, slices, shift, most);
        return from;
    }
    const int parts = block_parts(block);
    const int32_t count = parts * block->size[1];
    const size_t bytes = 2 * (size_t)(parts > 1 ? BLOCK_LANES : block->size[0]);
    uint8_t widths[BLOCK_EDGE][SLICE_WIDTHS];
    int32_t sum = 0, bit = 0;
    for (int32_t z = 0; z < block->size[2] && from; z++)
        from = block_take_widths(from, end, count, widths[z], &sum);
    if (!from || end - from < (ptrdiff_t)bytes * ((sum + LANE_BITS - 1) / LANE_BITS))
        return NULL;
    for (int32_t z = 0; z < slices; z++)
        for (int32_t y = 0, n = 0; y < block->size[1]; y++)
            for (int part = 0; part < parts; part++, n++) {
                block_lanes *at = block->rows[BLOCK_EDGE * z + y] + part;
                const block_lanes predicted = block_predict(at, y, z, way, first, block->size[0] < BLOCK_EDGE);
                const block_bits bits = block_take_lanes(from, bytes, bit, widths[z][n]);
                *at = (block_lanes)((block_bits)predicted + ((bits >> 1) ^ -(bits & 1)));
                bit += widths[z][n];
            }
    block_scale(block, slices, shift, most);
    return from + bytes * (size_t)((sum + LANE_BITS - 1) / LANE_BITS);
}
