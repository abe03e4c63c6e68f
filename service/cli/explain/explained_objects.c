#include "service/cli/explain/explained_objects.h"

#include "base/text.h"
#include "service/cli/cli.h"
#include "service/pipeline/segment/object_set.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

void
explained_objects_close(struct explained_objects *objects)
{
    for (size_t i = 0; objects->rows && i < objects->found.count; i++)
        report_objects_free(objects->rows[i].at, objects->rows[i].count);
    free(objects->rows);
    input_objects_free(&objects->found);
    if (objects->report)
        report_close(objects->report);
    *objects = (struct explained_objects){0};
}

int
explained_objects_find_rows(struct explained_objects *objects)
{
    struct error error;
    objects->rows = calloc(objects->found.count + 1, sizeof *objects->rows);
    for (size_t i = 0; objects->rows && objects->report && i < objects->found.count; i++) {
        struct explained_rows *rows = &objects->rows[i];
        const struct report_object_filter filter = {.sop_instance_uid = objects->found.items[i].peek->sop_instance_uid};
        if (report_objects(objects->report, &filter, &rows->at, &rows->count, &error))
            rows->count = 0;
    }
    return objects->rows ? 0 : -ENOMEM;
}

/* Returns the stored row of object i, or NULL. If several series have the UID, returns the first. */
static const struct report_object *
object_row(const struct explained_objects *objects, size_t i)
{
    return objects->rows[i].count > 0 ? &objects->rows[i].at[0] : NULL;
}

/* ------------------------------------------------------------------------------- regions ---- */

/* The regions of an object, and those that a segment would use by the rules of a job
 * (object_set.h). */
struct explained_regions {
    struct object_set *set; /* NULL if the file cannot be read */
    struct error error;     /* reason for that */
};

static void
regions_open(struct explained_regions *regions, const char *kind, const char *path)
{
    int number = 0;
    while (strcmp(conf_object_kind_names[number], kind) != 0)
        number++;
    *regions = (struct explained_regions){0};
    object_set_open((enum conf_object_kind)number, path, &regions->set, &regions->error);
}

static bool
region_fits(const struct conf_object *wanted, const struct object_item *item)
{
    return !wanted || object_item_is_wanted(item, wanted);
}

/* Returns the number of matching regions, or of all regions if `wanted` is NULL. A job needs one,
 * unless the segment has `each` or `unite`. */
static int32_t
regions_count(const struct explained_regions *regions, const struct conf_object *wanted)
{
    int32_t count = 0;
    for (int32_t i = 0; regions->set && i < regions->set->item_count; i++)
        count += region_fits(wanted, &regions->set->items[i]);
    return count;
}

/* Returns why a job would use no region for the segment, or CODE_NONE. */
static enum code
regions_check(const struct explained_regions *regions, const struct conf_segment *segment)
{
    const struct conf_object *wanted = &segment->object;
    const int32_t count = regions_count(regions, wanted);
    if (!regions->set)
        return regions->error.code;
    if (count == 0)
        return CODE_ROI_NOT_FOUND;
    if (count > 1 && !wanted->each && !wanted->unite)
        return CODE_ROI_AMBIGUOUS;
    for (int32_t i = 0; i < regions->set->item_count; i++) {
        const struct object_item *item = &regions->set->items[i];
        if (region_fits(wanted, item) && !object_item_has_type(item, segment))
            return CODE_TAG_MISSING;
    }
    return CODE_NONE;
}

/* Lists regions as `1 "GTV", 2 "Heart"`, and keeps space for the number of those left out. The text
 * is "none" without regions, and has the error code of an unreadable file. */
static void
regions_describe(const struct explained_regions *regions, const struct conf_object *wanted, char text[EXPLAINED_TEXT])
{
    enum { ROOM_FOR_REST = 24, LONGEST = 160 };

    const int32_t count = regions_count(regions, wanted);
    size_t used = 0;
    int32_t listed = 0;
    snprintf(text, EXPLAINED_TEXT, "%s", regions->set ? "none" : "");
    if (!regions->set)
        snprintf(text, EXPLAINED_TEXT, "cannot be read: %s", code_name(regions->error.code));
    for (int32_t i = 0; listed < count && i < regions->set->item_count; i++) {
        const struct object_item *item = &regions->set->items[i];
        char one[LONGEST];
        if (!region_fits(wanted, item))
            continue;
        snprintf(one, sizeof one, "%s%" PRId32 " \"%.70s\"%s%.70s%s", listed > 0 ? ", " : "", item->number, item->name,
                 item->finding[0] ? " (" : "", item->finding, item->finding[0] ? ")" : "");
        text_utf8_mend_end(one);
        if (used + strlen(one) + ROOM_FOR_REST >= EXPLAINED_TEXT) {
            snprintf(text + used, EXPLAINED_TEXT - used, " and %" PRId32 " more", count - listed);
            return;
        }
        used += (size_t)snprintf(text + used, EXPLAINED_TEXT - used, "%s", one);
        listed++;
    }
}

/* Describes the regions that a segment finds in an object of its kind. */
static void
regions_describe_use(const struct explained_regions *regions, const struct conf_segment *segment,
                     char text[EXPLAINED_WORDS])
{
    char list[EXPLAINED_TEXT];
    const struct conf_object *wanted = &segment->object;
    const enum code code = regions_check(regions, segment);
    const bool absent = code == CODE_ROI_NOT_FOUND;
    regions_describe(regions, regions->set && !absent ? wanted : NULL, list);
    snprintf(text, EXPLAINED_WORDS, "%s%s",
             !regions->set                ? ""
             : absent && wanted->optional ? "no such region, so the segment is empty; regions: "
             : absent                     ? "no such region (ROI_NOT_FOUND); regions: "
             : code == CODE_ROI_AMBIGUOUS ? "several regions match, but only one may (ROI_AMBIGUOUS): "
             : code == CODE_TAG_MISSING   ? "no Segmented Property Type in the object or the pipeline (TAG_MISSING): "
             : wanted->each               ? "one segment each for "
             : wanted->unite              ? "one segment from "
                                          : "region ",
             list);
}

/* ------------------------------------------------------------------- requested objects ---- */

static void
wanted_describe(const struct conf_object *wanted, char text[EXPLAINED_TEXT])
{
    char which[EXPLAINED_TEXT / 2];
    if (wanted->roi)
        snprintf(which, sizeof which, "\"%.100s\"", wanted->roi);
    else
        snprintf(which, sizeof which, "number %d", wanted->number);
    snprintf(text, EXPLAINED_TEXT, "%s of a%s %s%s%s", which, wanted->kind == CONF_SEG ? "" : "n",
             conf_object_kind_names[wanted->kind], wanted->from_ae ? " from " : "",
             wanted->from_ae ? wanted->from_ae : "");
}

/* ------------------------------------------------------------------------------- files ---- */

static const char *
object_state(const struct report_object *row)
{
    if (row->own)
        return "a result of Noctule, not used as input";
    if (row->missing)
        return "its file is missing";
    return row->superseded_by[0] ? "replaced by a later version" : "current";
}

static void
object_text_user(const struct report_object *row, const char *kind, const struct explained_regions *regions,
                 const struct conf_pipeline *pipeline, const struct conf_segment *segment)
{
    const struct conf_object *wanted = &segment->object;
    char text[EXPLAINED_TEXT], taken[EXPLAINED_WORDS];
    if (segment->method != CONF_OBJECT || strcmp(conf_object_kind_names[wanted->kind], kind) != 0)
        return;
    wanted_describe(wanted, text);
    regions_describe_use(regions, segment, taken);
    explained_put_line("pipeline", "%s: segment \"%s\" needs %s: %s", pipeline->name, segment->label, text,
                       row && !routing_object_fits(segment, row->kind, row->sender) ? "not from this sender" : taken);
}

#define MAX_REFERENCES 4 /* references printed one by one */

static void
object_text_references(const char *lines)
{
    char kind[16], uid[DICOM_UID_SIZE];
    int length, printed = 0, more = 0;
    for (; sscanf(lines, "%15s %64s%n", kind, uid, &length) == 2; lines += length)
        if (printed < MAX_REFERENCES && ++printed)
            explained_put_line(strcmp(kind, "predecessor") == 0 ? "replaces" : "refers to", "%s %s",
                               strcmp(kind, "frame") == 0 ? "frame of reference" : kind, uid);
        else
            more++;
    if (more > 0)
        explained_put_line("refers to", "and %d more", more);
}

static void
object_text(const struct explained_objects *objects, size_t i, const struct explained_regions *regions)
{
    const struct object_peek *peek = objects->found.items[i].peek;
    const struct report_object *row = object_row(objects, i);
    char regions_text[EXPLAINED_TEXT];
    regions_describe(regions, NULL, regions_text);
    printf("object %s\n", peek->sop_instance_uid);
    explained_put_line("file", "%s", objects->found.items[i].path);
    explained_put_line("kind", "%s%s%s%s", peek->kind, peek->label[0] ? ", \"" : "", peek->label,
                       peek->label[0] ? "\"" : "");
    explained_put_line("regions", "%s", regions_text);
    object_text_references(peek->references);
    if (objects->report && !row)
        explained_put_line("stored", "no");
    if (row) {
        explained_put_line("stored", "%s%s, %s, %s", row->sender[0] ? "from " : "by an inbox", row->sender,
                           row->received_at, object_state(row));
        explained_put_line("stored series", "%s",
                           row->drawn_on[0] ? row->drawn_on : "no series that it refers to is stored");
    }
    for (size_t p = 0; p < objects->conf->pipeline_count; p++)
        for (size_t k = 0; k < objects->conf->pipelines[p].segment_count; k++)
            object_text_user(row, peek->kind, regions, &objects->conf->pipelines[p],
                             &objects->conf->pipelines[p].segments[k]);
    putchar('\n');
}

static void
object_json_users(const struct explained_objects *objects, size_t i, const struct explained_regions *regions,
                  struct json *json)
{
    const struct report_object *row = object_row(objects, i);
    json_begin_array(json, "pipelines");
    for (size_t p = 0; p < objects->conf->pipeline_count; p++) {
        const struct conf_pipeline *pipeline = &objects->conf->pipelines[p];
        for (size_t k = 0; k < pipeline->segment_count; k++) {
            const struct conf_segment *segment = &pipeline->segments[k];
            if (!routing_object_fits(segment, objects->found.items[i].peek->kind, row ? row->sender : ""))
                continue;
            json_begin_object(json, NULL);
            json_string(json, "pipeline", pipeline->name);
            json_string(json, "segment", segment->label);
            json_integer(json, "regions_that_fit", regions_count(regions, &segment->object));
            json_end_object(json);
        }
    }
    json_end_array(json);
}

static void
object_json(const struct explained_objects *objects, size_t i, const struct explained_regions *regions,
            struct json *json)
{
    const struct object_peek *peek = objects->found.items[i].peek;
    const struct report_object *row = object_row(objects, i);
    json_begin_object(json, NULL);
    json_string(json, "file", objects->found.items[i].path);
    json_string(json, "sop_instance_uid", peek->sop_instance_uid);
    json_string(json, "series_uid", peek->series_uid);
    json_string(json, "kind", peek->kind);
    json_string(json, "label", peek->label);
    json_string(json, "references", peek->references);
    json_boolean(json, "stored", row != NULL);
    json_string(json, "sender", row ? row->sender : "");
    json_string(json, "state", row ? object_state(row) : "");
    json_string(json, "drawn_on", row ? row->drawn_on : "");
    json_begin_array(json, "regions");
    for (int32_t k = 0; regions->set && k < regions->set->item_count; k++) {
        const struct object_item *item = &regions->set->items[k];
        json_begin_object(json, NULL);
        json_integer(json, "number", item->number);
        json_string(json, "name", item->name);
        json_string(json, "finding", item->finding);
        json_end_object(json);
    }
    json_end_array(json);
    object_json_users(objects, i, regions, json);
    json_end_object(json);
}

void
explained_objects_put(const struct explained_objects *objects, struct json *json)
{
    if (json)
        json_begin_array(json, "objects");
    for (size_t i = 0; i < objects->found.count; i++) {
        struct explained_regions regions;
        regions_open(&regions, objects->found.items[i].peek->kind, objects->found.items[i].path);
        if (json)
            object_json(objects, i, &regions, json);
        else
            object_text(objects, i, &regions);
        object_set_close(regions.set);
    }
    if (json)
        json_end_array(json);
}

/* ------------------------------------------------------------------------------ series ---- */

/* Stored current objects that Noctule did not write, then those among the files. */
struct waits {
    const struct explained_objects *objects;
    const struct headers *series;
    struct report_object *stored;
    size_t stored_count;
    struct json *json;
};

/* The requested object of a segment, and the objects found for it. */
struct waits_search {
    const struct conf_segment *segment;
    const struct conf_object *wanted; /* of the segment */
    int32_t offered;                  /* matching objects: kind and sender */
    char path[4096];                  /* of the first object with the region, else of the first object */
    enum code code;                   /* why a job would refuse it, or CODE_NONE */
    char words[EXPLAINED_WORDS];      /* description of the object */
};

/* Considers one more object. `shown` is the path for the output. */
static void
waits_consider(struct waits_search *search, const char *path, const char *shown)
{
    struct explained_regions regions;
    regions_open(&regions, conf_object_kind_names[search->wanted->kind], path);
    const enum code code = regions_check(&regions, search->segment);
    /* an object with one of these codes has the region */
    const bool had = search->code == CODE_NONE || search->code == CODE_TAG_MISSING;
    const bool has = code == CODE_NONE || code == CODE_TAG_MISSING;
    if (search->offered++ == 0 || (search->code == CODE_ROI_NOT_FOUND && code != search->code)) {
        search->code = code;
        snprintf(search->path, sizeof search->path, "%s", shown);
        regions_describe_use(&regions, search->segment, search->words);
    } else if (had && has) {
        search->code = CODE_OBJECT_AMBIGUOUS;
        snprintf(search->words, sizeof search->words, "another object has it too (OBJECT_AMBIGUOUS): %.300s", shown);
    }
    object_set_close(regions.set);
}

static bool
waits_has_stored(const struct waits *waits, const struct object_peek *peek)
{
    for (size_t i = 0; i < waits->stored_count; i++)
        if (strcmp(waits->stored[i].sop_instance_uid, peek->sop_instance_uid) == 0)
            return true;
    return false;
}

static void
waits_search_run(const struct waits *waits, struct waits_search *search)
{
    const struct input_objects *found = &waits->objects->found;
    char path[4096];
    for (size_t i = 0; i < waits->stored_count; i++) {
        const struct report_object *row = &waits->stored[i];
        snprintf(path, sizeof path, "%s/%s", waits->objects->conf->root, row->path);
        if (!row->own && !row->missing && !row->superseded_by[0] &&
            routing_object_fits(search->segment, row->kind, row->sender))
            waits_consider(search, path, row->path);
    }
    for (size_t i = 0; i < found->count; i++) {
        const struct object_peek *peek = found->items[i].peek;
        const struct report_object *row = object_row(waits->objects, i);
        if (routing_object_fits(search->segment, peek->kind, row ? row->sender : "") &&
            input_object_is_of(peek, waits->series) && !waits_has_stored(waits, peek))
            waits_consider(search, found->items[i].path, found->items[i].path);
    }
    if (search->wanted->optional && search->code == CODE_ROI_NOT_FOUND)
        search->code = CODE_NONE;
}

static void
waits_put(const struct waits *waits, const struct conf_pipeline *pipeline, const struct conf_segment *segment)
{
    struct waits_search search = {.segment = segment, .wanted = &segment->object};
    char text[EXPLAINED_TEXT];
    if (segment->method != CONF_OBJECT)
        return;
    waits_search_run(waits, &search);
    if (search.offered == 0) {
        search.code = search.wanted->optional ? CODE_OBJECT_OPTIONAL : CODE_OBJECT_WAITING;
        snprintf(search.words, sizeof search.words, "not stored%s%s",
                 search.wanted->own ? "; give results of Noctule with noctule run --object" : "",
                 search.wanted->optional ? "; without it the segment is empty" : "");
    }
    wanted_describe(search.wanted, text);
    if (!waits->json) {
        explained_put_line("  waits for", "%s: segment \"%s\" is %s: %s%s%s%s", pipeline->name, segment->label, text,
                           search.offered > 0 ? "found, " : "", search.path, search.offered > 0 ? ": " : "",
                           search.words);
        return;
    }
    json_begin_object(waits->json, NULL);
    json_string(waits->json, "pipeline", pipeline->name);
    json_string(waits->json, "segment", segment->label);
    json_string(waits->json, "kind", conf_object_kind_names[search.wanted->kind]);
    json_string(waits->json, "roi", search.wanted->roi ? search.wanted->roi : "");
    json_string(waits->json, "from_ae", search.wanted->from_ae ? search.wanted->from_ae : "");
    json_string(waits->json, "path", search.path);
    json_string(waits->json, "code", code_name(search.code));
    json_string(waits->json, "found", search.words);
    json_end_object(waits->json);
}

int
explained_objects_put_waits(const struct explained_objects *objects, const struct explained *explained,
                            struct json *json)
{
    struct waits waits = {objects, &explained->files->headers, NULL, 0, json};
    const struct explained_job *jobs = explained->jobs;
    struct error error;
    const struct report_object_filter filter = {.drawn_on = explained->files->headers.instances[0]->series_uid};
    if (objects->report && report_objects(objects->report, &filter, &waits.stored, &waits.stored_count, &error)) {
        cli_print_error("%s", error.message);
        return -EIO;
    }
    if (json)
        json_begin_array(json, "waits_for");
    for (size_t i = 0; i < explained->result.count; i++) {
        size_t first = 0; /* list each pipeline once */
        while (strcmp(jobs[first].pipeline, jobs[i].pipeline) != 0)
            first++;
        const struct conf_pipeline *pipeline = conf_find_pipeline(objects->conf, jobs[i].pipeline);
        for (size_t k = 0; first == i && k < pipeline->segment_count; k++)
            waits_put(&waits, pipeline, &pipeline->segments[k]);
    }
    if (json)
        json_end_array(json);
    report_objects_free(waits.stored, waits.stored_count);
    return 0;
}
