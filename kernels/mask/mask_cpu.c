/* mask_cpu.c - masks on the CPU, one bit per voxel: the initial mask of a request, and its steps
 * one after the other, between the mask's own memory and work memory. */
#include "kernels/mask/mask_cpu.h"
#include "kernels/range/range_cpu.h"

#include <string.h>

/* Work memory besides the mask itself: one to work in, and those for cutting bridges. */
enum { SPARE, CUT, PART, OTHER, SPARES };

/* Max component numbers handled one by one. More are handled by their digits. */
enum { MOST_VALUES = 16 };

struct cpu_mask {
    struct kernels_mask_demand demand;
    uint64_t *masks;
    uint64_t *spare[SPARES];
    struct mask_runs runs;
    struct mask_ball ball;
    struct mask_grow_space grow;
    uint64_t *padded[2]; /* for closings */
    struct mask_mean *means;
    struct mask_component *components; /* for cutting bridges */
};

static struct mask_volume
cpu_mask_volume(const struct kernels_lane *lane, const struct image_extent *extent)
{
    const struct cpu_device *device = cpu_device_of(lane);

    return (struct mask_volume){bits_extent(extent->columns, extent->rows, extent->slices), device->isa, device->pool,
                                device->base.threads};
}

static bool
cpu_mask_needs(struct kernels_lane *lane, const void *demand)
{
    const struct mask_volume volume = cpu_mask_volume(lane, &lane->extent);
    const struct kernels_mask_demand *masks = demand;
    struct cpu_mask *own = kernels_state(lane, KERNELS_MASK);

    own->demand = *masks;
    return mask_runs_most(&volume.extent) <= UINT32_MAX &&
           (!masks->closings || mask_padded_can(masks->spacing, masks->reach_mm));
}

static void
cpu_mask_place(struct kernels_lane *lane, struct kernels_memory *memory)
{
    struct cpu_mask *own = kernels_state(lane, KERNELS_MASK);
    struct kernels_arena *arena = &memory->host;
    const struct kernels_mask_demand *demand = &own->demand;
    const struct mask_volume volume = cpu_mask_volume(lane, &lane->extent);
    const size_t words = (size_t)bits_words(&volume.extent);
    const size_t rows = (size_t)(volume.extent.size[1] * volume.extent.size[2]);
    const struct image_extent padded =
        demand->closings ? mask_padded(&lane->extent, demand->spacing, demand->reach_mm, false) : lane->extent;
    const struct mask_volume largest = cpu_mask_volume(lane, &padded);
    const struct mask_reach most = mask_reach_of(&padded, demand->spacing, demand->reach_mm);

    own->masks = kernels_take(arena, demand->masks, words * sizeof(*own->masks));
    for (int i = 0; i < (demand->bridges ? SPARES : SPARE + 1); i++)
        own->spare[i] = kernels_take(arena, words, sizeof(*own->spare[i]));
    own->runs.first = kernels_take(arena, rows + 1, sizeof(*own->runs.first));
    own->runs.slots = kernels_take(arena, mask_runs_most(&volume.extent), sizeof(*own->runs.slots));
    mask_ball_place(&own->ball, &most, arena);
    mask_grow_place(&own->grow, &largest, &most, arena);
    for (int i = 0; i < 2; i++)
        own->padded[i] =
            kernels_take(arena, demand->closings ? (size_t)bits_words(&largest.extent) : 0, sizeof(*own->padded[i]));
    own->components = kernels_take(arena, demand->bridges ? MASK_COMPONENTS : 0, sizeof(*own->components));
    own->means = kernels_take(arena, MASK_MEANS, sizeof(*own->means));
}

/* State of a request. */
struct mask_making {
    struct cpu_lane *lane;
    struct cpu_mask *own;
    struct mask_volume volume;
    const struct kernels_mask_request *given;
    struct mask_bounds bounds;
    struct kernels_mask_result *result;
    uint64_t *bits;  /* the current mask */
    uint64_t *spare; /* same size as bits */
};

/* Makes the initial mask of a slice. Compares values last, only where voxels remain. */
static void
begin_slice(void *context, int64_t z)
{
    const struct mask_making *making = context;
    const struct kernels_mask_request *given = making->given;
    const struct bits_extent *extent = &making->volume.extent;
    const int64_t words = extent->words_per_slice, first = z * words;
    const bool sets = given->found || given->any_of_count + given->within_count + given->minus_count > 0;
    const struct image_range *range = given->range_count > 0 ? &given->ranges[given->range_count > 1 ? z : 0] : NULL;
    const uint64_t tail = mask_tail(extent);
    uint64_t *bits = making->bits + first;

    if (range && !sets) {
        range_pack_slice(making->lane, *range, given->padding, z, bits);
        return;
    }
    if (given->found && given->found != making->bits)
        memcpy(bits, given->found + first, (size_t)words * sizeof(*bits));
    else if (!given->found)
        memset(bits, 0xFF, (size_t)words * sizeof(*bits));
    for (int64_t i = 0; i < words && given->any_of_count > 0; i++) { /* keep the bits that lie in any of these masks */
        uint64_t any = 0;

        for (size_t m = 0; m < given->any_of_count; m++)
            any |= given->any_of[m][first + i];
        bits[i] &= any;
    }
    mask_bound(&making->bounds, first, words, bits);
    for (int64_t last = extent->words_per_row - 1; last < words; last += extent->words_per_row)
        bits[last] &= tail;
    if (range)
        range_narrow_slice(making->lane, *range, given->padding, z, bits);
}

/* Returns NULL without bounds. */
static const struct mask_bounds *
bounds_of(const struct mask_making *making)
{
    const struct mask_bounds *bounds = &making->bounds;

    return bounds->within_count + bounds->minus_count > 0 ? bounds : NULL;
}

static void
bound_slice(void *context, int64_t z)
{
    const struct mask_making *making = context;
    const int64_t words = making->volume.extent.words_per_slice;

    mask_bound(&making->bounds, z * words, words, making->bits + z * words);
}

/* Components, and holes */

static struct mask_labels
labels_of(const struct mask_making *making, uint64_t *bits, bool corners)
{
    return (struct mask_labels){.volume = &making->volume, .runs = making->own->runs, .bits = bits, .corners = corners};
}

static void
drop_means(struct mask_making *making, const struct kernels_mask_step *step)
{
    struct mask_labels labels = labels_of(making, making->bits, step->corners);
    struct mask_averaging averaging = {&labels, making->lane->voxels.memory, making->lane->base.pixel, step->amount,
                                       making->own->means};

    making->result->components_found = mask_label(&labels);
    making->result->components_kept = mask_drop_means(&averaging);
}

/* Balls */

static void
grow_in_place(struct mask_making *making, bool shrink, const struct mask_bounds *bounds)
{
    const struct mask_growing growing = {.volume = &making->volume,
                                         .ball = &making->own->ball,
                                         .space = &making->own->grow,
                                         .source = making->bits,
                                         .target = making->spare,
                                         .shrink = shrink,
                                         .bounds = bounds};

    mask_measure(&making->volume, making->bits, making->own->grow.slices);
    mask_grow(&growing);
    making->spare = making->bits;
    making->bits = growing.target;
}

/* A mask, and its copy in a larger volume, `reach` voxels from each of its faces. */
struct mask_padding {
    struct mask_making *making;
    const struct mask_volume *volume;
    const int64_t *reach;
    uint64_t *copy;
};

/* Returns 64 bits of a row of `words` words from this bit on. Bits beyond the row are 0. */
static inline uint64_t
row_bits(const uint64_t *row, int64_t words, int64_t bit)
{
    const int64_t word = bit >= 0 ? bit / 64 : -((63 - bit) / 64), shift = bit - 64 * word;
    const uint64_t low = word >= 0 && word < words ? row[word] : 0;

    if (shift == 0)
        return low;
    return low >> shift | (word + 1 >= 0 && word + 1 < words ? row[word + 1] << (64 - shift) : 0);
}

/* Copies the mask to a slice of the larger volume. */
static void
pad_slice(void *context, int64_t z)
{
    const struct mask_padding *padding = context;
    const struct bits_extent *from = &padding->making->volume.extent, *to = &padding->volume->extent;
    const int64_t *reach = padding->reach, own = z - reach[2];
    uint64_t *row = padding->copy + z * to->words_per_slice;

    memset(row, 0, (size_t)to->words_per_slice * sizeof(*row));
    for (int64_t y = 0; y < from->size[1] && own >= 0 && own < from->size[2]; y++)
        for (int64_t word = 0; word < to->words_per_row; word++)
            row[(y + reach[1]) * to->words_per_row + word] =
                row_bits(padding->making->bits + own * from->words_per_slice + y * from->words_per_row,
                         from->words_per_row, 64 * word - reach[0]);
}

/* Copies a slice of the mask back, and cuts it to the bounds. */
static void
unpad_slice(void *context, int64_t z)
{
    const struct mask_padding *padding = context;
    const struct bits_extent *from = &padding->volume->extent, *to = &padding->making->volume.extent;
    const int64_t *reach = padding->reach, words = to->words_per_row;
    const uint64_t *row = padding->copy + (z + reach[2]) * from->words_per_slice + reach[1] * from->words_per_row;
    uint64_t *bits = padding->making->bits + z * to->words_per_slice;

    for (int64_t y = 0; y < to->size[1]; y++, row += from->words_per_row, bits += words) {
        for (int64_t word = 0; word < words; word++)
            bits[word] = row_bits(row, from->words_per_row, 64 * word + reach[0]);
        bits[words - 1] &= mask_tail(to);
    }
    bound_slice(padding->making, z);
}

static void
close_gaps(struct mask_making *making, const struct kernels_mask_step *step)
{
    struct cpu_mask *own = making->own;
    const struct kernels_lane *lane = &making->lane->base;
    const struct image_extent padded = mask_padded(&lane->extent, own->demand.spacing, step->amount, step->in_slice);
    const struct mask_volume volume = cpu_mask_volume(lane, &padded);
    struct mask_padding padding = {making, &volume, own->ball.reach.size, own->padded[0]};
    struct mask_growing growing = {
        .volume = &volume, .ball = &own->ball, .space = &own->grow, .source = own->padded[0], .target = own->padded[1]};

    mask_ball_make(&own->ball, &padded, own->demand.spacing, step->amount, step->in_slice);
    cpu_pool_for(volume.pool, volume.extent.size[2], pad_slice, &padding);
    mask_measure(&volume, growing.source, own->grow.slices);
    mask_grow(&growing);
    growing.source = own->padded[1];
    growing.target = own->padded[0];
    growing.shrink = true;
    mask_measure(&volume, growing.source, own->grow.slices);
    mask_grow(&growing);
    cpu_pool_for(volume.pool, making->volume.extent.size[2], unpad_slice, &padding);
}

struct bridge_cutting {
    const struct mask_volume *volume;
    const struct mask_rectangle *reached; /* of the other */
    uint64_t *one;                        /* reached by earlier components */
    const uint64_t *other;
    uint64_t *cut;
    bool corners;
};

/* Rows around a row, inside the volume. Voxels reach their neighbours in the `wide` rows, and only
 * their own position in the `plain` ones. */
struct rows_around {
    const uint64_t *wide[9], *plain[4];
    int wides, plains;
};

/* If `reached` is given, skips slices where it is empty. */
static struct rows_around
find_rows_around(const struct bridge_cutting *cutting, const uint64_t *bits, const struct mask_rectangle *reached,
                 int64_t y, int64_t z)
{
    const struct bits_extent *extent = &cutting->volume->extent;
    struct rows_around rows;

    rows.wides = rows.plains = 0;
    for (int64_t k = z - 1; k <= z + 1; k++) {
        if (k < 0 || k >= extent->size[2] || (reached && mask_rectangle_is_empty(&reached[k])))
            continue;
        for (int64_t j = y - 1; j <= y + 1; j++) {
            const uint64_t *row = bits + k * extent->words_per_slice + j * extent->words_per_row;

            if (j < 0 || j >= extent->size[1])
                continue;
            if (cutting->corners || (j == y && k == z))
                rows.wide[rows.wides++] = row;
            else if (j == y || k == z)
                rows.plain[rows.plains++] = row;
        }
    }
    return rows;
}

static inline uint64_t
any_word(const uint64_t *const *rows, int count, int64_t word)
{
    uint64_t any = 0;

    for (int i = 0; i < count; i++)
        any |= rows[i][word];
    return any;
}

/* Returns a word of the voxels and their neighbours in a row of `words` words. */
static inline uint64_t
reached_word(const struct rows_around *rows, int64_t word, int64_t words)
{
    const uint64_t own = any_word(rows->wide, rows->wides, word);
    const uint64_t before = word > 0 ? any_word(rows->wide, rows->wides, word - 1) : 0;
    const uint64_t behind = word + 1 < words ? any_word(rows->wide, rows->wides, word + 1) : 0;

    return own | own << 1 | own >> 1 | before >> 63 | behind << 63 | any_word(rows->plain, rows->plains, word);
}

/* Cuts voxels of a slice where both masks, or their neighbours, meet. */
static void
cut_slice(void *context, int64_t z)
{
    const struct bridge_cutting *cutting = context;
    const struct bits_extent *extent = &cutting->volume->extent;
    /* The words and rows of the slice that may have voxels or neighbours of the other. */
    const int64_t *size = cutting->volume->extent.size;
    struct mask_rectangle near = {{INT64_MAX, INT64_MAX}, {-1, -1}};

    for (int64_t k = z > 0 ? z - 1 : z; k <= z + 1 && k < size[2]; k++)
        for (int axis = 0; axis < 2 && !mask_rectangle_is_empty(&cutting->reached[k]); axis++) {
            const int64_t first = cutting->reached[k].first[axis] - 1;
            const int64_t last = cutting->reached[k].last[axis] + 1;

            if (first < near.first[axis])
                near.first[axis] = first > 0 ? first : 0;
            if (last > near.last[axis])
                near.last[axis] = last < size[axis] ? last : size[axis] - 1;
        }
    near.first[0] /= 64;
    near.last[0] = near.last[0] < 0 ? -1 : near.last[0] / 64;

    const int64_t words = extent->words_per_row;

    for (int64_t y = near.first[1]; y <= near.last[1]; y++) {
        const struct rows_around one = find_rows_around(cutting, cutting->one, NULL, y, z);
        const struct rows_around other = find_rows_around(cutting, cutting->other, cutting->reached, y, z);
        uint64_t *cut = cutting->cut + z * extent->words_per_slice + y * words;

        for (int64_t word = near.first[0]; word <= near.last[0]; word++) {
            const uint64_t reached = reached_word(&one, word, words);

            if (reached)
                cut[word] |= reached & reached_word(&other, word, words);
        }
    }
}

/* Adds the other mask to the first one. */
static void
unite_slice(void *context, int64_t z)
{
    const struct bridge_cutting *cutting = context;
    const struct mask_rectangle *reached = &cutting->reached[z];
    const struct bits_extent *extent = &cutting->volume->extent;
    const int64_t first = z * extent->words_per_slice + reached->first[1] * extent->words_per_row;
    const int64_t end = z * extent->words_per_slice + (reached->last[1] + 1) * extent->words_per_row;

    if (!mask_rectangle_is_empty(reached))
        for (int64_t i = first; i < end; i++)
            cutting->one[i] |= cutting->other[i];
}

/* Sets the result to the voxels that any component reaches, without the cuts. */
static void
join_slice(void *context, int64_t z)
{
    const struct bridge_cutting *cutting = context;
    const int64_t words = cutting->volume->extent.words_per_slice;

    for (int64_t i = z * words; i < (z + 1) * words; i++)
        cutting->one[i] &= ~cutting->cut[i];
}

/* Grows the components of a part. */
static void
cut_part(struct mask_making *making, struct bridge_cutting *cutting, struct mask_part *part)
{
    const struct mask_volume *volume = &making->volume;
    const bool first = part->digit.value == 0;
    const struct mask_growing growing = {.volume = volume,
                                         .ball = &making->own->ball,
                                         .space = &making->own->grow,
                                         .source = part->bits,
                                         .target = first ? cutting->one : making->own->spare[OTHER],
                                         .sparse = !first};

    mask_take_part(part);
    mask_grow(&growing);
    if (first)
        return;
    cpu_pool_for(volume->pool, volume->extent.size[2], cut_slice, cutting);
    cpu_pool_for(volume->pool, volume->extent.size[2], unite_slice, cutting);
}

/*
 * Two components with different numbers differ in a digit. Components with the same value of a
 * digit are grown together, value by value and digit by digit. Components with the same number do
 * not meet.
 */
static void
cut_bridges(struct mask_making *making, const struct kernels_mask_step *step)
{
    const struct mask_volume *volume = &making->volume;
    const struct bits_extent *extent = &volume->extent;
    struct cpu_mask *own = making->own;
    struct mask_labels labels;
    int64_t apart[3];

    grow_in_place(making, true, NULL);
    /* Find the distances along each axis beyond which two components reach no common or
     * neighbouring voxels. */
    for (int axis = 0; axis < 3; axis++)
        apart[axis] = 2 * own->ball.reach.size[axis] + 1;
    labels = labels_of(making, making->bits, step->corners);
    mask_label(&labels);
    making->result->components_found = making->result->components_kept = labels.found;

    const uint64_t numbers = (uint64_t)mask_number(&labels, apart, own->components);
    struct mask_part part = {&labels, own->components, {1, numbers, 0}, own->spare[PART], own->grow.slices};
    struct bridge_cutting cutting = {volume,          own->grow.reached, making->spare, own->spare[OTHER],
                                     own->spare[CUT], step->corners};

    if (numbers < 2) {
        grow_in_place(making, false, NULL);
        return;
    }
    if (numbers > MOST_VALUES)
        part.digit.base = 2;
    memset(cutting.cut, 0, (size_t)bits_words(extent) * sizeof(*cutting.cut));
    for (; part.digit.place < numbers; part.digit.place *= part.digit.base)
        for (part.digit.value = 0; part.digit.value < part.digit.base; part.digit.value++)
            cut_part(making, &cutting, &part);
    cpu_pool_for(volume->pool, extent->size[2], join_slice, &cutting);
    making->spare = making->bits;
    making->bits = cutting.one;
}

static void
take_step(struct mask_making *making, const struct kernels_mask_step *step)
{
    const struct kernels_lane *lane = &making->lane->base;

    if (mask_step_has_ball(step->kind))
        mask_ball_make(&making->own->ball, &lane->extent, making->own->demand.spacing, step->amount, step->in_slice);
    switch (step->kind) {
    case KERNELS_MASK_KEEP:
    case KERNELS_MASK_KEEP_AT_LEAST:
    case KERNELS_MASK_DROP_BELOW: {
        struct mask_labels labels = labels_of(making, making->bits, step->corners);

        making->result->components_found = mask_label(&labels);
        making->result->components_kept = mask_drop(&labels, mask_limit_of(&labels, step, making->own->demand.spacing));
    } break;
    case KERNELS_MASK_FILL_SLICES:
    case KERNELS_MASK_FILL_VOLUME: {
        /* Flip the complement's components that have no run at the border. */
        static const struct mask_limit at_border = {1, UINT64_MAX};
        struct mask_labels labels = labels_of(making, making->bits, step->corners);

        labels.flip = ~UINT64_C(0);
        labels.flat = step->kind == KERNELS_MASK_FILL_SLICES;
        labels.border = true;
        mask_label(&labels);
        mask_drop(&labels, at_border);
        if (bounds_of(making))
            cpu_pool_for(making->volume.pool, making->volume.extent.size[2], bound_slice, making);
    } break;
    case KERNELS_MASK_GROW:
    case KERNELS_MASK_SHRINK:
        grow_in_place(making, step->kind == KERNELS_MASK_SHRINK, bounds_of(making));
        break;
    case KERNELS_MASK_OPEN:
        grow_in_place(making, true, NULL);
        grow_in_place(making, false, NULL);
        break;
    case KERNELS_MASK_CLOSE:
        close_gaps(making, step);
        break;
    case KERNELS_MASK_CUT_BRIDGES:
        cut_bridges(making, step);
        break;
    case KERNELS_MASK_DROP_MEAN_BELOW:
        drop_means(making, step);
        break;
    case KERNELS_MASK_STEPS:
        break;
    }
}

/* The result */

struct mask_measuring {
    const struct mask_volume *volume;
    const uint64_t *bits;
    struct mask_rectangle *slices;
};

struct mask_rectangle
mask_measure_slice(const struct bits_extent *extent, const uint64_t *bits, int64_t z)
{
    const int64_t words = extent->words_per_row;
    const uint64_t *slice = bits + z * extent->words_per_slice;
    struct mask_rectangle found = {{0, 0}, {0, extent->size[1] - 1}};

    while (found.first[1] < extent->size[1] && bits_row_is_empty(slice + found.first[1] * words, words))
        found.first[1]++;
    if (found.first[1] == extent->size[1])
        return mask_no_rectangle;
    while (bits_row_is_empty(slice + found.last[1] * words, words))
        found.last[1]--;
    /* Measure along x in these rows. Skip words that cannot change the result. */
    found.first[0] = 64 * words - 1;
    for (int64_t y = found.first[1]; y <= found.last[1]; y++) {
        const uint64_t *row = slice + y * words;

        for (int64_t word = 0; word <= found.first[0] / 64; word++)
            if (row[word] && 64 * word + __builtin_ctzll(row[word]) < found.first[0])
                found.first[0] = 64 * word + __builtin_ctzll(row[word]);
        for (int64_t word = words - 1; word >= found.last[0] / 64; word--)
            if (row[word] && 64 * word + 63 - __builtin_clzll(row[word]) > found.last[0])
                found.last[0] = 64 * word + 63 - __builtin_clzll(row[word]);
    }
    return found;
}

static void
measure_slice(void *context, int64_t z)
{
    const struct mask_measuring *measuring = context;

    measuring->slices[z] = mask_measure_slice(&measuring->volume->extent, measuring->bits, z);
}

void
mask_measure(const struct mask_volume *volume, const uint64_t *bits, struct mask_rectangle *slices)
{
    struct mask_measuring measuring = {volume, bits, slices};

    cpu_pool_for(volume->pool, volume->extent.size[2], measure_slice, &measuring);
}

static void
tell_voxels(void *context, int64_t z)
{
    struct mask_making *making = context;
    const int64_t words = making->volume.extent.words_per_slice;

    __atomic_fetch_add(&making->result->mask.voxels, making->volume.isa->count_bits(making->bits + z * words, words),
                       __ATOMIC_RELAXED);
}

static void
tell_result(struct mask_making *making)
{
    struct kernels_mask_result *result = making->result;
    const struct mask_rectangle *slices = making->own->grow.slices;
    const struct bits_extent *extent = &making->volume.extent;

    result->mask = (struct image_mask){.bits = making->bits, .words_per_row = extent->words_per_row};
    cpu_pool_for(making->volume.pool, extent->size[2], tell_voxels, making);
    mask_measure(&making->volume, making->bits, making->own->grow.slices);
    for (int axis = 0; axis < 3; axis++) {
        result->first[axis] = INT64_MAX;
        result->last[axis] = -1;
    }
    for (int64_t z = 0; z < extent->size[2]; z++)
        if (!mask_rectangle_is_empty(&slices[z])) {
            const int64_t first[3] = {slices[z].first[0], slices[z].first[1], z};
            const int64_t last[3] = {slices[z].last[0], slices[z].last[1], z};

            for (int axis = 0; axis < 3; axis++) {
                if (first[axis] < result->first[axis])
                    result->first[axis] = first[axis];
                if (last[axis] > result->last[axis])
                    result->last[axis] = last[axis];
            }
        }
}

static int
cpu_mask_run(struct kernels_lane *lane, const void *given, struct error *error)
{
    const struct mask_request *request = given;
    struct cpu_mask *own = kernels_state(lane, KERNELS_MASK);
    const struct mask_volume volume = cpu_mask_volume(lane, &lane->extent);
    const size_t words = (size_t)bits_words(&volume.extent);
    uint64_t *mask = own->masks + request->place * words;

    (void)error;
    if (!request->given) {
        *request->memory = mask;
        return 0;
    }
    struct mask_making making = {.lane = cpu_lane_of(lane),
                                 .own = own,
                                 .volume = volume,
                                 .given = request->given,
                                 .bounds = {request->given->within, request->given->minus, request->given->within_count,
                                            request->given->minus_count},
                                 .result = request->result,
                                 .spare = own->spare[SPARE]};

    making.bits = mask;
    making.result->components_found = making.result->components_kept = 0;
    cpu_pool_for(making.volume.pool, making.volume.extent.size[2], begin_slice, &making);
    for (size_t i = 0; i < request->given->step_count; i++)
        take_step(&making, &request->given->steps[i]);
    if (making.bits != mask) {
        memcpy(mask, making.bits, words * sizeof(*mask));
        making.bits = mask;
    }
    tell_result(&making);
    return 0;
}

const struct kernels_op cpu_mask_op = {
    .name = "masks",
    .state_size = sizeof(struct cpu_mask),
    .needs = cpu_mask_needs,
    .place = cpu_mask_place,
    .run = cpu_mask_run,
};
