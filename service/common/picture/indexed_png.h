/*
 * indexed_png.h - PNG pictures of 112 greys and up to 144 colours: one byte per pixel, a third of the
 * data of RGB.
 */
#ifndef NOCTULE_SERVICE_COMMON_PICTURE_INDEXED_PNG_H
#define NOCTULE_SERVICE_COMMON_PICTURE_INDEXED_PNG_H

#include <stddef.h>
#include <stdint.h>

#define INDEXED_PNG_COLORS 256
#define INDEXED_PNG_GREYS  112 /* the first entries, from black to white; 224 make noisy slices a sixth larger */

struct rgb {
    uint8_t r, g, b;
};

/* A rectangle of pixels, which must lie within the picture. */
struct box {
    int left, top, width, height;
};

struct indexed_png {
    int width, height;
    uint8_t *pixels; /* indices of the palette, x fastest; owned by the caller */
    struct rgb palette[INDEXED_PNG_COLORS];
    int colors; /* number of used entries */
};

/* Fills the palette with the greys. */
void indexed_png_start(struct indexed_png *picture);

/* Returns the index of a colour; adds the colour if there is room, else returns the nearest that was added. */
uint8_t indexed_png_color(struct indexed_png *picture, struct rgb color);

/* Returns the index of the grey that is nearest to 0 (black) to 255 (white). */
uint8_t indexed_png_grey(int level);

/*
 * Makes the file, compressed by up to `threads` threads; the bytes do not depend on their number. The caller must free
 * *bytes. Returns 0 or -ENOMEM.
 */
int indexed_png_encode(const struct indexed_png *picture, int threads, uint8_t **bytes, size_t *size);
/* Writes such a file to `fd`. Returns 0 or -errno. */
int indexed_png_write(const struct indexed_png *picture, int threads, int fd);

#endif
