/* matrices.c - see matrices.h. */
#include "service/pipeline/measure/matrices.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* What one call keeps matrices with. */
struct keeper {
    const struct glcm_settings *settings;
    struct feature_set *set;
    size_t levels;
    uint64_t *sums; /* [levels][levels], of the matrix at hand */
};

/* Adds raw counts, and their mirror image where pairs count in both orders. */
static void
add_counts(const struct keeper *keeper, const uint64_t *counts)
{
    const size_t n = keeper->levels;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++) {
            keeper->sums[i * n + j] += counts[i * n + j];
            if (keeper->settings->symmetric)
                keeper->sums[j * n + i] += counts[i * n + j];
        }
}

static size_t
count_cells(const struct keeper *keeper)
{
    size_t count = 0;
    for (size_t i = 0; i < keeper->levels * keeper->levels; i++)
        count += keeper->sums[i] > 0;
    return count;
}

static void
put_cells(const struct keeper *keeper, struct feature_matrix *matrix)
{
    for (size_t i = 0; i < keeper->levels * keeper->levels; i++) {
        if (keeper->sums[i] == 0)
            continue;
        matrix->cells[matrix->cell_count++] = (struct feature_cell){
            .level = (int32_t)(i / keeper->levels) + 1,
            .neighbour = (int32_t)(i % keeper->levels) + 1,
            .count = keeper->sums[i],
        };
        matrix->pairs += keeper->sums[i];
    }
}

static int
add_matrix(const struct keeper *keeper, const struct feature_matrix *named)
{
    struct feature_set *set = keeper->set;
    size_t count = count_cells(keeper);
    if (count == 0)
        return 0;
    struct feature_matrix *grown =
        realloc(set->matrices, (set->matrix_count + 1) * sizeof *set->matrices);
    if (!grown)
        return -ENOMEM;
    set->matrices = grown;
    struct feature_matrix *matrix = &grown[set->matrix_count];
    *matrix = *named;
    matrix->cells = malloc(count * sizeof *matrix->cells);
    if (!matrix->cells)
        return -ENOMEM;
    put_cells(keeper, matrix);
    set->matrix_count++;
    return 0;
}

static int
keep_slice(const struct keeper *keeper, const struct texture_matrices *offsets,
           const uint64_t *counts, int32_t slice)
{
    const size_t cells = keeper->levels * keeper->levels;
    const bool merges = glcm_aggregation_merges(keeper->settings->aggregation);
    int error = 0;
    for (size_t d = 0; d < offsets->count && error == 0; d++) {
        const struct texture_offset *offset = &offsets->offsets[d];
        struct feature_matrix named = {.feature = keeper->set->count, .slice = slice};
        if (d == 0 || !merges)
            memset(keeper->sums, 0, cells * sizeof *keeper->sums);
        add_counts(keeper, counts + d * cells);
        if (!merges)
            memcpy(named.offset, (int32_t[]){offset->x, offset->y, offset->z}, sizeof named.offset);
        if (!merges || d + 1 == offsets->count)
            error = add_matrix(keeper, &named);
    }
    return error;
}

int
texture_matrices_keep(const struct glcm_settings *settings, const struct texture_matrices *offsets,
                      const uint64_t *counts, size_t slices, struct feature_set *set)
{
    const size_t levels = (size_t)settings->levels;
    const bool per_slice = glcm_aggregation_per_slice(settings->aggregation);
    const struct keeper keeper = {settings, set, levels,
                                  malloc(levels * levels * sizeof *keeper.sums)};
    int error = keeper.sums ? 0 : -ENOMEM;
    for (size_t z = 0; z < slices && error == 0; z++)
        error = keep_slice(&keeper, offsets, counts + z * offsets->count * levels * levels,
                           per_slice ? (int32_t)z + 1 : 0);
    free(keeper.sums);
    return error;
}
