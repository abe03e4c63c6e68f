/*
 * labels.h - from segments as configured (real-world units, millimetres, fractions) to level set
 * labels as computed (stored values, voxels).
 *
 * Ranges. A stored value v of a plane is in range when lo <= slope * v + intercept <= hi, evaluated
 * in double precision with that plane's slope and intercept. That expression is monotone in v, so
 * the stored values in range are an interval, found by bisection with the very same test: no
 * rounding rule of its own.
 *
 * Padding is never in range. It is cut off a plane's interval where it covers an end of it; where
 * it lies strictly inside, it becomes the label's padding range, of which there is one a label.
 * Planes whose padding differs such that this is not exact are refused (PADDING_MIXED).
 *
 * Shapes. A fraction f of an axis of n voxels is the voxel coordinate f * (n - 1): 0 and 1 are the
 * centres of the first and last voxel. Millimetres are patient coordinates (LPS). A radius in
 * millimetres is divided by the spacing of each axis.
 */
#ifndef NOCTULE_LABELS_H
#define NOCTULE_LABELS_H

#include "config/config.h"
#include "dicom/read/geometry/geometry.h"
#include "kernels/level_set/level_set.h"

/* Stored values within `limits` whose real-world value lies in range[0] .. range[1]. */
struct image_range labels_stored_range(const double range[2], double slope, double intercept,
                                       struct image_range limits);

/* Slope and intercept of a plane: 1 and 0 where the source gives none. */
void labels_rescale(struct dicom_instance *const *instances, const struct geometry_plane *plane,
                    double *slope, double *intercept);

/* The padding of an instance; empty (lo > hi) when it has none. */
struct image_range labels_padding(const struct dicom_instance *instance);

/* The padding that every plane has; empty (lo > hi) when there is none or they differ. */
struct image_range labels_common_padding(struct dicom_instance *const *instances,
                                         const struct geometry_stack *stack);

/* A point of the configuration in voxel coordinates. */
void labels_point(const double point[3], enum conf_unit unit, const struct geometry_stack *stack,
                  double voxel[3]);

/* -EINVAL for a shape that no kernel takes (a radius that is not finite). */
int labels_shape(const struct conf_shape *shape, const struct geometry_stack *stack,
                 struct kernels_shape *voxels);

struct labels {
    struct kernels_level_set_label *items; /* one a segment of method CONF_LEVEL_SET, in order */
    size_t *segments;                      /* which of the pipeline's each one is */
    size_t count;
    struct image_range *ranges; /* storage of the items' */
    struct kernels_shape *shapes;
};

/* 0, -ENOMEM, or -EINVAL with PADDING_MIXED or SHAPE_INVALID. */
int labels_make(const struct conf_pipeline *pipeline, struct dicom_instance *const *instances,
                const struct geometry_stack *stack, struct labels *labels, struct error *error);
void labels_free(struct labels *labels);

#endif
