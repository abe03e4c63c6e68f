/* migrate.h - migrates a database to the schema and the views of this version. Private to db/. */
#ifndef NOCTULE_DB_MIGRATE_H
#define NOCTULE_DB_MIGRATE_H

#include "db/database.h"

/* Generated from migrations/ and views.sql (embed_sql.cmake). Step n leads from version n to n + 1. The schema, which a new
 * database gets at once, equals the result of all steps. */
extern const char *const migrate_ladder[];
extern const int migrate_version;
extern const char migrate_schema[];
extern const char migrate_views[];

/*
 * Checks that the database is Noctule's or empty. Returns -EBADMSG for another program's database,
 * -EPROTONOSUPPORT for one of a later version. Changes no data.
 */
int migrate_identify(struct database *db, int *version);

/* Runs the missing migrations and replaces outdated views, in one transaction. */
int migrate(struct database *db);

#endif
