/* isa_avx2.c - the innermost loops for AVX2; see isa_private.h. */
#include "kernels/cpu/isa_private.h"

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

/* Two vectors of 16-bit lanes, all ones or all zeros, as 32 bits in their order. */
AVX2 static inline uint64_t
avx2_bits(__m256i low, __m256i high)
{
    /* packs works on 128-bit halves: put the quarters back in order. */
    __m256i bytes = _mm256_permute4x64_epi64(_mm256_packs_epi16(low, high), 0xD8);

    return (uint32_t)_mm256_movemask_epi8(bytes);
}

/* Two intervals in registers: stores to bits might change them in memory. */
struct avx2_pass {
    __m256i low[2];
    __m256i span[2];
};

AVX2 static inline uint64_t
avx2_pass8(const struct avx2_pass *pass, const uint8_t *values)
{
    __m256i loaded = _mm256_loadu_si256((const __m256i_u *)values);
    __m256i first = _mm256_subs_epu8(_mm256_sub_epi8(loaded, pass->low[0]), pass->span[0]);
    __m256i second = _mm256_subs_epu8(_mm256_sub_epi8(loaded, pass->low[1]), pass->span[1]);
    __m256i beyond = _mm256_min_epu8(first, second);

    return (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(beyond, _mm256_setzero_si256()));
}

AVX2 static inline uint64_t
avx2_pass_word8(const struct avx2_pass *pass, const uint8_t *values)
{
    return avx2_pass8(pass, values) | avx2_pass8(pass, values + 32) << 32;
}

AVX2 static int64_t
avx2_pack8(const uint8_t *values, int64_t count, const struct isa_interval pass[2], uint64_t *bits)
{
    const struct avx2_pass either = {
        {_mm256_set1_epi8((char)pass[0].low), _mm256_set1_epi8((char)pass[1].low)},
        {_mm256_set1_epi8((char)pass[0].span), _mm256_set1_epi8((char)pass[1].span)},
    };
    int64_t runs = 0, i = 0;
    uint64_t carry = 0;

    for (; i + 64 <= count; i += 64) {
        fetch_ahead(values + i);
        *bits = avx2_pass_word8(&either, values + i);
        runs += run_starts(*bits++, &carry);
    }
    if (i < count) {
        *bits = count < 64 ? pack_word8(values, count, pass)
                           : avx2_pass_word8(&either, values + count - 64) >> (64 - (count - i));
        runs += run_starts(*bits, &carry);
    }
    return runs;
}

/* All ones in the 16-bit lanes that pass. */
AVX2 static inline __m256i
avx2_pass16(const struct avx2_pass *pass, const uint16_t *values)
{
    __m256i loaded = _mm256_loadu_si256((const __m256i_u *)values);
    __m256i first = _mm256_subs_epu16(_mm256_sub_epi16(loaded, pass->low[0]), pass->span[0]);
    __m256i second = _mm256_subs_epu16(_mm256_sub_epi16(loaded, pass->low[1]), pass->span[1]);

    return _mm256_cmpeq_epi16(_mm256_min_epu16(first, second), _mm256_setzero_si256());
}

AVX2 static inline uint64_t
avx2_pass_word16(const struct avx2_pass *pass, const uint16_t *values)
{
    return avx2_bits(avx2_pass16(pass, values), avx2_pass16(pass, values + 16)) |
           avx2_bits(avx2_pass16(pass, values + 32), avx2_pass16(pass, values + 48)) << 32;
}

AVX2 static int64_t
avx2_pack16(const uint16_t *values, int64_t count, const struct isa_interval pass[2],
            uint64_t *bits)
{
    const struct avx2_pass either = {
        {_mm256_set1_epi16((short)pass[0].low), _mm256_set1_epi16((short)pass[1].low)},
        {_mm256_set1_epi16((short)pass[0].span), _mm256_set1_epi16((short)pass[1].span)},
    };
    int64_t runs = 0, i = 0;
    uint64_t carry = 0;

    for (; i + 64 <= count; i += 64) {
        fetch_ahead(values + i);
        fetch_ahead(values + i + 32);
        *bits = avx2_pass_word16(&either, values + i);
        runs += run_starts(*bits++, &carry);
    }
    if (i < count) {
        *bits = count < 64 ? pack_word16(values, count, pass)
                           : avx2_pass_word16(&either, values + count - 64) >> (64 - (count - i));
        runs += run_starts(*bits, &carry);
    }
    return runs;
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
    const struct isa_join own = *join;
    int64_t i = 0;

    for (; i + 64 <= count; i += 64) {
        struct avx2_joined joined[4];

        for (int k = 0; k < 4; k++)
            joined[k] = avx2_join(&own, i + 16 * k);
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

ISA_LOOPS(avx2, AVX2)

const struct isa isa_avx2 = {
    .name = "AVX2",
    .bit_instructions = true,
    .runs_here = avx2_runs_here,
    ISA_ROWS(avx2),
};

#endif
