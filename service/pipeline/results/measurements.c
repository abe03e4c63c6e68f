/* measurements.c - see measurements.h. */
#include "service/pipeline/results/measurements.h"

#include "dicom/objects/sr/sr_terms.h"

#include <errno.h>
#include <stdlib.h>

static void
fill(struct sr_measurement *measurement, const struct feature *feature, const char *value_unit,
     char words[FEATURE_SETTING])
{
    *measurement = (struct sr_measurement){
        .concept = sr_feature_concept(feature->ibsi, feature->name, feature->meaning),
        .unit = sr_unit(feature->unit),
        .value = feature->value,
    };
    sr_make_absent(measurement, feature->missing_reason);
    sr_describe(measurement, feature->settings, value_unit, words);
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
        .words = calloc(set->count + 1, sizeof *measurements->words),
    };
    if (!measurements->groups || !measurements->items || !measurements->words) {
        measurements_free(measurements);
        return -ENOMEM;
    }
    for (size_t i = 0; i < set->count; i++)
        fill(&measurements->items[i], &set->items[i], value_unit, measurements->words[i]);
    make_groups(set, measurements);
    return 0;
}

void
measurements_free(struct measurements *measurements)
{
    free(measurements->groups);
    free(measurements->items);
    free(measurements->words);
    *measurements = (struct measurements){0};
}
