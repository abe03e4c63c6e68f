/* indexed_png.c - see indexed_png.h. */
#include "service/pipeline/results/indexed_png.h"

#include "base/durable.h"
#include "base/text.h"

#include <png.h>
#include <zlib.h>

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

enum { CHUNK = 64 * 1024 }; /* bytes at a time */

static int
distance(struct rgb a, struct rgb b)
{
    int red = a.r - b.r, green = a.g - b.g, blue = a.b - b.b;
    return red * red + green * green + blue * blue;
}

uint8_t
indexed_png_color(struct indexed_png *picture, int first, struct rgb color)
{
    int nearest = first;
    for (int i = first; i < picture->colors; i++) {
        if (distance(picture->palette[i], color) < distance(picture->palette[nearest], color))
            nearest = i;
    }
    bool held = nearest < picture->colors && distance(picture->palette[nearest], color) == 0;
    if (held || picture->colors == INDEXED_PNG_COLORS)
        return (uint8_t)nearest;
    picture->palette[picture->colors] = color;
    return (uint8_t)picture->colors++;
}

/* Back to setjmp: nothing but memory can be wrong with the picture. */
static void
png_give_up(png_structp png, png_const_charp text)
{
    (void)text;
    png_longjmp(png, 1);
}

static void
keep_quiet(png_structp png, png_const_charp text)
{
    (void)png;
    (void)text;
}

static void
put_palette(const struct indexed_png *picture, png_structp png, png_infop info)
{
    png_color palette[INDEXED_PNG_COLORS];
    for (int i = 0; i < picture->colors; i++) {
        struct rgb color = picture->palette[i];
        palette[i] = (png_color){color.r, color.g, color.b};
    }
    png_set_PLTE(png, info, palette, picture->colors);
}

/* Of differences from the row above, runs and Huffman codes alone: neighbours in the palette are
 * neighbours in grey, so that slices become smaller than by level 6 of zlib, in a fifth of its
 * time. */
static void
put_picture(const struct indexed_png *picture, png_structp png, png_infop info)
{
    png_set_compression_level(png, 1);
    png_set_compression_strategy(png, Z_RLE);
    png_set_compression_buffer_size(png, CHUNK);
    png_set_filter(png, PNG_FILTER_TYPE_BASE, PNG_FILTER_UP);
    png_set_IHDR(png, info, (png_uint_32)picture->width, (png_uint_32)picture->height, 8,
                 PNG_COLOR_TYPE_PALETTE, PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_BASE,
                 PNG_FILTER_TYPE_BASE);
    put_palette(picture, png, info);
    png_write_info(png, info);
    for (int y = 0; y < picture->height; y++)
        png_write_row(png, picture->pixels + (size_t)y * (size_t)picture->width);
    png_write_end(png, info);
}

static int
put_file(const struct indexed_png *picture, FILE *out)
{
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, png_give_up, keep_quiet);
    png_infop info = png ? png_create_info_struct(png) : NULL;
    if (!info) {
        png_destroy_write_struct(&png, NULL);
        return -ENOMEM;
    }
    png_init_io(png, out);
    int error = 0;
    if (setjmp(png_jmpbuf(png)) == 0)
        put_picture(picture, png, info);
    else
        error = -ENOMEM;
    png_destroy_write_struct(&png, &info);
    return error;
}

int
indexed_png_write(const struct indexed_png *picture, int fd)
{
    struct text_stream file;
    int error = text_open(&file);
    if (error)
        return error;
    error = put_file(picture, file.out);
    int closed = text_close(&file);
    if (error == 0)
        error = closed;
    if (error == 0)
        error = durable_write_all(fd, file.bytes, file.size);
    free(file.bytes);
    return error;
}
