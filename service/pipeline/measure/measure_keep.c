/* measure_keep.c - see measure_keep.h. */
#include "service/pipeline/measure/measure_keep.h"

#include "kernels/features/matrices/directions.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The state of one call. */
struct keeper {
    const struct glcm_options *options;
    struct feature_set *set;
    size_t levels;
    uint64_t *sums; /* [levels][levels], of the current matrix */
};

static int
add_matrix(const struct keeper *keeper, const struct feature_matrix *named)
{
    struct feature_set *set = keeper->set;
    const size_t levels = keeper->levels;
    size_t count = 0;
    for (size_t i = 0; i < levels * levels; i++)
        count += keeper->sums[i] > 0;
    if (count == 0)
        return 0;
    struct feature_matrix *grown = realloc(set->matrices, (set->matrix_count + 1) * sizeof *set->matrices);
    if (!grown)
        return -ENOMEM;
    set->matrices = grown;
    struct feature_matrix *matrix = &grown[set->matrix_count];
    *matrix = *named;
    matrix->cells = malloc(count * sizeof *matrix->cells);
    if (!matrix->cells)
        return -ENOMEM;
    for (size_t i = 0; i < levels * levels; i++)
        if (keeper->sums[i] > 0) {
            matrix->cells[matrix->cell_count++] = (struct feature_cell){
                .level = (int32_t)(i / levels) + 1, .neighbour = (int32_t)(i % levels) + 1, .count = keeper->sums[i]};
            matrix->pairs += keeper->sums[i];
        }
    set->matrix_count++;
    return 0;
}

static int
keep_slice(const struct keeper *keeper, const struct directions *directions, const uint64_t *counts, int32_t slice)
{
    const size_t n = keeper->levels, cells = n * n;
    const bool merges = aggregation_merges(keeper->options->aggregation);
    int rc = 0;
    for (size_t d = 0; d < directions->count && rc == 0; d++) {
        const struct texture_offset *offset = &directions->offsets[d];
        struct feature_matrix named = {.feature = keeper->set->count, .slice = slice};
        if (d == 0 || !merges)
            memset(keeper->sums, 0, cells * sizeof *keeper->sums);
        /* Counts are mirrored if pairs count in both orders. */
        for (size_t i = 0; i < n; i++)
            for (size_t j = 0; j < n; j++) {
                const uint64_t count = counts[d * cells + i * n + j];
                keeper->sums[i * n + j] += count;
                if (keeper->options->symmetric)
                    keeper->sums[j * n + i] += count;
            }
        if (!merges)
            memcpy(named.offset, (int32_t[]){offset->x, offset->y, offset->z}, sizeof named.offset);
        if (!merges || d + 1 == directions->count)
            rc = add_matrix(keeper, &named);
    }
    return rc;
}

static int
keep_matrices(const struct measured *measured, const uint64_t *counts, struct feature_set *features)
{
    const struct feature_region *region = measured->region;
    const struct glcm_options *options = texture_glcm_options(region->volume->options);
    const size_t levels = (size_t)region->levels;
    const bool per_slice = aggregation_per_slice(options->aggregation);
    const size_t slices = per_slice ? (size_t)region->volume->slices : 1;
    struct directions directions;
    if (options->matrices == GLCM_NO_MATRICES)
        return 0;
    const struct keeper keeper = {options, features, levels, malloc(levels * levels * sizeof *keeper.sums)};
    int rc = keeper.sums ? 0 : -ENOMEM;
    directions_make(options, measured->set, &directions);
    for (size_t z = 0; z < slices && rc == 0; z++)
        rc = keep_slice(&keeper, &directions, counts + z * directions.count * levels * levels,
                        per_slice ? (int32_t)(region->volume->first[2] + (int64_t)z) + 1 : 0);
    free(keeper.sums);
    return rc;
}

static int
keep_histogram(const struct measured *measured, const uint64_t *counts, struct feature_set *set)
{
    struct feature_title title;
    struct feature_histogram *histogram = realloc(set->histograms, (set->histogram_count + 1) * sizeof *histogram);
    if (!histogram)
        return -ENOMEM;
    set->histograms = histogram;
    histogram += set->histogram_count++;
    measured->family->title(measured->region->volume->options, measured->set, &title);
    histogram->segment = measured->named->segment;
    snprintf(histogram->label, sizeof histogram->label, "%s", measured->named->label);
    snprintf(histogram->pattern, sizeof histogram->pattern, "%s", title.word);
    snprintf(histogram->settings, sizeof histogram->settings, "%s", title.settings);
    memcpy(histogram->counts, counts, sizeof histogram->counts);
    return 0;
}

int
texture_keep(const struct measured *measured, const uint64_t *counts, struct feature_set *features)
{
    switch (measured->family->keeps) {
    case FEATURE_KEEPS_HISTOGRAM:
        return keep_histogram(measured, counts, features);
    case FEATURE_KEEPS_MATRICES:
        return keep_matrices(measured, counts, features);
    case FEATURE_KEEPS_NOTHING:
        break;
    }
    return 0;
}

size_t
texture_keep_bytes(const struct feature_family *family, size_t set, const struct feature_region *largest)
{
    const size_t levels = (size_t)largest->levels;
    if (family->keeps == FEATURE_KEEPS_HISTOGRAM)
        return sizeof(struct feature_histogram);
    if (family->keeps != FEATURE_KEEPS_MATRICES)
        return 0;
    const struct glcm_options *options = texture_glcm_options(largest->volume->options);
    if (options->matrices == GLCM_NO_MATRICES)
        return 0;
    struct directions directions;
    directions_make(options, set, &directions);
    const size_t slices = aggregation_per_slice(options->aggregation) ? (size_t)largest->volume->slices : 1;
    return slices * (aggregation_merges(options->aggregation) ? 1 : directions.count) *
           (sizeof(struct feature_matrix) + levels * levels * sizeof(struct feature_cell));
}
