/*
 * directions.h - the neighbours that families of pairs and runs look at, from a pipeline's options.
 *
 * A set's directions are one of each pair of opposite ones. Within slices, in degrees
 * counter-clockwise from the row direction, y down: 0 (1, 0), 45 (1, -1), 90 (0, -1), 135 (-1, -1);
 * in space these four and the nine of the next slice, in raster order. A Chebyshev distance d scales
 * each of them: 4 or 13 neighbours whatever the distance (others, pyradiomics, take all that are
 * that far away; a pipeline can name these as offsets). Pure functions; any thread.
 */
#ifndef NOCTULE_DIRECTIONS_H
#define NOCTULE_DIRECTIONS_H

#include "base/texture.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Directions whose matrices are counted together: of one distance, or the pipeline's own offsets. */
struct directions {
    struct texture_offset offsets[GLCM_MAX_OFFSETS];
    size_t count;
    int32_t distance; /* 0: own offsets */
};

/* How many sets there are: one per distance, 1 with own offsets. */
size_t directions_sets(const struct glcm_options *options);

void directions_make(const struct glcm_options *options, size_t set, struct directions *directions);

#define DIRECTIONS_TEXT 264 /* as many offsets as a pipeline may name, whole */

/* "" when all directions of the aggregation take part; else "0,90" (degrees) or "(1,0,0)(2,1,0)"
 * (columns, rows, slices). */
void directions_name(const struct glcm_options *options, char text[DIRECTIONS_TEXT]);

#ifdef __cplusplus
}
#endif
#endif
