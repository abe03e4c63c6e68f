/* filter_options.c - see filter_options.h. */
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
const char *const filter_wavelet_names[] = {"haar", "db2", "db3", "coif1", NULL};

/* Returns the number of the name that the text begins with; -1: none. */
static int
kernel_named(const char *text)
{
    for (int i = 0; filter_laws_names[i]; i++)
        if (strncmp(text, filter_laws_names[i], 2) == 0)
            return i;
    return -1;
}

bool
filter_parse(struct filter_options *options)
{
    const size_t axes = options->in_slice ? 2 : 3, letters = options->kind == FILTER_LAWS ? 2 : 1;
    const char *text = options->kernels ? options->kernels : "";

    if (options->kind != FILTER_LAWS && options->kind != FILTER_WAVELET)
        return true;
    if (strlen(text) != axes * letters)
        return false;
    for (size_t axis = 0; axis < axes; axis++, text += letters)
        if (options->kind == FILTER_WAVELET) {
            options->high[axis] = *text == 'H';
            if (*text != 'L' && *text != 'H')
                return false;
        } else {
            if (kernel_named(text) < 0)
                return false;
            options->laws[axis] = (enum filter_laws)kernel_named(text);
        }
    return true;
}

void
filter_describe(const struct filter_options *options, char text[FILTER_TEXT])
{
    const char *kernels = options->kernels ? options->kernels : "";
    char digits[TEXT_DIGITS], pooling[32] = "";
    int length =
        snprintf(text, FILTER_TEXT, "%s %s", options->in_slice ? "2d" : "3d", filter_boundary_names[options->boundary]);

    if (options->pooling != FILTER_ONE)
        snprintf(pooling, sizeof(pooling), " %s", filter_pooling_names[options->pooling]);
    text += length;
    switch (options->kind) {
    case FILTER_MEAN:
        snprintf(text, FILTER_TEXT - (size_t)length, " size %d", options->size);
        break;
    case FILTER_LOG:
        text_digits(options->sigma_mm, digits);
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
    default:
        break;
    }
}

bool
filter_is_same(const struct filter_options *a, const struct filter_options *b)
{
    char texts[2][FILTER_TEXT];

    if (!a || !b)
        return a == b;
    filter_describe(a, texts[0]);
    filter_describe(b, texts[1]);
    return a->kind == b->kind && strcmp(texts[0], texts[1]) == 0;
}
