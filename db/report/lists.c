/* lists.c - jobs, series, deliveries, pulls and destinations: selected rows of a view. */
#include "db/report/report_private.h"

#include "base/terminal.h"
#include "db/pull_queue.h"
#include "db/queue/queue_private.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define DEFAULT_LIMIT 50

/* One kind of row that can be listed. */
struct report_list {
    const char *view;
    const char *key;  /* the column that identifies a row */
    const char *tail; /* with the parameters of list_select */
    const char *const *states;
    int state_count;
    const struct report_column *columns;
    size_t column_count;
};

const char *
report_list_state(const struct report_list *list, size_t i)
{
    return i < (size_t)list->state_count ? list->states[i] : NULL;
}

/* Finds the state among the known names, ignoring case; NULL stays NULL. */
static int
list_match_state(struct report *report, const struct report_list *list, const char *wanted,
                 const char **state)
{
    *state = NULL;
    if (!wanted)
        return 0;
    char names[128] = "";
    for (int i = 0; i < list->state_count; i++) {
        *state = list->states[i];
        if (strcasecmp(wanted, *state) == 0)
            return 0;
        snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", i ? ", " : "",
                 *state);
    }
    return database_refuse(&report->db, -EINVAL, "there is no state '%s'; it is one of %s", wanted,
                           names);
}

static int
expect_series(struct report *report, const char *series_uid)
{
    int64_t found;
    if (!series_uid)
        return 0;
    int rc = database_get(&report->db, "SELECT 1 FROM v_series WHERE series_uid = ?",
                          VALUES(value_text(series_uid)), &found);
    if (rc == 0)
        rc = database_refuse(&report->db, -ENOENT, "there is no series %s", series_uid);
    return rc < 0 ? rc : 0;
}

/* Prints the rows as JSON, or as a table of these columns. */
static int
print_rows(struct report *report, const struct report_selection *selection,
           const struct report_column *columns, size_t count, FILE *out, bool json)
{
    return json ? report_print_json(report, selection, false, NULL, 0, out)
                : report_print_table(report, selection, NULL, columns, count, out);
}

enum { LIST_LIMIT = 16, LIST_VALUES }; /* the limit is last; all tails have it */

/* Sets the filter as the parameters of a list's tail. */
static int
list_select(struct report *report, const struct report_list *list,
            const struct report_filter *filter, struct database_value values[LIST_VALUES],
            struct report_selection *rows)
{
    const char *state;
    int rc = list_match_state(report, list, filter->state, &state);
    if (rc == 0)
        rc = expect_series(report, filter->series);
    if (rc == 0 && filter->job)
        rc = report_expect_job(report, filter->job);
    values[0] = value_optional(state);
    values[1] = value_optional(filter->pipeline);
    values[2] = value_optional(filter->series);
    values[3] = value_optional(filter->destination);
    values[4] = value_id(filter->job);
    values[5] = value_optional(filter->code);
    values[6] = value_optional(filter->since);
    values[7] = value_int(filter->current);
    values[8] = value_optional(filter->before);
    values[9] = value_optional(filter->modality);
    values[10] = value_optional(filter->sender);
    for (int i = 0; i < 2; i++) {
        values[11 + i] = value_optional(filter->accession[i]);
        values[13 + i] = value_optional(filter->patient[i]);
    }
    values[15] = value_id(filter->batch);
    values[LIST_LIMIT] = value_int(filter->limit > 0 ? filter->limit : DEFAULT_LIMIT);
    *rows = (struct report_selection){list->view, list->tail, values, LIST_VALUES};
    return rc;
}

/* Prints that the list has more rows, if it was cut. */
static int
list_tell_more(struct report *report, const struct report_selection *rows,
               struct database_value values[LIST_VALUES], FILE *out)
{
    const int64_t limit = values[LIST_LIMIT].as.i;
    sqlite3_stmt *statement;
    if (terminal_columns(out) == INT_MAX || limit == INT64_MAX)
        return 0;
    values[LIST_LIMIT] = value_int(limit + 1);
    sqlite3_str *sql = sqlite3_str_new(report->db.handle);
    sqlite3_str_appendf(sql, "SELECT count(*) FROM (SELECT 1 FROM %s %s)", rows->view, rows->tail);
    int rc = report_start(report, sql, rows, &statement);
    if (rc < 0)
        return rc;
    rc = database_step(&report->db, statement);
    if (rc == 1 && sqlite3_column_int64(statement, 0) > limit)
        fprintf(out, "The list is cut, newest first; --limit sets its length.\n");
    sqlite3_finalize(statement);
    return rc < 0 ? rc : 0;
}

int
report_list(struct report *report, const struct report_list *list,
            const struct report_filter *filter, FILE *out, bool json, struct error *error)
{
    struct database_value values[LIST_VALUES];
    struct report_selection rows;
    int rc = list_select(report, list, filter, values, &rows);
    if (rc == 0)
        rc = print_rows(report, &rows, list->columns, list->column_count, out, json);
    if (rc == 0 && !json)
        rc = list_tell_more(report, &rows, values, out);
    return report_conclude(report, out, rc, error);
}

static int
list_add_key(struct report *report, const char *key, char ***keys, size_t *count)
{
    char **grown = realloc(*keys, (*count + 1) * sizeof *grown);
    if (grown)
        *keys = grown;
    char *copy = grown ? strdup(key) : NULL;
    if (!copy)
        return database_refuse(&report->db, -ENOMEM, "out of memory");
    grown[(*count)++] = copy;
    return 0;
}

static int
list_read_keys(struct report *report, const struct report_list *list,
               const struct report_selection *rows, char ***keys, size_t *count)
{
    sqlite3_stmt *statement;
    sqlite3_str *sql = sqlite3_str_new(report->db.handle);
    sqlite3_str_appendf(sql, "SELECT %s FROM %s %s", list->key, rows->view, rows->tail);
    int rc = report_start(report, sql, rows, &statement);
    if (rc < 0)
        return rc;
    while ((rc = database_step(&report->db, statement)) == 1) {
        rc = list_add_key(report, report_text(statement, 0), keys, count);
        if (rc < 0)
            break;
    }
    sqlite3_finalize(statement);
    for (size_t i = 0; i < *count / 2; i++) {
        char *newer = (*keys)[i];
        (*keys)[i] = (*keys)[*count - 1 - i];
        (*keys)[*count - 1 - i] = newer;
    }
    return rc;
}

int
report_keys(struct report *report, const struct report_list *list,
            const struct report_filter *filter, char ***keys, size_t *count, struct error *error)
{
    struct database_value values[LIST_VALUES];
    struct report_selection rows;
    struct report_filter all = *filter;
    all.limit = INT64_MAX;
    *keys = NULL;
    *count = 0;
    int rc = list_select(report, list, &all, values, &rows);
    if (rc == 0)
        rc = list_read_keys(report, list, &rows, keys, count);
    while (rc < 0 && *count > 0)
        free((*keys)[--*count]);
    if (rc < 0)
        free(*keys);
    return report_conclude(report, NULL, rc, error);
}

#define SERIES_IS_FOUND                                                                            \
    "(?10 IS NULL OR modality = upper(?10)) AND (?11 IS NULL OR sender = ?11) "                    \
    "AND (?12 IS NULL OR accession_number IN (?12, ?13)) "                                         \
    "AND (?14 IS NULL OR patient_id IN (?14, ?15)) "

static const struct report_column job_columns[] = {
    {"JOB", "job", REPORT_NUMBER},
    {"STATE",
     "state || CASE WHEN held <> '' THEN ', held' WHEN window_closed IS NOT NULL THEN ', window' "
     "WHEN stage <> '' THEN printf(', %s %d s', stage, "
     "max(0.0, (julianday('now') - julianday(stage_since)) * 86400.0)) ELSE '' END",
     REPORT_TEXT},
    {"PIPELINE", "pipeline", REPORT_TEXT},
    {"STACK", "stack", REPORT_DROP},
    {"MODALITY", "modality", REPORT_DROP},
    {"BODY PART", "body_part", REPORT_DROP},
    {"CREATED", "created_at", REPORT_WHOLE},
    {"TRIES", "attempts", REPORT_NUMBER | REPORT_DROP},
    {"WHERE",
     "executor || coalesce(' ' || slurm_id, '') || CASE WHEN node <> '' THEN ' on ' || node ELSE "
     "'' END",
     REPORT_DROP},
    {"WAIT (s)", "printf('%.2f', wait_seconds)", REPORT_NUMBER | REPORT_DROP},
    {"RUN (s)", "CASE WHEN total_seconds IS NOT NULL THEN printf('%.2f', total_seconds) END",
     REPORT_NUMBER | REPORT_DROP},
    {"PEAK (MiB)", "CASE WHEN peak_mib IS NOT NULL THEN printf('%.1f', peak_mib) END",
     REPORT_NUMBER | REPORT_DROP},
    {"CODE", "code", REPORT_TEXT},
    {"SERIES", "series_uid", REPORT_TEXT},
};

const struct report_list report_jobs = {
    .view = "v_jobs",
    .key = "job",
    .tail = "WHERE (?1 IS NULL OR state = ?1) AND (?2 IS NULL OR pipeline = ?2) "
            "AND (?3 IS NULL OR series_uid = ?3) AND (?6 IS NULL OR code = upper(?6)) "
            "AND (?7 IS NULL OR coalesce(ended_at, created_at) >= ?7) "
            "AND (coalesce(?10, ?11, ?12, ?14) IS NULL OR series_uid IN "
            "(SELECT series_uid FROM series WHERE " SERIES_IS_FOUND ")) "
            "AND (NOT ?8 OR superseded_by IS NULL AND revision = (SELECT s.revision "
            "FROM v_series s WHERE s.series_uid = v_jobs.series_uid)) ORDER BY job DESC LIMIT ?17",
    .states = queue_job_states,
    .state_count = QUEUE_CANCELLED + 1,
    .columns = job_columns,
    .column_count = COLUMN_COUNT(job_columns),
};

static const struct report_column series_columns[] = {
    {"STATE", "state", REPORT_TEXT},
    {"REVISION", "revision", REPORT_NUMBER | REPORT_DROP},
    {"MODALITY", "modality", REPORT_DROP},
    {"BODY PART", "body_part", REPORT_DROP},
    {"INSTANCES", "instances", REPORT_NUMBER},
    {"STACKS", "accepted_stacks || '/' || stacks", REPORT_NUMBER | REPORT_DROP},
    {"JOBS DONE", "jobs_done || '/' || jobs", REPORT_NUMBER},
    {"LAST SEEN", "last_seen_at", REPORT_WHOLE},
    {"CODE", "code", REPORT_TEXT},
    {"SERIES", "series_uid", REPORT_TEXT},
};

const struct report_list report_series = {
    .view = "v_series",
    .key = "series_uid",
    .tail = "WHERE (?1 IS NULL OR state = ?1) AND (?3 IS NULL OR series_uid = ?3) "
            "AND (?2 IS NULL OR EXISTS (SELECT 1 FROM v_jobs j "
            "WHERE j.series_uid = v_series.series_uid AND j.pipeline = ?2)) "
            "AND (?7 IS NULL OR last_seen_at >= ?7) AND (?9 IS NULL OR last_seen_at < ?9) "
            "AND (?6 IS NULL OR code = upper(?6)) AND " SERIES_IS_FOUND
            "AND (NOT ?8 OR removed_at IS NULL) ORDER BY last_seen_at DESC, series_uid LIMIT ?17",
    .states = queue_series_states,
    .state_count = 3,
    .columns = series_columns,
    .column_count = COLUMN_COUNT(series_columns),
};

static const struct report_column quarantine_columns[] = {
    {"FILE", "quarantine", REPORT_NUMBER},
    {"SINCE", "quarantined_at", REPORT_WHOLE},
    {"CODE", "code", REPORT_TEXT},
    {"SENDER", "coalesce(nullif(sender, ''), 'inbox')", REPORT_TEXT},
    {"LACKING", "iif(lacking, 'yes', '')", REPORT_DROP},
    {"SERIES", "series_uid", REPORT_TEXT},
    {"PATH", "path", REPORT_DROP},
};

const struct report_list report_quarantine = {
    .view = "v_quarantine",
    .key = "quarantine",
    .tail = "WHERE removed_at IS NULL AND (?6 IS NULL OR code = upper(?6)) AND (?7 IS NULL OR "
            "quarantined_at >= ?7) "
            "ORDER BY quarantined_at DESC, quarantine DESC LIMIT ?17",
    .columns = quarantine_columns,
    .column_count = COLUMN_COUNT(quarantine_columns),
};

static int
print_quarantined(struct report *report, int64_t number, FILE *out, bool json)
{
    static const char lines[] =
        "SELECT printf('file      %d', quarantine), printf('since     %s', quarantined_at), "
        "printf('code      %s', code), printf('reason    %s', message), "
        "printf('sender    %s', coalesce(nullif(sender, ''), 'inbox')), "
        "printf('original  %s', original_path), "
        "printf('path      %s', coalesce(nullif(path, ''), 'not kept')), "
        "'series    ' || nullif(series_uid, ''), 'instance  ' || nullif(sop_instance_uid, ''), "
        "iif(lacking, 'The series lacks this instance: send it again.', NULL), "
        "'removed   ' || removed_at FROM v_quarantine WHERE quarantine = ?1";
    const struct database_value id = value_int(number);
    const struct report_selection file = {"v_quarantine", "WHERE quarantine = ?1", &id, 1};
    int64_t found;
    int rc = database_get(&report->db, "SELECT quarantine FROM v_quarantine WHERE quarantine = ?",
                          VALUES(id), &found);
    if (rc <= 0)
        return rc < 0 ? rc
                      : database_refuse(&report->db, -ENOENT, "there is no quarantined file %lld",
                                        (long long)number);
    return json ? report_print_json(report, &file, true, NULL, 0, out)
                : report_print_lines(report, lines, &id, 1, out);
}

int
report_quarantined(struct report *report, int64_t number, FILE *out, bool json, struct error *error)
{
    return report_conclude(report, out, print_quarantined(report, number, out, json), error);
}

const struct report_list report_stray_files = {
    .view = "v_quarantine q",
    .key = "path",
    .tail = "WHERE quarantined_at < ?9 AND removed_at IS NULL AND path <> '' AND NOT EXISTS "
            "(SELECT 1 FROM v_series s WHERE s.series_uid = q.series_uid) LIMIT ?17",
};

/* One image is enough, unless the geometry check found several patients. */
const struct report_list report_telling_files = {
    .view = "(SELECT series_uid, (SELECT min(path) FROM v_instances i "
            "  WHERE i.series_uid = s.series_uid) AS path FROM v_series s "
            "UNION ALL SELECT i.series_uid, i.path FROM v_stacks x "
            "  JOIN v_instances i ON i.series_uid = x.series_uid WHERE x.code = 'MIXED_PATIENTS' "
            "UNION ALL SELECT series_uid, path FROM v_results "
            "  WHERE removed_at IS NULL AND sop_class_uid <> '' "
            "UNION ALL SELECT series_uid, path FROM v_quarantine "
            "  WHERE removed_at IS NULL AND path <> '')",
    .key = "path",
    .tail = "WHERE series_uid = ?3 AND path IS NOT NULL LIMIT ?17",
};

/* ----------------------------------------------------------------------------------- deliveries */

static const struct report_column delivery_columns[] = {
    {"DELIVERY", "delivery", REPORT_NUMBER},
    {"STATE", "state || iif(held = '', '', ', held')", REPORT_TEXT},
    {"DESTINATION", "destination", REPORT_TEXT},
    {"JOB", "job", REPORT_NUMBER},
    {"KIND", "kind", REPORT_DROP},
    {"TRIES", "attempts", REPORT_NUMBER | REPORT_DROP},
    {"SENT", "sent_at", REPORT_WHOLE},
    {"NOT BEFORE", "not_before_at", REPORT_DROP},
    {"STATUS", "dimse_status_hex", REPORT_DROP},
    {"COMMITMENT", "nullif(commitment, 'NONE')", REPORT_DROP},
    {"CODE", "code", REPORT_TEXT},
    {"SOP INSTANCE", "sop_instance_uid", REPORT_TEXT},
};

int
report_print_deliveries(struct report *report, const struct report_selection *selection,
                        const char *heading, FILE *out)
{
    return report_print_table(report, selection, heading, delivery_columns,
                              COLUMN_COUNT(delivery_columns), out);
}

const struct report_list report_deliveries = {
    .view = "v_deliveries",
    .key = "delivery",
    .tail = "WHERE (?1 IS NULL OR state = ?1) AND (?4 IS NULL OR destination = ?4) "
            "AND (?5 IS NULL OR job = ?5) ORDER BY delivery DESC LIMIT ?17",
    .states = queue_delivery_states,
    .state_count = QUEUE_DELIVERY_CANCELLED + 1,
    .columns = delivery_columns,
    .column_count = COLUMN_COUNT(delivery_columns),
};

/* ---------------------------------------------------------------------------------------- pulls */

static const struct report_column pull_columns[] = {
    {"ITEM", "item", REPORT_NUMBER},
    {"BATCH", "batch", REPORT_NUMBER},
    {"STATE", "state", REPORT_TEXT},
    {"SOURCE", "source", REPORT_TEXT},
    {"ARRIVED",
     "arrived || coalesce(' of ' || expected, '') || iif(unwanted > quarantined, ', ' || "
     "(unwanted - quarantined) || ' dropped', '') || iif(quarantined > 0, ', ' || quarantined || ' "
     "quarantined', '')",
     REPORT_WHOLE},
    {"TRIES", "attempts", REPORT_NUMBER | REPORT_DROP},
    {"NOT BEFORE", "not_before_at", REPORT_DROP},
    {"ENDED", "ended_at", REPORT_DROP},
    {"KEY", "key", REPORT_DROP},
    {"LINE", "list_line", REPORT_NUMBER},
    {"IDENTIFIER", "identifier", REPORT_TEXT},
    {"CODE", "code", REPORT_TEXT},
};

const struct report_list report_pulls = {
    .view = "v_pulls",
    .key = "item",
    .tail = "WHERE (?1 IS NULL OR state = ?1) AND (?16 IS NULL OR batch = ?16) "
            "ORDER BY item DESC LIMIT ?17",
    .states = queue_pull_states,
    .state_count = QUEUE_PULL_CANCELLED + 1,
    .columns = pull_columns,
    .column_count = COLUMN_COUNT(pull_columns),
};

/* --------------------------------------------------------------------------------- destinations */

/*
 * The configured destinations are a temporary table in memory; the database is only read. The view
 * has a row per name of either side, with all columns of v_destinations.
 */
static const char destinations_sql[] =
    "CREATE TEMP TABLE IF NOT EXISTS configured (name TEXT, address TEXT);"
    "CREATE TEMP VIEW IF NOT EXISTS destinations AS "
    "SELECT n.name AS destination, n.address, n.place IS NOT NULL AS configured, "
    "  coalesce(v.pending, 0) AS pending, coalesce(v.sending, 0) AS sending, "
    "  coalesce(v.delayed, 0) AS delayed, coalesce(v.sent, 0) AS sent, "
    "  coalesce(v.failed, 0) AS failed, coalesce(v.cancelled, 0) AS cancelled, "
    "  coalesce(v.uncommitted, 0) AS uncommitted, v.oldest_waiting_at, v.next_attempt_at, "
    "  v.last_sent_at, v.down_since, n.place, (SELECT held_at FROM v_holds "
    "    WHERE kind = 'destination' AND name = n.name) AS held_at "
    "FROM (SELECT name, address, rowid AS place FROM configured UNION ALL "
    "      SELECT destination, '', NULL FROM v_destinations "
    "      WHERE destination NOT IN (SELECT name FROM configured)) n "
    "LEFT JOIN v_destinations v ON v.destination = n.name;"
    "DELETE FROM configured";

static int
tell_configured(struct report *report, const struct report_destination *configured, size_t count)
{
    int rc = database_script(&report->db, destinations_sql);
    for (size_t i = 0; rc == 0 && i < count; i++)
        rc =
            database_run(&report->db, "INSERT INTO configured (name, address) VALUES (?, ?)",
                         VALUES(value_text(configured[i].name), value_text(configured[i].address)));
    return rc;
}

static const struct report_column destination_columns[] = {
    {"DESTINATION", "destination", REPORT_TEXT},
    {"STATE",
     "CASE WHEN NOT configured THEN 'not configured' WHEN down_since IS NOT NULL "
     "THEN 'down' ELSE 'up' END || iif(held_at IS NULL, '', ', held')",
     REPORT_TEXT},
    {"PENDING", "pending", REPORT_NUMBER},
    {"SENDING", "sending", REPORT_NUMBER},
    {"DELAYED", "delayed", REPORT_NUMBER},
    {"FAILED", "failed", REPORT_NUMBER},
    {"SENT", "sent", REPORT_NUMBER},
    {"UNCOMMITTED", "uncommitted", REPORT_NUMBER},
    {"LAST SENT", "last_sent_at", REPORT_TEXT},
    {"NEXT ATTEMPT", "next_attempt_at", REPORT_TEXT},
    {"ADDRESS", "address", REPORT_TEXT},
};

int
report_destinations(struct report *report, const struct report_destination *configured,
                    size_t count, FILE *out, bool json, struct error *error)
{
    struct report_selection destinations = {.view = "destinations",
                                            .tail = "ORDER BY place IS NULL, place, destination"};
    int rc = tell_configured(report, configured, count);
    if (rc == 0)
        rc = print_rows(report, &destinations, destination_columns,
                        COLUMN_COUNT(destination_columns), out, json);
    return report_conclude(report, out, rc, error);
}
