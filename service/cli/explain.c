/*
 * explain.c - `noctule explain`: what would become of files or of a stored series, and why.
 *
 * Reads, and runs nothing.
 */
#include "service/cli/cli.h"

#include "db/report.h"
#include "service/cli/collect.h"
#include "service/cli/explained.h"
#include "service/common/parallel.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct explain {
    const struct conf *conf;
    const char *pipeline;
    bool json;
    struct explained_request request;
    bool is_stored; /* a series of the database */
    struct report_stored stored;
    struct collection files;
    struct headers headers;
    struct passed_over passed_over;
    struct sorted sorted;
    struct json out;
};

/* --------------------------------------------------------------------------------- input ---- */

static int
explain_parse(int argc, char **argv, struct explain *explain)
{
    const struct cli_option options[] = {{"pipeline", 'p', .text = &explain->pipeline},
                                         {"json", 'j', .flag = &explain->json},
                                         {.name = NULL}};
    if (cli_parse_options(argc, argv, options) != EXIT_OK)
        return EXIT_USAGE;
    if (optind == argc)
        return cli_usage_error(argv[0], "needs files, folders or a Series Instance UID");
    return explain->pipeline
               ? cli_find_pipeline(explain->conf, explain->pipeline, &explain->request.pipeline)
               : EXIT_OK;
}

/* The files of a stored series, below the root folder. */
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
        cli_complain("%s", error.message);
        return rc == -ENOENT ? EXIT_NOT_FOUND : EXIT_DATABASE;
    }
    explain->is_stored = true;
    explain->request.called_ae = explain->stored.called_ae;
    explain->request.accept_missing = explain->stored.missing_accepted_by[0] != '\0';
    rc = explain_collect_stored(explain);
    if (rc)
        cli_complain("%s", strerror(-rc));
    return rc ? EXIT_PARTIAL : EXIT_OK;
}

static int
explain_collect(struct explain *explain, char **inputs, int count)
{
    if (count == 1 && cli_is_uid(inputs[0]) && access(inputs[0], F_OK) != 0)
        return explain_find_stored(explain, inputs[0]);
    int status = EXIT_OK;
    for (int i = 0; i < count && status == EXIT_OK; i++)
        status = cli_collect(&explain->files, inputs[i]);
    return status;
}

/* What a stored series lacks is in quarantine, or has never come whole. */
static void
add_lacking(struct explain *explain)
{
    if (explain->sorted.count != 1 || explain->stored.lacking == 0)
        return;
    struct sorted_series *series = &explain->sorted.series[0];
    series->damaged += (size_t)explain->stored.lacking;
    error_set(&series->damage, 0, CODE_INCOMPLETE_SERIES,
              "%lld of its instances came damaged or not whole (v_quarantine). Send them again, or "
              "take the series as it is (noctule complete --accept-missing).",
              (long long)explain->stored.lacking);
}

static int
explain_sort(struct explain *explain)
{
    int rc = headers_read(explain->files.paths, explain->files.count, parallel_processors(), NULL,
                          &explain->headers);
    if (rc == 0)
        rc = sorted_make(&explain->headers, explain->files.paths, &explain->passed_over,
                         &explain->sorted);
    for (size_t i = 0; rc == 0 && i < explain->headers.count; i++) {
        const struct error *error = &explain->headers.errors[i];
        if (explain->headers.rc[i] && sorted_is_other_thing(error))
            rc = passed_over_add(&explain->passed_over, explain->files.paths[i], error->code,
                                 error->message);
    }
    add_lacking(explain);
    if (rc)
        cli_complain("%s", strerror(-rc));
    return rc ? EXIT_PARTIAL : EXIT_OK;
}

/* --------------------------------------------------------------------------------- telling --- */

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
        explained_put_line("accepted", "as it is, by %s", stored->missing_accepted_by);
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
    json_integer(&explain->out, "quarantined", stored->lacking);
    json_string(&explain->out, "missing_accepted_by", stored->missing_accepted_by);
    json_end_object(&explain->out);
}

static void
put_explained(struct explain *explain, const struct explained *explained)
{
    if (explain->json) {
        json_begin_object(&explain->out, NULL);
        explained_to_json(explained, &explain->out);
        if (explain->is_stored)
            put_stored_json(explain);
        json_end_object(&explain->out);
        return;
    }
    explained_to_text(explained);
    if (explain->is_stored)
        put_stored(explain);
    putchar('\n');
}

static int
explain_each(struct explain *explain)
{
    int rc = 0;
    for (size_t i = 0; i < explain->sorted.count && rc == 0; i++) {
        struct explained explained;
        rc = explained_make(&explain->request, &explain->sorted.series[i], &explained);
        if (rc)
            continue;
        put_explained(explain, &explained);
        explained_free(&explained);
    }
    if (rc)
        cli_complain("%s", strerror(-rc));
    return rc ? EXIT_PARTIAL : EXIT_OK;
}

/* What cannot be read, and why. */
static void
put_damaged(struct explain *explain)
{
    if (explain->json)
        json_begin_array(&explain->out, "warnings");
    for (size_t i = 0; i < explain->headers.count; i++) {
        const struct error *error = &explain->headers.errors[i];
        if (explain->headers.rc[i] == 0 || sorted_is_other_thing(error))
            continue;
        if (explain->json)
            passed_over_put_one(&explain->out, explain->files.paths[i], error->code,
                                error->message);
        else
            explained_put_line("cannot be read", "%s: %s: %s", explain->files.paths[i],
                               code_name(error->code), error->message);
    }
    if (explain->json)
        json_end_array(&explain->out);
}

static void
put_hint(const struct explain *explain)
{
    if (explain->headers.count == 1 && explain->sorted.count == 1 && !explain->is_stored)
        explained_put_line("note", "one file is judged as if it were the whole series; name its "
                                   "folder to see where it belongs");
}

static int
explain_tell(struct explain *explain)
{
    if (explain->json) {
        explain->out.out = stdout;
        json_begin_object(&explain->out, NULL);
        passed_over_put(&explain->passed_over, &explain->out);
    }
    put_damaged(explain);
    if (explain->json)
        json_begin_array(&explain->out, "series");
    int status = explain_each(explain);
    if (explain->json) {
        json_end_array(&explain->out);
        json_end_object(&explain->out);
    } else {
        put_hint(explain);
        fflush(stdout);
        passed_over_tell(&explain->passed_over);
    }
    if (status == EXIT_OK && explain->sorted.count == 0)
        cli_complain("no image to process among %zu files", explain->headers.count);
    return status;
}

static void
explain_release(struct explain *explain)
{
    sorted_free(&explain->sorted);
    passed_over_clear(&explain->passed_over);
    headers_free(&explain->headers);
    collect_free(&explain->files);
    if (explain->is_stored)
        report_stored_clear(&explain->stored);
}

int
cli_explain(const struct cli_context *context, int argc, char **argv)
{
    struct explain explain = {.conf = context->conf,
                              .request = {.conf = context->conf, .called_ae = ""}};
    int status = explain_parse(argc, argv, &explain);
    dicom_init();
    if (status == EXIT_OK)
        status = explain_collect(&explain, argv + optind, argc - optind);
    if (status == EXIT_OK)
        status = explain_sort(&explain);
    if (status == EXIT_OK)
        status = explain_tell(&explain);
    explain_release(&explain);
    return status;
}
