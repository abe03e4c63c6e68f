/*
 * backoff.h - how long to wait before the next attempt at a job or a delivery. Pure: no clock, no
 * source of chance.
 */
#ifndef NOCTULE_SERVICE_DAEMON_JOBS_BACKOFF_H
#define NOCTULE_SERVICE_DAEMON_JOBS_BACKOFF_H

#include <stdint.h>

/*
 * Milliseconds after the attempts-th attempt: first_seconds, doubled each time up to most_seconds,
 * give or take a tenth by `salt` (the row's number), so that what failed together does not come
 * back together.
 */
int64_t backoff_ms(double first_seconds, double most_seconds, int32_t attempts, int64_t salt);

#endif
