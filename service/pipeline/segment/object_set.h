/*
 * object_set.h - an annotation object with its regions: an RT Structure Set, a Segmentation or a
 * report.
 */
#ifndef NOCTULE_SERVICE_PIPELINE_SEGMENT_OBJECT_SET_H
#define NOCTULE_SERVICE_PIPELINE_SEGMENT_OBJECT_SET_H

#include "config/config.h"
#include "dicom/read/annotation/rtstruct.h"
#include "dicom/read/annotation/seg_source.h"
#include "dicom/read/annotation/sr_source.h"

/* A region of it. */
struct object_item {
    int32_t number;
    const char *name;
    /* of a report's item, which it also identifies; else "" */
    const char *finding;
    const char *frame;                      /* of reference; "": not stated */
    const char *tracking_id, *tracking_uid; /* both "" if it has no tracking */
    const struct provenance *provenance;
    bool is_background; /* of a label map: the pixels without a segment */
    bool has_color;
    double color[3]; /* red, green and blue, 0..1 */
};

/* Texts belong to the object that was read. */
struct object_set {
    const char *path;
    const char *what; /* "RT Structure Set" */
    const char *class_uid, *sop_instance_uid, *study_uid, *series_uid;
    const char **series; /* series that it refers to */
    int32_t series_count;
    const char *frame; /* of reference; "": not stated */
    bool own;          /* written by Noctule */
    struct object_item *items;
    int32_t item_count;
    /* Exactly one is set. */
    struct rtstruct *rtstruct;
    struct seg_source *seg;
    struct sr_source *report;
};

/*
 * Opens an object. Codes: those of rtstruct_open(), seg_source_open() and sr_source_open();
 * SOP_CLASS_UNSUPPORTED for another kind. `path` is borrowed.
 */
int object_set_open(enum conf_object_kind kind, const char *path, struct object_set **set, struct error *error);
void object_set_close(struct object_set *set);

/* The objects of a job, each opened once per kind. */
struct object_sets {
    char *const *paths;
    size_t count;
    struct object_set **sets; /* one per path and kind; NULL: of another kind, or not opened */
    bool *opened;             /* one per path and kind */
};

/* Returns 0 or -ENOMEM. Call object_sets_close() in both cases. */
int object_sets_make(struct object_sets *sets, char *const *paths, size_t count, struct error *error);
void object_sets_close(struct object_sets *sets);

/*
 * Sets *set to the object of this index, NULL if it is of another kind; `sets` owns it. Codes:
 * those of object_set_open().
 */
int object_sets_get(struct object_sets *sets, size_t index, enum conf_object_kind kind, struct object_set **set,
                    struct error *error);

/*
 * Returns whether the item has the wanted number, name or finding. A pattern matches the background
 * of a label map only by its whole name.
 */
bool object_item_is_wanted(const struct object_item *item, const struct conf_object *wanted);

/*
 * Returns whether the segment has a type for results: its own, or that of the region. A hidden
 * segment does not need one.
 */
bool object_item_has_type(const struct object_item *item, const struct conf_segment *segment);

/* "RT Structure Set" */
const char *object_kind_name(enum conf_object_kind kind);

#endif
