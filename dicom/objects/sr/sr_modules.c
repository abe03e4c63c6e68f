/*
 * sr_modules.c - modules of a report around its content (PS3.3 A.35.2): identification, patient,
 * study, equipment, evidence, and the head of the content tree.
 */
#include "dicom/objects/sr/sr_internal.h"
#include "dicom/objects/sr/sr_writer.h"
#include "dicom/value/tags.h"

#include <stdio.h>
#include <string.h>

static bool
measurement_uses(const struct sr_measurement *measurement, const char *scheme)
{
    bool used = strcmp(measurement->concept.scheme, scheme) == 0;
    for (size_t i = 0; i < measurement->modifier_count; i++)
        used |= strcmp(measurement->modifiers[i][0].scheme, scheme) == 0 ||
                strcmp(measurement->modifiers[i][1].scheme, scheme) == 0;
    for (size_t i = 0; i < measurement->parameter_count; i++)
        used |= strcmp(measurement->parameters[i].concept.scheme, scheme) == 0;
    for (size_t i = 0; i < measurement->words_count; i++)
        used |= strcmp(measurement->words[i].concept.scheme, scheme) == 0;
    return used;
}

static bool
segment_uses(const struct seg_segment *segment, const char *scheme)
{
    const struct coded_concept *codes[] = {&segment->category, &segment->type, &segment->modifier, &segment->region};
    const bool own = segment->provenance || (segment->modifier.value && !sr_is_laterality(&segment->modifier));
    bool used = own && strcmp(scheme, CONCEPT_OWN_SCHEME) == 0;
    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
        used |= codes[i]->value && strcmp(codes[i]->scheme, scheme) == 0;
    return used;
}

bool
sr_uses(const struct sr_request *request, const char *scheme)
{
    for (size_t g = 0; g < request->group_count; g++) {
        const struct sr_group *group = &request->groups[g];
        if (group->segment != SR_WHOLE_VOLUME && segment_uses(&request->seg->segments[group->segment], scheme))
            return true;
        for (size_t i = 0; i < group->measurement_count; i++) {
            if (measurement_uses(&group->measurements[i], scheme))
                return true;
        }
    }
    return false;
}

static void
add_sop_item(struct element_buffer *to, const char *class_uid, const char *instance_uid)
{
    size_t item = element_open_item(to);
    dataset_add_reference(to, class_uid, instance_uid);
    element_close(to, item);
}

/* Adds the series of the job's other objects. Those of a series follow each other. */
static void
add_result_series(struct element_buffer *to, const struct sr_request *request)
{
    for (size_t i = 0; i < request->result_count;) {
        const char *series_uid = request->results[i].series_uid;
        size_t item = element_open_item(to);
        size_t sequence = element_open_sequence(to, TAG_ReferencedSOPSequence);
        for (; i < request->result_count && strcmp(request->results[i].series_uid, series_uid) == 0; i++)
            add_sop_item(to, request->results[i].class_uid, request->results[i].instance_uid);
        element_close(to, sequence);
        element_text(to, TAG_SeriesInstanceUID, "UI", series_uid);
        element_close(to, item);
    }
}

static void
add_origin_series(struct element_buffer *to, const struct seg_origin *origin)
{
    size_t item = element_open_item(to);
    size_t sequence = element_open_sequence(to, TAG_ReferencedSOPSequence);
    add_sop_item(to, origin->class_uid, origin->instance_uid);
    element_close(to, sequence);
    element_text(to, TAG_SeriesInstanceUID, "UI", origin->series_uid);
    element_close(to, item);
}

/* Lists every object that the content refers to (PS3.3 C.17.2.3). */
static void
put_evidence(struct sr_writer *w)
{
    struct element_buffer *to = &w->set.elements;
    const char *study_uid = sr_source(w, 0)->study_uid;
    dataset_reach(&w->set, TAG_CurrentRequestedProcedureEvidenceSequence);
    size_t studies = element_open_sequence(to, TAG_CurrentRequestedProcedureEvidenceSequence);
    size_t study = element_open_item(to);
    size_t series = element_open_sequence(to, TAG_ReferencedSeriesSequence);
    size_t item = element_open_item(to);
    size_t sequence = element_open_sequence(to, TAG_ReferencedSOPSequence);
    for (int32_t i = 0; i < w->source_count; i++)
        add_sop_item(to, sr_source(w, i)->sop_class_uid, sr_source(w, i)->sop_instance_uid);
    element_close(to, sequence);
    element_text(to, TAG_SeriesInstanceUID, "UI", sr_source(w, 0)->series_uid);
    element_close(to, item);
    /* The study's other evidence: the SEG or all objects of the job, and annotation objects. */
    const struct derived_identity *seg = w->request->seg_identity;
    add_result_series(to, w->request);
    if (sr_refers_to_segments(w->request) && w->request->result_count == 0) {
        const struct seg_origin own = {
            .class_uid = SEG_SOP_CLASS_UID, .instance_uid = seg->sop_instance_uid, .series_uid = seg->series_uid};
        add_origin_series(to, &own);
    }
    for (size_t g = 0; g < w->request->group_count; g++) {
        const struct seg_origin *origin = sr_new_origin(w->request, g);
        if (origin && strcmp(origin->study_uid, study_uid) == 0)
            add_origin_series(to, origin);
    }
    element_close(to, series);
    element_text(to, TAG_StudyInstanceUID, "UI", study_uid);
    element_close(to, study);
    for (size_t g = 0; g < w->request->group_count; g++) {
        const struct seg_origin *origin = sr_new_origin(w->request, g);
        if (origin && strcmp(origin->study_uid, study_uid) != 0) {
            size_t other = element_open_item(to);
            size_t inner = element_open_sequence(to, TAG_ReferencedSeriesSequence);
            add_origin_series(to, origin);
            element_close(to, inner);
            element_text(to, TAG_StudyInstanceUID, "UI", origin->study_uid);
            element_close(to, other);
        }
    }
    element_close(to, studies);
}

void
sr_put_modules(struct sr_writer *w)
{
    dataset_put_file_meta(&w->set);
    dataset_put_identification(&w->set);
    dataset_put_header(&w->set, TAG_ReferencedPerformedProcedureStepSequence, "SQ", 0);
    dataset_put_patient_and_equipment(&w->set);
    /* The series. Positions are those of the SEG: a report has no Frame of Reference module. */
    dataset_put_series(&w->set, w->request->series_number);
    dataset_reach(&w->set, TAG_FrameOfReferenceUID);
    dataset_reach(&w->set, TAG_PositionReferenceIndicator);
    /* The root of the content tree is the data set itself. */
    static const struct coded_concept title = {"126000", "DCM", "Imaging Measurement Report"};
    static const struct element_row template[] = {
        {TAG_MappingResource, "CS", "DCMR"},
        {TAG_MappingResourceUID, "UI", "1.2.840.10008.8.1.1"},
        {TAG_TemplateIdentifier, "CS", "1500"},
        {0},
    };
    dataset_put_text(&w->set, TAG_ValueType, "CS", "CONTAINER");
    dataset_reach(&w->set, TAG_ConceptNameCodeSequence);
    dataset_add_code(&w->set, &w->set.elements, TAG_ConceptNameCodeSequence, &title);
    dataset_put_text(&w->set, TAG_ContinuityOfContent, "CS", "SEPARATE");
    /* The report that this one replaces (PS3.3 C.17.2). */
    static const struct coded_concept purpose = {"121360", "DCM", "Replaced report"};
    const struct derived_reference *replaced = w->set.identity.replaces;
    struct element_buffer *to = &w->set.elements;
    if (replaced) {
        size_t study = dataset_open_only_item(&w->set, TAG_PredecessorDocumentsSequence);
        size_t series = element_open_only_item(to, TAG_ReferencedSeriesSequence);
        size_t item = element_open_only_item(to, TAG_ReferencedSOPSequence);
        dataset_add_reference(to, replaced->class_uid ? replaced->class_uid : sr_class(w->request),
                              replaced->sop_instance_uid);
        dataset_add_code(&w->set, to, TAG_PurposeOfReferenceCodeSequence, &purpose);
        element_close_only_item(to, item);
        element_text(to, TAG_SeriesInstanceUID, "UI", replaced->series_uid);
        element_close_only_item(to, series);
        element_text(to, TAG_StudyInstanceUID, "UI", replaced->study_uid);
        element_close_only_item(to, study);
    }
    dataset_put_header(&w->set, TAG_PerformedProcedureCodeSequence, "SQ", 0);
    put_evidence(w);
    dataset_put_text(&w->set, TAG_CompletionFlag, "CS", "COMPLETE");
    dataset_put_text(&w->set, TAG_VerificationFlag, "CS", "UNVERIFIED");
    dataset_reach(&w->set, TAG_ContentTemplateSequence);
    element_only_texts(&w->set.elements, TAG_ContentTemplateSequence, template);
}
