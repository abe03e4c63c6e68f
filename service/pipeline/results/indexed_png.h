/*
 * indexed_png.h - PNG pictures of up to 256 colours: one byte per pixel, a third of the data of
 * RGB.
 */
#ifndef NOCTULE_SERVICE_PIPELINE_RESULTS_INDEXED_PNG_H
#define NOCTULE_SERVICE_PIPELINE_RESULTS_INDEXED_PNG_H

#include <stdint.h>

#define INDEXED_PNG_COLORS 256

struct rgb {
    uint8_t r, g, b;
};

struct indexed_png {
    int width, height;
    uint8_t *pixels; /* indices of the palette, x fastest; owned by the caller */
    struct rgb palette[INDEXED_PNG_COLORS];
    int colors; /* number of used entries */
};

/*
 * Returns the index of a colour; adds the colour if there is room, else returns the nearest.
 * Entries below `first` (at most 255) are not considered.
 */
uint8_t indexed_png_color(struct indexed_png *picture, int first, struct rgb color);

/*
 * Writes the file to `fd`, compressed by up to `threads` threads; the bytes do not depend on their
 * number. Returns 0 or -errno.
 */
int indexed_png_write(const struct indexed_png *picture, int threads, int fd);

#endif
