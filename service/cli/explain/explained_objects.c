/* explained_objects.c - see explained_objects.h. */
#include "service/cli/explain/explained_objects.h"

#include "base/text.h"
#include "service/cli/cli.h"
#include "service/cli/explain/explained_regions.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void
explained_objects_open(struct explained_objects *objects, const struct conf *conf)
{
    struct error error;
    *objects = (struct explained_objects){.conf = conf};
    if (cli_try_report(conf, &objects->report, &error) < 0)
        objects->report = NULL;
}

void
explained_objects_close(struct explained_objects *objects)
{
    for (size_t i = 0; i < objects->count; i++) {
        object_peek_free(objects->items[i].peek);
        report_objects_free(objects->items[i].stored, objects->items[i].stored_count);
    }
    free(objects->items);
    if (objects->report)
        report_close(objects->report);
    *objects = (struct explained_objects){0};
}

int
explained_objects_add(struct explained_objects *objects, const char *path)
{
    struct object_peek *peek;
    struct error error;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    const int rc = object_peek_open(fd, path, NULL, &peek, &error);
    close(fd);
    if (rc)
        return 0;
    struct explained_object *items =
        reallocarray(objects->items, objects->count + 1, sizeof *items);
    if (!items) {
        object_peek_free(peek);
        return -ENOMEM;
    }
    objects->items = items;
    struct explained_object *item = &items[objects->count++];
    *item = (struct explained_object){.path = path, .peek = peek};
    const struct report_object_filter filter = {.sop_instance_uid = peek->sop_instance_uid};
    if (objects->report &&
        report_objects(objects->report, &filter, &item->stored, &item->stored_count, &error))
        item->stored_count = 0;
    return 1;
}

/* ------------------------------------------------------------------- requested regions ---- */

/* Returns NULL if the segment does not come from an annotation object. */
static const struct conf_object *
wanted_of(const struct conf_segment *segment)
{
    return segment->method == CONF_OBJECT ? &segment->object : NULL;
}

/* An unknown sender ("") matches no given AE title. */
static bool
wanted_fits(const struct conf_object *wanted, const char *kind, const char *sender)
{
    return strcmp(conf_object_kind_names[wanted->kind], kind) == 0 &&
           (!wanted->from_ae || strcmp(wanted->from_ae, sender) == 0);
}

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

/* Returns the stored row, or NULL. If several series have the UID, returns the first. */
static const struct report_object *
object_row(const struct explained_object *object)
{
    return object->stored_count > 0 ? &object->stored[0] : NULL;
}

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
object_text_stored(const struct explained_object *object)
{
    const struct report_object *row = object_row(object);
    if (!row) {
        explained_put_line("stored", "no");
        return;
    }
    explained_put_line("stored", "%s%s, %s, %s", row->sender[0] ? "from " : "by an inbox",
                       row->sender, row->received_at, object_state(row));
    explained_put_line("stored series", "%s",
                       row->drawn_on[0] ? row->drawn_on : "no series that it refers to is stored");
}

/* Describes the regions that a segment finds in an object of its kind. */
static void
object_describe_use(const struct explained_regions *regions, const struct conf_segment *segment,
                    char text[EXPLAINED_WORDS])
{
    char regions_text[EXPLAINED_TEXT];
    const struct conf_object *wanted = &segment->object;
    const enum code code = explained_regions_check(regions, segment);
    const bool absent = code == CODE_ROI_NOT_FOUND;
    explained_regions_describe(regions, regions->set && !absent ? wanted : NULL, regions_text);
    snprintf(text, EXPLAINED_WORDS, "%s%s",
             !regions->set                ? ""
             : absent && wanted->optional ? "no such region, so the segment is empty; regions: "
             : absent                     ? "no such region (ROI_NOT_FOUND); regions: "
             : code == CODE_ROI_AMBIGUOUS
                 ? "several regions match, but only one may (ROI_AMBIGUOUS): "
             : code == CODE_TAG_MISSING
                 ? "no Segmented Property Type in the object or the pipeline (TAG_MISSING): "
             : wanted->each  ? "one segment each for "
             : wanted->unite ? "one segment from "
                             : "region ",
             regions_text);
}

static void
object_text_user(const struct explained_object *object, const struct explained_regions *regions,
                 const struct conf_pipeline *pipeline, const struct conf_segment *segment)
{
    const struct report_object *row = object_row(object);
    const struct conf_object *wanted = wanted_of(segment);
    char text[EXPLAINED_TEXT], taken[EXPLAINED_WORDS];
    if (!wanted || strcmp(conf_object_kind_names[wanted->kind], object->peek->kind) != 0)
        return;
    wanted_describe(wanted, text);
    object_describe_use(regions, segment, taken);
    explained_put_line(
        "pipeline", "%s: segment \"%s\" needs %s: %s", pipeline->name, segment->label, text,
        row && !wanted_fits(wanted, row->kind, row->sender) ? "not from this sender" : taken);
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
object_text(const struct explained_objects *objects, const struct explained_object *object)
{
    const struct object_peek *peek = object->peek;
    struct explained_regions regions;
    char regions_text[EXPLAINED_TEXT];
    explained_regions_open(&regions, peek->kind, object->path);
    explained_regions_describe(&regions, NULL, regions_text);
    printf("object %s\n", peek->sop_instance_uid);
    explained_put_line("file", "%s", object->path);
    explained_put_line("kind", "%s%s%s%s", peek->kind, peek->label[0] ? ", \"" : "", peek->label,
                       peek->label[0] ? "\"" : "");
    explained_put_line("regions", "%s", regions_text);
    object_text_references(peek->references);
    if (objects->report)
        object_text_stored(object);
    for (size_t i = 0; i < objects->conf->pipeline_count; i++)
        for (size_t k = 0; k < objects->conf->pipelines[i].segment_count; k++)
            object_text_user(object, &regions, &objects->conf->pipelines[i],
                             &objects->conf->pipelines[i].segments[k]);
    explained_regions_close(&regions);
    putchar('\n');
}

static void
object_json_users(const struct explained_objects *objects, const struct explained_object *object,
                  const struct explained_regions *regions, struct json *json)
{
    const struct report_object *row = object_row(object);
    json_begin_array(json, "pipelines");
    for (size_t i = 0; i < objects->conf->pipeline_count; i++) {
        const struct conf_pipeline *pipeline = &objects->conf->pipelines[i];
        for (size_t k = 0; k < pipeline->segment_count; k++) {
            const struct conf_object *wanted = wanted_of(&pipeline->segments[k]);
            if (!wanted || !wanted_fits(wanted, object->peek->kind, row ? row->sender : ""))
                continue;
            json_begin_object(json, NULL);
            json_string(json, "pipeline", pipeline->name);
            json_string(json, "segment", pipeline->segments[k].label);
            json_integer(json, "regions_that_fit", explained_regions_count(regions, wanted));
            json_end_object(json);
        }
    }
    json_end_array(json);
}

static void
object_json(const struct explained_objects *objects, const struct explained_object *object,
            struct json *json)
{
    const struct object_peek *peek = object->peek;
    const struct report_object *row = object_row(object);
    struct explained_regions regions;
    explained_regions_open(&regions, peek->kind, object->path);
    json_begin_object(json, NULL);
    json_string(json, "file", object->path);
    json_string(json, "sop_instance_uid", peek->sop_instance_uid);
    json_string(json, "series_uid", peek->series_uid);
    json_string(json, "kind", peek->kind);
    json_string(json, "label", peek->label);
    json_string(json, "references", peek->references);
    json_boolean(json, "stored", row != NULL);
    json_string(json, "sender", row ? row->sender : "");
    json_string(json, "state", row ? object_state(row) : "");
    json_string(json, "drawn_on", row ? row->drawn_on : "");
    explained_regions_put(&regions, json);
    object_json_users(objects, object, &regions, json);
    json_end_object(json);
    explained_regions_close(&regions);
}

void
explained_objects_put(const struct explained_objects *objects, struct json *json)
{
    if (json)
        json_begin_array(json, "objects");
    for (size_t i = 0; i < objects->count; i++)
        if (json)
            object_json(objects, &objects->items[i], json);
        else
            object_text(objects, &objects->items[i]);
    if (json)
        json_end_array(json);
}

/* ------------------------------------------------------------------------------ series ---- */

/* Stored current objects that Noctule did not write, then those among the files. */
struct waits {
    const struct explained_objects *objects;
    const struct explained *explained;
    struct report_object *stored;
    size_t stored_count;
    struct json *json;
};

static bool
waits_is_drawn_on(const struct waits *waits, const struct object_peek *peek)
{
    const struct dicom_instance *first = waits->explained->files->headers.instances[0];
    const char *uids[] = {first->series_uid, first->frame_of_reference_uid,
                          first->sop_instance_uid};
    for (size_t i = 0; i < sizeof uids / sizeof *uids; i++) {
        const char *found = uids[i][0] ? strstr(peek->references, uids[i]) : NULL;
        if (found && found[strlen(uids[i])] == '\n')
            return true;
    }
    return false;
}

/* The requested object of a segment, and the objects found for it. */
struct waits_search {
    const struct conf_segment *segment;
    const struct conf_object *wanted; /* of the segment */
    int32_t offered;                  /* matching objects: kind and sender */
    char path[4096];             /* of the first object with the region, else of the first object */
    enum code code;              /* why a job would refuse it, or CODE_NONE */
    char words[EXPLAINED_WORDS]; /* description of the object */
};

/* Returns whether an object with this code has the region. */
static bool
waits_has_region(enum code code)
{
    return code == CODE_NONE || code == CODE_TAG_MISSING;
}

/* Considers one more object. `shown` is the path for the output. */
static void
waits_consider(struct waits_search *search, const char *path, const char *shown)
{
    struct explained_regions regions;
    explained_regions_open(&regions, conf_object_kind_names[search->wanted->kind], path);
    const enum code code = explained_regions_check(&regions, search->segment);
    if (search->offered++ == 0 || (search->code == CODE_ROI_NOT_FOUND && code != search->code)) {
        search->code = code;
        snprintf(search->path, sizeof search->path, "%s", shown);
        object_describe_use(&regions, search->segment, search->words);
    } else if (waits_has_region(search->code) && waits_has_region(code)) {
        search->code = CODE_OBJECT_AMBIGUOUS;
        snprintf(search->words, sizeof search->words,
                 "another object has it too (OBJECT_AMBIGUOUS): %.300s", shown);
    }
    explained_regions_close(&regions);
}

static bool
waits_has_stored(const struct waits *waits, const struct explained_object *object)
{
    for (size_t i = 0; i < waits->stored_count; i++)
        if (strcmp(waits->stored[i].sop_instance_uid, object->peek->sop_instance_uid) == 0)
            return true;
    return false;
}

static void
waits_search_run(const struct waits *waits, struct waits_search *search)
{
    char path[4096];
    for (size_t i = 0; i < waits->stored_count; i++) {
        const struct report_object *row = &waits->stored[i];
        snprintf(path, sizeof path, "%s/%s", waits->objects->conf->root, row->path);
        if (!row->own && !row->missing && !row->superseded_by[0] &&
            wanted_fits(search->wanted, row->kind, row->sender))
            waits_consider(search, path, row->path);
    }
    for (size_t i = 0; i < waits->objects->count; i++) {
        const struct explained_object *object = &waits->objects->items[i];
        const struct report_object *row = object_row(object);
        if (wanted_fits(search->wanted, object->peek->kind, row ? row->sender : "") &&
            waits_is_drawn_on(waits, object->peek) && !waits_has_stored(waits, object))
            waits_consider(search, object->path, object->path);
    }
    if (search->wanted->optional && search->code == CODE_ROI_NOT_FOUND)
        search->code = CODE_NONE;
    if (search->offered > 0)
        return;
    search->code = search->wanted->optional ? CODE_OBJECT_OPTIONAL : CODE_OBJECT_WAITING;
    snprintf(search->words, sizeof search->words, "not stored%s%s",
             search->wanted->own ? "; give results of Noctule with noctule run --object" : "",
             search->wanted->optional ? "; without it the segment is empty" : "");
}

static void
waits_put(const struct waits *waits, const struct conf_pipeline *pipeline,
          const struct conf_segment *segment)
{
    struct waits_search search = {.segment = segment, .wanted = wanted_of(segment)};
    char text[EXPLAINED_TEXT];
    if (!search.wanted)
        return;
    waits_search_run(waits, &search);
    wanted_describe(search.wanted, text);
    if (!waits->json) {
        explained_put_line("  waits for", "%s: segment \"%s\" is %s: %s%s%s%s", pipeline->name,
                           segment->label, text, search.offered > 0 ? "found, " : "", search.path,
                           search.offered > 0 ? ": " : "", search.words);
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

/* Returns true if an earlier job has the same pipeline, so that each pipeline is listed once. */
static bool
waits_are_listed(const struct explained *explained, size_t job)
{
    size_t first = 0;
    while (strcmp(explained->jobs[first].pipeline, explained->jobs[job].pipeline) != 0)
        first++;
    return first < job;
}

int
explained_objects_put_waits(const struct explained_objects *objects,
                            const struct explained *explained, struct json *json)
{
    struct waits waits = {objects, explained, NULL, 0, json};
    struct error error;
    const struct report_object_filter filter = {
        .drawn_on = explained->files->headers.instances[0]->series_uid};
    if (objects->report &&
        report_objects(objects->report, &filter, &waits.stored, &waits.stored_count, &error)) {
        cli_print_error("%s", error.message);
        return -EIO;
    }
    if (json)
        json_begin_array(json, "waits_for");
    for (size_t i = 0; i < explained->result.count; i++) {
        const struct conf_pipeline *pipeline =
            conf_find_pipeline(objects->conf, explained->jobs[i].pipeline);
        for (size_t k = 0; !waits_are_listed(explained, i) && k < pipeline->segment_count; k++)
            waits_put(&waits, pipeline, &pipeline->segments[k]);
    }
    if (json)
        json_end_array(json);
    report_objects_free(waits.stored, waits.stored_count);
    return 0;
}
