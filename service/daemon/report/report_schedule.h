/*
 * report_schedule.h - when a night ends (config: report.at) it gets its row, and its report is
 * handed to the site's command.
 *
 * What ended while no daemon ran, or while the database could not be written, is made up for: as one night,
 * from where the last one ended. The command runs once for each, in its own time; a failure is told by an event,
 * the row and status, and not tried again. One that was cut off by the daemon's end is begun anew at the next
 * start. One thread: the loop's.
 */
#ifndef NOCTULE_SERVICE_DAEMON_REPORT_REPORT_SCHEDULE_H
#define NOCTULE_SERVICE_DAEMON_REPORT_REPORT_SCHEDULE_H

#include "service/daemon/core.h"

struct nights;

int nights_open(struct core *core, struct nights **nights);
/* Ends a command that runs, of which the loop has to hear. NULL is allowed. */
void nights_close(struct nights *nights);

/* Every second, of all that is due. `config_file`: what the report goes by. */
void nights_tick(struct nights *nights, char *config_file);

/* The last of these moments ("07:00") behind `after_ms` and not behind `now_ms`; 0: there was none. */
struct time_window;
int64_t nights_last_end(const struct time_window *moments, int64_t after_ms, int64_t now_ms);

#endif
