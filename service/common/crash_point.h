/*
 * crash_point.h - named places where a test may kill the process (NOCTULE_CRASH_AT=name).
 *
 * Compiled in by the presets that test (NOCTULE_CRASH_POINTS); nothing in a release.
 */
#ifndef NOCTULE_CRASH_POINT_H
#define NOCTULE_CRASH_POINT_H

#ifdef NOCTULE_CRASH_POINTS
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

/* NOCTULE_CRASH_ONCE names a file that is made at the first crash; while it exists nothing crashes
 * again. With NOCTULE_CRASH_STOPS the process stops there instead, until SIGCONT. */
static inline void
crash_point(const char *name)
{
    const char *wanted = getenv("NOCTULE_CRASH_AT");
    if (!wanted || strcmp(wanted, name) != 0)
        return;
    const char *once = getenv("NOCTULE_CRASH_ONCE");
    if (once) {
        if (open(once, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600) < 0)
            return;
    }
    raise(getenv("NOCTULE_CRASH_STOPS") ? SIGSTOP : SIGKILL);
}
#else
#define crash_point(name) ((void)0)
#endif

#endif
