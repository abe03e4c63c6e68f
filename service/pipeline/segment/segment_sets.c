#include "service/pipeline/segment/segment_sets.h"

#include "base/error.h"
#include "service/pipeline/rescaled_series.h"
#include "service/pipeline/segment/segment_coarse.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const set_step_names[] = {
#define MASK_STEP(NAME, AMOUNT, components, text) text,
#include "base/mask_steps.def"
};

static struct kernels_mask_step
set_step(const struct conf_step *step)
{
    struct kernels_mask_step made = {
        .kind = (enum kernels_mask_step_kind)step->kind, .amount = step->amount, .corners = step->connectivity == 26};
    if (step->kind == CONF_STEP_KEEP)
        made.amount = step->keep;
    made.in_slice = step->space == CONF_SPACE_SLICE;
    if (step->kind == CONF_STEP_FILL_SLICES && step->fill == CONF_FILL_VOLUME)
        made.kind = KERNELS_MASK_FILL_VOLUME;
    return made;
}

/*
 * Returns whether its method uses the mask: an operation runs again for segments that it finds
 * later, using the masks of earlier ones.
 */
static bool
set_starts_its_method(const struct conf_pipeline *pipeline, size_t segment)
{
    const struct conf_segment *own = &pipeline->segments[segment];
    struct conf_use use;
    for (size_t i = 0; i < pipeline->segment_count; i++)
        for (size_t n = 0; pipeline->segments[i].method == own->method && conf_segment_use(pipeline, i, n, &use); n++)
            if (use.start && strcmp(use.label, own->label) == 0)
                return true;
    return false;
}

static void
sets_reach(struct kernels_mask_demand *sets, double mm)
{
    sets->reach_mm = mm > sets->reach_mm ? mm : sets->reach_mm;
}

/* Reserves masks, balls and filters for checks, and for refine, which uses balls of the coarse grid. */
static void
sets_prepare_spare(struct segmentation *segmentation)
{
    const struct conf_pipeline *pipeline = segmentation->pipeline;
    struct kernels_mask_demand *sets = &segmentation->sets;
    size_t spare = 0;
    for (size_t i = 0; i < pipeline->segment_count; i++) {
        const struct conf_segment *segment = &pipeline->segments[i];
        struct expect_demand own = {.masks = 0};
        if (segment_is_here(segmentation, i))
            own = expect_demand_of(segment, segmentation->stack->spacing);
        sets->closings |= own.reach_mm > 0;
        if (segmentation->is_coarse && segment->refine)
            own = (struct expect_demand){.masks = 1, .reach_mm = segment->refine->band_mm};
        if (segment->method == CONF_SIDE && segment_is_here(segmentation, i)) {
            own.masks = own.masks > 0 ? own.masks : 1;
            for (size_t s = 0; s < sizeof segment->side.shrink_mm / sizeof segment->side.shrink_mm[0]; s++)
                sets_reach(sets, segment->side.shrink_mm[s]);
        }
        spare = own.masks > spare ? own.masks : spare;
        sets_reach(sets, own.reach_mm);
        segmentation->smooth.sigma_mm = fmax(segmentation->smooth.sigma_mm, own.smooth_mm);
    }
    segmentation->spare = sets->masks;
    sets->masks += spare;
}

static void
sets_prepare_steps(struct kernels_mask_demand *sets, const struct conf_segment *segment)
{
    for (size_t s = 0; s < segment->then_count; s++) {
        const struct kernels_mask_step step = set_step(&segment->then[s]);
        if (mask_step_has_ball(step.kind))
            sets_reach(sets, step.amount);
        sets->bridges |= step.kind == KERNELS_MASK_CUT_BRIDGES;
        sets->closings |= step.kind == KERNELS_MASK_CLOSE;
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
    memcpy(segmentation->smooth.spacing, segmentation->stack->spacing, sizeof segmentation->smooth.spacing);
    for (size_t i = 0; i < pipeline->segment_count; i++) {
        const struct conf_segment *segment = &pipeline->segments[i];
        segmentation->places[i] = SEGMENT_NO_PLACE;
        if (coarse_volume_expands(pipeline, i) && !segmentation->is_coarse)
            segmentation->places[i] = sets->masks++;
        if (!segment_is_here(segmentation, i))
            continue;
        const bool is_made = segment_methods[segment->method]->begin_mask || segment->any_of_count > 0 ||
                             segment->within_count > 0 || segment->minus_count > 0 || segment->intersect_count > 0 ||
                             segment->then_count > 0 || set_starts_its_method(pipeline, i);
        if (is_made)
            segmentation->places[i] = sets->masks++;
        if (conf_segment_looks(segment))
            segmentation->starts[i] = sets->masks++;
        sets_prepare_steps(sets, segment);
    }
    sets_prepare_spare(segmentation);
    if (segmentation->smooth.sigma_mm > 0)
        demand->of[KERNELS_SMOOTH] = &segmentation->smooth;
    if (sets->masks > 0)
        demand->of[KERNELS_MASK] = sets;
    return 0;
}

static void
set_add(const struct segmentation *segmentation, char *const *labels, size_t count, const uint64_t **masks,
        size_t *added)
{
    for (size_t i = 0; i < count; i++)
        masks[(*added)++] = segmentation->masks[conf_find_segment(segmentation->pipeline, labels[i])].bits;
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
                const struct kernels_mask_request *begun, const uint64_t **bits, struct error *error)
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

/* Keeps the components of a mask by their real means: a copy that the caller must free. */
static int
set_keep_means(const struct rescaled_series *series, const struct kernels_mask_step *step, const uint64_t *mask,
               uint64_t **kept, struct error *error)
{
    const struct image_extent *extent = &series->values.extent;
    const int64_t words = (extent->columns + 63) / 64 * extent->rows * extent->slices;
    uint64_t *made = calloc((size_t)words, sizeof *made);
    const int rc = made ? rescaled_keep_means(&series->values, mask, step->corners, step->amount, made, error)
                        : error_set_system(error, -ENOMEM, "hold the masks");
    free(*kept);
    *kept = made;
    return rc;
}

/* Makes a mask with its steps. Means of real values are measured between two runs of the lane. */
static int
set_run(const struct segmentation *segmentation, size_t number, struct kernels_lane *lane,
        struct kernels_mask_request request, struct kernels_mask_step *steps, struct error *error)
{
    const struct kernels_mask_step *const end = steps + request.step_count;
    struct rescaled_series series = {.is_apart = false};
    struct kernels_mask_result result;
    uint64_t *kept = NULL;
    int rc = 0;
    for (struct kernels_mask_step *step = steps; step < end && rc == 0; step++) {
        if (step->kind != KERNELS_MASK_DROP_MEAN_BELOW)
            continue;
        if (series.rescale.slope == 0)
            rc = rescaled_series_make(segmentation->instances, segmentation->stack, lane, &series, error);
        if (rc == 0)
            step->amount = (step->amount - series.rescale.intercept) / series.rescale.slope;
        if (rc || !series.is_apart)
            continue;
        request.steps = steps;
        request.step_count = (size_t)(step - steps);
        rc = kernels_mask_run(lane, segmentation->places[number], &request, &result, error);
        if (rc == 0)
            rc = set_keep_means(&series, step, result.mask.bits, &kept, error);
        request.range_count = request.any_of_count = 0;
        request.padding = (struct image_range){1, 0};
        request.found = kept;
        steps = step + 1;
    }
    request.steps = steps;
    request.step_count = (size_t)(end - steps);
    if (rc == 0)
        rc = kernels_mask_run(lane, segmentation->places[number], &request, &result, error);
    if (rc == 0)
        segmentation->masks[number] = result.mask;
    rescaled_series_release(&series);
    free(kept);
    return rc;
}

int
sets_make(struct segmentation *segmentation, size_t number, struct kernels_lane *lane, struct error *error)
{
    const struct conf_segment *segment = &segmentation->pipeline->segments[number];
    const struct segment_method *method = segment_methods[segment->method];
    if (segmentation->places[number] == SEGMENT_NO_PLACE) {
        segmentation->masks[number] = segmentation->found[number];
        return 0;
    }
    const uint64_t **any_of = calloc(1 + segment->any_of_count, sizeof *any_of);
    const uint64_t **within = calloc(1 + segment->within_count + segment->intersect_count, sizeof *within);
    const uint64_t **minus = calloc(1 + segment->minus_count, sizeof *minus);
    struct kernels_mask_step *steps = calloc(1 + segment->then_count, sizeof *steps);
    struct kernels_mask_request request = {
        .any_of = any_of, .within = within, .minus = minus, .steps = steps, .padding = {1, 0}};
    int rc = 0;
    if (!any_of || !within || !minus || !steps) {
        rc = error_set_system(error, -ENOMEM, "make the masks");
        goto out;
    }
    if (method->begin_mask)
        method->begin_mask(segmentation, number, &request);
    else
        request.found = segmentation->found[number].bits;
    set_add(segmentation, segment->any_of, segment->any_of_count, any_of, &request.any_of_count);
    set_add(segmentation, segment->within, segment->within_count, within, &request.within_count);
    set_add(segmentation, segment->intersect, segment->intersect_count, within, &request.within_count);
    set_add(segmentation, segment->minus, segment->minus_count, minus, &request.minus_count);
    for (size_t i = 0; i < segment->then_count; i++)
        steps[i] = set_step(&segment->then[i]);
    request.step_count = segment->then_count;
    rc = set_run(segmentation, number, lane, request, steps, error);
out:
    free(any_of);
    free(within);
    free(minus);
    free(steps);
    return rc;
}

int64_t
sets_bytes(const struct segmentation *segmentation, size_t number)
{
    const struct conf_segment *segment = &segmentation->pipeline->segments[number];
    const struct geometry_stack *stack = segmentation->stack;
    const struct image_extent extent = {stack->columns, stack->rows, stack->plane_count};
    bool measures = false;
    for (size_t i = 0; i < segment->then_count; i++)
        measures |= set_step(&segment->then[i]).kind == KERNELS_MASK_DROP_MEAN_BELOW;
    return measures && rescaled_series_is_apart(segmentation->instances, stack)
               ? rescaled_means_bytes(&extent) + segment_mask_bytes(stack)
               : 0;
}

static void
set_describe_labels(const char *words, char *const *labels, size_t count, char text[SEGMENT_DESCRIPTION])
{
    for (size_t i = 0; i < count; i++)
        segment_append(text, SEGMENT_DESCRIPTION, "%s%s", i > 0 ? ", " : words, labels[i]);
}

void
sets_describe(const struct conf_segment *segment, char text[SEGMENT_DESCRIPTION])
{
    set_describe_labels("; within ", segment->within, segment->within_count, text);
    set_describe_labels("; intersect ", segment->intersect, segment->intersect_count, text);
    set_describe_labels("; minus ", segment->minus, segment->minus_count, text);
    for (size_t i = 0; i < segment->then_count; i++) {
        const struct conf_step *step = &segment->then[i];
        const struct kernels_mask_step made = set_step(step);
        segment_append(text, SEGMENT_DESCRIPTION, "%s %s", i > 0 ? "," : "; then", set_step_names[made.kind]);
        if (step->kind != CONF_STEP_FILL_SLICES)
            segment_append(text, SEGMENT_DESCRIPTION, " %g", made.amount);
        if (made.in_slice)
            segment_append(text, SEGMENT_DESCRIPTION, " in the slice");
        if (made.corners)
            segment_append(text, SEGMENT_DESCRIPTION, " 26-connected");
    }
}
