/*
 * object_search.h - which of a job's objects has the region of a segment (object.h has the rule).
 */
#ifndef NOCTULE_SEGMENT_OBJECT_SEARCH_H
#define NOCTULE_SEGMENT_OBJECT_SEARCH_H

#include "service/pipeline/segment/object_set.h"
#include "service/pipeline/segment/segment.h"

/* The search for one segment's region among the job's objects. */
struct object_search {
    const struct segmentation *segmentation;
    const struct conf_segment *segment;
    struct object_set *set; /* that has it; NULL: none so far */
    int32_t item;
    struct error refusal; /* why the last one of the kind is not it; CODE_NONE: there was none */
};

/* Fills set, which is the caller's to close also after an error, and item. Codes: those of object.h up to
 * ROI_AMBIGUOUS. */
int object_search_run(struct object_search *search, struct error *error);

#endif
