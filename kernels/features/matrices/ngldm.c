/*
 * ngldm.c - neighbouring grey level dependence (IBSI 3.11): numbers of neighbours that are alike.
 */
#include "kernels/features/matrices/level_matrix.h"
#include "kernels/features/matrices/neighbourhood.h"
#include "kernels/texture/texture.h"

#include <errno.h>
#include <stdlib.h>

static const struct feature_definition ngldm_definitions[LEVEL_MATRIX_FEATURES] = {
    {"low_dependence_emphasis", "Low dependence emphasis", "SODN", .unit = "1"},
    {"high_dependence_emphasis", "High dependence emphasis", "IMOQ", .unit = "1"},
    {"low_grey_level_count_emphasis", "Low grey level count emphasis", "TL9H", .unit = "1"},
    {"high_grey_level_count_emphasis", "High grey level count emphasis", "OAE7", .unit = "1"},
    {"low_dependence_low_grey_level_emphasis", "Low dependence low grey level emphasis", "EQ3F", .unit = "1"},
    {"low_dependence_high_grey_level_emphasis", "Low dependence high grey level emphasis", "JA6D", .unit = "1"},
    {"high_dependence_low_grey_level_emphasis", "High dependence low grey level emphasis", "NBZI", .unit = "1"},
    {"high_dependence_high_grey_level_emphasis", "High dependence high grey level emphasis", "9QMG", .unit = "1"},
    {"grey_level_non_uniformity", "Grey level non-uniformity", "FP8K", .unit = "1"},
    {"normalised_grey_level_non_uniformity", "Normalised grey level non-uniformity", "5SPA", .unit = "1"},
    {"dependence_count_non_uniformity", "Dependence count non-uniformity", "Z87G", .unit = "1"},
    {"normalised_dependence_count_non_uniformity", "Normalised dependence count non-uniformity", "OKJI", .unit = "1"},
    {"dependence_count_percentage", "Dependence count percentage", "6XV8", .unit = "1"},
    {"grey_level_variance", "Grey level variance", "1PFV", .unit = "1"},
    {"dependence_count_variance", "Dependence count variance", "DNX2", .unit = "1"},
    {"dependence_count_entropy", "Dependence count entropy", "FCBV", .unit = "1"},
    {"dependence_count_energy", "Dependence count energy", "CAS9", .unit = "1"},
};

/* A voxel also depends on itself: n alike neighbours are a dependence of n + 1. */
static int
ngldm_values(const struct feature_region *region, size_t set, const uint64_t *counts, struct feature_value *values)
{
    const struct texture_neighbours request = neighbourhood_request(region, NEIGHBOURHOOD_DEPENDENCES);
    const size_t levels = (size_t)region->levels, width = texture_neighbours_width(&request);
    const size_t entries = TEXTURE_NEIGHBOUR_KINDS * levels * width;
    struct level_cell *cells = malloc(levels * width * sizeof(*cells));
    struct level_average average = {.matrices = 0};

    (void)set;
    if (!cells)
        return -ENOMEM;
    counts = neighbourhood_counts(region, NEIGHBOURHOOD_DEPENDENCES, counts);
    for (size_t m = 0; m < neighbourhood_size(region, &request) / entries; m++) {
        const uint64_t *matrix = counts + m * entries + TEXTURE_ALIKE * levels * width;
        uint64_t voxels = 0;

        for (size_t i = 0; i < levels * width; i++)
            voxels += matrix[i];
        level_average_add(&average, cells, level_cells_of(matrix, levels, width, cells), voxels);
    }
    level_average_take(&average, LEVEL_MATRIX_FEATURES, values);
    free(cells);
    return 0;
}

static void
ngldm_describe(const struct texture_options *options, size_t set, char settings[FEATURE_SETTINGS])
{
    neighbourhood_describe(options, set, settings);
    feature_put_integer(settings, FEATURE_distance, options->ngldm_distance);
    feature_put_integer(settings, FEATURE_alpha, options->ngldm_alpha);
}

const struct feature_family family_ngldm = {
    .name = "ngldm",
    .definitions = ngldm_definitions,
    .definition_count = LEVEL_MATRIX_FEATURES,
    .needs = FEATURE_NEEDS_LEVELS,
    .choice = TEXTURE_FAMILY_ngldm,
    .describe = ngldm_describe,
    .op = KERNELS_NEIGHBOURS,
    .count = neighbourhood_count,
    .bytes = neighbourhood_bytes,
    .values = ngldm_values,
};
