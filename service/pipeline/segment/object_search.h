/*
 * object_search.h - which of a job's objects has the region of a segment (object.h has the rule).
 */
#ifndef NOCTULE_SERVICE_PIPELINE_SEGMENT_OBJECT_SEARCH_H
#define NOCTULE_SERVICE_PIPELINE_SEGMENT_OBJECT_SEARCH_H

#include "service/pipeline/segment/object_set.h"
#include "service/pipeline/segment/segment.h"

/* The search for one segment's region among the job's objects. */
struct object_search {
    const struct segmentation *segmentation;
    struct object_sets *sets;
    const struct conf_segment *segment;
    struct object_set *set; /* that has it; NULL: none so far */
    int32_t item;           /* the first that matches */
    struct error refusal;   /* why the last one of the kind is not it; CODE_NONE: there was none */
};

/*
 * Fills set and item. Returns 0 with set NULL if an optional segment has no object, or its object lacks the region; refusal then has
 * the reason. Codes: those of object.h up to ROI_AMBIGUOUS.
 */
int object_search_run(struct object_search *search, struct error *error);

/* Returns the next region of the set that matches, from `item` on; -1: there is none. */
int32_t object_search_next(const struct conf_object *wanted, const struct object_set *set,
                           int32_t item);

/* Checks that a region lies in the images: their series is named, or the frame of reference is theirs. */
int object_search_check(const struct object_search *search, const struct object_set *set,
                        int32_t item, struct error *error);

#endif
