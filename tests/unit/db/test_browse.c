/* Lists with filters, orders and marks (report_browse): the list of work. */
#include "db/report.h"
#include "db/report_lists.h"

#include "base/text.h"
#include "db/report/report_private.h"
#include "tests/unit/db/sample.h"
#include "tests/unit/suite.h"

static struct sample s;
static sqlite3 *db;
static struct report *report;
static struct error error;

static void
run(const char *format, ...)
{
    va_list values;
    char *reason = NULL;
    va_start(values, format);
    char *sql = sqlite3_vmprintf(format, values);
    va_end(values);
    ck_assert_msg(sqlite3_exec(db, sql, NULL, NULL, &reason) == SQLITE_OK, "%s: %s", sql, reason);
    sqlite3_free(sql);
}

static void
open_sample(void)
{
    sample_open(&s);
    ck_assert_int_eq(sqlite3_open_v2(s.path, &db, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
    sqlite3_busy_timeout(db, 5000);
    ck_assert_int_eq(report_open(s.path, &report, &error), 0);
    run("INSERT INTO settings (text) VALUES ('x')");
}

static void
close_sample(void)
{
    report_close(report);
    sqlite3_close(db);
    queue_close(s.queue); /* series without instances are not sound */
    s.queue = NULL;
    sample_close(&s);
}

/* A series with its description, and a state: of the series, or of its job if it has one. */
static void
add(int number, const char *state, const char *description, const char *at)
{
    const bool is_series = strcmp(state, "GATHERING") == 0 || strcmp(state, "REFUSED") == 0 || !strcmp(state, "NO_JOB");
    const char *of_series = !is_series || strcmp(state, "NO_JOB") == 0 ? "SETTLED" : state;
    run("INSERT INTO series (id, series_uid, study_uid, modality, body_part, description, state, revision, instances, "
        "frames, expected_instances, first_seen_at, last_seen_at, settled_at, code, station, sender, accession_number, "
        "patient_id) VALUES (%d, '1.2.%d', '1.3.%d', '%s', '', %Q, '%s', 1, %d, 0, 300, '%s', '%s', %s, '%s', 'CT%d', "
        "'AE', 'A%d', 'P%d')",
        number, number, number / 2, number % 2 ? "CT" : "MR", description, of_series, number, at, at,
        strcmp(of_series, "GATHERING") == 0 ? "NULL" : "'2026-01-31T00:00:00.000Z'",
        strcmp(state, "NO_JOB") == 0 ? "NO_RULE" : "", number % 3, number, number);
    if (is_series)
        return;
    const bool ended = strcmp(state, "READY") != 0;
    run("INSERT INTO stack (series_id, revision, name, accepted, planes, columns, rows, spacing_mm, code, message, "
        "file_a, "
        "file_b) VALUES (%d, 1, '', 1, 3, 4, 4, 1.0, '', '', '', '')",
        number);
    run("INSERT INTO job (id, series_id, revision, stack, pipeline, settings_id, state, priority, created_at, "
        "ready_at, "
        "started_at, ended_at, total_seconds) VALUES (%d, %d, 1, '', '%s', 1, '%s', 0, '%s', '%s', %s, %s, %s)",
        number, number, number % 2 ? "head" : "lung", state, at, at, ended ? "'2026-01-31T01:00:00.000Z'" : "NULL",
        ended ? "'2026-01-31T02:00:00.000Z'" : "NULL", ended ? "1.0 / 3.0" : "NULL");
}

/* Seven rows: a job per state, and a series per state. */
static void
add_each(void)
{
    add(1, "DONE", "Thorax 1 mm", "2026-01-01T00:00:00.000Z");
    add(2, "FAILED", "<script>alert(1)</script>", "2026-01-02T00:00:00.000Z");
    add(3, "READY", "=1+2", "2026-01-03T00:00:00.000Z");
    add(4, "GATHERING", "Head, \"native\"", "2026-01-04T00:00:00.000Z");
    add(5, "REFUSED", "\xd8\xaa\xd8\xb5\xd9\x88\xd9\x8a\xd8\xb1", "2026-01-05T00:00:00.000Z");
    add(6, "NO_JOB", "", "2026-01-06T00:00:00.000Z");
    add(7, "REVIEW", "thorax 5 mm", "2026-01-07T00:00:00.000Z");
    run("INSERT INTO result (id, job_id, kind, path, sop_class_uid, sop_instance_uid, series_uid, size_bytes, frames, "
        "created_at) VALUES (1, 1, 'seg', 'outbox/1/a', '1', '2.25.9', '2.25.8', 1, 1, '2026-01-31T02:00:00.000Z')");
    run("INSERT INTO delivery (job_id, result_id, destination, kind, path, sop_class_uid, sop_instance_uid, state, "
        "due_at, "
        "created_at, since_at, sent_at) SELECT 1, 1, column1, 'seg', 'outbox/1/a', '1', '2.25.9', column2, '2026', "
        "'2026', "
        "'2026', '2026-01-31T02:00:00.000Z' FROM (VALUES ('PACS', 'SENT'), ('SHARE', 'DELAYED'))");
}

/* Sets fields by name: "state", "DONE", ..., NULL. */
static struct report_browse
wanted(const char *key, ...)
{
    struct report_browse browse = {0};
    va_list keys;
    va_start(keys, key);
    for (; key; key = va_arg(keys, const char *)) {
        const int place = report_field_place(&report_browsed[BROWSE_WORK], key);
        ck_assert_int_ge(place, 0);
        browse.values[place] = va_arg(keys, const char *);
    }
    va_end(keys);
    return browse;
}

/* The series that a filter finds, as digits in the order of the list. */
static const char *
found_in(const struct report_list *list, struct report_browse browse)
{
    static char text[256];
    struct report_table table;
    ck_assert_msg(report_browse(report, list, &browse, &table, &error) == 0, "%s", error.message);
    text[0] = '\0';
    for (size_t row = 0; row < table.row_count; row++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s",
                 report_cell(&table, row, "series_uid") + strlen("1.2."));
    report_table_free(&table);
    return text;
}

static const char *
found(struct report_browse browse)
{
    return found_in(&report_browsed[BROWSE_WORK], browse);
}

START_TEST(each_field_filters)
{
    static const char *const rows[][3] = {
        {"state", "DONE", "1"},
        {"state", "WAITING", "3"},
        {"state", "GATHERING", "4"},
        {"state", "REFUSED", "5"},
        {"state", "NO_JOB", "6"},
        {"state", "REVIEW", "7"},
        {"state", "CANCELLED", ""},
        {"pipeline", "lung", "2"},
        {"pipeline", "lun", ""},
        {"modality", "ct", "7531"},
        {"scanner", "CT0", "63"},
        {"sender", "AE", "7654321"},
        {"backend", "cpu", "7"},
        {"way", "network", "7654321"},
        {"way", "inbox", ""},
        {"destination", "PACS", "1"},
        {"undelivered", "PACS", ""},
        {"undelivered", "SHARE", "1"},
        {"since", "2026-01-06", "76"},
        {"since", "2026-01-06T00:00:00.001Z", "7"},
        {"since", "2026-01-06T01:00:00+01:00", "76"},
        {"since", "1d", ""},
        {"before", "2026-01-02T00:00:00Z", "1"},
        {"ended_since", "2026-01-31T02:00:00Z", "721"},
        {"ended_before", "2026-01-31T02:00:00Z", ""},
        {"longer", "0.33", "721"},
        {"longer", "0.34", ""},
        {"code", "no_rule", "6"},
        {"series", "1.2.3", "3"},
        {"study", "1.3.1", "32"},
        {"current", "yes", "7654321"},
        {"current", "no", ""},
    };
    add_each();
    run("UPDATE job SET backend = 'cpu' WHERE id = 7");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        ck_assert_msg(strcmp(found(wanted(rows[i][0], rows[i][1], NULL)), rows[i][2]) == 0, "%s = %s: %s", rows[i][0],
                      rows[i][1], found(wanted(rows[i][0], rows[i][1], NULL)));
    /* every field has a row above */
    for (size_t k = 0; k < report_browsed[BROWSE_WORK].field_count; k++) {
        bool is_tested = false;
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
            is_tested |= strcmp(rows[i][0], report_browsed[BROWSE_WORK].fields[k].key) == 0;
        ck_assert_msg(is_tested, "%s", report_browsed[BROWSE_WORK].fields[k].key);
    }
}

END_TEST

/* The list of work with a text has the same filters. */
START_TEST(a_text_finds_identifiers_and_descriptions)
{
    static const char *const rows[][2] = {
        {"THORAX", "71"}, {"6", "6"}, /* no job: the description and the number are compared */
        {"A4", "4"},      {"P4", "4"},     {"1.2.5", "5"}, {"1.3.1", "32"},
        {"2.25.9", "1"},  {"2.25.8", "1"}, {"%", ""},      {"' OR 1 --", ""},
    };
    const struct report_list *list = &report_browsed[BROWSE_FOUND];
    const int place = report_field_place(list, "text");
    struct report_browse browse = {0};
    add_each();
    run("UPDATE series SET description = 'Room 6' WHERE id = 6");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        browse.values[place] = rows[i][0];
        ck_assert_msg(strcmp(found_in(list, browse), rows[i][1]) == 0, "%s: %s", rows[i][0], found_in(list, browse));
    }
    browse.values[place] = "thorax";
    browse.values[report_field_place(list, "state")] = "DONE";
    browse.values[report_field_place(list, "modality")] = "CT";
    ck_assert_str_eq(found_in(list, browse), "1");
    browse = (struct report_browse){.pseudonym = "A5"};
    browse.values[place] = "secret";
    ck_assert_str_eq(found_in(list, browse), "5");
    ck_assert_int_lt(report_field_place(&report_browsed[BROWSE_WORK], "text"), 0);
    for (size_t i = 0; i < report_browsed[BROWSE_WORK].field_count; i++)
        ck_assert_int_ge(report_field_place(list, report_browsed[BROWSE_WORK].fields[i].key), 0);
}

END_TEST

START_TEST(bad_values_are_named)
{
    static const char *const rows[][2] = {{"state", "done"},
                                          {"since", "yesterday"},
                                          {"since", "2026-02-30"},
                                          {"since", "2026"},
                                          {"since", "2026-01-01T25:00:00"},
                                          {"since", "2026-01-01Z"},
                                          {"since", "-3d"},
                                          {"longer", "1s"},
                                          {"longer", "inf"},
                                          {"longer", "nan"},
                                          {"longer", "0x10"},
                                          {"longer", "1e999"},
                                          {"longer", "-1"},
                                          {"before", "999999999d"}};
    char start[64];
    struct report_table table;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct report_browse browse = wanted(rows[i][0], rows[i][1], NULL);
        ck_assert_msg(report_browse(report, &report_browsed[BROWSE_WORK], &browse, &table, &error) == -EINVAL, "%s",
                      rows[i][1]);
        snprintf(start, sizeof start, "parameter %s: ", rows[i][0]);
        ck_assert_int_eq(strncmp(error.message, start, strlen(start)), 0);
    }
    static const char *const marks[] = {"x", " ", "2026 ", "2026 1x", "2026 --", "1"};
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        ck_assert_msg(report_browse(report, &report_browsed[BROWSE_WORK], &(struct report_browse){.after = marks[i]},
                                    &table, &error) == -EINVAL,
                      "%s", marks[i]);
    ck_assert_int_eq(
        report_browse(report, &report_browsed[BROWSE_WORK], &(struct report_browse){.sort = "message"}, &table, &error),
        -EINVAL);
    ck_assert_int_eq(strncmp(error.message, "parameter sort: ", 16), 0);
}

END_TEST

START_TEST(times_of_requests)
{
    static const char *const rows[][2] = {
        {"2026-01-31", "2026-01-31T00:00:00.000Z"},
        {"2026-01-31T09:30", "2026-01-31T09:30:00.000Z"},
        {"2026-01-31t09:30:15z", "2026-01-31T09:30:15.000Z"},
        {"2026-01-31T09:30:15.5Z", "2026-01-31T09:30:15.500Z"},
        {"2026-01-31T09:30:15.123456789Z", "2026-01-31T09:30:15.123Z"},
        {"2026-01-31T00:30:00+01:30", "2026-01-30T23:00:00.000Z"},
        {"2026-01-31T00:30:00 01:30", "2026-01-30T23:00:00.000Z"}, /* of an URL */
        {"2026-12-31T23:30-01:00", "2027-01-01T00:30:00.000Z"},
        {"0h", "2026-01-31T02:03:20.000Z"},
        {"36h", "2026-01-29T14:03:20.000Z"},
        {"7d", "2026-01-24T02:03:20.000Z"},
    };
    char at[ISO_TIME_SIZE];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ck_assert_msg(report_moment(rows[i][0], SAMPLE_NOW, at) == 0, "%s", rows[i][0]);
        ck_assert_str_eq(at, rows[i][1]);
    }
}

END_TEST

/* Rows that come and go between two pages: those that were there are listed once each. */
START_TEST(pages_neither_lose_nor_repeat)
{
    enum { COUNT = 130 };

    static const char *const states[] = {"DONE", "GATHERING", "FAILED", "REFUSED", "READY", "NO_JOB"};
    char at[32], sort[32];
    run("BEGIN");
    for (int i = 1; i <= COUNT; i++) { /* three rows of a time */
        snprintf(at, sizeof at, "2026-01-%02dT00:00:00.000Z", 1 + i / 3 % 28);
        add(i, states[i % 6], "x", at);
    }
    run("UPDATE job SET total_seconds = (id * 7919 %% 13) / 7.0 WHERE ended_at IS NOT NULL");
    run("COMMIT");
    int added = COUNT;
    for (size_t order = 0; order < 2 * report_browsed[BROWSE_WORK].sort_count; order++) {
        bool seen[1000] = {false};
        int count = 0;
        struct report_browse browse = {.sort = sort};
        char after[REPORT_MARK] = "";
        snprintf(sort, sizeof sort, "%s%s", order % 2 ? "-" : "", report_browsed[BROWSE_WORK].sorts[order / 2].key);
        do {
            struct report_table table;
            browse.after = after;
            ck_assert_msg(report_browse(report, &report_browsed[BROWSE_WORK], &browse, &table, &error) == 0, "%s",
                          error.message);
            for (size_t row = 0; row < table.row_count; row++) {
                const int number = atoi(report_cell(&table, row, "series_uid") + 4);
                ck_assert_msg(!seen[number], "%s: %d twice", sort, number);
                seen[number] = true;
                count += number <= COUNT;
            }
            snprintf(after, sizeof after, "%s", table.next);
            report_table_free(&table);
            static const char *const times[] = {"2026-01-01T00:00:00.000Z", "2026-01-15T00:00:00.000Z",
                                                "2026-02-15T00:00:00.000Z"};
            for (int i = 0; i < 3; i++, added++)
                add(added + 1, states[added % 6], "y", times[i]);
        } while (*after);
        ck_assert_msg(count == COUNT, "%s: %d of %d", sort, count, COUNT);
    }
}

END_TEST

START_TEST(counts_are_those_of_the_lists)
{
    int64_t counts[16];
    add_each();
    const int state = report_field_place(&report_browsed[BROWSE_WORK], "state");
    const struct report_field *field = &report_browsed[BROWSE_WORK].fields[state];
    static const char *const modalities[] = {"", "CT", "MR", "PT"};
    for (size_t m = 0; m < 4; m++) {
        struct report_browse browse = wanted("modality", modalities[m], "state", "DONE", NULL);
        ck_assert_int_eq(report_browse_count(report, &report_browsed[BROWSE_WORK], &browse, state, counts, &error), 0);
        int i = 0;
        for (; field->choices[i].word; i++) {
            browse.values[state] = field->choices[i].word;
            ck_assert_int_eq((int)strlen(found(browse)), counts[i]);
        }
        browse.values[state] = "";
        ck_assert_int_eq((int)strlen(found(browse)), counts[i]);
    }
}

END_TEST

/* A count only decides how rows are searched: as before, or in the order of an index, or all of them. */
START_TEST(a_known_total_changes_no_row)
{
    static const int64_t totals[] = {1, 1000000};
    static const int64_t none = 0;
    static const char *const fields[][2] = {{"modality", "CT"}, {"pipeline", "head"},    {"scanner", "CT1"},
                                            {"sender", "AE"},   {"state", "DONE"},       {"code", "NO_RULE"},
                                            {"study", "1.3.4"}, {"destination", "PACS"}, {"since", "2026-01-03"}};
    static const char *const states[] = {"DONE", "GATHERING", "FAILED", "REFUSED", "READY", "NO_JOB", "DONE"};
    char at[32], sort[32], expected[512];
    for (int i = 1; i <= 60; i++) {
        snprintf(at, sizeof at, "2026-01-%02dT00:00:00.000Z", 1 + i / 3);
        add(i, states[i % 7], "x", at);
    }
    int rows = 0;
    for (size_t f = 0; f < sizeof fields / sizeof *fields; f++)
        for (size_t order = 0; order < 2 * report_browsed[BROWSE_WORK].sort_count; order++) {
            snprintf(sort, sizeof sort, "%s%s", order % 2 ? "-" : "", report_browsed[BROWSE_WORK].sorts[order / 2].key);
            struct report_browse browse = wanted(fields[f][0], fields[f][1], NULL);
            browse.sort = sort;
            browse.limit = 20;
            snprintf(expected, sizeof expected, "%s", found(browse));
            rows += *expected != '\0';
            for (size_t i = 0; i < 2; i++) {
                browse.total = &totals[i];
                ck_assert_str_eq(found(browse), expected);
            }
            browse.total = &none;
            ck_assert_str_eq(found(browse), "");
        }
    ck_assert_int_gt(rows, 80);
    struct report_table table;
    const struct report_browse wrong = {.sort = "nothing", .total = &none};
    ck_assert_int_eq(report_browse(report, &report_browsed[BROWSE_WORK], &wrong, &table, &error), -EINVAL);
}

END_TEST

/* ------------------------------------------------------------------- counts of the pages ------ */

/* Random work of 40 days: two revisions of some series, and jobs that newer ones superseded. No time is within half an hour of
 * the limits of the lists. */
static void
add_random(void)
{
    static const char *const states[] = {"DONE",     "EMPTY",     "FAILED", "REVIEW",
                                         "REJECTED", "CANCELLED", "READY",  "RUNNING"};
    run("CREATE TEMP TABLE draw AS WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 600) "
        "SELECT i, strftime('%%Y-%%m-%%dT%%H:%%M:%%fZ', 'now', '-' || (60 * (i * 7919 %% iif(i %% 3, 30, 960)) + "
        "30) "
        "|| ' minutes') AS at FROM n");
    run("INSERT INTO series (id, series_uid, study_uid, modality, body_part, description, state, revision, instances, "
        "frames, "
        "expected_instances, first_seen_at, last_seen_at, settled_at, code, station, sender) SELECT i, '1.2.' || i, "
        "'1.3', 'CT', "
        "'', '', CASE i %% 10 WHEN 0 THEN 'GATHERING' WHEN 1 THEN 'REFUSED' ELSE 'SETTLED' END, 1 + (i %% 7 = 0), 3, "
        "0, 0, at, at, "
        "iif(i %% 10 = 0, NULL, at), CASE i %% 10 WHEN 1 THEN 'MISSING_SLICE' WHEN 2 THEN 'NO_RULE' ELSE '' END, "
        "iif(i %% 5, 'CT' || i %% 3, ''), iif(i %% 3, 'AE' || i %% 4, '') FROM draw");
    run("INSERT INTO stack (series_id, revision, name, accepted, planes, columns, rows, spacing_mm, code, message, "
        "file_a, file_b) "
        "SELECT i, r.column1, '', 1, 3, 4, 4, 1.0, '', '', '', '' FROM draw, (VALUES (1), (2)) r WHERE i %% 10 > 2 OR "
        "i %% 7 = 0");
    for (size_t k = 0; k < sizeof states / sizeof *states; k++)
        run("INSERT INTO job (series_id, revision, stack, pipeline, settings_id, state, priority, created_at, "
            "ready_at, started_at, "
            "ended_at, total_seconds, code, attempts, worker, lane) SELECT i, r.column1, '', iif(i %% 4, 'head', "
            "'lung'), 1, '%s', 0, "
            "at, at, iif('%s' = 'READY', NULL, at), iif('%s' IN ('READY', 'RUNNING'), NULL, "
            "strftime('%%Y-%%m-%%dT%%H:%%M:%%fZ', at, "
            "'+2 minutes')), i, iif('%s' = 'FAILED', 'DEVICE_LOST', ''), 1, 'w', i FROM draw, (VALUES (1), (2)) r "
            "WHERE (i %% 10 > 2 OR i %% 7 = 0) AND (i + r.column1) %% %d = %d AND (r.column1 = 1 OR i %% 7 = 0)",
            states[k], states[k], states[k], states[k], (int)(sizeof states / sizeof *states), (int)k);
    run("UPDATE job SET superseded_by = (SELECT id FROM job n WHERE n.series_id = job.series_id AND n.revision > "
        "job.revision) "
        "WHERE ended_at IS NOT NULL");
    run("CREATE TEMP TABLE work AS SELECT * FROM v_work"); /* each row was computed */
    assert_answer(&s, "SELECT count(*) > 50 FROM v_work WHERE superseded_by IS NOT NULL", "1");
}

/* Compares a column of a list with a count of the rows of v_work. In the condition, $ is the cell of the key. */
static void
expect_count(enum report_list_name name, const char *key, const char *column, const char *condition)
{
    struct report_table list;
    int64_t sum = 0;
    const int rc = report_page(report, name, &(struct report_query){0}, &list, &error);
    ck_assert_msg(rc == 0, "%s: %s", report_lists[name].key, error.message);
    ck_assert_uint_gt(list.row_count, 0);
    for (size_t row = 0; row < list.row_count; row++) {
        sqlite3_stmt *counted;
        char *sql = sqlite3_mprintf("SELECT count(*) FROM work WHERE %s", condition);
        ck_assert_msg(sqlite3_prepare_v2(db, sql, -1, &counted, NULL) == SQLITE_OK, "%s", sql);
        if (key)
            sqlite3_bind_text(counted, 1, report_cell_text(&list, row, key), -1, SQLITE_TRANSIENT);
        ck_assert_int_eq(sqlite3_step(counted), SQLITE_ROW);
        ck_assert_msg((int64_t)report_number(&list, row, column) == sqlite3_column_int64(counted, 0),
                      "%s, %s of %s: %s, not %lld", report_lists[name].key, column,
                      key ? report_cell_text(&list, row, key) : "all", report_cell_text(&list, row, column),
                      sqlite3_column_int64(counted, 0));
        sum += sqlite3_column_int64(counted, 0);
        sqlite3_finalize(counted);
        sqlite3_free(sql);
    }
    ck_assert_msg(sum > 0, "%s, %s: no row counts", report_lists[name].key, column);
    report_table_free(&list);
}

START_TEST(counts_of_the_pages_are_those_of_the_work)
{
#define SINCE_DAY  ">= strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '-24 hours')"
#define SINCE_WEEK ">= strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '-7 days')"
#define NEWEST     "superseded_by IS NULL"

    static const struct {
        enum report_list_name list;
        const char *key, *column, *condition;
    } rows[] = {
        {WEB_DAYS, "at", "received", "substr(at, 1, 10) = substr(?1, 1, 10) AND " NEWEST},
        {WEB_DAYS, "at", "done",
         "substr(ended_at, 1, 10) = substr(?1, 1, 10) AND state NOT IN ('REVIEW', 'FAILED') AND " NEWEST},
        {WEB_DAYS, "at", "review", "substr(ended_at, 1, 10) = substr(?1, 1, 10) AND state = 'REVIEW' AND " NEWEST},
        {WEB_DAYS, "at", "failed", "substr(ended_at, 1, 10) = substr(?1, 1, 10) AND state = 'FAILED' AND " NEWEST},
        {WEB_HOURS, "at", "received", "substr(at, 1, 13) = substr(?1, 1, 13) AND " NEWEST},
        {WEB_HOURS, "at", "done",
         "substr(ended_at, 1, 13) = substr(?1, 1, 13) AND state NOT IN ('REVIEW', 'FAILED') AND " NEWEST},
        {WEB_HOURS, "at", "review", "substr(ended_at, 1, 13) = substr(?1, 1, 13) AND state = 'REVIEW' AND " NEWEST},
        {WEB_HOURS, "at", "failed", "substr(ended_at, 1, 13) = substr(?1, 1, 13) AND state = 'FAILED' AND " NEWEST},
        {WEB_FLOW, NULL, "received", "at " SINCE_DAY " AND " NEWEST},
        {WEB_FLOW, NULL, "receiving", "state = 'GATHERING'"},
        {WEB_FLOW, NULL, "refused", "state = 'REFUSED' AND at " SINCE_DAY},
        {WEB_FLOW, NULL, "no_job", "state = 'NO_JOB' AND at " SINCE_DAY},
        {WEB_FLOW, NULL, "ended", "ended_at " SINCE_DAY " AND " NEWEST},
        {WEB_FLOW, NULL, "running", "state = 'RUNNING'"},
        {WEB_FLOW, NULL, "waiting", "state = 'READY'"},
        {WEB_FLOW, NULL, "failed", "state = 'FAILED' AND ended_at " SINCE_DAY " AND " NEWEST},
        {WEB_FLOW, NULL, "review", "state = 'REVIEW'"},
        {WEB_FLOW, NULL, "rejected", "state = 'REJECTED' AND ended_at " SINCE_DAY},
        {WEB_SENDERS, "sender", "work", "sender = ?1 AND at " SINCE_DAY " AND " NEWEST},
        {WEB_PIPELINE_WORK, "pipeline", "work", "pipeline = ?1 AND at " SINCE_WEEK " AND " NEWEST},
        {WEB_BY_PIPELINE, "pipeline", "jobs", "pipeline = ?1 AND ended_at " SINCE_WEEK " AND " NEWEST},
        {WEB_BY_PIPELINE, "pipeline", "review_of",
         "pipeline = ?1 AND state = 'REVIEW' AND ended_at " SINCE_WEEK " AND " NEWEST},
        {WEB_BY_PIPELINE, "pipeline", "failed_of",
         "pipeline = ?1 AND state = 'FAILED' AND ended_at " SINCE_WEEK " AND " NEWEST},
        {WEB_BY_SCANNER, "scanner", "work", "station = ?1 AND at " SINCE_WEEK " AND " NEWEST},
        {WEB_BY_SCANNER, "scanner", "refused_by",
         "station = ?1 AND state = 'REFUSED' AND at " SINCE_WEEK " AND " NEWEST},
        {WEB_BY_SCANNER, "scanner", "no_job_by", "station = ?1 AND state = 'NO_JOB' AND at " SINCE_WEEK " AND " NEWEST},
        {WEB_BY_SCANNER, "scanner", "review_by", "station = ?1 AND state = 'REVIEW' AND at " SINCE_WEEK " AND " NEWEST},
        {WEB_BY_SCANNER, "scanner", "failed_by", "station = ?1 AND state = 'FAILED' AND at " SINCE_WEEK " AND " NEWEST},
    };

    int64_t counts[16];
    add_random();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        expect_count(rows[i].list, rows[i].key, rows[i].column, rows[i].condition);
    /* the counts without a filter have a query of their own */
    const int state = report_field_place(&report_browsed[BROWSE_WORK], "state");
    const struct report_field *field = &report_browsed[BROWSE_WORK].fields[state];
    ck_assert_int_eq(
        report_browse_count(report, &report_browsed[BROWSE_WORK], &(struct report_browse){0}, state, counts, &error),
        0);
    for (int i = 0;; i++) {
        sqlite3_stmt *counted;
        char *sql =
            sqlite3_mprintf("SELECT count(*) FROM work WHERE %s", field->choices[i].word ? field->choices[i].sql : "1");
        ck_assert_int_eq(sqlite3_prepare_v2(db, sql, -1, &counted, NULL), SQLITE_OK);
        ck_assert_int_eq(sqlite3_step(counted), SQLITE_ROW);
        ck_assert_int_eq(counts[i], sqlite3_column_int64(counted, 0));
        sqlite3_finalize(counted);
        sqlite3_free(sql);
        if (!field->choices[i].word)
            break;
    }
}

END_TEST

static struct text_stream stream;

static const char *
printed(enum report_format format, struct report_browse browse)
{
    char next[REPORT_MARK];
    free(stream.bytes);
    ck_assert_int_eq(text_open(&stream), 0);
    ck_assert_msg(
        report_browse_print(report, &report_browsed[BROWSE_WORK], &browse, format, stream.out, next, &error) == 0, "%s",
        error.message);
    ck_assert_int_eq(text_close(&stream), 0);
    ck_assert_int_eq(*next != '\0', browse.limit == 2);
    return stream.bytes;
}

START_TEST(foreign_texts_are_safe_in_json_and_csv)
{
    add_each();
    const char *json = printed(REPORT_JSON, (struct report_browse){0});
    sqlite3_stmt *row;
    ck_assert_int_eq(sqlite3_prepare_v2(db,
                                        "SELECT json_array_length(?1), json_extract(?1, '$[4].job'), "
                                        "json_extract(?1, '$[5].series_description'), json_type(?1, '$[1].job'), "
                                        "json_extract(?1, '$[6].deliveries')",
                                        -1, &row, NULL),
                     SQLITE_OK);
    sqlite3_bind_text(row, 1, json, -1, SQLITE_STATIC);
    ck_assert_int_eq(sqlite3_step(row), SQLITE_ROW);
    ck_assert_int_eq(sqlite3_column_int(row, 0), 7);
    ck_assert_int_eq(sqlite3_column_int(row, 1), 3);
    ck_assert_str_eq((const char *)sqlite3_column_text(row, 2), "<script>alert(1)</script>");
    ck_assert_str_eq((const char *)sqlite3_column_text(row, 3), "null");
    ck_assert_str_eq((const char *)sqlite3_column_text(row, 4), "PACS SENT, SHARE WAITING");
    sqlite3_finalize(row);
    const char *csv = printed(REPORT_CSV, (struct report_browse){0});
    ck_assert_int_eq(strncmp(csv, "work,job,series_uid,state,at,", 29), 0);
    ck_assert_ptr_nonnull(strstr(csv, ",'=1+2,"));
    ck_assert_ptr_nonnull(strstr(csv, ",\"Head, \"\"native\"\"\","));
    ck_assert_ptr_nonnull(strstr(csv, "\r\n-4,,1.2.4,GATHERING,")); /* a number is no formula */
    ck_assert_ptr_nonnull(strstr(csv, ",\"PACS SENT, SHARE WAITING\","));
    printed(REPORT_JSON, (struct report_browse){.limit = 2});
    free(stream.bytes);
    stream.bytes = NULL;
}

END_TEST

static void
note_key(void *context, const char *key)
{
    fprintf(context, "%s,", key);
}

/* In each order, and with each filter alone. */
START_TEST(each_list_can_be_printed)
{
    char next[REPORT_MARK];
    add_each();
    for (int name = 0; name < BROWSE_COUNT; name++) {
        const struct report_list *list = &report_browsed[name];
        for (size_t k = 0; k < list->sort_count + list->field_count; k++) {
            struct report_browse browse = {0};
            if (k < list->sort_count) {
                browse.sort = list->sorts[k].key;
            } else {
                const struct report_field *field = &list->fields[k - list->sort_count];
                browse.values[k - list->sort_count] = field->form == REPORT_CHOICE   ? field->choices[0].word
                                                      : field->form == REPORT_MOMENT ? "7d"
                                                                                     : "1";
            }
            for (int format = REPORT_JSON; format <= REPORT_CSV; format++) {
                FILE *out = fopen("/dev/null", "w");
                ck_assert_msg(
                    report_browse_print(report, list, &browse, (enum report_format)format, out, next, &error) == 0,
                    "%s: %s", list->key, error.message);
                fclose(out);
            }
        }
        /* the keys are those of CSV */
        struct text_stream keys, csv;
        ck_assert_int_eq(text_open(&keys), 0);
        ck_assert_int_eq(report_browse_keys(report, list, note_key, keys.out, &error), 0);
        ck_assert_int_eq(text_close(&keys), 0);
        ck_assert_int_eq(text_open(&csv), 0);
        ck_assert_int_eq(
            report_browse_print(report, list, &(struct report_browse){0}, REPORT_CSV, csv.out, next, &error), 0);
        ck_assert_int_eq(text_close(&csv), 0);
        csv.bytes[strcspn(csv.bytes, "\r")] = '\0';
        keys.bytes[keys.size - 1] = '\0';
        ck_assert_str_eq(keys.bytes, csv.bytes);
        free(keys.bytes);
        free(csv.bytes);
    }
}

END_TEST

/* Deliveries of three causes at two destinations. */
START_TEST(undelivered_results_are_grouped_by_cause)
{
    add_each();
    run("INSERT INTO delivery (job_id, destination, kind, path, sop_class_uid, sop_instance_uid, state, due_at, "
        "created_at, "
        "since_at, sent_at, code, commitment, requested_at) SELECT 1, column1, 'sr', column2, '1', '', column3, '', "
        "'2026-01-31T02:00:00.000Z', '', '2026', column4, column5, nullif(column6, '') FROM (VALUES "
        "('PACS', 'a', 'FAILED', 'PEER_REFUSED', 'NONE', ''), ('PACS', 'b', 'FAILED', 'PEER_REFUSED', 'NONE', ''), "
        "('PACS', 'c', 'FAILED', 'PEER_ABORTED', 'NONE', ''), "
        "('PACS', 'd', 'SENT', '', 'REQUESTED', '2026-01-31T03:00:00.000Z'))");
    run("INSERT INTO hold VALUES ('destination', 'SHARE', '2026', 'jane', 'moved')");
    assert_answer(&s,
                  "SELECT group_concat(destination || ' ' || cause || ' ' || code || ' ' || deliveries, '; ') FROM "
                  "(SELECT * FROM v_undelivered ORDER BY destination, cause, code)",
                  "PACS FAILED PEER_ABORTED 1; PACS FAILED PEER_REFUSED 2; PACS UNCOMMITTED  1; SHARE HELD  1");
}

END_TEST

static char traced[8192];

static int
on_statement(unsigned type, void *context, void *statement, void *text)
{
    (void)type, (void)context, (void)text;
    snprintf(traced, sizeof traced, "EXPLAIN QUERY PLAN %s", sqlite3_sql(statement));
    return 0;
}

/* Returns the steps of the last query of the report, separated by "; ". */
static const char *
steps_of_last(void)
{
    static char steps[4096];
    sqlite3_stmt *row;
    steps[0] = '\0';
    ck_assert_msg(sqlite3_prepare_v2(db, traced, -1, &row, NULL) == SQLITE_OK, "%s", traced);
    while (sqlite3_step(row) == SQLITE_ROW)
        snprintf(steps + strlen(steps), sizeof steps - strlen(steps), "%s; ", sqlite3_column_text(row, 3));
    sqlite3_finalize(row);
    return steps;
}

/* Work in the order of time, as a whole, by state and by pipeline, is merged from two indexes: 51 rows are read, and no
 * more are sorted. The values of the filters are found one by one. */
START_TEST(frequent_lists_follow_an_index)
{
    static const char *const rows[][3] = {
        {"current", "", "SCAN j USING INDEX job_created"},
        {"state", "DONE", "SEARCH j USING INDEX job_state_created (state=?)"},
        {"state", "FAILED", "SEARCH j USING INDEX job_state_created (state=?)"},
        {"pipeline", "lung", "SEARCH j USING INDEX job_pipeline (pipeline=?)"},
        {"since", "7d", "SEARCH j USING INDEX job_created (created_at>?)"},
    };
    sqlite3_trace_v2(report->db.handle, SQLITE_TRACE_STMT, on_statement, NULL);
    add_each();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        found(wanted(rows[i][0], rows[i][1], NULL));
        const char *steps = steps_of_last();
        ck_assert_msg(strstr(steps, "MERGE (UNION ALL)") && strstr(steps, rows[i][2]), "%s %s: %s", rows[i][0],
                      rows[i][1], steps);
    }
    struct report_browse next = {.after = "2026-01-03T00:00:00.000Z 3"};
    ck_assert_str_eq(found(next), "21");
    ck_assert_ptr_nonnull(strstr(steps_of_last(), "SEARCH j USING INDEX job_created (created_at<?)"));
    for (size_t i = 0; i < report_browsed[BROWSE_WORK].field_count; i++) {
        const struct report_field *field = &report_browsed[BROWSE_WORK].fields[i];
        if (!field->options || strstr(field->options, "v_destinations"))
            continue;
        snprintf(traced, sizeof traced, "EXPLAIN QUERY PLAN %s", field->options);
        ck_assert_msg(strstr(steps_of_last(), "SEARCH ") && !strstr(steps_of_last(), "SCAN j") &&
                          !strstr(steps_of_last(), "SCAN s"),
                      "%s: %s", field->key, steps_of_last());
    }
    sqlite3_trace_v2(report->db.handle, 0, NULL, NULL);
}

END_TEST

START_TEST(options_are_the_values_that_there_are)
{
    char **options;
    size_t count;
    add_each();
    const struct report_field *field =
        &report_browsed[BROWSE_WORK].fields[report_field_place(&report_browsed[BROWSE_WORK], "modality")];
    ck_assert_int_eq(report_options(report, field, &options, &count, &error), 0);
    ck_assert_uint_eq(count, 2);
    ck_assert_str_eq(options[0], "CT");
    ck_assert_str_eq(options[1], "MR");
    free(options[0]);
    free(options[1]);
    free(options);
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("db_browse");
    TCase *tests = tcase_create("browse");
    tcase_add_checked_fixture(tests, open_sample, close_sample);
    tcase_add_test(tests, each_field_filters);
    tcase_add_test(tests, a_text_finds_identifiers_and_descriptions);
    tcase_add_test(tests, bad_values_are_named);
    tcase_add_test(tests, times_of_requests);
    tcase_add_test(tests, pages_neither_lose_nor_repeat);
    tcase_add_test(tests, counts_are_those_of_the_lists);
    tcase_add_test(tests, a_known_total_changes_no_row);
    tcase_add_test(tests, counts_of_the_pages_are_those_of_the_work);
    tcase_add_test(tests, foreign_texts_are_safe_in_json_and_csv);
    tcase_add_test(tests, each_list_can_be_printed);
    tcase_add_test(tests, undelivered_results_are_grouped_by_cause);
    tcase_add_test(tests, frequent_lists_follow_an_index);
    tcase_add_test(tests, options_are_the_values_that_there_are);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
