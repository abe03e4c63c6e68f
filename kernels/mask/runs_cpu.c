/*
 * runs_cpu.c - components on the CPU: runs of voxels within rows, united with those that they touch
 * in the rows before (He 2017).
 *
 * A run has a slot: a root's holds the size of its component, another's an earlier run of it. A
 * root is the first run of its component, whatever the order of work. Rows are dealt out in blocks,
 * which are united first each for itself, then across their beginnings by atomic operations.
 */
#include "kernels/mask/mask_cpu.h"

#include <pthread.h>
#include <string.h>

enum {
    BLOCKS_PER_THREAD = 8,
    LEAST_ROWS = 16, /* of a block */
    PAIR_WORDS = 8,  /* of two rows at a time */
};

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

#define MASK_INLINE static inline __attribute__((always_inline))

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

static int64_t
mask_rows(const struct bits_extent *extent)
{
    return extent->size[1] * extent->size[2];
}

size_t
mask_runs_most(const struct bits_extent *extent)
{
    return (size_t)mask_rows(extent) * (size_t)((extent->size[0] + 1) / 2);
}

/* The rows of a block. */
struct mask_block {
    int64_t first, end;
};

static int64_t
mask_blocks(const struct mask_volume *volume)
{
    int64_t most = mask_rows(&volume->extent) / LEAST_ROWS;
    int64_t wanted = volume->threads == 1 ? 1 : (int64_t)volume->threads * BLOCKS_PER_THREAD;

    return most < 1 ? 1 : wanted < most ? wanted : most;
}

static struct mask_block
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

/* Adds to the size of a run's component, while others unite it. */
static void
give_size(uint64_t *slots, uint64_t run, uint64_t size)
{
    for (;;) {
        uint64_t root = find_root(slots, run), slot = peek_slot(&slots[root]);

        if (slot & root_flag && __atomic_compare_exchange_n(&slots[root], &slot, slot + size, false,
                                                            __ATOMIC_RELAXED, __ATOMIC_RELAXED))
            return;
    }
}

/* Whether they were two components. */
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
        if (slot & root_flag && __atomic_compare_exchange_n(&slots[late], &slot, early, false,
                                                            __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
            give_size(slots, early, slot & ~root_flag);
            return true;
        }
    }
}

/* Runs touch that overlap, or with `corners` follow each other. How many components became less. */
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
        const int64_t count =
            volume->isa->touches(&rows, left < PAIR_WORDS ? left : PAIR_WORDS, pairs);

        for (int64_t i = 0; i < count; i++)
            united += unite_runs(labels->runs.slots, pairs[i][0], pairs[i][1], alone);
    }
    return united;
}

/* With those of the rows before this one that touch it and lie in the block, or outside. */
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
        labels->runs.first[row + 1] = (uint32_t)volume->isa->count_runs(
            labels->bits + row * extent->words_per_row, extent->size[0], labels->flip);
}

/* Whether what a row has at its ends, or all of it, lies at the border. */
static bool
row_is_border(const struct mask_labels *labels, int64_t row)
{
    const int64_t *size = labels->volume->extent.size;
    int64_t y = row % size[1], z = row / size[1];

    return y == 0 || y + 1 == size[1] || (!labels->flat && (z == 0 || z + 1 == size[2]));
}

/* Every run is a component of its own. */
MASK_INLINE void
begin_row(const struct mask_labels *labels, int64_t row)
{
    uint64_t *slot = labels->runs.slots + labels->runs.first[row];
    const int64_t last = labels->volume->extent.size[0] - 1;
    const bool all = labels->border && row_is_border(labels, row);

    if (labels->runs.first[row + 1] == labels->runs.first[row])
        return;
    for (struct mask_cursor c = cursor_of(labels, row); !c.done; cursor_next(&c)) {
        uint64_t size = (uint64_t)(c.end - c.start + 1);

        if (labels->border)
            size = all || c.start == 0 || c.end == last;
        *slot++ = root_flag | size;
    }
}

struct mask_uniting {
    const struct mask_labels *labels;
    int64_t united; /* components that became parts of others */
};

static void
unite_block(void *context, int64_t number)
{
    struct mask_uniting *uniting = context;
    const struct mask_labels *labels = uniting->labels;
    struct mask_block block = mask_block(labels->volume, number);
    int64_t united = 0;

    for (int64_t row = block.first; row < block.end; row++) {
        begin_row(labels, row);
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

struct mask_counting {
    const struct mask_labels *labels;
    struct mask_limit limit;
    int64_t found;
};

MASK_INLINE bool
mask_stays(const struct mask_labels *labels, const struct mask_limit *limit, uint64_t run)
{
    uint64_t root = find_root(labels->runs.slots, run);
    int64_t size = (int64_t)(labels->runs.slots[root] & ~root_flag);

    return size > limit->size || (size == limit->size && root <= limit->last);
}

/* The roots in a block, of those that stay. */
static void
count_roots(void *context, int64_t number)
{
    struct mask_counting *counting = context;
    const struct mask_labels *labels = counting->labels;
    struct mask_block block = mask_block(labels->volume, number);
    int64_t found = 0;

    for (uint64_t run = labels->runs.first[block.first]; run < labels->runs.first[block.end]; run++)
        found += labels->runs.slots[run] & root_flag && mask_stays(labels, &counting->limit, run);
    __atomic_fetch_add(&counting->found, found, __ATOMIC_RELAXED);
}

static const struct mask_limit everything = {-1, 0};

static int64_t
roots_that_stay(const struct mask_labels *labels, struct mask_limit limit)
{
    struct mask_counting counting = {labels, limit, 0};

    cpu_pool_for(labels->volume->pool, mask_blocks(labels->volume), count_roots, &counting);
    return counting.found;
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

/* The largest components, in falling order, of those that have been looked at. */
struct mask_podium {
    const struct mask_labels *labels;
    int64_t places;
    pthread_mutex_t mutex;
    int64_t taken;
    struct mask_limit place[KERNELS_MASK_MOST_KEPT];
};

static bool
comes_before(struct mask_limit a, struct mask_limit b)
{
    return a.size > b.size || (a.size == b.size && a.last < b.last);
}

static void
podium_offer(struct mask_podium *podium, struct mask_limit own)
{
    int64_t at;

    if (podium->taken == podium->places && !comes_before(own, podium->place[podium->taken - 1]))
        return;
    if (podium->taken < podium->places)
        podium->taken++;
    for (at = podium->taken - 1; at > 0 && comes_before(own, podium->place[at - 1]); at--)
        podium->place[at] = podium->place[at - 1];
    podium->place[at] = own;
}

static void
find_largest(void *context, int64_t number)
{
    struct mask_podium *podium = context, own = {.places = podium->places};
    const struct mask_labels *labels = podium->labels;
    struct mask_block block = mask_block(labels->volume, number);

    for (uint64_t run = labels->runs.first[block.first]; run < labels->runs.first[block.end];
         run++) {
        uint64_t slot = labels->runs.slots[run];

        if (slot & root_flag)
            podium_offer(&own, (struct mask_limit){(int64_t)(slot & ~root_flag), run});
    }
    pthread_mutex_lock(&podium->mutex);
    for (int64_t i = 0; i < own.taken; i++)
        podium_offer(podium, own.place[i]);
    pthread_mutex_unlock(&podium->mutex);
}

struct mask_limit
mask_limit_of(const struct mask_labels *labels, const struct kernels_mask_step *step,
              const double spacing[3])
{
    const bool keep = step->kind == KERNELS_MASK_KEEP;
    struct mask_podium podium = {.labels = labels, .places = keep ? (int64_t)step->amount : 1};

    if (labels->found == 0)
        return everything;
    pthread_mutex_init(&podium.mutex, NULL);
    cpu_pool_for(labels->volume->pool, mask_blocks(labels->volume), find_largest, &podium);
    pthread_mutex_destroy(&podium.mutex);
    if (keep)
        return podium.place[podium.taken - 1];
    return (struct mask_limit){mask_least_size(step, spacing, podium.place[0].size), UINT64_MAX};
}

struct mask_dropping {
    const struct mask_labels *labels;
    struct mask_limit limit;
};

/* Turns over bits start .. end of a row. */
MASK_INLINE void
turn_run(uint64_t *row, int64_t start, int64_t end)
{
    uint64_t low = ~UINT64_C(0) << start % 64, high = ~UINT64_C(0) >> (63 - end % 64);

    if (start / 64 == end / 64) {
        row[start / 64] ^= low & high;
        return;
    }
    row[start / 64] ^= low;
    for (int64_t word = start / 64 + 1; word < end / 64; word++)
        row[word] = ~row[word];
    row[end / 64] ^= high;
}

static void
drop_block(void *context, int64_t number)
{
    const struct mask_dropping *dropping = context;
    const struct mask_labels *labels = dropping->labels;
    const struct bits_extent *extent = &labels->volume->extent;
    struct mask_block block = mask_block(labels->volume, number);
    const uint32_t *first = labels->runs.first;

    for (int64_t row = block.first; row < block.end; row++) {
        uint64_t run = first[row];

        if (first[row + 1] == run)
            continue;
        for (struct mask_cursor c = cursor_of(labels, row); !c.done; run++) {
            int64_t start = c.start, end = c.end;

            cursor_next(&c); /* before the row changes */
            if (!mask_stays(labels, &dropping->limit, run))
                turn_run(labels->bits + row * extent->words_per_row, start, end);
        }
    }
}

int64_t
mask_drop(const struct mask_labels *labels, struct mask_limit limit)
{
    struct mask_dropping dropping = {labels, limit};
    int64_t stay = roots_that_stay(labels, limit);

    if (stay < labels->found)
        cpu_pool_for(labels->volume->pool, mask_blocks(labels->volume), drop_block, &dropping);
    return stay;
}

void
mask_number(const struct mask_labels *labels)
{
    uint64_t number = 0;

    for (int64_t run = 0; run < labels->count; run++)
        if (labels->runs.slots[run] & root_flag)
            labels->runs.slots[run] = root_flag | number++;
}

struct mask_parting {
    const struct mask_labels *labels;
    int bit;
    uint64_t *part;
};

static void
part_block(void *context, int64_t number)
{
    const struct mask_parting *parting = context;
    const struct mask_labels *labels = parting->labels;
    const int64_t words = labels->volume->extent.words_per_row;
    struct mask_block block = mask_block(labels->volume, number);
    uint64_t *slots = labels->runs.slots;

    memset(parting->part + block.first * words, 0,
           (size_t)((block.end - block.first) * words) * sizeof(*parting->part));
    for (int64_t row = block.first; row < block.end; row++) {
        uint64_t run = labels->runs.first[row];

        for (struct mask_cursor c = cursor_of(labels, row); !c.done; cursor_next(&c), run++) {
            const uint64_t slot = slots[find_root(slots, run)];

            if (slot >> parting->bit & 1)
                bits_set(parting->part + row * words, c.start, c.end);
        }
    }
}

void
mask_part(const struct mask_labels *labels, int bit, uint64_t *part)
{
    struct mask_parting parting = {labels, bit, part};

    cpu_pool_for(labels->volume->pool, mask_blocks(labels->volume), part_block, &parting);
}
