/*
 * isa_private.h - the loops behind the tables of isa.h.
 *
 * Loops that the compiler vectorises well are written once here and compiled per instruction set,
 * in its file. Packing is written there with intrinsics.
 */
#ifndef NOCTULE_KERNELS_CPU_ISA_PRIVATE_H
#define NOCTULE_KERNELS_CPU_ISA_PRIVATE_H

#include "kernels/coarse/coarse_rule.h"
#include "kernels/cpu/isa.h"
#include "kernels/range/range.h"

#include <stdlib.h>

extern const struct isa isa_scalar;
#ifdef __x86_64__
extern const struct isa isa_avx2, isa_avx512;
#endif

#define INLINE static inline __attribute__((always_inline))
#ifndef ISA_TARGET /* the instruction set of the including file */
#define ISA_TARGET
#endif
#define LOOP static inline ISA_TARGET

enum { AHEAD = 4096 /* bytes: hardware prefetching stops at the end of a page */ };

/* Prefetches for loops that read a volume once. The address may lie beyond the end. */
INLINE void
fetch_ahead(const void *address)
{
    __builtin_prefetch((const char *)address + AHEAD);
}

/* Returns a mask of the lowest `count` bits, 1 to 64. */
INLINE uint64_t
low_bits(int64_t count)
{
    return ~UINT64_C(0) >> (64 - count);
}

INLINE int64_t
run_starts(uint64_t word, uint64_t *carry)
{
    uint64_t starts = word & ~(word << 1 | *carry);

    *carry = word >> 63;
    return __builtin_popcountll(starts);
}

/* Loops for both sizes of values. */
#define VALUE_BODIES(BITS)                                                                                             \
    INLINE uint64_t pack_word##BITS(const uint##BITS##_t *values, int64_t count, const struct isa_interval pass[2])    \
    {                                                                                                                  \
        const uint16_t mask = UINT##BITS##_MAX;                                                                        \
        uint64_t word = 0;                                                                                             \
                                                                                                                       \
        for (int64_t i = 0; i < count; i++)                                                                            \
            word |= (uint64_t)((uint16_t)((values[i] - pass[0].low) & mask) <= pass[0].span ||                         \
                               (uint16_t)((values[i] - pass[1].low) & mask) <= pass[1].span)                           \
                    << i;                                                                                              \
        return word;                                                                                                   \
    }                                                                                                                  \
                                                                                                                       \
    LOOP void extremes##BITS(const uint##BITS##_t *values, int64_t count, struct isa_extremes *extremes)               \
    {                                                                                                                  \
        uint##BITS##_t smallest = (uint##BITS##_t)extremes->smallest;                                                  \
        uint##BITS##_t largest = (uint##BITS##_t)extremes->largest;                                                    \
        uint##BITS##_t bias = (uint##BITS##_t)extremes->bias;                                                          \
        uint##BITS##_t low = (uint##BITS##_t)extremes->skip.low;                                                       \
        uint##BITS##_t span = (uint##BITS##_t)extremes->skip.span;                                                     \
        uint##BITS##_t skipping = extremes->skipping ? UINT##BITS##_MAX : 0;                                           \
                                                                                                                       \
        for (int64_t i = 0; i < count; i++) {                                                                          \
            uint##BITS##_t value = values[i] ^ bias;                                                                   \
            uint##BITS##_t skip = (uint##BITS##_t)(value - low) <= span ? skipping : 0;                                \
            uint##BITS##_t for_smallest = value | skip;                                                                \
            uint##BITS##_t for_largest = value & (uint##BITS##_t) ~skip;                                               \
                                                                                                                       \
            smallest = for_smallest < smallest ? for_smallest : smallest;                                              \
            largest = for_largest > largest ? for_largest : largest;                                                   \
        }                                                                                                              \
        extremes->smallest = smallest;                                                                                 \
        extremes->largest = largest;                                                                                   \
    }

VALUE_BODIES(8)
VALUE_BODIES(16)

LOOP int64_t
count_new(const uint64_t *line, const uint64_t *before, int64_t words)
{
    int64_t count = 0;

    for (int64_t i = 0; i < words; i++)
        count += __builtin_popcountll(line[i] & ~before[i]);
    return count;
}

LOOP int64_t
count_bits(const uint64_t *bits, int64_t words)
{
    int64_t sum = 0;

    for (int64_t i = 0; i < words; i++)
        sum += __builtin_popcountll(bits[i]);
    return sum;
}

LOOP int64_t
count_runs(const uint64_t *bits, int64_t elements, uint64_t flip)
{
    int64_t runs = 0, words = (elements + 63) / 64;
    uint64_t carry = 0;

    for (int64_t i = 0; i + 1 < words; i++)
        runs += run_starts(bits[i] ^ flip, &carry);
    return runs + run_starts((bits[words - 1] ^ flip) & low_bits(elements - 64 * (words - 1)), &carry);
}

/* Finds the pairs of a word: a pair begins where runs of both rows begin to overlap or to touch. */
INLINE int64_t
touching_word(struct isa_touching *rows, uint64_t a, uint64_t b, uint32_t (*pairs)[2])
{
    const uint64_t left_a = a << 1 | rows->carry[0], left_b = b << 1 | rows->carry[1];
    const uint64_t starts_a = a & ~left_a, starts_b = b & ~left_b;
    uint64_t places = a & b & ~(left_a & left_b);
    int64_t found = 0;

    if (rows->corners)
        places |= (starts_b & ~a & left_a) | (starts_a & ~b & left_b);
    for (; places; places &= places - 1) {
        const uint64_t until = places ^ (places - 1);

        pairs[found][0] = rows->runs[0] + (uint32_t)__builtin_popcountll(starts_a & until) - 1;
        pairs[found++][1] = rows->runs[1] + (uint32_t)__builtin_popcountll(starts_b & until) - 1;
    }
    rows->runs[0] += (uint32_t)__builtin_popcountll(starts_a);
    rows->runs[1] += (uint32_t)__builtin_popcountll(starts_b);
    rows->carry[0] = a >> 63;
    rows->carry[1] = b >> 63;
    return found;
}

LOOP int64_t
touches(struct isa_touching *rows, int64_t words, uint32_t (*pairs)[2])
{
    int64_t found = 0;

    for (const int64_t end = rows->word + words; rows->word < end; rows->word++) {
        const uint64_t own = rows->word + 1 == rows->words ? rows->tail : ~UINT64_C(0);

        found += touching_word(rows, (rows->rows[0][rows->word] ^ rows->flip) & own,
                               (rows->rows[1][rows->word] ^ rows->flip) & own, pairs + found);
    }
    return found;
}

INLINE void
join16_word(const struct isa_join *join, int64_t from, int64_t count, uint64_t *edges, uint64_t *settled)
{
    uint64_t edge = 0, settle = 0;

    for (int64_t i = 0; i < count; i++) {
        uint16_t own = join->own[from + i], other = join->other[from + i];
        uint64_t strong = join->affinity[from + i] >= own + join->step;

        edge |= (strong & (own == other)) << i;
        settle |= (strong & (own < other)) << i;
    }
    if (edges)
        edges[from / 64] = edge;
    settled[from / 64] |= settle;
}

/* Handles 16 values at a time, with one bit of the 16 for each, so that the loop vectorises. */
LOOP void
raise16(const uint64_t *bits, int64_t count, uint16_t bit, uint16_t *values)
{
    static const uint16_t bit_of[16] = {1 << 0, 1 << 1, 1 << 2,  1 << 3,  1 << 4,  1 << 5,  1 << 6,  1 << 7,
                                        1 << 8, 1 << 9, 1 << 10, 1 << 11, 1 << 12, 1 << 13, 1 << 14, 1 << 15};
    int64_t i = 0;

    for (; i + 16 <= count; i += 16) {
        uint16_t raised = (uint16_t)(bits[i / 64] >> i % 64);

        for (int k = 0; raised && k < 16; k++)
            values[i + k] |= raised & bit_of[k] ? bit : 0;
    }
    for (; i < count; i++)
        values[i] = (uint16_t)(values[i] | (bits[i / 64] >> i % 64 & 1) * bit);
}

LOOP void
affinity16(const struct isa_pair *pair, int64_t count, uint16_t *restrict affinity)
{
    const uint16_t *a = pair->a, *b = pair->b;
    const double *first = pair->first, *second = pair->second;

    for (int64_t i = 0; i < count; i++) {
        int32_t sum = a[i] + b[i], apart = abs(a[i] - b[i]);
        double scaled = 65535.0 * (first[sum] + second[apart]);

        affinity[i] = (uint16_t)(int32_t)(scaled < 65535.0 ? scaled : 65535.0);
    }
}

LOOP void
level16(const uint16_t *values, int64_t count, const uint16_t *table, uint16_t bias, uint8_t *restrict levels)
{
    for (int64_t i = 0; i < count; i++)
        levels[i] = (uint8_t)table[values[i] ^ bias];
}

enum {
    TALLIES = 1024, /* indices buffered before counting: loads of just-stored data are slow */
    RUN = 32,       /* indices compared together: branches on shorter runs mispredict */
};

/* Long runs of one index are common in air and outside a region, and would stall on the counter
 * that was just written. Adds runs of one index at once, and spreads others over the counters. */
#define TALLY_BODIES(BITS, COUNTER)                                                                                    \
    INLINE bool all_equal##BITS(const uint##BITS##_t *index)                                                           \
    {                                                                                                                  \
        uint##BITS##_t differences = (index[0] ^ index[RUN / 2]) | (index[0] ^ index[RUN - 1]);                        \
                                                                                                                       \
        if (differences != 0)                                                                                          \
            return false;                                                                                              \
        for (int k = 0; k < RUN; k++)                                                                                  \
            differences |= index[k] ^ index[0];                                                                        \
        return differences == 0;                                                                                       \
    }                                                                                                                  \
                                                                                                                       \
    LOOP void tally##BITS(const uint##BITS##_t *index, int64_t count, COUNTER *const tables[4])                        \
    {                                                                                                                  \
        COUNTER *a = tables[0], *b = tables[1], *c = tables[2], *d = tables[3];                                        \
        int64_t i = 0;                                                                                                 \
                                                                                                                       \
        while (i + 4 <= count) {                                                                                       \
            int64_t end = count - i < RUN ? count - 3 : i + RUN;                                                       \
                                                                                                                       \
            if (count - i >= RUN && all_equal##BITS(index + i)) {                                                      \
                a[index[i]] = (COUNTER)(a[index[i]] + RUN);                                                            \
                i += RUN;                                                                                              \
                continue;                                                                                              \
            }                                                                                                          \
            for (; i < end; i += 4) {                                                                                  \
                a[index[i]]++;                                                                                         \
                b[index[i + 1]]++;                                                                                     \
                c[index[i + 2]]++;                                                                                     \
                d[index[i + 3]]++;                                                                                     \
            }                                                                                                          \
        }                                                                                                              \
        for (; i < count; i++)                                                                                         \
            a[index[i]]++;                                                                                             \
    }                                                                                                                  \
                                                                                                                       \
    INLINE void tally_points##BITS(const struct isa_tuple *tuple, int points, int64_t count, COUNTER *const tables[4]) \
    {                                                                                                                  \
        const uint8_t *a = tuple->level[0], *b = tuple->level[1];                                                      \
        const uint8_t *c = tuple->level[2], *d = tuple->level[3];                                                      \
        uint##BITS##_t index[TALLIES], base = (uint##BITS##_t)tuple->base;                                             \
                                                                                                                       \
        for (int64_t from = 0; from < count; from += TALLIES) {                                                        \
            int64_t some = count - from < TALLIES ? count - from : TALLIES;                                            \
                                                                                                                       \
            for (int64_t i = 0; i < some; i++) {                                                                       \
                uint##BITS##_t sum = (uint16_t)(base * a[from + i] + b[from + i]);                                     \
                                                                                                                       \
                if (points > 2)                                                                                        \
                    sum = (uint##BITS##_t)(base * sum + c[from + i]);                                                  \
                if (points > 3)                                                                                        \
                    sum = (uint##BITS##_t)(base * sum + d[from + i]);                                                  \
                index[i] = sum;                                                                                        \
            }                                                                                                          \
            tally##BITS(index, some, tables);                                                                          \
        }                                                                                                              \
    }

TALLY_BODIES(16, uint16_t)
TALLY_BODIES(32, uint32_t)

LOOP void
tally_tuples8(const struct isa_tuple *tuple, int64_t count, const struct isa_counters *counters)
{
    uint32_t *const high[4] = {counters->high, counters->high, counters->high, counters->high};

    if (tuple->points == 2)
        tally_points16(tuple, 2, count, counters->low);
    else if (tuple->points == 3 && !tuple->wide)
        tally_points16(tuple, 3, count, counters->low);
    else if (tuple->points == 3)
        tally_points32(tuple, 3, count, high);
    else
        tally_points16(tuple, 4, count, counters->low);
}

LOOP void
relieve16(uint16_t *restrict low, int64_t count, uint32_t *restrict high)
{
    uint16_t any = 0;

    for (int64_t i = 0; i < count; i++)
        any |= low[i];
    if (any <= INT16_MAX)
        return;
    for (int64_t i = 0; i < count; i++) {
        high[i] += low[i];
        low[i] = 0;
    }
}

INLINE int16_t
larger(int16_t a, int16_t b)
{
    return a > b ? a : b;
}

LOOP void
largest16(const struct isa_windows *windows, int16_t *restrict largest)
{
    const int16_t *a = windows->row[0], *b = windows->row[1], *c = windows->row[2];

    for (int64_t i = 0; i < windows->count; i++) {
        int16_t left = larger(larger(a[i], b[i]), c[i]);
        int16_t middle = larger(larger(a[i + 1], b[i + 1]), c[i + 1]);
        int16_t right = larger(larger(a[i + 2], b[i + 2]), c[i + 2]);

        largest[i] = larger(larger(left, middle), right);
    }
}

/* A 16-bit mask per condition, so that vectors keep their lanes. */
#define WHERE(condition) ((uint16_t)((condition) ? 0xFFFF : 0))

LOOP void
beyond16(const struct isa_windows *windows, const int16_t *bound, bool strictly, uint8_t *restrict codes)
{
    const int16_t *a = windows->row[0], *b = windows->row[1], *c = windows->row[2];

#define NEIGHBOURS(TEST)                                                                                               \
    for (int64_t i = 0; i < windows->count; i++) {                                                                     \
        int16_t than = bound[i];                                                                                       \
        uint16_t code = (uint16_t)(WHERE(b[i + 2] TEST than) & 1);                                                     \
                                                                                                                       \
        code |= WHERE(a[i + 2] TEST than) & 2;                                                                         \
        code |= WHERE(a[i + 1] TEST than) & 4;                                                                         \
        code |= WHERE(a[i] TEST than) & 8;                                                                             \
        code |= WHERE(b[i] TEST than) & 16;                                                                            \
        code |= WHERE(c[i] TEST than) & 32;                                                                            \
        code |= WHERE(c[i + 1] TEST than) & 64;                                                                        \
        code |= WHERE(c[i + 2] TEST than) & 128;                                                                       \
        codes[i] = (uint8_t)code;                                                                                      \
    }
    if (strictly)
        NEIGHBOURS(>)
    else
        NEIGHBOURS(>=)
#undef NEIGHBOURS
}

/* Returns the integer below an average, or the average itself if it is an integer or is rounded. */
INLINE int16_t
average_below(int16_t a, int16_t b, enum isa_average average)
{
    int16_t floor = (int16_t)((a & b) + ((a ^ b) >> 1)), ceiling;

    if (average != ISA_TRUNCATED)
        return floor;
    ceiling = (int16_t)((a | b) - ((a ^ b) >> 1));
    return floor < 0 ? ceiling : floor;
}

INLINE int16_t
average_above(int16_t a, int16_t b, enum isa_average average)
{
    if (average == ISA_EXACT)
        return (int16_t)((a | b) - ((a ^ b) >> 1));
    return average_below(a, b, average);
}

/* Returns all ones, unless n lies between the two averages. */
INLINE uint16_t
on_one_side(int16_t n, int16_t below_1, int16_t above_1, int16_t below_2, int16_t above_2)
{
    return (uint16_t) ~((WHERE(below_1 < n) & WHERE(above_2 > n)) | (WHERE(below_2 < n) & WHERE(above_1 > n)));
}

/* Pairs of adjacent neighbours: side k has n_k and n_k+1. */
INLINE void
adjacent16_some(const struct isa_windows *windows, enum isa_average average, uint8_t *restrict codes)
{
    const int16_t *a = windows->row[0], *b = windows->row[1], *c = windows->row[2];

    for (int64_t i = 0; i < windows->count; i++) {
        int16_t n0 = b[i + 2], n1 = a[i + 2], n2 = a[i + 1], n3 = a[i];
        int16_t n4 = b[i], n5 = c[i], n6 = c[i + 1], n7 = c[i + 2];
#define SIDE(K, N, NEXT) int16_t low##K = average_below(N, NEXT, average), high##K = average_above(N, NEXT, average)
        SIDE(0, n0, n1);
        SIDE(1, n1, n2);
        SIDE(2, n2, n3);
        SIDE(3, n3, n4);
        SIDE(4, n4, n5);
        SIDE(5, n5, n6);
        SIDE(6, n6, n7);
        SIDE(7, n7, n0);
#undef SIDE
        uint16_t code = on_one_side(n0, low1, high1, low6, high6) & 1;

        code |= on_one_side(n1, low2, high2, low7, high7) & 2;
        code |= on_one_side(n2, low3, high3, low0, high0) & 4;
        code |= on_one_side(n3, low4, high4, low1, high1) & 8;
        code |= on_one_side(n4, low5, high5, low2, high2) & 16;
        code |= on_one_side(n5, low6, high6, low3, high3) & 32;
        code |= on_one_side(n6, low7, high7, low4, high4) & 64;
        code |= on_one_side(n7, low0, high0, low5, high5) & 128;
        codes[i] = (uint8_t)code;
    }
}

LOOP void
adjacent16(const struct isa_windows *windows, enum isa_average average, uint8_t *codes)
{
    switch (average) {
    case ISA_EXACT:
        adjacent16_some(windows, ISA_EXACT, codes);
        return;
    case ISA_FLOOR:
        adjacent16_some(windows, ISA_FLOOR, codes);
        return;
    case ISA_TRUNCATED:
        adjacent16_some(windows, ISA_TRUNCATED, codes);
        return;
    }
}

/* One row of the eight matrices, as a vector if the instruction set has one. */
typedef uint64_t lanes __attribute__((vector_size(64), aligned(8)));

/* Swaps the off-diagonal quarters of squares; a and b are rows of the upper and lower half. */
INLINE void
swap_quarters(lanes *a, lanes *b, int half, uint64_t mask)
{
    lanes swap = (*a >> half ^ *b) & mask;

    *a ^= swap << half;
    *b ^= swap;
}

/* Runs three transpose steps on eight rows, `apart` rows from each other, in registers: for squares
 * of 8, 4 and 2 times that side. */
INLINE void
three_steps(lanes *rows, int apart, const uint64_t masks[3])
{
    lanes row[8];

    for (int k = 0; k < 8; k++)
        row[k] = rows[k * apart];
    for (int k = 0; k < 4; k++)
        swap_quarters(&row[k], &row[k + 4], 4 * apart, masks[0]);
    for (int k = 0; k < 4; k++)
        swap_quarters(&row[k + (k & 2)], &row[k + (k & 2) + 2], 2 * apart, masks[1]);
    for (int k = 0; k < 4; k++)
        swap_quarters(&row[2 * k], &row[2 * k + 1], apart, masks[2]);
    for (int k = 0; k < 8; k++)
        rows[k * apart] = row[k];
}

LOOP void
transpose8(uint64_t row[64][8])
{
    static const uint64_t wide[3] = {UINT64_C(0x00000000FFFFFFFF), UINT64_C(0x0000FFFF0000FFFF),
                                     UINT64_C(0x00FF00FF00FF00FF)};
    static const uint64_t narrow[3] = {UINT64_C(0x0F0F0F0F0F0F0F0F), UINT64_C(0x3333333333333333),
                                       UINT64_C(0x5555555555555555)};
    lanes *rows = (lanes *)row;

    for (int r = 0; r < 8; r++)
        three_steps(rows + r, 8, wide);
    for (int r = 0; r < 64; r += 8)
        three_steps(rows + r, 1, narrow);
}

/* Bytes of the longest vectors of which there are 16 or more registers. */
#ifndef ISA_VECTOR
#define ISA_VECTOR 16
#endif
#define SHORT_VECTOR (ISA_VECTOR < 32 ? ISA_VECTOR : 32)
typedef uint64_t long_vector __attribute__((vector_size(ISA_VECTOR), aligned(8)));
typedef uint64_t short_vector __attribute__((vector_size(SHORT_VECTOR), aligned(8)));

/* Unions under construction, in rows of `pitch` words. */
struct uniting {
    const struct isa_rows *rows;
    int64_t begin, end; /* of the group, in the offsets */
    int64_t pitch;
    uint64_t *to;
};

/* Unites the group's WORDS words from `word` on in TALL rows from `row` on, in registers. */
#define UNITE(NAME, VECTOR, WORDS, TALL)                                                                               \
    INLINE void NAME(const struct uniting *uniting, int64_t row, int64_t word)                                         \
    {                                                                                                                  \
        enum { LONG = sizeof(VECTOR) / sizeof(uint64_t), WIDE = (WORDS) / LONG };                                      \
        enum { VECTORS = (TALL)*WIDE };                                                                                \
        const struct isa_rows *rows = uniting->rows;                                                                   \
        const uint64_t *first = rows->first + row * rows->stride + word;                                               \
        uint64_t *to = uniting->to + row * uniting->pitch + word;                                                      \
        VECTOR sum[VECTORS];                                                                                           \
                                                                                                                       \
        for (int i = 0; i < VECTORS; i++)                                                                              \
            sum[i] = *(const VECTOR *)(to + i / WIDE * uniting->pitch + i % WIDE * LONG);                              \
        for (int64_t n = uniting->begin; n < uniting->end; n++) {                                                      \
            const uint64_t *from = first + rows->offsets[n];                                                           \
                                                                                                                       \
            for (int i = 0; i < VECTORS; i++)                                                                          \
                sum[i] |= *(const VECTOR *)(from + i / WIDE * rows->stride + i % WIDE * LONG);                         \
        }                                                                                                              \
        for (int i = 0; i < VECTORS; i++)                                                                              \
            *(VECTOR *)(to + i / WIDE * uniting->pitch + i % WIDE * LONG) = sum[i];                                    \
    }

/* Variants with eight vectors, and with the vectors of one row. */
UNITE(unite_8_words, long_vector, 8, ISA_VECTOR / 8)
UNITE(unite_8_words_once, long_vector, 8, 1)
UNITE(unite_4_words, short_vector, 4, SHORT_VECTOR / 4)
UNITE(unite_4_words_once, short_vector, 4, 1)
UNITE(unite_1_word, uint64_t, 1, 1)

typedef void unite_piece(const struct uniting *uniting, int64_t row, int64_t word);

/* Handles pieces of `tall` rows by `wide` words. The last pieces may overlap others: a union may be
 * repeated. */
INLINE void
unite_pieces(const struct uniting *uniting, unite_piece *piece, int64_t tall, int64_t wide)
{
    const int64_t last = uniting->rows->count - tall, end = uniting->rows->words - wide;

    for (int64_t row = 0; row < last + tall; row += tall)
        for (int64_t word = 0; word < end + wide; word += wide)
            piece(uniting, row < last ? row : last, word < end ? word : end);
}

INLINE void
unite_group(const struct uniting *uniting)
{
    const struct isa_rows *rows = uniting->rows;
    const int64_t tall8 = ISA_VECTOR / 8, tall4 = SHORT_VECTOR / 4;

    if (rows->words >= 8 && rows->count >= tall8)
        unite_pieces(uniting, unite_8_words, tall8, 8);
    else if (rows->words >= 8)
        unite_pieces(uniting, unite_8_words_once, 1, 8);
    else if (rows->words >= 4 && rows->count >= tall4)
        unite_pieces(uniting, unite_4_words, tall4, 4);
    else if (rows->words >= 4)
        unite_pieces(uniting, unite_4_words_once, 1, 4);
    else
        unite_pieces(uniting, unite_1_word, 1, 1);
}

/* to[i] = the word, united with `from` shifted by less than a word to both sides. */
#define WIDEN(VECTOR, from, i, shift, to)                                                                              \
    do {                                                                                                               \
        const VECTOR own = *(const VECTOR *)((from) + (i));                                                            \
        const VECTOR low = *(const VECTOR *)((from) + (i)-1);                                                          \
        const VECTOR high = *(const VECTOR *)((from) + (i) + 1);                                                       \
                                                                                                                       \
        *(VECTOR *)((to) + (i)) =                                                                                      \
            own | own << (shift) | own >> (shift) | low >> (64 - (shift)) | high << (64 - (shift));                    \
    } while (0)

/* `from` must have a word of zeros before and after. */
INLINE void
widen_near(const uint64_t *from, int64_t words, int shift, uint64_t *to)
{
    const int64_t wide = sizeof(long_vector) / sizeof(uint64_t);

    if (words < wide)
        for (int64_t i = 0; i < words; i++)
            WIDEN(uint64_t, from, i, shift, to);
    else
        for (int64_t i = 0; i < words; i += wide)
            WIDEN(long_vector, from, i < words - wide ? i : words - wide, shift, to);
}

/* Returns the word of `bits` at `at`, shifted up by `shift`, less than a word; 0 outside. */
INLINE uint64_t
moved_word(const uint64_t *bits, int64_t words, int64_t at, int shift)
{
    uint64_t own = at >= 0 && at < words ? bits[at] : 0;
    uint64_t low = at >= 1 && at <= words ? bits[at - 1] : 0;

    return shift == 0 ? own : own << shift | low >> (64 - shift);
}

INLINE void
widen_far(const uint64_t *from, int64_t words, int64_t by, uint64_t *to)
{
    int64_t far = by / 64;
    int shift = (int)(by % 64);

    for (int64_t i = 0; i < words; i++) {
        uint64_t below = moved_word(from, words, i - far, shift);
        uint64_t above =
            shift == 0 ? moved_word(from, words, i + far, 0) : moved_word(from, words, i + far + 1, 64 - shift);

        to[i] = from[i] | below | above;
    }
}

LOOP void
unite_pair(const struct isa_pair_rows *rows, uint64_t *to)
{
    const int64_t words = rows->words, wide = ISA_VECTOR / 8;

    for (int64_t row = 0; row < rows->count; row++, to += words) {
        const uint64_t *a = rows->a + row * rows->stride, *b = rows->b + row * rows->stride;
        int64_t i = 0;

        for (; i + wide <= words; i += wide)
            *(long_vector *)(to + i) =
                (*(const long_vector *)(a + i) ^ rows->flip) | (*(const long_vector *)(b + i) ^ rows->flip);
        for (; i < words; i++)
            to[i] = (a[i] ^ rows->flip) | (b[i] ^ rows->flip);
    }
}

LOOP void
unite_shifted(const struct isa_shifted *from, int64_t words, uint64_t *to)
{
    const int64_t wide = ISA_VECTOR / 8;
    const int down = from->shift, up = 63 - down;
    int64_t i = 0;

    for (; i + wide <= words; i += wide)
        *(long_vector *)(to + i) = *(const long_vector *)(from->own + i) |
                                   *(const long_vector *)(from->low + i) >> down |
                                   (*(const long_vector *)(from->high + i) << 1) << up;
    for (; i < words; i++)
        to[i] = from->own[i] | from->low[i] >> down | (from->high[i] << 1) << up;
}

LOOP void
count_up(const uint64_t *bits, int64_t words, int digits, uint64_t *counts)
{
    const int64_t wide = ISA_VECTOR / 8;
    int64_t i = 0;

    for (; i + wide <= words; i += wide) {
        long_vector carry = *(const long_vector *)(bits + i);

        for (int j = 0; j < digits; j++) {
            long_vector *count = (long_vector *)(counts + j * words + i);
            const long_vector own = *count;

            *count = own ^ carry;
            carry &= own;
        }
    }
    for (; i < words; i++) {
        uint64_t carry = bits[i];

        for (int j = 0; j < digits; j++) {
            const uint64_t own = counts[j * words + i];

            counts[j * words + i] = own ^ carry;
            carry &= own;
        }
    }
}

/* Alternates between two buffers. An element widened by `done` covers done + 1 positions at the
 * row's end, so that a shift by done + 1 leaves no gap. */
LOOP const uint64_t *
unite(const struct isa_rows *rows, uint64_t *space)
{
    const int64_t words = rows->words, pitch = words + 2;
    uint64_t *from = space + 1, *to = from + rows->count * pitch;
    int64_t begin = 0;

    for (int64_t i = 0; i < 2 * rows->count * pitch; i++)
        space[i] = 0;
    for (int64_t group = 0; group < rows->groups; group++) {
        const struct uniting uniting = {rows, begin, rows->ends[group], pitch, from};

        unite_group(&uniting);
        begin = rows->ends[group];
        for (int64_t done = 0, step; done < rows->widen[group]; done += step) {
            const int64_t left = rows->widen[group] - done;
            uint64_t *turned = from;

            step = left < done + 1 ? left : done + 1;
            for (int64_t r = 0; r < rows->count; r++)
                if (step < 64)
                    widen_near(from + r * pitch, words, (int)step, to + r * pitch);
                else
                    widen_far(from + r * pitch, words, step, to + r * pitch);
            from = to;
            to = turned;
        }
    }
    return from;
}

/* The copy of the parameters may be in registers, since stores cannot alias it. */
#define CLIP_BODY(BITS)                                                                                                \
    LOOP void clip##BITS(const uint##BITS##_t *values, int64_t count, const struct range_clipping *given,              \
                         uint16_t *restrict clipped)                                                                   \
    {                                                                                                                  \
        const struct range_clipping clip = *given;                                                                     \
                                                                                                                       \
        for (int64_t i = 0; i < count; i++)                                                                            \
            clipped[i] = range_clipped(&clip, values[i]);                                                              \
    }

CLIP_BODY(8)
CLIP_BODY(16)

LOOP void
add16(const uint16_t *values, int64_t count, uint32_t *restrict sums)
{
    for (int64_t i = 0; i < count; i++)
        sums[i] += values[i];
}

INLINE void
fold32_by(const uint32_t *sums, int64_t count, int64_t factor, uint64_t *restrict totals)
{
    for (int64_t i = 0; i < count; i++)
        for (int64_t k = 0; k < factor; k++)
            totals[i] += sums[factor * i + k];
}

/* Factors of most images are constants, so that the loop vectorises. */
LOOP void
fold32(const uint32_t *sums, int64_t count, int64_t factor, uint64_t *totals)
{
    switch (factor) {
    case 1:
        fold32_by(sums, count, 1, totals);
        break;
    case 2:
        fold32_by(sums, count, 2, totals);
        break;
    case 3:
        fold32_by(sums, count, 3, totals);
        break;
    case 4:
        fold32_by(sums, count, 4, totals);
        break;
    default:
        fold32_by(sums, count, factor, totals);
    }
}

LOOP void
blocks16(const uint64_t *totals, int64_t count, const struct coarse_rule *given, int16_t *restrict blocks)
{
    const struct coarse_rule rule = *given;

    if (rule.multiplier == 0)
        for (int64_t i = 0; i < count; i++)
            blocks[i] = coarse_value_of_many(&rule, totals[i]);
    else
        for (int64_t i = 0; i < count; i++)
            blocks[i] = coarse_value_of_few(&rule, totals[i]);
}

/* Fills a group of ISA_SMOOTH sums at a time. */
LOOP void
smooth16(const int16_t *const *taps, const int16_t *weights, int radius, int64_t count, int16_t *restrict filtered)
{
    for (int64_t i = 0; i < count; i += ISA_SMOOTH) {
        int32_t sums[ISA_SMOOTH];

        for (int k = 0; k < ISA_SMOOTH; k++)
            sums[k] = 1 << 13;
        for (int tap = -radius; tap <= radius; tap++) {
            const int16_t *values = taps[radius + tap] + i, weight = weights[abs(tap)];

            for (int k = 0; k < ISA_SMOOTH; k++)
                sums[k] += weight * values[k];
        }
        for (int k = 0; k < ISA_SMOOTH; k++)
            filtered[i + k] = (int16_t)(sums[k] >> 14);
    }
}

/* One tap, or the sum of the two with one weight. */
#define ISA_SMOOTH_TAP(VECTOR, UNALIGNED, PREFIX, tap, i)                                                              \
    ((tap) == 0 ? (VECTOR) * (const UNALIGNED *)(taps[radius] + (i))                                                   \
                : PREFIX##_add_epi16((VECTOR) * (const UNALIGNED *)(taps[radius - (tap)] + (i)),                       \
                                     (VECTOR) * (const UNALIGNED *)(taps[radius + (tap)] + (i))))

/*
 * With instructions that multiply pairs and add both products. A pair is two of the taps above, or the last one and
 * zero. Unpacking and packing keep the order within 128 bits.
 */
#define ISA_SMOOTH15(ISA, VECTOR, UNALIGNED, PREFIX)                                                                   \
    LOOP void ISA##_smooth15(const int16_t *const *taps, const int16_t *weights, int radius, int64_t count,            \
                             int16_t *filtered)                                                                        \
    {                                                                                                                  \
        const int64_t wide = sizeof(VECTOR) / sizeof(*filtered), groups = ISA_SMOOTH / wide;                           \
                                                                                                                       \
        for (int64_t i = 0; i < count; i += ISA_SMOOTH) {                                                              \
            VECTOR low[ISA_SMOOTH / 16], high[ISA_SMOOTH / 16];                                                        \
                                                                                                                       \
            for (int64_t g = 0; g < groups; g++)                                                                       \
                low[g] = high[g] = PREFIX##_set1_epi32(1 << 13);                                                       \
            for (int tap = 0; tap <= radius; tap += 2) {                                                               \
                const bool pair = tap < radius;                                                                        \
                const VECTOR weight = PREFIX##_set1_epi32(weights[tap] | (pair ? weights[tap + 1] << 16 : 0));         \
                                                                                                                       \
                for (int64_t g = 0; g < groups; g++) {                                                                 \
                    const VECTOR a = ISA_SMOOTH_TAP(VECTOR, UNALIGNED, PREFIX, tap, i + g * wide);                     \
                    const VECTOR b = pair ? ISA_SMOOTH_TAP(VECTOR, UNALIGNED, PREFIX, tap + 1, i + g * wide) : a;      \
                                                                                                                       \
                    low[g] = PREFIX##_add_epi32(low[g], PREFIX##_madd_epi16(PREFIX##_unpacklo_epi16(a, b), weight));   \
                    high[g] = PREFIX##_add_epi32(high[g], PREFIX##_madd_epi16(PREFIX##_unpackhi_epi16(a, b), weight)); \
                }                                                                                                      \
            }                                                                                                          \
            for (int64_t g = 0; g < groups; g++)                                                                       \
                *(UNALIGNED *)(filtered + i + g * wide) = (UNALIGNED)PREFIX##_packs_epi32(                             \
                    PREFIX##_srai_epi32(low[g], 14), PREFIX##_srai_epi32(high[g], 14));                                \
        }                                                                                                              \
    }

/* With instructions that multiply and add vectors. */
#define ISA_ADD_FUSED(PREFIX, a, b, sum) PREFIX##_fmadd_pd(a, b, sum)
#define ISA_ADD_APART(PREFIX, a, b, sum) PREFIX##_add_pd(sum, PREFIX##_mul_pd(a, b))

#define ISA_WEIGH64(ISA, NAME, ADD, VECTOR, UNALIGNED, PREFIX)                                                         \
    LOOP void ISA##_##NAME(const double *const *rows, const double *weights, int64_t taps, int64_t count,              \
                           double *sums)                                                                               \
    {                                                                                                                  \
        const int64_t wide = sizeof(VECTOR) / sizeof(*sums), groups = ISA_WEIGH / wide;                                \
                                                                                                                       \
        for (int64_t i = 0; i < count; i += ISA_WEIGH) {                                                               \
            VECTOR group[ISA_WEIGH * sizeof(*sums) / sizeof(VECTOR)];                                                  \
                                                                                                                       \
            for (int64_t g = 0; g < groups; g++)                                                                       \
                group[g] = PREFIX##_setzero_pd();                                                                      \
            for (int64_t tap = 0; tap < taps; tap++) {                                                                 \
                const VECTOR weight = PREFIX##_set1_pd(weights[tap]);                                                  \
                                                                                                                       \
                for (int64_t g = 0; g < groups; g++)                                                                   \
                    group[g] =                                                                                         \
                        ADD(PREFIX, weight, (VECTOR) * (const UNALIGNED *)(rows[tap] + i + g * wide), group[g]);       \
            }                                                                                                          \
            for (int64_t g = 0; g < groups; g++)                                                                       \
                *(UNALIGNED *)(sums + i + g * wide) = (UNALIGNED)group[g];                                             \
        }                                                                                                              \
    }

/*
 * Packs with vectors: ISA_pass_wordBITS makes a word of 64 values, ISA_pass_restBITS the last,
 * shorter one from value i on. SET fills a vector. The intervals are copied to registers, since
 * stores to bits might alias them.
 */
#define ISA_PACK(ISA, BITS, SET, LANE)                                                                                 \
    LOOP int64_t ISA##_pack##BITS(const uint##BITS##_t *values, int64_t count, const struct isa_interval pass[2],      \
                                  uint64_t *bits)                                                                      \
    {                                                                                                                  \
        const struct ISA##_pass either = {{SET((LANE)pass[0].low), SET((LANE)pass[1].low)},                            \
                                          {SET((LANE)pass[0].span), SET((LANE)pass[1].span)}};                         \
        int64_t runs = 0, i = 0;                                                                                       \
        uint64_t carry = 0;                                                                                            \
                                                                                                                       \
        for (; i + 64 <= count; i += 64) {                                                                             \
            fetch_ahead(values + i);                                                                                   \
            if (BITS == 16)                                                                                            \
                fetch_ahead(values + i + 32);                                                                          \
            *bits = ISA##_pass_word##BITS(&either, values + i);                                                        \
            runs += run_starts(*bits++, &carry);                                                                       \
        }                                                                                                              \
        if (i < count) {                                                                                               \
            *bits = ISA##_pass_rest##BITS(&either, values, i, count, pass);                                            \
            runs += run_starts(*bits, &carry);                                                                         \
        }                                                                                                              \
        return runs;                                                                                                   \
    }

#include "kernels/filter/fft_lines.inc"
#include "kernels/filter/image_type_steps.h"
#include "kernels/filter/spectral_lines.inc"

/* Recursive filters and splines of ISA_LINES lines at a time. */
typedef double line_vector __attribute__((vector_size(ISA_VECTOR), aligned(8)));
typedef int64_t line_bits __attribute__((vector_size(ISA_VECTOR), aligned(8)));
typedef float line_short_vector __attribute__((vector_size(ISA_VECTOR / 2)));

enum { ISA_LINES = sizeof(line_vector) / sizeof(double) };

INLINE ISA_TARGET line_vector
image_type_load(const double *at, int64_t apart, int count)
{
    line_vector value;

    if (apart == 1 && count == ISA_LINES)
        return *(const line_vector *)at;
    for (int line = 0; line < ISA_LINES; line++)
        value[line] = at[(line < count ? line : 0) * apart];
    return value;
}

INLINE ISA_TARGET void
image_type_store(line_vector value, double *at, int64_t apart, int count)
{
    if (apart == 1 && count == ISA_LINES)
        *(line_vector *)at = value;
    else
        for (int line = 0; line < ISA_LINES && line < count; line++)
            at[line * apart] = value[line];
}

INLINE ISA_TARGET line_vector
image_type_round(line_vector value)
{
    return __builtin_convertvector(__builtin_convertvector(value, line_short_vector), line_vector);
}

#define LINE_INLINE INLINE ISA_TARGET
#define LINE_REAL   line_vector
#include "kernels/filter/image_type_lines.inc"

LOOP void
recur_lines(const struct image_type_step *step, const struct image_type_lines *lines)
{
    struct image_type_lines own = *lines;

    for (int left = lines->count; left > 0; left -= ISA_LINES) {
        own.count = left < ISA_LINES ? left : ISA_LINES;
        if (step->action == IMAGE_TYPE_SPLINE)
            image_type_spline(step, &own);
        else
            image_type_recur(step, &own);
        own.from += ISA_LINES * own.apart;
        own.to += ISA_LINES * own.apart;
        own.sum += step->adds ? ISA_LINES * own.sum_apart : 0;
    }
}

#include "kernels/voxelwise/mcc_lanes.inc"

/* In the order of image_type_kurtosis(). */
LOOP void
lbp_kurtosis(struct image_type_samples *samples)
{
    double mean[IMAGE_TYPE_ROW] = {0}, second[IMAGE_TYPE_ROW] = {0}, fourth[IMAGE_TYPE_ROW] = {0};

    for (int v = 0; v < IMAGE_TYPE_VERTICES; v++)
        for (int x = 0; x < IMAGE_TYPE_ROW; x++)
            mean[x] = mean[x] + samples->at[v][x];
    for (int x = 0; x < IMAGE_TYPE_ROW; x++)
        mean[x] = mean[x] / IMAGE_TYPE_VERTICES;
    for (int v = 0; v < IMAGE_TYPE_VERTICES; v++)
        for (int x = 0; x < IMAGE_TYPE_ROW; x++) {
            const double square = (samples->at[v][x] - mean[x]) * (samples->at[v][x] - mean[x]);

            second[x] = second[x] + square;
            fourth[x] = fourth[x] + square * square;
        }
    for (int x = 0; x < IMAGE_TYPE_ROW; x++)
        samples->kurtosis[x] = image_type_excess(mean[x], second[x], fourth[x]);
}

LOOP void
lbp_compare(const struct image_type_step *step, struct image_type_samples *samples)
{
    const double lowest = image_type_lowest(step);

    for (int v = 0; v < IMAGE_TYPE_VERTICES && step->whole; v++)
        for (int x = 0; x < IMAGE_TYPE_ROW; x++)
            samples->at[v][x] = image_type_whole(lowest, samples->at[v][x]);
    if (step->harmonic == LBP_K) {
        lbp_kurtosis(samples);
        return;
    }
    for (int x = 0; x < IMAGE_TYPE_ROW; x += ISA_LINES) {
        const line_vector centres = *(const line_vector *)(samples->centres + x);
        line_bits bits = {0};

        for (int v = 0; v < IMAGE_TYPE_VERTICES; v++)
            bits |= (*(const line_vector *)(samples->at[v] + x) >= centres) & (INT64_C(1) << v);
        *(line_bits *)(samples->bits + x) = bits;
    }
}

/* The table's loops without instruction-set specific versions. */
#define ISA_LOOPS                                                                                                      \
    .unite_shifted = unite_shifted, .count_up = count_up, .extremes8 = extremes8, .extremes16 = extremes16,            \
    .count_new = count_new, .tally32 = tally32, .tally_tuples8 = tally_tuples8, .relieve16 = relieve16,                \
    .largest16 = largest16, .beyond16 = beyond16, .adjacent16 = adjacent16, .transpose8 = transpose8,                  \
    .count_bits = count_bits, .count_runs = count_runs, .touches = touches, .unite_pair = unite_pair, .unite = unite,  \
    .clip8 = clip8, .clip16 = clip16, .add16 = add16, .fold32 = fold32, .blocks16 = blocks16, .smooth16 = smooth16,    \
    .fft_lines = fft_lines, .spectral_apply = spectral_apply, .recur_lines = recur_lines, .lbp_compare = lbp_compare,  \
    .mcc_window = mcc_window

#endif
