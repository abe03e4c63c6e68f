/*
 * measure.c - see measure.h.
 *
 * Families first prepare data for all regions. Then, region by region: histograms give the extremes
 * for the levels; each enabled family counts; features are computed while the next families count.
 */
#include "service/pipeline/measure/measure.h"

#include "base/error.h"
#include "service/pipeline/measure/measure_demand.h"
#include "service/pipeline/measure/measure_keep.h"
#include "service/pipeline/measure/measure_shared.h"
#include "service/pipeline/measure/measure_values.h"
#include "service/pipeline/measure/measure_voxelwise.h"
#include "service/pipeline/volume.h"

#include "kernels/features/discretise.h"
#include "kernels/features/family.h"
#include "kernels/features/statistics.h"
#include "kernels/texture/texture.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct step {
    const struct texture_request *request;
    struct texture_request own;  /* the request of texture_begin() */
    struct feature_set features; /* become those of the result together, in the order of groups */
    struct texture_result *result;
    struct error *error;
    struct image_range limits; /* of the pixel type */
    struct feature_volume volume;
    struct image_rescale *rescales; /* one per slice */
    struct image_range *paddings;   /* per slice; an empty range: no padding */
    uint64_t *histograms;           /* [tables][values], of the current region */
    uint16_t *level_of;             /* the same, as levels */
    const uint64_t **regions;       /* the whole volume */
    uint32_t *wide;                 /* levels of the current region; NULL: at most TEXTURE_MAX_LEVELS */
    void *prepared[FEATURE_FAMILIES];
    const char *value_unit;
    enum feature_need needs; /* of all enabled families */
    bool levels_wanted;
    bool leaves; /* the values of the last region to texture_end() */
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

/* Adds advice to the note, once for all regions that it concerns. */
static void
texture_note(struct texture_result *result, const char *text)
{
    size_t length = strlen(result->note);
    if (!strstr(result->note, text) && length + strlen(text) + 3 < sizeof result->note)
        snprintf(result->note + length, sizeof result->note - length, "%s%s", length > 0 ? "; " : "", text);
}

/* --------------------------------------------------------------------- slices and tables ---- */

/*
 * Allocates memory and touches its pages, so that later writes do not fault while the lane waits.
 */
static void *
take_pages(size_t bytes)
{
    void *memory = malloc(bytes);
    if (memory)
        memset(memory, 0xFF, bytes);
    return memory;
}

/* Describes the volume and makes its tables. */
static int
make_volume(struct step *step)
{
    const struct texture_request *request = step->request;
    const struct geometry_stack *stack = request->stack;
    const size_t planes = (size_t)stack->plane_count;
    struct feature_volume *volume = &step->volume;
    volume->lane = request->lane;
    volume->options = request->options;
    volume->columns = stack->columns;
    volume->rows = stack->rows;
    volume->slices = stack->plane_count;
    memcpy(volume->first, request->first, sizeof volume->first);
    for (int i = 0; i < 3; i++) {
        for (int axis = 0; axis < 3; axis++)
            volume->voxel_to_mm[i][axis] = stack->axes[3 * axis + i] * stack->spacing[axis];
        volume->voxel_to_mm[i][3] = stack->origin[i];
        volume->spacing[i] = stack->spacing[i];
    }
    step->limits = image_pixel_range(stack->pixel);
    volume->values = (size_t)(step->limits.hi - step->limits.lo) + 1;
    volume->smallest = step->limits.lo;
    volume->rescales = step->rescales = calloc(planes, sizeof *step->rescales);
    volume->paddings = step->paddings = calloc(planes, sizeof *step->paddings);
    volume->regions = step->regions = calloc(request->region_count, sizeof *step->regions);
    volume->region_count = request->region_count;
    volume->reals = request->reals;
    if (!step->rescales || !step->paddings || !step->regions)
        return out_of_memory(step);
    for (size_t r = 0; r < request->region_count; r++)
        step->regions[r] = request->regions[r].bits;
    volume->tables = volume_tables(request->instances, stack, step->rescales, step->paddings);
    step->histograms = take_pages(volume->tables * volume->values * sizeof *step->histograms);
    step->level_of = take_pages(volume->tables * volume->values * sizeof *step->level_of);
    return step->histograms && step->level_of ? 0 : out_of_memory(step);
}

/* Clears the padding entries of each table. */
static void
leave_out_padding(const struct step *step, bool levels)
{
    const struct image_range limits = step->limits;
    for (size_t t = 0; t < step->volume.tables; t++) {
        const struct image_range padding = step->paddings[t];
        for (int64_t v = padding.lo > limits.lo ? padding.lo : limits.lo; v <= padding.hi && v <= limits.hi; v++) {
            size_t at = t * step->volume.values + (size_t)(v - limits.lo);
            if (levels)
                step->level_of[at] = 0;
            else
                step->histograms[at] = 0;
        }
    }
}

/* ------------------------------------------------------------------ the region, its levels -- */

static int
count_values(struct step *step, struct feature_region *region)
{
    const int rc = texture_histogram_run(step->request->lane, region->bits, step->volume.tables > 1, step->histograms,
                                         step->error);
    if (rc)
        return rc;
    leave_out_padding(step, false);
    resegment(&step->volume, step->histograms, region->kept, region->extremes);
    return 0;
}

/* Levels of a region's voxels to make. */
struct widening {
    const struct feature_region *region;
    struct discretise_rule rule;
    uint32_t *levels;
};

static void
widen_slice(void *context, int64_t z)
{
    const struct widening *widening = context;
    const struct feature_region *region = widening->region;
    const struct feature_volume *volume = region->volume;
    const struct image_rescale *rescale = &volume->rescales[volume->tables > 1 ? z : 0];
    const void *voxels = kernels_volume_voxels(volume->lane);
    const enum image_pixel pixel = kernels_volume_pixel(volume->lane);
    const int64_t columns = volume->columns;
    for (int64_t row = z * volume->rows; row < (z + 1) * volume->rows; row++)
        for (int64_t word = 0; word * 64 < columns; word++)
            for (uint64_t bits = image_word(region->bits, columns, row, word); bits; bits &= bits - 1) {
                const int64_t i = row * columns + word * 64 + __builtin_ctzll(bits);
                const int32_t stored = image_value(voxels, pixel, i);
                /* With reals, the stored values are 1 in the intensity mask. */
                if (!feature_region_keeps(region, z, stored))
                    continue;
                const double value = volume->reals ? volume->reals[i] : rescale->slope * stored + rescale->intercept;
                widening->levels[i] = discretise_value(&widening->rule, value);
            }
}

/* Makes the levels of a region's voxels, for families that count more than TEXTURE_MAX_LEVELS. */
static int
fill_wide(struct step *step, struct feature_region *region)
{
    const struct feature_volume *volume = &step->volume;
    struct widening widening = {.region = region};
    widening.rule = discretise_rule_of(&volume->options->levels, region->extremes[0], region->extremes[1]);
    widening.levels = step->wide =
        calloc((size_t)(volume->columns * volume->rows * volume->slices), sizeof *step->wide);
    if (!step->wide)
        return out_of_memory(step);
    kernels_lane_for(volume->lane, volume->slices, widen_slice, &widening);
    region->wide = step->wide;
    return 0;
}

static int
make_levels(struct step *step, struct feature_region *region)
{
    const struct feature_volume *volume = &step->volume;
    const double lo = region->extremes[0], hi = region->extremes[1];
    int rc = volume->reals ? discretise_count(&volume->options->levels, lo, hi, &region->levels)
                           : discretise(&volume->options->levels, volume->rescales, volume->tables, volume->values,
                                        volume->smallest, lo, hi, step->level_of, &region->levels);
    region->no_levels = rc ? FEATURE_NOT_DISCRETISED : lo > hi ? FEATURE_EMPTY_REGION : FEATURE_PRESENT;
    if (rc) {
        texture_note(step->result, rc == -EDOM ? "texture: discretisation \"stored-256\" is of stored values 0 to 255, "
                                                 "and there are others: use \"fixed-bin-number\""
                                               : "texture: more than 65536 grey levels: raise bin_width, or use "
                                                 "\"fixed-bin-number\"");
        return 0;
    }
    if (region->levels > TEXTURE_MAX_LEVELS)
        return fill_wide(step, region);
    if (!volume->reals)
        leave_out_padding(step, true);
    const struct texture_levels levels = {region->levels, step->level_of, volume->tables};
    return texture_levels_hold(step->request->lane, &levels, step->error);
}

/* Levels of a region to fill in. Each part has a histogram. */
struct filling {
    const struct feature_region *region;
    struct discretise_rule rule;
    bool levels; /* else all are 1 */
    uint16_t *voxels;
    int64_t parts;
    uint64_t *histograms;
    size_t counters; /* of each */
};

static void
fill_part(void *context, int64_t part)
{
    struct filling *filling = context;
    const struct feature_region *region = filling->region;
    const struct feature_volume *volume = region->volume;
    const int64_t columns = volume->columns, rows = volume->rows * volume->slices;
    const int64_t end = rows * (part + 1) / filling->parts;
    uint64_t *const histogram = filling->histograms + (size_t)part * filling->counters;
    uint16_t levels[64];
    for (int i = 0; i < 64; i++)
        levels[i] = 1;
    for (int64_t row = rows * part / filling->parts; row < end; row++) {
        uint16_t *to = filling->voxels + row * columns;
        memset(to, 0, (size_t)columns * sizeof *to);
        for (int64_t x = 0; x < columns; x += 64) {
            const double *values = volume->reals + row * columns + x;
            uint64_t bits = image_word(region->bits, columns, row, x / 64);
            const int first = bits ? __builtin_ctzll(bits) : 0, past = bits ? 64 - __builtin_clzll(bits) : 0;
            if (filling->levels)
                discretise_values(&filling->rule, values + first, past - first, levels + first);
            for (; bits; bits &= bits - 1) {
                const int at = __builtin_ctzll(bits);
                if (!(values[at] >= region->kept[0]) || !(values[at] <= region->kept[1]))
                    continue;
                to[x + at] = levels[at];
                histogram[levels[at]]++;
            }
        }
    }
}

/* Fills the lane with the levels of a region, and their histogram. Without levels, all values of the intensity mask have
 * level 1. */
static int
fill_levels(struct step *step, struct feature_region *region)
{
    const struct feature_volume *volume = &step->volume;
    const struct discretisation_options *options = &volume->options->levels;
    const double lo = region->extremes[0], hi = region->extremes[1];
    const bool levels = step->levels_wanted && discretise_count(options, lo, hi, &region->levels) == 0 &&
                        region->levels <= TEXTURE_MAX_LEVELS;
    struct filling filling = {.region = region,
                              .rule = discretise_rule_of(options, lo, hi),
                              .levels = levels,
                              .parts = region_parts(region),
                              .counters = levels ? (size_t)region->levels + 1 : 2};
    void *voxels;
    int rc = step->request->begin(step->request->begin_context, &voxels, step->error);
    if (rc)
        return rc;
    filling.voxels = voxels;
    filling.histograms = calloc((size_t)filling.parts * filling.counters, sizeof *filling.histograms);
    if (!filling.histograms)
        return out_of_memory(step);
    kernels_lane_for(step->request->lane, filling.parts, fill_part, &filling);
    memset(step->histograms, 0, volume->values * sizeof *step->histograms);
    for (size_t i = 0; i < (size_t)filling.parts * filling.counters; i++)
        step->histograms[i % filling.counters] += filling.histograms[i];
    free(filling.histograms);
    for (size_t i = 0; i < volume->values; i++)
        step->level_of[i] = (uint16_t)(levels && i <= (size_t)region->levels ? i : 0);
    rc = kernels_volume_ready(step->request->lane, 0, volume->slices, step->error);
    return rc ? rc : texture_region_hold(step->request->lane, region->bits, step->error);
}

/* ------------------------------------------------------------------------------- records ---- */

/*
 * Describes the discretisation. Bins of a fixed width make as many levels as the region needs; a
 * region without values has no levels.
 */
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
}

/* Settings that several features of a set share. */
struct told {
    bool any, levels, values, shifts;
    char settings[FEATURE_SETTINGS];
};

/*
 * Writes the settings of the feature, without those of a percentage: most features have those of
 * the previous one.
 */
static void
describe_feature(const struct step *step, const struct measured *measured, const struct feature_definition *definition,
                 struct told *told)
{
    const struct feature_family *family = measured->family;
    const struct texture_options *options = step->request->options;
    const struct texture_resample *resample = options->resample;
    const bool levels = definition->of_levels || family->needs == FEATURE_NEEDS_LEVELS;
    const bool values = family->needs >= FEATURE_NEEDS_VALUES && !definition->of_bits;
    const bool shifts = definition->of_shift && options->energy_shift != 0;
    if (told->any && told->levels == levels && told->values == values && told->shifts == shifts)
        return;
    *told = (struct told){true, levels, values, shifts, ""};
    if (levels)
        describe_levels(measured->region, told->settings);
    if (values && step->request->reals && !step->request->rounded)
        feature_put_text(told->settings, FEATURE_rounding, "none");
    if (resample) {
        const bool isotropic = resample->spacing == TEXTURE_ISOTROPIC;
        feature_put_text(told->settings, FEATURE_interpolation, interpolation_names[resample->interpolation]);
        feature_put_number(told->settings, isotropic ? FEATURE_isotropic_mm : FEATURE_in_plane_mm, resample->mm);
    }
    const double *range = options->levels.has_range ? options->levels.range : step->request->filtered;
    if (values && range) {
        feature_put_number(told->settings, FEATURE_range_low, range[0]);
        feature_put_number(told->settings, FEATURE_range_high, range[1]);
    }
    if (values && options->normalise) {
        feature_put_number(told->settings, FEATURE_normalise_scale, options->normalise->scale);
        if (options->normalise->outliers > 0)
            feature_put_number(told->settings, FEATURE_normalise_sigma, options->normalise->outliers);
    }
    if (values && options->filter) {
        char text[FILTER_TEXT];
        filter_describe(options->filter, text);
        feature_put_text(told->settings, FEATURE_filter, filter_kind_names[options->filter->kind]);
        feature_put_text(told->settings, FEATURE_filter_settings, text);
    }
    if (values && options->sigma > 0)
        feature_put_number(told->settings, FEATURE_sigma, options->sigma);
    if (shifts)
        feature_put_number(told->settings, FEATURE_energy_shift, options->energy_shift);
    if (options->names == TEXTURE_NAMES_PYRADIOMICS) {
        char text[FILTER_TEXT];
        filter_image_name(values ? options->filter : NULL, text);
        feature_put_text(told->settings, FEATURE_image_type, text);
    }
    if (family->describe)
        family->describe(options, measured->set, told->settings);
}

/* Returns the reason for which the space of the images does not allow a feature, or FEATURE_PRESENT. */
static enum feature_missing
feature_lacks_space(const struct texture_request *request, const struct measured *measured,
                    const struct feature_definition *definition)
{
    const enum feature_space space = definition->of_voxels ? FEATURE_OF_VOXELS : measured->family->space;
    if (request->flat && space == FEATURE_OF_VOLUME)
        return FEATURE_NO_DEPTH;
    return space != FEATURE_OF_VOXELS || request->in_mm ? measured->named->lengths : FEATURE_PRESENT;
}

static int
tell_feature(const struct step *step, struct valued *valued, size_t number, struct told *told)
{
    const struct measured *measured = &valued->measured;
    const struct feature_family *family = measured->family;
    const struct feature_definition *definition = &family->definitions[number];
    const struct feature_value *value = &valued->values[number];
    const enum feature_missing lacking = feature_lacks_space(step->request, measured, definition);
    const enum feature_missing missing = lacking ? lacking : value->missing;
    char settings[FEATURE_SETTINGS], unit[FEATURE_TERM];
    describe_feature(step, measured, definition, told);
    memcpy(settings, told->settings, strlen(told->settings) + 1);
    if (definition->percent > 0)
        feature_put_integer(settings, FEATURE_percent, definition->percent);
    value_unit_times(step->value_unit, definition->value_power, definition->unit, unit);
    const struct feature feature = {
        .segment = measured->named->segment,
        .label = measured->named->label,
        .family = family->name,
        .name = definition->name,
        .meaning = definition->meaning,
        .ibsi = definition->ibsi,
        .value = missing ? 0 : value->value,
        .missing_reason = feature_missing_names[missing],
        .unit = unit,
        .settings = settings,
    };
    return feature_set_add(&valued->features, &feature);
}

/* Keeps the counts that the options ask for, and reports the values of a set; from any thread. */
static int
tell_set(void *context, struct valued *valued)
{
    const struct step *step = context;
    const struct measured *measured = &valued->measured;
    const struct feature_family *family = measured->family;
    struct told told = {false};
    int rc = valued->made ? 0 : texture_keep(measured, valued->counts, &valued->features);
    for (size_t f = 0; f < family->definition_count && rc == 0; f++)
        if ((!family->definitions[f].of_levels || step->levels_wanted) &&
            (!family->tells || family->tells(step->request->options, f)))
            rc = tell_feature(step, valued, f, &told);
    return rc;
}

/* ------------------------------------------------------------------------------ families ---- */

/* Adds a map of each set, unless the region is empty. */
static int
family_add_maps(struct step *step, const struct feature_family *family)
{
    struct texture_result *result = step->result;
    const size_t sets = texture_sets(family, step->request->options);
    if (family->map_size(&step->volume) == 0) {
        texture_note(result, family->no_map);
        return 0;
    }
    struct feature_map *grown = realloc(result->maps, (result->map_count + sets) * sizeof *result->maps);
    if (!grown)
        return out_of_memory(step);
    result->maps = grown;
    for (size_t set = 0; set < sets; set++) {
        struct feature_map *map = &result->maps[result->map_count++];
        *map = (struct feature_map){.codes = NULL};
        family->title(step->request->options, set, &map->title);
    }
    return 0;
}

/* Prepares the data of a family for all regions at once. */
static int
family_prepare(struct step *step, size_t f)
{
    const struct feature_family *family = feature_families[f];
    const size_t maps = step->result->map_count;
    if (!family->prepare || !feature_family_wanted(family, step->request->options))
        return 0;
    int rc = advance(step, 0);
    step->prepared[f] = calloc(1, family->prepared_size(&step->volume));
    if (rc == 0 && !step->prepared[f])
        rc = out_of_memory(step);
    if (rc == 0 && step->request->maps && family->map_size)
        rc = family_add_maps(step, family);
    return rc ? rc
              : family->prepare(&step->volume, step->prepared[f],
                                step->result->map_count > maps ? step->result->maps + maps : NULL, step->error);
}

/* Adds the features of a set, and frees it. */
static int
end_set(struct step *step, struct valued *valued)
{
    struct shared_values *shared = step->request->shared;
    if (pipeline_stopped(step->request->watch))
        return -ECANCELED;
    int rc = valuing_count_failed(valued, step->error);
    if (rc)
        return rc;
    rc = valued->rc;
    if (rc == 0 && !valued->made && shared)
        rc = shared_values_add(shared, &valued->measured, valued->values);
    if (rc == 0)
        rc = feature_set_append(&step->features, &valued->features);
    valuing_let_go(step->request->valuing);
    return rc ? out_of_memory(step) : 0;
}

/*
 * Begins a set. First ends earlier ones until there is room. Counts it in the lane, unless an
 * earlier group did or the value threads do.
 */
static int
begin_set(struct step *step, const struct measured *measured)
{
    const struct feature_family *family = measured->family;
    const struct shared_values *shared = step->request->shared;
    enum feature_missing missing =
        family->needs == FEATURE_NEEDS_LEVELS ? measured->region->no_levels : FEATURE_PRESENT;
    /* Of such a family a 2-D image has no feature. Counting a ball per pixel took seconds for large ones. */
    if (step->request->flat && family->space == FEATURE_OF_VOLUME && !family->definitions[0].of_voxels)
        missing = FEATURE_NO_DEPTH;
    if (measured->named->all)
        missing = measured->named->all;
    const size_t bytes = family->bytes && !missing ? family->bytes(measured->region, measured->set) : 0;
    if (family->needs == FEATURE_NEEDS_LEVELS && measured->region->wide && bytes > VALUING_HELD) {
        missing = FEATURE_TOO_LARGE;
        texture_note(step->result, "texture: matrices of so many grey levels need more than 256 MiB: raise bin_width");
    }
    int rc = pipeline_stopped(step->request->watch) ? -ECANCELED : 0;
    while (rc == 0 && !valuing_has_room(step->request->valuing, measured, bytes))
        rc = end_set(step, valuing_wait(step->request->valuing));
    if (rc)
        return rc;
    struct valued *valued = valuing_begin(step->request->valuing, measured, bytes);
    for (size_t f = 0; f < family->definition_count; f++)
        valued->values[f] = feature_absent(missing ? missing : FEATURE_EMPTY_REGION);
    valued->made = missing || (shared && shared_values_take(shared, measured, valued->values));
    if (!valued->made && !kernels_lane_beside(step->request->lane))
        rc = valuing_count(step->request->valuing, valued, step->error);
    if (rc == 0)
        valuing_add(step->request->valuing, valued);
    return rc;
}

/* Begins the sets of families *next .. end - 1 for the current region. */
static int
begin_sets(struct step *step, const struct texture_region *named, struct feature_region *region, size_t *next,
           size_t end)
{
    int rc = 0;
    for (; *next < end && rc == 0; ++*next) {
        const struct feature_family *family = feature_families[*next];
        const size_t sets = texture_sets(family, step->request->options);
        region->prepared = step->prepared[*next];
        for (size_t set = 0; set < sets && rc == 0; set++)
            rc = begin_set(step, &(struct measured){named, region, family, set});
    }
    return rc;
}

/* Returns how many of the first families need only the mask: they need not wait for counts. */
static size_t
families_of_bits(void)
{
    size_t f = 0;
    while (f < FEATURE_FAMILIES && feature_families[f]->needs == FEATURE_NEEDS_BITS && !feature_families[f]->count)
        f++;
    return f;
}

/* Begins values that need only the mask, while the lane counts. */
static int
begin_forms(struct step *step, const struct texture_region *named, const struct feature_region *region)
{
    const struct shared_values *shared = step->request->shared;
    struct feature_value values[FEATURE_FAMILY_MAX];
    int rc = 0;
    for (size_t f = 0; f < FEATURE_FAMILIES && rc == 0; f++) {
        const struct feature_family *family = feature_families[f];
        const struct measured measured = {named, region, family, 0};
        if (family->form && texture_sets(family, step->request->options) > 0 &&
            !(shared && shared_values_take(shared, &measured, values)))
            rc = valuing_form(step->request->valuing, family, region);
    }
    return rc ? out_of_memory(step) : 0;
}

/* Takes the values of the region, unless there was an error. */
static int
end_region(struct step *step, int rc)
{
    struct valued *valued;
    while (rc == 0 && (valued = valuing_wait(step->request->valuing)) != NULL)
        rc = end_set(step, valued);
    valuing_clear(step->request->valuing);
    free(step->wide);
    step->wide = NULL;
    return rc;
}

static int
measure_region(struct step *step, size_t number)
{
    const struct texture_region *named = &step->request->regions[number];
    struct feature_region region = {
        .volume = &step->volume,
        .number = number,
        .bits = named->bits,
        .histograms = step->histograms,
        .no_levels = FEATURE_NOT_DISCRETISED,
        .level_of = step->level_of,
    };
    const bool values_wanted = step->needs >= FEATURE_NEEDS_VALUES;
    size_t next = 0;
    int rc = begin_forms(step, named, &region);
    if (rc == 0 && values_wanted && !step->volume.reals)
        rc = texture_region_hold(step->request->lane, region.bits, step->error);
    if (rc == 0)
        rc = begin_sets(step, named, &region, &next, families_of_bits());
    if (rc == 0 && values_wanted)
        rc = step->volume.reals ? resegment_reals(&region) : count_values(step, &region);
    if (rc == -ENOMEM && step->volume.reals)
        rc = out_of_memory(step);
    if (rc == 0 && values_wanted && step->volume.reals)
        rc = fill_levels(step, &region);
    if (rc == 0 && step->levels_wanted)
        rc = make_levels(step, &region);
    if (rc == 0 && step->request->options->voxelwise)
        rc = voxelwise_measure(step->request, &region, named, step->result, step->error);
    if (rc == 0)
        rc = begin_sets(step, named, &region, &next, FEATURE_FAMILIES);
    if (rc == 0 && step->leaves && number + 1 == step->request->region_count)
        valuing_wait_for_counts(step->request->valuing);
    else
        rc = end_region(step, rc);
    texture_region_release(step->request->lane);
    return rc;
}

/* ----------------------------------------------------------------------------- the whole ---- */

static int
measure_all(struct step *step)
{
    const struct kernels_lane *lane = step->request->lane;
    const size_t regions = step->request->region_count;
    size_t sets = 0;
    for (size_t f = 0; f < FEATURE_FAMILIES; f++)
        sets += texture_sets(feature_families[f], step->request->options);
    int rc = valuing_prepare(step->request->valuing, sets, kernels_lane_threads(lane) - 1, kernels_lane_beside(lane),
                             (struct valuing_tell){tell_set, step});
    if (rc)
        return out_of_memory(step);
    for (size_t f = 0; f < FEATURE_FAMILIES && rc == 0; f++)
        rc = family_prepare(step, f);
    for (size_t r = 0; r < regions && rc == 0; r++) {
        rc = advance(step, (double)r / (double)regions);
        if (rc == 0)
            rc = measure_region(step, r);
    }
    return rc;
}

/* Returns whether values need neither the lane nor data that families prepare or begin apart. */
static bool
values_may_wait(const struct texture_request *request)
{
    bool may = request->reals && request->region_count > 0 && !request->maps && !request->options->voxelwise;
    for (size_t f = 0; f < FEATURE_FAMILIES; f++)
        may &= !(feature_families[f]->prepare || feature_families[f]->form) ||
               texture_sets(feature_families[f], request->options) == 0;
    return may;
}

static void
step_free(struct step *step)
{
    free(step->rescales);
    free(step->paddings);
    free(step->histograms);
    free(step->level_of);
    free(step->regions);
    for (size_t f = 0; f < FEATURE_FAMILIES; f++)
        free(step->prepared[f]);
    feature_set_clear(&step->features);
    free(step);
}

/* Adds the features to the result, unless there was an error, and frees the step. */
static int
step_end(struct step *step, int rc)
{
    if (rc == 0 && feature_set_append(&step->result->features, &step->features))
        rc = out_of_memory(step);
    step_free(step);
    return rc;
}

int
texture_begin(const struct texture_request *request, bool leaves, struct texture_result *result, struct step **left,
              struct error *error)
{
    struct step *step = calloc(1, sizeof *step);
    if (!step)
        return error_set_system(error, -ENOMEM, "measure texture");
    step->own = *request;
    step->request = &step->own;
    step->result = result;
    step->error = error;
    step->value_unit = value_unit_of(request->instances, request->stack);
    step->needs = texture_need(request->options);
    step->levels_wanted = texture_levels_wanted(request->options);
    step->leaves = leaves && values_may_wait(request);
    int rc = make_volume(step);
    if (rc == 0)
        rc = measure_all(step);
    *left = rc == 0 && step->leaves ? step : NULL;
    return *left ? 0 : step_end(step, rc);
}

int
texture_end(struct step *left)
{
    return left ? step_end(left, end_region(left, 0)) : 0;
}

int
texture_measure(const struct texture_request *request, struct texture_result *result, struct error *error)
{
    struct step *left;
    return texture_begin(request, false, result, &left, error);
}

void
texture_result_clear(struct texture_result *result)
{
    feature_set_clear(&result->features);
    free(result->maps);
    for (size_t m = 0; m < result->voxelwise_count; m++)
        voxelwise_maps_free(&result->voxelwise[m]);
    free(result->voxelwise);
    memset(result, 0, sizeof *result);
}
