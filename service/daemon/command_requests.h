/*
 * command_requests.h - carries out operators' requests (control.h).
 */
#ifndef NOCTULE_SERVICE_DAEMON_COMMAND_REQUESTS_H
#define NOCTULE_SERVICE_DAEMON_COMMAND_REQUESTS_H

#include "service/daemon/control.h"
#include "service/daemon/core.h"

/* Handles a request and sends the reply when the change is on disk. */
void request_handle(struct core *core, struct control *control, int64_t client,
                    const struct control_request *request);

/* Answers reload requests, once the ports are open as configured or one has failed to open. */
void requests_end_reload(struct core *core);

#endif
