/* glrlm.c - grey level run lengths (IBSI 3.7): lengths of sequences of voxels with one level, by
 * direction. For percentages, voxels count once per merged direction. */
#include "kernels/features/matrices/directions.h"
#include "kernels/features/matrices/level_matrix.h"
#include "kernels/features/matrices/wide.h"
#include "kernels/texture/texture.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { GLRLM_FEATURES = LEVEL_MATRIX_ENERGY };

static const struct feature_definition glrlm_definitions[GLRLM_FEATURES] = {
    {"short_runs_emphasis", "Short runs emphasis", "22OV", .unit = "1"},
    {"long_runs_emphasis", "Long runs emphasis", "W4KF", .unit = "1"},
    {"low_grey_level_run_emphasis", "Low grey level run emphasis", "V3SW", .unit = "1"},
    {"high_grey_level_run_emphasis", "High grey level run emphasis", "G3QZ", .unit = "1"},
    {"short_run_low_grey_level_emphasis", "Short run low grey level emphasis", "HTZT", .unit = "1"},
    {"short_run_high_grey_level_emphasis", "Short run high grey level emphasis", "GD3A", .unit = "1"},
    {"long_run_low_grey_level_emphasis", "Long run low grey level emphasis", "IVPO", .unit = "1"},
    {"long_run_high_grey_level_emphasis", "Long run high grey level emphasis", "3KUM", .unit = "1"},
    {"grey_level_non_uniformity", "Grey level non-uniformity", "R5YN", .unit = "1"},
    {"normalised_grey_level_non_uniformity", "Normalised grey level non-uniformity", "OVBL", .unit = "1"},
    {"run_length_non_uniformity", "Run length non-uniformity", "W92Y", .unit = "1"},
    {"normalised_run_length_non_uniformity", "Normalised run length non-uniformity", "IC23", .unit = "1"},
    {"run_percentage", "Run percentage", "9ZK5", .unit = "1"},
    {"grey_level_variance", "Grey level variance", "8CE5", .unit = "1"},
    {"run_length_variance", "Run length variance", "SXLW", .unit = "1"},
    {"run_entropy", "Run entropy", "HJ9O", .unit = "1"},
};

/* Makes the directions of neighbours, and the request with them. The longest run has the longest side of the region
 * along one of them. For an empty region it is 1, so that there are counts. */
static struct texture_runs
glrlm_request(const struct feature_region *region, struct directions *directions)
{
    const struct feature_volume *volume = region->volume;
    const enum aggregation aggregation = volume->options->aggregation;
    const struct image_extent extent = feature_extent(volume);
    const int axes = aggregation_is_2d(aggregation) ? 2 : 3;
    struct texture_box box = {.size = {volume->columns, volume->rows, volume->slices}};
    int64_t longest = 1;
    int distance = 1;

    directions_make(&(struct glcm_options){.aggregation = aggregation, .distances = &distance, .distance_count = 1}, 0,
                    directions);
    if (region->bits)
        texture_box_of(region->bits, &extent, &box); /* values are also made when the lane has another volume */
    for (int axis = 0; axis < axes; axis++)
        longest = box.size[axis] > longest ? box.size[axis] : longest;
    return (struct texture_runs){
        .levels = {region->levels, region->level_of, volume->tables},
        .region = region->bits,
        .directions = directions->offsets,
        .direction_count = directions->count,
        .longest = longest,
        .per_slice = aggregation_per_slice(aggregation),
    };
}

/* Returns whether a voxel of the region's bits is in its intensity mask. */
static bool
is_kept(const struct feature_region *region, int64_t slice, int64_t i)
{
    const struct feature_volume *volume = region->volume;
    struct kernels_lane *lane = volume->lane;

    if (volume->reals)
        return volume->reals[i] >= region->kept[0] && volume->reals[i] <= region->kept[1];
    return feature_region_keeps(region, slice, image_value(kernels_volume_voxels(lane), kernels_volume_pixel(lane), i));
}

/* Returns 1 if a line along the direction has two voxels of the intensity mask, 0, or -ENOMEM. */
static int
has_pair_on_a_line(const struct feature_region *region, const struct texture_box *box, struct texture_offset offset)
{
    const int32_t step[3] = {offset.x, offset.y, offset.z};
    const int a = step[0] ? 0 : step[1] ? 1 : 2, b = (a + 1) % 3, c = (a + 2) % 3; /* lines begin at 0 along a */
    const int64_t breadth = box->size[b] + 2 * box->size[a], depth = box->size[c] + 2 * box->size[a];
    bool *seen = calloc((size_t)(breadth * depth), sizeof(*seen));
    int found = seen ? 0 : -ENOMEM;

    for (int64_t row = 0; found == 0 && row < box->size[1] * box->size[2]; row++) {
        const int64_t y = row % box->size[1], z = row / box->size[1];
        const int64_t line = (box->first[2] + z) * region->volume->rows + box->first[1] + y;

        for (int64_t x = 0; found == 0 && x < box->size[0]; x++) {
            const int64_t at[3] = {x, y, z}, column = box->first[0] + x, steps = at[a] * step[a];
            bool *one =
                seen + (at[c] - steps * step[c] + box->size[a]) * breadth + at[b] - steps * step[b] + box->size[a];

            if (!image_has(region->bits, region->volume->columns, line, column) ||
                !is_kept(region, box->first[2] + z, line * region->volume->columns + column))
                continue;
            found = *one;
            *one = true;
        }
    }
    free(seen);
    return found;
}

/* Removes the counts of directions without a line of two voxels, as pyradiomics does: those across a region in one slice. */
static int
drop_lone_directions(const struct feature_region *region, const struct texture_runs *request, uint64_t *counts)
{
    const struct image_extent extent = feature_extent(region->volume);
    const size_t entries = (size_t)(region->levels * request->longest);
    struct texture_box box;
    int found = 1;

    texture_box_of(region->bits, &extent, &box);
    for (size_t d = 0; d < request->direction_count && found >= 0; d++) {
        uint64_t *matrix = counts + d * entries;
        bool has_pair = false;

        for (size_t i = 0; i < entries && !has_pair; i++)
            has_pair = i % (size_t)request->longest > 0 && matrix[i] > 0;
        found = has_pair ? 1 : has_pair_on_a_line(region, &box, request->directions[d]);
        if (found == 0)
            memset(matrix, 0, entries * sizeof(*matrix));
    }
    return found < 0 ? found : 0;
}

static int
glrlm_count(const struct feature_region *region, size_t set, uint64_t **counts, struct error *error)
{
    struct directions directions;
    const struct texture_runs request = glrlm_request(region, &directions);
    int rc = feature_counts_make(texture_runs_size(&request, region->volume->slices), counts, error);

    (void)set;
    if (rc == 0 && region->wide)
        wide_runs(region, &request, *counts);
    else if (rc == 0)
        rc = texture_runs_run(region->volume->lane, &request, *counts, error);
    if (rc == 0 && region->volume->options->names == TEXTURE_NAMES_PYRADIOMICS) {
        rc = drop_lone_directions(region, &request, *counts);
        rc = rc ? error_set_system(error, rc, "count runs") : 0;
    }
    return rc;
}

/* Work memory to merge and list matrices. */
struct glrlm_work {
    size_t levels, longest;
    uint64_t *merged; /* [levels][longest] */
    struct level_cell *cells;
    struct level_average average;
};

static void
glrlm_add_matrices(struct glrlm_work *work, const uint64_t *counts, size_t matrices, size_t merge)
{
    const size_t entries = work->levels * work->longest;

    for (size_t m = 0; m < matrices; m++) {
        for (size_t i = 0; i < entries; i++)
            work->merged[i] += counts[m * entries + i];
        if ((m + 1) % merge > 0)
            continue;
        const size_t count = level_cells_of(work->merged, work->levels, work->longest, work->cells);
        uint64_t voxels = 0;

        for (size_t c = 0; c < count; c++)
            voxels += work->cells[c].count * work->cells[c].length;
        level_average_add(&work->average, work->cells, count, voxels);
        memset(work->merged, 0, entries * sizeof(*work->merged));
    }
}

static int
glrlm_values(const struct feature_region *region, size_t set, const uint64_t *counts, struct feature_value *values)
{
    struct directions directions;
    const struct texture_runs request = glrlm_request(region, &directions);
    struct glrlm_work work = {.levels = (size_t)region->levels, .longest = (size_t)request.longest};
    const size_t entries = work.levels * work.longest;

    (void)set;
    work.merged = calloc(entries, sizeof(*work.merged));
    work.cells = malloc(entries * sizeof(*work.cells));
    const bool whole = work.merged && work.cells;

    if (whole)
        glrlm_add_matrices(&work, counts, texture_runs_size(&request, region->volume->slices) / entries,
                           aggregation_merges(region->volume->options->aggregation) ? directions.count : 1);
    level_average_take(&work.average, GLRLM_FEATURES, values);
    free(work.cells);
    free(work.merged);
    return whole ? 0 : -ENOMEM;
}

/* Returns the memory for counts, and for merging and listing a matrix. */
static size_t
glrlm_bytes(const struct feature_region *largest, size_t set)
{
    struct directions directions;
    const struct texture_runs request = glrlm_request(largest, &directions);
    const size_t entries = (size_t)largest->levels * (size_t)request.longest;

    (void)set;
    return texture_runs_size(&request, largest->volume->slices) * sizeof(uint64_t) +
           entries * (sizeof(uint64_t) + sizeof(struct level_cell));
}

static void
glrlm_describe(const struct texture_options *options, size_t set, char settings[FEATURE_SETTINGS])
{
    (void)set;
    feature_put_text(settings, FEATURE_aggregation, aggregation_names[options->aggregation]);
    feature_put_text(settings, FEATURE_aggregation_ibsi_code, aggregation_codes[options->aggregation]);
}

const struct feature_family family_glrlm = {
    .name = "glrlm",
    .definitions = glrlm_definitions,
    .definition_count = GLRLM_FEATURES,
    .needs = FEATURE_NEEDS_LEVELS,
    .choice = TEXTURE_FAMILY_glrlm,
    .describe = glrlm_describe,
    .op = KERNELS_RUNS,
    .count = glrlm_count,
    .bytes = glrlm_bytes,
    .values = glrlm_values,
};
