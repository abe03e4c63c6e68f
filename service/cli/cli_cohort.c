/*
 * cli_cohort.c - `noctule cohort`: prints the features of a pipeline as one table for statistics; and cohort_tables.h.
 */
#include "service/cli/cohort_tables.h"

#include "base/durable.h"
#include "service/cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --------------------------------------------------------------------------------- files ---- */

/* A table that is written beside its path, and renamed when it is complete. */
struct cohort_file {
    const char *path;
    char *part;
    FILE *out;
};

static int
file_begin(struct cohort_file *file, const char *path)
{
    *file = (struct cohort_file){.path = path};
    if (!path || strcmp(path, COHORT_STANDARD_OUTPUT) == 0) {
        file->out = path ? stdout : NULL;
        return 0;
    }
    if (asprintf(&file->part, "%s.part", path) < 0) {
        file->part = NULL;
        return -ENOMEM;
    }
    const int fd = durable_create(AT_FDCWD, file->part, 0644);
    if (fd >= 0 && !(file->out = fdopen(fd, "w"))) {
        close(fd);
        return -ENOMEM;
    }
    return fd < 0 ? fd : 0;
}

/* Keeps the file if `rc` is 0, else removes it. Returns the first failure. */
static int
file_end(struct cohort_file *file, int rc)
{
    const bool is_file = file->out && file->out != stdout;
    if (is_file && rc == 0 && (fflush(file->out) != 0 || fsync(fileno(file->out)) != 0))
        rc = -errno;
    if (is_file && fclose(file->out) != 0 && rc == 0)
        rc = -errno;
    if (is_file && rc == 0 && rename(file->part, file->path) != 0)
        rc = -errno;
    if (is_file && rc)
        unlink(file->part);
    free(file->part);
    return rc;
}

/* ------------------------------------------------------------------------------ messages ---- */

static const char *
cohort_plural(int64_t count)
{
    return count == 1 ? "" : "s";
}

/* Prints the numbers of jobs and patients without a row. */
static void
print_failed(const struct report_cohort_counts *counts, const char *failed_by)
{
    if (counts->failed == 0)
        return;
    cli_print_error("without a row: %s (jobs, series and files). %" PRId64
                    " patient%s not in the table, which has %" PRId64 " job%s of %" PRId64
                    " patient%s. %s lists the reasons.",
                    counts->states, counts->missing, counts->missing == 1 ? " is" : "s are", counts->jobs,
                    cohort_plural(counts->jobs), counts->patients, cohort_plural(counts->patients), failed_by);
}

/* Prints a note unless all patients have their plain ID. */
static void
print_identifiers(const struct report_cohort_counts *counts)
{
    if (counts->hashed > 0 && counts->plain > 0)
        cli_print_error("the column patient mixes pseudonyms (%" PRId64 " job%s) and plain IDs (%" PRId64
                        "), because the option identifiers changed: one patient may have both",
                        counts->hashed, cohort_plural(counts->hashed), counts->plain);
    else if (counts->hashed > 0)
        cli_print_error(
            "the column patient has pseudonyms, because the option identifiers was \"hashed\" when the images "
            "were received. noctule series --patient ID finds those of a plain ID; \"plain\" stores plain IDs "
            "of images that arrive from then on");
    if (counts->unnamed > 0)
        cli_print_error("the column patient is empty for %" PRId64
                        " job%s: the option identifiers stored no Patient ID, or the images have none",
                        counts->unnamed, cohort_plural(counts->unnamed));
}

int
cohort_tables_write(struct report *report, const struct report_cohort *what, const struct cohort_tables *tables)
{
    const char *const paths[] = {tables->table, tables->dictionary, tables->reasons, tables->failed};

    enum { FAILED = 3, FILES = sizeof paths / sizeof *paths };
    struct cohort_file files[FILES] = {0};
    struct report_cohort_counts counts;
    struct error error = {0};
    int opened = 0, rc = 0, status = EXIT_OK;
    for (int i = 0; i < FILES && opened == 0; i++)
        if ((opened = file_begin(&files[i], paths[i])) != 0)
            cli_print_error("%s: cannot write the table: %s", paths[i], strerror(-opened));
    if (opened == 0) {
        const struct report_cohort_out out = {files[0].out, files[1].out, files[2].out, files[FAILED].out};
        rc = report_cohort(report, what, &out, &counts, &error);
    }
    for (int i = 0; i < FILES; i++) {
        const int ended = file_end(&files[i], opened ? opened : i == FAILED && rc == -ENOENT ? 0 : rc);
        if (ended && opened == 0 && rc == 0) {
            cli_print_error("%s: cannot write the table: %s", paths[i], strerror(-ended));
            status = EXIT_PARTIAL;
        }
    }
    if (opened)
        return EXIT_PARTIAL;
    if (rc)
        cli_print_error("%s", error.message);
    if (rc == 0 || rc == -ENOENT)
        print_failed(&counts, tables->failed_by);
    if (rc == 0 && tables->table)
        print_identifiers(&counts);
    return rc == 0 ? status : rc == -ENOENT ? EXIT_NOT_FOUND : EXIT_DATABASE;
}

/* ------------------------------------------------------------------------------- command ---- */

struct cohort_request {
    struct report_cohort what;
    const char *dictionary, *reasons;
    bool failed;
};

static int
cohort_check(struct cli_call *call)
{
    const struct cohort_request *request = call->options;
    const char *name = call->command->name;
    if (!request->what.pipeline)
        return cli_usage_error(name, "needs --pipeline NAME");
    if (request->failed && (request->dictionary || request->reasons))
        return cli_usage_error(name, "--failed prints no table, so that it has no --%s",
                               request->dictionary ? "dictionary" : "reasons");
    return EXIT_OK;
}

static int
cohort_run(struct cli_call *call)
{
    const struct cohort_request *request = call->options;
    const struct cohort_tables tables = {.table = request->failed ? NULL : COHORT_STANDARD_OUTPUT,
                                         .dictionary = request->dictionary,
                                         .reasons = request->reasons,
                                         .failed = request->failed ? COHORT_STANDARD_OUTPUT : NULL,
                                         .failed_by = request->failed ? "This list" : "The option --failed"};
    struct report *report;
    int status = cli_open_report(call->context->conf, &report);
    if (status != EXIT_OK)
        return status;
    status = cohort_tables_write(report, &request->what, &tables);
    report_close(report);
    return status;
}

const struct cli_command cli_cohort = {
    .name = "cohort",
    .help = "print features as a table (CSV): one row per region, one column per feature",
    .usage = {"--pipeline NAME [OPTION]... > FILE.csv", "--pipeline NAME --failed [OPTION]... > FILE.csv"},
    .more =
        "The column patient has plain IDs, pseudonyms or nothing, as the option identifiers of the configuration was "
        "when the images arrived.",
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
            {"reasons", 0, &cli_file, CLI_AT(struct cohort_request, reasons),
             .help = "write the reason of each empty cell of a feature to this file"},
            {"failed", 0, &cli_flag, CLI_AT(struct cohort_request, failed),
             .help = "print the jobs and series without a row instead, with their reasons"},
            {0}},
    .size = sizeof(struct cohort_request),
    .check = cohort_check,
    .run = cohort_run};
