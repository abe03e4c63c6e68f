/*
 * pmap.c - writes parametric maps (PS3.3 A.75) as a stream.
 *
 * The data set is written in one pass, in ascending tag order. stack_writer.c has the parts that all objects made from
 * a stack share; this file has the rest. Codes are written from the caller's array to the file's buffer without a copy.
 */
#include "dicom/objects/pmap/pmap_parts.h"

#include "base/error.h"
#include "dicom/value/tags.h"

#include <endian.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MIN_SIZE = 3, /* smallest plane with a voxel that is not on its edge */
    BYTES = PMAP_BITS / 8,
    DOUBLE_BITS = 64,
};

/* Of the object and of every frame (PS3.3 C.8.32.2, C.8.16.1). */
#define PMAP_IMAGE_TYPE "DERIVED\\PRIMARY\\VOLUME\\NONE"

struct pmap_writer {
    const struct pmap_request *request;
    struct stack_writer out;
    char label[PMAP_KIND_SIZE];
    char window[2][VALUE_DS_SIZE]; /* centre and width */
};

int
pmap_identify(const struct pmap_request *request, struct derived_identity *identity)
{
    char after[PMAP_KIND_SIZE + 1];
    snprintf(after, sizeof(after), " %s", request->kind);
    const struct derived_kind kind = {"Parametric Map ", after, false}; /* false: has all frames */
    return derived_identify(request->source, &kind, identity);
}

void
pmap_label(const struct pmap_request *request, char label[PMAP_KIND_SIZE])
{
    snprintf(label, PMAP_KIND_SIZE, "%s", request->kind);
    for (char *c = label; *c; c++) {
        if (*c >= 'a' && *c <= 'z')
            *c = (char)(*c - 'a' + 'A');
    }
}

/* --- the request --- */

uint64_t
pmap_pixel_length(const struct pmap_request *request)
{
    const struct geometry_stack *stack = request->source->stack;
    return (uint64_t)stack->plane_count * (uint64_t)stack->rows * (uint64_t)stack->columns *
           (request->fill ? sizeof(double) : BYTES);
}

static int
pmap_check_request(const struct stack_writer *out, const struct pmap_request *request, struct error *error)
{
    const struct geometry_stack *stack = request->source->stack;
    const char *kind = request->kind, *wrong = NULL;
    const size_t length = strlen(kind);
    if (length == 0 || length >= PMAP_KIND_SIZE ||
        strspn(kind, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_") != length)
        wrong = "a kind that is not a name";
    else if (!dataset_code_is_complete(&request->quantity) || request->explanation[0] == '\0')
        wrong = "no quantity or explanation";
    else if (!request->codes == !request->fill)
        wrong = "no codes, or codes and doubles";
    else if (request->fill && out->set.object.conversion)
        wrong = "doubles in a capture";
    else if (request->fill && !dataset_code_is_complete(&request->unit))
        wrong = "no unit";
    int rc = stack_check(out, wrong, error);
    if (rc)
        return rc;
    if (!request->fill && (stack->columns < MIN_SIZE || stack->rows < MIN_SIZE))
        return error_set(error, -ENODATA, CODE_PMAP_EMPTY,
                         "Planes of %d x %d voxels have only edge voxels, which have no pattern.", stack->columns,
                         stack->rows);
    if (pmap_pixel_length(request) > STACK_MAX_VALUE_LENGTH)
        return error_set(error, -EOVERFLOW, CODE_PMAP_TOO_LARGE,
                         "%d planes of %d x %d exceed 4 GiB, the maximum of one object.", stack->plane_count,
                         stack->columns, stack->rows);
    return 0;
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

/* Returns the region of a Body Part Examined (PS3.16 Annex L), if it is unpaired. Paired regions
 * need a side, which is unknown. For these returns the entire body, which contains them all. */
static const struct coded_concept *
pmap_region(const char *body_part)
{
    for (size_t i = 0; i < sizeof(regions) / sizeof(regions[0]); i++) {
        if (strcmp(body_part, regions[i].body_part) == 0)
            return &regions[i].code;
    }
    return &entire_body;
}

/* Finds the display window: all codes or doubles, from black to white. */
static void
pmap_find_window(struct pmap_writer *w)
{
    const double *range = w->request->range;
    const double width = range[0] < range[1] ? range[1] - range[0] : 1;
    value_ds_format(!w->request->fill      ? 128
                    : range[0] <= range[1] ? range[0] + (range[1] - range[0]) / 2
                                           : 0,
                    w->window[0]);
    value_ds_format(w->request->fill ? width : 256, w->window[1]);
}

/* Identity: Real World Value Mapping defines the meaning of values. */
static const struct element_row identity_transformation[] = {
    {TAG_RescaleIntercept, "DS", "0"},
    {TAG_RescaleSlope, "DS", "1"},
    {TAG_RescaleType, "LO", "US"},
    {0},
};

static const struct element_row frame_type[] = {{TAG_FrameType, "CS", PMAP_IMAGE_TYPE}, {0}};

/* Real World Value Mapping: a code is its own value, and so is a double. The mapped range includes all stored values, also
 * padding, which Pixel Padding Value excludes. highdicom returns no value of a frame that has one outside the range. */
void
pmap_add_value_mapping(const struct dataset_writer *set, struct element_buffer *to, const struct pmap_request *request)
{
    static const struct coded_concept no_units = {"1", "UCUM", "no units"};
    static const struct coded_concept quantity = {"246205007", "SCT", "Quantity"};
    const uint16_t first = 0, last = UINT16_MAX;
    const bool is_real = request->fill != NULL;
    char label[PMAP_KIND_SIZE];
    pmap_label(request, label);
    size_t mapping = element_open_only_item(to, TAG_RealWorldValueMappingSequence);
    dataset_add_line(set, to, TAG_LUTExplanation, request->explanation);
    dataset_add_code(set, to, TAG_MeasurementUnitsCodeSequence, is_real ? &request->unit : &no_units);
    element_text(to, TAG_LUTLabel, "SH", label);
    if (is_real) {
        element_fd(to, TAG_DoubleFloatRealWorldValueLastValueMapped, -PMAP_NO_VALUE);
        element_fd(to, TAG_DoubleFloatRealWorldValueFirstValueMapped, PMAP_NO_VALUE);
    } else {
        element_us(to, TAG_RealWorldValueLastValueMapped, &last, 1);
        element_us(to, TAG_RealWorldValueFirstValueMapped, &first, 1);
    }
    /* A content item (PS3.3 10.2.1): Quantity = the request's. */
    size_t definition = element_open_only_item(to, TAG_QuantityDefinitionSequence);
    element_text(to, TAG_ValueType, "CS", "CODE");
    dataset_add_code(set, to, TAG_ConceptNameCodeSequence, &quantity);
    dataset_add_code(set, to, TAG_ConceptCodeSequence, &request->quantity);
    element_close_only_item(to, definition);
    element_fd(to, TAG_RealWorldValueIntercept, 0.0);
    element_fd(to, TAG_RealWorldValueSlope, 1.0);
    element_close_only_item(to, mapping);
}

static void
put_shared_groups(struct pmap_writer *w)
{
    struct element_buffer *to = &w->out.set.elements;
    size_t item = dataset_open_only_item(&w->out.set, TAG_SharedFunctionalGroupsSequence);
    const char *body_part = derived_plane_instance(w->request->source, 0)->body_part;
    pmap_find_window(w);
    const struct element_row voi[] = {
        {TAG_WindowCenter, "DS", w->window[0]},
        {TAG_WindowWidth, "DS", w->window[1]},
        {TAG_VOILUTFunction, "CS", "LINEAR"},
        {0},
    };
    stack_add_shared_derivation(&w->out, to);
    size_t anatomy = element_open_only_item(to, TAG_FrameAnatomySequence);
    dataset_add_code(&w->out.set, to, TAG_AnatomicRegionSequence, pmap_region(body_part));
    element_text(to, TAG_FrameLaterality, "CS", "U");
    element_close_only_item(to, anatomy);
    stack_add_plane_orientation(&w->out, to);
    stack_add_measures(&w->out, to, STACK_SHARED);
    element_only_texts(to, TAG_FrameVOILUTSequence, voi);
    element_only_texts(to, TAG_PixelValueTransformationSequence, identity_transformation);
    element_only_texts(to, TAG_ParametricMapFrameTypeSequence, frame_type);
    pmap_add_value_mapping(&w->out.set, to, w->request);
    element_close_only_item(to, item);
}

/* Encodes frames in ascending position. */
static uint64_t
encode_frame_groups(void *context, bool write)
{
    struct pmap_writer *w = context;
    uint64_t size = 0;
    for (int32_t p = 0; p < w->request->source->stack->plane_count; p++) {
        const uint32_t index = (uint32_t)p + 1;
        struct element_buffer *to = &w->out.item;
        size_t groups = element_open_item(to);
        stack_add_derivation(&w->out, to, p);
        stack_add_frame_content(to, &index, 1, NULL);
        stack_add_plane_position(&w->out, to, p);
        stack_add_measures(&w->out, to, p);
        element_close(to, groups);
        size += stack_end_item(&w->out, write);
    }
    return size;
}

/* --- pixels --- */

/* Appends `count` codes, or padding if `codes` is NULL. */
static void
append_values(struct byte_sink *sink, const uint8_t *codes, int64_t count)
{
    for (int64_t part; count > 0; count -= part) {
        part = count < BYTE_SINK_RESERVE / BYTES ? count : BYTE_SINK_RESERVE / BYTES;
        uint8_t *place = byte_sink_reserve(sink, (size_t)part * BYTES);
        memset(place, 0xFF, codes ? 0 : (size_t)part * BYTES);
        for (int64_t i = 0; codes && i < part; i++) {
            place[BYTES * i] = *codes++;
            place[BYTES * i + 1] = 0;
        }
        byte_sink_commit(sink, (size_t)part * BYTES);
    }
}

void
pmap_put_codes(struct byte_sink *sink, const struct pmap_request *request)
{
    const struct geometry_stack *stack = request->source->stack;
    const int64_t codes_per_plane = (int64_t)(stack->columns - 2) * (stack->rows - 2);
    for (int64_t p = 0; p < stack->plane_count && !sink->error; p++) {
        /* Appends a plane's codes, with padding around them. */
        const uint8_t *codes = request->codes + p * codes_per_plane;
        append_values(sink, NULL, stack->columns + 1);
        for (int64_t y = 1; y < stack->rows - 1; y++) {
            append_values(sink, codes, stack->columns - 2);
            /* up to the next row's first code */
            append_values(sink, NULL, y < stack->rows - 2 ? 2 : stack->columns + 1);
            codes += stack->columns - 2;
        }
    }
}

/* Returns 0 or -ENOMEM. */
static int
put_doubles(struct pmap_writer *w)
{
    const struct geometry_stack *stack = w->request->source->stack;
    const int64_t count = (int64_t)stack->rows * stack->columns;
    const int64_t most = BYTE_SINK_RESERVE / (int64_t)sizeof(double);
    double *values = malloc((size_t)count * sizeof(*values));
    if (!values)
        return -ENOMEM;
    for (int32_t p = 0; p < stack->plane_count && !w->out.sink.error; p++) {
        w->request->fill(w->request->context, p, values);
        for (int64_t first = 0, part; first < count; first += part) {
            part = count - first < most ? count - first : most;
            uint8_t *place = byte_sink_reserve(&w->out.sink, (size_t)part * sizeof(double));
            for (int64_t i = first; i < first + part; i++, place += sizeof(double)) {
                const double value = isnan(values[i]) ? PMAP_NO_VALUE : values[i];
                uint64_t bits;
                memcpy(&bits, &value, sizeof(bits));
                bits = htole64(bits);
                memcpy(place, &bits, sizeof(bits));
            }
            byte_sink_commit(&w->out.sink, (size_t)part * sizeof(double));
        }
    }
    free(values);
    return 0;
}

/* --- the object --- */

static const struct stack_dimension dimensions[] = {
    {TAG_ImagePositionPatient, TAG_PlanePositionSequence, "ImagePositionPatient"},
};

/* Returns 0, or why an encoding failed. The sink keeps write errors. */
static int
pmap_write_object(struct pmap_writer *w)
{
    struct dataset_writer *set = &w->out.set;
    int error = stack_put_head(&w->out);
    if (error)
        return error;
    dataset_put_text(set, TAG_ContentQualification, "CS", "RESEARCH");
    stack_put_relationship(&w->out, w->request->series_number, dimensions, 1);
    stack_put_pixels(&w->out, w->request->source->stack->plane_count, w->request->fill ? DOUBLE_BITS : PMAP_BITS);
    if (w->request->fill) {
        dataset_reach(set, TAG_DoubleFloatPixelPaddingValue);
        element_fd(&set->elements, TAG_DoubleFloatPixelPaddingValue, PMAP_NO_VALUE);
        element_fd(&set->elements, TAG_DoubleFloatPixelPaddingRangeLimit, PMAP_NO_VALUE); /* dciodvfy needs it */
    } else {
        dataset_put_us(set, TAG_PixelPaddingValue, PMAP_PADDING);
    }
    dataset_put_text(set, TAG_BurnedInAnnotation, "CS", "NO");
    dataset_put_text(set, TAG_RecognizableVisualFeatures, "CS", "NO");
    stack_put_lossiness(&w->out);
    dataset_put_header(set, TAG_AcquisitionContextSequence, "SQ", 0);
    stack_put_content(&w->out, w->label, "MAP");
    dataset_put_text(set, TAG_PresentationLUTShape, "CS", "IDENTITY");
    put_shared_groups(w);
    error = stack_put_frame_groups(&w->out, encode_frame_groups, w);
    if (error)
        return error;
    stack_put_pixel_header(&w->out, w->request->fill ? "OD" : "OW", pmap_pixel_length(w->request));
    if (w->request->fill)
        return put_doubles(w);
    pmap_put_codes(&w->out.sink, w->request);
    return 0;
}

int
pmap_open(struct stack_writer *out, const struct pmap_request *request, int fd,
          int (*identify)(const struct pmap_request *request, struct derived_identity *identity), struct error *error)
{
    int rc = pmap_check_request(out, request, error);
    if (rc)
        return rc;
    const char *modality = derived_plane_instance(request->source, 0)->modality;
    out->set.object.modality = modality[0] ? modality : "OT";
    out->set.object.own_codes = strcmp(request->quantity.scheme, CONCEPT_OWN_SCHEME) == 0;
    dataset_describe(&out->set, request->series_description, "%s, %s map", request->source->pipeline, request->kind);
    rc = stack_writer_open(out, value_text_is_ascii(request->explanation) && dataset_code_is_ascii(&request->quantity),
                           fd, error);
    if (rc)
        return rc;
    return identify(request, &out->set.identity) ? dataset_out_of_memory(&out->set, error) : 0;
}

int
pmap_write(const struct pmap_request *request, int fd, struct derived_summary *summary, struct error *error)
{
    struct pmap_writer w = {
        .request = request,
        .out.set.source = request->source,
        .out.set.object = {.what = "parametric map", .sop_class_uid = PMAP_SOP_CLASS},
        .out.object = {.image_type = PMAP_IMAGE_TYPE,
                       .derivation = &request->quantity,
                       .too_large = CODE_PMAP_TOO_LARGE,
                       .invalid = CODE_PMAP_REQUEST_INVALID},
    };
    int rc = pmap_open(&w.out, request, fd, pmap_identify, error);
    pmap_label(request, w.label);
    if (!rc)
        rc = stack_writer_finish(&w.out, pmap_write_object(&w), request->source->stack->plane_count, summary, error);
    stack_writer_close(&w.out);
    return rc;
}
