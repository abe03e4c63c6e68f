/* isa_avx2.c - the innermost loops for AVX2; see isa_private.h. */
#ifdef __x86_64__

#define ISA_TARGET __attribute__((target("avx2,fma,bmi,bmi2,lzcnt,popcnt")))
#define ISA_VECTOR 32
#include "kernels/cpu/isa_private.h"

#include <cpuid.h>
#include <immintrin.h>

static bool
avx2_runs_here(void)
{
    unsigned eax, ebx, ecx, edx;

    /* Not every compiler's __builtin_cpu_supports supports lzcnt. */
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
           __builtin_cpu_supports("bmi2") && __get_cpuid(0x80000001, &eax, &ebx, &ecx, &edx) && (ecx & bit_LZCNT) &&
           __builtin_cpu_supports("popcnt");
}

/* Packs two vectors of 16-bit lanes, all ones or all zeros, into 32 bits in order. */
LOOP uint64_t
avx2_bits(__m256i low, __m256i high)
{
    /* packs works on 128-bit halves: restore the order of the quarters. */
    __m256i bytes = _mm256_permute4x64_epi64(_mm256_packs_epi16(low, high), 0xD8);

    return (uint32_t)_mm256_movemask_epi8(bytes);
}

struct avx2_pass {
    __m256i low[2];
    __m256i span[2];
};

/* Packs the last 64 values or, without vectors, fewer. */
#define AVX2_PASS_REST(BITS)                                                                                           \
    LOOP uint64_t avx2_pass_rest##BITS(const struct avx2_pass *either, const uint##BITS##_t *values, int64_t i,        \
                                       int64_t count, const struct isa_interval pass[2])                               \
    {                                                                                                                  \
        return i == 0 ? pack_word##BITS(values, count, pass)                                                           \
                      : avx2_pass_word##BITS(either, values + count - 64) >> (64 - (count - i));                       \
    }

LOOP uint64_t
avx2_pass8(const struct avx2_pass *pass, const uint8_t *values)
{
    __m256i loaded = _mm256_loadu_si256((const __m256i_u *)values);
    __m256i first = _mm256_subs_epu8(_mm256_sub_epi8(loaded, pass->low[0]), pass->span[0]);
    __m256i second = _mm256_subs_epu8(_mm256_sub_epi8(loaded, pass->low[1]), pass->span[1]);
    __m256i beyond = _mm256_min_epu8(first, second);

    return (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(beyond, _mm256_setzero_si256()));
}

LOOP uint64_t
avx2_pass_word8(const struct avx2_pass *pass, const uint8_t *values)
{
    return avx2_pass8(pass, values) | avx2_pass8(pass, values + 32) << 32;
}

AVX2_PASS_REST(8)
ISA_PACK(avx2, 8, _mm256_set1_epi8, char)

/* Returns all ones in the 16-bit lanes that pass. */
LOOP __m256i
avx2_pass16(const struct avx2_pass *pass, const uint16_t *values)
{
    __m256i loaded = _mm256_loadu_si256((const __m256i_u *)values);
    __m256i first = _mm256_subs_epu16(_mm256_sub_epi16(loaded, pass->low[0]), pass->span[0]);
    __m256i second = _mm256_subs_epu16(_mm256_sub_epi16(loaded, pass->low[1]), pass->span[1]);

    return _mm256_cmpeq_epi16(_mm256_min_epu16(first, second), _mm256_setzero_si256());
}

LOOP uint64_t
avx2_pass_word16(const struct avx2_pass *pass, const uint16_t *values)
{
    return avx2_bits(avx2_pass16(pass, values), avx2_pass16(pass, values + 16)) |
           avx2_bits(avx2_pass16(pass, values + 32), avx2_pass16(pass, values + 48)) << 32;
}

AVX2_PASS_REST(16)
ISA_PACK(avx2, 16, _mm256_set1_epi16, short)

LOOP void
avx2_join16(const struct isa_join *join, int64_t count, uint64_t *edges, uint64_t *settled)
{
    const struct isa_join rows = *join;
    const __m256i step = _mm256_set1_epi16((short)rows.step);
    int64_t i = 0;

    for (; i + 64 <= count; i += 64) {
        __m256i edge[4], settle[4]; /* all ones in lanes that are edges, and in lanes that settle */

        for (int k = 0; k < 4; k++) {
            const int64_t from = i + 16 * k;
            __m256i own = _mm256_loadu_si256((const __m256i_u *)(rows.own + from));
            __m256i other = _mm256_loadu_si256((const __m256i_u *)(rows.other + from));
            __m256i affinity = _mm256_loadu_si256((const __m256i_u *)(rows.affinity + from));
            __m256i least = _mm256_add_epi16(own, step);
            __m256i strong = _mm256_cmpeq_epi16(_mm256_max_epu16(affinity, least), affinity);
            __m256i equal = _mm256_cmpeq_epi16(own, other);
            __m256i below = _mm256_cmpeq_epi16(_mm256_max_epu16(own, other), other);

            edge[k] = _mm256_and_si256(strong, equal);
            settle[k] = _mm256_and_si256(strong, _mm256_andnot_si256(equal, below));
        }
        if (edges)
            edges[i / 64] = avx2_bits(edge[0], edge[1]) | avx2_bits(edge[2], edge[3]) << 32;
        settled[i / 64] |= avx2_bits(settle[0], settle[1]) | avx2_bits(settle[2], settle[3]) << 32;
    }
    if (i < count)
        join16_word(join, i, count - i, edges, settled);
}

LOOP void
avx2_level16(const uint16_t *values, int64_t count, const uint16_t *table, uint16_t bias, uint8_t *levels)
{
    __m256i all_bias = _mm256_set1_epi32(bias), most = _mm256_set1_epi32(UINT16_MAX - 1);
    int64_t i = 0;

    for (; i + 8 <= count; i += 8) {
        __m256i value = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i_u *)(values + i)));
        /* Gather 16-bit entries with 32-bit loads. The last entry is loaded with the one before it. */
        __m256i index = _mm256_xor_si256(value, all_bias), from = _mm256_min_epu32(index, most);
        __m256i four = _mm256_i32gather_epi32((const int *)(const void *)table, from, 2);
        __m256i shift = _mm256_slli_epi32(_mm256_sub_epi32(index, from), 4);
        __m256i entries = _mm256_and_si256(_mm256_srlv_epi32(four, shift), _mm256_set1_epi32(UINT8_MAX));
        __m128i words = _mm_packus_epi32(_mm256_castsi256_si128(entries), _mm256_extracti128_si256(entries, 1));

        _mm_storel_epi64((__m128i_u *)(levels + i), _mm_packus_epi16(words, words));
    }
    level16(values + i, count - i, table, bias, levels + i);
}

ISA_SMOOTH15(avx2, __m256i, __m256i_u, _mm256)
ISA_WEIGH64(avx2, weigh64, ISA_ADD_FUSED, __m256d, __m256d_u, _mm256)
ISA_WEIGH64(avx2, weigh_apart64, ISA_ADD_APART, __m256d, __m256d_u, _mm256)

const struct isa isa_avx2 = {
    .name = "AVX2",
    .bit_instructions = true,
    .runs_here = avx2_runs_here,
    .pack8 = avx2_pack8,
    .pack16 = avx2_pack16,
    .join16 = avx2_join16,
    .raise16 = raise16,
    .affinity16 = affinity16,
    .level16 = avx2_level16,
    .smooth15 = avx2_smooth15,
    .weigh64 = avx2_weigh64,
    .weigh_apart64 = avx2_weigh_apart64,
    ISA_LOOPS,
};

#endif
