/* job_details.c - one job: its row, results, deliveries and events. */
#include "db/report/report_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int
report_series_of(struct report *report, int64_t job_id, char **series_uid, struct error *error)
{
    sqlite3_stmt *row;
    *series_uid = NULL;
    int rc =
        database_start(&report->db, "SELECT series_uid FROM v_jobs WHERE job = ?", VALUES(value_int(job_id)), &row);
    if (rc < 0)
        return report_conclude(report, NULL, rc, error);
    rc = database_step(&report->db, row);
    if (rc == 1)
        rc = database_read_row(&report->db, row, &database_string, series_uid);
    else if (rc == 0)
        rc = database_refuse(&report->db, -ENOENT, "there is no job %lld", (long long)job_id);
    database_end(row);
    return report_conclude(report, NULL, rc, error);
}

/*
 * Returns whether a job waits for an annotation object, another series of its study or an earlier study: it starts at
 * the latest at not_before_at.
 */
static bool
waits_for_others(sqlite3_stmt *row)
{
    for (int i = 0; i < sqlite3_column_count(row); i++)
        if (strcmp(sqlite3_column_name(row, i), "code") == 0)
            return strcmp(report_text(row, i), "OBJECT_WAITING") == 0 ||
                   strcmp(report_text(row, i), "STUDY_WAITING") == 0 ||
                   strcmp(report_text(row, i), "PRIOR_WAITING") == 0;
    return false;
}

/* Prints 0.41 of "read_seconds" as "0.41 s"; other fields as they are. */
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

/* Prints the columns of the job that are neither NULL nor empty, one per line. */
static int
print_fields(struct report *report, int64_t job_id, FILE *out)
{
    sqlite3_stmt *row;
    int rc = database_start(&report->db, "SELECT * FROM v_jobs WHERE job = ?", VALUES(value_int(job_id)), &row);
    if (rc < 0)
        return rc;
    rc = database_step(&report->db, row);
    const int count = rc == 1 ? sqlite3_column_count(row) : 0;
    for (int i = 0; i < count && rc >= 0; i++) {
        const unsigned char *text = sqlite3_column_text(row, i);
        if (!text || !text[0])
            continue;
        char *clean = report_printable((const char *)text);
        const char *name = sqlite3_column_name(row, i);
        const bool is_limit = strcmp(name, "not_before_at") == 0 && waits_for_others(row);
        if (clean)
            print_field(out, is_limit ? "waits_until" : name, row, i, clean);
        else
            rc = database_refuse(&report->db, -ENOMEM, "out of memory");
        free(clean);
    }
    database_end(row);
    return rc < 0 ? rc : 0;
}

static int
print_job(struct report *report, int64_t job_id, FILE *out, bool json)
{
    static const struct report_list job = {.view = "v_jobs", .tail = "WHERE job = ?1"};

    static const enum report_part order[] = {REPORT_SEGMENTS, REPORT_RESULTS, REPORT_DELIVERIES, REPORT_AUDIT,
                                             REPORT_EVENTS};

    const struct database_value id = value_int(job_id);
    int rc = report_expect_job(report, job_id);
    if (rc == 0 && json)
        return report_print_json(report, &(struct report_selection){&job, &id, 1}, true, report_parts, REPORT_PARTS,
                                 out);
    if (rc == 0)
        rc = print_fields(report, job_id, out);
    for (size_t i = 0; rc == 0 && i < COLUMN_COUNT(order); i++) {
        const struct report_list *part = &report_parts[order[i]];
        rc = report_print_rows(report, &(struct report_selection){part, &id, 1}, part->heading, out);
    }
    return rc;
}

/*
 * Reads in one transaction: the row, the results, the deliveries and the events are of one moment.
 */
int
report_job(struct report *report, int64_t job_id, FILE *out, bool json, struct error *error)
{
    int rc = database_script(&report->db, "BEGIN");
    if (rc == 0) {
        rc = print_job(report, job_id, out, json);
        database_quietly(&report->db, "COMMIT");
    }
    return report_conclude(report, out, rc, error);
}
