/* lists.c - jobs, series, deliveries and destinations: the rows of a view that were asked
 * for. */
#include "db/report/report_private.h"

#include "db/queue/queue_private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define DEFAULT_LIMIT 50

/* One kind of row that can be listed. */
struct report_list {
    const char *view;
    const char *key;  /* what names a row */
    const char *tail; /* with the parameters of list_select */
    const char *const *states;
    int state_count;
    const struct report_column *columns;
    size_t column_count;
};

/* Finds the state among the known names, in any case; NULL stays NULL. */
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

/* The rows as JSON, or as a table of those columns. */
static int
print_rows(struct report *report, const struct report_selection *selection,
           const struct report_column *columns, size_t count, FILE *out, bool json)
{
    return json ? report_print_json(report, selection, false, NULL, 0, out)
                : report_print_table(report, selection, NULL, columns, count, out);
}

#define LIST_VALUES 10

/* What the filter says, as the parameters of a list's tail. */
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
    values[9] = value_int(filter->limit > 0 ? filter->limit : DEFAULT_LIMIT);
    *rows = (struct report_selection){list->view, list->tail, values, LIST_VALUES};
    return rc;
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

static const struct report_column job_columns[] = {
    {"JOB", "job", true},
    {"STATE", "state || iif(held = '', '', ', held')", false},
    {"PIPELINE", "pipeline", false},
    {"STACK", "stack", false},
    {"MODALITY", "modality", false},
    {"BODY PART", "body_part", false},
    {"CREATED (UTC)", SECONDS_OF("created_at"), false},
    {"TRIES", "attempts", true},
    {"WAIT (s)", "printf('%.2f', wait_seconds)", true},
    {"RUN (s)", "CASE WHEN total_seconds IS NOT NULL THEN printf('%.2f', total_seconds) END", true},
    {"PEAK (MiB)", "CASE WHEN peak_mib IS NOT NULL THEN printf('%.1f', peak_mib) END", true},
    {"CODE", "code", false},
    {"SERIES", "series_uid", false},
};

const struct report_list report_jobs = {
    .view = "v_jobs",
    .key = "job",
    .tail = "WHERE (?1 IS NULL OR state = ?1) AND (?2 IS NULL OR pipeline = ?2) "
            "AND (?3 IS NULL OR series_uid = ?3) AND (?6 IS NULL OR code = upper(?6)) "
            "AND (?7 IS NULL OR coalesce(ended_at, created_at) >= ?7) "
            "AND (NOT ?8 OR superseded_by IS NULL AND revision = (SELECT s.revision "
            "FROM v_series s WHERE s.series_uid = v_jobs.series_uid)) ORDER BY job DESC LIMIT ?10",
    .states = queue_job_states,
    .state_count = QUEUE_CANCELLED + 1,
    .columns = job_columns,
    .column_count = COLUMN_COUNT(job_columns),
};

static const struct report_column series_columns[] = {
    {"STATE", "state", false},
    {"REVISION", "revision", true},
    {"MODALITY", "modality", false},
    {"BODY PART", "body_part", false},
    {"INSTANCES", "instances", true},
    {"STACKS", "accepted_stacks || '/' || stacks", true},
    {"JOBS DONE", "jobs_done || '/' || jobs", true},
    {"LAST SEEN (UTC)", SECONDS_OF("last_seen_at"), false},
    {"CODE", "code", false},
    {"SERIES", "series_uid", false},
};

const struct report_list report_series = {
    .view = "v_series",
    .key = "series_uid",
    .tail = "WHERE (?1 IS NULL OR state = ?1) AND (?3 IS NULL OR series_uid = ?3) "
            "AND (?2 IS NULL OR EXISTS (SELECT 1 FROM v_jobs j "
            "WHERE j.series_uid = v_series.series_uid AND j.pipeline = ?2)) "
            "AND (?7 IS NULL OR last_seen_at >= ?7) AND (?9 IS NULL OR last_seen_at < ?9) "
            "AND (NOT ?8 OR removed_at IS NULL) ORDER BY last_seen_at DESC, series_uid LIMIT ?10",
    .states = queue_series_states,
    .state_count = 3,
    .columns = series_columns,
    .column_count = COLUMN_COUNT(series_columns),
};

const struct report_list report_stray_files = {
    .view = "v_quarantine q",
    .key = "path",
    .tail = "WHERE quarantined_at < ?9 AND removed_at IS NULL AND path <> '' AND NOT EXISTS "
            "(SELECT 1 FROM v_series s WHERE s.series_uid = q.series_uid) LIMIT ?10",
};

/* One image is enough, but where the gate found several patients. */
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
    .tail = "WHERE series_uid = ?3 AND path IS NOT NULL LIMIT ?10",
};

/* ----------------------------------------------------------------------------------- deliveries */

static const struct report_column delivery_columns[] = {
    {"DELIVERY", "delivery", true},
    {"STATE", "state || iif(held = '', '', ', held')", false},
    {"DESTINATION", "destination", false},
    {"JOB", "job", true},
    {"KIND", "kind", false},
    {"TRIES", "attempts", true},
    {"SENT (UTC)", SECONDS_OF("sent_at"), false},
    {"NOT BEFORE (UTC)", SECONDS_OF("not_before_at"), false},
    {"STATUS", "dimse_status_hex", false},
    {"COMMITMENT", "nullif(commitment, 'NONE')", false},
    {"CODE", "code", false},
    {"SOP INSTANCE", "sop_instance_uid", false},
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
            "AND (?5 IS NULL OR job = ?5) ORDER BY delivery DESC LIMIT ?10",
    .states = queue_delivery_states,
    .state_count = QUEUE_DELIVERY_CANCELLED + 1,
    .columns = delivery_columns,
    .column_count = COLUMN_COUNT(delivery_columns),
};

/* --------------------------------------------------------------------------------- destinations */

/*
 * What is configured stands in a table of this connection, which is in memory; the database is
 * still only read. The view has a row for each name of either side, with all columns of
 * v_destinations.
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
    {"DESTINATION", "destination", false},
    {"STATE",
     "CASE WHEN NOT configured THEN 'not configured' WHEN down_since IS NOT NULL "
     "THEN 'down' ELSE 'up' END || iif(held_at IS NULL, '', ', held')",
     false},
    {"PENDING", "pending", true},
    {"SENDING", "sending", true},
    {"DELAYED", "delayed", true},
    {"FAILED", "failed", true},
    {"SENT", "sent", true},
    {"UNCOMMITTED", "uncommitted", true},
    {"LAST SENT (UTC)", SECONDS_OF("last_sent_at"), false},
    {"NEXT ATTEMPT (UTC)", SECONDS_OF("next_attempt_at"), false},
    {"ADDRESS", "address", false},
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
