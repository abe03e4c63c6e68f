/*
 * control.h - the operators' socket (run/control.sock, mode 0600): receives requests and sends replies.
 *
 * Clients are not trusted. A broken frame, silence or an unread backlog closes only that client. A client that waits
 * for a reply may be silent. A new client always gets a connection: at the limit, the client with the longest silence
 * is closed. Clients have numbers that are never reused, so a reply to a closed client is dropped.
 */
#ifndef NOCTULE_SERVICE_DAEMON_CONTROL_H
#define NOCTULE_SERVICE_DAEMON_CONTROL_H

#include "service/common/wire/messages.h"

#include <sys/types.h>
#include <uv.h>

struct control;

/* The person of a request of the web UI. */
struct request_person {
    const char *name, *how, *role, *address;
    const char *seen; /* v_review.version; "": not known */
};

/* A request of the CLI, or of the web UI. Its strings are valid only during the call. */
struct control_request {
    const struct request_person *person; /* NULL: of the CLI */
    uid_t user;                          /* of its client, as reported by the kernel */
    enum proto_type type;
    union message_any message;
};

struct control_events {
    void (*request)(void *context, int64_t client, const struct control_request *request);
    void *context;
};

/* Replaces a socket that a dead daemon left: the caller must hold the lock of the root. */
int control_open(uv_loop_t *loop, const char *root, const struct control_events *events, struct control **control);
void control_answer(struct control *control, int64_t client, const struct message_answer *answer);
/* Flushes replies, removes the socket, frees asynchronously. NULL is allowed. */
void control_close(struct control *control);

#endif
