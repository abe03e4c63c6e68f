/*
 * lettering.h - small texts on a picture: printable ASCII in letters of 5 x 7 dots.
 *
 * What is no ASCII is drawn as what it is nearest to: letters of Latin-1 without their accents,
 * everything else as "?". Nothing is drawn beyond the given box, so that threads may letter boxes
 * of one picture side by side.
 */
#ifndef NOCTULE_SERVICE_PIPELINE_RESULTS_LETTERING_H
#define NOCTULE_SERVICE_PIPELINE_RESULTS_LETTERING_H

#include "service/pipeline/results/indexed_png.h"

#define LETTERING_ADVANCE 6 /* dots from letter to letter */
#define LETTERING_HEIGHT  7 /* dots */

/* Pixels of a picture, all of them within it. */
struct box {
    int left, top, width, height;
};

struct lettering {
    uint8_t color, shadow; /* entries of the palette; the shadow runs around, a pixel wide */
    int dot;               /* pixels */
};

/* Pixels that a text (UTF-8) takes at so many pixels a dot, and its shadow; its height has the
 * shadow's two pixels, too. */
int lettering_width(const char *text, int dot);

/* The dots, 2 or 1, at which a text fits into a width; 1 where it does not at all. */
int lettering_fit(const char *text, int width);

/* The upper left corner is that of the box; what has no room is cut off. */
void lettering_draw(struct indexed_png *picture, const struct box *box, const char *text,
                    const struct lettering *lettering);

#endif
