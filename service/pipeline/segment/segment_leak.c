/*
 * segment_leak.c - the voxels connected with a segment below the highest limit at which it does not leak, such as the airways.
 *
 * The limits are first, first + step, ..., up to last. For each, the region is `from` with all voxels that are 6-connected with it
 * through voxels of every segment of `within` whose value is at most the limit and not padding. A region leaks if its volume is
 * above most_ml, or if it is larger than the one before (at first: `from`) by more than growth * that volume + extra_ml. The result
 * is the region before the first one that leaks. A volume is voxels * (sx * sy * sz / 1000), in double precision.
 */
#include "service/pipeline/segment/segment.h"
#include "service/pipeline/segment/segment_sets.h"
#include "service/pipeline/volume.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One element per segment, in the pipeline's order. */
struct leak_limits {
    double *at; /* the limit of the result; NAN: none */
};

/* A region that grows. */
struct leak {
    const struct segmentation *segmentation;
    const struct conf_leak *conf;
    const void *voxels;
    int64_t size[3], words_per_row;
    const uint64_t **within;
    size_t within_count;
    struct image_range *ranges, *paddings; /* one per plane; the ranges are those of the limit */
    uint64_t *bits;
    int64_t count, most;         /* voxels of the region; with more than `most` it leaks, and grows no further */
    int64_t *grown, grown_count; /* its voxels outside of `from`, in the order of growth */
};

static int
leak_prepare(const struct segmentation *segmentation, void *prepared, struct error *error)
{
    struct leak_limits *own = prepared;
    own->at = calloc(segmentation->of[CONF_LEAK].count, sizeof *own->at);
    return own->at ? 0 : error_set_system(error, -ENOMEM, "prepare the segments");
}

static void
leak_release(void *prepared)
{
    struct leak_limits *own = prepared;
    free(own->at);
}

static double
leak_ml(const struct leak *leak, int64_t count)
{
    const double *spacing = leak->segmentation->stack->spacing;
    return (double)count * (spacing[0] * spacing[1] * spacing[2] / 1000.0);
}

static size_t
leak_word(const struct leak *leak, const int64_t at[3])
{
    return (size_t)((at[2] * leak->size[1] + at[1]) * leak->words_per_row + at[0] / 64);
}

/* Adds a voxel to the region, if it belongs to it. */
static void
leak_add(struct leak *leak, const int64_t at[3])
{
    const size_t word = leak_word(leak, at);
    const uint64_t bit = UINT64_C(1) << at[0] % 64;
    const int64_t place = (at[2] * leak->size[1] + at[1]) * leak->size[0] + at[0];
    const struct image_range range = leak->ranges[at[2]], padding = leak->paddings[at[2]];
    uint64_t open = leak->count <= leak->most ? ~leak->bits[word] & bit : 0;
    for (size_t i = 0; i < leak->within_count; i++)
        open &= leak->within[i][word];
    if (!open)
        return;
    const int32_t value = image_value(leak->voxels, leak->segmentation->stack->pixel, place);
    if (value < range.lo || value > range.hi || (value >= padding.lo && value <= padding.hi))
        return;
    leak->bits[word] |= bit;
    leak->grown[leak->grown_count++] = place;
    leak->count++;
}

/* Adds the six neighbours of a voxel that belong to the region. */
static void
leak_add_around(struct leak *leak, const int64_t at[3])
{
    for (int axis = 0; axis < 3; axis++)
        for (int64_t step = -1; step <= 1; step += 2) {
            int64_t next[3] = {at[0], at[1], at[2]};
            next[axis] += step;
            if (next[axis] >= 0 && next[axis] < leak->size[axis])
                leak_add(leak, next);
        }
}

/* Grows the region to a limit. */
static void
leak_grow(struct leak *leak, const uint64_t *from)
{
    for (int64_t row = 0; row < leak->size[1] * leak->size[2]; row++)
        for (int64_t w = 0; w < leak->words_per_row; w++)
            for (uint64_t word = from[row * leak->words_per_row + w]; word; word &= word - 1) {
                const int64_t at[3] = {64 * w + __builtin_ctzll(word), row % leak->size[1], row / leak->size[1]};
                leak_add_around(leak, at);
            }
    for (int64_t i = 0; i < leak->grown_count; i++) {
        const int64_t row = leak->grown[i] / leak->size[0];
        const int64_t at[3] = {leak->grown[i] % leak->size[0], row % leak->size[1], row / leak->size[1]};
        leak_add_around(leak, at);
    }
}

/* Takes back what was added since the region had this many voxels outside of `from`. */
static void
leak_take_back(struct leak *leak, int64_t grown_count)
{
    while (leak->grown_count > grown_count) {
        const int64_t place = leak->grown[--leak->grown_count], row = place / leak->size[0];
        const int64_t at[3] = {place % leak->size[0], row % leak->size[1], row / leak->size[1]};
        leak->bits[leak_word(leak, at)] &= ~(UINT64_C(1) << at[0] % 64);
        leak->count--;
    }
}

static bool
leak_is_one(const struct leak *leak, int64_t before, int64_t count)
{
    const struct conf_leak *conf = leak->conf;
    const double ml = leak_ml(leak, count), last = leak_ml(leak, before);
    return ml > conf->most_ml || ml - last > conf->growth * last + conf->extra_ml;
}

/* Returns the most voxels that do not leak after this many. */
static int64_t
leak_most(const struct leak *leak, int64_t before)
{
    int64_t low = before, high = leak->size[0] * leak->size[1] * leak->size[2];
    while (low < high) { /* the volume rises with the voxels */
        const int64_t middle = high - (high - low) / 2;
        if (leak_is_one(leak, before, middle))
            high = middle - 1;
        else
            low = middle;
    }
    return low;
}

static void
leak_set_limit(struct leak *leak, double limit)
{
    const struct segmentation *segmentation = leak->segmentation;
    const struct geometry_stack *stack = segmentation->stack;
    const double range[2] = {-INFINITY, limit};
    for (int32_t z = 0; z < stack->plane_count; z++) {
        const struct image_rescale rescale = volume_rescale(segmentation->instances, &stack->planes[z]);
        leak->ranges[z] = volume_stored_range(range, rescale.slope, rescale.intercept, image_pixel_range(stack->pixel));
        leak->paddings[z] = volume_padding(segmentation->instances[stack->planes[z].instance]);
    }
}

/* Grows from limit to limit. Returns the last limit that does not leak; NAN: none. */
static double
leak_try_limits(struct leak *leak, const uint64_t *from)
{
    const double *limits = leak->conf->limits;
    const size_t words = (size_t)(leak->words_per_row * leak->size[1] * leak->size[2]);
    double found = NAN;
    memcpy(leak->bits, from, words * sizeof *leak->bits);
    for (int64_t i = 0; limits[0] + (double)i * leak->conf->step <= limits[1]; i++) {
        const double limit = limits[0] + (double)i * leak->conf->step;
        const int64_t count = leak->count, grown_count = leak->grown_count;
        leak_set_limit(leak, limit);
        leak->most = leak_most(leak, count);
        leak_grow(leak, from);
        if (leak_is_one(leak, count, leak->count)) {
            leak_take_back(leak, grown_count);
            break;
        }
        found = limit;
    }
    return found;
}

/* Returns the most voxels that are listed: those of the largest volume, and one more. */
static int64_t
leak_room(const struct geometry_stack *stack, const struct conf_leak *conf)
{
    const double *spacing = stack->spacing;
    const double voxels = (double)stack->columns * (double)stack->rows * (double)stack->plane_count;
    const double most = conf->most_ml / (spacing[0] * spacing[1] * spacing[2] / 1000.0) + 2;
    return (int64_t)(most < voxels ? most : voxels);
}

static int
leak_find(struct segmentation *segmentation, size_t number, struct kernels_lane *lane, const void *voxels,
          uint64_t *bits, struct error *error)
{
    const struct geometry_stack *stack = segmentation->stack;
    const struct leak_limits *own = segmentation->of[CONF_LEAK].prepared;
    const struct conf_segment *segment = &segmentation->pipeline->segments[number];
    struct leak leak = {.segmentation = segmentation,
                        .conf = &segment->leak,
                        .voxels = voxels,
                        .size = {stack->columns, stack->rows, stack->plane_count},
                        .words_per_row = (stack->columns - 1) / 64 + 1,
                        .within = calloc(segment->within_count + 1, sizeof *leak.within),
                        .ranges = calloc((size_t)stack->plane_count, sizeof *leak.ranges),
                        .paddings = calloc((size_t)stack->plane_count, sizeof *leak.paddings),
                        .grown = malloc((size_t)leak_room(stack, &segment->leak) * sizeof *leak.grown),
                        .bits = bits,
                        .count = segmentation->masks[conf_find_segment(segmentation->pipeline, segment->from)].voxels};
    int rc = 0;
    (void)lane;
    if (leak.within && leak.ranges && leak.paddings && leak.grown) {
        leak.within_count = sets_within(segmentation, number, leak.within);
        own->at[segment_place(segmentation, number)] = leak_try_limits(&leak, segment_from(segmentation, number));
    } else {
        rc = error_set_system(error, -ENOMEM, "grow a segment");
    }
    free(leak.within);
    free(leak.ranges);
    free(leak.paddings);
    free(leak.grown);
    return rc;
}

static struct segment_bytes
leak_bytes(const struct segmentation *segmentation, size_t number)
{
    const struct conf_leak *conf = &segmentation->pipeline->segments[number].leak;
    return (struct segment_bytes){.passing = leak_room(segmentation->stack, conf) * (int64_t)sizeof(int64_t)};
}

static void
leak_describe(const struct segmentation *segmentation, size_t number, char text[SEGMENT_DESCRIPTION])
{
    const struct conf_segment *segment = &segmentation->pipeline->segments[number];
    const struct conf_leak *leak = &segment->leak;
    const struct leak_limits *own = segmentation->of[CONF_LEAK].prepared;
    const double at = own->at[segment_place(segmentation, number)];
    snprintf(text, SEGMENT_DESCRIPTION,
             "grown from segment %s; limits %g..%g by %g, at most %g ml, and per step %g + %g ml", segment->from,
             leak->limits[0], leak->limits[1], leak->step, leak->most_ml, leak->growth, leak->extra_ml);
    if (isnan(at))
        segment_append(text, SEGMENT_DESCRIPTION, "; no limit holds");
    else
        segment_append(text, SEGMENT_DESCRIPTION, "; limit %g", at);
}

static void
leak_report(const struct segmentation *segmentation, size_t number, struct pipeline_segment *report)
{
    const struct leak_limits *own = segmentation->of[CONF_LEAK].prepared;
    const double at = own->at[segment_place(segmentation, number)];
    if (isnan(at))
        return;
    report->numbers[0] = (struct segment_number){"leak_limit", "limit", at, true};
    report->number_count = 1;
    report->measured_voxels = segmentation->found[number].voxels;
}

const struct segment_method segment_leak = {
    .algorithm = "Noctule growth until it leaks",
    /* the nearest term of PS3.16 CID 7162 */
    .family = {"123101", "DCM", "Neighborhood Analysis"},
    .op = KERNELS_OPS,
    .size = sizeof(struct leak_limits),
    .prepare = leak_prepare,
    .release = leak_release,
    .bytes = leak_bytes,
    .find = leak_find,
    .describe = leak_describe,
    .report = leak_report,
};
