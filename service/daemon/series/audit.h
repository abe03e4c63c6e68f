/*
 * audit.h - checks once at start that the files of all instance rows exist. (The receiver reports
 * files without rows.) A thread accesses the file system, so the loop does not block.
 */
#ifndef NOCTULE_SERVICE_DAEMON_SERIES_AUDIT_H
#define NOCTULE_SERVICE_DAEMON_SERIES_AUDIT_H

#include "service/daemon/core.h"

struct audit;

/* Starts the check. Returns 0 or -errno. The caller must stop *audit. */
int audit_start(struct core *core, struct audit **audit);
/* Ends the check early and frees it asynchronously. NULL is allowed. */
void audit_stop(struct audit *audit);

#endif
