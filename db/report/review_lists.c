/* review_lists.c - jobs under review, with the reason. */
#include "db/report/report_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define REVIEW_LIMIT 50

/* A line per job; then the broken expectations and the preview. */
static const char review_sql[] =
    "SELECT printf('Job %d, pipeline %s%s, since %s', job, pipeline, "
    "iif(stack = '', '', ', stack ' || stack), since_at), "
    "printf('  series    %s, %s', series_uid, concat_words), "
    "iif(outdated, '  outdated  late slices have arrived since: it can only be "
    "rejected', NULL), "
    "iif(decision = '', NULL, '  decided   ' || decision || ' by ' || decided_by || "
    "', final at ' || final_at), "
    "iif(corrects IS NULL, NULL, printf('  corrects  job %d%s%s', corrects, "
    "iif(corrected_by = '', '', ', masks by ' || corrected_by), "
    "(SELECT group_concat(iif(n.volume_ml IS NULL, printf('; %s: %d pixels, before %d', n.label, n.voxels, "
    "b.voxels), printf('; %s: %.2f ml, before %.2f ml', n.label, n.volume_ml, "
    "b.volume_ml)), '') FROM v_segments n LEFT JOIN v_segments b ON b.job = corrects "
    "AND b.label = n.label WHERE n.job = r.job))), "
    "iif(correction_job IS NULL, NULL, printf('  corrected job %d measures corrected "
    "masks: decide on that one', correction_job)), "
    "message, '  preview   ' || ?4 || '/' || preview_path "
    "FROM (SELECT *, ltrim(modality || iif(body_part = '', '', ' ' || body_part) "
    "|| "
    "iif(series_description = '', '', ' \"' || series_description || '\"')) AS concat_words "
    "FROM v_review) r ";

static int
review_print_line(struct report *report, const char *before, const char *line, FILE *out)
{
    char *clean = report_printable(line);
    if (!clean)
        return database_refuse(&report->db, -ENOMEM, "out of memory");
    fprintf(out, "%s%s\n", before, clean);
    free(clean);
    return 0;
}

/* Prints a job, with one line per part of its message "Brain: volume 31 ml, expected 900 to 1900 ml; Brain: ...". */
static int
review_print_job(struct report *report, sqlite3_stmt *row, FILE *out)
{
    enum { MESSAGE = 6, PREVIEW = 7 };

    int rc = 0;
    for (int i = 0; i < MESSAGE && rc == 0; i++)
        if (sqlite3_column_type(row, i) != SQLITE_NULL)
            rc = review_print_line(report, "", report_text(row, i), out);
    char *message = rc ? NULL : strdup(report_text(row, MESSAGE));
    if (!message)
        return rc ? rc : database_refuse(&report->db, -ENOMEM, "out of memory");
    for (char *part = message, *end; part && rc == 0; part = end) {
        end = strstr(part, "; ");
        if (end) {
            *end = '\0';
            end += 2;
        }
        rc = review_print_line(report, "  found     ", part, out);
    }
    free(message);
    return rc ? rc : review_print_line(report, "", report_text(row, PREVIEW), out);
}

/* The deliveries that a person must release or reject, with the reason. */
static const struct report_list review_deliveries = {.view = "v_deliveries"};
static const char review_deliveries_sql[] =
    "SELECT printf('Delivery %d to %s, job %d, pipeline %s, since %s', delivery, destination, job, pipeline, "
    "started_at), "
    "printf('  series    %s', series_uid), message FROM v_deliveries WHERE state = 'REVIEW' "
    "AND (?1 IS NULL OR pipeline = ?1) AND (?2 IS NULL OR series_uid = ?2) ORDER BY started_at, delivery LIMIT ?3";

static int
review_print_deliveries(struct report *report, const struct database_value values[3], int *count, FILE *out)
{
    sqlite3_stmt *row;
    const struct report_selection all = {&review_deliveries, values, 3};
    sqlite3_str *sql = sqlite3_str_new(report->db.handle);
    sqlite3_str_appendall(sql, review_deliveries_sql);
    int rc = report_start(report, sql, &all, &row);
    if (rc < 0)
        return rc;
    while ((rc = database_step(&report->db, row)) == 1) {
        fputs((*count)++ ? "\n" : "", out);
        for (int i = 0; i < 3 && rc >= 0; i++)
            rc = review_print_line(report, i == 2 ? "  found     " : "", report_text(row, i), out);
        if (rc < 0)
            break;
    }
    sqlite3_finalize(row);
    return rc;
}

static int
review_print(struct report *report, const struct database_value values[4], FILE *out)
{
    sqlite3_stmt *row;
    int rc, count = 0;
    const struct report_selection all = {&report_reviews, values, 4};
    sqlite3_str *sql = sqlite3_str_new(report->db.handle);
    sqlite3_str_appendf(sql, "%s%s", review_sql, report_reviews.tail);
    rc = report_start(report, sql, &all, &row);
    if (rc < 0)
        return rc;
    while ((rc = database_step(&report->db, row)) == 1) {
        fputs(count++ ? "\n" : "", out);
        rc = review_print_job(report, row, out);
        if (rc < 0)
            break;
    }
    sqlite3_finalize(row);
    const int jobs = count;
    if (rc == 0)
        rc = review_print_deliveries(report, values, &count, out);
    if (rc == 0 && count == 0)
        fputs("no job is under review\n", out);
    if (rc == 0 && jobs > 0)
        fputs("\nnoctule accept JOB delivers it as it is, noctule reject JOB REASON ends it\n", out);
    if (rc == 0 && count > jobs)
        fputs("\nnoctule accept --delivery DELIVERY sends the files, noctule reject --delivery DELIVERY REASON does "
              "not\n",
              out);
    return rc;
}

int
report_review(struct report *report, const struct report_filter *filter, const char *root, FILE *out, bool json,
              struct error *error)
{
    const struct database_value values[] = {value_optional(filter->pipeline), value_optional(filter->series),
                                            value_int(filter->limit > 0 ? filter->limit : REVIEW_LIMIT),
                                            value_text(root)};
    const struct report_selection rows = {&report_reviews, values, 3};
    int rc = json ? report_print_json(report, &rows, false, NULL, 0, out) : review_print(report, values, out);
    return report_conclude(report, out, rc, error);
}
