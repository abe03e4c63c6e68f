/*
 * time_zone.h - what the clocks of a place show, over the changes of daylight saving time both ways.
 *
 * A zone is read from the system's database of them (TZif, RFC 9636) once and never changes; it is
 * safe from any thread, and what TZ says does not matter to it. NULL is the zone of the host, as the
 * C library has it. Times are Unix seconds. Civil times are seconds since 1970-01-01 00:00 as a
 * clock of the zone shows it.
 */
#ifndef NOCTULE_TIME_ZONE_H
#define NOCTULE_TIME_ZONE_H

#include <stdint.h>

#define TIME_ZONES "/usr/share/zoneinfo"

struct time_zone;

/*
 * "Europe/Berlin". 0, -ENOENT: there is none of this name, -EINVAL: that is no name of one, or what
 * is there is damaged, or -errno. Freed by time_zone_free.
 */
int time_zone_load(const char *name, struct time_zone **zone);
void time_zone_free(struct time_zone *zone); /* NULL is allowed */

/* By how many seconds its clocks are ahead of UTC. */
int64_t time_zone_offset(const struct time_zone *zone, int64_t seconds);

/* When its clocks first show this civil time, or, where they are set forward over it, when they are. */
int64_t time_zone_reaches(const struct time_zone *zone, int64_t civil);

/* The number of a day since 1970-01-01. */
int64_t time_zone_day(int64_t year, int month, int day);

#endif
