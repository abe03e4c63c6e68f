/*
 * preview.h - a picture for people, as PNG: the segmentation on one sheet (sheet.h), to judge whether it is right.
 *
 * Texts are readable on a telephone: 11 pixels per em if the picture is 390 pixels wide. The same request gives the same
 * bytes with any number of threads.
 */
#ifndef NOCTULE_SERVICE_PIPELINE_RESULTS_PREVIEW_H
#define NOCTULE_SERVICE_PIPELINE_RESULTS_PREVIEW_H

#include "service/pipeline/results/drawing.h"

/* The choices of a preview, for other pictures of the job. */
struct preview_style {
    double low, high;   /* values that are black and white */
    struct rgb *colors; /* one per segment; the caller must free them */
};

/*
 * Draws the sheet and writes it to `fd`. Fills the style unless it is NULL. Returns 0 or -errno. Uses only its arguments:
 * it may run in a thread of its own.
 */
int preview_write(const struct drawing_request *request, int fd, struct preview_style *style);

#endif
