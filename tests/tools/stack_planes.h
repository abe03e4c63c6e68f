/* stack_planes.h - returns the largest stack of some images as planes, without a geometry check. Aborts on failure. */
#ifndef NOCTULE_STACK_PLANES_H
#define NOCTULE_STACK_PLANES_H

#include "base/planes.h"
#include "dicom/read/geometry/geometry.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct stack_planes {
    struct dicom_instance **instances;
    int32_t count;
    struct geometry_series *series;
    const struct geometry_stack *stack;
    double *origins;
    struct image_planes planes;
};

static inline void *
allocate(size_t count, size_t size)
{
    void *memory = calloc(count ? count : 1, size);
    if (!memory)
        abort();
    return memory;
}

static inline void
stack_fail(const struct error *error)
{
    fprintf(stderr, "%s: %s\n", code_name(error->code), error->message);
    exit(2);
}

static inline void
stack_open(int count, char **paths, struct stack_planes *own)
{
    const struct geometry_limits limits = {.min_planes = 1, .spacing_tolerance = 0.01, .allow_missing = true};
    struct error error;
    *own = (struct stack_planes){.instances = allocate((size_t)count, sizeof(*own->instances)), .count = count};
    for (int i = 0; i < count; i++)
        if (dicom_peek(paths[i], &own->instances[i], &error))
            stack_fail(&error);
    if (geometry_group(own->instances, count, &limits, &own->series, &error))
        stack_fail(&error);
    own->stack = &own->series->stacks[0];
    for (int32_t i = 1; i < own->series->stack_count; i++)
        if (own->series->stacks[i].plane_count > own->stack->plane_count)
            own->stack = &own->series->stacks[i];
    own->origins = allocate((size_t)own->stack->plane_count * 3, sizeof(*own->origins));
    const struct dicom_frame *first = NULL;
    for (int32_t i = own->stack->plane_count - 1; i >= 0; i--) {
        const struct geometry_plane *plane = &own->stack->planes[i];
        first = &own->instances[plane->instance]->frames[plane->frame];
        memcpy(own->origins + 3 * i, first->position, 3 * sizeof(*own->origins));
    }
    own->planes = (struct image_planes){
        .extent = {own->stack->columns, own->stack->rows, own->stack->plane_count},
        .spacing = {first->pixel_spacing[1], first->pixel_spacing[0]},
        .thickness = first->slice_thickness,
        .origins = own->origins,
    };
    memcpy(own->planes.axes, first->orientation, sizeof(own->planes.axes));
}

static inline void
stack_close(struct stack_planes *own)
{
    free(own->origins);
    geometry_series_free(own->series);
    for (int32_t i = 0; i < own->count; i++)
        dicom_instance_free(own->instances[i]);
    free(own->instances);
}

#endif
