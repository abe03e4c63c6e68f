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
#include "service/cli/input/input_collect.h"
#include "service/cli/input/input_confined.h"
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

/* Collects the files of a stored series below the root folder. */
static int
explain_collect_stored(struct explain *explain)
{
    struct collection *files = &explain->files;
    files->paths = calloc(explain->stored.path_count + 1, sizeof *files->paths);
    for (size_t i = 0; files->paths && i < explain->stored.path_count; i++) {
        if (asprintf(&files->paths[i], "%s/%s", explain->conf->root, explain->stored.paths[i]) < 0)
            return -ENOMEM;
        files->count++;
    }
    return files->paths ? 0 : -ENOMEM;
}

static int
explain_find_stored(struct explain *explain, const char *series_uid)
{
    struct report *report;
    struct error error;
    int status = cli_open_report(explain->conf, &report);
    if (status != EXIT_OK)
        return status;
    int rc = report_stored_series(report, series_uid, &explain->stored, &error);
    report_close(report);
    if (rc) {
        cli_print_error("%s", error.message);
        return rc == -ENOENT ? EXIT_NOT_FOUND : EXIT_DATABASE;
    }
    if (explain->stored.removed_at[0]) {
        cli_print_error("%s: its files were removed at %s: send the series again",
                        code_name(CODE_SERIES_REMOVED), explain->stored.removed_at);
        return EXIT_NOT_FOUND;
    }
    explain->is_stored = true;
    explain->request.called_ae = explain->stored.called_ae;
    explain->request.sender = explain->stored.sender;
    explain->request.inbox = conf_find_inbox(explain->conf, explain->stored.inbox);
    explain->request.accept_missing = explain->stored.missing_accepted_by[0] != '\0';
    rc = explain_collect_stored(explain);
    if (rc)
        cli_print_error("%s", strerror(-rc));
    return rc ? EXIT_PARTIAL : EXIT_OK;
}

static int
explain_add_neighbours(struct explain *explain, const char *folder, const struct collection *known)
{
    struct collection neighbours = {.flat = true};
    int status = cli_collect(&neighbours, folder);
    for (size_t i = 0; i < neighbours.count && status == EXIT_OK; i++)
        if (!input_collect_has(known, neighbours.paths[i]) &&
            input_collect_add(&explain->files, neighbours.paths[i]))
            status = EXIT_PARTIAL;
    input_collect_free(&neighbours);
    return status;
}

/* For a file given by name, adds the files of its folder, which may belong to its series. */
static int
explain_collect_neighbours(struct explain *explain)
{
    char folder[PATH_MAX] = "", before[PATH_MAX] = "";
    struct collection known = {.count = explain->given};
    known.paths = calloc(known.count, sizeof *known.paths);
    int status = known.paths ? EXIT_OK : EXIT_PARTIAL;
    if (known.paths)
        memcpy(known.paths, explain->files.paths, known.count * sizeof *known.paths);
    if (known.paths)
        input_collect_sort(&known);
    input_collect_sort(&explain->named);
    for (size_t i = 0; i < explain->named.count && status == EXIT_OK; i++) {
        const char *path = explain->named.paths[i];
        snprintf(folder, sizeof folder, "%.*s", (int)(text_base_name(path) - path), path);
        if (strcmp(folder, before) != 0)
            status = explain_add_neighbours(explain, folder, &known);
        memcpy(before, folder, sizeof before);
    }
    free(known.paths);
    return status;
}

static int
explain_collect_input(struct explain *explain, const char *input)
{
    struct stat status;
    const int exit_status = cli_collect(&explain->files, input);
    if (exit_status != EXIT_OK || stat(input, &status) != 0 || !S_ISREG(status.st_mode))
        return exit_status;
    const char *path = explain->files.paths[explain->files.count - 1];
    return input_collect_add(&explain->named, path) ? EXIT_PARTIAL : EXIT_OK;
}

static int
explain_collect(struct explain *explain, char **inputs, int count)
{
    int status = EXIT_OK;
    if (count == 1 && cli_is_uid(inputs[0]) && access(inputs[0], F_OK) != 0)
        status = explain_find_stored(explain, inputs[0]);
    else
        for (int i = 0; i < count && status == EXIT_OK; i++)
            status = explain_collect_input(explain, inputs[i]);
    explain->given = explain->files.count;
    return status == EXIT_OK && explain->named.count > 0 ? explain_collect_neighbours(explain)
                                                         : status;
}

/* Adds the instances that a stored series lacks: they are in quarantine or arrived incomplete. */
static void
add_lacking(struct explain *explain)
{
    if (explain->sorted.count != 1 || explain->stored.lacking == 0)
        return;
    struct sorted_series *series = &explain->sorted.series[0];
    series->damaged += (size_t)explain->stored.lacking;
    error_set(&series->damage, 0, CODE_INCOMPLETE_SERIES,
              "%lld of its instances arrived damaged or incomplete (v_quarantine). Send them "
              "again, or accept the series as it is (noctule complete --accept-missing).",
              (long long)explain->stored.lacking);
}

static bool
explain_covers(const struct explain *explain, const struct dicom_instance *instance)
{
    for (size_t i = 0; i < explain->given; i++) {
        const struct dicom_instance *given = explain->headers.instances[i];
        if (given && strcmp(given->series_uid, instance->series_uid) == 0)
            return true;
    }
    return false;
}

/* Drops neighbour files of other series. */
static void
explain_drop_others(struct explain *explain)
{
    struct headers *headers = &explain->headers;
    for (size_t i = explain->given; i < headers->count; i++) {
        if (!headers->instances[i] || explain_covers(explain, headers->instances[i]))
            continue;
        dicom_instance_free(headers->instances[i]);
        headers->instances[i] = NULL;
    }
}

/* Adds a file to the annotation objects or to the skipped files. */
static int
explain_add_other(struct explain *explain, size_t i)
{
    const struct error *error = &explain->headers.errors[i];
    const char *path = explain->files.paths[i];
    const int is_object = error->code == CODE_SOP_CLASS_UNSUPPORTED
                              ? explained_objects_add(&explain->objects, path)
                              : 0;
    if (is_object != 0)
        return is_object < 0 ? is_object : 0;
    return input_skipped_add(&explain->skipped, path, error->code, error->message);
}

static int
explain_sort(struct explain *explain)
{
    /* The root folder has the annotation objects of the series. */
    char root[PATH_MAX];
    snprintf(root, sizeof root, "%s/noctule.db", explain->conf->root);
    if (cli_confine(CONFINE_STEP, &explain->files, (char *const[]){root}, 1, NULL, NULL) != 0 ||
        cli_confine_calls(CONFINE_STEP) != 0)
        return EXIT_PARTIAL;
    int rc = headers_read(explain->files.paths, explain->files.count, parallel_processors(), NULL,
                          &explain->headers);
    if (rc == 0)
        explain_drop_others(explain);
    if (rc == 0)
        rc = input_sorted_make(&explain->headers, explain->files.paths, &explain->conf->series,
                               &explain->skipped, &explain->sorted);
    for (size_t i = 0; rc == 0 && i < explain->given; i++)
        if (explain->headers.rc[i] && input_sorted_is_other(&explain->headers.errors[i]))
            rc = explain_add_other(explain, i);
    add_lacking(explain);
    if (rc)
        cli_print_error("%s", strerror(-rc));
    return rc ? EXIT_PARTIAL : EXIT_OK;
}

/* --------------------------------------------------------------------------------- output ---- */

static void
put_origin(const struct explained_request *request)
{
    if (request->inbox)
        explained_put_line("received by", "inbox %s%s%s%s",
                           request->inbox->name ? request->inbox->name : "",
                           request->inbox->name ? " (" : "", request->inbox->path,
                           request->inbox->name ? ")" : "");
    if (request->sender[0])
        explained_put_line("received by", "C-STORE from %s to %s", request->sender,
                           request->called_ae);
}

static void
put_stored(const struct explain *explain)
{
    const struct report_stored *stored = &explain->stored;
    explained_put_line("stored", "%s, revision %lld%s%s", stored->state,
                       (long long)stored->revision, stored->evidence[0] ? ": " : "",
                       stored->evidence);
    if (stored->code[0])
        explained_put_line("then", "%s: %s", stored->code, stored->message);
    if (stored->missing_accepted_by[0])
        explained_put_line("accepted", "with missing instances, by %s",
                           stored->missing_accepted_by);
}

static void
put_stored_json(struct explain *explain)
{
    const struct report_stored *stored = &explain->stored;
    json_begin_object(&explain->out, "stored");
    json_string(&explain->out, "state", stored->state);
    json_integer(&explain->out, "revision", stored->revision);
    json_string(&explain->out, "evidence", stored->evidence);
    json_string(&explain->out, "code", stored->code);
    json_string(&explain->out, "message", stored->message);
    json_string(&explain->out, "called_ae", stored->called_ae);
    json_string(&explain->out, "sender", stored->sender);
    json_integer(&explain->out, "quarantined", stored->lacking);
    json_string(&explain->out, "missing_accepted_by", stored->missing_accepted_by);
    json_end_object(&explain->out);
}

/* Prints which files the result covers. */
static void
put_extent(const struct explained *explained)
{
    const size_t count = explained->files->headers.count;
    size_t named = 0;
    for (size_t i = 0; i < count; i++)
        named += explained_is_named(explained, i);
    if (named > 0 && named < count)
        explained_put_line(
            "note",
            "the result covers the series in the folder of the given files, with %zu other file%s",
            count - named, count - named == 1 ? "" : "s");
    else if (named == 1)
        explained_put_line(
            "note",
            "the folder has no other file of this series; the result is for this file alone");
}

static int
put_explained(struct explain *explain, const struct explained *explained)
{
    struct json *json = explain->json ? &explain->out : NULL;
    int rc;
    if (json) {
        json_begin_object(json, NULL);
        explained_to_json(explained, json);
        json_string(json, "inbox", explain->request.inbox ? explain->request.inbox->path : "");
        rc = explained_objects_put_waits(&explain->objects, explained, json);
        if (explain->is_stored)
            put_stored_json(explain);
        json_end_object(json);
        return rc;
    }
    explained_to_text(explained);
    put_origin(&explain->request);
    rc = explained_objects_put_waits(&explain->objects, explained, json);
    put_extent(explained);
    if (explain->is_stored)
        put_stored(explain);
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
        found[study->count++] = (struct rules_companion){
            stored->companions[k].series_uid, stored->companions[k].modality,
            stored->companions[k].body_part, stored->companions[k].description};
    for (size_t k = 0; k < explain->sorted.count && found; k++) {
        const struct dicom_instance *other = explain->sorted.series[k].headers.instances[0];
        if (k != i && strcmp(other->study_uid, own->study_uid) == 0)
            found[study->count++] = (struct rules_companion){
                other->series_uid, other->modality, other->body_part, other->series_description};
    }
    return found ? 0 : -ENOMEM;
}

static int
explain_one(struct explain *explain, size_t i)
{
    struct explained explained;
    struct rules_study study;
    int rc = explain_find_study(explain, i, &study);
    explain->request.study = &study;
    if (rc == 0)
        rc = explained_make(&explain->request, &explain->sorted.series[i], &explained);
    if (rc == 0) {
        rc = put_explained(explain, &explained);
        explained_free(&explained);
    }
    free((void *)(uintptr_t)study.series);
    return rc;
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
        if (!explain->is_stored)
            explain->request.inbox =
                inbox_of_file(explain->conf, explain->sorted.series[i].paths[0]);
        rc = explain_one(explain, i);
    }
    if (rc)
        cli_print_error("%s", strerror(-rc));
    return rc ? EXIT_PARTIAL : EXIT_OK;
}

/* Prints the files that cannot be read, with the reason. */
static void
put_damaged(struct explain *explain)
{
    if (explain->json)
        json_begin_array(&explain->out, "warnings");
    for (size_t i = 0; i < explain->given; i++) {
        const struct error *error = &explain->headers.errors[i];
        if (explain->headers.rc[i] == 0 || input_sorted_is_other(error))
            continue;
        if (explain->json)
            input_skipped_put_one(&explain->out, explain->files.paths[i], error->code,
                                  error->message);
        else
            explained_put_line("cannot be read", "%s: %s: %s", explain->files.paths[i],
                               code_name(error->code), error->message);
    }
    if (explain->json)
        json_end_array(&explain->out);
}

static int
explain_print(struct explain *explain)
{
    if (explain->json) {
        explain->out.out = stdout;
        json_begin_object(&explain->out, NULL);
        input_skipped_put(&explain->skipped, &explain->out);
    }
    put_damaged(explain);
    explained_objects_put(&explain->objects, explain->json ? &explain->out : NULL);
    if (explain->json)
        json_begin_array(&explain->out, "series");
    int status = explain_each(explain);
    if (explain->json) {
        json_end_array(&explain->out);
        json_end_object(&explain->out);
    } else {
        fflush(stdout);
        input_skipped_print(&explain->skipped);
    }
    if (status == EXIT_OK && explain->sorted.count == 0 && explain->objects.count == 0)
        cli_print_error("no image to process among %zu files", explain->given);
    return status;
}

static void
explain_release(struct explain *explain)
{
    explained_objects_close(&explain->objects);
    input_sorted_free(&explain->sorted);
    input_skipped_clear(&explain->skipped);
    headers_free(&explain->headers);
    input_collect_free(&explain->files);
    input_collect_free(&explain->named);
    report_stored_clear(&explain->stored);
}

static int
explain_run(struct cli_call *call)
{
    struct explain *explain = call->options;
    explain->conf = call->context->conf;
    explain->request.conf = explain->conf;
    explain->request.called_ae = explain->request.sender = "";
    explain->request.named = &explain->named;
    int status = explain->pipeline ? cli_find_pipeline(explain->conf, explain->pipeline,
                                                       &explain->request.pipeline)
                                   : EXIT_OK;
    dicom_init();
    if (status == EXIT_OK)
        status = explain_collect(explain, call->arguments, call->count);
    if (status == EXIT_OK)
        explained_objects_open(&explain->objects, explain->conf);
    if (status == EXIT_OK)
        status = explain_sort(explain);
    if (status == EXIT_OK)
        status = explain_print(explain);
    explain_release(explain);
    return status;
}

const struct cli_command cli_explain = {
    .name = "explain",
    .help = "show the processing of files or of a stored series, with reasons; no job runs",
    .usage = {"[--pipeline NAME] [--json] FILE...", "[--pipeline NAME] [--json] FOLDER...",
              "[--pipeline NAME] [--json] SERIES_UID"},
    .options = (const struct cli_option[]){{"pipeline", 'p', &cli_pipeline,
                                            CLI_AT(struct explain, pipeline),
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
