/*
 * preview.h - a sheet for people, as a PNG: what was segmented, and whether it can be right.
 *
 * From above: lines that are given, as warnings; a legend (colour, label, volume of each segment);
 * the axial, coronal and sagittal plane that hold most of the segments, where the volume has
 * geometry and is thick enough; up to twelve slices of the stack, spread over those that hold a
 * segment; the grey window (grey_window.h), and a note on what is shown.
 *
 * Proportions are true (spacings and positions of the stack). Each panel carries its number (from
 * 1, ascending along the normal) and place along its normal, and on its edges the letters of the
 * directions that they face (orientation.h). Axial, coronal and sagittal planes are turned as is
 * usual (the patient's right on the viewer's left, anterior or head above); slices are as the
 * stack is. Outlines run within the segment, one pixel wide. A segment whose colour another
 * one before it has, as SEGs often do, gets one of its own. MONOCHROME1 is inverted for display.
 *
 * Nothing of the patient, the study or the images is written out but geometry. The same request
 * gives the same bytes, whatever the threads.
 */
#ifndef NOCTULE_SERVICE_PIPELINE_RESULTS_PREVIEW_H
#define NOCTULE_SERVICE_PIPELINE_RESULTS_PREVIEW_H

#include "base/image.h"
#include "dicom/read/geometry/geometry.h"

struct preview_segment {
    const struct image_mask *mask;
    double color[3];   /* RGB, 0..1 */
    const char *label; /* UTF-8 */
    double millilitres;
};

/* All borrowed. */
struct preview_request {
    struct dicom_instance *const *instances;
    const struct geometry_stack *stack;
    const void *voxels; /* stored values, stack->pixel, x fastest */
    const struct preview_segment *segments;
    size_t segment_count;
    const char *const *warnings; /* lines of UTF-8, broken where they are longer than the sheet */
    size_t warning_count;
    const char *note; /* a line at the end; "": none */
    int threads;      /* that may draw, the caller's among them */
};

/* Draws the sheet and writes it to `fd`; 0 or -errno. Does not look at any other state: may run in
 * a thread of its own. */
int preview_write(const struct preview_request *request, int fd);

#endif
