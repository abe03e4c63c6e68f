/*
 * option_filter.c - the options of the image filter of a texture group.
 */
#include "config/options/option_sections.h"

#include <math.h>

enum {
    FILTER_WITH_SIGMA = 1u << FILTER_LOG | 1u << FILTER_GABOR | 1u << FILTER_RIESZ_LOG | 1u << FILTER_PYRADIOMICS_LOG,
    FILTER_WITH_LEVEL = 1u << FILTER_WAVELET | 1u << FILTER_SIMONCELLI | 1u << FILTER_RIESZ_SIMONCELLI |
                        1u << FILTER_PYRADIOMICS_WAVELET,
    FILTER_WITH_WAVELET = 1u << FILTER_WAVELET | 1u << FILTER_PYRADIOMICS_WAVELET,
    FILTER_OF_PYRADIOMICS = 0x1ffu << FILTER_PYRADIOMICS_SQUARE,
    FILTER_WITH_KERNELS =
        1u << FILTER_LAWS | FILTER_WITH_WAVELET | 1u << FILTER_RIESZ_LOG | 1u << FILTER_RIESZ_SIMONCELLI,
};

/* Returns kernels of an example for a filter. */
static const char *
example_kernels(const struct filter_options *filter)
{
    if (filter->kind == FILTER_LAWS)
        return filter->in_slice ? "L5E5" : "L5E5E5";
    if (filter->kind == FILTER_WAVELET || filter->kind == FILTER_PYRADIOMICS_WAVELET)
        return filter->in_slice ? "LH" : "LLH";
    return filter->in_slice ? "02" : "020";
}

static void
check_filter(const void *object, const struct option_spot *spot)
{
    struct filter_options filter = *(const struct filter_options *)object;

    if (LOST(spot, filter))
        return;
    if (filter.kind == FILTER_MEAN && filter.size % 2 == 0)
        option_refuse(spot, "size", "%d voxels have no centre: give an odd number", filter.size);
    if (filter.kind == FILTER_LAWS && filter.energy > 0 && filter.energy % 2 == 0)
        option_refuse(spot, "energy", "%d voxels have no centre: give an odd number", filter.energy);
    if (!filter_parse(&filter))
        option_refuse(spot, "kernels", "must name a kernel for each axis, such as \"%s\"", example_kernels(&filter));
    if (filter.kind == FILTER_GABOR && filter.pooling != FILTER_ONE &&
        !(filter.theta_degrees >= 360.0 / FILTER_MAX_ANGLES &&
          360 / filter.theta_degrees == floor(360 / filter.theta_degrees)))
        option_refuse(spot, "theta_degrees", "with pooling, must divide 360 degrees into at most %d parts",
                      FILTER_MAX_ANGLES);
}

static const struct option_row filter_rows[] = {
    {ROW(filter_options, choice, kind), NULL, .choices = filter_kind_names,
     .help =
         "filter of IBSI 2: \"mean\", \"log\" (Laplacian of Gaussian, to 4 standard deviations), \"laws\" kernels, a "
         "separable undecimated \"wavelet\", the modulus of \"gabor\" (to 6 standard deviations), the wavelet of "
         "\"simoncelli\", or the Riesz transform of these: \"riesz-log\", \"riesz-simoncelli\"; an image type of "
         "pyradiomics: \"pyradiomics-wavelet\", \"pyradiomics-log\" and others"},
    {ROW(filter_options, boolean, in_slice), "false", .help = "filter along rows and columns only; false: in space"},
    {ROW(filter_options, choice, boundary), "\"mirror\"", .choices = filter_boundary_names,
     .help = "values beyond the volume: \"zero\", of the \"nearest\" voxel, \"periodic\", or a \"mirror\" that repeats "
             "the outermost voxel"},
    {ROW(filter_options, integer, size), NULL, LIMITS(1, FILTER_MAX_SIZE), ONLY_WITH("kind", 1u << FILTER_MEAN),
     .help = "side of the averaged square or cube in voxels, odd"},
    {ROW(filter_options, number, sigma_mm), NULL, LIMITS(0.01, 100), ONLY_WITH("kind", FILTER_WITH_SIGMA),
     .help = "standard deviation of the Gaussian in mm"},
    {ROW(filter_options, number, gamma), NULL, LIMITS(0.01, 100), ONLY_WITH("kind", 1u << FILTER_GABOR), .later = true,
     .help = "standard deviation along the wave over that across it"},
    {ROW(filter_options, number, lambda_mm), NULL, LIMITS(0.01, 1000), ONLY_WITH("kind", 1u << FILTER_GABOR),
     .later = true, .help = "wavelength in mm"},
    {ROW(filter_options, number, theta_degrees), NULL, LIMITS(0, 360), ONLY_WITH("kind", 1u << FILTER_GABOR),
     .later = true,
     .help = "direction of the wave in a plane, from the first axis to the second: columns and rows; columns and "
             "slices; rows and slices. With pooling: step between all directions"},
    {ROW(filter_options, text, kernels), NULL, LIMITS(2, 6), ONLY_WITH("kind", FILTER_WITH_KERNELS),
     .help = "kernels along columns, rows and slices: Laws' L5, E5, S5, W5, R5, L3, E3 or S3, such as \"L5E5E5\"; "
             "wavelets' low-pass L or high-pass H, such as \"LLH\"; orders of a Riesz transform, such as \"020\""},
    {ROW(filter_options, choice, wavelet), NULL, .choices = filter_wavelet_names,
     ONLY_WITH("kind", FILTER_WITH_WAVELET), .help = "mother wavelet, by its name in PyWavelets"},
    {ROW(filter_options, integer, level), "1", LIMITS(1, FILTER_MAX_LEVEL), ONLY_WITH("kind", FILTER_WITH_LEVEL),
     .later = true, .help = "decomposition level"},
    {ROW(filter_options, choice, pooling), "\"none\"", .choices = filter_pooling_names,
     ONLY_WITH("kind", 1u << FILTER_LAWS | 1u << FILTER_WAVELET | 1u << FILTER_GABOR), .later = true,
     .help = "responses of all rotations by right angles, or of all directions of a wave, to combine per voxel: "
             "\"max\", \"mean\" or \"min\"; \"none\": one orientation"},
    {ROW(filter_options, integer, energy), "0", LIMITS(0, FILTER_MAX_SIZE), ONLY_WITH("kind", 1u << FILTER_LAWS),
     .later = true,
     .help = "side in voxels, odd, of the square or cube whose mean absolute response replaces the response; 0: none"},
    {ROW(filter_options, integer, around), "-1", LIMITS(-1, FILTER_MAX_AROUND),
     ONLY_WITH("kind", FILTER_OF_PYRADIOMICS), .later = true,
     .help =
         "voxels around the box of the group's regions that the filter uses; pyradiomics uses 5 if it resamples, and "
         "with preCrop (padDistance); -1: the whole volume"},
    {ROW(filter_options, integer, start_level), "0", LIMITS(0, FILTER_MAX_STEPS),
     ONLY_WITH("kind", 1u << FILTER_PYRADIOMICS_WAVELET), .later = true,
     .help = "transforms of the low-pass response before level 1"},
    {ROW(filter_options, boolean, use_spacing), "true", ONLY_WITH("kind", 1u << FILTER_PYRADIOMICS_GRADIENT),
     .later = true, .help = "gradient per mm; false: per voxel (gradientUseSpacing)"},
    {ROW(filter_options, number, radius), "1.0", LIMITS(0.1, 16),
     ONLY_WITH("kind", 1u << FILTER_PYRADIOMICS_LBP_2D | 1u << FILTER_PYRADIOMICS_LBP_3D), .later = true,
     .help = "distance of the samples from the voxel, in voxels (lbp2DRadius, lbp3DIcosphereRadius)"},
    {ROW(filter_options, integer, points), "8", LIMITS(2, FILTER_MAX_POINTS),
     ONLY_WITH("kind", 1u << FILTER_PYRADIOMICS_LBP_2D), .later = true, .help = "number of samples (lbp2DSamples)"},
    {ROW(filter_options, choice, method), "\"uniform\"", .choices = filter_lbp_names,
     ONLY_WITH("kind", 1u << FILTER_PYRADIOMICS_LBP_2D), .later = true,
     .help = "\"default\": bits of the samples; \"ror\": their least rotation; \"uniform\": number of 1 bits "
             "(lbp2DMethod)"},
    {ROW(filter_options, choice, harmonic), "\"m1\"", .choices = filter_harmonic_names,
     ONLY_WITH("kind", 1u << FILTER_PYRADIOMICS_LBP_3D), .later = true,
     .help = "image: norm of degree 0, 1, 2 or 3 of spherical harmonics (\"m1\" to \"m4\"), or kurtosis of the samples "
             "(\"k\")"},
};

const struct option_section option_filter = {SECTION(filter_rows, filter_options), .check = check_filter};
