/*
 * cohort.c - the features of a pipeline as one table: a row per region, a column per feature.
 *
 * Reads in one transaction, row by row: only the columns and one region are in memory. Jobs come by
 * number, which is the order of their creation, and regions by segment. That needs no sort, and a
 * cohort that grows keeps its earlier rows first.
 */
#include "db/report/cohort.h"

#include "base/text.h"
#include "base/texture_options.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/*
 * The columns that identify a region, before the features. `sql` is of the job; NULL: of the
 * region.
 */
static const struct {
    const char *name, *meaning, *sql;
} cohort_keys[] = {
    {"job", "Number of the job", "j.id"},
    {"study_uid", "Study Instance UID", "s.study_uid"},
    {"series_uid", "Series Instance UID", "s.series_uid"},
    {"patient", "Patient ID, as `identifiers` was configured when it was received", "s.patient_id"},
    {"modality", "Modality of the series", "s.modality"},
    {"stack", "Name of the stack within the series; empty when it has only one", "j.stack"},
    {"revision", "Of the series when the job was made", "j.revision"},
    {"version", "Of Noctule when the job ended; empty where that is not known any more",
     "(SELECT substr(e.detail, length('noctuled ') + 1) FROM event e WHERE e.series_id IS NULL "
     "AND e.kind = 'START' AND e.at <= j.ended_at ORDER BY e.at DESC LIMIT 1)"},
    {"configuration", "Number of the pipeline's settings: jobs that have the same were run alike", "j.settings_id"},
    {"measured_at", "When the job ended", "j.ended_at"},
    {"source", "Origin of its first image: inbox:PATH, scu:AE TITLE, folder:NAME of noctule run", COHORT_SOURCE},
    {"straightened",
     "1 where the volume was resampled to an upright, even grid; 0 where it has the voxels of the "
     "files; empty where that is not known",
     "j.straightened <> ''"},
    {"straightened_because", "Why: tilted, unevenly spaced", "coalesce(j.straightened, '')"},
    {"spacing_x_mm", "Between columns, of the volume that was measured", "round(j.spacing_x_mm, 6)"},
    {"spacing_y_mm", "Between rows", "round(j.spacing_y_mm, 6)"},
    {"spacing_z_mm", "Between slices", "round(j.spacing_z_mm, 6)"},
    {"source_x_mm", "Between columns, in the files", "round(j.source_x_mm, 6)"},
    {"source_y_mm", "Between rows, in the files", "round(j.source_y_mm, 6)"},
    {"source_step_min_mm", "Smallest distance of two neighbouring slices in the files",
     "round(j.source_step_min_mm, 6)"},
    {"source_step_max_mm", "Largest distance of two neighbouring slices in the files",
     "round(j.source_step_max_mm, 6)"},
    {"manufacturer", "Of the scanner", "s.manufacturer"},
    {"model", "Of the scanner: Manufacturer's Model Name", "s.model"},
    {"kernel", "Convolution Kernel of all slices; empty without one, where slices differ, and where it is not known",
     "coalesce(j.kernel, '')"},
    {"kvp", "KVP of all slices; empty likewise", "j.kvp"},
    {"slice_thickness_min_mm", "Smallest Slice Thickness; empty where a slice has none and where it is not known",
     "round(j.slice_thickness_min_mm, 6)"},
    {"slice_thickness_max_mm", "Largest Slice Thickness", "round(j.slice_thickness_max_mm, 6)"},
    {"pixel_values", "Of a 2-D image: how its values come from its pixels; empty for volumes",
     "coalesce(j.pixel_values, '')"},
    {"pixel_intensity", "Pixel Intensity Relationship and its sign; empty likewise", "coalesce(j.pixel_intensity, '')"},
    {"spacing_source", "Attribute of its spacing; empty likewise", "coalesce(j.spacing_source, '')"},
    {"segment", "Segment Number in the SEG; 0 is the whole volume", NULL},
    {"label", "Of the segment; empty for the whole volume", NULL},
};

enum { COHORT_KEYS = sizeof cohort_keys / sizeof cohort_keys[0] };

/* Returns whether the reasons of empty cells have the column, too. */
static bool
key_is_in_reasons(int key)
{
    static const char *const names[] = {"job", "series_uid", "patient", "segment", "label"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(names[i], cohort_keys[key].name) == 0)
            return true;
    return false;
}

struct cohort {
    struct report *report;
    struct database_value values[4];
    struct cohort_columns columns;
    struct report_cohort_out out;

    struct cohort_cell {
        double value;    /* NAN: no value */
        bool seen;       /* the job has the feature of the region, with a value or a reason */
        char reason[32]; /* "EMPTY_REGION" */
    } * cells;           /* of one region */
};

static const char *const missing_words[FEATURE_MISSINGS] = {
    "",
#define MISSING(id, qualifier, words) words,
#include "base/terms.def"
};

/* ---------------------------------------------------------------------------- dictionary ---- */

static void
write_dictionary(const struct cohort_columns *columns, FILE *out)
{
    fputs("column,family,name,meaning,ibsi_code,unit,settings\r\n", out);
    for (size_t i = 0; i < COHORT_KEYS; i++) {
        fprintf(out, "%s,,,", cohort_keys[i].name);
        text_csv(out, cohort_keys[i].meaning);
        fputs(",,,\r\n", out);
    }
    for (size_t i = 0; i < columns->count; i++) {
        const struct cohort_column *column = &columns->items[i];
        const char *fields[] = {column->name, column->family, column->feature, column->meaning,
                                column->ibsi, column->unit,   column->settings};
        for (size_t f = 0; f < sizeof fields / sizeof fields[0]; f++) {
            fputs(f ? "," : "", out);
            text_csv(out, fields[f]);
        }
        fputs("\r\n", out);
    }
}

/* --------------------------------------------------------------------------------- rows ---- */

/* Writes a row per empty cell. */
static void
region_write_reasons(const struct cohort *cohort, sqlite3_stmt *job, int64_t segment, const char *label)
{
    FILE *out = cohort->out.reasons;
    for (size_t i = 0; i < cohort->columns.count; i++) {
        const struct cohort_cell *cell = &cohort->cells[i];
        const char *words = "The settings of the job (column configuration) do not measure this of the region.";
        if (!isnan(cell->value))
            continue;
        for (int key = 0, column = 0; key < COHORT_KEYS; column += cohort_keys[key++].sql != NULL)
            if (cohort_keys[key].sql && key_is_in_reasons(key)) {
                text_csv(out, report_text(job, column));
                fputc(',', out);
            }
        fprintf(out, "%" PRId64 ",", segment);
        text_csv(out, label);
        for (int reason = 0; cell->seen && reason < FEATURE_MISSINGS; reason++)
            if (reason == 0 || strcmp(cell->reason, feature_missing_names[reason]) == 0)
                words = missing_words[reason];
        fprintf(out, ",%s,%s,", cohort->columns.items[i].name, cell->seen ? cell->reason : "NOT_MEASURED");
        text_csv(out, words);
        fputs("\r\n", out);
    }
}

/* Writes a region, and begins the next one. */
static void
region_write(const struct cohort *cohort, sqlite3_stmt *job, int64_t segment, const char *label)
{
    FILE *out = cohort->out.table;
    for (int key = 0, column = 0; key < COHORT_KEYS; key++)
        if (cohort_keys[key].sql) {
            fputs(key ? "," : "", out);
            text_csv(out, report_text(job, column++));
        }
    fprintf(out, ",%" PRId64 ",", segment);
    text_csv(out, label);
    for (size_t i = 0; i < cohort->columns.count; i++) {
        char digits[TEXT_DIGITS] = "";
        if (!isnan(cohort->cells[i].value))
            text_digits(cohort->cells[i].value, digits);
        fprintf(out, ",%s", digits);
    }
    fputs("\r\n", out);
    if (cohort->out.reasons)
        region_write_reasons(cohort, job, segment, label);
    for (size_t i = 0; i < cohort->columns.count; i++)
        cohort->cells[i] = (struct cohort_cell){.value = NAN};
}

/* Stores a value; a column has at most one. */
static int
region_take(struct cohort *cohort, sqlite3_stmt *row, int64_t job_id, const struct cohort_definition *definition)
{
    const size_t at = definition->column;
    struct cohort_cell *cell = &cohort->cells[at];
    if (cell->seen)
        return database_refuse(&cohort->report->db, -EEXIST, "job %lld has two values of %s in its segment %lld",
                               (long long)job_id, cohort->columns.items[at].name,
                               (long long)sqlite3_column_int64(row, 0));
    cell->seen = true;
    if (sqlite3_column_type(row, 2) != SQLITE_NULL)
        cell->value = sqlite3_column_double(row, 2);
    snprintf(cell->reason, sizeof cell->reason, "%s", report_text(row, 3));
    return 0;
}

static int
cohort_write_job_rows(struct cohort *cohort, sqlite3_stmt *job, sqlite3_stmt *values)
{
    const int64_t job_id = sqlite3_column_int64(job, 0);
    const char *label = NULL; /* of the segment; NULL: no row yet */
    int64_t segment = 0;
    int rc;
    while ((rc = database_step(&cohort->report->db, values)) == 1) {
        const struct cohort_definition *definition =
            cohort_definition(&cohort->columns, sqlite3_column_int64(values, 1));
        if (!definition)
            return database_refuse(&cohort->report->db, -EUCLEAN, "job %lld has a feature that is not defined",
                                   (long long)job_id);
        if (label && sqlite3_column_int64(values, 0) != segment) {
            region_write(cohort, job, segment, label);
        }
        segment = sqlite3_column_int64(values, 0);
        label = definition->label;
        rc = region_take(cohort, values, job_id, definition);
        if (rc < 0)
            return rc;
    }
    if (rc == 0 && label)
        region_write(cohort, job, segment, label);
    return rc;
}

static int
cohort_write_jobs(struct cohort *cohort)
{
    struct text_stream sql;
    sqlite3_stmt *jobs;
    int rc = text_open(&sql);
    if (rc == 0) {
        for (int key = 0; key < COHORT_KEYS; key++)
            if (cohort_keys[key].sql)
                fprintf(sql.out, "%s%s", key ? ", " : "SELECT ", cohort_keys[key].sql);
        fputs(" " COHORT_JOBS "ORDER BY j.id", sql.out);
        rc = text_close(&sql);
    }
    if (rc < 0)
        return database_refuse(&cohort->report->db, rc, "out of memory");
    rc = database_query(&cohort->report->db, sql.bytes, cohort->values, 4, &jobs);
    free(sql.bytes);
    if (rc < 0)
        return rc;
    /* report_conclude() reports an error of the output */
    while ((rc = database_step(&cohort->report->db, jobs)) == 1 && !ferror(cohort->out.table)) {
        sqlite3_stmt *values;
        rc = database_start(&cohort->report->db,
                            "SELECT segment_number, definition_id, value, reason FROM feature "
                            "WHERE job_id = ? ORDER BY segment_number",
                            VALUES(value_int(sqlite3_column_int64(jobs, 0))), &values);
        if (rc < 0)
            break;
        rc = cohort_write_job_rows(cohort, jobs, values);
        database_end(values);
        if (rc < 0)
            break;
    }
    sqlite3_finalize(jobs);
    return rc < 0 ? rc : 0;
}

/* -------------------------------------------------------------------------------- whole ---- */

static int
cohort_write(struct cohort *cohort)
{
    struct database *db = &cohort->report->db;
    const struct report_cohort_out *out = &cohort->out;
    sqlite3_stmt *rows;
    int rc = database_query(db,
                            "SELECT id, label, family, name, meaning, ibsi_code, unit, settings FROM "
                            "feature_definition WHERE id IN (SELECT f.definition_id FROM feature f WHERE f.job_id IN "
                            "(SELECT j.id " COHORT_JOBS ")) ORDER BY family, name",
                            cohort->values, 4, &rows);
    if (rc < 0)
        return rc;
    rc = cohort_columns_read(cohort->report, rows, &cohort->columns);
    sqlite3_finalize(rows);
    if (rc < 0)
        return rc;
    cohort->cells = calloc(cohort->columns.count + 1, sizeof *cohort->cells);
    if (!cohort->cells)
        return database_refuse(db, -ENOMEM, "out of memory");
    for (size_t i = 0; i < cohort->columns.count; i++)
        cohort->cells[i].value = NAN;
    if (out->dictionary)
        write_dictionary(&cohort->columns, out->dictionary);
    for (size_t i = 0; i < COHORT_KEYS; i++)
        fprintf(out->table, "%s%s", i ? "," : "", cohort_keys[i].name);
    for (size_t i = 0; i < cohort->columns.count; i++)
        fprintf(out->table, ",%s", cohort->columns.items[i].name);
    fputs("\r\n", out->table);
    for (int key = 0; out->reasons && key < COHORT_KEYS; key++)
        if (key_is_in_reasons(key))
            fprintf(out->reasons, "%s,", cohort_keys[key].name);
    if (out->reasons)
        fputs("column,code,message\r\n", out->reasons);
    return cohort_write_jobs(cohort);
}

int
report_cohort(struct report *report, const struct report_cohort *what, const struct report_cohort_out *out,
              struct report_cohort_counts *counts, struct error *error)
{
    struct cohort cohort = {.report = report,
                            .values = {value_text(what->pipeline), value_optional(what->since),
                                       value_optional(what->modality), value_int(what->all_revisions)},
                            .out = *out};
    int64_t found;
    int rc = database_script(&report->db, "BEGIN");
    if (rc == 0) {
        rc = cohort_write_failed(report, cohort.values, out->failed, counts);
        if (rc == 0 && counts->jobs > 0 && out->table)
            rc = cohort_write(&cohort);
        else if (rc == 0 && counts->jobs == 0)
            rc = database_get(&report->db, "SELECT 1 FROM job WHERE pipeline = ?", cohort.values, 1, &found);
        if (rc == 0 && counts->jobs == 0)
            rc = database_refuse(&report->db, -ENOENT, "there is no job of pipeline %s", what->pipeline);
        else if (rc == 1)
            rc = !out->table ? 0
                             : database_refuse(&report->db, -ENOENT, "no selected job of pipeline %s has features",
                                               what->pipeline);
        database_quietly(&report->db, "COMMIT");
    }
    cohort_columns_clear(&cohort.columns);
    free(cohort.cells);
    return report_conclude(report, out->table ? out->table : out->failed, rc, error);
}
