/* facts.c - the facts of a DICOM header; see explained.h. */
#include "service/cli/explain/explained.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

const struct explained_fact_name explained_fact_names[FACT_COUNT] = {
    [FACT_CLASS] = {"SOP class", "sop_class", false},
    [FACT_SYNTAX] = {"transfer syntax", "transfer_syntax", false},
    [FACT_TYPES] = {"image type", "image_type", false},
    [FACT_FRAMES] = {"frames per file", "frame_count", false},
    [FACT_SIZE] = {"size", "size", false},
    [FACT_PIXELS] = {"pixels", "pixels", false},
    [FACT_SPACING] = {"pixel spacing", "pixel_spacing", false},
    [FACT_THICKNESS] = {"slice thickness", "slice_thickness", false},
    [FACT_ORIENTATION] = {"orientation", "orientation", false},
    [FACT_RESCALE] = {"rescale", "rescale", false},
    [FACT_MAPPING] = {"Real World Value Mapping", "real_world_value_mapping", false},
    [FACT_LOCATIONS] = {"announced slice locations", "slice_locations", false},
    [FACT_FRAME_OF_REFERENCE] = {"Frame of Reference", "frame_of_reference_uid", false},
    [FACT_ANNOUNCED] = {"Images in Acquisition", "images_in_acquisition", false},
    [FACT_EXPECTED] = {"expected files", "expected_instances", false},

#define KEY(id, rule, tolerance, prefix, what) [FACT_KEY_##id] = {what, #id, true},
#include "dicom/read/image/keys.def"
#undef KEY
};

/* Writes the facts of the complete image. */
static void
facts_of_instance(const struct dicom_instance *instance, char texts[FACT_COUNT][FACT_TEXT])
{
    const size_t size = FACT_TEXT;
    snprintf(texts[FACT_CLASS], size, "%s", dicom_uid_name(instance->sop_class_uid));
    snprintf(texts[FACT_SYNTAX], size, "%s", dicom_uid_name(instance->transfer_syntax_uid));
    snprintf(texts[FACT_TYPES], size, "%s", instance->image_type);
    snprintf(texts[FACT_FRAMES], size, "%d", instance->frame_count);
    snprintf(texts[FACT_SIZE], size, "%d x %d", instance->columns, instance->rows);
    snprintf(texts[FACT_PIXELS], size, "%d of %d bits, %s%s", instance->bits_stored, instance->bits_allocated,
             instance->is_signed ? "signed" : "unsigned", instance->lossy ? ", lossily compressed" : "");
    snprintf(texts[FACT_FRAME_OF_REFERENCE], size, "%s", instance->frame_of_reference_uid);
    if (instance->images_in_acquisition > 0)
        snprintf(texts[FACT_ANNOUNCED], size, "%d", instance->images_in_acquisition);
    if (instance->expected_instances > 0)
        snprintf(texts[FACT_EXPECTED], size, "%d", instance->expected_instances);
    for (int i = 0; i < DICOM_COUNTS; i++) {
        char *text = texts[FACT_LOCATIONS];
        const size_t used = strlen(text);
        if (instance->counts[i] > 0)
            snprintf(text + used, size - used, "%s%d by %s", used ? ", " : "", instance->counts[i],
                     dicom_count_name((enum dicom_count)i));
    }
}

void
explained_describe(const struct dicom_instance *instance, const struct dicom_frame *frame,
                   char texts[FACT_COUNT][FACT_TEXT])
{
    static const char *const planes[] = {"sagittal", "coronal", "axial"};

    const size_t size = FACT_TEXT;
    const char *plane = "oblique";
    double o[6];
    for (int i = 0; i < FACT_COUNT; i++)
        texts[i][0] = '\0';
    facts_of_instance(instance, texts);
    snprintf(texts[FACT_SPACING], size, "no valid value");
    if (frame->has_spacing)
        snprintf(texts[FACT_SPACING], size, "%g x %g mm", frame->pixel_spacing[1], frame->pixel_spacing[0]);
    if (frame->slice_thickness > 0)
        snprintf(texts[FACT_THICKNESS], size, "%g mm", frame->slice_thickness);
    for (int i = 0; i < 6; i++) /* four decimals, without a negative zero */
        o[i] = round(frame->orientation[i] * 1e4) / 1e4 + 0.0;
    /* The axis of the largest component of the normal. More than 18 degrees off every axis is oblique. */
    const double *d = frame->orientation;
    const double normal[3] = {d[1] * d[5] - d[2] * d[4], d[2] * d[3] - d[0] * d[5], d[0] * d[4] - d[1] * d[3]};
    for (int axis = 0; axis < 3; axis++)
        plane = fabs(normal[axis]) > 0.951 ? planes[axis] : plane;
    snprintf(texts[FACT_ORIENTATION], size, "no valid value");
    if (frame->has_orientation)
        snprintf(texts[FACT_ORIENTATION], size, "%s (%g\\%g\\%g\\%g\\%g\\%g)", plane, o[0], o[1], o[2], o[3], o[4],
                 o[5]);
    snprintf(texts[FACT_RESCALE], size, "none");
    if (frame->has_rescale)
        snprintf(texts[FACT_RESCALE], size, "slope %g, intercept %g%s%s", frame->slope, frame->intercept,
                 instance->value_unit[0] ? ", in " : "", instance->value_unit);
    if (frame->has_mapping)
        snprintf(texts[FACT_MAPPING], size, "slope %.6g, intercept %.6g (not applied)", frame->mapping_slope,
                 frame->mapping_intercept);
#define KEY(id, rule, tolerance, prefix, what) snprintf(texts[FACT_KEY_##id], size, "%s", frame->id);
#include "dicom/read/image/keys.def"
#undef KEY
}
