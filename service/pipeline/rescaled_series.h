/*
 * rescaled_series.h - the values of a stack for operations that combine voxels: stored values if all slices have one
 * rescale with a positive slope, else real values (kernels/rescaled/rescaled.h).
 *
 * Real values are counted in a unit. If all differences between the values of all slices are multiples of one number, as
 * with slopes of 1, 2 and 4, it is the unit: the values are integers, as if the series had been stored with that
 * slope. Otherwise, the unit is 1.
 *
 * Filters and blocks limit HU to -1024 .. 3071, and padding counts as the lowest value that the pixels of a slice can have.
 */
#ifndef NOCTULE_SERVICE_PIPELINE_RESCALED_SERIES_H
#define NOCTULE_SERVICE_PIPELINE_RESCALED_SERIES_H

#include "dicom/read/geometry/geometry.h"
#include "kernels/rescaled/rescaled.h"

struct rescaled_series {
    struct image_rescale rescale; /* real-world value of a value */
    struct image_range limits;    /* of stored values, if they are the values */
    struct image_range padding;   /* lo > hi: no padding */
    bool is_apart;                /* the values are real values; the members below are set */
    struct rescaled_values values;
    double lowest, highest; /* that the stored bits can have, if limited */
    struct image_rescale *rescales;
    struct image_range *own_limits;
};

/*
 * Borrows instances and stack, and the voxels of a lane (NULL: they are not needed yet). The caller must call rescaled_series_release() also after an error (OUT_OF_MEMORY).
 */
int rescaled_series_make(struct dicom_instance *const *instances, const struct geometry_stack *stack,
                         const struct kernels_lane *lane, struct rescaled_series *series, struct error *error);
/* Sets limits and padding. Returns 0, or -EINVAL with PADDING_MIXED or RESCALE_INVALID. */
int rescaled_series_limit(struct dicom_instance *const *instances, const struct geometry_stack *stack,
                          struct rescaled_series *series, struct error *error);
void rescaled_series_release(struct rescaled_series *series);

/* Return whether slices have rescales of their own, and whether the values are real values. */
bool rescaled_series_differs(struct dicom_instance *const *instances, const struct geometry_stack *stack);
bool rescaled_series_is_apart(struct dicom_instance *const *instances, const struct geometry_stack *stack);

#endif
