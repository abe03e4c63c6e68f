/*
 * object_figures.h - the points and outlines of a report's item as a mask of the planes of a
 * series.
 *
 * An outline is filled as a contour (contours.h). A circle or an ellipse on an image has the pixels whose centres it
 * contains; it may not overlap another outline of the item. A point is its nearest voxel: the plane that is
 * nearest along the normal (up to half a plane distance beyond the first and the last plane), and
 * the pixel with the nearest centre. Coordinates on an image refer to its plane, or to the planes of the frames that they
 * name: without frame numbers, to those of all its frames. Coordinates in space refer to the images' frame of reference. Planes of a 2-D image are in pixels, and figures on other images and frames are
 * left out.
 */
#ifndef NOCTULE_SERVICE_PIPELINE_SEGMENT_OBJECT_FIGURES_H
#define NOCTULE_SERVICE_PIPELINE_SEGMENT_OBJECT_FIGURES_H

#include "dicom/read/annotation/sr_source.h"
#include "dicom/read/geometry/geometry.h"
#include "kernels/mask/contours.h"

struct object_figures {
    const char *path;
    const struct sr_source_item *item;
    const struct image_planes *planes;
    /* The images of the figures. */
    struct dicom_instance *const *instances;
    const struct geometry_stack *stack;
};

struct object_figured {
    struct contours_drawn drawn; /* of outlines; its voxels and planes also apply to points */
    int64_t outlines, points;
    int64_t elsewhere; /* figures on other 2-D images, or on other frames */
};

/* Returns whether a figure is on another 2-D image than the stack, or on another frame. False for volumes. */
bool object_figure_is_elsewhere(const struct object_figures *figures, const struct sr_source_figure *figure);

/*
 * Fills a mask of all planes. Codes: those of kernels_mask_contours(); OBJECT_OTHER_FRAME,
 * OBJECT_OTHER_SERIES for an image that is not a plane, SEED_OUTSIDE, FIGURE_UNSUPPORTED,
 * SIZE_IMPLAUSIBLE for more than LIMIT_ROI_POINTS points on all planes, OUT_OF_MEMORY.
 */
int object_figures_draw(const struct object_figures *figures, uint64_t *bits, struct object_figured *figured,
                        struct error *error);

/* Counts the voxels of a mask of all planes, and the planes that have voxels. */
void object_figures_count(const struct image_extent *extent, const uint64_t *bits, struct contours_drawn *drawn);

#endif
