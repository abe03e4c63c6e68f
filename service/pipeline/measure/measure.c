/*
 * measure.c - see measure.h.
 *
 * One region after the other: its histograms tell the intensities and the extremes that the levels
 * are made from, the levels make matrices, the matrices features. Patterns are one run for all
 * regions.
 */
#include "service/pipeline/measure/measure.h"

#include "base/error.h"
#include "service/pipeline/measure/matrices.h"
#include "service/pipeline/measure/settings.h"
#include "service/pipeline/volume.h"

#include "kernels/features/features.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct step {
    const struct texture_request *request;
    struct texture_result *result;
    struct error *error;
    struct image_range limits;      /* of the pixel type */
    size_t values;                  /* that a pixel may have: entries of a table */
    size_t tables;                  /* 1, or one a slice */
    struct image_rescale *rescales; /* one a table */
    struct image_range *paddings;   /* the same; empty: none */
    uint64_t *histograms;           /* [tables][values], of the region at hand */
    uint16_t *level_of;             /* the same */
};

/* What is known of the region at hand. */
struct measured {
    const struct texture_region *region;
    struct basic_region place;
    double lo, hi; /* real-world values of its voxels within the range; lo > hi: none */
    bool discretised;
    int levels;
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

/* Adds to the note; once, however many regions it concerns. */
static void
note_once(struct texture_result *result, const char *text)
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
    step->values = (size_t)(step->limits.hi - step->limits.lo) + 1;
    step->tables = slices_agree(request) ? 1 : (size_t)request->stack->plane_count;
    step->rescales = calloc(step->tables, sizeof *step->rescales);
    step->paddings = calloc(step->tables, sizeof *step->paddings);
    step->histograms = calloc(step->tables * step->values, sizeof *step->histograms);
    step->level_of = calloc(step->tables * step->values, sizeof *step->level_of);
    if (!step->rescales || !step->paddings || !step->histograms || !step->level_of)
        return out_of_memory(step);
    for (size_t t = 0; t < step->tables; t++) {
        step->rescales[t] = rescale_of(request, (int32_t)t);
        step->paddings[t] = padding_of(request, (int32_t)t);
    }
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
    for (size_t t = 0; t < step->tables; t++) {
        int32_t first, last;
        padded_entries(step, t, &first, &last);
        for (int32_t v = first; v <= last; v++) {
            size_t at = t * step->values + (size_t)v;
            if (levels)
                step->level_of[at] = 0;
            else
                step->histograms[at] = 0;
        }
    }
}

/* ------------------------------------------------------------- the region, its intensities -- */

static void
place_volume(const struct geometry_stack *stack, struct basic_region *place)
{
    const int64_t size[3] = {stack->columns, stack->rows, stack->plane_count};
    place->voxels = size[0] * size[1] * size[2];
    for (int axis = 0; axis < 3; axis++) {
        place->sum[axis] = place->voxels / size[axis] * (size[axis] * (size[axis] - 1) / 2);
        place->first[axis] = 0;
        place->last[axis] = size[axis] - 1;
    }
}

static void
find_place(const struct step *step, struct measured *measured)
{
    const struct geometry_stack *stack = step->request->stack;
    if (measured->region->bits)
        basic_region_of(measured->region->bits, stack->columns, stack->rows, stack->plane_count,
                        &measured->place);
    else
        place_volume(stack, &measured->place);
}

static int
count_values(struct step *step, const struct measured *measured)
{
    int rc = texture_histogram_run(step->request->lane, measured->region->bits, step->tables > 1,
                                   step->histograms, step->error);
    if (rc == 0)
        leave_out_padding(step, false);
    return rc;
}

/* Real-world values exactly as discretise() has them. */
static void
find_extremes(const struct step *step, struct measured *measured)
{
    const struct conf_glcm *glcm = step->request->settings->glcm;
    measured->lo = INFINITY;
    measured->hi = -INFINITY;
    for (size_t i = 0; i < step->tables * step->values; i++) {
        const struct image_rescale *rescale = &step->rescales[i / step->values];
        const double stored = (double)step->limits.lo + (double)(i % step->values);
        const double value = rescale->slope * stored + rescale->intercept;
        if (step->histograms[i] == 0 ||
            (glcm->has_range && (value < glcm->range[0] || value > glcm->range[1])))
            continue;
        measured->lo = value < measured->lo ? value : measured->lo;
        measured->hi = value > measured->hi ? value : measured->hi;
    }
}

static void
note_not_discretised(const struct step *step, int error)
{
    note_once(step->result,
              error == -EDOM
                  ? "texture: discretisation \"paper\" is of stored values 0 to 255, and there are "
                    "others: use \"fixed-bin-number\""
                  : "texture: more than 256 grey levels: raise glcm.bin_width, or use "
                    "\"fixed-bin-number\"");
}

static void
make_levels(struct step *step, struct measured *measured)
{
    const struct discretisation_settings settings =
        texture_discretisation(step->request->settings->glcm);
    find_extremes(step, measured);
    int error = discretise(&settings, step->rescales, step->tables, step->values, step->limits.lo,
                           measured->lo, measured->hi, step->level_of, &measured->levels);
    measured->discretised = error == 0;
    if (error)
        note_not_discretised(step, error);
    else
        leave_out_padding(step, true);
}

/* ------------------------------------------------------------------------------- records ---- */

static struct feature *
add_feature(struct step *step, const struct measured *measured, const char *family,
            const struct feature_definition *definition, const struct feature_value *value)
{
    struct feature_set *set = &step->result->features;
    struct feature *feature = &set->items[set->count++];
    feature->segment = measured->region->segment;
    snprintf(feature->label, sizeof feature->label, "%s", measured->region->label);
    snprintf(feature->family, sizeof feature->family, "%s", family);
    snprintf(feature->name, sizeof feature->name, "%s", definition->name);
    snprintf(feature->meaning, sizeof feature->meaning, "%s", definition->meaning);
    snprintf(feature->ibsi, sizeof feature->ibsi, "%s", definition->ibsi);
    if (definition->value_power > 0)
        texture_value_unit(step->request->instances, step->request->stack, definition->value_power,
                           feature->unit);
    else
        snprintf(feature->unit, sizeof feature->unit, "%s", definition->unit);
    snprintf(feature->absence, sizeof feature->absence, "%s",
             features_absence_name(value->absence));
    if (value->absence == FEATURES_PRESENT)
        feature->value = value->value;
    return feature;
}

/* How values became levels. Bins of a width make as many levels as the region needs; where there
 * is nothing to make them of, there are none. */
static void
put_discretisation(const struct step *step, const struct measured *measured,
                   struct feature *feature)
{
    const struct conf_glcm *glcm = step->request->settings->glcm;
    const bool by_number =
        glcm->discretisation == CONF_PAPER || glcm->discretisation == CONF_FIXED_BIN_NUMBER;
    const bool has_levels = measured->discretised && measured->lo <= measured->hi;
    snprintf(feature->discretisation, sizeof feature->discretisation, "%s",
             discretisation_names[glcm->discretisation]);
    feature->levels = by_number ? glcm->levels : has_levels ? measured->levels : 0;
    feature->bin_width = by_number ? 0 : glcm->bin_width;
    feature->has_range = glcm->has_range;
    if (glcm->has_range) {
        feature->range[0] = glcm->range[0];
        feature->range[1] = glcm->range[1];
    }
}

static void
put_matrix(const struct step *step, int32_t distance, struct feature *feature)
{
    const struct conf_glcm *glcm = step->request->settings->glcm;
    snprintf(feature->aggregation, sizeof feature->aggregation, "%s",
             glcm_aggregation_names[glcm->aggregation]);
    snprintf(feature->aggregation_ibsi, sizeof feature->aggregation_ibsi, "%s",
             glcm_aggregation_codes[glcm->aggregation]);
    feature->distance = distance;
    feature->symmetric = glcm->symmetric;
    texture_directions(glcm, feature->directions);
}

/* --------------------------------------------------------------- intensities and place ------ */

static bool
is_place(int feature)
{
    return feature == BASIC_VOXEL_COUNT || feature == BASIC_VOLUME_ML ||
           feature >= BASIC_CENTROID_X;
}

static struct basic_input
basic_input_of(const struct step *step, const struct measured *measured)
{
    const struct geometry_stack *stack = step->request->stack;
    struct basic_input input = {
        .region = &measured->place,
        .histograms = step->histograms,
        .histogram_count = step->tables,
        .values = step->values,
        .smallest = step->limits.lo,
        .rescales = step->rescales,
        .level_of = measured->discretised ? step->level_of : NULL,
        .levels = measured->levels,
    };
    for (int i = 0; i < 3; i++) {
        for (int axis = 0; axis < 3; axis++)
            input.voxel_to_mm[i][axis] = stack->axes[3 * axis + i] * stack->spacing[axis];
        input.voxel_to_mm[i][3] = stack->origin[i];
        input.spacing[i] = stack->spacing[i];
    }
    return input;
}

/* The entropy is one of levels: without any there is nothing to say of it. */
static int
measure_basics(struct step *step, const struct measured *measured)
{
    struct feature_value values[BASIC_FEATURES];
    const struct basic_input input = basic_input_of(step, measured);
    if (basic_features(&input, values))
        return out_of_memory(step);
    for (int f = 0; f < BASIC_FEATURES; f++) {
        if (f == BASIC_ENTROPY && !step->request->settings->glcm)
            continue;
        struct feature *feature = add_feature(step, measured, is_place(f) ? "shape" : "first-order",
                                              &basic_feature_definitions[f], &values[f]);
        if (f == BASIC_ENTROPY)
            put_discretisation(step, measured, feature);
    }
    return 0;
}

/* ------------------------------------------------------------------------- co-occurrence ---- */

static int
run_glcm(const struct step *step, const struct measured *measured,
         const struct texture_matrices *matrices, struct feature_value *values)
{
    const struct conf_glcm *glcm = step->request->settings->glcm;
    const enum glcm_aggregation aggregation = (enum glcm_aggregation)glcm->aggregation;
    const struct glcm_settings settings = {measured->levels, aggregation, glcm->symmetric};
    const struct texture_glcm run = {
        .levels = {measured->levels, step->level_of, step->tables},
        .region = measured->region->bits,
        .offsets = matrices->offsets,
        .offset_count = matrices->count,
        .per_slice = glcm_aggregation_per_slice(aggregation),
    };
    const size_t slices = run.per_slice ? (size_t)step->request->stack->plane_count : 1;
    const size_t cells = (size_t)measured->levels * (size_t)measured->levels;
    uint64_t *counts = calloc(slices * matrices->count * cells, sizeof *counts);
    if (!counts)
        return out_of_memory(step);
    int rc = texture_glcm_run(step->request->lane, &run, counts, step->error);
    if (rc == 0 &&
        glcm_features(&settings, counts, (int64_t)slices, (int64_t)matrices->count, values))
        rc = out_of_memory(step);
    if (rc == 0 && glcm->matrices != CONF_NO_MATRICES &&
        texture_matrices_keep(&settings, matrices, counts, slices, &step->result->features))
        rc = out_of_memory(step);
    free(counts);
    return rc;
}

static void
set_absent(struct feature_value values[GLCM_FEATURES], enum features_absence absence)
{
    for (int f = 0; f < GLCM_FEATURES; f++)
        values[f] = (struct feature_value){0, absence};
}

static int
measure_matrices(struct step *step, const struct measured *measured,
                 const struct texture_matrices *matrices)
{
    struct feature_value values[GLCM_FEATURES];
    int error = 0;
    if (measured->lo > measured->hi)
        set_absent(values, FEATURES_NO_VOXEL);
    else if (!measured->discretised)
        set_absent(values, FEATURES_NO_LEVELS);
    else
        error = run_glcm(step, measured, matrices, values);
    for (int f = 0; f < GLCM_FEATURES && error == 0; f++) {
        struct feature *feature =
            add_feature(step, measured, "glcm", &glcm_feature_definitions[f], &values[f]);
        put_discretisation(step, measured, feature);
        put_matrix(step, matrices->distance, feature);
    }
    return error;
}

static int
measure_glcm(struct step *step, const struct measured *measured)
{
    const struct conf_glcm *glcm = step->request->settings->glcm;
    const size_t count = texture_matrices_count(glcm);
    int error = 0;
    for (size_t i = 0; i < count && error == 0; i++) {
        struct texture_matrices matrices;
        if (pipeline_stopped(step->request->watch))
            return -ECANCELED;
        error = texture_matrices_make(glcm, i, &matrices)
                    ? out_of_memory(step)
                    : measure_matrices(step, measured, &matrices);
        free(matrices.offsets);
    }
    return error;
}

static int
measure_region(struct step *step, const struct texture_region *region)
{
    const struct conf_texture *settings = step->request->settings;
    struct measured measured = {.region = region};
    int error = count_values(step, &measured);
    if (error)
        return error;
    if (settings->glcm)
        make_levels(step, &measured);
    if (settings->first_order) {
        find_place(step, &measured);
        error = measure_basics(step, &measured);
    }
    if (error == 0 && settings->glcm)
        error = measure_glcm(step, &measured);
    return error;
}

/* ------------------------------------------------------------------------------ patterns ---- */

/* A code for each voxel that is not on its slice's edge; 0 where there is none. */
static size_t
map_size(const struct geometry_stack *stack)
{
    if (stack->columns < 3 || stack->rows < 3)
        return 0;
    return (size_t)(stack->columns - 2) * (size_t)(stack->rows - 2) * (size_t)stack->plane_count;
}

static int
make_maps(const struct step *step)
{
    const size_t size = map_size(step->request->stack);
    for (int p = 0; p < TEXTURE_PATTERNS && size > 0; p++) {
        if (!texture_pattern_wanted(step->request->settings, (enum texture_pattern)p))
            continue;
        step->result->maps[p] = malloc(size);
        if (!step->result->maps[p])
            return out_of_memory(step);
    }
    if (size == 0)
        note_once(step->result, "texture: slices of less than 3 x 3 voxels have no patterns");
    return 0;
}

static void
add_histograms(const struct step *step, const uint64_t *counts)
{
    const struct texture_request *request = step->request;
    struct feature_set *set = &step->result->features;
    for (size_t r = 0; r < request->region_count; r++) {
        for (int p = 0; p < TEXTURE_PATTERNS; p++) {
            const enum texture_pattern pattern = (enum texture_pattern)p;
            if (!texture_pattern_wanted(request->settings, pattern))
                continue;
            struct feature_histogram *histogram = &set->histograms[set->histogram_count++];
            histogram->segment = request->regions[r].segment;
            snprintf(histogram->label, sizeof histogram->label, "%s", request->regions[r].label);
            snprintf(histogram->pattern, sizeof histogram->pattern, "%s", texture_pattern_names[p]);
            texture_pattern_settings(request->settings, pattern, histogram->settings);
            memcpy(histogram->counts, counts + (r * TEXTURE_PATTERNS + (size_t)p) * 256,
                   sizeof histogram->counts);
        }
    }
}

static int
run_patterns(const struct step *step, const uint64_t **regions, uint64_t *counts)
{
    const struct texture_request *request = step->request;
    struct texture_patterns run = texture_patterns_of(request->settings);
    for (size_t r = 0; r < request->region_count; r++)
        regions[r] = request->regions[r].bits;
    run.regions = regions;
    run.region_count = request->region_count;
    run.histograms = counts;
    memcpy(run.maps, step->result->maps, sizeof run.maps);
    return texture_patterns_run(step->request->lane, &run, step->error);
}

static int
measure_patterns(const struct step *step)
{
    const size_t count = step->request->region_count;
    const uint64_t **regions = calloc(count, sizeof *regions);
    uint64_t *counts = calloc(count * TEXTURE_PATTERNS * 256, sizeof *counts);
    int error = regions && counts ? 0 : out_of_memory(step);
    if (error == 0 && step->request->maps)
        error = make_maps(step);
    if (error == 0)
        error = run_patterns(step, regions, counts);
    if (error == 0)
        add_histograms(step, counts);
    free(regions);
    free(counts);
    return error;
}

/* ----------------------------------------------------------------------------- the whole ---- */

static size_t
count_patterns(const struct conf_texture *settings)
{
    size_t count = 0;
    for (int p = 0; p < TEXTURE_PATTERNS; p++)
        count += texture_pattern_wanted(settings, (enum texture_pattern)p);
    return count;
}

static int
make_room(const struct step *step)
{
    const struct conf_texture *settings = step->request->settings;
    struct feature_set *set = &step->result->features;
    size_t each = settings->first_order ? BASIC_FEATURES : 0;
    if (settings->glcm)
        each += GLCM_FEATURES * texture_matrices_count(settings->glcm);
    set->items = calloc(step->request->region_count * each + 1, sizeof *set->items);
    set->histograms =
        calloc(step->request->region_count * count_patterns(settings) + 1, sizeof *set->histograms);
    return set->items && set->histograms ? 0 : out_of_memory(step);
}

static int
measure_all(struct step *step)
{
    const struct texture_request *request = step->request;
    const bool values = request->settings->first_order || request->settings->glcm;
    int error = make_room(step);
    for (size_t r = 0; r < request->region_count && values && error == 0; r++) {
        error = advance(step, (double)r / (double)request->region_count);
        if (error == 0)
            error = measure_region(step, &request->regions[r]);
    }
    if (error == 0 && request->settings->patterns != 0)
        error = advance(step, 1);
    if (error == 0 && request->settings->patterns != 0)
        error = measure_patterns(step);
    return error;
}

int
texture_measure(const struct texture_request *request, struct texture_result *result,
                struct error *error)
{
    struct step step = {.request = request, .result = result, .error = error};
    memset(result, 0, sizeof *result);
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
