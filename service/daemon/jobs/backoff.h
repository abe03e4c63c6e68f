/* backoff.h - delay before the next attempt of a job or a delivery. Pure: no clock, no random numbers. */
#ifndef NOCTULE_SERVICE_DAEMON_JOBS_BACKOFF_H
#define NOCTULE_SERVICE_DAEMON_JOBS_BACKOFF_H

#include <stdint.h>

/* Returns the delay after attempt number `attempts` in milliseconds: first_seconds, doubled each time up to
 * max_seconds, plus or minus a tenth depending on `salt` (the row's number). Rows that failed together therefore retry
 * at different times. */
int64_t backoff_ms(double first_seconds, double max_seconds, int32_t attempts, int64_t salt);

#endif
