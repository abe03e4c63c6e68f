/*
 * submit.h - adds jobs for a stored series, as requested by `noctule submit`.
 */
#ifndef NOCTULE_SERVICE_DAEMON_JOBS_SUBMIT_H
#define NOCTULE_SERVICE_DAEMON_JOBS_SUBMIT_H

#include "service/common/wire/messages.h"
#include "service/daemon/core.h"

/*
 * Adds the jobs in the open batch. Returns 0, or -errno if the request was rejected. *body lists
 * one line per job, gives the reason of the rejection, or is a JSON object. The caller must free
 * it. NULL if the database cannot be written (core_is_transient).
 */
int submit_series(struct core *core, const struct message_submit *submit, const char *by,
                  char **body);

#endif
