/* shape_flat.h - the shape of a region in one slice, as pyradiomics' class shape2D. Pure functions. Threads: any. */
#ifndef NOCTULE_KERNELS_FEATURES_SHAPE_SHAPE_FLAT_H
#define NOCTULE_KERNELS_FEATURES_SHAPE_SHAPE_FLAT_H

#include "kernels/features/family.h"

#ifdef __cplusplus
extern "C" {
#endif

enum shape_flat_feature {
    SHAPE_FLAT_MESH_SURFACE,
    SHAPE_FLAT_PIXEL_SURFACE,
    SHAPE_FLAT_PERIMETER,
    SHAPE_FLAT_PERIMETER_BY_SURFACE,
    SHAPE_FLAT_SPHERICITY,
    SHAPE_FLAT_SPHERICAL_DISPROPORTION,
    SHAPE_FLAT_DIAMETER,
    SHAPE_FLAT_MAJOR_AXIS,
    SHAPE_FLAT_MINOR_AXIS,
    SHAPE_FLAT_ELONGATION,
    SHAPE_FLAT_FEATURES,
};

#ifdef __cplusplus
}
#endif
#endif
