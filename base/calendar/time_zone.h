/*
 * time_zone.h - civil time of a zone, daylight saving time included.
 *
 * A zone is read once from the system's database (TZif, RFC 9636). It is immutable, safe from any thread, and does not
 * depend on TZ. NULL is the zone of the host, from the C library. Times are Unix seconds. Civil times are seconds since
 * 1970-01-01 00:00 on a clock of the zone.
 */
#ifndef NOCTULE_BASE_CALENDAR_TIME_ZONE_H
#define NOCTULE_BASE_CALENDAR_TIME_ZONE_H

#include <stdint.h>

#define TIME_ZONES "/usr/share/zoneinfo"

struct time_zone;

/*
 * Reads a zone such as "Europe/Berlin". Returns 0, -ENOENT for an unknown zone, -EINVAL for an invalid name or a
 * damaged file, or -errno. The caller must free the zone with time_zone_free().
 */
int time_zone_load(const char *name, struct time_zone **zone);
void time_zone_free(struct time_zone *zone); /* NULL is allowed */

/* Returns the seconds that the zone is ahead of UTC. */
int64_t time_zone_offset(const struct time_zone *zone, int64_t seconds);

/* Returns the first time with this civil time, or the time of the change if clocks skip it. */
int64_t time_zone_reaches(const struct time_zone *zone, int64_t civil);

/* The number of a day since 1970-01-01. */
int64_t time_zone_day(int64_t year, int month, int day);

#endif
