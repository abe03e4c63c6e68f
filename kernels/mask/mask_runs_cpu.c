/*
 * mask_runs_cpu.c - components on the CPU: runs of voxels within rows, united with the runs that they
 * touch in previous rows (He 2017).
 *
 * Each run has a slot. A root's slot has the size of its component, another's an earlier run of it.
 * A root is the first run of its component, in any order of execution. Rows are distributed in
 * blocks. Each block is first united separately, then across block boundaries by atomic operations.
 */
#include "kernels/mask/mask_runs_cpu.h"

enum { PAIR_WORDS = 8 }; /* words of two rows at a time */

size_t
mask_runs_most(const struct bits_extent *extent)
{
    return (size_t)mask_rows(extent) * (size_t)((extent->size[0] + 1) / 2);
}

/* Adds to the size of a run's component, while other threads unite it. */
static void
give_size(uint64_t *slots, uint64_t run, uint64_t size)
{
    for (;;) {
        uint64_t root = find_root(slots, run), slot = peek_slot(&slots[root]);

        if (slot & root_flag &&
            __atomic_compare_exchange_n(&slots[root], &slot, slot + size, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
            return;
    }
}

/* Returns whether they were two components. */
MASK_INLINE bool
unite_runs(uint64_t *slots, uint64_t a, uint64_t b, bool alone)
{
    for (;;) {
        a = find_root(slots, a);
        b = find_root(slots, b);
        if (a == b)
            return false;
        uint64_t early = a < b ? a : b, late = a < b ? b : a, slot = peek_slot(&slots[late]);

        if (alone) {
            slots[early] += slot & ~root_flag;
            slots[late] = early;
            return true;
        }
        if (slot & root_flag &&
            __atomic_compare_exchange_n(&slots[late], &slot, early, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
            give_size(slots, early, slot & ~root_flag);
            return true;
        }
    }
}

/* Unites runs that overlap or, with `corners`, are diagonal neighbours. Returns how many unions
 * joined two components. */
MASK_INLINE int64_t
unite_rows(const struct mask_labels *labels, int64_t row, int64_t other, bool alone)
{
    const struct mask_volume *volume = labels->volume;
    const uint32_t *first = labels->runs.first;
    const int64_t words = volume->extent.words_per_row;
    struct isa_touching rows = {
        .rows = {labels->bits + row * words, labels->bits + other * words},
        .flip = labels->flip,
        .tail = mask_tail(&volume->extent),
        .words = words,
        .corners = labels->corners,
        .runs = {first[row], first[other]},
    };
    uint32_t pairs[PAIR_WORDS * ISA_TOUCHES][2];
    int64_t united = 0;

    if (first[row + 1] == first[row] || first[other + 1] == first[other])
        return 0;
    while (rows.word < words) {
        const int64_t left = words - rows.word;
        const int64_t count = volume->isa->touches(&rows, left < PAIR_WORDS ? left : PAIR_WORDS, pairs);

        for (int64_t i = 0; i < count; i++)
            united += unite_runs(labels->runs.slots, pairs[i][0], pairs[i][1], alone);
    }
    return united;
}

/* Unites a row with the previous rows that touch it, inside the block or outside. */
MASK_INLINE int64_t
unite_row(const struct mask_labels *labels, int64_t row, int64_t block, bool outside)
{
    const int64_t rows = labels->volume->extent.size[1], y = row % rows;
    const bool deep = !labels->flat && row >= rows;
    const int64_t others[4] = {
        y > 0 ? row - 1 : -1,
        deep ? row - rows : -1,
        deep && labels->corners && y > 0 ? row - rows - 1 : -1,
        deep && labels->corners && y + 1 < rows ? row - rows + 1 : -1,
    };

    int64_t united = 0;

    for (int i = 0; i < 4; i++)
        if (others[i] >= 0 && (others[i] < block) == outside)
            united += unite_rows(labels, row, others[i], !outside);
    return united;
}

static void
count_row_runs(void *context, int64_t number)
{
    const struct mask_labels *labels = context;
    const struct mask_volume *volume = labels->volume;
    const struct bits_extent *extent = &volume->extent;
    struct mask_block block = mask_block(volume, number);

    for (int64_t row = block.first; row < block.end; row++)
        labels->runs.first[row + 1] = (uint32_t)volume->isa->count_runs(labels->bits + row * extent->words_per_row,
                                                                        extent->size[0], labels->flip);
}

/* Makes every run a component, with its length as size. */
MASK_INLINE void
begin_by_length(const struct mask_labels *labels, int64_t row)
{
    uint64_t *slot = labels->runs.slots + labels->runs.first[row], before = 0;

    for (int64_t word = 0; word < labels->volume->extent.words_per_row; word++) {
        const uint64_t bits = mask_word(labels, row, word);
        uint64_t starts = bits & ~(bits << 1 | before), ends = bits & ~(bits >> 1);

        if (bits & before) { /* the run continues from the previous word */
            slot[-1] += (uint64_t)__builtin_ctzll(ends) + 1;
            ends &= ends - 1;
        }
        for (; starts; starts &= starts - 1, ends &= ends - 1)
            *slot++ = root_flag | (uint64_t)(__builtin_ctzll(ends) - __builtin_ctzll(starts) + 1);
        before = bits >> 63;
    }
}

/* As begin_by_length, with size 1 for runs at the border, otherwise 0. */
static void
begin_by_border(const struct mask_labels *labels, int64_t row)
{
    const struct bits_extent *extent = &labels->volume->extent;
    uint64_t *first = labels->runs.slots + labels->runs.first[row];
    uint64_t *last = labels->runs.slots + labels->runs.first[row + 1] - 1;
    const int64_t *size = extent->size, end = extent->words_per_row - 1, y = row % size[1], z = row / size[1];
    const bool all = y == 0 || y + 1 == size[1] || (!labels->flat && (z == 0 || z + 1 == size[2]));

    for (uint64_t *slot = first; slot <= last; slot++)
        *slot = root_flag | all;
    *first |= mask_word(labels, row, 0) & 1;
    *last |= mask_word(labels, row, end) >> (extent->size[0] - 1) % 64;
}

struct mask_uniting {
    const struct mask_labels *labels;
    int64_t united; /* components merged into others */
};

static void
unite_block(void *context, int64_t number)
{
    struct mask_uniting *uniting = context;
    const struct mask_labels *labels = uniting->labels;
    struct mask_block block = mask_block(labels->volume, number);
    int64_t united = 0;

    for (int64_t row = block.first; row < block.end; row++) {
        if (labels->border && labels->runs.first[row + 1] > labels->runs.first[row])
            begin_by_border(labels, row);
        else if (labels->runs.first[row + 1] > labels->runs.first[row])
            begin_by_length(labels, row);
        united += unite_row(labels, row, block.first, false);
    }
    __atomic_fetch_add(&uniting->united, united, __ATOMIC_RELAXED);
}

static void
unite_seam(void *context, int64_t number)
{
    struct mask_uniting *uniting = context;
    const struct mask_labels *labels = uniting->labels;
    struct mask_block block = mask_block(labels->volume, number);
    int64_t end = block.first + labels->volume->extent.size[1] + 1, united = 0;

    for (int64_t row = block.first; row < block.end && row < end; row++)
        united += unite_row(labels, row, block.first, true);
    __atomic_fetch_add(&uniting->united, united, __ATOMIC_RELAXED);
}

int64_t
mask_label(struct mask_labels *labels)
{
    const struct mask_volume *volume = labels->volume;
    const int64_t blocks = mask_blocks(volume), rows = mask_rows(&volume->extent);
    struct mask_uniting uniting = {labels, 0};
    uint32_t *first = labels->runs.first;

    cpu_pool_for(volume->pool, blocks, count_row_runs, labels);
    first[0] = 0;
    for (int64_t row = 0; row < rows; row++)
        first[row + 1] += first[row];
    labels->count = first[rows];
    cpu_pool_for(volume->pool, blocks, unite_block, &uniting);
    if (blocks > 1)
        cpu_pool_for(volume->pool, blocks, unite_seam, &uniting);
    labels->found = labels->count - uniting.united;
    return labels->found;
}
