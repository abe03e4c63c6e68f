/*
 * seg.c - writes segmentation objects (PS3.3 A.51), BINARY, FRACTIONAL or LABELMAP, as a stream.
 *
 * The data set is written in one pass, in ascending tag order. stack_writer.c has the parts that all objects made from
 * a stack share, seg_modules.c those of segmentations. dataset_writer.c merges the elements inherited from the source.
 * Pixels are written from the caller's masks or maps to the file's buffer without a copy.
 */
#include "dicom/objects/seg/seg_writer.h"

#include "base/error.h"
#include "dicom/value/tags.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* In the order of enum seg_type. */
static const struct {
    const char *name; /* of the kind, in the identity */
    const char *suffix;
} seg_kinds[] = {{"SEG ", ""}, {"FRACTIONAL SEG ", ", fractional"}, {"LABELMAP SEG ", ", label map"}};

uint16_t
seg_bits(const struct seg_request *request)
{
    if (request->type == SEG_BINARY)
        return 1;
    return request->type == SEG_LABELMAP && request->segment_count > UINT8_MAX ? 16 : 8;
}

int
seg_identify(const struct seg_request *request, struct derived_identity *identity)
{
    const struct derived_kind kind = {seg_kinds[request->type].name, "", request->omit_empty_frames};
    return derived_identify(&request->source, &kind, identity);
}

int
seg_tracking_uid(const struct seg_request *request, const struct seg_segment *segment, char uid[DICOM_UID_SIZE])
{
    if (segment->tracked && segment->tracked->tracking_uid[0] != '\0') {
        snprintf(uid, DICOM_UID_SIZE, "%s", segment->tracked->tracking_uid);
        return 0;
    }
    return derived_part_uid(&request->source, "tracking", segment->label, uid);
}

void
seg_tracking_id(const struct seg_request *request, const struct seg_segment *segment, char id[SEG_TRACKING_ID_SIZE])
{
    if (segment->tracked && segment->tracked->tracking_uid[0] != '\0')
        snprintf(id, SEG_TRACKING_ID_SIZE, "%s", segment->tracked->tracking_id);
    else
        snprintf(id, SEG_TRACKING_ID_SIZE, "%s: %s", request->source.pipeline, segment->label);
}

static const char *
seg_invalid_segment(const struct seg_request *request, const struct seg_segment *segment)
{
    if (segment->label[0] == '\0' || segment->algorithm_name[0] == '\0' || segment->algorithm_version[0] == '\0')
        return "a segment without label or algorithm";
    if (!dataset_code_is_complete(&segment->category) || !dataset_code_is_complete(&segment->type))
        return "a segment without category or type";
    if (dataset_code_is_partial(&segment->modifier) || dataset_code_is_partial(&segment->region) ||
        dataset_code_is_partial(&segment->algorithm_family))
        return "a segment with an incomplete code";
    if (request->type == SEG_FRACTIONAL)
        return segment->map ? NULL : "a segment without a connectedness map";
    if (!segment->bits)
        return "a segment without a mask";
    if (segment->words_per_row < ((int64_t)request->source.stack->columns + 63) / 64)
        return "a mask with too short rows";
    return NULL;
}

static bool
seg_request_is_ascii(const struct seg_request *request)
{
    bool ascii = true;
    for (int32_t i = 0; i < request->segment_count && ascii; i++)
        ascii = seg_segment_is_ascii(&request->segments[i]);
    return ascii;
}

static const struct coded_concept derived_by_segmentation = {"113076", "DCM", "Segmentation"};

/* Returns 0, or rejects a label map with a voxel of two segments. */
static int
seg_check_overlap(const struct seg_writer *w, struct error *error)
{
    const struct seg_request *request = w->request;
    struct seg_overlap found;
    if (request->type != SEG_LABELMAP || request->overlap_last || w->plan.overlap < 0 ||
        !seg_find_overlap(request, w->plan.overlap, &found))
        return 0;
    return error_set(error, -EINVAL, CODE_SEGMENTS_OVERLAP,
                     "Voxel (%d, %d, %d) is in the segments \"%s\" and \"%s\", and a label map has one label per "
                     "voxel. Set overlap = \"last\", change the segments, or write \"seg\".",
                     found.column, found.row, w->plan.overlap, request->segments[found.first].label,
                     request->segments[found.second].label);
}

/* Makes all checks that are possible before the first byte is written. */
static int
seg_prepare(struct seg_writer *w, int fd, struct error *error)
{
    const struct seg_request *request = w->request;
    const char *wrong = NULL;
    if (request->segment_count < 1 || request->segment_count > UINT16_MAX)
        wrong = "no segment, or more than 65535";
    for (int32_t i = 0; i < request->segment_count && !wrong; i++)
        wrong = seg_invalid_segment(request, &request->segments[i]);
    int rc = stack_check(&w->out, wrong, error);
    if (rc)
        return rc;
    dataset_describe(&w->out.set, request->series_description, "%s segmentation%s", request->source.pipeline,
                     seg_kinds[request->type].suffix);
    rc = stack_writer_open(&w->out, seg_request_is_ascii(request), fd, error);
    if (rc)
        return rc;
    if (seg_identify(request, &w->out.set.identity) || seg_plan_make(request, &w->plan))
        return dataset_out_of_memory(&w->out.set, error);
    rc = seg_check_overlap(w, error);
    if (rc)
        return rc;
    if (w->plan.frames == 0)
        return error_set(error, -ENODATA, CODE_SEG_EMPTY,
                         "All segments are empty, and empty frames are omitted. The object would have no frame.");
    if (w->plan.frames > INT32_MAX || seg_pixel_data_length(w) > STACK_MAX_VALUE_LENGTH)
        return error_set(error, -EOVERFLOW, CODE_SEG_TOO_LARGE,
                         "%lld frames of %d x %d exceed 4 GiB, the maximum of one object. Omit "
                         "empty frames or segments.",
                         (long long)w->plan.frames, w->request->source.stack->columns, w->request->source.stack->rows);
    return 0;
}

/* The second is the only one of a LABELMAP. The frames of a 2-D image have no position, but a label. */
static const struct stack_dimension dimensions[] = {
    {TAG_ReferencedSegmentNumber, TAG_SegmentIdentificationSequence, "ReferencedSegmentNumber"},
    {TAG_ImagePositionPatient, TAG_PlanePositionSequence, "ImagePositionPatient"},
};
static const struct stack_dimension flat_dimensions[] = {
    {TAG_ReferencedSegmentNumber, TAG_SegmentIdentificationSequence, "ReferencedSegmentNumber"},
    {TAG_FrameLabel, TAG_FrameContentSequence, "FrameLabel"},
};

/* Returns 0, or why an encoding failed. The sink keeps write errors. */
static int
seg_write_object(struct seg_writer *w)
{
    int error = stack_put_head(&w->out);
    if (error)
        return error;
    const bool labelmap = w->request->type == SEG_LABELMAP;
    stack_put_relationship(&w->out, w->request->series_number,
                           (w->request->source.stack->flat ? flat_dimensions : dimensions) + labelmap, 2 - labelmap);
    stack_put_pixels(&w->out, w->plan.frames, seg_bits(w->request));
    if (labelmap)
        dataset_put_us(&w->out.set, TAG_PixelPaddingValue, 0);
    stack_put_lossiness(&w->out);
    error = seg_put_segments(w);
    if (error)
        return error;
    stack_put_content(&w->out, w->request->source.pipeline, "SEGMENTATION");
    error = seg_put_functional_groups(w);
    if (error)
        return error;
    return seg_put_pixel_data(w);
}

int
seg_write(const struct seg_request *request, int fd, struct derived_summary *summary, struct error *error)
{
    struct seg_writer w = {
        .request = request,
        .out.set.source = &request->source,
        .out.set.object = {.what = "segmentation",
                           .sop_class_uid =
                               request->type == SEG_LABELMAP ? SEG_LABELMAP_SOP_CLASS_UID : SEG_SOP_CLASS_UID,
                           .modality = "SEG"},
        .out.object = {.image_type = "DERIVED\\PRIMARY",
                       .derivation = &derived_by_segmentation,
                       .too_large = CODE_SEG_TOO_LARGE,
                       .invalid = CODE_SEG_REQUEST_INVALID,
                       .follows_source = true,
                       .has_bytes = request->type != SEG_BINARY},
    };
    int rc = seg_prepare(&w, fd, error);
    if (!rc)
        rc = stack_writer_finish(&w.out, seg_write_object(&w), w.plan.frames, summary, error);
    seg_plan_free(&w.plan);
    free(w.frame);
    stack_writer_close(&w.out);
    return rc;
}
