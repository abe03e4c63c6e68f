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

/* Finds the smallest and the largest real-world value of the job's volume, or values beyond them. */
static int
filtering_values(const struct texture_filtering *filtering, double ends[2], struct error *error)
{
    const struct grid *from = filtering->grid->from;
    const struct image_range padding = volume_padding(from->instances[from->stack->planes[0].instance]);
    struct image_range stored;
    const int rc = kernels_volume_range(filtering->whole, padding, &stored, error);
    ends[0] = ends[1] = 0;
    if (rc == -ENODATA) /* all is padding */
        return 0;
    for (int32_t z = 0; z < from->stack->plane_count && rc == 0; z++) {
        const struct image_rescale rescale = volume_rescale(from->instances, &from->stack->planes[z]);
        const double first = rescale.slope * stored.lo + rescale.intercept;
        const double last = rescale.slope * stored.hi + rescale.intercept;
        ends[0] = z > 0 ? fmin(ends[0], fmin(first, last)) : fmin(first, last);
        ends[1] = z > 0 ? fmax(ends[1], fmax(first, last)) : fmax(first, last);
    }
    return rc;
}

static int
filtering_scale(const struct texture_filtering *filtering, struct texture_scale *scale, struct error *error)
{
    const struct grid *grid = filtering->grid;
    const struct image_rescale rescale = volume_rescale(grid->from->instances, &grid->from->stack->planes[0]);
    double ends[2];
    int exponent;
    const int rc = filtering_values(filtering, ends, error);
    /* A spline exceeds the range of its samples by less than its size. Rounding moves values by less than 1. */
    const double swing = grid->demand.order == RESAMPLE_CUBIC ? ends[1] - ends[0] : 0;
    const double most = fmax(fabs(ends[0] - swing), fabs(ends[1] + swing)) + fabs(rescale.slope);
    const double offset = rescale.intercept / rescale.slope;
    if (rc)
        return rc;
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

/* Removes the responses of voxels of regions whose values are beyond the range. */
static void
leave_out(const struct texture_filtering *filtering, const double *values, double *responses)
{
    const struct discretisation_options *levels = &filtering->options->levels;
    const struct image_extent *extent = &filtering->grid->to.extent;
    for (int64_t row = 0; row < extent->rows * extent->slices && levels->has_range; row++)
        for (int64_t x = 0; x < extent->columns; x++) {
            const double value = values[row * extent->columns + x];
            if (value >= levels->range[0] && value <= levels->range[1])
                continue;
            for (size_t r = 0; r < filtering->region_count; r++)
                if (image_has(filtering->regions[r].bits, extent->columns, row, x))
                    responses[row * extent->columns + x] = NAN;
        }
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

int
texture_filter(const struct texture_filtering *filtering, struct error *error)
{
    const int64_t count = image_voxels(&filtering->grid->to.extent);
    double *reals = filtering->grid->voxels;
    double *responses = malloc((size_t)count * sizeof *responses);
    int32_t *values = malloc((size_t)count * sizeof *values);
    const int32_t *codes = NULL;
    struct texture_scale scale = {.unit = 1};
    double step = 1;
    int rc = responses && values ? filtering_scale(filtering, &scale, error)
                                 : error_set_system(error, -ENOMEM, "filter the volume");
    for (int64_t i = 0; i < count && rc == 0; i++)
        values[i] = isnan(reals[i]) ? scale.padded
                                    : (int32_t)rint(fmin(fmax(reals[i] / scale.unit, -scale.limit), scale.limit));
    if (rc == 0)
        rc = run_filter(filtering, &scale, values, &codes, &step, error);
    for (int64_t i = 0; i < count && rc == 0; i++)
        responses[i] = isnan(reals[i]) ? NAN : codes[i] * (step * scale.unit);
    if (rc == 0) {
        leave_out(filtering, reals, responses);
        filtering->grid->voxels = responses;
        responses = reals;
    }
    free(values);
    free(responses);
    return rc;
}
