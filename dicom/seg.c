/*
 * seg.c - writes BINARY segmentation objects (PS3.3 A.51) as a stream.
 *
 * The data set is written in one go in ascending tag order. What is inherited from the source
 * (dicom_inherit) is merged in on the way: before an element of ours is written, all inherited ones
 * with lower tags are. Only two sequences grow with the number of instances and frames; their items
 * are encoded twice by the same code, first for their sizes, then to be written. That costs about a
 * microsecond a frame and lets every sequence carry an explicit length, which is what most writers
 * produce, lets readers skip, and is checked by them; memory stays that of one item. Pixels go from
 * the caller's masks straight into the file's buffer.
 *
 * Text. Ours is UTF-8, inherited text is in the source's character set, and an object has one set.
 * When all of ours is ASCII, the source's set and bytes are kept as they are. Else inherited text
 * is converted to UTF-8; where that fails (text that is not in the set it claims), the source's
 * bytes are kept and our characters beyond ASCII become '?': the patient's name matters more.
 */
#include "seg.h"

#include "byte_sink.h"
#include "charset.h"
#include "cielab.h"
#include "dicom_tags.h"
#include "element_writer.h"
#include "fault.h"
#include "mask_bits.h"
#include "seg_internal.h"
#include "seg_plan.h"
#include "uid.h"
#include "value_text.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    SH_CHARACTERS = 16,
    LO_CHARACTERS = 64,
    ST_CHARACTERS = 1024,
    MAX_LENGTH_16 = UINT16_MAX,
};

/* The longest value that a 32-bit length can say: even, and not the mark for "undefined". */
static const uint64_t max_value_length = UINT32_MAX - 1;

static const struct seg_code deformable_models = {"123111", "DCM", "Deformable Models"};
static const struct seg_code derived_by_segmentation = {"113076", "DCM", "Segmentation"};
static const struct seg_code source_for_processing = {
    "121322", "DCM", "Source image for image processing operation"};

struct seg_writer {
    const struct seg_request *request;
    struct seg_identity identity;
    char frame_of_reference_uid[DICOM_UID_SIZE];
    struct dicom_inherited inherited;
    size_t next_inherited; /* the first that is not written yet */
    bool ascii_only;       /* our text must be */
    char date[VALUE_DA_SIZE];
    char time[VALUE_TM_SIZE];
    struct seg_plan plan;
    uint8_t *referenced;          /* by instance: its item has been encoded in this pass */
    struct element_buffer header; /* elements on their way to the sink */
    struct element_buffer item;   /* one item of a long sequence */
    struct byte_sink sink;
};

/* --- inherited elements ----------------------------------------------------------------------- */

/* VR and value of an element as dicom_inherit gives it. */
static void
element_value(const struct dicom_element *element, const char **vr, const char **value,
              size_t *size)
{
    const char *bytes = (const char *)element->bytes;
    bool is_short = memcmp(bytes + 6, "\0\0", 2) != 0;
    size_t head = is_short || element->size == 8 ? 8 : 12;
    *vr = bytes + 4;
    *value = bytes + (head < element->size ? head : element->size);
    *size = element->size - (size_t)(*value - bytes);
}

/* The value of an inherited text, trimmed, or "" when there is none. */
static void
inherited_text(const struct seg_writer *w, uint32_t tag, char *text, size_t text_size)
{
    text[0] = '\0';
    for (size_t i = 0; i < w->inherited.count; i++) {
        if (w->inherited.elements[i].tag != tag)
            continue;
        const char *vr;
        const char *value;
        size_t size;
        element_value(&w->inherited.elements[i], &vr, &value, &size);
        while (size > 0 && (value[size - 1] == ' ' || value[size - 1] == '\0'))
            size--;
        snprintf(text, text_size, "%.*s", (int)(size < text_size ? size : text_size - 1), value);
    }
}

/*
 * Whether an optional inherited attribute may stand in an object that is to be valid: it is not
 * retired, and its value has the form of its VR (an age of "42" has not).
 */
static bool
is_valid_here(const struct dicom_element *element)
{
    const char *vr;
    const char *value;
    size_t size;
    element_value(element, &vr, &value, &size);
    return element->tag != TAG_OtherPatientIDs && value_is_legal(vr, value, size);
}

/* Writes what is inherited below `tag`. */
static void
inherit_below(struct seg_writer *w, uint32_t tag)
{
    for (; w->next_inherited < w->inherited.count; w->next_inherited++) {
        const struct dicom_element *element = &w->inherited.elements[w->next_inherited];
        if (element->tag >= tag)
            return;
        if (is_valid_here(element))
            element_append(&w->header, element->bytes, element->size);
    }
}

/* Comes before every element of ours at the top level; ours replaces an inherited one. */
static void
reach(struct seg_writer *w, uint32_t tag)
{
    inherit_below(w, tag);
    if (w->next_inherited < w->inherited.count &&
        w->inherited.elements[w->next_inherited].tag == tag)
        w->next_inherited++;
}

/* An attribute of the patient or the study that must be there: the source's, verbatim, or empty. */
static void
put_inherited(struct seg_writer *w, uint32_t tag, const char vr[2])
{
    inherit_below(w, tag);
    if (w->next_inherited < w->inherited.count &&
        w->inherited.elements[w->next_inherited].tag == tag) {
        const struct dicom_element *element = &w->inherited.elements[w->next_inherited++];
        element_append(&w->header, element->bytes, element->size);
    } else {
        element_header(&w->header, tag, vr, 0);
    }
}

/* --- elements --------------------------------------------------------------------------------- */

static void
put_text(struct seg_writer *w, uint32_t tag, const char vr[2], const char *text)
{
    reach(w, tag);
    element_text(&w->header, tag, vr, text);
}

static void
put_number(struct seg_writer *w, uint32_t tag, uint16_t number)
{
    reach(w, tag);
    element_us(&w->header, tag, &number, 1);
}

/* Text of ours, made fit for the attribute. */
static void
add_clean(const struct seg_writer *w, struct element_buffer *to, uint32_t tag, const char vr[2],
          const char *text, size_t characters, enum value_text_kind kind)
{
    char *clean = value_text_clean(text, characters, kind, w->ascii_only);
    if (clean)
        element_text(to, tag, vr, clean);
    else if (!to->error)
        to->error = -ENOMEM;
    free(clean);
}

static void
put_line(struct seg_writer *w, uint32_t tag, const char *text)
{
    reach(w, tag);
    add_clean(w, &w->header, tag, "LO", text, LO_CHARACTERS, VALUE_LINE);
}

/* The attributes of a coded concept (PS3.3 8.8). */
static void
add_code_values(const struct seg_writer *w, struct element_buffer *to, const struct seg_code *code)
{
    bool is_long = strlen(code->value) > SH_CHARACTERS;
    if (!is_long)
        add_clean(w, to, TAG_CodeValue, "SH", code->value, SH_CHARACTERS, VALUE_LINE);
    add_clean(w, to, TAG_CodingSchemeDesignator, "SH", code->scheme, SH_CHARACTERS, VALUE_LINE);
    add_clean(w, to, TAG_CodeMeaning, "LO", code->meaning, LO_CHARACTERS, VALUE_LINE);
    if (is_long)
        add_clean(w, to, TAG_LongCodeValue, "UC", code->value, SIZE_MAX, VALUE_LINE);
}

/* A sequence of one code. */
static void
add_code(const struct seg_writer *w, struct element_buffer *to, uint32_t tag,
         const struct seg_code *code)
{
    size_t sequence = element_open_sequence(to, tag);
    size_t item = element_open_item(to);
    add_code_values(w, to, code);
    element_close(to, item);
    element_close(to, sequence);
}

/* --- streamed items --------------------------------------------------------------------------- */

static void
drain(struct seg_writer *w, struct element_buffer *buffer)
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
        drain(w, &w->item);
    return size;
}

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
    add_code(w, to, TAG_PurposeOfReferenceCodeSequence, &source_for_processing);
    element_close(to, item);
    element_close(to, sources);
    add_code(w, to, TAG_DerivationCodeSequence, &derived_by_segmentation);
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

/* Segment by segment, each in ascending position; mask frames follow in the same order. */
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

static void
write_pixels(struct seg_writer *w)
{
    const struct seg_plan *plan = &w->plan;
    struct mask_packer packer = {.sink = &w->sink};
    int64_t start = w->sink.total;
    for (int32_t s = 0; s < plan->segment_count; s++) {
        for (int32_t p = 0; p < plan->plane_count && !w->sink.error; p++) {
            if (!plan->present[(int64_t)s * plan->plane_count + p])
                continue;
            struct mask_plane mask = seg_plan_mask(w->request, s, p);
            mask_pack(&packer, &mask);
        }
    }
    mask_pack_finish(&packer);
    if ((w->sink.total - start) % 2)
        byte_sink_append(&w->sink, "", 1);
}

/* --- the object, in ascending tag order ------------------------------------------------------- */

static void
put_file_meta(struct seg_writer *w)
{
    static const uint8_t preamble[128];
    static const uint8_t version[2] = {0, 1};
    struct element_buffer *meta = fresh_item(w);
    element_header(meta, TAG_FileMetaInformationVersion, "OB", 2);
    element_append(meta, version, sizeof(version));
    element_text(meta, TAG_MediaStorageSOPClassUID, "UI", SEG_SOP_CLASS_UID);
    element_text(meta, TAG_MediaStorageSOPInstanceUID, "UI", w->identity.sop_instance_uid);
    element_text(meta, TAG_TransferSyntaxUID, "UI", "1.2.840.10008.1.2.1");
    element_text(meta, TAG_ImplementationClassUID, "UI", UID_IMPLEMENTATION_CLASS);
    element_text(meta, TAG_ImplementationVersionName, "SH", "NOCTULE_" NOCTULE_VERSION);

    const uint32_t length = (uint32_t)meta->size;
    element_append(&w->header, preamble, sizeof(preamble));
    element_append(&w->header, "DICM", 4);
    element_ul(&w->header, TAG_FileMetaInformationGroupLength, &length, 1);
    drain(w, &w->header);
    drain(w, meta);
}

static void
put_description(struct seg_writer *w, uint32_t tag)
{
    const struct seg_request *request = w->request;
    if (request->series_description[0] != '\0') {
        put_line(w, tag, request->series_description);
        return;
    }
    char text[512];
    snprintf(text, sizeof(text), "%s segmentation", request->pipeline);
    put_line(w, tag, text);
}

static void
put_identification(struct seg_writer *w)
{
    put_text(w, TAG_ImageType, "CS", "DERIVED\\PRIMARY");
    put_text(w, TAG_InstanceCreationDate, "DA", w->date);
    put_text(w, TAG_InstanceCreationTime, "TM", w->time);
    put_text(w, TAG_SOPClassUID, "UI", SEG_SOP_CLASS_UID);
    put_text(w, TAG_SOPInstanceUID, "UI", w->identity.sop_instance_uid);
    put_inherited(w, TAG_StudyDate, "DA");
    put_text(w, TAG_SeriesDate, "DA", w->date);
    put_text(w, TAG_ContentDate, "DA", w->date);
    put_inherited(w, TAG_StudyTime, "TM");
    put_text(w, TAG_SeriesTime, "TM", w->time);
    put_text(w, TAG_ContentTime, "TM", w->time);
    put_inherited(w, TAG_AccessionNumber, "SH");
    put_text(w, TAG_Modality, "CS", "SEG");
    put_text(w, TAG_Manufacturer, "LO", "Noctule");
    put_inherited(w, TAG_ReferringPhysicianName, "PN");
    put_description(w, TAG_SeriesDescription);
    put_text(w, TAG_ManufacturerModelName, "LO", "noctuled");
}

/* Common Instance Reference Module: all instances the stack was made of, in its order. */
static int
put_references(struct seg_writer *w)
{
    const char *series_uid = seg_plane_instance(w->request, 0)->series_uid;
    uint64_t references = stream_references(w, false);
    struct element_buffer series = {0};
    element_text(&series, TAG_SeriesInstanceUID, "UI", series_uid);
    uint64_t item = 12 + references + series.size;
    if (references > max_value_length || item + 8 > max_value_length) {
        element_buffer_free(&series);
        return -EFBIG;
    }
    /* Ascending order within the item: (0008,114A) before (0020,000E). */
    const uint8_t item_tag[4] = {0xFE, 0xFF, 0x00, 0xE0};
    const uint8_t item_length[4] = {(uint8_t)item, (uint8_t)(item >> 8), (uint8_t)(item >> 16),
                                    (uint8_t)(item >> 24)};
    reach(w, TAG_ReferencedSeriesSequence);
    element_header(&w->header, TAG_ReferencedSeriesSequence, "SQ", (uint32_t)(item + 8));
    element_append(&w->header, item_tag, sizeof(item_tag));
    element_append(&w->header, item_length, sizeof(item_length));
    element_header(&w->header, TAG_ReferencedInstanceSequence, "SQ", (uint32_t)references);
    drain(w, &w->header);
    stream_references(w, true);
    element_append(&w->header, series.bytes, series.size);
    int error = series.error;
    element_buffer_free(&series);
    return error;
}

static void
put_patient_and_equipment(struct seg_writer *w)
{
    put_inherited(w, TAG_PatientName, "PN");
    put_inherited(w, TAG_PatientID, "LO");
    put_inherited(w, TAG_PatientBirthDate, "DA");
    put_inherited(w, TAG_PatientSex, "CS");
    put_line(w, TAG_DeviceSerialNumber, w->request->device_serial_number);
    put_line(w, TAG_SoftwareVersions, w->request->software_version);
}

static void
add_dimension(const struct seg_writer *w, struct element_buffer *to, uint32_t attribute,
              uint32_t group, const char *label)
{
    size_t item = element_open_item(to);
    element_text(to, TAG_DimensionOrganizationUID, "UI", w->identity.dimension_organization_uid);
    element_at(to, TAG_DimensionIndexPointer, attribute);
    element_at(to, TAG_FunctionalGroupPointer, group);
    element_text(to, TAG_DimensionDescriptionLabel, "LO", label);
    element_close(to, item);
}

static void
put_dimensions(struct seg_writer *w)
{
    struct element_buffer *to = &w->header;
    reach(w, TAG_DimensionOrganizationSequence);
    size_t sequence = element_open_sequence(to, TAG_DimensionOrganizationSequence);
    size_t item = element_open_item(to);
    element_text(to, TAG_DimensionOrganizationUID, "UI", w->identity.dimension_organization_uid);
    element_close(to, item);
    element_close(to, sequence);

    reach(w, TAG_DimensionIndexSequence);
    sequence = element_open_sequence(to, TAG_DimensionIndexSequence);
    add_dimension(w, to, TAG_ReferencedSegmentNumber, TAG_SegmentIdentificationSequence,
                  "ReferencedSegmentNumber");
    add_dimension(w, to, TAG_ImagePositionPatient, TAG_PlanePositionSequence,
                  "ImagePositionPatient");
    element_close(to, sequence);
}

static void
put_relationship(struct seg_writer *w)
{
    char number[16];
    snprintf(number, sizeof(number), "%d", w->request->series_number);
    put_text(w, TAG_StudyInstanceUID, "UI", seg_plane_instance(w->request, 0)->study_uid);
    put_text(w, TAG_SeriesInstanceUID, "UI", w->identity.series_uid);
    put_inherited(w, TAG_StudyID, "SH");
    put_text(w, TAG_SeriesNumber, "IS", number);
    put_text(w, TAG_InstanceNumber, "IS", "1");
    put_text(w, TAG_FrameOfReferenceUID, "UI", w->frame_of_reference_uid);
    put_inherited(w, TAG_PositionReferenceIndicator, "LO");
    put_dimensions(w);
}

/* What each lossy transfer syntax is (PS3.3 C.7.6.1.1.5.1), for sources that do not say. */
static const char *
lossy_method(const struct dicom_instance *source)
{
    static const char *const methods[][2] = {
        {"1.2.840.10008.1.2.4.50", "ISO_10918_1"},   {"1.2.840.10008.1.2.4.51", "ISO_10918_1"},
        {"1.2.840.10008.1.2.4.81", "ISO_14495_1"},   {"1.2.840.10008.1.2.4.91", "ISO_15444_1"},
        {"1.2.840.10008.1.2.4.203", "ISO_15444_15"},
    };
    if (source->lossy_method[0] != '\0')
        return source->lossy_method;
    for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
        if (strcmp(source->transfer_syntax_uid, methods[i][0]) == 0)
            return methods[i][1];
    }
    return "";
}

/* The source's ratio, or that of its file, which is all that is known where it does not say. */
static void
lossy_ratio(const struct dicom_instance *source, char text[DICOM_DS_SIZE])
{
    size_t length = strlen(source->lossy_ratio);
    if (length > 0 && value_is_legal("DS", source->lossy_ratio, length)) {
        memcpy(text, source->lossy_ratio, DICOM_DS_SIZE);
        return;
    }
    double ratio = 1.0;
    if (source->pixel_offset < 0 && source->file_size > 0) {
        double raw = (double)source->rows * (double)source->columns * (double)source->frame_count *
                     (double)source->bits_allocated / 8.0;
        ratio = fmax(1.0, round(raw / (double)source->file_size * 100.0) / 100.0);
    }
    value_ds_format(ratio, text);
}

static void
put_lossiness(struct seg_writer *w)
{
    const struct dicom_instance *lossy = NULL;
    for (int32_t p = 0; p < w->request->stack->plane_count && !lossy; p++) {
        if (seg_plane_instance(w->request, p)->lossy)
            lossy = seg_plane_instance(w->request, p);
    }
    if (!lossy) {
        put_text(w, TAG_LossyImageCompression, "CS", "00");
        return;
    }
    char ratio[DICOM_DS_SIZE];
    lossy_ratio(lossy, ratio);
    put_text(w, TAG_LossyImageCompression, "CS", "01");
    put_text(w, TAG_LossyImageCompressionRatio, "DS", ratio);
    if (lossy_method(lossy)[0] != '\0')
        put_text(w, TAG_LossyImageCompressionMethod, "CS", lossy_method(lossy));
}

static void
put_image(struct seg_writer *w)
{
    char frames[24];
    snprintf(frames, sizeof(frames), "%lld", (long long)w->plan.frames);
    put_number(w, TAG_SamplesPerPixel, 1);
    put_text(w, TAG_PhotometricInterpretation, "CS", "MONOCHROME2");
    put_text(w, TAG_NumberOfFrames, "IS", frames);
    put_number(w, TAG_Rows, (uint16_t)w->request->stack->rows);
    put_number(w, TAG_Columns, (uint16_t)w->request->stack->columns);
    put_number(w, TAG_BitsAllocated, 1);
    put_number(w, TAG_BitsStored, 1);
    put_number(w, TAG_HighBit, 0);
    put_number(w, TAG_PixelRepresentation, 0);
    put_lossiness(w);
}

static void
add_algorithm(const struct seg_writer *w, struct element_buffer *to,
              const struct seg_segment *segment)
{
    const struct seg_code *family =
        segment->algorithm_family.value ? &segment->algorithm_family : &deformable_models;
    size_t sequence = element_open_sequence(to, TAG_SegmentationAlgorithmIdentificationSequence);
    size_t item = element_open_item(to);
    add_code(w, to, TAG_AlgorithmFamilyCodeSequence, family);
    add_clean(w, to, TAG_AlgorithmVersion, "LO", segment->algorithm_version, LO_CHARACTERS,
              VALUE_LINE);
    if (segment->algorithm_parameters[0] != '\0')
        add_clean(w, to, TAG_AlgorithmParameters, "LT", segment->algorithm_parameters,
                  ST_CHARACTERS, VALUE_LINES);
    add_clean(w, to, TAG_AlgorithmName, "LO", segment->algorithm_name, LO_CHARACTERS, VALUE_LINE);
    element_close(to, item);
    element_close(to, sequence);
}

/* Segmented Property Type; its modifier belongs into the item of the type. */
static void
add_type(const struct seg_writer *w, struct element_buffer *to, const struct seg_segment *segment)
{
    size_t sequence = element_open_sequence(to, TAG_SegmentedPropertyTypeCodeSequence);
    size_t item = element_open_item(to);
    add_code_values(w, to, &segment->type);
    if (segment->modifier.value)
        add_code(w, to, TAG_SegmentedPropertyTypeModifierCodeSequence, &segment->modifier);
    element_close(to, item);
    element_close(to, sequence);
}

static int
add_tracking(const struct seg_writer *w, struct element_buffer *to,
             const struct seg_segment *segment)
{
    char uid[DICOM_UID_SIZE];
    char id[512];
    int error = seg_tracking_uid(w->request, segment, uid);
    if (error)
        return error;
    snprintf(id, sizeof(id), "%s: %s", w->request->pipeline, segment->label);
    add_clean(w, to, TAG_TrackingID, "UT", id, SIZE_MAX, VALUE_LINES);
    element_text(to, TAG_TrackingUID, "UI", uid);
    return 0;
}

static int
add_segment(const struct seg_writer *w, struct element_buffer *to, int32_t index)
{
    const struct seg_segment *segment = &w->request->segments[index];
    const uint16_t number = (uint16_t)(index + 1);
    uint16_t lab[3];
    cielab_from_srgb(segment->color_rgb, lab);

    size_t item = element_open_item(to);
    if (segment->region.value)
        add_code(w, to, TAG_AnatomicRegionSequence, &segment->region);
    add_code(w, to, TAG_SegmentedPropertyCategoryCodeSequence, &segment->category);
    element_us(to, TAG_SegmentNumber, &number, 1);
    add_clean(w, to, TAG_SegmentLabel, "LO", segment->label, LO_CHARACTERS, VALUE_LINE);
    if (segment->description[0] != '\0')
        add_clean(w, to, TAG_SegmentDescription, "ST", segment->description, ST_CHARACTERS,
                  VALUE_LINES);
    add_algorithm(w, to, segment);
    element_text(to, TAG_SegmentAlgorithmType, "CS", "AUTOMATIC");
    add_clean(w, to, TAG_SegmentAlgorithmName, "LO", segment->algorithm_name, LO_CHARACTERS,
              VALUE_LINE);
    element_us(to, TAG_RecommendedDisplayCIELabValue, lab, 3);
    add_type(w, to, segment);
    int error = add_tracking(w, to, segment);
    element_close(to, item);
    return error;
}

static int
put_segments(struct seg_writer *w)
{
    int error = 0;
    put_text(w, TAG_SegmentationType, "CS", "BINARY");
    reach(w, TAG_SegmentSequence);
    size_t sequence = element_open_sequence(&w->header, TAG_SegmentSequence);
    for (int32_t i = 0; i < w->request->segment_count && !error; i++)
        error = add_segment(w, &w->header, i);
    element_close(&w->header, sequence);
    put_text(w, TAG_SegmentsOverlap, "CS", w->plan.overlap ? "YES" : "NO");
    return error;
}

static void
put_content(struct seg_writer *w)
{
    char label[VALUE_CS_SIZE];
    value_cs_make(w->request->pipeline, "SEGMENTATION", label);
    put_text(w, TAG_ContentLabel, "CS", label);
    put_description(w, TAG_ContentDescription);
    put_text(w, TAG_ContentCreatorName, "PN", "");
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

static int
put_functional_groups(struct seg_writer *w)
{
    reach(w, TAG_SharedFunctionalGroupsSequence);
    size_t sequence = element_open_sequence(&w->header, TAG_SharedFunctionalGroupsSequence);
    size_t item = element_open_item(&w->header);
    add_plane_orientation(&w->header, seg_plane_frame(w->request, 0));
    add_pixel_measures(w, &w->header);
    element_close(&w->header, item);
    element_close(&w->header, sequence);

    uint64_t size = stream_frame_groups(w, false);
    if (size > max_value_length)
        return -EFBIG;
    reach(w, TAG_PerFrameFunctionalGroupsSequence);
    element_header(&w->header, TAG_PerFrameFunctionalGroupsSequence, "SQ", (uint32_t)size);
    drain(w, &w->header);
    stream_frame_groups(w, true);
    return 0;
}

/* Even; cannot overflow, for prepare() has seen to it that frames are below 2^31. */
static uint64_t
pixel_data_length(const struct seg_writer *w)
{
    const struct geometry_stack *stack = w->request->stack;
    uint64_t bits = (uint64_t)w->plan.frames * (uint64_t)stack->rows * (uint64_t)stack->columns;
    return (bits + 15) / 16 * 2;
}

static void
put_pixel_data(struct seg_writer *w)
{
    reach(w, TAG_PixelData);
    element_header(&w->header, TAG_PixelData, "OB", (uint32_t)pixel_data_length(w));
    drain(w, &w->header);
    write_pixels(w);
}

/* 0, or why an encoding failed; write errors are the sink's. */
static int
write_object(struct seg_writer *w)
{
    put_file_meta(w);
    put_identification(w);
    int error = put_references(w);
    if (error)
        return error;
    put_patient_and_equipment(w);
    put_relationship(w);
    put_image(w);
    error = put_segments(w);
    if (error)
        return error;
    put_content(w);
    error = put_functional_groups(w);
    if (error)
        return error;
    put_pixel_data(w);
    return w->header.error ? w->header.error : w->item.error;
}

/* --- the call --------------------------------------------------------------------------------- */

static const char *
invalid_segment(const struct seg_request *request, const struct seg_segment *segment)
{
    if (!segment->bits)
        return "a segment without a mask";
    if (segment->words_per_row < ((int64_t)request->stack->columns + 63) / 64)
        return "a mask with rows that are too short";
    if (segment->label[0] == '\0' || segment->algorithm_name[0] == '\0' ||
        segment->algorithm_version[0] == '\0')
        return "a segment without label or algorithm";
    if (!segment->category.value || !segment->type.value || segment->category.value[0] == '\0' ||
        segment->type.value[0] == '\0')
        return "a segment without category or type";
    return NULL;
}

static const char *
invalid_request(const struct seg_request *request)
{
    const struct geometry_stack *stack = request->stack;
    if (stack->plane_count < 1 || stack->rows < 1 || stack->rows > MAX_LENGTH_16 ||
        stack->columns < 1 || stack->columns > MAX_LENGTH_16)
        return "a stack without planes or with a size beyond 65535";
    if (request->segment_count < 1 || request->segment_count > MAX_LENGTH_16)
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
code_is_ascii(const struct seg_code *code)
{
    return !code->value || (value_text_is_ascii(code->value) && value_text_is_ascii(code->scheme) &&
                            value_text_is_ascii(code->meaning));
}

static bool
segment_is_ascii(const struct seg_segment *segment)
{
    return value_text_is_ascii(segment->label) && value_text_is_ascii(segment->description) &&
           value_text_is_ascii(segment->algorithm_name) &&
           value_text_is_ascii(segment->algorithm_version) &&
           value_text_is_ascii(segment->algorithm_parameters) &&
           code_is_ascii(&segment->category) && code_is_ascii(&segment->type) &&
           code_is_ascii(&segment->modifier) && code_is_ascii(&segment->region) &&
           code_is_ascii(&segment->algorithm_family);
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

/* One character set for the object; see the head of this file. */
static int
settle_character_set(struct seg_writer *w)
{
    char set[64];
    inherited_text(w, TAG_SpecificCharacterSet, set, sizeof(set));
    w->ascii_only = request_is_ascii(w->request);
    if (w->ascii_only || strcmp(set, "ISO_IR 192") == 0)
        return 0;
    int error = charset_to_utf8(&w->inherited);
    w->ascii_only = error != 0;
    return error == -ENOMEM ? error : 0;
}

/*
 * Dates and times of ours are UTC, unless the source declares the offset that all times of an
 * object have.
 */
static void
settle_time(struct seg_writer *w)
{
    char offset[8];
    int hours;
    int minutes;
    char sign;
    int east = 0;
    inherited_text(w, TAG_TimezoneOffsetFromUTC, offset, sizeof(offset));
    if (sscanf(offset, "%c%2d%2d", &sign, &hours, &minutes) == 3 && (sign == '+' || sign == '-'))
        east = (sign == '-' ? -1 : 1) * (hours * 60 + minutes);
    value_date_time(w->request->content_time_ms, east, w->date, w->time);
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
    if (w->plan.frames > INT32_MAX || pixel_data_length(w) > max_value_length)
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
    int error = dicom_inherit(seg_plane_instance(request, 0)->path, &w->inherited, fault);
    if (error)
        return error;
    w->referenced = calloc((size_t)request->instance_count, sizeof(*w->referenced));
    if (!w->referenced || settle_character_set(w) || seg_make_identity(request, &w->identity) ||
        seg_frame_of_reference_uid(request, w->frame_of_reference_uid) ||
        seg_plan_make(request, &w->plan) || byte_sink_open(&w->sink, fd))
        return out_of_memory(fault);
    settle_time(w);
    return check_plan(w, fault);
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
    element_buffer_free(&w->header);
    element_buffer_free(&w->item);
    seg_plan_free(&w->plan);
    free(w->referenced);
    dicom_inherited_free(&w->inherited);
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
