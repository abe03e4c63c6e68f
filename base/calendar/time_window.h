/*
 * time_window.h - weekly time windows: "22:00-06:00", "Mon-Fri 20:00-06:00; Sat,Sun 00:00-24:00 Europe/Berlin". Parsing
 * reads the zone's file; the other functions are pure.
 *
 *     window = period { ";" period } [ zone ]
 *     period = [ days ] time "-" time          days = day [ "-" day ] { "," day [ "-" day ] }
 *
 * Days (Mon to Sun) are those on which a period opens; without days it opens every day. A period with an end before its
 * start ends on the next day. Times are 00:00 to 24:00 in the zone, or in the host's zone. A time that occurs twice,
 * because clocks are set back, counts at its first occurrence. A time that clocks skip counts at the change. A period
 * is therefore an hour longer or shorter on such a day, and a period within the skipped hour does not open.
 *
 * A window is immutable and safe from any thread. Times are Unix milliseconds.
 */
#ifndef NOCTULE_BASE_CALENDAR_TIME_WINDOW_H
#define NOCTULE_BASE_CALENDAR_TIME_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

#define TIME_WINDOW_WHY   200
#define TIME_WINDOW_NEVER INT64_MAX

struct time_window;

/* Returns 0, -EINVAL with the fault and the correct syntax, or -errno. Free with time_window_free(). */
int time_window_parse(const char *text, struct time_window **window, char why[TIME_WINDOW_WHY]);
/* Parses times: "07:00", "Mon-Fri 07:00; Sat 09:00 Europe/Berlin". Such a window never opens; see _starts. */
int time_window_parse_moments(const char *text, struct time_window **moments, char why[TIME_WINDOW_WHY]);
void time_window_free(struct time_window *window); /* NULL is allowed */

/* A NULL window is always open. */
bool time_window_is_open(const struct time_window *window, int64_t at_ms);
/* Returns the next open time, at or after `from_ms`, or TIME_WINDOW_NEVER. */
int64_t time_window_opens(const struct time_window *window, int64_t from_ms);
/* Returns the end of the open span at `at_ms`, adjacent periods joined. Returns `at_ms` if the window is closed, or
 * TIME_WINDOW_NEVER if it does not close. */
int64_t time_window_closes(const struct time_window *window, int64_t at_ms);
/* Returns the first start of a period, or the first listed time, after `after_ms`. */
int64_t time_window_starts(const struct time_window *window, int64_t after_ms);

#endif
