/*
 * similar_evaluate.c - leave one out: each region is a query once. Its neighbours are all regions that it can be compared
 * with, of other series, in the order of their distance. All histograms or features are in memory.
 */
#include "db/report/similar_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTHS = 3 };

static const size_t evaluate_depths[DEPTHS] = {1, 5, 10};

/* Words of columns, each with its SQL of a job j, a series s and a segment's label g.label. */
static const char *const evaluate_sql[] = {
    "s.patient_id", "s.study_uid",    "s.series_uid", "j.id",      "coalesce(g.label, '')", "j.pipeline", "s.modality",
    "s.body_part",  "s.manufacturer", "s.model",      "s.station", "s.description",
};

const char *const report_similar_columns[] = {"patient",  "study",       "series",    "job",          "label",
                                              "pipeline", "modality",    "body_part", "manufacturer", "model",
                                              "station",  "description", NULL};

/* A region with its label. */
struct evaluate_region {
    const struct similar_vector *vector;
    int64_t series;
    char *label; /* "": left out */
};

struct evaluate {
    struct report *report;
    const struct report_similar_evaluation *what;
    struct report_similar_score *score;
    enum report_similar_distance distance;
    struct similar_vectors vectors;
    struct evaluate_region *regions;
    size_t region_count;
    char key[2048];  /* of the region that is being read */
    bool own_series; /* the label is the series: its other jobs count */

    struct evaluate_neighbour {
        double distance;
        size_t region;
    } * neighbours;
};

/* ------------------------------------------------------------------------------------ regions - */

static int
evaluate_add_histogram(struct evaluate *evaluate, sqlite3_stmt *row, struct similar_vector **last)
{
    struct similar_vector *vector = *last;
    const int64_t job = sqlite3_column_int64(row, 0);
    const int32_t segment = sqlite3_column_int(row, 1);
    if (!vector || vector->job != job || vector->segment != segment) {
        if (evaluate->vectors.count == SIMILAR_REGIONS)
            return -E2BIG;
        *last = vector = similar_add_vector(&evaluate->vectors, job, segment);
        if (!vector)
            return -ENOMEM;
        vector->grid = similar_grid_read(row, 2);
        evaluate->key[0] = '\0';
    }
    double *grown = realloc(vector->values, (vector->count + PATTERN_CODES) * sizeof *grown);
    if (!grown)
        return -ENOMEM;
    vector->values = grown;
    const int rc = pattern_read(report_text(row, 7), vector->values + vector->count);
    if (rc < 0)
        return rc;
    vector->count += PATTERN_CODES;
    const size_t used = strlen(evaluate->key), room = sizeof evaluate->key - used;
    const int added = snprintf(evaluate->key + used, room, "%s(%s)\n", report_text(row, 5), report_text(row, 6));
    return (size_t)added < room ? similar_set_key(&evaluate->vectors, vector, evaluate->key) : -E2BIG;
}

/* Reads the histograms of all listed regions. A region's key names its patterns with their settings. */
static int
evaluate_read_histograms(struct evaluate *evaluate)
{
    struct database *db = &evaluate->report->db;
    const int by = evaluate->what->what.by;
    struct similar_vector *last = NULL;
    sqlite3_stmt *row;
    int rc = database_start(db,
                            "SELECT h.job_id, h.segment_number, " SIMILAR_GRID ", h.pattern, h.settings, h.counts "
                            "FROM pattern_histogram h JOIN job j ON j.id = h.job_id WHERE " SIMILAR_LISTED
                            " AND (?1 IS NULL OR j.pipeline = ?1) AND (?2 IS NULL OR h.pattern = ?2) "
                            "AND (?3 IS NULL OR h.label = ?3) AND h.counts GLOB '*[1-9]*' "
                            "ORDER BY h.job_id, h.segment_number, h.pattern, h.settings",
                            VALUES(value_optional(evaluate->what->what.pipeline),
                                   value_optional(by < SIMILAR_PATTERNS ? report_similar_by_words[by] : NULL),
                                   value_optional(evaluate->what->what.segment)),
                            &row);
    if (rc < 0)
        return rc;
    while ((rc = database_step(db, row)) == 1)
        if ((rc = evaluate_add_histogram(evaluate, row, &last)) < 0) {
            database_refuse(db, rc,
                            rc == -E2BIG    ? "there are more than %d regions: choose a pipeline or a segment"
                            : rc == -ENOMEM ? "out of memory"
                                            : "a histogram cannot be read",
                            SIMILAR_REGIONS);
            break;
        }
    database_end(row);
    return rc;
}

/* Returns the label of the site for a key, or "". */
static const char *
evaluate_find_label(const struct report_similar_evaluation *what, const char *key)
{
    for (size_t low = 0, high = what->label_count; low < high;) {
        const size_t middle = low + (high - low) / 2;
        const int order = strcmp(key, what->labels[middle].key);
        if (order == 0)
            return what->labels[middle].label;
        *(order < 0 ? &high : &low) = order < 0 ? middle : middle + 1;
    }
    return "";
}

static int
evaluate_label_region(struct evaluate *evaluate, sqlite3_str *sql, size_t place)
{
    struct evaluate_region *region = &evaluate->regions[place];
    const struct report_similar_evaluation *what = evaluate->what;
    sqlite3_stmt *row;
    region->vector = &evaluate->vectors.items[place];
    int rc = database_query(&evaluate->report->db, sqlite3_str_value(sql),
                            VALUES(value_int(region->vector->job), value_int(region->vector->segment)), &row);
    if (rc < 0)
        return rc;
    rc = database_step(&evaluate->report->db, row);
    if (rc == 1) {
        const char *value = report_text(row, 1);
        region->series = sqlite3_column_int64(row, 0);
        if (what->what.segment && what->what.by == SIMILAR_GLCM &&
            strcmp(report_text(row, 2), what->what.segment) != 0) {
            evaluate->vectors.items[place].key = SIZE_MAX; /* its values count for no standard deviation */
            region->label = strdup("");
        } else
            region->label = strdup(what->labels ? evaluate_find_label(what, value) : value);
        rc = region->label ? 0 : database_refuse(&evaluate->report->db, -ENOMEM, "out of memory");
    }
    sqlite3_finalize(row);
    return rc;
}

static int
evaluate_label(struct evaluate *evaluate)
{
    int column = 0, rc = 0;
    while (report_similar_columns[column] && strcmp(report_similar_columns[column], evaluate->what->column) != 0)
        column++;
    if (!report_similar_columns[column])
        return database_refuse(&evaluate->report->db, -EINVAL, "there is no column \"%.32s\"", evaluate->what->column);
    evaluate->own_series = strcmp(evaluate->what->column, "series") == 0 && !evaluate->what->labels;
    sqlite3_str *sql = sqlite3_str_new(evaluate->report->db.handle);
    sqlite3_str_appendf(sql,
                        "SELECT j.series_id, %s, coalesce(g.label, '') FROM job j JOIN series s ON s.id = j.series_id "
                        "LEFT JOIN segment g ON g.job_id = j.id AND g.number = ?2 WHERE j.id = ?1",
                        evaluate_sql[column]);
    evaluate->region_count = evaluate->vectors.count;
    evaluate->regions = calloc(evaluate->region_count + 1, sizeof *evaluate->regions);
    evaluate->neighbours = calloc(evaluate->region_count + 1, sizeof *evaluate->neighbours);
    if (!evaluate->regions || !evaluate->neighbours || sqlite3_str_errcode(sql) != SQLITE_OK)
        rc = database_refuse(&evaluate->report->db, -ENOMEM, "out of memory");
    for (size_t i = 0; rc == 0 && i < evaluate->region_count; i++)
        rc = evaluate_label_region(evaluate, sql, i);
    sqlite3_free(sqlite3_str_finish(sql));
    return rc;
}

/* ------------------------------------------------------------------------------------- scores - */

static int
neighbour_compare(const void *a, const void *b)
{
    const struct evaluate_neighbour *one = a, *other = b;
    if (one->distance != other->distance)
        return one->distance < other->distance ? -1 : 1;
    return (one->region > other->region) - (one->region < other->region);
}

static double
evaluate_distance(const struct evaluate *evaluate, const struct similar_vector *a, const struct similar_vector *b)
{
    double sum = 0;
    if (evaluate->what->what.by == SIMILAR_GLCM)
        return similar_vector_distance(evaluate->distance, a, b);
    for (size_t i = 0; i < a->count; i += PATTERN_CODES)
        sum += pattern_distance((enum pattern_distance)evaluate->distance, a->values + i, b->values + i);
    return sum / (double)(a->count / PATTERN_CODES);
}

/* Sorts the neighbours of a region. Returns their number. */
static size_t
evaluate_neighbours(struct evaluate *evaluate, const struct evaluate_region *own)
{
    size_t count = 0;
    for (size_t i = 0; i < evaluate->region_count; i++) {
        const struct evaluate_region *other = &evaluate->regions[i];
        const bool same = evaluate->own_series ? other->vector->job == own->vector->job : other->series == own->series;
        if (!same && *other->label &&
            similar_vectors_fit(&evaluate->what->what, &evaluate->vectors, own->vector, other->vector))
            evaluate->neighbours[count++] =
                (struct evaluate_neighbour){evaluate_distance(evaluate, own->vector, other->vector), i};
    }
    qsort(evaluate->neighbours, count, sizeof *evaluate->neighbours, neighbour_compare);
    return count;
}

/* Adds the scores of a query. */
static void
evaluate_query(struct evaluate *evaluate, const struct evaluate_region *own)
{
    struct report_similar_score *score = evaluate->score;
    const size_t count = evaluate_neighbours(evaluate, own);
    size_t right = 0, found = 0;
    double average = 0;
    for (size_t i = 0; i < count; i++)
        right += strcmp(evaluate->regions[evaluate->neighbours[i].region].label, own->label) == 0;
    if (right == 0) {
        score->alone++;
        return;
    }
    score->queries++;
    for (size_t i = 0; i < count; i++) {
        const bool is_right = strcmp(evaluate->regions[evaluate->neighbours[i].region].label, own->label) == 0;
        found += is_right;
        average += is_right ? (double)found / (double)(i + 1) : 0;
        for (int d = 0; d < DEPTHS; d++)
            score->precision[d] += is_right && i < evaluate_depths[d]
                                       ? 1.0 / (double)(count < evaluate_depths[d] ? count : evaluate_depths[d])
                                       : 0;
    }
    for (int d = 0; d < DEPTHS; d++) {
        const size_t depth = count < evaluate_depths[d] ? count : evaluate_depths[d];
        score->best[d] += (double)(right < depth ? right : depth) / (double)depth;
    }
    score->average += average / (double)right;
    score->chance += (double)right / (double)count;
}

static int
evaluate_label_compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int
evaluate_count_labels(struct evaluate *evaluate)
{
    char **labels = calloc(evaluate->region_count + 1, sizeof *labels);
    size_t count = 0;
    if (!labels)
        return database_refuse(&evaluate->report->db, -ENOMEM, "out of memory");
    for (size_t i = 0; i < evaluate->region_count; i++)
        if (*evaluate->regions[i].label)
            labels[count++] = evaluate->regions[i].label;
    qsort(labels, count, sizeof *labels, evaluate_label_compare);
    for (size_t i = 0; i < count; i++)
        evaluate->score->labels += i == 0 || strcmp(labels[i], labels[i - 1]) != 0;
    evaluate->score->regions = (int64_t)count;
    evaluate->score->unlabelled = (int64_t)(evaluate->region_count - count);
    free(labels);
    return 0;
}

static int
evaluate_score(struct evaluate *evaluate)
{
    struct report_similar_score *score = evaluate->score;
    for (size_t key = 0; evaluate->what->what.by == SIMILAR_GLCM && key < evaluate->vectors.key_count; key++)
        similar_standardise(&evaluate->vectors, key);
    const int rc = evaluate_count_labels(evaluate);
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < evaluate->region_count; i++)
        if (*evaluate->regions[i].label)
            evaluate_query(evaluate, &evaluate->regions[i]);
    if (score->regions == 0)
        return database_refuse(
            &evaluate->report->db, -ENOENT,
            "none of %lld regions has a label: check that the names of jobs, series or patients are those of the "
            "database",
            (long long)score->unlabelled);
    if (score->queries == 0)
        return database_refuse(&evaluate->report->db, -ENOENT,
                               "of %lld regions, none can be compared with one of the same label in another series",
                               (long long)score->regions);
    for (int d = 0; d < DEPTHS; d++) {
        score->precision[d] /= (double)score->queries;
        score->best[d] /= (double)score->queries;
    }
    score->average /= (double)score->queries;
    score->chance /= (double)score->queries;
    return 0;
}

int
report_similar_evaluate(struct report *report, const struct report_similar_evaluation *evaluation,
                        struct report_similar_score *score, struct error *error)
{
    struct evaluate evaluate = {.report = report, .what = evaluation, .score = score};
    *score = (struct report_similar_score){0};
    int rc = similar_choose_distance(report, &evaluation->what, &evaluate.distance, score->distance);
    if (rc == 0)
        rc = database_script(&report->db, "BEGIN");
    if (rc < 0)
        return report_conclude(report, NULL, rc, error);
    rc = evaluation->what.by == SIMILAR_GLCM
             ? similar_read_features(report, evaluation->what.pipeline, 0, &evaluate.vectors)
             : evaluate_read_histograms(&evaluate);
    if (rc == 0 && evaluate.vectors.count > SIMILAR_REGIONS)
        rc = database_refuse(&report->db, -E2BIG, "there are more than %d regions: choose a pipeline", SIMILAR_REGIONS);
    if (rc == 0)
        rc = evaluate_label(&evaluate);
    database_quietly(&report->db, "COMMIT");
    if (rc == 0)
        rc = evaluate_score(&evaluate);
    for (size_t i = 0; evaluate.regions && i < evaluate.region_count; i++)
        free(evaluate.regions[i].label);
    free(evaluate.regions);
    free(evaluate.neighbours);
    similar_clear_vectors(&evaluate.vectors);
    return report_conclude(report, NULL, rc, error);
}
