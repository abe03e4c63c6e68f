/*
 * migrate.h - brings a database to the schema and the views of this version. Private to db/.
 */
#ifndef NOCTULE_DB_MIGRATE_H
#define NOCTULE_DB_MIGRATE_H

#include "db/database.h"

/* Generated from migrations/ and views.sql (embed_sql.cmake). Step n leads from version n to n + 1.
 */
extern const char *const migrate_ladder[];
extern const int migrate_version;
extern const char migrate_views[];

/*
 * Is it a database of ours, or one without anything in it? -EBADMSG when it is somebody else's,
 * -EPROTONOSUPPORT when a later version of Noctule wrote it. Changes nothing.
 */
int migrate_identify(struct database *db, int *version);

/* Climbs the ladder and replaces outdated views, in one transaction; does nothing when all is
 * current. */
int migrate(struct database *db);

#endif
