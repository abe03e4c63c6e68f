/*
 * sr_tree.c - the content of a report: TID 1500 Measurement Report with 1204 (language), 1001 and
 * 1004 (observed by a device), 1600 (image library), 1411 (measurement groups of segments) and 1501
 * (of images), of PS3.16. Rows are in the order of the templates.
 */
#include "dicom/objects/sr/sr_internal.h"
#include "dicom/objects/sr/sr_items.h"
#include "dicom/value/tags.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct coded_concept millimeter = {"mm", "UCUM", "millimeter"};
static const struct coded_concept pixels = {"{pixels}", "UCUM", "Pixels"};

static void
latch(struct sr_writer *w, int error)
{
    if (!w->set.elements.error)
        w->set.elements.error = error;
}

static void
put_language(struct sr_writer *w)
{
    static const struct coded_concept language = {"121049", "DCM",
                                                  "Language of Content Item and Descendants"};
    static const struct coded_concept english = {"eng", "RFC5646", "English"};
    sr_add_code(w, SR_HAS_CONCEPT_MOD, &language, &english);
}

static void
put_observer(struct sr_writer *w)
{
    static const struct coded_concept type = {"121005", "DCM", "Observer Type"};
    static const struct coded_concept device = {"121007", "DCM", "Device"};
    static const struct coded_concept uid = {"121012", "DCM", "Device Observer UID"};
    static const struct coded_concept name = {"121013", "DCM", "Device Observer Name"};
    static const struct coded_concept manufacturer = {"121014", "DCM",
                                                      "Device Observer Manufacturer"};
    static const struct coded_concept model = {"121015", "DCM", "Device Observer Model Name"};
    static const struct coded_concept serial = {"121016", "DCM", "Device Observer Serial Number"};
    sr_add_code(w, SR_HAS_OBS_CONTEXT, &type, &device);
    sr_add_uid(w, SR_HAS_OBS_CONTEXT, &uid, w->device_uid);
    sr_add_text(w, SR_HAS_OBS_CONTEXT, &name, "Noctule");
    sr_add_text(w, SR_HAS_OBS_CONTEXT, &manufacturer, "Noctule");
    sr_add_text(w, SR_HAS_OBS_CONTEXT, &model, "noctuled");
    sr_add_text(w, SR_HAS_OBS_CONTEXT, &serial, w->request->seg->source.device_serial_number);
}

/* What a modality is called, and the procedure when nothing is known but that (CID 29 and 100). */
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
        {{"PT", "DCM", "Positron emission tomography"},
         {"44136-0", "LN", "PET unspecified body region"}},
    };
    for (size_t i = 0; i < sizeof(modalities) / sizeof(modalities[0]); i++) {
        if (strcmp(modalities[i].code.value, instance->modality) == 0)
            return &modalities[i];
    }
    return NULL;
}

static void
put_procedure(struct sr_writer *w)
{
    static const struct coded_concept reported = {"121058", "DCM", "Procedure reported"};
    static const struct coded_concept any = {"363679005", "SCT", "Imaging procedure"};
    const struct modality *modality = modality_of(sr_source(w, 0));
    sr_add_code(w, SR_HAS_CONCEPT_MOD, &reported, modality ? &modality->procedure : &any);
}

/* What all images have in common (TID 1602). */
static void
put_common_descriptors(struct sr_writer *w)
{
    static const struct coded_concept modality_name = {"121139", "DCM", "Modality"};
    static const struct coded_concept rows = {"110910", "DCM", "Pixel Data Rows"};
    static const struct coded_concept columns = {"110911", "DCM", "Pixel Data Columns"};
    static const struct coded_concept frame = {"112227", "DCM", "Frame of Reference UID"};
    static const struct coded_concept horizontal = {"111026", "DCM", "Horizontal Pixel Spacing"};
    static const struct coded_concept vertical = {"111066", "DCM", "Vertical Pixel Spacing"};
    static const struct coded_concept between = {"112226", "DCM", "Spacing between slices"};
    const struct geometry_stack *stack = w->request->seg->source.stack;
    const struct dicom_instance *first = sr_source(w, 0);
    const struct modality *modality = modality_of(first);
    if (modality)
        sr_add_code(w, SR_HAS_ACQ_CONTEXT, &modality_name, &modality->code);
    sr_add_number(w, SR_HAS_ACQ_CONTEXT, &rows, stack->rows, &pixels);
    sr_add_number(w, SR_HAS_ACQ_CONTEXT, &columns, stack->columns, &pixels);
    if (first->frame_of_reference_uid[0] != '\0')
        sr_add_uid(w, SR_HAS_ACQ_CONTEXT, &frame, first->frame_of_reference_uid);
    sr_add_number(w, SR_HAS_ACQ_CONTEXT, &horizontal, stack->spacing[0], &millimeter);
    sr_add_number(w, SR_HAS_ACQ_CONTEXT, &vertical, stack->spacing[1], &millimeter);
    if (stack->plane_count > 1)
        sr_add_number(w, SR_HAS_ACQ_CONTEXT, &between, stack->spacing[2], &millimeter);
}

static void
put_image_library(struct sr_writer *w)
{
    static const struct coded_concept library_name = {"111028", "DCM", "Image Library"};
    static const struct coded_concept group_name = {"126200", "DCM", "Image Library Group"};
    struct sr_branch library = sr_begin_container(w, &library_name);
    struct sr_branch group = sr_begin_container(w, &group_name);
    put_common_descriptors(w);
    for (int32_t i = 0; i < w->source_count; i++) {
        const struct sr_image image = {.class_uid = sr_source(w, i)->sop_class_uid,
                                       .instance_uid = sr_source(w, i)->sop_instance_uid};
        sr_add_image(w, NULL, &image);
    }
    sr_end(w, &group);
    sr_end(w, &library);
}

/* A code and, as its modifier, a side of the body or whatever else is said of the type. */
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

/*
 * What the segment is and where. The SEG's modifier is one of the type; when it is a side and there
 * is a region, that is where readers of reports look for it.
 */
static void
put_finding(struct sr_writer *w, const struct seg_segment *segment)
{
    static const struct coded_concept category = {"276214006", "SCT", "Finding category"};
    static const struct coded_concept finding = {"121071", "DCM", "Finding"};
    static const struct coded_concept laterality = {"272741003", "SCT", "Laterality"};
    static const struct coded_concept type_modifier = {"TYPE_MODIFIER", CONCEPT_OWN_SCHEME,
                                                       "Segmented Property Type Modifier"};
    const struct coded_concept *modifier = segment->modifier.value ? &segment->modifier : NULL;
    bool of_site = modifier && segment->region.value && sr_is_laterality(modifier);
    sr_add_code(w, SR_CONTAINS, &category, &segment->category);
    add_modified_code(w, SR_CONTAINS, &finding, &segment->type,
                      modifier && sr_is_laterality(modifier) ? &laterality : &type_modifier,
                      of_site ? NULL : modifier);
}

static void
put_site(struct sr_writer *w, const struct seg_segment *segment)
{
    static const struct coded_concept site = {"363698007", "SCT", "Finding Site"};
    static const struct coded_concept laterality = {"272741003", "SCT", "Laterality"};
    bool sided = segment->modifier.value && sr_is_laterality(&segment->modifier);
    if (segment->region.value)
        add_modified_code(w, SR_HAS_CONCEPT_MOD, &site, &segment->region, &laterality,
                          sided ? &segment->modifier : NULL);
}

/* TID 4019: who measured; the SEG says who segmented. */
static void
put_algorithm(struct sr_writer *w)
{
    static const struct coded_concept name = {"111001", "DCM", "Algorithm Name"};
    static const struct coded_concept version = {"111003", "DCM", "Algorithm Version"};
    sr_add_text(w, SR_HAS_CONCEPT_MOD, &name, "Noctule");
    sr_add_text(w, SR_HAS_CONCEPT_MOD, &version, w->request->seg->source.software_version);
}

static const struct coded_concept *
qualifier_of(const struct sr_measurement *measurement)
{
    static const struct coded_concept not_a_number = {"114000", "DCM", "Not a number"};
    static const struct coded_concept failure = {"114006", "DCM", "Measurement failure"};
    return measurement->qualifier == SR_MEASUREMENT_FAILURE ? &failure : &not_a_number;
}

/* What a number depends on, and why there is none. */
static void
put_settings(struct sr_writer *w, const struct sr_measurement *measurement, const char *absence)
{
    static const struct coded_concept comment = {"121106", "DCM", "Comment"};
    for (size_t i = 0; i < measurement->modifier_count; i++)
        sr_add_code(w, SR_HAS_CONCEPT_MOD, &measurement->modifiers[i][0],
                    &measurement->modifiers[i][1]);
    if (sr_has_words(measurement))
        sr_add_text(w, SR_HAS_CONCEPT_MOD, &measurement->words.concept, measurement->words.text);
    for (size_t i = 0; i < measurement->parameter_count; i++)
        sr_add_number(w, SR_INFERRED_FROM, &measurement->parameters[i].concept,
                      measurement->parameters[i].value, &measurement->parameters[i].unit);
    if (absence)
        sr_add_text(w, SR_HAS_PROPERTIES, &comment, absence);
}

/* TID 300, or a qualitative evaluation of what has no number. */
static void
put_measurement(struct sr_writer *w, const struct sr_measurement *measurement)
{
    const char *absence = sr_absence(measurement);
    struct sr_branch item =
        sr_begin(w, SR_CONTAINS, absence ? "CODE" : "NUM", &measurement->concept);
    if (absence)
        sr_put_code(w, qualifier_of(measurement));
    else
        sr_put_number(w, measurement->value, &measurement->unit);
    if (absence || measurement->modifier_count > 0 || measurement->parameter_count > 0 ||
        sr_has_words(measurement)) {
        sr_begin_children(w, &item);
        put_settings(w, measurement, absence);
    }
    sr_end(w, &item);
}

/* Numbers, then what has none. */
static void
put_values(struct sr_writer *w, const struct sr_group *group)
{
    for (int absent = 0; absent < 2; absent++) {
        for (size_t i = 0; i < group->measurement_count; i++) {
            if ((sr_absence(&group->measurements[i]) != NULL) == absent)
                put_measurement(w, &group->measurements[i]);
        }
    }
}

/* How the segment, or the volume, is known in every object that speaks of it. */
static void
put_tracking(struct sr_writer *w, const struct sr_group *group)
{
    static const struct coded_concept id_name = {"112039", "DCM", "Tracking Identifier"};
    static const struct coded_concept uid_name = {"112040", "DCM", "Tracking Unique Identifier"};
    char id[SEG_TRACKING_ID_SIZE];
    char uid[DICOM_UID_SIZE];
    int error = sr_track(w->request, group, id, uid);
    if (error) {
        latch(w, error);
        return;
    }
    sr_add_text(w, SR_HAS_OBS_CONTEXT, &id_name, id);
    sr_add_uid(w, SR_HAS_OBS_CONTEXT, &uid_name, uid);
}

/* TID 1411: what it is that is measured. */
static void
put_segment(struct sr_writer *w, const struct sr_group *group)
{
    static const struct coded_concept segment_name = {"121191", "DCM", "Referenced Segment"};
    static const struct coded_concept series_name = {"121232", "DCM",
                                                     "Source series for segmentation"};
    const struct seg_segment *segment = &w->request->seg->segments[group->segment];
    const struct sr_image reference = {.class_uid = SEG_SOP_CLASS_UID,
                                       .instance_uid = w->request->seg_identity->sop_instance_uid,
                                       .segment = (uint16_t)(group->segment + 1)};
    put_finding(w, segment);
    sr_add_image(w, &segment_name, &reference);
    sr_add_uid(w, SR_CONTAINS, &series_name, sr_source(w, 0)->series_uid);
    put_site(w, segment);
    put_algorithm(w);
}

/* Numbers of the stack's frames in an instance, between backslashes; NULL when it is all of them or
 * memory has run out. */
static char *
frame_numbers(struct sr_writer *w, int32_t instance)
{
    const struct geometry_stack *stack = w->request->seg->source.stack;
    const int32_t all = w->request->seg->source.instances[instance]->frame_count;
    int32_t count = 0;
    for (int32_t p = 0; p < stack->plane_count && count < all; p++)
        count += stack->planes[p].instance == instance;
    if (count == all)
        return NULL;
    const size_t size = (size_t)count * 12 + 1;
    char *numbers = calloc(size, 1);
    if (!numbers) {
        latch(w, -ENOMEM);
        return NULL;
    }
    size_t length = 0;
    for (int32_t p = 0; p < stack->plane_count; p++) {
        if (stack->planes[p].instance == instance)
            length += (size_t)snprintf(numbers + length, size - length, "%s%d",
                                       length > 0 ? "\\" : "", stack->planes[p].frame + 1);
    }
    return numbers;
}

/* TID 1501, of the images of the stack: for each its purpose is that of CID 7551. */
static void
sr_put_volume(struct sr_writer *w)
{
    static const struct coded_concept source = {"121112", "DCM", "Source of Measurement"};
    put_algorithm(w);
    for (int32_t i = 0; i < w->source_count; i++) {
        char *frames = frame_numbers(w, w->sources[i]);
        const struct sr_image image = {.class_uid = sr_source(w, i)->sop_class_uid,
                                       .instance_uid = sr_source(w, i)->sop_instance_uid,
                                       .frames = frames};
        sr_add_image(w, &source, &image);
        free(frames);
    }
}

static void
put_group(struct sr_writer *w, const struct sr_group *group)
{
    static const struct coded_concept group_name = {"125007", "DCM", "Measurement Group"};
    struct sr_branch container = sr_begin_container(w, &group_name);
    put_tracking(w, group);
    if (group->segment == SR_WHOLE_VOLUME)
        sr_put_volume(w);
    else
        put_segment(w, group);
    put_values(w, group);
    sr_end(w, &container);
}

/* Groups of TID 1411, then those of TID 1501. */
static void
put_measurements(struct sr_writer *w)
{
    static const struct coded_concept name = {"126010", "DCM", "Imaging Measurements"};
    struct sr_branch container = sr_begin_container(w, &name);
    for (int volume = 0; volume < 2; volume++) {
        for (size_t i = 0; i < w->request->group_count; i++) {
            if ((w->request->groups[i].segment == SR_WHOLE_VOLUME) == volume)
                put_group(w, &w->request->groups[i]);
        }
    }
    sr_end(w, &container);
}

void
sr_put_content(struct sr_writer *w)
{
    dataset_reach(&w->set, TAG_ContentSequence);
    size_t sequence = element_open_sequence(&w->set.elements, TAG_ContentSequence);
    put_language(w);
    put_observer(w);
    put_procedure(w);
    put_image_library(w);
    put_measurements(w);
    element_close(&w->set.elements, sequence);
}
