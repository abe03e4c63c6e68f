/*
 * correction.h - the segments of a job that a person corrected: they come from a SEG or RTSTRUCT instead of the method
 * of the pipeline. Segments that the object lacks are computed again.
 *
 * A region corrects the visible segment of its name. It is used as it was drawn: without steps, `within`, `minus` and
 * `intersect`. Frames of a SEG must have the pixels of the images. Expectations, quantities and codes of the segment stay. A region may be empty.
 *
 * Codes: those of object_set_open(); CORRECTION_NO_SEGMENT, ROI_AMBIGUOUS if two regions have the name of a segment.
 */
#ifndef NOCTULE_SERVICE_PIPELINE_SEGMENT_CORRECTION_H
#define NOCTULE_SERVICE_PIPELINE_SEGMENT_CORRECTION_H

#include "base/error.h"
#include "config/config.h"

struct correction {
    struct conf_pipeline pipeline; /* borrows all but its array of segments */
    struct conf_segment *segments;
    char labels[160]; /* of the corrected segments */
};

/* Call correction_release() in both cases. */
int correction_make(struct correction *correction, const struct conf_pipeline *pipeline, const char *path,
                    struct error *error);
void correction_release(struct correction *correction);

#endif
