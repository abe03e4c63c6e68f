/*
 * lost_database.h - a root that had a database and has none now. A new one would run every series again, and send
 * results of the same series once more.
 */
#ifndef NOCTULE_SERVICE_COMMON_LOST_DATABASE_H
#define NOCTULE_SERVICE_COMMON_LOST_DATABASE_H

#include "base/error.h"

#include <stdbool.h>

/* Leaves the marker that the root has a database. 0 or -errno. */
int lost_database_mark(const char *root);

/* Whether the root has the marker, or holds series, results or files in quarantine. */
bool lost_database_had_one(const char *root);

/* Whether the file is not there, or has no bytes. */
bool lost_database_is_missing(const char *root);

/* Sets the error DATABASE_LOST. Returns -ENODATA. */
int lost_database_refuse(const char *root, struct error *error);

#endif
