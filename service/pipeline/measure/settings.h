/*
 * settings.h - from the configuration of texture (voxels, degrees, real-world units) to
 * what the kernels are asked for, and to the words that a measurement carries.
 *
 * Directions. A matrix set's directions are one of each pair of opposite ones. Within slices, in
 * degrees counter-clockwise from the row direction, y down: 0 (1, 0), 45 (1, -1), 90 (0, -1),
 * 135 (-1, -1) (paper 002); in space these four and the nine of the next slice, in raster order.
 * A Chebyshev distance d scales each of them: 4 or 13 neighbours whatever the distance (others,
 * pyradiomics, take all that are that far away; a pipeline can name these as offsets).
 */
#ifndef NOCTULE_TEXTURE_SETTINGS_H
#define NOCTULE_TEXTURE_SETTINGS_H

#include "config/config.h"
#include "dicom/read/geometry/geometry.h"
#include "service/common/feature.h"

#include "kernels/features/features.h"
#include "kernels/texture/texture.h"

/* Matrices that are counted together: of one distance, or the pipeline's own offsets. */
struct texture_matrices {
    struct texture_offset *offsets;
    size_t count;
    int32_t distance; /* 0: own offsets */
};

/* How many sets of matrices there are: one a distance, 1 with own offsets. */
size_t texture_matrices_count(const struct conf_glcm *glcm);

/* Number `index` of them; 0 or -ENOMEM. The caller frees the offsets. */
int texture_matrices_make(const struct conf_glcm *glcm, size_t index,
                          struct texture_matrices *matrices);

/* "" when all directions of the aggregation take part; else "0,90" (degrees) or "(1,0,0)(2,1,0)"
 * (columns, rows, slices). */
void texture_directions(const struct conf_glcm *glcm, char text[FEATURE_DIRECTIONS]);

struct discretisation_settings texture_discretisation(const struct conf_glcm *glcm);

/* "lbp", "tlbap", "lanadp"; and what sets it apart: "", "threshold=0.9,strict", "integer". */
extern const char *const texture_pattern_names[TEXTURE_PATTERNS];
void texture_pattern_settings(const struct conf_texture *texture, enum texture_pattern pattern,
                              char text[FEATURE_TERM]);
bool texture_pattern_wanted(const struct conf_texture *texture, enum texture_pattern pattern);
struct texture_patterns texture_patterns_of(const struct conf_texture *texture);

/* UCUM unit of the stack's real-world values to a power: "[hnsf'U]", "(Bq/ml)2"; "1" where it is
 * not known, and for power 0. */
void texture_value_unit(struct dicom_instance *const *instances, const struct geometry_stack *stack,
                        int power, char unit[FEATURE_TERM]);

#endif
