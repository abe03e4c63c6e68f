/*
 * seg_frames.c - what grows with the frames: the functional groups and the pixels.
 */
#include "dicom/objects/seg/seg_writer.h"

#include "dicom/objects/seg/seg_internal.h"
#include "dicom/objects/seg/seg_scene.h"
#include "dicom/value/tags.h"
#include "dicom/write/mask_bits.h"

/* The item of Per-frame Functional Groups Sequence for one frame. */
static void
add_frame_groups(const struct seg_writer *w, struct element_buffer *to, int32_t segment,
                 int32_t plane)
{
    const uint32_t indices[2] = {w->plan.segment_index[segment], w->plan.plane_index[plane]};
    const uint16_t number = (uint16_t)(segment + 1);
    size_t groups = element_open_item(to);

    stack_add_derivation(&w->out, to, plane);
    stack_add_frame_content(to, indices, 2);
    stack_add_plane_position(&w->out, to, plane);

    size_t item = element_open_only_item(to, TAG_SegmentIdentificationSequence);
    element_us(to, TAG_ReferencedSegmentNumber, &number, 1);
    element_close_only_item(to, item);

    element_close(to, groups);
}

/* Segment by segment, each in ascending position, as seg_put_pixel_data does; returns the bytes of all
 * items. */
static uint64_t
stream_frame_groups(void *context, bool write)
{
    struct seg_writer *w = context;
    const struct seg_plan *plan = &w->plan;
    uint64_t size = 0;
    for (int32_t s = 0; s < plan->segment_count; s++) {
        for (int32_t p = 0; p < plan->plane_count; p++) {
            if (!plan->present[(int64_t)s * plan->plane_count + p])
                continue;
            add_frame_groups(w, stack_fresh_item(&w->out), s, p);
            size += stack_end_item(&w->out, write);
        }
    }
    return size;
}

int
seg_put_functional_groups(struct seg_writer *w)
{
    struct element_buffer *to = &w->out.set.elements;
    dataset_reach(&w->out.set, TAG_SharedFunctionalGroupsSequence);
    size_t item = element_open_only_item(to, TAG_SharedFunctionalGroupsSequence);
    stack_add_plane_orientation(&w->out, to);
    stack_add_pixel_measures(&w->out, to);
    element_close_only_item(to, item);
    return stack_put_frame_groups(&w->out, stream_frame_groups, w);
}

uint64_t
seg_pixel_data_length(const struct seg_writer *w)
{
    uint64_t voxels = (uint64_t)w->plan.frames * (uint64_t)seg_plan_voxels(w->request);
    if (w->request->fractional)
        return (voxels + 1) / 2 * 2;
    return (voxels + 15) / 16 * 2;
}

static void
write_frame(struct seg_writer *w, struct mask_packer *packer, int32_t segment, int32_t plane)
{
    if (w->request->fractional) {
        seg_scene_append(&w->out.sink, seg_plan_scene(w->request, segment, plane),
                         seg_plan_voxels(w->request));
        return;
    }
    struct mask_plane mask = seg_plan_mask(w->request, segment, plane);
    mask_pack(packer, &mask);
}

void
seg_put_pixel_data(struct seg_writer *w)
{
    const struct seg_plan *plan = &w->plan;
    struct mask_packer packer = {.sink = &w->out.sink};
    stack_put_pixel_header(&w->out, "OB", seg_pixel_data_length(w));
    int64_t start = w->out.sink.total;
    for (int32_t s = 0; s < plan->segment_count; s++) {
        for (int32_t p = 0; p < plan->plane_count && !w->out.sink.error; p++) {
            if (plan->present[(int64_t)s * plan->plane_count + p])
                write_frame(w, &packer, s, p);
        }
    }
    mask_pack_finish(&packer);
    if ((w->out.sink.total - start) % 2)
        byte_sink_append(&w->out.sink, "", 1);
}
