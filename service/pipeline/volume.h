/*
 * volume.h - what a series says of its stored values and voxels, for all who compute with them.
 *
 * Ranges. A stored value v of a plane is in range when lo <= slope * v + intercept <= hi, evaluated
 * in double precision with that plane's slope and intercept. That expression is monotone in v, so
 * the stored values in range are an interval, found by bisection with the very same test: no
 * rounding rule of its own.
 *
 * Points. A fraction f of an axis of n voxels is the voxel coordinate f * (n - 1): 0 and 1 are the
 * centres of the first and last voxel. Millimetres are patient coordinates (LPS).
 */
#ifndef NOCTULE_SERVICE_PIPELINE_VOLUME_H
#define NOCTULE_SERVICE_PIPELINE_VOLUME_H

#include "base/image.h"
#include "config/config.h"
#include "dicom/read/geometry/geometry.h"

static inline bool
volume_range_is_empty(struct image_range range)
{
    return range.lo > range.hi;
}

/* Stored values within `limits` whose real-world value lies in range[0] .. range[1]. */
struct image_range volume_stored_range(const double range[2], double slope, double intercept,
                                       struct image_range limits);

/* Slope and intercept of a plane: 1 and 0 where the source gives none. */
struct image_rescale volume_rescale(struct dicom_instance *const *instances,
                                    const struct geometry_plane *plane);

/* The padding of an instance; empty (lo > hi) when it has none. */
struct image_range volume_padding(const struct dicom_instance *instance);

/* Fills rescale and padding of each plane, where there is room for them; 1 where all planes have the
 * same, else how many there are. */
size_t volume_tables(struct dicom_instance *const *instances, const struct geometry_stack *stack,
                     struct image_rescale *rescales, struct image_range *paddings);

/* The padding that every plane has; empty (lo > hi) when there is none or they differ. */
struct image_range volume_common_padding(struct dicom_instance *const *instances,
                                         const struct geometry_stack *stack);

/* A point of the configuration in voxel coordinates. */
void volume_point(const double point[3], enum conf_unit unit, const struct geometry_stack *stack,
                  double voxel[3]);

#endif
