/*
 * seg_modules.c - the modules of a segmentation object (PS3.3 A.51.3) whose size does not depend on
 * its frames, each group of tags in ascending order.
 */
#include "dicom/objects/seg/seg_writer.h"

#include "dicom/objects/seg/seg_internal.h"
#include "dicom/objects/seg/seg_scene.h"
#include "dicom/value/cielab.h"
#include "dicom/value/tags.h"

#include <stdio.h>

static const struct coded_concept deformable_models = {"123111", "DCM", "Deformable Models"};

const char *
seg_description(struct seg_writer *w)
{
    const struct seg_request *request = w->request;
    if (request->series_description[0] != '\0')
        return request->series_description;
    snprintf(w->description, sizeof(w->description), "%s segmentation%s", request->source.pipeline,
             request->fractional ? ", fractional" : "");
    return w->description;
}

static void
add_algorithm(const struct seg_writer *w, struct element_buffer *to,
              const struct seg_segment *segment)
{
    const struct coded_concept *family =
        segment->algorithm_family.value ? &segment->algorithm_family : &deformable_models;
    size_t item = element_open_only_item(to, TAG_SegmentationAlgorithmIdentificationSequence);
    dataset_add_code(&w->out.set, to, TAG_AlgorithmFamilyCodeSequence, family);
    dataset_add_line(&w->out.set, to, TAG_AlgorithmVersion, segment->algorithm_version);
    if (segment->algorithm_parameters[0] != '\0')
        dataset_add_clean(&w->out.set, to, TAG_AlgorithmParameters, "LT",
                          segment->algorithm_parameters, ST_CHARACTERS, VALUE_LINES);
    dataset_add_line(&w->out.set, to, TAG_AlgorithmName, segment->algorithm_name);
    element_close_only_item(to, item);
}

/* Segmented Property Type; its modifier belongs into the item of the type. */
static void
add_type(const struct seg_writer *w, struct element_buffer *to, const struct seg_segment *segment)
{
    size_t item = element_open_only_item(to, TAG_SegmentedPropertyTypeCodeSequence);
    dataset_add_code_values(&w->out.set, to, &segment->type);
    if (segment->modifier.value)
        dataset_add_code(&w->out.set, to, TAG_SegmentedPropertyTypeModifierCodeSequence,
                         &segment->modifier);
    element_close_only_item(to, item);
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
    dataset_add_clean(&w->out.set, to, TAG_TrackingID, "UT", id, SIZE_MAX, VALUE_LINES);
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
        dataset_add_code(&w->out.set, to, TAG_AnatomicRegionSequence, &segment->region);
    dataset_add_code(&w->out.set, to, TAG_SegmentedPropertyCategoryCodeSequence,
                     &segment->category);
    element_us(to, TAG_SegmentNumber, &number, 1);
    dataset_add_line(&w->out.set, to, TAG_SegmentLabel, segment->label);
    if (segment->description[0] != '\0')
        dataset_add_clean(&w->out.set, to, TAG_SegmentDescription, "ST", segment->description,
                          ST_CHARACTERS, VALUE_LINES);
    add_algorithm(w, to, segment);
    element_text(to, TAG_SegmentAlgorithmType, "CS", "AUTOMATIC");
    dataset_add_line(&w->out.set, to, TAG_SegmentAlgorithmName, segment->algorithm_name);
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
    dataset_put_text(&w->out.set, TAG_SegmentationType, "CS", fractional ? "FRACTIONAL" : "BINARY");
    dataset_reach(&w->out.set, TAG_SegmentSequence);
    size_t sequence = element_open_sequence(&w->out.set.elements, TAG_SegmentSequence);
    for (int32_t i = 0; i < w->request->segment_count && !error; i++)
        error = add_segment(w, &w->out.set.elements, i);
    element_close(&w->out.set.elements, sequence);
    if (fractional) {
        dataset_put_us(&w->out.set, TAG_MaximumFractionalValue, SEG_SCENE_MAX);
        dataset_put_text(&w->out.set, TAG_SegmentationFractionalType, "CS", "PROBABILITY");
    }
    dataset_put_text(&w->out.set, TAG_SegmentsOverlap, "CS", segments_overlap(w));
    return error;
}
