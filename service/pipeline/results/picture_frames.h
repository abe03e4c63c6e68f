/*
 * picture_frames.h - the frames of a picture (dicom/objects/picture/): one per slice with the outlines and names of its
 * segments, and the overview (sheet.h).
 *
 * A slice has as many pixels as the images, between 512 and 1024 on its longer side, in true proportion. Above it are
 * its number and position, below it the segments that it shows, and the grey window. All frames have "not for
 * diagnosis", and none has text of patient, study or images except geometry.
 */
#ifndef NOCTULE_SERVICE_PIPELINE_RESULTS_PICTURE_FRAMES_H
#define NOCTULE_SERVICE_PIPELINE_RESULTS_PICTURE_FRAMES_H

#include "dicom/objects/picture/picture.h"
#include "service/pipeline/results/drawing.h"

struct picture_frames;

/*
 * Plans the frames. `sources` is the number of planes of the source if the slices are not those of the source
 * (a straightened stack), else 0. The request is borrowed. Returns 0 or -ENOMEM; *frames is to be freed.
 */
int picture_frames_make(const struct drawing_request *request, int32_t sources, struct picture_frames **frames);
void picture_frames_free(struct picture_frames *frames);

/* Returns a bound of the memory for drawing, writing and reading back the pictures of a stack with so many segments. */
int64_t picture_frames_bytes(const struct geometry_stack *stack, size_t segments, int threads);

/* Fills the members of a request, whose member `only` is set, that describe and draw the frames. */
void picture_frames_fill(struct picture_frames *frames, struct picture_request *request);

#endif
