/*
 * texture_cpu.h - what the files of texture on the CPU share: blocks of rows, words of regions, and
 * the memory that a thread counts in.
 */
#ifndef NOCTULE_TEXTURE_CPU_H
#define NOCTULE_TEXTURE_CPU_H

#include "kernels/cpu/device.h"
#include "kernels/texture/texture.h"
#include "kernels/texture/tuples.h"

enum {
    TEXTURE_VALUES = 1 << 16,  /* of a pixel of two bytes, and indices of a table */
    TEXTURE_WIDE_LEVELS = 257, /* with 0: more than a uint8_t holds */
    TEXTURE_TUPLE_LEVELS = 65, /* with 0, in a tuple of three: counters stay in a cache */
    TEXTURE_ENTRIES = TEXTURE_TUPLE_LEVELS * TEXTURE_TUPLE_LEVELS * TEXTURE_TUPLE_LEVELS,
    TEXTURE_BLOCK_VOXELS = 1 << 16, /* that a thread takes at a time */
    TEXTURE_MOST_PENDING = 1 << 30, /* counts in a table before it is emptied */
};

/* What a thread counts with. */
struct texture_space {
    uint16_t low[2 * TEXTURE_VALUES];
    uint32_t high[TEXTURE_ENTRIES];
    /* Margins of a tuple of three and more. */
    uint64_t sums[TUPLE_PAIRS][TEXTURE_TUPLE_LEVELS * TEXTURE_TUPLE_LEVELS];
};

/* One per thread of the device. */
static inline struct texture_space *
texture_take_spaces(const struct kernels_lane *lane, struct kernels_memory *memory)
{
    return (struct texture_space *)kernels_take(&memory->host, (size_t)lane->device->threads,
                                                sizeof(struct texture_space));
}

/* Claims the next thread's; `claimed` begins at 0. */
static inline struct texture_space *
texture_claim_space(struct texture_space *spaces, int64_t *claimed)
{
    return spaces + __atomic_fetch_add(claimed, 1, __ATOMIC_RELAXED);
}

/* Rows of one slice that are worked on together. */
struct texture_blocks {
    int64_t rows;   /* of a slice */
    int64_t height; /* of a block */
    int64_t per_slice;
    int64_t count;
};

/* At least one row, and about this many voxels, a block. */
static inline struct texture_blocks
texture_blocks_of(const struct kernels_lane *lane, int64_t rows, int64_t slices, int64_t voxels)
{
    struct texture_blocks blocks = {.rows = rows, .height = voxels / lane->extent.columns};

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

/* Levels of the box around a region, 0 where a voxel is not of the region or has none, with as many
 * zeros on each side of it as neighbours are away. */
struct texture_boxed {
    struct texture_box box;
    int64_t margin;
    int64_t row, slice; /* from one to the next */
    uint16_t *levels;   /* of the box's first voxel */
};

/* Memory for elements of the box of any region, with TEXTURE_MAX_DISTANCE zeros around it. */
void *cpu_boxed_take(const struct kernels_lane *lane, struct kernels_memory *memory, size_t size);

void cpu_boxed_fill(struct cpu_lane *lane, const struct texture_levels *levels,
                    const uint64_t *region, int64_t margin, uint16_t *memory,
                    struct texture_boxed *boxed);

/* Blocks of a box's rows. */
static inline struct texture_blocks
texture_blocks_of_box(const struct texture_box *box)
{
    struct texture_blocks blocks = {.rows = box->size[1],
                                    .height = TEXTURE_BLOCK_VOXELS / box->size[0]};

    if (blocks.height < 1)
        blocks.height = 1;
    blocks.per_slice = (blocks.rows + blocks.height - 1) / blocks.height;
    blocks.count = blocks.per_slice * box->size[2];
    return blocks;
}

static inline int64_t
texture_words_per_row(const struct kernels_lane *lane)
{
    return (lane->extent.columns + 63) / 64;
}

/* A word of a region's row without the bits that pad it; a NULL region is everything. */
static inline uint64_t
texture_region_word(const struct kernels_lane *lane, const uint64_t *region, int64_t row,
                    int64_t word)
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
