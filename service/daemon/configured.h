/*
 * configured.h - the configuration in force as the children get it: a copy below the root, made of what
 * was read and checked, so that a file that is being edited reaches nobody. One thread: the loop's.
 */
#ifndef NOCTULE_SERVICE_DAEMON_CONFIGURED_H
#define NOCTULE_SERVICE_DAEMON_CONFIGURED_H

#include "base/error.h"
#include "config/config.h"

struct configured {
    char *file; /* which the children open */
    char *text; /* what stands in it */
    int memory; /* what file names while the disk has no room for it; -1: none */
};

extern const struct configured configured_none;

/*
 * The configuration of the user's file, with another root where one is given (NULL: none). What is wrong
 * with it is logged, each error on a line; -errno. *files: those that were read, one per line, also on an
 * error; the caller must free it, NULL: no memory.
 */
int configured_read(const char *file, const char *root, struct conf **conf, char **files,
                    struct error *error);

/*
 * Writes it for the children that start; what was there is kept on an error (-errno). A full disk keeps
 * nobody from starting: without room there they read it from memory that this process holds.
 */
int configured_write(struct configured *configured, const char *root, const struct conf *conf);

void configured_free(struct configured *configured);

#endif
