/* watch.h - --watch: draws the output of a command repeatedly on a terminal, until q or Ctrl-C. */
#ifndef NOCTULE_SERVICE_CLI_WATCH_H
#define NOCTULE_SERVICE_CLI_WATCH_H

#include "service/cli/line/line.h"

/* Options of a command with --watch. */
struct watch {
    bool on;
    int64_t seconds; /* between frames; 0: WATCH_SECONDS */
};

#define WATCH_SECONDS     2
#define MAX_WATCH_SECONDS 86400

#define WATCH_OPTIONS(type)                                                                                            \
    {"watch", 'w', &cli_flag, CLI_AT(type, watch.on), .help = "redraw until q or Ctrl-C; needs a terminal"},           \
    {                                                                                                                  \
        "interval", 0, &cli_count, CLI_AT(type, watch.seconds),                                                        \
            .help = "seconds between redraws with --watch; default 2", .noun = "SECONDS"                               \
    }

/* Checks the options before data is read. `streams` is true if the output is not text for a
 * terminal. Returns EXIT_OK, or EXIT_USAGE after an error message. */
int watch_check(const struct cli_call *call, const struct watch *watch, bool streams);

/* Draws the output of `draw` until the user ends it, and restores the terminal. Returns the last
 * status of `draw`. */
int watch_run(struct cli_call *call, const struct watch *watch, int (*draw)(struct cli_call *call));

#endif
