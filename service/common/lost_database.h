/*
 * lost_database.h - detect a root whose database is lost. A new database would run all series again
 * and send their results again.
 */
#ifndef NOCTULE_SERVICE_COMMON_LOST_DATABASE_H
#define NOCTULE_SERVICE_COMMON_LOST_DATABASE_H

#include "base/error.h"

#include <stdbool.h>

/* Writes the marker file that the root has a database. Returns 0 or -errno. */
int lost_database_mark(const char *root);

/* Returns whether the root has the marker or contains series, results or quarantined files. */
bool lost_database_had_one(const char *root);

/* Returns whether the database file does not exist or is empty. */
bool lost_database_is_missing(const char *root);

/* Sets the error DATABASE_LOST. Returns -ENODATA. */
int lost_database_refuse(const char *root, struct error *error);

#endif
