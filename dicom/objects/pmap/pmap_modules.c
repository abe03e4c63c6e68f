/*
 * pmap_modules.c - the attributes and the functional groups of a parametric map (PS3.3 A.75.3,
 * A.75.4) that no other object has, in ascending order of their tags.
 */
#include "dicom/objects/pmap/pmap_writer.h"

#include "dicom/objects/pmap/pmap_region.h"
#include "dicom/value/tags.h"

static const struct coded_concept no_units = {"1", "UCUM", "no units"};
static const struct coded_concept quantity = {"246205007", "SCT", "Quantity"};

void
pmap_put_qualification(struct pmap_writer *w)
{
    dataset_put_text(&w->out.set, TAG_ContentQualification, "CS", "RESEARCH");
}

void
pmap_put_image(struct pmap_writer *w)
{
    struct dataset_writer *set = &w->out.set;
    dataset_put_us(set, TAG_PixelPaddingValue, PMAP_PADDING);
    dataset_put_text(set, TAG_BurnedInAnnotation, "CS", "NO");
    dataset_put_text(set, TAG_RecognizableVisualFeatures, "CS", "NO");
    stack_put_lossiness(&w->out);
    dataset_reach(set, TAG_AcquisitionContextSequence);
    element_header(&set->elements, TAG_AcquisitionContextSequence, "SQ", 0);
}

void
pmap_put_presentation(struct pmap_writer *w)
{
    dataset_put_text(&w->out.set, TAG_PresentationLUTShape, "CS", "IDENTITY");
}

/* --- functional groups --- */

static void
add_anatomy(const struct pmap_writer *w, struct element_buffer *to)
{
    const char *body_part = derived_plane_instance(w->request->source, 0)->body_part;
    size_t sequence = element_open_sequence(to, TAG_FrameAnatomySequence);
    size_t item = element_open_item(to);
    dataset_add_code(&w->out.set, to, TAG_AnatomicRegionSequence, pmap_region(body_part));
    element_text(to, TAG_FrameLaterality, "CS", "U");
    element_close(to, item);
    element_close(to, sequence);
}

/* For display: all codes, from black to white. */
static void
add_voi(struct element_buffer *to)
{
    size_t sequence = element_open_sequence(to, TAG_FrameVOILUTSequence);
    size_t item = element_open_item(to);
    element_text(to, TAG_WindowCenter, "DS", "128");
    element_text(to, TAG_WindowWidth, "DS", "256");
    element_text(to, TAG_VOILUTFunction, "CS", "LINEAR");
    element_close(to, item);
    element_close(to, sequence);
}

/* Identity Pixel Value Transformation: what values mean is said by Real World Value Mapping. */
static void
add_transformation(struct element_buffer *to)
{
    size_t sequence = element_open_sequence(to, TAG_PixelValueTransformationSequence);
    size_t item = element_open_item(to);
    element_text(to, TAG_RescaleIntercept, "DS", "0");
    element_text(to, TAG_RescaleSlope, "DS", "1");
    element_text(to, TAG_RescaleType, "LO", "US");
    element_close(to, item);
    element_close(to, sequence);
}

static void
add_frame_type(struct element_buffer *to)
{
    size_t sequence = element_open_sequence(to, TAG_ParametricMapFrameTypeSequence);
    size_t item = element_open_item(to);
    element_text(to, TAG_FrameType, "CS", PMAP_IMAGE_TYPE);
    element_close(to, item);
    element_close(to, sequence);
}

/* A content item (PS3.3 10.2.1): Quantity = the request's. */
static void
add_quantity(const struct pmap_writer *w, struct element_buffer *to)
{
    size_t sequence = element_open_sequence(to, TAG_QuantityDefinitionSequence);
    size_t item = element_open_item(to);
    element_text(to, TAG_ValueType, "CS", "CODE");
    dataset_add_code(&w->out.set, to, TAG_ConceptNameCodeSequence, &quantity);
    dataset_add_code(&w->out.set, to, TAG_ConceptCodeSequence, &w->request->quantity);
    element_close(to, item);
    element_close(to, sequence);
}

/*
 * Real World Value Mapping: a code is its own value. The range mapped is that of all stored values,
 * padding among them, which Pixel Padding Value takes out: highdicom gives no value of a frame that
 * has one beyond the range.
 */
static void
add_meaning(const struct pmap_writer *w, struct element_buffer *to)
{
    const uint16_t first = 0;
    const uint16_t last = UINT16_MAX;
    size_t sequence = element_open_sequence(to, TAG_RealWorldValueMappingSequence);
    size_t item = element_open_item(to);
    dataset_add_clean(&w->out.set, to, TAG_LUTExplanation, "LO", w->request->explanation,
                      LO_CHARACTERS, VALUE_LINE);
    dataset_add_code(&w->out.set, to, TAG_MeasurementUnitsCodeSequence, &no_units);
    element_text(to, TAG_LUTLabel, "SH", w->label);
    element_us(to, TAG_RealWorldValueLastValueMapped, &last, 1);
    element_us(to, TAG_RealWorldValueFirstValueMapped, &first, 1);
    add_quantity(w, to);
    element_fd(to, TAG_RealWorldValueIntercept, 0.0);
    element_fd(to, TAG_RealWorldValueSlope, 1.0);
    element_close(to, item);
    element_close(to, sequence);
}

static void
put_shared_groups(struct pmap_writer *w)
{
    struct element_buffer *to = &w->out.set.elements;
    dataset_reach(&w->out.set, TAG_SharedFunctionalGroupsSequence);
    size_t sequence = element_open_sequence(to, TAG_SharedFunctionalGroupsSequence);
    size_t item = element_open_item(to);
    add_anatomy(w, to);
    stack_add_plane_orientation(&w->out, to);
    stack_add_pixel_measures(&w->out, to);
    add_voi(to);
    add_transformation(to);
    add_frame_type(to);
    add_meaning(w, to);
    element_close(to, item);
    element_close(to, sequence);
}

/* Frames in ascending position. */
static uint64_t
encode_frame_groups(void *context, bool write)
{
    struct pmap_writer *w = context;
    uint64_t size = 0;
    for (int32_t p = 0; p < w->request->source->stack->plane_count; p++) {
        const uint32_t index = (uint32_t)p + 1;
        struct element_buffer *to = stack_fresh_item(&w->out);
        size_t groups = element_open_item(to);
        stack_add_derivation(&w->out, to, p);
        stack_add_frame_content(to, &index, 1);
        stack_add_plane_position(&w->out, to, p);
        element_close(to, groups);
        size += stack_end_item(&w->out, write);
    }
    return size;
}

int
pmap_put_functional_groups(struct pmap_writer *w)
{
    put_shared_groups(w);
    return stack_put_frame_groups(&w->out, encode_frame_groups, w);
}
