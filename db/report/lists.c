/* lists.c - jobs, series, deliveries and destinations: the rows of a view that were asked
 * for. */
#include "db/report/report_private.h"

#include "db/queue/queue_private.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define DEFAULT_LIMIT 50

/* One kind of row that can be listed. */
struct report_list {
    const char *view;
    const char *tail; /* with the parameters of report_list */
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

static int
list_print(struct report *report, const struct report_list *list,
           const struct report_filter *filter, FILE *out, bool json)
{
    const char *state;
    int rc = list_match_state(report, list, filter->state, &state);
    if (rc == 0)
        rc = expect_series(report, filter->series);
    if (rc == 0 && filter->job)
        rc = report_expect_job(report, filter->job);
    if (rc < 0)
        return rc;
    const struct database_value values[] = {
        [0] = value_optional(state),
        [1] = value_optional(filter->pipeline),
        [2] = value_optional(filter->series),
        [3] = value_optional(filter->destination),
        [4] = value_id(filter->job),
        [5] = value_int(filter->limit > 0 ? filter->limit : DEFAULT_LIMIT),
    };
    const struct report_selection rows = {list->view, list->tail, values, COLUMN_COUNT(values)};
    return print_rows(report, &rows, list->columns, list->column_count, out, json);
}

int
report_list(struct report *report, const struct report_list *list,
            const struct report_filter *filter, FILE *out, bool json, struct error *error)
{
    int rc = list_print(report, list, filter, out, json);
    return report_conclude(report, out, rc, error);
}

static const struct report_column job_columns[] = {
    {"JOB", "job", true},
    {"STATE", "state", false},
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
    .tail = "WHERE (?1 IS NULL OR state = ?1) AND (?2 IS NULL OR pipeline = ?2) "
            "AND (?3 IS NULL OR series_uid = ?3) ORDER BY job DESC LIMIT ?6",
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
    .tail = "WHERE (?1 IS NULL OR state = ?1) AND (?3 IS NULL OR series_uid = ?3) "
            "AND (?2 IS NULL OR EXISTS (SELECT 1 FROM v_jobs j "
            "WHERE j.series_uid = v_series.series_uid AND j.pipeline = ?2)) "
            "ORDER BY last_seen_at DESC, series_uid LIMIT ?6",
    .states = queue_series_states,
    .state_count = 3,
    .columns = series_columns,
    .column_count = COLUMN_COUNT(series_columns),
};

/* ----------------------------------------------------------------------------------- deliveries */

static const struct report_column delivery_columns[] = {
    {"DELIVERY", "delivery", true},
    {"STATE", "state", false},
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
    .tail = "WHERE (?1 IS NULL OR state = ?1) AND (?4 IS NULL OR destination = ?4) "
            "AND (?5 IS NULL OR job = ?5) ORDER BY delivery DESC LIMIT ?6",
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
    "  v.last_sent_at, v.down_since, n.place "
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
     "THEN 'down' ELSE 'up' END",
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
