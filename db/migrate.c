/*
 * migrate.c - see migrate.h.
 *
 * PRAGMA user_version counts the migrations a database has seen. The views are no part of the
 * ladder: their text is compared with views.sql and replaced where it differs, and they step aside
 * while the tables under them change.
 */
#include "db/migrate.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

int
migrate_identify(struct database *db, int *version)
{
    int64_t application_id, user_version, objects;
    int rc = database_integer(db, "PRAGMA application_id", &application_id);
    if (rc == 0)
        rc = database_integer(db, "PRAGMA user_version", &user_version);
    if (rc == 0)
        rc = database_integer(db, "SELECT count(*) FROM sqlite_schema", &objects);
    if (rc < 0)
        return rc;
    bool empty = application_id == 0 && user_version == 0 && objects == 0;
    if (!empty && application_id != DATABASE_APPLICATION_ID)
        return database_refuse(db, -EBADMSG, "it is a database of another program");
    if (user_version > migrate_version)
        return database_refuse(db, -EPROTONOSUPPORT,
                               "it has schema version %lld, this program knows up to %d: it was "
                               "written by a later version of Noctule",
                               (long long)user_version, migrate_version);
    *version = (int)user_version;
    return 0;
}

/* Opens a database in memory that has the views (and nothing under them) as they should be. */
static int
open_model(struct database *db, struct database *model)
{
    int rc = database_open(model, ":memory:", SQLITE_OPEN_READWRITE);
    if (rc < 0)
        return database_refuse(db, rc, "%s", model->reason);
    rc = database_script(model, migrate_views);
    if (rc < 0) {
        database_refuse(db, rc, "views.sql: %s", model->reason);
        database_close(model);
    }
    return rc;
}

/* Calls `visit` with the name and text of each view of the model until it returns other than 0. */
static int
each_view(struct database *db, struct database *model,
          int (*visit)(struct database *db, const char *name, const char *text))
{
    sqlite3_stmt *statement;
    int rc = database_start(model, "SELECT name, sql FROM sqlite_schema WHERE type = 'view'",
                            NO_VALUES, &statement);
    if (rc < 0)
        return database_refuse(db, rc, "%s", model->reason);
    int answer = 0;
    while (answer == 0 && (rc = database_step(model, statement)) == 1)
        answer = visit(db, (const char *)sqlite3_column_text(statement, 0),
                       (const char *)sqlite3_column_text(statement, 1));
    database_end(statement);
    return rc < 0 ? database_refuse(db, rc, "%s", model->reason) : answer;
}

/* 1 when the database has another view of this name, or none. */
static int
view_differs(struct database *db, const char *name, const char *text)
{
    int64_t same;
    int rc =
        database_get(db, "SELECT 1 FROM sqlite_schema WHERE type = 'view' AND name = ? AND sql = ?",
                     VALUES(value_text(name), value_text(text)), &same);
    return rc < 0 ? rc : rc == 0;
}

static int
drop_view(struct database *db, const char *name, const char *text)
{
    (void)text;
    char *sql = sqlite3_mprintf("DROP VIEW IF EXISTS \"%w\"", name);
    if (!sql)
        return database_refuse(db, -ENOMEM, "out of memory");
    int rc = database_script(db, sql);
    sqlite3_free(sql);
    return rc;
}

static int
set_version(struct database *db, int version)
{
    char *sql = sqlite3_mprintf("PRAGMA user_version = %d; PRAGMA application_id = %d", version,
                                DATABASE_APPLICATION_ID);
    if (!sql)
        return database_refuse(db, -ENOMEM, "out of memory");
    int rc = database_script(db, sql);
    sqlite3_free(sql);
    return rc;
}

static int
check_foreign_keys(struct database *db)
{
    char table[64];
    int rc = database_text(db, "PRAGMA foreign_key_check", table, sizeof table);
    if (rc == 0 && table[0])
        rc = database_refuse(db, -EUCLEAN, "after migration, rows of %s refer to nothing", table);
    return rc;
}

/* Within a transaction. The version is read again: another process may have been quicker. */
static int
migrate_climb(struct database *db, struct database *model)
{
    int version;
    int rc = migrate_identify(db, &version);
    if (rc == 0)
        rc = each_view(db, model, drop_view);
    if (rc == 0 && version < migrate_version) {
        for (int step = version; rc == 0 && step < migrate_version; step++)
            rc = database_script(db, migrate_ladder[step]);
        if (rc == 0)
            rc = set_version(db, migrate_version);
        if (rc == 0)
            rc = check_foreign_keys(db);
    }
    return rc == 0 ? database_script(db, migrate_views) : rc;
}

int
migrate(struct database *db)
{
    static const char rollback[] = "ROLLBACK";
    struct database model;
    int version;
    int rc = migrate_identify(db, &version);
    if (rc < 0)
        return rc;
    rc = open_model(db, &model);
    if (rc < 0)
        return rc;
    int differs = version < migrate_version ? 1 : each_view(db, &model, view_differs);
    if (differs < 0)
        rc = differs;
    if (differs == 1) {
        rc = database_script(db, "BEGIN IMMEDIATE");
        if (rc == 0)
            rc = migrate_climb(db, &model);
        if (rc == 0)
            rc = database_script(db, "COMMIT");
        if (rc < 0 && !sqlite3_get_autocommit(db->handle))
            database_quietly(db, rollback);
    }
    database_close(&model);
    return rc;
}
