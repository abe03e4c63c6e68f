/* measure_filter.c - see measure_filter.h. */
#include "service/pipeline/measure/measure_filter.h"

#include "service/pipeline/measure/measure_demand.h"
#include "service/pipeline/volume.h"

#include "base/error.h"
#include "kernels/range/range.h"
#include "kernels/texture/region.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct texture_filter_demand
filter_demand_of(const struct texture_options *options, const double spacing[3])
{
    struct texture_filter_demand own = {
        .filter = {.options = *options->filter, .spacing = {spacing[0], spacing[1], spacing[2]}, .values = true},
        .image_type = {.options = *options->filter, .spacing = {spacing[0], spacing[1], spacing[2]}}};
    filter_parse(&own.filter.options);
    filter_parse(&own.image_type.options);
    return own;
}

void
texture_filter_demand_set(const struct texture_options *options, const struct grid *grid,
                          struct texture_filter_demand *own, struct kernels_demand *demand)
{
    const struct image_rescale rescale = volume_rescale(grid->source_instances, &grid->source->planes[0]);
    *own = filter_demand_of(options, grid->to.spacing);
    own->image_type.reversed = grid_is_reversed(grid);
    own->image_type.whole = grid_is_whole(grid) && (!options->resample || grid->pyradiomics);
    own->image_type.is_unsigned =
        image_pixel_range(grid->source->pixel).lo == 0 && rescale.slope == 1 && rescale.intercept == 0;
    if (filter_is_image_type(options->filter->kind))
        demand->of[KERNELS_IMAGE_TYPE] = &own->image_type;
    else
        filter_demand_set(demand, &own->filter);
}

double
texture_filter_margin(const struct texture_options *options, const double spacing[3])
{
    const struct texture_filter_demand own = filter_demand_of(options, spacing);
    const bool is_image_type = filter_is_image_type(options->filter->kind);
    int32_t reach[3];
    double margin = 0;
    if (is_image_type)
        image_type_reach(&own.image_type, reach);
    else
        filter_reach(&own.filter, reach);
    for (int axis = 0; axis < 3; axis++) {
        if (reach[axis] > FILTER_MAX_REACH || (!is_image_type && own.filter.options.boundary == FILTER_PERIODIC))
            return -1;
        margin = fmax(margin, (reach[axis] + 1) * spacing[axis]);
    }
    return margin;
}

double
texture_filter_bound(const struct texture_options *options, const double spacing[3], double limit)
{
    const struct texture_filter_demand own = filter_demand_of(options, spacing);
    if (filter_is_image_type(options->filter->kind))
        return image_type_bound(&own.image_type, limit);
    return ldexp(filter_step(&own.filter, 1), 30) * limit;
}

/* How real-world values become values of the filter: `unit` is the real-world value of 1. */
struct texture_scale {
    double unit;
    int32_t limit, padded;
};

/* Finds the range of the job's volume, once for all filters. */
static int
filtering_values(const struct texture_filtering *filtering, struct error *error)
{
    const struct grid *from = filtering->grid->from;
    const struct image_range padding = volume_padding(from->instances[from->stack->planes[0].instance]);
    struct filter_range *range = filtering->range;
    double *ends = range->ends;
    struct image_range stored;
    const int rc = range->known ? 0 : kernels_volume_range(filtering->whole, padding, &stored, error);
    if (range->known || (rc && rc != -ENODATA))
        return rc;
    range->known = true;
    ends[0] = ends[1] = 0;
    for (int32_t z = 0; z < from->stack->plane_count && rc == 0; z++) { /* -ENODATA: all is padding */
        const struct image_rescale rescale = volume_rescale(from->instances, &from->stack->planes[z]);
        const double first = rescale.slope * stored.lo + rescale.intercept;
        const double last = rescale.slope * stored.hi + rescale.intercept;
        ends[0] = z > 0 ? fmin(ends[0], fmin(first, last)) : fmin(first, last);
        ends[1] = z > 0 ? fmax(ends[1], fmax(first, last)) : fmax(first, last);
    }
    return 0;
}

static int
filtering_scale(const struct texture_filtering *filtering, struct texture_scale *scale, struct error *error)
{
    const struct grid *grid = filtering->grid;
    const struct image_rescale rescale = volume_rescale(grid->from->instances, &grid->from->stack->planes[0]);
    double ends[2];
    int exponent;
    const int rc = filtering_values(filtering, error);
    if (rc)
        return rc;
    for (int end = 0; end < 2; end++)
        ends[end] = grid_normalised(grid, filtering->range->ends[end]);
    /* A spline exceeds the range of its samples by less than its size. Rounding moves values by less than 1. */
    const double swing = grid->demand.order == RESAMPLE_CUBIC ? ends[1] - ends[0] : 0;
    const double most = fmax(fabs(ends[0] - swing), fabs(ends[1] + swing)) + fabs(rescale.slope);
    const double offset = rescale.intercept / rescale.slope;
    if (grid->rounded && rescale.slope > 0 && offset == rint(offset) && most / rescale.slope < FILTER_MAX_LIMIT) {
        scale->unit = rescale.slope;
        scale->limit = (int32_t)ceil(most / rescale.slope);
    } else {
        (void)frexp(most, &exponent);
        scale->unit = ldexp(1, exponent - 30);
        scale->limit = FILTER_MAX_LIMIT;
    }
    scale->padded = (int32_t)rint(ends[0] / scale->unit);
    return 0;
}

/* Begins a volume for the filter, which reads other values. */
static int
begin_filter(const struct texture_filtering *filtering, struct texture_filter_demand *own, struct error *error)
{
    const struct image_extent *extent = &filtering->grid->to.extent;
    struct kernels_demand demand = {.most_bytes = filtering->most_bytes};
    void *voxels;
    texture_filter_demand_set(filtering->options, filtering->grid, own, &demand);
    const int rc = kernels_volume_begin(filtering->lane, *extent, IMAGE_UINT8, &demand, &voxels, error);
    if (rc)
        return rc;
    memset(voxels, 0, (size_t)image_voxels(extent));
    return kernels_volume_ready(filtering->lane, 0, extent->slices, error);
}

static int
run_filter(const struct texture_filtering *filtering, const struct texture_scale *scale, const int32_t *values,
           const int32_t **codes, double *step, struct error *error)
{
    struct texture_filter_demand own;
    const struct filter_request request = {
        .limit = scale->limit, .padding = {1, 0}, .padded = scale->padded, .values = values};
    const int rc = begin_filter(filtering, &own, error);
    return rc ? rc : filter_run(filtering->lane, filtering->options->filter->kind, &request, codes, step, error);
}

/* Computes the response of a filter of integers. Its codes replace the values of the filter. */
static int
filtering_respond(const struct texture_filtering *filtering, struct error *error)
{
    const int64_t count = image_voxels(&filtering->grid->to.extent);
    const double *reals = filtering->grid->voxels;
    struct filter_response *response = filtering->response;
    int32_t *values = malloc((size_t)count * sizeof *values);
    const int32_t *codes = NULL;
    struct texture_scale scale = {.unit = 1};
    double step = 1;
    int rc = values ? filtering_scale(filtering, &scale, error) : error_set_system(error, -ENOMEM, "filter the volume");
    for (int64_t i = 0; i < count && rc == 0; i++)
        values[i] = isnan(reals[i]) ? scale.padded
                                    : (int32_t)rint(fmin(fmax(reals[i] / scale.unit, -scale.limit), scale.limit));
    if (rc == 0)
        rc = run_filter(filtering, &scale, values, &codes, &step, error);
    if (rc) {
        free(values);
        return rc;
    }
    for (int64_t i = 0; i < count; i++)
        values[i] = isnan(reals[i]) ? FILTER_RESPONSE_NONE : codes[i];
    *response = (struct filter_response){values, step * scale.unit};
    return 0;
}

/* Returns whether a voxel is of a region, and its value beyond the range. */
static bool
is_left_out(const struct texture_filtering *filtering, double value, int64_t row, int64_t x)
{
    const double *range = filtering->options->levels.range;
    bool within = false;
    for (size_t r = 0; r < filtering->region_count && !(value >= range[0] && value <= range[1]); r++)
        within |= image_has(filtering->regions[r].bits, filtering->grid->to.extent.columns, row, x);
    return within;
}

/* ------------------------------------------------------------------------------ image types -- */

/* Sets the part of the grid whose responses are measured: the box of the regions, or all. */
static void
take_regions(const struct texture_filtering *filtering, struct image_type_request *request)
{
    const struct image_extent *extent = &filtering->grid->to.extent;
    const int64_t sides[3] = {extent->columns, extent->rows, extent->slices};
    int64_t first[3] = {sides[0], sides[1], sides[2]}, end[3] = {0, 0, 0};
    bool is_all = texture_margin(filtering->options) > 0;
    struct texture_box box;
    for (size_t r = 0; r < filtering->region_count && !is_all; r++) {
        is_all = !filtering->regions[r].bits;
        if (is_all)
            break;
        texture_box_of(filtering->regions[r].bits, extent, &box);
        for (int axis = 0; axis < 3 && box.size[0] > 0; axis++) {
            const int64_t past = box.first[axis] + box.size[axis];
            first[axis] = box.first[axis] < first[axis] ? box.first[axis] : first[axis];
            end[axis] = past > end[axis] ? past : end[axis];
        }
    }
    for (int axis = 0; axis < 3; axis++) {
        const bool is_some = !is_all && end[axis] > 0;
        request->first[axis] = is_some ? first[axis] : 0;
        request->size[axis] = is_some ? end[axis] - first[axis] : is_all ? sides[axis] : 1;
    }
}

/* Computes the responses of an image type to the values, which are copied to `values`. */
static int
run_image_type(const struct texture_filtering *filtering, const double *reals, double *values, double *responses,
               struct error *error)
{
    const int64_t count = image_voxels(&filtering->grid->to.extent);
    struct image_type_request request = {.values = values};
    struct texture_filter_demand own;
    const double *found = NULL;
    double lowest = 0;
    int rc = filtering_values(filtering, error);
    if (rc == 0)
        lowest = grid_normalised(filtering->grid, filtering->range->ends[0]);
    for (int64_t i = 0; i < count && rc == 0; i++)
        values[i] = isnan(reals[i]) ? lowest : reals[i];
    take_regions(filtering, &request);
    if (rc == 0)
        rc = begin_filter(filtering, &own, error);
    if (rc == 0)
        rc = image_type_run(filtering->lane, &request, &found, error);
    for (int64_t i = 0; i < count && rc == 0; i++)
        responses[i] = isnan(reals[i]) ? NAN : found[i];
    return rc;
}

/* Replaces the grid's values by responses of an image type. */
static int
filtering_respond_reals(const struct texture_filtering *filtering, struct error *error)
{
    const struct image_extent *extent = &filtering->grid->to.extent;
    const size_t bytes = (size_t)image_voxels(extent) * sizeof(double);
    double *reals = filtering->grid->voxels, *responses = malloc(bytes), *values = malloc(bytes);
    const int rc = responses && values ? run_image_type(filtering, reals, values, responses, error)
                                       : error_set_system(error, -ENOMEM, "filter the volume");
    if (rc == 0) {
        for (int64_t row = 0; row < extent->rows * extent->slices && filtering->options->levels.has_range; row++)
            for (int64_t x = 0; x < extent->columns; x++)
                if (is_left_out(filtering, reals[row * extent->columns + x], row, x))
                    responses[row * extent->columns + x] = NAN;
        filtering->grid->voxels = responses;
        responses = reals;
    }
    free(values);
    free(responses);
    return rc;
}

/* ---------------------------------------------------------------------------- all filters -- */

bool
texture_filter_reads(const struct texture_options *options, const struct filter_response *response)
{
    return !response->codes || options->levels.has_range;
}

int
texture_filter(const struct texture_filtering *filtering, struct error *error)
{
    const struct image_extent *extent = &filtering->grid->to.extent;
    const bool has_range = filtering->options->levels.has_range;
    const struct filter_response *response = filtering->response;
    if (filter_is_image_type(filtering->options->filter->kind))
        return filtering_respond_reals(filtering, error);
    const int rc = response->codes ? 0 : filtering_respond(filtering, error);
    if (rc)
        return rc;
    if (!filtering->grid->voxels)
        filtering->grid->voxels = malloc(grid_voxel_bytes(filtering->grid));
    double *values = filtering->grid->voxels;
    if (!values)
        return error_set_system(error, -ENOMEM, "filter the volume");
    for (int64_t row = 0; row < extent->rows * extent->slices; row++)
        for (int64_t x = 0; x < extent->columns; x++) {
            const int64_t i = row * extent->columns + x;
            const bool none = response->codes[i] == FILTER_RESPONSE_NONE;
            values[i] = none || (has_range && is_left_out(filtering, values[i], row, x))
                            ? NAN
                            : response->codes[i] * response->step;
        }
    return 0;
}
