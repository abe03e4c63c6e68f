#include "service/pipeline/rescaled_series.h"

#include "base/error.h"
#include "service/pipeline/measure/measure.h"
#include "service/pipeline/volume.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST_MULTIPLE   0x1p20 /* of the unit in a slope */
#define MOST_DIFFERENCE 0x1p37 /* of intercepts, in units */

static const double hounsfield[2] = {-1024, 3071};

bool
rescaled_series_differs(struct dicom_instance *const *instances, const struct geometry_stack *stack)
{
    const struct image_rescale first = volume_rescale(instances, &stack->planes[0]);
    bool differs = false;
    for (int32_t z = 1; z < stack->plane_count; z++) {
        const struct image_rescale own = volume_rescale(instances, &stack->planes[z]);
        differs |= own.slope != first.slope || own.intercept != first.intercept;
    }
    return differs;
}

bool
rescaled_series_is_apart(struct dicom_instance *const *instances, const struct geometry_stack *stack)
{
    return rescaled_series_differs(instances, stack) || volume_rescale(instances, &stack->planes[0]).slope < 0;
}

/* Returns the largest number that both are multiples of. fmod() is exact. */
static double
series_common(double a, double b)
{
    while (b > 0) {
        const double rest = fmod(a, b);
        a = b;
        b = rest;
    }
    return a;
}

/* Finds the unit of real values. Returns whether all values are multiples of it. */
static bool
series_find_unit(struct rescaled_series *series, int32_t planes)
{
    const double base = series->rescales[0].intercept;
    double unit = 0;
    bool is_whole = true;
    for (int32_t z = 0; z < planes; z++)
        unit = series_common(fabs(series->rescales[z].slope), unit);
    for (int32_t z = 0; z < planes && is_whole; z++) {
        const double difference = series->rescales[z].intercept - base;
        is_whole = fabs(series->rescales[z].slope) <= MOST_MULTIPLE * unit && fmod(difference, unit) == 0 &&
                   fabs(difference) <= MOST_DIFFERENCE * unit && base + difference == series->rescales[z].intercept;
    }
    series->rescale = is_whole ? (struct image_rescale){unit, base} : (struct image_rescale){1, 0};
    return is_whole;
}

/* Fills the lowest and the highest value, and that of padding. */
static void
series_find_ends(struct dicom_instance *const *instances, const struct geometry_stack *stack,
                 struct rescaled_series *series)
{
    series->lowest = series->values.padded = INFINITY;
    series->highest = -INFINITY;
    for (int32_t z = 0; z < stack->plane_count; z++) {
        const struct image_rescale own = series->rescales[z];
        const struct image_range limits = series->own_limits[z];
        const int32_t bits = instances[stack->planes[z].instance]->bits_stored;
        const bool is_signed = stack->pixel == IMAGE_INT16, is_known = bits > 0 && bits < 16;
        const double most = is_known ? ldexp(1, is_signed ? bits - 1 : bits) - 1 : limits.hi;
        const double least = !is_known ? limits.lo : is_signed ? -most - 1 : 0;
        const double ends[2] = {fmin(fmax(least, limits.lo), limits.hi), fmin(fmax(most, limits.lo), limits.hi)};
        for (int end = 0; end < 2; end++) {
            const double stored = end == 0 ? limits.lo : limits.hi;
            series->values.padded = fmin(series->values.padded, own.slope * stored + own.intercept);
            series->lowest = fmin(series->lowest, own.slope * ends[end] + own.intercept);
            series->highest = fmax(series->highest, own.slope * ends[end] + own.intercept);
        }
    }
}

int
rescaled_series_make(struct dicom_instance *const *instances, const struct geometry_stack *stack,
                     const struct kernels_lane *lane, struct rescaled_series *series, struct error *error)
{
    *series = (struct rescaled_series){.is_apart = rescaled_series_is_apart(instances, stack),
                                       .rescale = volume_rescale(instances, &stack->planes[0]),
                                       .limits = image_pixel_range(stack->pixel),
                                       .padding = {1, 0}};
    if (!series->is_apart)
        return 0;
    series->rescales = calloc((size_t)stack->plane_count, sizeof *series->rescales);
    series->own_limits = calloc((size_t)stack->plane_count, sizeof *series->own_limits);
    if (!series->rescales || !series->own_limits)
        return error_set_system(error, -ENOMEM, "prepare the values of the slices");
    for (int32_t z = 0; z < stack->plane_count; z++) {
        series->rescales[z] = volume_rescale(instances, &stack->planes[z]);
        series->own_limits[z] = series->limits;
    }
    const bool is_whole = series_find_unit(series, stack->plane_count);
    for (int32_t z = 0; z < stack->plane_count; z++) {
        struct image_rescale *own = &series->rescales[z];
        own->slope /= series->rescale.slope;
        own->intercept = (own->intercept - series->rescale.intercept) / series->rescale.slope;
    }
    series->values = (struct rescaled_values){
        .voxels = lane ? kernels_volume_voxels(lane) : NULL,
        .pixel = stack->pixel,
        .extent = {stack->columns, stack->rows, stack->plane_count},
        .rescales = series->rescales,
        .limits = series->own_limits,
        .padding = series->padding,
        .whole = is_whole,
        .threads = lane ? kernels_lane_threads(lane) : 1,
    };
    return 0;
}

/* Limits the stored values of a slice to -1024 .. 3071 HU. */
static int
series_limit_hounsfield(struct dicom_instance *const *instances, const struct geometry_plane *plane,
                        struct image_range *limits, struct error *error)
{
    const struct image_rescale own = volume_rescale(instances, plane);
    *limits = volume_stored_range(hounsfield, own.slope, own.intercept, *limits);
    if (!volume_range_is_empty(*limits))
        return 0;
    return error_set_files(error, -EINVAL, CODE_RESCALE_INVALID, instances[plane->instance]->path, NULL,
                           "the rescale leaves no stored value from -1024 to 3071 HU");
}

int
rescaled_series_limit(struct dicom_instance *const *instances, const struct geometry_stack *stack,
                      struct rescaled_series *series, struct error *error)
{
    const struct dicom_instance *first = instances[stack->planes[0].instance];
    const bool is_hounsfield = strcmp(value_unit_of(instances, stack), "[hnsf'U]") == 0;
    int rc = is_hounsfield ? series_limit_hounsfield(instances, &stack->planes[0], &series->limits, error) : 0;
    series->padding = series->values.padding = volume_padding(first);
    for (int32_t z = 0; z < stack->plane_count && rc == 0; z++) {
        const struct dicom_instance *instance = instances[stack->planes[z].instance];
        const struct image_range other = volume_padding(instance);
        if (other.lo != series->padding.lo || other.hi != series->padding.hi)
            return error_set_files(error, -EINVAL, CODE_PADDING_MIXED, first->path, instance->path,
                                   "grid_mm and smooth_mm require the same padding for all slices");
        if (series->is_apart && is_hounsfield)
            rc = series_limit_hounsfield(instances, &stack->planes[z], &series->own_limits[z], error);
    }
    if (rc == 0 && series->is_apart)
        series_find_ends(instances, stack, series);
    return rc;
}

void
rescaled_series_release(struct rescaled_series *series)
{
    free(series->rescales);
    free(series->own_limits);
    *series = (struct rescaled_series){.is_apart = false};
}
