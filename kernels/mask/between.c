/* between.c - see between.h. Where two drawn planes agree, so do the planes between them. For other
 * pixels, searches the distances row by row, with the nearest pixel of each row from a table. */
#include "kernels/mask/between.h"

#include "base/limits.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define BETWEEN_PARTS   65536
#define BETWEEN_TALLEST 1024.0     /* squared distances, times squared parts, fit 128 bits */
#define BETWEEN_NONE    UINT16_MAX /* more than the columns of any image */

__extension__ typedef unsigned __int128 between_square;

#define BETWEEN_INFINITE (~(between_square)0)

/* A drawn plane: distance in columns from each pixel to the nearest in its row inside, or outside,
 * the mask. */
struct between_shape {
    const uint64_t *bits;
    uint16_t *inside, *outside;
};

struct between_work {
    const struct image_planes *planes;
    int64_t words;
    uint64_t step;   /* row spacing in parts of a column's */
    uint64_t *parts; /* position of each plane between two drawn ones, in parts of their distance */
    uint64_t *bits;
    struct between_shape low, high;
    int64_t searched; /* rows searched for the nearest pixel of the other kind */
};

static bool
between_has(const struct between_work *work, const uint64_t *bits, int64_t x, int64_t y)
{
    return bits[y * work->words + x / 64] >> x % 64 & 1;
}

static uint16_t
between_next(uint16_t columns)
{
    return columns == BETWEEN_NONE ? BETWEEN_NONE : (uint16_t)(columns + 1);
}

static void
between_load(const struct between_work *work, struct between_shape *shape, int64_t plane)
{
    const int64_t columns = work->planes->extent.columns;

    shape->bits = work->bits + plane * work->planes->extent.rows * work->words;
    for (int64_t y = 0; y < work->planes->extent.rows; y++) {
        uint16_t *inside = shape->inside + y * columns, *outside = shape->outside + y * columns;
        uint16_t in = BETWEEN_NONE, out = BETWEEN_NONE;

        for (int64_t x = 0; x < columns; x++) { /* from the left */
            const bool has = between_has(work, shape->bits, x, y);

            inside[x] = in = has ? 0 : between_next(in);
            outside[x] = out = has ? between_next(out) : 0;
        }
        in = out = BETWEEN_NONE;
        for (int64_t x = columns - 1; x >= 0; x--) { /* from the right */
            in = inside[x] == 0 ? 0 : between_next(in);
            out = outside[x] == 0 ? 0 : between_next(out);
            inside[x] = in < inside[x] ? in : inside[x];
            outside[x] = out < outside[x] ? out : outside[x];
        }
    }
}

static between_square
between_nearer(between_square best, between_square rows, uint16_t columns)
{
    if (columns == BETWEEN_NONE)
        return best;
    const uint64_t across = (uint64_t)columns * BETWEEN_PARTS;
    const between_square square = rows + (between_square)across * across;
    return square < best ? square : best;
}

/* Returns the squared distance from a pixel to the nearest one of the table. */
static between_square
between_distance(struct between_work *work, const uint16_t *table, int64_t x, int64_t y)
{
    const int64_t columns = work->planes->extent.columns, rows = work->planes->extent.rows;
    between_square best = BETWEEN_INFINITE;
    int64_t away = 0;

    for (; y - away >= 0 || y + away < rows; away++) {
        const uint64_t down = (uint64_t)away * work->step;
        const between_square square = (between_square)down * down;

        if (square >= best)
            break;
        if (y - away >= 0)
            best = between_nearer(best, square, table[(y - away) * columns + x]);
        if (y + away < rows)
            best = between_nearer(best, square, table[(y + away) * columns + x]);
    }
    work->searched += away;
    return best;
}

static double
between_height(const struct image_planes *planes, int64_t plane)
{
    double normal[3];

    image_planes_normal(planes, normal);
    return image_planes_along(planes->origins + 3 * plane, planes->origins, normal);
}

/* Fills a pixel of only one of the two drawn planes on all planes between them. Returns the number
 * of pixels set. */
static int64_t
between_fill_pixel(struct between_work *work, int64_t low, int64_t high, int64_t x, int64_t y)
{
    const int64_t rows = work->planes->extent.rows;
    const bool is_low = between_has(work, work->low.bits, x, y);
    const struct between_shape *in = is_low ? &work->low : &work->high;
    const struct between_shape *out = is_low ? &work->high : &work->low;
    const between_square inside = between_distance(work, in->outside, x, y);
    const between_square outside = between_distance(work, out->inside, x, y);
    int64_t voxels = 0;

    for (int64_t z = low + 1; z < high; z++) {
        const uint64_t part = is_low ? work->parts[z] : BETWEEN_PARTS - work->parts[z];
        const uint64_t rest = BETWEEN_PARTS - part;

        /* Whether `inside`, on one plane, outweighs `outside`, on the other, at `part` of the way to it. */
        if (outside == BETWEEN_INFINITE || (inside != BETWEEN_INFINITE && (between_square)(rest * rest) * inside <
                                                                              (between_square)(part * part) * outside))
            continue;
        work->bits[(z * rows + y) * work->words + x / 64] |= (uint64_t)1 << x % 64;
        voxels++;
    }
    return voxels;
}

static int64_t
between_fill_word(struct between_work *work, int64_t low, int64_t high, int64_t y, int64_t w)
{
    const int64_t rows = work->planes->extent.rows;
    const uint64_t a = work->low.bits[y * work->words + w];
    const uint64_t b = work->high.bits[y * work->words + w];
    int64_t voxels = 0;

    for (int64_t z = low + 1; z < high; z++) {
        work->bits[(z * rows + y) * work->words + w] = a & b;
        voxels += __builtin_popcountll(a & b);
    }
    for (uint64_t left = a ^ b; left; left &= left - 1)
        voxels += between_fill_pixel(work, low, high, w * 64 + __builtin_ctzll(left), y);
    return voxels;
}

static int
between_fill(struct between_work *work, int64_t low, int64_t high, int64_t *voxels, struct error *error)
{
    between_load(work, &work->low, low);
    between_load(work, &work->high, high);
    const double first = between_height(work->planes, low);
    const double last = between_height(work->planes, high);

    for (int64_t z = low + 1; z < high; z++) {
        const double part = (between_height(work->planes, z) - first) / (last - first);

        work->parts[z] = (uint64_t)floor(part * BETWEEN_PARTS + 0.5);
    }
    for (int64_t y = 0; y < work->planes->extent.rows; y++) {
        for (int64_t w = 0; w < work->words; w++)
            *voxels += between_fill_word(work, low, high, y, w);
        if (work->searched > (int64_t)LIMIT_ROI_BETWEEN_MI << 20)
            return error_set(error, -EBADMSG, CODE_SIZE_IMPLAUSIBLE,
                             "More than %d times 2^20 rows of pixels would have to be searched to fill the "
                             "slices between drawn ones.",
                             LIMIT_ROI_BETWEEN_MI);
    }
    return 0;
}

int
kernels_mask_between(const struct image_planes *planes, const bool *drawn, uint64_t *bits, int64_t *voxels,
                     struct error *error)
{
    const int64_t pixels = image_slice_voxels(&planes->extent);
    const double tall = planes->spacing[1] / planes->spacing[0];
    struct between_work work = {.planes = planes, .words = (planes->extent.columns + 63) / 64, .bits = bits};

    if (!(tall <= BETWEEN_TALLEST))
        return error_set(error, -EBADMSG, CODE_SIZE_IMPLAUSIBLE, "Pixels are %.3g times as high as they are wide.",
                         tall);
    uint16_t *tables = calloc((size_t)pixels, 4 * sizeof(*tables));
    work.parts = calloc((size_t)planes->extent.slices, sizeof(*work.parts));
    if (!tables || !work.parts) {
        free(tables);
        free(work.parts);
        return error_set(error, -ENOMEM, CODE_OUT_OF_MEMORY, "There is not enough memory to draw between contours.");
    }
    work.step = (uint64_t)floor(tall * BETWEEN_PARTS + 0.5);
    work.low.inside = tables;
    work.low.outside = tables + pixels;
    work.high.inside = tables + 2 * pixels;
    work.high.outside = tables + 3 * pixels;
    int64_t low = -1;
    int rc = 0;

    for (int64_t z = 0; z < work.planes->extent.slices && rc == 0; z++) {
        if (!drawn[z])
            continue;
        if (low >= 0 && z > low + 1)
            rc = between_fill(&work, low, z, voxels, error);
        low = z;
    }

    free(tables);
    free(work.parts);
    return rc;
}
