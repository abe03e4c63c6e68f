/*
 * measure_values.h - values of what was counted of a region, made on threads of their own while the lane counts what
 * the next families want. Each set's values come of its counts alone: they are the same whoever makes them. On a lane
 * where runs are under way beside each other (kernels_lane_beside) these threads have it count, too.
 *
 * It is opened once for many jobs, which have it one after the other: beginning threads and waiting for their ends takes
 * a job half a millisecond. Once a set's values are there, whoever made them has the caller's `tell` tell of them, of
 * several sets at once.
 *
 * Sets are added and taken back in one order by one thread, the caller's. A family with the `count` of one before
 * (family.h) is of the same counts, which stay until the last set that has them is let go.
 */
#ifndef NOCTULE_SERVICE_PIPELINE_MEASURE_MEASURE_VALUES_H
#define NOCTULE_SERVICE_PIPELINE_MEASURE_MEASURE_VALUES_H

#include "service/pipeline/measure/measure_keep.h"

/* What sets on their way may take together, where they are several. All families of 512x512x300 in space take 145 MiB
 * of 64 levels, and 196 of 256 at three distances: they do not wait. */
#define VALUING_HELD ((size_t)256 << 20)

/* A set on its way. */
struct valued {
    struct measured measured;     /* of `region` */
    struct feature_region region; /* as it was when the set was added: `prepared` is its family's */
    const uint64_t *counts;       /* NULL: it counts nothing, or has nothing to make values of */
    /* The first set with these counts, it or one before; NULL: it counts nothing. Its are: */
    struct valued *counting;

    enum { VALUING_NOT_COUNTED, VALUING_COUNTS, VALUING_COUNTED } counted;

    uint64_t *own_counts;
    int count_rc; /* of `count` */
    struct error error;
    bool followed; /* a set behind it has them, too, and gives them back */
    size_t bytes;  /* that these take at most, and the values while they are made */
    struct feature_value values[FEATURE_FAMILY_MAX];
    bool made;  /* values are there without counts: of a group before, or missing */
    bool taken; /* somebody makes them, or has */
    int rc;     /* of `values`, or of `tell` */
    struct feature_set features; /* what is told; empty again when the set is let go */
    bool ready;                  /* the family has been asked for them; valuing_wait looks at it */
};

struct valuing;

/* What a family makes of a region's bits alone, on its way. */
struct formed {
    const struct feature_family *family;
    struct feature_region region; /* its bits, and the volume */
    void *form;
    size_t taken, ready; /* parts: that somebody makes or has made, that are there */
    int rc;
};

/* Without threads: they begin as there is something for them. NULL: there is no memory. */
struct valuing *valuing_open(void);

/* What is made of a set's values, and of its counts, where it has any: 0 or -ENOMEM. */
struct valuing_tell {
    int (*tell)(void *context, struct valued *valued); /* NULL: nothing */
    void *context;
};

/* For so many sets of a region at most, with so many threads at most beside the caller's; where they count, too, there
 * are more, which sleep most of the time. What jobs before have begun stay. 0 or -ENOMEM. */
int valuing_prepare(struct valuing *valuing, size_t sets, int threads, bool count,
                    struct valuing_tell tell);

/* Has what families make of the region's bits alone begun, before the sets that are handed it. 0 or -ENOMEM. */
int valuing_form(struct valuing *valuing, const struct feature_family *family,
                 const struct feature_region *region);

/* Whether there is room for a set that takes so much, or has what is there; else one is to be let go first. */
bool valuing_has_room(const struct valuing *valuing, const struct measured *measured, size_t bytes);

/* The next set, zeros but for what is told of it. */
struct valued *valuing_begin(struct valuing *valuing, const struct measured *measured,
                             size_t bytes);

/* Has its family count, unless a set before has. Errors of the family's `count`. */
int valuing_count(struct valuing *valuing, struct valued *valued, struct error *error);

/* What the count of one that was taken back ended with. */
int valuing_count_failed(const struct valued *valued, struct error *error);

/* Hands it over, to have it counted and its values made unless they are. */
void valuing_add(struct valuing *valuing, struct valued *valued);

/* The next set to take back, once its values are there; until then makes those of others that nobody makes. NULL: there
 * are no more. */
struct valued *valuing_wait(struct valuing *valuing);

/* It has been taken back: gives back its counts. */
void valuing_let_go(struct valuing *valuing);

/* Gives counts back, and makes no values that are not begun; the next region may follow. */
void valuing_clear(struct valuing *valuing);

void valuing_close(struct valuing *valuing);

#endif
