#include "dicom/objects/seg/seg_writer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct mask_plane
seg_plan_mask(const struct seg_request *request, int32_t segment, int32_t plane)
{
    const struct seg_segment *from = &request->segments[segment];
    return (struct mask_plane){
        .words = from->bits + (int64_t)plane * request->source.stack->rows * from->words_per_row,
        .words_per_row = from->words_per_row,
        .columns = request->source.stack->columns,
        .rows = request->source.stack->rows,
    };
}

int64_t
seg_plan_voxels(const struct seg_request *request)
{
    return (int64_t)request->source.stack->rows * request->source.stack->columns;
}

const uint16_t *
seg_plan_map(const struct seg_request *request, int32_t segment, int32_t plane)
{
    return request->segments[segment].map + plane * seg_plan_voxels(request);
}

/* Plans a frame, unless it is empty and omitted. */
static void
plan_frame(const struct seg_request *request, struct seg_plan *plan, int32_t segment, int32_t plane, bool any)
{
    bool *present = &plan->present[(int64_t)segment * plan->plane_count + plane];
    if (*present || (!any && request->omit_empty_frames))
        return;
    *present = true;
    plan->segment_index[segment] = 1;
    plan->plane_index[plane] = 1;
    plan->frames++;
}

/* Plans the frames of one plane. `seen` is a plane of words to find overlaps, or NULL. */
static void
plan_plane(const struct seg_request *request, struct seg_plan *plan, int32_t plane, uint64_t *seen, size_t seen_bytes)
{
    bool fresh = true;
    for (int32_t s = 0; s < request->segment_count; s++) {
        struct mask_plane mask = {0};
        bool any;
        if (request->type == SEG_FRACTIONAL) {
            any = seg_fractional_any(seg_plan_map(request, s, plane), seg_plan_voxels(request));
        } else {
            mask = seg_plan_mask(request, s, plane);
            any = mask_any(&mask);
        }
        plan_frame(request, plan, request->type == SEG_LABELMAP ? 0 : s, plane, any);
        if (!any || !seen || plan->overlap >= 0)
            continue;
        if (fresh)
            memset(seen, 0, seen_bytes);
        fresh = false;
        if (mask_add(&mask, seen))
            plan->overlap = plane;
    }
}

bool
seg_find_overlap(const struct seg_request *request, int32_t plane, struct seg_overlap *found)
{
    const int32_t columns = request->source.stack->columns;
    for (found->row = 0; found->row < request->source.stack->rows; found->row++)
        for (found->column = 0; found->column < columns; found->column++) {
            found->first = -1;
            for (found->second = 0; found->second < request->segment_count; found->second++) {
                const struct mask_plane mask = seg_plan_mask(request, found->second, plane);
                const uint64_t *row = mask.words + found->row * mask.words_per_row;
                if (!(row[found->column / 64] >> found->column % 64 & 1))
                    continue;
                if (found->first >= 0)
                    return true;
                found->first = found->second;
            }
        }
    return false;
}

/* Replaces marks by ordinals. */
static void
number_marked(uint32_t *index, int32_t count)
{
    uint32_t next = 0;
    for (int32_t i = 0; i < count; i++) {
        if (index[i])
            index[i] = ++next;
    }
}

int
seg_plan_make(const struct seg_request *request, struct seg_plan *plan)
{
    int32_t segments = request->type == SEG_LABELMAP ? 1 : request->segment_count;
    int32_t planes = request->source.stack->plane_count;
    size_t words = ((size_t)request->source.stack->columns + 63) / 64 * (size_t)request->source.stack->rows;
    bool find_overlap = request->segment_count > 1 && request->type != SEG_FRACTIONAL;
    uint64_t *seen = find_overlap ? malloc(words * sizeof(*seen)) : NULL;
    *plan = (struct seg_plan){
        .segment_count = segments,
        .plane_count = planes,
        .overlap = -1,
        .present = calloc((size_t)segments * (size_t)planes, sizeof(*plan->present)),
        .segment_index = calloc((size_t)segments, sizeof(*plan->segment_index)),
        .plane_index = calloc((size_t)planes, sizeof(*plan->plane_index)),
    };
    if (!plan->present || !plan->segment_index || !plan->plane_index || (find_overlap && !seen)) {
        free(seen);
        seg_plan_free(plan);
        return -ENOMEM;
    }
    for (int32_t plane = 0; plane < planes; plane++)
        plan_plane(request, plan, plane, seen, words * sizeof(*seen));
    number_marked(plan->segment_index, segments);
    number_marked(plan->plane_index, planes);
    free(seen);
    return 0;
}

void
seg_plan_free(struct seg_plan *plan)
{
    free(plan->present);
    free(plan->segment_index);
    free(plan->plane_index);
    *plan = (struct seg_plan){0};
}
