/* shape_kept.c - see shape_kept.h. */
#include "kernels/features/shape/shape_kept.h"

int
kept_make(const struct feature_region *region, struct morphology_region *made, uint64_t **kept,
          struct error *error)
{
    const struct feature_volume *volume = region->volume;
    const size_t entries = volume->tables * volume->values;
    int rc = feature_counts_make(entries / 64, kept, error);

    for (size_t i = 0; i < entries && rc == 0; i++)
        (*kept)[i / 64] |= (uint64_t)(region->histograms[i] > 0) << i % 64;
    *made = (struct morphology_region){region->bits, *kept, volume->tables};
    return rc;
}
