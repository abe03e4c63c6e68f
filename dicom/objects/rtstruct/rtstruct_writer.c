/*
 * rtstruct_writer.c - writes structure sets, in ascending tag order. stack_writer.c has the file and the checks of the
 * source, and dataset_writer.c the modules that all objects have.
 */
#include "dicom/objects/rtstruct/outliner.h"
#include "dicom/objects/rtstruct/rtstruct_object.h"
#include "dicom/objects/seg/seg_parts.h"
#include "dicom/write/stack_writer.h"

#include "base/error.h"
#include "dicom/value/tags.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    ITEM_END = 0xFFFEE00D,
    SEQUENCE_END = 0xFFFEE0DD,
    MAX_DECIMALS = 7, /* of a pixel of 0.001 mm, the smallest that headers may have */
};

#define RTSTRUCT_ENDLESS  UINT32_MAX /* undefined length */
#define RTSTRUCT_FARTHEST 1e6 /* mm, as in the reader: seven digits, so that no value has more than 16 characters */

/* The class that the standard requires for the reference to a study: Detached Study Management. */
#define RTSTRUCT_STUDY_CLASS "1.2.840.10008.3.1.2.3.1"

struct rtstruct_writer {
    const struct rtstruct_request *request;
    struct stack_writer out;
    struct outliner outliner;
    char *text; /* Contour Data */
    size_t text_size, text_room;
    int decimals;
    double scale; /* 10 to the power of that */
    bool is_far;  /* a point is too far away */
};

int
rtstruct_identify(const struct rtstruct_request *request, struct derived_identity *identity)
{
    const struct derived_kind kind = {"RTSTRUCT ", "", false};
    return derived_identify(&request->seg->source, &kind, identity);
}

/* --- checks --- */

static const char *
rtstruct_invalid_segment(const struct rtstruct_request *request, const struct seg_segment *segment)
{
    if (segment->label[0] == '\0' || segment->algorithm_name[0] == '\0' || segment->algorithm_version[0] == '\0')
        return "a segment without label or algorithm";
    if (!dataset_code_is_complete(&segment->category) || !dataset_code_is_complete(&segment->type) ||
        dataset_code_is_partial(&segment->modifier) || dataset_code_is_partial(&segment->region) ||
        dataset_code_is_partial(&segment->algorithm_family))
        return "a segment with an incomplete code";
    if (!segment->bits || segment->words_per_row < ((int64_t)request->seg->source.stack->columns + 63) / 64)
        return "a segment without a mask";
    return NULL;
}

static int
rtstruct_prepare(struct rtstruct_writer *w, int fd, struct error *error)
{
    const struct rtstruct_request *request = w->request;
    const struct derived_source *source = &request->seg->source;
    const char *wrong = request->seg->segment_count < 1 ? "no segment" : NULL;
    bool ascii = true;
    for (int32_t i = 0; i < request->seg->segment_count && !wrong; i++) {
        wrong = rtstruct_invalid_segment(request, &request->seg->segments[i]);
        ascii = ascii && (wrong || seg_segment_is_ascii(&request->seg->segments[i]));
    }
    int rc = stack_check(&w->out, wrong, error);
    if (rc)
        return rc;
    dataset_describe(&w->out.set, request->series_description, "%s structures", source->pipeline);
    rc = stack_writer_open(&w->out, ascii, fd, error);
    if (rc)
        return rc;
    if (rtstruct_identify(request, &w->out.set.identity) ||
        outliner_open(&w->outliner, source->stack->columns, source->stack->rows))
        return dataset_out_of_memory(&w->out.set, error);
    const double *spacing = derived_plane_frame(source, 0)->pixel_spacing;
    const double allowed = fmin(spacing[0], spacing[1]) * OUTLINE_INSET / 4;
    w->scale = 1;
    while (w->decimals < MAX_DECIMALS && 1 / w->scale > allowed) {
        w->decimals++;
        w->scale *= 10;
    }
    return 0;
}

/* --- sequences of undefined length, which are written as they are made --- */

static void
rtstruct_open_sequence(struct rtstruct_writer *w, uint32_t tag)
{
    element_header(&w->out.item, tag, "SQ", RTSTRUCT_ENDLESS);
}

static void
rtstruct_open_item(struct rtstruct_writer *w)
{
    element_item_header(&w->out.item, RTSTRUCT_ENDLESS);
}

static void
rtstruct_end(struct rtstruct_writer *w, uint32_t end)
{
    element_header(&w->out.item, end, "UN", 0);
    stack_end_item(&w->out, true);
}

/* --- structure set --- */

static void
rtstruct_add_number(struct element_buffer *to, uint32_t tag, int64_t number)
{
    char text[24];
    snprintf(text, sizeof(text), "%lld", (long long)number);
    element_text(to, tag, "IS", text);
}

/* Adds the image of a plane to an open item. */
static void
rtstruct_add_image(const struct rtstruct_writer *w, struct element_buffer *to, int32_t plane)
{
    const struct derived_source *source = w->out.set.source;
    const struct dicom_instance *instance = derived_plane_instance(source, plane);
    dataset_add_reference(to, instance->sop_class_uid, instance->sop_instance_uid);
    if (instance->multi_frame)
        rtstruct_add_number(to, TAG_ReferencedFrameNumber, source->stack->planes[plane].frame + 1);
}

/* Puts the frame of reference with all images of the stack. */
static void
rtstruct_put_images(struct rtstruct_writer *w)
{
    const struct dicom_instance *first = derived_plane_instance(w->out.set.source, 0);
    struct element_buffer *to = &w->out.item;
    dataset_reach(&w->out.set, TAG_ReferencedFrameOfReferenceSequence);
    stack_drain(&w->out, &w->out.set.elements);
    rtstruct_open_sequence(w, TAG_ReferencedFrameOfReferenceSequence);
    rtstruct_open_item(w);
    element_text(to, TAG_FrameOfReferenceUID, "UI", w->out.frame_of_reference_uid);
    rtstruct_open_sequence(w, TAG_RTReferencedStudySequence);
    rtstruct_open_item(w);
    dataset_add_reference(to, RTSTRUCT_STUDY_CLASS, first->study_uid);
    rtstruct_open_sequence(w, TAG_RTReferencedSeriesSequence);
    rtstruct_open_item(w);
    element_text(to, TAG_SeriesInstanceUID, "UI", first->series_uid);
    rtstruct_open_sequence(w, TAG_ContourImageSequence);
    for (int32_t p = 0; p < w->out.set.source->stack->plane_count; p++) {
        const size_t item = element_open_item(to);
        rtstruct_add_image(w, to, p);
        element_close(to, item);
        stack_end_item(&w->out, true);
    }
    rtstruct_end(w, SEQUENCE_END);
    for (int level = 0; level < 3; level++) {
        rtstruct_end(w, ITEM_END);
        rtstruct_end(w, SEQUENCE_END);
    }
}

static void
rtstruct_put_set(struct rtstruct_writer *w)
{
    struct dataset_writer *set = &w->out.set;
    const struct derived_reference *replaced = set->identity.replaces;
    const char *remark = set->source->remark;
    dataset_reach(set, TAG_StructureSetLabel);
    dataset_add_clean(set, &set->elements, TAG_StructureSetLabel, "SH", set->source->pipeline, SH_CHARACTERS,
                      VALUE_LINE);
    dataset_put_line(set, TAG_StructureSetName, set->object.description);
    if (remark && *remark)
        dataset_add_clean(set, &set->elements, TAG_StructureSetDescription, "ST", remark, ST_CHARACTERS, VALUE_LINES);
    dataset_put_text(set, TAG_StructureSetDate, "DA", set->date);
    dataset_put_text(set, TAG_StructureSetTime, "TM", set->time);
    rtstruct_put_images(w);
    if (!replaced)
        return;
    const size_t item = dataset_open_only_item(set, TAG_PredecessorStructureSetSequence);
    dataset_add_reference(&set->elements, RTSTRUCT_CLASS_UID, replaced->sop_instance_uid);
    element_close_only_item(&set->elements, item);
}

static void
rtstruct_put_rois(struct rtstruct_writer *w)
{
    const struct dataset_writer *set = &w->out.set;
    struct element_buffer *to = &w->out.item;
    rtstruct_open_sequence(w, TAG_StructureSetROISequence);
    for (int32_t i = 0; i < w->request->seg->segment_count; i++) {
        const struct seg_segment *segment = &w->request->seg->segments[i];
        const char *name = seg_algorithm_name(segment, 0);
        const size_t item = element_open_item(to);
        rtstruct_add_number(to, TAG_ROINumber, i + 1);
        element_text(to, TAG_ReferencedFrameOfReferenceUID, "UI", w->out.frame_of_reference_uid);
        dataset_add_line(set, to, TAG_ROIName, segment->label);
        if (segment->description[0])
            dataset_add_clean(set, to, TAG_ROIDescription, "ST", segment->description, ST_CHARACTERS, VALUE_LINES);
        element_text(to, TAG_ROIGenerationAlgorithm, "CS", seg_algorithm_type(segment));
        seg_add_algorithms(set, to, TAG_ROIDerivationAlgorithmIdentificationSequence, segment);
        if (name)
            dataset_add_line(set, to, TAG_ROIGenerationDescription, name);
        element_close(to, item);
        stack_end_item(&w->out, true);
    }
    rtstruct_end(w, SEQUENCE_END);
}

/* --- contours --- */

/* Appends a decimal and a backslash to the text. Returns 0 or -ENOMEM. */
static int
rtstruct_append(struct rtstruct_writer *w, double value)
{
    char digits[32];
    size_t at = sizeof(digits);
    if (w->text_room - w->text_size < sizeof(digits)) {
        const size_t room = w->text_room ? 2 * w->text_room : 65536;
        char *text = realloc(w->text, room);
        if (!text)
            return -ENOMEM;
        w->text = text;
        w->text_room = room;
    }
    w->is_far |= !(fabs(value) <= RTSTRUCT_FARTHEST);
    if (w->is_far)
        return 0;
    const int64_t scaled = llrint(value * w->scale);
    uint64_t rest = (uint64_t)llabs(scaled);
    digits[--at] = '\\';
    bool started = false; /* zeros at the end of the fraction are left out */
    for (int i = 0; i < w->decimals; i++, rest /= 10) {
        started |= rest % 10 != 0;
        if (started)
            digits[--at] = (char)('0' + rest % 10);
    }
    if (started)
        digits[--at] = '.';
    do
        digits[--at] = (char)('0' + rest % 10);
    while (rest /= 10);
    if (scaled < 0)
        digits[--at] = '-';
    memcpy(w->text + w->text_size, digits + at, sizeof(digits) - at);
    w->text_size += sizeof(digits) - at;
    return 0;
}

/* Writes the outliner's current outline of `count` points as a contour of a plane. */
static int
rtstruct_put_contour(struct rtstruct_writer *w, int32_t plane, int32_t count, const char *type)
{
    const struct dicom_frame *first = derived_plane_frame(w->out.set.source, 0);
    const double *origin = derived_plane_frame(w->out.set.source, plane)->position, *axes = first->orientation;
    struct element_buffer *to = &w->out.item;
    w->text_size = 0;
    for (int32_t i = 0; i < count; i++) {
        const double x = outline_place(w->outliner.points[i].x) * first->pixel_spacing[1];
        const double y = outline_place(w->outliner.points[i].y) * first->pixel_spacing[0];
        for (int k = 0; k < 3; k++)
            if (rtstruct_append(w, origin[k] + x * axes[k] + y * axes[k + 3]))
                return -ENOMEM;
    }
    if (w->is_far)
        return -ERANGE;
    const size_t item = element_open_item(to);
    const size_t image = element_open_only_item(to, TAG_ContourImageSequence);
    rtstruct_add_image(w, to, plane);
    element_close_only_item(to, image);
    element_text(to, TAG_ContourGeometricType, "CS", type);
    rtstruct_add_number(to, TAG_NumberOfContourPoints, count);
    w->text[w->text_size - 1] = ' '; /* pads an odd length */
    element_header(to, TAG_ContourData, "DS", (uint32_t)(w->text_size / 2 * 2));
    element_append(to, w->text, w->text_size / 2 * 2);
    element_close(to, item);
    stack_end_item(&w->out, true);
    return 0;
}

static struct mask_plane
rtstruct_plane(const struct rtstruct_writer *w, const struct seg_segment *segment, int32_t plane)
{
    const struct geometry_stack *stack = w->out.set.source->stack;
    return (struct mask_plane){segment->bits + (int64_t)plane * stack->rows * segment->words_per_row,
                               segment->words_per_row, stack->columns, stack->rows};
}

/* Sets `has` if a plane of the segment has a hole. */
static int
rtstruct_find_hole(struct rtstruct_writer *w, const struct seg_segment *segment, bool *has)
{
    int rc = 0;
    *has = false;
    for (int32_t p = 0; p < w->out.set.source->stack->plane_count && rc == 0 && !*has; p++) {
        const struct mask_plane plane = rtstruct_plane(w, segment, p);
        rc = outliner_trace(&w->outliner, &plane, false);
        *has = rc == 0 && outliner_has_hole(&w->outliner);
    }
    return rc;
}

static int
rtstruct_put_contours(struct rtstruct_writer *w, const struct seg_segment *segment)
{
    bool is_xor = false, any = false;
    int rc = w->request->xor_holes ? rtstruct_find_hole(w, segment, &is_xor) : 0;
    for (int32_t p = 0; p < w->out.set.source->stack->plane_count && rc == 0; p++) {
        const struct mask_plane plane = rtstruct_plane(w, segment, p);
        if (!mask_any(&plane))
            continue;
        if (!any)
            rtstruct_open_sequence(w, TAG_ContourSequence);
        any = true;
        rc = outliner_trace(&w->outliner, &plane, !is_xor);
        for (int32_t count; rc == 0 && (count = outliner_next(&w->outliner));)
            rc = count < 0 ? count : rtstruct_put_contour(w, p, count, is_xor ? "CLOSEDPLANAR_XOR" : "CLOSED_PLANAR");
    }
    if (any)
        rtstruct_end(w, SEQUENCE_END);
    return rc;
}

static int
rtstruct_put_all_contours(struct rtstruct_writer *w)
{
    struct element_buffer *to = &w->out.item;
    int rc = 0;
    rtstruct_open_sequence(w, TAG_ROIContourSequence);
    for (int32_t i = 0; i < w->request->seg->segment_count && rc == 0 && !w->out.sink.error; i++) {
        const struct seg_segment *segment = &w->request->seg->segments[i];
        char color[16];
        snprintf(color, sizeof(color), "%ld\\%ld\\%ld", lround(255 * segment->color_rgb[0]),
                 lround(255 * segment->color_rgb[1]), lround(255 * segment->color_rgb[2]));
        rtstruct_open_item(w);
        element_text(to, TAG_ROIDisplayColor, "IS", color);
        rc = rtstruct_put_contours(w, segment);
        rtstruct_add_number(to, TAG_ReferencedROINumber, i + 1);
        rtstruct_end(w, ITEM_END);
    }
    rtstruct_end(w, SEQUENCE_END);
    return rc;
}

static void
rtstruct_put_observations(struct rtstruct_writer *w)
{
    const struct dataset_writer *set = &w->out.set;
    struct element_buffer *to = &w->out.item;
    rtstruct_open_sequence(w, TAG_RTROIObservationsSequence);
    for (int32_t i = 0; i < w->request->seg->segment_count; i++) {
        const struct seg_segment *segment = &w->request->seg->segments[i];
        const size_t item = element_open_item(to);
        if (segment->region.value)
            dataset_add_code(set, to, TAG_AnatomicRegionSequence, &segment->region);
        dataset_add_code(set, to, TAG_SegmentedPropertyCategoryCodeSequence, &segment->category);
        rtstruct_add_number(to, TAG_ObservationNumber, i + 1);
        rtstruct_add_number(to, TAG_ReferencedROINumber, i + 1);
        seg_add_type(set, to, TAG_RTROIIdentificationCodeSequence, segment);
        element_text(to, TAG_RTROIInterpretedType, "CS", w->request->types[i]);
        element_text(to, TAG_ROIInterpreter, "PN", "");
        element_close(to, item);
        stack_end_item(&w->out, true);
    }
    rtstruct_end(w, SEQUENCE_END);
}

/* Returns 0, or why an encoding failed. The sink keeps write errors. */
static int
rtstruct_write_object(struct rtstruct_writer *w)
{
    struct dataset_writer *set = &w->out.set;
    dataset_put_file_meta(set);
    w->out.item.implicit = set->elements.implicit;
    dataset_put_identification(set);
    dataset_put_patient_and_equipment(set);
    dataset_put_series(set, w->request->series_number);
    dataset_put_text(set, TAG_FrameOfReferenceUID, "UI", w->out.frame_of_reference_uid);
    dataset_put_inherited(set, TAG_PositionReferenceIndicator, "LO");
    rtstruct_put_set(w);
    stack_drain(&w->out, &set->elements);
    rtstruct_put_rois(w);
    const int rc = rtstruct_put_all_contours(w);
    rtstruct_put_observations(w);
    dataset_put_text(set, TAG_ApprovalStatus, "CS", "UNAPPROVED");
    stack_drain(&w->out, &set->elements);
    return rc;
}

int
rtstruct_write(const struct rtstruct_request *request, int fd, struct derived_summary *summary, struct error *error)
{
    struct rtstruct_writer w = {
        .request = request,
        .out.set.source = &request->seg->source,
        .out.set.object = {.what = "structure set",
                           .sop_class_uid = RTSTRUCT_CLASS_UID,
                           .modality = "RTSTRUCT",
                           .transfer_syntax_uid =
                               DICOM_IMPLICIT_LITTLE, /* a DS of Explicit VR has at most 65534 bytes */
                           .is_rt = true},
        .out.object = {.too_large = CODE_RTSTRUCT_TOO_LARGE, .invalid = CODE_RTSTRUCT_REQUEST_INVALID},
    };
    int rc = rtstruct_prepare(&w, fd, error);
    if (!rc) {
        rc = rtstruct_write_object(&w);
        rc = rc == -ERANGE
                 ? error_set(error, -EOVERFLOW, CODE_RTSTRUCT_TOO_LARGE,
                             "A slice reaches more than %.0f mm from the origin of the patient, which readers "
                             "of contours refuse.",
                             RTSTRUCT_FARTHEST)
                 : stack_writer_finish(&w.out, rc, 0, summary, error);
    }
    free(w.text);
    outliner_close(&w.outliner);
    stack_writer_close(&w.out);
    return rc;
}
