/* daemon_line.h - the command line of noctuled: by itself, by its children, and by who looks at one that runs. */
#ifndef NOCTULE_SERVICE_COMMON_DAEMON_LINE_H
#define NOCTULE_SERVICE_COMMON_DAEMON_LINE_H

#define DAEMON_PROGRAM         "noctuled"
#define DAEMON_USER            "noctule" /* of the service, where it is installed */
#define DAEMON_CONFIG          "/etc/noctule/noctule.conf"
#define DAEMON_CONFIG_VARIABLE "NOCTULE_CONFIG"

#include <stdbool.h>

struct daemon_line {
    const char *config_file; /* NULL: not given */
    const char *root;        /* instead of the configured one; NULL */
    const char *role;        /* of a child; NULL: the daemon itself */
    const char *device;
    int slot, share;
    int node; /* -1: none */
    bool new_database;
};

enum daemon_wish { DAEMON_RUN, DAEMON_HELP, DAEMON_TELL_VERSION, DAEMON_WRONG };

/* Reorders argv, whose strings the line borrows. What is wrong is told on standard error, but where getopt's `opterr`
 * is 0. From the main thread only. */
enum daemon_wish daemon_line_parse(int argc, char **argv, struct daemon_line *line);

/* What --config says, else the variable of the environment where it says something; NULL: neither does. */
const char *daemon_line_named(const char *option, const char *variable);

#endif
