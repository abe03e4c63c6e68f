/*
 * sr_modules.c - the modules of a report around its content (PS3.3 A.35.2): identification,
 * patient, study, equipment, what it is evidence of, and the head of the content tree.
 */
#include "dicom/objects/sr/sr_internal.h"
#include "dicom/objects/sr/sr_writer.h"
#include "dicom/value/tags.h"

#include <stdio.h>
#include <string.h>

static void
put_description(struct sr_writer *w)
{
    char text[512];
    const char *given = w->request->series_description;
    snprintf(text, sizeof(text), "%s measurements", w->request->seg->source.pipeline);
    dataset_put_line(&w->set, TAG_SeriesDescription, given[0] != '\0' ? given : text);
}

static bool
measurement_uses(const struct sr_measurement *measurement, const char *scheme)
{
    bool used = strcmp(measurement->concept.scheme, scheme) == 0;
    for (size_t i = 0; i < measurement->modifier_count; i++)
        used |= strcmp(measurement->modifiers[i][0].scheme, scheme) == 0 ||
                strcmp(measurement->modifiers[i][1].scheme, scheme) == 0;
    for (size_t i = 0; i < measurement->parameter_count; i++)
        used |= strcmp(measurement->parameters[i].concept.scheme, scheme) == 0;
    if (sr_has_words(measurement))
        used |= strcmp(measurement->words.concept.scheme, scheme) == 0;
    return used;
}

static bool
segment_uses(const struct seg_segment *segment, const char *scheme)
{
    const struct coded_concept *codes[] = {&segment->category, &segment->type, &segment->modifier,
                                           &segment->region};
    bool used = segment->modifier.value && !sr_is_laterality(&segment->modifier) &&
                strcmp(scheme, CONCEPT_OWN_SCHEME) == 0;
    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
        used |= codes[i]->value && strcmp(codes[i]->scheme, scheme) == 0;
    return used;
}

static bool
is_used(const struct sr_request *request, const char *scheme)
{
    for (size_t g = 0; g < request->group_count; g++) {
        const struct sr_group *group = &request->groups[g];
        if (group->segment != SR_WHOLE_VOLUME &&
            segment_uses(&request->seg->segments[group->segment], scheme))
            return true;
        for (size_t i = 0; i < group->measurement_count; i++) {
            if (measurement_uses(&group->measurements[i], scheme))
                return true;
        }
    }
    return false;
}

/* Schemes that readers may not know (PS3.3 C.12.1.1.1). */
static void
put_coding_schemes(struct sr_writer *w)
{
    struct element_buffer *to = &w->set.elements;
    bool ibsi = is_used(w->request, SR_IBSI_SCHEME);
    bool own = is_used(w->request, CONCEPT_OWN_SCHEME);
    if (!ibsi && !own)
        return;
    dataset_reach(&w->set, TAG_CodingSchemeIdentificationSequence);
    size_t sequence = element_open_sequence(to, TAG_CodingSchemeIdentificationSequence);
    if (ibsi) {
        size_t item = element_open_item(to);
        element_text(to, TAG_CodingSchemeDesignator, "SH", SR_IBSI_SCHEME);
        element_text(to, TAG_CodingSchemeUID, "UI", "1.2.840.10008.2.16.13");
        element_text(to, TAG_CodingSchemeName, "ST", "Image Biomarker Standardisation Initiative");
        element_close(to, item);
    }
    if (own)
        dataset_add_own_scheme(to);
    element_close(to, sequence);
}

static void
put_empty_sequence(struct sr_writer *w, uint32_t tag)
{
    dataset_reach(&w->set, tag);
    element_header(&w->set.elements, tag, "SQ", 0);
}

static void
put_identification(struct sr_writer *w)
{
    dataset_put_identification(&w->set);
    put_coding_schemes(w);
    put_description(w);
    dataset_put_text(&w->set, TAG_ManufacturerModelName, "LO", "noctuled");
    put_empty_sequence(w, TAG_ReferencedPerformedProcedureStepSequence);
}

/* Positions are the SEG's: a report has no Frame of Reference module. */
static void
put_relationship(struct sr_writer *w)
{
    dataset_put_series(&w->set, w->request->series_number);
    dataset_reach(&w->set, TAG_FrameOfReferenceUID);
    dataset_reach(&w->set, TAG_PositionReferenceIndicator);
}

static void
add_sop_item(struct element_buffer *to, const char *class_uid, const char *instance_uid)
{
    size_t item = element_open_item(to);
    dataset_add_reference(to, class_uid, instance_uid);
    element_close(to, item);
}

static void
add_source_series(struct sr_writer *w, struct element_buffer *to)
{
    size_t item = element_open_item(to);
    size_t sequence = element_open_sequence(to, TAG_ReferencedSOPSequence);
    for (int32_t i = 0; i < w->source_count; i++)
        add_sop_item(to, sr_source(w, i)->sop_class_uid, sr_source(w, i)->sop_instance_uid);
    element_close(to, sequence);
    element_text(to, TAG_SeriesInstanceUID, "UI", sr_source(w, 0)->series_uid);
    element_close(to, item);
}

static void
add_seg_series(struct sr_writer *w, struct element_buffer *to)
{
    size_t item = element_open_item(to);
    size_t sequence = element_open_sequence(to, TAG_ReferencedSOPSequence);
    add_sop_item(to, SEG_SOP_CLASS_UID, w->request->seg_identity->sop_instance_uid);
    element_close(to, sequence);
    element_text(to, TAG_SeriesInstanceUID, "UI", w->request->seg_identity->series_uid);
    element_close(to, item);
}

/* Every object that the content refers to (PS3.3 C.17.2.3). */
static void
put_evidence(struct sr_writer *w)
{
    struct element_buffer *to = &w->set.elements;
    dataset_reach(&w->set, TAG_CurrentRequestedProcedureEvidenceSequence);
    size_t study = element_open_only_item(to, TAG_CurrentRequestedProcedureEvidenceSequence);
    size_t series = element_open_sequence(to, TAG_ReferencedSeriesSequence);
    add_source_series(w, to);
    if (sr_refers_to_segments(w->request))
        add_seg_series(w, to);
    element_close(to, series);
    element_text(to, TAG_StudyInstanceUID, "UI", sr_source(w, 0)->study_uid);
    element_close_only_item(to, study);
}

static void
put_template(struct sr_writer *w)
{
    struct element_buffer *to = &w->set.elements;
    dataset_reach(&w->set, TAG_ContentTemplateSequence);
    size_t item = element_open_only_item(to, TAG_ContentTemplateSequence);
    element_text(to, TAG_MappingResource, "CS", "DCMR");
    element_text(to, TAG_MappingResourceUID, "UI", "1.2.840.10008.8.1.1");
    element_text(to, TAG_TemplateIdentifier, "CS", "1500");
    element_close_only_item(to, item);
}

/* The root of the content tree is the data set itself. */
static void
put_root(struct sr_writer *w)
{
    static const struct coded_concept title = {"126000", "DCM", "Imaging Measurement Report"};
    dataset_put_text(&w->set, TAG_ValueType, "CS", "CONTAINER");
    dataset_reach(&w->set, TAG_ConceptNameCodeSequence);
    dataset_add_code(&w->set, &w->set.elements, TAG_ConceptNameCodeSequence, &title);
    dataset_put_text(&w->set, TAG_ContinuityOfContent, "CS", "SEPARATE");
    put_empty_sequence(w, TAG_PerformedProcedureCodeSequence);
    put_evidence(w);
    dataset_put_text(&w->set, TAG_CompletionFlag, "CS", "COMPLETE");
    dataset_put_text(&w->set, TAG_VerificationFlag, "CS", "UNVERIFIED");
    put_template(w);
}

void
sr_put_modules(struct sr_writer *w)
{
    dataset_put_file_meta(&w->set);
    put_identification(w);
    dataset_put_patient_and_equipment(&w->set);
    put_relationship(w);
    put_root(w);
}
