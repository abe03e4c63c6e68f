/*
 * indexed_png.c - see indexed_png.h.
 *
 * Several threads compress the picture in strips: raw deflate streams that end at a byte and are
 * joined to one zlib stream (RFC 1950), one chunk per strip. The strips depend on the size of the
 * picture only, so the file does not depend on the number of threads.
 */
#include "service/common/picture/indexed_png.h"

#include "base/durable.h"
#include "base/text.h"
#include "service/common/parallel.h"

#include <png.h>
#include <zlib.h>

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum {
    STRIPS = 8,
    UP = 2,   /* PNG filter type: difference from the row above */
    HEAD = 2, /* bytes of zlib before and after the deflated data */
    TAIL = 4,
};

struct png_strip {
    int first, end; /* rows */
    uint8_t *plain; /* per row one byte for the filter, then the row */
    size_t size;
    uLong sum;      /* its Adler-32 */
    uint8_t *bytes; /* of the chunk */
    size_t length;
};

struct png_strips {
    const struct indexed_png *picture;
    struct png_strip strip[STRIPS];
};

static int
distance(struct rgb a, struct rgb b)
{
    int red = a.r - b.r, green = a.g - b.g, blue = a.b - b.b;
    return red * red + green * green + blue * blue;
}

void
indexed_png_start(struct indexed_png *picture)
{
    for (int i = 0; i < INDEXED_PNG_GREYS; i++) {
        const uint8_t grey = (uint8_t)((255 * i + (INDEXED_PNG_GREYS - 1) / 2) / (INDEXED_PNG_GREYS - 1));
        picture->palette[i] = (struct rgb){grey, grey, grey};
    }
    picture->colors = INDEXED_PNG_GREYS;
}

uint8_t
indexed_png_grey(int level)
{
    return (uint8_t)((level * (INDEXED_PNG_GREYS - 1) + 127) / 255);
}

uint8_t
indexed_png_color(struct indexed_png *picture, struct rgb color)
{
    int nearest = INDEXED_PNG_GREYS;
    for (int i = INDEXED_PNG_GREYS; i < picture->colors; i++) {
        if (distance(picture->palette[i], color) < distance(picture->palette[nearest], color))
            nearest = i;
    }
    bool held = nearest < picture->colors && distance(picture->palette[nearest], color) == 0;
    if (held || picture->colors == INDEXED_PNG_COLORS)
        return (uint8_t)nearest;
    picture->palette[picture->colors] = color;
    return (uint8_t)picture->colors++;
}

/* Returns to setjmp(): the picture is valid, so only memory can be short. */
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

/*
 * Compresses differences from the row above with runs and Huffman codes only. Neighbours in the
 * palette are neighbours in grey, so slices become smaller than with level 6 of zlib, in a fifth of
 * the time.
 */
static int
deflate_strip(struct png_strip *strip, bool last)
{
    z_stream stream = {.next_in = strip->plain, .avail_in = (uInt)strip->size};

    if (deflateInit2(&stream, 1, Z_DEFLATED, -MAX_WBITS, MAX_MEM_LEVEL, Z_RLE) != Z_OK)
        return -ENOMEM;
    const size_t room = deflateBound(&stream, (uLong)strip->size) + 16; /* of the flush */
    strip->bytes = malloc(HEAD + room + TAIL);
    bool done = false;
    if (strip->bytes) {
        stream.next_out = strip->bytes + HEAD;
        stream.avail_out = (uInt)room;
        done = deflate(&stream, last ? Z_FINISH : Z_SYNC_FLUSH) == (last ? Z_STREAM_END : Z_OK) && stream.avail_out > 0;
    }
    strip->length = stream.total_out;
    deflateEnd(&stream);
    return done ? 0 : -ENOMEM;
}

static int
make_strip(struct png_strips *strips, int64_t at)
{
    struct png_strip *strip = &strips->strip[at];
    const struct indexed_png *picture = strips->picture;
    const size_t width = (size_t)picture->width;

    strip->first = (int)(picture->height * at / STRIPS);
    strip->end = (int)(picture->height * (at + 1) / STRIPS);
    strip->size = (size_t)(strip->end - strip->first) * (width + 1);
    strip->plain = malloc(strip->size + 1);
    if (!strip->plain)
        return -ENOMEM;
    uint8_t *plain = strip->plain;
    for (int y = strip->first; y < strip->end; y++, plain += width) {
        const uint8_t *row = picture->pixels + (size_t)y * width;
        *plain++ = UP;
        if (y == 0)
            memcpy(plain, row, width);
        for (size_t x = 0; y > 0 && x < width; x++)
            plain[x] = (uint8_t)(row[x] - row[x - width]);
    }
    strip->sum = adler32(adler32(0, NULL, 0), strip->plain, (uInt)strip->size);
    return deflate_strip(strip, at == STRIPS - 1);
}

static void
make_strips(struct parallel *loop, void *context)
{
    int64_t at;

    while (parallel_take(loop, &at))
        if (make_strip(context, at))
            parallel_fail(loop);
}

/* Writes the bytes of each chunk, with zlib's own before the first and after the last. */
static void
put_strips(const struct png_strips *strips, png_structp png)
{
    static const uint8_t head[HEAD] = {0x78, 0x01}, type[] = "IDAT";
    uLong sum = adler32(0, NULL, 0);

    for (int i = 0; i < STRIPS; i++) {
        const struct png_strip *strip = &strips->strip[i];
        uint8_t *bytes = strip->bytes + (i == 0 ? 0 : HEAD);
        size_t length = strip->length + (i == 0 ? HEAD : 0);

        sum = adler32_combine(sum, strip->sum, (z_off_t)strip->size);
        if (i == 0)
            memcpy(bytes, head, HEAD);
        for (int k = 0; i == STRIPS - 1 && k < TAIL; k++)
            bytes[length++] = (uint8_t)(sum >> (24 - 8 * k));
        png_write_chunk(png, type, bytes, length);
    }
}

static void
put_picture(const struct png_strips *strips, png_structp png, png_infop info)
{
    const struct indexed_png *picture = strips->picture;
    png_color palette[INDEXED_PNG_COLORS];

    for (int i = 0; i < picture->colors; i++) {
        const struct rgb color = picture->palette[i];
        palette[i] = (png_color){color.r, color.g, color.b};
    }
    png_set_IHDR(png, info, (png_uint_32)picture->width, (png_uint_32)picture->height, 8, PNG_COLOR_TYPE_PALETTE,
                 PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_BASE, PNG_FILTER_TYPE_BASE);
    png_set_PLTE(png, info, palette, picture->colors);
    png_write_info(png, info);
    put_strips(strips, png);
    png_write_chunk(png, (const uint8_t *)"IEND", NULL, 0);
}

static int
put_file(const struct png_strips *strips, FILE *out)
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
        put_picture(strips, png, info);
    else
        error = -ENOMEM;
    png_destroy_write_struct(&png, &info);
    return error;
}

int
indexed_png_encode(const struct indexed_png *picture, int threads, uint8_t **bytes, size_t *size)
{
    struct png_strips strips = {.picture = picture};
    struct parallel loop = {.count = STRIPS, .body = make_strips, .context = &strips};
    struct text_stream file;

    parallel_run(&loop, threads);
    int error = atomic_load(&loop.failed) ? -ENOMEM : text_open(&file);
    if (error == 0) {
        error = put_file(&strips, file.out);
        const int closed = text_close(&file);
        if (error == 0)
            error = closed;
        *bytes = (uint8_t *)file.bytes;
        *size = file.size;
        if (error)
            free(file.bytes);
    }
    for (int i = 0; i < STRIPS; i++) {
        free(strips.strip[i].plain);
        free(strips.strip[i].bytes);
    }
    return error;
}

int
indexed_png_write(const struct indexed_png *picture, int threads, int fd)
{
    uint8_t *bytes;
    size_t size;
    int error = indexed_png_encode(picture, threads, &bytes, &size);
    if (error)
        return error;
    error = durable_write_all(fd, bytes, size);
    free(bytes);
    return error;
}
