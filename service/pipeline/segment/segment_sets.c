/* segment_sets.c - see segment_sets.h. */
#include "service/pipeline/segment/segment_sets.h"

#include "base/error.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------------------- steps ---- */

static const struct {
    enum kernels_mask_step_kind kind;
    const char *name;
} set_steps[] = {
    [CONF_STEP_KEEP] = {KERNELS_MASK_KEEP, "keep"},
    [CONF_STEP_KEEP_AT_LEAST] = {KERNELS_MASK_KEEP_AT_LEAST, "keep at least"},
    [CONF_STEP_DROP_BELOW] = {KERNELS_MASK_DROP_BELOW, "drop below ml"},
    [CONF_STEP_FILL] = {KERNELS_MASK_FILL_SLICES, "fill"},
    [CONF_STEP_OPEN] = {KERNELS_MASK_OPEN, "open mm"},
    [CONF_STEP_CLOSE] = {KERNELS_MASK_CLOSE, "close mm"},
    [CONF_STEP_GROW] = {KERNELS_MASK_GROW, "grow mm"},
    [CONF_STEP_SHRINK] = {KERNELS_MASK_SHRINK, "shrink mm"},
    [CONF_STEP_CUT_BRIDGES] = {KERNELS_MASK_CUT_BRIDGES, "cut bridges mm"},
};

static struct kernels_mask_step
set_step(const struct conf_step *step)
{
    struct kernels_mask_step made = {.kind = set_steps[step->kind].kind,
                                     .amount = step->amount,
                                     .corners = step->connectivity == 26};
    if (step->kind == CONF_STEP_KEEP)
        made.amount = step->keep;
    if (step->kind == CONF_STEP_FILL && step->fill == CONF_FILL_VOLUME)
        made.kind = KERNELS_MASK_FILL_VOLUME;
    return made;
}

static bool
set_step_has_ball(const struct conf_step *step)
{
    return step->kind >= CONF_STEP_OPEN;
}

/* ------------------------------------------------------------------------------ places ---- */

static bool
set_is_start_of(const struct conf_pipeline *pipeline, const char *label, size_t segment)
{
    struct conf_use use;
    for (size_t n = 0; conf_segment_use(pipeline, segment, n, &use); n++)
        if (use.start && strcmp(use.label, label) == 0)
            return true;
    return false;
}

/*
 * Returns whether its method uses the mask: an operation runs again for segments that it finds
 * later, using the masks of earlier ones.
 */
static bool
set_starts_its_method(const struct conf_pipeline *pipeline, size_t segment)
{
    for (size_t i = 0; i < pipeline->segment_count; i++)
        if (pipeline->segments[i].method == pipeline->segments[segment].method &&
            set_is_start_of(pipeline, pipeline->segments[segment].label, i))
            return true;
    return false;
}

static bool
set_is_made(const struct conf_pipeline *pipeline, size_t i)
{
    const struct conf_segment *segment = &pipeline->segments[i];
    return segment_methods[segment->method]->begin_mask || segment->within_count > 0 ||
           segment->minus_count > 0 || segment->intersect_count > 0 || segment->then_count > 0 ||
           set_starts_its_method(pipeline, i);
}

static void
set_demand_steps(const struct conf_segment *segment, struct kernels_mask_demand *demand)
{
    for (size_t i = 0; i < segment->then_count; i++) {
        const struct conf_step *step = &segment->then[i];
        if (set_step_has_ball(step) && step->amount > demand->reach_mm)
            demand->reach_mm = step->amount;
        if (step->kind == CONF_STEP_CUT_BRIDGES)
            demand->bridges = true;
    }
}

int
sets_prepare(struct segmentation *segmentation, struct kernels_demand *demand, struct error *error)
{
    const struct conf_pipeline *pipeline = segmentation->pipeline;
    struct kernels_mask_demand *sets = &segmentation->sets;
    segmentation->places = calloc(pipeline->segment_count, sizeof *segmentation->places);
    segmentation->starts = calloc(pipeline->segment_count, sizeof *segmentation->starts);
    if (!segmentation->places || !segmentation->starts)
        return error_set_system(error, -ENOMEM, "prepare the segments");
    memcpy(sets->spacing, segmentation->stack->spacing, sizeof sets->spacing);
    for (size_t i = 0; i < pipeline->segment_count; i++) {
        segmentation->places[i] = set_is_made(pipeline, i) ? sets->masks++ : SEGMENT_NO_PLACE;
        if (conf_segment_looks(&pipeline->segments[i]))
            segmentation->starts[i] = sets->masks++;
        set_demand_steps(&pipeline->segments[i], sets);
    }
    if (sets->masks > 0)
        demand->of[KERNELS_MASK] = sets;
    return 0;
}

/* ------------------------------------------------------------------------------ making ---- */

/* A request and the memory that it refers to. */
struct set_request {
    struct kernels_mask_request request;
    const uint64_t **within, **minus;
    struct kernels_mask_step *steps;
};

static void
set_add(const struct segmentation *segmentation, char *const *labels, size_t count,
        const uint64_t **masks, size_t *added)
{
    for (size_t i = 0; i < count; i++)
        masks[(*added)++] =
            segmentation->masks[conf_find_segment(segmentation->pipeline, labels[i])].bits;
}

static void
set_fill(const struct segmentation *segmentation, size_t number, struct set_request *set)
{
    const struct conf_segment *segment = &segmentation->pipeline->segments[number];
    const struct segment_method *method = segment_methods[segment->method];
    struct kernels_mask_request *request = &set->request;
    request->padding = (struct image_range){1, 0};
    if (method->begin_mask)
        method->begin_mask(segmentation, number, request);
    else
        request->found = segmentation->found[number].bits;
    set_add(segmentation, segment->within, segment->within_count, set->within,
            &request->within_count);
    set_add(segmentation, segment->intersect, segment->intersect_count, set->within,
            &request->within_count);
    set_add(segmentation, segment->minus, segment->minus_count, set->minus, &request->minus_count);
    for (size_t i = 0; i < segment->then_count; i++)
        set->steps[request->step_count++] = set_step(&segment->then[i]);
    request->within = set->within;
    request->minus = set->minus;
    request->steps = set->steps;
}

size_t
sets_within(const struct segmentation *segmentation, size_t number, const uint64_t **masks)
{
    const struct conf_segment *segment = &segmentation->pipeline->segments[number];
    size_t count = 0;
    set_add(segmentation, segment->within, segment->within_count, masks, &count);
    return count;
}

int
sets_make_start(const struct segmentation *segmentation, size_t number, struct kernels_lane *lane,
                const struct kernels_mask_request *begun, const uint64_t **bits,
                struct error *error)
{
    static const struct kernels_mask_step largest = {.kind = KERNELS_MASK_KEEP, .amount = 1};
    struct kernels_mask_request request = *begun;
    struct kernels_mask_result result;
    request.steps = &largest;
    request.step_count = 1;
    int rc = kernels_mask_run(lane, segmentation->starts[number], &request, &result, error);
    if (rc == 0)
        *bits = result.mask.bits;
    return rc;
}

static int
set_run(struct segmentation *segmentation, size_t number, struct kernels_lane *lane,
        struct set_request *set, struct error *error)
{
    struct kernels_mask_result result;
    if (!set->within || !set->minus || !set->steps)
        return error_set_system(error, -ENOMEM, "make the masks");
    set_fill(segmentation, number, set);
    int rc = kernels_mask_run(lane, segmentation->places[number], &set->request, &result, error);
    if (rc == 0)
        segmentation->masks[number] = result.mask;
    return rc;
}

int
sets_make(struct segmentation *segmentation, size_t number, struct kernels_lane *lane,
          struct error *error)
{
    const struct conf_segment *segment = &segmentation->pipeline->segments[number];
    if (segmentation->places[number] == SEGMENT_NO_PLACE) {
        segmentation->masks[number] = segmentation->found[number];
        return 0;
    }
    struct set_request set = {
        .within = calloc(1 + segment->within_count + segment->intersect_count, sizeof *set.within),
        .minus = calloc(1 + segment->minus_count, sizeof *set.minus),
        .steps = calloc(1 + segment->then_count, sizeof *set.steps)};
    int rc = set_run(segmentation, number, lane, &set, error);
    free(set.within);
    free(set.minus);
    free(set.steps);
    return rc;
}

/* -------------------------------------------------------------------------- describing ---- */

static void
set_describe_labels(const char *words, char *const *labels, size_t count,
                    char text[SEGMENT_DESCRIPTION])
{
    for (size_t i = 0; i < count; i++)
        segment_append(text, SEGMENT_DESCRIPTION, "%s%s", i > 0 ? ", " : words, labels[i]);
}

static void
set_describe_step(const struct conf_step *step, char text[SEGMENT_DESCRIPTION])
{
    const struct kernels_mask_step made = set_step(step);
    segment_append(text, SEGMENT_DESCRIPTION, " %s", set_steps[step->kind].name);
    if (step->kind == CONF_STEP_FILL)
        segment_append(text, SEGMENT_DESCRIPTION, "%s",
                       step->fill == CONF_FILL_VOLUME ? " volume" : " slices");
    else
        segment_append(text, SEGMENT_DESCRIPTION, " %g", made.amount);
    if (made.corners)
        segment_append(text, SEGMENT_DESCRIPTION, " 26-connected");
}

void
sets_describe(const struct conf_segment *segment, char text[SEGMENT_DESCRIPTION])
{
    set_describe_labels("; within ", segment->within, segment->within_count, text);
    set_describe_labels("; intersect ", segment->intersect, segment->intersect_count, text);
    set_describe_labels("; minus ", segment->minus, segment->minus_count, text);
    for (size_t i = 0; i < segment->then_count; i++) {
        segment_append(text, SEGMENT_DESCRIPTION, "%s", i > 0 ? "," : "; then");
        set_describe_step(&segment->then[i], text);
    }
}
