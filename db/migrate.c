/*
 * migrate.c - see migrate.h.
 *
 * PRAGMA user_version counts the migrations of a database. Views are not migrated: their text is compared with
 * views.sql and replaced if it differs. They are dropped while the tables below them change.
 */
#include "db/migrate.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>

int
migrate_identify(struct database *db, int *version)
{
    int64_t application_id, user_version, objects;
    int rc = database_get(db, "PRAGMA application_id", NO_VALUES, &application_id);
    if (rc >= 0)
        rc = database_get(db, "PRAGMA user_version", NO_VALUES, &user_version);
    if (rc >= 0)
        rc = database_get(db, "SELECT count(*) FROM sqlite_schema", NO_VALUES, &objects);
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

struct views {
    char *drop, *foreign; /* SQL: drops all of them, creates those that are not in views.sql */
};

static const struct database_shape views_shape =
    DATABASE_SHAPE("views", struct views, {DATABASE_TEXT, offsetof(struct views, drop)},
                   {DATABASE_TEXT, offsetof(struct views, foreign)});

static int
set_version(struct database *db, int version)
{
    char *sql =
        sqlite3_mprintf("PRAGMA user_version = %d; PRAGMA application_id = %d", version, DATABASE_APPLICATION_ID);
    if (!sql)
        return database_refuse(db, -ENOMEM, "out of memory");
    int rc = database_script(db, sql);
    sqlite3_free(sql);
    return rc;
}

/* Runs within a transaction. Reads the version again: another process may have migrated meanwhile. */
static int
migrate_climb(struct database *db)
{
    int version;
    struct views views = {0};
    int rc = migrate_identify(db, &version);
    if (rc == 0) {
        /*
         * Foreign views may read Noctule's views; SQLite then refuses to rename tables. They are
         * dropped and created again, too.
         */
        sqlite3_stmt *statement;
        rc = database_start(db,
                            "SELECT group_concat(printf('DROP VIEW \"%w\"', name), ';'), group_concat(sql, ';') "
                            "FILTER (WHERE instr(?, printf('CREATE VIEW %s AS', name)) = 0) "
                            "FROM sqlite_schema WHERE type = 'view'",
                            VALUES(value_text(migrate_views)), &statement);
        if (rc < 0)
            return rc;
        rc = database_step(db, statement);
        if (rc == 1)
            rc = database_read_row(db, statement, &views_shape, &views);
        database_end(statement);
    }
    if (rc == 0)
        rc = database_script(db, views.drop);
    if (rc == 0 && version < migrate_version) {
        if (version == 0)
            rc = database_script(db, migrate_schema);
        for (int step = version; rc == 0 && version > 0 && step < migrate_version; step++)
            rc = database_script(db, migrate_ladder[step]);
        if (rc == 0)
            rc = set_version(db, migrate_version);
        if (rc == 0) {
            char table[64];
            rc = database_text(db, "PRAGMA foreign_key_check", table, sizeof table);
            if (rc == 0 && table[0])
                rc = database_refuse(db, -EUCLEAN, "after migration, rows of %s refer to missing rows", table);
        }
    }
    if (rc == 0)
        rc = database_script(db, migrate_views);
    if (rc == 0)
        rc = database_script(db, views.foreign);
    database_clear_row(&views_shape, &views);
    return rc;
}

int
migrate(struct database *db)
{
    int version;
    int rc = migrate_identify(db, &version);
    if (rc == 0 && version == migrate_version) {
        /* A view of views.sql may be missing or have another text. SQLite keeps the text as it was. */
        int64_t differ = 0;
        rc = database_get(db,
                          "SELECT (length(?1) - length(replace(?1, 'CREATE VIEW ', ''))) / "
                          "length('CREATE VIEW ') <> (SELECT count(*) FROM sqlite_schema "
                          "WHERE type = 'view' AND instr(?1, sql || ';') > 0)",
                          VALUES(value_text(migrate_views)), &differ);
        if (rc >= 0 && !differ)
            return 0;
    }
    if (rc >= 0)
        rc = database_script(db, "BEGIN IMMEDIATE");
    if (rc == 0)
        rc = migrate_climb(db);
    if (rc == 0)
        rc = database_script(db, "COMMIT");
    if (rc < 0 && !sqlite3_get_autocommit(db->handle))
        database_quietly(db, "ROLLBACK");
    return rc;
}
