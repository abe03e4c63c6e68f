/* measurements.c - see measurements.h. */
#include "service/pipeline/results/measurements.h"

#include "dicom/objects/sr/sr_terms.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The settings in the words of reports; the texts last as long as `texts`. */
static struct sr_settings
settings_of(const char *settings, const char *value_unit, char texts[3][FEATURE_SETTING])
{
    char symmetric[FEATURE_SETTING], low[FEATURE_SETTING];
    feature_get(settings, FEATURE_aggregation, texts[0]);
    feature_get(settings, FEATURE_discretisation, texts[1]);
    feature_get(settings, FEATURE_directions, texts[2]);
    feature_get(settings, FEATURE_symmetric, symmetric);
    return (struct sr_settings){
        .aggregation = texts[0],
        .discretisation = texts[1],
        .levels = (int32_t)feature_get_number(settings, FEATURE_levels),
        .bin_width = feature_get_number(settings, FEATURE_bin_width),
        .distance = (int32_t)feature_get_number(settings, FEATURE_distance),
        .symmetric = strcmp(symmetric, "true") == 0,
        .directions = texts[2],
        .has_range = feature_get(settings, FEATURE_range_low, low),
        .range = {feature_get_number(settings, FEATURE_range_low),
                  feature_get_number(settings, FEATURE_range_high)},
        .value_unit = value_unit,
    };
}

static void
fill(struct sr_measurement *measurement, const struct feature *feature, const char *value_unit,
     char directions[FEATURE_SETTING])
{
    char texts[3][FEATURE_SETTING];
    const struct sr_settings settings = settings_of(feature->settings, value_unit, texts);
    *measurement = (struct sr_measurement){
        .concept = sr_feature_concept(feature->ibsi, feature->name, feature->meaning),
        .unit = sr_unit(feature->unit),
        .value = feature->value,
    };
    sr_make_absent(measurement, feature->missing_reason);
    sr_describe(measurement, &settings);
    memcpy(directions, texts[2], sizeof texts[2]);
    if (measurement->words.text)
        measurement->words.text = directions;
}

static void
make_groups(const struct feature_set *set, struct measurements *measurements)
{
    struct sr_group *group = NULL;
    for (size_t i = 0; i < set->count; i++) {
        if (!group || set->items[i].segment != set->items[i - 1].segment) {
            group = &measurements->groups[measurements->group_count++];
            group->segment =
                set->items[i].segment > 0 ? set->items[i].segment - 1 : SR_WHOLE_VOLUME;
            group->measurements = &measurements->items[i];
        }
        group->measurement_count++;
    }
}

int
measurements_make(const struct feature_set *set, const char *value_unit,
                  struct measurements *measurements)
{
    *measurements = (struct measurements){
        .groups = calloc(set->count + 1, sizeof *measurements->groups),
        .items = calloc(set->count + 1, sizeof *measurements->items),
        .directions = calloc(set->count + 1, sizeof *measurements->directions),
    };
    if (!measurements->groups || !measurements->items || !measurements->directions) {
        measurements_free(measurements);
        return -ENOMEM;
    }
    for (size_t i = 0; i < set->count; i++)
        fill(&measurements->items[i], &set->items[i], value_unit, measurements->directions[i]);
    make_groups(set, measurements);
    return 0;
}

void
measurements_free(struct measurements *measurements)
{
    free(measurements->groups);
    free(measurements->items);
    free(measurements->directions);
    *measurements = (struct measurements){0};
}
