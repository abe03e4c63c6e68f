#include "service/pipeline/results/lettering.h"

#include "base/text.h"

#include <ft2build.h>
#include FT_FREETYPE_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    GLYPHS = 256, /* characters whose glyphs are kept: Latin-1 */
    NARROW = 90,  /* width in percent of that of the font: DejaVu Sans Condensed */
    ELLIPSIS = 0x2026,
    UNKNOWN = 0xfffd, /* replaces bytes that are not UTF-8, and control characters */
};

/* A drawn character. */
struct glyph {
    bool made;
    int advance;   /* pixels to the next character */
    int left, top; /* of the picture, from the pen to the right and upwards */
    int width, height;
    uint8_t *coverage; /* 0 to 255, width x height */
};

struct lettering {
    FT_Library library;
    FT_Face face;
    int ascent, descent; /* pixels above and below the base line */
    struct glyph glyphs[GLYPHS];
    struct glyph other; /* the latest character beyond those */
};

struct lettering *
lettering_new(int size)
{
    struct lettering *lettering = calloc(1, sizeof *lettering);
    const FT_Long bytes = (FT_Long)font_size;
    if (!lettering)
        return NULL;
    if (FT_Init_FreeType(&lettering->library) ||
        FT_New_Memory_Face(lettering->library, font_file, bytes, 0, &lettering->face) ||
        FT_Set_Char_Size(lettering->face, size * 64 * NARROW / 100, size * 64, 72, 72)) {
        lettering_free(lettering);
        return NULL;
    }
    lettering->ascent = (int)(lettering->face->size->metrics.ascender + 63) / 64;
    lettering->descent = (int)(-lettering->face->size->metrics.descender + 63) / 64;
    return lettering;
}

void
lettering_free(struct lettering *lettering)
{
    if (!lettering)
        return;
    for (int i = 0; i < GLYPHS; i++)
        free(lettering->glyphs[i].coverage);
    free(lettering->other.coverage);
    FT_Done_Face(lettering->face);
    FT_Done_FreeType(lettering->library);
    free(lettering);
}

int
lettering_line(const struct lettering *lettering)
{
    return lettering->ascent + lettering->descent + lettering->descent / 2;
}

/* Returns the character at *text and advances *text. */
static uint32_t
next_character(const char **text)
{
    const uint8_t *bytes = (const uint8_t *)*text;
    const size_t length = text_line_length(*text);
    uint32_t character = length > 1 ? bytes[0] & (0x7fu >> length) : bytes[0];
    for (size_t i = 1; i < length; i++)
        character = character << 6 | (bytes[i] & 0x3f);
    *text += length > 0 ? length : 1;
    return length > 0 ? character : UNKNOWN;
}

/* Draws a character. Without memory it has its width only, or none. */
static void
make_glyph(struct lettering *lettering, uint32_t character, struct glyph *glyph)
{
    FT_GlyphSlot slot = lettering->face->glyph;
    free(glyph->coverage);
    *glyph = (struct glyph){.made = true};
    if (FT_Load_Char(lettering->face, character, FT_LOAD_NO_HINTING | FT_LOAD_NO_BITMAP))
        return;
    glyph->advance = (int)(slot->advance.x + 32) / 64;
    if (FT_Render_Glyph(slot, FT_RENDER_MODE_NORMAL))
        return;
    const FT_Bitmap *bitmap = &slot->bitmap;
    const size_t width = bitmap->width, height = bitmap->rows;
    glyph->coverage = malloc(width * height + 1);
    if (!glyph->coverage)
        return;
    for (size_t y = 0; y < height; y++)
        memcpy(glyph->coverage + y * width, bitmap->buffer + (ptrdiff_t)y * bitmap->pitch, width);
    glyph->left = slot->bitmap_left;
    glyph->top = slot->bitmap_top;
    glyph->width = (int)width;
    glyph->height = (int)height;
}

static const struct glyph *
glyph_of(struct lettering *lettering, uint32_t character)
{
    struct glyph *glyph = character < GLYPHS ? &lettering->glyphs[character] : &lettering->other;
    if (!glyph->made || character >= GLYPHS)
        make_glyph(lettering, character, glyph);
    return glyph;
}

int
lettering_width(struct lettering *lettering, const char *text)
{
    int width = 0;
    while (*text)
        width += glyph_of(lettering, next_character(&text))->advance;
    return width;
}

void
lettering_cut(struct lettering *lettering, char *text, int width)
{
    const char *at = text, *end = text;
    int used = glyph_of(lettering, ELLIPSIS)->advance;
    if (lettering_width(lettering, text) <= width)
        return;
    while (*at && (used += glyph_of(lettering, next_character(&at))->advance) <= width)
        end = at;
    strcpy(text + (end - text), "\xe2\x80\xa6");
}

/* Blends a grey over a pixel. Colours give way where the letter covers most of the pixel. */
static uint8_t
blend(uint8_t pixel, uint8_t ink, int coverage)
{
    if (pixel >= INDEXED_PNG_GREYS)
        return coverage >= 128 ? ink : pixel;
    const int change = (ink - pixel) * coverage;
    return (uint8_t)(pixel + (change + (change < 0 ? -127 : 127)) / 255);
}

/* Draws a glyph whose pen is at (x, y) of the box. */
static void
draw_glyph(struct indexed_png *picture, const struct box *box, const struct glyph *glyph, int x, int y, uint8_t ink)
{
    const uint8_t *coverage = glyph->coverage;
    for (int row = y - glyph->top; coverage && row < y - glyph->top + glyph->height; row++) {
        uint8_t *pixels = picture->pixels + (ptrdiff_t)(box->top + row) * picture->width + box->left;
        for (int i = x + glyph->left; i < x + glyph->left + glyph->width; i++, coverage++)
            if (row >= 0 && row < box->height && i >= 0 && i < box->width)
                pixels[i] = blend(pixels[i], ink, *coverage);
    }
}

static void
draw_line(struct lettering *lettering, struct indexed_png *picture, const struct box *box, const char *text, int x,
          int y, uint8_t ink)
{
    while (*text) {
        const struct glyph *glyph = glyph_of(lettering, next_character(&text));
        draw_glyph(picture, box, glyph, x, y, ink);
        x += glyph->advance;
    }
}

void
lettering_draw(struct lettering *lettering, struct indexed_png *picture, const struct box *box, const char *text,
               struct ink ink)
{
    const int y = (box->height - lettering->ascent - lettering->descent) / 2 + lettering->ascent, most = ink.border;
    for (int down = -most; down <= most; down++)
        for (int right = -most; right <= most; right++)
            if ((down || right) && down * down + right * right <= most * most + 1)
                draw_line(lettering, picture, box, text, most + right, y + down, ink.edge);
    draw_line(lettering, picture, box, text, most, y, ink.ink);
}

void
lettering_version(const struct lettering *lettering, char text[LETTERING_VERSION_SIZE])
{
    FT_Int version[3];
    FT_Library_Version(lettering->library, &version[0], &version[1], &version[2]);
    snprintf(text, LETTERING_VERSION_SIZE, "%s of %" PRIu32 " bytes, FreeType %d.%d.%d", lettering->face->family_name,
             font_size, version[0], version[1], version[2]);
}
