/*
 * seg_frames.c - what grows with instances and frames: the references, the per-frame functional
 * groups, and the pixels.
 *
 * The items of the two long sequences are encoded twice by the same code, first for their sizes,
 * then to be written. That costs about a microsecond a frame and lets every sequence carry an
 * explicit length, which every reader takes and can check; memory stays that of one item.
 */
#include "seg_writer.h"

#include "dicom_tags.h"
#include "mask_bits.h"
#include "seg_internal.h"
#include "seg_scene.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct seg_code derived_by_segmentation = {"113076", "DCM", "Segmentation"};
static const struct seg_code source_for_processing = {
    "121322", "DCM", "Source image for image processing operation"};

void
seg_drain(struct seg_writer *w, struct element_buffer *buffer)
{
    if (!buffer->error)
        byte_sink_append(&w->sink, buffer->bytes, buffer->size);
    buffer->size = 0;
}

/* Starts an item to be streamed. */
static struct element_buffer *
fresh_item(struct seg_writer *w)
{
    w->item.size = 0;
    return &w->item;
}

/* Ends it: its size, and the bytes on their way when `write`. */
static uint64_t
end_item(struct seg_writer *w, bool write)
{
    uint64_t size = w->item.size;
    if (write)
        seg_drain(w, &w->item);
    return size;
}

/* The instances of the stack, once each; returns the bytes of all items. */
static uint64_t
stream_references(struct seg_writer *w, bool write)
{
    uint64_t size = 0;
    memset(w->referenced, 0, (size_t)w->request->instance_count);
    for (int32_t p = 0; p < w->request->stack->plane_count; p++) {
        uint8_t *done = &w->referenced[w->request->stack->planes[p].instance];
        if (*done)
            continue;
        *done = 1;
        const struct dicom_instance *instance = seg_plane_instance(w->request, p);
        struct element_buffer *to = fresh_item(w);
        size_t item = element_open_item(to);
        element_text(to, TAG_ReferencedSOPClassUID, "UI", instance->sop_class_uid);
        element_text(to, TAG_ReferencedSOPInstanceUID, "UI", instance->sop_instance_uid);
        element_close(to, item);
        size += end_item(w, write);
    }
    return size;
}

/* Common Instance Reference Module: all instances the stack was made of, in its order. */
int
seg_put_references(struct seg_writer *w)
{
    const char *series_uid = seg_plane_instance(w->request, 0)->series_uid;
    uint64_t references = stream_references(w, false);
    struct element_buffer series = {0};
    element_text(&series, TAG_SeriesInstanceUID, "UI", series_uid);
    uint64_t item = 12 + references + series.size; /* 12: the inner sequence's head */
    if (references > SEG_MAX_VALUE_LENGTH || item + 8 > SEG_MAX_VALUE_LENGTH) {
        element_buffer_free(&series);
        return -EFBIG;
    }
    dataset_reach(&w->set, TAG_ReferencedSeriesSequence);
    element_header(&w->set.elements, TAG_ReferencedSeriesSequence, "SQ", (uint32_t)(item + 8));
    element_item_header(&w->set.elements, (uint32_t)item);
    element_header(&w->set.elements, TAG_ReferencedInstanceSequence, "SQ", (uint32_t)references);
    seg_drain(w, &w->set.elements);
    stream_references(w, true);
    element_append(&w->set.elements, series.bytes, series.size);
    int error = series.error;
    element_buffer_free(&series);
    return error;
}

/* Derivation Image Functional Group: the one frame that this one was made from. */
static void
add_derivation(const struct seg_writer *w, struct element_buffer *to, int32_t plane)
{
    const struct dicom_instance *source = seg_plane_instance(w->request, plane);
    size_t derivations = element_open_sequence(to, TAG_DerivationImageSequence);
    size_t derivation = element_open_item(to);
    size_t sources = element_open_sequence(to, TAG_SourceImageSequence);
    size_t item = element_open_item(to);
    element_text(to, TAG_ReferencedSOPClassUID, "UI", source->sop_class_uid);
    element_text(to, TAG_ReferencedSOPInstanceUID, "UI", source->sop_instance_uid);
    if (source->multi_frame) {
        char number[16];
        snprintf(number, sizeof(number), "%d", w->request->stack->planes[plane].frame + 1);
        element_text(to, TAG_ReferencedFrameNumber, "IS", number);
    }
    element_text(to, TAG_SpatialLocationsPreserved, "CS", "YES");
    dataset_add_code(&w->set, to, TAG_PurposeOfReferenceCodeSequence, &source_for_processing);
    element_close(to, item);
    element_close(to, sources);
    dataset_add_code(&w->set, to, TAG_DerivationCodeSequence, &derived_by_segmentation);
    element_close(to, derivation);
    element_close(to, derivations);
}

static void
add_plane_position(struct element_buffer *to, const struct dicom_frame *frame)
{
    char values[3][VALUE_DS_SIZE];
    char text[3 * VALUE_DS_SIZE];
    for (int i = 0; i < 3; i++)
        value_ds_copy(frame->position_text[i], frame->position[i], values[i]);
    snprintf(text, sizeof(text), "%s\\%s\\%s", values[0], values[1], values[2]);
    size_t sequence = element_open_sequence(to, TAG_PlanePositionSequence);
    size_t item = element_open_item(to);
    element_text(to, TAG_ImagePositionPatient, "DS", text);
    element_close(to, item);
    element_close(to, sequence);
}

/* The item of Per-frame Functional Groups Sequence for one frame. */
static void
add_frame_groups(const struct seg_writer *w, struct element_buffer *to, int32_t segment,
                 int32_t plane)
{
    const uint32_t indices[2] = {w->plan.segment_index[segment], w->plan.plane_index[plane]};
    const uint16_t number = (uint16_t)(segment + 1);
    size_t groups = element_open_item(to);

    add_derivation(w, to, plane);

    size_t sequence = element_open_sequence(to, TAG_FrameContentSequence);
    size_t item = element_open_item(to);
    element_ul(to, TAG_DimensionIndexValues, indices, 2);
    element_close(to, item);
    element_close(to, sequence);

    add_plane_position(to, seg_plane_frame(w->request, plane));

    sequence = element_open_sequence(to, TAG_SegmentIdentificationSequence);
    item = element_open_item(to);
    element_us(to, TAG_ReferencedSegmentNumber, &number, 1);
    element_close(to, item);
    element_close(to, sequence);

    element_close(to, groups);
}

/* Segment by segment, each in ascending position, as write_pixels does; returns the bytes of all
 * items. */
static uint64_t
stream_frame_groups(struct seg_writer *w, bool write)
{
    const struct seg_plan *plan = &w->plan;
    uint64_t size = 0;
    for (int32_t s = 0; s < plan->segment_count; s++) {
        for (int32_t p = 0; p < plan->plane_count; p++) {
            if (!plan->present[(int64_t)s * plan->plane_count + p])
                continue;
            add_frame_groups(w, fresh_item(w), s, p);
            size += end_item(w, write);
        }
    }
    return size;
}

/* A length computed from positions: digits that are rounding noise are left away. */
static void
format_length(double length, char text[VALUE_DS_SIZE])
{
    const double unit = 1e-9; /* mm */
    double rounded = round(length / unit) * unit;
    char shorter[32];
    snprintf(shorter, sizeof(shorter), "%.12g", rounded);
    value_ds_format(strtod(shorter, NULL), text);
}

static void
add_pixel_measures(struct seg_writer *w, struct element_buffer *to)
{
    const struct geometry_stack *stack = w->request->stack;
    const struct dicom_frame *first = seg_plane_frame(w->request, 0);
    char values[2][VALUE_DS_SIZE];
    char text[2 * VALUE_DS_SIZE];
    size_t sequence = element_open_sequence(to, TAG_PixelMeasuresSequence);
    size_t item = element_open_item(to);
    format_length(first->slice_thickness > 0.0 ? first->slice_thickness : stack->spacing[2], text);
    element_text(to, TAG_SliceThickness, "DS", text);
    if (stack->plane_count > 1) {
        format_length(stack->spacing[2], text);
        element_text(to, TAG_SpacingBetweenSlices, "DS", text);
    }
    for (int i = 0; i < 2; i++)
        value_ds_copy(first->spacing_text[i], first->pixel_spacing[i], values[i]);
    snprintf(text, sizeof(text), "%s\\%s", values[0], values[1]);
    element_text(to, TAG_PixelSpacing, "DS", text);
    element_close(to, item);
    element_close(to, sequence);
}

static void
add_plane_orientation(struct element_buffer *to, const struct dicom_frame *frame)
{
    char text[6 * VALUE_DS_SIZE] = "";
    size_t used = 0;
    for (int i = 0; i < 6; i++) {
        char value[VALUE_DS_SIZE];
        value_ds_copy(frame->orientation_text[i], frame->orientation[i], value);
        used += (size_t)snprintf(text + used, sizeof(text) - used, i ? "\\%s" : "%s", value);
    }
    size_t sequence = element_open_sequence(to, TAG_PlaneOrientationSequence);
    size_t item = element_open_item(to);
    element_text(to, TAG_ImageOrientationPatient, "DS", text);
    element_close(to, item);
    element_close(to, sequence);
}

int
seg_put_functional_groups(struct seg_writer *w)
{
    dataset_reach(&w->set, TAG_SharedFunctionalGroupsSequence);
    size_t sequence = element_open_sequence(&w->set.elements, TAG_SharedFunctionalGroupsSequence);
    size_t item = element_open_item(&w->set.elements);
    add_plane_orientation(&w->set.elements, seg_plane_frame(w->request, 0));
    add_pixel_measures(w, &w->set.elements);
    element_close(&w->set.elements, item);
    element_close(&w->set.elements, sequence);

    uint64_t size = stream_frame_groups(w, false);
    if (size > SEG_MAX_VALUE_LENGTH)
        return -EFBIG;
    dataset_reach(&w->set, TAG_PerFrameFunctionalGroupsSequence);
    element_header(&w->set.elements, TAG_PerFrameFunctionalGroupsSequence, "SQ", (uint32_t)size);
    seg_drain(w, &w->set.elements);
    stream_frame_groups(w, true);
    return 0;
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
        seg_scene_append(&w->sink, seg_plan_scene(w->request, segment, plane),
                         seg_plan_voxels(w->request));
        return;
    }
    struct mask_plane mask = seg_plan_mask(w->request, segment, plane);
    mask_pack(packer, &mask);
}

static void
write_pixels(struct seg_writer *w)
{
    const struct seg_plan *plan = &w->plan;
    struct mask_packer packer = {.sink = &w->sink};
    int64_t start = w->sink.total;
    for (int32_t s = 0; s < plan->segment_count; s++) {
        for (int32_t p = 0; p < plan->plane_count && !w->sink.error; p++) {
            if (plan->present[(int64_t)s * plan->plane_count + p])
                write_frame(w, &packer, s, p);
        }
    }
    mask_pack_finish(&packer);
    if ((w->sink.total - start) % 2)
        byte_sink_append(&w->sink, "", 1);
}

void
seg_put_pixel_data(struct seg_writer *w)
{
    dataset_reach(&w->set, TAG_PixelData);
    element_header(&w->set.elements, TAG_PixelData, "OB", (uint32_t)seg_pixel_data_length(w));
    seg_drain(w, &w->set.elements);
    write_pixels(w);
}
