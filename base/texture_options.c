#include "base/texture_options.h"

const char *const aggregation_names[] = {
#define AGGREGATION(id, name, ...) name,
#include "base/terms.def"
    NULL,
};

const char *const aggregation_codes[] = {
#define AGGREGATION(id, name, scheme, code, meaning) code,
#include "base/terms.def"
};

const char *const dimension_names[] = {
#define DIMENSION(id, name, ...) name,
#include "base/terms.def"
};

const char *const dimension_codes[] = {
#define DIMENSION(id, name, scheme, code, meaning) code,
#include "base/terms.def"
};

const char *const discretisation_names[] = {
#define DISCRETISATION(id, name, ...) name,
#include "base/terms.def"
    NULL,
};

const char *const texture_family_names[] = {
#define FAMILY_WORD(id, word) word,
#include "base/families.def"
    "all",
    NULL,
};

const char *const volume_histogram_names[] = {"none", "fixed-bin-number", "fixed-bin-size", NULL};

const char *const interpolation_names[] = {
#define INTERPOLATION(id, name, ...) name,
#include "base/terms.def"
    NULL,
};

const char *const texture_pattern_names[] = {
#define PATTERN(id, name, ...) name,
#include "base/terms.def"
    NULL,
};

const char *const feature_missing_names[] = {
    "",
#define MISSING(id, ...) #id,
#include "base/terms.def"
    NULL,
};

bool
aggregation_is_2d(enum aggregation aggregation)
{
    return aggregation < AGGREGATION_3D_AVERAGED;
}

bool
aggregation_per_slice(enum aggregation aggregation)
{
    return aggregation == AGGREGATION_2D_AVERAGED || aggregation == AGGREGATION_2D_SLICE_MERGED;
}

bool
aggregation_merges(enum aggregation aggregation)
{
    return aggregation == AGGREGATION_2D_SLICE_MERGED || aggregation == AGGREGATION_2_5D_MERGED ||
           aggregation == AGGREGATION_3D_MERGED;
}

enum dimension
aggregation_dimension(enum aggregation aggregation)
{
    if (aggregation_per_slice(aggregation))
        return DIMENSION_2D;
    return aggregation_is_2d(aggregation) ? DIMENSION_2_5D : DIMENSION_3D;
}

bool
discretisation_by_number(enum discretisation kind)
{
    return kind == DISCRETISATION_STORED_256 || kind == DISCRETISATION_FIXED_BIN_NUMBER;
}

bool
texture_wants(const struct texture_options *options, enum texture_family family)
{
    return (options->families & (1u << family | 1u << TEXTURE_FAMILY_all)) != 0;
}

const struct glcm_options *
texture_glcm_options(const struct texture_options *options)
{
    static int distance = 1;
    static const struct glcm_options by_default[AGGREGATIONS] = {
#define AGGREGATION(id, ...)                                                                                           \
    {.aggregation = AGGREGATION_##id, .symmetric = true, .distances = &distance, .distance_count = 1},
#include "base/terms.def"
    };

    if (options->glcm)
        return options->glcm;
    return texture_wants(options, TEXTURE_FAMILY_glcm) ? &by_default[options->aggregation] : NULL;
}

bool
texture_has_features(const struct texture_options *options)
{
    return options->first_order || options->families != 0 || options->glcm != NULL;
}

bool
texture_resample_same(const struct texture_resample *a, const struct texture_resample *b)
{
    if (!a || !b)
        return a == b;
    return a->spacing == b->spacing && a->mm == b->mm && a->interpolation == b->interpolation &&
           a->rounding == b->rounding;
}
