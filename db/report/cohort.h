/*
 * cohort.h - the columns of a cohort: what was measured of its regions, each by one name. Private to
 * db/report.
 *
 * A column is a feature with the settings that define it, whatever the segment is called; the name is
 * made of these alone, and so the same in every cohort: "glcm.joint_entropy.3d_merged.fbn32". Where bins
 * have a width the number of levels is a measurement, and no part of it.
 */
#ifndef NOCTULE_DB_REPORT_COHORT_H
#define NOCTULE_DB_REPORT_COHORT_H

#include "db/report/report_private.h"

struct cohort_column {
    char *name; /* malloc'd, as all of it; A-Z a-z 0-9 _ and . between the parts */
    char *family, *feature, *meaning, *ibsi, *unit, *settings;
};

/* Rows of feature_definition, by id. */
struct cohort_definition {
    int64_t id;
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
 * Those of the definitions that `rows` has: id, label, family, name, meaning, ibsi_code, unit, settings.
 * One that was measured in several units is a column for each: ".in_Bq_ml". 0 or -errno with a reason;
 * clear it either way.
 */
int cohort_columns_read(struct report *report, sqlite3_stmt *rows, struct cohort_columns *columns);
void cohort_columns_clear(struct cohort_columns *columns);

/* NULL: there is none of that id. */
const struct cohort_definition *cohort_definition(const struct cohort_columns *columns, int64_t id);

#endif
