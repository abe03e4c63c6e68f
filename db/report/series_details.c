/* series_details.c - one stored series: its properties and its files. */
#include "db/report/report_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define STORED_FIELDS(FIELD)                                                                                           \
    FIELD(INT64, revision, "revision")                                                                                 \
    FIELD(INT64, lacking, "quarantined")                                                                               \
    FIELD(TEXT, state, "state")                                                                                        \
    FIELD(TEXT, evidence, "evidence")                                                                                  \
    FIELD(TEXT, code, "code")                                                                                          \
    FIELD(TEXT, message, "message")                                                                                    \
    FIELD(TEXT, called_ae, "called_ae")                                                                                \
    FIELD(TEXT, sender, "sender")                                                                                      \
    FIELD(TEXT, inbox, "inbox")                                                                                        \
    FIELD(TEXT, missing_accepted_by, "missing_accepted_by")                                                            \
    FIELD(TEXT, removed_at, "removed_at")
#define STORED_FIELD(kind, member, sql) {DATABASE_##kind, offsetof(struct report_stored, member)},

static const struct database_field stored_fields[] = {STORED_FIELDS(STORED_FIELD)};
static const struct database_shape stored_shape = {"series", sizeof(struct report_stored), stored_fields,
                                                   COLUMN_COUNT(stored_fields)};

static const struct database_field companion_fields[] = {
    {DATABASE_TEXT, offsetof(struct report_companion, series_uid)},
    {DATABASE_TEXT, offsetof(struct report_companion, modality)},
    {DATABASE_TEXT, offsetof(struct report_companion, body_part)},
    {DATABASE_TEXT, offsetof(struct report_companion, description)},
};
static const struct database_shape companion_shape = {"companion", sizeof(struct report_companion), companion_fields,
                                                      COLUMN_COUNT(companion_fields)};

static int
stored_read(struct report *report, const char *series_uid, struct report_stored *stored)
{
    sqlite3_stmt *row;
    int rc = database_start(&report->db,
                            "SELECT " STORED_FIELDS(DATABASE_COLUMN) "NULL FROM v_series "
                                                                     "WHERE series_uid = ?",
                            VALUES(value_text(series_uid)), &row);
    if (rc < 0)
        return rc;
    rc = database_step(&report->db, row);
    if (rc == 1)
        rc = database_read_row(&report->db, row, &stored_shape, stored);
    else if (rc == 0)
        rc = database_refuse(&report->db, -ENOENT, "there is no series %s", series_uid);
    database_end(row);
    return rc;
}

static int
stored_read_paths(struct report *report, const char *series_uid, struct report_stored *stored)
{
    sqlite3_stmt *row;
    int rc = database_start(&report->db, "SELECT path FROM v_instances WHERE series_uid = ? ORDER BY path",
                            VALUES(value_text(series_uid)), &row);
    if (rc < 0)
        return rc;
    while ((rc = database_step(&report->db, row)) == 1) {
        char **paths = reallocarray(stored->paths, stored->path_count + 1, sizeof *paths);
        if (paths)
            stored->paths = paths;
        char *copy = paths ? strdup(report_text(row, 0)) : NULL;
        if (!copy) {
            rc = database_refuse(&report->db, -ENOMEM, "out of memory");
            break;
        }
        paths[stored->path_count++] = copy;
    }
    database_end(row);
    return rc;
}

/* Reads the series that a job may wait for (queue_companions). */
static int
stored_read_companions(struct report *report, const char *series_uid, struct report_stored *stored)
{
    sqlite3_stmt *row;
    int rc = database_start(&report->db,
                            "SELECT o.series_uid, o.modality, o.body_part, o.series_description "
                            "FROM v_series s JOIN v_series o ON o.study_uid = s.study_uid AND "
                            "o.series_uid <> s.series_uid WHERE s.series_uid = ? AND o.state = "
                            "'SETTLED' AND o.removed_at IS NULL ORDER BY o.settled_at, o.series_uid",
                            VALUES(value_text(series_uid)), &row);
    if (rc < 0)
        return rc;
    while ((rc = database_step(&report->db, row)) == 1) {
        struct report_companion *grown = reallocarray(stored->companions, stored->companion_count + 1, sizeof *grown);
        if (!grown) {
            rc = database_refuse(&report->db, -ENOMEM, "out of memory");
            break;
        }
        stored->companions = grown;
        rc = database_read_row(&report->db, row, &companion_shape, &grown[stored->companion_count]);
        if (rc < 0)
            break;
        stored->companion_count++;
    }
    database_end(row);
    return rc;
}

int
report_stored_series(struct report *report, const char *series_uid, struct report_stored *stored, struct error *error)
{
    *stored = (struct report_stored){0};
    int rc = database_script(&report->db, "BEGIN");
    if (rc == 0) {
        rc = stored_read(report, series_uid, stored);
        if (rc == 0)
            rc = stored_read_paths(report, series_uid, stored);
        if (rc == 0)
            rc = stored_read_companions(report, series_uid, stored);
        database_quietly(&report->db, "COMMIT");
    }
    if (rc < 0)
        report_stored_clear(stored);
    return report_conclude(report, NULL, rc, error);
}

void
report_stored_clear(struct report_stored *stored)
{
    for (size_t i = 0; i < stored->path_count; i++)
        free(stored->paths[i]);
    free(stored->paths);
    for (size_t i = 0; i < stored->companion_count; i++)
        database_clear_row(&companion_shape, &stored->companions[i]);
    free(stored->companions);
    database_clear_row(&stored_shape, stored);
    *stored = (struct report_stored){0};
}
