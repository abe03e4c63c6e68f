/* measure_shared.c - see measure_shared.h. */
#include "service/pipeline/measure/measure_shared.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct shared_value {
    const struct texture_options *options; /* of the group */
    bool real;                             /* the values are not rounded */
    int32_t segment;
    const struct feature_family *family;
    size_t set;
    struct feature_value values[FEATURE_FAMILY_MAX];
};

static bool
shared_value_is(const struct shared_value *item, const struct measured *measured)
{
    const struct texture_options *options = measured->region->volume->options;
    const struct discretisation_options *levels = &options->levels, *own = &item->options->levels;
    return item->family == measured->family && item->set == measured->set &&
           item->real == (measured->region->volume->reals != NULL) && item->segment == measured->named->segment &&
           texture_resample_same(item->options->resample, options->resample) && !item->options->normalise &&
           !options->normalise && item->options->sigma == options->sigma && own->has_range == levels->has_range &&
           (!own->has_range || (own->range[0] == levels->range[0] && own->range[1] == levels->range[1]));
}

bool
shared_values_take(const struct shared_values *shared, const struct measured *measured, struct feature_value *values)
{
    if (measured->region->volume->options->filter)
        return false;
    for (size_t i = 0; i < shared->count; i++)
        if (shared_value_is(&shared->items[i], measured)) {
            memcpy(values, shared->items[i].values, measured->family->definition_count * sizeof *values);
            return true;
        }
    return false;
}

int
shared_values_add(struct shared_values *shared, const struct measured *measured, const struct feature_value *values)
{
    if (!measured->family->of_intensities || measured->region->volume->options->filter)
        return 0;
    struct shared_value *grown = realloc(shared->items, (shared->count + 1) * sizeof *shared->items);
    if (!grown)
        return -ENOMEM;
    shared->items = grown;
    struct shared_value *item = &shared->items[shared->count++];
    *item = (struct shared_value){
        .options = measured->region->volume->options,
        .real = measured->region->volume->reals != NULL,
        .segment = measured->named->segment,
        .family = measured->family,
        .set = measured->set,
    };
    memcpy(item->values, values, measured->family->definition_count * sizeof *values);
    return 0;
}

void
shared_values_clear(struct shared_values *shared)
{
    free(shared->items);
    *shared = (struct shared_values){.items = NULL};
}
