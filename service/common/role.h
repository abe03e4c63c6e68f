/*
 * role.h - the children of noctuled: the same program, started again with --role.
 *
 * A child has its pipe to the daemon on fd 3 and its arguments; nothing else is inherited. It says
 * HELLO first and exits when the pipe closes. Each main returns an exit status (0: told to go, or
 * the daemon is gone).
 */
#ifndef NOCTULE_SERVICE_COMMON_ROLE_H
#define NOCTULE_SERVICE_COMMON_ROLE_H

#define ROLE_FD 3

/* A worker's exit status when its device cannot be opened or has failed: no job is to blame, and
 * none that it has not told of was begun. */
#define ROLE_EXIT_DEVICE 69

struct role_args {
    const char *config_file; /* what the daemon checked: conf_to_text, complete */
    int slot;                /* which of several workers */
    const char *device;      /* a worker's: "cpu", or the UUID of a GPU */
    int share;               /* a worker's: how many workers share its processors */
    int node;                /* a worker's: whose processors these are (numa.h); -1: all */
};

int intake_main(const struct role_args *args);
int worker_main(const struct role_args *args);
int courier_main(const struct role_args *args);
int page_main(const struct role_args *args);
int cluster_main(const struct role_args *args);
/* Tells which GPUs there are, and leaves. */
int probe_main(const struct role_args *args);

#endif
