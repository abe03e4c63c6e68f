/*
 * audit.h - once at start: are the files of all instance rows still there? (Files without rows are
 * reported by the intake.) The file system is asked in a thread, so the loop does not wait.
 */
#ifndef NOCTULE_SERVICE_DAEMON_SERIES_AUDIT_H
#define NOCTULE_SERVICE_DAEMON_SERIES_AUDIT_H

#include "service/daemon/core.h"

struct audit;

/* 0 or -errno; *audit is to be stopped. */
int audit_start(struct core *core, struct audit **audit);
/* Lets it end early; it frees itself when the loop has heard of that. NULL is allowed. */
void audit_stop(struct audit *audit);

#endif
