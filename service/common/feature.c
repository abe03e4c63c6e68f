#include "feature.h"

#include <stdlib.h>

void
feature_set_clear(struct feature_set *set)
{
    free(set->items);
    free(set->histograms);
    *set = (struct feature_set){0};
}
