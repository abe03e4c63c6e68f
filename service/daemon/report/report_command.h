/*
 * report_command.h - `noctule report --send` as a process of its own, with all that it starts: the report is made
 * and handed over while the loop goes on. One thread: the loop's.
 */
#ifndef NOCTULE_SERVICE_DAEMON_REPORT_REPORT_COMMAND_H
#define NOCTULE_SERVICE_DAEMON_REPORT_REPORT_COMMAND_H

#include <stdint.h>
#include <uv.h>

#define SENDING_MESSAGE 512

struct sending;

struct sending_order {
    char *config_file;
    char *since, *until; /* as noctule takes times */
    uint64_t timeout_ms; /* then it is ended */
    /* `failure`: what went wrong, "": nothing. The sending is gone then. */
    void (*done)(void *context, const char *failure);
    void *context;
};

/* The sending, or -errno; done is called unless this fails. */
int sending_start(uv_loop_t *loop, const struct sending_order *order, struct sending **sending);
/* Ends it without calling done. Frees itself, once the loop has heard of that; NULL is allowed. */
void sending_cancel(struct sending *sending);

#endif
