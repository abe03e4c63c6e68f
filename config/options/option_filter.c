/*
 * option_filter.c - the options of the image filter of a texture group.
 */
#include "config/options/option_sections.h"

static const char *const kind_choices[] = {"mean", "log", "laws", "wavelet", NULL}; /* of enum filter_kind */

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
        option_refuse(spot, "kernels", "must name a kernel for each axis, such as \"%s\"",
                      filter.kind == FILTER_LAWS ? filter.in_slice ? "L5E5" : "L5E5E5"
                                                 : (filter.in_slice ? "LH" : "LLH"));
}

static const struct option_row filter_rows[] = {
    {ROW(filter_options, choice, kind), NULL, .choices = kind_choices,
     .help =
         "filter of IBSI 2: \"mean\", \"log\" (Laplacian of Gaussian, to 4 standard deviations), \"laws\" kernels, or "
         "a separable undecimated \"wavelet\""},
    {ROW(filter_options, boolean, in_slice), "false", .help = "filter along rows and columns only; false: in space"},
    {ROW(filter_options, choice, boundary), "\"mirror\"", .choices = filter_boundary_names,
     .help = "values beyond the volume: \"zero\", of the \"nearest\" voxel, \"periodic\", or a \"mirror\" that repeats "
             "the outermost voxel"},
    {ROW(filter_options, integer, size), NULL, LIMITS(1, FILTER_MAX_SIZE), ONLY_WITH("kind", 1u << FILTER_MEAN),
     .help = "side of the averaged square or cube in voxels, odd"},
    {ROW(filter_options, number, sigma_mm), NULL, LIMITS(0.01, 100), ONLY_WITH("kind", 1u << FILTER_LOG),
     .help = "standard deviation of the Gaussian in mm"},
    {ROW(filter_options, text, kernels), NULL, LIMITS(2, 6),
     ONLY_WITH("kind", 1u << FILTER_LAWS | 1u << FILTER_WAVELET),
     .help = "kernels along columns, rows and slices: Laws' L5, E5, S5, W5, R5, L3, E3 or S3, such as \"L5E5E5\"; "
             "wavelets' low-pass L or high-pass H, such as \"LLH\""},
    {ROW(filter_options, choice, wavelet), NULL, .choices = filter_wavelet_names,
     ONLY_WITH("kind", 1u << FILTER_WAVELET), .help = "mother wavelet: Haar, Daubechies 2 or 3, Coiflet 1"},
    {ROW(filter_options, integer, level), "1", LIMITS(1, FILTER_MAX_LEVEL), ONLY_WITH("kind", 1u << FILTER_WAVELET),
     .later = true, .help = "decomposition level"},
    {ROW(filter_options, choice, pooling), "\"none\"", .choices = filter_pooling_names,
     ONLY_WITH("kind", 1u << FILTER_LAWS | 1u << FILTER_WAVELET), .later = true,
     .help = "responses of all rotations by right angles to combine per voxel: \"max\", \"mean\" or \"min\"; \"none\": "
             "one orientation"},
    {ROW(filter_options, integer, energy), "0", LIMITS(0, FILTER_MAX_SIZE), ONLY_WITH("kind", 1u << FILTER_LAWS),
     .later = true,
     .help = "side in voxels, odd, of the square or cube whose mean absolute response replaces the response; 0: none"},
};

const struct option_section option_filter = {SECTION(filter_rows, filter_options), .check = check_filter};
