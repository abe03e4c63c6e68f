/*
 * capture.c - writes a map of patterns of a 2-D image as a Multi-frame Grayscale Word Secondary Capture (PS3.3 A.8.4).
 *
 * The data set is written in one pass, in ascending tag order. Real World Value Mapping, of the General Image Module, names
 * the pattern. It is for all frames of an object, so each pattern has an object of its own.
 */
#include "dicom/objects/pmap/capture.h"

#include "dicom/objects/pmap/pmap_parts.h"
#include "dicom/value/tags.h"

#include <stdio.h>
#include <string.h>

int
capture_identify(const struct pmap_request *request, struct derived_identity *identity)
{
    char after[PMAP_KIND_SIZE + 1];
    snprintf(after, sizeof(after), " %s", request->kind);
    const struct derived_kind kind = {"Capture of codes ", after, false}; /* false: has all frames */
    return derived_identify(request->source, &kind, identity);
}

/* Returns 0, or why an encoding failed. The sink keeps write errors. */
static int
capture_write_object(struct stack_writer *out, const struct pmap_request *request)
{
    struct dataset_writer *set = &out->set;
    const int error = stack_put_head(out);
    if (error)
        return error;
    dataset_put_series(set, request->series_number);
    dataset_put_text(set, TAG_PatientOrientation, "CS", "");
    dataset_put_text(set, TAG_Laterality, "CS", "");
    dataset_reach(set, TAG_PositionReferenceIndicator); /* the source's is left out */
    dataset_put_text(set, TAG_ImageComments, "LT",
                     "Not for diagnosis. Codes of a local pattern, 0 to 255; 65535: no code (edge).");
    stack_put_pixels(out, 1, PMAP_BITS);
    dataset_put_us(set, TAG_PixelPaddingValue, PMAP_PADDING);
    dataset_put_text(set, TAG_BurnedInAnnotation, "CS", request->burned_in ? "YES" : "NO");
    if (request->recognizable)
        dataset_put_text(set, TAG_RecognizableVisualFeatures, "CS", "YES");
    /* All codes, from black to white. */
    dataset_put_text(set, TAG_WindowCenter, "DS", "128");
    dataset_put_text(set, TAG_WindowWidth, "DS", "256");
    dataset_put_text(set, TAG_RescaleIntercept, "DS", "0");
    dataset_put_text(set, TAG_RescaleSlope, "DS", "1");
    dataset_put_text(set, TAG_RescaleType, "LO", "US");
    stack_put_lossiness(out);
    dataset_reach(set, TAG_RealWorldValueMappingSequence);
    pmap_add_value_mapping(set, &set->elements, request);
    dataset_put_text(set, TAG_PresentationLUTShape, "CS", "IDENTITY");
    stack_put_pixel_header(out, "OW", pmap_pixel_length(request));
    pmap_put_codes(&out->sink, request);
    return 0;
}

int
capture_write(const struct pmap_request *request, int fd, struct derived_summary *summary, struct error *error)
{
    struct stack_writer out = {
        .set.source = request->source,
        .set.object = {.what = "capture of patterns", .sop_class_uid = CAPTURE_SOP_CLASS, .conversion = "WSD"},
        .object = {.image_type = "DERIVED\\SECONDARY",
                   .derivation = &request->quantity,
                   .too_large = CODE_PMAP_TOO_LARGE,
                   .invalid = CODE_PMAP_REQUEST_INVALID,
                   .follows_source = true,
                   .source_count = 1},
    };
    int rc = pmap_open(&out, request, fd, capture_identify, error);
    if (!rc)
        rc = stack_writer_finish(&out, capture_write_object(&out, request), 1, summary, error);
    stack_writer_close(&out);
    return rc;
}
