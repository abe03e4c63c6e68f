/*
 * object_set.h - an object with regions, whatever its kind: an RT Structure Set, a Segmentation or a report.
 */
#ifndef NOCTULE_SEGMENT_OBJECT_SET_H
#define NOCTULE_SEGMENT_OBJECT_SET_H

#include "config/config.h"
#include "dicom/read/rtstruct.h"
#include "dicom/read/seg_source.h"
#include "dicom/read/sr_source.h"

/* A region of it. */
struct object_item {
    int32_t number;
    const char *name;
    const char *finding;                    /* of a report's, which it is known by, too; else "" */
    const char *frame;                      /* of reference; "" when it is not told */
    const char *tracking_id, *tracking_uid; /* both "" where it has none */
    const struct provenance *provenance;
};

/* Texts are those of what was read. */
struct object_set {
    const char *path;
    const char *what; /* "RT Structure Set" */
    const char *class_uid, *sop_instance_uid, *study_uid, *series_uid;
    const char **series; /* that it says it is of */
    int32_t series_count;
    const char *frame; /* of reference; "" when it is not told */
    bool own;          /* Noctule wrote it */
    struct object_item *items;
    int32_t item_count;
    /* One of the three. */
    struct rtstruct *rtstruct;
    struct seg_source *seg;
    struct sr_source *report;
};

/* Codes: those of rtstruct_open, seg_source_open and sr_source_open; SOP_CLASS_UNSUPPORTED for what is of another
 * kind. `path` is borrowed. */
int object_set_open(enum conf_object_kind kind, const char *path, struct object_set **set,
                    struct error *error);
void object_set_close(struct object_set *set);

/* By its number, or its name or finding. */
bool object_item_is_wanted(const struct object_item *item, const struct conf_object *wanted);

/* "RT Structure Set" */
const char *object_kind_name(enum conf_object_kind kind);

#endif
