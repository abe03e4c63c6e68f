#include "service/pipeline/grid.h"

#include "service/pipeline/volume.h"

#include "base/error.h"

#include "kernels/texture/region.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Tolerance for whole numbers of slices, so that rounding does not add a slice. */
#define WHOLE 1e-6

enum { GRID_EDGE = 12 }; /* as SciPy */

/* ------------------------------------------------------------------------------ the planes -- */

static int
grid_reserve_planes(struct grid *grid, struct error *error)
{
    const struct geometry_stack *source = grid->source;
    grid->origins = calloc((size_t)source->plane_count * 3, sizeof *grid->origins);
    grid->planes = (struct image_planes){
        .extent = {source->columns, source->rows, source->plane_count},
        .spacing = {source->spacing[0], source->spacing[1]},
        .thickness = source->spacing[2],
        .origins = grid->origins,
    };
    memcpy(grid->planes.axes, source->axes, sizeof grid->planes.axes);
    return grid->origins ? 0 : error_set_system(error, -ENOMEM, "resample the volume");
}

/* Places slices from the first plane to the last, in steps of at most grid_mm. */
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
    return error_set(error, -E2BIG, CODE_VOLUME_TOO_LARGE,
                     "the %s grid would have %lld x %lld x %lld voxels, which are more than the limit of %lld: "
                     "give the pipeline a larger %s",
                     grid->straight ? "stack's upright" : "texture's", (long long)extent->columns,
                     (long long)extent->rows, (long long)extent->slices, (long long)KERNELS_MAX_VOXELS,
                     grid->straight ? "grid.mm" : "texture.resample");
}

/* --------------------------------------------------------------------------- the instances -- */

static int
grid_reserve_instances(struct grid *grid, size_t count, struct error *error)
{
    struct grid_instances *own = &grid->own_instances;
    own->count = count;
    own->at = calloc(count, sizeof *own->at);
    own->pointers = calloc(count, sizeof *own->pointers);
    own->frames = calloc(count, sizeof *own->frames);
    if (!own->at || !own->pointers || !own->frames)
        return error_set_system(error, -ENOMEM, "resample the volume");
    grid->instances = own->pointers;
    return 0;
}

/* Fills the instances. Each has one frame; a single one has the common values of the source. */
void
grid_fill_instances(struct grid *grid)
{
    struct grid_instances *own = &grid->own_instances;
    for (size_t i = 0; i < own->count; i++) {
        const struct geometry_plane *plane = &grid->source->planes[i];
        const struct dicom_instance *from = grid->source_instances[plane->instance];
        own->frames[i] = from->frames[plane->frame];
        own->at[i] = *from;
        own->at[i].frames = &own->frames[i];
        own->at[i].frame_count = 1;
        own->at[i].pixel = grid->demand.pixel;
        own->pointers[i] = &own->at[i];
        if (grid->real) { /* the stored values are levels */
            own->frames[i].has_rescale = false;
            own->at[i].has_padding = false;
        }
    }
    char *unit = own->at[0].value_unit;
    for (int32_t z = 1; z < grid->source->plane_count; z++)
        if (strcmp(grid->source_instances[grid->source->planes[z].instance]->value_unit, unit) != 0)
            unit[0] = '\0';
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
        return error_set_system(error, -ENOMEM, "resample the volume");
    for (int32_t z = 0; z < own->plane_count; z++) {
        own->planes[z].position = grid->source->planes[0].position + z * grid->to.spacing[2];
        own->planes[z].instance = grid->own_instances.count > 1 ? z : 0;
    }
    memcpy(own->spacing, grid->to.spacing, sizeof own->spacing);
    memcpy(own->origin, grid->origins, sizeof own->origin);
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
    char tilt[48] = "", steps[64] = "";
    if (source->tilted)
        snprintf(tilt, sizeof tilt, "tilted by %.1f degrees", source->tilt_degrees);
    if (source->uneven)
        snprintf(steps, sizeof steps, "%s%.3g to %.3g mm apart", source->tilted ? " and " : "", grid->steps[0],
                 grid->steps[1]);
    snprintf(grid->because, sizeof grid->because, "%s%s", tilt, steps);
    snprintf(grid->text, sizeof grid->text,
             "straightened: %d planes %s to %d slices of %.3g mm; volumes are of that grid", source->plane_count,
             grid->because, grid->own.plane_count, grid->own.spacing[2]);
}

/* Returns the first slice with another rescale than that of the first slice; 0: all are equal. */
static int32_t
grid_other_rescale(const struct grid *from)
{
    const struct geometry_plane *planes = from->stack->planes;
    const struct image_rescale rescale = volume_rescale(from->instances, &planes[0]);
    for (int32_t z = 1; z < from->stack->plane_count; z++) {
        const struct image_rescale own = volume_rescale(from->instances, &planes[z]);
        if (own.slope != rescale.slope || own.intercept != rescale.intercept)
            return z;
    }
    return 0;
}

bool
grid_is_real(const struct texture_options *options, const struct grid *from)
{
    if (options->normalise)
        return true;
    if (options->resample && options->resample->interpolation >= INTERPOLATION_PYRADIOMICS_NEAREST)
        return true;
    if (options->resample && options->resample->rounding != TEXTURE_ROUNDING_AUTO)
        return options->resample->rounding == TEXTURE_ROUNDING_NONE;
    if (options->levels.kind == DISCRETISATION_STORED_256)
        return false;
    for (int32_t z = 0; z < from->stack->plane_count; z++) {
        const struct dicom_instance *instance = from->instances[from->stack->planes[z].instance];
        if (strcmp(instance->modality, "CT") != 0 || strcmp(instance->value_unit, "[hnsf'U]") != 0)
            return true;
    }
    return grid_other_rescale(from) > 0;
}

int
grid_make(const struct conf_pipeline *pipeline, struct dicom_instance *const *instances,
          const struct geometry_stack *stack, struct grid *grid, struct error *error)
{
    *grid = (struct grid){.instances = instances, .stack = stack, .source = stack, .source_instances = instances};
    for (int32_t z = 1; z < stack->plane_count; z++) {
        const double step = stack->planes[z].position - stack->planes[z - 1].position;
        grid->steps[0] = z == 1 ? step : fmin(grid->steps[0], step);
        grid->steps[1] = fmax(grid->steps[1], step);
    }
    if (!geometry_needs_resampling(stack))
        return 0;
    grid->straight = true;
    int rc = grid_reserve_planes(grid, error);
    if (rc)
        return rc;
    for (int32_t z = 0; z < stack->plane_count; z++) {
        const struct geometry_plane *plane = &stack->planes[z];
        memcpy(grid->origins + 3 * z, instances[plane->instance]->frames[plane->frame].position,
               3 * sizeof *grid->origins);
    }
    grid_lay_out(grid, pipeline);
    rc = grid_check_size(grid, error);
    if (rc)
        return rc;
    grid->demand = (struct resample_demand){
        .extent = grid->to.extent,
        .order = RESAMPLE_LINEAR,
        .pixel = stack->pixel == IMAGE_UINT8 ? IMAGE_INT16 : stack->pixel,
    };
    rc = grid_reserve_instances(grid, 1, error);
    if (rc)
        return rc;
    grid_fill_instances(grid);
    rc = grid_fill_stack(grid, error);
    if (rc)
        return rc;
    grid_describe(grid);
    for (size_t g = 0; g < pipeline->texture_count; g++)
        grid->keeps_reals |= grid_is_real(&pipeline->texture[g], grid);
    grid->demand.values = grid->keeps_reals ? RESAMPLE_REAL : RESAMPLE_STORED;
    return 0;
}

/*
 * Checks that slices can be interpolated. If values are rounded to stored values, slices must share a
 * rescale, unless interpolation stays within a slice. Padding of one slice must have no value in
 * another.
 */
static int
grid_check_alike(const struct texture_resample *wanted, const struct grid *from, const struct grid *grid,
                 struct error *error)
{
    struct dicom_instance *const *instances = from->instances;
    const struct geometry_plane *planes = from->stack->planes;
    const int32_t other = grid_other_rescale(from);
    if (other > 0 && (grid->rounded || (!grid->real && wanted->spacing == TEXTURE_ISOTROPIC)))
        return error_set_files(error, -EINVAL, CODE_RESCALE_VARIES, instances[planes[0].instance]->path,
                               instances[planes[other].instance]->path,
                               "the slices differ in their rescale, so that values between them have "
                               "no stored value to be rounded to: use texture.resample with "
                               "rounding = \"none\" (not with stored-256) or in_plane_mm, or measure without it");
    const struct image_range padding = volume_padding(instances[planes[0].instance]);
    for (int32_t z = 1; z < from->stack->plane_count; z++) {
        const struct image_range own = volume_padding(instances[planes[z].instance]);
        if (own.lo != padding.lo || own.hi != padding.hi)
            return error_set_files(error, -EINVAL, CODE_PADDING_MIXED, instances[planes[0].instance]->path,
                                   instances[planes[z].instance]->path,
                                   "the slices differ in their padding, and texture.resample interpolates between "
                                   "them: measure without it, or correct the series");
    }
    return 0;
}

int
grid_make_spaced(const struct texture_options *options, const struct grid *from, struct grid *grid, struct error *error)
{
    static const int orders[INTERPOLATIONS] = {
#define INTERPOLATION(id, name, scheme, code, meaning, order) order,
#include "base/terms.def"
    };
    static const struct texture_resample same = {.spacing = TEXTURE_IN_PLANE, .interpolation = INTERPOLATION_LINEAR};
    const struct texture_resample *wanted = options->resample ? options->resample : &same;
    const double mm = wanted->mm, all[3] = {mm, mm, wanted->spacing == TEXTURE_ISOTROPIC ? mm : 0};
    const struct geometry_stack *source = from->stack, *own = &grid->own;
    *grid = (struct grid){.source = source,
                          .source_instances = from->instances,
                          .pyradiomics = wanted->interpolation >= INTERPOLATION_PYRADIOMICS_NEAREST,
                          .same = !options->resample,
                          .real = options->filter || grid_is_real(options, from),
                          .filtered = options->filter != NULL,
                          .image_type = options->filter && filter_is_image_type(options->filter->kind),
                          .normalise = options->normalise,
                          .rounded = options->filter && !grid_is_real(options, from),
                          .from = from};
    const bool differ = grid_other_rescale(from) > 0, each = differ && !grid->real;
    int rc = grid_check_alike(wanted, from, grid, error);
    if (rc == 0)
        rc = grid_reserve_planes(grid, error);
    if (rc == 0)
        rc = grid_reserve_instances(grid, each ? (size_t)source->plane_count : 1, error);
    if (rc)
        return rc;
    for (int32_t z = 0; z < source->plane_count; z++)
        for (int i = 0; i < 3; i++)
            grid->origins[3 * z + i] = source->origin[i] + z * source->spacing[2] * source->axes[6 + i];
    if (grid->pyradiomics)
        resample_cornered(&grid->planes, all, grid_is_reversed(grid), &grid->to);
    else
        resample_spaced(&grid->planes, all, &grid->to);
    rc = grid_check_size(grid, error);
    if (rc)
        return rc;
    /* A spline can undershoot the values that it interpolates. */
    const bool is_signed = source->pixel == IMAGE_UINT8 || wanted->interpolation == INTERPOLATION_CUBIC;
    grid->demand = (struct resample_demand){
        .extent = grid->to.extent,
        .order = orders[wanted->interpolation],
        .pixel = grid->real  ? IMAGE_UINT16
                 : is_signed ? IMAGE_INT16
                             : source->pixel,
        .values = !grid->real                                                          ? RESAMPLE_STORED
                  : differ || grid->normalise || (from->keeps_reals && !grid->rounded) ? RESAMPLE_RESCALED
                                                                                       : RESAMPLE_REAL,
    };
    grid->edge = wanted->interpolation == INTERPOLATION_CUBIC ? GRID_EDGE : 0;
    grid_fill_instances(grid);
    rc = grid_fill_stack(grid, error);
    if (rc)
        return rc;
    char size[128];
    if (!own->flat)
        snprintf(size, sizeof size, "%d x %d x %d voxels of %.6g x %.6g x %.6g mm", own->columns, own->rows,
                 own->plane_count, own->spacing[0], own->spacing[1], own->spacing[2]);
    else if (geometry_is_in_mm(own))
        snprintf(size, sizeof size, "%d x %d pixels of %.6g x %.6g mm", own->columns, own->rows, own->spacing[0],
                 own->spacing[1]);
    else
        snprintf(size, sizeof size, "%d x %d pixels", own->columns, own->rows);
    char how[64] = "";
    if (!grid->same)
        snprintf(how, sizeof how, ", %s interpolation", interpolation_names[wanted->interpolation]);
    snprintf(grid->text, sizeof grid->text, "texture of %s%s%s%s%s", size, how, grid->normalise ? ", normalised" : "",
             grid->filtered ? ", filtered" : "", grid->real && !grid->rounded ? ", values not rounded" : "");
    return 0;
}

int
grid_reserve_reals(struct grid *grid)
{
    const struct image_extent extent = {grid->stack->columns, grid->stack->rows, grid->stack->plane_count};
    grid->reals = malloc((size_t)image_voxels(&extent) * sizeof *grid->reals);
    grid->keeps_reals = grid->reals != NULL;
    return grid->reals ? 0 : -ENOMEM;
}

bool
grid_is_other(const struct texture_options *options, const struct grid *from)
{
    return options->resample || options->filter || options->normalise ||
           (from->keeps_reals && grid_is_real(options, from));
}

struct grid_part
grid_whole(const struct grid *grid)
{
    const struct resample_grid *to = &grid->to;
    return (struct grid_part){{to->first[0], to->first[1], to->first[2]},
                              {to->extent.columns, to->extent.rows, to->extent.slices}};
}

void
grid_narrow(struct grid *grid, const struct grid_part *part)
{
    struct geometry_stack *own = &grid->own;
    grid->to.extent = grid->demand.extent = (struct image_extent){part->size[0], part->size[1], part->size[2]};
    memcpy(grid->to.first, part->first, sizeof grid->to.first);
    own->columns = (int32_t)part->size[0];
    own->rows = (int32_t)part->size[1];
    own->plane_count = (int32_t)part->size[2];
    memmove(own->planes, own->planes + part->first[2], (size_t)own->plane_count * sizeof *own->planes);
}

struct grid_part
grid_part_around(const struct grid *grid, const int64_t first[3], const int64_t size[3], double margin_mm)
{
    struct grid part = {.to = grid->to};
    resample_around(&grid->planes, first, size, margin_mm, &part.to);
    return grid_whole(&part);
}

struct grid_part
grid_part_cropped(const struct grid *grid, const int64_t first[3], const int64_t size[3], int around)
{
    const struct image_extent *source = &grid->planes.extent;
    const int64_t samples[3] = {source->columns, source->rows, source->slices};
    const struct grid_part whole = grid_whole(grid);
    struct grid_part part;
    for (int axis = 0; axis < 3; axis++) {
        const bool turns = axis == 2 && grid_is_reversed(grid);
        const double ratio = grid->source->spacing[axis] / grid->to.spacing[axis];
        const double begin = (double)(turns ? samples[axis] - first[axis] - size[axis] : first[axis]);
        const double end = begin + (double)size[axis], most = (double)(whole.size[axis] - 1);
        const double low = grid->pyradiomics ? floor((begin - 0.5) * ratio - around) : begin - around;
        const double high = grid->pyradiomics ? ceil((end - 0.5) * ratio + around) : end - 1 + around;
        const int64_t lowest = (int64_t)fmin(fmax(low, 0), most), highest = (int64_t)fmin(fmax(high, 0), most);
        part.first[axis] = turns ? whole.size[axis] - 1 - highest : lowest;
        part.size[axis] = highest - lowest + 1;
    }
    return part;
}

bool
grid_same_values(const struct grid *a, const struct grid *b)
{
    const struct texture_normalise *one = a->normalise, *other = b->normalise;
    bool same = a->real == b->real && a->rounded == b->rounded && a->pyradiomics == b->pyradiomics &&
                a->demand.order == b->demand.order && a->demand.pixel == b->demand.pixel &&
                a->demand.values == b->demand.values && a->edge == b->edge && (one != NULL) == (other != NULL);
    for (int axis = 0; axis < 3; axis++)
        same = same && a->to.spacing[axis] == b->to.spacing[axis] && a->to.origin[axis] == b->to.origin[axis];
    return same && (!one || (one->scale == other->scale && one->outliers == other->outliers));
}

void
grid_release(struct grid *grid)
{
    free(grid->origins);
    free(grid->own.planes);
    free(grid->own_instances.at);
    free(grid->own_instances.pointers);
    free(grid->own_instances.frames);
    free(grid->voxels);
    free(grid->reals);
    *grid = (struct grid){0};
}

/* ---------------------------------------------------------------------------------- memory -- */

static int64_t
extent_words(const struct image_extent *extent)
{
    return (extent->columns + 63) / 64 * extent->rows * extent->slices;
}

size_t
grid_voxel_bytes(const struct grid *grid)
{
    return (size_t)image_voxels(&grid->to.extent) * resample_voxel_size(&grid->demand);
}

int64_t
grid_spaced_bytes(const struct grid *grid, size_t regions)
{
    const struct image_extent from = grid_source_extent(grid);
    const int64_t real = (int64_t)sizeof(double);
    const int64_t samples = grid->from->keeps_reals || grid->normalise ? image_voxels(&from) * real : 0;
    const int64_t normal = grid->normalise ? image_voxels(&grid->planes.extent) * real : 0;
    return image_voxels(&grid->planes.extent) / 8 + samples + normal +
           (int64_t)regions * extent_words(&grid->to.extent) * (int64_t)sizeof(uint64_t);
}

int64_t
grid_bytes(const struct grid *grid, const struct conf_pipeline *pipeline)
{
    if (!grid->straight) {
        const struct image_extent extent = {grid->stack->columns, grid->stack->rows, grid->stack->plane_count};
        return grid->keeps_reals ? image_voxels(&extent) * (int64_t)sizeof *grid->reals : 0;
    }
    const struct image_extent *from = &grid->planes.extent;
    const int64_t own = (int64_t)grid_voxel_bytes(grid);
    const int64_t source = image_voxels(from) * (int64_t)image_pixel_size(grid->source->pixel);
    int64_t bytes = own + image_voxels(from) / 8;
    if (grid->keeps_reals)
        bytes += image_voxels(&grid->to.extent) * (int64_t)image_pixel_size(grid->demand.pixel);
    for (size_t i = 0; i < pipeline->segment_count; i++) {
        bytes += extent_words(from) * (int64_t)sizeof(uint64_t);
        if (pipeline->segments[i].connectedness_map)
            bytes += image_voxels(from) * (int64_t)sizeof(uint16_t);
    }
    /* A lane keeps the larger of two volumes, and predicts one. */
    return bytes + llabs(own - source);
}

/* ----------------------------------------------------------------------------- the masks ---- */

static int
grid_reserve_mask(const struct image_extent *extent, uint64_t **bits, struct image_mask *mask, struct error *error)
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
    return rc ? rc : kernels_resample_mask(&grid->planes, &grid->to, mask->bits, *bits, &on_planes->voxels, error);
}

/* Copies the part of a mask of the planes that a grid of their voxels has. */
static void
grid_crop_mask(const struct grid *grid, const uint64_t *on_planes, uint64_t *bits, struct image_mask *mask)
{
    const struct image_extent *part = &grid->to.extent, *whole = &grid->planes.extent;
    const int64_t words = (part->columns + 63) / 64, from_words = (whole->columns + 63) / 64;
    const int64_t first = grid->to.first[0] / 64, last = (part->columns - 1) % 64;
    const int shift = (int)(grid->to.first[0] % 64);
    for (int64_t row = 0; row < part->rows * part->slices; row++) {
        const int64_t y = grid->to.first[1] + row % part->rows, z = grid->to.first[2] + row / part->rows;
        const uint64_t *from = on_planes + (z * whole->rows + y) * from_words + first;
        uint64_t *to = bits + row * words;
        for (int64_t w = 0; w < words; w++) {
            const uint64_t next = shift > 0 && first + w + 1 < from_words ? from[w + 1] << (64 - shift) : 0;
            to[w] = (from[w] >> shift | next) & (w + 1 == words ? UINT64_MAX >> (63 - last) : UINT64_MAX);
            mask->voxels += __builtin_popcountll(to[w]);
        }
    }
}

bool
grid_leaves_out(const struct grid *grid, const uint64_t *on_planes)
{
    struct texture_box box;
    bool thin = false;
    if (!grid->pyradiomics)
        return false;
    texture_box_of(on_planes, &grid->planes.extent, &box);
    for (int axis = 0; axis < (grid->source->flat ? 2 : 3); axis++)
        thin |= box.size[axis] == 1 && grid->to.spacing[axis] != grid->source->spacing[axis];
    return thin;
}

int
grid_mask_by_half(const struct grid *grid, const uint64_t *on_planes, uint64_t **bits, struct image_mask *mask,
                  struct error *error)
{
    int (*const resample)(const struct image_planes *planes, const struct resample_grid *to, const uint64_t *bits,
                          uint64_t *on_grid, int64_t *voxels, struct error *error) =
        grid->pyradiomics ? kernels_resample_nearest_mask : kernels_resample_linear_mask;
    int rc = grid_reserve_mask(&grid->to.extent, bits, mask, error);
    if (rc == 0 && grid->same)
        grid_crop_mask(grid, on_planes, *bits, mask);
    return rc || grid->same || grid_leaves_out(grid, on_planes)
               ? rc
               : resample(&grid->planes, &grid->to, on_planes, *bits, &mask->voxels, error);
}

int
grid_mask_of_planes(const struct grid *grid, const uint64_t *on_planes, uint64_t **bits, struct image_mask *mask,
                    struct error *error)
{
    int rc = grid_reserve_mask(&grid->to.extent, bits, mask, error);
    return rc ? rc : kernels_resample_drawn(&grid->planes, &grid->to, on_planes, *bits, &mask->voxels, error);
}

int
grid_map_on_planes(const struct grid *grid, const uint16_t *map, uint16_t **on_planes, struct error *error)
{
    *on_planes = NULL;
    if (!map)
        return 0;
    *on_planes = calloc((size_t)image_voxels(&grid->planes.extent), sizeof **on_planes);
    if (!*on_planes)
        return error_set_system(error, -ENOMEM, "put the maps on the planes");
    return kernels_resample_map(&grid->planes, &grid->to, map, *on_planes, error);
}

int
grid_find_windows(const struct grid *grid, struct expect_window **windows, struct error *error)
{
    const int64_t slices = grid->to.extent.slices;
    struct expect_window *found = calloc((size_t)slices, sizeof *found);
    *windows = found;
    if (!found)
        return error_set_system(error, -ENOMEM, "find the edges of the planes");
    for (int64_t k = 0; k < slices; k++)
        resample_reach(&grid->planes, &grid->to, k, found[k].first, found[k].last);
    for (int axis = 0; axis < 2; axis++) {
        int64_t shift = 0; /* the largest between neighbouring slices; 0: all are equal */
        for (int64_t k = 1; k < slices; k++) {
            const int64_t step = llabs(found[k].first[axis] - found[k - 1].first[axis]);
            shift = step > shift ? step : shift;
        }
        const int64_t margin = shift > 0 ? shift + 1 : 0;
        for (int64_t k = 0; k < slices; k++) {
            found[k].first[axis] += margin;
            found[k].last[axis] -= margin;
        }
    }
    return 0;
}
