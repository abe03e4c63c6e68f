/* seconds.h - reads a clock. */
#ifndef NOCTULE_SECONDS_H
#define NOCTULE_SECONDS_H

#include <time.h>

static inline double
seconds_of(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

#endif
