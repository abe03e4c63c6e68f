/*
 * measure_demand.h - what measuring asks for before there are voxels: operations of a lane, values around
 * regions, and memory outside of the lane.
 */
#ifndef NOCTULE_SERVICE_PIPELINE_MEASURE_MEASURE_DEMAND_H
#define NOCTULE_SERVICE_PIPELINE_MEASURE_MEASURE_DEMAND_H

#include "config/config.h"
#include "dicom/read/geometry/geometry.h"

#include "kernels/features/family.h"

/* How far around regions the families that are wanted look at values, in mm. */
double texture_margin(const struct texture_options *options);

/* Adds what these options ask of a lane, with maps where they are wanted. */
void texture_demand(const struct texture_options *options, bool maps,
                    struct kernels_demand *demand);

/* How often a family measures a region; 0: it is not wanted. */
size_t texture_sets(const struct feature_family *family, const struct texture_options *options);

/* The most that a family that is wanted needs. */
enum feature_need texture_need(const struct texture_options *options);

/* Are values to become levels? */
bool texture_levels_wanted(const struct texture_options *options);

/* Bytes outside of the lane, at most. */
struct texture_bytes {
    int64_t lasting; /* with the results */
    int64_t passing; /* while regions are measured */
};

/* What is measured of so many regions of a stack. */
struct texture_bytes texture_bytes(const struct texture_options *options,
                                   struct dicom_instance *const *instances,
                                   const struct geometry_stack *stack, size_t regions);

#endif
