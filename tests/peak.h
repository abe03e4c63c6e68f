/* peak.h - the memory of a test program. */
#ifndef NOCTULE_PEAK_H
#define NOCTULE_PEAK_H

#include <sys/resource.h>

/* Returns the maximum resident size of this process so far. */
static inline long
peak_kib(void)
{
    struct rusage usage = {.ru_maxrss = 0};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
}

#endif
