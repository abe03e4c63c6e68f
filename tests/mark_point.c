/*
 * mark_point.c - passed assertions are recorded in child processes only.
 *
 * Check writes a message per passed assertion, so that the report of a test that crashed in its own process can
 * name the last one. At the end of a test it parses all messages and moves the remaining bytes down after each:
 * a million assertions take half a minute under ASan. Where tests run in the main process (CK_FORK=no), a crash
 * ends the program and no report is written. A failed assertion sends its own place in both cases.
 */
#include <check.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

void __real__mark_point(const char *file, int line);
void __wrap__mark_point(const char *file, int line);

static bool in_child;

static void
enter_child(void)
{
    in_child = true;
}

__attribute__((constructor)) static void
watch_forks(void)
{
    if (pthread_atfork(NULL, NULL, enter_child) != 0)
        abort();
}

void
__wrap__mark_point(const char *file, int line)
{
    if (in_child)
        __real__mark_point(file, line);
}
