/*
 * seg_modules.c - parts that only segmentation objects have (PS3.3 A.51.3, A.51.5): segments,
 * and functional groups. Each group of tags is in ascending order.
 */
#include "dicom/objects/seg/seg_writer.h"

#include "base/limits.h"
#include "dicom/value/tags.h"
#include "dicom/value/value.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static int
add_segment(const struct seg_writer *w, struct element_buffer *to, int32_t index)
{
    const struct seg_segment *segment = &w->request->segments[index];
    const uint16_t number = (uint16_t)(index + 1);
    uint16_t lab[3];
    value_lab_from_srgb(segment->color_rgb, lab);

    size_t item = element_open_item(to);
    if (segment->region.value)
        dataset_add_code(&w->out.set, to, TAG_AnatomicRegionSequence, &segment->region);
    dataset_add_code(&w->out.set, to, TAG_SegmentedPropertyCategoryCodeSequence, &segment->category);
    element_us(to, TAG_SegmentNumber, &number, 1);
    dataset_add_line(&w->out.set, to, TAG_SegmentLabel, segment->label);
    if (segment->description[0] != '\0')
        dataset_add_clean(&w->out.set, to, TAG_SegmentDescription, "ST", segment->description, ST_CHARACTERS,
                          VALUE_LINES);
    seg_add_algorithms(&w->out.set, to, TAG_SegmentationAlgorithmIdentificationSequence, segment);
    element_text(to, TAG_SegmentAlgorithmType, "CS", seg_algorithm_type(segment));
    /* Segment Algorithm Name may have several values (LO). */
    char text[(LIMIT_VALUES + 1) * (4 * LO_CHARACTERS + 1)];
    size_t length = 0;
    const char *name;
    for (size_t i = 0; i <= LIMIT_VALUES && (name = seg_algorithm_name(segment, i)); i++) {
        char *value = value_text_clean(name, LO_CHARACTERS, VALUE_LINE, w->out.set.ascii_only);
        if (value)
            length += (size_t)snprintf(text + length, sizeof(text) - length, "%s%s", i > 0 ? "\\" : "", value);
        else
            element_fail(to, -ENOMEM);
        free(value);
    }
    if (length > 0)
        element_text(to, TAG_SegmentAlgorithmName, "LO", text);
    element_us(to, TAG_RecommendedDisplayCIELabValue, lab, 3);
    seg_add_type(&w->out.set, to, TAG_SegmentedPropertyTypeCodeSequence, segment);
    char uid[DICOM_UID_SIZE], id[SEG_TRACKING_ID_SIZE];
    int error = seg_tracking_uid(w->request, segment, uid);
    if (!error) {
        seg_tracking_id(w->request, segment, id);
        dataset_add_clean(&w->out.set, to, TAG_TrackingID, "UT", id, SIZE_MAX, VALUE_LINES);
        element_text(to, TAG_TrackingUID, "UI", uid);
    }
    element_close(to, item);
    return error;
}

/* Every pixel value of a label map must be described, also that of the voxels in no segment (PS3.3 C.8.20.2.3). */
static void
add_background(const struct seg_writer *w, struct element_buffer *to)
{
    static const struct coded_concept background = {"125040", "DCM", "Background"};
    static const uint16_t number = 0;
    static const uint16_t black[3] = {0, 0x8080, 0x8080};
    size_t item = element_open_item(to);
    dataset_add_code(&w->out.set, to, TAG_SegmentedPropertyCategoryCodeSequence, &background);
    element_us(to, TAG_SegmentNumber, &number, 1);
    element_text(to, TAG_SegmentLabel, "LO", "Background");
    element_text(to, TAG_SegmentAlgorithmType, "CS", "AUTOMATIC");
    element_text(to, TAG_SegmentAlgorithmName, "LO", "Noctule");
    element_us(to, TAG_RecommendedDisplayCIELabValue, black, 3);
    dataset_add_code(&w->out.set, to, TAG_SegmentedPropertyTypeCodeSequence, &background);
    element_close(to, item);
}

int
seg_put_segments(struct seg_writer *w)
{
    static const char *const types[] = {"BINARY", "FRACTIONAL", "LABELMAP"};
    const enum seg_type type = w->request->type;
    const bool fractional = type == SEG_FRACTIONAL;
    int error = 0;
    dataset_put_text(&w->out.set, TAG_SegmentationType, "CS", types[type]);
    dataset_reach(&w->out.set, TAG_SegmentSequence);
    size_t sequence = element_open_sequence(&w->out.set.elements, TAG_SegmentSequence);
    if (type == SEG_LABELMAP)
        add_background(w, &w->out.set.elements);
    for (int32_t i = 0; i < w->request->segment_count && !error; i++)
        error = add_segment(w, &w->out.set.elements, i);
    element_close(&w->out.set.elements, sequence);
    if (fractional) {
        dataset_put_us(&w->out.set, TAG_MaximumFractionalValue, SEG_FRACTIONAL_MAX);
        dataset_put_text(&w->out.set, TAG_SegmentationFractionalType, "CS", "PROBABILITY");
    }
    /* Probabilities have no sharp borders. */
    const char *overlap = w->plan.overlap >= 0 && type == SEG_BINARY ? "YES" : "NO";
    if (fractional && w->request->segment_count > 1)
        overlap = "UNDEFINED";
    dataset_put_text(&w->out.set, TAG_SegmentsOverlap, "CS", overlap);
    return error;
}

/* --- frames --- */

/* Encodes segment by segment, each in ascending position, in the order of seg_put_pixel_data.
 * Returns the bytes of all items. */
static uint64_t
stream_frame_groups(void *context, bool write)
{
    struct seg_writer *w = context;
    const struct seg_plan *plan = &w->plan;
    const bool labelmap = w->request->type == SEG_LABELMAP;
    const struct geometry_stack *stack = w->request->source.stack;
    uint64_t size = 0;
    for (int32_t s = 0; s < plan->segment_count; s++) {
        for (int32_t p = 0; p < plan->plane_count; p++) {
            if (!plan->present[(int64_t)s * plan->plane_count + p])
                continue;
            /* Adds the item of the Per-frame Functional Groups Sequence for one frame. */
            struct element_buffer *to = &w->out.item;
            const uint32_t indices[2] = {w->plan.segment_index[s], w->plan.plane_index[p]};
            const uint16_t number = (uint16_t)(s + 1);
            char label[16];
            snprintf(label, sizeof(label), "%d", stack->planes[p].frame + 1);
            size_t groups = element_open_item(to);

            stack_add_derivation(&w->out, to, p);
            stack_add_frame_content(to, indices + labelmap, 2 - labelmap, stack->flat ? label : NULL);
            stack_add_plane_position(&w->out, to, p);
            stack_add_measures(&w->out, to, p);

            if (!labelmap) {
                size_t item = element_open_only_item(to, TAG_SegmentIdentificationSequence);
                element_us(to, TAG_ReferencedSegmentNumber, &number, 1);
                element_close_only_item(to, item);
            }

            element_close(to, groups);
            size += stack_end_item(&w->out, write);
        }
    }
    return size;
}

int
seg_put_functional_groups(struct seg_writer *w)
{
    struct element_buffer *to = &w->out.set.elements;
    size_t item = dataset_open_only_item(&w->out.set, TAG_SharedFunctionalGroupsSequence);
    stack_add_shared_derivation(&w->out, to);
    stack_add_plane_orientation(&w->out, to);
    stack_add_measures(&w->out, to, STACK_SHARED);
    element_close_only_item(to, item);
    return stack_put_frame_groups(&w->out, stream_frame_groups, w);
}
