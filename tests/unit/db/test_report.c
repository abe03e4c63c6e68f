/* Queries of people: tables, valid JSON, access rights, and the report period. */
#include "db/report.h"

#include "tests/unit/db/json.h"
#include "tests/unit/db/sample.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

static struct sample s;
static struct report *report;
static struct error error;

/*
 * Four jobs: one DONE, one FAILED, one RUNNING, one READY; a series that is being received, and a
 * refused one.
 */
static void
open_sample(void)
{
    setenv("TZ", "UTC", 1);
    tzset();
    sample_open(&s);
    int64_t done = sample_job(s.queue, "1.2.1"), failed = sample_job(s.queue, "1.2.2"),
            running = sample_job(s.queue, "1.2.3");
    sample_job(s.queue, "1.2.4");
    ck_assert_int_eq(queue_start_job(s.queue, done, "worker-0", 0, SAMPLE_NOW + 3000), 0);
    ck_assert_int_eq(sample_finish(s.queue, done), 0);
    ck_assert_int_eq(queue_start_job(s.queue, failed, "worker-0", 0, SAMPLE_NOW + 3000), 0);
    ck_assert_int_eq(
        queue_fail_job(s.queue, failed, CODE_FILE_UNREADABLE, "a \"quoted\"\nmessage", "a", "b", SAMPLE_NOW + 4000), 0);
    ck_assert_int_eq(queue_start_job(s.queue, running, "worker-0", 0, SAMPLE_NOW + 3000), 0);
    sample_series(s.queue, "1.2.5", 2);
    int64_t refused = sample_series(s.queue, "1.2.6", 2);
    struct queue_stack stack = {.code = CODE_MISSING_SLICE, .message = "one is missing"};
    ck_assert_int_eq(queue_settle(s.queue, refused, 1, "quiet", &stack, 1, SAMPLE_NOW), 0);
    int rc = report_open(s.path, &report, &error);
    ck_assert_msg(rc == 0, "%s", error.message);
}

static void
close_sample(void)
{
    report_close(report);
    report = NULL;
    sample_close(&s);
}

/* -------------------------------------------------------------------------- what was printed - */

enum what { STATUS, JOBS, SERIES, JOB, DELIVERIES, DESTINATIONS, REVIEW };

static const struct report_filter everything = {0};

static const struct report_destination configured[] = {
    {.name = "PACS", .address = "ORTHANC at 127.0.0.1:4242"},
    {.name = "NEW", .address = "/mnt/results"},
};

/* Returns the printed text, malloc'd; *rc is the result of the call. */
static char *
print(enum what what, const struct report_filter *filter, int64_t job, bool json, int *rc)
{
    /* Not local: gcc 12 takes the stream's data for a pointer into this function. */
    static char *text;
    static size_t size;
    FILE *out = open_memstream(&text, &size);
    switch (what) {
    case STATUS:
        *rc = report_status(report, out, json, &error);
        break;
    case JOBS:
        *rc = report_list(report, &report_jobs, filter, out, json, &error);
        break;
    case SERIES:
        *rc = report_list(report, &report_series, filter, out, json, &error);
        break;
    case JOB:
        *rc = report_job(report, job, out, json, &error);
        break;
    case DELIVERIES:
        *rc = report_list(report, &report_deliveries, filter, out, json, &error);
        break;
    case DESTINATIONS:
        *rc = report_destinations(report, configured, 2, out, json, &error);
        break;
    case REVIEW:
        *rc = report_review(report, filter, "/srv", out, json, &error);
        break;
    }
    fclose(out);
    return text;
}

static char *
printed(enum what what, const struct report_filter *filter, int64_t job, bool json)
{
    int rc;
    char *text = print(what, filter, job, json, &rc);
    ck_assert_msg(rc == 0, "%d: %s", rc, error.message);
    return text;
}

/* ------------------------------------------------------------------------------------- tests - */

START_TEST(jobs_as_json)
{
    char *json = printed(JOBS, &everything, 0, true);
    assert_json(json, "SELECT json_valid(?1) || json_type(?1) || json_array_length(?1)", "1array4");
    /* The newest first. */
    assert_json(json, "SELECT group_concat(json_extract(value, '$.job')) FROM json_each(?1)", "4,3,2,1");
    assert_json(json,
                "SELECT json_extract(?1, '$[3].state', '$[3].result_path', "
                "'$[3].total_seconds', '$[3].verify_seconds')",
                "[\"DONE\",\"outbox/1/seg.dcm\",1.0,null]");
    assert_json(json, "SELECT json_extract(?1, '$[2].message')", "a \"quoted\"\nmessage");
    char names[2048];
    snprintf(names, sizeof names, "%s", ask_json(json, "SELECT group_concat(key) FROM json_each(?1, '$[0]')"));
    assert_answer(&s, "SELECT group_concat(name) FROM pragma_table_info('v_jobs')", names);
    free(json);
}

END_TEST

/* As read in the morning: oldest first, broken expectations line by line. */
START_TEST(items_under_review_are_listed)
{
    const struct report_filter others = {.pipeline = "others"};
    static const char nothing[] = "no job is under review\n";
    char *text = printed(REVIEW, &everything, 0, false);
    ck_assert_str_eq(text, nothing);
    free(text);
    const struct queue_figures figures = sample_measured(sample_features, SAMPLE_FEATURES);
    ck_assert_int_eq(
        queue_finish_job(s.queue, 3,
                         &(struct queue_finish){QUEUE_REVIEW, &figures, &sample_result, 1, CODE_EXPECTATION_BROKEN,
                                                "Brain: volume 31 ml, expected 900 to 1900 ml; "
                                                "Brain: components: 2, expected 1"},
                         SAMPLE_NOW + 4000),
        0);
    enum queue_arrival arrival;
    int64_t series;
    text = printed(REVIEW, &everything, 0, false);
    ck_assert_str_eq(text, "Job 3, pipeline head-ct, since 2026-01-31 02:03:24 +0000\n"
                           "  series    1.2.3, CT HEAD \"Head 5 mm\"\n"
                           "  found     Brain: volume 31 ml, expected 900 to 1900 ml\n"
                           "  found     Brain: components: 2, expected 1\n"
                           "  preview   /srv/outbox/3/preview.png\n"
                           "\n"
                           "noctule accept JOB delivers it as it is, noctule reject JOB REASON ends "
                           "it\n");
    free(text);
    ck_assert_int_eq(sample_add(s.queue, "1.2.3", 9, &arrival, &series), 0);
    text = printed(REVIEW, &everything, 0, false);
    ck_assert_ptr_nonnull(strstr(text, "  outdated  late slices have arrived since: it can only be rejected\n"));
    free(text);
    text = printed(REVIEW, &others, 0, false);
    ck_assert_str_eq(text, nothing);
    free(text);
    text = printed(REVIEW, &everything, 0, true);
    assert_json(text, "SELECT json_array_length(?1) || json_extract(?1, '$[0].preview_path')", "1outbox/3/preview.png");
    free(text);
}

END_TEST

START_TEST(series_as_json)
{
    char *json = printed(SERIES, &everything, 0, true);
    assert_json(json, "SELECT json_valid(?1) || json_type(?1) || json_array_length(?1)", "1array6");
    assert_json(json,
                "SELECT json_extract(value, '$.code') || json_extract(value, '$.state') FROM "
                "json_each(?1) WHERE json_extract(value, '$.series_uid') = '1.2.6'",
                "MISSING_SLICEREFUSED");
    free(json);
}

END_TEST

START_TEST(status_as_json)
{
    char *json = printed(STATUS, NULL, 0, true);
    assert_json(json, "SELECT json_valid(?1) || json_type(?1)", "1object");
    assert_json(json,
                "SELECT json_extract(?1, '$.jobs_ready', '$.jobs_running', '$.jobs_done', "
                "'$.jobs_failed', '$.series_gathering', '$.series_settled', '$.series_refused')",
                "[1,1,1,1,1,4,1]");
    free(json);
}

END_TEST

START_TEST(a_job_as_json)
{
    char *json = printed(JOB, NULL, 1, true);
    assert_json(json, "SELECT json_valid(?1) || json_type(?1)", "1object");
    assert_json(json,
                "SELECT json_extract(?1, '$.job', '$.state', '$.results[0].path', "
                "'$.results[0].size_bytes')",
                "[1,\"DONE\",\"outbox/1/seg.dcm\",4096]");
    assert_json(json,
                "SELECT group_concat(json_extract(value, '$.kind')) FROM "
                "json_each(?1, '$.events')",
                "JOB_ADDED,JOB_STARTED,JOB_DONE");
    free(json);
    json = printed(JOB, NULL, 4, true);
    assert_json(json, "SELECT json_extract(?1, '$.results')", "[]");
    free(json);
}

END_TEST

START_TEST(filters)
{
    static const struct {
        struct report_filter filter;
        const char *jobs;
    } cases[] = {
        {{.state = "DONE"}, "1"},
        {{.state = "failed"}, "2"},
        {{.state = "EMPTY"}, ""},
        {{.pipeline = "head-ct"}, "4,3,2,1"},
        {{.pipeline = "other"}, ""},
        {{.series = "1.2.3"}, "3"},
        {{.series = "1.2.5"}, ""},
        {{.limit = 2}, "4,3"},
        {{.state = "RUNNING", .series = "1.2.3", .pipeline = "head-ct", .limit = 1}, "3"},
        {{.code = "file_unreadable"}, "2"},
        {{.code = "CRASHED"}, ""},
        {{.since = "2026-01-31T02:03:23"}, "2,1"},
        {{.since = "2026-01-31"}, "4,3,2,1"},
        {{.since = "2026-02"}, ""},
        {{.state = "FAILED", .current = true}, "2"},
        {{.modality = "ct", .sender = "CT9"}, "3"},
        {{.sender = "CT8"}, ""},
        {{.accession = {"4711", "h:ab"}}, "3"},
        {{.accession = {"4711", NULL}}, ""},
        {{.patient = {"0815", NULL}}, "3"},
        {{.patient = {"h:ab", "0815"}, .modality = "MR"}, ""},
    };

    sqlite3 *db;
    ck_assert_int_eq(sqlite3_open(s.path, &db), SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(db,
                                  "UPDATE series SET accession_number = 'h:ab', patient_id = "
                                  "'0815', sender = 'CT9' WHERE series_uid = '1.2.3'",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    sqlite3_close(db);

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *json = printed(JOBS, &cases[i].filter, 0, true);
        assert_json(json,
                    "SELECT coalesce(group_concat(json_extract(value, '$.job')), '') FROM "
                    "json_each(?1)",
                    cases[i].jobs);
        free(json);
    }
    static const char count[] = "SELECT json_array_length(?1)";

    static const struct {
        struct report_filter filter;
        const char *series;
    } series[] = {
        {{.state = "gathering"}, "1"}, {{.state = "SETTLED"}, "4"},  {{.pipeline = "head-ct"}, "4"},
        {{.series = "1.2.6"}, "1"},    {{.limit = 3}, "3"},          {{.pipeline = "none"}, "0"},
        {{.sender = "CT9"}, "1"},      {{.patient = {"0815"}}, "1"}, {{.code = "MISSING_SLICE"}, "1"},
    };

    for (size_t i = 0; i < sizeof series / sizeof *series; i++) {
        char *json = printed(SERIES, &series[i].filter, 0, true);
        assert_json(json, count, series[i].series);
        free(json);
    }
}

END_TEST

/* The FAILED job is run again; its result goes to PACS (SENT) and to OLD (DELAYED). */
static int64_t
deliver(void)
{
    static const char *const to[] = {"PACS", "OLD"};
    static const struct queue_attempt sent = {.dimse_status = 0, .code = CODE_NONE, .message = ""};
    static const struct queue_attempt full = {.dimse_status = 0xa700, .code = CODE_STORE_FAILED, .message = "full"};
    struct queue_result result = sample_result;
    result.destinations = to;
    result.destination_count = 2;
    int64_t job;
    ck_assert_int_eq(sample_retry(s.queue, 2, false, &job), 0);
    ck_assert_int_eq(queue_start_job(s.queue, job, "worker-1", 0, SAMPLE_NOW + 4000), 0);
    ck_assert_int_eq(queue_finish_job(s.queue, job,
                                      &(struct queue_finish){QUEUE_DONE, &sample_figures, &result, 1, CODE_NONE, ""},
                                      SAMPLE_NOW + 4000),
                     0);
    ck_assert_int_eq(queue_start_delivery(s.queue, 1, SAMPLE_NOW + 5000), 0);
    ck_assert_int_eq(queue_delivery_sent(s.queue, 1, &sent, "2.25.77", SAMPLE_NOW + 5000), 0);
    ck_assert_int_eq(queue_start_delivery(s.queue, 2, SAMPLE_NOW + 5000), 0);
    ck_assert_int_eq(queue_delay_delivery(s.queue, 2, SAMPLE_NOW + 65000, &full, SAMPLE_NOW + 5000), 0);
    return job;
}

/* All rows, oldest first, for commands that process each. */
START_TEST(keys_of_rows)
{
    char **keys, joined[64] = "";
    size_t count;
    struct report_filter limited = {.limit = 1}, wrong = {.state = "LOST"};
    ck_assert_int_eq(report_keys(report, &report_jobs, &limited, &keys, &count, &error), 0);
    ck_assert_uint_eq(count, 4);
    for (size_t i = 0; i < count; i++) {
        strcat(joined, keys[i]);
        free(keys[i]);
    }
    free(keys);
    ck_assert_str_eq(joined, "1234");
    ck_assert_int_eq(report_keys(report, &report_jobs, &wrong, &keys, &count, &error), -EINVAL);
    ck_assert_uint_eq(count, 0);
    /* A job that late slices made stale, or that another job replaced, is not current. */
    enum queue_arrival arrival;
    int64_t series;
    struct report_filter current = {.state = "FAILED", .current = true};
    ck_assert_int_eq(sample_add(s.queue, "1.2.2", 9, &arrival, &series), 0);
    ck_assert_int_eq(report_keys(report, &report_jobs, &current, &keys, &count, &error), 0);
    ck_assert_uint_eq(count, 0);
    free(keys);
}

END_TEST

START_TEST(deliveries_filtered)
{
    static const struct {
        struct report_filter filter;
        const char *deliveries;
    } cases[] = {
        {{.state = NULL}, "2,1"},
        {{.state = "sent"}, "1"},
        {{.state = "PENDING"}, ""},
        {{.destination = "OLD"}, "2"},
        {{.destination = "OTHER"}, ""},
        {{.job = 2}, "2,1"},
        {{.job = 1}, ""},
        {{.limit = 1}, "2"},
        {{.state = "DELAYED", .destination = "OLD", .job = 2, .limit = 5}, "2"},
        {{.state = "DELAYED", .destination = "PACS"}, ""},
    };

    deliver();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *json = printed(DELIVERIES, &cases[i].filter, 0, true);
        assert_json(json,
                    "SELECT coalesce(group_concat(json_extract(value, '$.delivery')), '') FROM "
                    "json_each(?1)",
                    cases[i].deliveries);
        free(json);
    }
    struct report_filter wrong = {.state = "LOST"}, unknown = {.job = 4711};
    int rc;
    free(print(DELIVERIES, &wrong, 0, false, &rc));
    ck_assert_int_eq(rc, -EINVAL);
    ck_assert_ptr_nonnull(strstr(error.message, "PENDING, SENDING, SENT, DELAYED, FAILED, REVIEW, CANCELLED"));
    free(print(DELIVERIES, &unknown, 0, false, &rc));
    ck_assert_int_eq(rc, -ENOENT);
}

END_TEST

START_TEST(deliveries_as_a_table)
{
    deliver();
    char *text = printed(DELIVERIES, &everything, 0, false);
    ck_assert_str_eq(text, "DELIVERY  STATE    DESTINATION  JOB  KIND  TRIES  SENT                       "
                           "NOT BEFORE                 STATUS  COMMITMENT  CODE          SOP INSTANCE\n"
                           "       2  DELAYED  OLD            2  seg       1                             "
                           "2026-01-31 02:04:25 +0000  0xA700              STORE_FAILED  2.25.1\n"
                           "       1  SENT     PACS           2  seg       1  2026-01-31 02:03:25 +0000  "
                           "                           0x0000  REQUESTED                 2.25.1\n");
    free(text);
}

END_TEST

START_TEST(destinations_configured_and_not)
{
    deliver();
    for (int again = 0; again < 2; again++) {
        char *text = printed(DESTINATIONS, NULL, 0, false);
        ck_assert_str_eq(text, "DESTINATION  STATE           PENDING  SENDING  DELAYED  FAILED  SENT  UNCOMMITTED  "
                               "LAST SENT                  NEXT ATTEMPT               ADDRESS\n"
                               "PACS         up                    0        0        0       0     1            1  "
                               "2026-01-31 02:03:25 +0000                             ORTHANC at 127.0.0.1:4242\n"
                               "NEW          up                    0        0        0       0     0            0  "
                               "                                                      /mnt/results\n"
                               "OLD          not configured        0        0        1       0     0            0  "
                               "                           2026-01-31 02:04:25 +0000\n");
        free(text);
    }
    ck_assert_int_eq(queue_note(s.queue, "DESTINATION_DOWN", "PACS: 3 failures", SAMPLE_NOW), 0);
    char *json = printed(DESTINATIONS, NULL, 0, true);
    assert_json(json,
                "SELECT json_extract(?1, '$[0].destination', '$[0].configured', '$[0].down_since', "
                "'$[1].sent', '$[1].last_sent_at', '$[2].configured', '$[2].delayed')",
                "[\"PACS\",1,\"2026-01-31T02:03:20.000Z\",0,null,0,1]");
    free(json);
}

END_TEST

START_TEST(a_job_lists_its_deliveries)
{
    int64_t job = deliver();
    char *json = printed(JOB, NULL, job, true);
    assert_json(json,
                "SELECT json_extract(?1, '$.deliveries[0].state', '$.deliveries[1].code', "
                "'$.deliveries[1].dimse_status')",
                "[\"SENT\",\"STORE_FAILED\",42752]");
    free(json);
    char *text = printed(JOB, NULL, job, false);
    ck_assert_ptr_nonnull(strstr(text, "\nDeliveries\nDELIVERY  STATE"));
    ck_assert_ptr_nonnull(strstr(text, "DELIVERY_SENT"));
    free(text);
    json = printed(JOB, NULL, 4, true);
    assert_json(json, "SELECT json_extract(?1, '$.deliveries')", "[]");
    free(json);
}

END_TEST

START_TEST(fifty_rows_by_default)
{
    int64_t series, job;
    struct queue_ids running;
    ck_assert_int_eq(queue_find_series(s.queue, "1.2.4", &series), 0);
    ck_assert_int_eq(queue_begin(s.queue), 0);
    for (int i = 0; i < 60; i++) {
        char pipeline[16];
        snprintf(pipeline, sizeof pipeline, "p%d", i);
        ck_assert_int_eq(queue_add_job(s.queue,
                                       &(struct queue_new_job){series, 1, "", pipeline, "", 0, false, NULL, false, 0,
                                                               NULL, CODE_NONE, 0, NULL, 0, 0, 0},
                                       SAMPLE_NOW, &job, &running),
                         0);
    }
    ck_assert_int_eq(queue_commit(s.queue), 0);
    char *json = printed(JOBS, &everything, 0, true);
    assert_json(json, "SELECT json_array_length(?1)", "50");
    free(json);
    json = printed(JOBS, &(struct report_filter){.limit = 1000}, 0, true);
    assert_json(json, "SELECT json_array_length(?1)", "64");
    free(json);
}

END_TEST

START_TEST(missing_items_are_errors)
{
    static const struct {
        enum what what;
        struct report_filter filter;
        int64_t job;
        int expected;
        const char *words;
    } cases[] = {
        {JOB, {0}, 4711, -ENOENT, "there is no job 4711"},
        {JOBS, {.series = "9.9"}, 0, -ENOENT, "there is no series 9.9"},
        {SERIES, {.series = "9.9"}, 0, -ENOENT, "there is no series 9.9"},
        {JOBS, {.state = "SETTLED"}, 0, -EINVAL, "READY, RUNNING, DONE"},
        {SERIES, {.state = "DONE"}, 0, -EINVAL, "GATHERING, SETTLED, REFUSED"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (int json = 0; json <= 1; json++) {
            int rc;
            char *text = print(cases[i].what, &cases[i].filter, cases[i].job, json, &rc);
            ck_assert_int_eq(rc, cases[i].expected);
            ck_assert_msg(strstr(error.message, cases[i].words), "%s", error.message);
            ck_assert_str_eq(text, "");
            free(text);
        }
    }
}

END_TEST

START_TEST(a_stored_series_has_its_files)
{
    struct report_stored stored;
    ck_assert_int_eq(report_stored_series(report, "1.2.6", &stored, &error), 0);
    ck_assert_str_eq(stored.state, "REFUSED");
    ck_assert_int_eq(stored.revision, 1);
    ck_assert_str_eq(stored.evidence, "quiet");
    ck_assert_str_eq(stored.code, "MISSING_SLICE");
    ck_assert_str_eq(stored.message, "one is missing");
    ck_assert_str_eq(stored.missing_accepted_by, "");
    ck_assert_int_eq(stored.lacking, 0);
    ck_assert_uint_eq(stored.path_count, 2);
    ck_assert_str_ne(stored.paths[0], stored.paths[1]);
    ck_assert_ptr_nonnull(strstr(stored.paths[0], "1.2.6"));
    report_stored_clear(&stored);
    ck_assert_int_eq(report_stored_series(report, "1.2.99", &stored, &error), -ENOENT);
    ck_assert_str_eq(error.message, "there is no series 1.2.99");
    report_stored_clear(&stored);
}

END_TEST

START_TEST(jobs_as_a_table)
{
    char *text = printed(JOBS, &(struct report_filter){.limit = 3, .state = NULL}, 0, false);
    /* WAIT of the waiting one grows: only constant text is compared. */
    ck_assert_ptr_nonnull(
        strstr(text, "JOB  STATE    PIPELINE  STACK  MODALITY  BODY PART  CREATED                    TRIES"));
    ck_assert_ptr_nonnull(strstr(text, "RUN (s)  PEAK (MiB)  CODE             SERIES\n"));
    ck_assert_ptr_nonnull(strstr(text, "\n  3  RUNNING  head-ct          CT        HEAD       2026-01-31 02:03:22 "));
    ck_assert_ptr_nonnull(strstr(text, "FILE_UNREADABLE  1.2.2\n"));
    free(text);
    text = printed(JOBS, &(struct report_filter){.state = "DONE"}, 0, false);
    ck_assert_str_eq(text, "JOB  STATE  PIPELINE  STACK  MODALITY  BODY PART  CREATED                    TRIES  "
                           "WHERE  WAIT (s)  RUN (s)  PEAK (MiB)  CODE  SERIES\n"
                           "  1  DONE   head-ct          CT        HEAD       2026-01-31 02:03:22 +0000      1  "
                           "local      1.00     1.00       100.0        1.2.1\n");
    free(text);
}

END_TEST

START_TEST(series_as_a_table)
{
    char *text = printed(SERIES, &(struct report_filter){.series = "1.2.6"}, 0, false);
    ck_assert_str_eq(text, "STATE    REVISION  MODALITY  BODY PART  INSTANCES  STACKS  JOBS DONE  "
                           "LAST SEEN                  CODE           SERIES\n"
                           "REFUSED         1  CT        HEAD               2     0/1        0/0  "
                           "2026-01-31 02:03:20 +0000  MISSING_SLICE  1.2.6\n");
    free(text);
    text = printed(SERIES, &(struct report_filter){.pipeline = "none"}, 0, false);
    ck_assert_str_eq(text, "STATE  REVISION  MODALITY  BODY PART  INSTANCES  STACKS  JOBS DONE  "
                           "LAST SEEN  CODE  SERIES\n");
    free(text);
}

END_TEST

START_TEST(a_job_as_text)
{
    char *text = printed(JOB, NULL, 1, false);
    ck_assert_ptr_nonnull(strstr(text, "state                     DONE\n"));
    ck_assert_ptr_nonnull(strstr(text, "compute_seconds           0.50 s\n"));
    ck_assert_ptr_nonnull(strstr(text, "peak_mib                  100.0 MiB\n"));
    ck_assert_ptr_null(strstr(text, "verify_seconds"));
    ck_assert_ptr_nonnull(strstr(text, "\nResults\nKIND  SIZE (MiB)  FRAMES  PATH"));
    ck_assert_ptr_nonnull(strstr(text, "\nEvents\nAT"));
    ck_assert_ptr_nonnull(strstr(text, "2026-01-31 02:03:24 +0000  JOB_DONE     RUNNING -> DONE\n"));
    free(text);
    text = printed(JOB, NULL, 2, false);
    ck_assert_ptr_nonnull(strstr(text, "a \"quoted\" message\n"));
    ck_assert_ptr_null(strstr(text, "Results"));
    free(text);
}

END_TEST

START_TEST(foreign_text_moves_no_cursor)
{
    struct queue_instance instance = {.sop_instance_uid = "1",
                                      .series_uid = "1.2.7",
                                      .modality = "C\x1b[2J\tT\x7f\xc2\x9b"
                                                  "1",
                                      .body_part = "K\xc3\xb6rper",
                                      .path = "series/1.2.7/1.dcm"};
    enum queue_arrival arrival;
    int64_t id;
    ck_assert_int_eq(queue_add_instance(s.queue, &instance, SAMPLE_NOW, &arrival, &id), 0);
    char *text = printed(SERIES, &(struct report_filter){.series = "1.2.7"}, 0, false);
    ck_assert_ptr_nonnull(strstr(text, "C [2J T   1"));
    /* The two bytes of the o umlaut are one place wide. */
    ck_assert_ptr_nonnull(strstr(text, "K\xc3\xb6rper             1"));
    free(text);
    char *json = printed(SERIES, &(struct report_filter){.series = "1.2.7"}, 0, true);
    assert_json(json, "SELECT json_valid(?1)", "1");
    free(json);
}

END_TEST

START_TEST(a_full_disk_is_reported)
{
    FILE *out = fopen("/dev/full", "w");
    ck_assert_ptr_nonnull(out);
    ck_assert_int_eq(report_list(report, &report_jobs, &everything, out, true, &error), -ENOSPC);
    ck_assert_ptr_nonnull(strstr(error.message, "output"));
    fclose(out);
}

END_TEST

/* ---------------------------------------------------------------------------------- the night */

static int64_t
now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Runs a job that ended `ago_ms` before now, took `seconds` and had lane `lane`. */
static void
run_job(const char *series_uid, int64_t ago_ms, double seconds, int32_t lane)
{
    struct queue_figures figures = sample_figures;
    int64_t job = sample_job(s.queue, series_uid), end = now_ms() - ago_ms;
    figures.total_seconds = seconds;
    ck_assert_int_eq(queue_start_job(s.queue, job, "worker-1", lane, end - (int64_t)(seconds * 1000)), 0);
    ck_assert_int_eq(queue_finish_job(s.queue, job,
                                      &(struct queue_finish){QUEUE_DONE, &figures, &sample_result, 1, CODE_NONE, ""},
                                      end),
                     0);
}

START_TEST(the_summary_of_a_period)
{
    /* No job has ended today: no estimate. */
    assert_answer(&s,
                  "SELECT (eta_seconds IS NULL) || (mean_seconds IS NULL) || "
                  "(median_seconds IS NULL) || jobs_ended_24h || backlog_jobs FROM v_night",
                  "11102");
    char *text = printed(STATUS, NULL, 0, false);
    ck_assert_ptr_nonnull(strstr(text, "2 jobs and series being received; how long is not known"));
    free(text);

    run_job("2.1", 3600 * 1000, 1, 0);
    run_job("2.2", 2 * 3600 * 1000, 2, 1);
    run_job("2.3", 13 * 3600 * 1000, 9, 0);
    run_job("2.4", 25 * 3600 * 1000, 100, 0);
    ck_assert_int_eq(
        queue_add_quarantine(s.queue,
                             &(struct queue_quarantine){
                                 .path = "quarantine/a", .original_path = "a", .code = CODE_NOT_DICOM, .message = "a"},
                             now_ms()),
        0);
    assert_answer(&s,
                  "SELECT jobs_ended_12h || ' ' || jobs_ended_24h || ' ' || jobs_failed_24h || "
                  "' ' || mean_seconds || ' ' || median_seconds || ' ' || quarantined_24h "
                  "FROM v_night",
                  "2 3 0 4.0 2.0 1");
    /*
     * On two lanes: one that waits, four seconds; one that began long ago; and three of the series
     * being received, since as many ended while no series was complete.
     */
    assert_answer(&s, "SELECT eta_seconds FROM v_night", "8.0");
    run_job("2.5", 3 * 3600 * 1000, 4, 0);
    assert_answer(&s, "SELECT median_seconds FROM v_night", "3.0");
    text = printed(STATUS, NULL, 0, false);
    ck_assert_ptr_nonnull(strstr(text,
                                 "Jobs        1 ready, 1 running, 0 delayed; 6 done, 0 empty, 1 failed, "
                                 "0 cancelled\n"
                                 "Series      1 gathering, 9 settled, 1 refused (0 in the last 24 h)\n"
                                 "Backlog     2 jobs, about 4 more of series being received, about 10.00 s to go\n"
                                 "Waiting     the oldest for "));
    ck_assert_ptr_nonnull(strstr(text, "Ended       3 in the last 12 h, 4 in the last 24 h, 0 of "
                                       "these failed\n"
                                       "A job took  3.00 s (median), 4.00 s (mean), of the last "
                                       "24 h\n"
                                       "Quarantine  1 in the last 24 h\n"));
    free(text);
    run_job("2.6", 3600 * 1000, 984, 0);
    text = printed(STATUS, NULL, 0, false);
    ck_assert_ptr_nonnull(strstr(text, "Backlog     2 jobs, about 5 more of series being received, "
                                       "about 10 min 0 s to go, until "));
    ck_assert_ptr_nonnull(strstr(text, "A job took  4.00 s (median), 3 min 20 s (mean), of "));
    int hours, minutes;
    const char *waiting = strstr(text, "Waiting  ");
    ck_assert_ptr_nonnull(waiting);
    ck_assert_int_eq(sscanf(waiting, "Waiting     the oldest for %d h %d min\n", &hours, &minutes), 2);
    free(text);
}

END_TEST

START_TEST(a_period_without_events)
{
    struct sample idle;
    sample_open(&idle);
    assert_answer(&idle, "SELECT eta_seconds || (oldest_waiting_seconds IS NULL) FROM v_night", "0.01");
    report_close(report);
    ck_assert_int_eq(report_open(idle.path, &report, &error), 0);
    char *text = printed(STATUS, NULL, 0, false);
    ck_assert_str_eq(text, "Jobs        0 ready, 0 running, 0 delayed; 0 done, 0 empty, 0 failed, "
                           "0 cancelled\n"
                           "Series      0 gathering, 0 settled, 0 refused (0 in the last 24 h)\n"
                           "Backlog     none\n"
                           "Ended       0 in the last 12 h, 0 in the last 24 h, 0 of these failed\n"
                           "Quarantine  0 in the last 24 h\n"
                           "Deliveries  0 waiting, 0 delayed, 0 failed; 0 sent in the last 24 h\n");
    free(text);
    text = printed(JOBS, &everything, 0, true);
    ck_assert_str_eq(text, "[]\n");
    free(text);
    sample_close(&idle);
}

END_TEST

/* ------------------------------------------------------------------------------- who may read */

/*
 * Opens and queries as a user who may write neither the files nor the folder. Returns the exit
 * status.
 */
static int
read_as_nobody(const char *path)
{
    sample_unwatch();
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        struct report *mine;
        if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0))
            _exit(100);
        int rc = report_open(path, &mine, &error);
        if (rc < 0)
            _exit(strstr(error.message, "read access") ? -rc : 101);
        FILE *null = fopen("/dev/null", "w");
        rc = report_status(mine, null, true, &error);
        report_close(mine);
        _exit(rc < 0 ? 102 : 0);
    }
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status));
    return WEXITSTATUS(status);
}

START_TEST(reading_needs_no_right_to_write)
{
    /* While the daemon runs, and after it stopped. */
    ck_assert_int_eq(chmod(s.folder, 0555), 0);
    ck_assert_int_eq(chmod(s.path, 0644), 0);
    report_close(report);
    report = NULL;
    ck_assert_int_eq(read_as_nobody(s.path), 0);
    sample_unwatch();
    queue_close(s.queue);
    s.queue = NULL;
    ck_assert_int_eq(read_as_nobody(s.path), 0);
    /* A copy without its log cannot be read there, and the reason names the missing file. */
    char other[160];
    ck_assert_int_eq(chmod(s.folder, 0755), 0);
    const char *const suffixes[] = {"-wal", "-shm"};
    for (int i = 0; i < 2; i++) {
        snprintf(other, sizeof other, "%s%s", s.path, suffixes[i]);
        ck_assert_int_eq(unlink(other), 0);
    }
    ck_assert_int_eq(chmod(s.folder, 0555), 0);
    ck_assert_int_eq(read_as_nobody(s.path), EACCES);
    ck_assert_int_eq(chmod(s.folder, 0700), 0);
}

END_TEST

START_TEST(reading_works_while_the_daemon_writes)
{
    ck_assert_int_eq(queue_begin(s.queue), 0);
    sample_series(s.queue, "3.1", 1);
    char *json = printed(SERIES, &everything, 0, true);
    assert_json(json, "SELECT json_array_length(?1)", "6");
    free(json);
    ck_assert_int_eq(queue_commit(s.queue), 0);
    json = printed(SERIES, &everything, 0, true);
    assert_json(json, "SELECT json_array_length(?1)", "7");
    free(json);
}

END_TEST

START_TEST(opening_without_a_daemon)
{
    struct report *none = NULL;
    char path[160];
    snprintf(path, sizeof path, "%s/none.db", s.folder);
    ck_assert_int_eq(report_open(path, &none, &error), -ENOENT);
    ck_assert_ptr_nonnull(strstr(error.message, "has noctuled run here"));
    ck_assert_ptr_null(none);
    fclose(fopen(path, "w"));
    ck_assert_int_eq(report_open(path, &none, &error), -EPROTONOSUPPORT);
    report_close(report);
    sample_unwatch();
    queue_close(s.queue);
    s.queue = NULL;
    ck_assert_int_eq(report_open(s.path, &report, &error), 0);
    char *json = printed(JOBS, &everything, 0, true);
    assert_json(json, "SELECT json_array_length(?1)", "4");
    free(json);
}

END_TEST

START_TEST(another_version_is_refused)
{
    struct report *none = NULL;
    sqlite3 *db;
    ck_assert_int_eq(sqlite3_open(s.path, &db), SQLITE_OK);
    sqlite3_exec(db, "PRAGMA user_version = 99", NULL, NULL, NULL);
    ck_assert_int_eq(report_open(s.path, &none, &error), -EPROTONOSUPPORT);
    ck_assert_ptr_nonnull(strstr(error.message, "99"));
    sqlite3_exec(db, "PRAGMA user_version = 1; PRAGMA application_id = 7", NULL, NULL, NULL);
    ck_assert_int_eq(report_open(s.path, &none, &error), -EBADMSG);
    sqlite3_close(db);
}

END_TEST

SAMPLE_MAIN("db_report", open_sample, close_sample, jobs_as_json, series_as_json, status_as_json,
            items_under_review_are_listed, a_job_as_json, filters, keys_of_rows, deliveries_filtered,
            deliveries_as_a_table, destinations_configured_and_not, a_job_lists_its_deliveries, fifty_rows_by_default,
            missing_items_are_errors, a_stored_series_has_its_files, jobs_as_a_table, series_as_a_table, a_job_as_text,
            foreign_text_moves_no_cursor, a_full_disk_is_reported, the_summary_of_a_period, a_period_without_events,
            reading_needs_no_right_to_write, reading_works_while_the_daemon_writes, opening_without_a_daemon,
            another_version_is_refused)
