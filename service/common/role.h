/*
 * role.h - the children of noctuled: the same program, started again with --role.
 *
 * A child has its pipe to the daemon on fd 3 and its arguments; nothing else is inherited. It says
 * HELLO first and exits when the pipe closes. Each main returns an exit status (0: told to go, or
 * the daemon is gone).
 */
#ifndef NOCTULE_ROLE_H
#define NOCTULE_ROLE_H

#define ROLE_FD 3

struct role_args {
    const char *config_file; /* what the daemon checked: conf_to_text, complete */
    int slot;                /* which of several workers */
};

int intake_main(const struct role_args *args);
int worker_main(const struct role_args *args);
int courier_main(const struct role_args *args);

#endif
