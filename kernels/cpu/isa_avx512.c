/* isa_avx512.c - the innermost loops for AVX-512; see isa_private.h. */
#ifdef __x86_64__

#define ISA_TARGET __attribute__((target("avx512f,fma,avx512bw,avx512vl,avx512vpopcntdq,bmi,bmi2,lzcnt,popcnt")))
#define ISA_VECTOR 64
#include "kernels/cpu/isa_private.h"

#include <immintrin.h>

static bool
avx512_runs_here(void)
{
    return isa_avx2.runs_here() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vpopcntdq");
}

struct avx512_pass {
    __m512i low[2];
    __m512i span[2];
};

LOOP uint64_t
avx512_pass8(const struct avx512_pass *pass, __m512i values)
{
    return _mm512_cmple_epu8_mask(_mm512_sub_epi8(values, pass->low[0]), pass->span[0]) |
           _mm512_cmple_epu8_mask(_mm512_sub_epi8(values, pass->low[1]), pass->span[1]);
}

LOOP uint64_t
avx512_pass_word8(const struct avx512_pass *pass, const uint8_t *values)
{
    return avx512_pass8(pass, _mm512_loadu_si512(values));
}

LOOP uint64_t
avx512_pass_rest8(const struct avx512_pass *either, const uint8_t *values, int64_t i, int64_t count,
                  const struct isa_interval pass[2])
{
    uint64_t present = low_bits(count - i);

    (void)pass;
    return avx512_pass8(either, _mm512_maskz_loadu_epi8(present, values + i)) & present;
}

ISA_PACK(avx512, 8, _mm512_set1_epi8, char)

LOOP uint64_t
avx512_pass16(const struct avx512_pass *pass, __m512i values)
{
    return _mm512_cmple_epu16_mask(_mm512_sub_epi16(values, pass->low[0]), pass->span[0]) |
           _mm512_cmple_epu16_mask(_mm512_sub_epi16(values, pass->low[1]), pass->span[1]);
}

LOOP uint64_t
avx512_pass_word16(const struct avx512_pass *pass, const uint16_t *values)
{
    return avx512_pass16(pass, _mm512_loadu_si512(values)) | avx512_pass16(pass, _mm512_loadu_si512(values + 32)) << 32;
}

LOOP uint64_t
avx512_pass_rest16(const struct avx512_pass *either, const uint16_t *values, int64_t i, int64_t count,
                   const struct isa_interval pass[2])
{
    uint64_t present = low_bits(count - i);
    __mmask32 low = (__mmask32)present, high = (__mmask32)(present >> 32);

    (void)pass;
    return (avx512_pass16(either, _mm512_maskz_loadu_epi16(low, values + i)) |
            avx512_pass16(either, _mm512_maskz_loadu_epi16(high, values + i + 32)) << 32) &
           present;
}

ISA_PACK(avx512, 16, _mm512_set1_epi16, short)

struct avx512_joined {
    uint64_t edge;
    uint64_t settle;
};

LOOP struct avx512_joined
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

LOOP void
avx512_join16(const struct isa_join *join, int64_t count, uint64_t *edges, uint64_t *settled)
{
    const struct isa_join own = *join; /* keep in registers */

    for (int64_t i = 0; i < count; i += 64) {
        uint64_t present = low_bits(count - i < 64 ? count - i : 64);
        struct avx512_joined low = avx512_join(&own, i, (uint32_t)present);
        struct avx512_joined high = avx512_join(&own, i + 32, (uint32_t)(present >> 32));

        if (edges)
            edges[i / 64] = low.edge | high.edge << 32;
        settled[i / 64] |= low.settle | high.settle << 32;
    }
}

LOOP void
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

/* If not optimised, the gathers of GCC are macros whose masks change sign. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wsign-conversion"

LOOP void
avx512_affinity16(const struct isa_pair *pair, int64_t count, uint16_t *affinity)
{
    const __m512d top = _mm512_set1_pd(65535.0);
    int64_t i = 0;

    for (; i + 8 <= count; i += 8) {
        __m256i a = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i_u *)(pair->a + i)));
        __m256i b = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i_u *)(pair->b + i)));
        __m256i apart = _mm256_abs_epi32(_mm256_sub_epi32(a, b));
        __m512d first = _mm512_i32gather_pd(_mm256_add_epi32(a, b), pair->first, 8);
        __m512d second = _mm512_i32gather_pd(apart, pair->second, 8);
        __m512d scaled = _mm512_mul_pd(top, _mm512_add_pd(first, second));
        __m256i words = _mm512_cvttpd_epi32(_mm512_min_pd(scaled, top));

        _mm_storeu_si128((__m128i_u *)(affinity + i), _mm256_cvtepi32_epi16(words));
    }
    if (i < count) {
        const struct isa_pair rest = {pair->a + i, pair->b + i, pair->first, pair->second};
        affinity16(&rest, count - i, affinity + i);
    }
}

LOOP void
avx512_level16(const uint16_t *values, int64_t count, const uint16_t *table, uint16_t bias, uint8_t *levels)
{
    __m512i all_bias = _mm512_set1_epi32(bias), most = _mm512_set1_epi32(UINT16_MAX - 1);
    int64_t i = 0;

    for (; i + 16 <= count; i += 16) {
        __m512i value = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i_u *)(values + i)));
        __m512i index = _mm512_xor_si512(value, all_bias), from = _mm512_min_epu32(index, most);
        __m512i four = _mm512_i32gather_epi32(from, table, 2);
        __m512i shift = _mm512_slli_epi32(_mm512_sub_epi32(index, from), 4);

        _mm_storeu_si128((__m128i_u *)(levels + i), _mm512_cvtepi32_epi8(_mm512_srlv_epi32(four, shift)));
    }
    level16(values + i, count - i, table, bias, levels + i);
}

ISA_SMOOTH15(avx512, __m512i, __m512i_u, _mm512)
ISA_WEIGH64(avx512, weigh64, ISA_ADD_FUSED, __m512d, __m512d_u, _mm512)
ISA_WEIGH64(avx512, weigh_apart64, ISA_ADD_APART, __m512d, __m512d_u, _mm512)

#pragma GCC diagnostic pop

const struct isa isa_avx512 = {
    .name = "AVX-512",
    .bit_instructions = true,
    .runs_here = avx512_runs_here,
    .pack8 = avx512_pack8,
    .pack16 = avx512_pack16,
    .join16 = avx512_join16,
    .raise16 = avx512_raise16,
    .affinity16 = avx512_affinity16,
    .level16 = avx512_level16,
    .smooth15 = avx512_smooth15,
    .weigh64 = avx512_weigh64,
    .weigh_apart64 = avx512_weigh_apart64,
    ISA_LOOPS,
};

#endif
