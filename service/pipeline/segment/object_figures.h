/*
 * object_figures.h - the points and outlines of a report's item as a mask of the planes of a series.
 *
 * An outline is a contour (contours.h), filled. A point is the voxel that is nearest to it: of the
 * plane that is nearest along the normal, within half the distance to the next one beyond the first and
 * the last, the pixel whose centre is nearest. Coordinates on an image are of the plane that the image
 * is; in space they are of the images' frame of reference.
 */
#ifndef NOCTULE_SERVICE_PIPELINE_SEGMENT_OBJECT_FIGURES_H
#define NOCTULE_SERVICE_PIPELINE_SEGMENT_OBJECT_FIGURES_H

#include "dicom/read/geometry/geometry.h"
#include "dicom/read/sr_source.h"
#include "kernels/mask/contours.h"

struct object_figures {
    const char *path;
    const struct sr_source_item *item;
    const struct image_planes *planes;
    /* Whose they are. */
    struct dicom_instance *const *instances;
    const struct geometry_stack *stack;
};

struct object_figured {
    struct contours_drawn drawn; /* of outlines; its voxels and planes are those of points, too */
    int64_t outlines, points;
};

/* Fills a mask of all planes. Codes: those of kernels_mask_contours; OBJECT_OTHER_FRAME,
 * OBJECT_OTHER_SERIES for an image that is no plane, SEED_OUTSIDE, FIGURE_UNSUPPORTED, OUT_OF_MEMORY. */
int object_figures_draw(const struct object_figures *figures, uint64_t *bits,
                        struct object_figured *figured, struct error *error);

#endif
