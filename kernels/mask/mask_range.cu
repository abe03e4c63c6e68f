/* mask_range.cu - the voxels in range as bits: a thread compares the voxels of 16 bytes of a row,
 * four bytes at once. */
#include "kernels/mask/mask_cuda.cuh"

#include <type_traits>

enum { RANGE_PIECES = 4 }; /* per thread, loading at the same time */

/* The bits that 16 bytes make. */
template <typename Value> using range_bits = typename std::conditional<sizeof(Value) == 1, uint16_t, uint8_t>::type;

struct range_piece {
    uint32_t words[4];
};

/* Reads the 16 bytes from this one on, unaligned. Bytes beyond the volume are undefined. */
__device__ static __forceinline__ struct range_piece
read_piece(const uint32_t *volume, size_t byte, size_t last_word)
{
    const size_t first = byte / 4;
    struct range_piece piece;

    if (byte % 16 == 0 && first + 3 <= last_word) {
        const uint4 all = *(const uint4 *)(volume + first);

        return {all.x, all.y, all.z, all.w};
    }
    uint32_t word = volume[min(first, last_word)];

    for (int i = 0; i < 4; i++) {
        const uint32_t next = volume[min(first + i + 1, last_word)];

        piece.words[i] = __funnelshift_r(word, next, byte % 4 * 8);
        word = next;
    }
    return piece;
}

/* Compares four bytes at once. Then gathers the bits of all values that pass. */
template <typename Value>
__device__ static __forceinline__ uint32_t
passing_bits(const struct range_piece &piece, const struct mask_pass &pass)
{
    constexpr bool bytes = sizeof(Value) == 1;
    constexpr uint32_t ones = bytes ? 0x01010101 : 0x00010001; /* one per value */
    uint32_t passed[4] = {};

    for (uint32_t i = 0; i < pass.intervals; i++) {
        const uint32_t low = pass.low[i] * ones, span = pass.span[i] * ones;

#pragma unroll
        for (int word = 0; word < 4; word++)
            passed[word] |= ones & (bytes ? __vcmpleu4(__vsub4(piece.words[word], low), span)
                                          : __vcmpleu2(__vsub2(piece.words[word], low), span));
    }
    if (bytes)
        return __dp4a(passed[1], 0x80402010u, __dp4a(passed[0], 0x08040201u, 0u)) |
               __dp4a(passed[3], 0x80402010u, __dp4a(passed[2], 0x08040201u, 0u)) << 8;
    const uint32_t first = passed[0] | passed[1] << 2 | passed[2] << 4 | passed[3] << 6;

    return (first | first >> 15) & 0xFF;
}

/* Several blocks handle one slice. */
template <typename Value>
__global__ void
__launch_bounds__(MASK_THREADS)
    mask_range(const __grid_constant__ struct mask_grid grid, const Value *voxels, const struct mask_pass *passes,
               bool alike, uint32_t blocks, range_bits<Value> *bits)
{
    constexpr uint32_t size = 16 / sizeof(Value);
    const uint32_t z = blockIdx.x / blocks, row_pieces = (uint32_t)grid.words_per_row * (64 / size),
                   pieces = row_pieces * (uint32_t)grid.rows;
    const uint32_t first = blockIdx.x % blocks * (RANGE_PIECES * MASK_THREADS) + threadIdx.x;
    const size_t row = (size_t)z * grid.rows,
                 last_word = ((size_t)grid.columns * grid.rows * grid.slices * sizeof(Value) - 1) / 4;
    const struct mask_pass pass = passes[alike ? 0 : z];
    struct range_piece read[RANGE_PIECES];
    int32_t left[RANGE_PIECES]; /* remaining voxels of the row */

#pragma unroll
    for (uint32_t i = 0; i < RANGE_PIECES; i++) {
        const uint32_t at = first + i * MASK_THREADS, y = at / row_pieces, x = (at - y * row_pieces) * size;

        left[i] = at < pieces ? (int32_t)grid.columns - (int32_t)x : 0;
        if (left[i] > 0)
            read[i] = read_piece((const uint32_t *)voxels, ((row + y) * grid.columns + x) * sizeof(Value), last_word);
    }
#pragma unroll
    for (uint32_t i = 0; i < RANGE_PIECES; i++) {
        const uint32_t at = first + i * MASK_THREADS;
        const uint32_t there = left[i] >= (int32_t)size ? ~0u : left[i] > 0 ? ~(~0u << left[i]) : 0;

        if (at < pieces)
            bits[(size_t)z * pieces + at] = there ? passing_bits<Value>(read[i], pass) & there : 0;
    }
}

void
mask_range_queue(const struct mask_grid *grid, enum image_pixel pixel, const void *voxels,
                 const struct mask_pass *passes, bool alike, uint64_t *bits, cudaStream_t stream)
{
    const int64_t pieces = grid->words_per_row * grid->rows * (64 / (16 / (int64_t)image_pixel_size(pixel)));
    const uint32_t blocks = (uint32_t)((pieces - 1) / (RANGE_PIECES * MASK_THREADS) + 1);
    const uint32_t all = blocks * (uint32_t)grid->slices;

    if (pixel == IMAGE_UINT8)
        mask_range<uint8_t><<<all, MASK_THREADS, 0, stream>>>(*grid, (const uint8_t *)voxels, passes, alike, blocks,
                                                              (range_bits<uint8_t> *)bits);
    else
        mask_range<uint16_t><<<all, MASK_THREADS, 0, stream>>>(*grid, (const uint16_t *)voxels, passes, alike, blocks,
                                                               (range_bits<uint16_t> *)bits);
}
