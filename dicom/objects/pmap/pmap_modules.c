/*
 * pmap_modules.c - the attributes and the functional groups of a parametric map (PS3.3 A.75.3,
 * A.75.4) that no other object has, in ascending order of their tags.
 */
#include "dicom/objects/pmap/pmap_writer.h"

#include "dicom/value/tags.h"

#include <string.h>

static const struct coded_concept no_units = {"1", "UCUM", "no units"};
static const struct coded_concept quantity = {"246205007", "SCT", "Quantity"};

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

/* --- functional groups --- */

static const struct {
    const char *body_part;
    struct coded_concept code;
} regions[] = {
    {"ABDOMEN", {"818981001", "SCT", "Abdomen"}},
    {"ABDOMENPELVIS", {"818982008", "SCT", "Abdomen and Pelvis"}},
    {"BRAIN", {"12738006", "SCT", "Brain"}},
    {"CHEST", {"816094009", "SCT", "Chest"}},
    {"CHESTABDOMEN", {"416550000", "SCT", "Chest and Abdomen"}},
    {"CHESTABDPELVIS", {"416775004", "SCT", "Chest, Abdomen and Pelvis"}},
    {"CSPINE", {"122494005", "SCT", "Cervical spine"}},
    {"HEAD", {"69536005", "SCT", "Head"}},
    {"HEADNECK", {"774007", "SCT", "Head and Neck"}},
    {"HEART", {"80891009", "SCT", "Heart"}},
    {"LIVER", {"10200004", "SCT", "Liver"}},
    {"LSPINE", {"122496007", "SCT", "Lumbar spine"}},
    {"NECK", {"45048000", "SCT", "Neck"}},
    {"NECKCHEST", {"417437006", "SCT", "Neck and Chest"}},
    {"NECKCHESTABDPELV", {"416319003", "SCT", "Neck, Chest, Abdomen and Pelvis"}},
    {"PANCREAS", {"15776009", "SCT", "Pancreas"}},
    {"PELVIS", {"816092008", "SCT", "Pelvis"}},
    {"PROSTATE", {"41216001", "SCT", "Prostate"}},
    {"SKULL", {"89546000", "SCT", "Skull"}},
    {"SPINE", {"421060004", "SCT", "Spine"}},
    {"TSPINE", {"122495006", "SCT", "Thoracic spine"}},
};

static const struct coded_concept entire_body = {"38266002", "SCT", "Entire body"};

/*
 * The region that a Body Part Examined means (PS3.16 Annex L), of those that are no pair: nobody
 * tells the side of the others. Else the entire body, which holds them all.
 */
static const struct coded_concept *
pmap_region(const char *body_part)
{
    for (size_t i = 0; i < sizeof(regions) / sizeof(regions[0]); i++) {
        if (strcmp(body_part, regions[i].body_part) == 0)
            return &regions[i].code;
    }
    return &entire_body;
}

static void
add_anatomy(const struct pmap_writer *w, struct element_buffer *to)
{
    const char *body_part = derived_plane_instance(w->request->source, 0)->body_part;
    size_t item = element_open_only_item(to, TAG_FrameAnatomySequence);
    dataset_add_code(&w->out.set, to, TAG_AnatomicRegionSequence, pmap_region(body_part));
    element_text(to, TAG_FrameLaterality, "CS", "U");
    element_close_only_item(to, item);
}

/* For display: all codes, from black to white. */
static void
add_voi(struct element_buffer *to)
{
    size_t item = element_open_only_item(to, TAG_FrameVOILUTSequence);
    element_text(to, TAG_WindowCenter, "DS", "128");
    element_text(to, TAG_WindowWidth, "DS", "256");
    element_text(to, TAG_VOILUTFunction, "CS", "LINEAR");
    element_close_only_item(to, item);
}

/* Identity Pixel Value Transformation: what values mean is said by Real World Value Mapping. */
static void
add_transformation(struct element_buffer *to)
{
    size_t item = element_open_only_item(to, TAG_PixelValueTransformationSequence);
    element_text(to, TAG_RescaleIntercept, "DS", "0");
    element_text(to, TAG_RescaleSlope, "DS", "1");
    element_text(to, TAG_RescaleType, "LO", "US");
    element_close_only_item(to, item);
}

static void
add_frame_type(struct element_buffer *to)
{
    size_t item = element_open_only_item(to, TAG_ParametricMapFrameTypeSequence);
    element_text(to, TAG_FrameType, "CS", PMAP_IMAGE_TYPE);
    element_close_only_item(to, item);
}

/* A content item (PS3.3 10.2.1): Quantity = the request's. */
static void
add_quantity(const struct pmap_writer *w, struct element_buffer *to)
{
    size_t item = element_open_only_item(to, TAG_QuantityDefinitionSequence);
    element_text(to, TAG_ValueType, "CS", "CODE");
    dataset_add_code(&w->out.set, to, TAG_ConceptNameCodeSequence, &quantity);
    dataset_add_code(&w->out.set, to, TAG_ConceptCodeSequence, &w->request->quantity);
    element_close_only_item(to, item);
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
    size_t item = element_open_only_item(to, TAG_RealWorldValueMappingSequence);
    dataset_add_line(&w->out.set, to, TAG_LUTExplanation, w->request->explanation);
    dataset_add_code(&w->out.set, to, TAG_MeasurementUnitsCodeSequence, &no_units);
    element_text(to, TAG_LUTLabel, "SH", w->label);
    element_us(to, TAG_RealWorldValueLastValueMapped, &last, 1);
    element_us(to, TAG_RealWorldValueFirstValueMapped, &first, 1);
    add_quantity(w, to);
    element_fd(to, TAG_RealWorldValueIntercept, 0.0);
    element_fd(to, TAG_RealWorldValueSlope, 1.0);
    element_close_only_item(to, item);
}

static void
put_shared_groups(struct pmap_writer *w)
{
    struct element_buffer *to = &w->out.set.elements;
    dataset_reach(&w->out.set, TAG_SharedFunctionalGroupsSequence);
    size_t item = element_open_only_item(to, TAG_SharedFunctionalGroupsSequence);
    add_anatomy(w, to);
    stack_add_plane_orientation(&w->out, to);
    stack_add_pixel_measures(&w->out, to);
    add_voi(to);
    add_transformation(to);
    add_frame_type(to);
    add_meaning(w, to);
    element_close_only_item(to, item);
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
