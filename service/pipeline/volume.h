/*
 * volume.h - the meaning of a series' stored values and voxels, for all steps.
 *
 * Ranges. A stored value v of a plane is in range if lo <= slope * v + intercept <= hi, evaluated
 * in double precision with that plane's slope and intercept. The expression is monotone in v, so
 * the stored values in range are an interval. Bisection with the same expression finds it: there is
 * no extra rounding rule.
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

/* Returns the stored values within `limits` whose real-world value lies in range[0] .. range[1]. */
struct image_range volume_stored_range(const double range[2], double slope, double intercept,
                                       struct image_range limits);

/* Returns slope and intercept of a plane: 1 and 0 if the source has none. */
struct image_rescale volume_rescale(struct dicom_instance *const *instances, const struct geometry_plane *plane);

/* Returns the padding of an instance; empty (lo > hi): it has none. */
struct image_range volume_padding(const struct dicom_instance *instance);

/*
 * Fills rescale and padding of each plane, unless they are NULL. Returns 1 if all planes are equal,
 * else the number of planes.
 */
size_t volume_tables(struct dicom_instance *const *instances, const struct geometry_stack *stack,
                     struct image_rescale *rescales, struct image_range *paddings);

/* Returns the common padding of all planes; empty (lo > hi): they have none, or differ. */
struct image_range volume_common_padding(struct dicom_instance *const *instances, const struct geometry_stack *stack);

/* Converts a point of the configuration to voxel coordinates. */
void volume_point(const double point[3], enum conf_unit unit, const struct geometry_stack *stack, double voxel[3]);

/* A series of a single value is a defect. */
enum contrast {
    CONTRAST_NO_VALUE, /* only padding */
    CONTRAST_ONE_VALUE,
    CONTRAST_SOME,
};

/*
 * Searches `count` stored values for two different ones that are not padding. *value is the first
 * value that is not padding, if there is one.
 */
enum contrast volume_find_contrast(const void *voxels, enum image_pixel pixel, int64_t count,
                                   struct image_range padding, int32_t *value);

#endif
