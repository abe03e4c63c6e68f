/*
 * cli_report.c - the commands that read the database: status, jobs, show, features, series,
 * destinations, deliveries.
 */
#include "service/cli/cli.h"

#include "db/report.h"
#include "service/cli/feature_rows.h"
#include "service/common/layout.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REASON_SIZE 512

static int
open_report(const struct conf *conf, struct report **report)
{
    char path[PATH_MAX];
    struct error error = {0};
    int length = snprintf(path, sizeof(path), "%s/" LAYOUT_DATABASE, conf->root);
    if (length < 0 || (size_t)length >= sizeof(path)) {
        cli_complain("the path of the root folder is too long");
        return EXIT_DATABASE;
    }
    int rc = report_open(path, report, &error);
    if (rc < 0)
        cli_complain("%s", error.message[0] ? error.message : "the database cannot be opened");
    return rc < 0 ? EXIT_DATABASE : EXIT_OK;
}

static int
report_status_code(int rc, const struct error *error)
{
    if (rc == 0)
        return EXIT_OK;
    cli_complain("%s", error->message[0] ? error->message : "the database cannot be read");
    if (rc == -EINVAL) /* there is no such state */
        return EXIT_USAGE;
    return rc == -ENOENT ? EXIT_NOT_FOUND : EXIT_DATABASE;
}

/* For commands without arguments of their own. */
static int
parse_options_only(int argc, char **argv, const struct cli_option *options)
{
    int status = cli_parse_options(argc, argv, options);
    if (status == EXIT_OK && optind < argc)
        return cli_usage_error(argv[0], "\"%s\" is one argument too many", argv[optind]);
    return status;
}

int
cli_status(const struct cli_context *context, int argc, char **argv)
{
    bool json = false;
    const struct cli_option options[] = {{"json", .flag = &json}, {.name = NULL}};
    struct report *report;
    int status = parse_options_only(argc, argv, options);
    if (status == EXIT_OK)
        status = open_report(context->conf, &report);
    if (status != EXIT_OK)
        return status;
    struct error error = {0};
    int rc = report_status(report, stdout, json, &error);
    report_close(report);
    if (rc == 0 && !json)
        printf("Daemon      %s\n",
               cli_daemon_answers(context->conf->root) == 0 ? "running" : "not running");
    return report_status_code(rc, &error);
}

/* A list of the database's; what its options say goes into the filter. */
static int
list(const struct cli_context *context, int argc, char **argv, const struct cli_option *options,
     const struct report_filter *filter, const bool *json,
     int (*report_list)(struct report *, const struct report_filter *, FILE *, bool,
                        struct error *))
{
    struct report *report;
    int status = parse_options_only(argc, argv, options);
    if (status == EXIT_OK)
        status = open_report(context->conf, &report);
    if (status != EXIT_OK)
        return status;
    struct error error = {0};
    int rc = report_list(report, filter, stdout, *json, &error);
    report_close(report);
    return report_status_code(rc, &error);
}

int
cli_jobs(const struct cli_context *context, int argc, char **argv)
{
    struct report_filter filter = {0};
    bool json = false;
    const struct cli_option options[] = {{"state", .text = &filter.state},
                                         {"pipeline", .text = &filter.pipeline},
                                         {"series", .text = &filter.series},
                                         {"limit", .number = &filter.limit},
                                         {"json", .flag = &json},
                                         {.name = NULL}};
    return list(context, argc, argv, options, &filter, &json, report_jobs);
}

int
cli_series(const struct cli_context *context, int argc, char **argv)
{
    struct report_filter filter = {0};
    bool json = false;
    const struct cli_option options[] = {{"state", .text = &filter.state},
                                         {"series", .text = &filter.series},
                                         {"limit", .number = &filter.limit},
                                         {"json", .flag = &json},
                                         {.name = NULL}};
    return list(context, argc, argv, options, &filter, &json, report_series);
}

int
cli_deliveries(const struct cli_context *context, int argc, char **argv)
{
    struct report_filter filter = {0};
    bool json = false;
    const struct cli_option options[] = {{"state", .text = &filter.state},
                                         {"destination", .text = &filter.destination},
                                         {"job", .number = &filter.job, .noun = "job number"},
                                         {"limit", .number = &filter.limit},
                                         {"json", .flag = &json},
                                         {.name = NULL}};
    return list(context, argc, argv, options, &filter, &json, report_deliveries);
}

#define ADDRESS_SIZE 512

static void
describe_address(const struct conf_destination *destination, char *text, size_t size)
{
    if (destination->folder)
        snprintf(text, size, "%s", destination->folder);
    else
        snprintf(text, size, "%s at %s:%d%s", destination->ae_title, destination->host,
                 destination->port, destination->tls ? ", TLS" : "");
}

static int
print_destinations(const struct conf *conf, struct report *report, bool json)
{
    size_t count = conf->destination_count;
    struct report_destination *configured = calloc(count + 1, sizeof(*configured));
    char(*addresses)[ADDRESS_SIZE] = calloc(count + 1, sizeof(*addresses));
    struct error error = {.message = "out of memory"};
    int rc = -ENOMEM;
    if (configured && addresses) {
        for (size_t i = 0; i < count; i++) {
            describe_address(&conf->destinations[i], addresses[i], sizeof(addresses[i]));
            configured[i] = (struct report_destination){.name = conf->destinations[i].name,
                                                        .address = addresses[i]};
        }
        rc = report_destinations(report, configured, count, stdout, json, &error);
    }
    free(addresses);
    free(configured);
    return report_status_code(rc, &error);
}

int
cli_destinations(const struct cli_context *context, int argc, char **argv)
{
    bool json = false;
    const struct cli_option options[] = {{"json", .flag = &json}, {.name = NULL}};
    struct report *report;
    int status = parse_options_only(argc, argv, options);
    if (status == EXIT_OK)
        status = open_report(context->conf, &report);
    if (status != EXIT_OK)
        return status;
    status = print_destinations(context->conf, report, json);
    report_close(report);
    return status;
}

/* For commands with one argument, the number of a job. */
static int
parse_job(int argc, char **argv, const struct cli_option *options, int64_t *job)
{
    int status = cli_parse_options(argc, argv, options);
    if (status == EXIT_OK && (argc - optind != 1 || cli_parse_number(argv[optind], job) < 0))
        return cli_usage_error(argv[0], "needs one job number");
    return status;
}

int
cli_show(const struct cli_context *context, int argc, char **argv)
{
    bool json = false;
    const struct cli_option options[] = {{"json", .flag = &json}, {.name = NULL}};
    struct report *report;
    int64_t job;
    int status = parse_job(argc, argv, options, &job);
    if (status == EXIT_OK)
        status = open_report(context->conf, &report);
    if (status != EXIT_OK)
        return status;
    struct error error = {0};
    int rc = report_job(report, job, stdout, json, &error);
    report_close(report);
    return report_status_code(rc, &error);
}

/* Of features. */
struct report_request {
    int64_t segment; /* 0: the whole volume */
    bool json, csv;
};

/* features.json or features.csv again. */
static int
print_documents(struct report *report, int64_t job, const struct report_request *request,
                struct error *error)
{
    struct feature_set set = {0};
    int rc = feature_rows_read(report, job, request->segment, &set, error);
    if (rc == 0 && request->json)
        feature_set_to_json(&set, stdout);
    else if (rc == 0)
        feature_set_to_csv(&set, stdout);
    feature_set_clear(&set);
    return rc;
}

int
cli_features(const struct cli_context *context, int argc, char **argv)
{
    struct report_request request = {.segment = REPORT_ALL_SEGMENTS};
    const struct cli_option options[] = {
        {"segment", .number = &request.segment, .noun = "segment number", .zero = true},
        {"json", .flag = &request.json},
        {"csv", .flag = &request.csv},
        {.name = NULL}};
    struct report *report;
    int64_t job;
    int status = parse_job(argc, argv, options, &job);
    if (status == EXIT_OK && request.json && request.csv)
        return cli_usage_error(argv[0], "--json and --csv exclude each other");
    if (status == EXIT_OK)
        status = open_report(context->conf, &report);
    if (status != EXIT_OK)
        return status;
    struct error error = {0};
    int rc = request.json || request.csv
                 ? print_documents(report, job, &request, &error)
                 : report_features(report, job, request.segment, stdout, &error);
    report_close(report);
    return report_status_code(rc, &error);
}
