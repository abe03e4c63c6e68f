/*
 * web_server.c - see web_server.h.
 *
 * libmicrohttpd parses requests on its own thread, and limits memory and idle time. This file
 * limits the age of connections, because a peer that sends a byte now and then is never idle. It
 * also limits their number: a new connection beyond the limit replaces one without a complete
 * request, so that /healthz is always answered.
 */
#include "service/web/web_server.h"

#include "base/limits.h"
#include "base/text.h"
#include "service/common/clock.h"
#include "service/common/log.h"

#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* memory for the request and the head of the answer */
#define CONNECTION_BYTES  (2 * LIMIT_PAGE_REQUEST_BYTES)
#define CLOSE_SECONDS     2  /* wait for closed connections */
#define SPARE_CONNECTIONS 16 /* extra connections of libmicrohttpd while others are being closed */

struct web_server_client {
    LIST_ENTRY(web_server_client) next;
    int fd;
    int64_t since_ms;
    char host[INET6_ADDRSTRLEN];
    bool has_request; /* its request is complete */
    bool ended;       /* closed to make room, but still open in libmicrohttpd */
};

struct web_server {
    struct MHD_Daemon *daemon;
    struct web_server_events events;
    pthread_mutex_t lock; /* protects the list of connections */
    pthread_cond_t empty; /* signalled when the list is empty */
    LIST_HEAD(clients, web_server_client) clients;
};

static const char *const web_server_headers[][2] = {
    {"Content-Security-Policy",
     "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; "
     "frame-ancestors 'none'"},
    {"X-Content-Type-Options", "nosniff"},
    {"X-Frame-Options", "DENY"},
    {"Referrer-Policy", "no-referrer"},
    {"Cross-Origin-Opener-Policy", "same-origin"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
    {"Connection", "close"},
};

/* -------------------------------------------------------------------------------- answers ---- */

static bool
web_server_add_headers(struct MHD_Response *response, const struct web_reply *answer)
{
    bool all = true;
    for (size_t i = 0; i < sizeof web_server_headers / sizeof *web_server_headers; i++)
        all &=
            MHD_add_response_header(response, web_server_headers[i][0], web_server_headers[i][1]);
    all &= MHD_add_response_header(response, "Cache-Control",
                                   answer->keeps ? "private, max-age=3600" : "no-store");
    all &= MHD_add_response_header(response, "Content-Type", answer->type);
    if (answer->status == MHD_HTTP_METHOD_NOT_ALLOWED)
        all &= MHD_add_response_header(response, "Allow", "GET, HEAD");
    if (answer->needs_token)
        all &= MHD_add_response_header(response, "WWW-Authenticate",
                                       "Basic realm=\"Noctule\", charset=\"UTF-8\"");
    return all;
}

/* Makes a response. It must have all headers, because browsers enforce them. Returns NULL without
 * memory. */
static struct MHD_Response *
web_server_response(struct web_reply *answer)
{
    struct MHD_Response *response =
        MHD_create_response_from_buffer(answer->size, answer->bytes, MHD_RESPMEM_MUST_FREE);
    if (!response) {
        free(answer->bytes);
        return NULL;
    }
    if (web_server_add_headers(response, answer))
        return response;
    MHD_destroy_response(response);
    return NULL;
}

/* Sends an answer. Without memory, the connection ends. */
static enum MHD_Result
web_server_send(struct web_server *server, struct MHD_Connection *connection,
                struct web_reply *answer, int64_t since_ms)
{
    struct MHD_Response *response = web_server_response(answer);
    if (!response)
        return MHD_NO;
    const enum MHD_Result queued =
        MHD_queue_response(connection, (unsigned)answer->status, response);
    MHD_destroy_response(response);
    server->events.answered(server->events.context, answer->status,
                            (double)(clock_steady_ms() - since_ms) / 1000.0);
    return queued;
}

static void
web_server_refuse(struct web_reply *answer, int status, const char *why)
{
    free(answer->bytes);
    answer->bytes = NULL;
    answer->size = 0;
    answer->status = status;
    answer->type = "text/plain; charset=utf-8";
    fprintf(answer->out, "%s\n", why);
}

/* ------------------------------------------------------------------------------- requests ---- */

static const char *
web_server_header(struct MHD_Connection *connection, const char *name)
{
    const char *value = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
    return value ? value : "";
}

static struct web_request
web_server_request(struct MHD_Connection *connection, const char *path)
{
    struct web_request request = {.path = path,
                                  .host = web_server_header(connection, "Host"),
                                  .authorization = web_server_header(connection, "Authorization")};
    for (int i = 0; i < REQUEST_VALUE_COUNT; i++) {
        const char *value = MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND,
                                                        web_request_value_names[i]);
        request.values[i] = value ? value : "";
    }
    return request;
}

static bool
web_server_has_body(struct MHD_Connection *connection)
{
    const char *length = web_server_header(connection, "Content-Length");
    return *web_server_header(connection, "Transfer-Encoding") ||
           (*length && strcmp(length, "0") != 0);
}

static size_t
web_server_head_size(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    return info ? info->header_size : 0;
}

static void
web_server_make_answer(struct web_server *server, struct MHD_Connection *connection,
                       const char *path, const char *method, struct web_reply *answer)
{
    const bool reads = strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0;
    const struct web_request request = web_server_request(connection, path);
    if (web_server_head_size(connection) > LIMIT_PAGE_REQUEST_BYTES)
        web_server_refuse(answer, MHD_HTTP_REQUEST_HEADER_FIELDS_TOO_LARGE,
                          "the request is too large");
    else if (!reads)
        web_server_refuse(answer, MHD_HTTP_METHOD_NOT_ALLOWED, "the web UI is read-only");
    else if (web_server_has_body(connection))
        web_server_refuse(answer, MHD_HTTP_CONTENT_TOO_LARGE, "a request must not have a body");
    else
        server->events.answer(server->events.context, &request, answer);
}

/* Marks the connection as complete, so that a newcomer does not replace it. */
static void
web_server_note_request(struct web_server *server, struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    struct web_server_client *client = info ? info->socket_context : NULL;
    pthread_mutex_lock(&server->lock);
    if (client)
        client->has_request = true;
    pthread_mutex_unlock(&server->lock);
}

static enum MHD_Result
web_server_on_request(void *context, struct MHD_Connection *connection, const char *path,
                      const char *method, const char *version, const char *body, size_t *body_size,
                      void **state)
{
    struct web_server *server = context;
    struct text_stream stream;
    struct web_reply answer = {.status = MHD_HTTP_OK, .type = "text/html; charset=utf-8"};
    const int64_t since_ms = clock_steady_ms();
    (void)version, (void)body, (void)body_size, (void)state;
    web_server_note_request(server, connection);
    if (text_open(&stream) != 0)
        return MHD_NO;
    answer.out = stream.out;
    web_server_make_answer(server, connection, path, method, &answer);
    const int rc = text_close(&stream);
    if (rc || answer.bytes) {
        free(rc ? answer.bytes : stream.bytes);
    } else {
        answer.bytes = stream.bytes;
        answer.size = stream.size;
    }
    return rc ? MHD_NO : web_server_send(server, connection, &answer, since_ms);
}

/* ---------------------------------------------------------------------------- connections ---- */

static void
web_server_name_host(struct MHD_Connection *connection, char host[INET6_ADDRSTRLEN])
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    const struct sockaddr *address = info ? info->client_addr : NULL;
    host[0] = '\0';
    if (address && address->sa_family == AF_INET)
        inet_ntop(AF_INET, &((const struct sockaddr_in *)(const void *)address)->sin_addr, host,
                  INET6_ADDRSTRLEN);
    else if (address && address->sa_family == AF_INET6)
        inet_ntop(AF_INET6, &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr, host,
                  INET6_ADDRSTRLEN);
}

/* Finds the oldest connection of the host (NULL: of any host) without a complete request, else the
 * oldest one. Sets *count to the open connections of that host. The caller must hold the lock. */
static struct web_server_client *
web_server_oldest(const struct web_server *server, const char *host, size_t *count)
{
    struct web_server_client *client, *oldest = NULL;
    *count = 0;
    LIST_FOREACH(client, &server->clients, next)
    { /* newest first */
        if (client->ended || (host && strcmp(client->host, host) != 0))
            continue;
        ++*count;
        if (!oldest || oldest->has_request || !client->has_request)
            oldest = client;
    }
    return oldest;
}

/* Closes a connection if there are too many. If the newcomer's host has more than half of them,
 * closes one of that host. The caller must hold the lock. */
static void
web_server_make_room(struct web_server *server, const struct web_server_client *newcomer)
{
    size_t of_all, of_host;
    struct web_server_client *oldest = web_server_oldest(server, NULL, &of_all);
    struct web_server_client *own = web_server_oldest(server, newcomer->host, &of_host);
    if (of_all <= LIMIT_PAGE_CONNECTIONS)
        return;
    if (of_host > LIMIT_PAGE_CONNECTIONS / 2)
        oldest = own;
    if (oldest == newcomer)
        return;
    oldest->ended = true;
    shutdown(oldest->fd, SHUT_RDWR);
}

static void
web_server_on_connection(void *context, struct MHD_Connection *connection, void **socket_context,
                         enum MHD_ConnectionNotificationCode event)
{
    struct web_server *server = context;
    struct web_server_client *client = *socket_context;
    pthread_mutex_lock(&server->lock);
    if (event == MHD_CONNECTION_NOTIFY_STARTED) {
        const union MHD_ConnectionInfo *info =
            MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
        client = info ? calloc(1, sizeof *client) : NULL;
        if (client) {
            *client =
                (struct web_server_client){.fd = info->connect_fd, .since_ms = clock_steady_ms()};
            web_server_name_host(connection, client->host);
            LIST_INSERT_HEAD(&server->clients, client, next);
            web_server_make_room(server, client);
        } else if (info) {
            shutdown(info->connect_fd, SHUT_RDWR);
        }
        *socket_context = client;
    } else if (client) {
        LIST_REMOVE(client, next);
        free(client);
        if (LIST_EMPTY(&server->clients))
            pthread_cond_signal(&server->empty);
    }
    pthread_mutex_unlock(&server->lock);
}

/* The server's thread notices closed sockets and frees them. */
void
web_server_tick(struct web_server *server)
{
    const int64_t oldest_ms = clock_steady_ms() - 1000 * LIMIT_PAGE_SECONDS;
    struct web_server_client *client;
    pthread_mutex_lock(&server->lock);
    LIST_FOREACH(client, &server->clients, next)
    if (client->since_ms < oldest_ms)
        shutdown(client->fd, SHUT_RDWR);
    pthread_mutex_unlock(&server->lock);
}

__attribute__((format(printf, 2, 0))) static void
web_server_on_log(void *context, const char *format, va_list values)
{
    char line[256];
    (void)context;
    vsnprintf(line, sizeof line, format, values);
    line[strcspn(line, "\n")] = '\0';
    log_debug("page.http", LOG_STR("what", line));
}

/* -------------------------------------------------------------------- opening and closing ---- */

static void
web_server_free(struct web_server *server)
{
    pthread_cond_destroy(&server->empty);
    pthread_mutex_destroy(&server->lock);
    free(server);
}

/* libmicrohttpd decides on repeated names and bad encodings of parameters. */
int
web_server_open(int fd, const struct web_server_events *events, struct web_server **opened)
{
    struct web_server *server = calloc(1, sizeof *server);
    if (!server)
        return -ENOMEM;
    server->events = *events;
    LIST_INIT(&server->clients);
    pthread_mutex_init(&server->lock, NULL);
    pthread_cond_init(&server->empty, NULL);
    errno = 0;
    server->daemon = MHD_start_daemon(
        MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_EPOLL | MHD_USE_ITC | MHD_USE_ERROR_LOG, 0, NULL,
        NULL, web_server_on_request, server, MHD_OPTION_EXTERNAL_LOGGER, web_server_on_log, NULL,
        MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT,
        (unsigned)(LIMIT_PAGE_CONNECTIONS + SPARE_CONNECTIONS), MHD_OPTION_CONNECTION_TIMEOUT,
        (unsigned)LIMIT_PAGE_SECONDS, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_BYTES,
        MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_NOTIFY_CONNECTION, web_server_on_connection,
        server, MHD_OPTION_END);
    if (!server->daemon) {
        const int error = errno ? -errno : -ENOMEM;
        web_server_free(server);
        return error;
    }
    *opened = server;
    return 0;
}

/* Closes all connections and waits until they are gone. If libmicrohttpd 0.9.75 stops while it
 * refuses a request that is too large, it reads an invalid answer. */
static void
web_server_empty(struct web_server *server)
{
    struct timespec until;
    struct web_server_client *client;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += CLOSE_SECONDS;
    pthread_mutex_lock(&server->lock);
    for (client = LIST_FIRST(&server->clients); client; client = LIST_NEXT(client, next))
        shutdown(client->fd, SHUT_RDWR);
    while (!LIST_EMPTY(&server->clients) &&
           pthread_cond_timedwait(&server->empty, &server->lock, &until) == 0)
        continue;
    pthread_mutex_unlock(&server->lock);
}

void
web_server_close(struct web_server *server)
{
    if (!server)
        return;
    /* no new connections; the descriptor is ours again */
    const int fd = MHD_quiesce_daemon(server->daemon);
    web_server_empty(server);
    MHD_stop_daemon(server->daemon);
    if (fd >= 0)
        close(fd);
    web_server_free(server);
}
