#include "service/pipeline/segment/segment_ranges.h"

#include "base/error.h"
#include "kernels/mask/relative.h"
#include "kernels/texture/texture.h"
#include "service/pipeline/rescaled_series.h"
#include "service/pipeline/volume.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct image_range nothing = {.lo = 1, .hi = 0};

static bool
overlap(struct image_range a, struct image_range b)
{
    return !volume_range_is_empty(a) && !volume_range_is_empty(b) && a.lo <= b.hi && b.lo <= a.hi;
}

/* Checks that a plane's range loses no values to a hole that is not padding of that plane. */
static int
check_hole(const struct image_range *ranges, struct dicom_instance *const *instances,
           const struct geometry_stack *stack, struct image_range hole, int32_t hole_plane, struct error *error)
{
    for (int32_t z = 0; z < stack->plane_count; z++) {
        const struct dicom_instance *instance = instances[stack->planes[z].instance];
        struct image_range padding = volume_padding(instance);
        bool same = padding.lo == hole.lo && padding.hi == hole.hi;
        if (same || !overlap(ranges[z], hole))
            continue;
        return error_set_files(error, -EINVAL, CODE_PADDING_MIXED, instances[stack->planes[hole_plane].instance]->path,
                               instance->path,
                               "the padding values of the series differ (%d to %d in one file, %d to %d in another) "
                               "and lie inside the range of values to segment",
                               hole.lo, hole.hi, padding.lo, padding.hi);
    }
    return 0;
}

int
ranges_make(const struct segmentation *segmentation, size_t segment, struct image_range *ranges,
            struct image_range *hole, struct error *error)
{
    const double *range = segmentation->ranges[segment].ends;
    struct dicom_instance *const *instances = segmentation->instances;
    const struct geometry_stack *stack = segmentation->stack;
    struct image_range limits = image_pixel_range(stack->pixel);
    int32_t hole_plane = 0;
    *hole = nothing;
    for (int32_t z = 0; z < stack->plane_count; z++) {
        const struct geometry_plane *plane = &stack->planes[z];
        struct image_range padding = volume_padding(instances[plane->instance]);
        struct image_rescale rescale = volume_rescale(instances, plane);
        struct image_range *own = &ranges[z];
        *own = volume_stored_range(range, rescale.slope, rescale.intercept, limits);
        if (!overlap(*own, padding))
            continue;
        if (padding.lo <= own->lo && own->hi <= padding.hi) {
            *own = nothing;
        } else if (padding.lo <= own->lo) {
            own->lo = padding.hi + 1;
        } else if (own->hi <= padding.hi) {
            own->hi = padding.lo - 1;
        } else if (volume_range_is_empty(*hole)) {
            *hole = padding;
            hole_plane = z;
        }
    }
    return volume_range_is_empty(*hole) ? 0 : check_hole(ranges, instances, stack, *hole, hole_plane, error);
}

/* Returns the name of the region of its values. */
static const char *
ranges_region(const struct conf_range *range)
{
    if (range->of)
        return range->of;
    return range->relative == CONF_SIGMA ? "the start region" : "the volume";
}

/* Counts the values of its region; the caller must free them. */
static int
ranges_tally(const struct segmentation *segmentation, struct kernels_lane *lane, const uint64_t *region,
             struct mask_tally *tally, struct error *error)
{
    const struct geometry_stack *stack = segmentation->stack;
    const struct image_range limits = image_pixel_range(stack->pixel);
    const size_t tables = volume_tables(segmentation->instances, stack, NULL, NULL);
    const size_t values = (size_t)(limits.hi - limits.lo) + 1;
    uint64_t *histograms = calloc(tables * values, sizeof *histograms);
    struct image_rescale *rescales = calloc(tables, sizeof *rescales);
    int rc = histograms && rescales ? texture_histogram_run(lane, region, tables > 1, histograms, error)
                                    : error_set_system(error, -ENOMEM, "count the values of a region");
    for (size_t t = 0; t < tables && rc == 0; t++) {
        const struct geometry_plane *plane = &stack->planes[t];
        const struct image_range padding = volume_padding(segmentation->instances[plane->instance]);
        rescales[t] = volume_rescale(segmentation->instances, plane);
        for (int32_t v = padding.lo > limits.lo ? padding.lo : limits.lo; v <= padding.hi && v <= limits.hi; v++)
            histograms[t * values + (size_t)(v - limits.lo)] = 0;
    }
    if (rc == 0)
        rc = mask_tally_make(stack->pixel, histograms, tables, rescales, tally, error);
    free(histograms);
    free(rescales);
    return rc;
}

static int
ranges_of_tally(const struct conf_range *range, const struct mask_tally *tally, double ends[2], struct error *error)
{
    switch (range->relative) {
    case CONF_PERCENTILE:
        return mask_range_percentile(tally, range->percentile[0], range->percentile[1], ends);
    case CONF_OTSU:
        return mask_range_otsu(tally, range->otsu, range->otsu_class, ends, error);
    case CONF_SIGMA:
        return mask_range_sigma(tally, range->sigma, ends);
    case CONF_OF_MAX:
        return mask_range_of_max(tally, range->of_max, ends);
    case CONF_ABSOLUTE:
        break;
    }
    return -EINVAL;
}

int
ranges_find(struct segmentation *segmentation, size_t number, struct kernels_lane *lane, const uint64_t *start,
            struct error *error)
{
    const struct conf_pipeline *pipeline = segmentation->pipeline;
    const struct conf_segment *segment = &pipeline->segments[number];
    const struct conf_range *range = &segment->range;
    struct segment_range *found = &segmentation->ranges[number];
    struct mask_tally tally = {0};
    const uint64_t *region = range->of ? segmentation->masks[conf_find_segment(pipeline, range->of)].bits
                             : range->relative == CONF_SIGMA ? start
                                                             : NULL;
    int rc = ranges_tally(segmentation, lane, region, &tally, error);
    if (rc == 0)
        rc = ranges_of_tally(range, &tally, found->ends, error);
    if (rc == -ENODATA && tally.count > 0)
        rc = error_set(error, -EINVAL, CODE_RANGE_UNDEFINED,
                       "segment \"%s\" has no range: %s has %zu different values, which cannot be %d classes",
                       segment->label, ranges_region(range), tally.count, range->otsu);
    else if (rc == -ENODATA)
        rc = error_set(error, -EINVAL, CODE_RANGE_UNDEFINED,
                       "segment \"%s\" has no range: it is computed from the values of %s, which "
                       "has no voxel other than padding",
                       segment->label, ranges_region(range));
    found->values = tally.total;
    found->known = rc == 0;
    mask_tally_free(&tally);
    return rc;
}

int
ranges_smooth(const struct segmentation *segmentation, size_t segment, struct kernels_lane *lane,
              const uint64_t *region, uint64_t *bits, struct error *error)
{
    const struct conf_segment *own = &segmentation->pipeline->segments[segment];
    const struct geometry_stack *stack = segmentation->stack;
    const double *ends = segmentation->ranges[segment].ends;
    struct rescaled_series series;
    int rc = rescaled_series_make(segmentation->instances, stack, lane, &series, error);
    if (rc == 0)
        rc = rescaled_series_limit(segmentation->instances, stack, &series, error);
    if (rc == 0 && series.is_apart) {
        struct rescaled_filter filter = {.sigma_mm = own->smooth_mm,
                                         .rescale = series.rescale,
                                         .range = {ends[0], ends[1]},
                                         .region = region,
                                         .bits = bits};
        memcpy(filter.spacing, stack->spacing, sizeof filter.spacing);
        rc = rescaled_smooth(&series.values, &filter, error);
    } else if (rc == 0) {
        const struct smooth_request request = {.sigma_mm = own->smooth_mm,
                                               .lo = series.limits.lo,
                                               .hi = series.limits.hi,
                                               .padding = series.padding,
                                               .range = volume_stored_range(ends, series.rescale.slope,
                                                                            series.rescale.intercept,
                                                                            image_pixel_range(stack->pixel)),
                                               .region = region,
                                               .bits = bits};
        if (volume_range_is_empty(request.range))
            memset(bits, 0, segment_mask_words(stack) * sizeof *bits);
        else
            rc = smooth_run(lane, &request, error);
    }
    rescaled_series_release(&series);
    return rc;
}

int64_t
ranges_bytes(const struct segmentation *segmentation, size_t number)
{
    const struct conf_range *range = &segmentation->pipeline->segments[number].range;
    const struct geometry_stack *stack = segmentation->stack;
    const int32_t bits = segmentation->instances[stack->planes[0].instance]->bits_stored;
    const struct image_range limits = image_pixel_range(stack->pixel);
    const size_t tables = volume_tables(segmentation->instances, stack, NULL, NULL);
    const size_t values = (size_t)(limits.hi - limits.lo) + 1;
    if (range->relative == CONF_ABSOLUTE)
        return 0;
    /* The maximum number of different values in one plane, or in the volume if planes are equal. */
    size_t different = (size_t)stack->columns * (size_t)stack->rows * (tables > 1 ? 1 : (size_t)stack->plane_count);
    /* plus one for values outside */
    const size_t stored = ((size_t)1 << (bits > 0 && bits < 16 ? bits : 16)) + 1;
    different = stored < different ? stored : different;
    different = values < different ? values : different;
    return (int64_t)mask_range_bytes(tables * values, tables * different,
                                     range->relative == CONF_OTSU ? range->otsu : 0) +
           (int64_t)(tables * sizeof(struct image_rescale));
}

void
ranges_prepare(struct segmentation *segmentation, struct kernels_demand *demand)
{
    const struct conf_pipeline *pipeline = segmentation->pipeline;
    for (size_t i = 0; i < pipeline->segment_count; i++) {
        const struct conf_range *range = &pipeline->segments[i].range;
        if (!segment_is_here(segmentation, i))
            continue;
        segmentation->smooth.sigma_mm = fmax(segmentation->smooth.sigma_mm, pipeline->segments[i].smooth_mm);
        segmentation->ranges[i].known = range->relative == CONF_ABSOLUTE;
        memcpy(segmentation->ranges[i].ends, range->ends, sizeof range->ends);
        if (range->relative != CONF_ABSOLUTE)
            demand->of[KERNELS_HISTOGRAM] = &kernels_asked;
    }
}

void
ranges_describe(const struct segmentation *segmentation, size_t segment, char text[SEGMENT_DESCRIPTION])
{
    const struct conf_range *range = &segmentation->pipeline->segments[segment].range;
    const double *ends = segmentation->ranges[segment].ends;
    if (range->relative == CONF_ABSOLUTE)
        snprintf(text, SEGMENT_DESCRIPTION, "range %g..%g", ends[0], ends[1]);
    else if (isfinite(ends[1]))
        snprintf(text, SEGMENT_DESCRIPTION, "range %.9g..%.9g", ends[0], ends[1]);
    else
        snprintf(text, SEGMENT_DESCRIPTION, "range from %.9g", ends[0]);
    if (segmentation->pipeline->segments[segment].smooth_mm > 0)
        segment_append(text, SEGMENT_DESCRIPTION, " after Gaussian %g mm",
                       segmentation->pipeline->segments[segment].smooth_mm);
    switch (range->relative) {
    case CONF_PERCENTILE:
        segment_append(text, SEGMENT_DESCRIPTION, " (percentile %g..%g", range->percentile[0], range->percentile[1]);
        break;
    case CONF_OTSU:
        segment_append(text, SEGMENT_DESCRIPTION, " (class %d of %d by Otsu", range->otsu_class, range->otsu);
        break;
    case CONF_SIGMA:
        segment_append(text, SEGMENT_DESCRIPTION, " (mean -+ %g sigma", range->sigma);
        break;
    case CONF_OF_MAX:
        segment_append(text, SEGMENT_DESCRIPTION, " (from %g of the largest value", range->of_max);
        break;
    case CONF_ABSOLUTE:
        return;
    }
    segment_append(text, SEGMENT_DESCRIPTION, " of %s)", ranges_region(range));
}

void
ranges_report(const struct segmentation *segmentation, size_t segment, struct pipeline_segment *report)
{
    const struct segment_range *found = &segmentation->ranges[segment];
    if (segmentation->pipeline->segments[segment].range.relative == CONF_ABSOLUTE)
        return;
    report->numbers[0] = (struct segment_number){"range_from", "range from", found->ends[0], true};
    report->numbers[1] = (struct segment_number){"range_to", "to", found->ends[1], true};
    report->number_count = isfinite(found->ends[1]) ? 2 : 1;
    report->measured_voxels = (int64_t)found->values;
}
