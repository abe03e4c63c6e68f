#include "service/pipeline/real_volume.h"

#include "service/pipeline/volume.h"
#include "service/pipeline/volume_source.h"

#include <math.h>

static struct image_rescale
real_rescale(const struct real_volume *volume, int64_t z)
{
    return volume_rescale(volume->grid->instances, &volume->grid->stack->planes[z]);
}

/* Returns whether all values of a slice are whole numbers of 16 bits. */
static bool
real_is_whole(const struct real_volume *volume, int64_t z)
{
    const struct image_rescale rescale = real_rescale(volume, z);
    const enum image_pixel pixel = volume->grid->stack->pixel;
    const void *voxels = volume->voxels;
    const int64_t count = volume->box.size[0] * volume->box.size[1], first = z * count;
    int32_t lo = INT32_MAX, hi = INT32_MIN;
    if (rescale.slope != rint(rescale.slope) || rescale.intercept != rint(rescale.intercept) ||
        fabs(rescale.slope) > INT32_MAX || fabs(rescale.intercept) > INT32_MAX)
        return false;
    for (int64_t i = first; i < first + count; i++) {
        const int32_t value = image_value(voxels, pixel, i);
        lo = value < lo ? value : lo;
        hi = value > hi ? value : hi;
    }
    const double ends[2] = {rescale.slope * lo + rescale.intercept, rescale.slope * hi + rescale.intercept};
    return fmin(ends[0], ends[1]) >= INT16_MIN && fmax(ends[0], ends[1]) <= INT16_MAX;
}

/* Converts a slice of real_is_whole(). Sums modulo 2^32 are right, since the result has 16 bits. */
static void
real_fill_int16(void *context, int64_t z, void *to)
{
    const struct real_volume *volume = context;
    const struct image_rescale rescale = real_rescale(volume, z);
    const enum image_pixel pixel = volume->grid->stack->pixel;
    const uint32_t slope = (uint32_t)(int32_t)rescale.slope, intercept = (uint32_t)(int32_t)rescale.intercept;
    const int64_t count = volume->box.size[0] * volume->box.size[1], first = z * count;
    const void *voxels = volume->voxels;
    int16_t *values = to;
    for (int64_t i = 0; i < count; i++)
        values[i] = (int16_t)(slope * (uint32_t)image_value(voxels, pixel, first + i) + intercept);
}

/* Copies a slice of values that are not rounded. */
static void
real_fill_reals(void *context, int64_t z, void *to)
{
    const struct real_volume *volume = context;
    const int64_t count = volume->box.size[0] * volume->box.size[1];
    float *values = to;
    for (int64_t i = 0; i < count; i++)
        values[i] = (float)volume->grid->reals[z * count + i];
}

static void
real_fill_float(void *context, int64_t z, void *to)
{
    const struct real_volume *volume = context;
    const struct image_rescale rescale = real_rescale(volume, z);
    const enum image_pixel pixel = volume->grid->stack->pixel;
    const int64_t count = volume->box.size[0] * volume->box.size[1], first = z * count;
    const void *voxels = volume->voxels;
    float *values = to;
    for (int64_t i = 0; i < count; i++)
        values[i] = (float)(rescale.slope * image_value(voxels, pixel, first + i) + rescale.intercept);
}

struct real_volume
real_volume_of(const struct grid *grid, const void *voxels)
{
    struct real_volume volume = {
        .grid = grid, .voxels = voxels, .box = volume_source_box(grid), .type = VOLUME_INT16, .fill = real_fill_int16};
    if (grid->keeps_reals && !grid->straight) {
        volume.type = VOLUME_FLOAT32;
        volume.fill = real_fill_reals;
    }
    for (int64_t z = 0; z < volume.box.size[2] && volume.type == VOLUME_INT16; z++) {
        if (!real_is_whole(&volume, z)) {
            volume.type = VOLUME_FLOAT32;
            volume.fill = real_fill_float;
        }
    }
    return volume;
}
