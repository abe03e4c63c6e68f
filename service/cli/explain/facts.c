/* facts.c - the facts of a DICOM header, one function each; see explained.h. */
#include "service/cli/explain/explained.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define FACT(name)                                                                                 \
    static void fact_##name(const struct dicom_instance *instance,                                 \
                            const struct dicom_frame *frame, char *text, size_t size)

FACT(class)
{
    (void)frame;
    snprintf(text, size, "%s", dicom_uid_name(instance->sop_class_uid));
}

FACT(syntax)
{
    (void)frame;
    snprintf(text, size, "%s", dicom_uid_name(instance->transfer_syntax_uid));
}

FACT(types)
{
    (void)frame;
    snprintf(text, size, "%s", instance->image_type);
}

FACT(frames)
{
    (void)frame;
    snprintf(text, size, "%d", instance->frame_count);
}

FACT(size)
{
    (void)frame;
    snprintf(text, size, "%d x %d", instance->columns, instance->rows);
}

FACT(pixels)
{
    (void)frame;
    snprintf(text, size, "%d of %d bits, %s%s", instance->bits_stored, instance->bits_allocated,
             instance->is_signed ? "signed" : "unsigned",
             instance->lossy ? ", lossily compressed" : "");
}

FACT(spacing)
{
    (void)instance;
    if (frame->has_spacing)
        snprintf(text, size, "%g x %g mm", frame->pixel_spacing[1], frame->pixel_spacing[0]);
    else
        snprintf(text, size, "no valid value");
}

FACT(thickness)
{
    (void)instance;
    text[0] = '\0';
    if (frame->slice_thickness > 0)
        snprintf(text, size, "%g mm", frame->slice_thickness);
}

/* Names the axis of the largest component of the normal. More than 18 degrees off every axis is
 * oblique. */
static const char *
orientation_word(const double o[6])
{
    static const char *const words[] = {"sagittal", "coronal", "axial"};
    const double normal[3] = {o[1] * o[5] - o[2] * o[4], o[2] * o[3] - o[0] * o[5],
                              o[0] * o[4] - o[1] * o[3]};
    for (int axis = 0; axis < 3; axis++)
        if (fabs(normal[axis]) > 0.951)
            return words[axis];
    return "oblique";
}

/* Rounds to four decimals, without a negative zero. */
static double
cosine_for_people(double cosine)
{
    return round(cosine * 1e4) / 1e4 + 0.0;
}

FACT(orientation)
{
    double o[6];
    (void)instance;
    for (int i = 0; i < 6; i++)
        o[i] = cosine_for_people(frame->orientation[i]);
    if (frame->has_orientation)
        snprintf(text, size, "%s (%g\\%g\\%g\\%g\\%g\\%g)", orientation_word(frame->orientation),
                 o[0], o[1], o[2], o[3], o[4], o[5]);
    else
        snprintf(text, size, "no valid value");
}

FACT(rescale)
{
    if (frame->has_rescale)
        snprintf(text, size, "slope %g, intercept %g%s%s", frame->slope, frame->intercept,
                 instance->value_unit[0] ? ", in " : "", instance->value_unit);
    else
        snprintf(text, size, "none");
}

FACT(frame_of_reference)
{
    (void)frame;
    snprintf(text, size, "%s", instance->frame_of_reference_uid);
}

FACT(announced)
{
    (void)frame;
    text[0] = '\0';
    if (instance->images_in_acquisition > 0)
        snprintf(text, size, "%d", instance->images_in_acquisition);
}

FACT(mapping)
{
    (void)instance;
    text[0] = '\0';
    if (frame->has_mapping)
        snprintf(text, size, "slope %.6g, intercept %.6g (not applied)", frame->mapping_slope,
                 frame->mapping_intercept);
}

FACT(locations)
{
    (void)frame;
    text[0] = '\0';
    for (int i = 0; i < DICOM_COUNTS; i++)
        if (instance->counts[i] > 0) {
            const size_t used = strlen(text);
            snprintf(text + used, size - used, "%s%d by %s", used ? ", " : "", instance->counts[i],
                     dicom_count_name((enum dicom_count)i));
        }
}

FACT(expected)
{
    (void)frame;
    text[0] = '\0';
    if (instance->expected_instances > 0)
        snprintf(text, size, "%d", instance->expected_instances);
}

#define KEY(id, rule, tolerance, prefix, what)                                                     \
    FACT(key_##id)                                                                                 \
    {                                                                                              \
        (void)instance;                                                                            \
        snprintf(text, size, "%s", frame->id);                                                     \
    }
#include "dicom/read/image/keys.def"
#undef KEY

const struct explained_fact explained_facts[] = {
    {"SOP class", "sop_class", false, fact_class},
    {"transfer syntax", "transfer_syntax", false, fact_syntax},
    {"image type", "image_type", false, fact_types},
    {"frames per file", "frame_count", false, fact_frames},
    {"size", "size", false, fact_size},
    {"pixels", "pixels", false, fact_pixels},
    {"pixel spacing", "pixel_spacing", false, fact_spacing},
    {"slice thickness", "slice_thickness", false, fact_thickness},
    {"orientation", "orientation", false, fact_orientation},
    {"rescale", "rescale", false, fact_rescale},
    {"Real World Value Mapping", "real_world_value_mapping", false, fact_mapping},
    {"announced slice locations", "slice_locations", false, fact_locations},
    {"Frame of Reference", "frame_of_reference_uid", false, fact_frame_of_reference},
    {"Images in Acquisition", "images_in_acquisition", false, fact_announced},
    {"expected files", "expected_instances", false, fact_expected},

#define KEY(id, rule, tolerance, prefix, what) {what, #id, true, fact_key_##id},
#include "dicom/read/image/keys.def"
#undef KEY
    {0},
};
