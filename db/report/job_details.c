/* job_details.c - one job: its row, results, deliveries and events. */
#include "db/report/report_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const struct report_column result_columns[] = {
    {"KIND", "kind", REPORT_TEXT},
    {"SIZE (MiB)", "printf('%.2f', size_bytes / 1048576.0)", REPORT_NUMBER},
    {"FRAMES", "frames", REPORT_NUMBER},
    {"PATH", "path", REPORT_TEXT},
    {"SOP INSTANCE", "sop_instance_uid", REPORT_TEXT},
};

/* The centroid in patient coordinates (LPS); adding 0 makes no negative zero. */
#define TENTH(mm) "round(" mm ", 1) + 0.0"
#define CENTROID                                                                                   \
    "printf('%.1f, %.1f, %.1f', " TENTH("x_mm") ", " TENTH("y_mm") ", " TENTH("z_mm") ")"
#define BOX "printf('%.1f x %.1f x %.1f', width_mm, height_mm, depth_mm)"

static const struct report_column segment_columns[] = {
    {"SEGMENT", "segment", REPORT_NUMBER},
    {"LABEL", "label", REPORT_TEXT},
    {"VOLUME (ml)", "printf('%.2f', volume_ml)", REPORT_NUMBER},
    {"MEAN", "iif(voxels > 0, printf('%.6g', mean), '')", REPORT_NUMBER},
    {"MIN", "iif(voxels > 0, printf('%.6g', minimum), '')", REPORT_NUMBER},
    {"MAX", "iif(voxels > 0, printf('%.6g', maximum), '')", REPORT_NUMBER},
    {"UNIT", "iif(unit = '1', '', replace(unit, '[hnsf''U]', 'HU'))", REPORT_TEXT},
    {"BOX (mm)", "iif(voxels > 0, " BOX ", '')", REPORT_TEXT | REPORT_DROP},
    {"CENTROID (mm, LPS)", "iif(x_mm IS NULL, '', " CENTROID ")", REPORT_TEXT | REPORT_DROP},
};

static const struct report_column event_columns[] = {
    {"AT", "at", REPORT_WHOLE},
    {"EVENT", "kind", REPORT_TEXT},
    {"STATE", "coalesce(from_state || ' -> ', '') || coalesce(to_state, '')", REPORT_TEXT},
    {"DETAIL", "detail", REPORT_TEXT},
};

/*
 * Returns whether a job waits for an annotation object or another series of its study: it starts at
 * the latest at not_before_at.
 */
static bool
waits_for_others(sqlite3_stmt *row)
{
    for (int i = 0; i < sqlite3_column_count(row); i++)
        if (strcmp(sqlite3_column_name(row, i), "code") == 0)
            return strcmp(report_text(row, i), "OBJECT_WAITING") == 0 ||
                   strcmp(report_text(row, i), "STUDY_WAITING") == 0;
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

/* Prints the columns of the row that are neither NULL nor empty, one per line. */
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
        const char *name = sqlite3_column_name(row, i);
        const bool is_limit = strcmp(name, "not_before_at") == 0 && waits_for_others(row);
        print_field(out, is_limit ? "waits_until" : name, row, i, clean);
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
    database_end(row);
    return rc;
}

static int
print_job(struct report *report, int64_t job_id, FILE *out, bool json)
{
    const struct database_value id = value_int(job_id);
    const struct report_selection job = {"v_jobs", "WHERE job = ?1", &id, 1};
    const struct report_selection parts[] = {
        {"v_results", "WHERE job = ?1 ORDER BY path", &id, 1},
        {"v_deliveries", "WHERE job = ?1 ORDER BY delivery", &id, 1},
        {"v_events", "WHERE job = ?1 ORDER BY event", &id, 1},
        {"v_segments", "WHERE job = ?1 ORDER BY segment", &id, 1},
        {"v_breaches", "WHERE job = ?1 ORDER BY place", &id, 1},
    };
    int rc = report_expect_job(report, job_id);
    if (rc == 0 && json)
        return report_print_json(report, &job, true, parts, COLUMN_COUNT(parts), out);
    if (rc == 0)
        rc = print_job_row(report, job_id, out);
    if (rc == 0)
        rc = report_print_table(report, &parts[3], "Segments", segment_columns,
                                COLUMN_COUNT(segment_columns), out);
    if (rc == 0)
        rc = report_print_table(report, &parts[0], "Results", result_columns,
                                COLUMN_COUNT(result_columns), out);
    if (rc == 0)
        rc = report_print_deliveries(report, &parts[1], "Deliveries", out);
    if (rc == 0)
        rc = report_print_table(report, &parts[2], "Events", event_columns,
                                COLUMN_COUNT(event_columns), out);
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
