/* preview.c - see preview.h. */
#include "preview.h"

#include "file_ops.h"
#include "labels.h"

#include <png.h>

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TILES       12
#define TILES_A_ROW 4
#define TILE_PIXELS 288 /* of the longer side */
#define GAP         4
#define MAX_SAMPLES 8 /* a side, within one pixel of a tile */

struct sheet {
    const struct preview_request *request;
    int32_t slices[TILES];
    int tile_count, across, down;
    int tile_width, tile_height;
    float *values; /* real-world values, tile by tile */
    double low, high;
    uint8_t *rgb;
    int width, height;
};

/* ------------------------------------------------------------------------------ choosing ---- */

static bool
slice_has(const struct preview_request *request, int32_t z)
{
    int64_t rows = request->stack->rows;
    for (size_t i = 0; i < request->segment_count; i++) {
        const struct kernels_mask *mask = request->segments[i].mask;
        const uint64_t *words = mask->bits + z * rows * mask->words_per_row;
        for (int64_t w = 0; w < rows * mask->words_per_row; w++) {
            if (words[w])
                return true;
        }
    }
    return false;
}

/* Spreads the tiles over the slices that hold a segment; over all when none does. */
static void
choose_slices(struct sheet *sheet)
{
    const struct preview_request *request = sheet->request;
    int32_t first = 0, last = request->stack->plane_count - 1;
    while (first <= last && !slice_has(request, first))
        first++;
    if (first > last)
        first = 0;
    else
        while (!slice_has(request, last))
            last--;
    int32_t span = last - first + 1;
    sheet->tile_count = span < TILES ? span : TILES;
    for (int i = 0; i < sheet->tile_count; i++)
        sheet->slices[i] = first + (int32_t)((2 * (int64_t)i + 1) * span / (2 * sheet->tile_count));
}

static void
lay_out(struct sheet *sheet)
{
    const struct geometry_stack *stack = sheet->request->stack;
    double width = stack->columns * (stack->has_geometry ? stack->spacing[0] : 1);
    double height = stack->rows * (stack->has_geometry ? stack->spacing[1] : 1);
    double scale = TILE_PIXELS / (width > height ? width : height);
    sheet->tile_width = (int)fmax(1, round(width * scale));
    sheet->tile_height = (int)fmax(1, round(height * scale));
    sheet->across = sheet->tile_count < TILES_A_ROW ? sheet->tile_count : TILES_A_ROW;
    sheet->down = (sheet->tile_count + sheet->across - 1) / sheet->across;
    sheet->width = sheet->across * (sheet->tile_width + GAP) + GAP;
    sheet->height = sheet->down * (sheet->tile_height + GAP) + GAP;
}

/* ------------------------------------------------------------------------------ sampling ---- */

static double
stored_value(const struct preview_request *request, int64_t x, int64_t y, int64_t z)
{
    const struct geometry_stack *stack = request->stack;
    int64_t at = (z * stack->rows + y) * stack->columns + x;
    switch (stack->pixel) {
    case DICOM_UINT8:
        return ((const uint8_t *)request->voxels)[at];
    case DICOM_INT16:
        return ((const int16_t *)request->voxels)[at];
    case DICOM_UINT16:
        break;
    }
    return ((const uint16_t *)request->voxels)[at];
}

/* Linear between voxel centres, constant beyond the outermost. */
static double
interpolated(const struct preview_request *request, double x, double y, int64_t z)
{
    const struct geometry_stack *stack = request->stack;
    x = fmin(fmax(x, 0), stack->columns - 1);
    y = fmin(fmax(y, 0), stack->rows - 1);
    int64_t x0 = (int64_t)x, y0 = (int64_t)y;
    int64_t x1 = x0 + 1 < stack->columns ? x0 + 1 : x0;
    int64_t y1 = y0 + 1 < stack->rows ? y0 + 1 : y0;
    double fx = x - (double)x0, fy = y - (double)y0;
    double top =
        (1 - fx) * stored_value(request, x0, y0, z) + fx * stored_value(request, x1, y0, z);
    double bottom =
        (1 - fx) * stored_value(request, x0, y1, z) + fx * stored_value(request, x1, y1, z);
    return (1 - fy) * top + fy * bottom;
}

/* How many samples a side make one pixel of `tile` out of `source` voxels without gaps. */
static int
samples_for(int source, int tile)
{
    int samples = (source + tile - 1) / tile;
    return samples < MAX_SAMPLES ? samples : MAX_SAMPLES;
}

static float *
tile_values(const struct sheet *sheet, int tile)
{
    return sheet->values + (size_t)tile * (size_t)sheet->tile_width * (size_t)sheet->tile_height;
}

static void
sample_tile(struct sheet *sheet, int tile)
{
    const struct preview_request *request = sheet->request;
    const struct geometry_stack *stack = request->stack;
    int32_t z = sheet->slices[tile];
    double step_x = (double)stack->columns / sheet->tile_width;
    double step_y = (double)stack->rows / sheet->tile_height;
    int across = samples_for(stack->columns, sheet->tile_width);
    int down = samples_for(stack->rows, sheet->tile_height);
    double slope, intercept;
    labels_rescale(request->instances, &stack->planes[z], &slope, &intercept);

    float *value = tile_values(sheet, tile);
    for (int y = 0; y < sheet->tile_height; y++) {
        for (int x = 0; x < sheet->tile_width; x++) {
            double sum = 0;
            for (int j = 0; j < down; j++) {
                double source_y = (y + (j + 0.5) / down) * step_y - 0.5;
                for (int i = 0; i < across; i++)
                    sum +=
                        interpolated(request, (x + (i + 0.5) / across) * step_x - 0.5, source_y, z);
            }
            *value++ = (float)(slope * sum / (across * down) + intercept);
        }
    }
}

/* Is the voxel under the centre of this pixel of the tile in the segment? False off the tile. */
static bool
covered(const struct sheet *sheet, const struct kernels_mask *mask, int x, int y, int32_t z)
{
    const struct geometry_stack *stack = sheet->request->stack;
    if (x < 0 || y < 0 || x >= sheet->tile_width || y >= sheet->tile_height)
        return false;
    int64_t column = (2 * (int64_t)x + 1) * stack->columns / (2 * sheet->tile_width);
    int64_t row = (2 * (int64_t)y + 1) * stack->rows / (2 * sheet->tile_height);
    uint64_t word =
        mask->bits[((int64_t)z * stack->rows + row) * mask->words_per_row + column / 64];
    return word >> (column % 64) & 1;
}

/* --------------------------------------------------------------------------- grey window ---- */

static int
by_value(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

struct spread {
    double low, high;
};

/* The 1st and 99.5th percentile; sorts the values. */
static struct spread
percentiles(float *values, size_t count)
{
    qsort(values, count, sizeof *values, by_value);
    return (struct spread){values[count / 100], values[count - 1 - count / 200]};
}

static bool
in_any_segment(const struct sheet *sheet, int x, int y, int32_t z)
{
    for (size_t i = 0; i < sheet->request->segment_count; i++) {
        if (covered(sheet, sheet->request->segments[i].mask, x, y, z))
            return true;
    }
    return false;
}

/*
 * The window is that of the segmented tissue, widened on both sides by one and a half times its own
 * width, so that it and its neighbours can be told apart (a brain is a twentieth of what a CT
 * shows), but no wider than the picture.
 */
static int
choose_window(struct sheet *sheet)
{
    enum { STRIDE = 3 };

    size_t most = (size_t)sheet->tile_count * (size_t)(sheet->tile_width / STRIDE + 1) *
                  (size_t)(sheet->tile_height / STRIDE + 1);
    float *all = malloc(2 * most * sizeof *all), *inside = all ? all + most : NULL;
    size_t all_count = 0, inside_count = 0;
    if (!all)
        return -ENOMEM;
    for (int tile = 0; tile < sheet->tile_count; tile++) {
        const float *values = tile_values(sheet, tile);
        for (int y = 0; y < sheet->tile_height; y += STRIDE) {
            for (int x = 0; x < sheet->tile_width; x += STRIDE) {
                float value = values[y * sheet->tile_width + x];
                all[all_count++] = value;
                if (in_any_segment(sheet, x, y, sheet->slices[tile]))
                    inside[inside_count++] = value;
            }
        }
    }
    struct spread window = percentiles(all, all_count);
    if (inside_count > 0) {
        struct spread tissue = percentiles(inside, inside_count);
        double margin = 1.5 * (tissue.high - tissue.low);
        window.low = fmax(window.low, tissue.low - margin);
        window.high = fmin(window.high, tissue.high + margin);
    }
    sheet->low = window.low;
    sheet->high = window.high > window.low ? window.high : window.low + 1;
    free(all);
    return 0;
}

/* ------------------------------------------------------------------------------- drawing ---- */

struct pixel {
    uint8_t r, g, b;
};

static void
set_pixel(struct sheet *sheet, int x, int y, struct pixel color)
{
    uint8_t *at = sheet->rgb + 3 * ((size_t)y * (size_t)sheet->width + (size_t)x);
    at[0] = color.r;
    at[1] = color.g;
    at[2] = color.b;
}

static uint8_t
to_byte(double value)
{
    return (uint8_t)lround(255 * fmin(fmax(value, 0), 1));
}

static void
draw_grey(struct sheet *sheet, int tile, int left, int top)
{
    const struct preview_request *request = sheet->request;
    const struct geometry_plane *plane = &request->stack->planes[sheet->slices[tile]];
    bool inverted = request->instances[plane->instance]->monochrome1;
    const float *value = tile_values(sheet, tile);
    for (int y = 0; y < sheet->tile_height; y++) {
        for (int x = 0; x < sheet->tile_width; x++) {
            double level = (*value++ - sheet->low) / (sheet->high - sheet->low);
            uint8_t grey = to_byte(inverted ? 1 - level : level);
            set_pixel(sheet, left + x, top + y, (struct pixel){grey, grey, grey});
        }
    }
}

static void
draw_outline(struct sheet *sheet, int tile, int left, int top,
             const struct preview_segment *segment)
{
    struct pixel color = {to_byte(segment->color[0]), to_byte(segment->color[1]),
                          to_byte(segment->color[2])};
    int32_t z = sheet->slices[tile];
    for (int y = 0; y < sheet->tile_height; y++) {
        for (int x = 0; x < sheet->tile_width; x++) {
            if (covered(sheet, segment->mask, x, y, z) &&
                !(covered(sheet, segment->mask, x - 1, y, z) &&
                  covered(sheet, segment->mask, x + 1, y, z) &&
                  covered(sheet, segment->mask, x, y - 1, z) &&
                  covered(sheet, segment->mask, x, y + 1, z)))
                set_pixel(sheet, left + x, top + y, color);
        }
    }
}

/* Digits of 5 x 7 dots, a byte a row, the leftmost dot in bit 4. */
static const uint8_t digits[10][7] = {
    {0x0e, 0x11, 0x13, 0x15, 0x19, 0x11, 0x0e}, {0x04, 0x0c, 0x04, 0x04, 0x04, 0x04, 0x0e},
    {0x0e, 0x11, 0x01, 0x02, 0x04, 0x08, 0x1f}, {0x1f, 0x02, 0x04, 0x02, 0x01, 0x11, 0x0e},
    {0x02, 0x06, 0x0a, 0x12, 0x1f, 0x02, 0x02}, {0x1f, 0x10, 0x1e, 0x01, 0x01, 0x11, 0x0e},
    {0x06, 0x08, 0x10, 0x1e, 0x11, 0x11, 0x0e}, {0x1f, 0x01, 0x02, 0x04, 0x08, 0x08, 0x08},
    {0x0e, 0x11, 0x11, 0x0e, 0x11, 0x11, 0x0e}, {0x0e, 0x11, 0x11, 0x0f, 0x01, 0x02, 0x0c},
};

static void
draw_digit(struct sheet *sheet, int digit, int left, int top, struct pixel color)
{
    enum { DOT = 2 };

    for (int y = 0; y < 7 * DOT; y++) {
        for (int x = 0; x < 5 * DOT; x++) {
            if ((digits[digit][y / DOT] >> (4 - x / DOT) & 1) && left + x < sheet->width &&
                top + y < sheet->height)
                set_pixel(sheet, left + x, top + y, color);
        }
    }
}

/* White on a black shadow, so that it can be read on any grey. */
static void
draw_number(struct sheet *sheet, int number, int left, int top)
{
    char text[16];
    snprintf(text, sizeof text, "%d", number);
    for (int i = 0; text[i]; i++) {
        int x = left + 12 * i;
        draw_digit(sheet, text[i] - '0', x + 1, top + 1, (struct pixel){0, 0, 0});
        draw_digit(sheet, text[i] - '0', x, top, (struct pixel){235, 235, 235});
    }
}

static void
draw(struct sheet *sheet)
{
    memset(sheet->rgb, 24, 3 * (size_t)sheet->width * (size_t)sheet->height);
    for (int tile = 0; tile < sheet->tile_count; tile++) {
        int left = GAP + tile % sheet->across * (sheet->tile_width + GAP);
        int top = GAP + tile / sheet->across * (sheet->tile_height + GAP);
        draw_grey(sheet, tile, left, top);
        for (size_t i = 0; i < sheet->request->segment_count; i++)
            draw_outline(sheet, tile, left, top, &sheet->request->segments[i]);
        draw_number(sheet, sheet->slices[tile] + 1, left + 6, top + 6);
    }
}

/* ------------------------------------------------------------------------------- writing ---- */

static int
write_png(const struct sheet *sheet, int fd)
{
    png_image image = {.version = PNG_IMAGE_VERSION,
                       .width = (png_uint_32)sheet->width,
                       .height = (png_uint_32)sheet->height,
                       .format = PNG_FORMAT_RGB,
                       .flags = PNG_IMAGE_FLAG_FAST};
    png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(image);
    void *bytes = malloc(size);
    if (!bytes)
        return -ENOMEM;
    int error = 0;
    /* It fails for want of memory only: the buffer is as large as any PNG of this size. */
    if (!png_image_write_to_memory(&image, bytes, &size, 0, sheet->rgb, 0, NULL))
        error = -ENOMEM;
    if (error == 0)
        error = file_write_all(fd, bytes, size);
    free(bytes);
    return error;
}

int
preview_write(const struct preview_request *request, int fd)
{
    struct sheet sheet = {.request = request};
    choose_slices(&sheet);
    lay_out(&sheet);
    sheet.values = malloc(sizeof *sheet.values * (size_t)sheet.tile_count *
                          (size_t)sheet.tile_width * (size_t)sheet.tile_height);
    sheet.rgb = malloc(3 * (size_t)sheet.width * (size_t)sheet.height);
    int error = sheet.values && sheet.rgb ? 0 : -ENOMEM;
    for (int tile = 0; tile < sheet.tile_count && error == 0; tile++)
        sample_tile(&sheet, tile);
    if (error == 0)
        error = choose_window(&sheet);
    if (error == 0) {
        draw(&sheet);
        error = write_png(&sheet, fd);
    }
    free(sheet.values);
    free(sheet.rgb);
    return error;
}
