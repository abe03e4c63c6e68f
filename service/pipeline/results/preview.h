/*
 * preview.h - a picture for people, as PNG: the segmentation, to judge whether it is right.
 *
 * From top to bottom: warnings; a legend (colour, label and volume of each segment); the axial,
 * coronal and sagittal planes with most segmented voxels, if the volume has geometry and is thick
 * enough; up to twelve slices of the stack, spread over those with a segment; the grey window
 * (grey_window.h) and a note.
 *
 * Proportions are true (spacings and positions of the stack). Each panel has its number (from 1,
 * ascending along the normal), its position along its normal and, at its edges, the letters of
 * their directions (orientation.h). Axial, coronal and sagittal planes have the usual orientation
 * (the patient's right on the viewer's left, anterior or head at the top); slices are shown as in
 * the stack.
 *
 * Outlines lie within the segment and are one pixel wide. A segment with the colour of an earlier
 * one, as is common in SEGs, gets another colour. MONOCHROME1 is inverted for display.
 *
 * The picture has no text of patient, study or images except geometry. The same request gives the
 * same bytes with any number of threads.
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
    const char *const *warnings; /* lines of UTF-8, broken if they are longer than the sheet */
    size_t warning_count;
    const char *note; /* a line at the end; may be "" */
    int threads;      /* threads that draw, including the caller */
};

/*
 * Draws the sheet and writes it to `fd`. Returns 0 or -errno. Uses only its arguments: it may run
 * in a thread of its own.
 */
int preview_write(const struct preview_request *request, int fd);

#endif
