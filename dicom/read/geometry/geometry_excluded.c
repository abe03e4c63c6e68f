/*
 * geometry_excluded.c - frames that are excluded from stacks, and their messages.
 */
#include "base/error.h"
#include "dicom/read/geometry/geometry_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Reasons for exclusion. */
static const struct excluded_kind {
    enum code code;
    bool passed_over;
    const char *name, *is, *then;
} excluded_kinds[] = {
    {CODE_MOSAIC, false, "mosaic",
     "cannot be split: its header lacks the positions of the slices, or contradicts itself. It is a mosaic",
     "Store single slices at the scanner, or convert it."},
    {CODE_LOCALIZER, true, "localizer", "is a localizer", "It is skipped."},
    {CODE_SCREENSHOT, true, "screenshot", "is a screen capture or a report", "It is skipped."},
    {CODE_DERIVED_IMAGE, true, "derived",
     "is a reformat, projection or map, or is derived and the series has originals; a pipeline with derived = true "
     "takes it",
     "It is skipped."},
    {CODE_FLAT_IMAGE, true, "2-D images",
     "is a 2-D image without patient position; a pipeline with flat = true takes it", "It is skipped."},
    {CODE_DUPLICATE_POSITION, true, "", "is at the position of a newer slice", "It is skipped. The newer one is used."},
    {CODE_TOO_MANY_STACKS, false, "", "is of a series with too many orientations or volumes", "Split it."},
};

static const struct excluded_kind *
excluded_kind_of(enum code code)
{
    for (size_t i = 0; i < sizeof(excluded_kinds) / sizeof(excluded_kinds[0]); i++)
        if (excluded_kinds[i].code == code)
            return &excluded_kinds[i];
    return NULL;
}

static int
compare_excluded(const void *left, const void *right)
{
    const struct plane *a = left, *b = right;
    const int order = (a->excluded > b->excluded) - (a->excluded < b->excluded);
    return order ? order : geometry_compare_identity(left, right);
}

/* Finds each plane's reason for exclusion. */
static void
mark_excluded(struct grouping *grouping)
{
    const bool include_derived = grouping->limits->include_derived;
    struct plane *planes = grouping->planes;
    bool originals = false;
    for (int32_t i = 0; i < grouping->plane_count; i++) {
        const enum code code = planes[i].frame->excluded;
        planes[i].excluded = code == CODE_DERIVED_IMAGE && include_derived ? CODE_NONE : code;
        if (planes[i].instance->flat && planes[i].excluded == CODE_NONE)
            planes[i].excluded = CODE_FLAT_IMAGE;
        originals |= planes[i].excluded == CODE_NONE && !planes[i].frame->derived;
    }
    for (int32_t i = 0; i < grouping->plane_count && originals && !include_derived; i++)
        if (planes[i].excluded == CODE_NONE && planes[i].frame->derived)
            planes[i].excluded = CODE_DERIVED_IMAGE;
}

/* Begins the group of an excluded plane, or of a frame of a 2-D image to process, which is a stack of its own. */
static struct group
excluded_group(const struct grouping *grouping, struct plane *plane)
{
    struct group group = {.planes = plane, .count = 1, .excluded = plane->excluded};
    char number[16];
    if (!geometry_is_flat_stack(grouping, &group)) {
        geometry_extend_name(&group, "", excluded_kind_of(group.excluded)->name,
                             group.excluded == CODE_FLAT_IMAGE ? "SOP Class UID (0008,0016)"
                                                               : "Image Type (0008,0008)");
        return group;
    }
    snprintf(number, sizeof(number), "%d", plane->instance->instance_number);
    geometry_extend_name(&group, "image ", number, "Instance Number (0020,0013)");
    snprintf(number, sizeof(number), "%d", plane->frame_index + 1);
    if (plane->instance->frame_count > 1)
        geometry_extend_name(&group, "frame ", number, "number of the frame");
    return group;
}

int
geometry_exclude(struct grouping *grouping)
{
    mark_excluded(grouping);
    struct plane *planes = grouping->planes;
    qsort(planes, (size_t)grouping->plane_count, sizeof(*planes), compare_excluded);
    int32_t start = 0, end;
    while (start < grouping->plane_count && planes[start].excluded == CODE_NONE)
        start++;
    grouping->image_count = start;
    for (; start < grouping->plane_count; start = end) {
        struct group group = excluded_group(grouping, planes + start);
        for (end = start + 1; end < grouping->plane_count && planes[end].excluded == group.excluded &&
                              !geometry_is_flat_stack(grouping, &group);)
            end++;
        group.count = end - start;
        int rc = geometry_add_group(grouping, &group);
        if (rc)
            return rc;
    }
    return 0;
}

void
geometry_report_excluded(const struct group *group, struct geometry_stack *stack)
{
    const struct excluded_kind *kind = excluded_kind_of(group->excluded);
    const struct plane *first = &group->planes[0];
    char tiles[32] = "", others[64] = "";
    if (kind->code == CODE_MOSAIC && first->frame->tiles > 0)
        snprintf(tiles, sizeof(tiles), " of %d tiles", first->frame->tiles);
    if (group->count > 1)
        snprintf(others, sizeof(others), " There %s %d more like it.", group->count == 2 ? "is" : "are",
                 group->count - 1);
    stack->passed_over = kind->passed_over;
    error_set_files(&stack->error, 0, kind->code, first->instance->path, NULL, "%s %s%s. %s%s",
                    geometry_plane_name(first), kind->is, tiles, kind->then, others);
}
