/*
 * alert_rows.c - alerts and acknowledgements of the database, and the figures that `noctule status`
 * prints with them. The daemon reports its own alerts (service/daemon/alert_daemon.h).
 */
#include "db/iso_time.h"
#include "db/report/report_private.h"

#include <errno.h>
#include <stdlib.h>

/* Reads a time; 0 for NULL. */
static int64_t
report_alert_time(sqlite3_stmt *row, int column)
{
    int64_t ms = 0;
    iso_time_to_ms(report_text(row, column), &ms);
    return ms;
}

int
report_each_alert(struct report *report, int (*take)(void *context, const struct report_alert *alert), void *context,
                  struct error *error)
{
    sqlite3_stmt *row;
    int rc = database_start(&report->db,
                            "SELECT alert, CASE severity WHEN 'broken' THEN 2 WHEN 'attention' "
                            "THEN 1 ELSE 0 END, since_at, changed_at, size, text FROM v_alerts",
                            NO_VALUES, &row);
    if (rc < 0)
        return report_conclude(report, NULL, rc, error);
    while ((rc = database_step(&report->db, row)) == 1) {
        char *text = report_harmless(report_text(row, 5));
        const struct report_alert alert = {.id = report_text(row, 0),
                                           .severity = sqlite3_column_int(row, 1),
                                           .since_ms = report_alert_time(row, 2),
                                           .changed_ms = report_alert_time(row, 3),
                                           .size = sqlite3_column_int64(row, 4),
                                           .text = text};
        rc = text ? take(context, &alert) : database_refuse(&report->db, -ENOMEM, "out of memory");
        free(text);
        if (rc < 0)
            break;
    }
    database_end(row);
    return report_conclude(report, NULL, rc, error);
}

int
report_each_ack(struct report *report, int (*take)(void *context, const struct report_ack *ack), void *context,
                struct error *error)
{
    sqlite3_stmt *row;
    int rc = database_start(&report->db,
                            "SELECT alert, CASE severity WHEN 'broken' THEN 2 WHEN 'attention' "
                            "THEN 1 ELSE 0 END, acknowledged_at, changed_at, until_at, size, "
                            "acknowledged_by, reason FROM v_acknowledgements",
                            NO_VALUES, &row);
    if (rc < 0)
        return report_conclude(report, NULL, rc, error);
    while ((rc = database_step(&report->db, row)) == 1) {
        const struct report_ack ack = {.id = report_text(row, 0),
                                       .severity = sqlite3_column_int(row, 1),
                                       .at_ms = report_alert_time(row, 2),
                                       .changed_ms = report_alert_time(row, 3),
                                       .until_ms = report_alert_time(row, 4),
                                       .size = sqlite3_column_int64(row, 5),
                                       .by = report_text(row, 6),
                                       .reason = report_text(row, 7)};
        if ((rc = take(context, &ack)) < 0)
            break;
    }
    database_end(row);
    return report_conclude(report, NULL, rc, error);
}

int
report_pace(struct report *report, const char *pipeline, struct report_pace *pace, struct error *error)
{
    sqlite3_stmt *row;
    *pace = (struct report_pace){0};
    int rc = database_start(&report->db,
                            "SELECT mean_seconds, (SELECT lanes FROM v_measured WHERE pipeline = "
                            "'') FROM v_measured WHERE pipeline = ?",
                            VALUES(value_text(pipeline)), &row);
    if (rc < 0)
        return report_conclude(report, NULL, rc, error);
    rc = database_step(&report->db, row);
    if (rc == 1) {
        pace->mean_seconds = sqlite3_column_double(row, 0);
        pace->lanes = sqlite3_column_int64(row, 1);
    }
    database_end(row);
    return report_conclude(report, NULL, rc < 0 ? rc : 0, error);
}

int
report_validated(struct report *report, const char *digest, char **ranges, struct error *error)
{
    return report_conclude(report, NULL, database_validated(&report->db, digest, ranges), error);
}

int
report_wanted(struct report *report, const char *pipeline, int64_t by_ms, int64_t *jobs, struct error *error)
{
    *jobs = 0;
    int rc = database_get(&report->db,
                          "SELECT count(*) FROM v_wanted WHERE pipeline = ? AND state <> 'RUNNING' AND done_by_at <= ?",
                          VALUES(value_text(pipeline), value_time(by_ms)), jobs);
    return report_conclude(report, NULL, rc < 0 ? rc : 0, error);
}

int
report_last_life(struct report *report, struct report_life *life, struct error *error)
{
    sqlite3_stmt *row;
    *life = (struct report_life){0};
    int rc = database_start(&report->db,
                            "SELECT kind = 'STOP', at, (SELECT jobs_running FROM v_night) FROM v_events "
                            "ORDER BY event DESC LIMIT 1",
                            NO_VALUES, &row);
    if (rc < 0)
        return report_conclude(report, NULL, rc, error);
    rc = database_step(&report->db, row);
    if (rc == 1) {
        life->stopped = sqlite3_column_int(row, 0) != 0;
        iso_time_to_ms(report_text(row, 1), &life->last_ms);
        life->jobs_running = sqlite3_column_int64(row, 2);
    }
    database_end(row);
    return report_conclude(report, NULL, rc < 0 ? rc : 0, error);
}

int
report_pause(struct report *report, struct report_pause *pause, struct error *error)
{
    sqlite3_stmt *row;
    *pause = (struct report_pause){0};
    int rc = database_start(&report->db,
                            "SELECT EXISTS (SELECT 1 FROM v_holds WHERE kind = 'jobs'), "
                            "(SELECT count(*) FROM v_jobs WHERE state = 'RUNNING'), "
                            "(SELECT count(*) FROM v_jobs WHERE state IN ('READY', 'DELAYED'))",
                            NO_VALUES, &row);
    if (rc < 0)
        return report_conclude(report, NULL, rc, error);
    rc = database_step(&report->db, row);
    if (rc == 1) {
        pause->is_paused = sqlite3_column_int(row, 0) != 0;
        pause->jobs_running = sqlite3_column_int64(row, 1);
        pause->jobs_waiting = sqlite3_column_int64(row, 2);
    }
    database_end(row);
    return report_conclude(report, NULL, rc < 0 ? rc : 0, error);
}

int
report_figures(struct report *report, FILE *out, struct error *error)
{
    int rc =
        report_print_lines(report,
                           "SELECT printf('jobs_ready=%d jobs_running=%d jobs_delayed=%d jobs_failed=%d "
                           "jobs_review=%d deliveries_waiting=%d deliveries_failed=%d series_gathering=%d "
                           "quarantined=%d jobs_late=%d', "
                           "jobs_ready, "
                           "jobs_running, jobs_delayed, jobs_failed_24h, jobs_review, deliveries_pending + "
                           "deliveries_sending + "
                           "deliveries_delayed, deliveries_failed, series_gathering, quarantined_24h, jobs_late) FROM "
                           "v_night",
                           NO_VALUES, out);
    return report_conclude(report, out, rc, error);
}
