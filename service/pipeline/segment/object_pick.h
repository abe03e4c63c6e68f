/*
 * object_pick.h - the region of each segment, and the segments of "each region that matches".
 *
 * Regions are chosen before masks are made. A segment with object.each is replaced by one segment
 * per matching region of the object, in the order of the object. It gets the region's name, number
 * and color, and its coded concepts if the object has a type. An empty or used name gets the
 * region's number. Later segments that use the region, and its measurements, apply to each of them.
 *
 * Codes: those of object_search_run(); ROI_TOO_MANY beyond CONF_MAX_SEGMENTS, and TAG_MISSING for a
 * segment without a type.
 */
#ifndef NOCTULE_SERVICE_PIPELINE_SEGMENT_OBJECT_PICK_H
#define NOCTULE_SERVICE_PIPELINE_SEGMENT_OBJECT_PICK_H

#include "service/pipeline/segment/object_set.h"
#include "service/pipeline/segment/segment.h"

#define OBJECT_ABSENT_SIZE sizeof(((struct error *)NULL)->message)

struct object_pick {
    struct object_set *set;              /* NULL: no region, or the object lacks it */
    int32_t item;                        /* the first that matches */
    char absent[OBJECT_ABSENT_SIZE];     /* reason why the object has no such region; "" */
    const struct provenance *provenance; /* held, if the segment has its codes; else NULL */
};

struct object_picks {
    struct object_sets sets;
    struct conf_pipeline pipeline; /* borrows all but its segments from the pipeline of the job */
    struct conf_segment *segments; /* borrow all but `texts` */
    struct object_pick *of;        /* one per segment */
    char **texts;
    size_t text_count;
};

/*
 * Chooses the regions of segmentation->pipeline, and replaces it by the pipeline with a segment per
 * region.
 */
int object_picks_make(struct segmentation *segmentation, struct error *error);
void object_picks_free(struct object_picks *picks);

#endif
