/* submit.h - jobs for a series that is stored: what `noctule submit` asks for. */
#ifndef NOCTULE_SUBMIT_H
#define NOCTULE_SUBMIT_H

#include "service/common/messages.h"
#include "service/daemon/core.h"

/*
 * In the open batch. 0, -EINVAL when it was refused, or the queue's error. Unless that, *body is what
 * was done, a line for each job or the reason of a refusal, or an object of JSON; to be freed.
 */
int submit_series(struct core *core, const struct message_submit *submit, const char *by,
                  char **body);

#endif
