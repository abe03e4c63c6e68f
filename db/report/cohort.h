/*
 * cohort.h - the columns of a cohort: the features of its regions, each with one name; and the jobs
 * and series that have no region. Private to db/report.
 *
 * A column is a feature with the settings that define it, for all labels of segments. Its name
 * depends on these only, so it is the same in each cohort: "glcm.joint_entropy.3d_merged.fbn32".
 * With a fixed bin width the number of levels is a result, and not part of the name.
 */
#ifndef NOCTULE_DB_REPORT_COHORT_H
#define NOCTULE_DB_REPORT_COHORT_H

#include "db/report/report_private.h"

struct cohort_column {
    char *name; /* malloc'd, like all members; A-Z a-z 0-9 _ with . between the parts */
    char *family, *feature, *meaning, *ibsi, *unit, *settings;
};

/* Rows of feature_definition, by id. */
struct cohort_definition {
    int64_t id; /* the first member: it is also a key */
    size_t column;
    char *label; /* of the segment; malloc'd */
};

struct cohort_columns {
    struct cohort_column *items; /* by name */
    size_t count, room;
    struct cohort_definition *definitions; /* by id */
    size_t definition_count, definition_room;
};

/*
 * Reads the columns of the definitions in `rows`: id, label, family, name, meaning, ibsi_code,
 * unit, settings, in the order of family and name. A feature in several units has one column per unit: ".in_Bq_ml". Returns 0 or
 * -errno with a reason; clear it in both cases.
 */
int cohort_columns_read(struct report *report, sqlite3_stmt *rows, struct cohort_columns *columns);
void cohort_columns_clear(struct cohort_columns *columns);

/* Returns NULL if there is no definition with that id. */
const struct cohort_definition *cohort_definition(const struct cohort_columns *columns, int64_t id);

/*
 * The jobs of a cohort. ?1 is the pipeline, ?2 the lower limit of the time or NULL, ?3 the modality or NULL. ?4
 * includes superseded jobs.
 */
#define COHORT_JOBS                                                                                                    \
    "FROM job j JOIN series s ON s.id = j.series_id WHERE j.pipeline = ?1 "                                            \
    "AND j.state IN ('DONE', 'EMPTY') AND (?2 IS NULL OR j.ended_at >= ?2) "                                           \
    "AND (?3 IS NULL OR s.modality = ?3) AND (?4 OR j.superseded_by IS NULL) "

/* The origin of the first image of a series `s`. */
#define COHORT_SOURCE "(SELECT source FROM instance WHERE series_id = s.id ORDER BY id LIMIT 1)"

/*
 * Counts the jobs and patients of a cohort, and prints the jobs and series without a region to
 * `out` (may be NULL). `values` are the four parameters of COHORT_JOBS.
 */
int cohort_write_failed(struct report *report, const struct database_value values[4], FILE *out,
                        struct report_cohort_counts *counts);

#endif
