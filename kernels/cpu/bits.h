/* bits.h - volumes of one bit per voxel, packed along x into 64-bit words. Rows are padded to whole
 * words with zeros. */
#ifndef NOCTULE_KERNELS_CPU_BITS_H
#define NOCTULE_KERNELS_CPU_BITS_H

#include "kernels/cpu/isa.h"

#include <stdbool.h>

struct bits_extent {
    int64_t size[3];       /* voxels along x, y, z */
    int64_t words_per_row; /* along x */
    int64_t words_per_slice;
};

struct bits_extent bits_extent(int64_t x, int64_t y, int64_t z);
int64_t bits_words(const struct bits_extent *extent);

static inline int64_t
bits_least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Returns whether a row of this many words has no bit set. */
static inline bool
bits_row_is_empty(const uint64_t *row, int64_t words)
{
    uint64_t any = 0;

    for (int64_t i = 0; i < words; i++)
        any |= row[i];
    return any == 0;
}

/* Sets bits first .. last of a row. Returns how many of them were clear. */
int64_t bits_set(uint64_t *row, int64_t first, int64_t last);

/* A bit matrix in a volume: `rows` rows of `columns` bits, `stride` words from row to row. */
struct bits_matrix {
    uint64_t *words;
    int64_t rows;
    int64_t columns;
    int64_t stride;
};

/* Writes the transpose of source with rows padded with zeros. The caller must set the target's
 * shape. */
void bits_transpose(const struct isa *isa, const struct bits_matrix *source, const struct bits_matrix *target);

#endif
