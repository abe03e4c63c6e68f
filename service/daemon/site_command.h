/*
 * site_command.h - runs a program as a separate process group with a time limit, so that the loop
 * continues: `noctule report --send`, or a command of `notify`. Loop thread only.
 */
#ifndef NOCTULE_SERVICE_DAEMON_SITE_COMMAND_H
#define NOCTULE_SERVICE_DAEMON_SITE_COMMAND_H

#include <stdint.h>
#include <uv.h>

#define SITE_COMMAND_MESSAGE 512

struct site_command;

struct site_command_options {
    char **arguments;    /* the path of the program, its arguments, and NULL */
    const char *input;   /* standard input; NULL: none */
    const char *limit;   /* static name of the option that gives timeout_ms */
    uint64_t timeout_ms; /* then the process is ended */
    /* Called at the end with the reason of a failure; "": success. The command is freed then. */
    void (*done)(void *context, const char *failure);
    void *context;
};

/* Starts the process. Returns 0, or -errno without calling done(). */
int site_command_start(uv_loop_t *loop, const struct site_command_options *options, struct site_command **command);
/* Ends the process without calling done(), and frees it asynchronously. NULL is allowed. */
void site_command_cancel(struct site_command *command);

#endif
