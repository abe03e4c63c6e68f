/*
 * flat_image.h - 2-D images in jobs: the options of a pipeline that they cannot have, and the facts that results state.
 *
 * The values are the stored ones after Modality LUT, rescale or palette, or one channel of colour. MONOCHROME1 is not
 * inverted; VOI LUT, Presentation LUT Shape and overlays have no effect on them. There are no slices, no millilitres and no
 * positions in the patient. Lengths in mm are those of the header's spacing (spacing.def); an image without spacing has none.
 */
#ifndef NOCTULE_SERVICE_PIPELINE_FLAT_IMAGE_H
#define NOCTULE_SERVICE_PIPELINE_FLAT_IMAGE_H

#include "base/texture_options.h"
#include "config/config.h"
#include "dicom/read/geometry/geometry.h"

/* Checks the pipeline for options that need slices, the patient's axes, or mm that the image does not have. Returns 0, also
 * for a volume, or -EINVAL with FLAT_UNSUITABLE. */
int flat_image_check(const struct conf_pipeline *pipeline, const struct geometry_stack *stack, const char *path,
                     struct error *error);

/* Returns the reason for which lengths of a region of a stack are unknown, or FEATURE_PRESENT. `bits`: the region, as in
 * struct image_mask; NULL: the whole image. */
enum feature_missing flat_image_lengths(const struct geometry_stack *stack, const uint64_t *bits);

/* Returns whether a group of texture needs mm for its values: to resample, or for a filter. */
bool flat_image_needs_mm(const struct texture_options *options);

/* Writes how the values of a 2-D image come from its pixels: "luma of YBR_FULL_422", "Modality LUT (OD)", "rescale",
 * "stored values"; and ", MONOCHROME1 not inverted". */
#define FLAT_IMAGE_VALUES 96
void flat_image_values(const struct dicom_instance *instance, const struct dicom_frame *frame, enum conf_colour colour,
                       char text[FLAT_IMAGE_VALUES]);

#endif
