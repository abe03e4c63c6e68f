/*
 * retention.h - removes files and rows by age, or to free space (config: retention; db/retention_rows.h defines the
 * candidates).
 *
 * A sweep handles a few rows at a time, so that the loop never blocks: it marks rows and commits, renames their files,
 * lets a thread delete these, and deletes the rows of `removal`. After a kill at any point the next start continues.
 * Loop thread only.
 */
#ifndef NOCTULE_SERVICE_DAEMON_RETENTION_RETENTION_H
#define NOCTULE_SERVICE_DAEMON_RETENTION_RETENTION_H

#include "service/daemon/core.h"

struct retention;

int retention_open(struct core *core, struct retention **retention);
/* Ends a running sweep early and frees asynchronously. NULL is allowed. */
void retention_close(struct retention *retention);

/* Renames all marked files. Must be called at start before any child, and before an operator gets the reply. */
int retention_set_aside_all(struct core *core);
/* Starts a sweep now: at start, and after the configuration changed or rows were marked. Later ones follow as often as
 * the ages require, and when the disk fills. */
void retention_sweep_now(struct retention *retention);
/* Updates the free space. Must be called each second. */
void retention_disk(struct retention *retention, double free_mib);

/* Returns the pause between two sweeps in milliseconds. Files stay at most for their age plus a tenth, or plus one
 * hour. Pure. */
int64_t retention_rest_ms(const struct conf_retention *conf);

#endif
