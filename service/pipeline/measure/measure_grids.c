/* measure_grids.c - see measure_grids.h. */
#include "service/pipeline/measure/measure_grids.h"

#include "base/error.h"
#include "service/pipeline/measure/measure_demand.h"
#include "service/pipeline/measure/measure_groups.h"

#include "kernels/texture/region.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BANDS_HELD = 256 << 20 }; /* bytes of bands that are computed together, unless one has more */

/* ------------------------------------------------------------------------------ the regions -- */

int
group_regions_list(const struct conf_pipeline *pipeline, unsigned wanted, const struct image_mask *masks,
                   struct group_regions *regions, struct error *error)
{
    *regions = (struct group_regions){.at = calloc(pipeline->segment_count + 1, sizeof *regions->at)};
    if (!regions->at)
        return error_set_system(error, -ENOMEM, "list the regions");
    for (size_t i = 0; i < pipeline->segment_count; i++)
        if ((wanted & CONF_SEGMENTS) && !pipeline->segments[i].hidden)
            regions->at[regions->count++] = (struct texture_region){.segment = conf_segment_number(pipeline, i),
                                                                    .label = pipeline->segments[i].label,
                                                                    .bits = masks[i].bits};
    if (wanted & CONF_VOLUME)
        regions->at[regions->count++] = (struct texture_region){.label = ""};
    return 0;
}

void
group_regions_free(struct group_regions *regions)
{
    free(regions->at);
}

static void
group_masks_free(struct group_masks *masks)
{
    for (size_t r = 0; masks->bits && r < masks->count; r++)
        free(masks->bits[r]);
    free(masks->bits);
    *masks = (struct group_masks){.bits = NULL};
}

/*
 * Computes the common box of all regions on the planes; one voxel if they are empty. Returns false
 * if the whole volume is one of them.
 */
static bool
regions_box_find(const struct grid *grid, const struct group_regions *regions, int64_t first[3], int64_t size[3])
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

/* As regions_box_find(), for wanted regions (enum conf_region, or-ed). */
static int
box_regions(struct texture_groups *groups, const struct grid *grid, unsigned wanted, const struct image_mask *masks,
            struct error *error)
{
    struct regions_box *box = &groups->box;
    struct group_regions regions;
    if (box->known && box->wanted == wanted)
        return 0;
    const int rc = group_regions_list(groups->pipeline, wanted, masks, &regions, error);
    if (rc)
        return rc;
    box->bounded = regions_box_find(grid, &regions, box->first, box->size);
    box->wanted = wanted;
    box->known = true;
    group_regions_free(&regions);
    return 0;
}

/* -------------------------------------------------------------------------------- sharing ---- */

static bool
has_grid(const struct texture_groups *groups, size_t group)
{
    return groups->grids[group].from != NULL;
}

/* Returns whether two groups have one response, or bands of one transform. */
static bool
share_response(const struct texture_groups *groups, size_t a, size_t b)
{
    const struct filter_options *one = groups->pipeline->texture[a].filter,
                                *other = groups->pipeline->texture[b].filter;
    struct filter_options like;
    if (!one || !other || groups->values[a].keeper != groups->values[b].keeper)
        return false;
    like = *one;
    if (one->kind == FILTER_PYRADIOMICS_WAVELET)
        like.kernels = other->kernels;
    return filter_same(&like, other);
}

/* Finds which groups share values and responses. */
static void
find_shared(struct texture_groups *groups)
{
    const size_t count = groups->pipeline->texture_count;
    struct group_values *values = groups->values;
    for (size_t g = 0; g < count; g++) {
        size_t keeper = 0, responder = 0;
        while (keeper < g && !(has_grid(groups, keeper) && has_grid(groups, g) &&
                               grid_same_values(&groups->grids[keeper], &groups->grids[g])))
            keeper++;
        values[g].keeper = keeper;
        values[keeper].last = values[g].last = g;
        while (responder < g && !(has_grid(groups, responder) && share_response(groups, responder, g)))
            responder++;
        values[g].responder = responder;
        values[responder].listener = values[g].listener = g;
    }
}

int
group_grids_make(struct texture_groups *groups, struct error *error)
{
    const size_t count = groups->pipeline->texture_count;
    int rc = 0;
    groups->grids = calloc(count + 1, sizeof *groups->grids);
    groups->values = calloc(count + 1, sizeof *groups->values);
    if (!groups->grids || !groups->values)
        return error_set_system(error, -ENOMEM, "measure texture");
    for (size_t g = 0; g < count && rc == 0; g++)
        if (grid_is_other(&groups->pipeline->texture[g], groups->grid)) {
            rc = grid_make_spaced(&groups->pipeline->texture[g], groups->grid, &groups->grids[g], error);
            groups->values[g].filtered = grid_whole(&groups->grids[g]);
        }
    if (rc)
        return rc;
    find_shared(groups);
    for (size_t g = 0; g < count && rc == 0; g++)
        if (has_grid(groups, g) && groups->values[g].keeper == g)
            rc = grid_make_spaced(&groups->pipeline->texture[g], groups->grid, &groups->values[g].grid, error);
    return rc;
}

static void
response_free(struct filter_response *response)
{
    free(response->codes);
    for (int band = 0; band < IMAGE_TYPE_BANDS; band++)
        free(response->reals[band]);
    *response = (struct filter_response){NULL};
}

void
group_grids_release(struct texture_groups *groups)
{
    for (size_t g = 0; groups->grids && groups->values && g < groups->pipeline->texture_count; g++) {
        grid_release(&groups->grids[g]);
        grid_release(&groups->values[g].grid);
        response_free(&groups->values[g].response);
    }
    group_masks_free(&groups->masks);
    for (int i = 0; i < GROUPS_WAITING; i++)
        group_masks_free(&groups->masks_before[i]);
    free(groups->grids);
    free(groups->values);
    groups->grids = NULL;
    groups->values = NULL;
}

/* Returns whether the response of a group is needed after another one: by a later group, or as a result. */
static bool
is_needed(const struct texture_groups *groups, size_t responder, size_t after)
{
    if (groups->values[responder].listener > after)
        return true;
    for (size_t g = responder; g <= after; g++)
        if (groups->values[g].responder == responder && groups->pipeline->texture[g].response)
            return true;
    return false;
}

void
group_grids_end(struct texture_groups *groups, size_t group)
{
    struct group_values *own = &groups->values[group], *keeper = &groups->values[own->keeper];
    if (!has_grid(groups, group))
        return;
    free(groups->grids[group].voxels);
    groups->grids[group].voxels = NULL;
    if (keeper->last == group) {
        free(keeper->grid.voxels);
        keeper->grid.voxels = NULL;
    }
    if (!is_needed(groups, own->responder, group))
        response_free(&groups->values[own->responder].response);
}

/* -------------------------------------------------------------------------------- memory ---- */

/* Returns the bands to compute for a group: its own, and others that later groups measure, as many as may be held. */
static uint8_t
bands_of(const struct texture_groups *groups, size_t group)
{
    const int64_t each = image_voxels(&groups->grids[group].to.extent) * (int64_t)sizeof(double);
    uint8_t bands = texture_filter_band(groups->pipeline->texture[group].filter);
    for (size_t g = group + 1; g < groups->pipeline->texture_count; g++)
        if (groups->values[g].responder == groups->values[group].responder &&
            (__builtin_popcount(bands) + 1) * each <= BANDS_HELD)
            bands |= texture_filter_band(groups->pipeline->texture[g].filter);
    return bands;
}

/* Returns whether no later group measures the band of a group. */
static bool
is_last_of_band(const struct texture_groups *groups, size_t group)
{
    const uint8_t band = texture_filter_band(groups->pipeline->texture[group].filter);
    for (size_t g = group + 1; g < groups->pipeline->texture_count; g++)
        if (groups->values[g].responder == groups->values[group].responder &&
            texture_filter_band(groups->pipeline->texture[g].filter) == band)
            return false;
    return true;
}

/* Returns the bytes of a response and of those that are computed with it. */
static int64_t
response_bytes(const struct texture_groups *groups, size_t group)
{
    const struct filter_options *filter = groups->pipeline->texture[group].filter;
    const struct grid_part *part = &groups->values[group].filtered;
    if (!filter)
        return 0;
    if (filter_is_image_type(filter->kind))
        return __builtin_popcount(bands_of(groups, group)) * image_voxels(&groups->grids[group].to.extent) *
               (int64_t)sizeof(double);
    return part->size[0] * part->size[1] * part->size[2] * (int64_t)sizeof(int32_t);
}

/* Returns the bytes of values and responses that are kept while a group is measured. */
static int64_t
held_bytes(const struct texture_groups *groups, size_t group)
{
    const struct group_values *own = &groups->values[group];
    const struct filter_options *filter = groups->pipeline->texture[group].filter;
    const struct group_values *keeper = &groups->values[own->keeper];
    const bool is_reals = filter && filter_is_image_type(filter->kind);
    int64_t bytes = response_bytes(groups, group);
    for (size_t g = 0; g < group; g++) {
        if (!has_grid(groups, g))
            continue;
        if (groups->values[g].keeper == g && g != own->keeper && groups->values[g].last > group)
            bytes += (int64_t)grid_voxel_bytes(&groups->values[g].grid);
        if (groups->values[g].responder == g && g != own->responder && is_needed(groups, g, group))
            bytes += response_bytes(groups, g);
    }
    /* The last group takes the values over, and responses of image types are measured as they are. */
    if (keeper->last > group || is_reals)
        bytes += (int64_t)grid_voxel_bytes(&keeper->grid);
    return is_reals ? bytes : bytes + (int64_t)grid_voxel_bytes(&groups->grids[group]);
}

int64_t
group_grids_most(const struct texture_groups *groups, size_t group, int64_t most_bytes)
{
    const int64_t beside =
        grid_spaced_bytes(&groups->grids[group], groups->pipeline->segment_count) + held_bytes(groups, group);
    if (most_bytes <= 0)
        return 0;
    return most_bytes > beside ? most_bytes - beside : 1;
}

int
group_grids_tell(const struct grid *grid, int rc, struct error *error)
{
    const size_t length = strlen(error->message);
    if (rc && error->code == CODE_JOB_TOO_LARGE)
        snprintf(error->message + length, sizeof error->message - length,
                 " of it besides the volume itself, for %s: larger voxels need less", grid->text);
    return rc;
}

int
group_grids_begin_source(const struct texture_groups *groups, size_t group, int64_t most_bytes, void **voxels,
                         struct error *error)
{
    const struct grid *grid = &groups->values[groups->values[group].keeper].grid;
    const struct kernels_demand demand = {.of = {[KERNELS_RESAMPLE] = &grid->demand},
                                          .most_bytes = group_grids_most(groups, group, most_bytes)};
    return kernels_volume_begin(groups->lane, grid_source_extent(grid), grid->source->pixel, &demand, voxels, error);
}

/* -------------------------------------------------------------------------------- filtering -- */

static struct texture_filtering
filtering_of(struct texture_groups *groups, size_t group, int64_t most_bytes)
{
    const struct group_values *own = &groups->values[group];
    return (struct texture_filtering){
        .options = &groups->pipeline->texture[group],
        .grid = &groups->grids[group],
        .values = &groups->values[own->keeper].grid,
        .part = own->filtered,
        .lane = groups->lane,
        .most_bytes = group_grids_most(groups, group, most_bytes),
        .bands = bands_of(groups, group),
        .range = &groups->range,
        .response = &groups->values[own->responder].response,
    };
}

int
group_grids_begin_filter(struct texture_groups *groups, size_t group, int64_t most_bytes, struct error *error)
{
    const struct texture_filtering filtering = filtering_of(groups, group, most_bytes);
    struct texture_filter_demand own;
    void *voxels;
    return texture_filter_begin(&filtering, &own, &voxels, error);
}

/* ----------------------------------------------------------------------------------- parts -- */

/* Returns the part of both parts. */
static struct grid_part
part_of_both(const struct grid_part *a, const struct grid_part *b)
{
    struct grid_part both;
    for (int axis = 0; axis < 3; axis++) {
        const int64_t a_end = a->first[axis] + a->size[axis], b_end = b->first[axis] + b->size[axis];
        both.first[axis] = a->first[axis] > b->first[axis] ? a->first[axis] : b->first[axis];
        both.size[axis] = (a_end < b_end ? a_end : b_end) - both.first[axis];
    }
    return both;
}

/* Returns the smallest part with both parts. */
static struct grid_part
part_around_both(const struct grid_part *a, const struct grid_part *b)
{
    struct grid_part both;
    for (int axis = 0; axis < 3; axis++) {
        const int64_t a_end = a->first[axis] + a->size[axis], b_end = b->first[axis] + b->size[axis];
        both.first[axis] = a->first[axis] < b->first[axis] ? a->first[axis] : b->first[axis];
        both.size[axis] = (a_end > b_end ? a_end : b_end) - both.first[axis];
    }
    return both;
}

/* Finds the part of a group's whole grid that is measured, by it or by groups that share its response, and the part that the
 * filter reads. */
static int
find_parts(struct texture_groups *groups, size_t group, const struct image_mask *masks, struct grid_part *measured,
           struct grid_part *filtered, struct error *error)
{
    const struct texture_options *options = &groups->pipeline->texture[group];
    const struct grid *grid = &groups->grids[group];
    const double filter = options->filter ? texture_filter_margin(options, grid) : 0;
    const int64_t *first = groups->box.first, *size = groups->box.size;
    unsigned wanted = 0;
    double margin = 0;
    *measured = *filtered = grid_whole(grid);
    for (size_t g = 0; g < groups->pipeline->texture_count; g++)
        if (g == group || groups->values[g].responder == groups->values[group].responder) {
            wanted |= groups->pipeline->texture[g].response ? CONF_VOLUME : groups->pipeline->texture[g].regions;
            margin = fmax(margin, texture_margin(&groups->pipeline->texture[g], grid->to.spacing));
        }
    const int rc = box_regions(groups, grid, wanted, masks, error);
    if (rc == 0 && groups->box.bounded) {
        *measured = grid_part_around(grid, first, size, margin);
        if (grid->image_type && options->filter->around >= 0) {
            *filtered = grid_part_cropped(grid, first, size, options->filter->around);
            *measured = part_of_both(measured, filtered);
        } else if (filter >= 0)
            *filtered = grid_part_around(grid, first, size, filter + margin);
    }
    return rc;
}

/* Resamples the job's volume in the second lane, to the part of the grid that this group and later ones need. */
static int
interpolate(struct texture_groups *groups, size_t group, const void *voxels, const struct image_mask *masks,
            int64_t most_bytes, struct error *error)
{
    const size_t keeper = groups->values[group].keeper;
    struct grid *grid = &groups->values[keeper].grid;
    struct grid_part all = groups->values[group].filtered, measured, filtered;
    void *place;
    int rc = 0;
    for (size_t g = group + 1; g <= groups->values[keeper].last && rc == 0; g++)
        if (groups->values[g].keeper == keeper) {
            rc = find_parts(groups, g, masks, &measured, &filtered, error);
            all = part_around_both(&all, &filtered);
        }
    if (rc)
        return rc;
    grid_narrow(grid, &all);
    if (!grid->same) {
        rc = group_grids_tell(grid, group_grids_begin_source(groups, group, most_bytes, &place, error), error);
        if (rc)
            return rc;
        grid_copy_source(grid, voxels, place);
        rc = kernels_volume_ready(groups->lane, 0, grid_source_extent(grid).slices, error);
    }
    if (rc == 0)
        rc = grid_interpolate(grid, groups->lane, voxels, group_grids_most(groups, group, most_bytes), error);
    return rc;
}

/* Gives the regions their masks on the grid of a group. */
static int
take_masks(struct texture_groups *groups, size_t group, const struct group_regions *regions, struct error *error)
{
    const struct grid *grid = &groups->grids[group];
    const struct group_masks own = {.keeper = groups->values[group].keeper,
                                    .part = grid_whole(grid),
                                    .wanted = groups->pipeline->texture[group].regions,
                                    .count = regions->count};
    struct group_masks *masks = &groups->masks;
    struct image_mask mask;
    int rc = 0;
    if (!masks->bits || masks->keeper != own.keeper || masks->wanted != own.wanted ||
        memcmp(&masks->part, &own.part, sizeof own.part) != 0) {
        group_masks_free(&groups->masks_before[GROUPS_WAITING - 1]);
        memmove(groups->masks_before + 1, groups->masks_before, sizeof groups->masks_before - sizeof *masks);
        groups->masks_before[0] = *masks;
        *masks = own;
        masks->bits = calloc(own.count + 1, sizeof *masks->bits);
        if (!masks->bits)
            return error_set_system(error, -ENOMEM, "list the regions");
        for (size_t r = 0; r < own.count && rc == 0; r++)
            if (regions->at[r].bits)
                rc = grid_mask_by_half(grid, regions->at[r].bits, &masks->bits[r], &mask, error);
    }
    for (size_t r = 0; r < own.count && rc == 0; r++)
        if (regions->at[r].bits) {
            regions->at[r].all = grid_leaves_out(grid, regions->at[r].bits) ? FEATURE_THIN_REGION : FEATURE_PRESENT;
            regions->at[r].bits = masks->bits[r];
        }
    return rc;
}

int
group_grids_take(struct texture_groups *groups, size_t group, struct group_regions *regions, struct kernels_lane *lane,
                 const void *voxels, const struct image_mask *masks, int64_t most_bytes, struct error *error)
{
    struct group_values *own = &groups->values[group];
    struct grid *grid = &groups->grids[group], *values = &groups->values[own->keeper].grid;
    struct grid_part measured;
    int rc = find_parts(groups, group, masks, &measured, &own->filtered, error);
    if (rc == 0 && !values->voxels)
        rc = interpolate(groups, group, voxels, masks, most_bytes, error);
    if (rc)
        return rc;
    grid_narrow(grid, &measured);
    rc = take_masks(groups, group, regions, error);
    if (rc)
        return rc;
    struct texture_filtering filtering = filtering_of(groups, group, most_bytes);
    filtering.whole = lane;
    filtering.regions = regions->at;
    filtering.region_count = regions->count;
    filtering.takes_response = is_last_of_band(groups, group);
    if (grid->filtered)
        rc = group_grids_tell(grid, texture_filter_respond(&filtering, error), error);
    if (rc == 0 && !grid->image_type)
        rc = grid_take_values(grid, values, groups->values[own->keeper].last == group, error);
    return rc || !grid->filtered ? rc : texture_filter_fill(&filtering, error);
}
