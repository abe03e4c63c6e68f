/*
 * isa_cpu.c - see isa_cpu.h.
 *
 * Loops that the compiler vectorises well are written once, as INLINE bodies, and compiled once for
 * each instruction set; packing, which it does not, is written with intrinsics.
 */
#include "isa_cpu.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))

INLINE int64_t
run_starts(uint64_t word, uint64_t *carry)
{
    uint64_t starts = word & ~(word << 1 | *carry);

    *carry = word >> 63;
    return __builtin_popcountll(starts);
}

INLINE bool
within(uint16_t value, struct isa_interval interval, uint16_t mask)
{
    return (uint16_t)((value - interval.low) & mask) <= interval.span;
}

INLINE uint64_t
pack_word8(const uint8_t *values, int64_t count, const struct isa_interval pass[2])
{
    uint64_t word = 0;

    for (int64_t i = 0; i < count; i++)
        word |= (uint64_t)(within(values[i], pass[0], 0xFF) || within(values[i], pass[1], 0xFF))
                << i;
    return word;
}

INLINE uint64_t
pack_word16(const uint16_t *values, int64_t count, const struct isa_interval pass[2])
{
    uint64_t word = 0;

    for (int64_t i = 0; i < count; i++)
        word |= (uint64_t)(within(values[i], pass[0], 0xFFFF) || within(values[i], pass[1], 0xFFFF))
                << i;
    return word;
}

INLINE void
extremes8_body(const uint8_t *values, int64_t count, struct isa_extremes *extremes)
{
    uint8_t smallest = (uint8_t)extremes->smallest, largest = (uint8_t)extremes->largest;
    uint8_t bias = (uint8_t)extremes->bias, low = (uint8_t)extremes->skip.low;
    uint8_t span = (uint8_t)extremes->skip.span;
    uint8_t skipping = extremes->skipping ? UINT8_MAX : 0;

    for (int64_t i = 0; i < count; i++) {
        uint8_t value = values[i] ^ bias;
        uint8_t skip = (uint8_t)(value - low) <= span ? skipping : 0;
        uint8_t for_smallest = value | skip, for_largest = value & (uint8_t)~skip;

        smallest = for_smallest < smallest ? for_smallest : smallest;
        largest = for_largest > largest ? for_largest : largest;
    }
    extremes->smallest = smallest;
    extremes->largest = largest;
}

INLINE void
extremes16_body(const uint16_t *values, int64_t count, struct isa_extremes *extremes)
{
    uint16_t smallest = extremes->smallest, largest = extremes->largest;
    uint16_t bias = extremes->bias, low = extremes->skip.low, span = extremes->skip.span;
    uint16_t skipping = extremes->skipping ? UINT16_MAX : 0;

    for (int64_t i = 0; i < count; i++) {
        uint16_t value = values[i] ^ bias;
        uint16_t skip = (uint16_t)(value - low) <= span ? skipping : 0;
        uint16_t for_smallest = value | skip, for_largest = value & (uint16_t)~skip;

        smallest = for_smallest < smallest ? for_smallest : smallest;
        largest = for_largest > largest ? for_largest : largest;
    }
    extremes->smallest = smallest;
    extremes->largest = largest;
}

INLINE int64_t
count_new_body(const uint64_t *line, const uint64_t *before, int64_t words)
{
    int64_t count = 0;

    for (int64_t i = 0; i < words; i++)
        count += __builtin_popcountll(line[i] & ~before[i]);
    return count;
}

INLINE void
join16_word(const struct isa_join *join, int64_t from, int64_t count, uint64_t *edges,
            uint64_t *settled)
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

INLINE void
raise16_body(const uint64_t *bits, int64_t count, uint16_t bit, uint16_t *values)
{
    for (int64_t i = 0; i < count; i++)
        values[i] = (uint16_t)(values[i] | (bits[i / 64] >> i % 64 & 1) * bit);
}

INLINE void
affinity16_body(const struct isa_pair *pair, int64_t count, uint16_t *restrict affinity)
{
    const uint16_t *a = pair->a, *b = pair->b;
    const double *first = pair->first, *second = pair->second;

    for (int64_t i = 0; i < count; i++) {
        int32_t sum = a[i] + b[i], apart = abs(a[i] - b[i]);
        double scaled = 65535.0 * (first[sum] + second[apart]);

        affinity[i] = (uint16_t)(int32_t)(scaled < 65535.0 ? scaled : 65535.0);
    }
}

INLINE void
level16_body(const uint16_t *values, int64_t count, const uint16_t *table, uint16_t bias,
             uint8_t *restrict levels)
{
    for (int64_t i = 0; i < count; i++)
        levels[i] = (uint8_t)table[values[i] ^ bias];
}

enum {
    TALLIES = 1024, /* indices found before they are counted: what is just stored loads slowly */
    RUN = 32,       /* indices looked at together: shorter runs are not foreseen well */
};

/*
 * Runs of one index, which would wait for the counter that they have just written, are common: in
 * air, and outside of a region. Whole ones are added at once, others spread over the counters.
 */
#define TALLY_BODIES(BITS, COUNTER)                                                                \
    INLINE bool all_equal##BITS(const uint##BITS##_t *index)                                       \
    {                                                                                              \
        uint##BITS##_t differences = (index[0] ^ index[RUN / 2]) | (index[0] ^ index[RUN - 1]);    \
                                                                                                   \
        if (differences != 0)                                                                      \
            return false;                                                                          \
        for (int k = 0; k < RUN; k++)                                                              \
            differences |= index[k] ^ index[0];                                                    \
        return differences == 0;                                                                   \
    }                                                                                              \
                                                                                                   \
    INLINE void tally##BITS##_body(const uint##BITS##_t *index, int64_t count,                     \
                                   COUNTER *const tables[4])                                       \
    {                                                                                              \
        COUNTER *a = tables[0], *b = tables[1], *c = tables[2], *d = tables[3];                    \
        int64_t i = 0;                                                                             \
                                                                                                   \
        while (i + 4 <= count) {                                                                   \
            int64_t end = count - i < RUN ? count - 3 : i + RUN;                                   \
                                                                                                   \
            if (count - i >= RUN && all_equal##BITS(index + i)) {                                  \
                a[index[i]] = (COUNTER)(a[index[i]] + RUN);                                        \
                i += RUN;                                                                          \
                continue;                                                                          \
            }                                                                                      \
            for (; i < end; i += 4) {                                                              \
                a[index[i]]++;                                                                     \
                b[index[i + 1]]++;                                                                 \
                c[index[i + 2]]++;                                                                 \
                d[index[i + 3]]++;                                                                 \
            }                                                                                      \
        }                                                                                          \
        for (; i < count; i++)                                                                     \
            a[index[i]]++;                                                                         \
    }                                                                                              \
                                                                                                   \
    INLINE void tally_points##BITS(const struct isa_tuple *tuple, int points, int64_t count,       \
                                   COUNTER *const tables[4])                                       \
    {                                                                                              \
        const uint8_t *a = tuple->level[0], *b = tuple->level[1];                                  \
        const uint8_t *c = tuple->level[2], *d = tuple->level[3];                                  \
        uint##BITS##_t index[TALLIES], base = (uint##BITS##_t)tuple->base;                         \
                                                                                                   \
        for (int64_t from = 0; from < count; from += TALLIES) {                                    \
            int64_t some = count - from < TALLIES ? count - from : TALLIES;                        \
                                                                                                   \
            for (int64_t i = 0; i < some; i++) {                                                   \
                uint##BITS##_t sum = (uint16_t)(base * a[from + i] + b[from + i]);                 \
                                                                                                   \
                if (points > 2)                                                                    \
                    sum = (uint##BITS##_t)(base * sum + c[from + i]);                              \
                if (points > 3)                                                                    \
                    sum = (uint##BITS##_t)(base * sum + d[from + i]);                              \
                index[i] = sum;                                                                    \
            }                                                                                      \
            tally##BITS##_body(index, some, tables);                                               \
        }                                                                                          \
    }

TALLY_BODIES(16, uint16_t)
TALLY_BODIES(32, uint32_t)

INLINE void
tally_tuples8_body(const struct isa_tuple *tuple, int64_t count,
                   const struct isa_counters *counters)
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

INLINE void
relieve16_body(uint16_t *restrict low, int64_t count, uint32_t *restrict high)
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

INLINE void
largest16_body(const struct isa_windows *windows, int16_t *restrict largest)
{
    const int16_t *a = windows->row[0], *b = windows->row[1], *c = windows->row[2];

    for (int64_t i = 0; i < windows->count; i++) {
        int16_t left = larger(larger(a[i], b[i]), c[i]);
        int16_t middle = larger(larger(a[i + 1], b[i + 1]), c[i + 1]);
        int16_t right = larger(larger(a[i + 2], b[i + 2]), c[i + 2]);

        largest[i] = larger(larger(left, middle), right);
    }
}

/* Sixteen bits of each truth, so that vectors keep their lanes. */
#define WHERE(condition) ((uint16_t)((condition) ? 0xFFFF : 0))

INLINE void
beyond16_body(const struct isa_windows *windows, const int16_t *bound, bool strictly,
              uint8_t *restrict codes)
{
    const int16_t *a = windows->row[0], *b = windows->row[1], *c = windows->row[2];

#define NEIGHBOURS(TEST)                                                                           \
    for (int64_t i = 0; i < windows->count; i++) {                                                 \
        int16_t than = bound[i];                                                                   \
        uint16_t code = (uint16_t)(WHERE(b[i + 2] TEST than) & 1);                                 \
                                                                                                   \
        code |= WHERE(a[i + 2] TEST than) & 2;                                                     \
        code |= WHERE(a[i + 1] TEST than) & 4;                                                     \
        code |= WHERE(a[i] TEST than) & 8;                                                         \
        code |= WHERE(b[i] TEST than) & 16;                                                        \
        code |= WHERE(c[i] TEST than) & 32;                                                        \
        code |= WHERE(c[i + 1] TEST than) & 64;                                                    \
        code |= WHERE(c[i + 2] TEST than) & 128;                                                   \
        codes[i] = (uint8_t)code;                                                                  \
    }
    if (strictly)
        NEIGHBOURS(>)
    else
        NEIGHBOURS(>=)
#undef NEIGHBOURS
}

/* Between which integers an average lies: the same for one that is an integer, or made one. */
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

/* All bits, unless one average is below n and the other above. */
INLINE uint16_t
on_one_side(int16_t n, int16_t below_1, int16_t above_1, int16_t below_2, int16_t above_2)
{
    return (uint16_t) ~((WHERE(below_1 < n) & WHERE(above_2 > n)) |
                        (WHERE(below_2 < n) & WHERE(above_1 > n)));
}

/* Sides are pairs of adjacent neighbours: side k is of n_k and n_k+1. */
INLINE void
adjacent16_some(const struct isa_windows *windows, enum isa_average average,
                uint8_t *restrict codes)
{
    const int16_t *a = windows->row[0], *b = windows->row[1], *c = windows->row[2];

    for (int64_t i = 0; i < windows->count; i++) {
        int16_t n0 = b[i + 2], n1 = a[i + 2], n2 = a[i + 1], n3 = a[i];
        int16_t n4 = b[i], n5 = c[i], n6 = c[i + 1], n7 = c[i + 2];
#define SIDE(K, N, NEXT)                                                                           \
    int16_t low##K = average_below(N, NEXT, average), high##K = average_above(N, NEXT, average)
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

INLINE void
adjacent16_body(const struct isa_windows *windows, enum isa_average average, uint8_t *codes)
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

/* One row of the eight matrices: a vector wherever the instruction set has one. */
typedef uint64_t lanes __attribute__((vector_size(64), aligned(8)));

/* Swaps the off-diagonal quarters of squares of which a and b are a row of either half. */
INLINE void
swap_quarters(lanes *a, lanes *b, int half, uint64_t mask)
{
    lanes swap = (*a >> half ^ *b) & mask;

    *a ^= swap << half;
    *b ^= swap;
}

/*
 * Three steps of the transpose on eight rows `apart` rows from each other, in registers: squares of
 * 8, 4 and 2 times that side.
 */
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

INLINE void
transpose8_body(uint64_t row[64][8])
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

static bool
scalar_runs_here(void)
{
    return true;
}

static int64_t
scalar_pack8(const uint8_t *values, int64_t count, const struct isa_interval pass[2],
             uint64_t *bits)
{
    int64_t runs = 0;
    uint64_t carry = 0;

    for (int64_t i = 0; i < count; i += 64) {
        *bits = pack_word8(values + i, count - i < 64 ? count - i : 64, pass);
        runs += run_starts(*bits++, &carry);
    }
    return runs;
}

static int64_t
scalar_pack16(const uint16_t *values, int64_t count, const struct isa_interval pass[2],
              uint64_t *bits)
{
    int64_t runs = 0;
    uint64_t carry = 0;

    for (int64_t i = 0; i < count; i += 64) {
        *bits = pack_word16(values + i, count - i < 64 ? count - i : 64, pass);
        runs += run_starts(*bits++, &carry);
    }
    return runs;
}

static void
scalar_extremes8(const uint8_t *values, int64_t count, struct isa_extremes *extremes)
{
    extremes8_body(values, count, extremes);
}

static void
scalar_extremes16(const uint16_t *values, int64_t count, struct isa_extremes *extremes)
{
    extremes16_body(values, count, extremes);
}

static int64_t
scalar_count_new(const uint64_t *line, const uint64_t *before, int64_t words)
{
    return count_new_body(line, before, words);
}

static void
scalar_transpose8(uint64_t row[64][8])
{
    transpose8_body(row);
}

static void
scalar_join16(const struct isa_join *join, int64_t count, uint64_t *edges, uint64_t *settled)
{
    for (int64_t i = 0; i < count; i += 64)
        join16_word(join, i, count - i < 64 ? count - i : 64, edges, settled);
}

static void
scalar_raise16(const uint64_t *bits, int64_t count, uint16_t bit, uint16_t *values)
{
    raise16_body(bits, count, bit, values);
}

static void
scalar_affinity16(const struct isa_pair *pair, int64_t count, uint16_t *affinity)
{
    affinity16_body(pair, count, affinity);
}

static void
scalar_level16(const uint16_t *values, int64_t count, const uint16_t *table, uint16_t bias,
               uint8_t *levels)
{
    level16_body(values, count, table, bias, levels);
}

static void
scalar_tally32(const uint32_t *index, int64_t count, uint32_t *const tables[4])
{
    tally32_body(index, count, tables);
}

static void
scalar_tally_tuples8(const struct isa_tuple *tuple, int64_t count,
                     const struct isa_counters *counters)
{
    tally_tuples8_body(tuple, count, counters);
}

static void
scalar_relieve16(uint16_t *low, int64_t count, uint32_t *high)
{
    relieve16_body(low, count, high);
}

static void
scalar_largest16(const struct isa_windows *windows, int16_t *largest)
{
    largest16_body(windows, largest);
}

static void
scalar_beyond16(const struct isa_windows *windows, const int16_t *bound, bool strictly,
                uint8_t *codes)
{
    beyond16_body(windows, bound, strictly, codes);
}

static void
scalar_adjacent16(const struct isa_windows *windows, enum isa_average average, uint8_t *codes)
{
    adjacent16_body(windows, average, codes);
}

static const struct isa isa_scalar = {
    .name = "scalar",
    .runs_here = scalar_runs_here,
    .pack8 = scalar_pack8,
    .pack16 = scalar_pack16,
    .extremes8 = scalar_extremes8,
    .extremes16 = scalar_extremes16,
    .count_new = scalar_count_new,
    .join16 = scalar_join16,
    .raise16 = scalar_raise16,
    .affinity16 = scalar_affinity16,
    .level16 = scalar_level16,
    .tally32 = scalar_tally32,
    .tally_tuples8 = scalar_tally_tuples8,
    .relieve16 = scalar_relieve16,
    .largest16 = scalar_largest16,
    .beyond16 = scalar_beyond16,
    .adjacent16 = scalar_adjacent16,
    .transpose8 = scalar_transpose8,
};

#ifdef __x86_64__

#include <cpuid.h>
#include <immintrin.h>

#define AVX2 __attribute__((target("avx2,bmi,bmi2,lzcnt,popcnt")))

/* __builtin_cpu_supports does not know it in every compiler. */
static bool
lzcnt_runs_here(void)
{
    unsigned eax, ebx, ecx, edx;

    return __get_cpuid(0x80000001, &eax, &ebx, &ecx, &edx) && (ecx & bit_LZCNT);
}

static bool
avx2_runs_here(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") &&
           __builtin_cpu_supports("bmi2") && lzcnt_runs_here() && __builtin_cpu_supports("popcnt");
}

/* All ones in the 8-bit lanes that pass. */
AVX2 static inline __m256i
avx2_pass8(__m256i values, const struct isa_interval *pass)
{
    __m256i shifted = _mm256_sub_epi8(values, _mm256_set1_epi8((char)pass->low));

    return _mm256_cmpeq_epi8(_mm256_subs_epu8(shifted, _mm256_set1_epi8((char)pass->span)),
                             _mm256_setzero_si256());
}

AVX2 static inline uint64_t
avx2_pack_half8(const uint8_t *values, const struct isa_interval pass[2])
{
    __m256i loaded = _mm256_loadu_si256((const __m256i_u *)values);
    __m256i any = _mm256_or_si256(avx2_pass8(loaded, &pass[0]), avx2_pass8(loaded, &pass[1]));

    return (uint32_t)_mm256_movemask_epi8(any);
}

AVX2 static int64_t
avx2_pack8(const uint8_t *values, int64_t count, const struct isa_interval pass[2], uint64_t *bits)
{
    int64_t runs = 0, i = 0;
    uint64_t carry = 0;

    for (; i + 64 <= count; i += 64) {
        *bits = avx2_pack_half8(values + i, pass) | avx2_pack_half8(values + i + 32, pass) << 32;
        runs += run_starts(*bits++, &carry);
    }
    if (i < count) {
        *bits = pack_word8(values + i, count - i, pass);
        runs += run_starts(*bits, &carry);
    }
    return runs;
}

/* All ones in the 16-bit lanes that pass. */
AVX2 static inline __m256i
avx2_pass16(__m256i values, const struct isa_interval *pass)
{
    __m256i shifted = _mm256_sub_epi16(values, _mm256_set1_epi16((short)pass->low));

    return _mm256_cmpeq_epi16(_mm256_subs_epu16(shifted, _mm256_set1_epi16((short)pass->span)),
                              _mm256_setzero_si256());
}

AVX2 static inline __m256i
avx2_any16(const uint16_t *values, const struct isa_interval pass[2])
{
    __m256i loaded = _mm256_loadu_si256((const __m256i_u *)values);

    return _mm256_or_si256(avx2_pass16(loaded, &pass[0]), avx2_pass16(loaded, &pass[1]));
}

AVX2 static inline uint64_t
avx2_pack_half16(const uint16_t *values, const struct isa_interval pass[2])
{
    __m256i bytes = _mm256_packs_epi16(avx2_any16(values, pass), avx2_any16(values + 16, pass));

    /* packs works on 128-bit halves: put the quarters back in order. */
    return (uint32_t)_mm256_movemask_epi8(_mm256_permute4x64_epi64(bytes, 0xD8));
}

AVX2 static int64_t
avx2_pack16(const uint16_t *values, int64_t count, const struct isa_interval pass[2],
            uint64_t *bits)
{
    int64_t runs = 0, i = 0;
    uint64_t carry = 0;

    for (; i + 64 <= count; i += 64) {
        *bits = avx2_pack_half16(values + i, pass) | avx2_pack_half16(values + i + 32, pass) << 32;
        runs += run_starts(*bits++, &carry);
    }
    if (i < count) {
        *bits = pack_word16(values + i, count - i, pass);
        runs += run_starts(*bits, &carry);
    }
    return runs;
}

AVX2 static void
avx2_extremes8(const uint8_t *values, int64_t count, struct isa_extremes *extremes)
{
    extremes8_body(values, count, extremes);
}

AVX2 static void
avx2_extremes16(const uint16_t *values, int64_t count, struct isa_extremes *extremes)
{
    extremes16_body(values, count, extremes);
}

AVX2 static int64_t
avx2_count_new(const uint64_t *line, const uint64_t *before, int64_t words)
{
    return count_new_body(line, before, words);
}

AVX2 static void
avx2_transpose8(uint64_t row[64][8])
{
    transpose8_body(row);
}

/* Two vectors of 16-bit lanes, all ones or all zeros, as 32 bits in their order. */
AVX2 static inline uint64_t
avx2_bits(__m256i low, __m256i high)
{
    __m256i bytes = _mm256_packs_epi16(low, high);

    return (uint32_t)_mm256_movemask_epi8(_mm256_permute4x64_epi64(bytes, 0xD8));
}

/* All ones where they are edges, or settle. */
struct avx2_joined {
    __m256i edge;
    __m256i settle;
};

AVX2 static inline struct avx2_joined
avx2_join(const struct isa_join *join, int64_t from)
{
    __m256i own = _mm256_loadu_si256((const __m256i_u *)(join->own + from));
    __m256i other = _mm256_loadu_si256((const __m256i_u *)(join->other + from));
    __m256i affinity = _mm256_loadu_si256((const __m256i_u *)(join->affinity + from));
    __m256i least = _mm256_add_epi16(own, _mm256_set1_epi16((short)join->step));
    __m256i strong = _mm256_cmpeq_epi16(_mm256_max_epu16(affinity, least), affinity);
    __m256i equal = _mm256_cmpeq_epi16(own, other);
    __m256i below = _mm256_cmpeq_epi16(_mm256_max_epu16(own, other), other);

    return (struct avx2_joined){
        _mm256_and_si256(strong, equal),
        _mm256_and_si256(strong, _mm256_andnot_si256(equal, below)),
    };
}

AVX2 static void
avx2_join16(const struct isa_join *join, int64_t count, uint64_t *edges, uint64_t *settled)
{
    int64_t i = 0;

    for (; i + 64 <= count; i += 64) {
        struct avx2_joined joined[4];

        for (int k = 0; k < 4; k++)
            joined[k] = avx2_join(join, i + 16 * k);
        if (edges)
            edges[i / 64] = avx2_bits(joined[0].edge, joined[1].edge) |
                            avx2_bits(joined[2].edge, joined[3].edge) << 32;
        settled[i / 64] |= avx2_bits(joined[0].settle, joined[1].settle) |
                           avx2_bits(joined[2].settle, joined[3].settle) << 32;
    }
    if (i < count)
        join16_word(join, i, count - i, edges, settled);
}

AVX2 static void
avx2_raise16(const uint64_t *bits, int64_t count, uint16_t bit, uint16_t *values)
{
    raise16_body(bits, count, bit, values);
}

AVX2 static void
avx2_affinity16(const struct isa_pair *pair, int64_t count, uint16_t *affinity)
{
    affinity16_body(pair, count, affinity);
}

/* Entries are two bytes and gathered by four: those of the last are its own and those before. */
AVX2 static __m256i
avx2_entries(const uint16_t *table, __m256i index)
{
    __m256i from = _mm256_min_epu32(index, _mm256_set1_epi32(UINT16_MAX - 1));
    __m256i four = _mm256_i32gather_epi32((const int *)(const void *)table, from, 2);
    __m256i shift = _mm256_slli_epi32(_mm256_sub_epi32(index, from), 4);

    return _mm256_and_si256(_mm256_srlv_epi32(four, shift), _mm256_set1_epi32(UINT8_MAX));
}

AVX2 static void
avx2_level16(const uint16_t *values, int64_t count, const uint16_t *table, uint16_t bias,
             uint8_t *levels)
{
    __m256i all_bias = _mm256_set1_epi32(bias);
    int64_t i = 0;

    for (; i + 8 <= count; i += 8) {
        __m256i value = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i_u *)(values + i)));
        __m256i entries = avx2_entries(table, _mm256_xor_si256(value, all_bias));
        __m128i words =
            _mm_packus_epi32(_mm256_castsi256_si128(entries), _mm256_extracti128_si256(entries, 1));

        _mm_storel_epi64((__m128i_u *)(levels + i), _mm_packus_epi16(words, words));
    }
    level16_body(values + i, count - i, table, bias, levels + i);
}

AVX2 static void
avx2_tally32(const uint32_t *index, int64_t count, uint32_t *const tables[4])
{
    tally32_body(index, count, tables);
}

AVX2 static void
avx2_tally_tuples8(const struct isa_tuple *tuple, int64_t count,
                   const struct isa_counters *counters)
{
    tally_tuples8_body(tuple, count, counters);
}

AVX2 static void
avx2_relieve16(uint16_t *low, int64_t count, uint32_t *high)
{
    relieve16_body(low, count, high);
}

AVX2 static void
avx2_largest16(const struct isa_windows *windows, int16_t *largest)
{
    largest16_body(windows, largest);
}

AVX2 static void
avx2_beyond16(const struct isa_windows *windows, const int16_t *bound, bool strictly,
              uint8_t *codes)
{
    beyond16_body(windows, bound, strictly, codes);
}

AVX2 static void
avx2_adjacent16(const struct isa_windows *windows, enum isa_average average, uint8_t *codes)
{
    adjacent16_body(windows, average, codes);
}

static const struct isa isa_avx2 = {
    .name = "AVX2",
    .bit_instructions = true,
    .runs_here = avx2_runs_here,
    .pack8 = avx2_pack8,
    .pack16 = avx2_pack16,
    .extremes8 = avx2_extremes8,
    .extremes16 = avx2_extremes16,
    .count_new = avx2_count_new,
    .join16 = avx2_join16,
    .raise16 = avx2_raise16,
    .affinity16 = avx2_affinity16,
    .level16 = avx2_level16,
    .tally32 = avx2_tally32,
    .tally_tuples8 = avx2_tally_tuples8,
    .relieve16 = avx2_relieve16,
    .largest16 = avx2_largest16,
    .beyond16 = avx2_beyond16,
    .adjacent16 = avx2_adjacent16,
    .transpose8 = avx2_transpose8,
};

#define AVX512                                                                                     \
    __attribute__((target("avx512f,avx512bw,avx512vl,avx512vpopcntdq,bmi,bmi2,lzcnt,popcnt")))

static bool
avx512_runs_here(void)
{
    return avx2_runs_here() && __builtin_cpu_supports("avx512f") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512vpopcntdq");
}

AVX512 static inline uint64_t
avx512_pass8(__m512i values, const struct isa_interval *pass)
{
    __m512i shifted = _mm512_sub_epi8(values, _mm512_set1_epi8((char)pass->low));

    return _mm512_cmple_epu8_mask(shifted, _mm512_set1_epi8((char)pass->span));
}

AVX512 static int64_t
avx512_pack8(const uint8_t *values, int64_t count, const struct isa_interval pass[2],
             uint64_t *bits)
{
    int64_t runs = 0;
    uint64_t carry = 0;

    for (int64_t i = 0; i < count; i += 64) {
        uint64_t present = count - i < 64 ? ~UINT64_C(0) >> (64 - (count - i)) : ~UINT64_C(0);
        __m512i loaded = _mm512_maskz_loadu_epi8(present, values + i);

        *bits = (avx512_pass8(loaded, &pass[0]) | avx512_pass8(loaded, &pass[1])) & present;
        runs += run_starts(*bits++, &carry);
    }
    return runs;
}

AVX512 static inline uint32_t
avx512_pass16(__m512i values, const struct isa_interval *pass)
{
    __m512i shifted = _mm512_sub_epi16(values, _mm512_set1_epi16((short)pass->low));

    return _mm512_cmple_epu16_mask(shifted, _mm512_set1_epi16((short)pass->span));
}

AVX512 static inline uint64_t
avx512_pack_half16(const uint16_t *values, uint32_t present, const struct isa_interval pass[2])
{
    __m512i loaded = _mm512_maskz_loadu_epi16(present, values);

    return (avx512_pass16(loaded, &pass[0]) | avx512_pass16(loaded, &pass[1])) & present;
}

AVX512 static int64_t
avx512_pack16(const uint16_t *values, int64_t count, const struct isa_interval pass[2],
              uint64_t *bits)
{
    int64_t runs = 0;
    uint64_t carry = 0;

    for (int64_t i = 0; i < count; i += 64) {
        uint64_t present = count - i < 64 ? ~UINT64_C(0) >> (64 - (count - i)) : ~UINT64_C(0);

        *bits = avx512_pack_half16(values + i, (uint32_t)present, pass);
        if (present >> 32)
            *bits |= avx512_pack_half16(values + i + 32, (uint32_t)(present >> 32), pass) << 32;
        runs += run_starts(*bits++, &carry);
    }
    return runs;
}

AVX512 static void
avx512_extremes8(const uint8_t *values, int64_t count, struct isa_extremes *extremes)
{
    extremes8_body(values, count, extremes);
}

AVX512 static void
avx512_extremes16(const uint16_t *values, int64_t count, struct isa_extremes *extremes)
{
    extremes16_body(values, count, extremes);
}

AVX512 static int64_t
avx512_count_new(const uint64_t *line, const uint64_t *before, int64_t words)
{
    return count_new_body(line, before, words);
}

AVX512 static void
avx512_transpose8(uint64_t row[64][8])
{
    transpose8_body(row);
}

struct avx512_joined {
    uint64_t edge;
    uint64_t settle;
};

AVX512 static inline struct avx512_joined
avx512_join(const struct isa_join *join, int64_t from, uint32_t present)
{
    __m512i own = _mm512_maskz_loadu_epi16(present, join->own + from);
    __m512i other = _mm512_maskz_loadu_epi16(present, join->other + from);
    __m512i affinity = _mm512_maskz_loadu_epi16(present, join->affinity + from);
    __m512i least = _mm512_add_epi16(own, _mm512_set1_epi16((short)join->step));
    __mmask32 strong = _mm512_mask_cmpge_epu16_mask(present, affinity, least);

    return (struct avx512_joined){
        _mm512_mask_cmpeq_epu16_mask(strong, own, other),
        _mm512_mask_cmplt_epu16_mask(strong, own, other),
    };
}

AVX512 static void
avx512_join16(const struct isa_join *join, int64_t count, uint64_t *edges, uint64_t *settled)
{
    for (int64_t i = 0; i < count; i += 64) {
        uint64_t present = count - i < 64 ? ~UINT64_C(0) >> (64 - (count - i)) : ~UINT64_C(0);
        struct avx512_joined low = avx512_join(join, i, (uint32_t)present), high = {0, 0};

        if (present >> 32)
            high = avx512_join(join, i + 32, (uint32_t)(present >> 32));
        if (edges)
            edges[i / 64] = low.edge | high.edge << 32;
        settled[i / 64] |= low.settle | high.settle << 32;
    }
}

AVX512 static void
avx512_raise16(const uint64_t *bits, int64_t count, uint16_t bit, uint16_t *values)
{
    __m512i raise = _mm512_set1_epi16((short)bit);

    for (int64_t i = 0; i < count; i += 32) {
        __mmask32 present = count - i < 32 ? UINT32_MAX >> (32 - (count - i)) : UINT32_MAX;
        __mmask32 raised = (__mmask32)(bits[i / 64] >> i % 64) & present;
        __m512i value = _mm512_maskz_loadu_epi16(raised, values + i);

        if (raised)
            _mm512_mask_storeu_epi16(values + i, raised, _mm512_or_si512(value, raise));
    }
}

/* GCC's gathers are macros when it does not optimise, and their masks change sign in them. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wsign-conversion"

/* The scaled membership of eight pairs. */
AVX512 static inline __m256i
avx512_affinity8(const struct isa_pair *pair, int64_t i)
{
    __m256i a = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i_u *)(pair->a + i)));
    __m256i b = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i_u *)(pair->b + i)));
    __m256i apart = _mm256_abs_epi32(_mm256_sub_epi32(a, b));
    __m512d first = _mm512_i32gather_pd(_mm256_add_epi32(a, b), pair->first, 8);
    __m512d second = _mm512_i32gather_pd(apart, pair->second, 8);
    __m512d top = _mm512_set1_pd(65535.0);
    __m512d scaled = _mm512_mul_pd(top, _mm512_add_pd(first, second));

    return _mm512_cvttpd_epi32(_mm512_min_pd(scaled, top));
}

AVX512 static void
avx512_affinity16(const struct isa_pair *pair, int64_t count, uint16_t *affinity)
{
    int64_t i = 0;

    for (; i + 8 <= count; i += 8)
        _mm_storeu_si128((__m128i_u *)(affinity + i),
                         _mm256_cvtepi32_epi16(avx512_affinity8(pair, i)));
    if (i < count) {
        const struct isa_pair rest = {pair->a + i, pair->b + i, pair->first, pair->second};
        affinity16_body(&rest, count - i, affinity + i);
    }
}

AVX512 static void
avx512_level16(const uint16_t *values, int64_t count, const uint16_t *table, uint16_t bias,
               uint8_t *levels)
{
    __m512i all_bias = _mm512_set1_epi32(bias), most = _mm512_set1_epi32(UINT16_MAX - 1);
    int64_t i = 0;

    for (; i + 16 <= count; i += 16) {
        __m512i value = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i_u *)(values + i)));
        __m512i index = _mm512_xor_si512(value, all_bias), from = _mm512_min_epu32(index, most);
        __m512i four = _mm512_i32gather_epi32(from, table, 2);
        __m512i shift = _mm512_slli_epi32(_mm512_sub_epi32(index, from), 4);

        _mm_storeu_si128((__m128i_u *)(levels + i),
                         _mm512_cvtepi32_epi8(_mm512_srlv_epi32(four, shift)));
    }
    level16_body(values + i, count - i, table, bias, levels + i);
}

#pragma GCC diagnostic pop

AVX512 static void
avx512_tally32(const uint32_t *index, int64_t count, uint32_t *const tables[4])
{
    tally32_body(index, count, tables);
}

AVX512 static void
avx512_tally_tuples8(const struct isa_tuple *tuple, int64_t count,
                     const struct isa_counters *counters)
{
    tally_tuples8_body(tuple, count, counters);
}

AVX512 static void
avx512_relieve16(uint16_t *low, int64_t count, uint32_t *high)
{
    relieve16_body(low, count, high);
}

AVX512 static void
avx512_largest16(const struct isa_windows *windows, int16_t *largest)
{
    largest16_body(windows, largest);
}

AVX512 static void
avx512_beyond16(const struct isa_windows *windows, const int16_t *bound, bool strictly,
                uint8_t *codes)
{
    beyond16_body(windows, bound, strictly, codes);
}

AVX512 static void
avx512_adjacent16(const struct isa_windows *windows, enum isa_average average, uint8_t *codes)
{
    adjacent16_body(windows, average, codes);
}

static const struct isa isa_avx512 = {
    .name = "AVX-512",
    .bit_instructions = true,
    .runs_here = avx512_runs_here,
    .pack8 = avx512_pack8,
    .pack16 = avx512_pack16,
    .extremes8 = avx512_extremes8,
    .extremes16 = avx512_extremes16,
    .count_new = avx512_count_new,
    .join16 = avx512_join16,
    .raise16 = avx512_raise16,
    .affinity16 = avx512_affinity16,
    .level16 = avx512_level16,
    .tally32 = avx512_tally32,
    .tally_tuples8 = avx512_tally_tuples8,
    .relieve16 = avx512_relieve16,
    .largest16 = avx512_largest16,
    .beyond16 = avx512_beyond16,
    .adjacent16 = avx512_adjacent16,
    .transpose8 = avx512_transpose8,
};

#endif

/* Best first. */
static const struct isa *const tables[] = {
#ifdef __x86_64__
    &isa_avx512,
    &isa_avx2,
#endif
    &isa_scalar,
};

const struct isa *
isa_find(const char *name)
{
    for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
        if ((!name || strcmp(name, tables[i]->name) == 0) && tables[i]->runs_here())
            return tables[i];
    return NULL;
}
