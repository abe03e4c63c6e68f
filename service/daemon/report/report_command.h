/*
 * report_command.h - runs `noctule report --send` as a separate process group, so that the loop
 * continues while the report is made and delivered. Loop thread only.
 */
#ifndef NOCTULE_SERVICE_DAEMON_REPORT_REPORT_COMMAND_H
#define NOCTULE_SERVICE_DAEMON_REPORT_REPORT_COMMAND_H

#include <stdint.h>
#include <uv.h>

#define REPORT_COMMAND_MESSAGE 512

struct report_command;

struct report_command_options {
    char *config_file;
    char *since, *until; /* in the CLI's time format */
    uint64_t timeout_ms; /* then the process is ended */
    /* Called at the end with the reason of a failure; "": success. The command is freed then. */
    void (*done)(void *context, const char *failure);
    void *context;
};

/* Starts the process. Returns 0, or -errno without calling done(). */
int report_command_start(uv_loop_t *loop, const struct report_command_options *options,
                         struct report_command **command);
/* Ends the process without calling done(), and frees it asynchronously. NULL is
 * allowed. */
void report_command_cancel(struct report_command *command);

#endif
