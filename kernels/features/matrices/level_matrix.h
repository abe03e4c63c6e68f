/*
 * level_matrix.h - features of matrices of levels by lengths, sizes, distances or dependences, which
 * IBSI defines alike in four families (GLRLM, GLSZM, GLDZM, NGLDM). Pure functions; any thread.
 */
#ifndef NOCTULE_LEVEL_MATRIX_H
#define NOCTULE_LEVEL_MATRIX_H

#include "kernels/features/family.h"

#ifdef __cplusplus
extern "C" {
#endif

/* In IBSI's order, with `long` for whatever the second index is. */
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
    LEVEL_MATRIX_ENERGY, /* of NGLDM alone */
    LEVEL_MATRIX_FEATURES,
};

/* An element that is not 0; both indices from 1. */
struct level_cell {
    uint64_t level, length;
    uint64_t count;
};

/* Sums of the features of matrices. */
struct level_average {
    double sum[LEVEL_MATRIX_FEATURES];
    int64_t matrices;
};

/* Adds the features of a matrix, unless it has no cell. Cells stand by level, then by length; they are
 * sorted by length when this returns. `voxels` is what a percentage is of. */
void level_average_add(struct level_average *average, struct level_cell *cells, size_t count,
                       uint64_t voxels);

/* The first `count` of the averages; of no matrix they stay as they are. */
void level_average_take(const struct level_average *average, size_t count,
                        struct feature_value *values);

/* A matrix counts[levels][lengths] as cells, of which there is room for all; returns how many. */
size_t level_cells_of(const uint64_t *counts, size_t levels, size_t lengths,
                      struct level_cell *cells);

#ifdef __cplusplus
}
#endif
#endif
