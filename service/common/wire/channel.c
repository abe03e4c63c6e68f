/*
 * channel.c - framed pipes; see channel.h.
 *
 * A channel lives from channel_open or channel_adopt until the close callbacks of its two handles
 * have run: the pipe, and the timer that limits the last flush. After channel_close the pointer
 * must not be used. A failed write to a peer that hung up does not end the channel. The frames that
 * the peer sent before are read first, and the reading side reports the end.
 */
#include "service/common/wire/channel.h"

#include "service/common/handle.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#define READ_BYTES   (64u << 10)
#define FLUSH_MILLIS 2000u /* how long a peer that does not read may delay a close */

struct channel {
    uv_pipe_t *pipe;
    uv_timer_t flush;
    uv_shutdown_t shutdown;
    struct channel_events events;
    struct proto_stream stream;
    size_t backlog;
    bool ended;   /* `end` was called, or must not be called any more */
    bool closing; /* channel_close was called */
    bool broken;  /* a write failed; later ones would fail, too */
    int handles;  /* open uv handles that point here */
    char buffer[READ_BYTES];
};

struct write_request {
    uv_write_t request;
    struct channel *channel;
    struct proto_writer writer;
};

/* --------------------------------------------------------------------------- closing ------- */

static void
channel_on_closed(uv_handle_t *handle)
{
    struct channel *channel = handle->data;
    if (--channel->handles > 0)
        return;
    proto_stream_release(&channel->stream);
    free(channel->pipe);
    free(channel);
}

static void
close_handles(struct channel *channel)
{
    if (!uv_is_closing((uv_handle_t *)channel->pipe))
        uv_close((uv_handle_t *)channel->pipe, channel_on_closed);
    if (!uv_is_closing((uv_handle_t *)&channel->flush))
        uv_close((uv_handle_t *)&channel->flush, channel_on_closed);
}

static void
on_flush_timeout(uv_timer_t *timer)
{
    close_handles(timer->data);
}

static void
on_shutdown(uv_shutdown_t *request, int status)
{
    (void)status;
    close_handles(request->data);
}

void
channel_close(struct channel *channel)
{
    if (!channel || channel->closing)
        return;
    channel->closing = true;
    channel->ended = true;
    uv_read_stop((uv_stream_t *)channel->pipe);
    channel->shutdown.data = channel;
    if (channel->backlog == 0 || channel->broken ||
        uv_shutdown(&channel->shutdown, (uv_stream_t *)channel->pipe, on_shutdown) < 0) {
        close_handles(channel);
        return;
    }
    uv_timer_start(&channel->flush, on_flush_timeout, FLUSH_MILLIS, 0);
}

/* --------------------------------------------------------------------------- reading ------- */

static void
channel_report_end(struct channel *channel, int status)
{
    if (channel->ended)
        return;
    channel->ended = true;
    uv_read_stop((uv_stream_t *)channel->pipe);
    channel->events.end(channel->events.context, channel, status);
}

static void
on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buffer)
{
    (void)suggested;
    struct channel *channel = handle->data;
    *buffer = uv_buf_init(channel->buffer, sizeof channel->buffer);
}

static void
on_read(uv_stream_t *stream, ssize_t size, const uv_buf_t *buffer)
{
    struct channel *channel = stream->data;
    if (size < 0) {
        channel_report_end(channel, size == UV_EOF ? 0 : (int)size);
        return;
    }
    int status = proto_feed(&channel->stream, buffer->base, (size_t)size);
    struct proto_reader reader;
    while (status == 0 && !channel->ended) {
        status = proto_next(&channel->stream, &reader);
        if (status <= 0)
            break;
        channel->events.frame(channel->events.context, channel, &reader);
        status = 0;
    }
    if (status < 0)
        channel_report_end(channel, status);
}

/* --------------------------------------------------------------------------- opening ------- */

int
channel_adopt(uv_pipe_t *pipe, const struct channel_events *events, struct channel **out)
{
    struct channel *channel = calloc(1, sizeof *channel);
    if (!channel) {
        uv_close((uv_handle_t *)pipe, handle_free);
        return -ENOMEM;
    }
    channel->pipe = pipe;
    channel->events = *events;
    channel->handles = 2;
    pipe->data = channel;
    uv_timer_init(pipe->loop, &channel->flush); /* cannot fail */
    channel->flush.data = channel;
    int error = uv_read_start((uv_stream_t *)pipe, on_alloc, on_read);
    if (error) {
        channel_close(channel);
        return error;
    }
    *out = channel;
    return 0;
}

int
channel_open(uv_loop_t *loop, int fd, const struct channel_events *events, struct channel **out)
{
    uv_pipe_t *pipe = malloc(sizeof *pipe);
    if (!pipe) {
        close(fd);
        return -ENOMEM;
    }
    int error = uv_pipe_init(loop, pipe, 0);
    if (error) {
        free(pipe);
        close(fd);
        return error;
    }
    error = uv_pipe_open(pipe, fd);
    if (error) {
        uv_close((uv_handle_t *)pipe, handle_free);
        close(fd);
        return error;
    }
    return channel_adopt(pipe, events, out);
}

/* --------------------------------------------------------------------------- sending ------- */

static void
on_written(uv_write_t *request, int status)
{
    struct write_request *sent = request->data;
    struct channel *channel = sent->channel;
    channel->backlog -= sent->writer.size;
    if (status < 0)
        channel->broken = true;
    proto_release(&sent->writer);
    free(sent);
    /* If the peer hung up, the rest of its frames is read. Otherwise it would wait for the lost frame. */
    if (status < 0 && status != -EPIPE && status != -ECONNRESET && status != -ECANCELED)
        channel_report_end(channel, status);
}

int
channel_send(struct channel *channel, struct proto_writer *writer)
{
    struct write_request *sending = NULL;
    int error = proto_finish(writer);
    if (!error && (channel->closing || channel->broken))
        error = -EPIPE;
    if (error)
        goto fail;
    sending = malloc(sizeof *sending);
    error = -ENOMEM;
    if (!sending)
        goto fail;
    *sending = (struct write_request){.channel = channel, .writer = *writer};
    sending->request.data = sending;
    uv_buf_t buffer = uv_buf_init((char *)writer->bytes, (unsigned)writer->size);
    error = uv_write(&sending->request, (uv_stream_t *)channel->pipe, &buffer, 1, on_written);
    if (error)
        goto fail;
    channel->backlog += writer->size;
    *writer = (struct proto_writer){0};
    return 0;
fail:
    free(sending);
    proto_release(writer);
    return error;
}

size_t
channel_backlog(const struct channel *channel)
{
    return channel->backlog;
}
