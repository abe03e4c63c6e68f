/*
 * valuing.h - values of what was counted of a region, made on threads of their own while the lane counts what
 * the next families want. Each set's values come of its counts alone: they are the same whoever makes them.
 *
 * Sets are added and taken back in one order by one thread, the caller's. Counts stay until the region is
 * cleared, so that a family with the `count` of one before (family.h) is of the same counts.
 */
#ifndef NOCTULE_VALUING_H
#define NOCTULE_VALUING_H

#include "service/pipeline/measure/keep.h"

/* A set on its way. */
struct valued {
    struct measured measured;     /* of `region` */
    struct feature_region region; /* as it was when the set was added: `prepared` is its family's */
    const uint64_t *counts;       /* NULL: it counts nothing, or has nothing to make values of */
    uint64_t *own_counts;         /* NULL: those of a set before */
    struct feature_value values[FEATURE_FAMILY_MAX];
    bool made;  /* values are there without counts: of a group before, or missing */
    int rc;     /* of `values` */
    bool ready; /* the family has been asked for them; valuing_wait looks at it */
};

struct valuing;

/* For so many sets of a region at most, with so many threads at most beside the caller's. 0 or -ENOMEM. */
int valuing_open(size_t sets, int threads, struct valuing **valuing);

/* The next set, zeros but for its measured. */
struct valued *valuing_begin(struct valuing *valuing, const struct measured *measured);

/* Has its family count, unless a set before has. Errors of the family's `count`. */
int valuing_count(struct valuing *valuing, struct valued *valued, struct error *error);

/* Hands it over, to have its values made unless they are. */
void valuing_add(struct valuing *valuing, struct valued *valued);

/* Set i once its values are there; until then makes those of others that nobody makes. NULL: there are no more. */
const struct valued *valuing_wait(struct valuing *valuing, size_t i);

/* Gives counts back, and makes no values that are not begun; the next region may follow. */
void valuing_clear(struct valuing *valuing);

void valuing_close(struct valuing *valuing);

#endif
