/*
 * channel.h - a framed pipe on a libuv loop: both ends of fd 3, and the control socket's
 * connections.
 *
 * The process must ignore SIGPIPE. Everything happens on the loop's thread.
 */
#ifndef NOCTULE_SERVICE_COMMON_WIRE_CHANNEL_H
#define NOCTULE_SERVICE_COMMON_WIRE_CHANNEL_H

#include "service/common/wire/proto.h"

#include <uv.h>

struct channel;

struct channel_events {
    /* One complete frame; the reader is valid during the call. Closing the channel inside is
     * allowed. */
    void (*frame)(void *context, struct channel *channel, struct proto_reader *reader);
    /* The peer hung up (status 0) or broke the rules (-EBADMSG) or the pipe failed; called once.
     * Close it. */
    void (*end)(void *context, struct channel *channel, int status);
    void *context;
};

/* Takes over the open descriptor `fd` (a stream socket), also when it fails: it is closed with the
 * channel. 0 or -errno. */
int channel_open(uv_loop_t *loop, int fd, const struct channel_events *events,
                 struct channel **channel);
/* Takes over an accepted, initialised pipe handle made with malloc, also when it fails. */
int channel_adopt(uv_pipe_t *pipe, const struct channel_events *events, struct channel **channel);

/* Finishes and queues the frame; the writer is released whatever happens. 0, -ENOMEM, -EMSGSIZE,
 * -EPIPE. */
int channel_send(struct channel *channel, struct proto_writer *writer);
size_t channel_backlog(const struct channel *channel); /* bytes queued and not yet written */

/* Sends what is queued (a peer that does not read has two seconds), then closes; no event is called
 * afterwards. NULL is allowed. */
void channel_close(struct channel *channel);

#endif
