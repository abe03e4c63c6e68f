/* measure_demand.c - see measure_demand.h. */
#include "service/pipeline/measure/measure_demand.h"

#include "service/pipeline/measure/measure.h"
#include "service/pipeline/measure/measure_filter.h"
#include "service/pipeline/measure/measure_keep.h"
#include "service/pipeline/measure/measure_values.h"
#include "service/pipeline/volume.h"

#include "kernels/features/discretise.h"
#include "kernels/features/statistics.h"
#include "kernels/texture/texture.h"

#include <math.h>

double
texture_margin(const struct texture_options *options, const double spacing[3])
{
    const struct voxelwise_options *voxelwise = options->voxelwise;
    double margin = 0;
    if (voxelwise && !voxelwise->masked)
        margin = (voxelwise->radius + 1) * fmax(spacing[0], fmax(spacing[1], spacing[2]));
    for (size_t f = 0; f < FEATURE_FAMILIES; f++)
        if (feature_family_wanted(feature_families[f], options) && feature_families[f]->margin_mm > margin)
            margin = feature_families[f]->margin_mm;
    return margin;
}

size_t
texture_sets(const struct feature_family *family, const struct texture_options *options)
{
    if (!feature_family_wanted(family, options))
        return 0;
    return family->sets ? family->sets(options) : 1;
}

enum feature_need
texture_need(const struct texture_options *options)
{
    enum feature_need needs = FEATURE_NEEDS_BITS;
    for (size_t f = 0; f < FEATURE_FAMILIES; f++)
        if (feature_family_wanted(feature_families[f], options) && feature_families[f]->needs > needs)
            needs = feature_families[f]->needs;
    return options->voxelwise ? FEATURE_NEEDS_LEVELS : needs;
}

bool
texture_levels_wanted(const struct texture_options *options)
{
    const enum feature_need needs = texture_need(options);
    return needs == FEATURE_NEEDS_LEVELS || (needs == FEATURE_NEEDS_VALUES && options->levels_wanted);
}

void
texture_demand(const struct texture_options *options, bool maps, struct kernels_demand *demand)
{
    for (size_t f = 0; f < FEATURE_FAMILIES; f++) {
        const struct feature_family *family = feature_families[f];
        if (feature_family_wanted(family, options) && (family->count || family->prepare))
            demand->of[family->op] = family->demand ? family->demand(options, maps) : &kernels_asked;
    }
    if (options->voxelwise)
        demand->of[KERNELS_VOXELWISE] = &kernels_asked;
    if (texture_need(options) >= FEATURE_NEEDS_VALUES)
        demand->of[KERNELS_HISTOGRAM] = demand->of[KERNELS_REGION] = &kernels_asked;
}

/* Returns the maximum number of levels of the stack's values, with a margin on either side as a part of their range. */
static int
most_levels(const struct texture_options *options, struct dicom_instance *const *instances,
            const struct geometry_stack *stack, double margin, const double spacing[3])
{
    const struct image_range stored = image_pixel_range(stack->pixel);
    double lo = INFINITY, hi = -INFINITY;
    for (int32_t z = 0; z < stack->plane_count; z++) {
        const struct image_rescale rescale = volume_rescale(instances, &stack->planes[z]);
        const double ends[2] = {rescale.slope * stored.lo + rescale.intercept,
                                rescale.slope * stored.hi + rescale.intercept};
        lo = fmin(lo, fmin(ends[0], ends[1]));
        hi = fmax(hi, fmax(ends[0], ends[1]));
    }
    double below = lo - margin * (hi - lo), above = hi + margin * (hi - lo);
    if (options->normalise) { /* no value of N is farther than sqrt(N - 1) standard deviations from the mean */
        const double voxels = (double)stack->columns * (double)stack->rows * (double)stack->plane_count;
        const double outliers = options->normalise->outliers;
        above = options->normalise->scale * (outliers > 0 ? outliers : sqrt(voxels)) * (1 + 2 * margin);
        below = -above;
    }
    if (!options->filter)
        return discretise_most_levels(&options->levels, below, above);
    const double most = texture_filter_bound(options, spacing, fmax(fabs(below), fabs(above)));
    struct discretisation_options levels = options->levels;
    levels.has_range = false; /* of the values before the filter */
    return discretise_most_levels(&levels, -most, most);
}

/*
 * Returns the bytes of a family for all its sets; *most: the maximum for one set, also of earlier
 * families.
 */
static size_t
bytes_of_family(const struct feature_family *family, const struct feature_region *largest, size_t *most)
{
    const size_t sets = family->bytes ? texture_sets(family, largest->volume->options) : 0;
    size_t bytes = 0;
    for (size_t set = 0; set < sets; set++) {
        size_t own = family->bytes(largest, set);
        /* Matrices of so many levels are not counted if they need more (measure.c). */
        if (largest->levels > TEXTURE_MAX_LEVELS && family->needs == FEATURE_NEEDS_LEVELS && own > VALUING_HELD)
            own = VALUING_HELD;
        bytes += own;
        *most = own > *most ? own : *most;
    }
    return bytes;
}

/*
 * Returns the bytes of histogram, levels and families of one region. Consecutive families that
 * share counts need them once.
 */
static size_t
bytes_of_region(const struct feature_region *largest)
{
    const struct feature_volume *volume = largest->volume;
    const size_t voxels = (size_t)(volume->columns * volume->rows * volume->slices);
    /* The mean and deviation of real-world values are those of a list. */
    size_t bytes = volume->reals && volume->options->sigma > 0 ? value_list_bytes(largest, 0) : 0, one = 0;
    if (largest->levels > TEXTURE_MAX_LEVELS)
        bytes += voxels * sizeof(uint32_t);
    else if (volume->reals) /* the histogram of each part */
        bytes += REGION_PARTS * ((size_t)largest->levels + 1) * sizeof(uint64_t);
    for (size_t f = 0, next; f < FEATURE_FAMILIES; f = next) {
        size_t most = bytes_of_family(feature_families[f], largest, &one);
        for (next = f + 1; next < FEATURE_FAMILIES && feature_families[f]->count &&
                           feature_families[next]->count == feature_families[f]->count;
             next++) {
            const size_t own = bytes_of_family(feature_families[next], largest, &one);
            most = own > most ? own : most;
        }
        bytes += most;
    }
    const size_t held = one > VALUING_HELD ? one : VALUING_HELD;
    return volume->tables * volume->values * (sizeof(uint64_t) + sizeof(uint16_t)) + (bytes < held ? bytes : held);
}

static struct texture_bytes
texture_bytes_with(const struct texture_options *options, struct dicom_instance *const *instances,
                   const struct geometry_stack *stack, size_t regions, const double *reals, int levels)
{
    const struct image_range stored = image_pixel_range(stack->pixel);
    const struct feature_volume volume = {
        .options = options,
        .columns = stack->columns,
        .rows = stack->rows,
        .slices = stack->plane_count,
        .tables = volume_tables(instances, stack, NULL, NULL),
        .values = (size_t)(stored.hi - stored.lo) + 1,
        .region_count = regions,
        .reals = reals,
    };
    const struct feature_region largest = {
        .volume = &volume,
        .levels = levels,
    };
    size_t results = 0;
    for (size_t f = 0; f < FEATURE_FAMILIES; f++) {
        const size_t sets = texture_sets(feature_families[f], options);
        for (size_t set = 0; set < sets; set++)
            results += regions * (size_t)fmin((double)texture_keep_bytes(feature_families[f], set, &largest),
                                              (double)(2 * VALUING_HELD));
    }
    return (struct texture_bytes){
        .lasting = (int64_t)results,
        .passing = (int64_t)bytes_of_region(&largest),
    };
}

struct texture_bytes
texture_bytes(const struct texture_options *options, struct dicom_instance *const *instances,
              const struct geometry_stack *stack, size_t regions)
{
    return texture_bytes_with(options, instances, stack, regions, NULL,
                              most_levels(options, instances, stack, 0, stack->spacing));
}

/* A spline exceeds the range of its samples by less than its size. */
struct texture_bytes
texture_bytes_of_reals(const struct texture_options *options, struct dicom_instance *const *instances,
                       const struct geometry_stack *stack, struct dicom_instance *const *source_instances,
                       const struct geometry_stack *source, size_t regions)
{
    static const double some; /* that there are values counts, not which */
    const bool is_cubic = options->resample && (options->resample->interpolation == INTERPOLATION_CUBIC ||
                                                options->resample->interpolation == INTERPOLATION_PYRADIOMICS_CUBIC);
    const double margin = is_cubic ? 1 : 0;
    return texture_bytes_with(options, instances, stack, regions, &some,
                              most_levels(options, source_instances, source, margin, stack->spacing));
}
