/* web_api_routes.c - the addresses of /api/v1, a row each. */
#include "service/web/api/web_api.h"

#include "db/report.h"
#include "service/common/clock.h"
#include "service/web/pages/web_similar.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define JSON  "application/json"
#define CSV   "text/csv; charset=utf-8; header=present"
#define DICOM "application/dicom"
#define BYTES "application/octet-stream"
#define PNG   "image/png"

static int
api_alerts(struct api_call *call, struct error *error)
{
    const int rc = web_alerts_make(&call->web->alerts, call->web->conf, call->web->report, clock_steady_ms(), error);
    struct json json = {.out = call->out};
    if (rc)
        return rc;
    json_begin_object(&json, NULL);
    alerts_to_json(&call->web->alerts.list, "items", &json);
    json_end_object(&json);
    fputc('\n', call->out);
    return 0;
}

/* The figures are those of `noctule status --json`. */
static int
api_status(struct api_call *call, struct error *error)
{
    static const char *const words[] = {"good", "attention", "broken"};

    const struct alerts *alerts = &call->web->alerts.list;
    const int rc = web_alerts_make(&call->web->alerts, call->web->conf, call->web->report, clock_steady_ms(), error);
    if (rc)
        return rc;
    const enum alert_severity worst = alerts_worst(alerts);
    fprintf(call->out, "{\"ready\": %s, \"state\": \"%s\", \"version\": \"" NOCTULE_VERSION "\", \"figures\": ",
            worst == ALERT_BROKEN ? "false" : "true", words[worst]);
    const int printed = report_status(call->web->report, call->out, true, error);
    fputs("}\n", call->out);
    return printed;
}

static int
api_job(struct api_call *call, struct error *error)
{
    return report_job(call->web->report, strtoll(call->identity, NULL, 10), call->out, true, error);
}

/* A result as its row, or as the file. */
static int
api_result(struct api_call *call, struct error *error)
{
    const struct report_list *list = &report_browsed[BROWSE_RESULTS];
    struct report_table table;
    char *path = NULL;
    call->browse.values[report_field_place(list, "instance")] = call->identity;
    if (strcmp(call->type, JSON) == 0)
        return report_browse_one(call->web->report, list, &call->browse, call->out, error);
    int rc = report_browse(call->web->report, list, &call->browse, &table, error);
    if (rc)
        return rc;
    if (table.row_count == 0 || report_cell(&table, 0, "removed_at"))
        rc = error_set(error, -ENOENT, CODE_NONE, "there is no file of this instance");
    else if (asprintf(&path, "%s/%s", call->web->conf->root, report_cell(&table, 0, "path")) < 0)
        rc = error_set_system(error, -ENOMEM, "answer");
    else
        call->reply->job = (int64_t)report_number(&table, 0, "job");
    report_table_free(&table);
    if (rc)
        return rc;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    free(path);
    if (fd < 0)
        return error_set(error, -ENOENT, CODE_NONE, "the file of this instance cannot be opened");
    call->reply->file = fd;
    return 0;
}

static const struct api_parameter decision_parameters[] = {
    {.key = "action", .help = "accept, reject, undo, retry, cancel, priority, hold, release, ...", .is_needed = true},
    {.key = "subject", .help = "Its subject: job 12, destination PACS, file 3, alert ID, ...", .is_needed = true},
    {.key = "reason", .help = "Why; a rejection needs it"},
    {.key = "value", .help = "The number of a priority"},
    {.key = "seen", .help = "version of the row in review that the person has seen: another one is refused"},
    {.key = "form", .help = "The token of forms; needed with a cookie"},
    {.key = NULL},
};

static const char *const view_lists[] = {"work", "deliveries", NULL};
static const struct api_parameter view_parameters[] = {
    {.key = "list", .help = "The list", .words = view_lists, .is_needed = true},
    {.key = "name", .help = "Its name, at most 60 bytes", .is_needed = true},
    {.key = "filter", .help = "The query of the list's address, such as state=FAILED&modality=CT", .is_needed = true},
    {.key = "form", .help = "The token of forms; needed with a cookie"},
    {.key = NULL},
};
static const struct api_parameter session_parameters[] = {
    {.key = "secret", .help = "The token of the person", .is_needed = true}, {.key = NULL}};
static const struct api_parameter session_end_parameters[] = {{.key = "form", .help = "form of me", .is_needed = true},
                                                              {.key = NULL}};

static const char *const cohort_tables[] = {"cohort", "dictionary", "reasons", "failed", NULL};
static const char *const yes_or_no[] = {"yes", "no", NULL};

enum { COHORT_PIPELINE, COHORT_TABLE, COHORT_SINCE, COHORT_MODALITY, COHORT_ALL };
static const struct api_parameter cohort_parameters[] = {
    [COHORT_PIPELINE] = {.key = "pipeline", .help = "Name of the pipeline", .is_needed = true},
    [COHORT_TABLE] = {.key = "table", .help = "The table; the default is cohort", .words = cohort_tables},
    [COHORT_SINCE] = {.key = "since", .help = "Jobs that ended since this time", .is_moment = true},
    [COHORT_MODALITY] = {.key = "modality", .help = "Modality of the series"},
    [COHORT_ALL] = {.key = "all", .help = "yes: also superseded jobs", .words = yes_or_no},
    {.key = NULL},
};

static ssize_t
cohort_discard(void *context, const char *bytes, size_t size)
{
    (void)context, (void)bytes;
    return (ssize_t)size;
}

/* The tables of `noctule cohort`. The others are filled only beside the first. */
static int
api_cohort(struct api_call *call, struct error *error)
{
    const char *table = call->values[COHORT_TABLE] ? call->values[COHORT_TABLE] : "cohort";
    const char *since = call->values[COHORT_SINCE], *all = call->values[COHORT_ALL];
    char at[ISO_TIME_SIZE];
    if (since)
        report_moment(since, clock_unix_ms(), at);
    FILE *nowhere = fopencookie(NULL, "w", (cookie_io_functions_t){.write = cohort_discard});
    if (!nowhere)
        return error_set_system(error, -ENOMEM, "answer");
    struct report_cohort_counts counts;
    const struct report_cohort what = {.pipeline = call->values[COHORT_PIPELINE],
                                       .since = since ? at : NULL,
                                       .modality = call->values[COHORT_MODALITY],
                                       .all_revisions = all && strcmp(all, "yes") == 0};
    struct report_cohort_out out = {.table = nowhere};
    *(strcmp(table, "dictionary") == 0 ? &out.dictionary
      : strcmp(table, "reasons") == 0  ? &out.reasons
      : strcmp(table, "failed") == 0   ? &out.failed
                                       : &out.table) = call->out;
    const int rc = report_cohort(call->web->report, &what, &out, &counts, error);
    fclose(nowhere);
    return rc;
}

/* Those of `noctule check-config`, for the configuration in force. */
static int
api_warnings(struct api_call *call, struct error *error)
{
    const struct conf_findings *findings = &call->web->findings;
    struct json json = {.out = call->out};
    (void)error;
    json_begin_object(&json, NULL);
    json_begin_array(&json, "items");
    for (size_t i = 0; i < findings->count; i++) {
        /* without FILE:LINE, which is of the copy that the daemon makes for its children */
        const char *message = strstr(findings->items[i].message, ": ");
        json_string(&json, NULL, message ? message + 2 : findings->items[i].message);
    }
    json_end_array(&json);
    json_integer(&json, "more", (int64_t)findings->more);
    json_end_object(&json);
    fputc('\n', call->out);
    return 0;
}

static int
api_versions(struct api_call *call, struct error *error)
{
    (void)error;
    fputs("{\"noctule\": \"" NOCTULE_VERSION "\", \"api\": \"v1\"}\n", call->out);
    return 0;
}

#define LIST(path_, name, ...)                                                                                         \
    {                                                                                                                  \
        .path = (path_), .kind = API_LIST, .list = (name), .types = {JSON, CSV}, __VA_ARGS__                           \
    }

#define DECIDE(path_, subject_, summary_, ...)                                                                         \
    {                                                                                                                  \
        .path = (path_), .summary = (summary_), .kind = API_DECIDES, .verb = API_POST, .types = {JSON},                \
        .subject = (subject_), .actions = {                                                                            \
            __VA_ARGS__                                                                                                \
        }                                                                                                              \
    }

#define ANSWER(path_, answer_, summary_, ...)                                                                          \
    {                                                                                                                  \
        .path = (path_), .answer = (answer_), .summary = (summary_), .kind = API_ANSWER, .types = {JSON}, __VA_ARGS__  \
    }

const struct api_route api_routes[] = {
    ANSWER("status", api_status, "State of the service and the figures of noctule status", ),
    ANSWER("alerts", api_alerts, "Alerts with remedies and acknowledgements", ),
    LIST("work", BROWSE_WORK, .summary = "Jobs, and series without a job (v_work)"),
    LIST("search", BROWSE_SEARCH,
         .summary = "Jobs and series by the exact number, UID, accession number or patient ID in `text` (v_work)",
         .needs = "text", .verb = API_POST),
    LIST("found", BROWSE_FOUND,
         .summary = "Jobs and series with the filters of `work` and a `text`: an identifier, or a part of the "
                    "description (v_work)",
         .needs = "text", .verb = API_POST),
    ANSWER("jobs/{job}", api_job, "A job with its results, deliveries, events, segments and broken expectations",
           .is_of_job = true),
    LIST("jobs/{job}/segments", BROWSE_SEGMENTS, .summary = "Segments of a job (v_segments)", .is_of_job = true),
    LIST("jobs/{job}/results", BROWSE_RESULTS, .summary = "Results of a job (v_results)", .is_of_job = true),
    LIST("jobs/{job}/deliveries", BROWSE_DELIVERIES, .summary = "Deliveries of a job (v_deliveries)",
         .is_of_job = true),
    LIST("jobs/{job}/events", BROWSE_EVENTS, .summary = "Events of a job, oldest first (v_events)", .is_of_job = true),
    LIST("jobs/{job}/features", BROWSE_FEATURES, .summary = "Features of a job (v_features)", .is_of_job = true),
    {.path = "jobs/{job}/similar",
     .summary = "Regions of other jobs with a similar texture, the most similar first; no statement about a disease",
     .kind = API_ANSWER,
     .answer = web_similar_answer,
     .parameters = web_similar_parameters,
     .types = {JSON, CSV},
     .is_of_job = true},
    {.path = "jobs/{job}/planes",
     .summary = "The file of a job for the slice viewer: size, unit, window, segments, views, and the largest error "
                "of its values (`error_max`; 0: exact)",
     .kind = API_ELSEWHERE,
     .types = {JSON}},
    {.path = "jobs/{job}/planes/{plane}/{index}",
     .summary = "A plane: 16-bit values, rounded by at most `error_max` of the file, and exact masks (format: "
                "service/web/viewer/web_planes.h)",
     .kind = API_ELSEWHERE,
     .types = {BYTES}},
    {.path = "jobs/{job}/planes/{plane}/{index}.png",
     .summary = "A plane as a picture, with the outlines of the segments",
     .kind = API_ELSEWHERE,
     .types = {PNG}},
    {.path = "decisions",
     .summary = "A decision of a person with a name (page.may)",
     .kind = API_DECIDES,
     .verb = API_POST,
     .parameters = decision_parameters,
     .types = {JSON}},
    {.path = "jobs/{job}/corrections",
     .summary = "Uploads a corrected mask (DICOM SEG or RTSTRUCT) of a result under review; a new job measures it",
     .kind = API_DECIDES,
     .verb = API_POST,
     .types = {JSON},
     .takes_file = true,
     .actions = {"correct"},
     .subject = "job"},
    DECIDE("jobs/{job}/retry", "job", "Runs a failed job again", "retry"),
    DECIDE("jobs/{job}/cancel", "job", "Cancels a job that waits or runs", "cancel"),
    DECIDE("jobs/{job}/priority", "job", "Sets the priority of a waiting job", "priority"),
    DECIDE("jobs/{job}/hold", "job", "Holds a waiting job", "hold"),
    DECIDE("jobs/{job}/release", "job", "Releases a held job", "release"),
    DECIDE("review/{job}/decision", "job", "Accepts or rejects a result under review, or undoes it", "accept", "reject",
           "undo"),
    DECIDE("series/{series}/complete", "series", "Takes a series as complete that is being received", "complete"),
    DECIDE("destinations/{destination}/hold", "destination", "Holds the deliveries to a destination", "hold"),
    DECIDE("destinations/{destination}/release", "destination", "Releases a held destination", "release"),
    DECIDE("destinations/{destination}/resend", "destination", "Sends again all that has not arrived there", "resend"),
    DECIDE("deliveries/{delivery}/decision", "delivery", "Releases a delivery under review, or rejects it; final",
           "accept", "reject"),
    DECIDE("deliveries/{delivery}/resend", "delivery", "Sends a result again", "resend"),
    DECIDE("quarantine/{file}/release", "file", "Receives a quarantined file again", "release"),
    DECIDE("quarantine/{file}/forget", "file", "Removes a quarantined file", "forget"),
    DECIDE("alerts/{alert}/ack", "alert", "Acknowledges an alert", "acknowledge"),
    DECIDE("alerts/{alert}/unack", "alert", "Takes the acknowledgement of an alert back", "unacknowledge"),
    {.path = "series/{series}",
     .summary = "A series (v_series)",
     .kind = API_ONE,
     .list = BROWSE_SERIES,
     .types = {JSON}},
    LIST("arrivals", BROWSE_ARRIVALS, .summary = "Received series, the latest first (v_series)"),
    {.path = "results/{instance}",
     .summary = "A result by its SOP Instance UID: the row (v_results), or the DICOM file",
     .kind = API_ANSWER,
     .list = BROWSE_RESULTS,
     .answer = api_result,
     .types = {JSON, DICOM}},
    LIST("review", BROWSE_REVIEW, .summary = "Jobs under review, oldest first (v_review)"),
    LIST("destinations", BROWSE_DESTINATIONS, .summary = "Destinations with deliveries (v_destinations)"),
    LIST("deliveries", BROWSE_DELIVERIES, .summary = "Deliveries, newest first (v_deliveries)"),
    LIST("groups", BROWSE_UNDELIVERED, .summary = "Undelivered results by destination and cause (v_undelivered)"),
    LIST("callers", BROWSE_CALLERS, .summary = "Rejected callers (v_callers)"),
    LIST("pulls", BROWSE_PULLS, .summary = "Retrievals from archives (v_pulls)"),
    LIST("quarantine", BROWSE_QUARANTINE, .summary = "Quarantined files (v_quarantine, without original paths)"),
    LIST("reports", BROWSE_REPORTS, .summary = "Recorded reports (v_nights)"),
    LIST("trends", BROWSE_TRENDS, .summary = "Jobs by day, pipeline and scanner (v_trends); of 90 days without since",
         .since = "90d"),
    {.path = "cohort",
     .summary = "The cohort tables of a pipeline's features",
     .kind = API_ANSWER,
     .answer = api_cohort,
     .parameters = cohort_parameters,
     .types = {CSV}},
    LIST("audit", BROWSE_AUDIT,
         .summary = "Decisions of persons, and jobs that they looked at (v_audit); for operators",
         .role = API_OPERATOR),
    LIST("config", BROWSE_CONFIGURATION, .summary = "Configuration in force, and a refused one (v_configuration)"),
    ANSWER("warnings", api_warnings,
           "Warnings about the configuration in force, as noctule check-config prints them", ),
    ANSWER("rules/try", web_api_rules_try,
           "The rules in force, checked for a series with these values; conditions on its images are left out",
           .parameters = web_api_rules_parameters),
    ANSWER("me", web_api_me, "The person of the request: name, role, and the decisions that it may make", ),
    {.path = "views",
     .summary = "Filters of lists that the person has saved (v_saved_filters)",
     .kind = API_ANSWER,
     .list = BROWSE_FILTERS,
     .answer = web_api_views,
     .role = API_PERSON,
     .types = {JSON}},
    {.path = "views",
     .summary = "Saves a filter (page.may: filters); the decision delete of \"filter LIST NAME\" removes it",
     .kind = API_ELSEWHERE,
     .verb = API_POST,
     .parameters = view_parameters,
     .types = {JSON}},
    {.path = "session",
     .summary = "Logs a person in by a token: sets a cookie, as the page login does",
     .kind = API_ELSEWHERE,
     .verb = API_POST,
     .parameters = session_parameters,
     .types = {JSON}},
    {.path = "session/end",
     .summary = "Logs the person of the cookie out",
     .kind = API_ELSEWHERE,
     .verb = API_POST,
     .parameters = session_end_parameters,
     .types = {JSON}},
    ANSWER("versions", api_versions, "Versions", ),
    ANSWER("openapi.json", web_api_document, "This document", ),
};

const size_t api_route_count = sizeof api_routes / sizeof *api_routes;
