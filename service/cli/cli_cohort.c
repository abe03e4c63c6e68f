/*
 * cli_cohort.c - `noctule cohort`: prints the features of a pipeline as one table for statistics.
 */
#include "service/cli/cli.h"

#include "base/durable.h"
#include "base/text.h"
#include "db/report.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct cohort_request {
    struct report_cohort what;
    const char *dictionary;
};

static int
cohort_check(struct cli_call *call)
{
    const struct cohort_request *request = call->options;
    return request->what.pipeline ? EXIT_OK : cli_usage_error(call->command->name, "needs --pipeline NAME");
}

static int
cohort_print(struct report *report, const struct cohort_request *request)
{
    struct text_stream dictionary;
    struct error error = {0};
    if (request->dictionary && text_open(&dictionary) < 0) {
        cli_print_error("out of memory");
        return EXIT_PARTIAL;
    }
    int rc = report_cohort(report, &request->what, stdout, request->dictionary ? dictionary.out : NULL, &error);
    int saved = request->dictionary ? text_close(&dictionary) : 0;
    if (request->dictionary && rc == 0 && saved == 0)
        saved = durable_write(AT_FDCWD, request->dictionary, dictionary.bytes, dictionary.size, 0644, DURABLE_REPLACE);
    if (request->dictionary)
        free(dictionary.bytes);
    if (rc) {
        cli_print_error("%s", error.message);
        return rc == -ENOENT ? EXIT_NOT_FOUND : EXIT_DATABASE;
    }
    if (saved)
        cli_print_error("%s: cannot write the dictionary: %s", request->dictionary, strerror(-saved));
    return saved ? EXIT_PARTIAL : EXIT_OK;
}

static int
cohort_run(struct cli_call *call)
{
    struct report *report;
    int status = cli_open_report(call->context->conf, &report);
    if (status != EXIT_OK)
        return status;
    status = cohort_print(report, call->options);
    report_close(report);
    return status;
}

const struct cli_command cli_cohort = {
    .name = "cohort",
    .help = "print features as a table (CSV): one row per region, one column per feature",
    .usage = {"--pipeline NAME [OPTION]... > FILE.csv"},
    .options =
        (const struct cli_option[]){
            {"pipeline", 'p', &cli_pipeline, CLI_AT(struct cohort_request, what.pipeline),
             .help = "pipeline of the jobs (required)"},
            {"since", 0, &cli_when, CLI_AT(struct cohort_request, what.since),
             .help = "only jobs that ended since: 2026-01-31, or 36h ago"},
            {"modality", 0, &cli_text, CLI_AT(struct cohort_request, what.modality),
             .help = "only this modality: CT, MR, ...", .noun = "MODALITY"},
            {"all-revisions", 0, &cli_flag, CLI_AT(struct cohort_request, what.all_revisions),
             .help = "include superseded results"},
            {"dictionary", 0, &cli_file, CLI_AT(struct cohort_request, dictionary),
             .help = "write a description of the columns to this file, with units and settings"},
            {0}},
    .size = sizeof(struct cohort_request),
    .check = cohort_check,
    .run = cohort_run};
