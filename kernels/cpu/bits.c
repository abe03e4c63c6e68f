#include "kernels/cpu/bits.h"

#include <string.h>

enum {
    WORDS = 8,         /* words of a row per transpose: one cache line */
    STRIPS = 8,        /* strips of 64 rows, so that the result also has whole cache lines */
    SIDE = 64 * WORDS, /* side of the resulting square in bits */
};

/* 64 rows. The padding puts equal places of the strips into different cache sets. */
struct bits_strip {
    uint64_t row[64][WORDS];
    uint64_t padding[8];
};

struct bits_extent
bits_extent(int64_t x, int64_t y, int64_t z)
{
    return (struct bits_extent){{x, y, z}, (x + 63) / 64, (x + 63) / 64 * y};
}

int64_t
bits_words(const struct bits_extent *extent)
{
    return extent->words_per_slice * extent->size[2];
}

int64_t
bits_set(uint64_t *row, int64_t first, int64_t last)
{
    int64_t added = 0;

    if (first > last)
        return 0;
    for (int64_t word = first / 64; word <= last / 64; word++) {
        uint64_t mask = ~UINT64_C(0);

        if (word == first / 64)
            mask &= ~UINT64_C(0) << first % 64;
        if (word == last / 64)
            mask &= ~UINT64_C(0) >> (63 - last % 64);
        added += __builtin_popcountll(mask & ~row[word]);
        row[word] |= mask;
    }
    return added;
}

static void
transpose_square(const struct isa *isa, const struct bits_matrix *source, const struct bits_matrix *target, int64_t row,
                 int64_t column)
{
    struct bits_strip strips[STRIPS];

    for (int64_t s = 0; s < STRIPS && row + 64 * s < source->rows; s++) {
        /* Load the strip whose first voxel is (row, column), with zeros beyond the matrix. */
        int64_t rows = bits_least(source->rows - (row + 64 * s), 64);
        size_t words = (size_t)bits_least((source->columns + 63) / 64 - column / 64, WORDS);
        const uint64_t *from = source->words + (row + 64 * s) * source->stride + column / 64;

        if (rows < 64 || words < WORDS)
            memset(strips[s].row, 0, sizeof(strips[s].row));
        for (int64_t r = 0; r < rows; r++, from += source->stride)
            memcpy(strips[s].row[r], from, words * sizeof(*from));
        uint64_t any = 0;

        for (int r = 0; r < 64; r++)
            for (int w = 0; w < WORDS; w++)
                any |= strips[s].row[r][w];
        if (any != 0)
            isa->transpose8(strips[s].row);
    }
    /* Store the transposed strips next to each other, from (row, column) of the target on. */
    int64_t rows = bits_least(target->rows - column, SIDE);
    int64_t words = bits_least((target->columns + 63) / 64 - row / 64, STRIPS);
    uint64_t *to = target->words + column * target->stride + row / 64;

    for (int64_t r = 0; r < rows; r++, to += target->stride)
        for (int64_t w = 0; w < words; w++)
            to[w] = strips[w].row[r % 64][r / 64];
}

void
bits_transpose(const struct isa *isa, const struct bits_matrix *source, const struct bits_matrix *target)
{
    for (int64_t row = 0; row < source->rows; row += SIDE)
        for (int64_t column = 0; column < source->columns; column += SIDE)
            transpose_square(isa, source, target, row, column);
}
