/*
 * cli_lists.c - the commands that read the database: jobs, review, show, features, series, programs,
 * destinations, deliveries. status is in cli_status.c.
 */
#include "service/cli/cli.h"

#include "db/report.h"
#include "service/cli/watch.h"
#include "service/common/jobs/feature_document.h"
#include "service/common/layout.h"
#include "service/common/pseudonym.h"
#include "service/common/trust.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int
cli_try_report(const struct conf *conf, struct report **report, struct error *error)
{
    char path[PATH_MAX];
    int length = snprintf(path, sizeof(path), "%s/" LAYOUT_DATABASE, conf->root);
    if (length < 0 || (size_t)length >= sizeof(path))
        return error_set(error, -ENAMETOOLONG, CODE_NONE, "the path of the root folder is too long");
    if (layout_lacks_database(conf->root) && layout_had_database(conf->root))
        return layout_refuse_database(conf->root, error);
    return report_open(path, report, error);
}

int
cli_open_report(const struct conf *conf, struct report **report)
{
    struct error error;
    int rc = cli_try_report(conf, report, &error);
    if (rc < 0)
        cli_print_error("%s", error.message);
    return rc < 0 ? EXIT_DATABASE : EXIT_OK;
}

char *
cli_find_validated(const struct conf *conf, const struct conf_pipeline *pipeline)
{
    struct report *report;
    struct error error;
    char digest[TRUST_DIGEST], *ranges = NULL;
    if (trust_digest(pipeline, digest) != 0 || cli_try_report(conf, &report, &error) < 0)
        return NULL;
    report_validated(report, digest, &ranges, &error);
    report_close(report);
    return ranges;
}

/* Options of a list command, its print function, and the job number if it takes one. */
struct report_request {
    int (*print)(struct report *report, const struct report_request *request, struct error *error);
    const struct report_list *list;
    const struct conf *conf;
    const char *name; /* of a program; NULL: all */
    int64_t job;
    int64_t segment; /* for features; 0: the whole volume */
    bool json, csv, runs;
    struct watch watch;
    struct report_filter filter; /* for lists */
};

static int
answer_list(struct report *report, const struct report_request *request, struct error *error)
{
    return report_list(report, request->list, &request->filter, stdout, request->json, error);
}

#define ADDRESS_SIZE 512

static int
answer_destinations(struct report *report, const struct report_request *request, struct error *error)
{
    const size_t count = request->conf->destination_count;
    struct report_destination *configured = calloc(count + 1, sizeof(*configured));
    char(*addresses)[ADDRESS_SIZE] = calloc(count + 1, sizeof(*addresses));
    int rc = error_set(error, -ENOMEM, CODE_OUT_OF_MEMORY, "out of memory");
    if (configured && addresses) {
        for (size_t i = 0; i < count; i++) {
            const struct conf_destination *destination = &request->conf->destinations[i];
            const char *path = destination->folder ? destination->folder : destination->stow;
            if (path)
                snprintf(addresses[i], ADDRESS_SIZE, "%s", path);
            else
                snprintf(addresses[i], ADDRESS_SIZE,
                         strchr(destination->host, ':') ? "%s at [%s]:%d%s" : "%s at %s:%d%s", destination->ae_title,
                         destination->host, destination->port, destination->tls ? ", TLS" : "");
            configured[i] = (struct report_destination){destination->name, addresses[i]};
        }
        *error = (struct error){0};
        rc = report_destinations(report, configured, count, stdout, request->json, error);
    }
    free(addresses);
    free(configured);
    return rc;
}

static int
answer_programs(struct report *report, const struct report_request *request, struct error *error)
{
    struct report_filter filter = request->filter;
    filter.pipeline = request->name;
    if (request->name && !request->runs && !conf_find_program(request->conf, request->name))
        return error_set(error, -ENOENT, CODE_NONE, "there is no program \"%s\"", request->name);
    return report_list(report, request->runs ? &report_program_runs : &report_programs, &filter, stdout, request->json,
                       error);
}

static int
answer_review(struct report *report, const struct report_request *request, struct error *error)
{
    return report_review(report, &request->filter, request->conf->root, stdout, request->json, error);
}

static int
answer_job(struct report *report, const struct report_request *request, struct error *error)
{
    return report_job(report, request->job, stdout, request->json, error);
}

static int
take_feature(void *context, const struct feature *row)
{
    return feature_set_add(context, row);
}

/* Prints features.json or features.csv from the database. The rows equal the set of the worker, and
 * the same code writes them. */
static int
answer_features(struct report *report, const struct report_request *request, struct error *error)
{
    if (!request->json && !request->csv)
        return report_features(report, request->job, request->segment, stdout, error);
    struct feature_set set = {0};
    int rc = report_each_feature(report, request->job, request->segment, take_feature, &set, error);
    if (rc == 0 && request->json)
        feature_set_to_json(&set, stdout);
    else if (rc == 0)
        feature_set_to_csv(&set, stdout);
    feature_set_clear(&set);
    return rc;
}

static int
features_check(struct cli_call *call)
{
    const struct report_request *request = call->options;
    return request->json && request->csv ? cli_usage_error(call->command->name, "--json and --csv cannot be combined")
                                         : EXIT_OK;
}

/* Hashes of the given identifiers, for databases that store only hashes. */
struct report_hashes {
    char accession[PSEUDONYM_SIZE], patient[PSEUDONYM_SIZE];
};

/* Adds the hashes to the filter, so that plain and hashed identifiers are both found. */
static void
report_find_hashes(struct report_request *request, struct report_hashes *words)
{
    struct report_filter *filter = &request->filter;
    struct pseudonym_key key;
    if (!filter->accession[0] && !filter->patient[0])
        return;
    int rc = pseudonym_key_read(request->conf->root, &key);
    if (rc == -ENOENT) /* the database has no hashes yet */
        return;
    if (rc == 0 && filter->accession[0]) {
        rc = pseudonym_of(&key, filter->accession[0], words->accession);
        filter->accession[1] = words->accession;
    }
    if (rc == 0 && filter->patient[0]) {
        rc = pseudonym_of(&key, filter->patient[0], words->patient);
        filter->patient[1] = words->patient;
    }
    if (rc)
        cli_print_error("%s/" LAYOUT_PSEUDONYM_KEY ": %s; cannot search hashed identifiers without this key",
                        request->conf->root, strerror(-rc));
}

static int
report_draw(struct cli_call *call)
{
    struct report_request *request = call->options;
    struct report *report;
    struct report_hashes words;
    request->conf = call->context->conf;
    report_find_hashes(request, &words);
    if (call->count > 0) {
        request->name = call->arguments[0];
        cli_parse_number(request->name, &request->job);
    }
    int status = cli_open_report(request->conf, &report);
    if (status != EXIT_OK)
        return status;
    struct error error = {0};
    int rc = request->print(report, request, &error);
    report_close(report);
    if (rc == 0)
        return EXIT_OK;
    cli_print_error("%s", error.message[0] ? error.message : "cannot read the database");
    if (rc == -EINVAL) /* unknown state */
        return EXIT_USAGE;
    return rc == -ENOENT ? EXIT_NOT_FOUND : EXIT_DATABASE;
}

static int
report_run(struct cli_call *call)
{
    const struct report_request *request = call->options;
    return request->watch.on ? watch_run(call, &request->watch, report_draw) : report_draw(call);
}

static int
list_check(struct cli_call *call)
{
    const struct report_request *request = call->options;
    return watch_check(call, &request->watch, request->json);
}

/* ------------------------------------------------------------------------------- commands ---- */

static const char *
state_of_jobs(size_t i)
{
    return report_list_state(&report_jobs, i);
}

static const char *
state_of_series(size_t i)
{
    return report_list_state(&report_series, i);
}

static const char *
state_of_deliveries(size_t i)
{
    return report_list_state(&report_deliveries, i);
}

#define FILTER(name_, kind_, member, help_, ...)                                                                       \
    {                                                                                                                  \
        (name_), 0, (kind_), CLI_AT(struct report_request, filter.member), .help = (help_), __VA_ARGS__                \
    }
#define STATE(word_) FILTER("state", &cli_choice, state, "only this state", .noun = "STATE", .word = (word_))
#define PIPELINE     FILTER("pipeline", &cli_pipeline, pipeline, "only this pipeline", NULL)
#define SERIES       FILTER("series", &cli_text, series, "only this series", .noun = "UID")
#define SINCE(help)  FILTER("since", &cli_when, since, help ": 2026-01-31, or 36h ago", NULL)
#define FOUND_BY                                                                                                       \
    FILTER("modality", &cli_text, modality, "only this modality: CT, MR, ...", .noun = "MODALITY"),                    \
        FILTER("accession", &cli_text, accession[0], "only this Accession Number", .noun = "NUMBER"),                  \
        FILTER("patient", &cli_text, patient[0], "only this Patient ID", .noun = "ID"),                                \
        FILTER("sender", &cli_text, sender, "only from this sender (AE title)", .noun = "TITLE")
#define CODE  FILTER("code", &cli_text, code, "only this code", .noun = "CODE")
#define LIMIT FILTER("limit", &cli_count, limit, "max number of rows; default 50", NULL)
#define JSON  CLI_JSON(struct report_request)
#define WATCH WATCH_OPTIONS(struct report_request)

#define REPORTS(print_, list_)                                                                                         \
    .size = sizeof(struct report_request),                                                                             \
    .initial = &(const struct report_request){.print = (print_), .list = (list_), .segment = REPORT_ALL_SEGMENTS},     \
    .run = report_run

const struct cli_command cli_jobs = {.name = "jobs",
                                     .help = "list jobs, newest first",
                                     .usage = {"[OPTION]..."},
                                     .options = (const struct cli_option[]){STATE(state_of_jobs),
                                                                            PIPELINE,
                                                                            SERIES,
                                                                            CODE,
                                                                            FOUND_BY,
                                                                            SINCE("only jobs created or ended since"),
                                                                            LIMIT,
                                                                            WATCH,
                                                                            JSON,
                                                                            {0}},
                                     .check = list_check,
                                     REPORTS(answer_list, &report_jobs)};

const struct cli_command cli_review = {.name = "review",
                                       .help =
                                           "list results under review, which wait for accept or reject, oldest first",
                                       .usage = {"[OPTION]..."},
                                       .options = (const struct cli_option[]){PIPELINE, SERIES, LIMIT, JSON, {0}},
                                       REPORTS(answer_review, NULL)};

const struct cli_command cli_show = {.name = "show",
                                     .help = "show one job with its results and events",
                                     .usage = {"[--json] JOB"},
                                     .options = (const struct cli_option[]){JSON, {0}},
                                     .kind = &cli_job,
                                     .min_arguments = 1,
                                     .max_arguments = 1,
                                     .needs = "one job number",
                                     REPORTS(answer_job, NULL)};

const struct cli_command cli_features = {
    .name = "features",
    .help = "print the features of a job",
    .usage = {"[--segment N] [--json | --csv] JOB"},
    .options = (const struct cli_option[]){{"segment", 0, &cli_segment, CLI_AT(struct report_request, segment),
                                            .help = "only this segment; 0: the whole volume"},
                                           JSON,
                                           {"csv", 0, &cli_flag, CLI_AT(struct report_request, csv),
                                            .help = "print CSV instead of text"},
                                           {0}},
    .kind = &cli_job,
    .min_arguments = 1,
    .max_arguments = 1,
    .needs = "one job number",
    .check = features_check,
    REPORTS(answer_features, NULL)};

const struct cli_command cli_series = {
    .name = "series",
    .help = "list series, newest first",
    .usage = {"[OPTION]..."},
    .options = (const struct cli_option[]){STATE(state_of_series),
                                           SERIES,
                                           CODE,
                                           FOUND_BY,
                                           SINCE("only series with instances received since"),
                                           LIMIT,
                                           WATCH,
                                           JSON,
                                           {0}},
    .check = list_check,
    REPORTS(answer_list, &report_series)};

const struct cli_command cli_destinations = {.name = "destinations",
                                             .help = "list destinations with their state",
                                             .usage = {"[--json]"},
                                             .options = (const struct cli_option[]){JSON, {0}},
                                             REPORTS(answer_destinations, NULL)};

const struct cli_command cli_deliveries = {
    .name = "deliveries",
    .help = "list deliveries of results, newest first",
    .usage = {"[OPTION]..."},
    .options = (const struct cli_option[]){STATE(state_of_deliveries),
                                           FILTER("destination", &cli_destination, destination,
                                                  "only to this destination", NULL),
                                           FILTER("job", &cli_job, job, "only of this job", NULL),
                                           LIMIT,
                                           WATCH,
                                           JSON,
                                           {0}},
    .check = list_check,
    REPORTS(answer_list, &report_deliveries)};

const struct cli_command cli_validations = {
    .name = "validations",
    .help = "list validations of pipelines on patients of this site, newest first",
    .usage = {"[--pipeline NAME] [--limit N] [--json]"},
    .options = (const struct cli_option[]){FILTER("pipeline", &cli_pipeline, pipeline,
                                                  "only of this pipeline or preset", NULL),
                                           LIMIT,

                                           JSON,
                                           {0}},
    REPORTS(answer_list, &report_validations)};

const struct cli_command cli_programs = {
    .name = "programs",
    .help = "list programs of the site as the daemon found them, or their runs, newest first",
    .usage = {"[--runs] [--limit N] [--json] [NAME]", "--watch [--interval SECONDS] [OPTION]... [NAME]"},
    .options = (const struct cli_option[]){{"runs", 0, &cli_flag, CLI_AT(struct report_request, runs),
                                            .help = "list runs of all programs, or of the program NAME"},
                                           LIMIT,
                                           WATCH,
                                           JSON,
                                           {0}},
    .kind = &cli_program,
    .max_arguments = 1,
    .needs = "at most one program",
    .check = list_check,
    REPORTS(answer_programs, NULL)};
