/*
 * slices_block.h - the values of one block of a brick file (slices.h). Private to slices/.
 */
#ifndef NOCTULE_SERVICE_COMMON_SLICES_SLICES_BLOCK_H
#define NOCTULE_SERVICE_COMMON_SLICES_SLICES_BLOCK_H

#include <stdint.h>

#define SLICES_MAGIC "NOCTSLC3"

enum {
    BLOCK_EDGE = 16,
    BLOCK_LANES = 8,
    BLOCK_PARTS = BLOCK_EDGE / BLOCK_LANES,
    BLOCK_ROWS = BLOCK_EDGE * BLOCK_EDGE,
    BLOCK_VOXELS = BLOCK_EDGE * BLOCK_ROWS,
    BLOCK_FULL = 0x8000,            /* a segment that has all voxels */
    BLOCK_CHANGES = BLOCK_ROWS / 8, /* max bytes with a bit per row */
    BLOCK_BIT = 16,                 /* parts of a bit in estimates */
    BLOCK_SHIFT_MAX = 12,           /* of rounded values */
    BLOCK_SLACK = 64,               /* bytes that are read or written beyond the end */
    /* Max bytes of the values: per slice the form and 4 bits per width, then the words, and the slack. */
    BLOCK_VALUES_MAX = 3 + BLOCK_EDGE * (1 + BLOCK_EDGE) + 2 * BLOCK_VOXELS + BLOCK_SLACK,
    BLOCK_MASK_MAX = 2 + BLOCK_CHANGES + 2 * BLOCK_ROWS, /* max bytes per segment */
    HEAD_FIXED = 192,
    HEAD_CHECKED = 16, /* the checksum begins here */
    HEAD_SHIFT = 31,
    HEAD_MAX = 64 << 20,
    INDEX_ROW = 8,
};

/* A part of the voxels of a row: as many as each processor has in a vector. */
typedef int16_t block_lanes __attribute__((vector_size(2 * BLOCK_LANES)));

/* Row (y, z) is rows[16 * z + y]. `size` is that of the block. Voxels from size[0] on repeat the last one for block_pack(). */
struct block {
    int32_t size[3];
    block_lanes rows[BLOCK_ROWS][BLOCK_PARTS];
};

/* The prediction that needs the fewest bits in a slice of the block. */
struct block_choice {
    int way;
    int32_t bits; /* that it needs per voxel, times BLOCK_BIT; an estimate */
};

struct block_choice block_choose(const struct block *block);

/* Divides the voxels by 2^shift, rounded to the nearest; halves are rounded up. */
void block_round(struct block *block, int shift);

/*
 * Writes the values of a block that was chosen and then rounded: at most BLOCK_VALUES_MAX bytes, the last BLOCK_SLACK of
 * them unused. Returns their end.
 */
uint8_t *block_pack(const struct block *block, int way, int shift, uint8_t *to);

/*
 * Reads the rows of the first `slices` slices, of a block whose size is set. Voxels above `most` become it. BLOCK_SLACK bytes after `end` must be readable.
 * Returns the end of the values of all slices, or NULL if the bytes are damaged.
 */
const uint8_t *block_unpack(struct block *block, int32_t slices, int16_t most, const uint8_t *from, const uint8_t *end);

#endif
