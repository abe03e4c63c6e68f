/*
 * orphans.h - once at start: files in quarantine/ that no row tells of, since whoever put them there was
 * stopped before the daemon had heard of it. They get the row that they would have had, from the
 * reason beside them.
 */
#ifndef NOCTULE_SERVICE_DAEMON_ORPHANS_H
#define NOCTULE_SERVICE_DAEMON_ORPHANS_H

struct core;

/* 0 or the -errno of the database; blocks. Told again by the intake, nothing changes. */
int orphans_adopt(struct core *core);

#endif
