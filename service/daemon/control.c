/*
 * control.c - see control.h.
 *
 * libuv errors are negative errnos here. strerror() formats them, because uv_strerror() leaks a string for each errno
 * it does not know, such as EBADMSG.
 */
#include "service/daemon/control.h"

#include "service/common/handle.h"
#include "service/common/layout.h"
#include "service/common/log.h"
#include "service/common/wire/channel.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define MAX_CLIENTS   128
#define MAX_BACKLOG   (1u << 20)
#define IDLE_MILLIS   30000u
#define SWEEP_MILLIS  5000u
#define LISTEN_LENGTH 128
#define REST_MILLIS   100u /* pause in accepting when a client cannot be added */

struct client {
    LIST_ENTRY(client) next;
    struct control *control;
    struct channel *channel;
    int64_t number;
    uid_t user; /* of the client process */
    uint64_t last_frame_at;
    size_t unanswered; /* requests without a reply */
};

struct control {
    uv_poll_t listener; /* of `fd`; a uv_pipe_t would spin while accept() fails */
    int fd;
    uv_timer_t sweeper;
    struct control_events events;
    LIST_HEAD(client_list, client) clients;
    size_t count;
    int64_t last_number;
    char *path;
    int handles;
};

static void
client_drop(struct client *client)
{
    LIST_REMOVE(client, next);
    client->control->count--;
    channel_close(client->channel);
    free(client);
}

static void
client_on_frame(void *context, struct channel *channel, struct proto_reader *reader)
{
    (void)channel;
    struct client *client = context;
    struct control_request request;
    /* Message types that the CLI must not send are rejected as broken frames are. */
    const struct message *type = message_find(reader->type);
    if (!type || strcmp(type->from, "command") != 0 || message_read(reader, reader->type, &request.message)) {
        log_warn("control.refused", LOG_INT("client", client->number), LOG_STR("frame", message_name(reader->type)));
        client_drop(client);
        return;
    }
    struct control *control = client->control;
    client->last_frame_at = uv_now(control->listener.loop);
    client->unanswered++;
    request.person = NULL;
    request.type = reader->type;
    request.user = client->user;
    control->events.request(control->events.context, client->number, &request);
}

static void
client_on_end(void *context, struct channel *channel, int status)
{
    (void)channel;
    struct client *client = context;
    if (status < 0)
        log_warn("control.broken", LOG_INT("client", client->number), LOG_STR("reason", strerror(-status)));
    client_drop(client);
}

/* Owns `fd` from now on, also on failure. */
static int
control_add_client(struct control *control, int fd)
{
    struct client *client = calloc(1, sizeof *client);
    struct ucred peer = {0};
    socklen_t size = sizeof peer;
    int error = client ? 0 : -ENOMEM;
    if (!error && getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0)
        error = -errno;
    if (error) {
        free(client);
        close(fd);
        return error;
    }
    if (control->count >= MAX_CLIENTS) {
        /* Close the client with the longest silence, so that idle connections never block a new one. Clients that wait
         * for a reply come last. */
        struct client *first = LIST_FIRST(&control->clients);
        for (struct client *other = first; other; other = LIST_NEXT(other, next)) {
            const bool waits = other->unanswered > 0, first_waits = first->unanswered > 0;
            if (waits != first_waits ? first_waits : other->last_frame_at <= first->last_frame_at)
                first = other;
        }
        log_warn("control.pushed_out", LOG_INT("client", first->number), LOG_INT("user", first->user));
        client_drop(first);
    }
    const struct channel_events events = {client_on_frame, client_on_end, client};
    error = channel_open(control->listener.loop, fd, &events, &client->channel);
    if (error) {
        free(client);
        return error;
    }
    client->control = control;
    client->number = ++control->last_number;
    client->user = peer.uid;
    client->last_frame_at = uv_now(control->listener.loop);
    LIST_INSERT_HEAD(&control->clients, client, next);
    control->count++;
    return 0;
}

static void
control_on_connection(uv_poll_t *listener, int status, int events)
{
    (void)events;
    struct control *control = listener->data;
    int fd = status ? -1 : accept4(control->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    int error = status ? status : fd < 0 ? -errno : control_add_client(control, fd);
    if (!error || error == -EAGAIN || error == -EINTR || error == -ECONNABORTED)
        return;
    log_warn("control.accept_failed", LOG_STR("reason", strerror(-error)));
    if (fd >= 0)
        return;
    /* The connection stays in the backlog and would wake the loop at once. */
    uv_poll_stop(listener);
    uv_timer_start(&control->sweeper, control->sweeper.timer_cb, REST_MILLIS, SWEEP_MILLIS);
}

static void
control_on_sweep(uv_timer_t *timer)
{
    struct control *control = timer->data;
    struct client *next;
    for (struct client *client = LIST_FIRST(&control->clients); client; client = next) {
        next = LIST_NEXT(client, next);
        if (client->unanswered == 0 && uv_now(timer->loop) - client->last_frame_at > IDLE_MILLIS)
            client_drop(client);
    }
    uv_poll_start(&control->listener, UV_READABLE, control_on_connection);
}

void
control_answer(struct control *control, int64_t number, const struct message_answer *answer)
{
    struct client *client = LIST_FIRST(&control->clients);
    while (client && client->number != number)
        client = LIST_NEXT(client, next);
    if (!client)
        return;
    client->unanswered--;
    client->last_frame_at = uv_now(control->listener.loop);
    struct proto_writer writer;
    message_write_answer(&writer, answer);
    if (channel_send(client->channel, &writer) || channel_backlog(client->channel) > MAX_BACKLOG)
        client_drop(client);
}

/* Returns a socket that listens at `path`, or -errno. Long roots do not fit into a socket address, so it is bound
 * through the folder's descriptor. */
static int
control_listen(const char *path, const char *folder)
{
    int base = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (base < 0)
        return -errno;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int error = fd < 0 ? -errno : 0;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/%s", base, strrchr(path, '/') + 1);
    if (!error && unlink(path) < 0 && errno != ENOENT)
        error = -errno;
    /* The file gets the mode that the socket has when it is bound, so it is never open to others. */
    if (!error && (fchmod(fd, 0600) < 0 || bind(fd, (const struct sockaddr *)&address, sizeof address) < 0 ||
                   listen(fd, LISTEN_LENGTH) < 0))
        error = -errno;
    close(base);
    if (error && fd >= 0)
        close(fd);
    return error ? error : fd;
}

static void
control_on_closed(uv_handle_t *handle)
{
    struct control *control = handle->data;
    if (--control->handles > 0)
        return;
    close(control->fd);
    free(control->path);
    free(control);
}

int
control_open(uv_loop_t *loop, const char *root, const struct control_events *events, struct control **out)
{
    struct control *control = calloc(1, sizeof *control);
    char *folder = NULL;
    int error = -ENOMEM;
    if (!control || asprintf(&control->path, "%s/" LAYOUT_CONTROL_SOCKET, root) < 0)
        goto fail;
    if (asprintf(&folder, "%s/" LAYOUT_RUN, root) < 0)
        goto fail_path;
    control->fd = error = control_listen(control->path, folder);
    free(folder);
    if (error < 0)
        goto fail_path;
    error = uv_poll_init(loop, &control->listener, control->fd);
    if (error)
        goto fail_socket;
    control->events = *events;
    control->handles = 2;
    uv_timer_init(loop, &control->sweeper); /* cannot fail */
    control->listener.data = control->sweeper.data = control;
    uv_timer_start(&control->sweeper, control_on_sweep, 0, SWEEP_MILLIS);
    *out = control;
    return 0;
fail_socket:
    unlink(control->path);
    close(control->fd);
fail_path:
    free(control->path);
fail:
    free(control);
    return error;
}

void
control_close(struct control *control)
{
    if (!control)
        return;
    while (!LIST_EMPTY(&control->clients))
        client_drop(LIST_FIRST(&control->clients));
    unlink(control->path);
    uv_close((uv_handle_t *)&control->listener, control_on_closed);
    uv_close((uv_handle_t *)&control->sweeper, control_on_closed);
}
