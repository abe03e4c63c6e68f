/* measure_filter.c - see measure_filter.h. */
#include "service/pipeline/measure/measure_filter.h"

#include "service/pipeline/volume.h"

#include "base/error.h"
#include "kernels/range/range.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct filter_demand
texture_filter_demand(const struct texture_options *options, const double spacing[3])
{
    struct filter_demand demand = {
        .options = *options->filter, .spacing = {spacing[0], spacing[1], spacing[2]}, .values = true};
    filter_parse(&demand.options);
    return demand;
}

double
texture_filter_margin(const struct texture_options *options, const double spacing[3])
{
    const struct filter_demand demand = texture_filter_demand(options, spacing);
    int32_t reach[3];
    double margin = 0;
    filter_reach(&demand, reach);
    for (int axis = 0; axis < 3; axis++) {
        if (reach[axis] > FILTER_MAX_REACH || demand.options.boundary == FILTER_PERIODIC)
            return -1;
        margin = fmax(margin, (reach[axis] + 1) * spacing[axis]);
    }
    return margin;
}

double
texture_filter_gain(const struct texture_options *options, const double spacing[3])
{
    const struct filter_demand demand = texture_filter_demand(options, spacing);
    return ldexp(filter_step(&demand, 1), 30);
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
    const double *ends = filtering->range->ends;
    int exponent;
    const int rc = filtering_values(filtering, error);
    if (rc)
        return rc;
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

static int
run_filter(const struct texture_filtering *filtering, const struct texture_scale *scale, const int32_t *values,
           const int32_t **codes, double *step, struct error *error)
{
    const struct image_extent *extent = &filtering->grid->to.extent;
    const struct filter_demand filter = texture_filter_demand(filtering->options, filtering->grid->to.spacing);
    struct kernels_demand demand = {.most_bytes = filtering->most_bytes};
    const struct filter_request request = {
        .limit = scale->limit, .padding = {1, 0}, .padded = scale->padded, .values = values};
    void *voxels;
    filter_demand_set(&demand, &filter);
    int rc = kernels_volume_begin(filtering->lane, *extent, IMAGE_UINT8, &demand, &voxels, error);
    if (rc)
        return rc;
    memset(voxels, 0, (size_t)image_voxels(extent));
    rc = kernels_volume_ready(filtering->lane, 0, extent->slices, error);
    return rc ? rc : filter_run(filtering->lane, filter.options.kind, &request, codes, step, error);
}

/* Computes the response. Its codes replace the values of the filter. */
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
