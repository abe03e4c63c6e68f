/*
 * measure.c - see measure.h.
 *
 * One region after the other: its histograms tell the extremes that its levels are made from, then
 * every family that is wanted counts and makes its features.
 */
#include "service/pipeline/measure/measure.h"

#include "base/error.h"
#include "service/pipeline/measure/matrices.h"
#include "service/pipeline/measure/pattern_maps.h"
#include "service/pipeline/measure/value_unit.h"
#include "service/pipeline/volume.h"

#include "kernels/features/discretise.h"
#include "kernels/features/family.h"
#include "kernels/texture/texture.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct step {
    const struct texture_request *request;
    struct texture_result *result;
    struct error *error;
    struct image_range limits; /* of the pixel type */
    struct feature_volume volume;
    struct image_rescale *rescales; /* one per table */
    struct image_range *paddings;   /* the same; empty: none */
    uint64_t *histograms;           /* [tables][values], of the region at hand */
    uint16_t *level_of;             /* the same */
    bool levels_wanted;
};

static int
out_of_memory(const struct step *step)
{
    return error_set_system(step->error, -ENOMEM, "measure texture");
}

static int
advance(const struct step *step, double fraction)
{
    const struct pipeline_watch *watch = step->request->watch;
    if (pipeline_stopped(watch))
        return -ECANCELED;
    if (watch && watch->progress)
        watch->progress(watch->context, "texture", fraction);
    return 0;
}

void
texture_note(struct texture_result *result, const char *text)
{
    size_t length = strlen(result->note);
    if (!strstr(result->note, text) && length + strlen(text) + 3 < sizeof result->note)
        snprintf(result->note + length, sizeof result->note - length, "%s%s",
                 length > 0 ? "; " : "", text);
}

/* --------------------------------------------------------------------- slices and tables ---- */

static struct image_rescale
rescale_of(const struct texture_request *request, int32_t z)
{
    return volume_rescale(request->instances, &request->stack->planes[z]);
}

static struct image_range
padding_of(const struct texture_request *request, int32_t z)
{
    return volume_padding(request->instances[request->stack->planes[z].instance]);
}

/* Do all slices read their stored values alike? */
static bool
slices_agree(const struct texture_request *request)
{
    const struct image_rescale first = rescale_of(request, 0);
    const struct image_range hole = padding_of(request, 0);
    for (int32_t z = 1; z < request->stack->plane_count; z++) {
        struct image_rescale rescale = rescale_of(request, z);
        struct image_range padding = padding_of(request, z);
        if (rescale.slope != first.slope || rescale.intercept != first.intercept ||
            padding.lo != hole.lo || padding.hi != hole.hi)
            return false;
    }
    return true;
}

static int
make_tables(struct step *step)
{
    const struct texture_request *request = step->request;
    step->limits = image_pixel_range(request->stack->pixel);
    const size_t values = (size_t)(step->limits.hi - step->limits.lo) + 1;
    const size_t tables = slices_agree(request) ? 1 : (size_t)request->stack->plane_count;
    step->rescales = calloc(tables, sizeof *step->rescales);
    step->paddings = calloc(tables, sizeof *step->paddings);
    step->histograms = calloc(tables * values, sizeof *step->histograms);
    step->level_of = calloc(tables * values, sizeof *step->level_of);
    if (!step->rescales || !step->paddings || !step->histograms || !step->level_of)
        return out_of_memory(step);
    for (size_t t = 0; t < tables; t++) {
        step->rescales[t] = rescale_of(request, (int32_t)t);
        step->paddings[t] = padding_of(request, (int32_t)t);
    }
    step->volume.tables = tables;
    step->volume.values = values;
    step->volume.smallest = step->limits.lo;
    step->volume.rescales = step->rescales;
    return 0;
}

static void
free_tables(struct step *step)
{
    free(step->rescales);
    free(step->paddings);
    free(step->histograms);
    free(step->level_of);
}

static void
describe_volume(struct step *step)
{
    const struct geometry_stack *stack = step->request->stack;
    struct feature_volume *volume = &step->volume;
    volume->lane = step->request->lane;
    volume->options = step->request->options;
    volume->columns = stack->columns;
    volume->rows = stack->rows;
    volume->slices = stack->plane_count;
    for (int i = 0; i < 3; i++) {
        for (int axis = 0; axis < 3; axis++)
            volume->voxel_to_mm[i][axis] = stack->axes[3 * axis + i] * stack->spacing[axis];
        volume->voxel_to_mm[i][3] = stack->origin[i];
        volume->spacing[i] = stack->spacing[i];
    }
}

/* Entries first .. last of a table that are padding; first > last: none. */
static void
padded_entries(const struct step *step, size_t table, int32_t *first, int32_t *last)
{
    const struct image_range padding = step->paddings[table], limits = step->limits;
    *first = (padding.lo > limits.lo ? padding.lo : limits.lo) - limits.lo;
    *last = (padding.hi < limits.hi ? padding.hi : limits.hi) - limits.lo;
    if (padding.lo > padding.hi)
        *last = *first - 1;
}

static void
leave_out_padding(const struct step *step, bool levels)
{
    for (size_t t = 0; t < step->volume.tables; t++) {
        int32_t first, last;
        padded_entries(step, t, &first, &last);
        for (int32_t v = first; v <= last; v++) {
            size_t at = t * step->volume.values + (size_t)v;
            if (levels)
                step->level_of[at] = 0;
            else
                step->histograms[at] = 0;
        }
    }
}

/* ------------------------------------------------------------------ the region, its levels -- */

static int
count_values(struct step *step, const struct texture_region *region)
{
    int rc = texture_histogram_run(step->request->lane, region->bits, step->volume.tables > 1,
                                   step->histograms, step->error);
    if (rc == 0)
        leave_out_padding(step, false);
    return rc;
}

/* Real-world values of the region's voxels within the range, exactly as discretise() has them;
 * lo > hi: none. */
static void
find_extremes(const struct step *step, double *lo, double *hi)
{
    const struct feature_volume *volume = &step->volume;
    const struct discretisation_options *levels = &volume->options->levels;
    *lo = INFINITY;
    *hi = -INFINITY;
    for (size_t i = 0; i < volume->tables * volume->values; i++) {
        const struct image_rescale *rescale = &volume->rescales[i / volume->values];
        const double stored = (double)volume->smallest + (double)(i % volume->values);
        const double value = rescale->slope * stored + rescale->intercept;
        if (step->histograms[i] == 0 ||
            (levels->has_range && (value < levels->range[0] || value > levels->range[1])))
            continue;
        *lo = value < *lo ? value : *lo;
        *hi = value > *hi ? value : *hi;
    }
}

static void
note_not_discretised(const struct step *step, int rc)
{
    texture_note(step->result,
                 rc == -EDOM
                     ? "texture: discretisation \"stored-256\" is of stored values 0 to 255, and "
                       "there are others: use \"fixed-bin-number\""
                     : "texture: more than 256 grey levels: raise bin_width, or use "
                       "\"fixed-bin-number\"");
}

static void
make_levels(struct step *step, struct feature_region *region)
{
    const struct feature_volume *volume = &step->volume;
    double lo, hi;
    find_extremes(step, &lo, &hi);
    int rc = discretise(&volume->options->levels, volume->rescales, volume->tables, volume->values,
                        volume->smallest, lo, hi, step->level_of, &region->levels);
    region->no_levels = rc        ? FEATURE_NOT_DISCRETISED
                        : lo > hi ? FEATURE_EMPTY_REGION
                                  : FEATURE_PRESENT;
    if (rc)
        note_not_discretised(step, rc);
    else
        leave_out_padding(step, true);
}

/* ------------------------------------------------------------------------------- records ---- */

/* A family's set of a region. */
struct measured {
    const struct texture_region *named;
    const struct feature_region *region;
    const struct feature_family *family;
    size_t set;
};

/* How values became levels. Bins of a width make as many levels as the region needs; where there
 * is nothing to make them of, there are none. */
static void
describe_levels(const struct feature_region *region, char settings[FEATURE_SETTINGS])
{
    const struct discretisation_options *levels = &region->volume->options->levels;
    feature_put_text(settings, FEATURE_discretisation, discretisation_names[levels->kind]);
    if (discretisation_by_number(levels->kind)) {
        feature_put_integer(settings, FEATURE_levels, levels->levels);
    } else {
        feature_put_integer(settings, FEATURE_levels, region->no_levels ? 0 : region->levels);
        feature_put_number(settings, FEATURE_bin_width, levels->bin_width);
    }
    if (levels->has_range) {
        feature_put_number(settings, FEATURE_range_low, levels->range[0]);
        feature_put_number(settings, FEATURE_range_high, levels->range[1]);
    }
}

static int
measure_add_feature(struct step *step, const struct measured *measured,
                    const struct feature_definition *definition, const struct feature_value *value)
{
    const struct feature_family *family = measured->family;
    char settings[FEATURE_SETTINGS] = "", unit[FEATURE_TERM];
    if (definition->of_levels || family->needs_levels)
        describe_levels(measured->region, settings);
    if (family->describe)
        family->describe(step->request->options, measured->set, settings);
    texture_value_unit(step->request->instances, step->request->stack, definition->value_power,
                       unit);
    const struct feature feature = {
        .segment = measured->named->segment,
        .label = measured->named->label,
        .family = family->name,
        .name = definition->name,
        .meaning = definition->meaning,
        .ibsi = definition->ibsi,
        .value = value->value,
        .missing_reason = feature_missing_names[value->missing],
        .unit = definition->value_power > 0 ? unit : definition->unit,
        .settings = settings,
    };
    return feature_set_add(&step->result->features, &feature) ? out_of_memory(step) : 0;
}

/* ------------------------------------------------------------------------------ families ---- */

static size_t
sets_of(const struct feature_family *family, const struct texture_options *options)
{
    if (!family->wanted(options))
        return 0;
    return family->sets ? family->sets(options) : 1;
}

static bool
any_wanted(const struct texture_options *options, bool of_levels)
{
    bool any = false;
    for (size_t i = 0; i < feature_family_count; i++)
        any |= feature_families[i]->wanted(options) &&
               (feature_families[i]->needs_levels || !of_levels);
    return any;
}

void
texture_demand(const struct texture_options *options, struct kernels_demand *demand)
{
    for (size_t i = 0; i < feature_family_count; i++)
        if (feature_families[i]->wanted(options) && feature_families[i]->count)
            demand->of[feature_families[i]->op] = &kernels_asked;
    if (any_wanted(options, false))
        demand->of[KERNELS_HISTOGRAM] = &kernels_asked;
    if (options->patterns != 0)
        demand->of[KERNELS_PATTERNS] = &kernels_asked;
}

static int
take_values(struct step *step, const struct measured *measured, const uint64_t *counts,
            struct feature_value *values)
{
    int rc = measured->family->values(measured->region, measured->set, counts, values);
    if (rc == 0 && measured->family == &family_glcm)
        rc =
            texture_matrices_keep(measured->region, measured->set, counts, &step->result->features);
    return rc ? out_of_memory(step) : 0;
}

/* Has the lane count what the set is of, and makes values of it. */
static int
count_set(struct step *step, const struct measured *measured, struct feature_value *values)
{
    const struct feature_family *family = measured->family;
    if (!family->count)
        return take_values(step, measured, NULL, values);
    uint64_t *counts = calloc(family->count_size(measured->region, measured->set), sizeof *counts);
    if (!counts)
        return out_of_memory(step);
    int rc = family->count(measured->region, measured->set, counts, step->error);
    if (rc == 0)
        rc = take_values(step, measured, counts, values);
    free(counts);
    return rc;
}

static int
measure_set(struct step *step, const struct measured *measured)
{
    const struct feature_family *family = measured->family;
    const enum feature_missing missing =
        family->needs_levels ? measured->region->no_levels : FEATURE_PRESENT;
    struct feature_value values[FEATURE_FAMILY_MAX];
    if (pipeline_stopped(step->request->watch))
        return -ECANCELED;
    for (size_t f = 0; f < family->definition_count; f++)
        values[f] = feature_absent(missing ? missing : FEATURE_EMPTY_REGION);
    int rc = missing ? 0 : count_set(step, measured, values);
    for (size_t f = 0; f < family->definition_count && rc == 0; f++)
        if (!family->definitions[f].of_levels || step->levels_wanted)
            rc = measure_add_feature(step, measured, &family->definitions[f], &values[f]);
    return rc;
}

static int
measure_region(struct step *step, const struct texture_region *named)
{
    struct feature_region region = {
        .volume = &step->volume,
        .bits = named->bits,
        .histograms = step->histograms,
        .no_levels = FEATURE_NOT_DISCRETISED,
        .level_of = step->level_of,
    };
    int rc = count_values(step, named);
    if (rc == 0 && step->levels_wanted)
        make_levels(step, &region);
    for (size_t i = 0; i < feature_family_count; i++) {
        const struct feature_family *family = feature_families[i];
        const size_t sets = sets_of(family, step->request->options);
        for (size_t set = 0; set < sets && rc == 0; set++)
            rc = measure_set(step, &(struct measured){named, &region, family, set});
    }
    return rc;
}

/* ----------------------------------------------------------------------------- the whole ---- */

static int
measure_all(struct step *step)
{
    const struct texture_request *request = step->request;
    const bool any = any_wanted(request->options, false);
    int rc = 0;
    for (size_t r = 0; r < request->region_count && any && rc == 0; r++) {
        rc = advance(step, (double)r / (double)request->region_count);
        if (rc == 0)
            rc = measure_region(step, &request->regions[r]);
    }
    if (rc == 0 && request->options->patterns != 0) {
        rc = advance(step, 1);
        if (rc == 0)
            rc = texture_measure_patterns(request, step->result, step->error);
    }
    return rc;
}

int
texture_measure(const struct texture_request *request, struct texture_result *result,
                struct error *error)
{
    struct step step = {.request = request, .result = result, .error = error};
    step.levels_wanted = request->options->levels_wanted || any_wanted(request->options, true);
    memset(result, 0, sizeof *result);
    describe_volume(&step);
    int rc = make_tables(&step);
    if (rc == 0)
        rc = measure_all(&step);
    free_tables(&step);
    if (rc)
        texture_result_clear(result);
    return rc;
}

void
texture_result_clear(struct texture_result *result)
{
    feature_set_clear(&result->features);
    for (int p = 0; p < TEXTURE_PATTERNS; p++)
        free(result->maps[p]);
    memset(result, 0, sizeof *result);
}
