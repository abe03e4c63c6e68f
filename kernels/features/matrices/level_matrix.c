#include "kernels/features/matrices/level_matrix.h"

#include <math.h>
#include <stdlib.h>

/* Returns the sum of squares of the summed counts per index. Cells must be sorted by that index. */
static double
sum_of_squares(const struct level_cell *cells, size_t count, bool by_length)
{
    double squares = 0;
    uint64_t together = 0;

    for (size_t c = 0; c < count; c++) {
        together += cells[c].count;
        if (c + 1 < count &&
            (by_length ? cells[c].length == cells[c + 1].length : cells[c].level == cells[c + 1].level))
            continue;
        squares += (double)together * (double)together;
        together = 0;
    }
    return squares;
}

static int
by_length(const void *left, const void *right)
{
    const struct level_cell *a = left, *b = right;

    if (a->length != b->length)
        return a->length < b->length ? -1 : 1;
    return (a->level > b->level) - (a->level < b->level);
}

void
level_average_add(struct level_average *average, struct level_cell *cells, size_t count, uint64_t voxels)
{
    double *sum = average->sum, squares;
    uint64_t all = 0;

    if (count == 0)
        return;
    for (size_t c = 0; c < count; c++)
        all += cells[c].count;
    const double total = (double)all;

    average->matrices++;
    for (size_t c = 0; c < count; c++) {
        const double p = (double)cells[c].count / total;
        const double level = (double)cells[c].level * (double)cells[c].level;
        const double length = (double)cells[c].length * (double)cells[c].length;

        sum[LEVEL_MATRIX_SHORT] += p / length;
        sum[LEVEL_MATRIX_LONG] += p * length;
        sum[LEVEL_MATRIX_LOW] += p / level;
        sum[LEVEL_MATRIX_HIGH] += p * level;
        sum[LEVEL_MATRIX_SHORT_LOW] += p / (level * length);
        sum[LEVEL_MATRIX_SHORT_HIGH] += p * level / length;
        sum[LEVEL_MATRIX_LONG_LOW] += p * length / level;
        sum[LEVEL_MATRIX_LONG_HIGH] += p * level * length;
        sum[LEVEL_MATRIX_ENTROPY] -= p * log2(p);
        sum[LEVEL_MATRIX_ENERGY] += p * p;
    }
    double level = 0, length = 0;

    for (size_t c = 0; c < count; c++) {
        level += (double)cells[c].count / total * (double)cells[c].level;
        length += (double)cells[c].count / total * (double)cells[c].length;
    }
    for (size_t c = 0; c < count; c++) {
        const double p = (double)cells[c].count / total;
        const double from_level = (double)cells[c].level - level;
        const double from_length = (double)cells[c].length - length;

        sum[LEVEL_MATRIX_LEVEL_VARIANCE] += p * from_level * from_level;
        sum[LEVEL_MATRIX_LONG_VARIANCE] += p * from_length * from_length;
    }
    squares = sum_of_squares(cells, count, false);
    sum[LEVEL_MATRIX_LEVEL_NON_UNIFORMITY] += squares / total;
    sum[LEVEL_MATRIX_LEVEL_NON_UNIFORMITY_NORMALISED] += squares / (total * total);
    qsort(cells, count, sizeof(*cells), by_length);
    squares = sum_of_squares(cells, count, true);
    sum[LEVEL_MATRIX_LONG_NON_UNIFORMITY] += squares / total;
    sum[LEVEL_MATRIX_LONG_NON_UNIFORMITY_NORMALISED] += squares / (total * total);
    sum[LEVEL_MATRIX_PERCENTAGE] += total / (double)voxels;
}

void
level_average_take(const struct level_average *average, size_t count, struct feature_value *values)
{
    for (size_t f = 0; f < count && average->matrices > 0; f++) {
        const double mean = average->sum[f] / (double)average->matrices;

        values[f] = feature_present(mean == 0 ? 0 : mean); /* not -0 */
    }
}

size_t
level_cells_of(const uint64_t *counts, size_t levels, size_t lengths, struct level_cell *cells)
{
    size_t count = 0;

    for (size_t i = 0; i < levels * lengths; i++)
        if (counts[i] > 0)
            cells[count++] = (struct level_cell){i / lengths + 1, i % lengths + 1, counts[i]};
    return count;
}
