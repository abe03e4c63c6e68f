/* json_texts.c - the members of a JSON object, read by SQLite. */
#include "db/report/report_private.h"

#include "base/text.h"

#include <errno.h>
#include <string.h>

int
report_json_texts(struct report *report, const char *json, char **members, size_t *size, struct error *error)
{
    /* An invalid text is read as an array, whose one member has the wrong type. */
    static const char sql[] = "SELECT key, CAST(iif(type = 'real', CAST(value AS INTEGER), value) AS TEXT), "
                              "type IN ('text', 'integer') OR type = 'real' AND value = CAST(value AS INTEGER) "
                              "FROM json_each(CASE WHEN json_valid(?1) THEN iif(json_type(?1) = 'object', ?1, '[[]]') "
                              "ELSE '[[]]' END)";
    struct text_stream stream;
    sqlite3_stmt *row;
    *members = NULL;
    int rc = text_open(&stream);
    if (rc)
        return error_set_system(error, rc, "read JSON");
    rc = database_start(&report->db, sql, VALUES(value_text(json)), &row);
    if (rc == 0) {
        while ((rc = database_step(&report->db, row)) == 1) {
            const char *name = report_text(row, 0), *text = report_text(row, 1);
            if (!sqlite3_column_int(row, 2) || (size_t)sqlite3_column_bytes(row, 1) != strlen(text)) {
                rc = database_refuse(&report->db, -EINVAL,
                                     "the body must be one JSON object of texts and whole numbers");
                break;
            }
            fprintf(stream.out, "%s%c%s%c", name, '\0', text, '\0');
        }
        database_end(row);
    }
    const int closed = text_close(&stream);
    *members = stream.bytes;
    *size = stream.size;
    if (closed && rc == 0)
        rc = database_refuse(&report->db, closed, "out of memory");
    return report_conclude(report, NULL, rc, error);
}
