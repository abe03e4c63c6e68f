/*
 * report.c - see report.h.
 *
 * Opens the database read-only and reads public views, like a query of an administrator: it can
 * neither change nor delay the queue. SQLite builds JSON objects from the columns of a view, so
 * they follow views.sql without a change here. Tables are for people: few columns, numbers with
 * units, no control characters (a series description is foreign text).
 */
#include "db/report/report_private.h"

#include "db/migrate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ------------------------------------------------------------------------------- open, close - */

static int
refuse_open(const char *path, int rc, const char *words, struct error *error)
{
    struct stat status;
    /* SQLite only reports "unable to open"; the system's errno has the reason. */
    if (stat(path, &status) < 0)
        rc = -errno;
    else if (rc == -ENOENT || rc == -EROFS || rc == -EPERM)
        rc = -EACCES;
    if (rc == -ENOENT)
        return error_set(error, rc, CODE_NONE, "%s: there is no database: has noctuled run here?", path);
    if (rc == -EACCES)
        return error_set(error, rc, CODE_NONE,
                         "%s: it cannot be read: that needs read access to it and to its -wal and -shm "
                         "files; if these are missing, write access to the "
                         "folder",
                         path);
    return error_set(error, rc, CODE_NONE, "%s: %s", path, words);
}

int
report_open(const char *database_path, struct report **report, struct error *error)
{
    int version = 0;
    struct report *r = calloc(1, sizeof *r);
    if (!r) {
        return error_set(error, -ENOMEM, CODE_OUT_OF_MEMORY, "%s: out of memory", database_path);
    }
    int rc = database_open(&r->db, database_path, SQLITE_OPEN_READONLY);
    if (rc == 0) {
        sqlite3_busy_timeout(r->db.handle, 5000);
        /* the web UI may not write files, and the queries sort at most some 100,000 rows */
        rc = database_script(&r->db, "PRAGMA trusted_schema = OFF; PRAGMA temp_store = MEMORY");
    }
    if (rc == 0)
        rc = migrate_identify(&r->db, &version);
    if (rc == 0 && version == 0)
        rc = database_refuse(&r->db, -EPROTONOSUPPORT, "it is empty; noctuled makes its tables");
    else if (rc == 0 && version < migrate_version)
        rc = database_refuse(&r->db, -EPROTONOSUPPORT,
                             "it has schema version %d, this program needs %d; starting noctuled brings it up to date",
                             version, migrate_version);
    if (rc < 0) {
        rc = refuse_open(database_path, rc, r->db.reason, error);
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
    for (size_t i = 0; i < REPORT_LIST_COUNT; i++)
        sqlite3_free(report->sql[i]);
    free(report);
}

int
report_conclude(struct report *report, FILE *out, int rc, struct error *error)
{
    if (rc == 0 && out && (fflush(out) != 0 || ferror(out)))
        rc = database_refuse(&report->db, errno ? -errno : -EIO, "the output cannot be written: %s",
                             strerror(errno ? errno : EIO));
    if (rc < 0)
        error_set(error, rc, CODE_NONE, "%s", report->db.reason);
    return rc;
}

int
report_expect_job(struct report *report, int64_t job_id)
{
    int64_t found;
    int rc = database_get(&report->db, "SELECT 1 FROM v_jobs WHERE job = ?", VALUES(value_int(job_id)), &found);
    if (rc == 0)
        rc = database_refuse(&report->db, -ENOENT, "there is no job %lld", (long long)job_id);
    return rc < 0 ? rc : 0;
}

const char *
report_text(sqlite3_stmt *row, int column)
{
    const unsigned char *text = sqlite3_column_text(row, column);
    return text ? (const char *)text : "";
}

int
report_print_lines(struct report *report, const char *sql, const struct database_value *values, size_t count, FILE *out)
{
    sqlite3_stmt *row;
    int rc = database_start(&report->db, sql, values, count, &row);
    if (rc < 0)
        return rc;
    rc = database_step(&report->db, row);
    for (int i = 0; rc == 1 && i < sqlite3_column_count(row); i++) {
        if (sqlite3_column_type(row, i) == SQLITE_NULL)
            continue;
        char *printable = report_printable(report_text(row, i));
        if (printable)
            fprintf(out, "%s\n", printable);
        else
            rc = database_refuse(&report->db, -ENOMEM, "out of memory");
        free(printable);
    }
    database_end(row);
    return rc < 0 ? rc : 0;
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

/* --------------------------------------------------------------------------------------- JSON - */

/*
 * Appends an expression of an object to which more can be added: '{"job":' || json_quote("job") ||
 * ... A function takes 127 arguments, so json_object() would be limited to 63 columns.
 */
int
report_append_object(struct report *report, sqlite3_str *sql, const char *view)
{
    sqlite3_stmt *statement;
    int rc = database_start(&report->db, "SELECT name FROM pragma_table_info(?) ORDER BY cid", VALUES(value_text(view)),
                            &statement);
    if (rc < 0)
        return rc;
    const char *before = "'{";
    while ((rc = database_step(&report->db, statement)) == 1) {
        const unsigned char *name = sqlite3_column_text(statement, 0);
        sqlite3_str_appendf(sql, "%s\"%q\":' || json_quote(\"%w\")", before, name, name);
        before = " || ',";
    }
    database_end(statement);
    return rc;
}

int
report_print_json(struct report *report, const struct report_selection *selection, bool one,
                  const struct report_list *parts, size_t part_count, FILE *out)
{
    const struct report_list *list = selection->list;
    sqlite3_stmt *statement;
    sqlite3_str *sql = sqlite3_str_new(report->db.handle);
    sqlite3_str_appendall(sql, "SELECT ");
    int rc = report_append_object(report, sql, list->view);
    for (size_t i = 0; rc == 0 && i < part_count; i++) {
        sqlite3_str_appendf(sql, " || ',\"%q\":' || (SELECT json_group_array(json(", parts[i].view + strlen("v_"));
        rc = report_append_object(report, sql, parts[i].view);
        sqlite3_str_appendf(sql, " || '}')) FROM (SELECT * FROM %s %s))", parts[i].view, parts[i].tail);
    }
    sqlite3_str_appendf(sql, " || '}' FROM %s %s", list->view, list->tail);
    if (rc < 0) {
        sqlite3_free(sqlite3_str_finish(sql));
        return rc;
    }
    rc = report_start(report, sql, selection, &statement);
    if (rc < 0)
        return rc;
    int rows = 0;
    fputs(one ? "" : "[", out);
    while ((rc = database_step(&report->db, statement)) == 1)
        fprintf(out, "%s%s", one ? "" : rows++ ? ",\n" : "\n", report_text(statement, 0));
    fputs(one ? "\n" : rows ? "\n]\n" : "]\n", out);
    sqlite3_finalize(statement);
    return rc;
}

/* -------------------------------------------------------------------------------------- status */

#define DURATIONS DURATION(eta) ", " DURATION(oldest_waiting) ", " DURATION(median) ", " DURATION(mean)

/* "FILE and 2 more, since 2026-01-31T02:03:04.567Z (start)". */
#define CONFIG_IN_FORCE                                                                                                \
    "(SELECT file || iif(others = 0, '', printf(' and %d more', others)) || ', since ' || at || "                      \
    "CASE cause WHEN 'start' THEN ' (start)' WHEN 'command' THEN printf(' (reload by %s)', "                           \
    "asked_by) ELSE ' (reload by a signal)' END FROM (SELECT at, cause, asked_by, "                                    \
    "substr(files, 1, instr(files || char(10), char(10)) - 1) AS file, "                                               \
    "length(files) - length(replace(files, char(10), '')) AS others "                                                  \
    "FROM v_configuration WHERE state = 'LOADED'))"

static const char status_sql[] =
    "SELECT printf('Jobs        %d ready, %d running, %d delayed; %d done, %d empty, %d failed, "
    "%d cancelled', jobs_ready, jobs_running, jobs_delayed, jobs_done, jobs_empty, jobs_failed, "
    "jobs_cancelled) || iif(jobs_rejected = 0, '', printf(', %d rejected', jobs_rejected)), "
    "'Review      ' || nullif(jobs_review, 0) || iif(jobs_review = 1, ' job is', ' jobs are') "
    "|| ' under review and not delivered: noctule review', "
    "printf('Series      %d gathering, %d settled, %d refused (%d in the last 24 h)', "
    "series_gathering, series_settled, series_refused, series_refused_24h) "
    "|| iif(series_without_rule = 0, '', printf('; no rule for %d of the settled: noctule explain', "
    "series_without_rule)), "
    "'Backlog     ' || CASE WHEN backlog_jobs = 0 AND series_gathering = 0 THEN 'none' "
    "ELSE CASE WHEN backlog_jobs = 0 THEN 'series being received' || iif(jobs_expected >= 1.5, "
    "    printf(', about %.0f jobs', jobs_expected), '') "
    "  ELSE backlog_jobs || iif(backlog_jobs = 1, ' job', ' jobs') || iif(series_gathering = 0, '', "
    "    iif(jobs_expected >= 1.5, printf(', about %.0f more of series being received', jobs_expected), "
    "      ' and series being received')) END "
    "|| CASE WHEN eta_seconds IS NOT NULL THEN ', about ' || eta || ' to go' || iif(eta_seconds < "
    "  600, '', strftime(', until %Y-%m-%dT%H:%MZ', 'now', '+' || eta_seconds || ' seconds')) "
    "  WHEN EXISTS (SELECT 1 FROM v_measured WHERE jobs > 0) THEN ', which may not start' "
    "  ELSE '; how long is not known: none ended in the last week' END END, "
    "'Waiting     the oldest for ' || oldest_waiting, "
    "'Programs    ' || nullif(printf('%d running, %d waiting', programs_running, programs_waiting), '0 running, 0 "
    "waiting') "
    "|| ': noctule programs --runs', "
    "'Held        ' || (SELECT group_concat(kind || iif(name = '', '', ' ' || name), '; ') "
    "FROM v_holds WHERE kind <> 'jobs') || ': noctule release', "
    "'Compute     ' || coalesce('no job can run: ' || compute_waiting, compute), "
    "printf('Ended       %d in the last 12 h, %d in the last 24 h, %d of these failed', "
    "jobs_ended_12h, jobs_ended_24h, jobs_failed_24h), "
    "'A job took  ' || median || ' (median), ' || mean || ' (mean), of the last 24 h', "
    "printf('Quarantine  %d in the last 24 h', quarantined_24h), "
    "printf('Deliveries  %d waiting, %d delayed, %d failed; %d sent in the last 24 h', "
    "deliveries_pending + deliveries_sending, deliveries_delayed, deliveries_failed, deliveries_sent_24h), "
    "'Config      ' || " CONFIG_IN_FORCE ", "
    "'Disk        ' || iif(free_mib IS NULL, NULL, printf('%.1f GiB free at %s', "
    "free_mib / 1024.0, free_at)) || "
    "coalesce('; full in ' || disk_full_days || ' days at the present rate', '') "
    "FROM (SELECT "
    "*, " DURATIONS " FROM v_night)";

int
report_status(struct report *report, FILE *out, bool json, struct error *error)
{
    static const struct report_list night = {.view = "v_night", .tail = ""};
    int rc = json ? report_print_json(report, &(struct report_selection){.list = &night}, true, NULL, 0, out)
                  : report_print_lines(report, status_sql, NO_VALUES, out);
    return report_conclude(report, out, rc, error);
}
