/* shared_counts.c - see shared_counts.h. */
#include "service/pipeline/measure/shared_counts.h"

#include <stdlib.h>

static bool
shared_counts_has(const struct shared_counts *shared, const struct measured *measured)
{
    return shared->family && shared->family->count == measured->family->count &&
           shared->set == measured->set;
}

int
shared_counts_take(struct shared_counts *shared, const struct measured *measured,
                   const uint64_t **counts, struct error *error)
{
    const struct feature_family *family = measured->family;
    int rc = 0;
    if (!family->count) {
        *counts = NULL;
        return 0;
    }
    if (!shared_counts_has(shared, measured)) {
        shared_counts_clear(shared);
        rc = family->count(measured->region, measured->set, &shared->counts, error);
        shared->family = rc ? NULL : family;
        shared->set = measured->set;
    }
    *counts = shared->counts;
    return rc;
}

void
shared_counts_clear(struct shared_counts *shared)
{
    free(shared->counts);
    *shared = (struct shared_counts){0};
}
