/*
 * daemon.h - the daemon: the role that owns the queue and makes all decisions.
 */
#ifndef NOCTULE_SERVICE_DAEMON_DAEMON_H
#define NOCTULE_SERVICE_DAEMON_DAEMON_H

#include <stdbool.h>

struct daemon_options {
    const char *config_file;
    const char *root;  /* replaces the configured root; NULL: keep it */
    bool new_database; /* create one in place of a lost database */
};

/*
 * Runs until a signal ends it. Returns the exit status: 0 after a clean stop, EXIT_CONFIG,
 * EXIT_DATABASE, EXIT_LOST, EX_TEMPFAIL (75) if another daemon uses the root, EX_CANTCREAT (73) if
 * the root cannot be used, EX_OSERR (71) if the system rejects another call.
 */
int daemon_main(const struct daemon_options *options);

#endif
