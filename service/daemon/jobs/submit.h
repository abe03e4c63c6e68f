/* submit.h - jobs for a series that is stored: what `noctule submit` asks for. */
#ifndef NOCTULE_SERVICE_DAEMON_JOBS_SUBMIT_H
#define NOCTULE_SERVICE_DAEMON_JOBS_SUBMIT_H

#include "service/common/wire/messages.h"
#include "service/daemon/core.h"

/*
 * In the open batch. 0, or -errno when it was refused; *body, to be freed, is what was done, a line
 * for each job, or the reason of the refusal, or an object of JSON. When the database cannot be
 * written (core_is_trouble) it is NULL.
 */
int submit_series(struct core *core, const struct message_submit *submit, const char *by,
                  char **body);

#endif
