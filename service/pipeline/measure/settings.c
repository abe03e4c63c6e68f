/* settings.c - see settings.h. */
#include "service/pipeline/measure/settings.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ANGLES 4

/* Of 0, 45, 90 and 135 degrees. */
static const struct texture_offset in_slice[ANGLES] = {
    {1, 0, 0}, {1, -1, 0}, {0, -1, 0}, {-1, -1, 0}};

/* ---------------------------------------------------------------------------- directions ---- */

size_t
texture_matrices_count(const struct conf_glcm *glcm)
{
    return glcm->offset_count > 0 ? 1 : glcm->distance_count;
}

static bool
is_2d(const struct conf_glcm *glcm)
{
    return glcm_aggregation_is_2d((enum glcm_aggregation)glcm->aggregation);
}

static size_t
put_in_slice(const struct conf_glcm *glcm, struct texture_offset *directions)
{
    if (!is_2d(glcm) || glcm->angle_count == 0) {
        memcpy(directions, in_slice, sizeof in_slice);
        return ANGLES;
    }
    for (size_t i = 0; i < glcm->angle_count; i++)
        directions[i] = in_slice[glcm->angles[i] / 45];
    return glcm->angle_count;
}

static size_t
put_next_slice(struct texture_offset *directions)
{
    size_t count = 0;
    for (int32_t y = -1; y <= 1; y++)
        for (int32_t x = -1; x <= 1; x++)
            directions[count++] = (struct texture_offset){x, y, 1};
    return count;
}

static void
put_own(const struct conf_glcm *glcm, struct texture_matrices *matrices)
{
    for (size_t i = 0; i < glcm->offset_count; i++) {
        const struct conf_offset *offset = &glcm->offsets[i];
        matrices->offsets[i] = (struct texture_offset){offset->column, offset->row, offset->slice};
    }
    matrices->count = glcm->offset_count;
}

static void
put_at_distance(const struct conf_glcm *glcm, int32_t distance, struct texture_matrices *matrices)
{
    matrices->count = put_in_slice(glcm, matrices->offsets);
    if (!is_2d(glcm))
        matrices->count += put_next_slice(matrices->offsets + matrices->count);
    for (size_t i = 0; i < matrices->count; i++) {
        matrices->offsets[i].x *= distance;
        matrices->offsets[i].y *= distance;
        matrices->offsets[i].z *= distance;
    }
    matrices->distance = distance;
}

int
texture_matrices_make(const struct conf_glcm *glcm, size_t index, struct texture_matrices *matrices)
{
    size_t room = ANGLES + 9 + glcm->angle_count + glcm->offset_count;
    *matrices = (struct texture_matrices){.offsets = calloc(room, sizeof *matrices->offsets)};
    if (!matrices->offsets)
        return -ENOMEM;
    if (glcm->offset_count > 0)
        put_own(glcm, matrices);
    else
        put_at_distance(glcm, glcm->distances[index], matrices);
    return 0;
}

static void
name_angles(const struct conf_glcm *glcm, char text[FEATURE_DIRECTIONS])
{
    size_t length = 0;
    for (size_t i = 0; i < glcm->angle_count && length < FEATURE_DIRECTIONS; i++)
        length += (size_t)snprintf(text + length, FEATURE_DIRECTIONS - length, "%s%d",
                                   i > 0 ? "," : "", glcm->angles[i]);
}

static void
name_offsets(const struct conf_glcm *glcm, char text[FEATURE_DIRECTIONS])
{
    size_t length = 0;
    for (size_t i = 0; i < glcm->offset_count && length < FEATURE_DIRECTIONS; i++) {
        const struct conf_offset *offset = &glcm->offsets[i];
        length += (size_t)snprintf(text + length, FEATURE_DIRECTIONS - length, "(%d,%d,%d)",
                                   offset->column, offset->row, offset->slice);
    }
}

void
texture_directions(const struct conf_glcm *glcm, char text[FEATURE_DIRECTIONS])
{
    text[0] = '\0';
    if (glcm->offset_count > 0)
        name_offsets(glcm, text);
    else if (is_2d(glcm) && glcm->angle_count < ANGLES)
        name_angles(glcm, text);
}

struct discretisation_settings
texture_discretisation(const struct conf_glcm *glcm)
{
    return (struct discretisation_settings){
        .kind = (enum discretisation)glcm->discretisation,
        .levels = glcm->levels,
        .bin_width = glcm->bin_width,
        .has_range = glcm->has_range,
        .range = {glcm->range[0], glcm->range[1]},
    };
}

/* ------------------------------------------------------------------------------ patterns ---- */

const char *const texture_pattern_names[TEXTURE_PATTERNS] = {"lbp", "tlbap", "lanadp"};

bool
texture_pattern_wanted(const struct conf_texture *texture, enum texture_pattern pattern)
{
    static const unsigned flags[TEXTURE_PATTERNS] = {CONF_LBP, CONF_TLBAP, CONF_LANADP};
    return (texture->patterns & flags[pattern]) != 0;
}

static int32_t
millionths(double threshold)
{
    return (int32_t)lround(threshold * 1e6);
}

void
texture_pattern_settings(const struct conf_texture *texture, enum texture_pattern pattern,
                         char text[FEATURE_TERM])
{
    text[0] = '\0';
    if (pattern == TEXTURE_TLBAP)
        snprintf(text, FEATURE_TERM, "threshold=%.7g%s", millionths(texture->tlbap_threshold) / 1e6,
                 texture->tlbap_strict ? ",strict" : "");
    else if (pattern == TEXTURE_LANADP && texture->lanadp_integer)
        snprintf(text, FEATURE_TERM, "integer");
}

struct texture_patterns
texture_patterns_of(const struct conf_texture *texture)
{
    struct texture_patterns patterns = {
        .threshold_millionths = millionths(texture->tlbap_threshold),
        .strict = texture->tlbap_strict,
        .integer_average = texture->lanadp_integer,
    };
    for (int i = 0; i < TEXTURE_PATTERNS; i++)
        patterns.wanted[i] = texture_pattern_wanted(texture, (enum texture_pattern)i);
    return patterns;
}

/* --------------------------------------------------------------------------------- units ---- */

/* Of all planes: a stack whose planes differ has no unit. */
static const char *
common_unit(struct dicom_instance *const *instances, const struct geometry_stack *stack)
{
    const char *unit = instances[stack->planes[0].instance]->value_unit;
    for (int32_t z = 1; z < stack->plane_count; z++)
        if (strcmp(instances[stack->planes[z].instance]->value_unit, unit) != 0)
            return "";
    return unit;
}

void
texture_value_unit(struct dicom_instance *const *instances, const struct geometry_stack *stack,
                   int power, char unit[FEATURE_TERM])
{
    const char *base = common_unit(instances, stack);
    if (power == 0 || base[0] == '\0')
        snprintf(unit, FEATURE_TERM, "1");
    else if (power == 1)
        snprintf(unit, FEATURE_TERM, "%s", base);
    else
        snprintf(unit, FEATURE_TERM, strchr(base, '/') ? "(%s)%d" : "%s%d", base, power);
}
