/*
 * mask_cpu.c - masks on the CPU, on one bit a voxel: what a request begins with, and its steps one
 * after the other, between the mask's own memory and one to work in.
 */
#include "kernels/mask/mask_cpu.h"
#include "kernels/range/range_cpu.h"

#include <pthread.h>
#include <string.h>

/* Beside the mask itself: one to work in, and what cutting bridges takes. */
enum { SPARE, CUT, PART, ONE, OTHER, SPARES };

struct cpu_mask {
    struct kernels_mask_demand demand;
    uint64_t *masks;
    uint64_t *spare[SPARES];
    struct mask_runs runs;
    struct mask_ball ball;
    struct mask_grow_space grow;
};

static struct cpu_mask *
cpu_mask_state(const struct kernels_lane *lane)
{
    return (struct cpu_mask *)kernels_state(lane, KERNELS_MASK);
}

static struct mask_volume
cpu_mask_volume(const struct kernels_lane *lane)
{
    const struct cpu_device *device = cpu_device_of(lane);
    const struct image_extent *extent = &lane->extent;

    return (struct mask_volume){bits_extent(extent->columns, extent->rows, extent->slices),
                                device->isa, device->pool, device->base.threads};
}

static bool
cpu_mask_needs(struct kernels_lane *lane, const void *demand)
{
    const struct mask_volume volume = cpu_mask_volume(lane);

    cpu_mask_state(lane)->demand = *(const struct kernels_mask_demand *)demand;
    return mask_runs_most(&volume.extent) <= UINT32_MAX;
}

static void
cpu_mask_place(struct kernels_lane *lane, struct kernels_memory *memory)
{
    struct cpu_mask *own = cpu_mask_state(lane);
    struct kernels_arena *arena = &memory->host;
    const struct mask_volume volume = cpu_mask_volume(lane);
    const size_t words = (size_t)bits_words(&volume.extent);
    const size_t rows = (size_t)(volume.extent.size[1] * volume.extent.size[2]);
    const struct mask_reach most =
        mask_reach_of(&lane->extent, own->demand.spacing, own->demand.reach_mm);

    own->masks = kernels_take(arena, own->demand.masks, words * sizeof(*own->masks));
    for (int i = 0; i < (own->demand.bridges ? SPARES : SPARE + 1); i++)
        own->spare[i] = kernels_take(arena, words, sizeof(*own->spare[i]));
    own->runs.first = kernels_take(arena, rows + 1, sizeof(*own->runs.first));
    own->runs.slots = kernels_take(arena, mask_runs_most(&volume.extent), sizeof(*own->runs.slots));
    mask_ball_place(&own->ball, &most, arena);
    mask_grow_place(&own->grow, &volume, &most, arena);
}

/* One request while it is made. */
struct mask_making {
    struct cpu_lane *lane;
    struct cpu_mask *own;
    struct mask_volume volume;
    const struct kernels_mask_request *given;
    struct kernels_mask_result *result;
    uint64_t *bits;  /* the mask as it is */
    uint64_t *spare; /* as large */
};

/* What it begins with, in a slice. */
static void
begin_slice(void *context, int64_t z)
{
    const struct mask_making *making = context;
    const struct kernels_mask_request *given = making->given;
    const struct bits_extent *extent = &making->volume.extent;
    const int64_t words = extent->words_per_slice, first = z * words;
    const uint64_t tail = mask_tail(extent);
    uint64_t *bits = making->bits + first;

    if (given->range_count > 0)
        range_pack_slice(making->lane, given->ranges[given->range_count > 1 ? z : 0],
                         given->padding, z, bits);
    else
        memset(bits, 0xFF, (size_t)words * sizeof(*bits));
    for (size_t m = 0; m < given->within_count; m++)
        for (int64_t i = 0; i < words; i++)
            bits[i] &= given->within[m][first + i];
    for (size_t m = 0; m < given->minus_count; m++)
        for (int64_t i = 0; i < words; i++)
            bits[i] &= ~given->minus[m][first + i];
    for (int64_t last = extent->words_per_row - 1; last < words; last += extent->words_per_row)
        bits[last] &= tail;
}

/* Components, and holes */

static struct mask_labels
labels_of(const struct mask_making *making, uint64_t *bits, bool corners)
{
    return (struct mask_labels){
        .volume = &making->volume, .runs = making->own->runs, .bits = bits, .corners = corners};
}

static void
keep_components(struct mask_making *making, const struct kernels_mask_step *step)
{
    struct mask_labels labels = labels_of(making, making->bits, step->corners);

    making->result->components_found = mask_label(&labels);
    making->result->components_kept =
        mask_drop(&labels, mask_limit_of(&labels, step, making->own->demand.spacing));
}

/* Of the complement's components, those with no run at the border are turned over. */
static void
fill_holes(struct mask_making *making, const struct kernels_mask_step *step)
{
    static const struct mask_limit at_border = {1, UINT64_MAX};
    struct mask_labels labels = labels_of(making, making->bits, step->corners);

    labels.flip = ~UINT64_C(0);
    labels.flat = step->kind == KERNELS_MASK_FILL_SLICES;
    labels.border = true;
    mask_label(&labels);
    mask_drop(&labels, at_border);
}

/* Balls */

static void
grow_to(const struct mask_making *making, const uint64_t *source, bool shrink, uint64_t *target)
{
    mask_grow(&making->volume, &making->own->ball, &making->own->grow, source, shrink, target);
}

static void
grow_in_place(struct mask_making *making, bool shrink)
{
    uint64_t *before = making->bits;

    grow_to(making, before, shrink, making->spare);
    making->bits = making->spare;
    making->spare = before;
}

struct bridge_cutting {
    const struct mask_volume *volume;
    uint64_t *const *spare;
    bool corners;
};

/* The rows around one that are in the volume: voxels reach those beside them in `wide`, in `plain` only their own places. */
struct rows_around {
    const uint64_t *wide[9], *plain[4];
    int wides, plains;
};

static struct rows_around
find_rows_around(const struct bridge_cutting *cutting, const uint64_t *bits, int64_t y, int64_t z)
{
    const struct bits_extent *extent = &cutting->volume->extent;
    struct rows_around rows;

    rows.wides = rows.plains = 0;
    for (int64_t k = z - 1; k <= z + 1; k++)
        for (int64_t j = y - 1; j <= y + 1; j++) {
            const uint64_t *row = bits + k * extent->words_per_slice + j * extent->words_per_row;

            if (j < 0 || j >= extent->size[1] || k < 0 || k >= extent->size[2])
                continue;
            if (cutting->corners || (j == y && k == z))
                rows.wide[rows.wides++] = row;
            else if (j == y || k == z)
                rows.plain[rows.plains++] = row;
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

/* A word of the voxels and of their neighbours, in a row of so many words. */
static inline uint64_t
reached_word(const struct rows_around *rows, int64_t word, int64_t words)
{
    const uint64_t own = any_word(rows->wide, rows->wides, word);
    const uint64_t before = word > 0 ? any_word(rows->wide, rows->wides, word - 1) : 0;
    const uint64_t behind = word + 1 < words ? any_word(rows->wide, rows->wides, word + 1) : 0;

    return own | own << 1 | own >> 1 | before >> 63 | behind << 63 |
           any_word(rows->plain, rows->plains, word);
}

/* Where one and the other, or their neighbours, meet in a slice is cut. */
static void
cut_slice(void *context, int64_t z)
{
    const struct bridge_cutting *cutting = context;
    const struct bits_extent *extent = &cutting->volume->extent;
    const int64_t words = extent->words_per_row;
    uint64_t *cut = cutting->spare[CUT] + z * extent->words_per_slice;

    for (int64_t y = 0; y < extent->size[1]; y++, cut += words) {
        const struct rows_around one = find_rows_around(cutting, cutting->spare[ONE], y, z);
        const struct rows_around other = find_rows_around(cutting, cutting->spare[OTHER], y, z);

        for (int64_t word = 0; word < words; word++) {
            const uint64_t reached = reached_word(&one, word, words);

            if (reached)
                cut[word] |= reached & reached_word(&other, word, words);
        }
    }
}

/* What has grown is what those with the last bit reach, and those without it. */
static void
join_slice(void *context, int64_t z)
{
    const struct mask_making *making = context;
    uint64_t *const *spare = making->own->spare;
    const int64_t words = making->volume.extent.words_per_slice;

    for (int64_t i = z * words; i < (z + 1) * words; i++)
        making->bits[i] = (spare[ONE][i] | spare[OTHER][i]) & ~spare[CUT][i];
}

/* part becomes the rest of the whole. */
static void
take_rest(const struct bits_extent *extent, const uint64_t *whole, uint64_t *part)
{
    for (int64_t i = 0; i < bits_words(extent); i++)
        part[i] ^= whole[i];
}

/*
 * Two components of different numbers differ in a bit: what those with the bit reach, and those
 * without it, is found for all of them at once, bit by bit.
 */
static void
cut_bridges(struct mask_making *making, const struct kernels_mask_step *step)
{
    const struct mask_volume *volume = &making->volume;
    uint64_t *const *spare = making->own->spare;
    struct bridge_cutting cutting = {volume, spare, step->corners};
    struct mask_labels labels;
    int64_t found;

    grow_in_place(making, true);
    labels = labels_of(making, making->bits, step->corners);
    found = mask_label(&labels);
    mask_number(&labels);
    memset(spare[CUT], 0, (size_t)bits_words(&volume->extent) * sizeof(*spare[CUT]));
    for (int bit = 0; found > INT64_C(1) << bit; bit++) {
        mask_part(&labels, bit, spare[PART]);
        grow_to(making, spare[PART], false, spare[ONE]);
        take_rest(&volume->extent, making->bits, spare[PART]);
        grow_to(making, spare[PART], false, spare[OTHER]);
        cpu_pool_for(volume->pool, volume->extent.size[2], cut_slice, &cutting);
    }
    if (found > 1)
        cpu_pool_for(volume->pool, volume->extent.size[2], join_slice, making);
    else
        grow_in_place(making, false);
    making->result->components_found = making->result->components_kept = found;
}

static void
take_step(struct mask_making *making, const struct kernels_mask_step *step)
{
    const struct kernels_lane *lane = &making->lane->base;

    if (mask_step_has_ball(step->kind))
        mask_ball_make(&making->own->ball, &lane->extent, making->own->demand.spacing,
                       step->amount);
    switch (step->kind) {
    case KERNELS_MASK_KEEP:
    case KERNELS_MASK_KEEP_AT_LEAST:
    case KERNELS_MASK_DROP_BELOW:
        keep_components(making, step);
        break;
    case KERNELS_MASK_FILL_SLICES:
    case KERNELS_MASK_FILL_VOLUME:
        fill_holes(making, step);
        break;
    case KERNELS_MASK_GROW:
    case KERNELS_MASK_SHRINK:
        grow_in_place(making, step->kind == KERNELS_MASK_SHRINK);
        break;
    case KERNELS_MASK_OPEN:
    case KERNELS_MASK_CLOSE:
        grow_in_place(making, step->kind == KERNELS_MASK_OPEN);
        grow_in_place(making, step->kind == KERNELS_MASK_CLOSE);
        break;
    case KERNELS_MASK_CUT_BRIDGES:
        cut_bridges(making, step);
        break;
    case KERNELS_MASK_STEPS:
        break;
    }
}

/* The result */

struct mask_measuring {
    const struct mask_volume *volume;
    const uint64_t *bits;
    pthread_mutex_t mutex;
    struct mask_box box;
    int64_t voxels;
};

static void
box_add(struct mask_box *box, int axis, int64_t first, int64_t last)
{
    if (first < box->first[axis])
        box->first[axis] = first;
    if (last > box->last[axis])
        box->last[axis] = last;
}

static void
measure_slice(void *context, int64_t z)
{
    struct mask_measuring *measuring = context;
    const struct bits_extent *extent = &measuring->volume->extent;
    const uint64_t *bits = measuring->bits + z * extent->words_per_slice;
    struct mask_box box = {{INT64_MAX, INT64_MAX, z}, {-1, -1, z}};
    int64_t voxels = measuring->volume->isa->count_bits(bits, extent->words_per_slice);

    if (voxels == 0)
        return;
    for (int64_t y = 0; y < extent->size[1]; y++, bits += extent->words_per_row) {
        int64_t low = 0, high = extent->words_per_row - 1;

        while (low <= high && !bits[low])
            low++;
        while (high > low && !bits[high])
            high--;
        if (low > high)
            continue;
        box_add(&box, 0, 64 * low + __builtin_ctzll(bits[low]),
                64 * high + 63 - __builtin_clzll(bits[high]));
        box_add(&box, 1, y, y);
    }
    pthread_mutex_lock(&measuring->mutex);
    for (int axis = 0; axis < 3; axis++)
        box_add(&measuring->box, axis, box.first[axis], box.last[axis]);
    measuring->voxels += voxels;
    pthread_mutex_unlock(&measuring->mutex);
}

struct mask_box
mask_measure(const struct mask_volume *volume, const uint64_t *bits, int64_t *voxels)
{
    struct mask_measuring measuring = {
        .volume = volume, .bits = bits, .box = {{INT64_MAX, INT64_MAX, INT64_MAX}, {-1, -1, -1}}};

    pthread_mutex_init(&measuring.mutex, NULL);
    cpu_pool_for(volume->pool, volume->extent.size[2], measure_slice, &measuring);
    pthread_mutex_destroy(&measuring.mutex);
    *voxels = measuring.voxels;
    return measuring.box;
}

static void
tell_result(struct mask_making *making)
{
    struct kernels_mask_result *result = making->result;
    struct mask_box box;

    result->mask.bits = making->bits;
    result->mask.words_per_row = making->volume.extent.words_per_row;
    box = mask_measure(&making->volume, making->bits, &result->mask.voxels);
    memcpy(result->first, box.first, sizeof(result->first));
    memcpy(result->last, box.last, sizeof(result->last));
}

static int
cpu_mask_run(struct kernels_lane *lane, const void *given, struct error *error)
{
    const struct mask_request *request = given;
    struct cpu_mask *own = cpu_mask_state(lane);
    struct mask_making making = {.lane = cpu_lane_of(lane),
                                 .own = own,
                                 .volume = cpu_mask_volume(lane),
                                 .given = request->given,
                                 .result = request->result,
                                 .spare = own->spare[SPARE]};
    const size_t words = (size_t)bits_words(&making.volume.extent);
    uint64_t *mask = own->masks + request->place * words;

    (void)error;
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
