/* ref_resample.c - see ref_resample.h. Does not use tables, and filters whole lines. */
#include "tests/kernels/ref_resample.h"
#include "tests/kernels/ref_volumes.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

struct along {
    bool outside;
    int64_t at;
    double part;
};

static int64_t
side(struct image_extent extent, int axis)
{
    return (const int64_t[]){extent.columns, extent.rows, extent.slices}[axis];
}

/* Returns the position from the origins. */
static double
told(const struct image_planes *planes, int64_t z, int axis)
{
    double axes[9];

    for (int i = 0; i < 6; i++)
        axes[i] = planes->axes[i];
    image_planes_normal(planes, axes + 6);
    const double *p = planes->origins + 3 * z, *o = planes->origins, *a = axes + 3 * axis;
    return ((p[0] - o[0]) * a[0] + (p[1] - o[1]) * a[1]) + (p[2] - o[2]) * a[2];
}

static double
mean_step(const struct image_planes *planes)
{
    const int64_t last = planes->extent.slices - 1;

    return last > 0 ? told(planes, last, 2) / (double)last : planes->thickness;
}

static bool
is_regular(const struct image_planes *planes)
{
    const double step = mean_step(planes), most = 0.01 * step > 0.02 ? 0.01 * step : 0.02;

    for (int64_t z = 1; z < planes->extent.slices; z++)
        if (fabs(told(planes, z, 0) - told(planes, z - 1, 0)) > most ||
            fabs(told(planes, z, 1) - told(planes, z - 1, 1)) > most ||
            fabs(told(planes, z, 2) - told(planes, z - 1, 2) - step) > most)
            return false;
    return true;
}

/* Properties of the planes of this call. Computing them per voxel is slow. */
static struct {
    bool regular;
    double step;
} these;

static void
begin(const struct image_planes *planes)
{
    these.regular = is_regular(planes);
    these.step = mean_step(planes);
}

static double
shift(const struct image_planes *planes, int64_t z, int axis)
{
    if (!these.regular)
        return told(planes, z, axis);
    return axis == 2 ? (double)z * these.step : 0;
}

static double
rounded(double samples)
{
    const double coarse = floor(samples * 65536 + 0.5) / 65536;

    if (fabs(samples - coarse) <= 1.0 / 1073741824)
        return coarse;
    return floor(samples * 1099511627776.0 + 0.5) / 1099511627776.0;
}

/* Returns a place in samples: of the columns or rows of plane z, or of the normal. */
static double
place(const struct resample_request *request, int axis, int64_t i, int64_t z)
{
    const struct image_planes *planes = request->planes;
    const int64_t slices = planes->extent.slices;
    const double mm = request->grid->origin[axis] + (double)i * request->grid->spacing[axis];
    int64_t low = 0;

    if (axis < 2)
        return rounded((mm - shift(planes, z, axis)) / planes->spacing[axis]);
    if (these.regular)
        return rounded(mm / these.step);
    while (low + 2 < slices && shift(planes, low + 1, 2) <= mm)
        low++;
    return rounded((double)low + (mm - shift(planes, low, 2)) / (shift(planes, low + 1, 2) - shift(planes, low, 2)));
}

static struct along
along(const struct resample_request *request, int axis, int64_t i, int64_t z)
{
    const int64_t samples = side(request->planes->extent, axis);
    double samples_from = place(request, axis, i, z);
    struct along result = {.outside = samples_from < -0.5 || samples_from > (double)samples - 0.5};

    samples_from = request->order == RESAMPLE_NEAREST ? floor(samples_from + 0.5) : samples_from;
    samples_from = fmax(0, fmin(samples_from, (double)(samples - 1)));
    result.at = (int64_t)floor(samples_from);
    result.part = samples_from - floor(samples_from);
    return result;
}

struct source {
    const struct resample_request *request;
    enum image_pixel pixel;
    const void *voxels;
};

/* Returns the value to interpolate: a stored value, or its real-world value. */
static double
source_value(const struct source *source, int64_t i)
{
    const struct image_rescale *rescales = source->request->rescales;
    const double value = ref_stored(source->pixel, source->voxels, i);
    const int64_t z = i / image_slice_voxels(&source->request->planes->extent);

    return rescales ? rescales[z].slope * value + rescales[z].intercept : value;
}

static double
stored(const struct source *source, int64_t x, int64_t y, int64_t z)
{
    const struct image_extent *extent = &source->request->planes->extent;

    /* Samples beyond the last have weight 0. */
    x = x < extent->columns ? x : extent->columns - 1;
    y = y < extent->rows ? y : extent->rows - 1;
    return source_value(source, (z * extent->rows + y) * extent->columns + x);
}

static bool
on_plane(const struct source *source, int64_t i, int64_t j, int64_t z, double *value)
{
    const struct along x = along(source->request, 0, i, z), y = along(source->request, 1, j, z);
    double columns[2];

    for (int64_t k = 0; k < 2; k++)
        columns[k] = (1 - y.part) * stored(source, x.at + k, y.at, z) + y.part * stored(source, x.at + k, y.at + 1, z);
    *value = (1 - x.part) * columns[0] + x.part * columns[1];
    return !x.outside && !y.outside;
}

static double
linear(const struct source *source, int64_t i, int64_t j, int64_t k)
{
    const struct along z = along(source->request, 2, k, 0);
    double below, above = 0;
    bool there = on_plane(source, i, j, z.at, &below) && !z.outside;

    if (z.part > 0)
        there = on_plane(source, i, j, z.at + 1, &above) && there;
    return there ? (1 - z.part) * below + z.part * above : source->request->outside;
}

/* ---- splines ---- */

static void
coefficients(double *line, int64_t count)
{
    const double pole = sqrt(3.0) - 2;
    double powers[64] = {1}, first = 0;

    if (count == 1)
        return;
    for (int i = 1; i < 64; i++)
        powers[i] = powers[i - 1] * pole;
    for (int64_t k = 0; k < count; k++)
        line[k] *= 6;
    for (int64_t k = 0; k < (count < 32 ? count : 32); k++) {
        double weight = powers[k];
        if (count <= 32) {
            if (k > 0 && k < count - 1)
                weight += powers[2 * count - 2 - k];
            weight /= 1 - powers[2 * count - 2];
        }
        first = k ? first + weight * line[k] : weight * line[k];
    }
    line[0] = first;
    for (int64_t k = 1; k < count; k++)
        line[k] += pole * line[k - 1];
    line[count - 1] = pole / (pole * pole - 1) * (pole * line[count - 2] + line[count - 1]);
    for (int64_t k = count - 2; k >= 0; k--)
        line[k] = pole * (line[k + 1] - line[k]);
}

static double
spline_at(const double *line, int64_t count, double where, bool mirrors)
{
    if (mirrors && where < 0)
        where = -where;
    if (mirrors && where > (double)(count - 1))
        where = 2 * (double)(count - 1) - where;
    where = fmax(0, fmin(where, (double)(count - 1)));
    const double f = where - floor(where), g = 1 - f;
    const double weights[] = {g * g * g / 6, 2.0 / 3 - f * f * (2 - f) / 2, 2.0 / 3 - g * g * (2 - g) / 2,
                              f * f * f / 6};
    double sum = 0;

    for (int64_t i = 0; i < 4; i++) {
        int64_t at = (int64_t)floor(where) - 1 + i;
        while (count > 1 && (at < 0 || at >= count))
            at = at < 0 ? -at : 2 * (count - 1) - at;
        at = count > 1 ? at : 0;
        sum = i ? sum + weights[i] * line[at] : weights[i] * line[at];
    }
    return sum;
}

/* Resamples lines of `from` samples, `stride` apart, to lines of `to`. Both volumes are x fastest. */
static double *
resample_axis(const struct resample_request *request, double *values, struct image_extent *extent, int axis)
{
    const int64_t from = side(*extent, axis), to = side(request->grid->extent, axis);
    int64_t stride = 1, others = 1;
    for (int i = 0; i < 3; i++) {
        stride *= i < axis ? side(*extent, i) : 1;
        others *= i > axis ? side(*extent, i) : 1;
    }
    double *result = calloc((size_t)(stride * others * to), sizeof(*result));
    double *line = calloc((size_t)from, sizeof(*line));
    if (!result || !line)
        abort();
    for (int64_t o = 0; o < stride * others; o++) {
        const int64_t begin = o % stride + o / stride * stride * from;
        const int64_t end = o % stride + o / stride * stride * to;
        for (int64_t k = 0; k < from; k++)
            line[k] = values[begin + k * stride];
        coefficients(line, from);
        for (int64_t k = 0; k < to; k++)
            result[end + k * stride] = spline_at(line, from, place(request, axis, k, 0), request->grid->mirrors);
    }
    *(axis == 0 ? &extent->columns : axis == 1 ? &extent->rows : &extent->slices) = to;
    free(line);
    free(values);
    return result;
}

static double *
cubic(const struct source *source)
{
    struct image_extent extent = source->request->planes->extent;
    double *values = calloc((size_t)image_voxels(&extent), sizeof(*values));

    if (!values)
        abort();
    for (int64_t i = 0; i < image_voxels(&extent); i++)
        values[i] = source_value(source, i);
    for (int axis = 0; axis < 3; axis++)
        values = resample_axis(source->request, values, &extent, axis);
    return values;
}

void
ref_resample(const struct resample_request *request, enum image_pixel pixel, const void *voxels,
             const struct resample_demand *demand, void *resampled)
{
    const struct source source = {request, pixel, voxels};
    const struct image_extent *grid = &request->grid->extent;
    const struct image_range range = image_pixel_range(demand->pixel);
    begin(request->planes);
    double *values = request->order == RESAMPLE_CUBIC ? cubic(&source) : NULL;

    for (int64_t n = 0; n < image_voxels(grid); n++) {
        const double value =
            values ? values[n]
                   : linear(&source, n % grid->columns, n / grid->columns % grid->rows, n / image_slice_voxels(grid));
        const double whole = floor(value + 0.5);

        if (demand->values != RESAMPLE_STORED)
            ((double *)resampled)[n] = value;
        else
            ref_store(demand->pixel, resampled, n,
                      (int32_t)(whole < range.lo   ? range.lo
                                : whole > range.hi ? range.hi
                                                   : whole));
    }
    free(values);
}

/* ---- masks ---- */

/* Returns the grid's voxel of pixel i of plane z along an axis, -1 if there is none. */
static int64_t
voxel_of(const struct image_planes *planes, const struct resample_grid *grid, int axis, int64_t i, int64_t z)
{
    const double own = axis < 2 ? (double)i * planes->spacing[axis] : 0;
    const double samples = rounded((shift(planes, z, axis) + own - grid->origin[axis]) / grid->spacing[axis]);
    const int64_t count = side(grid->extent, axis);
    const int64_t nearest = (int64_t)floor(samples + 0.5);

    if (samples < -0.5 || samples > (double)count - 0.5)
        return -1;
    return nearest < count ? nearest : count - 1;
}

/* Returns the grid's voxel for a pixel, -1 if there is none. */
static int64_t
voxel_for(const struct image_planes *planes, const struct resample_grid *grid, int64_t pixel)
{
    const int64_t x = pixel % planes->extent.columns, y = pixel / planes->extent.columns;
    const int64_t z = y / planes->extent.rows;
    const int64_t i = voxel_of(planes, grid, 0, x, z), k = voxel_of(planes, grid, 2, 0, z);
    const int64_t j = voxel_of(planes, grid, 1, y % planes->extent.rows, z);

    return i < 0 || j < 0 || k < 0 ? -1 : (k * grid->extent.rows + j) * grid->extent.columns + i;
}

void
ref_resample_map(const struct image_planes *planes, const struct resample_grid *grid, const uint16_t *map,
                 uint16_t *on_planes)
{
    begin(planes);
    for (int64_t pixel = 0; pixel < image_voxels(&planes->extent); pixel++) {
        const int64_t voxel = voxel_for(planes, grid, pixel);

        on_planes[pixel] = voxel < 0 ? 0 : map[voxel];
    }
}

int64_t
ref_resample_mask(const struct image_planes *planes, const struct resample_grid *grid, const uint64_t *bits,
                  uint64_t *on_planes)
{
    const struct image_extent *from = &planes->extent, *to = &grid->extent;
    const int64_t words = (from->columns + 63) / 64, grid_words = (to->columns + 63) / 64;
    int64_t voxels = 0;

    begin(planes);
    for (int64_t i = 0; i < words * from->rows * from->slices; i++)
        on_planes[i] = 0;
    for (int64_t z = 0; z < from->slices; z++)
        for (int64_t y = 0; y < from->rows; y++)
            for (int64_t x = 0; x < from->columns; x++) {
                const int64_t i = voxel_of(planes, grid, 0, x, z);
                const int64_t j = voxel_of(planes, grid, 1, y, z);
                const int64_t k = voxel_of(planes, grid, 2, 0, z);

                if (i < 0 || j < 0 || k < 0 || !(bits[(k * to->rows + j) * grid_words + i / 64] >> i % 64 & 1))
                    continue;
                on_planes[(z * from->rows + y) * words + x / 64] |= UINT64_C(1) << x % 64;
                voxels++;
            }
    return voxels;
}

/*
 * Returns the sample that voxel i of the grid takes along an axis: the first that maps to it, else the nearest; -1 if
 * there is none.
 */
static int64_t
drawn_of(const struct resample_request *request, int axis, int64_t i, int64_t z)
{
    const int64_t samples = side(request->planes->extent, axis);

    for (int64_t p = 0; p < samples; p++)
        if (voxel_of(request->planes, request->grid, axis, p, axis < 2 ? z : p) == i)
            return p;
    const struct along nearest = along(request, axis, i, z);
    return nearest.outside ? -1 : nearest.at;
}

int64_t
ref_resample_drawn(const struct image_planes *planes, const struct resample_grid *grid, const uint64_t *bits,
                   uint64_t *on_grid)
{
    const struct resample_request request = {planes, grid, RESAMPLE_NEAREST, 0, NULL, NULL};
    const struct image_extent *from = &planes->extent, *to = &grid->extent;
    const int64_t words = (from->columns + 63) / 64, grid_words = (to->columns + 63) / 64;
    int64_t voxels = 0;

    begin(planes);
    for (int64_t i = 0; i < grid_words * to->rows * to->slices; i++)
        on_grid[i] = 0;
    for (int64_t k = 0; k < to->slices; k++) {
        const int64_t z = drawn_of(&request, 2, k, 0);

        for (int64_t i = 0; i < to->columns && z >= 0; i++) {
            const int64_t x = drawn_of(&request, 0, i, z);

            for (int64_t j = 0; j < to->rows && x >= 0; j++) {
                const int64_t y = drawn_of(&request, 1, j, z);

                if (y < 0 || !(bits[(z * from->rows + y) * words + x / 64] >> x % 64 & 1))
                    continue;
                on_grid[(k * to->rows + j) * grid_words + i / 64] |= UINT64_C(1) << i % 64;
                voxels++;
            }
        }
    }
    return voxels;
}
