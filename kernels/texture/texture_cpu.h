/* texture_cpu.h - declarations shared by the texture files of the CPU: blocks of rows, words of
 * regions, and memory for the counters of a thread. */
#ifndef NOCTULE_KERNELS_TEXTURE_TEXTURE_CPU_H
#define NOCTULE_KERNELS_TEXTURE_TEXTURE_CPU_H

#include "kernels/cpu/device.h"
#include "kernels/texture/texture.h"
#include "kernels/texture/tuples.h"

enum {
    TEXTURE_VALUES = 1 << 16,  /* of a 16-bit pixel, and indices of a table */
    TEXTURE_WIDE_LEVELS = 257, /* including 0: more than a uint8_t can hold */
    TEXTURE_TUPLE_LEVELS = 65, /* including 0, in a tuple of three: counters stay in a cache */
    TEXTURE_ENTRIES = TEXTURE_TUPLE_LEVELS * TEXTURE_TUPLE_LEVELS * TEXTURE_TUPLE_LEVELS,
    TEXTURE_BLOCK_VOXELS = 1 << 16, /* voxels per block of a thread */
    TEXTURE_MOST_PENDING = 1 << 30, /* max counts in a table before it is flushed */
};

/* Counters of a thread. */
struct texture_space {
    uint16_t low[2 * TEXTURE_VALUES];
    uint32_t high[TEXTURE_ENTRIES];
    /* Margins of tuples of three or more points. */
    uint64_t sums[TUPLE_PAIRS][TEXTURE_TUPLE_LEVELS * TEXTURE_TUPLE_LEVELS];
};

/* Rows of one slice that are processed together. */
struct texture_blocks {
    int64_t rows;   /* per slice */
    int64_t height; /* rows per block */
    int64_t per_slice;
    int64_t count;
};

/* Returns blocks of about `voxels` voxels, at least one row each. */
static inline struct texture_blocks
texture_blocks_of(int64_t columns, int64_t rows, int64_t slices, int64_t voxels)
{
    struct texture_blocks blocks = {.rows = rows, .height = voxels / columns};

    if (blocks.height < 1)
        blocks.height = 1;
    blocks.per_slice = (rows + blocks.height - 1) / blocks.height;
    blocks.count = blocks.per_slice * slices;
    return blocks;
}

/* Rows first .. end - 1 of slice z. */
struct texture_block {
    int64_t z;
    int64_t first;
    int64_t end;
};

static inline struct texture_block
texture_block_at(const struct texture_blocks *blocks, int64_t i)
{
    struct texture_block block = {i / blocks->per_slice, i % blocks->per_slice * blocks->height, 0};

    block.end = block.first + blocks->height;
    if (block.end > blocks->rows)
        block.end = blocks->rows;
    return block;
}

/* Levels of the box around a region, 0 for voxels outside the region or without a level. Zeros pad
 * each side by the max distance of neighbours. */
struct texture_boxed {
    struct texture_box box;
    int64_t margin;
    int64_t row, slice; /* elements from one to the next */
    uint16_t *levels;   /* at the box's first voxel */
};

/* Takes memory for elements of any region's box, padded by TEXTURE_MAX_DISTANCE. */
void *cpu_boxed_take(const struct kernels_lane *lane, struct kernels_memory *memory, size_t size);

void cpu_boxed_fill(struct cpu_lane *lane, const struct texture_levels *levels, const uint64_t *region, int64_t margin,
                    uint16_t *memory, struct texture_boxed *boxed);

static inline int64_t
texture_words_per_row(const struct kernels_lane *lane)
{
    return (lane->extent.columns + 63) / 64;
}

/* Returns a word of a region's row without padding bits. A NULL region has all voxels. */
static inline uint64_t
texture_region_word(const struct kernels_lane *lane, const uint64_t *region, int64_t row, int64_t word)
{
    int64_t left = lane->extent.columns - word * 64;
    uint64_t inside = left < 64 ? (UINT64_C(1) << left) - 1 : ~UINT64_C(0);

    return region ? region[row * texture_words_per_row(lane) + word] & inside : inside;
}

static inline void
texture_add(uint64_t *count, uint64_t sum)
{
    if (sum > 0)
        __atomic_fetch_add(count, sum, __ATOMIC_RELAXED);
}

#endif
