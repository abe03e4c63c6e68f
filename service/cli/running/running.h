/*
 * running.h - daemons that run on this machine, with what each was started with. The kernel is asked (proc(5)), each
 * time: nothing is kept anywhere that a crash or a restart could make untrue.
 *
 * A daemon in a container or a chroot is none of these: its paths lead elsewhere. From the main thread only.
 */
#ifndef NOCTULE_SERVICE_CLI_RUNNING_RUNNING_H
#define NOCTULE_SERVICE_CLI_RUNNING_RUNNING_H

#include <limits.h>
#include <stddef.h>
#include <sys/types.h>

struct running_daemon {
    pid_t pid;
    uid_t user;
    char config[PATH_MAX]; /* absolute; "": this user cannot see it */
    char root[PATH_MAX];   /* absolute, what --root says; "": the configuration does */
};

/* In order of their numbers, which are `proc`'s. 0 or -errno; the list, NULL where it is empty, is the caller's to free. */
int running_daemons(const char *proc, struct running_daemon **daemons, size_t *count);

#endif
