/* shape_morphology.h - the shape of a region, and its centres of mass (IBSI 3.1). Pure functions.
 * Threads: any. */
#ifndef NOCTULE_KERNELS_FEATURES_SHAPE_SHAPE_MORPHOLOGY_H
#define NOCTULE_KERNELS_FEATURES_SHAPE_SHAPE_MORPHOLOGY_H

#include "kernels/features/family.h"

#ifdef __cplusplus
extern "C" {
#endif

enum morphology_feature {
    MORPHOLOGY_VOLUME,
    MORPHOLOGY_AREA,
    MORPHOLOGY_AREA_BY_VOLUME,
    MORPHOLOGY_COMPACTNESS_1,
    MORPHOLOGY_COMPACTNESS_2,
    MORPHOLOGY_SPHERICAL_DISPROPORTION,
    MORPHOLOGY_SPHERICITY,
    MORPHOLOGY_ASPHERICITY,
    MORPHOLOGY_CENTRE_SHIFT,
    MORPHOLOGY_DIAMETER,
    MORPHOLOGY_DIAMETER_SLICE,
    MORPHOLOGY_DIAMETER_COLUMN,
    MORPHOLOGY_DIAMETER_ROW,
    MORPHOLOGY_MAJOR_AXIS,
    MORPHOLOGY_MINOR_AXIS,
    MORPHOLOGY_LEAST_AXIS,
    MORPHOLOGY_ELONGATION,
    MORPHOLOGY_FLATNESS,
    MORPHOLOGY_BOX_VOLUME_DENSITY,
    MORPHOLOGY_BOX_AREA_DENSITY,
    MORPHOLOGY_ELLIPSOID_VOLUME_DENSITY,
    MORPHOLOGY_ELLIPSOID_AREA_DENSITY,
    MORPHOLOGY_HULL_VOLUME_DENSITY,
    MORPHOLOGY_HULL_AREA_DENSITY,
    MORPHOLOGY_INTEGRATED_INTENSITY,
    MORPHOLOGY_FEATURES,
};

/*
 * Returns the surface of an ellipsoid with these semi-axes, the longest first and not 0, as
 * computed for the values in IBSI's manual: 20 terms of the series of Maas (1994), in
 * eccentricities of the other two axes by the longest. (The series gives the surface for those by
 * the shortest axis.)
 */
double ellipsoid_area(const double axes[3]);

#ifdef __cplusplus
}
#endif
#endif
