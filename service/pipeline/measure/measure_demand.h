/*
 * measure_demand.h - requirements of measuring, before there are voxels: operations of a lane,
 * margins of regions, and memory outside the lane.
 */
#ifndef NOCTULE_SERVICE_PIPELINE_MEASURE_MEASURE_DEMAND_H
#define NOCTULE_SERVICE_PIPELINE_MEASURE_MEASURE_DEMAND_H

#include "config/config.h"
#include "dicom/read/geometry/geometry.h"

#include "kernels/features/family.h"

/* Returns the margin around regions in which families and maps of features read values, in mm. */
double texture_margin(const struct texture_options *options, const double spacing[3]);

/* Adds the demand of the options to that of a lane, with maps if requested. */
void texture_demand(const struct texture_options *options, bool maps, struct kernels_demand *demand);

/* Returns the number of sets that a family measures per region; 0: it is not enabled. */
size_t texture_sets(const struct feature_family *family, const struct texture_options *options);

/* Returns the largest need of the enabled families. */
enum feature_need texture_need(const struct texture_options *options);

/* Returns whether values must become levels. */
bool texture_levels_wanted(const struct texture_options *options);

/* Upper limits of memory outside the lane. */
struct texture_bytes {
    int64_t lasting; /* kept with the results */
    int64_t passing; /* while regions are measured */
};

/* Returns the bytes for measuring `regions` regions of a stack. */
struct texture_bytes texture_bytes(const struct texture_options *options, struct dicom_instance *const *instances,
                                   const struct geometry_stack *stack, size_t regions);

/* As texture_bytes() for values of a stack that are interpolated from `source` and not rounded. */
struct texture_bytes texture_bytes_of_reals(const struct texture_options *options,
                                            struct dicom_instance *const *instances, const struct geometry_stack *stack,
                                            struct dicom_instance *const *source_instances,
                                            const struct geometry_stack *source, size_t regions);

#endif
