#include "service/cli/profile_pyradiomics.h"

#include "base/filter_options.h"
#include "base/text.h"
#include "base/voxelwise_options.h"
#include "service/cli/cli.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <yaml.h>

enum { SIGMAS = 32 };

/* Settings that an image type may have of its own. */
struct wish_values {
    double width, count, shift, alpha; /* count: 0 without binCount */
    bool flat, use_spacing;
    double sigmas[SIGMAS], level, start_level, radius_2d, samples, radius_3d, harmonics;
    int sigma_count;
    const char *wavelet, *method;
};

/* Settings of the file as options of texture groups. */
struct wish {
    const char *file;
    yaml_document_t document;
    FILE *notes, *out; /* comments, and groups */
    int refusals;
    const char *interpolator; /* of enum interpolation, without its prefix */
    double spacing[3];
    bool resamples, sigma_range, has_range, normalises, crops;
    double range[2], scale, outliers, padding;
    struct wish_values all, *now; /* of the file; those that settings change */
    const yaml_node_t *images;    /* the part imageType; NULL: absent */
    bool maps, masked;            /* the part voxelSetting is there; maskedKernel */
    double radius;                /* kernelRadius */
    const yaml_node_t *names[8];  /* per class: the features that it names; NULL: all */
    int groups;
};

static void __attribute__((format(printf, 2, 3))) wish_refuse(struct wish *wish, const char *format, ...)
{
    char text[400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    cli_print_error("%s: %s", wish->file, text);
    wish->refusals++;
}

/* Writes an option whose value must have a point or an exponent. */
static void
wish_put_number(const struct wish *wish, const char *before, double value, const char *after)
{
    char digits[TEXT_DIGITS];
    text_digits(value, digits);
    fprintf(wish->out, "%s%s%s%s", before, digits, strpbrk(digits, ".e") ? "" : ".0", after);
}

/* ------------------------------------------------------------------------------- values ---- */

static const char *
node_text(const yaml_node_t *node)
{
    return node && node->type == YAML_SCALAR_NODE ? (const char *)node->data.scalar.value : NULL;
}

/* Returns whether a value is absent: null, ~, "none" or empty. */
static bool
node_is_null(const yaml_node_t *node)
{
    const char *text = node_text(node);
    return !node || (text && (!*text || strcmp(text, "~") == 0 || strcasecmp(text, "null") == 0 ||
                              strcasecmp(text, "none") == 0));
}

/* Returns whether a value is true, and refuses one that is neither true nor false. */
static bool
read_truth(struct wish *wish, const char *name, const yaml_node_t *node)
{
    static const char *const words[][2] = {{"false", "true"}, {"no", "yes"}, {"off", "on"}, {"0", "1"}};
    const char *text = node_text(node);
    for (size_t i = 0; text && i < sizeof words / sizeof words[0]; i++)
        for (int truth = 0; truth < 2; truth++)
            if (strcasecmp(text, words[i][truth]) == 0)
                return truth;
    wish_refuse(wish, "%s must be true or false", name);
    return false;
}

/* Reads up to `most` numbers: one, or a list. Returns their number; 0: these are no numbers. */
static int
node_numbers(struct wish *wish, yaml_node_t *node, double *values, int most)
{
    const bool is_list = node->type == YAML_SEQUENCE_NODE;
    const int count = is_list ? (int)(node->data.sequence.items.top - node->data.sequence.items.start) : 1;
    if (count > most)
        return 0;
    for (int i = 0; i < count; i++) {
        const yaml_node_t *item =
            is_list ? yaml_document_get_node(&wish->document, node->data.sequence.items.start[i]) : node;
        const char *text = node_text(item);
        char *end = NULL;
        values[i] = text ? strtod(text, &end) : NAN;
        if (!text || end == text || *end || !isfinite(values[i]))
            return 0;
    }
    return count;
}

/* ----------------------------------------------------------------------------- settings ---- */

typedef void setting_read(struct wish *wish, const char *name, yaml_node_t *value);

static void
read_bin_width(struct wish *wish, const char *name, yaml_node_t *value)
{
    if (node_numbers(wish, value, &wish->now->width, 1) != 1 || wish->now->width <= 0)
        wish_refuse(wish, "%s must be a positive number", name);
}

/* Reads a whole number within limits. */
static void
read_whole(struct wish *wish, const char *name, yaml_node_t *value, double least, double most, double *number)
{
    if (node_numbers(wish, value, number, 1) != 1 || *number < least || *number > most || *number != floor(*number))
        wish_refuse(wish, "%s must be a whole number from %.0f to %.0f", name, least, most);
}

static void
read_bin_count(struct wish *wish, const char *name, yaml_node_t *value)
{
    read_whole(wish, name, value, 2, 65536, &wish->now->count);
}

static void
read_label(struct wish *wish, const char *name, yaml_node_t *value)
{
    double label = 1;
    read_whole(wish, name, value, 1, INT32_MAX, &label);
    if (label != 1)
        fprintf(wish->notes, "# %s: give noctule run --label %.0f\n", name, label);
}

static void
read_flat(struct wish *wish, const char *name, yaml_node_t *value)
{
    wish->now->flat = read_truth(wish, name, value);
}

static void
read_flat_dimension(struct wish *wish, const char *name, yaml_node_t *value)
{
    double axis;
    if (node_numbers(wish, value, &axis, 1) != 1 || axis != 0)
        wish_refuse(wish, "%s: only slices of the images (0) are measured", name);
}

static void
read_spacing(struct wish *wish, const char *name, yaml_node_t *value)
{
    wish->resamples = node_numbers(wish, value, wish->spacing, 3) == 3;
    if (!wish->resamples)
        wish_refuse(wish, "%s must be three numbers", name);
}

static void
read_interpolator(struct wish *wish, const char *name, yaml_node_t *value)
{
    static const char *const words[][3] = {
        {"sitkNearestNeighbor", "1", "nearest"}, {"sitkLinear", "2", "linear"}, {"sitkBSpline", "3", "cubic"}};
    const char *text = node_text(value);
    wish->interpolator = NULL;
    if (node_is_null(value)) /* then pyradiomics does not resample */
        return;
    for (size_t i = 0; text && i < sizeof words / sizeof words[0]; i++)
        if (strcmp(text, words[i][0]) == 0 || strcmp(text, words[i][1]) == 0)
            wish->interpolator = words[i][2];
    if (!wish->interpolator)
        wish_refuse(wish, "%s: %s is not available; sitkNearestNeighbor, sitkLinear and sitkBSpline are", name,
                    text ? text : "this");
}

static void
read_range(struct wish *wish, const char *name, yaml_node_t *value)
{
    const int count = node_numbers(wish, value, wish->range, 2);
    wish->has_range = count == 2;
    if (count != 2)
        wish_refuse(wish, "%s must be two numbers", name);
    else if (wish->range[0] > wish->range[1]) { /* pyradiomics sorts them */
        const double low = wish->range[1];
        wish->range[1] = wish->range[0];
        wish->range[0] = low;
    }
}

static void
read_range_mode(struct wish *wish, const char *name, yaml_node_t *value)
{
    const char *text = node_text(value);
    wish->sigma_range = text && strcmp(text, "sigma") == 0;
    if (!wish->sigma_range && (!text || strcmp(text, "absolute") != 0))
        wish_refuse(wish, "%s: only absolute and sigma are available", name);
}

static void
read_shift(struct wish *wish, const char *name, yaml_node_t *value)
{
    if (node_numbers(wish, value, &wish->now->shift, 1) != 1)
        wish_refuse(wish, "%s must be a number", name);
}

/* Settings of which only the default is available. */
static void
read_only_off(struct wish *wish, const char *name, yaml_node_t *value)
{
    double number;
    const char *text = node_text(value);
    if (!text || (strcasecmp(text, "false") != 0 && (node_numbers(wish, value, &number, 1) == 0 || number != 0)))
        wish_refuse(wish, "%s is not available", name);
}

static void
read_symmetry(struct wish *wish, const char *name, yaml_node_t *value)
{
    if (!read_truth(wish, name, value))
        wish_refuse(wish, "%s: only true is available", name);
}

static void
read_distances(struct wish *wish, const char *name, yaml_node_t *value)
{
    double distances[16];
    if (node_numbers(wish, value, distances, 16) != 1 || distances[0] != 1)
        wish_refuse(wish, "%s: only [1] is available", name);
}

static void
read_alpha(struct wish *wish, const char *name, yaml_node_t *value)
{
    read_whole(wish, name, value, 0, 256, &wish->now->alpha);
}

static void
read_normalise(struct wish *wish, const char *name, yaml_node_t *value)
{
    if (strcmp(name, "normalize") == 0)
        wish->normalises = read_truth(wish, name, value);
    else if (node_numbers(wish, value, strcmp(name, "normalizeScale") == 0 ? &wish->scale : &wish->outliers, 1) != 1 ||
             wish->scale <= 0 || wish->outliers < 0)
        wish_refuse(wish, "%s must be a positive number", name);
}

static void
read_crop(struct wish *wish, const char *name, yaml_node_t *value)
{
    if (strcmp(name, "preCrop") == 0)
        wish->crops = read_truth(wish, name, value);
    else
        read_whole(wish, name, value, 0, FILTER_MAX_AROUND, &wish->padding);
}

static void
read_of_voxels(struct wish *wish, const char *name, yaml_node_t *value)
{
    if (strcmp(name, "kernelRadius") == 0)
        read_whole(wish, name, value, 1, VOXELWISE_MAX_RADIUS, &wish->radius);
    else if (strcmp(name, "maskedKernel") == 0)
        wish->masked = read_truth(wish, name, value);
    else
        fprintf(wish->notes, "# %s: voxels beyond the region have no value (NaN)\n", name);
}

/* Reads the sigmas of LoG. pyradiomics names an image after the text of its sigma. */
static void
read_sigmas(struct wish *wish, const char *name, yaml_node_t *value)
{
    struct wish_values *now = wish->now;
    bool any_whole = false;
    now->sigma_count = node_numbers(wish, value, now->sigmas, SIGMAS);
    if (now->sigma_count == 0)
        wish_refuse(wish, "%s must be a list of 1 to %d numbers", name, SIGMAS);
    for (int i = 0; i < now->sigma_count; i++) {
        const yaml_node_t *item = value->type == YAML_SEQUENCE_NODE
                                      ? yaml_document_get_node(&wish->document, value->data.sequence.items.start[i])
                                      : value;
        if (now->sigmas[i] < 0.01 || now->sigmas[i] > 100)
            wish_refuse(wish, "%s must be from 0.01 to 100 mm", name);
        any_whole |= !strpbrk(node_text(item), ".eE");
    }
    if (any_whole)
        fprintf(wish->notes,
                "# %s: columns of 3 are log-sigma-3-0-mm-3D, as those of 3.0; in pyradiomics: log-sigma-3-mm-3D\n",
                name);
}

/* Reads a setting of an image type. */
static void
read_of_image(struct wish *wish, const char *name, yaml_node_t *value)
{
    struct wish_values *now = wish->now;
    double subdivision = 1;
    if (strcmp(name, "level") == 0)
        read_whole(wish, name, value, 1, FILTER_MAX_LEVEL, &now->level);
    else if (strcmp(name, "start_level") == 0)
        read_whole(wish, name, value, 0, FILTER_MAX_STEPS, &now->start_level);
    else if (strcmp(name, "gradientUseSpacing") == 0)
        now->use_spacing = read_truth(wish, name, value);
    else if (strcmp(name, "lbp2DSamples") == 0)
        read_whole(wish, name, value, 2, FILTER_MAX_POINTS, &now->samples);
    else if (strcmp(name, "lbp3DLevels") == 0)
        read_whole(wish, name, value, 1, LBP_K, &now->harmonics);
    else if (strcmp(name, "lbp3DIcosphereSubdivision") == 0)
        read_whole(wish, name, value, 1, 1, &subdivision);
    else if (node_numbers(wish, value, strcmp(name, "lbp2DRadius") == 0 ? &now->radius_2d : &now->radius_3d, 1) != 1)
        wish_refuse(wish, "%s must be a number", name);
}

/* Reads a name of a list of those that are available. */
static void
read_name(struct wish *wish, const char *name, yaml_node_t *value)
{
    const bool is_wavelet = strcmp(name, "wavelet") == 0;
    const char *const *names = is_wavelet ? filter_wavelet_names : filter_lbp_names, *text = node_text(value);
    for (; *names; names++)
        if (text && strcmp(text, *names) == 0) {
            *(is_wavelet ? &wish->now->wavelet : &wish->now->method) = *names;
            return;
        }
    wish_refuse(wish, "%s: %s is not available", name, text ? text : "this");
}

static void
read_without_effect(struct wish *wish, const char *name, yaml_node_t *value)
{
    (void)value;
    fprintf(wish->notes, "# %s: changes no value here\n", name);
}

static void
read_minimum(struct wish *wish, const char *name, yaml_node_t *value)
{
    (void)value;
    fprintf(wish->notes, "# %s: smaller regions are measured too\n", name);
}

static void
read_of_geometry(struct wish *wish, const char *name, yaml_node_t *value)
{
    (void)value;
    fprintf(wish->notes, "# %s: a mask that is not on the grid of its image is refused\n", name);
}

/* The settings of pyradiomics 3.0.1. Those before `label` may differ by image type. */
static const struct {
    const char *name;
    setting_read *read;
} settings[] = {
    {"binWidth", read_bin_width},
    {"binCount", read_bin_count},
    {"voxelArrayShift", read_shift},
    {"gldm_a", read_alpha},
    {"force2D", read_flat},
    {"force2Ddimension", read_flat_dimension},
    {"symmetricalGLCM", read_symmetry},
    {"distances", read_distances},
    {"weightingNorm", read_only_off},
    {"sigma", read_sigmas},
    {"wavelet", read_name},
    {"level", read_of_image},
    {"start_level", read_of_image},
    {"gradientUseSpacing", read_of_image},
    {"lbp2DRadius", read_of_image},
    {"lbp2DSamples", read_of_image},
    {"lbp2DMethod", read_name},
    {"lbp3DLevels", read_of_image},
    {"lbp3DIcosphereRadius", read_of_image},
    {"lbp3DIcosphereSubdivision", read_of_image},
    {"label", read_label},
    {"resampledPixelSpacing", read_spacing},
    {"interpolator", read_interpolator},
    {"resegmentRange", read_range},
    {"resegmentMode", read_range_mode},
    {"normalize", read_normalise},
    {"normalizeScale", read_normalise},
    {"removeOutliers", read_normalise},
    {"preCrop", read_crop},
    {"padDistance", read_crop},
    {"resegmentShape", read_only_off},
    {"label_channel", read_only_off},
    {"minimumROIDimensions", read_minimum},
    {"minimumROISize", read_minimum},
    {"geometryTolerance", read_of_geometry},
    {"correctMask", read_of_geometry},
    {"additionalInfo", read_without_effect},
    {"kernelRadius", read_of_voxels},
    {"maskedKernel", read_of_voxels},
    {"initValue", read_of_voxels},
    {"voxelBatch", read_without_effect},
};

static void
wish_read_setting(struct wish *wish, const char *name, yaml_node_t *value)
{
    bool is_common = false;
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) {
        is_common |= settings[i].read == read_label;
        if (strcmp(name, settings[i].name) == 0) {
            if (is_common && wish->now != &wish->all) {
                wish_refuse(wish, "setting %s must be in the part setting, not in an image type", name);
                return;
            }
            if (!node_is_null(value) || settings[i].read == read_interpolator)
                settings[i].read(wish, name, value);
            return;
        }
    }
    wish_refuse(wish, "setting %s is not known", name);
}

/* ------------------------------------------------------------------------------ families ---- */

static const struct {
    const char *name, *families;
    const char *maps; /* the option of voxelwise; NULL: none */
    enum voxelwise_family family;
} classes[] = {
    {"firstorder", "\"first-order\", \"intensity-histogram\"", "first_order", VOXELWISE_FAMILY_first_order},
    {"shape", "\"shape\", \"morphology\"", NULL, VOXELWISE_FAMILIES},
    {"glcm", "\"glcm\"", "glcm", VOXELWISE_FAMILY_glcm},
    {"glrlm", "\"glrlm\"", "glrlm", VOXELWISE_FAMILY_glrlm},
    {"glszm", "\"glszm\"", "glszm", VOXELWISE_FAMILY_glszm},
    {"gldm", "\"ngldm\"", "ngldm", VOXELWISE_FAMILY_ngldm},
    {"ngtdm", "\"ngtdm\"", "ngtdm", VOXELWISE_FAMILY_ngtdm},
    {"shape2D", "\"shape-2d\"", NULL, VOXELWISE_FAMILIES}, /* with regions in one slice, and only if it is named */
};

enum { CLASSES = sizeof classes / sizeof classes[0], CLASSES_OF_ALL = CLASSES - 1 };

_Static_assert(CLASSES == sizeof((struct wish){0}.names) / sizeof((struct wish){0}.names[0]), "names of each class");

static void
wish_read_class(struct wish *wish, const char *name, const yaml_node_t *value, bool wanted[CLASSES])
{
    for (int i = 0; i < CLASSES; i++)
        if (strcmp(name, classes[i].name) == 0) {
            wanted[i] = true;
            wish->names[i] = value->type == YAML_SEQUENCE_NODE ? value : NULL;
            return;
        }
    wish_refuse(wish, "featureClass %s is not available", name);
}

/* ------------------------------------------------------------------------------ the file ---- */

/* Reads a part of the file; its value may be empty. */
static void
wish_read_part(struct wish *wish, const char *part, const yaml_node_t *node, bool wanted[CLASSES])
{
    if (node->type != YAML_MAPPING_NODE) {
        if (!node_is_null(node))
            wish_refuse(wish, "%s must have rows of NAME: VALUE", part);
        return;
    }
    for (const yaml_node_pair_t *pair = node->data.mapping.pairs.start; pair < node->data.mapping.pairs.top; pair++) {
        const char *name = node_text(yaml_document_get_node(&wish->document, pair->key));
        yaml_node_t *value = yaml_document_get_node(&wish->document, pair->value);
        if (!name)
            wish_refuse(wish, "%s has a name that is no text", part);
        else if (strcmp(part, "featureClass") == 0)
            wish_read_class(wish, name, value, wanted);
        else
            wish_read_setting(wish, name, value);
    }
}

static bool
wish_read_all(struct wish *wish, bool wanted[CLASSES])
{
    const yaml_node_t *root = yaml_document_get_root_node(&wish->document);
    bool has_classes = false;
    if (!root || root->type != YAML_MAPPING_NODE) {
        wish_refuse(wish, "is no parameter file: it must have setting, imageType or featureClass");
        return false;
    }
    for (const yaml_node_pair_t *pair = root->data.mapping.pairs.start; pair < root->data.mapping.pairs.top; pair++) {
        const char *part = node_text(yaml_document_get_node(&wish->document, pair->key));
        const bool known = part && (strcmp(part, "setting") == 0 || strcmp(part, "imageType") == 0 ||
                                    strcmp(part, "featureClass") == 0 || strcmp(part, "voxelSetting") == 0);
        if (!known) {
            wish_refuse(wish, "%s is not available", part ? part : "a name that is no text");
            continue;
        }
        has_classes |= strcmp(part, "featureClass") == 0;
        wish->maps |= strcmp(part, "voxelSetting") == 0;
        if (strcmp(part, "imageType") == 0)
            wish->images = yaml_document_get_node(&wish->document, pair->value);
        else
            wish_read_part(wish, part, yaml_document_get_node(&wish->document, pair->value), wanted);
    }
    for (int i = 0; i < CLASSES_OF_ALL && !has_classes; i++) /* pyradiomics then measures all */
        wanted[i] = true;
    return true;
}

/* ----------------------------------------------------------------------------- groups ------ */

/* Returns whether a class is of the mask alone. */
static bool
is_of_shape(int class)
{
    return strncmp(classes[class].name, "shape", strlen("shape")) == 0;
}

/* Writes the names of the features of a class that are mapped. */
static void
wish_put_names(struct wish *wish, int class)
{
    const yaml_node_t *names = wish->names[class];
    const char *before = "";
    if (!names) {
        fputs("\"all\"", wish->out);
        return;
    }
    for (const yaml_node_item_t *item = names->data.sequence.items.start; item < names->data.sequence.items.top;
         item++) {
        const char *name = node_text(yaml_document_get_node(&wish->document, *item));
        int row = 0;
        while (row < VOXELWISE_FEATURES && !(voxelwise_rows[row].family == classes[class].family && name &&
                                             strcmp(voxelwise_rows[row].pyradiomics, name) == 0))
            row++;
        if (row == VOXELWISE_FEATURES)
            wish_refuse(wish, "voxelSetting: there is no map of %s %s", classes[class].name, name ? name : "");
        else
            fprintf(wish->out, "%s\"%s\"", before, voxelwise_rows[row].name);
        before = ", ";
    }
}

/* Begins a group of maps of features: those of the mask have none. Returns false if there are none. */
static bool
wish_begin_maps(struct wish *wish, const bool wanted[CLASSES])
{
    bool any = false;
    for (int i = 0; i < CLASSES; i++)
        any |= wanted[i] && classes[i].maps;
    if (!any)
        return false;
    fprintf(wish->out,
            "%s {\n    first_order = false;\n    voxelwise = { radius = %.0f; masked = %s; files = [ \"nifti\" ];",
            wish->groups++ > 0 ? "," : "", wish->radius, wish->masked ? "true" : "false");
    for (int i = 0; i < CLASSES; i++)
        if (wanted[i] && classes[i].maps) {
            fprintf(wish->out, "\n        %s = [ ", classes[i].maps);
            wish_put_names(wish, i);
            fputs(" ];", wish->out);
        }
    fputs(" };\n", wish->out);
    return true;
}

/* Writes families, and options that do not depend on the image type. Returns false if there are none. */
static bool
wish_begin_group(struct wish *wish, const bool wanted[CLASSES], bool has_shape, bool has_others)
{
    const char *before = "";
    bool any = false;
    if (wish->maps)
        return has_others && wish_begin_maps(wish, wanted);
    for (int i = 0; i < CLASSES; i++)
        any |= wanted[i] && (is_of_shape(i) ? has_shape : has_others);
    if (!any)
        return false;
    fprintf(wish->out, "%s {\n    families = [ ", wish->groups++ > 0 ? "," : "");
    for (int i = 0; i < CLASSES; i++)
        if (wanted[i] && (is_of_shape(i) ? has_shape : has_others)) {
            fprintf(wish->out, "%s%s", before, classes[i].families);
            before = ", ";
        }
    fputs(" ];\n    first_order = false;\n    names = \"pyradiomics\";\n", wish->out);
    return true;
}

static void
wish_put_grid(const struct wish *wish)
{
    const double *mm = wish->spacing;
    const bool isotropic = mm[0] == mm[1] && mm[1] == mm[2];
    if (wish->normalises) {
        wish_put_number(wish, "    normalise = { scale = ", wish->scale, ";");
        if (wish->outliers > 0)
            wish_put_number(wish, " outliers = ", wish->outliers, ";");
        fputs(" };\n", wish->out);
    }
    if (wish->resamples) {
        wish_put_number(wish, isotropic ? "    resample = { isotropic_mm = " : "    resample = { in_plane_mm = ", mm[0],
                        ";");
        fprintf(wish->out, " interpolation = \"pyradiomics-%s\"; };\n", wish->interpolator);
    }
    if (wish->has_range && !wish->sigma_range) {
        wish_put_number(wish, "    range = [ ", wish->range[0], ", ");
        wish_put_number(wish, "", wish->range[1], " ];\n");
    } else if (wish->has_range)
        wish_put_number(wish, "    sigma = ", wish->range[1], ";\n");
}

static void
wish_put_levels(const struct wish *wish, const bool wanted[CLASSES])
{
    const struct wish_values *now = wish->now;
    bool has_matrices = false;
    for (int i = 0; i < CLASSES; i++)
        has_matrices |= wanted[i] && !is_of_shape(i) && strcmp(classes[i].name, "firstorder") != 0;
    if (now->count > 0)
        fprintf(wish->out, "    discretisation = \"fixed-bin-number\";\n    levels = %.0f;\n", now->count);
    else
        wish_put_number(wish, "    discretisation = \"pyradiomics-bin-width\";\n    bin_width = ", now->width, ";\n");
    if (!wish->maps && has_matrices)
        fprintf(wish->out, "    aggregation = \"%s\";\n", now->flat ? "2.5d-direction-merged" : "3d-averaged");
    if (now->shift != 0)
        wish_put_number(wish, "    energy_shift = ", now->shift, ";\n");
    if (now->alpha != 0)
        fprintf(wish->out, "    ngldm_alpha = %.0f;\n", now->alpha);
}

/* Writes a group of the original image (`kind` is NULL) or an image type, which has `options` of its filter. */
static void __attribute__((format(printf, 4, 5)))
wish_put_group(struct wish *wish, const bool wanted[CLASSES], const char *kind, const char *options, ...)
{
    va_list arguments;
    if (!wish_begin_group(wish, wanted, !kind, true))
        return;
    wish_put_grid(wish);
    wish_put_levels(wish, wanted);
    if (kind) {
        fprintf(wish->out, "    filter = { kind = \"pyradiomics-%s\";", kind);
        va_start(arguments, options);
        vfprintf(wish->out, options, arguments);
        va_end(arguments);
        if (wish->resamples || wish->crops)
            fprintf(wish->out, " around = %.0f;", wish->padding);
        fputs(" };\n", wish->out);
    }
    fputs("}", wish->out);
}

static void
wish_put_log(struct wish *wish, const bool wanted[CLASSES])
{
    char digits[TEXT_DIGITS];
    for (int i = 0; i < wish->now->sigma_count; i++) {
        text_digits(wish->now->sigmas[i], digits);
        wish_put_group(wish, wanted, "log", " sigma_mm = %s%s;", digits, strpbrk(digits, ".e") ? "" : ".0");
    }
    if (wish->now->sigma_count == 0)
        wish_refuse(wish, "imageType LoG needs sigma");
}

static void
wish_put_wavelet(struct wish *wish, const bool wanted[CLASSES])
{
    const struct wish_values *now = wish->now;
    const int axes = now->flat ? 2 : 3;
    for (int level = 1; level <= (int)now->level; level++)
        for (int band = 1; band <= 1 << axes; band++) { /* the low-pass response of the last level is last */
            char kernels[4] = "";
            if (band == 1 << axes && level < (int)now->level)
                continue;
            for (int axis = 0; axis < axes; axis++)
                kernels[axis] = band >> axis & 1 ? 'H' : 'L';
            wish_put_group(wish, wanted, "wavelet",
                           " wavelet = \"%s\"; kernels = \"%s\"; level = %d; start_level = %.0f;%s", now->wavelet,
                           kernels, level, now->start_level, now->flat ? " in_slice = true;" : "");
        }
}

static void
wish_put_lbp(struct wish *wish, const bool wanted[CLASSES], bool in_space)
{
    const struct wish_values *now = wish->now;
    char digits[TEXT_DIGITS];
    text_digits(in_space ? now->radius_3d : now->radius_2d, digits);
    const char *point = strpbrk(digits, ".e") ? "" : ".0";
    if (!in_space)
        wish_put_group(wish, wanted, "lbp-2d", " radius = %s%s; points = %.0f; method = \"%s\";", digits, point,
                       now->samples, now->method);
    for (int i = 0; in_space && i <= (int)now->harmonics; i++)
        wish_put_group(wish, wanted, "lbp-3d", " radius = %s%s; harmonic = \"%s\";", digits, point,
                       filter_harmonic_names[i < (int)now->harmonics ? i : LBP_K]);
}

/* Writes the groups of an image type, with its own settings. */
static void
wish_put_image(struct wish *wish, const char *name, const yaml_node_t *own, const bool wanted[CLASSES])
{
    static const struct {
        const char *name, *kind;
    } points[] = {
        {"Square", "square"}, {"SquareRoot", "squareroot"}, {"Logarithm", "logarithm"}, {"Exponential", "exponential"}};
    struct wish_values values = wish->all;
    wish->now = &values;
    wish_read_part(wish, "imageType", own, NULL);
    if (strcmp(name, "Original") == 0)
        wish_put_group(wish, wanted, NULL, "%s", "");
    else if (wish->has_range && wish->sigma_range)
        wish_refuse(wish, "imageType %s is not available with resegmentMode sigma", name);
    else if (strcmp(name, "LoG") == 0)
        wish_put_log(wish, wanted);
    else if (strcmp(name, "Wavelet") == 0)
        wish_put_wavelet(wish, wanted);
    else if (strcmp(name, "Gradient") == 0)
        wish_put_group(wish, wanted, "gradient", " use_spacing = %s;", values.use_spacing ? "true" : "false");
    else if (strcmp(name, "LBP2D") == 0 || strcmp(name, "LBP3D") == 0)
        wish_put_lbp(wish, wanted, name[3] == '3');
    else {
        size_t i = 0;
        while (i < sizeof points / sizeof points[0] && strcmp(points[i].name, name) != 0)
            i++;
        if (i == sizeof points / sizeof points[0])
            wish_refuse(wish, "imageType %s is not available", name);
        else
            wish_put_group(wish, wanted, points[i].kind, "%s", "");
    }
    wish->now = &wish->all;
}

/* Checks settings that depend on each other, and writes the groups of all image types. */
static void
wish_conclude(struct wish *wish, const bool wanted[CLASSES])
{
    const double *mm = wish->spacing;
    bool has_original = !wish->images;
    wish->resamples &= wish->interpolator != NULL;
    for (int i = 0; i < CLASSES && !wish->maps; i++)
        if (wish->names[i])
            fprintf(wish->notes, "# featureClass %s: all features of the family are measured\n", classes[i].name);
    if (wanted[CLASSES - 1] && !wish->all.flat)
        wish_refuse(wish, "featureClass shape2D needs the setting force2D: true");
    if (wish->maps && wish->all.flat)
        wish_refuse(wish, "voxelSetting: force2D: true is not available");
    if (wish->maps && wish->all.alpha != 0)
        wish_refuse(wish, "voxelSetting: gldm_a must be 0");
    if (wish->resamples && !(mm[0] == mm[1] && (mm[1] == mm[2] || mm[2] == 0) && mm[0] > 0))
        wish_refuse(wish, "resampledPixelSpacing must be three equal numbers, or two and 0 for slices that stay");
    if (wish->resamples)
        fputs("# resampledPixelSpacing: a region of one voxel along a resampled axis has no values (THIN_REGION)\n",
              wish->notes);
    if (wish->has_range && wish->sigma_range && !(wish->range[0] == -wish->range[1] && wish->range[1] > 0))
        wish_refuse(wish, "resegmentRange must be the same number of standard deviations on both sides");
    if (has_original)
        wish_put_group(wish, wanted, NULL, "%s", "");
    else if (wish->images->type != YAML_MAPPING_NODE) {
        wish_refuse(wish, "imageType must have rows of NAME: SETTINGS");
        return;
    }
    for (const yaml_node_pair_t *pair = has_original ? NULL : wish->images->data.mapping.pairs.start;
         pair && pair < wish->images->data.mapping.pairs.top; pair++) {
        const char *name = node_text(yaml_document_get_node(&wish->document, pair->key));
        has_original |= name && strcmp(name, "Original") == 0;
        wish_put_image(wish, name ? name : "", yaml_document_get_node(&wish->document, pair->value), wanted);
    }
    if (!has_original && wish_begin_group(wish, wanted, true, false)) { /* shapes are those of the mask */
        wish_put_grid(wish);
        fputs("}", wish->out);
    }
    if (wish->groups == 0)
        wish_refuse(wish, "measures nothing");
}

static int
wish_load(struct wish *wish)
{
    yaml_parser_t parser;
    FILE *in = fopen(wish->file, "re");
    if (!in) {
        cli_print_error("%s: %s", wish->file, strerror(errno));
        return errno == ENOENT ? EXIT_NOT_FOUND : EXIT_PARTIAL;
    }
    int status = EXIT_PARTIAL;
    if (yaml_parser_initialize(&parser)) {
        yaml_parser_set_input_file(&parser, in);
        status = yaml_parser_load(&parser, &wish->document) ? EXIT_OK : EXIT_PARTIAL;
        if (status)
            cli_print_error("%s:%zu: %s", wish->file, parser.problem_mark.line + 1,
                            parser.problem ? parser.problem : "cannot be read");
        yaml_parser_delete(&parser);
    }
    fclose(in);
    return status;
}

int
profile_pyradiomics_print(const char *file)
{
    struct wish wish = {.file = file,
                        .interpolator = "cubic",
                        .scale = 1,
                        .padding = 5,
                        .masked = true,
                        .radius = 1,
                        .all = {.width = 25,
                                .use_spacing = true,
                                .level = 1,
                                .radius_2d = 1,
                                .samples = 8,
                                .radius_3d = 1,
                                .harmonics = 2,
                                .wavelet = "coif1",
                                .method = "uniform"}};
    struct text_stream notes, groups;
    bool wanted[CLASSES] = {false};
    int status = wish_load(&wish);
    if (status)
        return status;
    wish.now = &wish.all;
    const bool opened[2] = {text_open(&notes) == 0, text_open(&groups) == 0};
    if (opened[0] && opened[1]) {
        wish.notes = notes.out;
        wish.out = groups.out;
        if (wish_read_all(&wish, wanted))
            wish_conclude(&wish, wanted);
    }
    const int failed = (opened[0] ? text_close(&notes) : -ENOMEM) | (opened[1] ? text_close(&groups) : -ENOMEM);
    if (failed)
        cli_print_error("%s", strerror(ENOMEM));
    else if (wish.refusals == 0)
        printf("# Made from %s by noctule profiles --pyradiomics.\n%stexture = (%s );\n", text_base_name(file),
               notes.bytes, groups.bytes);
    if (opened[0])
        free(notes.bytes);
    if (opened[1])
        free(groups.bytes);
    yaml_document_delete(&wish.document);
    return failed || wish.refusals > 0 ? EXIT_PARTIAL : EXIT_OK;
}
