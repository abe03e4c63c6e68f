/* web_plane_png.c - a plane as a picture, for browsers without scripts. See web_planes.h. */
#include "service/web/viewer/web_planes.h"

#include "service/common/picture/indexed_png.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LONGER_MIN = 384, LONGER_MAX = 768 }; /* pixels of the longer side */

/* A pixel of the picture lies between two of the plane. */
struct plane_mix {
    int32_t first, second, nearest;
    float of_second;
};

struct plane_picture {
    const struct slices_plane *plane;
    struct indexed_png png;
    float *grey; /* of the plane, in steps of the palette */
    struct plane_mix *across, *down;
    uint8_t *cover; /* of a layer, with a margin of one pixel */
};

static void
plane_fill_mix(struct plane_mix *mix, int32_t pixels, int32_t voxels)
{
    for (int32_t i = 0; i < pixels; i++) {
        const double at = (i + 0.5) * voxels / pixels - 0.5;
        const double low = floor(at);
        const int32_t first = low < 0 ? 0 : (int32_t)low, second = low + 1 > voxels - 1 ? voxels - 1 : (int32_t)low + 1;
        mix[i] = (struct plane_mix){first, second, (int32_t)((2 * (int64_t)i + 1) * voxels / (2 * (int64_t)pixels)),
                                    (float)(at - low)};
    }
}

/* Converts stored values to greys. */
static void
plane_fill_grey(const struct slices_volume *volume, const struct slices_layout *layout, int32_t at,
                struct plane_picture *picture)
{
    const struct slices_plane *plane = picture->plane;
    int32_t count;
    int along;
    const struct image_rescale *rescales = web_planes_rescales(volume, layout, at, &count, &along);
    const bool reversed = along == 1 ? layout->from_below : layout->from_right;
    const double low = volume->window[volume->monochrome1 ? 1 : 0], high = volume->window[volume->monochrome1 ? 0 : 1];
    const double steps = (INDEXED_PNG_GREYS - 1) / (high - low);
    for (int32_t y = 0; y < plane->rows; y++) {
        for (int32_t x = 0; x < plane->columns; x++) {
            const int64_t i = (int64_t)y * plane->columns + x;
            const int32_t number = along == 0 ? 0 : along == 1 ? y : x;
            const struct image_rescale *rescale = &rescales[reversed && along ? count - 1 - number : number];
            const double value =
                rescale->slope *
                    image_value(plane->values, volume->pixel == IMAGE_INT16 ? IMAGE_INT16 : IMAGE_UINT16, i) +
                rescale->intercept;
            const double level = (value - low) * steps;
            picture->grey[i] = (float)(level < 0 ? 0 : level > INDEXED_PNG_GREYS - 1 ? INDEXED_PNG_GREYS - 1 : level);
        }
    }
}

static void
plane_draw_grey(struct plane_picture *picture)
{
    const int width = picture->png.width;
    for (int y = 0; y < picture->png.height; y++) {
        const struct plane_mix *down = &picture->down[y];
        const float *above = picture->grey + (int64_t)down->first * picture->plane->columns;
        const float *below = picture->grey + (int64_t)down->second * picture->plane->columns;
        for (int x = 0; x < width; x++) {
            const struct plane_mix *across = &picture->across[x];
            const float upper =
                above[across->first] + (above[across->second] - above[across->first]) * across->of_second;
            const float lower =
                below[across->first] + (below[across->second] - below[across->first]) * across->of_second;
            picture->png.pixels[(int64_t)y * width + x] = (uint8_t)(upper + (lower - upper) * down->of_second + 0.5F);
        }
    }
}

/* Draws the pixels of a layer that have a neighbour outside. */
static void
plane_draw_outline(struct plane_picture *picture, int32_t layer, uint8_t color)
{
    const int width = picture->png.width, height = picture->png.height;
    const int64_t pitch = width + 2;
    memset(picture->cover, 0, (size_t)pitch * (size_t)(height + 2));
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++)
            picture->cover[(y + 1) * pitch + x + 1] =
                slices_has(picture->plane, layer, picture->across[x].nearest, picture->down[y].nearest);
    for (int y = 0; y < height; y++) {
        const uint8_t *at = picture->cover + (y + 1) * pitch + 1;
        uint8_t *pixel = picture->png.pixels + (int64_t)y * width;
        for (int x = 0; x < width; x++)
            if (at[x] > (at[x - 1] & at[x + 1] & at[x - pitch] & at[x + pitch]))
                pixel[x] = color;
    }
}

int
web_plane_png(const struct slices_volume *volume, const struct slices_layout *layout, int32_t at,
              const struct slices_plane *plane, uint8_t **bytes, size_t *size)
{
    struct plane_picture picture = {.plane = plane};
    const double mm[2] = {plane->columns * volume->spacing[layout->across],
                          plane->rows * volume->spacing[layout->down]};
    const double longer = fmax(mm[0], mm[1]);
    const double pixels = longer / fmin(volume->spacing[layout->across], volume->spacing[layout->down]);
    const double scale = fmin(fmax(pixels, LONGER_MIN), LONGER_MAX) / longer;
    indexed_png_start(&picture.png);
    picture.png.width = (int)fmax(1, round(mm[0] * scale));
    picture.png.height = (int)fmax(1, round(mm[1] * scale));
    const size_t width = (size_t)picture.png.width, height = (size_t)picture.png.height;
    picture.grey = malloc((size_t)plane->columns * (size_t)plane->rows * sizeof *picture.grey);
    picture.across = malloc(width * sizeof *picture.across);
    picture.down = malloc(height * sizeof *picture.down);
    picture.cover = malloc((width + 2) * (height + 2));
    picture.png.pixels = malloc(width * height);
    int rc = picture.grey && picture.across && picture.down && picture.cover && picture.png.pixels ? 0 : -ENOMEM;
    if (rc == 0) {
        plane_fill_mix(picture.across, picture.png.width, plane->columns);
        plane_fill_mix(picture.down, picture.png.height, plane->rows);
        plane_fill_grey(volume, layout, at, &picture);
        plane_draw_grey(&picture);
        for (int32_t i = 0; i < plane->layer_count; i++) {
            const uint8_t *rgb = volume->segments[plane->layer_segments[i]].rgb;
            plane_draw_outline(&picture, i, indexed_png_color(&picture.png, (struct rgb){rgb[0], rgb[1], rgb[2]}));
        }
        rc = indexed_png_encode(&picture.png, 1, bytes, size);
    }
    free(picture.grey);
    free(picture.across);
    free(picture.down);
    free(picture.cover);
    free(picture.png.pixels);
    return rc;
}
