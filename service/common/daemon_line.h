/* daemon_line.h - command line of noctuled. The daemon and its children parse it, and so do
 * commands that read the command line of a running daemon. */
#ifndef NOCTULE_SERVICE_COMMON_DAEMON_LINE_H
#define NOCTULE_SERVICE_COMMON_DAEMON_LINE_H

#define DAEMON_PROGRAM         "noctuled"
#define DAEMON_USER            "noctule" /* user of the installed service */
#define DAEMON_CONFIG          "/etc/noctule/noctule.conf"
#define DAEMON_CONFIG_VARIABLE "NOCTULE_CONFIG"

#include <stdbool.h>

struct daemon_line {
    const char *config_file; /* NULL: not given */
    const char *root;        /* overrides the configured root; NULL: not given */
    const char *role;        /* of a child; NULL: the process is the daemon */
    const char *device;
    int slot, share;
    bool new_database, new_key;
};

enum daemon_action { DAEMON_RUN, DAEMON_HELP, DAEMON_SHOW_VERSION, DAEMON_WRONG };

/* Parses the command line and reorders argv; the line borrows its strings. Prints errors on
 * standard error, unless getopt's `opterr` is 0. Must run in the main thread. */
enum daemon_action daemon_line_parse(int argc, char **argv, struct daemon_line *line);

/* Returns the value of --config. If that is not given, returns the environment variable if it is
 * not empty, otherwise NULL. */
const char *daemon_line_config(const char *option, const char *variable);

#endif
