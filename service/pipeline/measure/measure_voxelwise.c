/* measure_voxelwise.c - see measure_voxelwise.h. */
#include "service/pipeline/measure/measure_voxelwise.h"

#include "kernels/features/discretise.h"
#include "kernels/texture/region.h"
#include "kernels/voxelwise/voxelwise.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { VOXELWISE_PART = 1 << 16 }; /* voxels per run */

/* The box of a region with its values and levels. */
struct voxelwise_box {
    const struct feature_region *region;
    int64_t first[3], size[3];
    double *values; /* NAN: padding */
    uint16_t *levels;
    double ends[2]; /* of the values that have levels */
    int level_count;
};

/* Returns the real-world value of a voxel of the volume; NAN: padding. */
static double
real_value_at(const struct feature_volume *volume, const void *voxels, enum image_pixel pixel, int64_t z, int64_t i)
{
    const size_t table = volume->tables > 1 ? (size_t)z : 0;
    if (volume->reals)
        return volume->reals[i];
    const int32_t stored = image_value(voxels, pixel, i);
    if (stored >= volume->paddings[table].lo && stored <= volume->paddings[table].hi)
        return NAN;
    return volume->rescales[table].slope * stored + volume->rescales[table].intercept;
}

/* Finds the box, with a margin that does not leave the volume. Returns false if the region is empty. */
static bool
voxelwise_box_find(const struct feature_region *region, int margin, struct voxelwise_box *box)
{
    const struct feature_volume *volume = region->volume;
    const struct image_extent extent = feature_extent(volume);
    const int64_t sides[3] = {extent.columns, extent.rows, extent.slices};
    struct texture_box found = {.first = {0, 0, 0}, .size = {sides[0], sides[1], sides[2]}};
    if (region->bits)
        texture_box_of(region->bits, &extent, &found);
    for (int axis = 0; axis < 3; axis++) {
        const int64_t end = found.first[axis] + found.size[axis] + margin;
        box->first[axis] = found.first[axis] > margin ? found.first[axis] - margin : 0;
        box->size[axis] = (end < sides[axis] ? end : sides[axis]) - box->first[axis];
    }
    return found.size[0] > 0 && region->extremes[0] <= region->extremes[1];
}

/* Fills the values, and the levels with 1 for voxels that have levels, 0 for others. Returns the number of voxels of the maps,
 * which have 2 for the moment. */
static int64_t
voxelwise_box_fill(struct voxelwise_box *box, const struct texture_request *request)
{
    const struct feature_region *region = box->region;
    const struct feature_volume *volume = region->volume;
    const void *voxels = volume->reals ? NULL : kernels_volume_voxels(request->lane);
    const enum image_pixel pixel = kernels_volume_pixel(request->lane);
    int64_t at = 0, count = 0;
    for (int64_t line = 0; line < box->size[1] * box->size[2]; line++) {
        const int64_t z = box->first[2] + line / box->size[1];
        const int64_t row = z * volume->rows + box->first[1] + line % box->size[1];
        for (int64_t x = box->first[0]; x < box->first[0] + box->size[0]; x++, at++) {
            const double value = real_value_at(volume, voxels, pixel, z, row * volume->columns + x);
            const bool is_in = image_has(region->bits, volume->columns, row, x) && value >= region->kept[0] &&
                               value <= region->kept[1];
            box->values[at] = value;
            box->levels[at] = is_in ? 2 : !request->options->voxelwise->masked && !isnan(value);
            count += is_in;
        }
    }
    return count;
}

/* Lists the voxels of the maps. */
static void
voxelwise_box_list(const struct voxelwise_box *box, struct voxelwise_maps *maps)
{
    const int64_t slice = box->size[0] * box->size[1];
    int64_t count = 0;
    for (int64_t i = 0; i < slice * box->size[2]; i++) {
        if (i % slice == 0)
            maps->slices[i / slice] = count;
        if (box->levels[i] == 2)
            maps->voxels[count++] = i;
    }
    maps->slices[box->size[2]] = count;
}

static int
make_voxelwise_levels(struct voxelwise_box *box, const struct texture_options *options, struct error *error)
{
    const int64_t count = box->size[0] * box->size[1] * box->size[2];
    box->ends[0] = INFINITY;
    box->ends[1] = -INFINITY;
    for (int64_t i = 0; i < count; i++)
        if (box->levels[i]) {
            box->ends[0] = fmin(box->ends[0], box->values[i]);
            box->ends[1] = fmax(box->ends[1], box->values[i]);
        }
    struct discretisation_options levels = options->levels;
    levels.has_range &= options->voxelwise->masked;
    if (discretise_count(&levels, box->ends[0], box->ends[1], &box->level_count) ||
        box->level_count > VOXELWISE_MAX_LEVELS)
        return error_set(error, -EINVAL, CODE_VOXELWISE_LEVELS,
                         "values from %g to %g have more than %d grey levels: raise bin_width, or use fewer levels",
                         box->ends[0], box->ends[1], VOXELWISE_MAX_LEVELS);
    const struct discretise_rule rule = discretise_rule_of(&levels, box->ends[0], box->ends[1]);
    for (int64_t i = 0; i < count; i++)
        if (box->levels[i])
            box->levels[i] = (uint16_t)discretise_value(&rule, box->values[i]);
    return 0;
}

/* Checks the memory of the maps, with those of earlier regions, and allocates it. */
static int
reserve_maps(const struct texture_request *request, const struct voxelwise_box *box,
             const struct texture_result *result, struct voxelwise_maps *maps, struct error *error)
{
    const int features = voxelwise_count(request->options->voxelwise);
    const int64_t each = (int64_t)sizeof(double) * features + (int64_t)sizeof(int64_t);
    int64_t bytes = maps->count * each;
    for (size_t m = 0; m < result->voxelwise_count; m++)
        bytes += result->voxelwise[m].count * each;
    bytes += box->size[0] * box->size[1] * box->size[2] * (int64_t)(sizeof(double) + sizeof(uint16_t));
    if (request->most_bytes > 0 && bytes > request->most_bytes)
        return error_set(
            error, -E2BIG, CODE_JOB_TOO_LARGE,
            "the maps of %d features of %lld voxels need %.0f MiB of memory, and the job may take %.0f besides "
            "its volume: ask for fewer features",
            features, (long long)maps->count, (double)bytes / (1 << 20), (double)request->most_bytes / (1 << 20));
    maps->voxels = calloc((size_t)maps->count + 1, sizeof *maps->voxels);
    maps->slices = calloc((size_t)maps->size[2] + 1, sizeof *maps->slices);
    maps->values = calloc((size_t)maps->count * (size_t)features + 1, sizeof *maps->values);
    return maps->voxels && maps->slices && maps->values ? 0 : error_set_system(error, -ENOMEM, "map features");
}

static int
run_voxelwise(const struct texture_request *request, struct voxelwise_box *box, const struct texture_result *result,
              struct voxelwise_maps *maps, struct error *error)
{
    const struct texture_options *options = request->options;
    maps->count = voxelwise_box_fill(box, request);
    int rc = reserve_maps(request, box, result, maps, error);
    if (rc)
        return rc;
    voxelwise_box_list(box, maps);
    rc = make_voxelwise_levels(box, options, error);
    if (rc)
        return rc;
    struct voxelwise_request run = {
        .options = options->voxelwise,
        .size = {box->size[0], box->size[1], box->size[2]},
        .levels = box->levels,
        .values = box->values,
        .level_count = box->level_count,
        .energy_shift = options->energy_shift,
        .stride = maps->count,
    };
    for (int64_t done = 0; done < maps->count && rc == 0; done += run.count) { /* a job can be stopped in between */
        run.voxels = maps->voxels + done;
        run.count = maps->count - done < VOXELWISE_PART ? maps->count - done : VOXELWISE_PART;
        run.maps = maps->values + done;
        rc = pipeline_stopped(request->watch) ? -ECANCELED : voxelwise_run(request->lane, &run, error);
        if (rc == 0 && request->watch && request->watch->progress)
            request->watch->progress(request->watch->context, "texture", (double)done / (double)maps->count);
    }
    return rc;
}

int
voxelwise_measure(const struct texture_request *request, const struct feature_region *region,
                  const struct texture_region *named, struct texture_result *result, struct error *error)
{
    const struct voxelwise_options *options = request->options->voxelwise;
    struct voxelwise_box box = {.region = region};
    struct voxelwise_maps maps = {.segment = named->segment, .label = named->label};
    if (!voxelwise_box_find(region, options->masked ? 0 : options->radius, &box))
        return 0;
    const size_t count = (size_t)(box.size[0] * box.size[1] * box.size[2]);
    for (int axis = 0; axis < 3; axis++) {
        maps.first[axis] = region->volume->first[axis] + box.first[axis];
        maps.size[axis] = box.size[axis];
    }
    box.values = malloc(count * sizeof *box.values);
    box.levels = malloc(count * sizeof *box.levels);
    struct voxelwise_maps *grown =
        realloc(result->voxelwise, (result->voxelwise_count + 1) * sizeof *result->voxelwise);
    result->voxelwise = grown ? grown : result->voxelwise;
    int rc = box.values && box.levels && grown ? 0 : error_set_system(error, -ENOMEM, "map features");
    if (rc == 0)
        rc = run_voxelwise(request, &box, result, &maps, error);
    free(box.values);
    free(box.levels);
    if (rc)
        voxelwise_maps_free(&maps);
    else
        result->voxelwise[result->voxelwise_count++] = maps;
    return rc;
}

void
voxelwise_maps_free(struct voxelwise_maps *maps)
{
    free(maps->voxels);
    free(maps->slices);
    free(maps->values);
}

void
voxelwise_maps_fill(const struct voxelwise_maps *maps, int feature, int64_t slice, double *values)
{
    const int64_t size = maps->size[0] * maps->size[1], before = slice * size;
    const double *map = maps->values + feature * maps->count;
    for (int64_t i = 0; i < size; i++)
        values[i] = NAN;
    for (int64_t v = maps->slices[slice]; v < maps->slices[slice + 1]; v++)
        values[maps->voxels[v] - before] = map[v];
}
