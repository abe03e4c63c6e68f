/* web_api.c - requests to /api/v1: the address, the type of the answer, the parameters; problems and ETags. */
#include "service/web/api/web_api.h"

#include "base/text.h"
#include "db/report.h"
#include "service/common/html/html.h"
#include "service/web/server/web_session.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* -------------------------------------------------------------------------------- problems ---- */

void
web_api_refuse(int status, const char *title, const char *detail, struct web_reply *answer)
{
    static const char *const table[][3] = {
        {"Bad parameter", "BAD_PARAMETER",
         "Correct the value; " API_ROOT "openapi.json has the parameters of each address."},
        {"Unknown parameter", "UNKNOWN_PARAMETER",
         "Remove it, or write it once; " API_ROOT "openapi.json has the parameters of each address."},
        {"Token required", "TOKEN_REQUIRED",
         "Send the header \"Authorization: Bearer TOKEN\" with the token of page.token_file."},
        {"Not found", "NOT_FOUND",
         "Compare the address with " API_ROOT "openapi.json, and the number or UID with a list."},
        {"Not acceptable", "NOT_ACCEPTABLE", "Leave the header Accept out, or send one of the types."},
        {"Wrong host name", "WRONG_HOST", "Use an IP address, localhost or a name of page.hosts."},
        {"Not allowed", "NOT_ALLOWED",
         "Use the token of a person with the role, and the header Origin of this web UI."},
        {"Already decided", "ALREADY_DECIDED", "Look at the job: its decision has a name and a time."},
        {"Changed", "CHANGED", "Look at the result again, and send its present version."},
        {"Wrong type", "WRONG_TYPE",
         "Send the header \"Content-Type: application/json\"; of an uploaded mask \"application/dicom\"."},
        {"Wrong method", "WRONG_METHOD", "Use a method of the header Allow; decisions need page.may."},
        {"Too large", "TOO_LARGE",
         "Send a smaller request: at most 16 KiB, and 8 KiB of a body; an uploaded mask has at most 256 MiB."},
        {"Not a correction", "NOT_A_CORRECTION",
         "Correct the file; docs/codes.md has the code with which the detail begins."},
        {"Disk full", "DISK_FULL", "Free space on the disk of the service, then send it again."},
        {"No length", "NO_LENGTH", "Send the header Content-Length."},
        {"Too many", "TOO_MANY", "Wait a minute."},
        {"No reply", "NO_REPLY", "Look whether the decision was made before you send it again."},
        {"Too slow", "TOO_SLOW", "Ask for fewer rows, for example with since=7d or a smaller limit."},
        {"Not ready", "NOT_READY", "Try again; noctule doctor and the log give the reason."},
    };
    size_t i = 0;
    while (i + 1 < sizeof table / sizeof *table && strcmp(table[i][0], title) != 0)
        i++;
    struct json json = {.out = answer->out};
    answer->status = status;
    answer->type = "application/problem+json";
    json_begin_object(&json, NULL);
    json_string(&json, "type", "about:blank");
    json_string(&json, "title", title);
    json_integer(&json, "status", status);
    json_string(&json, "detail", detail);
    json_string(&json, "code", table[i][1]);
    json_string(&json, "to_do", table[i][2]);
    json_end_object(&json);
    fputc('\n', answer->out);
}

/* Returns -EPROTO: the problem is written. */
__attribute__((format(printf, 4, 5))) static int
api_refuse(struct api_call *call, int status, const char *title, const char *format, ...)
{
    char detail[1024];
    va_list values;
    va_start(values, format);
    vsnprintf(detail, sizeof detail, format, values);
    va_end(values);
    text_utf8_mend_end(detail);
    web_api_refuse(status, title, detail, call->reply);
    return -EPROTO;
}

/* --------------------------------------------------------------------------------- address ---- */

bool
web_api_matches(const char *pattern, const char *path, char identity[API_VALUE])
{
    const char *brace = strchr(pattern, '{');
    *identity = '\0';
    if (!brace)
        return strcmp(pattern, path) == 0;
    const size_t before = (size_t)(brace - pattern);
    const char *rest = strchr(brace, '}') + 1;
    if (strncmp(pattern, path, before) != 0)
        return false;
    const size_t length = strcspn(path + before, "/");
    if (length == 0 || length >= API_VALUE || strcmp(path + before + length, rest) != 0)
        return false;
    memcpy(identity, path + before, length);
    identity[length] = '\0';
    return true;
}

/* Finds the row of a path and a method; any method if there is none. */
static const struct api_route *
api_find(const struct web_request *request, char identity[API_VALUE])
{
    const struct api_route *other = NULL;
    for (size_t i = 0; i < api_route_count; i++) {
        const struct api_route *route = &api_routes[i];
        if (route->kind >= API_ELSEWHERE || !web_api_matches(route->path, request->path + strlen(API_ROOT), identity))
            continue;
        if ((route->verb == API_GET) == !request->posts)
            return route;
        other = route;
    }
    return other;
}

/* ---------------------------------------------------------------------------------- accept ---- */

/* Returns how well a media range fits a type: 3 the type, 2 its group, 1 all, 0 not. */
static int
api_fit(const char *range, size_t length, const char *type)
{
    const size_t group = strcspn(type, "/") + 1, whole = strcspn(type, ";");
    if (length == whole && strncasecmp(range, type, length) == 0)
        return 3;
    if (length == group + 1 && range[group] == '*' && strncasecmp(range, type, group) == 0)
        return 2;
    return length == 3 && strncmp(range, "*/*", 3) == 0;
}

/* Returns the quality of a type in thousandths, as the closest range of the header gives it. */
static int
api_quality(const char *accept, const char *type)
{
    int best = 0, quality = 0;
    for (size_t length; *accept; accept += length) {
        accept += strspn(accept, ", \t");
        length = strcspn(accept, ",");
        const char *weight = memmem(accept, length, "q=", 2);
        const int fit = api_fit(accept, strcspn(accept, ",; \t"), type);
        if (fit <= best)
            continue;
        best = fit;
        quality = weight ? (int)(1000.0 * strtod(weight + 2, NULL)) : 1000;
    }
    return quality;
}

/* Sets the type of the answer. The parameter `format` goes before the header: a link has no header. */
static int
api_negotiate(struct api_call *call, const char *format)
{
    const char *const *types = call->route->types;
    const char *accept = call->request->accept;
    int best = 0;
    call->type = NULL;
    for (; *types; types++) {
        const char *name = strchr(*types, '/') + 1;
        const int quality = format              ? (strncmp(name, format, strlen(format)) == 0 ? 1000 : 0)
                            : accept && *accept ? api_quality(accept, *types)
                                                : 1000;
        if (quality > best) {
            best = quality;
            call->type = *types;
        }
    }
    if (call->type)
        return 0;
    types = call->route->types;
    return format ? api_refuse(call, HTTP_BAD_REQUEST, "Bad parameter",
                               "parameter format: this address has no such format")
                  : api_refuse(call, HTTP_NOT_ACCEPTABLE, "Not acceptable", "the answer is %s%s%s", types[0],
                               types[1] ? " or " : "", types[1] ? types[1] : "");
}

/* ------------------------------------------------------------------------------- parameters --- */

static bool
api_has_formats(const struct api_route *route)
{
    return route->types[1] != NULL;
}

/* Returns the place of a parameter that must be kept, or NULL if the address has no such parameter. */
static const char **
api_place(struct api_call *call, const char *name, const char **format, const char **limit)
{
    const struct api_route *route = call->route;
    if (api_has_formats(route) && strcmp(name, "format") == 0)
        return format;
    if (route->kind == API_LIST) {
        const struct report_list *list = &report_browsed[route->list];
        const int field = report_field_place(list, name);
        const char *brace = strchr(route->path, '{');
        if (field >= 0 && brace && strncmp(brace + 1, name, strlen(name)) == 0 && brace[1 + strlen(name)] == '}')
            return NULL; /* it is in the path */
        return field >= 0                   ? &call->browse.values[field]
               : strcmp(name, "sort") == 0  ? &call->browse.sort
               : strcmp(name, "after") == 0 ? &call->browse.after
               : strcmp(name, "limit") == 0 ? limit
                                            : NULL;
    }
    for (int i = 0; route->parameters && route->parameters[i].key; i++)
        if (strcmp(route->parameters[i].key, name) == 0)
            return &call->values[i];
    return NULL;
}

static int
api_check_number(struct api_call *call, const char *name, const char *value, int64_t most)
{
    const size_t digits = strspn(value, "0123456789");
    const int64_t number = strtoll(value, NULL, 10);
    if (digits == 0 || digits > 5 || value[digits] || number < 1 || number > most)
        return api_refuse(call, HTTP_BAD_REQUEST, "Bad parameter",
                          "parameter %s: a number from 1 to %" PRId64 " is expected", name, most);
    return 0;
}

/* Checks the parameters of an address that is no list, and the one that a list needs. */
static int
api_check_values(struct api_call *call)
{
    char at[ISO_TIME_SIZE];
    const char *needs = call->route->needs;
    if (needs && !call->browse.values[report_field_place(&report_browsed[call->route->list], needs)])
        return api_refuse(call, HTTP_BAD_REQUEST, "Bad parameter", "parameter %s: it is missing", needs);
    for (int i = 0; call->route->parameters && call->route->parameters[i].key; i++) {
        const struct api_parameter *parameter = &call->route->parameters[i];
        const char *value = call->values[i];
        if (!value && parameter->is_needed)
            return api_refuse(call, HTTP_BAD_REQUEST, "Bad parameter", "parameter %s: it is missing", parameter->key);
        if (value && text_characters(value) > REPORT_TEXT_MAX)
            return api_refuse(call, HTTP_BAD_REQUEST, "Bad parameter", "parameter %s: it has more than %d characters",
                              parameter->key, REPORT_TEXT_MAX);
        if (value && parameter->is_moment && report_moment(value, 0, at) != 0)
            return api_refuse(call, HTTP_BAD_REQUEST, "Bad parameter",
                              "parameter %s: a time is expected, such as 2026-01-31", parameter->key);
        const int rc = value && parameter->most ? api_check_number(call, parameter->key, value, parameter->most) : 0;
        if (rc)
            return rc;
        const char *const *word = parameter->words;
        while (value && word && *word && strcmp(*word, value) != 0)
            word++;
        if (value && word && !*word)
            return api_refuse(call, HTTP_BAD_REQUEST, "Bad parameter", "parameter %s: %s is none of its values",
                              parameter->key, value);
    }
    return 0;
}

static int
api_read_limit(struct api_call *call, const char *limit)
{
    call->browse.limit = limit ? strtoll(limit, NULL, 10) : 0;
    return limit ? api_check_number(call, "limit", limit, API_LIMIT) : 0;
}

static int
api_read_parameters(struct api_call *call)
{
    const struct web_request *request = call->request;
    const char *format = NULL, *limit = NULL;
    if (request->parameter_count > WEB_PARAMETERS)
        return api_refuse(call, HTTP_BAD_REQUEST, "Unknown parameter", "there are more than %d parameters",
                          WEB_PARAMETERS);
    for (size_t i = 0; i < request->parameter_count; i++) {
        const struct web_parameter *parameter = &request->parameters[i];
        const char **place = api_place(call, parameter->name, &format, &limit);
        if (!place || *place)
            return api_refuse(call, HTTP_BAD_REQUEST, "Unknown parameter", "parameter %s: %s", parameter->name,
                              place ? "it comes twice" : "this address has no such parameter");
        if (!*parameter->value || parameter->is_cut)
            return api_refuse(call, HTTP_BAD_REQUEST, "Bad parameter", "parameter %s: it is empty%s", parameter->name,
                              parameter->is_cut ? ", or has a NUL" : "");
        *place = parameter->value;
    }
    int rc = api_negotiate(call, format);
    if (rc == 0)
        rc = api_read_limit(call, limit);
    return rc ? rc : api_check_values(call);
}

/* Sets the field of the path, and the defaults of the list. */
static int
api_read_list(struct api_call *call, struct error *error)
{
    const struct api_route *route = call->route;
    const struct report_list *list = &report_browsed[route->list];
    const char *brace = strchr(route->path, '{');
    char key[32];
    if (brace) {
        snprintf(key, sizeof key, "%.*s", (int)strcspn(brace + 1, "}"), brace + 1);
        call->browse.values[report_field_place(list, key)] = call->identity;
    }
    const int since = route->since ? report_field_place(list, "since") : -1;
    if (since >= 0 && !call->browse.values[since])
        call->browse.values[since] = route->since;
    const int text = report_field_place(list, "text");
    if (text >= 0 && call->browse.values[text] && call->web->conf->identifiers == CONF_IDENTIFIERS_HASHED) {
        const int rc = pseudonym_of(&call->web->key, call->browse.values[text], call->pseudonym);
        if (rc)
            return error_set_system(error, rc, "hash the text");
        call->browse.pseudonym = call->pseudonym;
    }
    return 0;
}

/* ---------------------------------------------------------------------------------- answers --- */

/* Writes the address of the next rows as a Link header: the parameters of the request with another mark. */
static int
api_link(struct api_call *call, const char *next, struct error *error)
{
    struct text_stream link;
    const char *before = "<?";
    if (text_open(&link) != 0)
        return error_set_system(error, -ENOMEM, "answer");
    for (size_t i = 0; i < call->request->parameter_count; i++) {
        const struct web_parameter *parameter = &call->request->parameters[i];
        if (strcmp(parameter->name, "after") == 0)
            continue;
        fprintf(link.out, "%s%s=", before, parameter->name);
        html_query(parameter->value, link.out);
        before = "&";
    }
    fprintf(link.out, "%safter=", before);
    html_query(next, link.out);
    fputs(">; rel=\"next\"", link.out);
    const int rc = text_close(&link);
    if (rc)
        return error_set_system(error, rc, "answer");
    call->reply->link = link.bytes;
    return 0;
}

static int
api_write_list(struct api_call *call, struct error *error)
{
    const struct report_list *list = &report_browsed[call->route->list];
    const enum report_format format = strncmp(call->type, "text/csv", 8) == 0 ? REPORT_CSV : REPORT_JSON;
    char next[REPORT_MARK];
    struct json json = {.out = call->out};
    if (format == REPORT_JSON)
        fputs("{\"items\": ", call->out);
    const int rc = report_browse_print(call->web->report, list, &call->browse, format, call->out, next, error);
    if (rc)
        return rc;
    if (format == REPORT_JSON) {
        fputs(", \"next\": ", call->out);
        if (*next)
            json_string(&json, NULL, next);
        else
            fputs("null", call->out);
        fputs("}\n", call->out);
    }
    return *next && call->route->verb == API_GET ? api_link(call, next, error) : 0;
}

static int
api_write(struct api_call *call, struct error *error)
{
    const struct api_route *route = call->route;
    char *series = NULL;
    int rc = route->kind == API_ANSWER ? 0 : api_read_list(call, error);
    if (rc == 0 && route->is_of_job) {
        const size_t digits = strspn(call->identity, "0123456789");
        if (digits > 18 || call->identity[digits])
            return error_set(error, -ENOENT, CODE_NONE, "there is no job of this number");
        call->reply->job = strtoll(call->identity, NULL, 10);
        rc = report_series_of(call->web->report, call->reply->job, &series, error);
        free(series);
    }
    if (rc)
        return rc;
    return route->kind == API_LIST ? api_write_list(call, error)
           : route->kind == API_ONE
               ? report_browse_one(call->web->report, &report_browsed[route->list], &call->browse, call->out, error)
               : route->answer(call, error);
}

/* Sets the ETag of the content, FNV-1a. An answer that the client has is not sent again. */
static void
api_tag(const struct api_call *call, struct web_reply *answer)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < answer->size; i++)
        hash = (hash ^ (unsigned char)answer->bytes[i]) * UINT64_C(0x100000001b3);
    snprintf(answer->etag, sizeof answer->etag, "\"%016" PRIx64 "\"", hash);
    const char *known = call->request->if_none_match;
    if (known && (strcmp(known, "*") == 0 || strstr(known, answer->etag))) {
        answer->status = HTTP_NOT_MODIFIED;
        answer->size = 0;
    }
}

static int
api_check_person(struct api_call *call)
{
    const struct web_person *person = call->request->person;
    if (call->route->role == API_ANYONE || (*person->how && call->route->role == API_PERSON) ||
        (*person->how && person->role == PERSON_OPERATOR))
        return 0;
    return api_refuse(call, HTTP_FORBIDDEN, "Not allowed",
                      call->route->role == API_PERSON ? "this address is for persons with a name: log in"
                                                      : "this address is for persons who are operators");
}

int
web_api_answer(struct web *web, const struct web_request *request, struct web_reply *answer, struct error *error)
{
    struct api_call call = {.web = web, .request = request, .reply = answer};
    struct text_stream content;
    call.route = api_find(request, call.identity);
    if (!call.route)
        return error_set(error, -ENOENT, CODE_NONE, "this address does not exist");
    if (call.route->verb == API_POST && !request->posts) {
        answer->posts_only = true;
        web_api_refuse(HTTP_METHOD_NOT_ALLOWED, "Wrong method", "this address takes a POST", answer);
        return 0;
    }
    int rc = api_check_person(&call);
    if (rc == 0)
        rc = api_read_parameters(&call);
    if (rc)
        return 0; /* the problem is written */
    if (text_open(&content) != 0)
        return error_set_system(error, -ENOMEM, "answer");
    call.out = content.out;
    answer->type = call.type;
    rc = api_write(&call, error);
    const int closed = text_close(&content);
    if (rc == 0 && closed)
        rc = error_set_system(error, closed, "answer");
    if (rc || answer->file || answer->status != HTTP_OK) {
        free(content.bytes);
        return rc;
    }
    answer->bytes = content.bytes;
    answer->size = content.size;
    api_tag(&call, answer);
    return 0;
}
