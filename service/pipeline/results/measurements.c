#include "service/pipeline/results/measurements.h"

#include "dicom/objects/sr/sr_terms.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int
measurements_make(const struct feature_set *set, size_t listed, const char *value_unit,
                  struct measurements *measurements)
{
    *measurements = (struct measurements){
        .groups = calloc(set->count + listed + 1, sizeof *measurements->groups),
        .items = calloc(set->count + 1, sizeof *measurements->items),
        .words = calloc(set->count + 1, sizeof *measurements->words),
    };
    if (!measurements->groups || !measurements->items || !measurements->words) {
        measurements_free(measurements);
        return -ENOMEM;
    }
    struct sr_group *group = NULL;
    for (size_t i = 0; i < set->count; i++) {
        const struct feature *feature = &set->items[i];
        struct sr_measurement *measurement = &measurements->items[i];
        *measurement = (struct sr_measurement){
            .concept = sr_feature_concept(feature->ibsi, feature->name, feature->meaning),
            .unit = sr_unit(feature->unit),
            .value = feature->value,
            .has_path = feature->has_path,
        };
        memcpy(measurement->path, feature->path, sizeof measurement->path);
        sr_make_absent(measurement, feature->missing_reason);
        sr_describe(measurement, feature->settings, value_unit, measurements->words[i]);
        if (!group || feature->segment != feature[-1].segment) {
            group = &measurements->groups[measurements->group_count++];
            group->segment = feature->segment > 0 ? feature->segment - 1 : SR_WHOLE_VOLUME;
            group->measurements = measurement;
        }
        group->measurement_count++;
    }
    for (size_t s = 0, measured = measurements->group_count; s < listed; s++) {
        bool has_group = false;
        for (size_t g = 0; g < measured; g++)
            has_group |= measurements->groups[g].segment == (int32_t)s;
        if (!has_group)
            measurements->groups[measurements->group_count++].segment = (int32_t)s;
    }
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
