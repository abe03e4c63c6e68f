/*
 * slices_block.h - one block of a brick file (slices.h): its voxels and differences. Private to slices/.
 */
#ifndef NOCTULE_SERVICE_COMMON_SLICES_SLICES_BLOCK_H
#define NOCTULE_SERVICE_COMMON_SLICES_SLICES_BLOCK_H

#include <stdint.h>

enum {
    BLOCK_EDGE = 16,
    BLOCK_VOXELS = BLOCK_EDGE * BLOCK_EDGE * BLOCK_EDGE,
    BLOCK_FULL = 0x8000, /* a segment that has all voxels */
    BLOCK_HEAD = 3,
    BLOCK_MASK_BYTES = 2 + 2 * BLOCK_EDGE * BLOCK_EDGE, /* max per segment */
    HEAD_FIXED = 192,
    HEAD_CHECKED = 16, /* the checksum begins here */
    HEAD_MAX = 64 << 20,
    INDEX_ROW = 8,
};

/* The slices of a column of voxels. */
typedef int16_t block_lanes[BLOCK_EDGE];

/* Voxel (x, y, z) is lanes[16 * y + x][z]. `size` is that of the block. */
struct block {
    int32_t size[3];
    block_lanes lanes[BLOCK_EDGE * BLOCK_EDGE];
};

/* Computes the differences of a block whose missing slices have any value. */
void block_to_differences(const struct block *block, int16_t first, uint16_t differences[][BLOCK_EDGE]);
/* Computes the voxels; does the reverse. */
void block_from_differences(struct block *block, int16_t first, const uint16_t differences[][BLOCK_EDGE]);

#endif
