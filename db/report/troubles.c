/*
 * troubles.c - what the database knows that somebody should look at, and what waits for what. What
 * only the daemon knows it tells itself (service/daemon/troubles.h).
 */
#include "db/report/report_private.h"

#define UNIX_MS(time) "CAST(round((julianday(" time ") - 2440587.5) * 86400000) AS INTEGER)"

/* Level (0: waits, 1: attention), since when, what. */
static const char troubles_sql[] = "SELECT 1, " UNIX_MS(
    "down_since") ", printf('destination %s is down; %d results wait for it', "
                  "destination, pending + sending + delayed) FROM v_destinations WHERE down_since "
                  "IS NOT NULL "
                  "UNION ALL SELECT 1, 0, printf('%d results were not delivered to %s', failed, "
                  "destination) "
                  "FROM v_destinations WHERE failed > 0 "
                  "UNION ALL SELECT 1, 0, printf('%d jobs failed in the last 24 h', "
                  "jobs_failed_24h) "
                  "FROM v_night WHERE jobs_failed_24h > 0 "
                  "UNION ALL SELECT 1, 0, printf('the disk is full in %.1f days at the present "
                  "rate: see retention in noctule.conf, noctule purge, or add space', "
                  "disk_full_days) FROM v_night WHERE disk_full_days <= 7.0 "
                  "UNION ALL SELECT 1, 0, printf('%d files came into quarantine in the last 24 h', "
                  "quarantined_24h) FROM v_night WHERE quarantined_24h > 0 "
                  "UNION ALL SELECT 0, " UNIX_MS(
                      "oldest_waiting_at") ", printf('%d results for %s%s', "
                                           "pending + sending + delayed, destination, coalesce('; "
                                           "tried again at ' || next_attempt_at, '')) "
                                           "FROM v_destinations WHERE pending + sending + delayed "
                                           "> 0 AND down_since IS NULL "
                                           "UNION ALL SELECT 0, 0, printf('%d jobs to be tried "
                                           "again after %s, the first at %s', count(*), "
                                           "code, min(not_before_at)) FROM v_jobs WHERE state = "
                                           "'DELAYED' GROUP BY code "
                                           "UNION ALL SELECT 0, 0, printf('%d series for more "
                                           "slices', series_gathering) FROM v_night "
                                           "WHERE series_gathering > 0";

int
report_each_trouble(struct report *report,
                    int (*take)(void *context, int level, int64_t since_ms, const char *text),
                    void *context, struct error *error)
{
    sqlite3_stmt *row;
    int rc = database_start(&report->db, troubles_sql, NO_VALUES, &row);
    if (rc < 0)
        return report_conclude(report, NULL, rc, error);
    while ((rc = database_step(&report->db, row)) == 1) {
        rc = take(context, sqlite3_column_int(row, 0), sqlite3_column_int64(row, 1),
                  report_text(row, 2));
        if (rc < 0)
            break;
    }
    database_end(row);
    return report_conclude(report, NULL, rc, error);
}

int
report_figures(struct report *report, FILE *out, struct error *error)
{
    int rc = report_print_lines(
        report,
        "SELECT printf('jobs_ready=%d jobs_running=%d jobs_delayed=%d jobs_failed=%d "
        "deliveries_waiting=%d deliveries_failed=%d series_gathering=%d quarantined=%d', "
        "jobs_ready, "
        "jobs_running, jobs_delayed, jobs_failed_24h, deliveries_pending + deliveries_sending + "
        "deliveries_delayed, deliveries_failed, series_gathering, quarantined_24h) FROM v_night",
        NO_VALUES, out);
    return report_conclude(report, out, rc, error);
}
