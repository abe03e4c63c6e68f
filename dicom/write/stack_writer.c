/* stack_writer.c - the file, modules and functional groups that all image objects made from a stack have. */
#include "dicom/write/stack_writer.h"

#include "base/error.h"
#include "base/text.h"
#include "dicom/value/tags.h"
#include "dicom/value/transfer_syntax.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct coded_concept source_for_processing = {"121322", "DCM",
                                                           "Source image for image processing operation"};

static int
stack_invalid(const struct stack_writer *w, int rc, const char *wrong, struct error *error)
{
    return error_set(error, rc, w->object.invalid, "The %s cannot be written: %s. This is a defect of Noctule.",
                     w->set.object.what, wrong);
}

int
stack_check(const struct stack_writer *w, const char *wrong, struct error *error)
{
    const struct derived_source *source = w->set.source;
    const struct geometry_stack *stack = source->stack;
    if (stack->plane_count < 1 || stack->rows < 1 || stack->rows > UINT16_MAX || stack->columns < 1 ||
        stack->columns > UINT16_MAX)
        wrong = "a stack without planes or with a size beyond 65535";
    else if (source->device_serial_number[0] == '\0' || source->software_version[0] == '\0')
        wrong = "no serial number or version";
    if (wrong)
        return stack_invalid(w, -EINVAL, wrong, error);
    const bool follows = w->object.follows_source && stack->flat && stack->plane_count == 1 && !source->images;
    if (!stack->has_geometry && !w->object.flat && !follows)
        return error_set_files(error, -EINVAL, CODE_NO_GEOMETRY, derived_plane_instance(source, 0)->path, NULL,
                               "The planes have no position in the patient, which a %s must have.", w->set.object.what);
    return 0;
}

int
stack_writer_open(struct stack_writer *w, bool ascii, int fd, struct error *error)
{
    const struct derived_source *source = w->set.source;
    int rc = dataset_writer_open(&w->set, ascii, error);
    if (rc)
        return rc;
    if (!w->set.object.transfer_syntax_uid)
        w->set.object.transfer_syntax_uid = derived_transfer_syntax(source, w->object.has_bytes);
    w->referenced = calloc((size_t)source->instance_count, sizeof(*w->referenced));
    if (!w->referenced || derived_frame_of_reference_uid(source, w->frame_of_reference_uid) ||
        byte_sink_open(&w->sink, fd, false))
        return dataset_out_of_memory(&w->set, error);
    return 0;
}

int
stack_writer_finish(struct stack_writer *w, int rc, int64_t frames, struct derived_summary *summary,
                    struct error *error)
{
    if (!rc)
        rc = w->set.elements.error ? w->set.elements.error : w->item.error;
    if (rc == -EOVERFLOW)
        return error_set(error, rc, w->object.too_large,
                         "The descriptions of %lld frames exceed 4 GiB, the maximum of one sequence.",
                         (long long)frames);
    if (rc == -EMSGSIZE)
        return stack_invalid(w, rc, "a text is too long", error);
    if (rc)
        return dataset_out_of_memory(&w->set, error);
    rc = byte_sink_finish(&w->sink);
    if (rc)
        return error_set(error, rc, CODE_WRITE_FAILED, "Writing the %s failed after %lld bytes: %s.",
                         w->set.object.what, (long long)w->sink.total, strerror(-rc));
    *summary =
        (struct derived_summary){.identity = w->set.identity, .frames = frames, .bytes = w->sink.total - w->sink.saved};
    memcpy(summary->left_out, w->set.inherited.left_out, sizeof(summary->left_out));
    return 0;
}

void
stack_writer_close(struct stack_writer *w)
{
    byte_sink_close(&w->sink);
    element_buffer_free(&w->item);
    free(w->referenced);
    free(w->encoded);
    dataset_writer_free(&w->set);
}

void
stack_drain(struct stack_writer *w, struct element_buffer *buffer)
{
    if (!buffer->error)
        byte_sink_append(&w->sink, buffer->bytes, buffer->size);
    buffer->size = 0;
}

uint64_t
stack_end_item(struct stack_writer *w, bool write)
{
    uint64_t size = w->item.size;
    if (write)
        stack_drain(w, &w->item);
    w->item.size = 0;
    return size;
}

/* Adds the instances of the stack, each once. Returns the bytes of all items. */
static uint64_t
stream_references(struct stack_writer *w, bool write)
{
    uint64_t size = 0;
    memset(w->referenced, 0, (size_t)w->set.source->instance_count);
    const struct geometry_stack *images = derived_images(w->set.source);
    for (int32_t p = 0; p < images->plane_count; p++) {
        uint8_t *done = &w->referenced[images->planes[p].instance];
        if (*done)
            continue;
        *done = 1;
        const struct dicom_instance *instance = derived_plane_instance(w->set.source, p);
        struct element_buffer *to = &w->item;
        size_t item = element_open_item(to);
        dataset_add_reference(to, instance->sop_class_uid, instance->sop_instance_uid);
        element_close(to, item);
        size += stack_end_item(w, write);
    }
    return size;
}

/* Adds an item with the series of the replaced object, which has only this object. */
static void
add_replaced_series(const struct stack_writer *w, struct element_buffer *to)
{
    const struct derived_reference *replaced = w->set.identity.replaces;
    size_t series = element_open_item(to);
    size_t item = element_open_only_item(to, TAG_ReferencedInstanceSequence);
    dataset_add_reference(to, w->set.object.sop_class_uid, replaced->sop_instance_uid);
    element_close_only_item(to, item);
    element_text(to, TAG_SeriesInstanceUID, "UI", replaced->series_uid);
    element_close(to, series);
}

/* Returns whether the replaced object is in the same study. */
static bool
replaces_in_study(const struct stack_writer *w)
{
    const struct derived_reference *replaced = w->set.identity.replaces;
    return replaced && strcmp(replaced->study_uid, derived_plane_instance(w->set.source, 0)->study_uid) == 0;
}

/* Puts the Common Instance Reference Module: all instances of the stack, in its order, and the
 * replaced object if it is in the same study. */
static int
put_references(struct stack_writer *w)
{
    const char *series_uid = derived_plane_instance(w->set.source, 0)->series_uid;
    uint64_t references = stream_references(w, false);
    struct element_buffer rest = {0}; /* rest of the series, and the next item */
    element_text(&rest, TAG_SeriesInstanceUID, "UI", series_uid);
    uint64_t item = 12 + references + rest.size; /* 12: header of the inner sequence */
    if (replaces_in_study(w))
        add_replaced_series(w, &rest);
    if (references > STACK_MAX_VALUE_LENGTH || 20 + references + rest.size > STACK_MAX_VALUE_LENGTH) {
        element_buffer_free(&rest);
        return -EOVERFLOW;
    }
    dataset_reach(&w->set, TAG_ReferencedSeriesSequence);
    element_header(&w->set.elements, TAG_ReferencedSeriesSequence, "SQ", (uint32_t)(20 + references + rest.size));
    element_item_header(&w->set.elements, (uint32_t)item);
    element_header(&w->set.elements, TAG_ReferencedInstanceSequence, "SQ", (uint32_t)references);
    stack_drain(w, &w->set.elements);
    stream_references(w, true);
    element_append(&w->set.elements, rest.bytes, rest.size);
    int error = rest.error;
    element_buffer_free(&rest);
    return error;
}

/* Puts the replaced object into the General Reference Module. If it is in another study, also
 * puts the rest of the Common Instance Reference Module. */
static void
put_replaced(struct stack_writer *w)
{
    static const struct coded_concept purpose = {"REPLACED", CONCEPT_OWN_SCHEME, "Image replaced by this one"};
    const struct derived_reference *replaced = w->set.identity.replaces;
    struct element_buffer *to = &w->set.elements;
    if (!replaced)
        return;
    size_t item = dataset_open_only_item(&w->set, TAG_ReferencedImageSequence);
    dataset_add_reference(to, w->set.object.sop_class_uid, replaced->sop_instance_uid);
    dataset_add_code(&w->set, to, TAG_PurposeOfReferenceCodeSequence, &purpose);
    element_close_only_item(to, item);
    if (replaces_in_study(w))
        return;
    size_t study = dataset_open_only_item(&w->set, TAG_StudiesContainingOtherReferencedInstancesSequence);
    size_t series = element_open_sequence(to, TAG_ReferencedSeriesSequence);
    add_replaced_series(w, to);
    element_close(to, series);
    element_text(to, TAG_StudyInstanceUID, "UI", replaced->study_uid);
    element_close_only_item(to, study);
}

/* Adds a source frame to an open sequence. */
static void
stack_add_source(const struct stack_writer *w, struct element_buffer *to, int32_t plane)
{
    const struct dicom_instance *source = derived_plane_instance(w->set.source, plane);
    const bool preserved = !source->tile_columns && !w->object.flat;
    size_t item = element_open_item(to);
    dataset_add_reference(to, source->sop_class_uid, source->sop_instance_uid);
    if (source->multi_frame) {
        char number[16];
        snprintf(number, sizeof(number), "%d", w->set.source->stack->planes[plane].frame + 1);
        element_text(to, TAG_ReferencedFrameNumber, "IS", number);
    }
    element_text(to, TAG_SpatialLocationsPreserved, "CS", preserved ? "YES" : "NO");
    dataset_add_code(&w->set, to, TAG_PurposeOfReferenceCodeSequence, &source_for_processing);
    element_close(to, item);
}

/* Adds the items of Source Image Sequence. Returns their bytes. */
static uint64_t
stream_sources(struct stack_writer *w, bool write)
{
    uint64_t size = 0;
    for (size_t i = 0; i < w->object.source_count; i++) {
        stack_add_source(w, &w->item, w->object.sources ? w->object.sources[i] : (int32_t)i);
        size += stack_end_item(w, write);
    }
    return size;
}

static int
put_sources(struct stack_writer *w)
{
    if (w->object.source_count == 0)
        return 0;
    const uint64_t size = stream_sources(w, false);
    if (size > STACK_MAX_VALUE_LENGTH)
        return -EOVERFLOW;
    dataset_put_header(&w->set, TAG_SourceImageSequence, "SQ", size);
    stack_drain(w, &w->set.elements);
    stream_sources(w, true);
    dataset_reach(&w->set, TAG_DerivationCodeSequence);
    dataset_add_code(&w->set, &w->set.elements, TAG_DerivationCodeSequence, w->object.derivation);
    return 0;
}

int
stack_put_head(struct stack_writer *w)
{
    dataset_put_file_meta(&w->set);
    stack_drain(w, &w->set.elements);
    if (strcmp(w->set.object.transfer_syntax_uid, DICOM_DEFLATED_LITTLE) == 0 && byte_sink_deflate(&w->sink))
        return -ENOMEM;
    dataset_put_text(&w->set, TAG_ImageType, "CS", w->object.image_type);
    w->set.object.own_codes |= w->set.identity.replaces != NULL;
    dataset_put_identification(&w->set);
    int rc = put_references(w);
    if (rc)
        return rc;
    put_replaced(w);
    rc = put_sources(w);
    dataset_put_patient_and_equipment(&w->set);
    return rc;
}

void
stack_put_relationship(struct stack_writer *w, int32_t series_number, const struct stack_dimension *dimensions,
                       size_t count)
{
    dataset_put_series(&w->set, series_number);
    if (w->set.source->stack->flat) {
        dataset_put_text(&w->set, TAG_PatientOrientation, "CS", "");
        dataset_reach(&w->set, TAG_PositionReferenceIndicator); /* the source's is left out */
    } else {
        dataset_put_text(&w->set, TAG_FrameOfReferenceUID, "UI", w->frame_of_reference_uid);
        dataset_put_inherited(&w->set, TAG_PositionReferenceIndicator, "LO");
    }
    struct element_buffer *to = &w->set.elements;
    size_t item = dataset_open_only_item(&w->set, TAG_DimensionOrganizationSequence);
    element_text(to, TAG_DimensionOrganizationUID, "UI", w->set.identity.dimension_organization_uid);
    element_close_only_item(to, item);

    dataset_reach(&w->set, TAG_DimensionIndexSequence);
    size_t sequence = element_open_sequence(to, TAG_DimensionIndexSequence);
    for (size_t i = 0; i < count; i++) {
        const struct stack_dimension *dimension = &dimensions[i];
        item = element_open_item(to);
        element_text(to, TAG_DimensionOrganizationUID, "UI", w->set.identity.dimension_organization_uid);
        element_at(to, TAG_DimensionIndexPointer, dimension->attribute);
        element_at(to, TAG_FunctionalGroupPointer, dimension->group);
        element_text(to, TAG_DimensionDescriptionLabel, "LO", dimension->label);
        element_close(to, item);
    }
    element_close(to, sequence);
}

void
stack_put_lossiness(struct stack_writer *w)
{
    const struct dicom_instance *lossy = NULL;
    for (int32_t p = 0; p < derived_images(w->set.source)->plane_count && !lossy; p++) {
        if (derived_plane_instance(w->set.source, p)->lossy)
            lossy = derived_plane_instance(w->set.source, p);
    }
    if (!lossy) {
        dataset_put_text(&w->set, TAG_LossyImageCompression, "CS", "00");
        return;
    }
    /* Uses the source's ratio, or else that of its pixel data. The file's size must not be used: it depends on the file
     * meta information, and so on the way the file was received. */
    char ratio[DICOM_DS_SIZE];
    const size_t length = strlen(lossy->lossy_ratio);
    const double raw =
        (double)lossy->rows * (double)lossy->columns * (double)lossy->frame_count * (double)lossy->bits_allocated / 8.0;
    if (length > 0 && value_is_legal("DS", lossy->lossy_ratio, length))
        memcpy(ratio, lossy->lossy_ratio, DICOM_DS_SIZE);
    else if (lossy->encapsulated_bytes > 0)
        value_ds_format(fmax(1.0, round(raw / (double)lossy->encapsulated_bytes * 100.0) / 100.0), ratio);
    else
        value_ds_format(1.0, ratio);
    dataset_put_text(&w->set, TAG_LossyImageCompression, "CS", "01");
    dataset_put_text(&w->set, TAG_LossyImageCompressionRatio, "DS", ratio);
    /* Uses the source's method, or else that of its transfer syntax (PS3.3 C.7.6.1.1.5.1). */
    const struct transfer_syntax *syntax = transfer_find(lossy->transfer_syntax_uid);
    const char *method = lossy->lossy_method[0] != '\0' || !syntax ? lossy->lossy_method : syntax->lossy_method;
    if (method[0] != '\0')
        dataset_put_text(&w->set, TAG_LossyImageCompressionMethod, "CS", method);
}

/* Puts the shape of a pixel of a capture, if the header states one. Lengths in mm are left to the source image. */
static void
put_aspect(struct stack_writer *w)
{
    enum { SCALE = 1000000 };

    const struct geometry_stack *stack = w->set.source->stack;
    const double longer = fmax(stack->spacing[0], stack->spacing[1]);
    char text[32];
    if (!geometry_is_in_mm(stack) || stack->spacing[0] == stack->spacing[1])
        return;
    snprintf(text, sizeof(text), "%.0f\\%.0f", SCALE * stack->spacing[1] / longer, SCALE * stack->spacing[0] / longer);
    dataset_put_text(&w->set, TAG_PixelAspectRatio, "IS", text);
}

void
stack_put_pixels(struct stack_writer *w, int64_t frames, uint16_t bits)
{
    char count[24];
    snprintf(count, sizeof(count), "%lld", (long long)frames);
    dataset_put_us(&w->set, TAG_SamplesPerPixel, 1);
    dataset_put_text(&w->set, TAG_PhotometricInterpretation, "CS", "MONOCHROME2");
    dataset_put_text(&w->set, TAG_NumberOfFrames, "IS", count);
    dataset_put_us(&w->set, TAG_Rows, (uint16_t)w->set.source->stack->rows);
    dataset_put_us(&w->set, TAG_Columns, (uint16_t)w->set.source->stack->columns);
    if (w->set.object.conversion)
        put_aspect(w);
    dataset_put_us(&w->set, TAG_BitsAllocated, bits);
    if (bits == 64)
        return;
    dataset_put_us(&w->set, TAG_BitsStored, bits);
    dataset_put_us(&w->set, TAG_HighBit, (uint16_t)(bits - 1));
    dataset_put_us(&w->set, TAG_PixelRepresentation, 0);
}

void
stack_put_content(struct stack_writer *w, const char *label, const char *otherwise)
{
    char cs[VALUE_CS_SIZE];
    value_cs_make(label, otherwise, cs);
    dataset_put_text(&w->set, TAG_ContentLabel, "CS", cs);
    const char *remark = w->set.source->remark;
    dataset_put_line(&w->set, TAG_ContentDescription, remark && *remark ? remark : w->set.object.description);
    dataset_put_creator(&w->set, TAG_ContentCreatorName);
}

int
stack_put_frame_groups(struct stack_writer *w, stack_encode_frames *encode, void *context)
{
    uint64_t size = encode(context, false);
    if (size > STACK_MAX_VALUE_LENGTH)
        return -EOVERFLOW;
    dataset_put_header(&w->set, TAG_PerFrameFunctionalGroupsSequence, "SQ", size);
    stack_drain(w, &w->set.elements);
    encode(context, true);
    return 0;
}

bool
stack_is_rle(const struct stack_writer *w)
{
    return strcmp(w->set.object.transfer_syntax_uid, DICOM_RLE_LOSSLESS) == 0;
}

void
stack_put_pixel_header(struct stack_writer *w, const char vr[2], uint64_t length)
{
    if (stack_is_rle(w)) {
        dataset_put_header(&w->set, TAG_PixelData, "OB", UINT32_MAX);
        element_item_header(&w->set.elements, 0);
    } else {
        dataset_put_header(&w->set, vr[1] == 'D' ? TAG_DoubleFloatPixelData : TAG_PixelData, vr, length);
    }
    stack_drain(w, &w->set.elements);
    if (w->sink.deflater)
        byte_sink_deflate_runs(&w->sink);
}

int
stack_put_rle_frame(struct stack_writer *w, const struct rle_frame *frame)
{
    if (!w->encoded)
        w->encoded = malloc(rle_encoded_max(frame));
    if (!w->encoded)
        return -ENOMEM;
    const size_t length = rle_encode(frame, w->encoded);
    element_item_header(&w->item, (uint32_t)length);
    stack_drain(w, &w->item);
    byte_sink_append(&w->sink, w->encoded, length);
    return 0;
}

void
stack_end_pixels(struct stack_writer *w, int64_t begun)
{
    static const uint8_t sequence_delimitation[8] = {0xFE, 0xFF, 0xDD, 0xE0};
    if (stack_is_rle(w))
        byte_sink_append(&w->sink, sequence_delimitation, sizeof(sequence_delimitation));
    else if ((w->sink.total - begun) % 2)
        byte_sink_append(&w->sink, "", 1);
}

/* Adds the frames of an instance that the stack uses, if it does not use all. */
static void
stack_add_frame_numbers(const struct stack_writer *w, struct element_buffer *to, int32_t instance)
{
    const struct geometry_stack *images = derived_images(w->set.source);
    const int32_t all = w->set.source->instances[instance]->frame_count;
    struct text_stream text;
    int32_t count = 0;
    if (text_open(&text)) {
        element_fail(to, -ENOMEM);
        return;
    }
    for (int32_t p = 0; p < images->plane_count; p++)
        if (images->planes[p].instance == instance)
            fprintf(text.out, "%s%d", count++ ? "\\" : "", images->planes[p].frame + 1);
    if (text_close(&text))
        element_fail(to, -ENOMEM);
    else if (count < all)
        element_text(to, TAG_ReferencedFrameNumber, "IS", text.bytes);
    free(text.bytes);
}

void
stack_add_shared_derivation(const struct stack_writer *w, struct element_buffer *to)
{
    const struct derived_source *source = w->set.source;
    if (!source->images)
        return;
    size_t derivation = element_open_only_item(to, TAG_DerivationImageSequence);
    size_t sequence = element_open_sequence(to, TAG_SourceImageSequence);
    memset(w->referenced, 0, (size_t)source->instance_count);
    for (int32_t p = 0; p < source->images->plane_count; p++) {
        const int32_t instance = source->images->planes[p].instance;
        const struct dicom_instance *image = source->instances[instance];
        if (w->referenced[instance])
            continue;
        w->referenced[instance] = 1;
        size_t item = element_open_item(to);
        dataset_add_reference(to, image->sop_class_uid, image->sop_instance_uid);
        if (image->multi_frame)
            stack_add_frame_numbers(w, to, instance);
        element_text(to, TAG_SpatialLocationsPreserved, "CS", "NO");
        dataset_add_code(&w->set, to, TAG_PurposeOfReferenceCodeSequence, &source_for_processing);
        element_close(to, item);
    }
    element_close(to, sequence);
    dataset_add_code(&w->set, to, TAG_DerivationCodeSequence, w->object.derivation);
    element_close_only_item(to, derivation);
}

void
stack_add_derivation(const struct stack_writer *w, struct element_buffer *to, int32_t plane)
{
    if (w->set.source->images)
        return;
    size_t derivation = element_open_only_item(to, TAG_DerivationImageSequence);
    size_t sequence = element_open_sequence(to, TAG_SourceImageSequence);
    stack_add_source(w, to, plane);
    element_close(to, sequence);
    dataset_add_code(&w->set, to, TAG_DerivationCodeSequence, w->object.derivation);
    element_close_only_item(to, derivation);
}

void
stack_add_frame_content(struct element_buffer *to, const uint32_t *indices, size_t count, const char *label)
{
    size_t item = element_open_only_item(to, TAG_FrameContentSequence);
    element_ul(to, TAG_DimensionIndexValues, indices, count);
    if (label)
        element_text(to, TAG_FrameLabel, "LO", label);
    element_close_only_item(to, item);
}

/* Adds decimals as the source writes them, if they are valid. */
static void
stack_add_decimals(struct element_buffer *to, uint32_t tag, const char (*texts)[DICOM_DS_SIZE], const double *numbers,
                   int count)
{
    char text[6 * VALUE_DS_SIZE];
    size_t used = 0;
    for (int i = 0; i < count; i++) {
        char value[VALUE_DS_SIZE];
        value_ds_copy(texts[i], numbers[i], value);
        used += (size_t)snprintf(text + used, sizeof(text) - used, i ? "\\%s" : "%s", value);
    }
    element_text(to, tag, "DS", text);
}

void
stack_add_plane_position(const struct stack_writer *w, struct element_buffer *to, int32_t plane)
{
    static const char no_text[3][DICOM_DS_SIZE] = {"", "", ""};
    if (w->set.source->stack->flat)
        return;
    const struct geometry_stack *grid = w->set.source->images ? w->set.source->stack : NULL;
    const struct dicom_frame *frame = grid ? NULL : derived_plane_frame(w->set.source, plane);
    size_t item = element_open_only_item(to, TAG_PlanePositionSequence);
    if (frame) {
        stack_add_decimals(to, TAG_ImagePositionPatient, frame->position_text, frame->position, 3);
    } else {
        double position[3];
        for (int i = 0; i < 3; i++)
            position[i] = grid->origin[i] + plane * grid->spacing[2] * grid->axes[6 + i];
        stack_add_decimals(to, TAG_ImagePositionPatient, no_text, position, 3);
    }
    element_close_only_item(to, item);
}

/* Formats a length computed from positions, without digits that are rounding noise. */
static void
format_length(double length, char text[VALUE_DS_SIZE])
{
    const double unit = 1e-9; /* mm */
    double rounded = round(length / unit) * unit;
    char shorter[32];
    snprintf(shorter, sizeof(shorter), "%.12g", rounded);
    value_ds_format(strtod(shorter, NULL), text);
}

/* Spacing Between Slices must be in all frames or in none, and unevenly spaced planes have no single value. */
void
stack_add_measures(const struct stack_writer *w, struct element_buffer *to, int32_t plane)
{
    const bool shared = plane == STACK_SHARED;
    if (w->set.source->stack->flat || derived_measures_differ(w->set.source) == shared)
        return;
    const struct geometry_stack *stack = w->set.source->stack;
    const struct dicom_frame *frame = derived_plane_frame(w->set.source, shared ? 0 : plane);
    char text[VALUE_DS_SIZE];
    size_t item = element_open_only_item(to, TAG_PixelMeasuresSequence);
    const bool is_own = frame->slice_thickness > 0.0 && !w->set.source->images;
    format_length(is_own ? frame->slice_thickness : stack->spacing[2], text);
    element_text(to, TAG_SliceThickness, "DS", text);
    if (stack->plane_count > 1 && !stack->uneven) {
        format_length(stack->spacing[2], text);
        element_text(to, TAG_SpacingBetweenSlices, "DS", text);
    }
    stack_add_decimals(to, TAG_PixelSpacing, frame->spacing_text, frame->pixel_spacing, 2);
    element_close_only_item(to, item);
}

void
stack_add_plane_orientation(const struct stack_writer *w, struct element_buffer *to)
{
    const struct dicom_frame *frame = derived_plane_frame(w->set.source, 0);
    if (w->set.source->stack->flat)
        return;
    size_t item = element_open_only_item(to, TAG_PlaneOrientationSequence);
    stack_add_decimals(to, TAG_ImageOrientationPatient, frame->orientation_text, frame->orientation, 6);
    element_close_only_item(to, item);
}
