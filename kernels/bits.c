/* bits.c - see bits.h. */
#include "bits.h"

#include <string.h>

enum {
    BLOCK = 64,                /* a block is 64 rows of one word */
    SQUARE = 8,                /* a square is 8 x 8 blocks: it reads and writes whole cache lines */
    SQUARE_BITS = SQUARE * 64, /* the side of a square */
};

struct square {
    uint64_t block[SQUARE][SQUARE][BLOCK]; /* [block column][block row][row] */
};

struct bits_extent
bits_extent(int64_t x, int64_t y, int64_t z)
{
    return (struct bits_extent){{x, y, z}, (x + 63) / 64};
}

int64_t
bits_words(const struct bits_extent *extent)
{
    return extent->words_per_row * extent->size[1] * extent->size[2];
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

static int64_t
least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* The square whose first voxel is (row, column); what lies beyond the matrix is 0. */
static void
load(struct square *square, const struct bits_matrix *matrix, int64_t row, int64_t column)
{
    int64_t rows = least(matrix->rows - row, SQUARE_BITS);
    int64_t words = least((matrix->columns + 63) / 64 - column / 64, SQUARE);
    const uint64_t *from = matrix->words + row * matrix->stride + column / 64;

    if (rows < SQUARE_BITS || words < SQUARE)
        memset(square, 0, sizeof(*square));
    for (int64_t r = 0; r < rows; r++, from += matrix->stride)
        for (int64_t w = 0; w < words; w++)
            square->block[w][r / BLOCK][r % BLOCK] = from[w];
}

static bool
all_zero(const uint64_t block[BLOCK])
{
    uint64_t any = 0;

    for (int i = 0; i < BLOCK; i++)
        any |= block[i];
    return any == 0;
}

static void
turn(const struct isa *isa, struct square *square)
{
    for (int w = 0; w < SQUARE; w++)
        for (int r = 0; r < SQUARE; r++)
            if (!all_zero(square->block[w][r]))
                isa->transpose(square->block[w][r]);
}

/* Stores a turned square, whose block columns have become rows, at (row, column). */
static void
store(const struct square *square, const struct bits_matrix *matrix, int64_t row, int64_t column)
{
    int64_t rows = least(matrix->rows - row, SQUARE_BITS);
    int64_t words = least((matrix->columns + 63) / 64 - column / 64, SQUARE);
    uint64_t *to = matrix->words + row * matrix->stride + column / 64;

    for (int64_t r = 0; r < rows; r++, to += matrix->stride)
        for (int64_t w = 0; w < words; w++)
            to[w] = square->block[r / BLOCK][w][r % BLOCK];
}

void
bits_transpose(const struct isa *isa, const struct bits_matrix *source,
               const struct bits_matrix *target)
{
    struct square square;

    for (int64_t row = 0; row < source->rows; row += SQUARE_BITS) {
        for (int64_t column = 0; column < source->columns; column += SQUARE_BITS) {
            load(&square, source, row, column);
            turn(isa, &square);
            store(&square, target, column, row);
        }
    }
}
