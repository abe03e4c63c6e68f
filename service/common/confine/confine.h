/*
 * confine.h - a child gives up what it never needs, so that bytes which take it over win little: Landlock, where the
 * kernel has it. What it has open stays open; threads that are started later are confined, too.
 *
 *                 reads                        writes                           TCP
 *     intake      inboxes                      spool, quarantine, and inboxes   listens
 *                                              that do not keep their files
 *     courier     results                      destinations that are folders    connects
 *     page        the database, results        -                                -
 *     worker      series, jobs                 results                          -
 *     step        series of the share      its attempts' folders, a scratch -
 *     command     its input files                  its output folder                -
 *     of a GPU    /proc and /sys, too          devices, /proc/self, what the    -
 *                                              driver keeps
 *     all         what libraries need          none runs a program, and none signals another process
 *
 * confine_places.c has all of them. The daemon is confined by its unit alone: what it gave up its children could not have,
 * and a reload may name any folder. The probe stays as it is: it reads no foreign bytes, and the driver may run a
 * program in it that makes the devices.
 */
#ifndef NOCTULE_SERVICE_COMMON_CONFINE_CONFINE_H
#define NOCTULE_SERVICE_COMMON_CONFINE_CONFINE_H

#include "service/common/confine/confine_places.h"

/* What the kernel has of Landlock: its version of the interface, 0: nothing. */
long confine_landlock(void);

/*
 * Once, before there are other threads. 0, also where the kernel has less than is asked for (confine_landlock), or -errno,
 * which is in the log: the caller then ends (call_filter.h says why). A place that is not there, or cannot be reached in time,
 * is not let in.
 */
int confine_self(enum confine_role role, const struct conf *conf);
/* The same of a step, which waits for each of its places: it has nothing else to do. */
int confine_step(enum confine_role role, const struct step_places *step);

/* The same of a command, as a step. */
int confine_command(enum confine_role role, const struct command_places *command);

/*
 * The first of `needed` that this process was not let in to, as it was not named or another folder is there now; NULL:
 * none, or nothing was given up. It looks at each: on a share that hangs, it hangs. Any thread.
 */
const char *confine_lacks(const struct places *needed);

#endif
