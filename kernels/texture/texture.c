/*
 * texture.c - every argument check of texture.h, once for all backends.
 *
 * A backend sees only calls that make sense, on a volume of which every slice is announced.
 */
#include "kernels/backend.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    LARGEST_OFFSET = 255,
    WHOLE = 1000000, /* a threshold of 1, in millionths */
};

static size_t
values_of(enum image_pixel pixel)
{
    return pixel == IMAGE_UINT8 ? 256 : 65536;
}

/* What all three calls need of a lane. */
static int
check_lane(struct kernels_lane *lane, bool has_texture, char *reason, size_t reason_size)
{
    if (lane->phase == LANE_EMPTY || !lane->demand.texture)
        return kernels_fail(-EINVAL, reason, reason_size,
                            "texture runs after a kernels_volume_begin that was told of it");
    if (!has_texture)
        return kernels_fail(-EOPNOTSUPP, reason, reason_size,
                            "the backend \"%s\" does not compute texture",
                            lane->device->backend->name);
    if (kernels_slices_missing(lane) > 0)
        return kernels_fail(-EBUSY, reason, reason_size, "%lld of %lld slices are not announced",
                            (long long)kernels_slices_missing(lane),
                            (long long)lane->extent.slices);
    return 0;
}

static uint16_t
highest_level(const uint16_t *level_of, size_t count)
{
    uint16_t highest = 0;

    for (size_t i = 0; i < count; i++)
        highest = level_of[i] > highest ? level_of[i] : highest;
    return highest;
}

static int
check_levels(const struct kernels_lane *lane, const struct texture_levels *levels, char *reason,
             size_t reason_size)
{
    size_t values = values_of(lane->pixel);

    if (levels->levels < 2 || levels->levels > TEXTURE_MAX_LEVELS)
        return kernels_fail(-EINVAL, reason, reason_size,
                            "%d grey levels are not possible; 2 to %d are", levels->levels,
                            TEXTURE_MAX_LEVELS);
    if (!levels->level_of ||
        (levels->table_count != 1 && levels->table_count != (size_t)lane->extent.slices))
        return kernels_fail(
            -EINVAL, reason, reason_size,
            "there are %zu tables of levels; it takes 1 or one for each of %lld slices",
            levels->level_of ? levels->table_count : 0, (long long)lane->extent.slices);
    for (size_t i = 0; i < levels->table_count; i++)
        if (highest_level(levels->level_of + i * values, values) > levels->levels)
            return kernels_fail(-EINVAL, reason, reason_size,
                                "table %zu has a level above the highest one, %d", i,
                                levels->levels);
    return 0;
}

static int
check_offsets(const struct texture_glcm *request, char *reason, size_t reason_size)
{
    if (!request->offsets || request->offset_count == 0)
        return kernels_fail(-EINVAL, reason, reason_size, "there are no offsets");
    for (size_t i = 0; i < request->offset_count; i++) {
        struct texture_offset offset = request->offsets[i];

        if (offset.x < -LARGEST_OFFSET || offset.x > LARGEST_OFFSET || offset.y < -LARGEST_OFFSET ||
            offset.y > LARGEST_OFFSET || offset.z < -LARGEST_OFFSET || offset.z > LARGEST_OFFSET ||
            (offset.x == 0 && offset.y == 0 && offset.z == 0))
            return kernels_fail(-EINVAL, reason, reason_size,
                                "offset %zu, (%d, %d, %d), is none or longer than %d", i, offset.x,
                                offset.y, offset.z, LARGEST_OFFSET);
    }
    return 0;
}

int
texture_glcm_run(struct kernels_lane *lane, const struct texture_glcm *request, uint64_t *counts,
                 char *reason, size_t reason_size)
{
    const struct kernels_backend *backend = lane->device->backend;
    int error = check_lane(lane, backend->glcm_run != NULL, reason, reason_size);

    if (!error)
        error = check_levels(lane, &request->levels, reason, reason_size);
    if (!error)
        error = check_offsets(request, reason, reason_size);
    if (!error && !counts)
        error = kernels_fail(-EINVAL, reason, reason_size, "there is no room for the counts");
    return error ? error : backend->glcm_run(lane, request, counts, reason, reason_size);
}

int
texture_histogram_run(struct kernels_lane *lane, const uint64_t *region, bool per_slice,
                      uint64_t *counts, char *reason, size_t reason_size)
{
    const struct kernels_backend *backend = lane->device->backend;
    int error = check_lane(lane, backend->histogram_run != NULL, reason, reason_size);

    if (!error && !counts)
        error = kernels_fail(-EINVAL, reason, reason_size, "there is no room for the counts");
    return error ? error
                 : backend->histogram_run(lane, region, per_slice, counts, reason, reason_size);
}

static int
check_patterns(const struct texture_patterns *request, char *reason, size_t reason_size)
{
    bool any = false;

    if (request->threshold_millionths < 0 || request->threshold_millionths > WHOLE)
        return kernels_fail(-EINVAL, reason, reason_size,
                            "a threshold of %d millionths is not between 0 and 1",
                            request->threshold_millionths);
    for (int i = 0; i < TEXTURE_PATTERNS; i++) {
        if (request->maps[i] && !request->wanted[i])
            return kernels_fail(-EINVAL, reason, reason_size,
                                "there is a map for pattern %d, which is not wanted", i);
        any |= request->wanted[i];
    }
    if (!any)
        return kernels_fail(-EINVAL, reason, reason_size, "no pattern is wanted");
    if (request->region_count > 0 && (!request->regions || !request->histograms))
        return kernels_fail(-EINVAL, reason, reason_size,
                            "there is no room for the histograms of %zu regions",
                            request->region_count);
    return 0;
}

int
texture_patterns_run(struct kernels_lane *lane, const struct texture_patterns *request,
                     char *reason, size_t reason_size)
{
    const struct kernels_backend *backend = lane->device->backend;
    int error = check_lane(lane, backend->patterns_run != NULL, reason, reason_size);

    if (!error)
        error = check_patterns(request, reason, reason_size);
    return error ? error : backend->patterns_run(lane, request, reason, reason_size);
}
