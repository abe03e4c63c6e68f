/*
 * test_hook.h - hooks for tests: points at which a test kills the process, and variables that only tests set.
 *
 * test_hook.c is compiled in two forms. Test builds link the form whose hooks work. Programs that are installed
 * link the other form, in which every hook does nothing. Any thread may call these functions.
 */
#ifndef NOCTULE_TEST_HOOK_H
#define NOCTULE_TEST_HOOK_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Returns whether this program has working hooks. */
bool test_hook_enabled(void);

/* Returns the environment variable `name`; NULL if it is unset, or if hooks are disabled. */
const char *test_hook_variable(const char *name);

/*
 * Kills the process with SIGKILL if NOCTULE_CRASH_AT is `name`.
 *
 * NOCTULE_CRASH_ONCE: path of a file that the first crash creates. No process crashes while this file exists.
 * NOCTULE_CRASH_STOPS: if set, the process stops (SIGSTOP) until SIGCONT instead.
 */
void crash_point(const char *name);

#ifdef __cplusplus
}
#endif
#endif
