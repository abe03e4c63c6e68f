/*
 * report_schedule.h - adds a row at the end of each report period (config: report.at) and passes the report to the
 * site's command.
 *
 * Period ends that were missed, because no daemon ran or the database rejected writes, become one period since the last
 * end. The command runs once per period. A failure is recorded as an event, in the row and in the status, and not
 * retried. A run that the daemon's end cut off is repeated at the next start. Loop thread only.
 */
#ifndef NOCTULE_SERVICE_DAEMON_REPORT_REPORT_SCHEDULE_H
#define NOCTULE_SERVICE_DAEMON_REPORT_REPORT_SCHEDULE_H

#include "service/daemon/core.h"

struct report_schedule;

int report_schedule_open(struct core *core, struct report_schedule **schedule);
/* Ends a running command; the loop must run afterwards to free it. NULL is allowed. */
void report_schedule_close(struct report_schedule *schedule);

/* Adds due rows and starts due reports. Must be called each second. `config_file` is passed to noctule report. */
void report_schedule_tick(struct report_schedule *schedule, char *config_file);

/* Returns the last of these times of day ("07:00") after after_ms and not after now_ms; 0: no such time. */
struct time_window;
int64_t report_schedule_last_end(const struct time_window *moments, int64_t after_ms, int64_t now_ms);

#endif
