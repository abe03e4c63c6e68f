/*
 * report.c - see report.h.
 *
 * Opened read-only and asked through the public views, like any administrator's query: nothing here
 * can change the queue or hold it up. JSON objects are built by SQLite from the columns of the
 * view, so they follow views.sql by themselves. Tables are for people: few columns, numbers with
 * units, no control characters (a series description is foreign text).
 */
#include "db/report/report_private.h"

#include "db/migrate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ------------------------------------------------------------------------------- open, close - */

/* SQLite only says "unable to open"; the system knows why. */
static int
refine_error(const char *path, int rc)
{
    struct stat status;
    if (stat(path, &status) < 0)
        return -errno;
    return rc == -ENOENT || rc == -EROFS || rc == -EPERM ? -EACCES : rc;
}

static void
explain_open(const char *path, int rc, const char *words, struct error *error)
{
    if (rc == -ENOENT)
        error_set(error, rc, CODE_NONE, "%s: there is no database: has noctuled run here?", path);
    else if (rc == -EACCES)
        error_set(error, rc, CODE_NONE,
                  "%s: it cannot be read: that needs read access to it and to its -wal and -shm "
                  "files, which noctuled leaves beside it, or, where those are missing, write "
                  "access to the folder",
                  path);
    else
        error_set(error, rc, CODE_NONE, "%s: %s", path, words);
}

static int
identify(struct database *db)
{
    int version;
    sqlite3_busy_timeout(db->handle, 5000);
    int rc = database_script(db, "PRAGMA trusted_schema = OFF");
    if (rc == 0)
        rc = migrate_identify(db, &version);
    if (rc == 0 && version == 0)
        rc = database_refuse(db, -EPROTONOSUPPORT, "it is empty; noctuled makes its tables");
    else if (rc == 0 && version < migrate_version)
        rc = database_refuse(db, -EPROTONOSUPPORT,
                             "it has schema version %d, this program needs %d; starting noctuled "
                             "brings it up to date",
                             version, migrate_version);
    return rc;
}

int
report_open(const char *database_path, struct report **report, struct error *error)
{
    struct report *r = calloc(1, sizeof *r);
    if (!r) {
        return error_set(error, -ENOMEM, CODE_OUT_OF_MEMORY, "%s: out of memory", database_path);
    }
    int rc = database_open(&r->db, database_path, SQLITE_OPEN_READONLY);
    if (rc == 0)
        rc = identify(&r->db);
    if (rc < 0) {
        rc = refine_error(database_path, rc);
        explain_open(database_path, rc, r->db.reason, error);
        report_close(r);
        return rc;
    }
    *report = r;
    return 0;
}

void
report_close(struct report *report)
{
    if (!report)
        return;
    database_close(&report->db);
    free(report);
}

int
report_conclude(struct report *report, FILE *out, int rc, struct error *error)
{
    if (rc == 0 && (fflush(out) != 0 || ferror(out)))
        rc = database_refuse(&report->db, errno ? -errno : -EIO, "the output cannot be written: %s",
                             strerror(errno ? errno : EIO));
    if (rc < 0)
        error_set(error, rc, CODE_NONE, "%s", report->db.reason);
    return rc;
}

int
report_no_such_job(struct report *report, int64_t job_id)
{
    return database_refuse(&report->db, -ENOENT, "there is no job %lld", (long long)job_id);
}

int
report_expect_job(struct report *report, int64_t job_id)
{
    int64_t found;
    if (job_id == 0)
        return 0;
    int rc = database_get(&report->db, "SELECT 1 FROM v_jobs WHERE job = ?",
                          VALUES(value_int(job_id)), &found);
    return rc == 0 ? report_no_such_job(report, job_id) : rc < 0 ? rc : 0;
}

/* ----------------------------------------------------------------------------- put-together SQL */

int
report_start(struct report *report, sqlite3_str *sql, const struct report_selection *selection,
             sqlite3_stmt **statement)
{
    char *text = sqlite3_str_finish(sql);
    if (!text)
        return database_refuse(&report->db, -ENOMEM, "out of memory");
    int rc = database_query(&report->db, text, selection->values, selection->count, statement);
    sqlite3_free(text);
    return rc;
}

int
report_append_members(struct report *report, sqlite3_str *sql, const char *view)
{
    sqlite3_stmt *statement;
    int rc = database_start(&report->db, "SELECT name FROM pragma_table_info(?) ORDER BY cid",
                            VALUES(value_text(view)), &statement);
    if (rc < 0)
        return rc;
    const char *comma = "";
    while ((rc = database_step(&report->db, statement)) == 1) {
        const unsigned char *name = sqlite3_column_text(statement, 0);
        sqlite3_str_appendf(sql, "%s'%q', \"%w\"", comma, name, name);
        comma = ", ";
    }
    database_end(statement);
    return rc;
}

void
report_discard(sqlite3_str *sql)
{
    sqlite3_free(sqlite3_str_finish(sql));
}

/* --------------------------------------------------------------------------------------- JSON - */

int
report_print_rows(struct report *report, sqlite3_stmt *statement, FILE *out)
{
    int rc, rows = 0;
    fputs("[", out);
    while ((rc = database_step(&report->db, statement)) == 1)
        fprintf(out, "%s\n%s", rows++ ? "," : "", sqlite3_column_text(statement, 0));
    fputs(rows ? "\n]\n" : "]\n", out);
    return rc;
}

int
report_print_row(struct report *report, sqlite3_stmt *statement, FILE *out)
{
    int rc = database_step(&report->db, statement);
    if (rc == 0)
        return database_refuse(&report->db, -ENOENT, "there is no such row");
    if (rc == 1)
        fprintf(out, "%s\n", sqlite3_column_text(statement, 0));
    return rc < 0 ? rc : 0;
}

int
report_print_json(struct report *report, const struct report_selection *selection,
                  int (*print)(struct report *, sqlite3_stmt *, FILE *), FILE *out)
{
    sqlite3_stmt *statement;
    sqlite3_str *sql = sqlite3_str_new(report->db.handle);
    sqlite3_str_appendall(sql, "SELECT json_object(");
    int rc = report_append_members(report, sql, selection->view);
    if (rc < 0) {
        report_discard(sql);
        return rc;
    }
    sqlite3_str_appendf(sql, ") FROM %s %s", selection->view, selection->tail);
    rc = report_start(report, sql, selection, &statement);
    if (rc < 0)
        return rc;
    rc = print(report, statement, out);
    sqlite3_finalize(statement);
    return rc;
}

/* -------------------------------------------------------------------------------------- status */

/* "12.34 s", "3 min 20 s", "5 h 2 min". */
static const char *
duration(double seconds, char *text, size_t size)
{
    long whole = (long)(seconds + 0.5);
    if (seconds < 120)
        snprintf(text, size, "%.2f s", seconds);
    else if (whole < 7200)
        snprintf(text, size, "%ld min %ld s", whole / 60, whole % 60);
    else
        snprintf(text, size, "%ld h %ld min", whole / 3600, whole % 3600 / 60);
    return text;
}

#define STATUS_COLUMNS                                                                             \
    "SELECT jobs_ready, jobs_running, jobs_delayed, jobs_done, jobs_empty, jobs_failed, "          \
    "jobs_cancelled, series_gathering, series_settled, series_refused, oldest_waiting_seconds, "   \
    "backlog_jobs, eta_seconds, jobs_ended_12h, jobs_ended_24h, jobs_failed_24h, "                 \
    "median_seconds, mean_seconds, quarantined_24h, deliveries_pending + deliveries_sending, "     \
    "deliveries_delayed, deliveries_failed, deliveries_sent_24h, compute_waiting "                 \
    "FROM v_night"

static void
print_status_counts(sqlite3_stmt *row, FILE *out)
{
    fprintf(out,
            "Jobs        %d ready, %d running, %d delayed; %d done, %d empty, %d failed, "
            "%d cancelled\n",
            sqlite3_column_int(row, 0), sqlite3_column_int(row, 1), sqlite3_column_int(row, 2),
            sqlite3_column_int(row, 3), sqlite3_column_int(row, 4), sqlite3_column_int(row, 5),
            sqlite3_column_int(row, 6));
    fprintf(out, "Series      %d gathering, %d settled, %d refused\n", sqlite3_column_int(row, 7),
            sqlite3_column_int(row, 8), sqlite3_column_int(row, 9));
}

static void
print_status_backlog(sqlite3_stmt *row, FILE *out)
{
    char text[48];
    int backlog = sqlite3_column_int(row, 11);
    if (backlog == 0)
        fputs("Backlog     none\n", out);
    else if (sqlite3_column_type(row, 12) == SQLITE_NULL)
        fprintf(out, "Backlog     %d jobs; how long is not known: none ended in the last 24 h\n",
                backlog);
    else
        fprintf(out, "Backlog     %d jobs, about %s to go\n", backlog,
                duration(sqlite3_column_double(row, 12), text, sizeof text));
    if (sqlite3_column_type(row, 10) != SQLITE_NULL)
        fprintf(out, "Waiting     the oldest for %s\n",
                duration(sqlite3_column_double(row, 10), text, sizeof text));
    if (sqlite3_column_type(row, 23) != SQLITE_NULL)
        fprintf(out, "Compute     no job can run: %s\n",
                (const char *)sqlite3_column_text(row, 23));
}

static void
print_status_past(sqlite3_stmt *row, FILE *out)
{
    char median[48], mean[48];
    fprintf(out, "Ended       %d in the last 12 h, %d in the last 24 h, %d of these failed\n",
            sqlite3_column_int(row, 13), sqlite3_column_int(row, 14), sqlite3_column_int(row, 15));
    if (sqlite3_column_type(row, 16) != SQLITE_NULL)
        fprintf(out, "A job took  %s (median), %s (mean), of the last 24 h\n",
                duration(sqlite3_column_double(row, 16), median, sizeof median),
                duration(sqlite3_column_double(row, 17), mean, sizeof mean));
    fprintf(out, "Quarantine  %d in the last 24 h\n", sqlite3_column_int(row, 18));
    fprintf(out, "Deliveries  %d waiting, %d delayed, %d failed; %d sent in the last 24 h\n",
            sqlite3_column_int(row, 19), sqlite3_column_int(row, 20), sqlite3_column_int(row, 21),
            sqlite3_column_int(row, 22));
}

static int
print_status(struct report *report, FILE *out)
{
    sqlite3_stmt *row;
    int rc = database_start(&report->db, STATUS_COLUMNS, NO_VALUES, &row);
    if (rc < 0)
        return rc;
    rc = database_step(&report->db, row);
    if (rc == 1) {
        print_status_counts(row, out);
        print_status_backlog(row, out);
        print_status_past(row, out);
    }
    database_end(row);
    return rc < 0 ? rc : 0;
}

int
report_status(struct report *report, FILE *out, bool json, struct error *error)
{
    struct report_selection night = {.view = "v_night", .tail = ""};
    int rc =
        json ? report_print_json(report, &night, report_print_row, out) : print_status(report, out);
    return report_conclude(report, out, rc, error);
}
