/*
 * lettering.h - draws texts into a picture with FreeType, in DejaVu Sans, one size per object.
 *
 * The program contains the font file (font.c), so that a sandboxed process needs no file and all machines draw from the
 * same outlines. Glyphs are neither hinted nor drawn by floating point: the same version of FreeType gives the same
 * pixels. lettering_version() names it for identities.
 *
 * Characters are set one after another: there are no ligatures and no right-to-left order. A character that the font
 * lacks, such as those of Chinese, is drawn as an empty box. One thread per object.
 */
#ifndef NOCTULE_SERVICE_PIPELINE_RESULTS_LETTERING_H
#define NOCTULE_SERVICE_PIPELINE_RESULTS_LETTERING_H

#include "service/common/picture/indexed_png.h"

#include <stdint.h>

struct lettering;

/* Makes letters of `size` pixels per em. Returns NULL if memory is short. */
struct lettering *lettering_new(int size);
void lettering_free(struct lettering *lettering);

/* Returns the distance in pixels between lines of text. */
int lettering_line(const struct lettering *lettering);

/* Returns the width in pixels of a text (UTF-8). */
int lettering_width(struct lettering *lettering, const char *text);

/* Cuts a text that is wider than `width`, and ends it with an ellipsis. The text must have room for 4 more bytes. */
void lettering_cut(struct lettering *lettering, char *text, int width);

/*
 * Draws a text from the left edge of the box, in the middle of its height; pixels beyond the box are not drawn. `ink`
 * and `edge` are greys of the palette; a border of `edge` is drawn around the letters, if its width is not 0.
 */
struct ink {
    uint8_t ink, edge;
    int border; /* pixels */
};

void lettering_draw(struct lettering *lettering, struct indexed_png *picture, const struct box *box, const char *text,
                    struct ink ink);

/* Writes the name of the font and the version of FreeType. */
#define LETTERING_VERSION_SIZE 64
void lettering_version(const struct lettering *lettering, char text[LETTERING_VERSION_SIZE]);

/* ---------------------------------------------------------------------------------- font.c ---- */

extern const unsigned char font_file[];
extern const uint32_t font_size; /* bytes, rounded up to a multiple of 4 */

#endif
