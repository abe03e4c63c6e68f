/*
 * watch.h - --watch: what a command tells, drawn again and again in its place on a terminal, until q or
 * Ctrl-C.
 */
#ifndef NOCTULE_SERVICE_CLI_WATCH_H
#define NOCTULE_SERVICE_CLI_WATCH_H

#include "service/cli/line/line.h"

/* Of a command's struct. */
struct watch {
    bool on;
    int64_t seconds; /* from one drawing to the next; 0: WATCH_SECONDS */
};

#define WATCH_SECONDS     2
#define MAX_WATCH_SECONDS 86400

#define WATCH_OPTIONS(type)                                                                        \
    {"watch", 'w', &cli_flag, CLI_AT(type, watch.on),                                              \
     .help = "draw it again and again, until q or Ctrl-C; on a terminal only"},                    \
    {                                                                                              \
        "interval", 0, &cli_count, CLI_AT(type, watch.seconds),                                    \
            .help = "with --watch, every so many seconds; 2 when not given", .noun = "SECONDS"     \
    }

/* Of a command whose text is to be watched, before anything is read; EXIT_OK, or EXIT_USAGE after a
 * complaint. `streams`: it prints what is no text for people. */
int watch_check(const struct cli_call *call, const struct watch *watch, bool streams);

/* Draws what `draw` writes to standard output and error; its last status. The terminal is as it was then. */
int watch_run(struct cli_call *call, const struct watch *watch, int (*draw)(struct cli_call *call));

#endif
