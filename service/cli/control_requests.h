/*
 * control_requests.h - questions to the daemon, one for each argument, and their answers printed. Blocking, with a timeout.
 */
#ifndef NOCTULE_SERVICE_CLI_CONTROL_REQUESTS_H
#define NOCTULE_SERVICE_CLI_CONTROL_REQUESTS_H

#include "service/cli/cli.h"
#include "service/common/wire/messages.h"

#include <stddef.h>

/* What is asked about each argument; `options` are those of the command, NULL where it has none. */
struct question {
    enum proto_type type;
    const char *noun; /* "job" */
    void (*write)(struct proto_writer *writer, enum proto_type type, const char *argument,
                  const void *options);
    bool array; /* the answers are elements of one of JSON */
};

/* On one connection; a question without an argument has a NULL one. One of exit_codes.h. */
int control_ask_all(const char *root, const struct question *question, char **arguments, int count,
                    const void *options);

/* Who had logged in; "": not known. */
const char *control_login(char *login, size_t size);

#endif
