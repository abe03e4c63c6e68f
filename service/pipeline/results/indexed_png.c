/* indexed_png.c - see indexed_png.h. */
#include "service/pipeline/results/indexed_png.h"

#include "base/durable.h"
#include "service/common/file_ops.h"

#include <png.h>
#include <zlib.h>

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

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

/* libpng writes in pieces as small as an entry of the palette. */
struct target {
    int fd;
    int error;
    size_t used;
    uint8_t bytes[CHUNK];
};

static void
png_flush(struct target *target)
{
    if (target->error == 0)
        target->error = durable_write_all(target->fd, target->bytes, target->used);
    target->used = 0;
}

static void
put_bytes(png_structp png, png_bytep bytes, size_t size)
{
    struct target *target = png_get_io_ptr(png);
    while (size > 0 && target->error == 0) {
        size_t room = sizeof target->bytes - target->used, part = size < room ? size : room;
        memcpy(target->bytes + target->used, bytes, part);
        target->used += part;
        bytes += part;
        size -= part;
        if (target->used == sizeof target->bytes)
            png_flush(target);
    }
    if (target->error)
        png_error(png, "");
}

static void
flush_nothing(png_structp png)
{
    (void)png;
}

/* Back to setjmp: what failed is in the target. */
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

/* Runs and Huffman codes alone: on slices as small as level 3 of zlib, and in less time. */
static void
put_picture(const struct indexed_png *picture, png_structp png, png_infop info)
{
    png_set_compression_level(png, 1);
    png_set_compression_strategy(png, Z_RLE);
    png_set_compression_buffer_size(png, CHUNK);
    png_set_filter(png, PNG_FILTER_TYPE_BASE, PNG_FILTER_NONE);
    png_set_IHDR(png, info, (png_uint_32)picture->width, (png_uint_32)picture->height, 8,
                 PNG_COLOR_TYPE_PALETTE, PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_BASE,
                 PNG_FILTER_TYPE_BASE);
    put_palette(picture, png, info);
    png_write_info(png, info);
    for (int y = 0; y < picture->height; y++)
        png_write_row(png, picture->pixels + (size_t)y * (size_t)picture->width);
    png_write_end(png, info);
}

static void
write_to(const struct indexed_png *picture, struct target *target)
{
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, png_give_up, keep_quiet);
    png_infop info = png ? png_create_info_struct(png) : NULL;
    if (!info) {
        png_destroy_write_struct(&png, NULL);
        target->error = -ENOMEM;
        return;
    }
    png_set_write_fn(png, target, put_bytes, flush_nothing);
    if (setjmp(png_jmpbuf(png)) == 0)
        put_picture(picture, png, info);
    else if (target->error == 0)
        target->error = -ENOMEM; /* nothing else is wrong with the picture */
    png_destroy_write_struct(&png, &info);
    png_flush(target);
}

int
indexed_png_write(const struct indexed_png *picture, int fd)
{
    struct target *target = malloc(sizeof *target);
    if (!target)
        return -ENOMEM;
    target->fd = fd;
    target->error = 0;
    target->used = 0;
    write_to(picture, target);
    int error = target->error;
    free(target);
    return error;
}
