/*
 * control.h - the socket operators speak to (run/control.sock, mode 0600): requests in, answers
 * out.
 *
 * Clients are not trusted: a broken frame, a silence or a refusal to read closes that client and
 * nothing else. While an answer is still to be given, silence is not held against it. A new client
 * always gets in: where there are too many the one that was silent for longest makes room. Clients are
 * named by numbers that are never used again, so an answer to one that has left goes nowhere.
 */
#ifndef NOCTULE_SERVICE_DAEMON_CONTROL_H
#define NOCTULE_SERVICE_DAEMON_CONTROL_H

#include "service/common/wire/messages.h"

#include <sys/types.h>
#include <uv.h>

struct control;

/* A message of the command line; its strings are valid during the call. */
struct control_request {
    uid_t user; /* who asks, as the kernel says */
    enum proto_type type;
    union message_any message;
};

struct control_events {
    void (*request)(void *context, int64_t client, const struct control_request *request);
    void *context;
};

/* Replaces a socket that a dead daemon left: the caller holds the lock of the root. */
int control_open(uv_loop_t *loop, const char *root, const struct control_events *events,
                 struct control **control);
void control_answer(struct control *control, int64_t client, const struct message_answer *answer);
/* Flushes answers, removes the socket, frees asynchronously. NULL is allowed. */
void control_close(struct control *control);

#endif
