/*
 * running.h - finds the daemons on this machine and their configurations in proc(5). No state is
 * stored, so that a crash cannot leave stale data.
 *
 * Daemons in containers or chroots are left out, since their paths differ. Must be called from the
 * main thread.
 */
#ifndef NOCTULE_SERVICE_CLI_RUNNING_RUNNING_H
#define NOCTULE_SERVICE_CLI_RUNNING_RUNNING_H

#include <limits.h>
#include <stddef.h>
#include <sys/types.h>

struct running_daemon {
    pid_t pid;
    uid_t user;
    char config[PATH_MAX]; /* absolute; "" if this user cannot read it */
    char root[PATH_MAX];   /* absolute, from --root; "" if the configuration sets it */
};

/* Lists the daemons of the folder `proc` by process ID. Returns 0 or -errno. The caller must free
 * the list with free(); it is NULL if empty. */
int running_daemons(const char *proc, struct running_daemon **daemons, size_t *count);

#endif
