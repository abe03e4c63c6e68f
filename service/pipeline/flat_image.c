#include "service/pipeline/flat_image.h"

#include "base/error.h"
#include "base/text.h"
#include "kernels/texture/region.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* A search for an option that the image cannot have. */
struct flat_check {
    const struct conf_pipeline *pipeline;
    bool in_mm;       /* the image has a spacing */
    char option[128]; /* the option, "segment \"lung\": grid_mm"; "": none */
    const char *lacks;
};

static void
flat_lacks(struct flat_check *check, const struct conf_segment *segment, const char *option, const char *lacks)
{
    if (check->option[0])
        return;
    if (segment)
        snprintf(check->option, sizeof check->option, "%s of segment \"%.60s\"", option,
                 segment->label ? segment->label : "");
    else
        snprintf(check->option, sizeof check->option, "%s", option);
    text_utf8_mend_end(check->option);
    check->lacks = lacks;
}

static const char flat_slices[] = "slices", flat_patient[] = "a position in the patient",
                  flat_spacing[] = "a pixel spacing in mm";

static void
flat_check_method(struct flat_check *check, const struct conf_segment *segment)
{
    static const bool needs_volume[CONF_METHODS] = {
        [CONF_ENCLOSED] = true, [CONF_SECTIONS] = true, [CONF_LEAK] = true, [CONF_SIDE] = true, [CONF_SLICES] = true};
    if (needs_volume[segment->method])
        flat_lacks(check, segment, "method", flat_slices);
    if (segment->method == CONF_OBJECT && segment->object.kind == CONF_RTSTRUCT)
        flat_lacks(check, segment, "object.kind = \"rtstruct\"", flat_patient);
    if (segment->grid_mm > 0 || segment->refine)
        flat_lacks(check, segment, "grid_mm", flat_slices);
    if ((segment->automatic == CONF_AUTO_HIGHEST || segment->automatic == CONF_AUTO_LOWEST) && !check->in_mm)
        flat_lacks(check, segment, "auto", flat_spacing);
    for (size_t i = 0; i < segment->shape_count; i++) {
        if (segment->shapes[i].center_unit == CONF_MM)
            flat_lacks(check, segment, "shapes.center.mm", flat_patient);
        if (segment->shapes[i].radius_unit == CONF_MM && !check->in_mm)
            flat_lacks(check, segment, "shapes.radius_mm", flat_spacing);
    }
    for (size_t i = 0; i < segment->seed_count; i++)
        if (segment->seeds[i].unit == CONF_MM)
            flat_lacks(check, segment, "seeds.mm", flat_patient);
    if (segment->smooth_mm > 0 && !check->in_mm)
        flat_lacks(check, segment, "smooth_mm", flat_spacing);
}

static void
flat_check_steps(struct flat_check *check, const struct conf_segment *segment)
{
    for (size_t i = 0; i < segment->then_count; i++) {
        const struct conf_step *step = &segment->then[i];
        const bool is_ball = step->kind == CONF_STEP_GROW || step->kind == CONF_STEP_SHRINK ||
                             step->kind == CONF_STEP_OPEN || step->kind == CONF_STEP_CLOSE ||
                             step->kind == CONF_STEP_CUT_BRIDGES;
        if (step->kind == CONF_STEP_DROP_BELOW)
            flat_lacks(check, segment, "then: a volume in ml", flat_slices);
        if (step->kind == CONF_STEP_FILL_VOLUME ||
            (step->kind == CONF_STEP_FILL_SLICES && step->fill == CONF_FILL_VOLUME))
            flat_lacks(check, segment, "then: fill = \"volume\"", flat_slices);
        if (is_ball && step->space != CONF_SPACE_SLICE)
            flat_lacks(check, segment, "then: a ball of mm without space = \"slice\"", flat_slices);
        else if (is_ball && !check->in_mm)
            flat_lacks(check, segment, "then: a distance in mm", flat_spacing);
    }
}

static void
flat_check_expect(struct flat_check *check, const struct conf_segment *segment)
{
    const struct conf_expect *expect = segment->expect;
    if (!expect)
        return;
    if (expect->volume_ml.given)
        flat_lacks(check, segment, "expect.volume_ml", flat_slices);
    if (expect->extent_mm || expect->face_cm2 || expect->near || expect->solidity || expect->dropped || expect->jump ||
        expect->beside || expect->mirror.given || expect->ends.given || expect->slice_mm.given ||
        expect->frame != CONF_FRAME_ANY || expect->noise.given)
        flat_lacks(check, segment, "expect: a limit of the body in mm", flat_patient);
}

bool
flat_image_needs_mm(const struct texture_options *options)
{
    const struct filter_options *filter = options->filter;
    return options->resample || (filter && (filter->sigma_mm > 0 || filter->lambda_mm > 0 || filter->use_spacing));
}

static void
flat_check_texture(struct flat_check *check, const struct texture_options *options)
{
    if (options->resample && options->resample->spacing == TEXTURE_ISOTROPIC)
        flat_lacks(check, NULL, "texture.resample.isotropic_mm (use in_plane_mm)", flat_slices);
    /* Image types of pyradiomics are those of its force2D, except LoG, whose kernel has a length in mm across slices. */
    if (options->filter && !options->filter->in_slice &&
        (!filter_is_image_type(options->filter->kind) || options->filter->sigma_mm > 0))
        flat_lacks(check, NULL, "texture.filter without in_slice", flat_slices);
    if (flat_image_needs_mm(options) && !check->in_mm)
        flat_lacks(check, NULL, options->resample ? "texture.resample" : "texture.filter", flat_spacing);
}

/*
 * Structure sets are contours in the patient. A Parametric Map must have a Frame of Reference, and planes in it (PS3.3 A.75):
 * responses and maps of features, which are doubles, have no other DICOM object. Maps of patterns are captures. The axes of
 * an NRRD file, with the state codes, are mm.
 */
static void
flat_check_results(struct flat_check *check)
{
    const struct conf_pipeline *pipeline = check->pipeline;
    for (size_t g = 0; g < pipeline->texture_count; g++) {
        const struct texture_options *texture = &pipeline->texture[g];
        if (texture->response >> TEXTURE_RESPONSE_PMAP & 1)
            flat_lacks(check, NULL, "\"pmap\" in texture.response (a Parametric Map; use \"nifti\")", flat_patient);
        if (texture->voxelwise && texture->voxelwise->files >> TEXTURE_RESPONSE_PMAP & 1)
            flat_lacks(check, NULL, "\"pmap\" in texture.voxelwise.files (a Parametric Map; use \"nifti\")",
                       flat_patient);
    }
    if (pipeline->results & CONF_RESULT_RTSTRUCT)
        flat_lacks(check, NULL, "\"rtstruct\" in results", flat_patient);
    if ((pipeline->results & CONF_RESULT_CODES) && !check->in_mm)
        flat_lacks(check, NULL, "\"codes\" in results", flat_spacing);
}

int
flat_image_check(const struct conf_pipeline *pipeline, const struct geometry_stack *stack, const char *path,
                 struct error *error)
{
    struct flat_check check = {.pipeline = pipeline, .in_mm = geometry_is_in_mm(stack)};
    if (!stack->flat)
        return 0;
    for (size_t i = 0; i < pipeline->segment_count; i++) {
        flat_check_method(&check, &pipeline->segments[i]);
        flat_check_steps(&check, &pipeline->segments[i]);
        flat_check_expect(&check, &pipeline->segments[i]);
    }
    for (size_t g = 0; g < pipeline->texture_count; g++)
        flat_check_texture(&check, &pipeline->texture[g]);
    flat_check_results(&check);
    if (!check.option[0])
        return 0;
    return error_set_files(error, -EINVAL, CODE_FLAT_UNSUITABLE, path, NULL,
                           "%s needs %s, and %s is a 2-D image without: use a pipeline for 2-D images", check.option,
                           check.lacks, text_base_name(path));
}

enum feature_missing
flat_image_lengths(const struct geometry_stack *stack, const uint64_t *bits)
{
    const struct image_extent extent = {stack->columns, stack->rows, stack->plane_count};
    struct texture_box box = {.first = {0, 0, 0}, .size = {stack->columns, stack->rows, 1}};
    const int32_t *valid = stack->calibrated;
    if (!stack->flat)
        return FEATURE_PRESENT;
    if (stack->spacing_source == DICOM_SPACING_NONE)
        return FEATURE_NO_SPACING;
    if (bits)
        texture_box_of(bits, &extent, &box);
    const bool within = box.first[0] >= valid[0] && box.first[1] >= valid[1] &&
                        box.first[0] + box.size[0] - 1 <= valid[2] && box.first[1] + box.size[1] - 1 <= valid[3];
    return within || box.size[0] == 0 ? FEATURE_PRESENT : FEATURE_NOT_CALIBRATED;
}

void
flat_image_values(const struct dicom_instance *instance, const struct dicom_frame *frame, enum conf_colour colour,
                  char text[FLAT_IMAGE_VALUES])
{
    static const char *const channels[] = {"luma", "red", "green", "blue"};
    if (instance->colour != DICOM_COLOUR_NONE)
        snprintf(text, FLAT_IMAGE_VALUES, "%s of %s", channels[colour], instance->photometric);
    else
        snprintf(text, FLAT_IMAGE_VALUES, "%s%s",
                 instance->has_modality_lut ? "Modality LUT"
                 : frame->has_rescale       ? "rescale"
                                            : "stored values",
                 instance->monochrome1 ? ", MONOCHROME1 not inverted" : "");
}
