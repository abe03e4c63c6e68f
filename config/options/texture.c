/*
 * texture.c - options of what is measured.
 */
#include "config/options/sections.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const region_choices[] = {"segments", "volume", NULL};
static const char *const discretisation_choices[] = {"paper", "fixed-bin-number", "fixed-bin-size",
                                                     "pyradiomics-bin-width", NULL};
static const char *const aggregation_choices[] = {
    "2d-averaged", "2d-slice-merged", "2.5d-direction-merged",
    "2.5d-merged", "3d-averaged",     "3d-merged",
    NULL};
static const char *const matrices_choices[] = {"none", "counts", "normalised", NULL};
static const char *const pattern_choices[] = {"lbp", "tlbap", "lanadp", NULL};
static const char *const average_choices[] = {"exact", "integer", NULL};

static const struct option_use levels_only[] = {
    {"discretisation", 1u << CONF_PAPER | 1u << CONF_FIXED_BIN_NUMBER}, {NULL, 0}};
static const struct option_use bin_width_only[] = {
    {"discretisation", 1u << CONF_FIXED_BIN_SIZE | 1u << CONF_PYRADIOMICS_BIN_WIDTH}, {NULL, 0}};
static const struct option_use without_offsets[] = {{"offsets", 0}, {NULL, 0}};
static const struct option_use angles_only[] = {
    {"offsets", 0},
    {"aggregation", 1u << CONF_2D_AVERAGED | 1u << CONF_2D_SLICE_MERGED |
                        1u << CONF_2_5D_DIRECTION_MERGED | 1u << CONF_2_5D_MERGED},
    {NULL, 0}};
static const struct option_use tlbap_only[] = {{"patterns", CONF_TLBAP}, {NULL, 0}};
static const struct option_use lanadp_only[] = {{"patterns", CONF_LANADP}, {NULL, 0}};

static bool
is_in_slices(enum conf_aggregation aggregation)
{
    return aggregation != CONF_3D_AVERAGED && aggregation != CONF_3D_MERGED;
}

static bool
check_offsets(const struct conf_glcm *glcm, const struct option_spot *spot)
{
    for (size_t i = 0; i < glcm->offset_count; i++) {
        const struct conf_offset *offset = &glcm->offsets[i];
        char option[32];
        snprintf(option, sizeof(option), "offsets.[%zu]", i);
        if (offset->column == 0 && offset->row == 0 && offset->slice == 0)
            return option_refuse(spot, option,
                                 "no voxel is its own neighbour: leave [ 0, 0, 0 ] out");
        if (offset->slice != 0 && is_in_slices(glcm->aggregation))
            return option_refuse(
                spot, option,
                "leads to another slice: make the third number 0, or the aggregation "
                "\"3d-averaged\" or \"3d-merged\"");
        for (size_t j = 0; j < i; j++)
            if (memcmp(&glcm->offsets[j], offset, sizeof(*offset)) == 0)
                return option_refuse(spot, option, "stands twice: leave one out");
    }
    return true;
}

static bool
check_twice(const char *name, const int *values, size_t count, const struct option_spot *spot)
{
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < i; j++)
            if (values[i] == values[j])
                return option_refuse(spot, name, "%d stands twice: leave one out", values[i]);
    return true;
}

static bool
check_glcm(const void *object, const struct option_spot *spot)
{
    const struct conf_glcm *glcm = object;
    if (glcm->has_range && glcm->range[0] > glcm->range[1])
        return option_refuse(spot, "range", "the lower end %g is above the upper end %g",
                             glcm->range[0], glcm->range[1]);
    for (size_t i = 0; i < glcm->angle_count; i++)
        if (glcm->angles[i] % 45 != 0)
            return option_refuse(spot, "angles", "%d has to be 0, 45, 90 or 135", glcm->angles[i]);
    return check_offsets(glcm, spot) &&
           check_twice("distances", glcm->distances, glcm->distance_count, spot) &&
           check_twice("angles", glcm->angles, glcm->angle_count, spot);
}

static const struct option_row glcm_rows[] = {
    {"discretisation", &option_choice, AT(struct conf_glcm, discretisation), "\"fixed-bin-number\"",
     .choices = discretisation_choices, .help = "how values become grey levels"},
    {"levels", &option_integer, AT(struct conf_glcm, levels), "32", LIMITS(2, 256),
     .uses = levels_only, .help = "with paper and fixed-bin-number: how many grey levels"},
    {"bin_width", &option_number, AT(struct conf_glcm, bin_width), NULL, LIMITS(1e-6, 1e9),
     .uses = bin_width_only,
     .help = "with fixed-bin-size and pyradiomics-bin-width: how wide a grey level is, in "
             "real-world units"},
    {"range", &option_numbers, AT(struct conf_glcm, range), GIVEN(struct conf_glcm, has_range),
     .fallback = "", LIMITS(-1e9, 1e9), .array = {.count = 2},
     .help = "re-segmentation: voxels whose value is not within these two, both inclusive and in "
             "real-world units, take no part"},
    {"aggregation", &option_choice, AT(struct conf_glcm, aggregation), "\"3d-merged\"",
     .choices = aggregation_choices,
     .help = "which neighbours count, and how their matrices become one number"},
    {"symmetric", &option_boolean, AT(struct conf_glcm, symmetric), "true",
     .help = "count each pair in both directions, as IBSI does; false counts it once"},
    {"offsets", &option_integers, AT(struct conf_glcm, offsets),
     MANY(struct conf_glcm, offset_count), .fallback = "", LIMITS(-255, 255),
     .array = {.count = 3, .elements = 16},
     .help = "instead of distances and angles: the neighbours, by column, row and slice from the "
             "voxel"},
    {"distances", &option_integers, AT(struct conf_glcm, distances),
     MANY(struct conf_glcm, distance_count), .fallback = "[ 1 ]", LIMITS(1, 255),
     .array = {.count = 1, .elements = 16}, .uses = without_offsets,
     .help = "how far neighbours are apart, in voxels along the axis where they are farthest "
             "(Chebyshev); each distance gives numbers of its own"},
    {"angles", &option_integers, AT(struct conf_glcm, angles), MANY(struct conf_glcm, angle_count),
     .fallback = "[ 0, 45, 90, 135 ]", LIMITS(0, 135), .array = {.count = 1, .elements = 4},
     .uses = angles_only,
     .help = "with the 2d and 2.5d aggregations: the directions in a slice, in degrees "
             "counter-clockwise from the direction of a row; of 0, 45, 90 and 135"},
    {"matrices", &option_choice, AT(struct conf_glcm, matrices), "\"none\"",
     .choices = matrices_choices,
     .help =
         "write the matrices that features are of, too, into matrices.json: how often each pair "
         "of levels occurs, or normalised, so that a matrix sums to 1"},
};

static const struct option_section glcm_section = {
    ROWS(glcm_rows), .size = sizeof(struct conf_glcm), .check = check_glcm};

/* The threshold is compared as a whole number of millionths. */
static bool
has_six_decimals(double value)
{
    double millionths = value * 1e6;
    return fabs(millionths - round(millionths)) < 1e-6;
}

static bool
check_texture(const void *object, const struct option_spot *spot)
{
    const struct conf_texture *texture = object;
    if (!texture->first_order && !texture->glcm && !texture->patterns)
        return option_refuse(spot, "first_order",
                             "nothing is left to measure: make it true, or give glcm or patterns");
    if (!has_six_decimals(texture->tlbap_threshold))
        return option_refuse(spot, "tlbap_threshold",
                             "%.17g has more than six decimals: round it to six",
                             texture->tlbap_threshold);
    return true;
}

static const struct option_row texture_rows[] = {
    {"regions", &option_flags, AT(struct conf_texture, regions), "[ \"segments\" ]",
     .choices = region_choices,
     .help = "what is measured: each of the segments, the whole volume, or both"},
    {"first_order", &option_boolean, AT(struct conf_texture, first_order), "true",
     .help = "measure the statistics of the values, and volume, centroid and bounding box"},
    {"glcm", &option_part, AT(struct conf_texture, glcm), "", .section = &glcm_section,
     .help = "grey level co-occurrence: all features of IBSI, and Haralick's f14"},
    {"patterns", &option_flags, AT(struct conf_texture, patterns), "", .choices = pattern_choices,
     .help = "local patterns of each slice, whose histograms within the regions are kept"},
    {"tlbap_threshold", &option_number, AT(struct conf_texture, tlbap_threshold), "0.9",
     LIMITS(0, 1), .uses = tlbap_only,
     .help = "tlbap: a neighbour reaches at least this part of the largest value of the window; "
             "up to six decimals"},
    {"tlbap_strict", &option_boolean, AT(struct conf_texture, tlbap_strict), "false",
     .uses = tlbap_only,
     .help = "tlbap: compare by greater, as the paper's listing, instead of greater or equal"},
    {"lanadp_average", &option_switch, AT(struct conf_texture, lanadp_integer), "\"exact\"",
     .choices = average_choices, .uses = lanadp_only,
     .help = "lanadp: whether averages of two values keep their halves; the paper's listing cuts "
             "them to integers"},
};

const struct option_section option_texture = {
    ROWS(texture_rows), .size = sizeof(struct conf_texture), .check = check_texture};
