/*
 * troubles.c - what the database knows that somebody should look at, and what waits for what. What
 * only the daemon knows it tells itself (service/daemon/troubles.h).
 */
#include "db/iso_time.h"
#include "db/report/report_private.h"

#include <errno.h>
#include <stdlib.h>

int
report_each_trouble(struct report *report,
                    int (*take)(void *context, int level, int64_t since_ms, const char *text),
                    void *context, struct error *error)
{
    sqlite3_stmt *row;
    int rc = database_start(
        &report->db, "SELECT level = 'attention', since_at, text FROM v_troubles", NO_VALUES, &row);
    if (rc < 0)
        return report_conclude(report, NULL, rc, error);
    while ((rc = database_step(&report->db, row)) == 1) {
        int64_t since_ms = 0;
        char *text = report_printable(report_text(row, 2));
        iso_time_to_ms(report_text(row, 1), &since_ms);
        rc = text ? take(context, sqlite3_column_int(row, 0), since_ms, text)
                  : database_refuse(&report->db, -ENOMEM, "out of memory");
        free(text);
        if (rc < 0)
            break;
    }
    database_end(row);
    return report_conclude(report, NULL, rc, error);
}

int
report_pace(struct report *report, const char *pipeline, struct report_pace *pace,
            struct error *error)
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
report_wanted(struct report *report, const char *pipeline, int64_t by_ms, int64_t *jobs,
              struct error *error)
{
    *jobs = 0;
    int rc = database_get(&report->db,
                          "SELECT count(*) FROM v_wanted WHERE pipeline = ? AND state <> 'RUNNING' "
                          "AND done_by_at <= ?",
                          VALUES(value_text(pipeline), value_time(by_ms)), jobs);
    return report_conclude(report, NULL, rc < 0 ? rc : 0, error);
}

int
report_last_life(struct report *report, struct report_life *life, struct error *error)
{
    sqlite3_stmt *row;
    *life = (struct report_life){0};
    int rc =
        database_start(&report->db,
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
    int rc = report_print_lines(
        report,
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
