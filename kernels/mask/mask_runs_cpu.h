/* mask_runs_cpu.h - helpers to walk over a mask's runs: blocks of rows, words of a row, and roots of
 * components. Private to kernels/mask. */
#ifndef NOCTULE_KERNELS_MASK_MASK_RUNS_CPU_H
#define NOCTULE_KERNELS_MASK_MASK_RUNS_CPU_H

#include "kernels/mask/mask_cpu.h"

enum {
    BLOCKS_PER_THREAD = 8,
    LEAST_ROWS = 16, /* min rows per block */
};

#define MASK_INLINE static inline __attribute__((always_inline))

/* Flag of a slot: the run is the root of its component, and the other bits are its size. */
static const uint64_t root_flag = UINT64_C(1) << 63;

/* Returns a word of a row, flipped if the labels are of the complement. */
MASK_INLINE uint64_t
mask_word(const struct mask_labels *labels, int64_t row, int64_t word)
{
    const int64_t words = labels->volume->extent.words_per_row;
    const uint64_t bits = labels->bits[row * words + word] ^ labels->flip;

    return word + 1 == words ? bits & mask_tail(&labels->volume->extent) : bits;
}

static inline int64_t
mask_rows(const struct bits_extent *extent)
{
    return extent->size[1] * extent->size[2];
}

/* The rows of a block. */
struct mask_block {
    int64_t first, end;
};

static inline int64_t
mask_blocks(const struct mask_volume *volume)
{
    int64_t most = mask_rows(&volume->extent) / LEAST_ROWS;
    int64_t wanted = volume->threads == 1 ? 1 : (int64_t)volume->threads * BLOCKS_PER_THREAD;

    return most < 1 ? 1 : wanted < most ? wanted : most;
}

static inline struct mask_block
mask_block(const struct mask_volume *volume, int64_t block)
{
    int64_t rows = mask_rows(&volume->extent), blocks = mask_blocks(volume);

    return (struct mask_block){rows * block / blocks, rows * (block + 1) / blocks};
}

MASK_INLINE uint64_t
peek_slot(const uint64_t *slot)
{
    return __atomic_load_n(slot, __ATOMIC_RELAXED);
}

/* Returns the root of a run. Shortens the path for every second run on the way. */
MASK_INLINE uint64_t
find_root(uint64_t *slots, uint64_t run)
{
    for (;;) {
        uint64_t next = peek_slot(&slots[run]);

        if (next & root_flag)
            return run;
        uint64_t after = peek_slot(&slots[next]);

        if (after & root_flag)
            return next;
        __atomic_store_n(&slots[run], after, __ATOMIC_RELAXED);
        run = after;
    }
}

#endif
