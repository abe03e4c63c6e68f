/* residue.h - integers modulo the prime 2^64 - 2^32 + 1, for exact transforms (Pollard 1971). The
 * prime has roots of unity of all orders that divide 3 * 2^32. Operands must be below the prime. */
#ifndef NOCTULE_KERNELS_MORPHOLOGY_RESIDUE_H
#define NOCTULE_KERNELS_MORPHOLOGY_RESIDUE_H

#include <stdint.h>

#ifdef __CUDACC__
#define RESIDUE_INLINE static __host__ __device__ __forceinline__
#else
#define RESIDUE_INLINE static inline
#endif

#define RESIDUE_PRIME     UINT64_C(0xFFFFFFFF00000001)
#define RESIDUE_REST      UINT64_C(0xFFFFFFFF) /* 2^64 */
#define RESIDUE_GENERATOR 7

/* Returns all ones or 0, without a branch, which would mispredict every other time. */
#define RESIDUE_WHERE(condition) (-(uint64_t)(condition))

RESIDUE_INLINE uint64_t
residue_add(uint64_t a, uint64_t b)
{
    const uint64_t rest = RESIDUE_PRIME - b;

    return a - rest + (RESIDUE_WHERE(a < rest) & RESIDUE_PRIME);
}

RESIDUE_INLINE uint64_t
residue_subtract(uint64_t a, uint64_t b)
{
    return a - b + (RESIDUE_WHERE(a < b) & RESIDUE_PRIME);
}

/* Reduces the 128 bits of the product in two halves: 2^64 is 2^32 - 1, and 2^96 is -1. */
RESIDUE_INLINE uint64_t
residue_multiply(uint64_t a, uint64_t b)
{
#ifdef __CUDA_ARCH__
    const uint64_t high = __umul64hi(a, b);
#else
    __extension__ const unsigned __int128 product = (unsigned __int128)a * b;
    const uint64_t high = (uint64_t)(product >> 64);
#endif
    const uint64_t top = high >> 32, middle = (high & RESIDUE_REST) * RESIDUE_REST;
    uint64_t low = a * b, sum = low - top;

    sum -= RESIDUE_WHERE(low < top) & RESIDUE_REST;
    low = sum + middle;
    low += RESIDUE_WHERE(low < middle) & RESIDUE_REST;
    return low - (RESIDUE_WHERE(low >= RESIDUE_PRIME) & RESIDUE_PRIME);
}

RESIDUE_INLINE uint64_t
residue_power(uint64_t base, uint64_t exponent)
{
    uint64_t power = 1;

    for (; exponent > 0; exponent /= 2) {
        if (exponent % 2)
            power = residue_multiply(power, base);
        base = residue_multiply(base, base);
    }
    return power;
}

/* Returns the index of -k in a transform of this length, for an index k. */
RESIDUE_INLINE int64_t
residue_opposite(int64_t at, int64_t length)
{
    return at == 0 ? 0 : length - at;
}

/* Returns a primitive root of unity of an order that divides 3 * 2^32. */
RESIDUE_INLINE uint64_t
residue_root(uint64_t order)
{
    return residue_power(RESIDUE_GENERATOR, (RESIDUE_PRIME - 1) / order);
}

#endif
