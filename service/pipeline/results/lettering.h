/*
 * lettering.h - draws short texts into a picture: printable ASCII in letters of 5 x 7 dots.
 *
 * Other characters are replaced: letters of Latin-1 by the letter without accent, all others by
 * "?". Drawing stays within the given box, so several threads may draw into boxes of one picture.
 */
#ifndef NOCTULE_SERVICE_PIPELINE_RESULTS_LETTERING_H
#define NOCTULE_SERVICE_PIPELINE_RESULTS_LETTERING_H

#include "service/pipeline/results/indexed_png.h"

#define LETTERING_ADVANCE 6 /* dots from one letter to the next */
#define LETTERING_HEIGHT  7 /* dots */

/* A rectangle of pixels, which must lie within the picture. */
struct box {
    int left, top, width, height;
};

struct lettering {
    uint8_t color, shadow; /* indices of the palette; the shadow is a border of one pixel */
    int dot;               /* pixels */
};

/*
 * Returns the width in pixels of a text (UTF-8) with `dot` pixels per dot, with its shadow. The
 * height includes the two pixels of the shadow.
 */
int lettering_width(const char *text, int dot);

/* Returns the size of a dot, 2 or 1, at which a text fits into a width; 1 if it does not fit. */
int lettering_fit(const char *text, int width);

/* Draws at the upper left corner of the box; cuts off text without room. */
void lettering_draw(struct indexed_png *picture, const struct box *box, const char *text,
                    const struct lettering *lettering);

#endif
