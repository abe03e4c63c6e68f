/*
 * object_search.h - finds the annotation object of a job that has the region of a segment (object.h
 * has the rule).
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
    struct object_set *set; /* the object that has it; NULL: not found yet */
    int32_t item;           /* the first region that matches */
    /* reason why the last object of the kind does not fit; CODE_NONE: there was no such object */
    struct error refusal;
};

/*
 * Fills set and item. Returns 0 with set NULL if an optional segment has no object, or its object
 * lacks the region; refusal then has the reason. Codes: those of object.h up to ROI_AMBIGUOUS.
 */
int object_search_run(struct object_search *search, struct error *error);

/* Returns the next matching region of the set, from `item` on; -1: there is no more. */
int32_t object_search_next(const struct conf_object *wanted, const struct object_set *set, int32_t item);

/*
 * Checks that a region belongs to the images: it refers to their series, or has their frame of
 * reference.
 */
int object_search_check(const struct object_search *search, const struct object_set *set, int32_t item,
                        struct error *error);

#endif
