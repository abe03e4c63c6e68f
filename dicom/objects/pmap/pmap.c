/*
 * pmap.c - writes parametric maps (PS3.3 A.75) as a stream.
 *
 * The data set is written in one go in ascending tag order: stack_writer.c has what all objects
 * made from a stack have, pmap_modules.c what only maps have. Codes go from the caller's array
 * straight into the file's buffer.
 */
#include "dicom/objects/pmap/pmap.h"

#include "base/error.h"
#include "dicom/objects/pmap/pmap_writer.h"
#include "dicom/value/tags.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum {
    MIN_SIZE = 3, /* of a plane that has a voxel which is not on its edge */
    BITS = 16,
    BYTES = BITS / 8,
};

static bool
is_kind(const char *kind)
{
    size_t length = strlen(kind);
    return length > 0 && length < PMAP_KIND_SIZE &&
           strspn(kind, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_") ==
               length;
}

static const char *
pmap_invalid_request(const struct pmap_request *request)
{
    const struct geometry_stack *stack = request->source->stack;
    if (stack->plane_count < 1 || stack->rows < 1 || stack->rows > UINT16_MAX ||
        stack->columns < 1 || stack->columns > UINT16_MAX)
        return "a stack without planes or with a size beyond 65535";
    if (request->source->device_serial_number[0] == '\0' ||
        request->source->software_version[0] == '\0')
        return "no serial number or version";
    if (!is_kind(request->kind))
        return "a kind that is no name";
    if (!dataset_code_is_whole(&request->quantity) || request->explanation[0] == '\0')
        return "no quantity or explanation";
    return request->codes ? NULL : "no codes";
}

static uint64_t
pixel_data_length(const struct geometry_stack *stack)
{
    return (uint64_t)stack->plane_count * (uint64_t)stack->rows * (uint64_t)stack->columns * BYTES;
}

static int
pmap_check_request(const struct pmap_request *request, struct error *error)
{
    const struct geometry_stack *stack = request->source->stack;
    const char *what = pmap_invalid_request(request);
    if (what)
        return error_set(error, -EINVAL, CODE_PMAP_REQUEST_INVALID,
                         "The parametric map cannot be written: %s. This is a defect of Noctule.",
                         what);
    if (!stack->has_geometry)
        return error_set_files(error, -EINVAL, CODE_NO_GEOMETRY,
                               derived_plane_instance(request->source, 0)->path, NULL,
                               "The planes have no position in the patient, which a parametric map "
                               "needs.");
    if (stack->columns < MIN_SIZE || stack->rows < MIN_SIZE)
        return error_set(error, -ENODATA, CODE_PMAP_EMPTY,
                         "Planes of %d x %d voxels have none that is not on their edge: there is "
                         "no pattern to write.",
                         stack->columns, stack->rows);
    if (pixel_data_length(stack) > STACK_MAX_VALUE_LENGTH)
        return error_set(error, -EFBIG, CODE_PMAP_TOO_LARGE,
                         "%d planes of %d x %d are more than the 4 GiB of one object.",
                         stack->plane_count, stack->columns, stack->rows);
    return 0;
}

static bool
pmap_request_is_ascii(const struct pmap_request *request)
{
    return value_text_is_ascii(request->source->pipeline) &&
           value_text_is_ascii(request->source->software_version) &&
           value_text_is_ascii(request->source->device_serial_number) &&
           value_text_is_ascii(request->series_description) &&
           value_text_is_ascii(request->explanation) && dataset_code_is_ascii(&request->quantity);
}

/* What people read in a list of series. */
static const char *
pmap_describe(struct pmap_writer *w)
{
    const struct pmap_request *request = w->request;
    if (request->series_description[0] != '\0')
        return request->series_description;
    snprintf(w->description, sizeof(w->description), "%s, %s map", request->source->pipeline,
             request->kind);
    return w->description;
}

static int
pmap_prepare(struct pmap_writer *w, int fd, struct error *error)
{
    const struct pmap_request *request = w->request;
    const char *modality = derived_plane_instance(request->source, 0)->modality;
    pmap_label(request, w->label);
    w->out.set.source = request->source;
    w->out.set.object = (struct dataset_object){
        .what = "parametric map",
        .sop_class_uid = PMAP_SOP_CLASS,
        .modality = modality[0] ? modality : "OT",
    };
    w->out.object = (struct stack_object){
        .image_type = PMAP_IMAGE_TYPE,
        .description = pmap_describe(w),
        .derivation = &request->quantity,
        .too_large = CODE_PMAP_TOO_LARGE,
        .invalid = CODE_PMAP_REQUEST_INVALID,
        .own_codes = strcmp(request->quantity.scheme, CONCEPT_OWN_SCHEME) == 0,
    };
    int rc = stack_writer_open(&w->out, pmap_request_is_ascii(request), fd, error);
    if (rc)
        return rc;
    return pmap_identify(request, &w->out.set.identity) ? dataset_out_of_memory(&w->out.set, error)
                                                        : 0;
}

/* --- pixels --- */

static void
append_padding(struct byte_sink *sink, int64_t count)
{
    for (int64_t part; count > 0; count -= part) {
        part = count < BYTE_SINK_RESERVE / BYTES ? count : BYTE_SINK_RESERVE / BYTES;
        memset(byte_sink_reserve(sink, (size_t)part * BYTES), 0xFF, (size_t)part * BYTES);
        byte_sink_commit(sink, (size_t)part * BYTES);
    }
}

static void
append_codes(struct byte_sink *sink, const uint8_t *codes, int64_t count)
{
    for (int64_t part; count > 0; count -= part, codes += part) {
        part = count < BYTE_SINK_RESERVE / BYTES ? count : BYTE_SINK_RESERVE / BYTES;
        uint8_t *place = byte_sink_reserve(sink, (size_t)part * BYTES);
        for (int64_t i = 0; i < part; i++) {
            place[BYTES * i] = codes[i];
            place[BYTES * i + 1] = 0;
        }
        byte_sink_commit(sink, (size_t)part * BYTES);
    }
}

/* A plane's codes in a frame of padding. */
static void
append_frame(struct byte_sink *sink, const uint8_t *codes, int64_t columns, int64_t rows)
{
    append_padding(sink, columns + 1);
    for (int64_t y = 1; y < rows - 1; y++) {
        append_codes(sink, codes, columns - 2);
        append_padding(sink, y < rows - 2 ? 2 : columns + 1); /* to the next row's first code */
        codes += columns - 2;
    }
}

static void
put_pixel_data(struct pmap_writer *w)
{
    const struct geometry_stack *stack = w->request->source->stack;
    const int64_t codes_per_plane = (int64_t)(stack->columns - 2) * (stack->rows - 2);
    stack_put_pixel_header(&w->out, "OW", pixel_data_length(stack));
    for (int64_t p = 0; p < stack->plane_count && !w->out.sink.error; p++)
        append_frame(&w->out.sink, w->request->codes + p * codes_per_plane, stack->columns,
                     stack->rows);
}

/* --- the object --- */

static const struct stack_dimension dimensions[] = {
    {TAG_ImagePositionPatient, TAG_PlanePositionSequence, "ImagePositionPatient"},
};

/* 0, or why an encoding failed; write errors are the sink's. */
static int
pmap_write_object(struct pmap_writer *w)
{
    int error = stack_put_head(&w->out);
    if (error)
        return error;
    dataset_put_text(&w->out.set, TAG_ContentQualification, "CS", "RESEARCH");
    stack_put_relationship(&w->out, w->request->series_number, dimensions, 1);
    stack_put_pixels(&w->out, w->request->source->stack->plane_count, BITS);
    pmap_put_image(w);
    stack_put_content(&w->out, w->label, "MAP");
    dataset_put_text(&w->out.set, TAG_PresentationLUTShape, "CS", "IDENTITY");
    error = pmap_put_functional_groups(w);
    if (error)
        return error;
    put_pixel_data(w);
    return 0;
}

int
pmap_write(const struct pmap_request *request, int fd, struct derived_summary *summary,
           struct error *error)
{
    struct pmap_writer w = {.request = request};
    int rc = pmap_check_request(request, error);
    if (!rc)
        rc = pmap_prepare(&w, fd, error);
    if (!rc)
        rc = stack_writer_finish(&w.out, pmap_write_object(&w), request->source->stack->plane_count,
                                 summary, error);
    stack_writer_close(&w.out);
    return rc;
}
