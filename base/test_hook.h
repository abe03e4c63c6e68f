/*
 * test_hook.h - hooks for tests: crash points, and environment variables for tests only.
 *
 * test_hook.c is compiled in two forms. Test builds link the enabled form. Installed programs must link the disabled
 * form: its crash points have no effect, and its variables are unset. Any thread may call these functions.
 */
#ifndef NOCTULE_BASE_TEST_HOOK_H
#define NOCTULE_BASE_TEST_HOOK_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Returns true in the enabled form. */
bool test_hook_enabled(void);

/* Returns the environment variable `name`, or NULL if it is unset or hooks are disabled. The caller must not free
 * it. */
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
