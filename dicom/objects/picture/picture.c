/*
 * picture.c - writes Secondary Capture objects in true colour (PS3.3 A.8.1, A.8.5) as a stream.
 *
 * The data set is written in one pass, in ascending tag order. stack_writer.c has the parts that all objects made from
 * a stack share; this file has the rest.
 */
#include "dicom/objects/picture/picture.h"

#include "base/error.h"
#include "dicom/value/tags.h"
#include "dicom/write/stack_writer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHANNELS = 3, VECTOR_ROOM = UINT16_MAX - 1 };

struct picture_writer {
    const struct picture_request *request;
    struct stack_writer out;
    struct picture_frame place; /* of the only frame */
    char number[16];            /* Instance Number */
};

int
picture_identify(const struct picture_request *request, struct derived_identity *identity)
{
    char after[160];
    struct derived_source first = *request->source;
    struct derived_identity series;
    snprintf(after, sizeof(after), " %d, %s", request->only, request->drawing);
    const struct derived_kind kind = {"Picture ", after, false};
    int rc = derived_identify(request->source, &kind, identity);
    if (rc)
        return rc;
    first.earlier = NULL;
    snprintf(after, sizeof(after), "s, %s", request->drawing);
    rc = derived_identify(&first, &kind, &series);
    memcpy(identity->series_uid, series.series_uid, DICOM_UID_SIZE);
    if (rc)
        *identity = (struct derived_identity){{0}, {0}, {0}, NULL};
    return rc;
}

static int32_t
picture_frames(const struct picture_request *request)
{
    return request->only < 0 ? request->slices : 1;
}

static uint64_t
frame_bytes(const struct picture_request *request)
{
    return (uint64_t)request->rows * (uint64_t)request->columns * CHANNELS;
}

static int
picture_prepare(struct picture_writer *w, int fd, struct error *error)
{
    const struct picture_request *request = w->request;
    const char *modality = derived_plane_instance(request->source, 0)->modality;
    const bool wrong = request->slices < 1 || request->only > request->slices || request->rows < 1 ||
                       request->rows > UINT16_MAX || request->columns < 1 || request->columns > UINT16_MAX;
    int rc = stack_check(&w->out, wrong ? "no frame, or one of a size beyond 65535" : NULL, error);
    if (rc)
        return rc;
    const uint64_t length = frame_bytes(request) * (uint64_t)picture_frames(request);
    if (length > STACK_MAX_VALUE_LENGTH)
        return error_set(error, -EOVERFLOW, CODE_PICTURE_TOO_LARGE,
                         "%d frames of %d x %d in colour exceed 4 GiB, the maximum of one object. Set picture_frames = "
                         "\"single\" in the pipeline.",
                         request->slices, request->columns, request->rows);
    w->out.set.object.modality = modality[0] ? modality : "OT";
    dataset_describe(&w->out.set, request->series_description, "%s, pictures", request->source->pipeline);
    rc = stack_writer_open(&w->out, value_text_is_ascii(request->comment), fd, error);
    if (rc)
        return rc;
    return picture_identify(request, &w->out.set.identity) ? dataset_out_of_memory(&w->out.set, error) : 0;
}

/* --- modules --- */

/* Puts the numbers of the frames, to which Frame Increment Pointer refers (PS3.3 C.8.6.4). */
static void
put_page_numbers(struct picture_writer *w)
{
    const int32_t count = picture_frames(w->request);
    char *text = malloc(12 * (size_t)count + 1);
    size_t used = 0;
    if (!text) {
        element_fail(&w->out.set.elements, -ENOMEM);
        return;
    }
    for (int32_t i = 0; i < count; i++)
        used += (size_t)snprintf(text + used, 12, "%s%d", i > 0 ? "\\" : "", i + 1);
    if (used <= VECTOR_ROOM)
        dataset_put_text(&w->out.set, TAG_PageNumberVector, "IS", text);
    else
        element_fail(&w->out.set.elements, -EOVERFLOW);
    free(text);
}

/* Puts decimals, separated by backslashes. */
static void
add_decimals(struct element_buffer *to, uint32_t tag, const double *numbers, int count)
{
    char text[6 * VALUE_DS_SIZE];
    size_t used = 0;
    for (int i = 0; i < count; i++) {
        char value[VALUE_DS_SIZE];
        value_ds_format(numbers[i], value);
        used += (size_t)snprintf(text + used, sizeof(text) - used, i > 0 ? "\\%s" : "%s", value);
    }
    element_text(to, tag, "DS", text);
}

/* Puts the groups that all frames share. Positions need a frame of reference, which the object then has. */
static void
picture_put_shared(struct picture_writer *w)
{
    const struct picture_request *request = w->request;
    struct element_buffer *to = &w->out.set.elements;
    size_t item = dataset_open_only_item(&w->out.set, TAG_SharedFunctionalGroupsSequence);
    if (request->placed) {
        size_t group = element_open_only_item(to, TAG_PlaneOrientationSequence);
        add_decimals(to, TAG_ImageOrientationPatient, request->orientation, 6);
        element_close_only_item(to, group);
        group = element_open_only_item(to, TAG_PixelMeasuresSequence);
        add_decimals(to, TAG_SliceThickness, &request->thickness, 1);
        add_decimals(to, TAG_PixelSpacing, request->spacing, 2);
        element_close_only_item(to, group);
    }
    element_close_only_item(to, item);
}

static uint64_t
picture_encode_groups(void *context, bool write)
{
    struct picture_writer *w = context;
    struct element_buffer *to = &w->out.item;
    uint64_t size = 0;
    for (int32_t i = 0; i < w->request->slices; i++) {
        struct picture_frame place = {0};
        w->request->describe(w->request->context, i, &place);
        size_t groups = element_open_item(to);
        if (w->request->placed) {
            size_t group = element_open_only_item(to, TAG_PlanePositionSequence);
            add_decimals(to, TAG_ImagePositionPatient, place.position, 3);
            element_close_only_item(to, group);
        }
        element_close(to, groups);
        size += stack_end_item(&w->out, write);
    }
    return size;
}

static void
put_image(struct picture_writer *w)
{
    const struct picture_request *request = w->request;
    struct dataset_writer *set = &w->out.set;
    char count[16];
    dataset_put_us(set, TAG_SamplesPerPixel, CHANNELS);
    dataset_put_text(set, TAG_PhotometricInterpretation, "CS", "RGB");
    dataset_put_us(set, TAG_PlanarConfiguration, 0);
    if (request->only < 0) {
        snprintf(count, sizeof(count), "%d", request->slices);
        dataset_put_text(set, TAG_NumberOfFrames, "IS", count);
        if (request->slices > 1) { /* not allowed for one frame (PS3.3 C.7.6.6) */
            dataset_reach(set, TAG_FrameIncrementPointer);
            element_at(&set->elements, TAG_FrameIncrementPointer, TAG_PageNumberVector);
        }
    }
    dataset_put_us(set, TAG_Rows, (uint16_t)request->rows);
    dataset_put_us(set, TAG_Columns, (uint16_t)request->columns);
    dataset_put_us(set, TAG_BitsAllocated, 8);
    dataset_put_us(set, TAG_BitsStored, 8);
    dataset_put_us(set, TAG_HighBit, 7);
    dataset_put_us(set, TAG_PixelRepresentation, 0);
    dataset_put_text(set, TAG_BurnedInAnnotation, "CS", request->burned_in ? "YES" : "NO");
    if (request->recognizable)
        dataset_put_text(set, TAG_RecognizableVisualFeatures, "CS", "YES");
    stack_put_lossiness(&w->out);
}

/* Draws the frames and puts their pixels. Returns 0 or -ENOMEM. */
static int
put_pixels(struct picture_writer *w)
{
    const struct picture_request *request = w->request;
    const int32_t first = request->only < 0 ? 0 : request->only, end = first + picture_frames(request);
    const uint64_t bytes = frame_bytes(request), length = bytes * (uint64_t)(end - first);
    struct rle_frame frame = {NULL, CHANNELS, (size_t)request->columns, (size_t)request->rows};
    uint8_t *rgb = malloc((size_t)bytes * (size_t)(end - first < PICTURE_BATCH ? end - first : PICTURE_BATCH));
    int rc = rgb ? 0 : -ENOMEM;
    stack_put_pixel_header(&w->out, "OB", length + length % 2);
    const int64_t begun = w->out.sink.total;
    for (int32_t i = first; i < end && rc == 0 && !w->out.sink.error; i += PICTURE_BATCH) {
        const int32_t count = end - i < PICTURE_BATCH ? end - i : PICTURE_BATCH;
        rc = request->draw(request->context, i, count, rgb);
        if (rc == 0 && !stack_is_rle(&w->out))
            byte_sink_append(&w->out.sink, rgb, (size_t)bytes * (size_t)count);
        for (int32_t k = 0; k < count && rc == 0 && stack_is_rle(&w->out); k++) {
            frame.bytes = rgb + bytes * (size_t)k;
            rc = stack_put_rle_frame(&w->out, &frame);
        }
    }
    stack_end_pixels(&w->out, begun);
    free(rgb);
    return rc;
}

/* --- the object --- */

/* Returns 0, or why an encoding failed. The sink keeps write errors. */
static int
picture_write_object(struct picture_writer *w)
{
    const struct picture_request *request = w->request;
    struct dataset_writer *set = &w->out.set;
    int error = stack_put_head(&w->out);
    if (error)
        return error;
    if (request->only < 0 && request->slices > 1)
        put_page_numbers(w);
    dataset_put_series(set, request->series_number);
    dataset_put_text(set, TAG_PatientOrientation, "CS", "");
    if (request->only < 0 && request->placed)
        dataset_put_text(set, TAG_FrameOfReferenceUID, "UI", w->out.frame_of_reference_uid);
    dataset_put_text(set, TAG_Laterality, "CS", "");
    if (request->only < 0 && request->placed)
        dataset_put_inherited(set, TAG_PositionReferenceIndicator, "LO");
    else
        dataset_reach(set, TAG_PositionReferenceIndicator); /* the source's is left out */
    dataset_reach(set, TAG_ImageComments);
    dataset_add_clean(set, &set->elements, TAG_ImageComments, "LT", request->comment, ST_CHARACTERS, VALUE_LINES);
    put_image(w);
    if (request->only < 0) {
        picture_put_shared(w);
        error = stack_put_frame_groups(&w->out, picture_encode_groups, w);
        if (error)
            return error;
    }
    return put_pixels(w);
}

int
picture_write(const struct picture_request *request, int fd, struct derived_summary *summary, struct error *error)
{
    static const struct coded_concept segmentation = {"113076", "DCM", "Segmentation"};
    struct picture_writer w = {
        .request = request,
        .out.set.source = request->source,
        .out.set.object = {.what = "picture",
                           .sop_class_uid = request->only < 0 ? PICTURE_SOP_CLASS : PICTURE_SINGLE_SOP_CLASS,
                           .conversion = "WSD",
                           .instance = w.number},
        .out.object = {.image_type = "DERIVED\\SECONDARY",
                       .derivation = &segmentation,
                       .too_large = CODE_PICTURE_TOO_LARGE,
                       .invalid = CODE_PICTURE_REQUEST_INVALID,
                       .has_bytes = true,
                       .flat = true},
    };
    snprintf(w.number, sizeof(w.number), "%d", request->only < 0 ? 1 : request->only + 1);
    w.out.object.source_count = (size_t)request->source->stack->plane_count; /* of all frames in one object */
    if (request->only >= 0) {
        request->describe(request->context, request->only, &w.place);
        w.out.object.sources = w.place.planes;
        w.out.object.source_count = w.place.plane_count;
    }
    int rc = picture_prepare(&w, fd, error);
    if (!rc)
        rc = stack_writer_finish(&w.out, picture_write_object(&w), picture_frames(request), summary, error);
    stack_writer_close(&w.out);
    return rc;
}
