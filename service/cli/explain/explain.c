/*
 * explain.c - `noctule explain`: shows the processing of files or of a stored series, with reasons.
 *
 * It only reads. No job runs.
 */
#include "service/cli/cli.h"

#include "base/text.h"
#include "db/report.h"
#include "service/cli/explain/explained.h"
#include "service/cli/explain/explained_objects.h"
#include "service/common/parallel.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct explain {
    const struct conf *conf;
    const char *pipeline;
    bool json;
    struct explained_request request;
    bool is_stored; /* the input is a series of the database */
    struct report_stored stored;
    struct collection files;
    size_t given;            /* number of files given; later ones come from the same folders */
    struct collection named; /* files given by name, sorted by path */
    struct headers headers;
    struct input_skipped skipped;
    struct explained_objects objects;
    struct sorted sorted;
    struct json out;
};

/* --------------------------------------------------------------------------------- input ---- */

static int
explain_find_stored(struct explain *explain, const char *series_uid)
{
    struct report_stored *stored = &explain->stored;
    struct collection *files = &explain->files;
    struct report *report;
    struct error error;
    int status = cli_open_report(explain->conf, &report);
    if (status != EXIT_OK)
        return status;
    int rc = report_stored_series(report, series_uid, stored, &error);
    report_close(report);
    if (rc) {
        cli_print_error("%s", error.message);
        return rc == -ENOENT ? EXIT_NOT_FOUND : EXIT_DATABASE;
    }
    if (stored->removed_at[0]) {
        cli_print_error("%s: its files were removed at %s: send the series again", code_name(CODE_SERIES_REMOVED),
                        stored->removed_at);
        return EXIT_NOT_FOUND;
    }
    explain->is_stored = true;
    explain->request.called_ae = stored->called_ae;
    explain->request.sender = stored->sender;
    explain->request.inbox = conf_find_inbox(explain->conf, stored->inbox);
    explain->request.accept_missing = stored->missing_accepted_by[0] != '\0';
    files->paths = calloc(stored->path_count + 1, sizeof *files->paths);
    rc = files->paths ? 0 : -ENOMEM;
    for (size_t i = 0; i < stored->path_count && rc == 0; i++) {
        if (asprintf(&files->paths[i], "%s/%s", explain->conf->root, stored->paths[i]) < 0)
            rc = -ENOMEM;
        else
            files->count++;
    }
    if (rc)
        cli_print_error("%s", strerror(-rc));
    return rc ? EXIT_PARTIAL : EXIT_OK;
}

/* For a file given by name, adds the files of its folder, which may belong to its series. */
static int
explain_collect_neighbours(struct explain *explain)
{
    char folder[PATH_MAX] = "", before[PATH_MAX] = "";
    struct collection known = {.count = explain->given};
    known.paths = calloc(known.count, sizeof *known.paths);
    if (!known.paths)
        return EXIT_PARTIAL;
    memcpy(known.paths, explain->files.paths, known.count * sizeof *known.paths);
    input_collect_sort(&known);
    input_collect_sort(&explain->named);
    int status = EXIT_OK;
    for (size_t i = 0; i < explain->named.count && status == EXIT_OK; i++) {
        const char *path = explain->named.paths[i];
        struct collection neighbours = {.flat = true};
        snprintf(folder, sizeof folder, "%.*s", (int)(text_base_name(path) - path), path);
        if (strcmp(folder, before) != 0)
            status = cli_collect(&neighbours, folder);
        for (size_t k = 0; k < neighbours.count && status == EXIT_OK; k++)
            if (!input_collect_has(&known, neighbours.paths[k]) &&
                input_collect_add(&explain->files, neighbours.paths[k]))
                status = EXIT_PARTIAL;
        input_collect_free(&neighbours);
        memcpy(before, folder, sizeof before);
    }
    free(known.paths);
    return status;
}

static int
explain_collect(struct explain *explain, char **inputs, int count)
{
    const bool is_uid = count == 1 && text_is_uid(inputs[0]) && access(inputs[0], F_OK) != 0;
    int status = is_uid ? explain_find_stored(explain, inputs[0]) : EXIT_OK;
    for (int i = 0; i < count && !is_uid && status == EXIT_OK; i++) {
        struct stat file;
        status = cli_collect(&explain->files, inputs[i]);
        if (status == EXIT_OK && stat(inputs[i], &file) == 0 && S_ISREG(file.st_mode) &&
            input_collect_add(&explain->named, explain->files.paths[explain->files.count - 1]))
            status = EXIT_PARTIAL;
    }
    explain->given = explain->files.count;
    return status == EXIT_OK && explain->named.count > 0 ? explain_collect_neighbours(explain) : status;
}

/* Drops neighbour files of other series. */
static void
explain_drop_others(struct explain *explain)
{
    struct dicom_instance **instances = explain->headers.instances;
    for (size_t i = explain->given; i < explain->headers.count; i++) {
        size_t same = 0;
        while (instances[i] && same < explain->given &&
               !(instances[same] && strcmp(instances[same]->series_uid, instances[i]->series_uid) == 0))
            same++;
        if (!instances[i] || same < explain->given)
            continue;
        dicom_instance_free(instances[i]);
        instances[i] = NULL;
    }
}

static int
explain_sort(struct explain *explain)
{
    /* The root folder has the annotation objects of the series. */
    char root[PATH_MAX];
    snprintf(root, sizeof root, "%s/noctule.db", explain->conf->root);
    if (cli_confine(CONFINE_STEP, &explain->files, (char *const[]){root}, 1, &(struct command_places){0}) != 0 ||
        cli_confine_calls(CONFINE_STEP) != 0)
        return EXIT_PARTIAL;
    int rc = headers_read(explain->files.paths, explain->files.count, parallel_processors(), NULL, &explain->headers);
    if (rc == 0)
        explain_drop_others(explain);
    if (rc == 0)
        rc = input_sorted_make(&explain->headers, explain->files.paths, &explain->conf->series, &explain->skipped,
                               &explain->sorted);
    for (size_t i = 0; rc == 0 && i < explain->given; i++)
        if (explain->headers.rc[i] && input_sorted_is_other(&explain->headers.errors[i]))
            rc = input_objects_sort(&explain->objects.found, &explain->skipped, explain->files.paths[i],
                                    &explain->headers.errors[i]);
    if (rc == 0)
        rc = explained_objects_find_rows(&explain->objects);
    if (rc == 0 && explain->sorted.count == 1 && explain->stored.lacking > 0) {
        /* instances that the stored series lacks are in quarantine, or arrived incomplete */
        struct sorted_series *series = &explain->sorted.series[0];
        series->damaged += (size_t)explain->stored.lacking;
        error_set(&series->damage, 0, CODE_INCOMPLETE_SERIES,
                  "%lld of its instances arrived damaged or incomplete (v_quarantine). Send them "
                  "again, or accept the series as it is (noctule complete --accept-missing).",
                  (long long)explain->stored.lacking);
    }
    if (rc)
        cli_print_error("%s", strerror(-rc));
    return rc ? EXIT_PARTIAL : EXIT_OK;
}

/* --------------------------------------------------------------------------------- output ---- */

static void
put_stored_json(const struct report_stored *stored, struct json *json)
{
    json_begin_object(json, "stored");
    json_string(json, "state", stored->state);
    json_integer(json, "revision", stored->revision);
    json_string(json, "evidence", stored->evidence);
    json_string(json, "code", stored->code);
    json_string(json, "message", stored->message);
    json_string(json, "called_ae", stored->called_ae);
    json_string(json, "sender", stored->sender);
    json_integer(json, "quarantined", stored->lacking);
    json_string(json, "missing_accepted_by", stored->missing_accepted_by);
    json_end_object(json);
}

/* Prints the origin of the series, and the files that the result covers. */
static void
put_extent(const struct explained_request *request, const struct explained *explained)
{
    const struct conf_inbox *inbox = request->inbox;
    const size_t count = explained->files->headers.count;
    size_t named = 0;
    for (size_t i = 0; i < count; i++)
        named += input_collect_has(explained->named, explained->files->paths[i]);
    if (named > 0 && named < count)
        explained_put_line("note",
                           "the result covers the series in the folder of the given files, with %zu other file%s",
                           count - named, count - named == 1 ? "" : "s");
    else if (named == 1)
        explained_put_line("note", "the folder has no other file of this series; the result is for this file alone");
    if (inbox)
        explained_put_line("received by", "inbox %s%s%s%s", inbox->name ? inbox->name : "", inbox->name ? " (" : "",
                           inbox->path, inbox->name ? ")" : "");
    if (request->sender[0])
        explained_put_line("received by", "C-STORE from %s to %s", request->sender, request->called_ae);
}

static int
put_explained(struct explain *explain, const struct explained *explained)
{
    const struct report_stored *stored = &explain->stored;
    struct json *json = explain->json ? &explain->out : NULL;
    if (json) {
        json_begin_object(json, NULL);
        explained_to_json(explained, json);
        json_string(json, "inbox", explain->request.inbox ? explain->request.inbox->path : "");
    } else {
        explained_to_text(explained);
    }
    int rc = explained_objects_put_waits(&explain->objects, explained, json);
    if (json) {
        if (explain->is_stored)
            put_stored_json(stored, json);
        json_end_object(json);
        return rc;
    }
    put_extent(&explain->request, explained);
    if (explain->is_stored) {
        explained_put_line("stored", "%s, revision %lld%s%s", stored->state, (long long)stored->revision,
                           stored->evidence[0] ? ": " : "", stored->evidence);
        if (stored->code[0])
            explained_put_line("then", "%s: %s", stored->code, stored->message);
        if (stored->missing_accepted_by[0])
            explained_put_line("accepted", "with missing instances, by %s", stored->missing_accepted_by);
    }
    putchar('\n');
    return rc;
}

/* Finds the other series of the study of series i, among the stored ones and among the files.
 * Returns 0 or -ENOMEM. The caller must free the list. */
static int
explain_find_study(const struct explain *explain, size_t i, struct rules_study *study)
{
    const struct report_stored *stored = &explain->stored;
    const struct dicom_instance *own = explain->sorted.series[i].headers.instances[0];
    const size_t room = stored->companion_count + explain->sorted.count;
    struct rules_companion *found = calloc(room + 1, sizeof *found);
    *study = (struct rules_study){.series = found};
    for (size_t k = 0; k < stored->companion_count && found; k++)
        found[study->count++] =
            (struct rules_companion){stored->companions[k].series_uid, stored->companions[k].modality,
                                     stored->companions[k].body_part, stored->companions[k].description};
    for (size_t k = 0; k < explain->sorted.count && found; k++) {
        const struct dicom_instance *other = explain->sorted.series[k].headers.instances[0];
        if (k != i && strcmp(other->study_uid, own->study_uid) == 0)
            found[study->count++] = (struct rules_companion){other->series_uid, other->modality, other->body_part,
                                                             other->series_description};
    }
    return found ? 0 : -ENOMEM;
}

/* Returns the inbox that contains the file, or NULL. */
static const struct conf_inbox *
inbox_of_file(const struct conf *conf, const char *path)
{
    char folder[PATH_MAX];
    for (size_t i = 0; i < conf->inbox_count; i++) {
        const size_t length = realpath(conf->inboxes[i].path, folder) ? strlen(folder) : 0;
        if (length > 0 && strncmp(path, folder, length) == 0 && path[length] == '/')
            return &conf->inboxes[i];
    }
    return NULL;
}

static int
explain_each(struct explain *explain)
{
    int rc = 0;
    for (size_t i = 0; i < explain->sorted.count && rc == 0; i++) {
        const struct sorted_series *series = &explain->sorted.series[i];
        struct explained explained;
        struct rules_study study;
        if (!explain->is_stored)
            explain->request.inbox = inbox_of_file(explain->conf, series->paths[0]);
        rc = explain_find_study(explain, i, &study);
        explain->request.study = &study;
        if (rc == 0)
            rc = explained_make(&explain->request, series, &explained);
        if (rc == 0) {
            rc = put_explained(explain, &explained);
            explained_free(&explained);
        }
        free((void *)(uintptr_t)study.series);
    }
    if (rc)
        cli_print_error("%s", strerror(-rc));
    return rc ? EXIT_PARTIAL : EXIT_OK;
}

static int
explain_print(struct explain *explain)
{
    const struct headers *headers = &explain->headers;
    struct json *json = explain->json ? &explain->out : NULL;
    explain->out.out = stdout;
    if (json) {
        json_begin_object(json, NULL);
        input_skipped_put(&explain->skipped, json);
        input_skipped_put_damaged(headers, explain->files.paths, explain->given, json);
    }
    for (size_t i = 0; i < explain->given && !json; i++)
        if (headers->rc[i] != 0 && !input_sorted_is_other(&headers->errors[i]))
            explained_put_line("cannot be read", "%s: %s: %s", explain->files.paths[i],
                               code_name(headers->errors[i].code), headers->errors[i].message);
    explained_objects_put(&explain->objects, json);
    if (json)
        json_begin_array(json, "series");
    int status = explain_each(explain);
    if (json) {
        json_end_array(json);
        json_end_object(json);
    } else {
        fflush(stdout);
        input_skipped_print(&explain->skipped);
    }
    if (status == EXIT_OK && explain->sorted.count == 0 && explain->objects.found.count == 0)
        cli_print_error("no image to process among %zu files", explain->given);
    return status;
}

static int
explain_run(struct cli_call *call)
{
    struct explain *explain = call->options;
    explain->conf = call->context->conf;
    explain->request.conf = explain->conf;
    explain->request.called_ae = explain->request.sender = "";
    explain->request.named = &explain->named;
    int status =
        explain->pipeline ? cli_find_pipeline(explain->conf, explain->pipeline, &explain->request.pipeline) : EXIT_OK;
    dicom_init();
    if (status == EXIT_OK)
        status = explain_collect(explain, call->arguments, call->count);
    if (status == EXIT_OK) {
        struct error error;
        explain->objects = (struct explained_objects){.conf = explain->conf};
        if (cli_try_report(explain->conf, &explain->objects.report, &error) < 0)
            explain->objects.report = NULL;
        status = explain_sort(explain);
    }
    if (status == EXIT_OK)
        status = explain_print(explain);
    explained_objects_close(&explain->objects);
    input_sorted_free(&explain->sorted);
    input_skipped_clear(&explain->skipped);
    headers_free(&explain->headers);
    input_collect_free(&explain->files);
    input_collect_free(&explain->named);
    report_stored_clear(&explain->stored);
    return status;
}

const struct cli_command cli_explain = {
    .name = "explain",
    .help = "show the processing of files or of a stored series, with reasons; no job runs",
    .usage = {"[--pipeline NAME] [--json] FILE...", "[--pipeline NAME] [--json] FOLDER...",
              "[--pipeline NAME] [--json] SERIES_UID"},
    .options = (const struct cli_option[]){{"pipeline", 'p', &cli_pipeline, CLI_AT(struct explain, pipeline),
                                            .help = "use this pipeline instead of the rules"},
                                           CLI_JSON(struct explain),
                                           {0}},
    .size = sizeof(struct explain),
    .kind = &cli_file,
    .min_arguments = 1,
    .max_arguments = INT_MAX,
    .needs = "files, folders or a Series Instance UID",
    .as_written = true,
    .run = explain_run};
