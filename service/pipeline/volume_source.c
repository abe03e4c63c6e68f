#include "service/pipeline/volume_source.h"

#include "base/error.h"
#include "service/pipeline/image_file.h"
#include "service/pipeline/pipeline.h"

#include <errno.h>
#include <string.h>

static int
source_check_headers(const struct headers *headers, struct error *error)
{
    for (size_t i = 0; i < headers->count; i++)
        if (headers->rc[i]) {
            *error = headers->errors[i];
            return headers->rc[i];
        }
    return headers->count > 0 ? 0 : error_set(error, -EINVAL, CODE_NO_INPUT, "the job names no input file");
}

static int
source_choose_stack(const struct conf_pipeline *pipeline, const struct headers *headers, const char *name,
                    struct volume_source *source, struct error *error)
{
    struct geometry_limits limits = pipeline_limits(pipeline);
    limits.allow_missing = true; /* decided when the series was inspected */
    const int rc = geometry_group(headers->instances, (int32_t)headers->count, &limits, &source->series, error);
    if (rc)
        return rc;
    for (int32_t i = 0; i < source->series->stack_count && !source->stack; i++)
        if (strcmp(source->series->stacks[i].name, name) == 0)
            source->stack = &source->series->stacks[i];
    if (!source->stack)
        return error_set(error, -ENOENT, CODE_STACK_NOT_FOUND, "the series has no stack named \"%s\" (it has %d)", name,
                         source->series->stack_count);
    if (source->stack->accepted)
        return 0;
    *error = source->stack->error;
    return -EINVAL;
}

int
volume_source_choose(const struct conf_pipeline *pipeline, const struct headers *headers, const char *stack,
                     struct volume_source *source, struct error *error)
{
    *source = (struct volume_source){0};
    int rc = source_check_headers(headers, error);
    if (rc == 0)
        rc = source_choose_stack(pipeline, headers, stack, source, error);
    if (rc == 0)
        rc = suv_series_make(pipeline, headers, source->stack, &source->suv, error);
    source->headers = source->suv.is.given ? &source->suv.headers : headers;
    if (rc == 0)
        rc = grid_make(pipeline, source->headers->instances, source->stack, &source->grid, error);
    if (rc == 0 && source->headers->instances[source->stack->planes[0].instance]->has_reals)
        rc = image_file_keep_reals(pipeline, &source->grid, error);
    return rc;
}

void
volume_source_release(struct volume_source *source)
{
    grid_release(&source->grid);
    suv_series_release(&source->suv);
    if (source->series)
        geometry_series_free(source->series);
    *source = (struct volume_source){0};
}

struct volume_grid
volume_source_box(const struct grid *grid)
{
    const struct geometry_stack *stack = grid->stack;
    struct volume_grid box = {.size = {stack->columns, stack->rows, stack->plane_count},
                              .in_pixels = !geometry_is_in_mm(stack)};
    for (int row = 0; row < 3; row++) {
        for (int axis = 0; axis < 3; axis++)
            box.to_mm[4 * row + axis] = stack->axes[3 * axis + row] * stack->spacing[axis];
        box.to_mm[4 * row + 3] = stack->origin[row];
    }
    return box;
}
