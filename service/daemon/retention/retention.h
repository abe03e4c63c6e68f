/*
 * retention.h - what is removed in time, or for want of space (config: retention; db/retention_rows.h says what may go).
 *
 * One sweeper, a few rows at a time, so that the loop is never held up: it marks rows and commits, sets their files
 * aside, lets a thread delete these, and deletes the rows of `removal`. At each point a kill leaves rows from which
 * the next start goes on. One thread: the loop's.
 */
#ifndef NOCTULE_SERVICE_DAEMON_RETENTION_RETENTION_H
#define NOCTULE_SERVICE_DAEMON_RETENTION_RETENTION_H

#include "service/daemon/core.h"

struct retention;

int retention_open(struct core *core, struct retention **retention);
/* Ends early what is under way. Frees itself, once the loop has heard of that; NULL is allowed. */
void retention_close(struct retention *retention);

/* What was marked and is where it was: at start before any child, and when an operator waits for it. */
int retention_set_aside_all(struct core *core);
/* Begins to sweep; then by itself, as often as the ages ask for, and when told that the disk fills. */
void retention_start(struct retention *retention);
/* The configuration has changed, or rows were marked: looks at once. */
void retention_look(struct retention *retention);
/* Every second. */
void retention_disk(struct retention *retention, double free_mib);

/* Between two sweeps: nothing stays longer than its age and a tenth, or an hour more. Pure. */
int64_t retention_rest_ms(const struct conf_retention *conf);

#endif
