/* clock.h - monotonic time for measurements, and the time of day. */
#ifndef NOCTULE_SERVICE_COMMON_CLOCK_H
#define NOCTULE_SERVICE_COMMON_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline double
clock_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Returns milliseconds of a monotonic clock that also counts while the machine sleeps. */
static inline int64_t
clock_steady_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Unix time in milliseconds. */
static inline int64_t
clock_unix_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

#endif
