/*
 * option_texture.c - the options of measurements.
 */
#include "config/options/option_sections.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const region_choices[] = {"segments", "volume", NULL};
static const char *const matrices_choices[] = {"none", "counts", "normalised", NULL};
static const char *const response_choices[] = {"pmap", "nifti", NULL};
static const char *const average_choices[] = {"exact", "integer", NULL};
static const char *const names_choices[] = {"noctule", "pyradiomics", NULL};
static const char *const rounding_choices[] = {"auto", "stored", "none", NULL};

enum {
    FAMILIES_WITH_AGGREGATION = 1u << TEXTURE_FAMILY_glszm | 1u << TEXTURE_FAMILY_gldzm | 1u << TEXTURE_FAMILY_glcm |
                                1u << TEXTURE_FAMILY_glrlm | 1u << TEXTURE_FAMILY_ngtdm | 1u << TEXTURE_FAMILY_ngldm |
                                1u << TEXTURE_FAMILY_all,
};

static const struct option_use angles_only[] = {
    {"offsets", 0},
    {"aggregation", 1u << AGGREGATION_2D_AVERAGED | 1u << AGGREGATION_2D_SLICE_MERGED |
                        1u << AGGREGATION_2_5D_DIRECTION_MERGED | 1u << AGGREGATION_2_5D_MERGED},
    {NULL, 0}};

/* Reports each repeated value once. */
static void
check_twice(const char *name, const int *values, size_t count, const struct option_spot *spot)
{
    for (size_t i = 0; i < count; i++) {
        size_t before = 0;
        for (size_t j = 0; j < i; j++)
            before += values[i] == values[j];
        if (before == 1)
            option_refuse(spot, name, "%d is given twice: remove one", values[i]);
    }
}

static void
check_glcm(const void *object, const struct option_spot *spot)
{
    const struct glcm_options *glcm = object;
    for (size_t i = 0; !LOST(spot, glcm->offsets) && i < glcm->offset_count; i++) {
        const struct texture_offset *offset = &glcm->offsets[i];
        char option[32];
        snprintf(option, sizeof(option), "offsets.[%zu]", i);
        if (offset->x == 0 && offset->y == 0 && offset->z == 0)
            option_refuse(spot, option, "a voxel is not its own neighbour: remove [ 0, 0, 0 ]");
        if (offset->z != 0 && !LOST(spot, glcm->aggregation) && aggregation_is_2d(glcm->aggregation))
            option_refuse(spot, option,
                          "leads to another slice: set the third number to 0, or aggregation to "
                          "\"3d-averaged\" or \"3d-merged\"");
        size_t j = 0;
        while (memcmp(&glcm->offsets[j], offset, sizeof(*offset)) != 0)
            j++;
        if (j < i)
            option_refuse(spot, option, "is given twice: remove one");
    }
    if (!LOST(spot, glcm->distances))
        check_twice("distances", glcm->distances, glcm->distance_count, spot);
    if (!LOST(spot, glcm->angles)) {
        for (size_t i = 0; i < glcm->angle_count; i++)
            if (glcm->angles[i] % 45 != 0)
                option_refuse(spot, "angles", "%d must be 0, 45, 90 or 135", glcm->angles[i]);
        check_twice("angles", glcm->angles, glcm->angle_count, spot);
    }
}

static const struct option_row glcm_rows[] = {
    {ROW(glcm_options, choice, aggregation), "\"3d-merged\"", .choices = aggregation_names,
     .help = "neighbours to count, and method to combine their matrices into one value"},
    {ROW(glcm_options, boolean, symmetric), "true",
     .help = "count each pair in both directions, as IBSI does; false: once"},
    {ROW(glcm_options, integers, offsets), MANY(struct glcm_options, offset_count), .fallback = "", LIMITS(-255, 255),
     .array = {.count = 3, .elements = 16},
     .help = "offsets of neighbours by column, row and slice; replaces distances and angles"},
    {ROW(glcm_options, integers, distances), MANY(struct glcm_options, distance_count), .fallback = "[ 1 ]",
     LIMITS(1, 255), .array = {.count = 1, .elements = 16}, ONLY_WITH("offsets", 0),
     .help = "distances of neighbours, in voxels along the axis of the largest difference "
             "(Chebyshev); each distance gives values of its own"},
    {ROW(glcm_options, integers, angles), MANY(struct glcm_options, angle_count), .fallback = "[ 0, 45, 90, 135 ]",
     LIMITS(0, 135), .array = {.count = 1, .elements = 4}, .uses = angles_only,
     .help = "directions in a slice, in degrees counter-clockwise from the direction of a row: any "
             "of 0, 45, 90 and 135; only with 2d and 2.5d aggregations"},
    {ROW(glcm_options, choice, matrices), "\"none\"", .choices = matrices_choices,
     .help = "write the matrices into matrices.json: \"counts\" of pairs of levels, or \"normalised\" to the sum 1"},
};

static const char *const moved_rows[] = {"discretisation", "levels", "bin_width", "range", NULL};

static const struct option_section glcm_section = {SECTION(glcm_rows, glcm_options), .check = check_glcm,
                                                   .moved = moved_rows};

#define SPACING(name_, spacing_, help_)                                                                                \
    {                                                                                                                  \
        (name_), &option_number, AT(struct texture_resample, mm), "", LIMITS(0.01, 100),                               \
            EITHER(struct texture_resample, spacing, spacing_), .help = (help_)                                        \
    }

static const struct option_row resample_rows[] = {
    SPACING("isotropic_mm", TEXTURE_ISOTROPIC,
            "isotropic voxel size in mm, on a grid with the same centre; exactly one of "
            "isotropic_mm and in_plane_mm is required"),
    SPACING("in_plane_mm", TEXTURE_IN_PLANE, "voxel size in mm along rows and columns; slices are not changed"),
    {ROW(texture_resample, choice, interpolation), "\"linear\"", .choices = interpolation_names,
     .help =
         "interpolation of values: \"nearest\", \"linear\", or a \"cubic\" spline through all values; on the grid of "
         "pyradiomics, with its masks and whole numbers: \"pyradiomics-nearest\", \"pyradiomics-linear\" or "
         "\"pyradiomics-cubic\" (sitkBSpline)"},
    {ROW(texture_resample, choice, rounding), "\"auto\"", .choices = rounding_choices,
     .help = "rounding of interpolated values: to \"stored\" values, or \"none\"; \"auto\" rounds CT in HU and values "
             "for discretisation \"stored-256\""},
};

static const struct option_row normalise_rows[] = {
    {ROW(texture_normalise, number, scale), "1.0", LIMITS(1e-6, 1e6),
     .help = "factor of normalised values: the normalizeScale of pyradiomics"},
    {ROW(texture_normalise, number, outliers), "0.0", LIMITS(0, 1000), .later = true,
     .help = "max distance of values from the mean in standard deviations; values beyond are set to it: the "
             "removeOutliers of pyradiomics; 0: no limit"},
};

#define VOXELWISE_MAPS(family_, names_, help_)                                                                         \
    {                                                                                                                  \
#family_, &option_flags, AT(struct voxelwise_options, features[VOXELWISE_FAMILY_##family_]), "",               \
            .choices = (names_), .help = (help_)                                                                       \
    }

static const struct option_row voxelwise_rows_of_options[] = {
    {ROW(voxelwise_options, integer, radius), "1", LIMITS(1, VOXELWISE_MAX_RADIUS),
     .help = "radius of the window around each voxel, in voxels along each axis: the kernelRadius of pyradiomics"},
    {ROW(voxelwise_options, boolean, masked), "true",
     .help =
         "windows have voxels of the region only; false: all voxels, with the grey levels of the region's box and the "
         "radius around it: the maskedKernel of pyradiomics"},
    VOXELWISE_MAPS(first_order, voxelwise_first_order_names,
                   "features of the values to map, such as [ \"mean\", \"entropy\" ], or [ \"all\" ]"),
    VOXELWISE_MAPS(glcm, voxelwise_glcm_names, "features of co-occurring levels to map, as means over 13 directions"),
    VOXELWISE_MAPS(glrlm, voxelwise_glrlm_names, "features of runs to map, as means over 13 directions"),
    VOXELWISE_MAPS(glszm, voxelwise_glszm_names, "features of zones to map"),
    VOXELWISE_MAPS(ngldm, voxelwise_ngldm_names,
                   "features of dependences to map, with ngldm_alpha 0: the gldm of pyradiomics"),
    VOXELWISE_MAPS(ngtdm, voxelwise_ngtdm_names, "features of grey tone differences to map"),
    {ROW(voxelwise_options, flags, files), "[ \"pmap\" ]", .choices = response_choices,
     .help = "files of each map and region, values in double precision: \"pmap\" (DICOM Parametric Map, not with "
             "resample or of 2-D images), \"nifti\", or both: map-GROUP-SEGMENT-FAMILY-FEATURE.dcm or .nii.gz"},
};

static void
check_voxelwise(const void *object, const struct option_spot *spot)
{
    const struct voxelwise_options *voxelwise = object;
    if (voxelwise_count(voxelwise) == 0 && !LOST(spot, voxelwise->features))
        option_refuse(spot, "glcm", "no feature is given: name some, or \"all\", of a family");
    if (voxelwise->files == 0 && !LOST(spot, voxelwise->files))
        option_refuse(spot, "files", "must name at least one kind of file");
}

static const struct option_section voxelwise_section = {SECTION(voxelwise_rows_of_options, voxelwise_options),
                                                        .check = check_voxelwise};

static const struct option_section normalise_section = {SECTION(normalise_rows, texture_normalise)};

static const struct option_section resample_section = {SECTION(resample_rows, texture_resample)};

/* The form of options until version 0.1.0. */
static const struct option_past within_glcm = {.group = "glcm"};
static const struct option_past with_paper = {"glcm", true, "paper", DISCRETISATION_STORED_256};

static void
check_texture(const void *object, const struct option_spot *spot)
{
    const struct texture_options *texture = object;
    if (!texture_has_features(texture) && !texture->patterns && !texture->response && !texture->voxelwise &&
        !LOST(spot, *texture))
        option_refuse(spot, "first_order",
                      "there is no measurement: set it to true, or give families, glcm or patterns");
    if (texture->resample && texture->patterns)
        option_refuse(spot, "patterns",
                      "are computed on the original voxels: use another texture group without resample");
    if (texture->levels.kind == DISCRETISATION_STORED_256 && texture->levels.levels > 256)
        option_refuse(spot, "levels", "stored-256 has at most 256 levels");
    if (texture->resample && texture->resample->rounding == TEXTURE_ROUNDING_NONE &&
        texture->levels.kind == DISCRETISATION_STORED_256)
        option_refuse(
            spot, "discretisation",
            "stored-256 is of stored values: give resample the rounding \"stored\", or another discretisation");
    if (texture->resample && texture->resample->interpolation >= INTERPOLATION_PYRADIOMICS_NEAREST &&
        (texture->resample->rounding != TEXTURE_ROUNDING_AUTO || texture->levels.kind == DISCRETISATION_STORED_256))
        option_refuse(spot, "resample", "the interpolations of pyradiomics have no other rounding, and no stored-256");
    if (texture->normalise && (texture->patterns || texture->levels.kind == DISCRETISATION_STORED_256))
        option_refuse(spot, "normalise", "is not possible with patterns and stored-256, which are of stored values");
    if (texture->names == TEXTURE_NAMES_PYRADIOMICS && texture->filter && !filter_is_image_type(texture->filter->kind))
        option_refuse(spot, "names", "pyradiomics has no such filter: use one of its image types, or \"noctule\"");
    if (texture->names == TEXTURE_NAMES_PYRADIOMICS &&
        (texture->families & FAMILIES_WITH_AGGREGATION || texture->glcm) &&
        (texture->glcm || (texture->aggregation != AGGREGATION_3D_AVERAGED &&
                           texture->aggregation != AGGREGATION_2_5D_DIRECTION_MERGED)))
        option_refuse(spot, "names",
                      "pyradiomics has only the aggregations \"3d-averaged\" and "
                      "\"2.5d-direction-merged\" (force2D), and no group glcm");
    if (texture->filter && texture->patterns)
        option_refuse(spot, "patterns",
                      "are computed on the original voxels: use another texture group without filter");
    if (texture->response && !texture->filter)
        option_refuse(spot, "response", "is that of a filter: add filter, or remove it");
    if (texture->response && texture->filter && (texture->normalise || filter_is_image_type(texture->filter->kind)))
        option_refuse(spot, "response",
                      "is not possible with normalise, and not with image types of pyradiomics: use "
                      "another filter, or remove it");
    if (texture->response >> TEXTURE_RESPONSE_PMAP & 1 && texture->resample)
        option_refuse(spot, "response", "of resampled voxels is on none of the images' planes: use \"nifti\"");
    if (texture->voxelwise && texture->voxelwise->files >> TEXTURE_RESPONSE_PMAP & 1 && texture->resample)
        option_refuse(spot, "voxelwise.files",
                      "has maps of resampled voxels, which are on none of the images' planes: use [ \"nifti\" ]");
    if (texture->voxelwise && texture->levels.kind == DISCRETISATION_STORED_256)
        option_refuse(spot, "discretisation", "stored-256 is not possible with voxelwise: use another discretisation");
    if (texture->voxelwise && discretisation_by_number(texture->levels.kind) &&
        texture->levels.levels > VOXELWISE_MAX_LEVELS)
        option_refuse(spot, "levels", "must be at most %d with voxelwise", VOXELWISE_MAX_LEVELS);
    if (texture->filter && texture->sigma > 0)
        option_refuse(spot, "sigma", "is of values, and not possible with filter: use range, or no re-segmentation");
    if (texture->filter && texture->levels.kind == DISCRETISATION_STORED_256)
        option_refuse(spot, "discretisation",
                      "stored-256 is of stored values, and not possible with filter: use another discretisation");
    if (texture->filter && texture->levels.has_range && texture_wants(texture, TEXTURE_FAMILY_local_intensity))
        option_refuse(spot, "families",
                      "local-intensity reads responses beyond range: use another texture group without range");
    /* Thresholds are compared as whole numbers of millionths. */
    double millionths = texture->tlbap_threshold * 1e6;
    if (fabs(millionths - round(millionths)) >= 1e-6)
        option_refuse(spot, "tlbap_threshold", "%.17g has more than six decimals: round it to six",
                      texture->tlbap_threshold);
}

static const struct option_row texture_rows[] = {
    {"profile", &option_profile, .offset = 0, .fallback = "", LIMITS(1, 64), .form = &form_name,
     .help = "name of a profile with initial settings, of noctule profiles or of a file "
             "profiles/NAME.conf in the folder of this file; settings of the group override it"},
    {ROW(texture_options, part, normalise), "", .section = &normalise_section,
     .help =
         "normalise the values of the whole volume before resample: subtract their mean and divide by their standard "
         "deviation, as normalize of pyradiomics does; by default not"},
    {ROW(texture_options, choice, names), "\"noctule\"", .choices = names_choices, .later = true,
     .help = "names of columns in the cohort table; \"pyradiomics\": as wavelet-HLL_glcm_Contrast, for values that "
             "pyradiomics defines in the same way; glrlm, ngtdm, and glcm of one grey level then follow pyradiomics"},
    {ROW(texture_options, part, resample), "", .section = &resample_section,
     .help = "voxel size for measurements; volume and masks are interpolated; by default the voxels of the series"},
    {ROW(texture_options, part, filter), "", .section = &option_filter,
     .help = "image filter whose responses are measured instead of the values, after resample; by default none"},
    {ROW(texture_options, flags, response), "", .choices = response_choices,
     .help = "write the filter's response to the whole volume, values in double precision: \"pmap\" (DICOM Parametric "
             "Map, not with resample or of 2-D images), \"nifti\" (response-N.nii.gz), or both; N is the number of the "
             "group; not with "
             "normalise or image types of pyradiomics"},
    {ROW(texture_options, part, voxelwise), "", .section = &voxelwise_section,
     .help = "maps of features of the window around each voxel of the regions, as the voxel-based extraction of "
             "pyradiomics; by default none"},
    {ROW(texture_options, flags, regions), "[ \"segments\" ]", .choices = region_choices,
     .help = "regions to measure: each of the segments, the whole volume, or both"},
    {"discretisation", &option_choice, AT(struct texture_options, levels.kind),
     GIVEN(struct texture_options, levels_wanted), .fallback = "", .choices = discretisation_names, .past = &with_paper,
     .help = "conversion of values to grey levels, also for the entropy; fixed-bin-number if glcm "
             "needs levels and this is not given"},
    {"levels", &option_integer, AT(struct texture_options, levels.levels), "32", LIMITS(2, 65536),
     ONLY_WITH("discretisation", 1u << DISCRETISATION_FIXED_BIN_NUMBER | 1u << DISCRETISATION_STORED_256),
     .past = &within_glcm, .later = true, .help = "number of grey levels, with fixed-bin-number and stored-256"},
    {"bin_width", &option_number, AT(struct texture_options, levels.bin_width), NULL, LIMITS(1e-6, 1e9),
     ONLY_WITH("discretisation", 1u << DISCRETISATION_FIXED_BIN_SIZE | 1u << DISCRETISATION_PYRADIOMICS_BIN_WIDTH),
     .past = &within_glcm,
     .help = "width of a grey level in real-world units, with fixed-bin-size and pyradiomics-bin-width"},
    {"range", &option_numbers, AT(struct texture_options, levels.range),
     GIVEN(struct texture_options, levels.has_range), .fallback = "", LIMITS(-1e9, 1e9), ENDS, .past = &within_glcm,
     .help = "re-segmentation: excludes voxels outside this range from intensities and grey "
             "levels; both ends are inclusive and in real-world units"},
    {ROW(texture_options, number, sigma), "0.0", LIMITS(0, 100), .later = true,
     .help = "re-segmentation: excludes voxels farther than this many standard deviations from the "
             "mean, both of the region before re-segmentation; IBSI uses 3; 0: none"},
    {ROW(texture_options, boolean, first_order), "true",
     .help = "measure statistics of the values, volume, centroid and bounding box"},
    {ROW(texture_options, flags, families), "", .choices = texture_family_names,
     .help = "feature families to measure, in addition to those of first_order, glcm and patterns"},
    {ROW(texture_options, choice, aggregation), "\"3d-merged\"", .choices = aggregation_names,
     ONLY_WITH("families", FAMILIES_WITH_AGGREGATION), .later = true,
     .help = "neighbours to count, and method to combine their matrices into one value, for "
             "families; a group glcm has its own"},
    {ROW(texture_options, integer, ngtdm_distance), "1", LIMITS(1, 3),
     ONLY_WITH("families", 1u << TEXTURE_FAMILY_ngtdm | 1u << TEXTURE_FAMILY_all), .later = true,
     .help = "ngtdm: max distance of neighbours, in voxels along each axis (Chebyshev)"},
    {ROW(texture_options, integer, ngldm_distance), "1", LIMITS(1, 3),
     ONLY_WITH("families", 1u << TEXTURE_FAMILY_ngldm | 1u << TEXTURE_FAMILY_all), .later = true,
     .help = "ngldm: max distance of neighbours, in voxels along each axis (Chebyshev)"},
    {ROW(texture_options, number, energy_shift), "0.0", LIMITS(-1e9, 1e9), .later = true,
     .help = "added to the values in energy and root mean square: the voxelArrayShift of pyradiomics"},
    {ROW(texture_options, integer, ngldm_alpha), "0", LIMITS(0, 256),
     ONLY_WITH("families", 1u << TEXTURE_FAMILY_ngldm | 1u << TEXTURE_FAMILY_all), .later = true,
     .help = "ngldm: max difference of the levels of dependent neighbours"},
    {"ivh_discretisation", &option_choice, AT(struct texture_options, ivh.kind), "\"none\"",
     .choices = volume_histogram_names,
     ONLY_WITH("families", 1u << TEXTURE_FAMILY_volume_histogram | 1u << TEXTURE_FAMILY_all), .later = true,
     .help = "bins of intensity-volume-histogram; none: the values themselves"},
    {"ivh_levels", &option_integer, AT(struct texture_options, ivh.levels), "1000", LIMITS(2, 65536),
     ONLY_WITH("ivh_discretisation", 1u << VOLUME_HISTOGRAM_BIN_NUMBER), .later = true,
     .help = "number of bins, with fixed-bin-number"},
    {"ivh_bin_width", &option_number, AT(struct texture_options, ivh.bin_width), NULL, LIMITS(1e-6, 1e9),
     ONLY_WITH("ivh_discretisation", 1u << VOLUME_HISTOGRAM_BIN_SIZE),
     .help = "width of a bin in real-world units, with fixed-bin-size"},
    {ROW(texture_options, part, glcm), "", .section = &glcm_section,
     .help = "grey level co-occurrence: all features of IBSI, and Haralick's f14"},
    {ROW(texture_options, flags, patterns), "", .choices = texture_pattern_names,
     .help = "local patterns to compute per slice; their histograms within the regions are stored"},
    {ROW(texture_options, number, tlbap_threshold), "0.9", LIMITS(0, 1), ONLY_WITH("patterns", 1u << TEXTURE_TLBAP),
     .help = "tlbap: min share of the max value of the window for a neighbour; up to six decimals"},
    {ROW(texture_options, boolean, tlbap_strict), "false", ONLY_WITH("patterns", 1u << TEXTURE_TLBAP),
     .help = "tlbap: compare by greater, as in the paper's listing, instead of greater or equal"},
    {"lanadp_average", &option_switch, AT(struct texture_options, lanadp_integer), "\"exact\"",
     .choices = average_choices, ONLY_WITH("patterns", 1u << TEXTURE_LANADP),
     .help = "lanadp: keep halves in averages of two values, or truncate them to integers as in the paper's listing"},
};

const struct option_section option_texture = {SECTION(texture_rows, texture_options), .check = check_texture};
