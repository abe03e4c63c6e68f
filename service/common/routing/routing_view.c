#include "service/common/routing/routing_view.h"

#include "base/limits.h"
#include "dicom/dicom.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Reads the attributes of the first slices that are in one file: that of stack `first`, and those
 * of later stacks. The arrays have room for one element per stack. */
static int
view_read_file(const struct routing_view_input *input, struct routing_view *view, int32_t first, int32_t *stacks,
               int32_t *frames, char **values, struct error *error)
{
    const struct geometry_series *series = view->grouped;
    const int32_t file = series->stacks[first].planes[0].instance;
    size_t count = 0;
    for (int32_t i = first; i < series->stack_count; i++) {
        const struct geometry_stack *stack = &series->stacks[i];
        if (stack->plane_count == 0 || stack->planes[0].instance != file)
            continue;
        stacks[count] = i;
        frames[count++] = stack->planes[0].frame;
    }
    const struct dicom_value_request question = {
        .path = input->paths[file], .attributes = input->attributes, .frames = frames, .frame_count = count};
    int rc = dicom_read_values(&question, values, error);
    for (size_t i = 0; i < count; i++)
        view->values[stacks[i]] = values[i];
    return rc;
}

/* Reads each file once. */
static int
view_read_values(const struct routing_view_input *input, struct routing_view *view, struct error *error)
{
    const size_t room = (size_t)view->grouped->stack_count + 1;
    int32_t *stacks = calloc(room, sizeof *stacks), *frames = calloc(room, sizeof *frames);
    char **values = calloc(room, sizeof *values);
    int rc = 0;
    view->values = calloc(room, sizeof *view->values);
    view->facts = calloc(room, sizeof *view->facts);
    if (!stacks || !frames || !values || !view->values || !view->facts)
        rc = error_set(error, -ENOMEM, CODE_OUT_OF_MEMORY, "There is not enough memory.");
    for (int32_t i = 0; i < view->grouped->stack_count && rc == 0 && *input->attributes; i++)
        if (!view->values[i] && view->grouped->stacks[i].plane_count > 0)
            rc = view_read_file(input, view, i, stacks, frames, values, error);
    free(stacks);
    free(frames);
    free(values);
    return rc;
}

int
routing_view_make(struct routing_view_input *input, int options, struct routing_view *view, struct error *error)
{
    struct geometry_limits limits = input->limits;
    *view = (struct routing_view){.options = options};
    routing_options_set_limits(options, &limits);
    int rc = geometry_group(input->instances, input->count, &limits, &view->grouped, error);
    if (rc == 0)
        rc = view_read_values(input, view, error);
    for (int32_t i = 0; rc == 0 && i < view->grouped->stack_count; i++) {
        const struct geometry_stack *stack = &view->grouped->stacks[i];
        const size_t size = view->values[i] ? strlen(view->values[i]) : 0;
        const bool fits = input->values_size + size <= (size_t)LIMIT_RULE_VALUES_KIB << 10;
        view->facts[i] = conditions_facts(stack->normal, stack->flat ? 0 : stack->spacing[2], stack->plane_count);
        if (!stack->has_geometry)
            view->facts[i].orientation = CONF_ANY_ORIENTATION;
        view->facts[i].asked = input->attributes;
        view->facts[i].values = size > 0 && fits ? view->values[i] : "";
        input->values_size += fits ? size : 0;
    }
    return rc;
}

void
routing_view_release(struct routing_view *view)
{
    for (int32_t i = 0; view->values && i < view->grouped->stack_count; i++)
        free(view->values[i]);
    free(view->values);
    free(view->facts);
    geometry_series_free(view->grouped);
    *view = (struct routing_view){0};
}
