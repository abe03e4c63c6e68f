/* backoff.c - see attempt.h. */
#include "service/daemon/attempt.h"

#include <math.h>

int64_t
backoff_ms(double first_seconds, double max_seconds, int32_t attempts, int64_t salt)
{
    double seconds = fmin(ldexp(first_seconds, attempts > 1 ? attempts - 1 : 0), max_seconds);
    uint64_t mixed = (uint64_t)(salt + attempts) * 0x9e3779b97f4a7c15u;
    double spread = 0.9 + 0.2 * (double)(mixed >> 40) / (double)(1 << 24);
    return (int64_t)(1000 * seconds * spread);
}
