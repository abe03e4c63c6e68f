/*
 * level_matrix.h - features of matrices of levels by lengths, sizes, distances or dependences, with
 * the same IBSI definitions in four families (GLRLM, GLSZM, GLDZM, NGLDM). Pure functions. Threads:
 * any.
 */
#ifndef NOCTULE_KERNELS_FEATURES_MATRICES_LEVEL_MATRIX_H
#define NOCTULE_KERNELS_FEATURES_MATRICES_LEVEL_MATRIX_H

#include "kernels/features/family.h"

#ifdef __cplusplus
extern "C" {
#endif

/* In IBSI's order; `long` stands for large values of the second index. */
enum level_matrix_feature {
    LEVEL_MATRIX_SHORT,
    LEVEL_MATRIX_LONG,
    LEVEL_MATRIX_LOW,
    LEVEL_MATRIX_HIGH,
    LEVEL_MATRIX_SHORT_LOW,
    LEVEL_MATRIX_SHORT_HIGH,
    LEVEL_MATRIX_LONG_LOW,
    LEVEL_MATRIX_LONG_HIGH,
    LEVEL_MATRIX_LEVEL_NON_UNIFORMITY,
    LEVEL_MATRIX_LEVEL_NON_UNIFORMITY_NORMALISED,
    LEVEL_MATRIX_LONG_NON_UNIFORMITY,
    LEVEL_MATRIX_LONG_NON_UNIFORMITY_NORMALISED,
    LEVEL_MATRIX_PERCENTAGE,
    LEVEL_MATRIX_LEVEL_VARIANCE,
    LEVEL_MATRIX_LONG_VARIANCE,
    LEVEL_MATRIX_ENTROPY,
    LEVEL_MATRIX_ENERGY, /* NGLDM only */
    LEVEL_MATRIX_FEATURES,
};

/* A nonzero element, with both indices from 1. */
struct level_cell {
    uint64_t level, length;
    uint64_t count;
};

/* Sums of the features over matrices. */
struct level_average {
    double sum[LEVEL_MATRIX_FEATURES];
    int64_t matrices;
};

/* Adds the features of a matrix, unless it has no cells. Cells must be sorted by level, then by
 * length. On return they are sorted by length. `voxels` is the base of percentages. */
void level_average_add(struct level_average *average, struct level_cell *cells, size_t count, uint64_t voxels);

/* Sets the first `count` averages. Without matrices, values stay as they are. */
void level_average_take(const struct level_average *average, size_t count, struct feature_value *values);

/* Converts a matrix counts[levels][lengths] to cells, which must have room for all. Returns their
 * number. */
size_t level_cells_of(const uint64_t *counts, size_t levels, size_t lengths, struct level_cell *cells);

#ifdef __cplusplus
}
#endif
#endif
