/* test_server.c - HTTP of the web UI with hostile clients. */
#include "service/web/server/web_server.h"

#include "service/common/bind_at.h"
#include "tests/unit/edge.h"
#include "tests/unit/suite.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define HANGS_MS 60000 /* a limit for hangs only */

static struct web_server *server;
static int port;
static atomic_int answered, last_status;

static sem_t slow_begun, slow_may_end, plane_may_end;
static char order[64]; /* initials of the paths that the second thread has answered */

static enum web_server_turn
turn_of(const char *path)
{
    return strcmp(path, "/now") == 0     ? WEB_SERVER_NOW
           : strcmp(path, "/next") == 0  ? WEB_SERVER_NEXT
           : strcmp(path, "/plane") == 0 ? WEB_SERVER_BESIDE
                                         : WEB_SERVER_IN_TURN;
}

static void
answer_it(void *context, const struct web_request *request, struct web_reply *answer)
{
    (void)context;
    if (strcmp(request->path, "/slow") == 0) {
        sem_post(&slow_begun);
        sem_wait(&slow_may_end);
    }
    if (strcmp(request->path, "/plane") == 0) {
        sem_wait(&plane_may_end);
        fputs("a plane", answer->out);
        return;
    }
    if (strcmp(request->path, "/now") != 0 && strlen(order) < sizeof order - 1)
        strncat(order, request->path + 1, 1);
    fprintf(answer->out, "path %s q %s host %s", request->path, request->values[REQUEST_q], request->host);
    if (request->posts) {
        fprintf(answer->out, " body %zu %s by %s%s", request->body_size, request->body, request->address,
                request->header(request->connection, "X-Name"));
        answer->location = strdup("there");
        snprintf(answer->cookie, sizeof answer->cookie, "a=b");
    }
}

static enum web_server_posts
takes_posts(void *context, const char *path)
{
    (void)context;
    return strcmp(path, "/post") == 0     ? WEB_SERVER_TAKES_POSTS
           : strcmp(path, "/upload") == 0 ? WEB_SERVER_UPLOADS
                                          : WEB_SERVER_NO_POSTS;
}

static const char *
refuses_upload(void *context, const struct web_request *request, int *status)
{
    (void)context;
    *status = 403;
    return strstr(request->cookie, "eve") ? "not you" : NULL;
}

static void
note_it(void *context, int status, double seconds)
{
    (void)context;
    ck_assert(seconds >= 0);
    atomic_store(&last_status, status);
    atomic_fetch_add(&answered, 1);
}

static void
open_server(void)
{
    const struct web_server_events events = {answer_it, note_it, NULL, turn_of, takes_posts, refuses_upload, NULL};
    struct sockaddr_in address;
    socklen_t size = sizeof address;
    const int fd = bind_at("127.0.0.1", 0);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(listen(fd, 256), 0);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&address, &size), 0);
    port = ntohs(address.sin_port);
    ck_assert_int_eq(web_server_open(fd, &events, &server), 0);
    atomic_store(&answered, 0);
    order[0] = '\0';
    sem_init(&slow_begun, 0, 0);
    sem_init(&slow_may_end, 0, 0);
    sem_init(&plane_may_end, 0, 0);
}

static void
close_server(void)
{
    web_server_close(server);
}

static int
visit(void)
{
    const struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(connect(fd, (const struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

static void
say(int fd, const char *text, size_t size)
{
    while (size > 0) {
        const ssize_t sent = send(fd, text, size, MSG_NOSIGNAL);
        if (sent <= 0)
            return; /* closed by the server */
        text += sent;
        size -= (size_t)sent;
    }
}

/* Reads until the end of the connection and closes it. Returns "" without data. */
static char *
hear(int fd)
{
    static char text[65536];
    size_t used = 0;
    struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
    while (used < sizeof text - 1) {
        ck_assert_int_eq(poll(&poll_fd, 1, HANGS_MS), 1);
        const ssize_t got = recv(fd, text + used, sizeof text - 1 - used, 0);
        if (got <= 0)
            break;
        used += (size_t)got;
    }
    close(fd);
    text[used] = '\0';
    return text;
}

static char *
ask(const char *request)
{
    const int fd = visit();
    say(fd, request, strlen(request));
    return hear(fd);
}

static int
status_of(const char *text)
{
    return strncmp(text, "HTTP/1.1 ", 9) == 0 ? atoi(text + 9) : 0;
}

#define HEAD "Host: localhost\r\n"

START_TEST(a_request_is_answered)
{
    const char *text = ask("GET /a%20b?q=%3Cb%3E&x=1 HTTP/1.1\r\n" HEAD "\r\n");
    ck_assert_int_eq(status_of(text), 200);
    ck_assert_ptr_nonnull(strstr(text, "path /a b q <b> host localhost"));
    static const char *const headers[] = {"Content-Security-Policy: default-src 'none'",
                                          "X-Content-Type-Options: nosniff", "Cache-Control: no-store",
                                          "Referrer-Policy: same-origin", "Connection: close"};
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++)
        ck_assert_msg(strstr(text, headers[i]) != NULL, "%s", headers[i]);
    text = ask("HEAD / HTTP/1.1\r\n" HEAD "\r\n");
    ck_assert_int_eq(status_of(text), 200);
    ck_assert_ptr_null(strstr(text, "path"));
    ck_assert_int_eq(status_of(ask("GET / HTTP/1.0\r\n\r\n")), 200); /* only web_access checks host names */
    ck_assert_int_eq(atomic_load(&answered), 3);
}

END_TEST

/* number of the failing call; the first is 1, 0: all calls succeed */
static atomic_int header_that_fails;

/*
 * Replaces functions of libmicrohttpd, which only web_server.c uses. Returns 1, or 0 for the
 * failing call.
 */
struct MHD_Response;
int __real_MHD_add_response_header(struct MHD_Response *response, const char *name, const char *value);
int __wrap_MHD_add_response_header(struct MHD_Response *response, const char *name, const char *value);

int
__wrap_MHD_add_response_header(struct MHD_Response *response, const char *name, const char *value)
{
    const bool fails = atomic_load(&header_that_fails) > 0 && atomic_fetch_sub(&header_that_fails, 1) == 1;
    return fails ? 0 : __real_MHD_add_response_header(response, name, value);
}

/* A response must not be sent without all its headers, because browsers enforce them. */
START_TEST(a_response_has_all_headers_or_is_not_sent)
{
    int failed = 0;
    for (int n = 1; atomic_load(&header_that_fails) == 0; n++) {
        atomic_store(&header_that_fails, n);
        const int status = status_of(ask("GET / HTTP/1.1\r\n" HEAD "\r\n"));
        const bool came = atomic_load(&header_that_fails) == 0;
        ck_assert_int_eq(status, came ? 0 : 200);
        failed += came;
    }
    ck_assert_int_ge(failed, 8);
    atomic_store(&header_that_fails, 0);
}

END_TEST

START_TEST(only_read_requests_are_accepted)
{
    static const char *const methods[] = {"POST",    "PUT",   "DELETE",   "OPTIONS", "TRACE",
                                          "CONNECT", "PATCH", "PROPFIND", "get",     "X"};
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        char request[256];
        snprintf(request, sizeof request, "%s / HTTP/1.1\r\n" HEAD "\r\n", methods[i]);
        ck_assert_msg(status_of(ask(request)) == 405, "%s", methods[i]);
    }
    ck_assert_int_eq(status_of(ask("GET / HTTP/1.1\r\n" HEAD "Content-Length: 5\r\n\r\nhello")), 413);
    ck_assert_int_eq(
        status_of(ask("GET / HTTP/1.1\r\n" HEAD "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n")), 413);
    ck_assert_int_eq(atomic_load(&last_status), 413);
}

END_TEST

#define POST "POST /post HTTP/1.1\r\n" HEAD

START_TEST(a_post_has_a_body_of_limited_size)
{
    const char *text = ask(POST "Content-Length: 5\r\nX-Name: anna\r\n\r\nhello");
    ck_assert_int_eq(status_of(text), 200);
    ck_assert_ptr_nonnull(strstr(text, "body 5 hello by 127.0.0.1anna"));
    ck_assert_ptr_nonnull(strstr(text, "Location: there\r\n"));
    ck_assert_ptr_nonnull(strstr(text, "Set-Cookie: a=b\r\n"));
    /* a header that comes twice counts as missing */
    ck_assert_ptr_nonnull(
        strstr(ask(POST "Content-Length: 0\r\nX-Name: anna\r\nx-name: eve\r\n\r\n"), "body 0  by 127.0.0.1"));
    ck_assert_ptr_null(strstr(ask(POST "Content-Length: 0\r\nX-Name: anna\r\nx-name: eve\r\n\r\n"), "anna"));
    ck_assert_int_eq(status_of(ask(POST "\r\n")), 411);
    ck_assert_int_eq(status_of(ask(POST "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n")), 411);
    const struct edge edge = EDGE(PAGE_BODY_BYTES);
    static char head[200];
    snprintf(head, sizeof head, POST "Content-Length: %lld\r\n\r\n", (long long)edge.most + 1);
    ck_assert_int_eq(status_of(ask(head)), 413);
    ck_assert_int_eq(status_of(ask(POST "Content-Length: 99999999999999\r\n\r\n")), 413);
    ck_assert_int_eq(status_of(ask("POST /other HTTP/1.1\r\n" HEAD "Content-Length: 5\r\n\r\nhello")), 405);
    ck_assert_int_eq(status_of(ask("PUT /post HTTP/1.1\r\n" HEAD "Content-Length: 5\r\n\r\nhello")), 405);
    static char most[sizeof POST + 100 + LIMIT_PAGE_BODY_BYTES];
    snprintf(most, sizeof most, POST "Content-Length: %lld\r\n\r\n%*d", (long long)edge.most, (int)edge.most, 1);
    ck_assert_ptr_nonnull(strstr(ask(most), "body 8192 "));
}

END_TEST

/* A body that does not come is ended like an incomplete request: it counts as one. */
START_TEST(a_body_comes_in_parts_or_ends)
{
    int fd = visit();
    for (const char *at = POST "Content-Length: 5\r\n\r\nhello"; *at; at++)
        say(fd, at, 1);
    ck_assert_ptr_nonnull(strstr(hear(fd), "body 5 hello"));
    const int before = atomic_load(&answered);
    const int half = visit();
    say(half, POST "Content-Length: 5\r\n\r\nhell", strlen(POST) + strlen("Content-Length: 5\r\n\r\nhell"));
    shutdown(half, SHUT_WR);
    for (int i = 0; i < 2 * LIMIT_PAGE_CONNECTIONS; i++) {
        fd = visit();
        say(fd, POST "Content-Length: 5\r\n\r\nh", strlen(POST) + strlen("Content-Length: 5\r\n\r\nh"));
        if (i % 8 == 0) {
            ck_assert_int_eq(status_of(ask("GET /now HTTP/1.1\r\n" HEAD "\r\n")), 200);
            ck_assert_ptr_nonnull(strstr(ask(POST "Content-Length: 2\r\n\r\nok"), "body 2 ok"));
        }
        /* the connection stays open, until a newer one ends it or the server does */
    }
    ck_assert_int_eq(status_of(hear(half)), 0); /* newer ones ended it */
    ck_assert_int_eq(atomic_load(&answered), before + 2 * 2 * LIMIT_PAGE_CONNECTIONS / 8);
}

END_TEST

/* Begins an upload of that many bytes. `more`: headers. */
static int
begin_upload(int64_t size, const char *more)
{
    char head[200];
    const int fd = visit();
    const int length = snprintf(head, sizeof head, "POST /upload HTTP/1.1\r\n" HEAD "Content-Length: %lld\r\n%s\r\n",
                                (long long)size, more);
    say(fd, head, (size_t)length);
    return fd;
}

/* Sends the bytes of an upload. */
static void
send_upload(int fd, int64_t size)
{
    static const char bytes[1 << 16];
    for (; size > 0; size -= (int64_t)sizeof bytes)
        say(fd, bytes, size < (int64_t)sizeof bytes ? (size_t)size : sizeof bytes);
}

START_TEST(an_upload_has_a_limited_size)
{
    const struct edge edge = EDGE(PAGE_UPLOAD_MIB);
    ck_assert_int_eq(status_of(hear(begin_upload((edge.most << 20) + 1, ""))), 413);
    const int fd = begin_upload(edge.most << 20, "");
    send_upload(fd, edge.most << 20);
    ck_assert_int_eq(status_of(hear(fd)), 200);
}

END_TEST

/* Of a refused upload the body is read before the answer, unless the client waits for the answer before it sends one. */
START_TEST(a_refused_upload_is_read_first)
{
    const int fd = begin_upload(1 << 20, "Cookie: eve\r\n");
    struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
    ck_assert_int_eq(status_of(ask("GET /now HTTP/1.1\r\n" HEAD "\r\n")), 200);
    ck_assert_int_eq(poll(&poll_fd, 1, 0), 0);
    send_upload(fd, 1 << 20);
    ck_assert_int_eq(status_of(hear(fd)), 403);
    ck_assert_int_eq(status_of(hear(begin_upload(1 << 20, "Cookie: eve\r\nExpect: 100-continue\r\n"))), 403);
}

END_TEST

START_TEST(so_many_uploads_and_no_more)
{
    const struct edge edge = EDGE(PAGE_UPLOADS);
    int fds[8];
    ck_assert_int_le(edge.most, 8);
    for (int i = 0; i < edge.most; i++) {
        fds[i] = begin_upload(2, "");
        ck_assert_int_eq(status_of(ask("GET /now HTTP/1.1\r\n" HEAD "\r\n")), 200); /* the server has noticed it */
    }
    const int beyond = begin_upload(2, "");
    send_upload(beyond, 2);
    ck_assert_int_eq(status_of(hear(beyond)), 429);
    for (int i = 0; i < edge.most; i++) {
        send_upload(fds[i], 2);
        ck_assert_int_eq(status_of(hear(fds[i])), 200);
    }
}

END_TEST

/* Invalid HTTP must not affect later requests. */
START_TEST(nonsense_ends)
{
    static const char *const nonsense[] = {"\r\n\r\n\r\n\r\n",
                                           "GET\r\n\r\n",
                                           "GET / HTTP/9.9\r\n\r\n",
                                           "GET / HTTP/1.1\r\n\r\n",
                                           "\x16\x03\x01\x02\x01\x01\r\n\r\n",
                                           "GET /\x01\xff HTTP/1.1\r\nno colon\r\n\r\n",
                                           "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n"};
    for (size_t i = 0; i < sizeof nonsense / sizeof *nonsense; i++) {
        const int fd = visit();
        say(fd, nonsense[i], strlen(nonsense[i]));
        close(fd);
    }
    ck_assert_int_eq(status_of(ask("GET / HTTP/1.1\r\n" HEAD "\r\n")), 200);
}

END_TEST

/* Builds a request with this number of bytes in its line and headers. */
static int
status_of_size(size_t size)
{
    static const char begins[] = "GET / HTTP/1.1\r\n" HEAD "X: ", ends[] = "\r\n\r\n";
    char *request = malloc(size + 1);
    memset(request, 'x', size);
    memcpy(request, begins, sizeof begins - 1);
    memcpy(request + size - (sizeof ends - 1), ends, sizeof ends);
    const int status = status_of(ask(request));
    free(request);
    return status;
}

START_TEST(a_request_has_bounds)
{
    const struct edge edge = EDGE(PAGE_REQUEST_BYTES);
    ck_assert_int_eq(status_of_size((size_t)edge.most), 200);
    ck_assert_int_eq(status_of_size((size_t)edge.most + 1), 431);
    const int fd = visit();
    char megabyte[1 << 20];
    memset(megabyte, 'y', sizeof megabyte);
    say(fd, "GET / HTTP/1.1\r\nX: ", 19);
    say(fd, megabyte, sizeof megabyte);
    close(fd);
    ck_assert_int_eq(status_of(ask("GET / HTTP/1.1\r\n" HEAD "\r\n")), 200);
}

END_TEST

/*
 * The oldest idle connection must make room for the first one beyond the limit. The others must
 * stay.
 */
START_TEST(so_many_connections_and_no_more)
{
    const struct edge edge = EDGE(PAGE_CONNECTIONS);
    int idle[LIMIT_PAGE_CONNECTIONS];
    for (int i = 0; i < (int)edge.most - 1; i++)
        idle[i] = visit();
    /* the last free connection */
    ck_assert_int_eq(status_of(ask("GET / HTTP/1.1\r\n" HEAD "\r\n")), 200);
    struct pollfd first = {.fd = idle[0], .events = POLLIN};
    ck_assert_int_eq(poll(&first, 1, 200), 0);
    idle[edge.most - 1] = visit();
    ck_assert_int_eq(status_of(ask("GET / HTTP/1.1\r\n" HEAD "\r\n")), 200);
    ck_assert_int_eq(status_of(hear(idle[0])), 0);
    struct pollfd second = {.fd = idle[1], .events = POLLIN};
    ck_assert_int_eq(poll(&second, 1, 200), 0);
    for (int i = 1; i < (int)edge.most; i++)
        close(idle[i]);
}

END_TEST

/*
 * Sends three times as many incomplete requests as there are connections. Each complete request
 * among them must be answered.
 */
START_TEST(incomplete_requests_do_not_block_others)
{
    int half[3 * LIMIT_PAGE_CONNECTIONS];
    const int count = (int)(sizeof half / sizeof *half);
    for (int i = 0; i < count; i++) {
        half[i] = visit();
        say(half[i], "GET / HTTP/1.1\r\nX: ", 19);
        if (i % 16 == 15)
            ck_assert_int_eq(status_of(ask("GET / HTTP/1.1\r\n" HEAD "\r\n")), 200);
    }
    ck_assert_int_eq(status_of(ask("GET / HTTP/1.1\r\n" HEAD "\r\n")), 200);
    for (int i = 0; i < count; i++)
        close(half[i]);
}

END_TEST

/*
 * A client that sends a byte now and then must be disconnected. The test sets the clock forward
 * instead of waiting.
 */
static atomic_int clock_ahead_s;
int __real_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now);

int
__wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
    const int rc = __real_clock_gettime(clock, now);
    if (clock == CLOCK_BOOTTIME)
        now->tv_sec += atomic_load(&clock_ahead_s);
    return rc;
}

/* Checks that the server ends a connection after so many seconds, and not before. */
static void
must_end_after(int fd, int64_t seconds)
{
    /* the server has noticed it */
    ck_assert_int_eq(status_of(ask("GET / HTTP/1.1\r\n" HEAD "\r\n")), 200);
    atomic_store(&clock_ahead_s, (int)seconds - 1);
    web_server_tick(server);
    struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
    ck_assert_int_eq(poll(&poll_fd, 1, 200), 0);
    atomic_store(&clock_ahead_s, (int)seconds + 1);
    web_server_tick(server);
    atomic_store(&clock_ahead_s, 0);
    ck_assert_int_eq(status_of(hear(fd)), 0);
}

START_TEST(a_connection_ends_in_time)
{
    const struct edge edge = EDGE(PAGE_SECONDS);
    const int fd = visit();
    say(fd, "GET / HTTP/1.1\r\nX: ", 19);
    must_end_after(fd, edge.most);
    ck_assert_int_eq(status_of(ask("GET / HTTP/1.1\r\n" HEAD "\r\n")), 200);
}

END_TEST

START_TEST(an_upload_has_more_time)
{
    const struct edge edge = EDGE(PAGE_UPLOAD_SECONDS);
    must_end_after(begin_upload(2, ""), edge.most);
}

END_TEST

/* A request whose answer is not read yet. */
static int
begin(const char *path)
{
    char request[128];
    const int fd = visit();
    snprintf(request, sizeof request, "GET %s HTTP/1.1\r\n" HEAD "\r\n", path);
    say(fd, request, strlen(request));
    return fd;
}

/* The second answer follows after all that was sent before the first. */
static void
ask_now(void)
{
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(status_of(ask("GET /now HTTP/1.1\r\n" HEAD "\r\n")), 200);
}

START_TEST(a_slow_answer_delays_no_other_that_is_due_now)
{
    const int slow = begin("/slow");
    sem_wait(&slow_begun);
    const int first = begin("/first");
    ask_now();
    const int last = begin("/last");
    ask_now();
    const int next = begin("/next");
    ask_now();
    sem_post(&slow_may_end);
    ck_assert_ptr_nonnull(strstr(hear(slow), "path /slow"));
    ck_assert_ptr_nonnull(strstr(hear(next), "path /next"));
    ck_assert_ptr_nonnull(strstr(hear(first), "path /first"));
    ck_assert_ptr_nonnull(strstr(hear(last), "path /last"));
    ck_assert_str_eq(order, "snfl");
}

END_TEST

/* More than the server takes: the oldest that wait are ended, and each newcomer is answered. */
START_TEST(requests_that_wait_leave_room)
{
    enum { WAITING = 3 * LIMIT_PAGE_CONNECTIONS };

    int fds[WAITING], heard = 0;
    const int slow = begin("/slow");
    sem_wait(&slow_begun);
    for (int i = 0; i < WAITING; i++) {
        fds[i] = begin("/wait");
        if (i % 16 == 0)
            ask_now();
    }
    ask_now();
    sem_post(&slow_may_end);
    for (int i = 0; i < WAITING; i++)
        heard += status_of(hear(fds[i])) == 200;
    close(slow);
    ck_assert_int_gt(heard, 0);
    ck_assert_int_le(heard, LIMIT_PAGE_CONNECTIONS);
}

END_TEST

/* What waits ends with the server, which close_server sees. */
START_TEST(a_server_ends_with_requests_that_wait)
{
    const int slow = begin("/slow"), waits = begin("/wait");
    sem_wait(&slow_begun);
    sem_post(&slow_may_end);
    close(slow);
    close(waits);
}

END_TEST

/* A request for a plane, of a session that its cookie tells. */
static int
begin_plane(int session)
{
    char request[128];
    const int fd = visit();
    snprintf(request, sizeof request, "GET /plane HTTP/1.1\r\n" HEAD "Cookie: s=%d\r\n\r\n", session);
    say(fd, request, strlen(request));
    return fd;
}

static void
must_be_too_many(int fd)
{
    const char *text = hear(fd);
    ck_assert_int_eq(status_of(text), 429);
    ck_assert_ptr_nonnull(strstr(text, "Retry-After: 1"));
}

/* Planes wait for no other answer, and no other answer for planes. */
START_TEST(planes_are_limited_by_session_and_in_all)
{
    const struct edge all = EDGE(PAGE_PLANES), own = EDGE(PAGE_PLANES_SESSION);
    int fds[64], count = 0;
    ck_assert_int_le(all.most, 64);
    ck_assert_int_eq(all.most % own.most, 0);
    const int slow = begin("/slow");
    sem_wait(&slow_begun);
    for (int session = 0; count < all.most; session++) {
        for (int i = 0; i < own.most; i++)
            fds[count++] = begin_plane(session);
        ask_now();
        must_be_too_many(begin_plane(session));
    }
    must_be_too_many(begin_plane(999));
    const int first = begin("/first");
    sem_post(&slow_may_end);
    ck_assert_ptr_nonnull(strstr(hear(slow), "path /slow"));
    ck_assert_ptr_nonnull(strstr(hear(first), "path /first"));
    for (int i = 0; i < count; i++)
        sem_post(&plane_may_end);
    for (int i = 0; i < count; i++)
        ck_assert_int_eq(status_of(hear(fds[i])), 200);
    /* The seats are free once the answers are sent. */
    for (int i = 0; i < 3 * all.most; i++) {
        sem_post(&plane_may_end);
        ck_assert_int_eq(status_of(hear(begin_plane(i))), 200);
    }
}

END_TEST

/* The seat of a client that goes away is free again once its plane is made. */
START_TEST(a_client_that_leaves_leaves_its_seat)
{
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < LIMIT_PAGE_PLANES_SESSION; i++)
            close(begin_plane(7));
        ask_now();
        for (int i = 0; i < LIMIT_PAGE_PLANES_SESSION + 1; i++)
            sem_post(&plane_may_end);
        int status = 429;
        while (status == 429)
            status = status_of(hear(begin_plane(7)));
        ck_assert_int_eq(status, 200);
    }
}

END_TEST

/* Planes that wait end with the server. */
START_TEST(a_server_ends_with_planes_that_wait)
{
    for (int i = 0; i < LIMIT_PAGE_PLANES; i++)
        close(begin_plane(i));
    ask_now();
    for (int i = 0; i < LIMIT_PAGE_PLANES; i++)
        sem_post(&plane_may_end);
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("page_server");
    TCase *tests = tcase_create("server");
    tcase_add_checked_fixture(tests, open_server, close_server);
    tcase_add_test(tests, a_request_is_answered);
    tcase_add_test(tests, a_response_has_all_headers_or_is_not_sent);
    tcase_add_test(tests, only_read_requests_are_accepted);
    tcase_add_test(tests, a_post_has_a_body_of_limited_size);
    tcase_add_test(tests, a_body_comes_in_parts_or_ends);
    tcase_add_test(tests, an_upload_has_a_limited_size);
    tcase_add_test(tests, a_refused_upload_is_read_first);
    tcase_add_test(tests, so_many_uploads_and_no_more);
    tcase_add_test(tests, an_upload_has_more_time);
    tcase_add_test(tests, nonsense_ends);
    tcase_add_test(tests, a_request_has_bounds);
    tcase_add_test(tests, so_many_connections_and_no_more);
    tcase_add_test(tests, incomplete_requests_do_not_block_others);
    tcase_add_test(tests, a_connection_ends_in_time);
    tcase_add_test(tests, a_slow_answer_delays_no_other_that_is_due_now);
    tcase_add_test(tests, requests_that_wait_leave_room);
    tcase_add_test(tests, a_server_ends_with_requests_that_wait);
    tcase_add_test(tests, planes_are_limited_by_session_and_in_all);
    tcase_add_test(tests, a_client_that_leaves_leaves_its_seat);
    tcase_add_test(tests, a_server_ends_with_planes_that_wait);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
