/*
 * web_server.c - see web_server.h.
 *
 * libmicrohttpd parses requests on its own thread, and limits memory and idle time. This file
 * limits the age of connections, because a peer that sends a byte now and then is never idle. It
 * also limits their number: a new connection beyond the limit replaces one without a complete
 * request, so that /healthz is always answered.
 *
 * A request that is not answered at once suspends its connection and waits in a queue. A thread of
 * the queue makes the answer and resumes the connection. Its handler then sends the answer.
 */
#include "service/web/server/web_server.h"

#include "base/durable.h"
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
#include <strings.h>
#include <sys/mman.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* memory for the request and the head of the answer */
#define CONNECTION_BYTES  (2 * LIMIT_PAGE_REQUEST_BYTES)
#define CLOSE_SECONDS     2 /* wait for closed connections */
#define MAKERS_BESIDE     4
#define SPARE_CONNECTIONS 16 /* extra connections of libmicrohttpd while others are being closed */

struct web_server_client {
    LIST_ENTRY(web_server_client) next;
    int fd;
    int64_t since_ms;
    char host[INET6_ADDRSTRLEN];
    struct web_server_job *waits; /* its job in the queue, or NULL */
    bool has_request;             /* its request is complete */
    bool uploads;                 /* an upload that was admitted */
    bool ended;                   /* closed to make room, but still open in libmicrohttpd */
};

/* A request whose body is read, or whose connection is suspended. The connection owns the texts of the request. */
struct web_server_job {
    TAILQ_ENTRY(web_server_job) next;
    char *body; /* of a POST; NULL: none */
    size_t body_size, body_capacity;
    bool is_reading, is_upload; /* the body of an upload is the file request.upload */
    bool is_refused;            /* an upload: its body is read without effect, then comes the answer */
    struct MHD_Connection *connection;
    struct web_server_client *client;
    struct web_server_queue *queue;
    struct web_request request;
    struct web_reply answer; /* bytes NULL: no answer */
    int64_t since_ms;
    int seat; /* of a job that is WEB_SERVER_BESIDE, until its answer is sent; else -1 */
};

/* Jobs, and the threads that make their answers. */
struct web_server_queue {
    struct web_server *server;
    TAILQ_HEAD(jobs, web_server_job) jobs;
    pthread_cond_t has_job; /* signalled for a new job, and for closing */
    pthread_t makers[MAKERS_BESIDE];
    int maker_count;
};

struct web_server {
    struct MHD_Daemon *daemon;
    struct web_server_events events;
    pthread_mutex_t lock; /* protects the lists of connections and jobs */
    pthread_cond_t empty; /* signalled when the list is empty */
    LIST_HEAD(clients, web_server_client) clients;
    struct web_server_queue in_turn, beside, uploads;
    int upload_count;
    uint64_t sessions[LIMIT_PAGE_PLANES]; /* of each seat; 0: free */
    bool is_closing;
};

static const char *const web_server_headers[][2] = {
    {"Content-Security-Policy",
     "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; "
     "frame-ancestors 'none'"},
    {"X-Content-Type-Options", "nosniff"},
    {"X-Frame-Options", "DENY"},
    /* no-referrer would make browsers send the Origin of a form as null */
    {"Referrer-Policy", "same-origin"},
    {"Cross-Origin-Opener-Policy", "same-origin"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
    {"Connection", "close"},
};

/* Of a page with the slice viewer, whose script requests planes. It replaces the first row above. */
static const char web_server_script_policy[] =
    "default-src 'none'; style-src 'self'; img-src 'self'; script-src 'self'; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'";

/* -------------------------------------------------------------------------------- answers ---- */

/* Sends an answer. It must have all headers, because browsers enforce them. Without memory, the connection ends. */
static enum MHD_Result
web_server_send(struct web_server *server, struct MHD_Connection *connection, struct web_reply *answer,
                int64_t since_ms)
{
    struct stat status = {0};
    struct MHD_Response *response = NULL;
    if (!answer->file)
        response = MHD_create_response_from_buffer(answer->size, answer->bytes, MHD_RESPMEM_MUST_FREE);
    else if (fstat(answer->file, &status) == 0)
        response = MHD_create_response_from_fd64((uint64_t)status.st_size, answer->file);
    if (!response || answer->file)
        free(answer->bytes);
    if (!response && answer->file)
        close(answer->file);
    answer->bytes = NULL; /* the response owns them, and the file */
    answer->file = 0;
    bool complete = response != NULL;
    if (response && answer->link)
        complete = MHD_add_response_header(response, "Link", answer->link);
    free(answer->link);
    answer->link = NULL;
    if (!response)
        return MHD_NO;
    for (size_t i = answer->runs_script ? 1 : 0; i < sizeof web_server_headers / sizeof *web_server_headers; i++)
        complete &= MHD_add_response_header(response, web_server_headers[i][0], web_server_headers[i][1]);
    if (answer->runs_script)
        complete &= MHD_add_response_header(response, web_server_headers[0][0], web_server_script_policy);
    complete &= MHD_add_response_header(response, "Cache-Control",
                                        answer->is_asset ? "private, max-age=31536000, immutable"
                                        : answer->keeps  ? "private, max-age=3600"
                                                         : "no-store");
    complete &= MHD_add_response_header(response, "Content-Type", answer->type);
    if (*answer->etag)
        complete &= MHD_add_response_header(response, "ETag", answer->etag);
    if (answer->status == MHD_HTTP_METHOD_NOT_ALLOWED)
        complete &= MHD_add_response_header(response, "Allow", answer->posts_only ? "POST" : "GET, HEAD");
    if (answer->location)
        complete &= MHD_add_response_header(response, "Location", answer->location);
    free(answer->location);
    answer->location = NULL;
    if (answer->status == MHD_HTTP_TOO_MANY_REQUESTS)
        complete &= MHD_add_response_header(response, "Retry-After", "1");
    if (*answer->cookie)
        complete &= MHD_add_response_header(response, "Set-Cookie", answer->cookie);
    if (answer->needs_token)
        complete &= MHD_add_response_header(response, "WWW-Authenticate", "Basic realm=\"Noctule\", charset=\"UTF-8\"");
    const enum MHD_Result queued =
        complete ? MHD_queue_response(connection, (unsigned)answer->status, response) : MHD_NO;
    MHD_destroy_response(response);
    if (!complete)
        return MHD_NO;
    server->events.answered(server->events.context, answer->status, (double)(clock_steady_ms() - since_ms) / 1000.0);
    return queued;
}

/* ------------------------------------------------------------------------------- requests ---- */

static const char *
web_server_header(struct MHD_Connection *connection, const char *name)
{
    const char *value = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
    return value ? value : "";
}

static enum MHD_Result
web_server_add_parameter(void *context, enum MHD_ValueKind kind, const char *name, size_t name_size, const char *value,
                         size_t value_size)
{
    struct web_request *request = context;
    (void)kind;
    if (request->parameter_count < WEB_PARAMETERS)
        request->parameters[request->parameter_count] = (struct web_parameter){
            name, value ? value : "", strlen(name) != name_size || (value && strlen(value) != value_size)};
    request->parameter_count++;
    return MHD_YES;
}

struct web_server_search {
    const char *name, *value;
    int count;
};

static enum MHD_Result
web_server_on_header(void *context, enum MHD_ValueKind kind, const char *name, const char *value)
{
    struct web_server_search *search = context;
    (void)kind;
    if (strcasecmp(name, search->name) != 0)
        return MHD_YES;
    search->count++;
    search->value = value;
    return MHD_YES;
}

/* A header that a proxy sets must be unique: a second one is the client's. */
static const char *
web_server_unique_header(const void *connection, const char *name)
{
    struct web_server_search search = {.name = name};
    MHD_get_connection_values((struct MHD_Connection *)(uintptr_t)connection, MHD_HEADER_KIND, web_server_on_header,
                              &search);
    return search.count == 1 && search.value ? search.value : "";
}

/* Makes an answer, or with `why` a refusal. Without memory, answer->bytes is NULL. */
static void
web_server_make(struct web_server *server, const struct web_request *request, int status, const char *why,
                struct web_reply *answer)
{
    struct text_stream stream;
    *answer = (struct web_reply){.status = MHD_HTTP_OK, .type = "text/html; charset=utf-8"};
    if (text_open(&stream) != 0)
        return;
    answer->out = stream.out;
    if (why) {
        answer->status = status;
        answer->type = "text/plain; charset=utf-8";
        if (server->events.refuse)
            server->events.refuse(server->events.context, request->path, status, why, answer);
        else
            fprintf(answer->out, "%s\n", why);
    } else {
        server->events.answer(server->events.context, request, answer);
    }
    const int rc = text_close(&stream);
    if (rc) {
        free(answer->bytes);
        answer->bytes = NULL;
        if (answer->file)
            close(answer->file);
        answer->file = 0;
    } else if (answer->bytes) {
        free(stream.bytes);
    } else {
        answer->bytes = stream.bytes;
        answer->size = stream.size;
    }
}

/* Returns whether a header Content-Length is a number up to the limit. */
static bool
web_server_fits(const char *length, int64_t limit)
{
    const size_t digits = strspn(length, "0123456789");
    return !length[digits] && digits < 19 && strtoll(length, NULL, 10) <= limit;
}

/* Returns why the server itself refuses the request, with the status; NULL: it does not. */
static const char *
web_server_find_refusal(struct MHD_Connection *connection, const char *method, enum web_server_posts takes_posts,
                        int *status)
{
    const bool reads = strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0;
    const bool posts = takes_posts && strcmp(method, "POST") == 0;
    const char *length = web_server_header(connection, "Content-Length");
    const bool is_chunked = *web_server_header(connection, "Transfer-Encoding") != '\0';
    const bool has_body = is_chunked || (*length && strcmp(length, "0") != 0);
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    if (info && info->header_size > LIMIT_PAGE_REQUEST_BYTES) {
        *status = MHD_HTTP_REQUEST_HEADER_FIELDS_TOO_LARGE;
        return "the request is too large";
    }
    if (posts) {
        const int64_t limit =
            takes_posts == WEB_SERVER_UPLOADS ? (int64_t)LIMIT_PAGE_UPLOAD_MIB << 20 : LIMIT_PAGE_BODY_BYTES;
        *status = is_chunked || !*length ? MHD_HTTP_LENGTH_REQUIRED : MHD_HTTP_CONTENT_TOO_LARGE;
        return is_chunked || !*length              ? "the request must have a Content-Length"
               : web_server_fits(length, limit)    ? NULL
               : takes_posts == WEB_SERVER_UPLOADS ? "the file has more than 256 MiB"
                                                   : "the body is too large";
    }
    const bool only_posts = takes_posts == WEB_SERVER_ONLY_POSTS || takes_posts == WEB_SERVER_UPLOADS;
    if (!reads || (has_body && only_posts)) {
        *status = MHD_HTTP_METHOD_NOT_ALLOWED;
        return only_posts    ? "this address takes POST"
               : takes_posts ? "this address takes GET, HEAD and POST"
                             : "this address is read-only";
    }
    *status = MHD_HTTP_CONTENT_TOO_LARGE;
    return has_body ? "a request must not have a body" : NULL;
}

/* Returns a hash of the peer's address and credentials; never 0. */
static uint64_t
web_server_session(struct MHD_Connection *connection, const struct web_server_client *client)
{
    const char *const texts[] = {client->host, web_server_header(connection, "Authorization"),
                                 web_server_header(connection, "Cookie"),
                                 web_server_header(connection, "X-Forwarded-For")};
    uint64_t hash = 0xcbf29ce484222325; /* FNV-1a */
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        for (const char *at = texts[i]; *at; at++)
            hash = (hash ^ (uint8_t)*at) * 0x100000001b3;
    return hash ? hash : 1;
}

/* Returns a free seat, or -1 if there is none or the session has its share. */
static int
web_server_take_seat(struct web_server *server, uint64_t session)
{
    int seat = -1, own = 0;
    pthread_mutex_lock(&server->lock);
    for (int i = 0; i < LIMIT_PAGE_PLANES; i++) {
        own += server->sessions[i] == session;
        seat = server->sessions[i] ? seat : i;
    }
    if (own >= LIMIT_PAGE_PLANES_SESSION)
        seat = -1;
    if (seat >= 0)
        server->sessions[seat] = session;
    pthread_mutex_unlock(&server->lock);
    return seat;
}

static void
web_server_leave_seat(struct web_server *server, int seat)
{
    if (seat < 0)
        return;
    pthread_mutex_lock(&server->lock);
    server->sessions[seat] = 0;
    pthread_mutex_unlock(&server->lock);
}

/* Admits an upload to one of the LIMIT_PAGE_UPLOADS places. Returns why not, with the status; NULL: it is admitted. */
static const char *
web_server_admit_upload(struct web_server *server, struct web_server_job *job, int *status)
{
    const char *why = server->events.refuses_upload(server->events.context, &job->request, status);
    if (why)
        return why;
    pthread_mutex_lock(&server->lock);
    job->is_upload = server->upload_count < LIMIT_PAGE_UPLOADS;
    if (job->is_upload) {
        server->upload_count++;
        job->client->uploads = job->client->has_request = true; /* newcomers do not replace it */
    }
    pthread_mutex_unlock(&server->lock);
    *status = MHD_HTTP_TOO_MANY_REQUESTS;
    return job->is_upload ? NULL : "other files are being uploaded: wait";
}

static void
web_server_leave_upload(struct web_server *server, const struct web_server_job *job)
{
    if (!job->is_upload)
        return;
    if (job->request.upload)
        close(job->request.upload);
    pthread_mutex_lock(&server->lock);
    server->upload_count--;
    pthread_mutex_unlock(&server->lock);
}

/* Suspends the connection until a thread of the queue has made its answer. */
static enum MHD_Result
web_server_enqueue(struct web_server *server, struct web_server_job *job, enum web_server_turn turn)
{
    job->queue = job->is_upload ? &server->uploads : turn == WEB_SERVER_BESIDE ? &server->beside : &server->in_turn;
    pthread_mutex_lock(&server->lock);
    const bool waits = !server->is_closing && !job->client->ended;
    if (waits) {
        MHD_suspend_connection(job->connection);
        job->client->waits = job;
        if (turn == WEB_SERVER_NEXT)
            TAILQ_INSERT_HEAD(&job->queue->jobs, job, next);
        else
            TAILQ_INSERT_TAIL(&job->queue->jobs, job, next);
        pthread_cond_signal(&job->queue->has_job);
    }
    pthread_mutex_unlock(&server->lock);
    return waits ? MHD_YES : MHD_NO;
}

static void
web_server_note_request(struct web_server *server, struct web_server_client *client)
{
    pthread_mutex_lock(&server->lock);
    if (client)
        client->has_request = true;
    pthread_mutex_unlock(&server->lock);
}

/* Called for each part of the body, and when it is complete. */
static enum MHD_Result
web_server_read_body(struct web_server *server, struct web_server_job *job, const char *body, size_t *size)
{
    if (*size > job->body_capacity - job->body_size)
        return MHD_NO; /* more than Content-Length */
    if (*size == 0 && job->is_refused) {
        job->is_reading = false;
        return web_server_send(server, job->connection, &job->answer, job->since_ms);
    }
    if (*size > 0) {
        if (job->body)
            memcpy(job->body + job->body_size, body, *size);
        if (job->is_upload && durable_write_all(job->request.upload, body, *size)) /* memory is short */
            return MHD_NO;
        job->body_size += *size;
        *size = 0;
        return MHD_YES;
    }
    job->is_reading = false;
    if (job->body) {
        job->body[job->body_size] = '\0';
        job->request.body = job->body;
    }
    job->request.body_size = job->body_size;
    web_server_note_request(server, job->client);
    return web_server_enqueue(server, job, WEB_SERVER_IN_TURN);
}

/* Keeps the job from now on. A POST waits for its body first. */
static enum MHD_Result
web_server_keep(struct web_server *server, const struct web_server_job *asked, enum web_server_turn turn, void **state)
{
    struct web_server_job *job = malloc(sizeof *job);
    if (!job) {
        free(asked->answer.bytes);
        web_server_leave_seat(server, asked->seat);
        web_server_leave_upload(server, asked);
        return MHD_NO;
    }
    *job = *asked;
    *state = job;
    if (!job->request.posts && !job->is_refused)
        return web_server_enqueue(server, job, turn);
    job->body_capacity = (size_t)strtoll(web_server_header(job->connection, "Content-Length"), NULL, 10);
    job->is_reading = true;
    if (job->is_refused)
        return MHD_YES;
    if (!job->is_upload)
        job->body = malloc(job->body_capacity + 1);
    else if ((job->request.upload = memfd_create("upload", MFD_CLOEXEC | MFD_ALLOW_SEALING)) < 0)
        job->request.upload = 0;
    return job->body || job->request.upload ? MHD_YES : MHD_NO;
}

static struct web_request
web_server_read_request(struct MHD_Connection *connection, const struct web_server_client *client, const char *path)
{
    struct web_request request = {.path = path,
                                  .host = web_server_header(connection, "Host"),
                                  .authorization = web_server_header(connection, "Authorization"),
                                  .accept = web_server_header(connection, "Accept"),
                                  .if_none_match = web_server_header(connection, "If-None-Match"),
                                  .origin = web_server_header(connection, "Origin"),
                                  .fetch_site = web_server_header(connection, "Sec-Fetch-Site"),
                                  .cookie = web_server_header(connection, "Cookie"),
                                  .content_type = web_server_header(connection, "Content-Type"),
                                  .address = client ? client->host : "",
                                  .header = web_server_unique_header,
                                  .connection = connection};
    for (int i = 0; i < REQUEST_VALUE_COUNT; i++) {
        const char *value = MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, web_request_value_names[i]);
        request.values[i] = value ? value : "";
    }
    MHD_get_connection_values_n(connection, MHD_GET_ARGUMENT_KIND, web_server_add_parameter, &request);
    return request;
}

/* Called when the request's head is there, whatever comes behind it; then for each part of a body; and again for a
 * connection that was resumed. */
static enum MHD_Result
web_server_on_request(void *context, struct MHD_Connection *connection, const char *path, const char *method,
                      const char *version, const char *body, size_t *body_size, void **state)
{
    struct web_server *server = context;
    struct web_server_job *kept = *state;
    int status;
    (void)version;
    if (kept && kept->is_reading)
        return web_server_read_body(server, kept, body, body_size);
    if (kept)
        return kept->answer.bytes ? web_server_send(server, connection, &kept->answer, kept->since_ms) : MHD_NO;
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    struct web_server_client *client = info ? info->socket_context : NULL;
    struct web_server_job job = {.connection = connection,
                                 .client = client,
                                 .request = web_server_read_request(connection, client, path),
                                 .since_ms = clock_steady_ms(),
                                 .seat = -1};
    const enum web_server_posts takes_posts = client && server->events.takes_posts
                                                  ? server->events.takes_posts(server->events.context, path)
                                                  : WEB_SERVER_NO_POSTS;
    const char *why = web_server_find_refusal(connection, method, takes_posts, &status);
    if (!why && takes_posts == WEB_SERVER_UPLOADS && strcmp(method, "POST") == 0)
        why = web_server_admit_upload(server, &job, &status);
    job.request.posts = !why && strcmp(method, "POST") == 0;
    if (!job.request.posts)
        web_server_note_request(server, client);
    enum web_server_turn turn = why || !job.client || !server->events.turn ? WEB_SERVER_NOW : server->events.turn(path);
    if (turn == WEB_SERVER_BESIDE) {
        job.seat = web_server_take_seat(server, web_server_session(connection, client));
        if (job.seat < 0) {
            why = "too many planes are requested at once";
            status = MHD_HTTP_TOO_MANY_REQUESTS;
            turn = WEB_SERVER_NOW;
        }
    }
    if (turn != WEB_SERVER_NOW || job.request.posts)
        return web_server_keep(server, &job, turn, state);
    web_server_make(server, &job.request, status, why, &job.answer);
    /* A proxy that still sends the file reads no answer, and reports an error of its own. */
    job.is_refused = takes_posts == WEB_SERVER_UPLOADS && strcmp(method, "POST") == 0 &&
                     status != MHD_HTTP_CONTENT_TOO_LARGE && status != MHD_HTTP_LENGTH_REQUIRED &&
                     !*web_server_header(connection, "Expect");
    if (job.answer.bytes && job.is_refused)
        return web_server_keep(server, &job, turn, state);
    return job.answer.bytes ? web_server_send(server, connection, &job.answer, job.since_ms) : MHD_NO;
}

static void
web_server_on_completed(void *context, struct MHD_Connection *connection, void **state,
                        enum MHD_RequestTerminationCode code)
{
    struct web_server_job *job = *state;
    (void)connection, (void)code;
    if (job) { /* the rest is not sent */
        web_server_leave_seat(context, job->seat);
        web_server_leave_upload(context, job);
        free(job->answer.bytes);
        free(job->answer.location);
        free(job->answer.link);
        free(job->body);
        if (job->answer.file)
            close(job->answer.file);
    }
    free(job);
    *state = NULL;
}

/* ---------------------------------------------------------------------------- the makers ---- */

/* With the lock. */
static void
web_server_dequeue(struct web_server_job *job)
{
    TAILQ_REMOVE(&job->queue->jobs, job, next);
    job->client->waits = NULL;
}

static void *
web_server_make_all(void *context)
{
    struct web_server_queue *queue = context;
    struct web_server *server = queue->server;
    pthread_mutex_lock(&server->lock);
    while (!server->is_closing) {
        struct web_server_job *job = TAILQ_FIRST(&queue->jobs);
        if (!job) {
            pthread_cond_wait(&queue->has_job, &server->lock);
            continue;
        }
        web_server_dequeue(job);
        pthread_mutex_unlock(&server->lock);
        web_server_make(server, &job->request, MHD_HTTP_OK, NULL, &job->answer);
        MHD_resume_connection(job->connection); /* its job may be freed from here on */
        pthread_mutex_lock(&server->lock);
    }
    pthread_mutex_unlock(&server->lock);
    return NULL;
}

/* With the lock. A connection that waits goes on without an answer: libmicrohttpd closes it. */
static void
web_server_give_up(struct web_server_job *job)
{
    web_server_dequeue(job);
    MHD_resume_connection(job->connection);
}

static int
web_server_open_queue(struct web_server *server, struct web_server_queue *queue, int makers)
{
    int failure = 0;
    queue->server = server;
    TAILQ_INIT(&queue->jobs);
    pthread_cond_init(&queue->has_job, NULL);
    while (queue->maker_count < makers && failure == 0) {
        failure = pthread_create(&queue->makers[queue->maker_count], NULL, web_server_make_all, queue);
        queue->maker_count += failure == 0;
    }
    return -failure;
}

static void
web_server_close_queue(struct web_server_queue *queue)
{
    struct web_server_job *job;
    pthread_mutex_lock(&queue->server->lock);
    while ((job = TAILQ_FIRST(&queue->jobs)))
        web_server_give_up(job);
    pthread_cond_broadcast(&queue->has_job);
    pthread_mutex_unlock(&queue->server->lock);
    while (queue->maker_count > 0)
        pthread_join(queue->makers[--queue->maker_count], NULL);
}

/* Ends all waits. Later connections do not wait. */
static void
web_server_stop_makers(struct web_server *server)
{
    pthread_mutex_lock(&server->lock);
    server->is_closing = true;
    pthread_mutex_unlock(&server->lock);
    web_server_close_queue(&server->in_turn);
    web_server_close_queue(&server->beside);
    web_server_close_queue(&server->uploads);
}

/* ---------------------------------------------------------------------------- connections ---- */

/* Finds the oldest connection of the host (NULL: of any host) without a complete request, else the
 * oldest one. Never returns the newcomer. Sets *count to the open connections of that host. The
 * caller must hold the lock. */
static struct web_server_client *
web_server_oldest(const struct web_server *server, const char *host, const struct web_server_client *newcomer,
                  size_t *count)
{
    struct web_server_client *client, *oldest = NULL;
    *count = 0;
    LIST_FOREACH(client, &server->clients, next)
    { /* newest first */
        if (client->ended || (host && strcmp(client->host, host) != 0))
            continue;
        ++*count;
        if (client != newcomer && (!oldest || oldest->has_request || !client->has_request))
            oldest = client;
    }
    return oldest;
}

/* Closes a connection. The caller must hold the lock. */
static void
web_server_end(struct web_server_client *client)
{
    client->ended = true;
    shutdown(client->fd, SHUT_RDWR);
    if (client->waits)
        web_server_give_up(client->waits);
}

/* Closes a connection if there are too many. If the newcomer's host has more than half of them,
 * closes one of that host. The caller must hold the lock. */
static void
web_server_make_room(struct web_server *server, const struct web_server_client *newcomer)
{
    size_t of_all, of_host;
    struct web_server_client *oldest = web_server_oldest(server, NULL, newcomer, &of_all);
    struct web_server_client *own = web_server_oldest(server, newcomer->host, newcomer, &of_host);
    if (of_all <= LIMIT_PAGE_CONNECTIONS)
        return;
    if (of_host > LIMIT_PAGE_CONNECTIONS / 2)
        oldest = own;
    web_server_end(oldest);
}

static void
web_server_on_connection(void *context, struct MHD_Connection *connection, void **socket_context,
                         enum MHD_ConnectionNotificationCode event)
{
    struct web_server *server = context;
    struct web_server_client *client = *socket_context;
    pthread_mutex_lock(&server->lock);
    if (event == MHD_CONNECTION_NOTIFY_STARTED) {
        const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
        client = info ? calloc(1, sizeof *client) : NULL;
        if (client) {
            *client = (struct web_server_client){.fd = info->connect_fd, .since_ms = clock_steady_ms()};
            info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
            const struct sockaddr *address = info ? info->client_addr : NULL;
            if (address && address->sa_family == AF_INET)
                inet_ntop(AF_INET, &((const struct sockaddr_in *)(const void *)address)->sin_addr, client->host,
                          INET6_ADDRSTRLEN);
            else if (address && address->sa_family == AF_UNIX)
                snprintf(client->host, sizeof client->host, "socket");
            else if (address && address->sa_family == AF_INET6)
                inet_ntop(AF_INET6, &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr, client->host,
                          INET6_ADDRSTRLEN);
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
    const int64_t now_ms = clock_steady_ms();
    struct web_server_client *client;
    pthread_mutex_lock(&server->lock);
    LIST_FOREACH(client, &server->clients, next)
    if (client->since_ms < now_ms - 1000 * (client->uploads ? LIMIT_PAGE_UPLOAD_SECONDS : LIMIT_PAGE_SECONDS))
        web_server_end(client);
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
    pthread_cond_destroy(&server->in_turn.has_job);
    pthread_cond_destroy(&server->beside.has_job);
    pthread_cond_destroy(&server->uploads.has_job);
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
    int rc = web_server_open_queue(server, &server->in_turn, 1);
    const int beside = web_server_open_queue(server, &server->beside, MAKERS_BESIDE);
    const int uploads = web_server_open_queue(server, &server->uploads, 1);
    rc = rc ? rc : beside ? beside : uploads;
    if (rc) {
        web_server_stop_makers(server);
        web_server_free(server);
        return rc;
    }
    errno = 0;
    server->daemon = MHD_start_daemon(
        MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG, 0, NULL, NULL,
        web_server_on_request, server, MHD_OPTION_EXTERNAL_LOGGER, web_server_on_log, NULL, MHD_OPTION_LISTEN_SOCKET,
        fd, MHD_OPTION_CONNECTION_LIMIT, (unsigned)(LIMIT_PAGE_CONNECTIONS + SPARE_CONNECTIONS),
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)LIMIT_PAGE_SECONDS, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        (size_t)CONNECTION_BYTES, MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_NOTIFY_CONNECTION,
        web_server_on_connection, server, MHD_OPTION_NOTIFY_COMPLETED, web_server_on_completed, server, MHD_OPTION_END);
    if (!server->daemon) {
        const int error = errno ? -errno : -ENOMEM;
        web_server_stop_makers(server);
        web_server_free(server);
        return error;
    }
    *opened = server;
    return 0;
}

void
web_server_close(struct web_server *server)
{
    if (!server)
        return;
    /* no new connections; the descriptor is ours again */
    const int fd = MHD_quiesce_daemon(server->daemon);
    web_server_stop_makers(server);
    /* Closes all connections and waits until they are gone. If libmicrohttpd 0.9.75 stops while it refuses a request that
     * is too large, it reads an invalid answer. */
    struct timespec until;
    struct web_server_client *client;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += CLOSE_SECONDS;
    pthread_mutex_lock(&server->lock);
    for (client = LIST_FIRST(&server->clients); client; client = LIST_NEXT(client, next))
        shutdown(client->fd, SHUT_RDWR);
    while (!LIST_EMPTY(&server->clients) && pthread_cond_timedwait(&server->empty, &server->lock, &until) == 0)
        continue;
    pthread_mutex_unlock(&server->lock);
    MHD_stop_daemon(server->daemon);
    if (fd >= 0)
        close(fd);
    web_server_free(server);
}
