/*
 * compare_volume.h - the voxels on which regions of annotation objects are compared: those of a series of images, or those
 * of Segmentations.
 */
#ifndef NOCTULE_SERVICE_CLI_COMPARE_COMPARE_VOLUME_H
#define NOCTULE_SERVICE_CLI_COMPARE_COMPARE_VOLUME_H

#include "service/pipeline/headers.h"
#include "service/pipeline/segment/object_set.h"
#include "service/pipeline/segment/segment.h"

struct compare_volume {
    struct segmentation segmentation; /* its grid, stack and instances */
    struct grid grid;
    struct geometry_series *grouped; /* of images */
    /* of Segmentations: one instance with a frame per slice */
    struct dicom_instance *instance;
    struct geometry_stack stack;
};

/*
 * Makes the volume of the only stack of a series, which is borrowed. A tilted or unevenly spaced stack has an upright grid
 * (grid.h). Returns -EINVAL with the error of the geometry check, or TOO_MANY_STACKS. Call compare_volume_free() also
 * after an error.
 */
int compare_volume_of_images(const struct headers *series, struct compare_volume *volume, struct error *error);

/*
 * Makes the volume of all frames of Segmentations, which must lie on one grid: SEG_GRID_DIFFERS. Slices without a frame
 * are part of it.
 */
int compare_volume_of_segs(struct object_set *const *sets, size_t count, struct compare_volume *volume,
                           struct error *error);
void compare_volume_free(struct compare_volume *volume);

#endif
