/*
 * runs_cpu.h - what the walks over a mask's runs share: rows in blocks, the runs of a row, and the
 * roots of components. Within kernels/mask.
 */
#ifndef NOCTULE_MASK_RUNS_CPU_H
#define NOCTULE_MASK_RUNS_CPU_H

#include "kernels/mask/mask_cpu.h"

enum {
    BLOCKS_PER_THREAD = 8,
    LEAST_ROWS = 16, /* of a block */
};

#define MASK_INLINE static inline __attribute__((always_inline))

/* Of a slot: the run is the root of its component, whose size is the rest. */
static const uint64_t root_flag = UINT64_C(1) << 63;

/* One run of a row after the other. */
struct mask_cursor {
    const uint64_t *row;
    uint64_t flip, tail;
    int64_t words, word;
    uint64_t rest; /* what is still to come of the word */
    int64_t start, end;
    bool done;
};

MASK_INLINE uint64_t
cursor_word(const struct mask_cursor *cursor)
{
    uint64_t bits = cursor->row[cursor->word] ^ cursor->flip;

    return cursor->word + 1 == cursor->words ? bits & cursor->tail : bits;
}

MASK_INLINE void
cursor_next(struct mask_cursor *cursor)
{
    while (!cursor->rest) {
        if (++cursor->word >= cursor->words) {
            cursor->done = true;
            return;
        }
        cursor->rest = cursor_word(cursor);
    }
    uint64_t lowest = cursor->rest & -cursor->rest, gaps = ~(cursor->rest | (lowest - 1));

    cursor->start = cursor->word * 64 + __builtin_ctzll(lowest);
    while (!gaps) { /* it goes on in the next word */
        cursor->rest = 0;
        if (++cursor->word >= cursor->words) {
            cursor->end = cursor->words * 64 - 1;
            return;
        }
        cursor->rest = cursor_word(cursor);
        gaps = ~cursor->rest;
    }
    cursor->end = cursor->word * 64 + __builtin_ctzll(gaps) - 1;
    cursor->rest &= ~UINT64_C(0) << __builtin_ctzll(gaps);
}

MASK_INLINE struct mask_cursor
cursor_of(const struct mask_labels *labels, int64_t row)
{
    const struct bits_extent *extent = &labels->volume->extent;
    struct mask_cursor cursor = {.row = labels->bits + row * extent->words_per_row,
                                 .flip = labels->flip,
                                 .tail = mask_tail(extent),
                                 .words = extent->words_per_row,
                                 .word = -1};

    cursor_next(&cursor);
    return cursor;
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

/* The root of a run; on the way, every second run gets a shorter one. */
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
