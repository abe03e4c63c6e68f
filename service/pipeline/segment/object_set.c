#include "service/pipeline/segment/object_set.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

const char *
object_kind_name(enum conf_object_kind kind)
{
    static const char *const names[] = {
        [CONF_RTSTRUCT] = "RT Structure Set", [CONF_SEG] = "Segmentation", [CONF_SR] = "Structured Report"};
    return names[kind];
}

bool
object_item_is_wanted(const struct object_item *item, const struct conf_object *wanted)
{
    if (!wanted->roi)
        return item->number == wanted->number;
    if (item->is_background)
        return strcmp(wanted->roi, item->name) == 0;
    return fnmatch(wanted->roi, item->name, 0) == 0 ||
           (item->finding[0] && fnmatch(wanted->roi, item->finding, 0) == 0);
}

bool
object_item_has_type(const struct object_item *item, const struct conf_segment *segment)
{
    return segment->hidden || segment->type.value || item->provenance->property.value;
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
        set->items[i] = (struct object_item){.number = read->rois[i].number,
                                             .name = read->rois[i].name,
                                             .finding = "",
                                             .frame = own[0] ? own : set->frame,
                                             .tracking_id = "",
                                             .tracking_uid = "",
                                             .has_color = read->rois[i].has_color,
                                             .provenance = read->rois[i].provenance};
        for (int k = 0; k < 3; k++)
            set->items[i].color[k] = read->rois[i].color[k] / 255.0;
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
    for (int32_t i = 0; i < read->segment_count; i++) {
        const struct seg_source_segment *segment = &read->segments[i];
        set->items[i] = (struct object_item){.number = segment->number,
                                             .name = segment->label,
                                             .finding = "",
                                             .frame = set->frame,
                                             .tracking_id = segment->tracking_id,
                                             .tracking_uid = segment->tracking_uid,
                                             .provenance = segment->provenance,
                                             .is_background = read->type == SEG_SOURCE_LABELMAP && segment->number == 0,
                                             .has_color = segment->has_color,
                                             .color = {segment->color[0], segment->color[1], segment->color[2]}};
    }
    return 0;
}

/* Coordinates on images have no frame of reference: their images are listed instead. */
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
        set->items[i] = (struct object_item){.number = item->number,
                                             .name = item->name,
                                             .finding = item->finding,
                                             .frame = item->figures[0].frame_of_reference_uid,
                                             .tracking_id = item->tracking_id,
                                             .tracking_uid = item->tracking_uid,
                                             .provenance = &provenance_unstated};
    }
    return 0;
}

int
object_set_open(enum conf_object_kind kind, const char *path, struct object_set **out, struct error *error)
{
    struct object_set *set = calloc(1, sizeof *set);
    *out = NULL;
    if (!set)
        return error_set_system(error, -ENOMEM, "hold an object");
    set->path = path;
    set->what = object_kind_name(kind);
    int rc;
    if (kind == CONF_RTSTRUCT)
        rc = rtstruct_open(path, &set->rtstruct, error);
    else if (kind == CONF_SEG)
        rc = seg_source_open(path, &set->seg, error);
    else
        rc = sr_source_open(path, &set->report, error);
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

enum { KINDS = CONF_SR + 1 };

int
object_sets_make(struct object_sets *sets, char *const *paths, size_t count, struct error *error)
{
    *sets = (struct object_sets){.paths = paths, .count = count};
    sets->sets = calloc(KINDS * count + 1, sizeof *sets->sets);
    sets->opened = calloc(KINDS * count + 1, sizeof *sets->opened);
    return sets->sets && sets->opened ? 0 : error_set_system(error, -ENOMEM, "hold the objects");
}

void
object_sets_close(struct object_sets *sets)
{
    for (size_t i = 0; sets->sets && i < KINDS * sets->count; i++)
        object_set_close(sets->sets[i]);
    free(sets->sets);
    free(sets->opened);
    *sets = (struct object_sets){0};
}

int
object_sets_get(struct object_sets *sets, size_t index, enum conf_object_kind kind, struct object_set **set,
                struct error *error)
{
    const size_t place = KINDS * index + (size_t)kind;
    struct error unread = {.code = CODE_NONE};
    if (!sets->opened[place] && object_set_open(kind, sets->paths[index], &sets->sets[place], &unread) &&
        unread.code != CODE_SOP_CLASS_UNSUPPORTED) {
        *error = unread;
        return -EINVAL;
    }
    sets->opened[place] = true;
    *set = sets->sets[place];
    return 0;
}
