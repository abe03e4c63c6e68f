/*
 * report.c - see report.h.
 *
 * Opened read-only and asked through the public views, like any administrator's query: nothing here
 * can change the queue or hold it up. JSON objects are built by SQLite from the columns of the
 * view, so they follow views.sql by themselves. Tables are for people: few columns, numbers with
 * units, no control characters (a series description is foreign text).
 */
#include "report_private.h"

#include "migrate.h"
#include "queue.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#define DEFAULT_LIMIT 50

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
explain_open(const char *path, int rc, const char *words, char *reason, size_t reason_size)
{
    if (rc == -ENOENT)
        snprintf(reason, reason_size, "%s: there is no database: has noctuled run here?", path);
    else if (rc == -EACCES)
        snprintf(reason, reason_size,
                 "%s: it cannot be read: that needs read access to it and to its -wal and -shm "
                 "files, which noctuled leaves beside it, or, where those are missing, write "
                 "access to the folder",
                 path);
    else
        snprintf(reason, reason_size, "%s: %s", path, words);
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
report_open(const char *database_path, struct report **report, char *reason, size_t reason_size)
{
    struct report *r = calloc(1, sizeof *r);
    if (!r) {
        snprintf(reason, reason_size, "%s: out of memory", database_path);
        return -ENOMEM;
    }
    int rc = database_open(&r->db, database_path, SQLITE_OPEN_READONLY);
    if (rc == 0)
        rc = identify(&r->db);
    if (rc < 0) {
        rc = refine_error(database_path, rc);
        explain_open(database_path, rc, r->db.reason, reason, reason_size);
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
report_conclude(struct report *report, FILE *out, int rc, char *reason, size_t reason_size)
{
    if (rc == 0 && (fflush(out) != 0 || ferror(out)))
        rc = database_refuse(&report->db, errno ? -errno : -EIO, "the output cannot be written: %s",
                             strerror(errno ? errno : EIO));
    if (rc < 0)
        snprintf(reason, reason_size, "%s", report->db.reason);
    return rc;
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

/* Appends "'job', "job", 'state', "state", ..." for all columns of a view: what json_object takes.
 */
static int
append_members(struct report *report, sqlite3_str *sql, const char *view)
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

static void
discard(sqlite3_str *sql)
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

/* The only row; -ENOENT when there is none. */
static int
print_row(struct report *report, sqlite3_stmt *statement, FILE *out)
{
    int rc = database_step(&report->db, statement);
    if (rc == 0)
        return database_refuse(&report->db, -ENOENT, "there is no such row");
    if (rc == 1)
        fprintf(out, "%s\n", sqlite3_column_text(statement, 0));
    return rc < 0 ? rc : 0;
}

/* An array of objects, or the one object. */
static int
print_json(struct report *report, const struct report_selection *selection,
           int (*print)(struct report *, sqlite3_stmt *, FILE *), FILE *out)
{
    sqlite3_stmt *statement;
    sqlite3_str *sql = sqlite3_str_new(report->db.handle);
    sqlite3_str_appendall(sql, "SELECT json_object(");
    int rc = append_members(report, sql, selection->view);
    if (rc < 0) {
        discard(sql);
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

/* -------------------------------------------------------------------------------------- tables */

char *
report_printable(const char *text)
{
    char *copy = strdup(text);
    if (!copy)
        return NULL;
    for (unsigned char *c = (unsigned char *)copy; *c; c++) {
        if (*c < 0x20 || *c == 0x7f)
            *c = ' ';
        else if (*c == 0xc2 && c[1] >= 0x80 && c[1] <= 0x9f)
            c[0] = c[1] = ' ';
    }
    return copy;
}

/* Characters, not bytes: UTF-8's continuation bytes take no place. */
static int
display_width(const char *text)
{
    int width = 0;
    for (; *text; text++)
        width += ((unsigned char)*text & 0xc0) != 0x80;
    return width;
}

struct table {
    const struct report_column *columns;
    size_t column_count;
    char **cells; /* row by row */
    size_t row_count;
};

static void
free_table(struct table *table)
{
    for (size_t i = 0; i < table->row_count * table->column_count; i++)
        free(table->cells[i]);
    free(table->cells);
}

static int
add_row(struct report *report, struct table *table, sqlite3_stmt *statement, size_t *capacity)
{
    if (table->row_count == *capacity) {
        size_t wanted = *capacity ? 2 * *capacity : 64;
        char **grown = realloc(table->cells, wanted * table->column_count * sizeof *grown);
        if (!grown)
            return database_refuse(&report->db, -ENOMEM, "out of memory");
        table->cells = grown;
        *capacity = wanted;
    }
    char **row = table->cells + table->row_count * table->column_count;
    for (size_t i = 0; i < table->column_count; i++) {
        const unsigned char *text = sqlite3_column_text(statement, (int)i);
        row[i] = report_printable(text ? (const char *)text : "");
        if (!row[i]) {
            while (i > 0)
                free(row[--i]);
            return database_refuse(&report->db, -ENOMEM, "out of memory");
        }
    }
    table->row_count++;
    return 0;
}

static int
read_table(struct report *report, const struct report_selection *selection, struct table *table)
{
    sqlite3_stmt *statement;
    sqlite3_str *sql = sqlite3_str_new(report->db.handle);
    for (size_t i = 0; i < table->column_count; i++)
        sqlite3_str_appendf(sql, "%s %s", i ? "," : "SELECT", table->columns[i].expression);
    sqlite3_str_appendf(sql, " FROM %s %s", selection->view, selection->tail);
    int rc = report_start(report, sql, selection, &statement);
    if (rc < 0)
        return rc;
    size_t capacity = 0;
    while ((rc = database_step(&report->db, statement)) == 1) {
        rc = add_row(report, table, statement, &capacity);
        if (rc < 0)
            break;
    }
    sqlite3_finalize(statement);
    return rc;
}

static int
column_width(const struct table *table, size_t column)
{
    int widest = display_width(table->columns[column].title);
    for (size_t row = 0; row < table->row_count; row++) {
        int width = display_width(table->cells[row * table->column_count + column]);
        if (width > widest)
            widest = width;
    }
    return widest;
}

/* Spaces are written when something follows them: no line ends in any. */
static void
print_line(FILE *out, const struct table *table, const char *const *cells, const int *widths)
{
    int spaces = 0;
    for (size_t i = 0; i < table->column_count; i++) {
        int padding = widths[i] - display_width(cells[i]);
        bool right = table->columns[i].right;
        if (cells[i][0]) {
            fprintf(out, "%*s%s", spaces + (right ? padding : 0), "", cells[i]);
            spaces = right ? 0 : padding;
        } else {
            spaces += padding;
        }
        spaces += 2;
    }
    fputc('\n', out);
}

static int
print_columns(struct report *report, const struct table *table, FILE *out)
{
    int *widths = calloc(table->column_count, sizeof *widths);
    const char **titles = calloc(table->column_count, sizeof *titles);
    int rc = 0;
    if (widths && titles) {
        for (size_t i = 0; i < table->column_count; i++) {
            widths[i] = column_width(table, i);
            titles[i] = table->columns[i].title;
        }
        print_line(out, table, titles, widths);
        for (size_t row = 0; row < table->row_count; row++)
            print_line(out, table, (const char *const *)table->cells + row * table->column_count,
                       widths);
    } else {
        rc = database_refuse(&report->db, -ENOMEM, "out of memory");
    }
    free(titles);
    free(widths);
    return rc;
}

int
report_print_table(struct report *report, const struct report_selection *selection,
                   const char *heading, const struct report_column *columns, size_t column_count,
                   FILE *out)
{
    struct table table = {.columns = columns, .column_count = column_count};
    int rc = read_table(report, selection, &table);
    if (rc == 0 && (table.row_count > 0 || !heading)) {
        if (heading)
            fprintf(out, "\n%s\n", heading);
        rc = print_columns(report, &table, out);
    }
    free_table(&table);
    return rc;
}

/* "2026-01-31 02:03:04": seconds are enough for people. */
#define SECONDS_OF(time) "replace(substr(" time ", 1, 19), 'T', ' ')"

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
report_status(struct report *report, FILE *out, bool json, char *reason, size_t reason_size)
{
    struct report_selection night = {.view = "v_night", .tail = ""};
    int rc = json ? print_json(report, &night, print_row, out) : print_status(report, out);
    return report_conclude(report, out, rc, reason, reason_size);
}

/* ---------------------------------------------------------------------------------------- lists */

static struct database_value
text_or_null(const char *text)
{
    return text ? value_text(text) : value_null();
}

static int64_t
row_limit(const struct report_filter *filter)
{
    return filter->limit > 0 ? filter->limit : DEFAULT_LIMIT;
}

/* Finds the state among the known names, in any case; NULL stays NULL. */
static int
match_state(struct report *report, const char *wanted, const char *const *names, size_t count,
            const char **state)
{
    *state = NULL;
    if (!wanted)
        return 0;
    for (size_t i = 0; i < count; i++) {
        if (strcasecmp(wanted, names[i]) == 0) {
            *state = names[i];
            return 0;
        }
    }
    char list[128] = "";
    for (size_t i = 0; i < count; i++)
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s", i ? ", " : "", names[i]);
    return database_refuse(&report->db, -EINVAL, "there is no state '%s'; it is one of %s", wanted,
                           list);
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

static int
select_jobs(struct report *report, const struct report_filter *filter, FILE *out, bool json)
{
    const char *names[QUEUE_CANCELLED + 1];
    for (size_t i = 0; i < COLUMN_COUNT(names); i++)
        names[i] = queue_job_state_name((enum queue_job_state)i);
    const char *state;
    int rc = match_state(report, filter->state, names, COLUMN_COUNT(names), &state);
    if (rc == 0)
        rc = expect_series(report, filter->series);
    if (rc < 0)
        return rc;
    const struct database_value values[] = {text_or_null(state), text_or_null(filter->pipeline),
                                            text_or_null(filter->series),
                                            value_int(row_limit(filter))};
    struct report_selection jobs = {
        .view = "v_jobs",
        .tail = "WHERE (?1 IS NULL OR state = ?1) AND (?2 IS NULL OR pipeline = ?2) "
                "AND (?3 IS NULL OR series_uid = ?3) ORDER BY job DESC LIMIT ?4",
        .values = values,
        .count = COLUMN_COUNT(values),
    };
    if (json)
        return print_json(report, &jobs, report_print_rows, out);
    return report_print_table(report, &jobs, NULL, job_columns, COLUMN_COUNT(job_columns), out);
}

int
report_jobs(struct report *report, const struct report_filter *filter, FILE *out, bool json,
            char *reason, size_t reason_size)
{
    int rc = select_jobs(report, filter, out, json);
    return report_conclude(report, out, rc, reason, reason_size);
}

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

static int
select_series(struct report *report, const struct report_filter *filter, FILE *out, bool json)
{
    static const char *const names[] = {"GATHERING", "SETTLED", "REFUSED"};
    const char *state;
    int rc = match_state(report, filter->state, names, COLUMN_COUNT(names), &state);
    if (rc == 0)
        rc = expect_series(report, filter->series);
    if (rc < 0)
        return rc;
    const struct database_value values[] = {text_or_null(state), text_or_null(filter->pipeline),
                                            text_or_null(filter->series),
                                            value_int(row_limit(filter))};
    struct report_selection series = {
        .view = "v_series",
        .tail = "WHERE (?1 IS NULL OR state = ?1) AND (?3 IS NULL OR series_uid = ?3) "
                "AND (?2 IS NULL OR EXISTS (SELECT 1 FROM v_jobs j "
                "WHERE j.series_uid = v_series.series_uid AND j.pipeline = ?2)) "
                "ORDER BY last_seen_at DESC, series_uid LIMIT ?4",
        .values = values,
        .count = COLUMN_COUNT(values),
    };
    if (json)
        return print_json(report, &series, report_print_rows, out);
    return report_print_table(report, &series, NULL, series_columns, COLUMN_COUNT(series_columns),
                              out);
}

int
report_series(struct report *report, const struct report_filter *filter, FILE *out, bool json,
              char *reason, size_t reason_size)
{
    int rc = select_series(report, filter, out, json);
    return report_conclude(report, out, rc, reason, reason_size);
}

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

static int
no_such_job(struct report *report, int64_t job_id)
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
    return rc == 0 ? no_such_job(report, job_id) : rc < 0 ? rc : 0;
}

static int
select_deliveries(struct report *report, const struct report_filter *filter, FILE *out, bool json)
{
    const char *names[QUEUE_DELIVERY_CANCELLED + 1];
    for (size_t i = 0; i < COLUMN_COUNT(names); i++)
        names[i] = queue_delivery_state_name((enum queue_delivery_state)i);
    const char *state;
    int rc = match_state(report, filter->state, names, COLUMN_COUNT(names), &state);
    if (rc == 0)
        rc = report_expect_job(report, filter->job);
    if (rc < 0)
        return rc;
    const struct database_value values[] = {text_or_null(state), text_or_null(filter->destination),
                                            filter->job ? value_int(filter->job) : value_null(),
                                            value_int(row_limit(filter))};
    struct report_selection deliveries = {
        .view = "v_deliveries",
        .tail = "WHERE (?1 IS NULL OR state = ?1) AND (?2 IS NULL OR destination = ?2) "
                "AND (?3 IS NULL OR job = ?3) ORDER BY delivery DESC LIMIT ?4",
        .values = values,
        .count = COLUMN_COUNT(values),
    };
    if (json)
        return print_json(report, &deliveries, report_print_rows, out);
    return report_print_table(report, &deliveries, NULL, delivery_columns,
                              COLUMN_COUNT(delivery_columns), out);
}

int
report_deliveries(struct report *report, const struct report_filter *filter, FILE *out, bool json,
                  char *reason, size_t reason_size)
{
    int rc = select_deliveries(report, filter, out, json);
    return report_conclude(report, out, rc, reason, reason_size);
}

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
    for (size_t i = 0; rc >= 0 && i < count; i++)
        rc = database_change(
            &report->db, "INSERT INTO configured (name, address) VALUES (?, ?)",
            VALUES(value_text(configured[i].name), value_text(configured[i].address)));
    return rc < 0 ? rc : 0;
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
                    size_t count, FILE *out, bool json, char *reason, size_t reason_size)
{
    struct report_selection destinations = {.view = "destinations",
                                            .tail = "ORDER BY place IS NULL, place, destination"};
    int rc = tell_configured(report, configured, count);
    if (rc == 0 && json)
        rc = print_json(report, &destinations, report_print_rows, out);
    else if (rc == 0)
        rc = report_print_table(report, &destinations, NULL, destination_columns,
                                COLUMN_COUNT(destination_columns), out);
    return report_conclude(report, out, rc, reason, reason_size);
}

/* -------------------------------------------------------------------------------------- one job */

#define RESULTS_OF_JOB    "WHERE job = ?1 ORDER BY path"
#define DELIVERIES_OF_JOB "WHERE job = ?1 ORDER BY delivery"
#define EVENTS_OF_JOB     "WHERE job = ?1 ORDER BY event"

static const struct report_column result_columns[] = {
    {"KIND", "kind", false},
    {"SIZE (MiB)", "printf('%.2f', size_bytes / 1048576.0)", true},
    {"FRAMES", "frames", true},
    {"PATH", "path", false},
    {"SOP INSTANCE", "sop_instance_uid", false},
};

static const struct report_column event_columns[] = {
    {"AT (UTC)", "replace(rtrim(at, 'Z'), 'T', ' ')", false},
    {"EVENT", "kind", false},
    {"STATE", "coalesce(from_state || ' -> ', '') || coalesce(to_state, '')", false},
    {"DETAIL", "detail", false},
};

/* 0.41 of "read_seconds" as "0.41 s"; everything else as it is. */
static void
print_field(FILE *out, const char *name, sqlite3_stmt *row, int column, const char *text)
{
    static const char seconds[] = "_seconds", mib[] = "_mib";
    size_t length = strlen(name);
    fprintf(out, "%-24s  ", name);
    if (length > strlen(seconds) && strcmp(name + length - strlen(seconds), seconds) == 0)
        fprintf(out, "%.2f s\n", sqlite3_column_double(row, column));
    else if (length > strlen(mib) && strcmp(name + length - strlen(mib), mib) == 0)
        fprintf(out, "%.1f MiB\n", sqlite3_column_double(row, column));
    else
        fprintf(out, "%s\n", text);
}

/* The columns of the row that have something to say, one a line. */
static int
print_fields(struct report *report, sqlite3_stmt *row, FILE *out)
{
    for (int i = 0; i < sqlite3_column_count(row); i++) {
        const unsigned char *text = sqlite3_column_text(row, i);
        if (!text || !text[0])
            continue;
        char *clean = report_printable((const char *)text);
        if (!clean)
            return database_refuse(&report->db, -ENOMEM, "out of memory");
        print_field(out, sqlite3_column_name(row, i), row, i, clean);
        free(clean);
    }
    return 0;
}

static int
print_job_row(struct report *report, int64_t job_id, FILE *out)
{
    sqlite3_stmt *row;
    int rc = database_start(&report->db, "SELECT * FROM v_jobs WHERE job = ?",
                            VALUES(value_int(job_id)), &row);
    if (rc < 0)
        return rc;
    rc = database_step(&report->db, row);
    if (rc == 1)
        rc = print_fields(report, row, out);
    else if (rc == 0)
        rc = no_such_job(report, job_id);
    database_end(row);
    return rc;
}

static int
print_job_text(struct report *report, int64_t job_id, FILE *out)
{
    const struct database_value id = value_int(job_id);
    struct report_selection results = {"v_results", RESULTS_OF_JOB, &id, 1};
    struct report_selection deliveries = {"v_deliveries", DELIVERIES_OF_JOB, &id, 1};
    struct report_selection events = {"v_events", EVENTS_OF_JOB, &id, 1};
    int rc = print_job_row(report, job_id, out);
    if (rc == 0)
        rc = report_print_table(report, &results, "Results", result_columns,
                                COLUMN_COUNT(result_columns), out);
    if (rc == 0)
        rc = report_print_table(report, &deliveries, "Deliveries", delivery_columns,
                                COLUMN_COUNT(delivery_columns), out);
    if (rc == 0)
        rc = report_print_table(report, &events, "Events", event_columns,
                                COLUMN_COUNT(event_columns), out);
    return rc;
}

/* Appends ", 'results', json(...)": a member that is an array of rows of another view. */
static int
append_array(struct report *report, sqlite3_str *sql, const char *name, const char *view,
             const char *tail)
{
    sqlite3_str_appendf(sql, ", '%q', json((SELECT json_group_array(json_object(", name);
    int rc = append_members(report, sql, view);
    sqlite3_str_appendf(sql, ")) FROM (SELECT * FROM %s %s)))", view, tail);
    return rc;
}

static int
print_job_json(struct report *report, int64_t job_id, FILE *out)
{
    const struct database_value id = value_int(job_id);
    struct report_selection job = {"v_jobs", "WHERE job = ?1", &id, 1};
    sqlite3_str *sql = sqlite3_str_new(report->db.handle);
    sqlite3_str_appendall(sql, "SELECT json_object(");
    int rc = append_members(report, sql, job.view);
    if (rc == 0)
        rc = append_array(report, sql, "results", "v_results", RESULTS_OF_JOB);
    if (rc == 0)
        rc = append_array(report, sql, "deliveries", "v_deliveries", DELIVERIES_OF_JOB);
    if (rc == 0)
        rc = append_array(report, sql, "events", "v_events", EVENTS_OF_JOB);
    if (rc < 0) {
        discard(sql);
        return rc;
    }
    sqlite3_str_appendf(sql, ") FROM %s %s", job.view, job.tail);
    sqlite3_stmt *statement;
    rc = report_start(report, sql, &job, &statement);
    if (rc < 0)
        return rc;
    rc = print_row(report, statement, out);
    sqlite3_finalize(statement);
    return rc == -ENOENT ? no_such_job(report, job_id) : rc;
}

/* In one read transaction: the row, the results, the deliveries and the events are of the same
 * moment. */
int
report_job(struct report *report, int64_t job_id, FILE *out, bool json, char *reason,
           size_t reason_size)
{
    int rc = database_script(&report->db, "BEGIN");
    if (rc == 0) {
        rc = json ? print_job_json(report, job_id, out) : print_job_text(report, job_id, out);
        database_quietly(&report->db, "COMMIT");
    }
    return report_conclude(report, out, rc, reason, reason_size);
}
