/* similar.c - see report_similar.h: the region of a query, and the rows of the answer. */
#include "db/report/similar_private.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const report_similar_by_words[] = {"lbp", "tlbap", "lanadp", "patterns", "glcm", NULL};
const char *const report_similar_distance_words[] = {"chi-square", "l1", "cosine", "euclidean", NULL};

/* The expressions are of the statement in similar_add_row(). */
static const struct report_column similar_columns[] = {
    {"rank", "RANK", REPORT_NUMBER, NULL},
    {"distance", "DISTANCE", REPORT_NUMBER, NULL},
    {"job", "JOB", REPORT_NUMBER, NULL},
    {"segment", "SEGMENT", REPORT_NUMBER, NULL},
    {"label", "LABEL", REPORT_TEXT, NULL},
    {"volume_ml", "ML", REPORT_NUMBER, NULL},
    {"pipeline", "PIPELINE", REPORT_TEXT, NULL},
    {"series_uid", "SERIES", REPORT_TEXT | REPORT_DROP, NULL},
    {"series_description", "DESCRIPTION", REPORT_TEXT | REPORT_DROP, NULL},
    {"measured_at", "MEASURED", REPORT_TIME | REPORT_DROP, NULL},
    {"why", "LARGEST DIFFERENCES", REPORT_TEXT, NULL},
};

static const struct report_list similar_list = {.key = "similar",
                                                .heading = "Similar texture",
                                                .columns = similar_columns,
                                                .column_count = COLUMN_COUNT(similar_columns)};

static const struct report_column region_columns[] = {{"segment", "SEGMENT", REPORT_NUMBER, NULL},
                                                      {"label", "LABEL", REPORT_TEXT, NULL}};

static const struct report_list region_list = {
    .key = "regions", .heading = "Regions", .columns = region_columns, .column_count = COLUMN_COUNT(region_columns)};

bool
similar_wants_pattern(int by, const char *pattern)
{
    return by == SIMILAR_PATTERNS || strcmp(report_similar_by_words[by], pattern) == 0;
}

int
similar_choose_distance(struct report *report, const struct report_similar_query *query,
                        enum report_similar_distance *distance, char word[16])
{
    const bool is_histogram = query->by != SIMILAR_GLCM;
    *distance = query->distance >= 0 ? (enum report_similar_distance)query->distance
                : is_histogram       ? SIMILAR_CHI_SQUARE
                                     : SIMILAR_EUCLIDEAN;
    snprintf(word, 16, "%s", report_similar_distance_words[*distance]);
    if (*distance == SIMILAR_CHI_SQUARE && !is_histogram)
        return database_refuse(&report->db, -EINVAL,
                               "chi-square compares histograms; glcm has the distances euclidean, l1 and cosine");
    if (*distance == SIMILAR_EUCLIDEAN && is_histogram)
        return database_refuse(&report->db, -EINVAL,
                               "euclidean compares features; histograms have the distances chi-square, l1 and cosine");
    return 0;
}

/* --------------------------------------------------------------------------------------- grid - */

struct similar_grid
similar_grid_read(sqlite3_stmt *row, int column)
{
    return (struct similar_grid){
        .spacing = {sqlite3_column_double(row, column), sqlite3_column_double(row, column + 1)},
        .straightened = sqlite3_column_int(row, column + 2)};
}

bool
similar_grid_fits(const struct report_similar_query *query, const struct similar_grid *a, const struct similar_grid *b)
{
    if (query->any_spacing)
        return true;
    for (int i = 0; i < 2; i++) {
        const double p = a->spacing[i], q = b->spacing[i];
        if ((p < 0) != (q < 0) || fabs(p - q) > query->spacing_percent / 100 * fmax(p, q) * (1 + 1e-12))
            return false;
    }
    return a->straightened == b->straightened;
}

/* --------------------------------------------------------------------------------------- hits - */

bool
similar_is_near(const struct similar_search *search, double distance)
{
    return search->hit_count < search->limit || distance <= search->hits[search->hit_count - 1].distance;
}

static bool
hit_is_before(const struct similar_hit *a, const struct similar_hit *b)
{
    if (a->distance != b->distance)
        return a->distance < b->distance;
    return a->job != b->job ? a->job < b->job : a->segment < b->segment;
}

void
similar_add_hit(struct similar_search *search, const struct similar_hit *hit)
{
    size_t place = search->hit_count;
    if (place == search->limit && !hit_is_before(hit, &search->hits[place - 1]))
        return;
    if (place < search->limit)
        search->hit_count++;
    else
        place--;
    for (; place > 0 && hit_is_before(hit, &search->hits[place - 1]); place--)
        search->hits[place] = search->hits[place - 1];
    search->hits[place] = *hit;
}

/* ---------------------------------------------------------------------------------- the region - */

/* ?1: the job, ?2: 1 for GLCM, ?3: the name of a pattern or NULL. */
#define SIMILAR_REGIONS_OF                                                                                             \
    "SELECT DISTINCT segment_number AS segment, label FROM pattern_histogram WHERE job_id = ?1 AND NOT ?2 "            \
    "AND (?3 IS NULL OR pattern = ?3) UNION SELECT DISTINCT f.segment_number, d.label FROM feature f "                 \
    "JOIN feature_definition d ON d.id = f.definition_id WHERE f.job_id = ?1 AND ?2 AND d.family = 'glcm'"

static int
similar_list_regions(struct report *report, int64_t job, int by, struct report_table *table)
{
    sqlite3_stmt *row;
    *table = (struct report_table){.list = &region_list};
    int rc = database_start(&report->db, SIMILAR_REGIONS_OF " ORDER BY 1",
                            VALUES(value_int(job), value_int(by == SIMILAR_GLCM),
                                   value_optional(by < SIMILAR_PATTERNS ? report_similar_by_words[by] : NULL)),
                            &row);
    if (rc < 0)
        return rc;
    while ((rc = database_step(&report->db, row)) == 1)
        if ((rc = report_add_row(report, table, row)) < 0)
            break;
    database_end(row);
    return rc;
}

int
report_similar_regions(struct report *report, int64_t job, int by, struct report_table *table, struct error *error)
{
    const int rc = similar_list_regions(report, job, by, table);
    if (rc < 0)
        report_table_free(table);
    return report_conclude(report, NULL, rc, error);
}

/* Finds the newest listed job of a series that has values. */
static int
similar_find_job(struct similar_search *search)
{
    const struct report_similar_query *query = search->query;
    int64_t found = query->job;
    if (!query->series)
        return 0;
    const int rc =
        database_get(&search->report->db,
                     "SELECT max(j.id) FROM job j JOIN series s ON s.id = j.series_id WHERE s.series_uid = ? "
                     "AND " SIMILAR_LISTED " AND EXISTS (SELECT 1 FROM pattern_histogram h WHERE h.job_id = j.id "
                     "UNION ALL SELECT 1 FROM feature f WHERE f.job_id = j.id) HAVING max(j.id)",
                     VALUES(value_text(query->series)), &found);
    if (rc == 0)
        return database_refuse(&search->report->db, -ENOENT, "the series %.64s has no job with texture", query->series);
    search->job = found;
    return rc < 0 ? rc : 0;
}

/* Returns the row of the segment by number or label; else the number of rows. */
static size_t
similar_find_segment(const struct report_table *regions, const struct report_similar_query *query)
{
    for (size_t row = 0; query->segment && row < regions->row_count; row++)
        if (strcmp(report_cell_text(regions, row, "segment"), query->segment) == 0 ||
            (*query->segment && strcmp(report_cell_text(regions, row, "label"), query->segment) == 0))
            return row;
    return !query->segment && (regions->row_count == 1 || query->first) ? 0 : regions->row_count;
}

/* The reason without a region: there is none of this name, or a choice is needed. */
static int
similar_refuse_region(struct similar_search *search, const struct report_table *regions)
{
    struct database *db = &search->report->db;
    char names[256] = "";
    const long long job = (long long)search->job;
    for (size_t row = 0, used = 0; row < regions->row_count && used < sizeof names; row++)
        used += (size_t)snprintf(
            names + used, sizeof names - used, "%s%s (%s)", row ? ", " : "", report_cell_text(regions, row, "segment"),
            report_number(regions, row, "segment") > 0 ? report_cell_text(regions, row, "label") : "whole volume");
    if (regions->row_count == 0)
        return database_refuse(db, -ENOENT, "job %lld has no values of %s: its pipeline needs %s in its group texture",
                               job, report_similar_by_words[search->query->by],
                               search->query->by == SIMILAR_GLCM ? "glcm" : "patterns");
    if (search->query->segment)
        return database_refuse(db, -ENOENT, "job %lld has no region %.64s; it has %s", job, search->query->segment,
                               names);
    return database_refuse(db, -EINVAL, "job %lld has several regions: choose one of %s", job, names);
}

static int
similar_find_region(struct similar_search *search)
{
    struct report_table regions;
    int64_t listed = 0;
    int rc = similar_find_job(search);
    if (rc == 0)
        rc = report_expect_job(search->report, search->job);
    if (rc == 0)
        rc = database_get(&search->report->db, "SELECT 1 FROM job j WHERE id = ? AND state IN ('DONE', 'EMPTY')",
                          VALUES(value_int(search->job)), &listed);
    if (rc == 0 && !listed)
        rc = database_refuse(&search->report->db, -ENOENT,
                             "job %lld is not DONE; the values of a job under review count once it is accepted",
                             (long long)search->job);
    if (rc < 0)
        return rc;
    rc = similar_list_regions(search->report, search->job, search->query->by, &regions);
    if (rc == 0) {
        const size_t row = similar_find_segment(&regions, search->query);
        if (row == regions.row_count)
            rc = similar_refuse_region(search, &regions);
        else {
            search->segment = (int32_t)report_number(&regions, row, "segment");
            snprintf(search->found->label, sizeof search->found->label, "%s", report_cell_text(&regions, row, "label"));
        }
    }
    report_table_free(&regions);
    search->found->job = search->job;
    search->found->segment = search->segment;
    return rc;
}

/* ------------------------------------------------------------------------------------ answer - */

static int
similar_add_row(struct similar_search *search, size_t place, struct report_table *table)
{
    const struct similar_hit *hit = &search->hits[place];
    sqlite3_stmt *row;
    int rc = database_start(
        &search->report->db,
        "SELECT ?1, ?2, j.id, ?4, coalesce((SELECT label FROM segment WHERE job_id = j.id AND number = ?4), ''), "
        "(SELECT round(volume_ml, 6) FROM segment WHERE job_id = j.id AND number = ?4), j.pipeline, s.series_uid, "
        "s.description, j.ended_at, ?5 FROM job j JOIN series s ON s.id = j.series_id WHERE j.id = ?3",
        VALUES(value_int((int64_t)place + 1), value_real(hit->distance), value_int(hit->job), value_int(hit->segment),
               value_text(hit->why)),
        &row);
    if (rc < 0)
        return rc;
    rc = database_step(&search->report->db, row);
    if (rc == 1)
        rc = report_add_row(search->report, table, row);
    database_end(row);
    return rc;
}

static int
similar_find(struct similar_search *search, struct report_table *table)
{
    int rc = similar_choose_distance(search->report, search->query, &search->distance, search->found->distance);
    if (rc == 0)
        rc = similar_find_region(search);
    if (rc == 0)
        rc = search->query->by == SIMILAR_GLCM ? similar_by_features(search) : similar_by_patterns(search);
    for (size_t i = 0; rc == 0 && i < search->hit_count; i++)
        rc = similar_add_row(search, i, table);
    return rc;
}

int
report_similar(struct report *report, const struct report_similar_query *query, struct report_table *table,
               struct report_similar_found *found, struct error *error)
{
    const size_t limit = query->limit > 0 && query->limit < SIMILAR_LIMIT ? (size_t)query->limit
                         : query->limit > 0                               ? SIMILAR_LIMIT
                                                                          : 10;
    struct similar_search search = {.report = report,
                                    .query = query,
                                    .found = found,
                                    .job = query->job,
                                    .limit = limit,
                                    .hits = calloc(limit, sizeof *search.hits)};
    *found = (struct report_similar_found){0};
    *table = (struct report_table){.list = &similar_list};
    int rc =
        search.hits ? database_script(&report->db, "BEGIN") : database_refuse(&report->db, -ENOMEM, "out of memory");
    if (search.hits && rc == 0) { /* all of one moment */
        rc = similar_find(&search, table);
        database_quietly(&report->db, "COMMIT");
    }
    for (size_t i = 0; i < search.hit_count; i++)
        free(search.hits[i].why);
    free(search.hits);
    if (rc < 0)
        report_table_free(table);
    return report_conclude(report, NULL, rc, error);
}
