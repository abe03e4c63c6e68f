/*
 * indexed_png.h - pictures of up to 256 colours, as PNG: a byte a pixel, so that there is a third
 * to compress of what RGB would have.
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
    uint8_t *pixels; /* entries of the palette, x fastest; the caller's */
    struct rgb palette[INDEXED_PNG_COLORS];
    int colors; /* entries that are used */
};

/* The entry of a colour, made when there is room for another: else that of the nearest. Entries
 * below `first`, of which there are fewer than 256, are passed over. */
uint8_t indexed_png_color(struct indexed_png *picture, int first, struct rgb color);

/* Writes the file to `fd`, compressed by up to `threads` threads, which its bytes do not depend on:
 * 0 or -errno. */
int indexed_png_write(const struct indexed_png *picture, int threads, int fd);

#endif
