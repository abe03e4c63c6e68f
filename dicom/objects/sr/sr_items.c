#include "dicom/objects/sr/sr_writer.h"

#include "dicom/value/tags.h"

/* Puts relationship, type and name. An image of the library has no name. */
static void
put_head(struct sr_writer *w, const char *relation, const char *type, const struct coded_concept *concept)
{
    struct element_buffer *to = &w->set.elements;
    element_text(to, TAG_RelationshipType, "CS", relation);
    element_text(to, TAG_ValueType, "CS", type);
    if (concept)
        dataset_add_code(&w->set, to, TAG_ConceptNameCodeSequence, concept);
}

struct sr_branch
sr_begin(struct sr_writer *w, const char *relation, const char *type, const struct coded_concept *concept)
{
    struct sr_branch branch = {.item = element_open_item(&w->set.elements)};
    put_head(w, relation, type, concept);
    return branch;
}

void
sr_begin_children(struct sr_writer *w, struct sr_branch *branch)
{
    branch->children = element_open_sequence(&w->set.elements, TAG_ContentSequence);
}

void
sr_end(struct sr_writer *w, const struct sr_branch *branch)
{
    if (branch->children != 0)
        element_close(&w->set.elements, branch->children);
    element_close(&w->set.elements, branch->item);
}

struct sr_branch
sr_begin_container(struct sr_writer *w, const struct coded_concept *concept)
{
    struct sr_branch container = sr_begin(w, SR_CONTAINS, "CONTAINER", concept);
    element_text(&w->set.elements, TAG_ContinuityOfContent, "CS", "SEPARATE");
    sr_begin_children(w, &container);
    return container;
}

void
sr_put_code(struct sr_writer *w, const struct coded_concept *code)
{
    dataset_add_code(&w->set, &w->set.elements, TAG_ConceptCodeSequence, code);
}

/* Puts a number. Floating Point Value has every bit, which 16 characters of DS cannot always express. */
void
sr_put_number(struct sr_writer *w, double value, const struct coded_concept *unit)
{
    struct element_buffer *to = &w->set.elements;
    char text[VALUE_DS_SIZE];
    value_ds_format(value, text);
    size_t item = element_open_only_item(to, TAG_MeasuredValueSequence);
    dataset_add_code(&w->set, to, TAG_MeasurementUnitsCodeSequence, unit);
    element_fd(to, TAG_FloatingPointValue, value);
    element_text(to, TAG_NumericValue, "DS", text);
    element_close_only_item(to, item);
}

void
sr_add_text(struct sr_writer *w, const char *relation, const struct coded_concept *concept, const char *text)
{
    struct sr_branch leaf = sr_begin(w, relation, "TEXT", concept);
    dataset_add_clean(&w->set, &w->set.elements, TAG_TextValue, "UT", text, SIZE_MAX, VALUE_LINES);
    sr_end(w, &leaf);
}

void
sr_add_uid(struct sr_writer *w, const char *relation, const struct coded_concept *concept, const char *uid)
{
    struct sr_branch leaf = sr_begin(w, relation, "UIDREF", concept);
    element_text(&w->set.elements, TAG_UID, "UI", uid);
    sr_end(w, &leaf);
}

void
sr_add_code(struct sr_writer *w, const char *relation, const struct coded_concept *concept,
            const struct coded_concept *code)
{
    struct sr_branch leaf = sr_begin(w, relation, "CODE", concept);
    sr_put_code(w, code);
    sr_end(w, &leaf);
}

void
sr_add_number(struct sr_writer *w, const char *relation, const struct coded_concept *concept, double value,
              const struct coded_concept *unit)
{
    struct sr_branch leaf = sr_begin(w, relation, "NUM", concept);
    sr_put_number(w, value, unit);
    sr_end(w, &leaf);
}

void
sr_add_path(struct sr_writer *w, const struct coded_concept *concept, const double path[2][3])
{
    struct element_buffer *to = &w->set.elements;
    const struct sr_branch leaf = sr_begin(w, SR_INFERRED_FROM, "SCOORD3D", concept);
    element_fl(to, TAG_GraphicData, path[0], 6);
    element_text(to, TAG_GraphicType, "CS", "POLYLINE");
    element_text(to, TAG_ReferencedFrameOfReferenceUID, "UI", w->frame_of_reference_uid);
    sr_end(w, &leaf);
}

/* The tag of the reference is below those of the item's other attributes. */
struct sr_branch
sr_begin_reference(struct sr_writer *w, const char *type, const struct coded_concept *concept,
                   const struct sr_image *image)
{
    struct element_buffer *to = &w->set.elements;
    struct sr_branch branch = {.item = element_open_item(to)};
    size_t reference = element_open_only_item(to, TAG_ReferencedSOPSequence);
    dataset_add_reference(to, image->class_uid, image->instance_uid);
    if (image->frames)
        element_text(to, TAG_ReferencedFrameNumber, "IS", image->frames);
    if (image->segment != 0)
        element_us(to, TAG_ReferencedSegmentNumber, &image->segment, 1);
    element_close_only_item(to, reference);
    put_head(w, SR_CONTAINS, type, concept);
    return branch;
}

void
sr_add_image(struct sr_writer *w, const struct coded_concept *concept, const struct sr_image *image)
{
    const struct sr_branch leaf = sr_begin_reference(w, "IMAGE", concept, image);
    sr_end(w, &leaf);
}
