#include "kernels/fuzzy/affinity.h"

#include <math.h>

double
fuzzy_gaussian(double distance, double sigma)
{
    return exp(-(distance * distance) / (2 * (sigma * sigma)));
}

void
fuzzy_fill_tables(const struct kernels_fuzzy_object *object, struct fuzzy_tables *tables)
{
    for (int32_t s = 0; s <= 2 * tables->span; s++) {
        double mean = (s + 2 * tables->low) / 2.0;
        tables->first[s] = object->weight * fuzzy_gaussian(mean - object->mean, object->sigma);
    }
    for (int32_t d = 0; d <= tables->span; d++)
        tables->second[d] = (1 - object->weight) * fuzzy_gaussian(d / 2.0, object->homogeneity_sigma);
}

bool
fuzzy_fill_reach(const struct fuzzy_tables *tables, uint16_t threshold, int32_t *reach)
{
    const int32_t span = tables->span;
    int32_t now = -1;

    for (int32_t d = 0; d < span; d++)
        if (tables->second[d + 1] > tables->second[d])
            return false;
    for (int32_t s = 0; s <= 2 * span; s++) {
        while (now < span && fuzzy_affinity_of(tables, s, now + 1) > threshold)
            now++;
        while (now >= 0 && fuzzy_affinity_of(tables, s, now) <= threshold)
            now--;
        reach[s] = now;
    }
    reach[2 * span + 1] = -1;
    return true;
}
