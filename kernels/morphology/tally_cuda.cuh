/*
 * tally_cuda.cuh - counts the frequency of each byte by bit products.
 *
 * Let A have a row for each upper half of a byte and a column for each byte, 1 if the byte has that
 * half. Let B be the same for lower halves. A times B transposed then counts each byte value. The
 * tensor cores multiply 16 x 256 by 256 x 8 bits in one instruction, so that 256 bytes always take
 * two.
 *
 * Bytes come as bit planes: plane k has bit k of 32 bytes per word. A warp has 32 words of each
 * plane in shared memory. Each lane computes the product's masks for its row and its column, for
 * eight words.
 */
#ifndef NOCTULE_KERNELS_MORPHOLOGY_TALLY_CUDA_CUH
#define NOCTULE_KERNELS_MORPHOLOGY_TALLY_CUDA_CUH

#include "kernels/cuda/ptx.cuh"

enum {
    TALLY_WARP = 32,
    TALLY_PLANES = 8,
    TALLY_BYTES = 1 << TALLY_PLANES,
    TALLY_HALF = TALLY_PLANES / 2,
    TALLY_WORDS = 8, /* words of a lane in the product */
};

struct __align__(16) tally_planes
{
    uint32_t plane[TALLY_PLANES][TALLY_WARP];
};

/* A lane's part of a warp's counts, each below 2^31. */
struct tally {
    uint32_t lacks[TALLY_HALF - 1]; /* all ones if its row and column lack the bit */
    int32_t sums[2][4];
};

static __device__ __forceinline__ void
tally_begin(struct tally *tally)
{
    *tally = {};
#pragma unroll
    for (uint32_t bit = 0; bit < TALLY_HALF - 1; bit++)
        tally->lacks[bit] = (threadIdx.x % TALLY_WARP / 4 >> bit & 1) - 1;
}

/* Finds, in four words of the planes of one half, the bytes with the lane's half, without and with
 * its highest bit. */
static __device__ __forceinline__ void
tally_make_masks(const uint32_t (*plane)[TALLY_WARP], const struct tally &tally, uint32_t masks[2][4])
{
    uint32_t word[TALLY_HALF][4];

#pragma unroll
    for (uint32_t bit = 0; bit < TALLY_HALF; bit++) {
        const uint4 four = *(const uint4 *)plane[bit];

        memcpy(word[bit], &four, sizeof(four));
    }
#pragma unroll
    for (uint32_t i = 0; i < 4; i++) {
        uint32_t alike = ~0u;

#pragma unroll
        for (uint32_t bit = 0; bit < TALLY_HALF - 1; bit++)
            alike &= word[bit][i] ^ tally.lacks[bit];
        masks[0][i] = alike & ~word[TALLY_HALF - 1][i];
        masks[1][i] = alike & word[TALLY_HALF - 1][i];
    }
}

/* Counts the bytes of 32 words. The warp may write them before and after. */
static __device__ __forceinline__ void
tally_add(const struct tally_planes &planes, struct tally *tally)
{
    const uint32_t first = threadIdx.x % 4 * TALLY_WORDS;

    __syncwarp();
#pragma unroll
    for (uint32_t i = 0; i < TALLY_WORDS; i += 4) {
        uint32_t rows[2][4], columns[2][4];

        tally_make_masks((const uint32_t(*)[TALLY_WARP]) & planes.plane[TALLY_HALF][first + i], *tally, rows);
        tally_make_masks((const uint32_t(*)[TALLY_WARP]) & planes.plane[0][first + i], *tally, columns);
#pragma unroll
        for (uint32_t k = 0; k < 4; k += 2)
#pragma unroll
            for (uint32_t side = 0; side < 2; side++)
                ptx_multiply_bits(tally->sums[side], rows[0][k], rows[1][k], rows[0][k + 1], rows[1][k + 1],
                                  columns[side][k], columns[side][k + 1]);
    }
    __syncwarp();
}

/* Adds the counts to the block's counters, one per byte value. */
static __device__ __forceinline__ void
tally_end(const struct tally &tally, uint32_t *counters)
{
    const uint32_t lane = threadIdx.x % TALLY_WARP;

#pragma unroll
    for (uint32_t side = 0; side < 2; side++)
#pragma unroll
        for (uint32_t i = 0; i < 4; i++) {
            const uint32_t upper = lane / 4 + i / 2 * 8, lower = side * 8 + lane % 4 * 2 + i % 2;

            atomicAdd(&counters[upper << TALLY_HALF | lower], (uint32_t)tally.sums[side][i]);
        }
}

#endif
