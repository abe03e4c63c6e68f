/*
 * sr_tree.c - content of a report: TID 1500 Measurement Report with 1204 (language), 1001 and 1004
 * (device observer), 1600 (image library), 1411 and, of 2-D images, 1410 (measurement groups of segments), and 1501 (of
 * images), of PS3.16. Items are in the order of the templates.
 */
#include "dicom/objects/sr/sr_internal.h"
#include "dicom/objects/sr/sr_writer.h"
#include "dicom/read/annotation/rtstruct.h"
#include "dicom/value/tags.h"
#include "dicom/write/mask_bits.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CODE(value, scheme, meaning) (&(const struct coded_concept){value, scheme, meaning})
#define DCM(value, meaning)          CODE(value, "DCM", meaning)
#define SCT(value, meaning)          CODE(value, "SCT", meaning)

static const struct coded_concept millimeter = {"mm", "UCUM", "millimeter"};
static const struct coded_concept pixels = {"{pixels}", "UCUM", "Pixels"};

/* Code of a modality, and its procedure if no other is known (CID 29 and 100). */
struct modality {
    struct coded_concept code;
    struct coded_concept procedure;
};

static const struct modality *
modality_of(const struct dicom_instance *instance)
{
    static const struct modality modalities[] = {
        {{"CT", "DCM", "Computed Tomography"}, {"25045-6", "LN", "CT unspecified body region"}},
        {{"MR", "DCM", "Magnetic Resonance"}, {"25056-3", "LN", "MRI unspecified body region"}},
        {{"PT", "DCM", "Positron emission tomography"}, {"44136-0", "LN", "PET unspecified body region"}},
        {{"CR", "DCM", "Computed Radiography"}, {"43468-8", "LN", "XR unspecified body region"}},
        {{"DX", "DCM", "Digital Radiography"}, {"43468-8", "LN", "XR unspecified body region"}},
        {{"MG", "DCM", "Mammography"}, {"43468-8", "LN", "XR unspecified body region"}},
        {{"RF", "DCM", "Radiofluoroscopy"}, {"43468-8", "LN", "XR unspecified body region"}},
        {{"XA", "DCM", "X-Ray Angiography"}, {"77343006", "SCT", "Angiography"}},
        {{"US", "DCM", "Ultrasound"}, {"363679005", "SCT", "Imaging procedure"}},
        {{"NM", "DCM", "Nuclear Medicine"}, {"363679005", "SCT", "Imaging procedure"}},
    };
    for (size_t i = 0; i < sizeof(modalities) / sizeof(modalities[0]); i++) {
        if (strcmp(modalities[i].code.value, instance->modality) == 0)
            return &modalities[i];
    }
    return NULL;
}

/* Returns the numbers of the stack's frames in an instance, separated by backslashes. Returns
 * NULL if all frames are used or memory is short. */
static char *
frame_numbers(struct sr_writer *w, int32_t instance)
{
    const struct geometry_stack *stack = w->request->seg->source.stack;
    const struct dicom_instance *source = w->request->seg->source.instances[instance];
    const int32_t all = source->multi_frame ? source->frame_count : 0;
    int32_t count = 0;
    for (int32_t p = 0; p < stack->plane_count && count < all; p++)
        count += stack->planes[p].instance == instance;
    if (count == all)
        return NULL;
    const size_t size = (size_t)count * 12 + 1;
    char *numbers = calloc(size, 1);
    if (!numbers) {
        element_fail(&w->set.elements, -ENOMEM);
        return NULL;
    }
    size_t length = 0;
    for (int32_t p = 0; p < stack->plane_count; p++) {
        if (stack->planes[p].instance == instance)
            length += (size_t)snprintf(numbers + length, size - length, "%s%d", length > 0 ? "\\" : "",
                                       stack->planes[p].frame + 1);
    }
    return numbers;
}

/* Adds references to the source images, with the frames of those that the stack does not use whole. */
static void
put_source_images(struct sr_writer *w, const struct coded_concept *concept)
{
    for (int32_t i = 0; i < w->source_count; i++) {
        char *frames = frame_numbers(w, w->sources[i]);
        const struct sr_image image = {.class_uid = sr_source(w, i)->sop_class_uid,
                                       .instance_uid = sr_source(w, i)->sop_instance_uid,
                                       .frames = frames};
        sr_add_image(w, concept, &image);
        free(frames);
    }
}

static void
put_image_library(struct sr_writer *w)
{
    struct sr_branch library = sr_begin_container(w, DCM("111028", "Image Library"));
    struct sr_branch group = sr_begin_container(w, DCM("126200", "Image Library Group"));
    /* The attributes that all images have in common (TID 1602). */
    const struct geometry_stack *stack = w->request->seg->source.stack;
    const struct dicom_instance *first = sr_source(w, 0);
    const struct modality *modality = modality_of(first);
    if (modality)
        sr_add_code(w, SR_HAS_ACQ_CONTEXT, DCM("121139", "Modality"), &modality->code);
    sr_add_number(w, SR_HAS_ACQ_CONTEXT, DCM("110910", "Pixel Data Rows"), stack->rows, &pixels);
    sr_add_number(w, SR_HAS_ACQ_CONTEXT, DCM("110911", "Pixel Data Columns"), stack->columns, &pixels);
    /* TID 1604 is for images with a place in the patient, TID 1603 for others. */
    if (first->frame_of_reference_uid[0] != '\0' && !stack->flat)
        sr_add_uid(w, SR_HAS_ACQ_CONTEXT, DCM("112227", "Frame of Reference UID"), first->frame_of_reference_uid);
    if (geometry_is_in_mm(stack)) {
        sr_add_number(w, SR_HAS_ACQ_CONTEXT, DCM("111026", "Horizontal Pixel Spacing"), stack->spacing[0], &millimeter);
        sr_add_number(w, SR_HAS_ACQ_CONTEXT, DCM("111066", "Vertical Pixel Spacing"), stack->spacing[1], &millimeter);
    }
    if (stack->plane_count > 1 && !stack->uneven)
        sr_add_number(w, SR_HAS_ACQ_CONTEXT, DCM("112226", "Spacing between slices"), stack->spacing[2], &millimeter);
    for (int32_t i = 0; i < w->source_count && !stack->flat; i++) {
        const struct sr_image image = {.class_uid = sr_source(w, i)->sop_class_uid,
                                       .instance_uid = sr_source(w, i)->sop_instance_uid};
        sr_add_image(w, NULL, &image);
    }
    if (stack->flat)
        put_source_images(w, NULL);
    sr_end(w, &group);
    if (w->request->result_count > 0) {
        group = sr_begin_container(w, DCM("126200", "Image Library Group"));
        for (size_t i = 0; i < w->request->result_count; i++) {
            const struct sr_result *result = &w->request->results[i];
            const struct sr_image image = {.class_uid = result->class_uid, .instance_uid = result->instance_uid};
            if (sr_is_in_evidence_only(result))
                continue;
            const bool is_image = strcmp(result->class_uid, RTSTRUCT_CLASS_UID) != 0;
            const struct sr_branch leaf = sr_begin_reference(w, is_image ? "IMAGE" : "COMPOSITE", NULL, &image);
            sr_end(w, &leaf);
        }
        sr_end(w, &group);
    }
    sr_end(w, &library);
}

/* Adds a code, and its modifier: a side of the body or another modifier of the type. */
static void
add_modified_code(struct sr_writer *w, const char *relation, const struct coded_concept *concept,
                  const struct coded_concept *code, const struct coded_concept *modifier_concept,
                  const struct coded_concept *modifier)
{
    struct sr_branch item = sr_begin(w, relation, "CODE", concept);
    sr_put_code(w, code);
    if (modifier) {
        sr_begin_children(w, &item);
        sr_add_code(w, SR_HAS_CONCEPT_MOD, modifier_concept, modifier);
    }
    sr_end(w, &item);
}

bool
sr_is_laterality(const struct coded_concept *code)
{
    static const char *const sides[] = {"24028007", "7771000", "51440002", "66459002"};
    if (strcmp(code->scheme, "SCT") != 0)
        return false;
    for (size_t i = 0; i < sizeof(sides) / sizeof(sides[0]); i++) {
        if (strcmp(code->value, sides[i]) == 0)
            return true;
    }
    return false;
}

/* Puts the segment's type and place. The SEG's modifier modifies the type. A side of a region
 * modifies the region instead, where readers of reports expect it. */
static void
put_finding(struct sr_writer *w, const struct seg_segment *segment)
{
    const struct coded_concept *modifier = segment->modifier.value ? &segment->modifier : NULL;
    bool of_site = modifier && segment->region.value && sr_is_laterality(modifier);
    sr_add_code(w, SR_CONTAINS, SCT("276214006", "Finding category"), &segment->category);
    add_modified_code(w, SR_CONTAINS, DCM("121071", "Finding"), &segment->type,
                      modifier && sr_is_laterality(modifier)
                          ? SCT("272741003", "Laterality")
                          : CODE("TYPE_MODIFIER", CONCEPT_OWN_SCHEME, "Segmented Property Type Modifier"),
                      of_site ? NULL : modifier);
}

/* Puts the measuring algorithm (TID 4019). The SEG has the segmenting one. */
static void
put_algorithm(struct sr_writer *w)
{
    sr_add_text(w, SR_HAS_CONCEPT_MOD, DCM("111001", "Algorithm Name"), "Noctule");
    sr_add_text(w, SR_HAS_CONCEPT_MOD, DCM("111003", "Algorithm Version"), w->request->seg->source.software_version);
    if (sr_has_parameters(w->request))
        sr_add_text(w, SR_HAS_CONCEPT_MOD, DCM("111002", "Algorithm Parameters"), w->request->algorithm_parameters);
}

/* Puts TID 300, or a qualitative evaluation for a missing number. */
static void
put_measurement(struct sr_writer *w, const struct sr_measurement *measurement)
{
    const char *absence = sr_absence(measurement);
    struct sr_branch item = sr_begin(w, SR_CONTAINS, absence ? "CODE" : "NUM", &measurement->concept);
    if (absence)
        sr_put_code(w, measurement->qualifier == SR_MEASUREMENT_FAILURE ? DCM("114006", "Measurement failure")
                       : measurement->qualifier == SR_NOT_ATTEMPTED     ? DCM("114007", "Measurement not attempted")
                                                                        : DCM("114000", "Not a number"));
    else
        sr_put_number(w, measurement->value, &measurement->unit);
    if (absence || measurement->modifier_count > 0 || measurement->parameter_count > 0 ||
        measurement->words_count > 0 || sr_has_path(w->request, measurement)) {
        sr_begin_children(w, &item);
        /* The settings of a number, and the reason if it is missing. */
        for (size_t i = 0; i < measurement->modifier_count; i++)
            sr_add_code(w, SR_HAS_CONCEPT_MOD, &measurement->modifiers[i][0], &measurement->modifiers[i][1]);
        for (size_t i = 0; i < measurement->words_count; i++)
            sr_add_text(w, SR_HAS_CONCEPT_MOD, &measurement->words[i].concept, measurement->words[i].text);
        for (size_t i = 0; i < measurement->parameter_count; i++)
            sr_add_number(w, SR_INFERRED_FROM, &measurement->parameters[i].concept, measurement->parameters[i].value,
                          &measurement->parameters[i].unit);
        if (sr_has_path(w->request, measurement))
            sr_add_path(w, DCM("121055", "Path"), measurement->path);
        if (absence)
            sr_add_text(w, SR_HAS_PROPERTIES, DCM("121106", "Comment"), absence);
    }
    sr_end(w, &item);
}

/* Puts the tracking identifiers, equal in every object that refers to the segment or volume. */
static void
put_tracking(struct sr_writer *w, const struct sr_group *group)
{
    char id[SEG_TRACKING_ID_SIZE];
    char uid[DICOM_UID_SIZE];
    int error = sr_track(w->request, group, id, uid);
    if (error) {
        element_fail(&w->set.elements, error);
        return;
    }
    sr_add_text(w, SR_HAS_OBS_CONTEXT, DCM("112039", "Tracking Identifier"), id);
    sr_add_uid(w, SR_HAS_OBS_CONTEXT, DCM("112040", "Tracking Unique Identifier"), uid);
}

/* Puts the algorithm of a region that was taken from an annotation object (rows of TID 4019),
 * below the reference to it. */
static void
put_provenance(struct sr_writer *w, const struct seg_segment *segment)
{
    struct provenance_algorithm algorithm;
    const char *name;
    if (!segment->provenance)
        return;
    sr_add_text(w, SR_HAS_CONCEPT_MOD, CODE("ALGORITHM_TYPE", CONCEPT_OWN_SCHEME, "Segment Algorithm Type"),
                seg_algorithm_type(segment));
    for (size_t i = 0; (name = seg_algorithm_name(segment, i)); i++)
        sr_add_text(w, SR_HAS_CONCEPT_MOD, DCM("111001", "Algorithm Name"), name);
    if (!seg_algorithm(segment, 0, &algorithm))
        return;
    sr_add_text(w, SR_HAS_CONCEPT_MOD, DCM("111003", "Algorithm Version"), algorithm.version);
    if (algorithm.parameters[0] != '\0')
        sr_add_text(w, SR_HAS_CONCEPT_MOD, DCM("111002", "Algorithm Parameters"), algorithm.parameters);
    sr_add_code(w, SR_HAS_CONCEPT_MOD, DCM("111000", "Algorithm Family"), &algorithm.family);
}

/*
 * Returns the number of the SEG's frame with a segment of a 2-D image, from 1. Returns 0 if the segment has none, and for a
 * volume.
 */
static int32_t
segment_frame(const struct seg_request *seg, int32_t segment)
{
    const struct geometry_stack *stack = seg->source.stack;
    int32_t frames = 0;
    bool present = false;
    for (int32_t i = 0; i <= segment && stack->flat; i++) {
        const struct seg_segment *each = &seg->segments[i];
        const struct mask_plane mask = {each->bits, each->words_per_row, stack->columns, stack->rows};
        present = !seg->omit_empty_frames || mask_any(&mask);
        frames += present;
    }
    return present ? frames : 0;
}

/* Puts a reference to the segment, in the SEG or in the object it was taken from. */
static void
put_where(struct sr_writer *w, const struct sr_group *group)
{
    const struct seg_origin *origin = sr_origin(w->request, group);
    const struct seg_segment *segment = &w->request->seg->segments[group->segment];
    const int32_t frame = origin ? 0 : segment_frame(w->request->seg, group->segment);
    struct sr_image reference = {.class_uid = SEG_SOP_CLASS_UID};
    char number[16];
    if (origin && strcmp(origin->class_uid, RTSTRUCT_CLASS_UID) == 0) {
        const struct sr_image region = {.class_uid = origin->class_uid, .instance_uid = origin->instance_uid};
        struct sr_branch item = sr_begin_reference(w, "COMPOSITE", DCM("130488", "Region in Space"), &region);
        snprintf(number, sizeof(number), "%" PRId32, origin->number);
        sr_begin_children(w, &item);
        sr_add_text(w, SR_HAS_CONCEPT_MOD, DCM("130489", "Referenced Region of Interest Identifier"), number);
        put_provenance(w, segment);
        sr_end(w, &item);
        return;
    }
    if (origin) {
        reference.class_uid = origin->class_uid;
        reference.instance_uid = origin->instance_uid;
        reference.segment = (uint16_t)origin->number;
    } else {
        reference.instance_uid = w->request->seg_identity->sop_instance_uid;
        reference.segment = frame > 0 ? 0 : (uint16_t)(group->segment + 1);
    }
    snprintf(number, sizeof(number), "%" PRId32, frame);
    reference.frames = frame > 0 ? number : NULL;
    /* The first is of a planar region (TID 1410). A region without pixels has no frame. */
    struct sr_branch item = sr_begin_reference(
        w, "IMAGE", frame > 0 ? DCM("121214", "Referenced Segmentation Frame") : DCM("121191", "Referenced Segment"),
        &reference);
    if (segment->provenance)
        sr_begin_children(w, &item);
    put_provenance(w, segment);
    sr_end(w, &item);
    /* The series of a 2-D image has others, of which the segment has no part. */
    if (w->request->seg->source.stack->flat)
        put_source_images(w, DCM("121233", "Source image for segmentation"));
    else
        sr_add_uid(w, SR_CONTAINS, DCM("121232", "Source series for segmentation"), sr_source(w, 0)->series_uid);
}

static void
put_group(struct sr_writer *w, const struct sr_group *group)
{
    struct sr_branch container = sr_begin_container(w, DCM("125007", "Measurement Group"));
    put_tracking(w, group);
    if (group->segment == SR_WHOLE_VOLUME) {
        /* The images of the stack (TID 1501), each with its purpose of CID 7551. */
        put_algorithm(w);
        put_source_images(w, DCM("121112", "Source of Measurement"));
    } else {
        /* The measured segment (TID 1411). */
        const struct seg_segment *segment = &w->request->seg->segments[group->segment];
        put_finding(w, segment);
        put_where(w, group);
        bool sided = segment->modifier.value && sr_is_laterality(&segment->modifier);
        if (segment->region.value)
            add_modified_code(w, SR_HAS_CONCEPT_MOD, SCT("363698007", "Finding Site"), &segment->region,
                              SCT("272741003", "Laterality"), sided ? &segment->modifier : NULL);
        put_algorithm(w);
    }
    /* Numbers, then missing numbers. */
    for (int absent = 0; absent < 2; absent++) {
        for (size_t i = 0; i < group->measurement_count; i++) {
            if ((sr_absence(&group->measurements[i]) != NULL) == absent)
                put_measurement(w, &group->measurements[i]);
        }
    }
    sr_end(w, &container);
}

void
sr_put_content(struct sr_writer *w)
{
    dataset_reach(&w->set, TAG_ContentSequence);
    size_t sequence = element_open_sequence(&w->set.elements, TAG_ContentSequence);
    sr_add_code(w, SR_HAS_CONCEPT_MOD, DCM("121049", "Language of Content Item and Descendants"),
                CODE("eng", "RFC5646", "English"));
    /* The device observer (TID 1004). */
    sr_add_code(w, SR_HAS_OBS_CONTEXT, DCM("121005", "Observer Type"), DCM("121007", "Device"));
    sr_add_uid(w, SR_HAS_OBS_CONTEXT, DCM("121012", "Device Observer UID"), w->device_uid);
    sr_add_text(w, SR_HAS_OBS_CONTEXT, DCM("121013", "Device Observer Name"), "Noctule");
    sr_add_text(w, SR_HAS_OBS_CONTEXT, DCM("121014", "Device Observer Manufacturer"), "Noctule");
    sr_add_text(w, SR_HAS_OBS_CONTEXT, DCM("121015", "Device Observer Model Name"), "noctuled");
    sr_add_text(w, SR_HAS_OBS_CONTEXT, DCM("121016", "Device Observer Serial Number"),
                w->request->seg->source.device_serial_number);
    const struct modality *modality = modality_of(sr_source(w, 0));
    sr_add_code(w, SR_HAS_CONCEPT_MOD, DCM("121058", "Procedure reported"),
                modality ? &modality->procedure : SCT("363679005", "Imaging procedure"));
    put_image_library(w);
    /* Groups of TID 1411, then those of TID 1501. */
    struct sr_branch container = sr_begin_container(w, DCM("126010", "Imaging Measurements"));
    for (int volume = 0; volume < 2; volume++) {
        for (size_t i = 0; i < w->request->group_count; i++) {
            if ((w->request->groups[i].segment == SR_WHOLE_VOLUME) == volume)
                put_group(w, &w->request->groups[i]);
        }
    }
    sr_end(w, &container);
    /* The comment on the report as a whole (TID 1500, "Qualitative Evaluations"). */
    if (sr_remark(w->request)) {
        container = sr_begin_container(w, CODE("C0034375", "UMLS", "Qualitative Evaluations"));
        sr_add_text(w, SR_CONTAINS, DCM("121106", "Comment"), sr_remark(w->request));
        sr_end(w, &container);
    }
    element_close(&w->set.elements, sequence);
}
