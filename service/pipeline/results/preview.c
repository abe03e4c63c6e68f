/*
 * preview.c - see preview.h.
 *
 * The palette has 224 greys and up to 32 colours. Tiles are sampled and drawn side by side by
 * several threads; each works in the part of the sheet's memory that is its tile's own.
 */
#include "service/pipeline/results/preview.h"

#include "service/common/parallel.h"
#include "service/pipeline/results/indexed_png.h"
#include "service/pipeline/results/resample.h"
#include "service/pipeline/volume.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TILES       12
#define TILES_A_ROW 4
#define TILE_PIXELS 288 /* of the longer side */
#define GAP         4
#define GREYS       224 /* of the palette, from black on */

struct sheet {
    const struct preview_request *request;
    int32_t slices[TILES];
    int tile_count, across, down;
    int tile_width, tile_height;
    struct resampler resampler;
    float *scratch;          /* the resampler's, tile by tile */
    float *values;           /* real-world values, tile by tile */
    int32_t *columns, *rows; /* of the voxel under the centre of a tile's pixel */
    uint8_t *cover;          /* a tile's pixels that a segment covers, with a margin of one */
    double low, high;
    struct indexed_png picture;
    uint8_t background, shadow, digit; /* entries of its palette */
    uint8_t *colors;                   /* likewise, one per segment */
};

/* ------------------------------------------------------------------------------ choosing ---- */

static bool
slice_has(const struct preview_request *request, int32_t z)
{
    int64_t rows = request->stack->rows;
    for (size_t i = 0; i < request->segment_count; i++) {
        const struct image_mask *mask = request->segments[i].mask;
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
preview_lay_out(struct sheet *sheet)
{
    const struct geometry_stack *stack = sheet->request->stack;
    double width = stack->columns * (stack->has_geometry ? stack->spacing[0] : 1);
    double height = stack->rows * (stack->has_geometry ? stack->spacing[1] : 1);
    double scale = TILE_PIXELS / (width > height ? width : height);
    sheet->tile_width = (int)fmax(1, round(width * scale));
    sheet->tile_height = (int)fmax(1, round(height * scale));
    sheet->across = sheet->tile_count < TILES_A_ROW ? sheet->tile_count : TILES_A_ROW;
    sheet->down = (sheet->tile_count + sheet->across - 1) / sheet->across;
    sheet->picture.width = sheet->across * (sheet->tile_width + GAP) + GAP;
    sheet->picture.height = sheet->down * (sheet->tile_height + GAP) + GAP;
}

/* ------------------------------------------------------------------------------ sampling ---- */

static size_t
tile_pixels(const struct sheet *sheet)
{
    return (size_t)sheet->tile_width * (size_t)sheet->tile_height;
}

static float *
tile_values(const struct sheet *sheet, int tile)
{
    return sheet->values + (size_t)tile * tile_pixels(sheet);
}

static void
sample_tile(struct sheet *sheet, int tile)
{
    const struct preview_request *request = sheet->request;
    const struct geometry_stack *stack = request->stack;
    int32_t z = sheet->slices[tile];
    size_t slice_bytes =
        (size_t)stack->rows * (size_t)stack->columns * image_pixel_size(stack->pixel);
    float *scratch = sheet->scratch + (size_t)tile * resampler_scratch(&sheet->resampler);
    float *values = tile_values(sheet, tile);
    resample_slice(&sheet->resampler, (const char *)request->voxels + (size_t)z * slice_bytes,
                   stack->pixel, scratch, values);
    const struct image_rescale rescale = volume_rescale(request->instances, &stack->planes[z]);
    for (size_t i = 0; i < tile_pixels(sheet); i++)
        values[i] = (float)(rescale.slope * values[i] + rescale.intercept);
}

static void
find_voxels(int32_t voxels, int pixels, int32_t *under)
{
    for (int i = 0; i < pixels; i++)
        under[i] = (int32_t)((2 * (int64_t)i + 1) * voxels / (2 * pixels));
}

/* The row of a mask under the pixels of a tile's row. */
static const uint64_t *
mask_row(const struct sheet *sheet, const struct image_mask *mask, int y, int32_t z)
{
    int64_t row = (int64_t)z * sheet->request->stack->rows + sheet->rows[y];
    return mask->bits + row * mask->words_per_row;
}

static bool
row_has(const struct sheet *sheet, const uint64_t *row, int x)
{
    int32_t column = sheet->columns[x];
    return row[column / 64] >> (column % 64) & 1;
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
        if (row_has(sheet, mask_row(sheet, sheet->request->segments[i].mask, y, z), x))
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

/* ------------------------------------------------------------------------------- palette ---- */

/* 0 .. 1 as 0 .. steps. */
static uint8_t
to_step(double value, int steps)
{
    return (uint8_t)(steps * (value < 0 ? 0 : value > 1 ? 1 : value) + 0.5);
}

static uint8_t
color_entry(struct sheet *sheet, struct rgb color)
{
    return indexed_png_color(&sheet->picture, GREYS, color);
}

static void
make_palette(struct sheet *sheet)
{
    for (int i = 0; i < GREYS; i++) {
        uint8_t grey = (uint8_t)((255 * i + (GREYS - 1) / 2) / (GREYS - 1));
        sheet->picture.palette[i] = (struct rgb){grey, grey, grey};
    }
    sheet->picture.colors = GREYS;
    sheet->background = color_entry(sheet, (struct rgb){24, 24, 24});
    sheet->shadow = color_entry(sheet, (struct rgb){0, 0, 0});
    sheet->digit = color_entry(sheet, (struct rgb){235, 235, 235});
    for (size_t i = 0; i < sheet->request->segment_count; i++) {
        const double *rgb = sheet->request->segments[i].color;
        struct rgb color = {to_step(rgb[0], 255), to_step(rgb[1], 255), to_step(rgb[2], 255)};
        sheet->colors[i] = color_entry(sheet, color);
    }
}

/* ------------------------------------------------------------------------------- drawing ---- */

static uint8_t *
entry_at(const struct sheet *sheet, int x, int y)
{
    return sheet->picture.pixels + (size_t)y * (size_t)sheet->picture.width + (size_t)x;
}

static void
draw_grey(struct sheet *sheet, int tile, int left, int top)
{
    const struct preview_request *request = sheet->request;
    const struct geometry_plane *plane = &request->stack->planes[sheet->slices[tile]];
    bool inverted = request->instances[plane->instance]->monochrome1;
    double scale = 1 / (sheet->high - sheet->low);
    const float *value = tile_values(sheet, tile);
    for (int y = 0; y < sheet->tile_height; y++) {
        uint8_t *entry = entry_at(sheet, left, top + y);
        for (int x = 0; x < sheet->tile_width; x++) {
            double level = (*value++ - sheet->low) * scale;
            entry[x] = to_step(inverted ? 1 - level : level, GREYS - 1);
        }
    }
}

/* A margin of pixels that are not covered runs around. */
static uint8_t *
mark_cover(struct sheet *sheet, int tile, const struct image_mask *mask)
{
    size_t pitch = (size_t)sheet->tile_width + 2, size = pitch * ((size_t)sheet->tile_height + 2);
    uint8_t *cover = sheet->cover + (size_t)tile * size;
    memset(cover, 0, size);
    for (int y = 0; y < sheet->tile_height; y++) {
        const uint64_t *row = mask_row(sheet, mask, y, sheet->slices[tile]);
        uint8_t *at = cover + (size_t)(y + 1) * pitch + 1;
        for (int x = 0; x < sheet->tile_width; x++)
            at[x] = row_has(sheet, row, x);
    }
    return cover;
}

/* Pixels in the segment that have a neighbour outside. */
static void
draw_outline(struct sheet *sheet, int tile, int left, int top,
             const struct preview_segment *segment, uint8_t color)
{
    ptrdiff_t pitch = sheet->tile_width + 2;
    const uint8_t *at = mark_cover(sheet, tile, segment->mask) + pitch + 1;
    for (int y = 0; y < sheet->tile_height; y++, at += pitch) {
        uint8_t *entry = entry_at(sheet, left, top + y);
        for (int x = 0; x < sheet->tile_width; x++) {
            if (at[x] & !(at[x - 1] & at[x + 1] & at[x - pitch] & at[x + pitch]))
                entry[x] = color;
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
draw_digit(struct sheet *sheet, int digit, int left, int top, uint8_t color)
{
    enum { DOT = 2 };

    for (int y = 0; y < 7 * DOT; y++) {
        for (int x = 0; x < 5 * DOT; x++) {
            if ((digits[digit][y / DOT] >> (4 - x / DOT) & 1) && left + x < sheet->picture.width &&
                top + y < sheet->picture.height)
                *entry_at(sheet, left + x, top + y) = color;
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
        draw_digit(sheet, text[i] - '0', x + 1, top + 1, sheet->shadow);
        draw_digit(sheet, text[i] - '0', x, top, sheet->digit);
    }
}

static void
draw_tile(struct sheet *sheet, int tile)
{
    int left = GAP + tile % sheet->across * (sheet->tile_width + GAP);
    int top = GAP + tile / sheet->across * (sheet->tile_height + GAP);
    draw_grey(sheet, tile, left, top);
    for (size_t i = 0; i < sheet->request->segment_count; i++) {
        const struct preview_segment *segment = &sheet->request->segments[i];
        draw_outline(sheet, tile, left, top, segment, sheet->colors[i]);
    }
    draw_number(sheet, sheet->slices[tile] + 1, left + 6, top + 6);
}

/* ------------------------------------------------------------------------ tile by tile ------ */

struct preview_tiles {
    struct sheet *sheet;
    void (*work)(struct sheet *sheet, int tile);
};

static void
take_tiles(struct parallel *loop, void *context)
{
    const struct preview_tiles *tiles = context;
    int64_t tile;
    while (parallel_take(loop, &tile))
        tiles->work(tiles->sheet, (int)tile);
}

static void
for_each_tile(struct sheet *sheet, void (*work)(struct sheet *sheet, int tile))
{
    struct preview_tiles tiles = {sheet, work};
    struct parallel loop = {.count = sheet->tile_count, .body = take_tiles, .context = &tiles};
    parallel_run(&loop, sheet->request->threads);
}

/* --------------------------------------------------------------------------------- whole ---- */

static int
preview_reserve(struct sheet *sheet)
{
    const struct geometry_stack *stack = sheet->request->stack;
    size_t tiles = (size_t)sheet->tile_count;
    size_t width = (size_t)sheet->tile_width, height = (size_t)sheet->tile_height;
    int error = resampler_make(stack->columns, stack->rows, sheet->tile_width, sheet->tile_height,
                               &sheet->resampler);
    sheet->scratch = malloc(tiles * resampler_scratch(&sheet->resampler) * sizeof *sheet->scratch);
    sheet->values = malloc(tiles * width * height * sizeof *sheet->values);
    sheet->columns = malloc(width * sizeof *sheet->columns);
    sheet->rows = malloc(height * sizeof *sheet->rows);
    sheet->cover = malloc(tiles * (width + 2) * (height + 2));
    sheet->colors = malloc(sheet->request->segment_count + 1);
    sheet->picture.pixels = malloc((size_t)sheet->picture.width * (size_t)sheet->picture.height);
    return error || !sheet->scratch || !sheet->values || !sheet->columns || !sheet->rows ||
                   !sheet->cover || !sheet->colors || !sheet->picture.pixels
               ? -ENOMEM
               : 0;
}

static void
preview_release(struct sheet *sheet)
{
    resampler_free(&sheet->resampler);
    free(sheet->scratch);
    free(sheet->values);
    free(sheet->columns);
    free(sheet->rows);
    free(sheet->cover);
    free(sheet->colors);
    free(sheet->picture.pixels);
}

static int
draw_sheet(struct sheet *sheet)
{
    const struct preview_request *request = sheet->request;
    find_voxels(request->stack->columns, sheet->tile_width, sheet->columns);
    find_voxels(request->stack->rows, sheet->tile_height, sheet->rows);
    for_each_tile(sheet, sample_tile);
    int error = choose_window(sheet);
    if (error)
        return error;
    make_palette(sheet);
    memset(sheet->picture.pixels, sheet->background,
           (size_t)sheet->picture.width * (size_t)sheet->picture.height);
    for_each_tile(sheet, draw_tile);
    return 0;
}

int
preview_write(const struct preview_request *request, int fd)
{
    struct sheet sheet = {.request = request};
    choose_slices(&sheet);
    preview_lay_out(&sheet);
    int error = preview_reserve(&sheet);
    if (error == 0)
        error = draw_sheet(&sheet);
    if (error == 0)
        error = indexed_png_write(&sheet.picture, fd);
    preview_release(&sheet);
    return error;
}
