/* fuzzy.c - see fuzzy.h. */
#include "fuzzy.h"

#include <math.h>

static double
gaussian(double distance, double sigma)
{
    return exp(-(distance * distance) / (2 * (sigma * sigma)));
}

void
fuzzy_fill_tables(const struct kernels_fuzzy_object *object, struct fuzzy_tables *tables)
{
    for (int32_t s = 0; s <= 2 * tables->span; s++) {
        double mean = (s + 2 * tables->low) / 2.0;
        tables->first[s] = object->weight * gaussian(mean - object->mean, object->sigma);
    }
    for (int32_t d = 0; d <= tables->span; d++)
        tables->second[d] = (1 - object->weight) * gaussian(d / 2.0, object->homogeneity_sigma);
}
