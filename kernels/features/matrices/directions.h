/*
 * directions.h - directions of neighbours for the families of pairs and runs, from a pipeline's
 * options.
 *
 * A set has one direction of each opposite pair. Within slices, in degrees counter-clockwise from
 * the row direction, y down: 0 (1, 0), 45 (1, -1), 90 (0, -1), 135 (-1, -1). In space, these four
 * and the nine of the next slice, in raster order. A Chebyshev distance d scales each of them, so
 * that there are 4 or 13 neighbours for every distance. Others (pyradiomics) take all neighbours at
 * that distance; a pipeline can list these as offsets. Pure functions. Threads: any.
 */
#ifndef NOCTULE_KERNELS_FEATURES_MATRICES_DIRECTIONS_H
#define NOCTULE_KERNELS_FEATURES_MATRICES_DIRECTIONS_H

#include "base/texture_options.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Directions whose matrices are counted together: those of one distance, or the pipeline's own
 * offsets. */
struct directions {
    struct texture_offset offsets[GLCM_MAX_OFFSETS];
    size_t count;
    int32_t distance; /* 0: own offsets */
};

/* Returns the number of sets: one per distance, or 1 with own offsets. */
size_t directions_sets(const struct glcm_options *options);

void directions_make(const struct glcm_options *options, size_t set, struct directions *directions);

#define DIRECTIONS_TEXT 264 /* fits the max number of offsets of a pipeline */

/* Writes "" if all directions of the aggregation are used, otherwise "0,90" (degrees) or
 * "(1,0,0)(2,1,0)" (columns, rows, slices). */
void directions_name(const struct glcm_options *options, char text[DIRECTIONS_TEXT]);

#ifdef __cplusplus
}
#endif
#endif
