/*
 * confine.h - a child gives up what it never needs, so that bytes which take it over win little:
 * Landlock, where the kernel has it. What it has open stays open; threads that are started later are
 * confined, too.
 *
 *     intake    no connections out                   courier   no ports
 *     worker    neither; it writes below the outbox alone and runs no program
 *     all       no signals to other processes
 *
 * A worker of a GPU and the probe stay as they are: their driver needs more.
 */
#ifndef NOCTULE_CONFINE_H
#define NOCTULE_CONFINE_H

#include <stdbool.h>

struct confine {
    bool may_listen, may_connect; /* by TCP */
    const char *writes_below; /* a folder; NULL: wherever the account may, and programs are run */
};

/* 0, also where the kernel has nothing of it or less than is asked for (said in the log), or -errno. */
int confine_self(const struct confine *confine);

#endif
