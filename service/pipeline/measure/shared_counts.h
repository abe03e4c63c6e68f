/*
 * shared_counts.h - what a lane has counted of a region last: the next family that has the same `count`
 * (family.h) is handed it, and the operation runs once for both.
 */
#ifndef NOCTULE_SHARED_COUNTS_H
#define NOCTULE_SHARED_COUNTS_H

#include "service/pipeline/measure/keep.h"

/* Begins as zeros for each region. */
struct shared_counts {
    const struct feature_family *family; /* NULL: nothing was counted */
    size_t set;
    uint64_t *counts;
};

/* The counts of a set, until other ones are asked for; NULL of a family that counts nothing. Errors of
 * the family's `count`. */
int shared_counts_take(struct shared_counts *shared, const struct measured *measured,
                       const uint64_t **counts, struct error *error);

void shared_counts_clear(struct shared_counts *shared);

#endif
