/* components_cpu.c - selects components of a mask on the CPU once its runs are united (mask_runs_cpu.c):
 * the largest, those that stay, and those by bits of their numbers. */
#include "kernels/mask/mask_runs_cpu.h"

#include <pthread.h>
#include <string.h>

static const struct mask_limit everything = {-1, 0};

/* The largest components found so far, in decreasing order. */
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

/* Skips slots that are not roots, and roots that are not larger than all places. */
static void
find_largest(void *context, int64_t number)
{
    struct mask_podium *podium = context, own = {.places = podium->places};
    const struct mask_labels *labels = podium->labels;
    struct mask_block block = mask_block(labels->volume, number);
    uint64_t bar = root_flag;

    for (uint64_t run = labels->runs.first[block.first]; run < labels->runs.first[block.end]; run++) {
        uint64_t slot = labels->runs.slots[run];

        if (slot < bar)
            continue;
        podium_offer(&own, (struct mask_limit){(int64_t)(slot & ~root_flag), run});
        if (own.taken == own.places)
            bar = root_flag | ((uint64_t)own.place[own.taken - 1].size + 1);
    }
    pthread_mutex_lock(&podium->mutex);
    for (int64_t i = 0; i < own.taken; i++)
        podium_offer(podium, own.place[i]);
    pthread_mutex_unlock(&podium->mutex);
}

struct mask_limit
mask_limit_of(const struct mask_labels *labels, const struct kernels_mask_step *step, const double spacing[3])
{
    const bool keep = step->kind == KERNELS_MASK_KEEP;
    struct mask_podium podium = {.labels = labels, .places = keep ? (int64_t)step->amount : 1};

    if (labels->found == 0)
        return everything;
    pthread_mutex_init(&podium.mutex, NULL);
    cpu_pool_for(labels->volume->pool, mask_blocks(labels->volume), find_largest, &podium);
    pthread_mutex_destroy(&podium.mutex);
    if (keep)
        return podium.taken < labels->found ? podium.place[podium.taken - 1] : everything;
    return (struct mask_limit){mask_least_size(step, spacing, podium.place[0].size), UINT64_MAX};
}

/* Returns the voxels in a word of the runs that begin at `chosen`, and of the run continued from
 * the previous word if `carry` is 1. The sum clears runs that have an addend at their beginning. */
MASK_INLINE uint64_t
runs_from(uint64_t bits, uint64_t chosen, uint64_t *carry)
{
    uint64_t sum, more;
    const bool over = __builtin_add_overflow(bits, chosen, &sum);

    *carry = over | __builtin_add_overflow(sum, *carry, &more);
    return bits & ~more;
}

struct mask_dropping {
    const struct mask_labels *labels;
    struct mask_limit limit;
    int64_t stay;
};

/* Returns whether a run stays. Replaces its slot by a root that stays or not, so that later paths
 * are short. Other threads may shorten the path meanwhile, with the same result. */
MASK_INLINE bool
mask_stays(struct mask_dropping *dropping, uint64_t run)
{
    uint64_t *slots = dropping->labels->runs.slots, root = run, slot = peek_slot(&slots[run]);

    while (!(slot & root_flag)) {
        root = slot;
        slot = peek_slot(&slots[root]);
    }
    const int64_t size = (int64_t)(slot & ~root_flag);
    const bool stays = size > dropping->limit.size || (size == dropping->limit.size && root <= dropping->limit.last);

    if (root == run)
        dropping->stay += stays;
    else
        __atomic_store_n(&slots[run], root_flag | -(uint64_t)stays, __ATOMIC_RELAXED);
    return stays;
}

static void
drop_block(void *context, int64_t number)
{
    struct mask_dropping *all = context, own = {all->labels, all->limit, 0};
    const uint32_t *first = own.labels->runs.first;
    const int64_t words = own.labels->volume->extent.words_per_row;
    struct mask_block block = mask_block(own.labels->volume, number);

    for (int64_t row = block.first; row < block.end; row++) {
        uint64_t run = first[row], before = 0, carry = 0;

        if (first[row + 1] == first[row])
            continue;
        for (int64_t word = 0; word < words; word++) {
            const uint64_t bits = mask_word(own.labels, row, word);
            uint64_t goes = 0;

            for (uint64_t starts = bits & ~(bits << 1 | before); starts; starts &= starts - 1)
                goes |= mask_stays(&own, run++) ? 0 : starts & -starts;
            own.labels->bits[row * words + word] ^= runs_from(bits, goes, &carry);
            before = bits >> 63;
        }
    }
    __atomic_fetch_add(&all->stay, own.stay, __ATOMIC_RELAXED);
}

int64_t
mask_drop(const struct mask_labels *labels, struct mask_limit limit)
{
    struct mask_dropping dropping = {labels, limit, 0};

    if (limit.size < 0)
        return labels->found;
    cpu_pool_for(labels->volume->pool, mask_blocks(labels->volume), drop_block, &dropping);
    return dropping.stay;
}

/* Numbers */

/* Data of the walks over the runs of numbered components. */
struct mask_boxing {
    const struct mask_labels *labels;
    struct mask_component *components;
};

/* Any thread may call it. */
static void
box_add(struct mask_component *box, int axis, int64_t first, int64_t last)
{
    int64_t low = __atomic_load_n(&box->first[axis], __ATOMIC_RELAXED);
    int64_t high = __atomic_load_n(&box->last[axis], __ATOMIC_RELAXED);

    while (first < low &&
           !__atomic_compare_exchange_n(&box->first[axis], &low, first, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
    while (last > high &&
           !__atomic_compare_exchange_n(&box->last[axis], &high, last, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
}

static void
box_block(void *context, int64_t number)
{
    const struct mask_boxing *boxing = context;
    const struct mask_labels *labels = boxing->labels;
    const int64_t rows = labels->volume->extent.size[1], words = labels->volume->extent.words_per_row;
    const uint32_t *first = labels->runs.first;
    struct mask_block block = mask_block(labels->volume, number);

    for (int64_t row = block.first; row < block.end; row++) {
        uint64_t *slots = labels->runs.slots, run = first[row], before = 0;
        struct mask_component *box = NULL;

        for (int64_t word = 0; word < words && first[row + 1] > first[row]; word++) {
            const uint64_t bits = mask_word(labels, row, word);
            uint64_t starts = bits & ~(bits << 1 | before), ends = bits & ~(bits >> 1);

            if (bits & before) { /* the run continues from the previous word */
                box_add(box, 0, 64 * word, 64 * word + __builtin_ctzll(ends));
                ends &= ends - 1;
            }
            for (; starts; starts &= starts - 1, ends &= ends - 1) {
                box = &boxing->components[slots[find_root(slots, run++)] & ~root_flag];
                box_add(box, 0, 64 * word + __builtin_ctzll(starts), 64 * word + __builtin_ctzll(ends));
                box_add(box, 1, row % rows, row % rows);
                box_add(box, 2, row / rows, row / rows);
            }
            before = bits >> 63;
        }
    }
}

/* Returns the least number unused by previous components that are not apart from this one. */
static uint64_t
least_number(const struct mask_component *components, int64_t own, const int64_t apart[3])
{
    uint64_t taken[MASK_COMPONENTS / 64] = {0}, word = 0;

    for (int64_t i = 0; i < own; i++) {
        const struct mask_component *a = &components[i], *b = &components[own];
        bool are_apart = false;

        for (int axis = 0; axis < 3 && !are_apart; axis++)
            are_apart = a->first[axis] - b->last[axis] > apart[axis] || b->first[axis] - a->last[axis] > apart[axis];
        if (!are_apart)
            taken[a->number / 64] |= UINT64_C(1) << a->number % 64;
    }
    while (taken[word] == ~UINT64_C(0))
        word++;
    return 64 * word + (uint64_t)__builtin_ctzll(~taken[word]);
}

int64_t
mask_number(const struct mask_labels *labels, const int64_t apart[3], struct mask_component *components)
{
    struct mask_boxing boxing = {labels, components};
    uint64_t *slots = labels->runs.slots, number = 0, most = 0;

    for (int64_t run = 0; run < labels->count; run++)
        if (slots[run] & root_flag)
            slots[run] = root_flag | number++;
    if (labels->found == 0 || labels->found > MASK_COMPONENTS)
        return labels->found;
    /* Assign as few numbers as possible to components that are numbered individually. */
    for (int64_t i = 0; i < labels->found; i++)
        components[i] = (struct mask_component){{INT64_MAX, INT64_MAX, INT64_MAX}, {-1, -1, -1}, 0};
    cpu_pool_for(labels->volume->pool, mask_blocks(labels->volume), box_block, &boxing);
    for (int64_t i = 0; i < labels->found; i++) {
        components[i].number = least_number(components, i, apart);
        most = components[i].number > most ? components[i].number : most;
    }
    for (int64_t run = 0; run < labels->count; run++)
        if (slots[run] & root_flag)
            slots[run] = root_flag | components[slots[run] & ~root_flag].number;
    return (int64_t)most + 1;
}

/* Parts */

static bool
digit_has(struct mask_digit digit, uint64_t number)
{
    return number / digit.place % digit.base == digit.value;
}

/* Handles only slices that may have voxels of the part. */
static void
part_slice(void *context, int64_t z)
{
    const struct mask_part *part = context;
    const struct mask_labels *labels = part->labels;
    const struct bits_extent *extent = &labels->volume->extent;
    const int64_t words = extent->words_per_row;
    uint64_t *slots = labels->runs.slots;

    if (mask_rectangle_is_empty(&part->slices[z]))
        return;
    for (int64_t row = z * extent->size[1]; row < (z + 1) * extent->size[1]; row++) {
        uint64_t run = labels->runs.first[row], before = 0, carry = 0;

        if (labels->runs.first[row + 1] == labels->runs.first[row]) {
            memset(part->bits + row * words, 0, (size_t)words * sizeof(*part->bits));
            continue;
        }
        for (int64_t word = 0; word < words; word++) {
            const uint64_t bits = mask_word(labels, row, word);
            uint64_t chosen = 0;

            for (uint64_t starts = bits & ~(bits << 1 | before); starts; starts &= starts - 1)
                if (digit_has(part->digit, slots[find_root(slots, run++)] & ~root_flag))
                    chosen |= starts & -starts;
            part->bits[row * words + word] = runs_from(bits, chosen, &carry);
            before = bits >> 63;
        }
    }
    part->slices[z] = mask_measure_slice(extent, part->bits, z);
}

void
mask_take_part(struct mask_part *part)
{
    static const struct mask_rectangle some = {{0, 0}, {0, 0}};
    const struct mask_labels *labels = part->labels;
    const bool told = labels->found <= MASK_COMPONENTS;
    const int64_t slices = labels->volume->extent.size[2];

    for (int64_t z = 0; z < slices; z++)
        part->slices[z] = told ? mask_no_rectangle : some;
    for (int64_t i = 0; told && i < labels->found; i++)
        if (digit_has(part->digit, part->components[i].number))
            for (int64_t z = part->components[i].first[2]; z <= part->components[i].last[2]; z++)
                part->slices[z] = some;
    cpu_pool_for(labels->volume->pool, slices, part_slice, part);
}
