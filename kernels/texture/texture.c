/*
 * texture.c - the argument checks of texture.h, once for all backends.
 */
#include "kernels/texture/texture.h"
#include "kernels/op.h"
#include "kernels/texture/zones/zone_tally.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    LARGEST_OFFSET = 255,
    WHOLE = 1000000, /* a threshold of 1, in millionths */
};

static uint16_t
texture_highest_level(const uint16_t *level_of, size_t count)
{
    uint16_t highest = 0;

    for (size_t i = 0; i < count; i++)
        highest = level_of[i] > highest ? level_of[i] : highest;
    return highest;
}

static int
check_levels(const struct kernels_lane *lane, const struct texture_levels *levels, struct error *error)
{
    size_t values = lane->pixel == IMAGE_UINT8 ? 256 : 65536;

    if (levels->levels < 2 || levels->levels > TEXTURE_MAX_LEVELS)
        return error_set(error, -EINVAL, CODE_COMPUTE_FAILED, "%d grey levels are not possible; 2 to %d are",
                         levels->levels, TEXTURE_MAX_LEVELS);
    if (!levels->level_of || (levels->table_count != 1 && levels->table_count != (size_t)lane->extent.slices))
        return error_set(error, -EINVAL, CODE_COMPUTE_FAILED,
                         "there are %zu tables of levels; it takes 1 or one for each of %lld slices",
                         levels->level_of ? levels->table_count : 0, (long long)lane->extent.slices);
    for (size_t i = 0; i < levels->table_count; i++)
        if (texture_highest_level(levels->level_of + i * values, values) > levels->levels)
            return error_set(error, -EINVAL, CODE_COMPUTE_FAILED, "table %zu has a level above the highest one, %d", i,
                             levels->levels);
    return 0;
}

/* Returns the Chebyshev distance. */
static int64_t
texture_longest_side(struct texture_offset offset)
{
    const int64_t x = llabs(offset.x), y = llabs(offset.y), z = llabs(offset.z);
    const int64_t across = x > y ? x : y;

    return across > z ? across : z;
}

static int
no_room(struct error *error)
{
    return error_set(error, -EINVAL, CODE_COMPUTE_FAILED, "there is no room for the counts");
}

int
texture_glcm_run(struct kernels_lane *lane, const struct texture_glcm *glcm, uint64_t *counts, struct error *error)
{
    const struct texture_glcm_request request = {glcm, counts};
    int rc = kernels_op_check(lane, KERNELS_GLCM, error);

    if (rc == 0)
        rc = check_levels(lane, &glcm->levels, error);
    if (rc)
        return rc;
    if (!glcm->offsets || glcm->offset_count == 0)
        return error_set(error, -EINVAL, CODE_COMPUTE_FAILED, "there are no offsets");
    for (size_t i = 0; i < glcm->offset_count; i++) {
        const struct texture_offset offset = glcm->offsets[i];
        const int64_t longest = texture_longest_side(offset);

        if (longest == 0 || longest > LARGEST_OFFSET)
            return error_set(error, -EINVAL, CODE_COMPUTE_FAILED, "offset %zu, (%d, %d, %d), is none or longer than %d",
                             i, offset.x, offset.y, offset.z, LARGEST_OFFSET);
    }
    return counts ? kernels_op_run(lane, KERNELS_GLCM, &request, error) : no_room(error);
}

int
texture_neighbours_run(struct kernels_lane *lane, const struct texture_neighbours *neighbours, uint64_t *counts,
                       struct error *error)
{
    const struct texture_neighbours_request request = {neighbours, counts};
    int rc = kernels_op_check(lane, KERNELS_NEIGHBOURS, error);

    if (rc == 0)
        rc = check_levels(lane, &neighbours->levels, error);
    if (rc)
        return rc;
    if (neighbours->distance < 1 || neighbours->distance > TEXTURE_MAX_DISTANCE)
        return error_set(error, -EINVAL, CODE_COMPUTE_FAILED, "a distance of %d is not between 1 and %d",
                         neighbours->distance, TEXTURE_MAX_DISTANCE);
    if (neighbours->alpha < 0 || neighbours->alpha > TEXTURE_MAX_LEVELS)
        return error_set(error, -EINVAL, CODE_COMPUTE_FAILED, "levels that are %d apart are not alike; 0 to %d are",
                         neighbours->alpha, TEXTURE_MAX_LEVELS);
    if (neighbours->per_slice && !neighbours->in_slice)
        return error_set(error, -EINVAL, CODE_COMPUTE_FAILED, "neighbours in space are not of one slice");
    return counts ? kernels_op_run(lane, KERNELS_NEIGHBOURS, &request, error) : no_room(error);
}

int
texture_runs_run(struct kernels_lane *lane, const struct texture_runs *runs, uint64_t *counts, struct error *error)
{
    const struct texture_runs_request request = {runs, counts};
    struct texture_box box;
    bool deep = false; /* runs lead to other slices */
    int rc = kernels_op_check(lane, KERNELS_RUNS, error);

    if (rc == 0)
        rc = check_levels(lane, &runs->levels, error);
    if (rc)
        return rc;
    if (!runs->directions || runs->direction_count < 1 || runs->direction_count > TEXTURE_MAX_DIRECTIONS)
        return error_set(error, -EINVAL, CODE_COMPUTE_FAILED, "%zu directions are not possible; 1 to %d are",
                         runs->direction_count, TEXTURE_MAX_DIRECTIONS);
    for (size_t i = 0; i < runs->direction_count; i++) {
        const struct texture_offset direction = runs->directions[i];

        if (texture_longest_side(direction) != 1 || (runs->per_slice && direction.z != 0))
            return error_set(error, -EINVAL, CODE_COMPUTE_FAILED,
                             "direction %zu does not lead to a neighbour, or leads to another slice", i);
        deep |= direction.z != 0;
    }
    texture_region_box(lane, runs->region, &box);
    for (int axis = 0; axis < 2 + deep; axis++)
        if (box.size[axis] > TEXTURE_MAX_RUN)
            return error_set(error, -E2BIG, CODE_VOLUME_TOO_LARGE,
                             "runs in a region of %lld voxels along an axis may be longer than %d",
                             (long long)box.size[axis], TEXTURE_MAX_RUN);
        else if (box.size[axis] > runs->longest || runs->longest > TEXTURE_MAX_RUN)
            return error_set(error, -EINVAL, CODE_COMPUTE_FAILED,
                             "there is room for runs of %lld voxels, not for those of the region",
                             (long long)runs->longest);
    return counts ? kernels_op_run(lane, KERNELS_RUNS, &request, error) : no_room(error);
}

static int
check_zones(const struct kernels_lane *lane, const struct texture_zones *request, struct error *error)
{
    struct texture_box box;

    if (request->per_slice && !request->in_slice)
        return error_set(error, -EINVAL, CODE_COMPUTE_FAILED, "zones in space are not of one slice");
    texture_region_box(lane, request->region, &box);
    if ((double)(box.size[0] + 2) * (double)(box.size[1] + 2) * (double)(box.size[2] + 2) >= 0x1p31)
        return error_set(error, -E2BIG, CODE_VOLUME_TOO_LARGE,
                         "zones in a region of %lld x %lld x %lld voxels exceed the limit of 2^31 labels",
                         (long long)box.size[0], (long long)box.size[1], (long long)box.size[2]);
    return 0;
}

int
texture_zones_run(struct kernels_lane *lane, const struct texture_zones *zones,
                  struct texture_zone_list lists[TEXTURE_ZONE_KINDS], struct error *error)
{
    struct zone_tally tallies[TEXTURE_ZONE_KINDS] = {{.room = 0}};
    const struct texture_zones_request request = {zones, tallies};
    int rc = kernels_op_check(lane, KERNELS_ZONES, error);

    if (rc == 0)
        rc = check_levels(lane, &zones->levels, error);
    if (rc == 0)
        rc = check_zones(lane, zones, error);
    if (rc == 0)
        rc = kernels_op_run(lane, KERNELS_ZONES, &request, error);
    for (int kind = 0; kind < TEXTURE_ZONE_KINDS; kind++)
        zone_tally_list(&tallies[kind], &lists[kind]);
    return rc;
}

int
texture_histogram_run(struct kernels_lane *lane, const uint64_t *region, bool per_slice, uint64_t *counts,
                      struct error *error)
{
    const struct texture_histogram_request request = {region, per_slice, counts};

    return counts ? kernels_op_run(lane, KERNELS_HISTOGRAM, &request, error) : no_room(error);
}

/* ------------------------------------------------------------------------------ local patterns -- */

const struct texture_patterns_demand texture_patterns_demands[TEXTURE_PATTERNS + 1] = {
    {.maps = 0}, {.maps = 1}, {.maps = 2}, {.maps = 3}};
const struct texture_patterns_demand texture_patterns_demand_ahead = {.ahead = true};

_Static_assert(TEXTURE_PATTERNS == 3, "there is a demand for each number of maps");

size_t
texture_patterns_codes(const struct image_extent *extent)
{
    if (extent->columns < 3 || extent->rows < 3)
        return 0;
    return (size_t)((extent->columns - 2) * (extent->rows - 2) * extent->slices);
}

bool
texture_patterns_needs(struct kernels_lane *lane, const void *demand)
{
    struct texture_patterns_state *state = kernels_state(lane, KERNELS_PATTERNS);

    state->demand = *(const struct texture_patterns_demand *)demand;
    memset(state->maps, 0, sizeof(state->maps));
    return true;
}

void
texture_patterns_keep(struct kernels_lane *lane, struct kernels_memory *memory)
{
    struct texture_patterns_state *state = kernels_state(lane, KERNELS_PATTERNS);
    const size_t codes = texture_patterns_codes(&lane->extent);

    for (int i = 0; i < state->demand.maps; i++)
        state->room[i] = kernels_take(&memory->host, codes, sizeof(**state->room));
}

static int
check_patterns(const struct texture_patterns *request, struct error *error)
{
    bool any = false;

    if (request->threshold_millionths < 0 || request->threshold_millionths > WHOLE)
        return error_set(error, -EINVAL, CODE_COMPUTE_FAILED, "a threshold of %d millionths is not between 0 and 1",
                         request->threshold_millionths);
    for (int i = 0; i < TEXTURE_PATTERNS; i++) {
        if (request->maps[i] && !request->wanted[i])
            return error_set(error, -EINVAL, CODE_COMPUTE_FAILED, "there is a map for pattern %d, which is not wanted",
                             i);
        any |= request->wanted[i];
    }
    if (!any)
        return error_set(error, -EINVAL, CODE_COMPUTE_FAILED, "no pattern is wanted");
    if (request->region_count > 0 && (!request->regions || !request->histograms))
        return error_set(error, -EINVAL, CODE_COMPUTE_FAILED, "there is no room for the histograms of %zu regions",
                         request->region_count);
    return 0;
}

int
texture_patterns_run(struct kernels_lane *lane, const struct texture_patterns *request, struct error *error)
{
    struct texture_patterns_state *state = kernels_state(lane, KERNELS_PATTERNS);
    int rc = check_patterns(request, error), count = 0;

    if (rc == 0)
        rc = kernels_op_check(lane, KERNELS_PATTERNS, error);
    if (rc)
        return rc;
    for (int i = 0; i < TEXTURE_PATTERNS; i++)
        count += request->maps[i];
    if (count > state->demand.maps)
        return error_set(error, -EINVAL, CODE_COMPUTE_FAILED, "there is room for %d maps of patterns, not for %d",
                         state->demand.maps, count);
    /* Assign memory to the requested maps. */
    count = 0;
    for (int i = 0; i < TEXTURE_PATTERNS; i++)
        state->maps[i] = request->maps[i] ? state->room[count++] : NULL;
    return kernels_op_run(lane, KERNELS_PATTERNS, request, error);
}

int
texture_patterns_begin(struct kernels_lane *lane, const struct texture_patterns *request, struct error *error)
{
    const struct texture_patterns_state *state = kernels_state(lane, KERNELS_PATTERNS);
    const int rc = check_patterns(request, error);

    if (rc || !kernels_lane_beside(lane))
        return rc;
    if (!state->demand.ahead)
        return error_set(error, -EINVAL, CODE_COMPUTE_FAILED, "there is no room for patterns ahead");
    return kernels_op_begin(lane, KERNELS_PATTERNS, request, error);
}

const uint8_t *
texture_patterns_map(const struct kernels_lane *lane, enum texture_pattern pattern)
{
    const struct texture_patterns_state *state = kernels_state(lane, KERNELS_PATTERNS);

    return state->maps[pattern];
}
