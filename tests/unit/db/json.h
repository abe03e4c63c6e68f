/* json.h - parses JSON output with SQLite. */
#ifndef NOCTULE_TEST_DB_JSON_H
#define NOCTULE_TEST_DB_JSON_H

#include <check.h>
#include <sqlite3.h>
#include <stdio.h>

/*
 * Runs `sql` with the JSON text as ?1. Returns the first column of the first row, "" for null;
 * valid until the next call.
 */
static inline const char *
ask_json(const char *json, const char *sql)
{
    static char answer[4096];
    sqlite3 *db;
    sqlite3_stmt *statement;
    ck_assert_int_eq(sqlite3_open(":memory:", &db), SQLITE_OK);
    ck_assert_int_eq(sqlite3_prepare_v2(db, sql, -1, &statement, NULL), SQLITE_OK);
    sqlite3_bind_text(statement, 1, json, -1, SQLITE_STATIC);
    int rc = sqlite3_step(statement);
    ck_assert_msg(rc == SQLITE_ROW, "%s on %s", sqlite3_errmsg(db), json);
    const unsigned char *text = sqlite3_column_text(statement, 0);
    snprintf(answer, sizeof answer, "%s", text ? (const char *)text : "");
    sqlite3_finalize(statement);
    sqlite3_close(db);
    return answer;
}

#define assert_json(json, sql, expected) ck_assert_str_eq(ask_json(json, sql), expected)

#endif
