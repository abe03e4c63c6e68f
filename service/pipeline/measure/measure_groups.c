/* measure_groups.c - see measure_groups.h. */
#include "service/pipeline/measure/measure_groups.h"

#include "base/error.h"
#include "service/pipeline/flat_image.h"
#include "service/pipeline/measure/measure_demand.h"
#include "service/pipeline/measure/measure_grids.h"
#include "service/pipeline/measure/measure_shared.h"
#include "service/pipeline/measure/measure_values.h"
#include "service/pipeline/measure/measure_voxelwise.h"

#include "kernels/features/patterns.h"
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

enum { AHEAD_SHARE = 8 }; /* codes ahead take at most this part of the GPU's memory */

void
texture_groups_demand_ahead(struct kernels_device *device, const struct kernels_lane *lane, const struct grid *grid,
                            struct kernels_demand *demand)
{
    const int64_t codes = TEXTURE_PATTERNS * (int64_t)grid->stack->columns * grid->stack->rows;
    struct kernels_gpu_memory memory;
    if (grid->stack->plane_count == 1 && !grid->straight && kernels_lane_beside(lane) &&
        demand->of[KERNELS_PATTERNS] == &texture_patterns_demands[0] && kernels_device_memory(device, &memory) == 0 &&
        codes < memory.usable / AHEAD_SHARE)
        demand->of[KERNELS_PATTERNS] = &texture_patterns_demand_ahead;
}

int
texture_groups_begin_ahead(const struct conf_pipeline *pipeline, const struct grid *grid,
                           const struct kernels_demand *demand, struct kernels_lane *lane, struct error *error)
{
    size_t g = 0;
    if (demand->of[KERNELS_PATTERNS] != &texture_patterns_demand_ahead)
        return 0;
    while (!pipeline->texture[g].patterns || grid_is_other(&pipeline->texture[g], grid))
        g++;
    const struct texture_patterns request = patterns_request(&pipeline->texture[g]);
    return texture_patterns_begin(lane, &request, error);
}

const struct filter_response *
texture_groups_response(const struct texture_groups *groups, size_t group, const struct grid **grid)
{
    const size_t responder = groups->values[group].responder;
    *grid = &groups->grids[responder];
    return &groups->values[responder].response;
}

const struct grid *
texture_groups_grid(const struct texture_groups *groups, size_t group)
{
    return grid_is_other(&groups->pipeline->texture[group], groups->grid) ? &groups->grids[group] : groups->grid;
}

/* The part of a job's memory that a group may need, if its values are made while the next groups begin. One of those may have
 * eight responses in place of one. */
enum { GROUPS_TOGETHER = 4 + GROUPS_WAITING };

enum {
    GROUP_HELD = 48 << 20
}; /* bytes of a group's values, if these may wait: their sorted list takes six times as many */

/* ------------------------------------------------------------------------------- preparing -- */

/* Begins the resampled volume, for measuring. */
static int
begin_spaced(const struct texture_groups *groups, size_t group, int64_t most_bytes, void **voxels, struct error *error)
{
    const struct grid *grid = &groups->grids[group];
    struct kernels_demand demand = {.of = {NULL}, .most_bytes = group_grids_most(groups, group, most_bytes)};
    const struct texture_bytes bytes = group_bytes(groups->pipeline, group, grid);
    texture_demand(&groups->pipeline->texture[group], maps_are_wanted(groups->pipeline), &demand);
    demand.beside_bytes = bytes.lasting + bytes.passing;
    if (grid->real) /* these read values on the host */
        demand.of[KERNELS_HISTOGRAM] = demand.of[KERNELS_PEAKS] = demand.of[KERNELS_LAGS] = NULL;
    return kernels_volume_begin(groups->lane, grid->to.extent, grid->stack->pixel, &demand, voxels, error);
}

/* Reserves memory for all of the group's grid. */
static int
prepare_group(struct texture_groups *groups, size_t group, struct kernels_device *device, int64_t most_bytes,
              struct error *error)
{
    const struct texture_options *options = &groups->pipeline->texture[group];
    void *voxels;
    int rc = groups->lane ? 0 : kernels_lane_open(device, &groups->lane, error);
    if (rc)
        return rc;
    if (!groups->grids[group].same)
        rc = group_grids_begin_source(groups, group, most_bytes, &voxels, error);
    if (rc == 0)
        rc = begin_spaced(groups, group, most_bytes, &voxels, error);
    if (rc == 0 && options->filter)
        rc = group_grids_begin_filter(groups, group, most_bytes, error);
    rc = group_grids_tell(&groups->grids[group], rc, error);
    return rc == -E2BIG && !(options->regions & CONF_VOLUME) && !options->response ? 0 : rc;
}

int
texture_groups_prepare(struct texture_groups *groups, struct kernels_device *device, int64_t most_bytes,
                       struct error *error)
{
    int rc = group_grids_make(groups, error);
    for (size_t g = 0; g < groups->pipeline->texture_count && rc == 0; g++)
        if (grid_is_other(&groups->pipeline->texture[g], groups->grid))
            rc = prepare_group(groups, g, device, most_bytes, error);
    return rc;
}

void
texture_groups_release(struct texture_groups *groups)
{
    group_grids_release(groups);
    if (!groups->borrows_lane)
        kernels_lane_close(groups->lane);
    groups->lane = NULL;
}

/* ------------------------------------------------------------------------------- measuring -- */

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
    return group_grids_tell(&real->groups->grids[real->group],
                            begin_spaced(real->groups, real->group, real->most_bytes, voxels, error), error);
}

/* Begins the volume of a group's grid, with its values. Regions of values that are not rounded begin it for their levels. */
static int
begin_stored(const struct texture_groups *groups, size_t group, int64_t most_bytes, struct error *error)
{
    const struct grid *grid = &groups->grids[group];
    void *place;
    const int rc = group_grids_tell(grid, begin_spaced(groups, group, most_bytes, &place, error), error);
    if (rc)
        return rc;
    memcpy(place, grid->voxels, grid_voxel_bytes(grid));
    return kernels_volume_ready(groups->lane, 0, grid->to.extent.slices, error);
}

/* A group with values that threads may still compute, and the data that they need. */
struct measured_group {
    struct texture_options options;
    struct group_regions regions;
    void *voxels;
    struct step *left;
};

/* Groups of a job with values that are not taken yet, a ring. Each place has threads of its own for values; the first place has
 * those of the job. */
struct waiting_groups {
    struct measured_group at[GROUPS_WAITING];
    struct valuing *valuing[GROUPS_WAITING];
    size_t first, count, most;
};

/* Takes the values of the oldest group, unless there was an error. */
static int
waiting_take_first(struct waiting_groups *waiting, int rc)
{
    struct measured_group *group = &waiting->at[waiting->first];
    const int own = texture_end(group->left);
    free(group->voxels);
    group_regions_free(&group->regions);
    *group = (struct measured_group){.left = NULL};
    waiting->first = (waiting->first + 1) % waiting->most;
    waiting->count--;
    return rc ? rc : own;
}

static int
waiting_take_all(struct waiting_groups *waiting, int rc)
{
    while (waiting->count > 0)
        rc = waiting_take_first(waiting, rc);
    return rc;
}

/* Returns whether there is memory for the values of this group beside later ones. */
static bool
group_may_wait(const struct texture_groups *groups, size_t group, int64_t most_bytes)
{
    const struct grid *grid = &groups->grids[group];
    const int64_t values = (int64_t)grid_voxel_bytes(grid);
    const int64_t own = kernels_lane_bytes(groups->lane) + group_bytes(groups->pipeline, group, grid).passing + values;
    return groups->pipeline->texture[group].filter && values < GROUP_HELD &&
           (most_bytes <= 0 || GROUPS_TOGETHER * own <= group_grids_most(groups, group, most_bytes));
}

static int
measure_group(struct texture_groups *groups, size_t group, struct waiting_groups *waiting, struct kernels_lane *lane,
              const void *voxels, const struct image_mask *masks, int64_t most_bytes, struct shared_values *shared,
              struct texture_result *result, struct error *error)
{
    const struct texture_options *options = &groups->pipeline->texture[group];
    const struct grid *grid = texture_groups_grid(groups, group);
    const bool is_other = grid != groups->grid;
    struct group_regions regions;
    int rc = group_regions_list(groups->pipeline, options->regions, masks, &regions, error);
    for (size_t r = 0; rc == 0 && r < regions.count; r++)
        regions.at[r].lengths = flat_image_lengths(groups->grid->source, regions.at[r].bits);
    if (rc == 0 && is_other)
        rc = group_grids_take(groups, group, &regions, lane, voxels, masks, most_bytes, error);
    const bool may_wait = rc == 0 && is_other && group_may_wait(groups, group, most_bytes);
    while (waiting->count > 0 && (!may_wait || waiting->count == waiting->most))
        rc = waiting_take_first(waiting, rc);
    const size_t place = (waiting->first + waiting->count++) % waiting->most;
    struct measured_group *own = &waiting->at[place];
    *own = (struct measured_group){.options = *options, .regions = regions};
    if (rc == 0 && is_other && !grid->real)
        rc = begin_stored(groups, group, most_bytes, error);
    own->options.levels.has_range &= !options->filter; /* of the values, and already applied to the responses */
    const struct real_group real = {groups, group, most_bytes};
    const struct texture_request request = {
        .reals = grid->real ? grid->voxels : NULL,
        .begin = begin_levels,
        .begin_context = &real,
        .rounded = grid->rounded,
        .filtered = options->filter && options->levels.has_range ? options->levels.range : NULL,
        .options = options->filter ? &own->options : options,
        .instances = grid->instances,
        .stack = grid->stack,
        .flat = groups->grid->source->flat,
        .in_mm = flat_image_needs_mm(options),
        .regions = regions.at,
        .region_count = regions.count,
        .maps = maps_are_wanted(groups->pipeline),
        .lane = is_other ? groups->lane : lane,
        .valuing = waiting->valuing[place],
        .most_bytes = is_other ? group_grids_most(groups, group, most_bytes) : most_bytes,
        .first = {grid->to.first[0], grid->to.first[1], grid->to.first[2]},
        .shared = shared,
        .watch = groups->watch,
    };
    const size_t maps = result->voxelwise_count;
    if (rc == 0)
        rc = texture_begin(&request, may_wait, result, &own->left, error);
    for (size_t m = maps; m < result->voxelwise_count; m++)
        result->voxelwise[m].group = group;
    if (own->left) {
        own->voxels = groups->grids[group].voxels;
        groups->grids[group].voxels = NULL;
    }
    group_grids_end(groups, group);
    return rc;
}

/* On a GPU, values take longer than filters and counts. On the CPU, they share its processors. */
static int
waiting_open(const struct texture_groups *groups, const struct kernels_lane *lane, struct waiting_groups *waiting,
             struct error *error)
{
    const size_t threads = (size_t)kernels_lane_threads(lane);
    *waiting = (struct waiting_groups){.valuing = {groups->valuing}, .most = 1};
    while (waiting->most < GROUPS_WAITING && kernels_lane_beside(lane) && waiting->most < threads / 2) {
        waiting->valuing[waiting->most] = valuing_open();
        if (!waiting->valuing[waiting->most])
            return error_set_system(error, -ENOMEM, "measure texture");
        waiting->most++;
    }
    return 0;
}

static void
waiting_close(struct waiting_groups *waiting)
{
    for (size_t place = 1; place < waiting->most; place++)
        valuing_close(waiting->valuing[place]);
}

int
texture_groups_measure(struct texture_groups *groups, struct kernels_lane *lane, const void *voxels,
                       const struct image_mask *masks, int64_t most_bytes, struct texture_result *result,
                       struct error *error)
{
    struct shared_values shared = {.items = NULL};
    struct waiting_groups waiting;
    memset(result, 0, sizeof *result);
    int rc = waiting_open(groups, lane, &waiting, error);
    for (size_t g = 0; g < groups->pipeline->texture_count && rc == 0; g++)
        rc = measure_group(groups, g, &waiting, lane, voxels, masks, most_bytes, &shared, result, error);
    rc = waiting_take_all(&waiting, rc);
    waiting_close(&waiting);
    shared_values_clear(&shared);
    if (rc)
        texture_result_clear(result);
    return rc;
}
