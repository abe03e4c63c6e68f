/*
 * starved_malloc.h - the n-th allocation of the process fails, in libraries too: malloc and its kin are put in the
 * place of the C library's. Not under sanitizers, which do so themselves: there none fails.
 */
#ifndef NOCTULE_STARVED_MALLOC_H
#define NOCTULE_STARVED_MALLOC_H

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

static int countdown; /* to the one that fails; 0: none */
static bool hit;

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

static bool
fails_now(void)
{
    if (countdown == 0 || --countdown > 0)
        return false;
    errno = ENOMEM;
    return hit = true;
}

__attribute__((visibility("default"))) void *
malloc(size_t size)
{
    return fails_now() ? NULL : __libc_malloc(size);
}

__attribute__((visibility("default"))) void *
calloc(size_t count, size_t size)
{
    return fails_now() ? NULL : __libc_calloc(count, size);
}

__attribute__((visibility("default"))) void *
realloc(void *old, size_t size)
{
    return fails_now() ? NULL : __libc_realloc(old, size);
}

__attribute__((visibility("default"))) int
posix_memalign(void **memory, size_t alignment, size_t size)
{
    void *const taken = fails_now() ? NULL : __libc_memalign(alignment, size);
    if (!taken)
        return ENOMEM;
    *memory = taken;
    return 0;
}
#endif

#endif
