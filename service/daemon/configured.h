/*
 * configured.h - the configuration in force, as children read it: a copy below the root, made of the checked values. A
 * file that is being edited therefore never reaches a child. Loop thread only.
 */
#ifndef NOCTULE_SERVICE_DAEMON_CONFIGURED_H
#define NOCTULE_SERVICE_DAEMON_CONFIGURED_H

#include "base/error.h"
#include "config/config.h"

struct configured {
    char *file; /* opened by the children */
    char *text; /* content of the file */
    int memory; /* descriptor that `file` names while the disk is full; -1: unused */
};

extern const struct configured configured_none;

/* Reads the user's configuration file, with another root if `root` is not NULL. Returns 0, or -errno after logging each
 * error on its own line. Sets *files to the files that were read, one per line, also on an error. The caller must free
 * *files; NULL: no memory. */
int configured_read(const char *file, const char *root, struct conf **conf, char **files, struct error *error);

/* Writes the configuration for children that start later. Returns 0, or -errno with the former file unchanged. A full
 * disk must not prevent a start: children then read the configuration from memory that this process holds. */
int configured_write(struct configured *configured, const char *root, const struct conf *conf);

void configured_free(struct configured *configured);

#endif
