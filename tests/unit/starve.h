/*
 * starve.h - the n-th allocation of what a test does fails, for n = 1, 2, ... until none is hit: once,
 * and from then on.
 *
 * Allocations of C code that is linked into the test pass through here (--wrap); those of libraries
 * do not.
 */
#ifndef NOCTULE_STARVE_H
#define NOCTULE_STARVE_H

#include "base/error.h"

#include <check.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>

static struct {
    int countdown; /* to the one that fails; 0: none */
    bool for_good; /* and so do all after it */
    bool hit;
} memory;

static bool
fails(void)
{
    if (memory.countdown == 0 || --memory.countdown > 0)
        return false;
    memory.countdown = memory.for_good ? 1 : 0;
    memory.hit = true;
    return true;
}

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
void *__real_reallocarray(void *old, size_t count, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);
void *__wrap_reallocarray(void *old, size_t count, size_t size);

void *
__wrap_malloc(size_t size)
{
    return fails() ? NULL : __real_malloc(size);
}

void *
__wrap_calloc(size_t count, size_t size)
{
    return fails() ? NULL : __real_calloc(count, size);
}

void *
__wrap_realloc(void *old, size_t size)
{
    return fails() ? NULL : __real_realloc(old, size);
}

void *
__wrap_reallocarray(void *old, size_t count, size_t size)
{
    return fails() ? NULL : __real_reallocarray(old, count, size);
}

/*
 * Does something until no allocation of it fails; returns how many there are. Check allocates too:
 * actions assert nothing.
 */
static int
starve(int (*action)(struct error *error), bool for_good)
{
    for (int n = 1;; n++) {
        struct error error = {0};
        memory.countdown = n;
        memory.for_good = for_good;
        memory.hit = false;
        int rc = action(&error);
        memory.countdown = 0;
        if (!memory.hit) {
            ck_assert_msg(rc == 0, "%s: %s", code_name(error.code), error.message);
            return n - 1;
        }
        ck_assert_msg(rc == -ENOMEM && error.code == CODE_OUT_OF_MEMORY, "allocation %d: %d %s: %s", n, rc,
                      code_name(error.code), error.message);
    }
}

static void
expect_told(int (*action)(struct error *error))
{
    const int allocations = starve(action, false);
    ck_assert_int_gt(allocations, 0);
    ck_assert_int_eq(starve(action, true), allocations);
}

#endif
