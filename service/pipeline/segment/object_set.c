/* object_set.c - see object_set.h. */
#include "service/pipeline/segment/object_set.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>

const char *
object_kind_name(enum conf_object_kind kind)
{
    static const char *const names[] = {[CONF_RTSTRUCT] = "RT Structure Set",
                                        [CONF_SEG] = "Segmentation",
                                        [CONF_SR] = "Structured Report"};
    return names[kind];
}

bool
object_item_is_wanted(const struct object_item *item, const struct conf_object *wanted)
{
    if (!wanted->roi)
        return item->number == wanted->number;
    return fnmatch(wanted->roi, item->name, 0) == 0 ||
           (item->finding[0] && fnmatch(wanted->roi, item->finding, 0) == 0);
}

static int
object_set_reserve(struct object_set *set, int32_t series, int32_t items)
{
    set->series = calloc((size_t)series + 1, sizeof *set->series);
    set->items = calloc((size_t)items + 1, sizeof *set->items);
    set->series_count = series;
    set->item_count = items;
    return set->series && set->items ? 0 : -ENOMEM;
}

static int
object_set_of_rtstruct(struct object_set *set)
{
    const struct rtstruct *read = set->rtstruct;
    set->class_uid = RTSTRUCT_CLASS_UID;
    set->sop_instance_uid = read->sop_instance_uid;
    set->study_uid = read->study_uid;
    set->series_uid = read->series_uid;
    set->frame = "";
    if (object_set_reserve(set, read->series_count, read->roi_count))
        return -ENOMEM;
    for (int32_t i = 0; i < read->series_count; i++) {
        set->series[i] = read->series[i].series_uid;
        if (!set->frame[0])
            set->frame = read->series[i].frame_of_reference_uid;
    }
    for (int32_t i = 0; i < read->roi_count; i++) {
        const char *own = read->rois[i].frame_of_reference_uid;
        set->items[i] = (struct object_item){
            read->rois[i].number,    read->rois[i].name, "", own[0] ? own : set->frame, "", "",
            read->rois[i].provenance};
    }
    return 0;
}

static int
object_set_of_seg(struct object_set *set)
{
    const struct seg_source *read = set->seg;
    set->class_uid = read->class_uid;
    set->sop_instance_uid = read->sop_instance_uid;
    set->study_uid = read->study_uid;
    set->series_uid = read->series_uid;
    set->frame = read->frame_of_reference_uid;
    set->own = read->own;
    if (object_set_reserve(set, read->series_count, read->segment_count))
        return -ENOMEM;
    for (int32_t i = 0; i < read->series_count; i++)
        set->series[i] = read->series[i];
    for (int32_t i = 0; i < read->segment_count; i++)
        set->items[i] = (struct object_item){read->segments[i].number,
                                             read->segments[i].label,
                                             "",
                                             set->frame,
                                             read->segments[i].tracking_id,
                                             read->segments[i].tracking_uid,
                                             read->segments[i].provenance};
    return 0;
}

/* Coordinates on images have no frame of reference: the images are named instead. */
static int
object_set_of_report(struct object_set *set)
{
    const struct sr_source *read = set->report;
    set->class_uid = read->class_uid;
    set->sop_instance_uid = read->sop_instance_uid;
    set->study_uid = read->study_uid;
    set->series_uid = read->series_uid;
    set->frame = "";
    set->own = read->own;
    if (object_set_reserve(set, read->series_count, read->item_count))
        return -ENOMEM;
    for (int32_t i = 0; i < read->series_count; i++)
        set->series[i] = read->series[i];
    for (int32_t i = 0; i < read->item_count; i++) {
        const struct sr_source_item *item = &read->items[i];
        set->items[i] = (struct object_item){
            item->number, item->name, item->finding,       item->figures[0].frame_of_reference_uid,
            "",           "",         &provenance_unstated};
    }
    return 0;
}

static int
object_set_read(enum conf_object_kind kind, struct object_set *set, struct error *error)
{
    switch (kind) {
    case CONF_RTSTRUCT:
        return rtstruct_open(set->path, &set->rtstruct, error);
    case CONF_SEG:
        return seg_source_open(set->path, &set->seg, error);
    case CONF_SR:
        break;
    }
    return sr_source_open(set->path, &set->report, error);
}

int
object_set_open(enum conf_object_kind kind, const char *path, struct object_set **out,
                struct error *error)
{
    struct object_set *set = calloc(1, sizeof *set);
    *out = NULL;
    if (!set)
        return error_set_system(error, -ENOMEM, "hold an object");
    set->path = path;
    set->what = object_kind_name(kind);
    int rc = object_set_read(kind, set, error);
    if (rc == 0) {
        rc = set->rtstruct ? object_set_of_rtstruct(set)
             : set->seg    ? object_set_of_seg(set)
                           : object_set_of_report(set);
        if (rc)
            error_set_system(error, rc, "hold the regions of an object");
    }
    if (rc)
        object_set_close(set);
    else
        *out = set;
    return rc;
}

void
object_set_close(struct object_set *set)
{
    if (!set)
        return;
    rtstruct_close(set->rtstruct);
    seg_source_close(set->seg);
    sr_source_close(set->report);
    free(set->series);
    free(set->items);
    free(set);
}
