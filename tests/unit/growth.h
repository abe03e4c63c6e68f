/*
 * growth.h - that what something costs grows with its size, and no faster.
 *
 * Cost is time of the processor, the least of several tries, so that a machine with other things to
 * do changes little: twice as much as four times the size may cost is not linear (a cost that grows
 * with the square is twice beyond that). What is too little to be measured is nothing. Memory that the
 * kernel has handed out is kept, and the most is asked for first: else small sizes would be measured
 * in pages that are there and large ones in pages that are made, on some machines at five times the
 * cost. The allocators of sanitizers copy at each realloc, which is growth of their own: with them
 * the largest size runs once, and only the most counts.
 */
#ifndef NOCTULE_GROWTH_H
#define NOCTULE_GROWTH_H

#include <check.h>
#include <limits.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* Seconds of the processor that something of size n takes, without what it takes to make it. */
typedef double growth_cost(const void *kind, size_t n);

enum {
    GROWTH_TRIES = 3,
    GROWTH_ROUNDS = 10, /* of tries, before it counts: what else the machine does may last */
};

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define GROWTH_JUDGED false
#else
#define GROWTH_JUDGED true
#endif
#define GROWTH_FLOOR 0.01 /* seconds: not told from nothing */
#define GROWTH_MOST  10.0 /* what no single thing may cost */

static inline double
growth_clock(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* What is once had is kept, and size n has had what it takes. Is growth to be judged, then? */
static inline bool
growth_warm(const char *name, growth_cost *cost, const void *kind, size_t n)
{
    mallopt(M_MMAP_MAX, 0);
    mallopt(M_TRIM_THRESHOLD, INT_MAX);
    const double seconds = cost(kind, n);
    ck_assert_msg(GROWTH_JUDGED || seconds < GROWTH_MOST, "%s: %.1f s at size %zu", name, seconds, n);
    return GROWTH_JUDGED;
}

static inline double
growth_least(growth_cost *cost, const void *kind, size_t n)
{
    double least = GROWTH_MOST * 100;
    for (int i = 0; i < GROWTH_TRIES && least > GROWTH_FLOOR; i++) {
        const double seconds = cost(kind, n);
        least = seconds < least ? seconds : least;
        ck_assert_msg(least < GROWTH_MOST, "%.1f s at size %zu", least, n);
    }
    return least;
}

static inline bool
growth_is_linear(growth_cost *cost, const void *kind, size_t n, double seconds[3])
{
    for (int i = 0; i < 3; i++)
        seconds[i] = growth_least(cost, kind, n << i);
    const double least = seconds[0] > GROWTH_FLOOR ? seconds[0] : GROWTH_FLOOR;
    return seconds[1] <= 4 * least && seconds[2] <= 8 * least;
}

/* At sizes n, 2 n and 4 n. */
static inline void
expect_linear(const char *name, growth_cost *cost, const void *kind, size_t n)
{
    double seconds[3];
    bool linear = false;
    if (!growth_warm(name, cost, kind, 4 * n))
        return;
    for (int i = 0; i < GROWTH_ROUNDS && !linear; i++)
        linear = growth_is_linear(cost, kind, n, seconds);
    printf("%-28s %9zu %9.4f %9.4f %9.4f s\n", name, n, seconds[0], seconds[1], seconds[2]);
    ck_assert_msg(linear, "%s: %.3f, %.3f and %.3f s at sizes %zu, %zu and %zu", name, seconds[0], seconds[1],
                  seconds[2], n, 2 * n, 4 * n);
}

/* At sizes n and 16 n: the size does not matter, where an index finds what is asked for. */
static inline void
expect_flat(const char *name, growth_cost *cost, const void *kind, size_t n)
{
    double few = 0, many = 0;
    bool flat = false;
    if (!growth_warm(name, cost, kind, 16 * n))
        return;
    for (int i = 0; i < GROWTH_ROUNDS && !flat; i++) {
        few = growth_least(cost, kind, n);
        many = growth_least(cost, kind, 16 * n);
        flat = many <= 3 * (few > GROWTH_FLOOR ? few : GROWTH_FLOOR);
    }
    printf("%-28s %9zu %9.4f %9.4f s\n", name, n, few, many);
    ck_assert_msg(flat, "%s: %.3f and %.3f s at sizes %zu and %zu", name, few, many, n, 16 * n);
}

#endif
