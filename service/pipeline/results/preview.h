/*
 * preview.h - a contact sheet for people: up to twelve slices through what was segmented, each
 * segment outlined in its colour, as a PNG.
 *
 * Slices have their true proportions (pixel spacing), grey values run from the 1st to the 99.5th
 * percentile of what is shown, MONOCHROME1 is inverted for display, and each tile carries the
 * number of its slice (from 1, ascending along the normal). No patient data: nothing but pixels.
 */
#ifndef NOCTULE_PREVIEW_H
#define NOCTULE_PREVIEW_H

#include "base/image.h"
#include "dicom/read/geometry/geometry.h"

struct preview_segment {
    const struct image_mask *mask;
    double color[3]; /* RGB, 0..1 */
};

/* All borrowed. */
struct preview_request {
    struct dicom_instance *const *instances;
    const struct geometry_stack *stack;
    const void *voxels; /* stored values, stack->pixel, x fastest */
    const struct preview_segment *segments;
    size_t segment_count;
    int threads; /* that may draw, the caller's among them */
};

/* Draws the sheet and writes it to `fd`; 0 or -errno. Does not look at any other state: may run in
 * a thread of its own. */
int preview_write(const struct preview_request *request, int fd);

#endif
