/*
 * counted.h - how much memory is allocated at once, of a program that is linked with --wrap=malloc,
 * --wrap=calloc and --wrap=free.
 */
#ifndef NOCTULE_COUNTED_H
#define NOCTULE_COUNTED_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { PIECES = 1 << 14 };

/* What was allocated while it was counted and is not freed. */
static struct {
    bool on;
    int64_t bytes, most;

    struct {
        void *at;
        size_t size;
    } pieces[PIECES];
} counted;

static pthread_mutex_t counting = PTHREAD_MUTEX_INITIALIZER;

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void __real_free(void *memory);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void __wrap_free(void *memory);

static void *
count(void *memory, size_t size)
{
    size_t i = 0;
    if (!counted.on || !memory)
        return memory;
    pthread_mutex_lock(&counting);
    while (i < PIECES && counted.pieces[i].at)
        i++;
    if (i == PIECES)
        abort();
    counted.pieces[i].at = memory;
    counted.pieces[i].size = size;
    counted.bytes += (int64_t)size;
    counted.most = counted.bytes > counted.most ? counted.bytes : counted.most;
    pthread_mutex_unlock(&counting);
    return memory;
}

void *
__wrap_malloc(size_t size)
{
    return count(__real_malloc(size), size);
}

void *
__wrap_calloc(size_t many, size_t size)
{
    return count(__real_calloc(many, size), many * size);
}

void
__wrap_free(void *memory)
{
    pthread_mutex_lock(&counting);
    for (size_t i = 0; counted.on && memory && i < PIECES; i++)
        if (counted.pieces[i].at == memory) {
            counted.bytes -= (int64_t)counted.pieces[i].size;
            counted.pieces[i].at = NULL;
            break;
        }
    pthread_mutex_unlock(&counting);
    __real_free(memory);
}

/* From now on, until counted.on is false again. */
static void
count_allocations(void)
{
    memset(&counted, 0, sizeof counted);
    counted.on = true;
}

#endif
