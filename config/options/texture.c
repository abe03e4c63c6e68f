/*
 * texture.c - the options of measurements.
 */
#include "config/options/sections.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const region_choices[] = {"segments", "volume", NULL};
static const char *const matrices_choices[] = {"none", "counts", "normalised", NULL};
static const char *const average_choices[] = {"exact", "integer", NULL};

static const struct option_use levels_only[] = {
    {"discretisation", 1u << DISCRETISATION_FIXED_BIN_NUMBER | 1u << DISCRETISATION_STORED_256},
    {NULL, 0}};
static const struct option_use bin_width_only[] = {
    {"discretisation",
     1u << DISCRETISATION_FIXED_BIN_SIZE | 1u << DISCRETISATION_PYRADIOMICS_BIN_WIDTH},
    {NULL, 0}};
static const struct option_use without_offsets[] = {{"offsets", 0}, {NULL, 0}};
static const struct option_use angles_only[] = {
    {"offsets", 0},
    {"aggregation", 1u << AGGREGATION_2D_AVERAGED | 1u << AGGREGATION_2D_SLICE_MERGED |
                        1u << AGGREGATION_2_5D_DIRECTION_MERGED | 1u << AGGREGATION_2_5D_MERGED},
    {NULL, 0}};
static const struct option_use aggregated_only[] = {
    {"families", 1u << TEXTURE_FAMILY_glszm | 1u << TEXTURE_FAMILY_gldzm |
                     1u << TEXTURE_FAMILY_glcm | 1u << TEXTURE_FAMILY_glrlm |
                     1u << TEXTURE_FAMILY_ngtdm | 1u << TEXTURE_FAMILY_ngldm |
                     1u << TEXTURE_FAMILY_all},
    {NULL, 0}};
static const struct option_use ngtdm_only[] = {
    {"families", 1u << TEXTURE_FAMILY_ngtdm | 1u << TEXTURE_FAMILY_all}, {NULL, 0}};
static const struct option_use ngldm_only[] = {
    {"families", 1u << TEXTURE_FAMILY_ngldm | 1u << TEXTURE_FAMILY_all}, {NULL, 0}};
static const struct option_use ivh_only[] = {
    {"families", 1u << TEXTURE_FAMILY_volume_histogram | 1u << TEXTURE_FAMILY_all}, {NULL, 0}};
static const struct option_use ivh_levels_only[] = {
    {"ivh_discretisation", 1u << VOLUME_HISTOGRAM_BIN_NUMBER}, {NULL, 0}};
static const struct option_use ivh_width_only[] = {
    {"ivh_discretisation", 1u << VOLUME_HISTOGRAM_BIN_SIZE}, {NULL, 0}};
static const struct option_use tlbap_only[] = {{"patterns", 1u << TEXTURE_TLBAP}, {NULL, 0}};
static const struct option_use lanadp_only[] = {{"patterns", 1u << TEXTURE_LANADP}, {NULL, 0}};

static void
check_offset(const struct glcm_options *glcm, size_t i, const struct option_spot *spot)
{
    const struct texture_offset *offset = &glcm->offsets[i];
    char option[32];
    snprintf(option, sizeof(option), "offsets.[%zu]", i);
    if (offset->x == 0 && offset->y == 0 && offset->z == 0)
        option_refuse(spot, option, "no voxel is its own neighbour: leave [ 0, 0, 0 ] out");
    if (offset->z != 0 && !LOST(spot, glcm->aggregation) && aggregation_is_2d(glcm->aggregation))
        option_refuse(spot, option,
                      "leads to another slice: make the third number 0, or the aggregation "
                      "\"3d-averaged\" or \"3d-merged\"");
    size_t j = 0;
    while (memcmp(&glcm->offsets[j], offset, sizeof(*offset)) != 0)
        j++;
    if (j < i)
        option_refuse(spot, option, "stands twice: leave one out");
}

/* Reports each repeated value once. */
static void
check_twice(const char *name, const int *values, size_t count, const struct option_spot *spot)
{
    for (size_t i = 0; i < count; i++) {
        size_t before = 0;
        for (size_t j = 0; j < i; j++)
            before += values[i] == values[j];
        if (before == 1)
            option_refuse(spot, name, "%d stands twice: leave one out", values[i]);
    }
}

static void
check_angles(const struct glcm_options *glcm, const struct option_spot *spot)
{
    for (size_t i = 0; i < glcm->angle_count; i++)
        if (glcm->angles[i] % 45 != 0)
            option_refuse(spot, "angles", "%d has to be 0, 45, 90 or 135", glcm->angles[i]);
    check_twice("angles", glcm->angles, glcm->angle_count, spot);
}

static void
check_glcm(const void *object, const struct option_spot *spot)
{
    const struct glcm_options *glcm = object;
    for (size_t i = 0; !LOST(spot, glcm->offsets) && i < glcm->offset_count; i++)
        check_offset(glcm, i, spot);
    if (!LOST(spot, glcm->distances))
        check_twice("distances", glcm->distances, glcm->distance_count, spot);
    if (!LOST(spot, glcm->angles))
        check_angles(glcm, spot);
}

static const struct option_row glcm_rows[] = {
    {"aggregation", &option_choice, AT(struct glcm_options, aggregation), "\"3d-merged\"",
     .choices = aggregation_names,
     .help = "which neighbours count, and how their matrices become one number"},
    {"symmetric", &option_boolean, AT(struct glcm_options, symmetric), "true",
     .help = "count each pair in both directions, as IBSI does; false counts it once"},
    {"offsets", &option_integers, AT(struct glcm_options, offsets),
     MANY(struct glcm_options, offset_count), .fallback = "", LIMITS(-255, 255),
     .array = {.count = 3, .elements = 16},
     .help = "instead of distances and angles: the neighbours, by column, row and slice from the "
             "voxel"},
    {"distances", &option_integers, AT(struct glcm_options, distances),
     MANY(struct glcm_options, distance_count), .fallback = "[ 1 ]", LIMITS(1, 255),
     .array = {.count = 1, .elements = 16}, .uses = without_offsets,
     .help = "how far neighbours are apart, in voxels along the axis where they are farthest "
             "(Chebyshev); each distance gives numbers of its own"},
    {"angles", &option_integers, AT(struct glcm_options, angles),
     MANY(struct glcm_options, angle_count), .fallback = "[ 0, 45, 90, 135 ]", LIMITS(0, 135),
     .array = {.count = 1, .elements = 4}, .uses = angles_only,
     .help = "with the 2d and 2.5d aggregations: the directions in a slice, in degrees "
             "counter-clockwise from the direction of a row; of 0, 45, 90 and 135"},
    {"matrices", &option_choice, AT(struct glcm_options, matrices), "\"none\"",
     .choices = matrices_choices,
     .help =
         "write the matrices that features are of, too, into matrices.json: how often each pair "
         "of levels occurs, or normalised, so that a matrix sums to 1"},
};

static const char *const moved_rows[] = {"discretisation", "levels", "bin_width", "range", NULL};

static const struct option_section glcm_section = {
    ROWS(glcm_rows), .size = sizeof(struct glcm_options), .check = check_glcm, .moved = moved_rows};

#define SPACING(name_, spacing_, help_)                                                            \
    {                                                                                              \
        (name_), &option_number, AT(struct texture_resample, mm), "", LIMITS(0.01, 100),           \
            EITHER(struct texture_resample, spacing, spacing_), .help = (help_)                    \
    }

static const struct option_row resample_rows[] = {
    SPACING("isotropic_mm", TEXTURE_ISOTROPIC,
            "voxels of this size along rows, columns and slices, on a grid around the same middle"),
    SPACING(
        "in_plane_mm", TEXTURE_IN_PLANE,
        "the same along rows and columns, slices staying as they are; exactly one of the two is "
        "given"),
    {"interpolation", &option_choice, AT(struct texture_resample, interpolation), "\"linear\"",
     .choices = interpolation_names,
     .help = "values between voxels, rounded to stored values: those of the \"nearest\" one, "
             "\"linear\", or by a \"cubic\" spline through all of them"},
};

static const struct option_section resample_section = {ROWS(resample_rows),
                                                       .size = sizeof(struct texture_resample)};

/* The form of options until version 0.1.0. */
static const struct option_past within_glcm = {.group = "glcm"};
static const struct option_past with_paper = {"glcm", true, "paper", DISCRETISATION_STORED_256};

/* Returns whether the value is a whole number of millionths; thresholds are compared in that
 * form. */
static bool
has_six_decimals(double value)
{
    double millionths = value * 1e6;
    return fabs(millionths - round(millionths)) < 1e-6;
}

static void
check_texture(const void *object, const struct option_spot *spot)
{
    const struct texture_options *texture = object;
    if (texture->levels.has_range)
        check_ends(texture->levels.range, "range", spot);
    if (!texture_has_features(texture) && !texture->patterns && !LOST(spot, *texture))
        option_refuse(
            spot, "first_order",
            "nothing is left to measure: make it true, or give families, glcm or patterns");
    if (texture->resample && texture->patterns)
        option_refuse(spot, "patterns",
                      "are of the voxels that there are: give them a texture group of their own, "
                      "without resample");
    if (!has_six_decimals(texture->tlbap_threshold))
        option_refuse(spot, "tlbap_threshold", "%.17g has more than six decimals: round it to six",
                      texture->tlbap_threshold);
}

static const struct option_row texture_rows[] = {
    {"profile", &option_profile, .offset = 0, .fallback = "", LIMITS(1, 64), .form = &form_name,
     .help =
         "settings to begin with, of those that noctule profiles lists or of a file "
         "profiles/NAME.conf beside this one; what the group sets itself stands in their place"},
    {"resample", &option_part, AT(struct texture_options, resample), "",
     .section = &resample_section,
     .help =
         "measure on voxels of another size, which the volume and the masks are interpolated to; "
         "on those that there are when not given"},
    {"regions", &option_flags, AT(struct texture_options, regions), "[ \"segments\" ]",
     .choices = region_choices,
     .help = "what is measured: each of the segments, the whole volume, or both"},
    {"discretisation", &option_choice, AT(struct texture_options, levels.kind),
     GIVEN(struct texture_options, levels_wanted), .fallback = "", .choices = discretisation_names,
     .past = &with_paper,
     .help = "how values become grey levels, of which the entropy is measured, too; "
             "fixed-bin-number where glcm needs levels and this is not given"},
    {"levels", &option_integer, AT(struct texture_options, levels.levels), "32", LIMITS(2, 256),
     .uses = levels_only, .past = &within_glcm, .later = true,
     .help = "with fixed-bin-number and stored-256: how many grey levels"},
    {"bin_width", &option_number, AT(struct texture_options, levels.bin_width), NULL,
     LIMITS(1e-6, 1e9), .uses = bin_width_only, .past = &within_glcm,
     .help = "with fixed-bin-size and pyradiomics-bin-width: how wide a grey level is, in "
             "real-world units"},
    {"range", &option_numbers, AT(struct texture_options, levels.range),
     GIVEN(struct texture_options, levels.has_range), .fallback = "", LIMITS(-1e9, 1e9),
     .array = {.count = 2}, .past = &within_glcm,
     .help = "re-segmentation: voxels whose value is not within these two, both inclusive and in "
             "real-world units, take no part in intensities and grey levels"},
    {"sigma", &option_number, AT(struct texture_options, sigma), "0.0", LIMITS(0, 100),
     .later = true,
     .help =
         "re-segmentation: nor do voxels whose value is farther from the mean of the region than "
         "so many standard deviations, both of the region before re-segmentation; IBSI has 3; 0 "
         "means that none is too far"},
#define FAMILY_OPTION(id, fallback, is_later, words)                                               \
    {#id,      &option_boolean,   AT(struct texture_options, id),                                  \
     fallback, .later = is_later, .help = words},
#include "base/families.def"
    {"families", &option_flags, AT(struct texture_options, families), "",
     .choices = texture_family_names,
     .help =
         "the families of features that are measured, beside what first_order, glcm and patterns "
         "ask for"},
    {"aggregation", &option_choice, AT(struct texture_options, aggregation), "\"3d-merged\"",
     .choices = aggregation_names, .uses = aggregated_only, .later = true,
     .help =
         "of families: which neighbours count, and how their matrices become one number; a group "
         "glcm has its own"},
    {"ngtdm_distance", &option_integer, AT(struct texture_options, ngtdm_distance), "1",
     LIMITS(1, 3), .uses = ngtdm_only, .later = true,
     .help = "ngtdm: how far neighbours are away at most, in voxels along each axis (Chebyshev)"},
    {"ngldm_distance", &option_integer, AT(struct texture_options, ngldm_distance), "1",
     LIMITS(1, 3), .uses = ngldm_only, .later = true, .help = "ngldm: the same"},
    {"ngldm_alpha", &option_integer, AT(struct texture_options, ngldm_alpha), "0", LIMITS(0, 256),
     .uses = ngldm_only, .later = true,
     .help = "ngldm: neighbours whose levels are at most so far apart depend on each other"},
    {"ivh_discretisation", &option_choice, AT(struct texture_options, ivh.kind), "\"none\"",
     .choices = volume_histogram_names, .uses = ivh_only, .later = true,
     .help = "intensity-volume-histogram: bins of its own, or the values as they are"},
    {"ivh_levels", &option_integer, AT(struct texture_options, ivh.levels), "1000",
     LIMITS(2, 65536), .uses = ivh_levels_only, .later = true,
     .help = "with fixed-bin-number: how many"},
    {"ivh_bin_width", &option_number, AT(struct texture_options, ivh.bin_width), NULL,
     LIMITS(1e-6, 1e9), .uses = ivh_width_only,
     .help = "with fixed-bin-size: how wide a bin is, in real-world units"},
    {"glcm", &option_part, AT(struct texture_options, glcm), "", .section = &glcm_section,
     .help = "grey level co-occurrence: all features of IBSI, and Haralick's f14"},
    {"patterns", &option_flags, AT(struct texture_options, patterns), "",
     .choices = texture_pattern_names,
     .help = "local patterns of each slice, whose histograms within the regions are kept"},
    {"tlbap_threshold", &option_number, AT(struct texture_options, tlbap_threshold), "0.9",
     LIMITS(0, 1), .uses = tlbap_only,
     .help = "tlbap: a neighbour reaches at least this part of the largest value of the window; "
             "up to six decimals"},
    {"tlbap_strict", &option_boolean, AT(struct texture_options, tlbap_strict), "false",
     .uses = tlbap_only,
     .help = "tlbap: compare by greater, as the paper's listing, instead of greater or equal"},
    {"lanadp_average", &option_switch, AT(struct texture_options, lanadp_integer), "\"exact\"",
     .choices = average_choices, .uses = lanadp_only,
     .help = "lanadp: whether averages of two values keep their halves; the paper's listing cuts "
             "them to integers"},
};

const struct option_section option_texture = {
    ROWS(texture_rows), .size = sizeof(struct texture_options), .check = check_texture};
