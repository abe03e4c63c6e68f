/* daemon.h - the role that owns the queue and decides everything. */
#ifndef NOCTULE_SERVICE_DAEMON_DAEMON_H
#define NOCTULE_SERVICE_DAEMON_DAEMON_H

#include <stdbool.h>

struct daemon_options {
    const char *config_file;
    const char *root;  /* instead of the configured one; NULL */
    bool new_database; /* in place of one that was lost */
};

/*
 * Runs until it is told to stop. Returns the exit status: 0 after a clean stop, EXIT_CONFIG,
 * EXIT_DATABASE, EXIT_LOST, EX_TEMPFAIL (75) when another daemon has the root, EX_CANTCREAT (73) when the root
 * cannot be used, EX_OSERR (71) when the system refuses something else.
 */
int daemon_main(const struct daemon_options *options);

#endif
