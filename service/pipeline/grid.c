/* grid.c - see grid.h. */
#include "service/pipeline/grid.h"

#include "service/pipeline/volume.h"

#include "base/error.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of whole numbers of slices: what rounding makes of one is not one more. */
#define WHOLE 1e-6

/* ------------------------------------------------------------------------------ the planes -- */

static int
grid_fill_planes(struct grid *grid, struct dicom_instance *const *instances, struct error *error)
{
    const struct geometry_stack *source = grid->source;
    double *origins = calloc((size_t)source->plane_count * 3, sizeof *origins);
    grid->origins = origins;
    if (!origins)
        return error_set_system(error, -ENOMEM, "straighten the stack");
    for (int32_t z = 0; z < source->plane_count; z++) {
        const struct geometry_plane *plane = &source->planes[z];
        memcpy(origins + 3 * z, instances[plane->instance]->frames[plane->frame].position,
               3 * sizeof *origins);
    }
    grid->planes = (struct image_planes){
        .extent = {source->columns, source->rows, source->plane_count},
        .spacing = {source->spacing[0], source->spacing[1]},
        .thickness = source->spacing[2],
        .origins = origins,
    };
    memcpy(grid->planes.axes, source->axes, sizeof grid->planes.axes);
    return 0;
}

/* From the first plane to the last one, in steps of grid_mm at most. */
static void
grid_lay_out(struct grid *grid, const struct conf_pipeline *pipeline)
{
    const double *last = grid->origins + 3 * (grid->source->plane_count - 1);
    double normal[3];
    image_planes_normal(&grid->planes, normal);
    const double height = image_planes_along(last, grid->origins, normal);
    resample_straight(&grid->planes, pipeline->grid_mm, &grid->to);
    const double steps = fmax(ceil(height / grid->to.spacing[2] - WHOLE), 1);
    grid->to.spacing[2] = height / steps;
    grid->to.extent.slices = (int64_t)steps + 1;
}

static int
grid_check_size(const struct grid *grid, struct error *error)
{
    const struct image_extent *extent = &grid->to.extent;
    const double voxels = (double)extent->columns * (double)extent->rows * (double)extent->slices;
    if (voxels <= (double)KERNELS_MAX_VOXELS)
        return 0;
    return error_set(
        error, -E2BIG, CODE_VOLUME_TOO_LARGE,
        "the stack's upright grid would have %lld x %lld x %lld voxels, which are more "
        "than the limit of %lld: give the pipeline a larger grid.mm",
        (long long)extent->columns, (long long)extent->rows, (long long)extent->slices,
        (long long)KERNELS_MAX_VOXELS);
}

/* ---------------------------------------------------------------------- what stands for it -- */

/* One instance and one frame, in which the source's agree. */
static void
grid_fill_instance(struct grid *grid, struct dicom_instance *const *instances)
{
    const struct geometry_stack *source = grid->source;
    const struct dicom_instance *first = instances[source->planes[0].instance];
    grid->frame = first->frames[source->planes[0].frame];
    grid->instance = *first;
    grid->instance.frames = &grid->frame;
    grid->instance.frame_count = 1;
    grid->instance.pixel = grid->demand.pixel;
    for (int32_t z = 1; z < source->plane_count; z++)
        if (strcmp(instances[source->planes[z].instance]->value_unit, first->value_unit) != 0)
            grid->instance.value_unit[0] = '\0';
    grid->only = &grid->instance;
    grid->instances = &grid->only;
}

static int
grid_fill_stack(struct grid *grid, struct error *error)
{
    struct geometry_stack *own = &grid->own;
    *own = *grid->source;
    own->tilted = own->uneven = false;
    own->columns = (int32_t)grid->to.extent.columns;
    own->rows = (int32_t)grid->to.extent.rows;
    own->plane_count = (int32_t)grid->to.extent.slices;
    own->pixel = grid->demand.pixel;
    own->planes = calloc((size_t)own->plane_count, sizeof *own->planes);
    if (!own->planes)
        return error_set_system(error, -ENOMEM, "straighten the stack");
    for (int32_t z = 0; z < own->plane_count; z++)
        own->planes[z].position = grid->source->planes[0].position + z * grid->to.spacing[2];
    memcpy(own->spacing, grid->to.spacing, sizeof own->spacing);
    memcpy(own->origin, grid->frame.position, sizeof own->origin);
    for (int axis = 0; axis < 3; axis++)
        for (int i = 0; i < 3; i++)
            own->origin[i] += own->axes[3 * axis + i] * grid->to.origin[axis];
    grid->stack = own;
    return 0;
}

static void
grid_describe(struct grid *grid)
{
    const struct geometry_stack *source = grid->source;
    double least = INFINITY, most = 0;
    char tilt[48] = "", steps[64] = "";
    for (int32_t z = 1; z < source->plane_count; z++) {
        const double step = source->planes[z].position - source->planes[z - 1].position;
        least = fmin(least, step);
        most = fmax(most, step);
    }
    if (source->tilted)
        snprintf(tilt, sizeof tilt, " tilted by %.1f degrees", source->tilt_degrees);
    if (source->uneven)
        snprintf(steps, sizeof steps, "%s %.3g to %.3g mm apart", source->tilted ? " and" : "",
                 least, most);
    snprintf(grid->text, sizeof grid->text,
             "straightened: %d planes%s%s to %d slices of %.3g mm; volumes are of that grid",
             source->plane_count, tilt, steps, grid->own.plane_count, grid->own.spacing[2]);
}

int
grid_make(const struct conf_pipeline *pipeline, struct dicom_instance *const *instances,
          const struct geometry_stack *stack, struct grid *grid, struct error *error)
{
    *grid = (struct grid){
        .instances = instances, .stack = stack, .source = stack, .source_instances = instances};
    if (!geometry_is_crooked(stack))
        return 0;
    grid->straight = true;
    int rc = grid_fill_planes(grid, instances, error);
    if (rc)
        return rc;
    grid_lay_out(grid, pipeline);
    rc = grid_check_size(grid, error);
    if (rc)
        return rc;
    grid->demand = (struct resample_demand){
        .extent = grid->to.extent,
        .order = RESAMPLE_LINEAR,
        .pixel = stack->pixel == IMAGE_UINT8 ? IMAGE_INT16 : stack->pixel,
    };
    grid_fill_instance(grid, instances);
    rc = grid_fill_stack(grid, error);
    if (rc == 0)
        grid_describe(grid);
    return rc;
}

void
grid_release(struct grid *grid)
{
    free(grid->origins);
    free(grid->own.planes);
    free(grid->voxels);
    *grid = (struct grid){0};
}

/* ---------------------------------------------------------------------------------- memory -- */

static int64_t
extent_words(const struct image_extent *extent)
{
    return (extent->columns + 63) / 64 * extent->rows * extent->slices;
}

static size_t
grid_voxel_bytes(const struct grid *grid)
{
    return (size_t)image_voxels(&grid->to.extent) * image_pixel_size(grid->demand.pixel);
}

int64_t
grid_bytes(const struct grid *grid, const struct conf_pipeline *pipeline)
{
    if (!grid->straight)
        return 0;
    const struct image_extent *from = &grid->planes.extent;
    const int64_t own = (int64_t)grid_voxel_bytes(grid);
    const int64_t source = image_voxels(from) * (int64_t)image_pixel_size(grid->source->pixel);
    int64_t bytes = own + image_voxels(from) / 8;
    for (size_t i = 0; i < pipeline->segment_count; i++) {
        bytes += extent_words(from) * (int64_t)sizeof(uint64_t);
        if (pipeline->segments[i].method == CONF_OBJECT)
            bytes +=
                (extent_words(from) + extent_words(&grid->to.extent)) * (int64_t)sizeof(uint64_t);
        if (pipeline->segments[i].connectedness_map)
            bytes += image_voxels(from) * (int64_t)sizeof(uint16_t);
    }
    /* A lane keeps the larger of two volumes, and predicts one. */
    return bytes + llabs(own - source);
}

/* -------------------------------------------------------------------------------- padding ---- */

static bool
padding_has(const struct image_range *padding, int32_t value)
{
    return padding->lo <= value && value <= padding->hi;
}

/* What the planes' padding can be in their pixels; empty: they have none. */
static struct image_range
grid_source_padding(const struct grid *grid)
{
    const struct image_range limits = image_pixel_range(grid->source->pixel);
    struct image_range padding = volume_padding(&grid->instance);
    padding.lo = padding.lo > limits.lo ? padding.lo : limits.lo;
    padding.hi = padding.hi < limits.hi ? padding.hi : limits.hi;
    return padding;
}

/* A value that the planes have not, nor any between two of theirs. */
static int
grid_find_outside(const struct grid *grid, const void *voxels, int32_t *outside,
                  struct error *error)
{
    const struct image_range limits = image_pixel_range(grid->demand.pixel);
    const enum image_pixel pixel = grid->source->pixel;
    int32_t lo = INT32_MAX, hi = INT32_MIN;
    for (int64_t i = 0; i < image_voxels(&grid->planes.extent); i++) {
        const int32_t value = image_value(voxels, pixel, i);
        lo = value < lo ? value : lo;
        hi = value > hi ? value : hi;
    }
    *outside = lo > limits.lo ? lo - 1 : hi + 1;
    if (*outside <= limits.hi)
        return 0;
    return error_set(
        error, -EINVAL, CODE_GRID_VALUES_FULL,
        "the slices have stored values from %d to %d, all that there are, so that none "
        "is left for what lies outside of them on an upright grid",
        lo, hi);
}

/* Bits of the source's voxels that are padding, in their order; NULL where there is none. */
static int
grid_find_padding(const struct grid *grid, const void *voxels, const struct image_range *padding,
                  uint64_t **bits, struct error *error)
{
    const int64_t count = image_voxels(&grid->planes.extent);
    bool any = false;
    *bits = NULL;
    if (volume_range_is_empty(*padding))
        return 0;
    *bits = calloc((size_t)(count + 63) / 64, sizeof **bits);
    if (!*bits)
        return error_set_system(error, -ENOMEM, "straighten the stack");
    for (int64_t i = 0; i < count; i++)
        if (padding_has(padding, image_value(voxels, grid->source->pixel, i))) {
            (*bits)[i / 64] |= UINT64_C(1) << (i % 64);
            any = true;
        }
    if (!any) {
        free(*bits);
        *bits = NULL;
    }
    return 0;
}

/* -------------------------------------------------------------------------------- resampling -- */

static int
grid_run(const struct grid *grid, struct kernels_lane *lane, int32_t outside, const void **voxels,
         struct error *error)
{
    const struct resample_request request = {
        .planes = &grid->planes,
        .grid = &grid->to,
        .order = grid->demand.order,
        .outside = outside,
    };
    return kernels_resample(lane, &request, voxels, error);
}

static void
grid_set(struct grid *grid, int64_t i, int32_t value)
{
    if (grid->demand.pixel == IMAGE_INT16)
        ((int16_t *)grid->voxels)[i] = (int16_t)value;
    else
        ((uint16_t *)grid->voxels)[i] = (uint16_t)value;
}

/*
 * Resamples a volume that is 65535 where there is padding and 0 elsewhere: where the result is not 0,
 * padding has a share of half a stored value or more in a voxel's value.
 */
static int
grid_spread_padding(struct grid *grid, struct kernels_lane *lane, const uint64_t *bits,
                    int32_t outside, int64_t most_bytes, struct error *error)
{
    struct resample_demand demand = grid->demand;
    struct kernels_demand all = {.of = {[KERNELS_RESAMPLE] = &demand}, .most_bytes = most_bytes};
    const struct image_extent *from = &grid->planes.extent;
    void *marks;
    const void *spread;
    demand.pixel = IMAGE_UINT16;
    int rc = kernels_volume_begin(lane, *from, IMAGE_UINT16, &all, &marks, error);
    if (rc)
        return rc;
    for (int64_t i = 0; i < image_voxels(from); i++)
        ((uint16_t *)marks)[i] = bits[i / 64] >> (i % 64) & 1 ? UINT16_MAX : 0;
    rc = kernels_volume_ready(lane, 0, from->slices, error);
    if (rc == 0)
        rc = grid_run(grid, lane, 0, &spread, error);
    for (int64_t i = 0; rc == 0 && i < image_voxels(&grid->to.extent); i++)
        if (((const uint16_t *)spread)[i] != 0)
            grid_set(grid, i, outside);
    return rc;
}

static void
grid_set_padding(struct grid *grid, const struct image_range *padding, int32_t outside)
{
    const bool none = volume_range_is_empty(*padding);
    grid->instance.has_padding = true;
    grid->instance.padding_lo = outside;
    grid->instance.padding_hi = none ? outside : padding->hi;
}

int
grid_resample(struct grid *grid, struct kernels_lane *lane, const void *voxels, int64_t most_bytes,
              struct error *error)
{
    const struct image_range padding = grid_source_padding(grid);
    const void *resampled;
    uint64_t *bits = NULL;
    int32_t outside = padding.lo;
    grid->voxels = malloc(grid_voxel_bytes(grid));
    int rc = grid->voxels ? 0 : error_set_system(error, -ENOMEM, "straighten the stack");
    if (rc == 0 && volume_range_is_empty(padding))
        rc = grid_find_outside(grid, voxels, &outside, error);
    if (rc == 0)
        rc = grid_find_padding(grid, voxels, &padding, &bits, error);
    if (rc == 0)
        rc = grid_run(grid, lane, outside, &resampled, error);
    if (rc == 0)
        memcpy(grid->voxels, resampled, grid_voxel_bytes(grid));
    if (rc == 0 && bits)
        rc = grid_spread_padding(grid, lane, bits, outside, most_bytes, error);
    free(bits);
    if (rc == 0)
        grid_set_padding(grid, &padding, outside);
    return rc;
}

/* ----------------------------------------------------------------------------- the masks ---- */

/* What of a word's voxels, `row` being the first, has a value. */
static uint64_t
grid_cut_word(const struct grid *grid, const void *voxels, int64_t row, uint64_t word)
{
    const struct image_range padding = volume_padding(&grid->instance);
    uint64_t kept = word;
    for (uint64_t left = word; left; left &= left - 1) {
        const int bit = __builtin_ctzll(left);
        if (padding_has(&padding, image_value(voxels, grid->stack->pixel, row + bit)))
            kept &= ~(UINT64_C(1) << bit);
    }
    return kept;
}

void
grid_cut_padding(const struct grid *grid, const void *voxels, struct image_mask *mask)
{
    const int64_t rows = grid->to.extent.rows * grid->to.extent.slices;
    uint64_t *bits = (uint64_t *)(uintptr_t)mask->bits; /* the lane's, which lends them */
    mask->voxels = 0;
    for (int64_t y = 0; y < rows; y++)
        for (int64_t w = 0; w < mask->words_per_row; w++) {
            uint64_t *word = &bits[y * mask->words_per_row + w];
            const int64_t first = y * grid->to.extent.columns + w * 64;
            const uint64_t kept = grid_cut_word(grid, voxels, first, *word);
            if (kept != *word)
                *word = kept;
            mask->voxels += __builtin_popcountll(kept);
        }
}

static int
grid_reserve_mask(const struct image_extent *extent, uint64_t **bits, struct image_mask *mask,
                  struct error *error)
{
    *bits = calloc((size_t)extent_words(extent), sizeof **bits);
    *mask = (struct image_mask){.bits = *bits, .words_per_row = (extent->columns + 63) / 64};
    return *bits ? 0 : error_set_system(error, -ENOMEM, "put the masks on another grid");
}

int
grid_mask_on_planes(const struct grid *grid, const struct image_mask *mask, uint64_t **bits,
                    struct image_mask *on_planes, struct error *error)
{
    int rc = grid_reserve_mask(&grid->planes.extent, bits, on_planes, error);
    return rc ? rc
              : kernels_resample_mask(&grid->planes, &grid->to, mask->bits, *bits,
                                      &on_planes->voxels, error);
}

int
grid_mask_of_planes(const struct grid *grid, const uint64_t *on_planes, uint64_t **bits,
                    struct image_mask *mask, struct error *error)
{
    int rc = grid_reserve_mask(&grid->to.extent, bits, mask, error);
    return rc ? rc
              : kernels_resample_drawn(&grid->planes, &grid->to, on_planes, *bits, &mask->voxels,
                                       error);
}

int
grid_map_on_planes(const struct grid *grid, const uint16_t *map, uint16_t **on_planes,
                   struct error *error)
{
    *on_planes = NULL;
    if (!map)
        return 0;
    *on_planes = calloc((size_t)image_voxels(&grid->planes.extent), sizeof **on_planes);
    if (!*on_planes)
        return error_set_system(error, -ENOMEM, "put the maps on the planes");
    return kernels_resample_map(&grid->planes, &grid->to, map, *on_planes, error);
}
