/*
 * channel.h - a pipe of frames on a libuv loop: both ends of fd 3, and the connections of the control socket.
 *
 * The process must ignore SIGPIPE. All calls must come from the loop's thread.
 */
#ifndef NOCTULE_SERVICE_COMMON_WIRE_CHANNEL_H
#define NOCTULE_SERVICE_COMMON_WIRE_CHANNEL_H

#include "service/common/wire/proto.h"

#include <uv.h>

struct channel;

struct channel_events {
    /* Receives one complete frame. The reader is valid during the call. The callback may close the channel. */
    void (*frame)(void *context, struct channel *channel, struct proto_reader *reader);
    /* Reports the end, once: status 0 if the peer hung up, -EBADMSG if it broke the protocol,
     * another -errno if the pipe failed. The callback must close the channel. */
    void (*end)(void *context, struct channel *channel, int status);
    void *context;
};

/* Opens a channel on the descriptor `fd` (a stream socket). Takes ownership of it, also on failure:
 * closing the channel closes it. Returns 0 or -errno. */
int channel_open(uv_loop_t *loop, int fd, const struct channel_events *events, struct channel **channel);
/* Opens a channel on an accepted, initialised pipe handle from malloc. Takes ownership of it, also on failure. */
int channel_adopt(uv_pipe_t *pipe, const struct channel_events *events, struct channel **channel);

/* Finishes and queues the frame. Releases the writer in any case. Returns 0, -ENOMEM, -EMSGSIZE or
 * -EPIPE. */
int channel_send(struct channel *channel, struct proto_writer *writer);
/* Returns the bytes queued and not yet written. */
size_t channel_backlog(const struct channel *channel);

/* Sends the queued frames, for at most two seconds if the peer does not read, and closes the
 * channel. No callback runs afterwards. NULL is allowed. */
void channel_close(struct channel *channel);

#endif
