/*
 * texture.c - the argument checks of texture.h, once for all backends.
 */
#include "kernels/texture/texture.h"
#include "kernels/op.h"

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

static uint16_t
texture_highest_level(const uint16_t *level_of, size_t count)
{
    uint16_t highest = 0;

    for (size_t i = 0; i < count; i++)
        highest = level_of[i] > highest ? level_of[i] : highest;
    return highest;
}

static int
check_levels(const struct kernels_lane *lane, const struct texture_levels *levels,
             struct error *error)
{
    size_t values = values_of(lane->pixel);

    if (levels->levels < 2 || levels->levels > TEXTURE_MAX_LEVELS)
        return error_set(error, -EINVAL, CODE_COMPUTE_FAILED,
                         "%d grey levels are not possible; 2 to %d are", levels->levels,
                         TEXTURE_MAX_LEVELS);
    if (!levels->level_of ||
        (levels->table_count != 1 && levels->table_count != (size_t)lane->extent.slices))
        return error_set(
            error, -EINVAL, CODE_COMPUTE_FAILED,
            "there are %zu tables of levels; it takes 1 or one for each of %lld slices",
            levels->level_of ? levels->table_count : 0, (long long)lane->extent.slices);
    for (size_t i = 0; i < levels->table_count; i++)
        if (texture_highest_level(levels->level_of + i * values, values) > levels->levels)
            return error_set(error, -EINVAL, CODE_COMPUTE_FAILED,
                             "table %zu has a level above the highest one, %d", i, levels->levels);
    return 0;
}

static int
texture_check_offsets(const struct texture_glcm *request, struct error *error)
{
    if (!request->offsets || request->offset_count == 0)
        return error_set(error, -EINVAL, CODE_COMPUTE_FAILED, "there are no offsets");
    for (size_t i = 0; i < request->offset_count; i++) {
        struct texture_offset offset = request->offsets[i];

        if (offset.x < -LARGEST_OFFSET || offset.x > LARGEST_OFFSET || offset.y < -LARGEST_OFFSET ||
            offset.y > LARGEST_OFFSET || offset.z < -LARGEST_OFFSET || offset.z > LARGEST_OFFSET ||
            (offset.x == 0 && offset.y == 0 && offset.z == 0))
            return error_set(error, -EINVAL, CODE_COMPUTE_FAILED,
                             "offset %zu, (%d, %d, %d), is none or longer than %d", i, offset.x,
                             offset.y, offset.z, LARGEST_OFFSET);
    }
    return 0;
}

static int
no_room(struct error *error)
{
    return error_set(error, -EINVAL, CODE_COMPUTE_FAILED, "there is no room for the counts");
}

int
texture_glcm_run(struct kernels_lane *lane, const struct texture_glcm *glcm, uint64_t *counts,
                 struct error *error)
{
    const struct texture_glcm_request request = {glcm, counts};
    int rc = kernels_op_check(lane, KERNELS_GLCM, error);

    if (rc == 0)
        rc = check_levels(lane, &glcm->levels, error);
    if (rc == 0)
        rc = texture_check_offsets(glcm, error);
    if (rc == 0 && !counts)
        rc = no_room(error);
    return rc ? rc : kernels_op_run(lane, KERNELS_GLCM, &request, error);
}

int
texture_histogram_run(struct kernels_lane *lane, const uint64_t *region, bool per_slice,
                      uint64_t *counts, struct error *error)
{
    const struct texture_histogram_request request = {region, per_slice, counts};

    return counts ? kernels_op_run(lane, KERNELS_HISTOGRAM, &request, error) : no_room(error);
}

static int
check_patterns(const struct texture_patterns *request, struct error *error)
{
    bool any = false;

    if (request->threshold_millionths < 0 || request->threshold_millionths > WHOLE)
        return error_set(error, -EINVAL, CODE_COMPUTE_FAILED,
                         "a threshold of %d millionths is not between 0 and 1",
                         request->threshold_millionths);
    for (int i = 0; i < TEXTURE_PATTERNS; i++) {
        if (request->maps[i] && !request->wanted[i])
            return error_set(error, -EINVAL, CODE_COMPUTE_FAILED,
                             "there is a map for pattern %d, which is not wanted", i);
        any |= request->wanted[i];
    }
    if (!any)
        return error_set(error, -EINVAL, CODE_COMPUTE_FAILED, "no pattern is wanted");
    if (request->region_count > 0 && (!request->regions || !request->histograms))
        return error_set(error, -EINVAL, CODE_COMPUTE_FAILED,
                         "there is no room for the histograms of %zu regions",
                         request->region_count);
    return 0;
}

int
texture_patterns_run(struct kernels_lane *lane, const struct texture_patterns *request,
                     struct error *error)
{
    int rc = check_patterns(request, error);

    return rc ? rc : kernels_op_run(lane, KERNELS_PATTERNS, request, error);
}
