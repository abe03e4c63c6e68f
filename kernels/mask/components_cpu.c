/*
 * components_cpu.c - what becomes of a mask's components on the CPU once its runs are united
 * (runs_cpu.c): which are the largest, which stay, and which bits of their numbers they have.
 */
#include "kernels/mask/runs_cpu.h"

#include <pthread.h>
#include <string.h>

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
