/*
 * cli_report.c - the commands that read the database: jobs, review, show, features, series,
 * destinations, deliveries; status is in cli_status.c.
 */
#include "service/cli/cli.h"

#include "db/report.h"
#include "service/common/jobs/feature.h"
#include "service/common/layout.h"

#include <errno.h>
#include <getopt.h>
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
        return error_set(error, -ENAMETOOLONG, CODE_NONE,
                         "the path of the root folder is too long");
    return report_open(path, report, error);
}

int
cli_open_report(const struct conf *conf, struct report **report)
{
    struct error error;
    int rc = cli_try_report(conf, report, &error);
    if (rc < 0)
        cli_complain("%s", error.message);
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

/* What is asked: the command's options, and the number of a job where it takes one. */
struct report_request {
    const struct report_command *command;
    const struct conf *conf;
    int64_t job;
    int64_t segment; /* of features; 0: the whole volume */
    bool json, csv;
    struct report_filter filter; /* of lists */
    char since[CLI_TIME];        /* of the filter */
};

struct report_command {
    const char *name;
    const char *options[8]; /* NULL behind the last */
    bool of_job;            /* takes one argument, which goes into `job` */
    int (*print)(struct report *report, const struct report_request *request, struct error *error);
    const struct report_list *list;
};

static int
answer_list(struct report *report, const struct report_request *request, struct error *error)
{
    return report_list(report, request->command->list, &request->filter, stdout, request->json,
                       error);
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
answer_destinations(struct report *report, const struct report_request *request,
                    struct error *error)
{
    const size_t count = request->conf->destination_count;
    struct report_destination *configured = calloc(count + 1, sizeof(*configured));
    char(*addresses)[ADDRESS_SIZE] = calloc(count + 1, sizeof(*addresses));
    int rc = error_set(error, -ENOMEM, CODE_OUT_OF_MEMORY, "out of memory");
    if (configured && addresses) {
        for (size_t i = 0; i < count; i++) {
            const struct conf_destination *destination = &request->conf->destinations[i];
            describe_address(destination, addresses[i], sizeof(addresses[i]));
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
answer_review(struct report *report, const struct report_request *request, struct error *error)
{
    return report_review(report, &request->filter, request->conf->root, stdout, request->json,
                         error);
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

/* features.json or features.csv again: what the database has is the set that the worker told, and
 * the same code writes it. */
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

static const struct report_command report_commands[] = {
    {"jobs",
     {"state", "pipeline", "series", "code", "since", "limit", "json"},
     false,
     answer_list,
     &report_jobs},
    {"review", {"pipeline", "series", "limit", "json"}, false, answer_review, NULL},
    {"show", {"json"}, true, answer_job, NULL},
    {"features", {"segment", "json", "csv"}, true, answer_features, NULL},
    {"series", {"state", "series", "since", "limit", "json"}, false, answer_list, &report_series},
    {"destinations", {"json"}, false, answer_destinations, NULL},
    {"deliveries",
     {"state", "destination", "job", "limit", "json"},
     false,
     answer_list,
     &report_deliveries},
};

/* The command's options, which point into the request. */
static void
choose_options(struct report_request *request, struct cli_option options[CLI_MAX_OPTIONS + 1])
{
    const struct cli_option all[] = {
        {"state", .text = &request->filter.state},
        {"pipeline", .text = &request->filter.pipeline},
        {"series", .text = &request->filter.series},
        {"destination", .text = &request->filter.destination},
        {"job", .number = &request->filter.job, .noun = "job number"},
        {"code", .text = &request->filter.code},
        {"since", .text = &request->filter.since},
        {"limit", .number = &request->filter.limit},
        {"segment", .number = &request->segment, .noun = "segment number", .zero = true},
        {"json", .flag = &request->json},
        {"csv", .flag = &request->csv}};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        for (const char *const *name = request->command->options; *name; name++)
            if (strcmp(all[i].name, *name) == 0)
                *options++ = all[i];
    *options = (struct cli_option){.name = NULL};
}

static int
parse_request(int argc, char **argv, struct report_request *request)
{
    struct cli_option options[CLI_MAX_OPTIONS + 1];
    const bool of_job = request->command->of_job;
    choose_options(request, options);
    int status = cli_parse_options(argc, argv, options);
    if (status != EXIT_OK)
        return status;
    if (of_job && (argc - optind != 1 || cli_parse_number(argv[optind], &request->job) < 0))
        return cli_usage_error(argv[0], "needs one job number");
    if (!of_job && optind < argc)
        return cli_usage_error(argv[0], "\"%s\" is one argument too many", argv[optind]);
    if (cli_parse_since(&request->filter.since, request->since) < 0)
        return cli_usage_error(argv[0], "\"%s\" is no time", request->filter.since);
    if (request->json && request->csv)
        return cli_usage_error(argv[0], "--json and --csv exclude each other");
    return EXIT_OK;
}

int
cli_report(const struct cli_context *context, int argc, char **argv)
{
    struct report_request request = {
        .command = report_commands, .conf = context->conf, .segment = REPORT_ALL_SEGMENTS};
    while (strcmp(request.command->name, argv[0]) != 0)
        request.command++;
    struct report *report;
    int status = parse_request(argc, argv, &request);
    if (status == EXIT_OK)
        status = cli_open_report(context->conf, &report);
    if (status != EXIT_OK)
        return status;
    struct error error = {0};
    int rc = request.command->print(report, &request, &error);
    report_close(report);
    return report_status_code(rc, &error);
}
