/* measure_filter.c - see measure_filter.h. */
#include "service/pipeline/measure/measure_filter.h"

#include "service/pipeline/measure/measure_demand.h"
#include "service/pipeline/volume.h"

#include "base/array.h"
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

uint8_t
texture_filter_band(const struct filter_options *filter)
{
    struct image_type_demand own;
    if (!filter)
        return 0;
    own = (struct image_type_demand){.options = *filter};
    filter_parse(&own.options);
    return image_type_bands(&own);
}

double
texture_filter_margin(const struct texture_options *options, const struct grid *grid)
{
    const double *spacing = grid->to.spacing;
    const struct texture_filter_demand own = filter_demand_of(options, spacing);
    const bool is_image_type = filter_is_image_type(options->filter->kind);
    int32_t reach[3];
    double margin = 0;
    if (is_image_type && image_type_has_peak(options->filter->kind) && !grid_has_rescaled(grid))
        return -1;
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
    const struct grid *grid = filtering->values;
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

int
texture_filter_begin(const struct texture_filtering *filtering, struct texture_filter_demand *own, void **voxels,
                     struct error *error)
{
    const struct texture_options *options = filtering->options;
    const struct grid *grid = filtering->grid;
    const struct image_rescale rescale = volume_rescale(grid->source_instances, &grid->source->planes[0]);
    const struct grid_part measured = grid_whole(grid);
    const int64_t *size = filtering->part.size;
    struct kernels_demand demand = {.most_bytes = filtering->most_bytes};
    *own = filter_demand_of(options, grid->to.spacing);
    own->image_type.bands = filtering->bands;
    own->image_type.reversed = grid_is_reversed(grid);
    own->image_type.whole = grid_is_whole(grid) && (!options->resample || grid->pyradiomics);
    own->image_type.is_unsigned =
        image_pixel_range(grid->source->pixel).lo == 0 && rescale.slope == 1 && rescale.intercept == 0;
    for (int axis = 0; axis < 3; axis++) {
        own->image_type.first[axis] = measured.first[axis] - filtering->part.first[axis];
        own->image_type.size[axis] = measured.size[axis];
    }
    if (filter_is_image_type(options->filter->kind))
        demand.of[KERNELS_IMAGE_TYPE] = &own->image_type;
    else
        filter_demand_set(&demand, &own->filter);
    return kernels_volume_begin(filtering->lane, (struct image_extent){size[0], size[1], size[2]}, IMAGE_UINT8, &demand,
                                voxels, error);
}

/* Begins a volume of zeros. */
static int
begin_filter(const struct texture_filtering *filtering, struct texture_filter_demand *own, struct error *error)
{
    const int64_t *size = filtering->part.size;
    void *voxels;
    const int rc = texture_filter_begin(filtering, own, &voxels, error);
    if (rc)
        return rc;
    memset(voxels, 0, (size_t)(size[0] * size[1] * size[2]));
    return kernels_volume_ready(filtering->lane, 0, size[2], error);
}

/* Returns the values of a row of a part. */
static const double *
filtering_row(const struct texture_filtering *filtering, const struct grid_part *part, int64_t row)
{
    const struct resample_grid *to = &filtering->values->to;
    const int64_t y = part->first[1] - to->first[1] + row % part->size[1];
    const int64_t z = part->first[2] - to->first[2] + row / part->size[1];
    return (const double *)filtering->values->voxels + (z * to->extent.rows + y) * to->extent.columns + part->first[0] -
           to->first[0];
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
    const struct grid_part *part = &filtering->part;
    const int64_t columns = part->size[0], rows = part->size[1] * part->size[2], count = columns * rows;
    struct filter_response *response = filtering->response;
    int32_t *values = malloc((size_t)count * sizeof *values);
    const int32_t *codes = NULL;
    struct texture_scale scale = {.unit = 1};
    double step = 1;
    int rc = values ? filtering_scale(filtering, &scale, error) : error_set_system(error, -ENOMEM, "filter the volume");
    const double most = scale.limit, shift = 0x1.8p52; /* added, it rounds to nearest */
    for (int64_t row = 0; row < rows && rc == 0; row++) {
        const double *reals = filtering_row(filtering, part, row);
        for (int64_t x = 0; x < columns; x++) {
            const double real = reals[x] / scale.unit, low = real > -most ? real : -most;
            const int32_t value = (int32_t)((low < most ? low : most) + shift - shift);
            values[row * columns + x] = isnan(reals[x]) ? scale.padded : value;
        }
    }
    if (rc == 0)
        rc = run_filter(filtering, &scale, values, &codes, &step, error);
    if (rc) {
        free(values);
        return rc;
    }
    for (int64_t row = 0; row < rows; row++) {
        const double *reals = filtering_row(filtering, part, row);
        for (int64_t x = 0; x < columns; x++)
            values[row * columns + x] = isnan(reals[x]) ? FILTER_RESPONSE_NONE : codes[row * columns + x];
    }
    response->codes = values;
    response->step = step * scale.unit;
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

enum { COPIED_TOGETHER = 2 << 20 }; /* bytes: a huge page */

/* A response that threads copy out of the lane, to memory with new pages. */
struct response_copying {
    const char *from;
    char *to;
    size_t bytes;
};

static void
copy_part(void *context, int64_t part)
{
    const struct response_copying *copying = context;
    const size_t first = (size_t)part * COPIED_TOGETHER, left = copying->bytes - first;
    memcpy(copying->to + first, copying->from + first, left < COPIED_TOGETHER ? left : COPIED_TOGETHER);
}

/* Computes the responses of an image type, or those of several bands. */
static int
respond_reals(const struct texture_filtering *filtering, struct error *error)
{
    const struct image_extent *extent = &filtering->values->to.extent;
    const size_t bytes = (size_t)image_voxels(&filtering->grid->to.extent) * sizeof(double);
    struct image_type_request request = {.values = filtering->values->voxels,
                                         .sides = {extent->columns, extent->rows, extent->slices}};
    struct texture_filter_demand own;
    const double *found[IMAGE_TYPE_BANDS] = {NULL};
    int count = 0, rc = filtering_values(filtering, error);
    if (rc == 0)
        request.none = grid_normalised(filtering->values, filtering->range->ends[0]);
    if (rc == 0 && filtering->options->filter->around < 0 && grid_has_rescaled(filtering->values))
        request.peak = fmax(fabs(filtering->range->ends[0]), fabs(filtering->range->ends[1]));
    for (int axis = 0; axis < 3; axis++)
        request.at[axis] = filtering->part.first[axis] - filtering->values->to.first[axis];
    if (rc == 0)
        rc = begin_filter(filtering, &own, error);
    if (rc == 0)
        rc = image_type_run(filtering->lane, &request, found, error);
    for (int band = 0; band < IMAGE_TYPE_BANDS && rc == 0; band++) {
        if (!(filtering->bands >> band & 1))
            continue;
        double *reals = array_take_pages(bytes);
        if (!reals)
            return error_set_system(error, -ENOMEM, "filter the volume");
        struct response_copying copying = {(const char *)found[count++], (char *)reals, bytes};
        kernels_lane_for(filtering->lane, (int64_t)((bytes + COPIED_TOGETHER - 1) / COPIED_TOGETHER), copy_part,
                         &copying);
        free(filtering->response->reals[band]);
        filtering->response->reals[band] = reals;
    }
    return rc;
}

/* Gives the grid its band of the responses. */
static int
fill_reals(const struct texture_filtering *filtering, struct error *error)
{
    const size_t bytes = (size_t)image_voxels(&filtering->grid->to.extent) * sizeof(double);
    const struct grid_part measured = grid_whole(filtering->grid);
    const bool has_range = filtering->options->levels.has_range;
    double **band = &filtering->response->reals[__builtin_ctz(texture_filter_band(filtering->options->filter))];
    double *reals = filtering->takes_response ? *band : array_take_pages(bytes);
    if (!reals)
        return error_set_system(error, -ENOMEM, "filter the volume");
    if (filtering->takes_response)
        *band = NULL;
    else
        memcpy(reals, *band, bytes);
    filtering->grid->voxels = reals;
    for (int64_t row = 0; row < measured.size[1] * measured.size[2] && (has_range || filtering->values->has_none);
         row++) {
        const double *values = filtering_row(filtering, &measured, row);
        for (int64_t x = 0; x < measured.size[0]; x++)
            if (isnan(values[x]) || (has_range && is_left_out(filtering, values[x], row, x)))
                reals[row * measured.size[0] + x] = NAN;
    }
    return 0;
}

/* ---------------------------------------------------------------------------- all filters -- */

int
texture_filter_respond(const struct texture_filtering *filtering, struct error *error)
{
    const uint8_t band = texture_filter_band(filtering->options->filter);
    if (!filter_is_image_type(filtering->options->filter->kind))
        return filtering->response->codes ? 0 : filtering_respond(filtering, error);
    return filtering->response->reals[__builtin_ctz(band)] ? 0 : respond_reals(filtering, error);
}

int
texture_filter_fill(const struct texture_filtering *filtering, struct error *error)
{
    const struct image_extent *extent = &filtering->grid->to.extent;
    const struct filter_response *response = filtering->response;
    const bool has_range = filtering->options->levels.has_range;
    const struct grid_part *part = &filtering->part;
    if (filter_is_image_type(filtering->options->filter->kind))
        return fill_reals(filtering, error);
    double *values = filtering->grid->voxels;
    const int64_t *first = filtering->grid->to.first;
    for (int64_t row = 0; row < extent->rows * extent->slices; row++) {
        const int64_t y = first[1] - part->first[1] + row % extent->rows;
        const int64_t z = first[2] - part->first[2] + row / extent->rows;
        const int32_t *codes = response->codes + (z * part->size[1] + y) * part->size[0] + first[0] - part->first[0];
        for (int64_t x = 0; x < extent->columns; x++) {
            double *const value = &values[row * extent->columns + x];
            const bool none = codes[x] == FILTER_RESPONSE_NONE;
            *value = none || (has_range && is_left_out(filtering, *value, row, x)) ? NAN : codes[x] * response->step;
        }
    }
    return 0;
}
