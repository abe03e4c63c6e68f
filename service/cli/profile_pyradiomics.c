/* profile_pyradiomics.c - see profile_pyradiomics.h. */
#include "service/cli/profile_pyradiomics.h"

#include "base/text.h"
#include "service/cli/cli.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <yaml.h>

/* Settings of the file as options of a texture group. */
struct wish {
    const char *file;
    yaml_document_t document;
    FILE *notes, *group; /* comments, and options of the group */
    int refusals;
    const char *interpolator; /* of enum interpolation, without its prefix */
    double spacing[3];
    bool resamples, flat, sigma_range, has_range, has_levels;
    double range[2];
    long label;
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
wish_put_number(struct wish *wish, const char *before, double value, const char *after)
{
    char digits[TEXT_DIGITS];
    text_digits(value, digits);
    fprintf(wish->group, "%s%s%s%s", before, digits, strpbrk(digits, ".e") ? "" : ".0", after);
}

/* ------------------------------------------------------------------------------- values ---- */

static const char *
node_text(const yaml_node_t *node)
{
    return node && node->type == YAML_SCALAR_NODE ? (const char *)node->data.scalar.value : NULL;
}

/* Returns whether a value is absent: null, ~, none or empty. */
static bool
node_is_null(const yaml_node_t *node)
{
    const char *text = node_text(node);
    return !node || (text && (!*text || strcmp(text, "~") == 0 || strcasecmp(text, "null") == 0 ||
                              strcasecmp(text, "none") == 0));
}

static bool
node_is_true(const yaml_node_t *node)
{
    const char *text = node_text(node);
    return text && (strcasecmp(text, "true") == 0 || strcasecmp(text, "yes") == 0 || strcmp(text, "1") == 0);
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
    double width;
    if (node_numbers(wish, value, &width, 1) != 1 || width <= 0)
        wish_refuse(wish, "%s must be a positive number", name);
    else if (!wish->has_levels)
        wish_put_number(wish, "    discretisation = \"pyradiomics-bin-width\";\n    bin_width = ", width, ";\n");
    wish->has_levels = true;
}

static void
read_bin_count(struct wish *wish, const char *name, yaml_node_t *value)
{
    double count;
    if (node_numbers(wish, value, &count, 1) != 1 || count < 2 || count != floor(count) || count > 65536)
        wish_refuse(wish, "%s must be a whole number from 2 to 65536", name);
    else
        fprintf(wish->group, "    discretisation = \"fixed-bin-number\";\n    levels = %.0f;\n", count);
    wish->has_levels = true;
}

static void
read_label(struct wish *wish, const char *name, yaml_node_t *value)
{
    double label;
    if (node_numbers(wish, value, &label, 1) == 1)
        fprintf(wish->notes, "# %s: give noctule run --label %.0f\n", name, label);
}

static void
read_flat(struct wish *wish, const char *name, yaml_node_t *value)
{
    (void)name;
    wish->flat = node_is_true(value);
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
    double shift;
    if (node_numbers(wish, value, &shift, 1) != 1)
        wish_refuse(wish, "%s must be a number", name);
    else if (shift != 0)
        wish_put_number(wish, "    energy_shift = ", shift, ";\n");
}

/* Settings of which only the default is available. */
static void
read_only_off(struct wish *wish, const char *name, yaml_node_t *value)
{
    double number = 0;
    if (node_is_true(value) || (node_numbers(wish, value, &number, 1) == 1 && number != 0) ||
        (value->type == YAML_SCALAR_NODE && node_numbers(wish, value, &number, 1) == 0 &&
         strcasecmp(node_text(value), "false") != 0))
        wish_refuse(wish, "%s is not available", name);
}

static void
read_symmetry(struct wish *wish, const char *name, yaml_node_t *value)
{
    if (!node_is_true(value))
        wish_refuse(wish, "%s: false is not available with the other families", name);
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
    double alpha;
    if (node_numbers(wish, value, &alpha, 1) != 1 || alpha < 0 || alpha != floor(alpha) || alpha > 256)
        wish_refuse(wish, "%s must be a whole number from 0 to 256", name);
    else
        fprintf(wish->group, "    ngldm_alpha = %.0f;\n", alpha);
}

static void
read_without_effect(struct wish *wish, const char *name, yaml_node_t *value)
{
    (void)value;
    fprintf(wish->notes, "# %s: changes no value here\n", name);
}

/* The settings of pyradiomics 3.0.1. */
static const struct {
    const char *name;
    setting_read *read;
} settings[] = {
    {"binWidth", read_bin_width},
    {"binCount", read_bin_count},
    {"label", read_label},
    {"force2D", read_flat},
    {"force2Ddimension", read_flat_dimension},
    {"resampledPixelSpacing", read_spacing},
    {"interpolator", read_interpolator},
    {"resegmentRange", read_range},
    {"resegmentMode", read_range_mode},
    {"voxelArrayShift", read_shift},
    {"normalize", read_only_off},
    {"weightingNorm", read_only_off},
    {"resegmentShape", read_only_off},
    {"label_channel", read_only_off},
    {"symmetricalGLCM", read_symmetry},
    {"distances", read_distances},
    {"gldm_a", read_alpha},
    {"normalizeScale", read_without_effect},
    {"removeOutliers", read_without_effect},
    {"minimumROIDimensions", read_without_effect},
    {"minimumROISize", read_without_effect},
    {"geometryTolerance", read_without_effect},
    {"correctMask", read_without_effect},
    {"preCrop", read_without_effect},
    {"padDistance", read_without_effect},
    {"additionalInfo", read_without_effect},
};

static void
wish_read_setting(struct wish *wish, const char *name, yaml_node_t *value)
{
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++)
        if (strcmp(name, settings[i].name) == 0) {
            if (!node_is_null(value))
                settings[i].read(wish, name, value);
            return;
        }
    wish_refuse(wish, "setting %s is not known", name);
}

/* ------------------------------------------------------------------ families and images ---- */

static const struct {
    const char *name, *families;
} classes[] = {
    {"firstorder", "\"first-order\", \"intensity-histogram\""},
    {"shape", "\"shape\", \"morphology\""},
    {"glcm", "\"glcm\""},
    {"glrlm", "\"glrlm\""},
    {"glszm", "\"glszm\""},
    {"gldm", "\"ngldm\""},
    {"ngtdm", "\"ngtdm\""},
    {"shape2D", "\"shape-2d\""}, /* with regions in one slice, and only if it is named */
};

enum { CLASSES = sizeof classes / sizeof classes[0], CLASSES_OF_ALL = CLASSES - 1 };

static void
wish_read_class(struct wish *wish, const char *name, const yaml_node_t *value, bool wanted[CLASSES])
{
    for (int i = 0; i < CLASSES; i++)
        if (strcmp(name, classes[i].name) == 0) {
            wanted[i] = true;
            if (value->type == YAML_SEQUENCE_NODE)
                fprintf(wish->notes, "# featureClass %s: all features of the family are measured\n", name);
            return;
        }
    wish_refuse(wish, "featureClass %s is not available", name);
}

static void
wish_read_image(struct wish *wish, const char *name)
{
    if (strcmp(name, "Original") != 0)
        wish_refuse(wish, "imageType %s is not available", name);
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
        else if (strcmp(part, "setting") == 0)
            wish_read_setting(wish, name, value);
        else if (strcmp(part, "featureClass") == 0)
            wish_read_class(wish, name, value, wanted);
        else
            wish_read_image(wish, name);
    }
}

static void
wish_read_all(struct wish *wish, bool wanted[CLASSES])
{
    const yaml_node_t *root = yaml_document_get_root_node(&wish->document);
    bool has_classes = false;
    if (!root || root->type != YAML_MAPPING_NODE) {
        wish_refuse(wish, "is no parameter file: it must have setting, imageType or featureClass");
        return;
    }
    for (const yaml_node_pair_t *pair = root->data.mapping.pairs.start; pair < root->data.mapping.pairs.top; pair++) {
        const char *part = node_text(yaml_document_get_node(&wish->document, pair->key));
        const bool known = part && (strcmp(part, "setting") == 0 || strcmp(part, "imageType") == 0 ||
                                    strcmp(part, "featureClass") == 0);
        if (!known) {
            wish_refuse(wish, "%s is not available", part ? part : "a name that is no text");
            continue;
        }
        has_classes |= strcmp(part, "featureClass") == 0;
        wish_read_part(wish, part, yaml_document_get_node(&wish->document, pair->value), wanted);
    }
    for (int i = 0; i < CLASSES_OF_ALL && !has_classes; i++) /* pyradiomics then measures all */
        wanted[i] = true;
}

/* Adds the options that several settings decide. */
static void
wish_conclude(struct wish *wish, const bool wanted[CLASSES])
{
    const double *mm = wish->spacing;
    const bool isotropic = mm[0] == mm[1] && mm[1] == mm[2] && mm[0] > 0, in_plane = mm[0] == mm[1] && mm[2] == 0;
    if (!wish->has_levels) /* the default of pyradiomics */
        fputs("    discretisation = \"pyradiomics-bin-width\";\n    bin_width = 25.0;\n", wish->group);
    if (wanted[CLASSES - 1] && !wish->flat)
        wish_refuse(wish, "featureClass shape2D needs the setting force2D: true");
    fprintf(wish->group, "    aggregation = \"%s\";\n", wish->flat ? "2.5d-direction-merged" : "3d-averaged");
    if (wish->resamples && !isotropic && !in_plane)
        wish_refuse(wish, "resampledPixelSpacing must be three equal numbers, or two and 0 for slices that stay");
    else if (wish->resamples && wish->interpolator) {
        wish_put_number(wish, isotropic ? "    resample = { isotropic_mm = " : "    resample = { in_plane_mm = ", mm[0],
                        ";");
        fprintf(wish->group, " interpolation = \"pyradiomics-%s\"; };\n", wish->interpolator);
    }
    if (wish->has_range && !wish->sigma_range) {
        wish_put_number(wish, "    range = [ ", wish->range[0], ", ");
        wish_put_number(wish, "", wish->range[1], " ];\n");
    } else if (wish->has_range && wish->range[0] == -wish->range[1] && wish->range[1] > 0)
        wish_put_number(wish, "    sigma = ", wish->range[1], ";\n");
    else if (wish->has_range)
        wish_refuse(wish, "resegmentRange must be the same number of standard deviations on both sides");
}

static void
wish_print(const struct wish *wish, const char *notes, const char *group, const bool wanted[CLASSES])
{
    const char *before = "";
    printf("# Made from %s by noctule profiles --pyradiomics.\n%stexture = ( {\n    families = [ ",
           text_base_name(wish->file), notes);
    for (int i = 0; i < CLASSES; i++)
        if (wanted[i]) {
            printf("%s%s", before, classes[i].families);
            before = ", ";
        }
    printf(" ];\n    first_order = false;\n%s} );\n", group);
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
    struct wish wish = {.file = file, .interpolator = "cubic"};
    struct text_stream notes, group;
    bool wanted[CLASSES] = {false};
    int status = wish_load(&wish);
    if (status)
        return status;
    const bool opened[2] = {text_open(&notes) == 0, text_open(&group) == 0};
    if (opened[0] && opened[1]) {
        wish.notes = notes.out;
        wish.group = group.out;
        wish_read_all(&wish, wanted);
        wish_conclude(&wish, wanted);
    }
    const int failed = (opened[0] ? text_close(&notes) : -ENOMEM) | (opened[1] ? text_close(&group) : -ENOMEM);
    if (failed)
        cli_print_error("%s", strerror(ENOMEM));
    else if (wish.refusals == 0)
        wish_print(&wish, notes.bytes, group.bytes, wanted);
    if (opened[0])
        free(notes.bytes);
    if (opened[1])
        free(group.bytes);
    yaml_document_delete(&wish.document);
    return failed || wish.refusals > 0 ? EXIT_PARTIAL : EXIT_OK;
}
