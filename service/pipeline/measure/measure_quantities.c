/* measure_quantities.c - see measure_quantities.h. */
#include "service/pipeline/measure/measure_quantities.h"

#include "base/error.h"
#include "base/quantities.h"
#include "service/pipeline/components.h"
#include "service/pipeline/volume.h"

#include "kernels/features/statistics.h"
#include "kernels/peaks/peaks.h"
#include "kernels/texture/region.h"
#include "kernels/texture/texture.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct quantity_value_row {
    enum quantity quantity;
    const char *name, *ibsi, *meaning, *unit;
    int power;
} value_rows[QUANTITY_VALUES] = {

#define QUANTITY_VALUE(ID, quantity, name, ibsi, scheme, code, meaning, unit, power, ...)                              \
    {QUANTITY_##quantity, name, ibsi, meaning, unit, power},
#include "base/quantities.def"
};

/* Returns the quantities of all segments. */
static unsigned
quantities_of(const struct conf_pipeline *pipeline)
{
    unsigned quantities = 0;
    for (size_t i = 0; i < pipeline->segment_count; i++)
        quantities |= pipeline->segments[i].quantities;
    return quantities;
}

/* -------------------------------------------------------------------------------- their needs -- */

static bool
is_thin(double mm)
{
    return mm >= 0.99 * QUANTITY_THIN_MM && mm <= 1.01 * QUANTITY_THICK_MM;
}

/* Checks that the slices are those that an Agatston score is defined for. */
static int
check_thin(const char *word, const struct grid *grid, struct error *error)
{
    const struct geometry_stack *stack = grid->source;
    for (int32_t z = 0; z < stack->plane_count; z++) {
        const struct geometry_plane *plane = &stack->planes[z];
        const struct dicom_instance *instance = grid->source_instances[plane->instance];
        const double thickness = instance->frames[plane->frame].slice_thickness;
        const double distance = z > 0 ? plane->position - plane[-1].position : thickness;
        if (grid->straight)
            return error_set_files(error, -EINVAL, CODE_QUANTITY_SLICES, instance->path, NULL,
                                   "\"%s\" needs original slices, and the stack was %s", word, grid->text);
        if (!is_thin(thickness) || !is_thin(distance))
            return error_set_files(
                error, -EINVAL, CODE_QUANTITY_SLICES, instance->path, NULL,
                "\"%s\" needs slices of %g to %g mm, and their Slice Thickness (0018,0050) is %.4g mm "
                "(0: missing), their distance %.4g mm",
                word, QUANTITY_THIN_MM, QUANTITY_THICK_MM, thickness, distance);
    }
    return 0;
}

int
quantities_check(const struct conf_pipeline *pipeline, const struct grid *grid, struct error *error)
{
    const struct geometry_stack *stack = grid->source;
    const struct geometry_plane *first = &stack->planes[0];
    const struct dicom_instance *instance = grid->source_instances[first->instance];
    const unsigned quantities = quantities_of(pipeline);
    const char *unit = value_unit_of(grid->instances, grid->stack);
    int rc = 0;
    if (quantities &&
        (!stack->has_geometry || (stack->plane_count == 1 && instance->frames[first->frame].slice_thickness <= 0)))
        rc = error_set_files(error, -EINVAL, CODE_QUANTITY_SLICES, instance->path, NULL,
                             "quantities need positions, pixel spacing, and the thickness of a single slice");
    for (int q = 0; q < QUANTITIES && rc == 0; q++) {
        const struct quantity_row *row = &quantity_rows[q];
        const bool in_hu = strcmp(unit, "[hnsf'U]") == 0, is_suv = pipeline->unit != CONF_UNIT_OF_IMAGES;
        if (!(quantities & 1u << q) || row->needs == QUANTITY_NEEDS_ANY)
            continue;
        if (row->needs == QUANTITY_NEEDS_SUV ? !is_suv : !in_hu)
            rc = error_set_files(error, -EINVAL, CODE_QUANTITY_UNIT, instance->path, NULL,
                                 "\"%s\" needs values in %s, and the unit of the images is %s", row->word,
                                 row->needs == QUANTITY_NEEDS_SUV ? "SUV" : "HU",
                                 strcmp(unit, "1") == 0 ? "not known" : value_unit_spoken(unit));
        else if (row->needs == QUANTITY_NEEDS_THIN)
            rc = check_thin(row->word, grid, error);
    }
    return rc;
}

/* ------------------------------------------------------------------------------------- memory -- */

/* Returns the size of a histogram of the volume: one table, or one per slice. */
static size_t
histogram_entries(const struct grid *grid)
{
    const struct image_range stored = image_pixel_range(grid->stack->pixel);
    return volume_tables(grid->instances, grid->stack, NULL, NULL) * ((size_t)(stored.hi - stored.lo) + 1);
}

void
quantities_demand(const struct conf_pipeline *pipeline, const struct grid *grid, struct kernels_demand *demand)
{
    const unsigned quantities = quantities_of(pipeline);
    const size_t rows = (size_t)grid->stack->rows, row_bytes = ((size_t)grid->stack->columns + 63) / 64 * 8;
    if (!quantities)
        return;
    demand->of[KERNELS_HISTOGRAM] = demand->of[KERNELS_REGION] = &kernels_asked;
    if (quantities & 1u << QUANTITY_SUVPEAK)
        demand->of[KERNELS_PEAKS] = &kernels_asked;
    demand->beside_bytes +=
        (int64_t)(histogram_entries(grid) * (sizeof(uint64_t) + sizeof(struct value_count)) + rows * row_bytes);
}

/* ---------------------------------------------------------------------------------- a segment -- */

/* A segment that is measured. */
struct quantified {
    const struct quantities_request *request;
    const struct image_mask *mask;
    unsigned wanted;              /* quantities */
    struct feature_volume volume; /* of all segments: its tables */
    struct image_rescale *rescales;
    struct image_range *paddings;
    uint64_t *histograms;
    struct feature_value values[QUANTITY_VALUES];
    bool has_paths; /* of the two diameters */
    double paths[2][2][3];
    struct error *error;
};

static bool
quantity_is_wanted(const struct quantified *of, enum quantity quantity)
{
    return (of->wanted & 1u << quantity) != 0;
}

/* Measures the values of the voxels, independent of their places. */
static void
measure_values(struct quantified *of, const struct value_list *list)
{
    struct feature_value statistics[STATISTICS];
    const double *spacing = of->request->grid->stack->spacing;
    const double ml = (double)of->mask->voxels * spacing[0] * spacing[1] * spacing[2] / 1000;
    double below = 0;
    if (of->mask->voxels > 0)
        of->values[QUANTITY_VALUE_MTV] = feature_present(ml);
    if (list->size == 0)
        return;
    statistics_of(list, 0, statistics);
    for (size_t i = 0; i < list->size && list->items[i].value < -950; i++)
        below += (double)list->items[i].count;
    of->values[QUANTITY_VALUE_TLG] = feature_present(ml * statistics[STATISTIC_MEAN].value);
    of->values[QUANTITY_VALUE_LAA950] = feature_present(100 * below / list->total);
    of->values[QUANTITY_VALUE_PD15] = feature_present(value_list_percentile(list, 0.15));
}

static int
measure_peak(struct quantified *of, double largest)
{
    const struct feature_volume *volume = &of->volume;
    struct peaks request = {
        .region = of->mask->bits,
        .rescales = of->rescales,
        .paddings = of->paddings,
        .table_count = volume->tables,
        .kept = {-INFINITY, INFINITY},
        .largest = largest,
    };
    struct peaks_found found = {.balls = 0};
    memcpy(request.spacing, of->request->grid->stack->spacing, sizeof request.spacing);
    if (peaks_too_fine(request.spacing)) {
        of->values[QUANTITY_VALUE_SUVPEAK] = feature_absent(FEATURE_TOO_LARGE);
        return 0;
    }
    const int rc = peaks_run(of->request->lane, &request, &found, of->error);
    if (rc == 0 && found.balls > 0)
        of->values[QUANTITY_VALUE_SUVPEAK] = feature_present(found.local);
    return rc;
}

/* Returns the weight of a lesion by its highest value. */
static int64_t
agatston_weight(double highest)
{
    return highest < 200 ? 1 : highest < 300 ? 2 : highest < 400 ? 3 : 4;
}

/*
 * Adds the lesions of a slice, of voxels of at least 130 HU with a common edge: their voxels, times their weight.
 * `lesions` holds the bits of a slice.
 */
static int
add_lesions(const struct quantified *of, int64_t z, uint64_t *lesions, int64_t *sum)
{
    const struct geometry_stack *stack = of->request->grid->stack;
    const struct image_extent extent = {stack->columns, stack->rows, stack->plane_count};
    const int64_t words = of->mask->words_per_row, first = z * stack->rows;
    const size_t table = of->volume.tables > 1 ? (size_t)z : 0;
    const struct image_rescale rescale = of->rescales[table];
    const struct image_range padding = of->paddings[table];
    const double area = stack->spacing[0] * stack->spacing[1];
    struct component_run *runs;
    size_t count, end;
    bool any = false;
    memset(lesions, 0, (size_t)(words * stack->rows) * sizeof *lesions);
    for (int64_t w = 0; w < words * stack->rows; w++)
        for (uint64_t bits = of->mask->bits[first * words + w]; bits; bits &= bits - 1) {
            const int64_t x = w % words * 64 + __builtin_ctzll(bits);
            const int32_t stored =
                image_value(of->request->voxels, stack->pixel, (first + w / words) * stack->columns + x);
            const bool is_padding = stored >= padding.lo && stored <= padding.hi;
            if (!is_padding && rescale.slope * stored + rescale.intercept >= 130)
                lesions[w] |= bits & -bits;
            any |= lesions[w] != 0;
        }
    if (!any)
        return 0;
    const int rc = components_of_slice(&extent, lesions, &runs, &count);
    for (size_t i = 0; rc == 0 && i < count; i = end) {
        int64_t voxels = 0;
        double highest = -INFINITY;
        for (end = i; end < count && runs[end].component == runs[i].component; end++) {
            voxels += runs[end].last - runs[end].first + 1;
            for (int64_t x = runs[end].first; x <= runs[end].last; x++) {
                const int64_t at = (first + runs[end].row) * stack->columns + x;
                const int32_t stored = image_value(of->request->voxels, stack->pixel, at);
                highest = fmax(highest, rescale.slope * stored + rescale.intercept);
            }
        }
        /* Decimals of the spacing must not exclude an area of exactly 1 mm2. */
        if ((double)voxels * area >= 1 - 1e-9)
            *sum += voxels * agatston_weight(highest);
    }
    free(runs);
    return rc;
}

/* Measures the Agatston score: an integer, times the area of a voxel. */
static int
measure_agatston(struct quantified *of)
{
    const struct geometry_stack *stack = of->request->grid->stack;
    const size_t words = (size_t)of->mask->words_per_row * (size_t)stack->rows;
    uint64_t *lesions = malloc(words * sizeof *lesions);
    int64_t sum = 0;
    int rc = lesions ? 0 : -ENOMEM;
    for (int64_t z = 0; z < stack->plane_count && rc == 0; z++)
        rc = add_lesions(of, z, lesions, &sum);
    free(lesions);
    of->values[QUANTITY_VALUE_AGATSTON] = of->values[QUANTITY_VALUE_AGATSTON_ANY] =
        feature_present((double)sum * (stack->spacing[0] * stack->spacing[1]));
    return rc;
}

/* Returns the ends in the patient. A slice of images has the position that its header states. */
static void
place_diameter(const struct quantified *of, int64_t slice, const struct diameter *diameter, double path[2][3])
{
    const struct grid *grid = of->request->grid;
    const struct geometry_stack *stack = grid->stack;
    const struct geometry_plane *plane = &stack->planes[slice];
    const double *position = grid->straight ? NULL : grid->instances[plane->instance]->frames[plane->frame].position;
    for (int end = 0; end < 2; end++)
        for (int i = 0; i < 3; i++) {
            const double above = (plane->position - stack->planes[0].position) * stack->axes[6 + i];
            path[end][i] = (position ? position[i] : stack->origin[i] + above) +
                           stack->axes[i] * diameter->ends[end][0] + stack->axes[3 + i] * diameter->ends[end][1];
        }
}

static int
measure_diameters(struct quantified *of)
{
    const struct geometry_stack *stack = of->request->grid->stack;
    const struct image_extent extent = {stack->columns, stack->rows, stack->plane_count};
    struct diameters found;
    const int rc = diameters_find(&extent, of->mask->bits, stack->spacing, &found);
    if (rc == 0 && found.longest.length > 0) {
        of->values[QUANTITY_VALUE_LONG_AXIS] = feature_present(found.longest.length);
        of->values[QUANTITY_VALUE_SHORT_AXIS] = feature_present(found.across.length);
        place_diameter(of, found.slice, &found.longest, of->paths[0]);
        place_diameter(of, found.slice, &found.across, of->paths[1]);
        of->has_paths = stack->has_geometry;
    }
    return rc;
}

/* Measures a segment with the volume's tables and memory. */
static int
measure_segment(struct quantified *of)
{
    struct kernels_lane *lane = of->request->lane;
    const struct feature_volume *volume = &of->volume;
    const struct feature_region region = {.volume = volume, .bits = of->mask->bits, .histograms = of->histograms};
    struct value_list list = {.items = NULL};
    int rc = texture_region_hold(lane, of->mask->bits, of->error);
    if (rc == 0)
        rc = texture_histogram_run(lane, of->mask->bits, volume->tables > 1, of->histograms, of->error);
    for (size_t t = 0; t < volume->tables && rc == 0; t++)
        for (int64_t v = of->paddings[t].lo; v <= of->paddings[t].hi; v++)
            if (v >= volume->smallest && v < volume->smallest + (int64_t)volume->values)
                of->histograms[t * volume->values + (size_t)(v - volume->smallest)] = 0;
    if (rc == 0 && value_list_make(&region, &list))
        rc = error_set_system(of->error, -ENOMEM, "measure quantities");
    if (rc == 0)
        measure_values(of, &list);
    if (rc == 0 && list.size > 0 && quantity_is_wanted(of, QUANTITY_SUVPEAK))
        rc = measure_peak(of, list.items[list.size - 1].value);
    texture_region_release(lane);
    int memory = 0;
    if (rc == 0 && list.size > 0 &&
        (quantity_is_wanted(of, QUANTITY_AGATSTON) || quantity_is_wanted(of, QUANTITY_AGATSTON_ANY)))
        memory = measure_agatston(of);
    if (rc == 0 && memory == 0 && quantity_is_wanted(of, QUANTITY_DIAMETERS))
        memory = measure_diameters(of);
    free(list.items);
    return memory ? error_set_system(of->error, memory, "measure quantities") : rc;
}

static int
add_features(const struct quantified *of, size_t segment, struct feature_set *features)
{
    const struct quantities_request *request = of->request;
    const char *value_unit = value_unit_of(request->grid->instances, request->grid->stack);
    int rc = 0;
    for (int v = 0; v < QUANTITY_VALUES && rc == 0; v++) {
        const struct quantity_value_row *row = &value_rows[v];
        char unit[FEATURE_TERM];
        if (!quantity_is_wanted(of, row->quantity))
            continue;
        value_unit_times(value_unit, row->power, row->unit, unit);
        struct feature feature = {
            .segment = conf_segment_number(request->pipeline, segment),
            .label = request->pipeline->segments[segment].label,
            .family = "quantity",
            .name = row->name,
            .meaning = row->meaning,
            .ibsi = row->ibsi,
            .value = of->values[v].value,
            .missing_reason = feature_missing_names[of->values[v].missing],
            .unit = unit,
            .settings = "",
            .has_path = of->has_paths && row->quantity == QUANTITY_DIAMETERS,
        };
        if (feature.has_path)
            memcpy(feature.path, of->paths[v == QUANTITY_VALUE_LONG_AXIS ? 0 : 1], sizeof feature.path);
        rc = feature_set_add(features, &feature);
    }
    return rc ? error_set_system(of->error, rc, "measure quantities") : 0;
}

int
quantities_measure(const struct quantities_request *request, struct feature_set *features, struct error *error)
{
    const struct conf_pipeline *pipeline = request->pipeline;
    const struct grid *grid = request->grid;
    const struct image_range stored = image_pixel_range(grid->stack->pixel);
    const size_t planes = (size_t)grid->stack->plane_count;
    struct quantified of = {
        .request = request,
        .rescales = calloc(planes, sizeof *of.rescales),
        .paddings = calloc(planes, sizeof *of.paddings),
        .histograms = malloc(histogram_entries(grid) * sizeof *of.histograms),
        .error = error,
    };
    int rc = of.rescales && of.paddings && of.histograms ? 0 : error_set_system(error, -ENOMEM, "measure quantities");
    if (rc == 0)
        of.volume = (struct feature_volume){
            .tables = volume_tables(grid->instances, grid->stack, of.rescales, of.paddings),
            .values = (size_t)(stored.hi - stored.lo) + 1,
            .smallest = stored.lo,
            .rescales = of.rescales,
        };
    for (size_t i = 0; i < pipeline->segment_count && rc == 0; i++) {
        of.wanted = pipeline->segments[i].quantities;
        of.mask = &request->masks[i];
        if (!of.wanted || pipeline->segments[i].hidden) /* of `each`, without an object */
            continue;
        for (int v = 0; v < QUANTITY_VALUES; v++)
            of.values[v] = feature_absent(FEATURE_EMPTY_REGION);
        of.has_paths = false;
        rc = pipeline_stopped(request->watch) ? -ECANCELED : measure_segment(&of);
        if (rc == 0)
            rc = add_features(&of, i, features);
    }
    free(of.rescales);
    free(of.paddings);
    free(of.histograms);
    return rc;
}
