/* turn_cuda.cuh - transposes small matrices of bytes or bits in a thread's words. */
#ifndef NOCTULE_KERNELS_TEXTURE_TURN_CUDA_CUH
#define NOCTULE_KERNELS_TEXTURE_TURN_CUDA_CUH

#include "kernels/cuda/ptx.cuh"

/* Swaps byte i of word k and byte k of word i. */
static __device__ __forceinline__ void
turn_bytes(const uint32_t from[4], uint32_t to[4])
{
    const uint32_t low[2] = {ptx_permute<0x5140>(from[0], from[1]), ptx_permute<0x5140>(from[2], from[3])},
                   high[2] = {ptx_permute<0x7362>(from[0], from[1]), ptx_permute<0x7362>(from[2], from[3])};

    to[0] = ptx_permute<0x5410>(low[0], low[1]);
    to[1] = ptx_permute<0x7632>(low[0], low[1]);
    to[2] = ptx_permute<0x5410>(high[0], high[1]);
    to[3] = ptx_permute<0x7632>(high[0], high[1]);
}

/* Exchanges bits of words `APART` from each other. `MASK` selects the bits that stay in the first
 * one: ptx_logic<0xCA> selects bits of the second argument where it is set, otherwise of the third.
 * The compiler would use two operations. */
template <uint32_t APART, uint32_t MASK>
static __device__ __forceinline__ void
turn_exchange(uint32_t word[8])
{
#pragma unroll
    for (uint32_t j = 0; j < 8; j++) {
        if ((j & APART) != 0)
            continue;
        const uint32_t first = word[j], second = word[j + APART];

        word[j] = ptx_logic<0xCA>(MASK, first, second << APART);
        word[j + APART] = ptx_logic<0xCA>(MASK, first >> APART, second);
    }
}

/* Moves bit k of byte b of word j to bit j of byte b of word k. */
static __device__ __forceinline__ void
turn_bits(uint32_t word[8])
{
    turn_exchange<4, 0x0F0F0F0F>(word);
    turn_exchange<2, 0x33333333>(word);
    turn_exchange<1, 0x55555555>(word);
}

#endif
