#include "dicom/read/geometry/geometry.h"

#include "base/error.h"
#include "base/text.h"
#include "dicom/read/geometry/geometry_internal.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

void
geometry_normal(const double orientation[6], double normal[3])
{
    const double *r = orientation, *c = orientation + 3;
    normal[0] = r[1] * c[2] - r[2] * c[1];
    normal[1] = r[2] * c[0] - r[0] * c[2];
    normal[2] = r[0] * c[1] - r[1] * c[0];
    const double length = sqrt(geometry_dot(normal, normal));
    for (int i = 0; i < 3; i++)
        normal[i] /= length;
}

static int
compare_double(const void *left, const void *right)
{
    const double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

void
geometry_sort_numbers(double *numbers, int32_t count)
{
    qsort(numbers, (size_t)count, sizeof(*numbers), compare_double);
}

int
geometry_compare_identity(const void *left, const void *right)
{
    const struct plane *a = left, *b = right;
    int order = strcmp(a->instance->sop_instance_uid, b->instance->sop_instance_uid);
    if (!order)
        order = (a->frame_index > b->frame_index) - (a->frame_index < b->frame_index);
    return order ? order : strcmp(a->instance->path, b->instance->path);
}

int
geometry_compare_position(const void *left, const void *right)
{
    const struct plane *a = left, *b = right;
    const int order = (a->position > b->position) - (a->position < b->position);
    return order ? order : geometry_compare_identity(left, right);
}

const char *
geometry_plane_name(const struct plane *plane)
{
    return text_base_name(plane->instance->path);
}

bool
geometry_is_placed(const struct group *group)
{
    for (int32_t i = 0; i < group->count; i++)
        if (!group->planes[i].frame->has_position || !group->planes[i].frame->has_orientation)
            return false;
    return true;
}

/* ---- stacks ---- */

/* Compares by the sender's numbering, the best order without positions. */
static int
compare_number(const void *left, const void *right)
{
    const struct plane *a = left, *b = right;
    const int32_t p = a->instance->instance_number, q = b->instance->instance_number;
    const int order = (p > q) - (p < q);
    return order ? order : geometry_compare_identity(left, right);
}

static void
geometry_describe(const struct group *group, struct geometry_stack *stack)
{
    static const double no_orientation[6] = {1, 0, 0, 0, 1, 0};
    const struct plane *first = &group->planes[0];
    const struct dicom_frame *frame = first->frame;
    const int32_t last = group->count - 1;
    memcpy(stack->name, group->name, sizeof(stack->name));
    memcpy(stack->split_by, group->split_by, sizeof(stack->split_by));
    stack->columns = first->instance->columns;
    stack->rows = first->instance->rows;
    stack->pixel = first->instance->pixel;
    const double *orientation = stack->has_geometry ? frame->orientation : no_orientation;
    geometry_normal(orientation, stack->normal);
    memcpy(stack->axes, orientation, 6 * sizeof(double));
    memcpy(stack->axes + 6, stack->normal, 3 * sizeof(double));
    stack->spacing[0] = frame->has_spacing ? frame->pixel_spacing[1] : 1;
    stack->spacing[1] = frame->has_spacing ? frame->pixel_spacing[0] : 1;
    stack->spacing[2] = 1;
    stack->spacing_source = frame->spacing;
    stack->flat = first->instance->flat;
    memcpy(stack->calibrated, frame->calibrated, sizeof(stack->calibrated));
    if (!stack->has_geometry)
        return;
    const double extent = group->planes[last].position - first->position;
    if (extent > 0)
        stack->spacing[2] = extent / last;
    else if (frame->slice_thickness > 0)
        stack->spacing[2] = frame->slice_thickness;
    memcpy(stack->origin, frame->position, sizeof(stack->origin));
}

static int
make_stacks(struct grouping *grouping, struct geometry_series *series)
{
    for (int32_t i = 0; i < grouping->group_count; i++) {
        struct group *group = &grouping->groups[i];
        /* Excluded frames keep the sender's order. */
        const bool placed = group->excluded == CODE_NONE && geometry_is_placed(group);
        qsort(group->planes, (size_t)group->count, sizeof(*group->planes),
              placed ? geometry_compare_position : compare_number);
        for (int32_t k = 0; k < group->count && !placed; k++)
            group->planes[k].position = k;
    }
    int rc = geometry_gather_evidence(grouping);
    if (rc)
        return rc;
    geometry_finish_names(grouping);
    series->times = grouping->times;
    series->times_announced = grouping->times_announced;
    series->stacks = calloc((size_t)grouping->group_count, sizeof(*series->stacks));
    if (!series->stacks)
        return -ENOMEM;
    for (int32_t i = 0; i < grouping->group_count; i++) {
        const struct group *group = &grouping->groups[i];
        struct geometry_stack *stack = &series->stacks[i];
        if (group->excluded == CODE_NONE || geometry_is_flat_stack(grouping, group))
            geometry_check(grouping, group, stack);
        else
            geometry_report_excluded(group, stack);
        geometry_describe(group, stack);
        stack->planes = calloc((size_t)group->count, sizeof(*stack->planes));
        if (!stack->planes)
            return -ENOMEM;
        stack->plane_count = group->count;
        for (int32_t p = 0; p < group->count; p++)
            stack->planes[p] = (struct geometry_plane){group->planes[p].instance_index, group->planes[p].frame_index,
                                                       group->planes[p].position};
        series->stack_count++;
    }
    return 0;
}

/* ---- entry ---- */

static int
group_planes(struct grouping *grouping)
{
    int64_t total = 0;
    for (int32_t i = 0; i < grouping->instance_count; i++)
        total += grouping->instances[i]->frame_count;
    if (total > INT32_MAX)
        return -ENOMEM;
    grouping->planes = calloc((size_t)total + 1, sizeof(*grouping->planes));
    grouping->scratch = calloc((size_t)total + 1, sizeof(*grouping->scratch));
    grouping->marks = calloc((size_t)total + 1, sizeof(*grouping->marks));
    if (!grouping->planes || !grouping->scratch || !grouping->marks)
        return -ENOMEM;
    for (int32_t i = 0; i < grouping->instance_count; i++)
        for (int32_t f = 0; f < grouping->instances[i]->frame_count; f++)
            grouping->planes[grouping->plane_count++] = (struct plane){.instance = grouping->instances[i],
                                                                       .frame = &grouping->instances[i]->frames[f],
                                                                       .instance_index = i,
                                                                       .frame_index = f,
                                                                       .orientation = -1};
    int rc = geometry_exclude(grouping);
    if (!rc)
        rc = geometry_make_groups(grouping);
    if (rc != -E2BIG)
        return rc;
    /* Make one group of all planes, which is rejected. */
    const struct group all = {
        .planes = grouping->planes, .count = grouping->plane_count, .excluded = CODE_TOO_MANY_STACKS};
    grouping->group_count = 0;
    return geometry_add_group(grouping, &all);
}

int
geometry_group(struct dicom_instance *const *instances, int32_t count, const struct geometry_limits *limits,
               struct geometry_series **series, struct error *error)
{
    *series = NULL;
    int rc = geometry_check_series(instances, count, limits->allow_missing, error);
    if (rc)
        return rc;
    struct grouping grouping = {.limits = limits, .instances = instances, .instance_count = count};
    struct geometry_series *result = calloc(1, sizeof(*result));
    rc = result ? group_planes(&grouping) : -ENOMEM;
    if (!rc && grouping.group_count > 0)
        rc = make_stacks(&grouping, result);
    free(grouping.neighbours);
    free(grouping.parts);
    free(grouping.numbers);
    free(grouping.groups);
    free(grouping.orientations);
    free(grouping.marks);
    free(grouping.scratch);
    free(grouping.planes);
    if (rc) {
        geometry_series_free(result);
        return error_set(error, rc, CODE_OUT_OF_MEMORY, "There is not enough memory to sort the series.");
    }
    *series = result;
    return 0;
}

void
geometry_series_free(struct geometry_series *series)
{
    if (!series)
        return;
    for (int32_t i = 0; i < series->stack_count; i++)
        free(series->stacks[i].planes);
    free(series->stacks);
    free(series);
}

void
geometry_voxel_from_mm(const struct geometry_stack *stack, const double mm[3], double voxel[3])
{
    double offset[3];
    for (int i = 0; i < 3; i++)
        offset[i] = mm[i] - stack->origin[i];
    for (int i = 0; i < 3; i++)
        voxel[i] = geometry_dot(offset, stack->axes + 3 * i) / stack->spacing[i];
}
