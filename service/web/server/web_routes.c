/* web_routes.c - the routes of the web UI. */
#include "service/web/web.h"

#include "base/text.h"
#include "db/report.h"
#include "service/common/clock.h"
#include "service/common/html/html.h"
#include "service/common/json.h"
#include "service/common/log.h"
#include "service/web/api/web_api.h"
#include "service/web/decide/web_decide.h"
#include "service/web/pages/web_frame.h"
#include "service/web/pages/web_similar.h"
#include "service/web/pages/web_view.h"
#include "service/web/server/web_assets.h"
#include "service/web/viewer/web_planes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define QUERY_SECONDS 5 /* for all queries of an answer */

static int
web_make_alerts(struct web *web, struct error *error)
{
    return web_alerts_make(&web->alerts, web->conf, web->report, clock_steady_ms(), error);
}

/* ------------------------------------------------------------------- answers for programs ---- */

static int
answer_health(struct web *web, const struct web_request *request, struct web_reply *answer, struct error *error)
{
    (void)web, (void)request, (void)error;
    answer->type = "text/plain; charset=utf-8";
    fputs("ok\n", answer->out);
    return 0;
}

/* Returns the readiness of the service. Ids of alerts name destinations and pipelines, so they need
 * the token. */
static int
answer_ready(struct web *web, const struct web_request *request, struct web_reply *answer, struct error *error)
{
    const int rc = web_make_alerts(web, error);
    if (rc)
        return rc;
    answer->type = "text/plain; charset=utf-8";
    if (!web_alerts_write(&web->alerts.list, request->person != NULL, answer->out))
        answer->status = HTTP_SERVICE_UNAVAILABLE;
    return 0;
}

static int
answer_metrics(struct web *web, const struct web_request *request, struct web_reply *answer, struct error *error)
{
    (void)request;
    const int rc = web_make_alerts(web, error);
    answer->type = METRICS_TYPE;
    return rc ? rc : web_metrics_write(web->metrics, web->report, &web->alerts.list, answer->out, error);
}

static int
answer_style(struct web *web, const struct web_request *request, struct web_reply *answer, struct error *error)
{
    (void)web, (void)request, (void)error;
    answer->type = "text/css; charset=utf-8";
    answer->keeps = true;
    fputs(html_style, answer->out);
    fputs(web_style, answer->out);
    return 0;
}

static int
answer_icon(struct web *web, const struct web_request *request, struct web_reply *answer, struct error *error)
{
    (void)web, (void)request, (void)error;
    answer->type = "image/svg+xml";
    answer->keeps = true;
    fputs(web_frame_icon, answer->out);
    return 0;
}

static int
answer_preview(struct web *web, const struct web_request *request, struct web_reply *answer, struct error *error)
{
    unsigned char *bytes;
    const int64_t job = web_request_number(request, REQUEST_id);
    if (job == 0 || web_preview_find(web, job, &bytes, &answer->size) != 0)
        return error_set(error, -ENOENT, CODE_NONE, "this job has no preview");
    answer->type = "image/png";
    answer->bytes = (char *)bytes;
    answer->job = job;
    return 0;
}

#define LISTS(...)                                                                                                     \
    .lists = (const enum report_list_name[])                                                                           \
    {                                                                                                                  \
        __VA_ARGS__, REPORT_LIST_COUNT                                                                                 \
    }

static const struct web_route routes[] = {
    {.path = "/", .title = "Overview", .view = web_view_overview, .in_menu = true, .refreshes = true},
    {.path = "/work", .title = "Work", .view = web_view_work, .in_menu = true, .reads_body = true},
    {.path = "/review", .title = "Review", .view = web_view_review, .in_menu = true, .runs_script = true},
    {.path = "/deliveries", .title = "Deliveries", .view = web_view_deliveries, .in_menu = true},
    {.path = "/received", .title = "Received", .view = web_view_received, .in_menu = true},
    {.path = "/reports", .title = "Reports", .view = web_view_reports, .in_menu = true},
    {.path = "/cohort", .title = "Cohort", .menu = "/reports", .view = web_view_cohort},
    {.path = "/night", .moved = "reports"},
    {.path = "/settings", .title = "Settings", .view = web_view_settings, .in_menu = true},
    {.path = "/devices", .moved = "settings"},
    {.path = "/queue", .moved = "work?state=WAITING"},
    {.path = "/failures", .moved = "work?state=FAILED"},
    {.path = "/job", .title = "Job", .menu = "/work", .view = web_view_job, .runs_script = true},
    {.path = "/similar", .title = "Similar texture", .menu = "/work", .view = web_view_similar},
    {.path = "/series", .title = "Series", .menu = "/work", LISTS(WEB_SERIES, WEB_SERIES_JOBS, WEB_SERIES_STACKS)},
    {.path = "/arrivals", .title = "Series", .menu = "/received", .view = web_view_arrivals},
    {.path = "/quarantine", .title = "Quarantine", .menu = "/received", .view = web_view_quarantined},
    {.path = "/search", .title = "Search", .menu = "/work", .view = web_view_search, .reads_body = true},
    {.path = "/login", .title = "Log in", .view = web_view_login, .post = web_log_in, .open = true},
    {.path = "/logout", .title = "Log out", .post = web_log_out},
    {.path = "/decide", .title = "Decision", .post = web_decide},
    {.path = "/upload", .title = "Upload", .post = web_upload},
    {.path = "/views", .title = "Saved filter", .post = web_save_filter},
    {.path = API_ROOT "views", .answer = web_api_answer, .post = web_save_filter},
    {.path = API_ROOT "session", .post = web_api_log_in, .open = true},
    {.path = API_ROOT "session/end", .post = web_api_log_out},
    {.path = API_ROOT "search", .answer = web_api_answer, .reads_body = true},
    {.path = API_ROOT "found", .answer = web_api_answer, .reads_body = true},
    {.path = API_ROOT "jobs/{job}/corrections", .post = web_upload, .is_path = web_upload_is_path},
    {.path = API_ROOT "{}", .post = web_decide, .is_path = web_api_is_decision}, /* each has its row in api_routes */
    {.path = API_ROOT, .answer = web_api_answer},                                /* and all below it */
    {.path = "/preview", .answer = answer_preview, .is_alone = true},
    {.path = WEB_PLANES_PATH, .answer = web_planes_answer, .is_alone = true, .is_path = web_planes_is_path},
    {.path = WEB_ASSETS_PATH,
     .answer = web_assets_answer,
     .open = true,
     .is_alone = true,
     .is_path = web_assets_is_path},
    {.path = "/style.css", .answer = answer_style, .open = true, .is_alone = true},
    {.path = "/icon.svg", .answer = answer_icon, .open = true, .is_alone = true},
    {.path = "/metrics", .answer = answer_metrics},
    {.path = "/readyz", .answer = answer_ready, .open = true},
    {.path = "/healthz", .answer = answer_health, .open = true, .is_alone = true},
};

enum { ROUTES = sizeof routes / sizeof *routes };

/* -------------------------------------------------------------------------------- routing ---- */

static const struct web_route *
route_find(const char *path)
{
    const bool is_api = strncmp(path, API_ROOT, strlen(API_ROOT)) == 0;
    const struct web_route *all = NULL;
    for (int i = 0; i < ROUTES; i++) {
        if (routes[i].is_path ? routes[i].is_path(path) : strcmp(routes[i].path, path) == 0)
            return &routes[i];
        if (is_api && strcmp(routes[i].path, API_ROOT) == 0) /* all below it without a row of its own */
            all = &routes[i];
    }
    return all;
}

static bool
route_is_api(const struct web_route *route)
{
    return route && strncmp(route->path, API_ROOT, strlen(API_ROOT)) == 0;
}

/* Adds the person, the state of the service and the counts of the menu, if the database has them. */
static void
route_frame_state(struct web *web, const struct web_request *request, struct web_frame *frame)
{
    struct error unread;
    frame->web = web;
    frame->request = request;
    if (!web->report)
        return;
    report_bound(web->report, QUERY_SECONDS);
    if (web_make_alerts(web, &unread) == 0)
        frame->alerts = &web->alerts.list;
    web_frame_count(web->report, frame, &unread);
    report_release(web->report);
}

static void
route_refuse(struct web *web, const struct web_request *request, const struct web_route *route, int status,
             const char *title, const char *why, struct web_reply *answer)
{
    struct web_request shown = *request;
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    answer->status = status;
    answer->type = "text/html; charset=utf-8";
    /* Links of a page are relative, so a page at an address with folders would have neither style nor menu. */
    const char *slash = strchr(request->path, '/');
    const bool is_deep = !route && slash && strchr(slash + 1, '/');
    if (route_is_api(route)) {
        web_api_refuse(status, title, why, answer);
    } else if (is_deep || (route && !route->title)) { /* for programs */
        answer->type = "text/plain; charset=utf-8";
        fprintf(answer->out, "%s: %s\n", title, why);
    } else if (out) {
        struct web_frame frame = {.routes = routes, .route_count = ROUTES, .title = title, .beside = ""};
        const bool logs_in = status == HTTP_UNAUTHORIZED && web->conf->page.tokens_file;
        const bool reviews = status == HTTP_CONFLICT || status == HTTP_CONTENT_TOO_LARGE;
        fputs("<section class=\"refusal\"><p>", out);
        html_text(why, out);
        fprintf(out, "</p><p><a class=\"button\" href=\"%s\">%s</a></p></section>\n",
                logs_in         ? "login"
                : *answer->back ? answer->back
                : reviews       ? "review"
                                : "./",
                logs_in         ? "Log in"
                : *answer->back ? "Back to the job"
                : reviews       ? "Review"
                                : "Overview");
        fflush(out);
        frame.content = text;
        shown.values[REQUEST_q] = ""; /* a search in an address is not repeated */
        if (request->person)
            route_frame_state(web, &shown, &frame);
        web_frame_write(&frame, answer->out);
    }
    if (out)
        fclose(out);
    free(text);
}

/* Leads from an old address to the page that replaced it, with the day of the request. */
static void
route_move(const struct web_route *route, const struct web_request *request, struct web_reply *answer)
{
    struct text_stream address;
    const char *day = request->values[REQUEST_day];
    answer->type = "text/plain; charset=utf-8";
    fprintf(answer->out, "moved to %s\n", route->moved);
    if (text_open(&address))
        return;
    fprintf(address.out, "%s%s", route->moved, *day ? "?day=" : "");
    html_query(day, address.out);
    if (text_close(&address))
        return;
    answer->status = HTTP_MOVED_PERMANENTLY;
    answer->location = address.bytes;
}

/* Writes the complete page or an error. A truncated page could look complete. */
static int
route_view(struct web *web, const struct web_route *route, const struct web_request *request, struct web_reply *answer,
           struct error *error)
{
    struct text_stream content, beside;
    int rc = text_open(&content);
    if (rc)
        return error_set_system(error, rc, "make the page");
    if ((rc = text_open(&beside))) {
        free(text_close(&content) ? NULL : content.bytes);
        return error_set_system(error, rc, "make the page");
    }
    const struct web_view view = {web, request, content.out, beside.out, &answer->job};
    struct web_frame frame = {.routes = routes,
                              .route_count = ROUTES,
                              .route = route,
                              .request = request,
                              .web = web,
                              .title = route->title,
                              .alerts = &web->alerts.list};
    char title[64];
    const int64_t job = route->view == web_view_job ? web_request_number(request, REQUEST_id) : 0;
    if (job > 0) { /* "Job 12" */
        snprintf(title, sizeof title, "%s %lld", route->title, (long long)job);
        frame.title = title;
    }
    rc = web_make_alerts(web, error);
    if (rc == 0)
        rc = route->view ? route->view(&view, error) : web_view_lists(&view, route->lists, error);
    if (rc == 0)
        rc = web_frame_count(web->report, &frame, error);
    const int closed = text_close(&content), closed_beside = text_close(&beside);
    if (rc == 0 && (closed || closed_beside))
        rc = error_set_system(error, closed ? closed : closed_beside, "make the page");
    if (rc == 0) {
        answer->runs_script = route->runs_script;
        frame.content = content.bytes;
        frame.beside = beside.bytes;
        web_frame_write(&frame, answer->out);
    }
    free(closed ? NULL : content.bytes);
    free(closed_beside ? NULL : beside.bytes);
    return rc;
}

static int
route_handle(struct web *web, const struct web_route *route, const struct web_request *request,
             struct web_reply *answer, struct error *error)
{
    int rc = route->is_alone || web->report ? 0 : report_open(web->database, &web->report, error);
    if (rc) {
        web->lost = true;
        return rc == -ENOENT ? -EIO : rc; /* the requested item may exist */
    }
    if (!route->is_alone)
        report_bound(web->report, QUERY_SECONDS);
    rc = route->title ? route_view(web, route, request, answer, error) : route->answer(web, request, answer, error);
    if (route->is_alone)
        return rc;
    if (rc == 0 || rc == -ENOENT || rc == -ETIMEDOUT || rc == -ENOSPC || rc == -EINVAL) {
        report_release(web->report);
    } else {
        report_close(web->report);
        web->report = NULL;
        web->lost = true;
    }
    return rc;
}

enum web_server_turn
web_turn(const char *path)
{
    const struct web_route *route = route_find(path);
    if (route && route->is_path && route->is_alone && !route->open)
        return WEB_SERVER_BESIDE;
    if (!route || !route->open || route->title)
        return WEB_SERVER_IN_TURN;
    return route->is_alone ? WEB_SERVER_NOW : WEB_SERVER_NEXT;
}

static bool
route_only_posts(const struct web_route *route)
{
    return !route->view && !route->lists && (!route->answer || route->reads_body);
}

enum web_server_posts
web_takes_posts(const struct web *web, const char *path)
{
    const struct web_route *route = route_find(path);
    const struct conf_page *page = &web->conf->page;
    if (route && route->post == web_upload)
        return page->may & CONF_PAGE_MASKS ? WEB_SERVER_UPLOADS : WEB_SERVER_NO_POSTS;
    if (!route || !(route->post || route->reads_body) ||
        (route->post &&
         (route->post == web_decide || route->post == web_save_filter ? page->may == 0 : page->tokens_file == NULL)))
        return WEB_SERVER_NO_POSTS;
    return route_only_posts(route) ? WEB_SERVER_ONLY_POSTS : WEB_SERVER_TAKES_POSTS;
}

void
web_refuse(struct web *web, const char *path, int status, const char *why, struct web_reply *answer)
{
    static const struct {
        int status;
        const char *title;
    } titles[] = {{HTTP_METHOD_NOT_ALLOWED, "Wrong method"}, {HTTP_LENGTH_REQUIRED, "No length"},
                  {HTTP_TOO_MANY_REQUESTS, "Too many"},      {HTTP_FORBIDDEN, "Not allowed"},
                  {HTTP_UNAUTHORIZED, "Token required"},     {HTTP_MISDIRECTED_REQUEST, "Wrong host name"},
                  {HTTP_CONTENT_TOO_LARGE, "Too large"}};

    size_t i = 0;
    const struct web_route *route = route_find(path);
    const enum web_server_posts posts = web_takes_posts(web, path);
    struct web_request request = {.path = path};
    answer->posts_only = posts == WEB_SERVER_ONLY_POSTS || posts == WEB_SERVER_UPLOADS;
    while (i + 1 < sizeof titles / sizeof *titles && titles[i].status != status)
        i++;
    if (route_is_api(route) || posts == WEB_SERVER_UPLOADS)
        route_refuse(web, &request, route, status, titles[i].title, why, answer);
    else
        fprintf(answer->out, "%s\n", why);
}

static void
route_refuse_post(struct web *web, const struct web_route *route, const struct web_request *request, int rc,
                  const char *why, struct web_reply *answer)
{
    static const struct {
        int error, status;
        const char *title;
    } kinds[] = {
        {-EINVAL, HTTP_BAD_REQUEST, "Bad parameter"},
        {-EPERM, HTTP_UNAUTHORIZED, "Token required"},
        {-EACCES, HTTP_FORBIDDEN, "Not allowed"},
        {-ENOENT, HTTP_NOT_FOUND, "Not found"},
        {-EAGAIN, HTTP_CONFLICT, "Already decided"},
        {-EEXIST, HTTP_CONFLICT, "Already decided"},
        {-ESTALE, HTTP_CONFLICT, "Changed"},
        {-ENOTSUP, HTTP_UNSUPPORTED_MEDIA_TYPE, "Wrong type"},
        {-EDQUOT, HTTP_TOO_MANY_REQUESTS, "Too many"},
        {-ETIMEDOUT, HTTP_GATEWAY_TIMEOUT, "No reply"},
        {-EBADMSG, HTTP_UNPROCESSABLE_CONTENT, "Not a correction"},
        {-ENOSPC, HTTP_INSUFFICIENT_STORAGE, "Disk full"},
        {0, HTTP_SERVICE_UNAVAILABLE, "Not ready"},
    };

    size_t i = 0;
    while (kinds[i].error && kinds[i].error != rc)
        i++;
    if (!request->person)
        web_rate_use(&web->failures, request->address, clock_steady_ms());
    log_info("page.refused", LOG_STR("path", route->path), LOG_INT("status", kinds[i].status), LOG_STR("reason", why));
    route_refuse(web, request, route, kinds[i].status, kinds[i].title, why, answer);
}

static void
route_post(struct web *web, const struct web_route *route, const struct web_request *request, struct web_reply *answer)
{
    struct error error = {0};
    int rc = request->person || web_rate_has(&web->failures, request->address, clock_steady_ms())
                 ? 0
                 : error_set(&error, -EDQUOT, CODE_NONE, "too many requests were refused: wait a minute");
    if (rc == 0 && !web->report && (rc = report_open(web->database, &web->report, &error)))
        web->lost = true;
    if (rc == 0) {
        report_bound(web->report, QUERY_SECONDS);
        rc = route->post(web, request, answer, &error);
        report_release(web->report);
    }
    if (rc)
        route_refuse_post(web, route, request, rc, error.message, answer);
}

void
web_decided(struct web *web, const struct web_request *request, int status, const char *message,
            struct web_reply *answer)
{
    const struct web_route *route = route_find(request->path);
    struct web_decision *decision = answer->decision;
    struct web_request mine = *request;
    mine.person = &decision->person;
    answer->decision = NULL;
    web->alerts.made_ms = 0; /* the next page shows the effect */
    if (status) {
        route_refuse_post(web, route, &mine, status, message, answer);
    } else if (route_is_api(route)) {
        struct json json = {.out = answer->out};
        answer->type = "application/json";
        json_begin_object(&json, NULL);
        json_string(&json, "message", message);
        json_end_object(&json);
    } else {
        web_decision_return(decision->form.values[FORM_back], answer);
    }
    web_decision_free(decision);
}

static void route_get(struct web *web, const struct web_route *route, const struct web_request *request,
                      struct web_reply *answer);

/* Answers a POST whose body is the query, as the GET of an address without one. */
static void
route_query(struct web *web, const struct web_route *route, const struct web_request *request, struct web_reply *answer)
{
    struct web_request asked = *request;
    struct web_form form = {0};
    struct error error = {0};
    const char *fault = web_session_foreign(&web->access, request);
    int rc = fault ? error_set(&error, -EACCES, CODE_NONE, "%s", fault) : 0;
    if (rc == 0 && !web->report && (rc = report_open(web->database, &web->report, &error)))
        web->lost = true;
    if (rc == 0)
        rc = web_form_read_query(&asked, web->report, &form, &error);
    if (rc)
        route_refuse_post(web, route, request, rc, error.message, answer);
    else
        route_get(web, route, &asked, answer);
    web_form_free(&form);
}

/* Refuses a request without the credentials that it needs. */
static void
route_refuse_stranger(struct web *web, const struct web_request *request, const struct web_route *route,
                      struct web_reply *answer)
{
    const struct conf_page *page = &web->conf->page;
    /* The browser asks for a token of page.token_file; those of persons have a page for it. */
    answer->needs_token = !page->tokens_file && !page->user_header;
    route_refuse(web, request, route, HTTP_UNAUTHORIZED, "Token required",
                 page->tokens_file   ? "log in with your token; programs send it as a bearer token"
                 : page->user_header ? "the proxy has not named the person"
                                     : "enter any user name, and the token of page.token_file as password",
                 answer);
}

static void
route_get(struct web *web, const struct web_route *route, const struct web_request *request, struct web_reply *answer)
{
    struct error error = {0};
    const int rc = route_handle(web, route, request, answer, &error);
    if (rc == -ENOENT) {
        route_refuse(web, request, route, HTTP_NOT_FOUND, "Not found", error.message, answer);
    } else if (rc == -EINVAL) {
        route_refuse(web, request, route, HTTP_BAD_REQUEST, "Bad parameter", error.message, answer);
    } else if (rc == -ETIMEDOUT) {
        route_refuse(web, request, route, HTTP_SERVICE_UNAVAILABLE, "Too slow",
                     "the database query took too long; use sqlite3 instead (views v_jobs, v_series)", answer);
    } else if (rc == -EFBIG) {
        route_refuse(web, request, route, HTTP_CONTENT_TOO_LARGE, "Too large", error.message, answer);
    } else if (rc == -EBADMSG && (error.code == CODE_SLICES_DAMAGED || error.code == CODE_SLICES_VERSION)) {
        log_warn("page.damaged", LOG_STR("path", request->path), LOG_STR("reason", error.message));
        route_refuse(web, request, route, HTTP_SERVER_ERROR, code_name(error.code), error.message, answer);
    } else if (rc) { /* The reason may contain paths. Only the log and authorized users get it. */
        log_warn("page.failed", LOG_STR("path", route->path), LOG_STR("reason", error.message));
        route_refuse(web, request, route, HTTP_SERVICE_UNAVAILABLE, "Not ready",
                     route->open ? "see the log of noctuled" : error.message, answer);
    }
}

void
web_answer(struct web *web, const struct web_request *asked, struct web_reply *answer)
{
    const struct web_route *route = route_find(asked->path);
    struct web_person person;
    struct web_request request = *asked;
    const bool known = web_access_is_known_host(&web->access, request.host);
    if (known && web_session_identify(&web->access, &request, &person))
        request.person = &person;
    if (!known) {
        route_refuse(web, &request, route, HTTP_MISDIRECTED_REQUEST, "Wrong host name",
                     "this host name is not configured (page.hosts)", answer);
    } else if (!(route && route->open) && !request.person) {
        route_refuse_stranger(web, &request, route, answer);
    } else if (!route) {
        route_refuse(web, &request, NULL, HTTP_NOT_FOUND, "Not found", "this page does not exist", answer);
    } else if (route->moved) {
        route_move(route, &request, answer);
    } else if (request.posts && route->reads_body) {
        route_query(web, route, &request, answer);
    } else if (request.posts) {
        route_post(web, route, &request, answer);
    } else if (route_only_posts(route)) {
        answer->posts_only = true;
        route_refuse(web, &request, route, HTTP_METHOD_NOT_ALLOWED, "Wrong method", "this address takes a POST",
                     answer);
    } else {
        route_get(web, route, &request, answer);
    }
    if (answer->job && request.person && *request.person->how &&
        (answer->status == HTTP_OK || answer->status == HTTP_NOT_MODIFIED))
        web_looks_add(&web->looks, request.person, request.address, answer->job, clock_unix_ms());
}
