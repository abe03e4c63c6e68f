/* routing_options.c - see routing_options.h: the attributes that rules check. */
#include "service/common/routing/routing_options.h"

#include "dicom/dicom.h"

#include <errno.h>
#include <stdlib.h>

/* The stacks whose first plane is in one file, and the frames of those planes. */
struct stack_group {
    int32_t count;
    int32_t *stacks, *frames;
    char **values;
};

/* Finds the stacks of the group of stack `first`, from that stack on. */
static void
stack_group_find(const struct geometry_series *series, int32_t first, struct stack_group *group)
{
    const int32_t file = series->stacks[first].planes[0].instance;
    group->count = 0;
    for (int32_t i = first; i < series->stack_count; i++) {
        const struct geometry_stack *stack = &series->stacks[i];
        if (stack->plane_count == 0 || stack->planes[0].instance != file)
            continue;
        group->stacks[group->count] = i;
        group->frames[group->count++] = stack->planes[0].frame;
    }
}

int
routing_read_stack_values(const struct geometry_series *series, const char *const *paths,
                          const char *asked, char **values, struct error *error)
{
    const size_t room = (size_t)series->stack_count + 1;
    struct stack_group group = {.stacks = calloc(room, sizeof *group.stacks),
                                .frames = calloc(room, sizeof *group.frames),
                                .values = calloc(room, sizeof *group.values)};
    int rc = 0;
    if (!group.stacks || !group.frames || !group.values)
        rc = error_set(error, -ENOMEM, CODE_OUT_OF_MEMORY, "There is not enough memory.");
    for (int32_t i = 0; i < series->stack_count && rc == 0 && *asked; i++) {
        if (values[i] || series->stacks[i].plane_count == 0)
            continue;
        stack_group_find(series, i, &group);
        const struct dicom_value_request question = {
            .path = paths[series->stacks[i].planes[0].instance],
            .attributes = asked,
            .frames = group.frames,
            .frame_count = (size_t)group.count,
        };
        rc = dicom_read_values(&question, group.values, error);
        for (int32_t g = 0; g < group.count; g++)
            values[group.stacks[g]] = group.values[g];
    }
    free(group.stacks);
    free(group.frames);
    free(group.values);
    return rc;
}
