/*
 * seg_modules.c - the modules of a segmentation object (PS3.3 A.51.3) whose size does not depend on
 * its frames, each group of tags in ascending order.
 */
#include "seg_writer.h"

#include "cielab.h"
#include "dicom_tags.h"
#include "file_meta.h"
#include "seg_internal.h"
#include "seg_scene.h"
#include "uid.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const struct seg_code deformable_models = {"123111", "DCM", "Deformable Models"};

void
seg_put_file_meta(struct seg_writer *w)
{
    const struct file_meta meta = {
        .sop_class_uid = SEG_SOP_CLASS_UID,
        .sop_instance_uid = w->identity.sop_instance_uid,
        .transfer_syntax_uid = "1.2.840.10008.1.2.1",
    };
    file_meta_append(&w->set.elements, &meta);
    seg_drain(w, &w->set.elements);
}

/* What people read in a list of series. */
static void
put_description(struct seg_writer *w, uint32_t tag)
{
    const struct seg_request *request = w->request;
    if (request->series_description[0] != '\0') {
        dataset_put_line(&w->set, tag, request->series_description);
        return;
    }
    char text[512];
    snprintf(text, sizeof(text), "%s segmentation%s", request->pipeline,
             request->fractional ? ", fractional" : "");
    dataset_put_line(&w->set, tag, text);
}

void
seg_put_identification(struct seg_writer *w)
{
    dataset_put_text(&w->set, TAG_ImageType, "CS", "DERIVED\\PRIMARY");
    dataset_put_text(&w->set, TAG_InstanceCreationDate, "DA", w->date);
    dataset_put_text(&w->set, TAG_InstanceCreationTime, "TM", w->time);
    dataset_put_text(&w->set, TAG_SOPClassUID, "UI", SEG_SOP_CLASS_UID);
    dataset_put_text(&w->set, TAG_SOPInstanceUID, "UI", w->identity.sop_instance_uid);
    dataset_put_inherited(&w->set, TAG_StudyDate, "DA");
    dataset_put_text(&w->set, TAG_SeriesDate, "DA", w->date);
    dataset_put_text(&w->set, TAG_ContentDate, "DA", w->date);
    dataset_put_inherited(&w->set, TAG_StudyTime, "TM");
    dataset_put_text(&w->set, TAG_SeriesTime, "TM", w->time);
    dataset_put_text(&w->set, TAG_ContentTime, "TM", w->time);
    dataset_put_inherited(&w->set, TAG_AccessionNumber, "SH");
    dataset_put_text(&w->set, TAG_Modality, "CS", "SEG");
    dataset_put_text(&w->set, TAG_Manufacturer, "LO", "Noctule");
    dataset_put_inherited(&w->set, TAG_ReferringPhysicianName, "PN");
    put_description(w, TAG_SeriesDescription);
    dataset_put_text(&w->set, TAG_ManufacturerModelName, "LO", "noctuled");
}

void
seg_put_patient_and_equipment(struct seg_writer *w)
{
    dataset_put_inherited(&w->set, TAG_PatientName, "PN");
    dataset_put_inherited(&w->set, TAG_PatientID, "LO");
    dataset_put_inherited(&w->set, TAG_PatientBirthDate, "DA");
    dataset_put_inherited(&w->set, TAG_PatientSex, "CS");
    dataset_put_line(&w->set, TAG_DeviceSerialNumber, w->request->device_serial_number);
    dataset_put_line(&w->set, TAG_SoftwareVersions, w->request->software_version);
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
    struct element_buffer *to = &w->set.elements;
    dataset_reach(&w->set, TAG_DimensionOrganizationSequence);
    size_t sequence = element_open_sequence(to, TAG_DimensionOrganizationSequence);
    size_t item = element_open_item(to);
    element_text(to, TAG_DimensionOrganizationUID, "UI", w->identity.dimension_organization_uid);
    element_close(to, item);
    element_close(to, sequence);

    dataset_reach(&w->set, TAG_DimensionIndexSequence);
    sequence = element_open_sequence(to, TAG_DimensionIndexSequence);
    add_dimension(w, to, TAG_ReferencedSegmentNumber, TAG_SegmentIdentificationSequence,
                  "ReferencedSegmentNumber");
    add_dimension(w, to, TAG_ImagePositionPatient, TAG_PlanePositionSequence,
                  "ImagePositionPatient");
    element_close(to, sequence);
}

void
seg_put_relationship(struct seg_writer *w)
{
    char number[16];
    snprintf(number, sizeof(number), "%d", w->request->series_number);
    dataset_put_text(&w->set, TAG_StudyInstanceUID, "UI",
                     seg_plane_instance(w->request, 0)->study_uid);
    dataset_put_text(&w->set, TAG_SeriesInstanceUID, "UI", w->identity.series_uid);
    dataset_put_inherited(&w->set, TAG_StudyID, "SH");
    dataset_put_text(&w->set, TAG_SeriesNumber, "IS", number);
    dataset_put_text(&w->set, TAG_InstanceNumber, "IS", "1");
    dataset_put_text(&w->set, TAG_FrameOfReferenceUID, "UI", w->frame_of_reference_uid);
    dataset_put_inherited(&w->set, TAG_PositionReferenceIndicator, "LO");
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
        dataset_put_text(&w->set, TAG_LossyImageCompression, "CS", "00");
        return;
    }
    char ratio[DICOM_DS_SIZE];
    lossy_ratio(lossy, ratio);
    dataset_put_text(&w->set, TAG_LossyImageCompression, "CS", "01");
    dataset_put_text(&w->set, TAG_LossyImageCompressionRatio, "DS", ratio);
    if (lossy_method(lossy)[0] != '\0')
        dataset_put_text(&w->set, TAG_LossyImageCompressionMethod, "CS", lossy_method(lossy));
}

void
seg_put_image(struct seg_writer *w)
{
    const uint16_t bits = w->request->fractional ? 8 : 1;
    char frames[24];
    snprintf(frames, sizeof(frames), "%lld", (long long)w->plan.frames);
    dataset_put_us(&w->set, TAG_SamplesPerPixel, 1);
    dataset_put_text(&w->set, TAG_PhotometricInterpretation, "CS", "MONOCHROME2");
    dataset_put_text(&w->set, TAG_NumberOfFrames, "IS", frames);
    dataset_put_us(&w->set, TAG_Rows, (uint16_t)w->request->stack->rows);
    dataset_put_us(&w->set, TAG_Columns, (uint16_t)w->request->stack->columns);
    dataset_put_us(&w->set, TAG_BitsAllocated, bits);
    dataset_put_us(&w->set, TAG_BitsStored, bits);
    dataset_put_us(&w->set, TAG_HighBit, (uint16_t)(bits - 1));
    dataset_put_us(&w->set, TAG_PixelRepresentation, 0);
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
    dataset_add_code(&w->set, to, TAG_AlgorithmFamilyCodeSequence, family);
    dataset_add_clean(&w->set, to, TAG_AlgorithmVersion, "LO", segment->algorithm_version,
                      LO_CHARACTERS, VALUE_LINE);
    if (segment->algorithm_parameters[0] != '\0')
        dataset_add_clean(&w->set, to, TAG_AlgorithmParameters, "LT", segment->algorithm_parameters,
                          ST_CHARACTERS, VALUE_LINES);
    dataset_add_clean(&w->set, to, TAG_AlgorithmName, "LO", segment->algorithm_name, LO_CHARACTERS,
                      VALUE_LINE);
    element_close(to, item);
    element_close(to, sequence);
}

/* Segmented Property Type; its modifier belongs into the item of the type. */
static void
add_type(const struct seg_writer *w, struct element_buffer *to, const struct seg_segment *segment)
{
    size_t sequence = element_open_sequence(to, TAG_SegmentedPropertyTypeCodeSequence);
    size_t item = element_open_item(to);
    dataset_add_code_values(&w->set, to, &segment->type);
    if (segment->modifier.value)
        dataset_add_code(&w->set, to, TAG_SegmentedPropertyTypeModifierCodeSequence,
                         &segment->modifier);
    element_close(to, item);
    element_close(to, sequence);
}

static int
add_tracking(const struct seg_writer *w, struct element_buffer *to,
             const struct seg_segment *segment)
{
    char uid[DICOM_UID_SIZE];
    char id[SEG_TRACKING_ID_SIZE];
    int error = seg_tracking_uid(w->request, segment, uid);
    if (error)
        return error;
    seg_tracking_id(w->request, segment, id);
    dataset_add_clean(&w->set, to, TAG_TrackingID, "UT", id, SIZE_MAX, VALUE_LINES);
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
        dataset_add_code(&w->set, to, TAG_AnatomicRegionSequence, &segment->region);
    dataset_add_code(&w->set, to, TAG_SegmentedPropertyCategoryCodeSequence, &segment->category);
    element_us(to, TAG_SegmentNumber, &number, 1);
    dataset_add_clean(&w->set, to, TAG_SegmentLabel, "LO", segment->label, LO_CHARACTERS,
                      VALUE_LINE);
    if (segment->description[0] != '\0')
        dataset_add_clean(&w->set, to, TAG_SegmentDescription, "ST", segment->description,
                          ST_CHARACTERS, VALUE_LINES);
    add_algorithm(w, to, segment);
    element_text(to, TAG_SegmentAlgorithmType, "CS", "AUTOMATIC");
    dataset_add_clean(&w->set, to, TAG_SegmentAlgorithmName, "LO", segment->algorithm_name,
                      LO_CHARACTERS, VALUE_LINE);
    element_us(to, TAG_RecommendedDisplayCIELabValue, lab, 3);
    add_type(w, to, segment);
    int error = add_tracking(w, to, segment);
    element_close(to, item);
    return error;
}

/* Of probabilities nobody can say where one segment ends and another begins. */
static const char *
segments_overlap(const struct seg_writer *w)
{
    if (w->request->fractional && w->request->segment_count > 1)
        return "UNDEFINED";
    return w->plan.overlap ? "YES" : "NO";
}

int
seg_put_segments(struct seg_writer *w)
{
    bool fractional = w->request->fractional;
    int error = 0;
    dataset_put_text(&w->set, TAG_SegmentationType, "CS", fractional ? "FRACTIONAL" : "BINARY");
    dataset_reach(&w->set, TAG_SegmentSequence);
    size_t sequence = element_open_sequence(&w->set.elements, TAG_SegmentSequence);
    for (int32_t i = 0; i < w->request->segment_count && !error; i++)
        error = add_segment(w, &w->set.elements, i);
    element_close(&w->set.elements, sequence);
    if (fractional) {
        dataset_put_us(&w->set, TAG_MaximumFractionalValue, SEG_SCENE_MAX);
        dataset_put_text(&w->set, TAG_SegmentationFractionalType, "CS", "PROBABILITY");
    }
    dataset_put_text(&w->set, TAG_SegmentsOverlap, "CS", segments_overlap(w));
    return error;
}

void
seg_put_content(struct seg_writer *w)
{
    char label[VALUE_CS_SIZE];
    value_cs_make(w->request->pipeline, "SEGMENTATION", label);
    dataset_put_text(&w->set, TAG_ContentLabel, "CS", label);
    put_description(w, TAG_ContentDescription);
    dataset_put_text(&w->set, TAG_ContentCreatorName, "PN", "");
}
