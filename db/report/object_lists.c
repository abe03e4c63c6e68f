/* object_lists.c - annotation objects: their files, and the series that they refer to. */
#include "db/report/report_private.h"

#include <errno.h>
#include <stdlib.h>

#define OBJECT_FIELDS(FIELD)                                                                                           \
    FIELD(TEXT, sop_instance_uid, "sop_instance_uid")                                                                  \
    FIELD(TEXT, series_uid, "object_series_uid")                                                                       \
    FIELD(TEXT, kind, "kind")                                                                                          \
    FIELD(TEXT, label, "label")                                                                                        \
    FIELD(TEXT, sender, "sender")                                                                                      \
    FIELD(TEXT, path, "path")                                                                                          \
    FIELD(TEXT, received_at, "received_at")                                                                            \
    FIELD(TEXT, superseded_by, "coalesce(superseded_by, '')")                                                          \
    FIELD(BOOL, own, "own")                                                                                            \
    FIELD(BOOL, missing, "missing")                                                                                    \
    FIELD(BOOL, in_series,                                                                                             \
          "EXISTS (SELECT 1 FROM v_series s WHERE s.series_uid = object_series_uid "                                   \
          "AND s.removed_at IS NULL)")                                                                                 \
    FIELD(TEXT, drawn_on,                                                                                              \
          "coalesce(group_concat((SELECT s.series_uid FROM v_series s "                                                \
          "WHERE s.series_uid = v_objects.series_uid AND s.removed_at IS NULL), ' '), '')")
#define OBJECT_FIELD(kind, member, sql) {DATABASE_##kind, offsetof(struct report_object, member)},

static const struct database_field object_fields[] = {OBJECT_FIELDS(OBJECT_FIELD)};
static const struct database_shape object_shape = {"object", sizeof(struct report_object), object_fields,
                                                   COLUMN_COUNT(object_fields)};

int
report_objects(struct report *report, const struct report_object_filter *filter, struct report_object **objects,
               size_t *count, struct error *error)
{
    sqlite3_stmt *row;
    *objects = NULL;
    *count = 0;
    int rc = database_start(&report->db,
                            "SELECT " OBJECT_FIELDS(DATABASE_COLUMN) "NULL FROM v_objects WHERE removed_at IS NULL "
                                                                     "AND (?1 IS NULL OR sop_instance_uid = ?1) AND "
                                                                     "(?2 IS NULL OR received_at < ?2) "
                                                                     "GROUP BY object_series_uid, sop_instance_uid "
                                                                     "HAVING ?3 IS NULL OR max(series_uid = ?3) ORDER "
                                                                     "BY object_series_uid, received_at, path",
                            VALUES(value_optional(filter->sop_instance_uid), value_optional(filter->before),
                                   value_optional(filter->drawn_on)),
                            &row);
    if (rc < 0)
        return report_conclude(report, NULL, rc, error);
    while ((rc = database_step(&report->db, row)) == 1) {
        struct report_object *grown = reallocarray(*objects, *count + 1, sizeof *grown);
        if (!grown) {
            rc = database_refuse(&report->db, -ENOMEM, "out of memory");
            break;
        }
        *objects = grown;
        rc = database_read_row(&report->db, row, &object_shape, &grown[*count]);
        if (rc < 0)
            break;
        ++*count;
    }
    database_end(row);
    if (rc < 0)
        report_objects_free(*objects, *count);
    return report_conclude(report, NULL, rc, error);
}

void
report_objects_free(struct report_object *objects, size_t count)
{
    for (size_t i = 0; i < count; i++)
        database_clear_row(&object_shape, &objects[i]);
    free(objects);
}
