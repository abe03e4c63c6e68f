/*
 * listener.c - see listener.h.
 *
 *       accept --> waiting --> complete A-ASSOCIATE-RQ --> thread (associations.h)
 *                     |              |\---> not admitted: A-ASSOCIATE-RJ --> leaving
 *                     |              \----> its host has too many TLS handshakes: postponed
 *                     |-- any other data: A-ABORT ------------------------> leaving --> closed
 *                     \-- silent for acse_seconds, hung up, or displaced: closed
 *
 * The A-ASSOCIATE-RQ is only peeked at (preread.h), since the thread must read it. If it is longer
 * than PREREAD_MAX, only the AE titles are waited for, because a socket may not buffer more.
 * SO_RCVLOWAT avoids a wakeup of the loop per byte. A leaving connection is read until the peer
 * hangs up: closing it with unread bytes would send a reset, which could overtake the answer.
 */
#include "service/receiver/net/listener.h"

#include "service/common/bind_at.h"
#include "service/common/handle.h"
#include "service/common/log.h"
#include "service/receiver/net/associations.h"
#include "service/receiver/net/preread.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define BACKLOG         511
#define MAX_WAITING     256 /* if exceeded, the oldest connection is closed */
#define MAX_OF_HOST     128 /* if exceeded, the oldest connection of that host is closed */
#define LEAVING_MS      2000
#define TICK_MS         250
#define REOPEN_MS       5000
#define TOTALS_MS       600000
#define ACCEPT_PAUSE_MS 100 /* pause of accept after running out of descriptors */

enum { PLAIN, TLS, PORTS };

struct port {
    struct listener *listener;
    uv_poll_t *poll; /* NULL: not open */
    int fd;
    bool tls;
    char address[INET6_ADDRSTRLEN];
    int number;
    int error; /* of the last attempt to open it */
};

/* A connection without a thread. */
struct listener_pending {
    struct listener_pending *next, *previous; /* sorted by age */
    struct listener *listener;
    uv_poll_t poll;
    struct connection connection;
    int64_t deadline_ms;
    bool leaving;
    bool postponed; /* until the next tick */
};

struct totals {
    int64_t accepted, served, rejected, invalid, silent, pushed_out;
};

struct listener {
    uv_loop_t *loop;
    struct associations *associations;
    struct settings *settings;
    struct port ports[PORTS];
    struct listener_pending *oldest, *newest;
    size_t waiting;
    uv_timer_t tick;   /* runs while connections wait */
    uv_timer_t reopen; /* runs while a port is not open or accept is paused */
    uv_timer_t report;
    struct totals totals, reported;
    bool stopped;
};

static int64_t
now_ms(const struct listener *listener)
{
    return (int64_t)uv_now(listener->loop);
}

/* ------------------------------------------------------------------------ visitors ------ */

/* Removes the visitor. The caller then owns its descriptor. */
static int
listener_unlink(struct listener_pending *pending)
{
    struct listener *listener = pending->listener;
    *(pending->previous ? &pending->previous->next : &listener->oldest) = pending->next;
    *(pending->next ? &pending->next->previous : &listener->newest) = pending->previous;
    listener->waiting--;
    if (listener->waiting == 0)
        uv_timer_stop(&listener->tick);
    const int fd = pending->connection.fd;
    uv_close((uv_handle_t *)&pending->poll, handle_free_owner);
    return fd;
}

static void
listener_close_pending(struct listener_pending *pending)
{
    close(listener_unlink(pending));
}

static void
listener_log_refused(const struct listener_pending *pending, const char *why)
{
    log_warn("connection.refused", LOG_STR("host", pending->connection.host), LOG_INT("tls", pending->connection.tls),
             LOG_STR("reason", why));
}

static void
listener_reply_and_close(struct listener_pending *pending, const uint8_t reply[PREREAD_REPLY])
{
    const int fd = pending->connection.fd;
    /* Ten bytes fit into the empty send buffer of a new connection. */
    if (pending->connection.tls || send(fd, reply, PREREAD_REPLY, MSG_NOSIGNAL) < 0 || shutdown(fd, SHUT_WR) != 0) {
        listener_close_pending(pending);
        return;
    }
    setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &(int){1}, sizeof(int));
    pending->leaving = true;
    pending->deadline_ms = now_ms(pending->listener) + LEAVING_MS;
}

/* ----------------------------------------------------------------------- admission ------ */

/* Rejects a caller that is not admitted, without using a thread. Not possible with TLS. */
static bool
listener_reject_early(struct listener_pending *pending)
{
    static const uint8_t *const replies[] = {
        [ADMISSION_UNKNOWN_CALLER] = preread_unknown_caller,
        [ADMISSION_OTHER_ADDRESS] = preread_unknown_caller,
        [ADMISSION_OTHER_CERTIFICATE] = preread_unknown_caller,
        [ADMISSION_UNKNOWN_TITLE] = preread_unknown_title,
        [ADMISSION_BUSY] = preread_busy,
    };
    struct listener *listener = pending->listener;
    uint8_t bytes[PREREAD_TITLES];
    char called[PREREAD_TITLE], calling[PREREAD_TITLE];
    if (pending->connection.tls || recv(pending->connection.fd, bytes, sizeof bytes, MSG_PEEK) != sizeof bytes)
        return false;
    preread_titles(bytes, called, calling);
    const struct admission_caller caller = {
        .calling_ae = calling, .called_ae = called, .host = pending->connection.host, .certificate = ""};
    const enum admission_verdict verdict =
        associations_check(listener->associations, &listener->settings->conf->dicom, &caller);
    if (verdict == ADMISSION_GRANTED || verdict == ADMISSION_ECHO_ONLY)
        return false;
    listener->totals.rejected++;
    associations_note_refusal(listener->associations, verdict, &caller);
    listener_reply_and_close(pending, replies[verdict]);
    return true;
}

static void
listener_admit(struct listener_pending *pending)
{
    if (listener_reject_early(pending))
        return;
    /* A TLS handshake or a long request occupies a thread before the caller is admitted. One host
     * may occupy half of them. */
    struct listener *listener = pending->listener;
    struct connection connection = pending->connection;
    const size_t max = (size_t)listener->settings->conf->dicom.max_associations;
    const struct associations_unadmitted unadmitted = associations_unadmitted(listener->associations, connection.host);
    if ((connection.tls || connection.partial) && (unadmitted.of_all >= max || unadmitted.of_host >= (max + 1) / 2)) {
        pending->postponed = true;
        uv_poll_stop(&pending->poll);
        return;
    }
    listener_unlink(pending);
    if (ioctl(connection.fd, FIONBIO, &(int){0}) != 0 ||
        setsockopt(connection.fd, SOL_SOCKET, SO_RCVLOWAT, &(int){1}, sizeof(int)) != 0) {
        close(connection.fd);
        return;
    }
    int error = associations_begin(listener->associations, listener->settings, &connection);
    if (error)
        log_error("association.thread", LOG_STR("error", strerror(-error)));
    else
        listener->totals.served++;
}

/* ------------------------------------------------------------------------ preread ------ */

/* Returns 1 if there is enough for a thread, 0 if more is to come, -EPROTO if it is no request, or
 * -ECONNRESET if no more can come. */
static int
listener_peek(struct listener_pending *pending, bool hung_up)
{
    const int fd = pending->connection.fd;
    uint8_t bytes[PREREAD_HEADER];
    int available = 0;
    ssize_t got = recv(fd, bytes, sizeof bytes, MSG_PEEK);
    if (got < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -ECONNRESET;
    ssize_t size = preread_size(bytes, (size_t)got, pending->connection.tls);
    if (size < 0)
        return (int)size;
    pending->connection.partial = size > PREREAD_MAX;
    if (pending->connection.partial)
        size = PREREAD_TITLES;
    if (ioctl(fd, FIONREAD, &available) != 0)
        return -errno;
    if (got == PREREAD_HEADER && available >= size)
        return 1;
    if (got == 0 || hung_up)
        return -ECONNRESET;
    const int needed = (int)size;
    setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &needed, sizeof needed);
    return 0;
}

static void
on_readable(uv_poll_t *poll, int status, int events)
{
    struct listener_pending *pending = poll->data;
    if (status < 0) {
        listener_close_pending(pending);
        return;
    }
    if (pending->leaving) {
        uint8_t dropped[4096];
        ssize_t got = recv(pending->connection.fd, dropped, sizeof dropped, 0);
        if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
            listener_close_pending(pending);
        return;
    }
    const int whole = listener_peek(pending, (events & UV_DISCONNECT) != 0);
    if (whole > 0) {
        listener_admit(pending);
    } else if (whole == -EPROTO) {
        pending->listener->totals.invalid++;
        listener_log_refused(pending, "not an association request");
        listener_reply_and_close(pending, preread_abort);
    } else if (whole < 0) {
        pending->listener->totals.silent++;
        log_debug("connection.gone", LOG_STR("host", pending->connection.host));
        listener_close_pending(pending);
    }
}

static void
listener_on_tick(uv_timer_t *tick)
{
    struct listener *listener = tick->data;
    const int64_t now = now_ms(listener);
    for (struct listener_pending *pending = listener->oldest, *next; pending; pending = next) {
        next = pending->next;
        if (now < pending->deadline_ms) {
            if (pending->postponed)
                uv_poll_start(&pending->poll, UV_READABLE | UV_DISCONNECT, on_readable);
            pending->postponed = false;
            continue;
        }
        if (!pending->leaving) {
            listener->totals.silent++;
            listener_log_refused(pending, "silent");
        }
        listener_close_pending(pending);
    }
}

static void
listener_displace(struct listener_pending *pending)
{
    pending->listener->totals.pushed_out++;
    listener_log_refused(pending, "too many connections wait");
    listener_close_pending(pending);
}

/* Returns the connection to close for a new one, or NULL. */
static struct listener_pending *
listener_find_surplus(const struct listener *listener, const char *host)
{
    struct listener_pending *oldest = NULL;
    size_t of_host = 0;
    for (struct listener_pending *each = listener->newest; each; each = each->previous) {
        if (strcmp(each->connection.host, host) == 0) {
            oldest = each;
            of_host++;
        }
    }
    if (of_host > MAX_OF_HOST)
        return oldest;
    return listener->waiting > MAX_WAITING ? listener->oldest : NULL;
}

static void
listener_add_pending(struct listener *listener, const struct connection *connection)
{
    struct listener_pending *pending = calloc(1, sizeof *pending);
    if (!pending) {
        close(connection->fd);
        return;
    }
    *pending = (struct listener_pending){
        .listener = listener,
        .connection = *connection,
        .previous = listener->newest,
        .deadline_ms = now_ms(listener) + (int64_t)(1000.0 * listener->settings->conf->dicom.acse_seconds)};
    if (uv_poll_init(listener->loop, &pending->poll, connection->fd) != 0) {
        close(connection->fd);
        free(pending);
        return;
    }
    pending->poll.data = pending;
    *(pending->previous ? &pending->previous->next : &listener->oldest) = pending;
    listener->newest = pending;
    if (listener->waiting++ == 0)
        uv_timer_start(&listener->tick, listener_on_tick, TICK_MS, TICK_MS);
    pending->postponed = false;
    uv_poll_start(&pending->poll, UV_READABLE | UV_DISCONNECT, on_readable);
    struct listener_pending *surplus = listener_find_surplus(listener, connection->host);
    if (surplus)
        listener_displace(surplus);
}

/* ----------------------------------------------------------------------- accepting ------ */

static void on_reopen(uv_timer_t *timer);

static void
listener_on_connection(uv_poll_t *poll, int status, int events)
{
    (void)events;
    struct port *port = poll->data;
    struct listener *listener = port->listener;
    if (status < 0)
        return;
    for (;;) {
        struct sockaddr_storage address = {0};
        socklen_t length = sizeof address;
        int fd = accept4(port->fd, (struct sockaddr *)&address, &length, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0) {
            struct connection connection = {.fd = fd, .tls = port->tls};
            admission_host((const struct sockaddr *)&address, connection.host);
            setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
            setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &(int){1}, sizeof(int));
            listener->totals.accepted++;
            listener_add_pending(listener, &connection);
        } else if (errno == EMFILE && listener->oldest) {
            listener_displace(listener->oldest);
        } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
            /* Out of descriptors: the connection stays in the backlog and would wake the loop at once. */
            log_error("listener.accept", LOG_STR("error", strerror(errno)));
            uv_poll_stop(poll);
            uv_timer_start(&listener->reopen, on_reopen, ACCEPT_PAUSE_MS, 0);
            return;
        } else if (errno != EINTR && errno != ECONNABORTED) {
            return;
        }
    }
}

/* --------------------------------------------------------------------------- ports ------ */

static void
close_port(struct port *port)
{
    if (!port->poll)
        return;
    uv_close((uv_handle_t *)port->poll, handle_free);
    port->poll = NULL;
    close(port->fd);
}

static int
open_port(struct port *port, const char *address, int number)
{
    const int fd = bind_at(address, number);
    if (fd < 0)
        return fd;
    int error = listen(fd, BACKLOG) == 0 ? 0 : -errno;
    uv_poll_t *poll = error ? NULL : calloc(1, sizeof *poll);
    if (!error)
        error = poll ? uv_poll_init(port->listener->loop, poll, fd) : -ENOMEM;
    if (error) {
        free(poll);
        close(fd);
        return error;
    }
    poll->data = port;
    port->poll = poll;
    port->fd = fd;
    uv_poll_start(poll, UV_READABLE, listener_on_connection); /* cannot fail: it listens */
    snprintf(port->address, sizeof port->address, "%s", address);
    port->number = number;
    log_info("listener.open", LOG_STR("address", address), LOG_INT("port", number), LOG_INT("tls", port->tls));
    return 0;
}

static void
configure_port(struct port *port, const char *address, int number)
{
    if (port->poll && (number != port->number || strcmp(address, port->address) != 0))
        close_port(port);
    if (number == 0)
        return;
    if (port->poll) {
        uv_poll_start(port->poll, UV_READABLE, listener_on_connection); /* accept may have been paused */
        return;
    }
    port->error = open_port(port, address, number);
    if (!port->error)
        return;
    log_error("listener.port", LOG_STR("address", address), LOG_INT("port", number),
              LOG_STR("error", strerror(-port->error)));
    uv_timer_start(&port->listener->reopen, on_reopen, REOPEN_MS, 0);
}

/* ----------------------------------------------------------------- opening, closing ------ */

static void
on_report(uv_timer_t *timer)
{
    struct listener *listener = timer->data;
    const struct totals *totals = &listener->totals;
    if (memcmp(totals, &listener->reported, sizeof *totals) == 0)
        return;
    log_info("listener.totals", LOG_INT("accepted", totals->accepted), LOG_INT("served", totals->served),
             LOG_INT("rejected", totals->rejected), LOG_INT("invalid", totals->invalid),
             LOG_INT("silent", totals->silent), LOG_INT("pushed_out", totals->pushed_out));
    listener->reported = *totals;
}

int
listener_open(uv_loop_t *loop, struct receive_queue *queue, struct callers *callers, struct listener **out)
{
    struct listener *listener = calloc(1, sizeof *listener);
    if (!listener)
        return -ENOMEM;
    listener->loop = loop;
    int error = associations_open(loop, queue, callers, &listener->associations);
    if (error) {
        free(listener);
        return error;
    }
    for (size_t i = 0; i < PORTS; i++)
        listener->ports[i] = (struct port){.listener = listener, .tls = i == TLS};
    uv_timer_t *const timers[] = {&listener->tick, &listener->reopen, &listener->report};
    for (size_t i = 0; i < sizeof timers / sizeof *timers; i++) {
        uv_timer_init(loop, timers[i]); /* cannot fail */
        timers[i]->data = listener;
    }
    uv_timer_start(&listener->report, on_report, TOTALS_MS, TOTALS_MS);
    *out = listener;
    return 0;
}

/* Opens the ports that are configured and not open. */
static void
on_reopen(uv_timer_t *timer)
{
    struct listener *listener = timer->data;
    const struct conf_dicom *conf = &listener->settings->conf->dicom;
    configure_port(&listener->ports[PLAIN], conf->bind, conf->port);
    configure_port(&listener->ports[TLS], conf->bind, listener->settings->tls ? conf->tls_port : 0);
}

void
listener_configure(struct listener *listener, struct settings *settings)
{
    settings_drop(listener->settings);
    listener->settings = settings_keep(settings);
    if (!listener->stopped)
        on_reopen(&listener->reopen);
}

bool
listener_lacks(const struct listener *listener, char *why, size_t size)
{
    const struct conf_dicom *conf = &listener->settings->conf->dicom;
    const int numbers[PORTS] = {[PLAIN] = conf->port, [TLS] = conf->tls_port};
    for (size_t i = 0; i < PORTS; i++) {
        if (numbers[i] == 0 || listener->ports[i].poll)
            continue;
        snprintf(why, size, "port %d is not open: %s", numbers[i],
                 i == TLS && !listener->settings->tls ? "its certificate or key cannot be used"
                                                      : strerror(-listener->ports[i].error));
        return true;
    }
    return false;
}

void
listener_stop(struct listener *listener)
{
    if (listener->stopped)
        return;
    listener->stopped = true;
    for (size_t i = 0; i < PORTS; i++)
        close_port(&listener->ports[i]);
    while (listener->oldest)
        listener_close_pending(listener->oldest);
    associations_stop(listener->associations);
    on_report(&listener->report);
    uv_close((uv_handle_t *)&listener->tick, NULL);
    uv_close((uv_handle_t *)&listener->reopen, NULL);
    uv_close((uv_handle_t *)&listener->report, NULL);
}

bool
listener_idle(const struct listener *listener)
{
    return associations_count(listener->associations) == 0;
}

void
listener_close(struct listener *listener)
{
    associations_close(listener->associations);
}

void
listener_free(struct listener *listener)
{
    if (!listener)
        return;
    associations_free(listener->associations);
    settings_drop(listener->settings);
    free(listener);
}
