#include "base/filter_options.h"

#include "base/text.h"

#include <stdio.h>
#include <string.h>

const char *const filter_kind_names[] = {
#define FILTER(id, name, ...) name,
#include "base/terms.def"
    NULL,
};
const char *const filter_boundary_names[] = {"zero", "nearest", "periodic", "mirror", NULL};
const char *const filter_pooling_names[] = {"none", "max", "mean", "min", NULL};
const char *const filter_laws_names[] = {"L5", "E5", "S5", "W5", "R5", "L3", "E3", "S3", NULL};
const char *const filter_wavelet_names[] = {
#define WAVELET(id, name, ...) name,
#include "base/wavelets.def"
    NULL,
};
const char *const filter_lbp_names[] = {"default", "ror", "uniform", NULL};
const char *const filter_harmonic_names[] = {"m1", "m2", "m3", "m4", "k", NULL};

/* Returns the number of the name that the text begins with; -1: none. */
static int
kernel_named(const char *text)
{
    for (int i = 0; filter_laws_names[i]; i++)
        if (strncmp(text, filter_laws_names[i], 2) == 0)
            return i;
    return -1;
}

/* Sets the kernel of an axis. Returns false if the text does not begin with one. */
static bool
parse_kernel(struct filter_options *options, size_t axis, const char *text)
{
    const int laws = options->kind == FILTER_LAWS ? kernel_named(text) : 0;

    switch (options->kind) {
    case FILTER_LAWS:
        options->laws[axis] = (enum filter_laws)(laws < 0 ? 0 : laws);
        return laws >= 0;
    case FILTER_WAVELET:
    case FILTER_PYRADIOMICS_WAVELET:
        options->high[axis] = *text == 'H';
        return *text == 'L' || *text == 'H';
    default:
        options->riesz[axis] = *text - '0';
        return *text >= '0' && *text <= '0' + FILTER_MAX_ORDER;
    }
}

bool
filter_parse(struct filter_options *options)
{
    const size_t axes = options->in_slice ? 2 : 3, letters = options->kind == FILTER_LAWS ? 2 : 1;
    const bool is_riesz = options->kind == FILTER_RIESZ_LOG || options->kind == FILTER_RIESZ_SIMONCELLI;
    const char *text = options->kernels ? options->kernels : "";
    int order = 0;

    if (options->kind != FILTER_LAWS && options->kind != FILTER_WAVELET && !is_riesz &&
        options->kind != FILTER_PYRADIOMICS_WAVELET)
        return true;
    if (strlen(text) != axes * letters)
        return false;
    for (size_t axis = 0; axis < axes; axis++)
        if (!parse_kernel(options, axis, text + axis * letters))
            return false;
    for (size_t axis = 0; axis < axes; axis++)
        order += options->riesz[axis];
    return !is_riesz || (order > 0 && order <= FILTER_MAX_ORDER);
}

bool
filter_image_name(const struct filter_options *options, char text[FILTER_TEXT])
{
    const char *prefix = strlen("pyradiomics-") + (options ? filter_kind_names[options->kind] : "pyradiomics-original");
    char digits[TEXT_DIGITS], level[16] = "";

    if (options && !filter_is_image_type(options->kind))
        return false;
    snprintf(text, FILTER_TEXT, "%s", prefix);
    if (!options)
        return true;
    text_digits(options->sigma_mm, digits);
    if (options->level > 1)
        snprintf(level, sizeof(level), "%d", options->level);
    if (options->kind == FILTER_PYRADIOMICS_WAVELET)
        snprintf(text, FILTER_TEXT, "wavelet%s-%s", level, options->kernels ? options->kernels : "");
    else if (options->kind == FILTER_PYRADIOMICS_LOG)
        snprintf(text, FILTER_TEXT, "log-sigma-%s%s-mm-3D", digits, strpbrk(digits, ".e") ? "" : ".0");
    else if (options->kind == FILTER_PYRADIOMICS_LBP_2D)
        snprintf(text, FILTER_TEXT, "lbp-2D");
    else if (options->kind == FILTER_PYRADIOMICS_LBP_3D)
        snprintf(text, FILTER_TEXT, "lbp-3D-%s", filter_harmonic_names[options->harmonic]);
    for (char *at = text; (at = strchr(at, '.')) != NULL;)
        *at = '-';
    return true;
}

/* Writes the settings of an image type of pyradiomics. */
static void
describe_image_type(const struct filter_options *options, char text[FILTER_TEXT])
{
    char digits[TEXT_DIGITS], radius[TEXT_DIGITS], around[32] = "";

    if (options->around >= 0)
        snprintf(around, sizeof(around), " around %d", options->around);
    text_digits(options->sigma_mm, digits);
    text_digits(options->radius, radius);
    switch (options->kind) {
    case FILTER_PYRADIOMICS_WAVELET:
        snprintf(text, FILTER_TEXT, "%s %s start_level %d level %d%s", filter_wavelet_names[options->wavelet],
                 options->kernels ? options->kernels : "", options->start_level, options->level, around);
        break;
    case FILTER_PYRADIOMICS_LOG:
        snprintf(text, FILTER_TEXT, "sigma_mm %s%s", digits, around);
        break;
    case FILTER_PYRADIOMICS_GRADIENT:
        snprintf(text, FILTER_TEXT, "%s%s", options->use_spacing ? "per mm" : "per voxel", around);
        break;
    case FILTER_PYRADIOMICS_LBP_2D:
        snprintf(text, FILTER_TEXT, "%s points %d radius %s%s", filter_lbp_names[options->method], options->points,
                 radius, around);
        break;
    case FILTER_PYRADIOMICS_LBP_3D:
        snprintf(text, FILTER_TEXT, "%s radius %s%s", filter_harmonic_names[options->harmonic], radius, around);
        break;
    default:
        snprintf(text, FILTER_TEXT, "%s", options->around >= 0 ? around + 1 : "volume");
        break;
    }
}

void
filter_describe(const struct filter_options *options, char text[FILTER_TEXT])
{
    const char *kernels = options->kernels ? options->kernels : "";
    const bool repeats = options->kind == FILTER_SIMONCELLI || options->kind == FILTER_RIESZ_SIMONCELLI;
    char digits[TEXT_DIGITS], gamma[TEXT_DIGITS], lambda[TEXT_DIGITS], theta[TEXT_DIGITS], pooling[32] = "";
    int length = snprintf(text, FILTER_TEXT, "%s %s", options->in_slice ? "2d" : "3d",
                          filter_boundary_names[repeats ? FILTER_PERIODIC : options->boundary]);

    if (filter_is_image_type(options->kind)) {
        describe_image_type(options, text);
        return;
    }
    if (options->pooling != FILTER_ONE)
        snprintf(pooling, sizeof(pooling), " %s", filter_pooling_names[options->pooling]);
    text += length;
    text_digits(options->sigma_mm, digits);
    text_digits(options->gamma, gamma);
    text_digits(options->lambda_mm, lambda);
    text_digits(options->theta_degrees, theta);
    switch (options->kind) {
    case FILTER_MEAN:
        snprintf(text, FILTER_TEXT - (size_t)length, " size %d", options->size);
        break;
    case FILTER_LOG:
        snprintf(text, FILTER_TEXT - (size_t)length, " sigma_mm %s", digits);
        break;
    case FILTER_LAWS:
        length += snprintf(text, FILTER_TEXT - (size_t)length, " %s%s", kernels, pooling);
        if (options->energy > 0)
            snprintf(text + strlen(text), FILTER_TEXT - (size_t)length, " energy %d", options->energy);
        break;
    case FILTER_WAVELET:
        snprintf(text, FILTER_TEXT - (size_t)length, " %s %s level %d%s", filter_wavelet_names[options->wavelet],
                 kernels, options->level, pooling);
        break;
    case FILTER_GABOR:
        snprintf(text, FILTER_TEXT - (size_t)length, " sigma_mm %s gamma %s lambda_mm %s theta_degrees %s%s", digits,
                 gamma, lambda, theta, pooling);
        break;
    case FILTER_SIMONCELLI:
        snprintf(text, FILTER_TEXT - (size_t)length, " level %d", options->level);
        break;
    case FILTER_RIESZ_LOG:
        snprintf(text, FILTER_TEXT - (size_t)length, " sigma_mm %s orders %s", digits, kernels);
        break;
    case FILTER_RIESZ_SIMONCELLI:
        snprintf(text, FILTER_TEXT - (size_t)length, " level %d orders %s", options->level, kernels);
        break;
    default:
        break;
    }
}

bool
filter_same(const struct filter_options *a, const struct filter_options *b)
{
    char texts[2][FILTER_TEXT];
    filter_describe(a, texts[0]);
    filter_describe(b, texts[1]);
    return a->kind == b->kind && strcmp(texts[0], texts[1]) == 0;
}
