/*
 * seg.c - writes segmentation objects (PS3.3 A.51), BINARY or FRACTIONAL, as a stream.
 *
 * The data set is written in one go in ascending tag order: seg_modules.c has what is of fixed
 * size, seg_frames.c what grows with the frames, dataset_writer.c merges in what is inherited from
 * the source. Pixels go from the caller's masks or scenes straight into the file's buffer.
 */
#include "seg_writer.h"

#include "dicom_tags.h"
#include "fault.h"
#include "seg_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    MAX_NUMBER = UINT16_MAX, /* of rows, columns and segments */
};

static const char *
invalid_voxels(const struct seg_request *request, const struct seg_segment *segment)
{
    if (request->fractional)
        return segment->scene ? NULL : "a segment without a scene";
    if (!segment->bits)
        return "a segment without a mask";
    if (segment->words_per_row < ((int64_t)request->stack->columns + 63) / 64)
        return "a mask with rows that are too short";
    return NULL;
}

static const char *
invalid_segment(const struct seg_request *request, const struct seg_segment *segment)
{
    if (segment->label[0] == '\0' || segment->algorithm_name[0] == '\0' ||
        segment->algorithm_version[0] == '\0')
        return "a segment without label or algorithm";
    if (!segment->category.value || !segment->type.value || segment->category.value[0] == '\0' ||
        segment->type.value[0] == '\0')
        return "a segment without category or type";
    return invalid_voxels(request, segment);
}

static const char *
invalid_request(const struct seg_request *request)
{
    const struct geometry_stack *stack = request->stack;
    if (stack->plane_count < 1 || stack->rows < 1 || stack->rows > MAX_NUMBER ||
        stack->columns < 1 || stack->columns > MAX_NUMBER)
        return "a stack without planes or with a size beyond 65535";
    if (request->segment_count < 1 || request->segment_count > MAX_NUMBER)
        return "no segment, or more than 65535";
    if (request->device_serial_number[0] == '\0' || request->software_version[0] == '\0')
        return "no serial number or version";
    for (int32_t i = 0; i < request->segment_count; i++) {
        const char *what = invalid_segment(request, &request->segments[i]);
        if (what)
            return what;
    }
    return NULL;
}

static int
check_request(const struct seg_request *request, struct dicom_fault *fault)
{
    const char *what = invalid_request(request);
    if (what)
        return fault_set(fault, -EINVAL, "SEG_REQUEST_INVALID", NULL, NULL,
                         "The segmentation cannot be written: %s. This is a defect of Noctule.",
                         what);
    if (!request->stack->has_geometry)
        return fault_set(fault, -EINVAL, "NO_GEOMETRY", seg_plane_instance(request, 0)->path, NULL,
                         "The planes have no position in the patient, which a segmentation needs.");
    return 0;
}

static bool
segment_is_ascii(const struct seg_segment *segment)
{
    return value_text_is_ascii(segment->label) && value_text_is_ascii(segment->description) &&
           value_text_is_ascii(segment->algorithm_name) &&
           value_text_is_ascii(segment->algorithm_version) &&
           value_text_is_ascii(segment->algorithm_parameters) &&
           dataset_code_is_ascii(&segment->category) && dataset_code_is_ascii(&segment->type) &&
           dataset_code_is_ascii(&segment->modifier) && dataset_code_is_ascii(&segment->region) &&
           dataset_code_is_ascii(&segment->algorithm_family);
}

static bool
request_is_ascii(const struct seg_request *request)
{
    bool ascii = value_text_is_ascii(request->pipeline) &&
                 value_text_is_ascii(request->series_description) &&
                 value_text_is_ascii(request->software_version) &&
                 value_text_is_ascii(request->device_serial_number);
    for (int32_t i = 0; i < request->segment_count && ascii; i++)
        ascii = segment_is_ascii(&request->segments[i]);
    return ascii;
}

static int
out_of_memory(struct dicom_fault *fault)
{
    return fault_set(fault, -ENOMEM, "OUT_OF_MEMORY", NULL, NULL,
                     "There is not enough memory to write the segmentation.");
}

static int
check_plan(const struct seg_writer *w, struct dicom_fault *fault)
{
    if (w->plan.frames == 0)
        return fault_set(fault, -ENODATA, "SEG_EMPTY", NULL, NULL,
                         "No voxel is in any segment, and empty frames are left out: there is "
                         "nothing to write.");
    if (w->plan.frames > INT32_MAX || seg_pixel_data_length(w) > SEG_MAX_VALUE_LENGTH)
        return fault_set(fault, -EFBIG, "SEG_TOO_LARGE", NULL, NULL,
                         "%lld frames of %d x %d are more than the 4 GiB of one object; leave out "
                         "empty frames or segments.",
                         (long long)w->plan.frames, w->request->stack->columns,
                         w->request->stack->rows);
    return 0;
}

/* Everything that can be known before the first byte is written. */
static int
prepare(struct seg_writer *w, int fd, struct dicom_fault *fault)
{
    const struct seg_request *request = w->request;
    int error = dicom_inherit(seg_plane_instance(request, 0)->path, &w->set.inherited, fault);
    if (error)
        return error;
    w->referenced = calloc((size_t)request->instance_count, sizeof(*w->referenced));
    if (!w->referenced || dataset_settle_character_set(&w->set, request_is_ascii(request)) ||
        seg_make_identity(request, &w->identity) ||
        seg_frame_of_reference_uid(request, w->frame_of_reference_uid) ||
        seg_plan_make(request, &w->plan) || byte_sink_open(&w->sink, fd))
        return out_of_memory(fault);
    dataset_date_time(&w->set, request->content_time_ms, w->date, w->time);
    return check_plan(w, fault);
}

/* 0, or why an encoding failed; write errors are the sink's. */
static int
write_object(struct seg_writer *w)
{
    seg_put_file_meta(w);
    seg_put_identification(w);
    int error = seg_put_references(w);
    if (error)
        return error;
    seg_put_patient_and_equipment(w);
    seg_put_relationship(w);
    seg_put_image(w);
    error = seg_put_segments(w);
    if (error)
        return error;
    seg_put_content(w);
    error = seg_put_functional_groups(w);
    if (error)
        return error;
    seg_put_pixel_data(w);
    return w->set.elements.error ? w->set.elements.error : w->item.error;
}

static int
sync_file(int fd)
{
    int result;
    do {
        result = fdatasync(fd);
    } while (result < 0 && errno == EINTR);
    return result < 0 ? -errno : 0;
}

static int
write_and_sync(struct seg_writer *w, struct dicom_fault *fault)
{
    int error = write_object(w);
    if (error == -EFBIG)
        return fault_set(fault, error, "SEG_TOO_LARGE", NULL, NULL,
                         "The descriptions of %lld frames are more than the 4 GiB of one sequence.",
                         (long long)w->plan.frames);
    if (error == -EMSGSIZE)
        return fault_set(fault, error, "SEG_REQUEST_INVALID", NULL, NULL,
                         "The segmentation cannot be written: a text is too long. This is a defect "
                         "of Noctule.");
    if (error)
        return out_of_memory(fault);
    error = byte_sink_finish(&w->sink);
    if (!error)
        error = sync_file(w->sink.fd);
    if (error)
        return fault_set(fault, error, "WRITE_FAILED", NULL, NULL,
                         "Writing the segmentation failed after %lld bytes: %s.",
                         (long long)w->sink.total, strerror(-error));
    return 0;
}

static void
release(struct seg_writer *w)
{
    byte_sink_close(&w->sink);
    element_buffer_free(&w->item);
    seg_plan_free(&w->plan);
    free(w->referenced);
    dataset_writer_free(&w->set);
}

int
seg_write(const struct seg_request *request, int fd, struct seg_summary *summary,
          struct dicom_fault *fault)
{
    struct seg_writer w = {.request = request};
    int error = check_request(request, fault);
    if (!error)
        error = prepare(&w, fd, fault);
    if (!error)
        error = write_and_sync(&w, fault);
    if (!error)
        *summary = (struct seg_summary){
            .identity = w.identity,
            .frames = w.plan.frames,
            .bytes = w.sink.total,
        };
    release(&w);
    return error;
}
