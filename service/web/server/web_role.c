/*
 * web_role.c - the process that serves the web UI. It binds its port and opens the database, then
 * confines itself and answers requests. The daemon sends it the alerts.
 *
 * The loop's thread handles the pipe and the timer; the server's threads answer. A new
 * configuration starts a new process.
 */
#include "service/common/role.h"

#include "db/report.h"
#include "service/common/bind_at.h"
#include "service/common/clock.h"
#include "service/common/confine/call_filter.h"
#include "service/common/confine/confine.h"
#include "service/common/layout.h"
#include "service/common/log.h"
#include "service/common/wire/child.h"
#include "service/common/wire/handed.h"
#include "service/web/decide/web_decide.h"
#include "service/web/server/web_assets.h"
#include "service/web/server/web_server.h"
#include "service/web/web.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define TICK_MS 1000
#define BACKLOG 64

/* Answers that are not in the metrics yet. */
struct role_counts {
    pthread_mutex_t lock;

    struct {
        int status;
        double count;
    } answers[16];

    double seconds;
};

#define REPLY_SECONDS  10 /* of the daemon to a decision */
#define DECIDED_TEXT   1024
#define STORED_SECONDS 120 /* the same to an upload: it is copied, synced and examined */

/* The decision that waits for the daemon, and the upload: one thread of the server makes the answers of each, one at a
 * time. Tokens of uploads are odd. */
struct role_decision {
    pthread_mutex_t lock;
    pthread_cond_t done;
    const struct web_decision *decision; /* NULL: none, or sent */
    int64_t token;                       /* of the last one */
    bool is_answered, is_closed;
    int status;
    char message[DECIDED_TEXT];
};

struct web_role {
    struct child child;
    struct role_decision decisions[2]; /* decision, upload */
    uv_async_t wake;                   /* the loop's thread sends them */
    uv_loop_t loop;
    uv_timer_t tick;
    struct conf *conf;
    pthread_mutex_t lock; /* of the web UI, once it is served */
    struct web web;
    struct role_counts counts;
    struct web_server *server;
};

/* ------------------------------------------------------------------------------- decisions ---- */

/* Sends a decision and waits for the reply. Returns its status; -ETIMEDOUT: there is none. */
static int
role_decide(struct web_role *role, const struct web_decision *decision, char message[DECIDED_TEXT])
{
    const bool uploads = decision->upload != 0;
    struct role_decision *slot = &role->decisions[uploads];
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += uploads ? STORED_SECONDS : REPLY_SECONDS;
    pthread_mutex_lock(&slot->lock);
    slot->decision = decision;
    slot->token += 2;
    slot->is_answered = false;
    uv_async_send(&role->wake);
    while (!slot->is_answered && !slot->is_closed && pthread_cond_timedwait(&slot->done, &slot->lock, &until) == 0)
        continue;
    const int status = slot->is_answered ? slot->status : -ETIMEDOUT;
    snprintf(message, sizeof slot->message, "%s",
             slot->is_answered ? slot->message
                               : "noctuled has not answered: load the page again to see whether the decision was made");
    slot->decision = NULL;
    pthread_mutex_unlock(&slot->lock);
    return status;
}

/* Sends a decision that waits. Without its file, the daemon refuses an upload. */
static void
role_send(struct web_role *role, struct role_decision *slot)
{
    struct proto_writer writer;
    pthread_mutex_lock(&slot->lock);
    const struct web_decision *decision = slot->decision;
    const int rc = decision && decision->upload ? handed_send(ROLE_HANDED_FD, slot->token, decision->upload) : 0;
    if (rc)
        log_warn("page.upload", LOG_STR("error", strerror(-rc)));
    if (decision)
        web_decision_write(decision, slot->token, &writer);
    slot->decision = NULL;
    pthread_mutex_unlock(&slot->lock);
    if (decision)
        child_send(&role->child, &writer);
}

static void
role_on_wake(uv_async_t *wake)
{
    struct web_role *role = wake->data;
    struct proto_writer writer;
    role_send(role, &role->decisions[0]);
    role_send(role, &role->decisions[1]);
    while (web_looks_take(&role->web.looks, &writer))
        child_send(&role->child, &writer);
}

static void
role_on_decided(struct web_role *role, struct proto_reader *reader)
{
    struct message_decided decided;
    if (message_read_decided(reader, &decided))
        return;
    struct role_decision *slot = &role->decisions[decided.token & 1];
    pthread_mutex_lock(&slot->lock);
    if (decided.token == slot->token) {
        slot->is_answered = true;
        slot->status = (int)decided.status;
        snprintf(slot->message, sizeof slot->message, "%s", decided.message);
        pthread_cond_signal(&slot->done);
    }
    pthread_mutex_unlock(&slot->lock);
}

static void
role_end_decisions(struct web_role *role)
{
    for (int i = 0; i < 2; i++) {
        struct role_decision *slot = &role->decisions[i];
        pthread_mutex_lock(&slot->lock);
        slot->is_closed = true;
        pthread_cond_signal(&slot->done);
        pthread_mutex_unlock(&slot->lock);
    }
}

/* --------------------------------------------------------------------------------- answers ---- */

/* Answers paths that are WEB_SERVER_NOW or WEB_SERVER_BESIDE without the lock: /healthz and planes must not wait for
 * another answer. */
static void
role_on_request(void *context, const struct web_request *request, struct web_reply *answer)
{
    struct web_role *role = context;
    const enum web_server_turn turn = web_turn(request->path);
    const bool locks = turn != WEB_SERVER_NOW && turn != WEB_SERVER_BESIDE;
    if (locks) {
        pthread_mutex_lock(&role->lock);
        struct role_counts *counts = &role->counts; /* added to the metrics, which role->lock protects */
        char label[16];
        pthread_mutex_lock(&counts->lock);
        for (size_t i = 0; i < sizeof counts->answers / sizeof *counts->answers; i++) {
            if (counts->answers[i].count == 0)
                continue;
            snprintf(label, sizeof label, "%d", counts->answers[i].status);
            web_metrics_add(role->web.metrics, METRIC_noctule_page_requests_total, label, counts->answers[i].count);
            counts->answers[i].count = 0;
        }
        web_metrics_add(role->web.metrics, METRIC_noctule_page_request_seconds, "", counts->seconds);
        counts->seconds = 0;
        pthread_mutex_unlock(&counts->lock);
    }
    web_answer(&role->web, request, answer);
    if (locks)
        pthread_mutex_unlock(&role->lock);
    if (web_looks_wait(&role->web.looks))
        uv_async_send(&role->wake); /* the answer does not wait for it */
    if (!answer->decision)
        return;
    char message[sizeof role->decisions[0].message];
    const int status = role_decide(role, answer->decision, message);
    pthread_mutex_lock(&role->lock);
    web_decided(&role->web, request, status, message, answer);
    pthread_mutex_unlock(&role->lock);
}

static enum web_server_posts
role_takes_posts(void *context, const char *path)
{
    const struct web_role *role = context;
    return web_takes_posts(&role->web, path);
}

static const char *
role_refuses_upload(void *context, const struct web_request *request, int *status)
{
    const struct web_role *role = context;
    return web_upload_refusal(&role->web, request, status);
}

static void
role_refuse(void *context, const char *path, int status, const char *why, struct web_reply *answer)
{
    struct web_role *role = context;
    web_refuse(&role->web, path, status, why, answer);
}

static void
role_on_answered(void *context, int status, double seconds)
{
    struct web_role *role = context;
    struct role_counts *counts = &role->counts;
    size_t i = 0;
    const size_t last = sizeof counts->answers / sizeof *counts->answers - 1;
    pthread_mutex_lock(&counts->lock);
    while (i < last && counts->answers[i].count > 0 && counts->answers[i].status != status)
        i++;
    counts->answers[i].status = status;
    counts->answers[i].count++;
    counts->seconds += seconds;
    pthread_mutex_unlock(&counts->lock);
}

/* ------------------------------------------------------------------------------ the daemon ---- */

static void
role_on_message(void *context, struct proto_reader *reader)
{
    struct web_role *role = context;
    if (reader->type == PROTO_DECIDED) {
        role_on_decided(role, reader);
        return;
    }
    pthread_mutex_lock(&role->lock);
    web_alerts_receive(&role->web.alerts, reader, clock_steady_ms());
    pthread_mutex_unlock(&role->lock);
}

static const struct child_role web_role = {.name = "page", .confined = CONFINE_PAGE, .message = role_on_message};

/* A failed database may have been replaced by another file, which only a new process can open. */
static void
role_on_tick(uv_timer_t *timer)
{
    struct web_role *role = timer->data;
    web_server_tick(role->server);
    web_kept_close_old(&role->web.kept, clock_steady_ms());
    pthread_mutex_lock(&role->lock);
    const bool lost = role->web.lost;
    role->web.lost = false;
    pthread_mutex_unlock(&role->lock);
    if (lost)
        child_check_places(&role->child, role->conf);
}

/* -------------------------------------------------------------------------- start and end ---- */

static int
role_run_loop(struct web_role *role, int fd)
{
    const struct web_server_events events = {role_on_request,  role_on_answered,    role,       web_turn,
                                             role_takes_posts, role_refuses_upload, role_refuse};
    int error = uv_async_init(&role->loop, &role->wake, role_on_wake);
    role->wake.data = role;
    if (!error)
        error = web_server_open(fd, &events, &role->server);
    if (error) {
        close(fd);
        return error;
    }
    error = call_filter_install(CONFINE_PAGE);
    if (!error)
        error = child_open(&role->child, &role->loop, &web_role, role);
    if (error)
        return error;
    uv_timer_init(&role->loop, &role->tick); /* cannot fail */
    role->tick.data = role;
    uv_timer_start(&role->tick, role_on_tick, TICK_MS, TICK_MS);
    uv_run(&role->loop, UV_RUN_DEFAULT);
    role_end_decisions(role);
    web_server_close(role->server); /* before the handle that its threads use */
    role->server = NULL;
    child_close(&role->child);
    uv_close((uv_handle_t *)&role->wake, NULL);
    uv_close((uv_handle_t *)&role->tick, NULL);
    uv_run(&role->loop, UV_RUN_DEFAULT);
    return 0;
}

/* Reads the warnings of the configuration files. The daemon passes the checked values, without files and lines. */
static void
role_read_warnings(struct web *web)
{
    struct report_table loads;
    struct error ignored;
    if (report_page(web->report, WEB_CONFIGURATION, &(struct report_query){0}, &loads, &ignored) < 0)
        return;
    const char *files = loads.row_count > 0 ? report_cell(&loads, 0, "main") : NULL;
    struct conf *conf = NULL;
    if (files && conf_load_all(files, web->conf->root, &conf, &web->findings, &ignored) == 0)
        conf_free(conf);
    report_table_free(&loads);
}

/* Opens all files that a confined process could not open. */
static int
role_open_web(struct web_role *role, struct error *error)
{
    struct web *web = &role->web;
    web->conf = role->conf;
    if (asprintf(&web->database, "%s/" LAYOUT_DATABASE, role->conf->root) < 0) {
        web->database = NULL;
        return error_set_system(error, -ENOMEM, "begin");
    }
    int rc = web_access_read_token(&role->conf->page, &web->access, error);
    if (!rc) {
        rc = pseudonym_key_read(web->conf->root, &web->key);
        if (!rc)
            rc = web_session_open(&web->access, &web->key);
        if (rc)
            rc = error_set_system(error, rc, "read the key for hashed identifiers");
    }
    if (!rc && (rc = web_assets_open()))
        rc = error_set_system(error, rc, "read the script");
    if (!rc)
        rc = report_open(web->database, &web->report, error);
    if (!rc)
        role_read_warnings(web);
    return rc ? rc : web_metrics_open(web->report, &web->metrics, error);
}

static int
role_serve(struct web_role *role)
{
    const struct conf_page *conf = &role->conf->page;
    const int fd = conf->socket ? bind_socket_at(conf->socket, conf->socket_mode) : bind_at(conf->bind, conf->port);
    int error = fd < 0 ? fd : listen(fd, BACKLOG) < 0 ? -errno : 0;
    if (error)
        log_error("page.listen", LOG_STR("bind", conf->socket ? conf->socket : conf->bind), LOG_INT("port", conf->port),
                  LOG_STR("error", strerror(-error)));
    if (!error)
        error = confine_self(CONFINE_PAGE, role->conf);
    if (!error)
        error = uv_loop_init(&role->loop);
    if (error) {
        if (fd >= 0)
            close(fd);
        return error;
    }
    error = role_run_loop(role, fd);
    web_server_close(role->server);
    uv_loop_close(&role->loop);
    return error;
}

int
web_main(const struct role_args *args)
{
    struct web_role role = {
        .lock = PTHREAD_MUTEX_INITIALIZER,
        .web.looks.lock = PTHREAD_MUTEX_INITIALIZER,
        .web.kept.lock = PTHREAD_MUTEX_INITIALIZER,
        .counts.lock = PTHREAD_MUTEX_INITIALIZER,
        .decisions = {{.lock = PTHREAD_MUTEX_INITIALIZER, .done = PTHREAD_COND_INITIALIZER},
                      {.lock = PTHREAD_MUTEX_INITIALIZER, .done = PTHREAD_COND_INITIALIZER, .token = 1}}};
    struct error error = {0};
    int rc = conf_load(args->config_file, &role.conf, &error);
    if (rc == 0) {
        log_set_level(role.conf->log_level);
        if (role.conf->page.zone) { /* before the process is confined: its file is read here */
            setenv("TZ", role.conf->page.zone, 1);
            tzset();
        }
        rc = role_open_web(&role, &error);
    }
    if (rc)
        log_error("page.start", LOG_STR("error", error.message));
    else
        rc = role_serve(&role);
    persons_free(&role.web.access.persons);
    web_alerts_clear(&role.web.alerts);
    web_kept_close_old(&role.web.kept, 0);
    web_metrics_close(role.web.metrics);
    report_close(role.web.report);
    conf_findings_free(&role.web.findings);
    free(role.web.database);
    conf_free(role.conf);
    return rc ? child_start_status(rc) : child_status(&role.child);
}
