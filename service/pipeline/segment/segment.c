/* segment.c - the table of methods, and the steps that all methods share. */
#include "service/pipeline/segment/segment.h"

#include "base/error.h"
#include "service/pipeline/rescaled_series.h"
#include "service/pipeline/segment/object_pick.h"
#include "service/pipeline/segment/segment_coarse.h"
#include "service/pipeline/segment/segment_ranges.h"
#include "service/pipeline/segment/segment_sets.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct segment_method *const segment_methods[CONF_METHODS] = {
#define METHOD(NAME, name, word) [CONF_##NAME] = &segment_##name,
#include "base/methods.def"
};

/* Lists the method's segments and prepares them. */
static int
method_prepare(struct segmentation *segmentation, int m, struct kernels_demand *demand, struct error *error)
{
    const struct segment_method *method = segment_methods[m];
    const struct conf_pipeline *pipeline = segmentation->pipeline;
    size_t *segments = calloc(pipeline->segment_count, sizeof *segments);
    if (!segments)
        return error_set_system(error, -ENOMEM, "list the segments");
    segmentation->of[m].segments = segments;
    for (size_t i = 0; i < pipeline->segment_count; i++)
        if ((int)pipeline->segments[i].method == m && segment_is_here(segmentation, i))
            segments[segmentation->of[m].count++] = i;
    if (segmentation->of[m].count == 0 || segmentation->of[m].prepared) /* it was kept */
        return 0;
    void *prepared = calloc(1, method->size);
    if (!prepared)
        return error_set_system(error, -ENOMEM, "prepare the segments");
    segmentation->of[m].prepared = prepared;
    if (method->op < KERNELS_OPS &&
        !(method->is_stored && rescaled_series_differs(segmentation->instances, segmentation->stack)))
        demand->of[method->op] = prepared;
    return method->prepare ? method->prepare(segmentation, prepared, error) : 0;
}

/* Adds up the bytes of the methods. */
static void
segmentation_count_bytes(struct segmentation *segmentation)
{
    const struct conf_pipeline *pipeline = segmentation->pipeline;
    struct segment_bytes *bytes = &segmentation->bytes;
    *bytes = (struct segment_bytes){.lasting = 0};
    for (size_t i = 0; i < pipeline->segment_count; i++) {
        const struct segment_method *method = segment_methods[pipeline->segments[i].method];
        if (!segment_is_here(segmentation, i))
            continue;
        const struct segment_bytes own = method->bytes ? method->bytes(segmentation, i) : (struct segment_bytes){0};
        const int64_t steps = sets_bytes(segmentation, i);
        bytes->lasting += own.lasting + (method->find ? segment_mask_bytes(segmentation->stack) : 0);
        bytes->passing = own.passing > bytes->passing ? own.passing : bytes->passing;
        bytes->passing = steps > bytes->passing ? steps : bytes->passing;
    }
    if (!segmentation->is_coarse && segmentation->coarse &&
        rescaled_series_is_apart(segmentation->instances, segmentation->stack)) {
        const struct geometry_stack *stack = segmentation->stack;
        const struct image_extent extent = {stack->columns, stack->rows, stack->plane_count};
        const int64_t blocks = rescaled_blocks_bytes(&extent);
        bytes->passing = blocks > bytes->passing ? blocks : bytes->passing;
    }
}

int
segmentation_prepare(struct segmentation *segmentation, struct kernels_demand *demand, struct error *error)
{
    const size_t count = segmentation->pipeline->segment_count;
    int rc = 0;
    segmentation->found = calloc(count, sizeof *segmentation->found);
    segmentation->masks = calloc(count, sizeof *segmentation->masks);
    segmentation->ready = calloc(count, sizeof *segmentation->ready);
    segmentation->ranges = calloc(count, sizeof *segmentation->ranges);
    segmentation->maps = calloc(count, sizeof *segmentation->maps);
    segmentation->own = calloc(count, sizeof *segmentation->own);
    if (!segmentation->found || !segmentation->masks || !segmentation->ready || !segmentation->ranges ||
        !segmentation->maps || !segmentation->own)
        return error_set_system(error, -ENOMEM, "hold the masks");
    segmentation_count_bytes(segmentation);
    demand->beside_bytes = segmentation->bytes.lasting + segmentation->bytes.passing;
    if (!segmentation->is_coarse && segmentation->coarse)
        demand->of[KERNELS_COARSE] = &kernels_asked;
    ranges_prepare(segmentation, demand);
    rc = sets_prepare(segmentation, demand, error);
    for (int m = 0; m < CONF_METHODS && rc == 0; m++)
        rc = method_prepare(segmentation, m, demand, error);
    return rc;
}

void
segmentation_release(struct segmentation *segmentation)
{
    for (int m = 0; m < CONF_METHODS; m++) {
        if (segmentation->of[m].prepared && segment_methods[m]->release)
            segment_methods[m]->release(segmentation->of[m].prepared);
        free(segmentation->of[m].prepared);
        free(segmentation->of[m].segments);
    }
    for (size_t i = 0; segmentation->own && i < segmentation->pipeline->segment_count; i++)
        free(segmentation->own[i]);
    object_picks_free(segmentation->picks);
    free(segmentation->own);
    free(segmentation->found);
    free(segmentation->masks);
    free(segmentation->ready);
    free(segmentation->ranges);
    free(segmentation->places);
    free(segmentation->starts);
    free(segmentation->maps);
}

void
segmentation_restart(struct segmentation *segmentation)
{
    struct segmentation again = {.picks = segmentation->picks};
    segmentation->picks = NULL;
    for (int m = 0; m < CONF_METHODS; m++)
        if (segment_methods[m]->lasts) {
            again.of[m].prepared = segmentation->of[m].prepared;
            segmentation->of[m].prepared = NULL;
        }
    segmentation_release(segmentation);
    *segmentation = again;
}

/* Returns the zeroed words of the region of a segment, or NULL with the error filled. */
static uint64_t *
segment_reserve(struct segmentation *segmentation, size_t segment, struct error *error)
{
    const size_t words = segment_mask_words(segmentation->stack);
    free(segmentation->own[segment]);
    segmentation->own[segment] = calloc(words, sizeof **segmentation->own);
    if (!segmentation->own[segment])
        error_set_system(error, -ENOMEM, "hold the masks");
    return segmentation->own[segment];
}

/* Makes these words the region that the method found. */
static void
segment_found(struct segmentation *segmentation, size_t segment)
{
    const uint64_t *bits = segmentation->own[segment];
    segmentation->found[segment] =
        (struct image_mask){.bits = bits,
                            .words_per_row = (segmentation->stack->columns - 1) / 64 + 1,
                            .voxels = mask_count(bits, (int64_t)segment_mask_words(segmentation->stack))};
}

size_t
segment_place(const struct segmentation *segmentation, size_t segment)
{
    const size_t *segments = segmentation->of[segmentation->pipeline->segments[segment].method].segments;
    size_t place = 0;
    while (segments[place] != segment)
        place++;
    return place;
}

const uint64_t *
segment_from(const struct segmentation *segmentation, size_t segment)
{
    const struct conf_pipeline *pipeline = segmentation->pipeline;
    return segmentation->masks[conf_find_segment(pipeline, pipeline->segments[segment].from)].bits;
}

/*
 * Returns whether the segments that this one uses are made: all of them, or those that its method
 * starts from.
 */
static bool
segment_has_uses(const struct conf_pipeline *pipeline, size_t segment, bool start, const bool *made)
{
    struct conf_use use;
    for (size_t n = 0; conf_segment_use(pipeline, segment, n, &use); n++)
        if ((use.start || !start) && !made[conf_find_segment(pipeline, use.label)])
            return false;
    return true;
}

/* Returns whether all segments can start without another one and without values of the volume. */
static bool
method_may_begin(const struct segmentation *segmentation, int m)
{
    bool may = true;
    for (size_t k = 0; k < segmentation->of[m].count; k++) {
        const size_t i = segmentation->of[m].segments[k];
        const struct conf_segment *segment = &segmentation->pipeline->segments[i];
        struct conf_use use;
        for (size_t n = 0; conf_segment_use(segmentation->pipeline, i, n, &use); n++)
            may &= !use.start;
        may &= segment->range.relative == CONF_ABSOLUTE && !conf_segment_looks(segment);
    }
    return may;
}

int
segmentation_begin(const struct segmentation *segmentation, struct kernels_lane *lane, struct error *error)
{
    int rc = 0;
    for (int m = 0; m < CONF_METHODS && rc == 0; m++)
        if (segmentation->of[m].prepared && segment_methods[m]->begin && method_may_begin(segmentation, m))
            rc = segment_methods[m]->begin(segmentation, lane, error);
    return rc;
}

/*
 * Returns a method with segments to find; prefers one with all remaining segments ready, because a
 * method finds earlier ones again. CONF_METHODS: no method is left.
 */
static int
next_method(const struct segmentation *segmentation, const bool *made)
{
    int next = CONF_METHODS;
    for (int m = CONF_METHODS - 1; m >= 0; m--) {
        size_t ready = 0, waiting = 0; /* became ready now; must wait */
        for (size_t k = 0; k < segmentation->of[m].count; k++) {
            const size_t i = segmentation->of[m].segments[k];
            const bool is_ready = segment_has_uses(segmentation->pipeline, i, true, made);
            ready += !segmentation->ready[i] && is_ready;
            waiting += !segmentation->ready[i] && !is_ready;
        }
        if (ready > 0 && (waiting == 0 || next == CONF_METHODS))
            next = m;
    }
    return next;
}

/* Makes the masks of found segments, if all segments that they use are made. */
static int
make_ready(struct segmentation *segmentation, struct kernels_lane *lane, bool *made, struct error *error)
{
    const struct conf_pipeline *pipeline = segmentation->pipeline;
    bool more = true;
    int rc = 0;
    while (more && rc == 0) {
        more = false;
        for (size_t i = 0; i < pipeline->segment_count && rc == 0; i++) {
            if (made[i] || !segmentation->ready[i] || !segment_has_uses(pipeline, i, false, made))
                continue;
            rc = sets_make(segmentation, i, lane, error);
            made[i] = more = true;
        }
    }
    return rc;
}

/* Finds the ready segments of a method that are not found yet. */
static int
method_find(struct segmentation *segmentation, int m, struct kernels_lane *lane, const void *voxels,
            struct error *error)
{
    int rc = 0;
    for (size_t k = 0; k < segmentation->of[m].count && rc == 0; k++) {
        const size_t i = segmentation->of[m].segments[k];
        if (!segmentation->ready[i] || segmentation->found[i].bits)
            continue;
        uint64_t *bits = segment_reserve(segmentation, i, error);
        rc = bits ? segment_methods[m]->find(segmentation, i, lane, voxels, bits, error) : -ENOMEM;
        if (rc == 0)
            segment_found(segmentation, i);
    }
    return rc;
}

/* check_makeable() of the configuration guarantees an order. */
int
segmentation_run(struct segmentation *segmentation, struct kernels_lane *lane, const void *voxels, struct error *error)
{
    bool *made = calloc(segmentation->pipeline->segment_count, sizeof *made);
    int m, rc = made ? 0 : error_set_system(error, -ENOMEM, "find the segments");
    for (size_t i = 0; rc == 0 && i < segmentation->pipeline->segment_count; i++)
        made[i] = !segment_is_here(segmentation, i);
    while (rc == 0 && (m = next_method(segmentation, made)) < CONF_METHODS) {
        for (size_t k = 0; k < segmentation->of[m].count; k++) {
            const size_t i = segmentation->of[m].segments[k];
            segmentation->ready[i] |= segment_has_uses(segmentation->pipeline, i, true, made);
        }
        if (segment_methods[m]->find)
            rc = method_find(segmentation, m, lane, voxels, error);
        else if (segment_methods[m]->run)
            rc = segment_methods[m]->run(segmentation, lane, voxels, error);
        if (rc == 0)
            rc = make_ready(segmentation, lane, made, error);
    }
    free(made);
    return rc;
}

const struct segmentation *
segment_finder(const struct segmentation *segmentation, size_t segment)
{
    return segment_is_here(segmentation, segment) ? segmentation : &segmentation->coarse->segmentation;
}

void
segment_describe(const struct segmentation *segmentation, size_t number, char text[SEGMENT_DESCRIPTION])
{
    const struct conf_segment *segment = &segmentation->pipeline->segments[number];
    segment_methods[segment->method]->describe(segment_finder(segmentation, number), number, text);
    if (segment->grid_mm > 0)
        coarse_volume_describe(segmentation->coarse, text);
    sets_describe(segment, text);
}

void
segment_append(char *text, size_t size, const char *format, ...)
{
    size_t length = strlen(text);
    va_list values;
    va_start(values, format);
    vsnprintf(text + length, size - length, format, values);
    va_end(values);
}

bool
segment_describe_measured(const struct pipeline_segment *segment, char *text, size_t size)
{
    const char *between = "";
    if (segment->measured_voxels == 0)
        return false;
    snprintf(text, size, "%s: measured ", segment->label);
    for (int i = 0; i < segment->number_count; i++)
        if (segment->numbers[i].measured) {
            segment_append(text, size, "%s%s %.6g", between, segment->numbers[i].words, segment->numbers[i].value);
            between = ", ";
        }
    return true;
}
