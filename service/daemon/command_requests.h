/* command_requests.h - what operators ask of the daemon (control.h), put into effect. */
#ifndef NOCTULE_SERVICE_DAEMON_COMMAND_REQUESTS_H
#define NOCTULE_SERVICE_DAEMON_COMMAND_REQUESTS_H

#include "service/daemon/control.h"
#include "service/daemon/core.h"

/* Answers when the change is on disk. */
void request_handle(struct core *core, struct control *control, int64_t client,
                    const struct control_request *asked);

/* Answers requests for a reload, once ports are as configured, or it is known that one is not. */
void requests_end_reload(struct core *core);

#endif
