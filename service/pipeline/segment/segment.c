/* segment.c - the table of methods, and the steps that all methods share. */
#include "service/pipeline/segment/segment.h"

#include "base/error.h"
#include "service/pipeline/segment/object_pick.h"
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

/* Lists the method's segments. */
static int
method_list(struct segmentation *segmentation, int m, struct error *error)
{
    const struct conf_pipeline *pipeline = segmentation->pipeline;
    size_t *segments = calloc(pipeline->segment_count, sizeof *segments);
    if (!segments)
        return error_set_system(error, -ENOMEM, "list the segments");
    segmentation->of[m].segments = segments;
    for (size_t i = 0; i < pipeline->segment_count; i++)
        if ((int)pipeline->segments[i].method == m)
            segments[segmentation->of[m].count++] = i;
    return 0;
}

static int
method_prepare(struct segmentation *segmentation, int m, struct kernels_demand *demand,
               struct error *error)
{
    const struct segment_method *method = segment_methods[m];
    int rc = method_list(segmentation, m, error);
    if (rc || segmentation->of[m].count == 0)
        return rc;
    if (segmentation->of[m].prepared) /* it was kept */
        return 0;
    void *prepared = calloc(1, method->size);
    if (!prepared)
        return error_set_system(error, -ENOMEM, "prepare the segments");
    segmentation->of[m].prepared = prepared;
    if (method->op < KERNELS_OPS)
        demand->of[method->op] = prepared;
    return method->prepare(segmentation, prepared, error);
}

/* Returns the lasting bytes, and the maximum of the passing ones. */
static struct segment_bytes
segmentation_bytes(const struct segmentation *segmentation)
{
    struct segment_bytes all = {0};
    for (size_t i = 0; i < segmentation->pipeline->segment_count; i++) {
        const struct segment_method *method =
            segment_methods[segmentation->pipeline->segments[i].method];
        if (!method->bytes)
            continue;
        const struct segment_bytes own = method->bytes(segmentation, i);
        all.lasting += own.lasting;
        all.passing = own.passing > all.passing ? own.passing : all.passing;
    }
    return all;
}

int
segmentation_prepare(struct segmentation *segmentation, struct kernels_demand *demand,
                     struct error *error)
{
    size_t count = segmentation->pipeline->segment_count;
    int rc = 0;
    segmentation->found = calloc(count, sizeof *segmentation->found);
    segmentation->masks = calloc(count, sizeof *segmentation->masks);
    segmentation->ready = calloc(count, sizeof *segmentation->ready);
    segmentation->ranges = calloc(count, sizeof *segmentation->ranges);
    segmentation->maps = calloc(count, sizeof *segmentation->maps);
    if (!segmentation->found || !segmentation->masks || !segmentation->ready ||
        !segmentation->ranges || !segmentation->maps)
        return error_set_system(error, -ENOMEM, "hold the masks");
    segmentation->bytes = segmentation_bytes(segmentation);
    demand->beside_bytes = segmentation->bytes.lasting + segmentation->bytes.passing;
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
        if (segmentation->of[m].prepared)
            segment_methods[m]->release(segmentation->of[m].prepared);
        free(segmentation->of[m].prepared);
        free(segmentation->of[m].segments);
    }
    object_picks_free(segmentation->picks);
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

size_t
segment_place(const struct segmentation *segmentation, size_t segment)
{
    const size_t *segments =
        segmentation->of[segmentation->pipeline->segments[segment].method].segments;
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

/* Returns whether a segment can start without another segment and without values of the volume. */
static bool
segment_may_begin(const struct conf_pipeline *pipeline, size_t number)
{
    const struct conf_segment *segment = &pipeline->segments[number];
    struct conf_use use;
    for (size_t n = 0; conf_segment_use(pipeline, number, n, &use); n++)
        if (use.start)
            return false;
    return segment->range.relative == CONF_ABSOLUTE && !conf_segment_looks(segment);
}

static bool
method_may_begin(const struct segmentation *segmentation, int m)
{
    size_t k = 0;
    while (k < segmentation->of[m].count &&
           segment_may_begin(segmentation->pipeline, segmentation->of[m].segments[k]))
        k++;
    return k == segmentation->of[m].count;
}

int
segmentation_begin(const struct segmentation *segmentation, struct kernels_lane *lane,
                   struct error *error)
{
    int rc = 0;
    for (int m = 0; m < CONF_METHODS && rc == 0; m++)
        if (segmentation->of[m].prepared && segment_methods[m]->begin &&
            method_may_begin(segmentation, m))
            rc = segment_methods[m]->begin(segmentation, lane, error);
    return rc;
}

/* The numbers of a method's segments that became ready now, and of those that must wait. */
struct method_state {
    size_t ready, waiting;
};

static struct method_state
method_look(const struct segmentation *segmentation, int m, const bool *made)
{
    struct method_state state = {0};
    for (size_t k = 0; k < segmentation->of[m].count; k++) {
        const size_t i = segmentation->of[m].segments[k];
        if (segmentation->ready[i])
            continue;
        if (segment_has_uses(segmentation->pipeline, i, true, made))
            state.ready++;
        else
            state.waiting++;
    }
    return state;
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
        const struct method_state state = method_look(segmentation, m, made);
        if (state.ready > 0 && (state.waiting == 0 || next == CONF_METHODS))
            next = m;
    }
    return next;
}

static int
method_find(struct segmentation *segmentation, int m, const bool *made, struct kernels_lane *lane,
            const void *voxels, struct error *error)
{
    for (size_t k = 0; k < segmentation->of[m].count; k++) {
        const size_t i = segmentation->of[m].segments[k];
        segmentation->ready[i] |= segment_has_uses(segmentation->pipeline, i, true, made);
    }
    return segment_methods[m]->run(segmentation, lane, voxels, error);
}

/* Makes the masks of found segments, if all segments that they use are made. */
static int
make_ready(struct segmentation *segmentation, struct kernels_lane *lane, bool *made,
           struct error *error)
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

/* check_makeable() of the configuration guarantees an order. */
int
segmentation_run(struct segmentation *segmentation, struct kernels_lane *lane, const void *voxels,
                 struct error *error)
{
    bool *made = calloc(segmentation->pipeline->segment_count, sizeof *made);
    int m, rc = made ? 0 : error_set_system(error, -ENOMEM, "find the segments");
    while (rc == 0 && (m = next_method(segmentation, made)) < CONF_METHODS) {
        rc = method_find(segmentation, m, made, lane, voxels, error);
        if (rc == 0)
            rc = make_ready(segmentation, lane, made, error);
    }
    free(made);
    return rc;
}

void
segment_describe(const struct segmentation *segmentation, size_t number,
                 char text[SEGMENT_DESCRIPTION])
{
    const struct conf_segment *segment = &segmentation->pipeline->segments[number];
    segment_methods[segment->method]->describe(segmentation, number, text);
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
            segment_append(text, size, "%s%s %.6g", between, segment->numbers[i].words,
                           segment->numbers[i].value);
            between = ", ";
        }
    return true;
}
