/*
 * control_requests.h - sends one request per argument to the daemon and prints the answers. Calls
 * block, with a time limit.
 */
#ifndef NOCTULE_SERVICE_CLI_CONTROL_REQUESTS_H
#define NOCTULE_SERVICE_CLI_CONTROL_REQUESTS_H

#include "service/cli/cli.h"
#include "service/common/wire/messages.h"

#include <stddef.h>

/* A request about one argument. `options` are those of the command, or NULL. */
struct cli_request {
    enum proto_type type;
    const char *noun; /* for messages: "job" */
    void (*write)(struct proto_writer *writer, enum proto_type type, const char *argument, const void *options);
    bool array; /* print the answers as elements of one JSON array */
};

/* Sends the requests on one connection. A request without an argument has a NULL argument. Returns
 * a code of exit_codes.h. */
int control_request_all(const char *root, const struct cli_request *request, char **arguments, int count,
                        const void *options);

/* Runs a command of which each argument is a request. */
int control_run(struct cli_call *call);

/* Returns the login name of the operator, or "" if unknown. */
const char *control_login(char *login, size_t size);

#endif
