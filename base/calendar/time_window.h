/*
 * time_window.h - when something may be done: "22:00-06:00", "Mon-Fri 20:00-06:00; Sat,Sun 00:00-24:00
 * Europe/Berlin". Pure but for the zone, which is read with the text.
 *
 *     window = period { ";" period } [ zone ]
 *     period = [ days ] time "-" time          days = day [ "-" day ] { "," day [ "-" day ] }
 *
 * Days are Mon to Sun and say when a period opens, which one to an earlier time does until the next
 * day; without any it is every day. Times are 00:00 to 24:00 as clocks of the zone show them, the
 * host's when none is given. A time that they show twice, because they are set back, counts when it
 * is shown first; one that they are set forward over, when they are. So a period lasts an hour more or
 * less in such a night, and one within what is left out does not open.
 *
 * Immutable, safe from any thread. Times are Unix milliseconds.
 */
#ifndef NOCTULE_TIME_WINDOW_H
#define NOCTULE_TIME_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

#define TIME_WINDOW_WHY   200
#define TIME_WINDOW_NEVER INT64_MAX

struct time_window;

/* 0, -EINVAL and what is wrong and how it is written, or -errno. Freed by time_window_free. */
int time_window_parse(const char *text, struct time_window **window, char why[TIME_WINDOW_WHY]);
/* Moments: "07:00", "Mon-Fri 07:00; Sat 09:00 Europe/Berlin". It is never open; see _starts. */
int time_window_parse_moments(const char *text, struct time_window **moments,
                              char why[TIME_WINDOW_WHY]);
void time_window_free(struct time_window *window); /* NULL is allowed */

/* NULL is always open. */
bool time_window_is_open(const struct time_window *window, int64_t at_ms);
/* When it is open next: `from_ms` itself, or later; TIME_WINDOW_NEVER. */
int64_t time_window_opens(const struct time_window *window, int64_t from_ms);
/* When what is open at `at_ms` closes, over periods that touch; `at_ms` itself when it is closed,
 * TIME_WINDOW_NEVER when it does not close. */
int64_t time_window_closes(const struct time_window *window, int64_t at_ms);
/* The first time after `after_ms` at which a period opens, or that is a moment. */
int64_t time_window_starts(const struct time_window *window, int64_t after_ms);

#endif
