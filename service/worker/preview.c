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

/* A row of stored values. */
static void
read_row(const struct preview_request *request, int64_t y, int64_t z, double *row)
{
    const struct geometry_stack *stack = request->stack;
    int64_t at = (z * stack->rows + y) * stack->columns;
    switch (stack->pixel) {
    case DICOM_UINT8:
        for (int64_t x = 0; x < stack->columns; x++)
            row[x] = ((const uint8_t *)request->voxels)[at + x];
        break;
    case DICOM_INT16:
        for (int64_t x = 0; x < stack->columns; x++)
            row[x] = ((const int16_t *)request->voxels)[at + x];
        break;
    case DICOM_UINT16:
        for (int64_t x = 0; x < stack->columns; x++)
            row[x] = ((const uint16_t *)request->voxels)[at + x];
        break;
    }
}

/* A sample between two voxels of a row or column: linear between their centres, constant beyond the
 * outermost. */
struct tap {
    int first, second;
    double part; /* of the second */
};

/* How many samples a side make one pixel of `tile` out of `source` voxels without gaps. */
static int
samples_for(int source, int tile)
{
    int samples = (source + tile - 1) / tile;
    return samples < MAX_SAMPLES ? samples : MAX_SAMPLES;
}

/* Sample i of pixel p of a tile is tap p * samples + i. NULL: no memory. */
static struct tap *
make_taps(int source, int tile, int samples)
{
    struct tap *taps = malloc((size_t)tile * (size_t)samples * sizeof *taps);
    double step = (double)source / tile;
    for (int i = 0; taps && i < tile * samples; i++) {
        double at = (i / samples + (i % samples + 0.5) / samples) * step - 0.5;
        at = fmin(fmax(at, 0), source - 1);
        int first = (int)at;
        taps[i] = (struct tap){first, first + 1 < source ? first + 1 : first, at - first};
    }
    return taps;
}

/* What all tiles are sampled with. */
struct sampler {
    struct tap *columns, *rows;
    int across, down;      /* samples of a pixel */
    double *upper, *lower; /* the two rows of voxels around a sample */
    double *sums;          /* one a pixel of a tile's row */
};

static void
sampler_free(struct sampler *sampler)
{
    free(sampler->columns);
    free(sampler->rows);
    free(sampler->upper);
    free(sampler->lower);
    free(sampler->sums);
}

static int
sampler_make(const struct sheet *sheet, struct sampler *sampler)
{
    const struct geometry_stack *stack = sheet->request->stack;
    sampler->across = samples_for(stack->columns, sheet->tile_width);
    sampler->down = samples_for(stack->rows, sheet->tile_height);
    sampler->columns = make_taps(stack->columns, sheet->tile_width, sampler->across);
    sampler->rows = make_taps(stack->rows, sheet->tile_height, sampler->down);
    sampler->upper = malloc((size_t)stack->columns * sizeof *sampler->upper);
    sampler->lower = malloc((size_t)stack->columns * sizeof *sampler->lower);
    sampler->sums = malloc((size_t)sheet->tile_width * sizeof *sampler->sums);
    return sampler->columns && sampler->rows && sampler->upper && sampler->lower && sampler->sums
               ? 0
               : -ENOMEM;
}

/* Adds one line of samples to the sums of the pixels it lies in. */
static void
add_line(const struct sampler *sampler, int width, double part)
{
    const struct tap *tap = sampler->columns;
    const double *upper = sampler->upper, *lower = sampler->lower;
    for (int x = 0; x < width; x++) {
        double sum = sampler->sums[x];
        for (int i = 0; i < sampler->across; i++, tap++) {
            double above = (1 - tap->part) * upper[tap->first] + tap->part * upper[tap->second];
            double below = (1 - tap->part) * lower[tap->first] + tap->part * lower[tap->second];
            sum += (1 - part) * above + part * below;
        }
        sampler->sums[x] = sum;
    }
}

static float *
tile_values(const struct sheet *sheet, int tile)
{
    return sheet->values + (size_t)tile * (size_t)sheet->tile_width * (size_t)sheet->tile_height;
}

static void
sample_tile(struct sheet *sheet, const struct sampler *sampler, int tile)
{
    const struct preview_request *request = sheet->request;
    const struct geometry_stack *stack = request->stack;
    int32_t z = sheet->slices[tile];
    const struct tap *tap = sampler->rows;
    double slope, intercept;
    labels_rescale(request->instances, &stack->planes[z], &slope, &intercept);

    float *value = tile_values(sheet, tile);
    for (int y = 0; y < sheet->tile_height; y++) {
        memset(sampler->sums, 0, (size_t)sheet->tile_width * sizeof *sampler->sums);
        for (int j = 0; j < sampler->down; j++, tap++) {
            read_row(request, tap->first, z, sampler->upper);
            read_row(request, tap->second, z, sampler->lower);
            add_line(sampler, sheet->tile_width, tap->part);
        }
        for (int x = 0; x < sheet->tile_width; x++)
            *value++ =
                (float)(slope * sampler->sums[x] / (sampler->across * sampler->down) + intercept);
    }
}

static int
sample_tiles(struct sheet *sheet)
{
    struct sampler sampler = {0};
    int error = sampler_make(sheet, &sampler);
    for (int tile = 0; tile < sheet->tile_count && error == 0; tile++)
        sample_tile(sheet, &sampler, tile);
    sampler_free(&sampler);
    return error;
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

/* The value that would stand at `at` if all were sorted (Hoare's selection); reorders them. */
static float
select_value(float *values, size_t count, size_t at)
{
    ptrdiff_t low = 0, high = (ptrdiff_t)count - 1, wanted = (ptrdiff_t)at;
    while (low < high) {
        float pivot = values[low + (high - low) / 2];
        ptrdiff_t i = low, j = high;
        while (i <= j) {
            while (values[i] < pivot)
                i++;
            while (pivot < values[j])
                j--;
            if (i > j)
                break;
            float swapped = values[i];
            values[i++] = values[j];
            values[j--] = swapped;
        }
        if (wanted <= j)
            high = j;
        else if (wanted >= i)
            low = i;
        else
            break;
    }
    return values[at];
}

struct spread {
    double low, high;
};

/* The 1st and 99.5th percentile; reorders the values. */
static struct spread
percentiles(float *values, size_t count)
{
    float low = select_value(values, count, count / 100);
    return (struct spread){low, select_value(values, count, count - 1 - count / 200)};
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
    return (uint8_t)(255 * (value < 0 ? 0 : value > 1 ? 1 : value) + 0.5);
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
    if (error == 0)
        error = sample_tiles(&sheet);
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
