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

#define BACKLOG     511
#define MAX_WAITING 256 /* if exceeded, the oldest connection is closed */
#define MAX_OF_HOST 128 /* if exceeded, the oldest connection of that host is closed */
#define LEAVING_MS  2000
#define TICK_MS     250
#define REOPEN_MS   5000
#define TOTALS_MS   600000
#define NO_MORE_MS  100 /* pause of accept after running out of descriptors */

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
struct listener_visitor {
    struct listener_visitor *next, *previous; /* sorted by age */
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
    struct listener_visitor *oldest, *newest;
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
listener_let_go(struct listener_visitor *visitor)
{
    struct listener *listener = visitor->listener;
    *(visitor->previous ? &visitor->previous->next : &listener->oldest) = visitor->next;
    *(visitor->next ? &visitor->next->previous : &listener->newest) = visitor->previous;
    listener->waiting--;
    if (listener->waiting == 0)
        uv_timer_stop(&listener->tick);
    const int fd = visitor->connection.fd;
    uv_close((uv_handle_t *)&visitor->poll, handle_free_owner);
    return fd;
}

static void
turn_out(struct listener_visitor *visitor)
{
    close(listener_let_go(visitor));
}

static void
log_turned_away(const struct listener_visitor *visitor, const char *why)
{
    log_warn("connection.refused", LOG_STR("host", visitor->connection.host),
             LOG_INT("tls", visitor->connection.tls), LOG_STR("reason", why));
}

static void
say_farewell(struct listener_visitor *visitor, const uint8_t reply[PREREAD_REPLY])
{
    const int fd = visitor->connection.fd;
    /* Ten bytes fit into the empty send buffer of a new connection. */
    if (visitor->connection.tls || send(fd, reply, PREREAD_REPLY, MSG_NOSIGNAL) < 0 ||
        shutdown(fd, SHUT_WR) != 0) {
        turn_out(visitor);
        return;
    }
    setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &(int){1}, sizeof(int));
    visitor->leaving = true;
    visitor->deadline_ms = now_ms(visitor->listener) + LEAVING_MS;
}

static void
see_off(struct listener_visitor *visitor)
{
    uint8_t dropped[4096];
    ssize_t got = recv(visitor->connection.fd, dropped, sizeof dropped, 0);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
        turn_out(visitor);
}

/* ------------------------------------------------------------------------- threads ------ */

static bool
make_blocking(int fd)
{
    const int off = 0;
    return ioctl(fd, FIONBIO, &off) == 0 &&
           setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &(int){1}, sizeof(int)) == 0;
}

static void
begin_association(struct listener_visitor *visitor)
{
    struct listener *listener = visitor->listener;
    struct connection connection = visitor->connection;
    listener_let_go(visitor);
    if (!make_blocking(connection.fd)) {
        close(connection.fd);
        return;
    }
    int error = associations_begin(listener->associations, listener->settings, &connection);
    if (error)
        log_error("association.thread", LOG_STR("error", strerror(-error)));
    else
        listener->totals.served++;
}

/* Rejects a caller that is not admitted, without using a thread. Not possible with TLS. */
static bool
is_refused(struct listener_visitor *visitor)
{
    static const uint8_t *const replies[] = {
        [ADMISSION_UNKNOWN_CALLER] = preread_unknown_caller,
        [ADMISSION_OTHER_ADDRESS] = preread_unknown_caller,
        [ADMISSION_OTHER_CERTIFICATE] = preread_unknown_caller,
        [ADMISSION_UNKNOWN_TITLE] = preread_unknown_title,
        [ADMISSION_BUSY] = preread_busy,
    };
    struct listener *listener = visitor->listener;
    uint8_t bytes[PREREAD_TITLES];
    char called[PREREAD_TITLE], calling[PREREAD_TITLE];
    if (visitor->connection.tls ||
        recv(visitor->connection.fd, bytes, sizeof bytes, MSG_PEEK) != sizeof bytes)
        return false;
    preread_titles(bytes, called, calling);
    const struct admission_caller caller = {.calling_ae = calling,
                                            .called_ae = called,
                                            .host = visitor->connection.host,
                                            .certificate = ""};
    const enum admission_verdict verdict =
        associations_check(listener->associations, &listener->settings->conf->dicom, &caller);
    if (verdict == ADMISSION_GRANTED || verdict == ADMISSION_ECHO_ONLY)
        return false;
    listener->totals.rejected++;
    associations_note_refusal(listener->associations, verdict, &caller);
    say_farewell(visitor, replies[verdict]);
    return true;
}

/* Returns whether the caller must wait. A TLS handshake or a long request occupies a thread before
 * the caller is admitted. One host may occupy half of them. */
static bool
has_too_many_handshakes(const struct listener_visitor *visitor)
{
    const struct listener *listener = visitor->listener;
    const size_t most = (size_t)listener->settings->conf->dicom.max_associations;
    const struct associations_unadmitted strangers =
        associations_unadmitted(listener->associations, visitor->connection.host);
    return (visitor->connection.tls || visitor->connection.partial) &&
           (strangers.of_all >= most || strangers.of_host >= (most + 1) / 2);
}

static void
postpone(struct listener_visitor *visitor)
{
    visitor->postponed = true;
    uv_poll_stop(&visitor->poll);
}

static void
welcome(struct listener_visitor *visitor)
{
    if (is_refused(visitor))
        return;
    if (has_too_many_handshakes(visitor))
        postpone(visitor);
    else
        begin_association(visitor);
}

/* ------------------------------------------------------------------------ preread ------ */

/* Returns 1 if there is enough for a thread, 0 if more is to come, -EPROTO if it is no request, or
 * -ECONNRESET if no more can come. */
static int
listener_look_at(struct listener_visitor *visitor, bool hung_up)
{
    const int fd = visitor->connection.fd;
    uint8_t bytes[PREREAD_HEADER];
    int there = 0;
    ssize_t got = recv(fd, bytes, sizeof bytes, MSG_PEEK);
    if (got < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -ECONNRESET;
    ssize_t size = preread_size(bytes, (size_t)got, visitor->connection.tls);
    if (size < 0)
        return (int)size;
    visitor->connection.partial = size > PREREAD_MAX;
    if (visitor->connection.partial)
        size = PREREAD_TITLES;
    if (ioctl(fd, FIONREAD, &there) != 0)
        return -errno;
    if (got == PREREAD_HEADER && there >= size)
        return 1;
    if (got == 0 || hung_up)
        return -ECONNRESET;
    const int needed = (int)size;
    setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &needed, sizeof needed);
    return 0;
}

static void
hear_out(struct listener_visitor *visitor, bool hung_up)
{
    int whole = listener_look_at(visitor, hung_up);
    if (whole > 0) {
        welcome(visitor);
    } else if (whole == -EPROTO) {
        visitor->listener->totals.invalid++;
        log_turned_away(visitor, "not an association request");
        say_farewell(visitor, preread_abort);
    } else if (whole < 0) {
        visitor->listener->totals.silent++;
        log_debug("connection.gone", LOG_STR("host", visitor->connection.host));
        turn_out(visitor);
    }
}

static void
on_readable(uv_poll_t *poll, int status, int events)
{
    struct listener_visitor *visitor = poll->data;
    if (status < 0)
        turn_out(visitor);
    else if (visitor->leaving)
        see_off(visitor);
    else
        hear_out(visitor, (events & UV_DISCONNECT) != 0);
}

static void
listen_to(struct listener_visitor *visitor)
{
    visitor->postponed = false;
    uv_poll_start(&visitor->poll, UV_READABLE | UV_DISCONNECT, on_readable);
}

static void
listener_on_tick(uv_timer_t *tick)
{
    struct listener *listener = tick->data;
    const int64_t now = now_ms(listener);
    for (struct listener_visitor *visitor = listener->oldest, *next; visitor; visitor = next) {
        next = visitor->next;
        if (now < visitor->deadline_ms) {
            if (visitor->postponed)
                listen_to(visitor);
            continue;
        }
        if (!visitor->leaving) {
            listener->totals.silent++;
            log_turned_away(visitor, "silent");
        }
        turn_out(visitor);
    }
}

static void
push_out(struct listener_visitor *visitor)
{
    visitor->listener->totals.pushed_out++;
    log_turned_away(visitor, "too many connections wait");
    turn_out(visitor);
}

/* Returns the connection to close for a new one, or NULL. */
static struct listener_visitor *
find_surplus(const struct listener *listener, const char *host)
{
    struct listener_visitor *oldest = NULL;
    size_t of_host = 0;
    for (struct listener_visitor *each = listener->newest; each; each = each->previous) {
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
receive_visitor(struct listener *listener, const struct connection *connection)
{
    struct listener_visitor *visitor = calloc(1, sizeof *visitor);
    if (!visitor) {
        close(connection->fd);
        return;
    }
    *visitor = (struct listener_visitor){
        .listener = listener,
        .connection = *connection,
        .previous = listener->newest,
        .deadline_ms =
            now_ms(listener) + (int64_t)(1000.0 * listener->settings->conf->dicom.acse_seconds)};
    if (uv_poll_init(listener->loop, &visitor->poll, connection->fd) != 0) {
        close(connection->fd);
        free(visitor);
        return;
    }
    visitor->poll.data = visitor;
    *(visitor->previous ? &visitor->previous->next : &listener->oldest) = visitor;
    listener->newest = visitor;
    if (listener->waiting++ == 0)
        uv_timer_start(&listener->tick, listener_on_tick, TICK_MS, TICK_MS);
    listen_to(visitor);
    struct listener_visitor *surplus = find_surplus(listener, connection->host);
    if (surplus)
        push_out(surplus);
}

/* ----------------------------------------------------------------------- accepting ------ */

static void on_reopen(uv_timer_t *timer);

/* Pauses accept after running out of descriptors. The connection stays in the backlog and would
 * wake the loop at once. */
static void
rest(struct port *port, int error)
{
    log_error("listener.accept", LOG_STR("error", strerror(-error)));
    uv_poll_stop(port->poll);
    uv_timer_start(&port->listener->reopen, on_reopen, NO_MORE_MS, 0);
}

static void
accept_one(struct port *port, int fd, const struct sockaddr_storage *address)
{
    struct connection connection = {.fd = fd, .tls = port->tls};
    admission_host((const struct sockaddr *)address, connection.host);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &(int){1}, sizeof(int));
    port->listener->totals.accepted++;
    receive_visitor(port->listener, &connection);
}

static void
listener_on_connection(uv_poll_t *poll, int status, int events)
{
    (void)events;
    struct port *port = poll->data;
    if (status < 0)
        return;
    for (;;) {
        struct sockaddr_storage address = {0};
        socklen_t length = sizeof address;
        int fd =
            accept4(port->fd, (struct sockaddr *)&address, &length, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0) {
            accept_one(port, fd, &address);
        } else if (errno == EMFILE && port->listener->oldest) {
            push_out(port->listener->oldest);
        } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
            rest(port, -errno);
            return;
        } else if (errno != EINTR && errno != ECONNABORTED) {
            return;
        }
    }
}

/* --------------------------------------------------------------------------- ports ------ */

static int
listen_at(const char *text, int number)
{
    const int fd = bind_at(text, number);
    if (fd >= 0 && listen(fd, BACKLOG) != 0) {
        const int error = -errno;
        close(fd);
        return error;
    }
    return fd;
}

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
watch_port(struct port *port, int fd)
{
    uv_poll_t *poll = calloc(1, sizeof *poll);
    int error = poll ? uv_poll_init(port->listener->loop, poll, fd) : -ENOMEM;
    if (error) {
        free(poll);
        return error;
    }
    poll->data = port;
    port->poll = poll;
    port->fd = fd;
    /* Cannot fail for a listening socket. */
    uv_poll_start(poll, UV_READABLE, listener_on_connection);
    return 0;
}

static int
open_port(struct port *port, const char *address, int number)
{
    int fd = listen_at(address, number);
    if (fd < 0)
        return fd;
    int error = watch_port(port, fd);
    if (error) {
        close(fd);
        return error;
    }
    snprintf(port->address, sizeof port->address, "%s", address);
    port->number = number;
    log_info("listener.open", LOG_STR("address", address), LOG_INT("port", number),
             LOG_INT("tls", port->tls));
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
        uv_poll_start(port->poll, UV_READABLE,
                      listener_on_connection); /* accept may have been paused */
        return;
    }
    port->error = open_port(port, address, number);
    if (!port->error)
        return;
    log_error("listener.port", LOG_STR("address", address), LOG_INT("port", number),
              LOG_STR("error", strerror(-port->error)));
    uv_timer_start(&port->listener->reopen, on_reopen, REOPEN_MS, 0);
}

static void
configure_ports(struct listener *listener)
{
    const struct conf_dicom *conf = &listener->settings->conf->dicom;
    configure_port(&listener->ports[PLAIN], conf->bind, conf->port);
    configure_port(&listener->ports[TLS], conf->bind, listener->settings->tls ? conf->tls_port : 0);
}

static void
on_reopen(uv_timer_t *timer)
{
    configure_ports(timer->data);
}

/* ----------------------------------------------------------------- opening, closing ------ */

static void
on_report(uv_timer_t *timer)
{
    struct listener *listener = timer->data;
    const struct totals *totals = &listener->totals;
    if (memcmp(totals, &listener->reported, sizeof *totals) == 0)
        return;
    log_info("listener.totals", LOG_INT("accepted", totals->accepted),
             LOG_INT("served", totals->served), LOG_INT("rejected", totals->rejected),
             LOG_INT("invalid", totals->invalid), LOG_INT("silent", totals->silent),
             LOG_INT("pushed_out", totals->pushed_out));
    listener->reported = *totals;
}

int
listener_open(uv_loop_t *loop, struct receiver *receiver, struct listener **out)
{
    struct listener *listener = calloc(1, sizeof *listener);
    if (!listener)
        return -ENOMEM;
    listener->loop = loop;
    int error = associations_open(loop, receiver, &listener->associations);
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

void
listener_configure(struct listener *listener, struct settings *settings)
{
    settings_drop(listener->settings);
    listener->settings = settings_keep(settings);
    if (!listener->stopped)
        configure_ports(listener);
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

bool
listener_report_callers(struct listener *listener, int64_t now_ms, struct proto_writer *writer,
                        int64_t *wait_ms)
{
    return associations_report_callers(listener->associations, now_ms, writer, wait_ms);
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
        turn_out(listener->oldest);
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
