/* test_hook.c - see test_hook.h. Set NOCTULE_TEST_HOOKS to compile the enabled form. */
#include "base/test_hook.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#ifdef NOCTULE_TEST_HOOKS
#define TEST_HOOKS true
#else
#define TEST_HOOKS false
#endif

bool
test_hook_enabled(void)
{
    return TEST_HOOKS;
}

const char *
test_hook_variable(const char *name)
{
    return TEST_HOOKS ? getenv(name) : NULL;
}

void
crash_point(const char *name)
{
    if (!TEST_HOOKS)
        return;
    const char *wanted = getenv("NOCTULE_CRASH_AT");
    if (!wanted || strcmp(wanted, name) != 0)
        return;
    const char *once = getenv("NOCTULE_CRASH_ONCE");
    if (once && open(once, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600) < 0)
        return;
    raise(getenv("NOCTULE_CRASH_STOPS") ? SIGSTOP : SIGKILL);
}
