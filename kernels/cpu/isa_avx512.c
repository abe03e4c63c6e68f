/* isa_avx512.c - the innermost loops for AVX-512; see isa_private.h. */
#include "kernels/cpu/isa_private.h"

#ifdef __x86_64__

#include <immintrin.h>

#define AVX512                                                                                     \
    __attribute__((target("avx512f,avx512bw,avx512vl,avx512vpopcntdq,bmi,bmi2,lzcnt,popcnt")))

static bool
avx512_runs_here(void)
{
    return isa_avx2.runs_here() && __builtin_cpu_supports("avx512f") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512vpopcntdq");
}

/* Two intervals in registers: stores to bits might change them in memory. */
struct avx512_pass {
    __m512i low[2];
    __m512i span[2];
};

AVX512 static inline uint64_t
avx512_pass8(const struct avx512_pass *pass, __m512i values)
{
    return _mm512_cmple_epu8_mask(_mm512_sub_epi8(values, pass->low[0]), pass->span[0]) |
           _mm512_cmple_epu8_mask(_mm512_sub_epi8(values, pass->low[1]), pass->span[1]);
}

AVX512 static int64_t
avx512_pack8(const uint8_t *values, int64_t count, const struct isa_interval pass[2],
             uint64_t *bits)
{
    const struct avx512_pass either = {
        {_mm512_set1_epi8((char)pass[0].low), _mm512_set1_epi8((char)pass[1].low)},
        {_mm512_set1_epi8((char)pass[0].span), _mm512_set1_epi8((char)pass[1].span)},
    };
    int64_t runs = 0, i = 0;
    uint64_t carry = 0;

    for (; i + 64 <= count; i += 64) {
        fetch_ahead(values + i);
        *bits = avx512_pass8(&either, _mm512_loadu_si512(values + i));
        runs += run_starts(*bits++, &carry);
    }
    if (i < count) {
        uint64_t present = low_bits(count - i);

        *bits = avx512_pass8(&either, _mm512_maskz_loadu_epi8(present, values + i)) & present;
        runs += run_starts(*bits, &carry);
    }
    return runs;
}

AVX512 static inline uint64_t
avx512_pass16(const struct avx512_pass *pass, __m512i low, __m512i high)
{
    uint32_t first = _mm512_cmple_epu16_mask(_mm512_sub_epi16(low, pass->low[0]), pass->span[0]) |
                     _mm512_cmple_epu16_mask(_mm512_sub_epi16(low, pass->low[1]), pass->span[1]);
    uint32_t second = _mm512_cmple_epu16_mask(_mm512_sub_epi16(high, pass->low[0]), pass->span[0]) |
                      _mm512_cmple_epu16_mask(_mm512_sub_epi16(high, pass->low[1]), pass->span[1]);

    return (uint64_t)second << 32 | first;
}

AVX512 static int64_t
avx512_pack16(const uint16_t *values, int64_t count, const struct isa_interval pass[2],
              uint64_t *bits)
{
    const struct avx512_pass either = {
        {_mm512_set1_epi16((short)pass[0].low), _mm512_set1_epi16((short)pass[1].low)},
        {_mm512_set1_epi16((short)pass[0].span), _mm512_set1_epi16((short)pass[1].span)},
    };
    int64_t runs = 0, i = 0;
    uint64_t carry = 0;

    for (; i + 64 <= count; i += 64) {
        fetch_ahead(values + i);
        fetch_ahead(values + i + 32);
        *bits = avx512_pass16(&either, _mm512_loadu_si512(values + i),
                              _mm512_loadu_si512(values + i + 32));
        runs += run_starts(*bits++, &carry);
    }
    if (i < count) {
        uint64_t present = low_bits(count - i);

        *bits =
            avx512_pass16(&either, _mm512_maskz_loadu_epi16((__mmask32)present, values + i),
                          _mm512_maskz_loadu_epi16((__mmask32)(present >> 32), values + i + 32)) &
            present;
        runs += run_starts(*bits, &carry);
    }
    return runs;
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
    const struct isa_join own = *join; /* in registers */

    for (int64_t i = 0; i < count; i += 64) {
        uint64_t present = low_bits(count - i < 64 ? count - i : 64);
        struct avx512_joined low = avx512_join(&own, i, (uint32_t)present);
        struct avx512_joined high = avx512_join(&own, i + 32, (uint32_t)(present >> 32));

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

ISA_LOOPS(avx512, AVX512)

const struct isa isa_avx512 = {
    .name = "AVX-512",
    .bit_instructions = true,
    .runs_here = avx512_runs_here,
    ISA_ROWS(avx512),
};

#endif
