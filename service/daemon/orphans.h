/*
 * orphans.h - adopts files in quarantine/ without a row, once at start. They exist if a process was
 * stopped after it moved a file and before it reported that. Each gets the row it would have had,
 * from the reason file.
 */
#ifndef NOCTULE_SERVICE_DAEMON_ORPHANS_H
#define NOCTULE_SERVICE_DAEMON_ORPHANS_H

struct core;

/* Returns 0 or the -errno of the database. Blocks. A later report of the same file by the receiver
 * changes no row. */
int orphans_adopt(struct core *core);

#endif
