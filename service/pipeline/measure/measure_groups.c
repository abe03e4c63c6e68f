/* measure_groups.c - see measure_groups.h. */
#include "service/pipeline/measure/measure_groups.h"

#include "base/error.h"
#include "service/pipeline/measure/measure_demand.h"
#include "service/pipeline/measure/measure_shared.h"

#include "kernels/texture/texture.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool
maps_are_wanted(const struct conf_pipeline *pipeline)
{
    return (pipeline->results & CONF_RESULT_PMAP) != 0;
}

static struct texture_bytes
group_bytes(const struct conf_pipeline *pipeline, size_t group, const struct grid *grid)
{
    const struct texture_options *options = &pipeline->texture[group];
    const size_t regions = pipeline->segment_count + 1;
    return grid->real ? texture_bytes_of_reals(options, grid->instances, grid->stack, grid->source_instances,
                                               grid->source, regions)
                      : texture_bytes(options, grid->instances, grid->stack, regions);
}

void
texture_groups_demand(const struct conf_pipeline *pipeline, const struct grid *grid, int64_t passing,
                      struct kernels_demand *demand)
{
    int64_t most = passing;
    for (size_t g = 0; g < pipeline->texture_count; g++) {
        if (grid_is_other(&pipeline->texture[g], grid))
            continue;
        const struct texture_bytes bytes = group_bytes(pipeline, g, grid);
        texture_demand(&pipeline->texture[g], maps_are_wanted(pipeline), demand);
        demand->beside_bytes += bytes.lasting;
        most = bytes.passing > most ? bytes.passing : most;
    }
    demand->beside_bytes += most - passing;
}

/* ------------------------------------------------------------------- shared responses ---- */

/* Returns whether two groups have one response. Those of image types are doubles and stay with their group, as do those
 * of normalised values. */
static bool
share_response(const struct texture_options *a, const struct texture_options *b)
{
    return a->filter && b->filter && !filter_is_image_type(a->filter->kind) && !a->normalise && !b->normalise &&
           texture_resample_same(a->resample, b->resample) && filter_same(a->filter, b->filter);
}

/* Returns the group that keeps the response of a group: the first one that shares it. */
static size_t
keeper_of(const struct conf_pipeline *pipeline, size_t group)
{
    size_t g = 0;
    while (g < group && !share_response(&pipeline->texture[g], &pipeline->texture[group]))
        g++;
    return g;
}

/* Returns whether a response is needed after a group: by a later one that shares it, or as a result. */
static bool
response_is_needed(const struct conf_pipeline *pipeline, size_t keeper, size_t after)
{
    for (size_t g = 0; g < pipeline->texture_count; g++)
        if ((g > after || pipeline->texture[g].response) &&
            share_response(&pipeline->texture[keeper], &pipeline->texture[g]))
            return true;
    return false;
}

const struct filter_response *
texture_groups_response(const struct texture_groups *groups, size_t group, const struct grid **grid)
{
    const size_t keeper = keeper_of(groups->pipeline, group);
    *grid = &groups->grids[keeper];
    return &groups->responses[keeper];
}

/* Returns the bytes of responses of other filters that are kept while a group is measured. */
static int64_t
held_bytes(const struct texture_groups *groups, size_t group)
{
    int64_t bytes = 0;
    for (size_t g = 0; g < group; g++)
        if (groups->pipeline->texture[g].filter && keeper_of(groups->pipeline, g) == g &&
            g != keeper_of(groups->pipeline, group) && response_is_needed(groups->pipeline, g, group))
            bytes += image_voxels(&groups->grids[g].to.extent) * (int64_t)sizeof(int32_t);
    return bytes;
}

/* ------------------------------------------------------------------------------- preparing -- */

static int64_t
most_beside(const struct texture_groups *groups, size_t group, int64_t most_bytes)
{
    const int64_t beside =
        grid_spaced_bytes(&groups->grids[group], groups->pipeline->segment_count) + held_bytes(groups, group);
    if (most_bytes <= 0)
        return 0;
    return most_bytes > beside ? most_bytes - beside : 1;
}

/* Begins the job's volume in the second lane, for resampling. */
static int
begin_source(const struct texture_groups *groups, size_t group, int64_t most_bytes, void **voxels, struct error *error)
{
    const struct grid *grid = &groups->grids[group];
    const struct kernels_demand demand = {.of = {[KERNELS_RESAMPLE] = &grid->demand},
                                          .most_bytes = most_beside(groups, group, most_bytes)};
    return kernels_volume_begin(groups->lane, grid_source_extent(grid), grid->source->pixel, &demand, voxels, error);
}

/* Begins the resampled volume, for measuring. */
static int
begin_spaced(const struct texture_groups *groups, size_t group, int64_t most_bytes, void **voxels, struct error *error)
{
    const struct grid *grid = &groups->grids[group];
    struct kernels_demand demand = {.of = {NULL}, .most_bytes = most_beside(groups, group, most_bytes)};
    const struct texture_bytes bytes = group_bytes(groups->pipeline, group, grid);
    texture_demand(&groups->pipeline->texture[group], maps_are_wanted(groups->pipeline), &demand);
    demand.beside_bytes = bytes.lasting + bytes.passing;
    if (grid->real) /* these read values on the host */
        demand.of[KERNELS_HISTOGRAM] = demand.of[KERNELS_PEAKS] = demand.of[KERNELS_LAGS] = NULL;
    return kernels_volume_begin(groups->lane, grid->to.extent, grid->stack->pixel, &demand, voxels, error);
}

/* Begins a volume of the grid, for the filter. */
static int
begin_filtered(const struct texture_groups *groups, size_t group, int64_t most_bytes, struct error *error)
{
    const struct grid *grid = &groups->grids[group];
    struct kernels_demand demand = {.most_bytes = most_beside(groups, group, most_bytes)};
    struct texture_filter_demand own;
    void *voxels;
    texture_filter_demand_set(&groups->pipeline->texture[group], grid, &own, &demand);
    return kernels_volume_begin(groups->lane, grid->to.extent, IMAGE_UINT8, &demand, &voxels, error);
}

static int
tell_why_more(const struct grid *grid, int rc, struct error *error)
{
    const size_t length = strlen(error->message);
    if (rc && error->code == CODE_JOB_TOO_LARGE)
        snprintf(error->message + length, sizeof error->message - length,
                 " of it besides the volume itself, for %s: larger voxels need less", grid->text);
    return rc;
}

/* Makes the grid of a group, and reserves memory for all of it. */
static int
prepare_group(struct texture_groups *groups, size_t group, struct kernels_device *device, int64_t most_bytes,
              struct error *error)
{
    const struct texture_options *options = &groups->pipeline->texture[group];
    struct grid *grid = &groups->grids[group];
    void *voxels;
    int rc = grid_make_spaced(options, groups->grid, grid, error);
    if (rc == 0 && !groups->lane)
        rc = kernels_lane_open(device, &groups->lane, error);
    if (rc)
        return rc;
    rc = begin_source(groups, group, most_bytes, &voxels, error);
    if (rc == 0)
        rc = begin_spaced(groups, group, most_bytes, &voxels, error);
    if (rc == 0 && options->filter)
        rc = begin_filtered(groups, group, most_bytes, error);
    rc = tell_why_more(grid, rc, error);
    return rc == -E2BIG && !(options->regions & CONF_VOLUME) && !options->response ? 0 : rc;
}

int
texture_groups_prepare(struct texture_groups *groups, struct kernels_device *device, int64_t most_bytes,
                       struct error *error)
{
    const size_t count = groups->pipeline->texture_count;
    int rc = 0;
    groups->grids = calloc(count + 1, sizeof *groups->grids);
    groups->responses = calloc(count + 1, sizeof *groups->responses);
    if (!groups->grids || !groups->responses)
        return error_set_system(error, -ENOMEM, "measure texture");
    for (size_t g = 0; g < count && rc == 0; g++)
        if (grid_is_other(&groups->pipeline->texture[g], groups->grid))
            rc = prepare_group(groups, g, device, most_bytes, error);
    return rc;
}

void
texture_groups_release(struct texture_groups *groups)
{
    for (size_t g = 0; groups->grids && g < groups->pipeline->texture_count; g++)
        grid_release(&groups->grids[g]);
    for (size_t g = 0; groups->responses && g < groups->pipeline->texture_count; g++)
        free(groups->responses[g].codes);
    free(groups->grids);
    free(groups->responses);
    kernels_lane_close(groups->lane);
    groups->grids = NULL;
    groups->responses = NULL;
    groups->lane = NULL;
}

/* ------------------------------------------------------------------------------- measuring -- */

struct regions {
    struct texture_region *at;
    uint64_t **bits; /* of each region with resampled bits */
    size_t count;
};

/* Lists the segments to measure with their numbers, and the whole volume. */
static int
list_regions(const struct conf_pipeline *pipeline, const struct texture_options *options,
             const struct image_mask *masks, struct regions *regions, struct error *error)
{
    *regions = (struct regions){.at = calloc(pipeline->segment_count + 1, sizeof *regions->at),
                                .bits = calloc(pipeline->segment_count + 1, sizeof *regions->bits)};
    if (!regions->at || !regions->bits)
        return error_set_system(error, -ENOMEM, "list the regions");
    for (size_t i = 0; i < pipeline->segment_count; i++)
        if ((options->regions & CONF_SEGMENTS) && !pipeline->segments[i].hidden)
            regions->at[regions->count++] =
                (struct texture_region){conf_segment_number(pipeline, i), pipeline->segments[i].label, masks[i].bits};
    if (options->regions & CONF_VOLUME)
        regions->at[regions->count++] = (struct texture_region){0, "", NULL};
    return 0;
}

static void
regions_free(struct regions *regions)
{
    for (size_t r = 0; regions->bits && r < regions->count; r++)
        free(regions->bits[r]);
    free(regions->bits);
    free(regions->at);
}

/*
 * Computes the common box of all regions on the planes; one voxel if they are empty. Returns false
 * if the whole volume is one of them.
 */
static bool
box_regions(const struct grid *grid, const struct regions *regions, int64_t first[3], int64_t size[3])
{
    int64_t end[3] = {0, 0, 0};
    struct texture_box box;
    for (int axis = 0; axis < 3; axis++)
        first[axis] = INT64_MAX;
    for (size_t r = 0; r < regions->count; r++) {
        if (!regions->at[r].bits)
            return false;
        texture_box_of(regions->at[r].bits, &grid->planes.extent, &box);
        for (int axis = 0; axis < 3 && box.size[0] > 0; axis++) {
            const int64_t past = box.first[axis] + box.size[axis];
            first[axis] = box.first[axis] < first[axis] ? box.first[axis] : first[axis];
            end[axis] = past > end[axis] ? past : end[axis];
        }
    }
    for (int axis = 0; axis < 3; axis++) {
        first[axis] = end[axis] > 0 ? first[axis] : 0;
        size[axis] = end[axis] > 0 ? end[axis] - first[axis] : 1;
    }
    return true;
}

/* Resamples the job's volume in the second lane to the group's grid. */
static int
interpolate(const struct texture_groups *groups, size_t group, const void *voxels, int64_t most_bytes,
            struct error *error)
{
    struct grid *grid = &groups->grids[group];
    const int64_t most = most_beside(groups, group, most_bytes);
    void *place;
    int rc = tell_why_more(grid, begin_source(groups, group, most_bytes, &place, error), error);
    if (rc)
        return rc;
    grid_copy_source(grid, voxels, place);
    rc = kernels_volume_ready(groups->lane, 0, grid_source_extent(grid).slices, error);
    if (rc == 0)
        rc = grid_interpolate(grid, groups->lane, voxels, most, error);
    if (rc || grid->real) /* each region begins the volume of its levels */
        return rc;
    rc = tell_why_more(grid, begin_spaced(groups, group, most_bytes, &place, error), error);
    if (rc)
        return rc;
    memcpy(place, grid->voxels, grid_voxel_bytes(grid));
    return kernels_volume_ready(groups->lane, 0, grid->to.extent.slices, error);
}

/* A group whose values are not rounded. */
struct real_group {
    const struct texture_groups *groups;
    size_t group;
    int64_t most_bytes;
};

static int
begin_levels(const void *context, void **voxels, struct error *error)
{
    const struct real_group *real = context;
    return tell_why_more(&real->groups->grids[real->group],
                         begin_spaced(real->groups, real->group, real->most_bytes, voxels, error), error);
}

/* Narrows the grid of a group to its regions, and to those of the groups that share its response. */
static int
narrow_grid(const struct texture_groups *groups, size_t group, const struct image_mask *masks, struct error *error)
{
    const struct texture_options *options = &groups->pipeline->texture[group];
    struct grid *grid = &groups->grids[group];
    const double filter = options->filter ? texture_filter_margin(options, grid->to.spacing) : 0;
    const bool is_cropped = grid->image_type && options->filter->around >= 0;
    struct texture_options all = *options;
    double margin = texture_margin(options);
    struct regions regions;
    int64_t first[3], size[3];
    for (size_t g = 0; g < groups->pipeline->texture_count; g++)
        if (share_response(options, &groups->pipeline->texture[g])) {
            all.regions |= groups->pipeline->texture[g].response ? CONF_VOLUME : groups->pipeline->texture[g].regions;
            margin = fmax(margin, texture_margin(&groups->pipeline->texture[g]));
        }
    if (filter < 0 && !is_cropped)
        return 0;
    const int rc = list_regions(groups->pipeline, &all, masks, &regions, error);
    if (rc == 0 && box_regions(grid, &regions, first, size)) {
        if (is_cropped)
            grid_narrow_around(grid, first, size, options->filter->around);
        else
            grid_narrow(grid, first, size, filter + margin);
    }
    regions_free(&regions);
    return rc;
}

/* Makes the group's grid around its regions, resamples regions and values to it, and filters the values. `lane` has the
 * job's volume. */
static int
take_grid(struct texture_groups *groups, size_t group, struct regions *regions, struct kernels_lane *lane,
          const void *voxels, const struct image_mask *masks, int64_t most_bytes, struct error *error)
{
    const struct texture_options *options = &groups->pipeline->texture[group];
    const size_t keeper = keeper_of(groups->pipeline, group);
    struct grid *grid = &groups->grids[group];
    struct image_mask mask;
    int rc = narrow_grid(groups, group, masks, error);
    for (size_t r = 0; r < regions->count && rc == 0; r++) {
        if (!regions->at[r].bits)
            continue;
        rc = grid_mask_by_half(grid, regions->at[r].bits, &regions->bits[r], &mask, error);
        regions->at[r].bits = regions->bits[r];
    }
    if (rc == 0 && (!options->filter || texture_filter_reads(options, &groups->responses[keeper])))
        rc = interpolate(groups, group, voxels, most_bytes, error);
    if (rc || !options->filter)
        return rc;
    const struct texture_filtering filtering = {
        .options = options,
        .grid = grid,
        .lane = groups->lane,
        .most_bytes = most_beside(groups, group, most_bytes),
        .whole = lane,
        .regions = regions->at,
        .region_count = regions->count,
        .range = &groups->range,
        .response = &groups->responses[keeper],
    };
    return tell_why_more(grid, texture_filter(&filtering, error), error);
}

/* Frees the values of a group, and its response if no later group shares it. */
static void
texture_group_end(struct texture_groups *groups, size_t group)
{
    const size_t keeper = keeper_of(groups->pipeline, group);
    free(groups->grids[group].voxels);
    groups->grids[group].voxels = NULL;
    if (!response_is_needed(groups->pipeline, keeper, group)) {
        free(groups->responses[keeper].codes);
        groups->responses[keeper].codes = NULL;
    }
}

static int
measure_group(struct texture_groups *groups, size_t group, struct kernels_lane *lane, const void *voxels,
              const struct image_mask *masks, int64_t most_bytes, struct shared_values *shared,
              struct texture_result *result, struct error *error)
{
    const struct texture_options *options = &groups->pipeline->texture[group];
    const bool is_other = grid_is_other(options, groups->grid);
    const struct grid *grid = is_other ? &groups->grids[group] : groups->grid;
    struct texture_options of_responses = *options;
    struct regions regions;
    int rc = list_regions(groups->pipeline, options, masks, &regions, error);
    if (rc == 0 && is_other)
        rc = take_grid(groups, group, &regions, lane, voxels, masks, most_bytes, error);
    of_responses.levels.has_range = false; /* of the values, and already applied to the responses */
    const struct real_group real = {groups, group, most_bytes};
    const struct texture_request request = {
        .reals = grid->real ? grid->voxels : NULL,
        .begin = begin_levels,
        .begin_context = &real,
        .rounded = grid->rounded,
        .filtered = options->filter && options->levels.has_range ? options->levels.range : NULL,
        .options = options->filter ? &of_responses : options,
        .instances = grid->instances,
        .stack = grid->stack,
        .regions = regions.at,
        .region_count = regions.count,
        .maps = maps_are_wanted(groups->pipeline),
        .lane = is_other ? groups->lane : lane,
        .valuing = groups->valuing,
        .first = {grid->to.first[0], grid->to.first[1], grid->to.first[2]},
        .shared = shared,
        .watch = groups->watch,
    };
    if (rc == 0)
        rc = texture_measure(&request, result, error);
    texture_group_end(groups, group);
    regions_free(&regions);
    return rc;
}

int
texture_groups_measure(struct texture_groups *groups, struct kernels_lane *lane, const void *voxels,
                       const struct image_mask *masks, int64_t most_bytes, struct texture_result *result,
                       struct error *error)
{
    const size_t count = groups->pipeline->texture_count;
    struct shared_values shared = {.items = NULL};
    int rc = 0;
    memset(result, 0, sizeof *result);
    for (size_t g = 0; g < count && rc == 0; g++)
        rc = measure_group(groups, g, lane, voxels, masks, most_bytes, &shared, result, error);
    shared_values_clear(&shared);
    if (rc == 0 && count > 1 && feature_set_order(&result->features))
        rc = error_set_system(error, -ENOMEM, "measure texture");
    if (rc)
        texture_result_clear(result);
    return rc;
}
