/* mask_range.cu - the voxels in range as bits: a thread compares the voxels of 16 bytes of a row,
 * four bytes at once. */
#include "kernels/mask/mask_cuda.cuh"

enum { RANGE_PIECES = 4 }; /* per thread, loading at the same time */

/* Per value size: the number of bits that 16 bytes make, and the comparison of four bytes. */
template <typename Value> struct range_values;

template <> struct range_values<uint8_t> {
    using bits = uint16_t;

    static __device__ __forceinline__ uint32_t repeat(uint16_t value)
    {
        return value * 0x01010101u;
    }

    static __device__ __forceinline__ uint32_t passes(uint32_t four, uint32_t low, uint32_t span)
    {
        return __vcmpleu4(__vsub4(four, low), span) & 0x01010101;
    }

    /* `passed`: one per four bytes. */
    static __device__ __forceinline__ uint32_t gather(const uint32_t passed[4])
    {
        return __dp4a(passed[1], 0x80402010u, __dp4a(passed[0], 0x08040201u, 0u)) |
               __dp4a(passed[3], 0x80402010u, __dp4a(passed[2], 0x08040201u, 0u)) << 8;
    }
};

template <> struct range_values<uint16_t> {
    using bits = uint8_t;

    static __device__ __forceinline__ uint32_t repeat(uint16_t value)
    {
        return value * 0x00010001u;
    }

    static __device__ __forceinline__ uint32_t passes(uint32_t two, uint32_t low, uint32_t span)
    {
        return __vcmpleu2(__vsub2(two, low), span) & 0x00010001;
    }

    static __device__ __forceinline__ uint32_t gather(const uint32_t passed[4])
    {
        const uint32_t first = passed[0] | passed[1] << 2 | passed[2] << 4 | passed[3] << 6;

        return (first | first >> 15) & 0xFF;
    }
};

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

template <typename Value>
__device__ static __forceinline__ uint32_t
passing_bits(const struct range_piece &piece, const struct mask_pass &pass)
{
    using values = range_values<Value>;
    uint32_t passed[4] = {};

    for (uint32_t i = 0; i < pass.intervals; i++) {
        const uint32_t low = values::repeat(pass.low[i]), span = values::repeat(pass.span[i]);

#pragma unroll
        for (int word = 0; word < 4; word++)
            passed[word] |= values::passes(piece.words[word], low, span);
    }
    return values::gather(passed);
}

/* Several blocks handle one slice. */
template <typename Value>
__global__ void
__launch_bounds__(MASK_THREADS)
    mask_range(const __grid_constant__ struct mask_grid grid, const Value *voxels, const struct mask_pass *passes,
               bool alike, uint32_t blocks, typename range_values<Value>::bits *bits)
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

template <typename Value>
static void
queue_range(const struct mask_grid *grid, const Value *voxels, const struct mask_pass *passes, bool alike,
            uint64_t *bits, cudaStream_t stream)
{
    const int64_t pieces = grid->words_per_row * grid->rows * (64 / (16 / (int64_t)sizeof(Value)));
    const uint32_t blocks = (uint32_t)((pieces - 1) / (RANGE_PIECES * MASK_THREADS) + 1);

    mask_range<Value><<<blocks *(uint32_t)grid->slices, MASK_THREADS, 0, stream>>>(
        *grid, voxels, passes, alike, blocks, (typename range_values<Value>::bits *)bits);
}

void
mask_range_queue(const struct mask_grid *grid, enum image_pixel pixel, const void *voxels,
                 const struct mask_pass *passes, bool alike, uint64_t *bits, cudaStream_t stream)
{
    if (pixel == IMAGE_UINT8)
        queue_range(grid, (const uint8_t *)voxels, passes, alike, bits, stream);
    else
        queue_range(grid, (const uint16_t *)voxels, passes, alike, bits, stream);
}
