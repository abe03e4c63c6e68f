/*
 * confine.h - sandboxing of child processes with Landlock, where the kernel has it, so that an exploited child can do
 * little. Open descriptors stay usable. Threads that are created later are confined, too.
 *
 *                   reads                   writes                           TCP
 *     intake        inboxes                 spool, quarantine, and inboxes   listens
 *                                           that do not keep their files
 *     courier       results                 destinations that are folders    connects
 *     page          the database, results   -                                -
 *     worker        series, jobs            results                          -
 *     step          series of the share     its attempts' folders, scratch   -
 *     command       its input files         its output folder, scratch       -
 *     program role  -                       -                                -
 *     program step  inputs of a run         its work folder                  -
 *     program       its input, and the      its output, temporary files      as configured
 *                   configured folders
 *     with a GPU    also /proc and /sys     devices, /proc/self, the         -
 *                                           driver's cache
 *     all           files of libraries      -; no programs, no signals to other processes (a program of the site
 *                                           may start others)
 *
 * confine_places.c has the complete lists. The daemon is restricted only by its systemd unit: a right that it drops,
 * its children cannot have, and a reload may name any folder. The probe is not confined: it reads no untrusted bytes,
 * and the driver may run a program in it that creates the devices.
 */
#ifndef NOCTULE_SERVICE_COMMON_CONFINE_CONFINE_H
#define NOCTULE_SERVICE_COMMON_CONFINE_CONFINE_H

#include "service/common/confine/confine_places.h"

/* Returns the version of the kernel's Landlock interface; 0: not available. */
long confine_landlock(void);

/*
 * Confines this process. Must be called once, before other threads exist.
 *
 * Returns 0, also if the kernel supports only a part (confine_landlock), or -errno, which is
 * logged. The caller must then exit (call_filter.h gives the reason). A path that does not exist or
 * cannot be reached in time stays inaccessible.
 */
int confine_self(enum confine_role role, const struct conf *conf);
/* Confines a step. Waits for each of its paths without a limit, since it cannot work without them. */
int confine_step(enum confine_role role, const struct step_places *step);

/* Confines a command, with the same waits as a step. */
int confine_command(enum confine_role role, const struct command_places *command);

/* Confines a process to places, and takes ownership of them; `rc`: the result of collecting them (places_of_program).
 * Returns it if it is not 0. */
int confine_to(enum confine_role role, struct places *places, int rc);

/* Returns the first path of `needed` that this process may not access, because it is not in the
 * list or is a different folder now. Returns NULL if there is none or the process is not confined.
 * It checks each path, so it hangs if a network share hangs. Thread-safe. */
const char *confine_lacks(const struct places *needed);

#endif
