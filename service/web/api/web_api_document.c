/* web_api_document.c - the OpenAPI document of /api/v1, from the table of addresses and the fields of the lists. */
#include "service/web/api/web_api.h"

#include "db/report.h"

#include <stdlib.h>
#include <string.h>

#define JSON_TYPE "application/json"

/* ------------------------------------------------------------------------------ parameters --- */

static void
schema_number(struct json *json, const char *type, int64_t least, int64_t most)
{
    json_string(json, "type", type);
    json_integer(json, "minimum", least);
    json_integer(json, "maximum", most);
}

#define BODY_LINE  "[^\\u0000-\\u001f\\u007f-\\u009f]"
#define QUERY_TEXT "[^\\u0000]"

/* In a body (web_form.h), a whole number is as good as its text. */
static void
schema_number_or_text(struct json *json)
{
    json_begin_row(json, "type");
    json_string(json, NULL, "string");
    json_string(json, NULL, "integer");
    json_end_row(json);
}

/* A text of a body is one line. */
static void
schema_text(struct json *json, const char *in)
{
    const bool in_body = strcmp(in, "body") == 0;
    if (in_body)
        schema_number_or_text(json);
    else
        json_string(json, "type", "string");
    json_integer(json, "minLength", 1);
    json_integer(json, "maxLength", REPORT_TEXT_MAX);
    json_string(json, "pattern", in_body ? "^" BODY_LINE "+$" : "^" QUERY_TEXT "+$");
}

static void
schema_moment(struct json *json)
{
    static const char *const forms[] = {"date-time", "date"};
    json_begin_array(json, "anyOf");
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        json_begin_object(json, NULL);
        json_string(json, "type", "string");
        json_string(json, "format", forms[i]);
        json_end_object(json);
    }
    json_begin_object(json, NULL);
    json_string(json, "type", "string");
    json_string(json, "pattern", "^[0-9]{1,5}[hd]$");
    json_end_object(json);
    json_end_array(json);
}

static void
schema_words(struct json *json, const char *const *words)
{
    json_string(json, "type", "string");
    json_begin_array(json, "enum");
    for (; *words; words++)
        json_string(json, NULL, *words);
    json_end_array(json);
}

static void
schema_of_field(struct json *json, const struct report_field *field, const char *in)
{
    switch (field->form) {
    case REPORT_COUNT:
        schema_number(json, "integer", 0, INT64_C(999999999999999999));
        break;
    case REPORT_AMOUNT:
        schema_number(json, strcmp(in, "body") == 0 ? "integer" : "number", 0, INT64_C(1000000000));
        break;
    case REPORT_MOMENT:
        schema_moment(json);
        break;
    case REPORT_CHOICE:
        json_string(json, "type", "string");
        json_begin_array(json, "enum");
        for (const struct report_choice *choice = field->choices; choice->word; choice++)
            json_string(json, NULL, choice->word);
        json_end_array(json);
        break;
    case REPORT_EQUAL:
    case REPORT_SEARCH:
        schema_text(json, in);
        break;
    }
}

/* Opens a parameter and its schema; `in`: "path" or "query", or "body" for a member of the body. */
static void
parameter_begin(struct json *json, const char *name, const char *in, const char *help, bool is_needed)
{
    const bool in_body = strcmp(in, "body") == 0;
    json_begin_object(json, in_body ? name : NULL);
    json_string(json, "description", help);
    if (in_body)
        return;
    json_string(json, "name", name);
    json_string(json, "in", in);
    json_boolean(json, "required", is_needed);
    json_begin_object(json, "schema");
}

static void
parameter_end(struct json *json, const char *in)
{
    if (strcmp(in, "body") != 0)
        json_end_object(json);
    json_end_object(json);
}

/* The parts of paths in braces. The name of a destination must be one of the configuration. */
static const struct {
    const char *name, *help, *pattern; /* pattern NULL: a number from least to most */
    int64_t least, most;
} document_names[] = {
    {"job", "Number of the job", NULL, 1, INT64_C(999999999999999999)},
    {"view", "Number of the saved filter", NULL, 1, INT64_C(999999999999999999)},
    {"delivery", "Number of the delivery", NULL, 1, INT64_C(999999999999999999)},
    {"file", "Number of the quarantined file", NULL, 1, INT64_C(999999999999999999)},
    {"index", "Number of the plane, from 0", NULL, 0, 65535},
    {"plane", "Axial, coronal or sagittal", "^(ax|cor|sag)$", 0, 0},
    {"alert", "Id of the alert", "^[a-z_]{1,30}(:[A-Za-z0-9_-]{1,60})?$", 0, 0},
    {"destination", "Name of the destination", "", 0, 0},
    {"", "DICOM UID", "^[0-9.]{1,64}$", 0, 0}, /* any other */
};

/* Writes the parts of the path in braces. */
static void
write_path_parameters(const struct conf *conf, struct json *json, const char *path)
{
    for (const char *brace = path; (brace = strchr(brace, '{'));) {
        char name[32];
        size_t at = 0;
        brace++;
        snprintf(name, sizeof name, "%.*s", (int)strcspn(brace, "}"), brace);
        while (*document_names[at].name && strcmp(document_names[at].name, name) != 0)
            at++;
        const char *pattern = document_names[at].pattern;
        parameter_begin(json, name, "path", document_names[at].help, true);
        if (!pattern) {
            schema_number(json, "integer", document_names[at].least, document_names[at].most);
        } else {
            json_string(json, "type", "string");
            if (*pattern)
                json_string(json, "pattern", pattern);
        }
        if (pattern && !*pattern) {
            json_begin_row(json, "enum");
            for (size_t i = 0; i < conf->destination_count; i++)
                json_string(json, NULL, conf->destinations[i].name);
            json_end_row(json);
        }
        parameter_end(json, "path");
    }
}

/* A list has its fields, an order, a mark and a limit. */
static void
write_list_parameters(struct json *json, const struct api_route *route, const char *in)
{
    const struct report_list *list = &report_browsed[route->list];
    const char *brace = strchr(route->path, '{');
    for (size_t i = 0; i < list->field_count; i++) {
        const struct report_field *field = &list->fields[i];
        const size_t length = strlen(field->key);
        if (brace && strncmp(brace + 1, field->key, length) == 0 && brace[1 + length] == '}')
            continue;
        parameter_begin(json, field->key, in, field->title, route->needs && strcmp(route->needs, field->key) == 0);
        schema_of_field(json, field, in);
        parameter_end(json, in);
    }
    parameter_begin(json, "sort", in, "The order; with \"-\" before it descending", false);
    json_string(json, "type", "string");
    json_begin_array(json, "enum");
    for (size_t i = 0; i < 2 * list->sort_count; i++) {
        char key[32];
        snprintf(key, sizeof key, "%s%s", i % 2 ? "-" : "", list->sorts[i / 2].key);
        json_string(json, NULL, key);
    }
    json_end_array(json);
    parameter_end(json, in);
    parameter_begin(json, "after", in, "The mark \"next\" of an earlier answer in the same order", false);
    json_string(json, "type", "string");
    json_string(json, "pattern",
                strcmp(in, "body") == 0 ? "^" BODY_LINE "{0,256} -?[0-9]{1,18}$"
                                        : "^" QUERY_TEXT "{0,256} -?[0-9]{1,18}$");
    parameter_end(json, in);
    parameter_begin(json, "limit", in, "Rows of the answer; the default is 50", false);
    if (strcmp(in, "body") == 0) {
        schema_number_or_text(json);
        json_integer(json, "minimum", 1);
        json_integer(json, "maximum", API_LIMIT);
        json_string(json, "pattern", "^([1-9][0-9]{0,3}|10000)$"); /* API_LIMIT */
    } else {
        schema_number(json, "integer", 1, API_LIMIT);
    }
    parameter_end(json, in);
}

/* Writes the parameters that are not in the path. */
static void
write_own_parameters(struct json *json, const struct api_route *route, const char *in)
{
    if (route->kind == API_LIST)
        write_list_parameters(json, route, in);
    for (const struct api_parameter *parameter = route->parameters; parameter && parameter->key; parameter++) {
        parameter_begin(json, parameter->key, in, parameter->help, parameter->is_needed);
        if (parameter->words)
            schema_words(json, parameter->words);
        else if (parameter->is_moment)
            schema_moment(json);
        else if (parameter->most)
            schema_number(json, "integer", 1, parameter->most);
        else if (parameter->pattern) {
            json_string(json, "type", "string");
            json_string(json, "pattern", parameter->pattern);
        } else
            schema_text(json, in);
        parameter_end(json, in);
    }
    if (route->types[0] && route->types[1]) {
        const bool has_csv = strncmp(route->types[1], "text/csv", strlen("text/csv")) == 0;
        parameter_begin(json, "format", in, "The type of the answer, instead of the header Accept", false);
        schema_words(json, has_csv ? (const char *const[]){"json", "csv", NULL}
                                   : (const char *const[]){"json", "dicom", NULL});
        parameter_end(json, in);
    }
}

static void
write_body_schema(struct json *json, const struct api_route *route)
{
    json_string(json, "type", "object");
    json_boolean(json, "additionalProperties", false);
    json_begin_array(json, "required");
    if (route->needs)
        json_string(json, NULL, route->needs);
    for (const struct api_parameter *parameter = route->parameters; parameter && parameter->key; parameter++)
        if (parameter->is_needed)
            json_string(json, NULL, parameter->key);
    json_end_array(json);
    json_begin_object(json, "properties");
    write_own_parameters(json, route, "body");
    json_end_object(json);
}

static void
write_body(struct json *json, const struct api_route *route)
{
    static const char *const types[] = {JSON_TYPE, "application/x-www-form-urlencoded"};
    json_begin_object(json, "requestBody");
    json_boolean(json, "required", true);
    json_begin_object(json, "content");
    for (size_t i = 0; i < (route->subject ? 1 : sizeof types / sizeof *types); i++) {
        json_begin_object(json, route->takes_file ? "application/dicom" : types[i]);
        json_begin_object(json, "schema");
        if (route->takes_file) {
            json_string(json, "type", "string");
            json_string(json, "format", "binary");
            json_integer(json, "minLength", 1);
        } else if (route->subject)
            web_api_document_decision(json, route);
        else
            write_body_schema(json, route);
        json_end_object(json);
        json_end_object(json);
    }
    json_end_object(json);
    json_end_object(json);
}

/* A changing request must come from a page of this site. */
static void
write_parameters(struct api_call *call, struct json *json, const struct api_route *route)
{
    json_begin_array(json, "parameters");
    write_path_parameters(call->web->conf, json, route->path);
    if (route->verb == API_GET)
        write_own_parameters(json, route, "query");
    if (route->verb != API_GET) {
        char origin[300];
        snprintf(origin, sizeof origin, "http://%.255s", call->request->host);
        parameter_begin(json, "Origin", "header", "The address of this web UI, as browsers send it", true);
        schema_words(json, (const char *const[]){origin, NULL});
        parameter_end(json, "header");
    }
    if (route->takes_file) {
        parameter_begin(json, "Noctule-Form", "header", "form of /api/v1/me; needed with a cookie", false);
        json_string(json, "type", "string");
        json_string(json, "pattern", "^[!-~]*$");
        parameter_end(json, "header");
    }
    json_end_array(json);
    if (route->verb == API_POST)
        write_body(json, route);
}

/* --------------------------------------------------------------------------------- answers --- */

/* A column is a text, a number or null; one that ends in _at is a time. */
static void
write_key(void *context, const char *key)
{
    struct json *json = context;
    const size_t length = strlen(key);
    const bool is_time = (length > 3 && strcmp(key + length - 3, "_at") == 0) || strcmp(key, "at") == 0;
    json_begin_object(json, key);
    json_begin_row(json, "type");
    json_string(json, NULL, "string");
    if (!is_time)
        json_string(json, NULL, "number");
    json_string(json, NULL, "null");
    json_end_row(json);
    if (is_time)
        json_string(json, "format", "date-time");
    json_end_object(json);
}

static int
write_row_schema(struct api_call *call, const struct api_route *route, const char *key, struct json *json,
                 struct error *error)
{
    json_begin_object(json, key);
    json_string(json, "type", "object");
    json_begin_object(json, "properties");
    const int rc = report_browse_keys(call->web->report, &report_browsed[route->list], write_key, json, error);
    json_end_object(json);
    json_end_object(json);
    return rc;
}

static int
write_json_schema(struct api_call *call, const struct api_route *route, struct json *json, struct error *error)
{
    if (route->kind == API_ONE || route->list == BROWSE_RESULTS)
        if (route->kind != API_LIST)
            return write_row_schema(call, route, "schema", json, error);
    json_begin_object(json, "schema");
    json_string(json, "type", "object");
    int rc = 0;
    if (route->kind == API_LIST) {
        json_begin_row(json, "required");
        json_string(json, NULL, "items");
        json_string(json, NULL, "next");
        json_end_row(json);
        json_begin_object(json, "properties");
        json_begin_object(json, "items");
        json_string(json, "type", "array");
        rc = write_row_schema(call, route, "items", json, error);
        json_end_object(json);
        json_begin_object(json, "next");
        json_begin_row(json, "type");
        json_string(json, NULL, "string");
        json_string(json, NULL, "null");
        json_end_row(json);
        json_string(json, "description", "The mark of the next rows, for `after`; null: there are no more");
        json_end_object(json);
        json_end_object(json);
    }
    json_end_object(json);
    return rc;
}

static int
write_content(struct api_call *call, const struct api_route *route, struct json *json, struct error *error)
{
    int rc = 0;
    json_begin_object(json, "content");
    for (const char *const *type = route->types; *type && rc == 0; type++) {
        char name[64];
        snprintf(name, sizeof name, "%.*s", (int)strcspn(*type, ";"), *type);
        json_begin_object(json, name);
        if (strcmp(name, JSON_TYPE) == 0) {
            rc = write_json_schema(call, route, json, error);
        } else {
            json_begin_object(json, "schema");
            json_string(json, "type", "string");
            if (strcmp(name, "text/csv") != 0)
                json_string(json, "format", "binary");
            json_end_object(json);
        }
        json_end_object(json);
    }
    json_end_object(json);
    return rc;
}

/* Writes "content" with one type, whose schema is a component. */
static void
write_component(struct json *json, const char *type, const char *component)
{
    char reference[64];
    snprintf(reference, sizeof reference, "#/components/schemas/%s", component);
    json_begin_object(json, "content");
    json_begin_object(json, type);
    json_begin_object(json, "schema");
    json_string(json, "$ref", reference);
    json_end_object(json);
    json_end_object(json);
    json_end_object(json);
}

/* Problems, and the requests that can have them. */
enum {
    ON_GET = 1,
    ON_PLANES = 2,
    ON_QUERY = 4,
    ON_CHANGE = 8,
    ON_UPLOAD = 16,
    ON_DECISION = ON_CHANGE | ON_UPLOAD,
    ON_POST = ON_QUERY | ON_CHANGE,
    ON_ALL = 31
};

static const struct {
    const char *status, *description;
    unsigned requests;
} document_problems[] = {
    {"400", "A parameter or the body is unknown, repeated, empty or invalid", ON_ALL},
    {"401", "The token is missing or wrong", ON_ALL},
    {"403", "The person may not do this, or the request comes from another site", ON_POST | ON_UPLOAD},
    {"404", "There is no such job, series, result, destination, delivery, file or alert", ON_ALL},
    {"406", "No type of the header Accept is offered", ON_GET | ON_QUERY},
    {"409", "Another decision was made, or the state does not allow it", ON_DECISION},
    {"411", "The header Content-Length is missing", ON_POST | ON_UPLOAD},
    {"413", "The body has more than 8 KiB", ON_POST},
    {"413", "The body has more than 256 MiB", ON_UPLOAD},
    {"415", "The body is neither JSON nor a form", ON_POST},
    {"415", "The body is not application/dicom", ON_UPLOAD},
    {"421", "The host name is not configured", ON_ALL},
    {"422", "The file does not correct the result of this job; the detail begins with the code", ON_UPLOAD},
    {"429", "Too many requests", ON_PLANES | ON_DECISION},
    {"500", "The file of the job is damaged", ON_PLANES},
    {"503", "The database is not ready, or the query took too long", ON_ALL},
    {"504", "The daemon has not answered: the decision may be made", ON_DECISION},
    {"507", "The disk of the service is full", ON_UPLOAD},
};

static void
write_problems(struct json *json, const struct api_route *route)
{
    const unsigned request = route->takes_file              ? ON_UPLOAD
                             : route->verb != API_GET       ? route->kind == API_LIST ? ON_QUERY : ON_CHANGE
                             : route->kind == API_ELSEWHERE ? ON_PLANES
                                                            : ON_GET;
    for (size_t i = 0; i < sizeof document_problems / sizeof *document_problems; i++) {
        const bool is_403 = strcmp(document_problems[i].status, "403") == 0;
        if (!(document_problems[i].requests & request) && !(is_403 && route->role))
            continue;
        json_begin_object(json, document_problems[i].status);
        json_string(json, "description", document_problems[i].description);
        write_component(json, "application/problem+json", "Problem");
        json_end_object(json);
    }
}

static int
write_operation(struct api_call *call, const struct api_route *route, struct json *json, struct error *error)
{
    static const char *const verbs[] = {[API_GET] = "get", [API_POST] = "post", [API_DELETE] = "delete"};
    json_begin_object(json, verbs[route->verb]);
    json_string(json, "summary", route->summary);
    write_parameters(call, json, route);
    json_begin_object(json, "responses");
    json_begin_object(json, "200");
    json_string(json, "description", route->verb == API_GET ? "The answer, with an ETag" : "The answer");
    int rc = 0;
    if (route->kind == API_DECIDES)
        write_component(json, JSON_TYPE, "Decided");
    else
        rc = write_content(call, route, json, error);
    json_end_object(json);
    if (route->verb == API_GET && route->kind != API_ELSEWHERE) {
        json_begin_object(json, "304");
        json_string(json, "description", "The ETag of If-None-Match is that of the answer");
        json_end_object(json);
    }
    write_problems(json, route);
    json_end_object(json);
    if (route->kind == API_DECIDES) {
        json_begin_array(json, "security");
        json_begin_object(json, NULL);
        json_begin_array(json, "token");
        json_end_array(json);
        json_end_object(json);
        json_end_array(json);
    }
    json_end_object(json);
    return rc;
}

/* Writes the operations of each path, which follow one another in the table. Decisions that page.may does not allow have
 * no address. */
static int
write_paths(struct api_call *call, struct json *json, struct error *error)
{
    int rc = 0;
    for (size_t i = 0; i < api_route_count && rc == 0; i++) {
        const struct api_route *route = &api_routes[i];
        const bool is_session = strncmp(route->path, "session", strlen("session")) == 0;
        if ((route->kind == API_DECIDES && !web_api_may_decide(route, call->web->conf)) ||
            (is_session && !call->web->conf->page.tokens_file))
            continue;
        if (i == 0 || strcmp(route[-1].path, route->path) != 0) {
            char path[128];
            snprintf(path, sizeof path, API_ROOT "%s", route->path);
            json_begin_object(json, path);
        }
        rc = write_operation(call, route, json, error);
        if (i + 1 == api_route_count || strcmp(route[1].path, route->path) != 0)
            json_end_object(json);
    }
    return rc;
}

static void
document_components(struct json *json)
{
    static const char *const members[] = {"type", "title", "detail", "code", "to_do"};
    json_begin_object(json, "components");
    json_begin_object(json, "schemas");
    json_begin_object(json, "Problem");
    json_string(json, "type", "object");
    json_begin_row(json, "required");
    for (size_t i = 0; i < sizeof members / sizeof *members; i++)
        json_string(json, NULL, members[i]);
    json_string(json, NULL, "status");
    json_end_row(json);
    json_begin_object(json, "properties");
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        json_begin_object(json, members[i]);
        json_string(json, "type", "string");
        json_end_object(json);
    }
    json_begin_object(json, "status");
    json_string(json, "type", "integer");
    json_end_object(json);
    json_end_object(json);
    json_end_object(json);
    json_begin_object(json, "Decided");
    json_string(json, "type", "object");
    json_begin_row(json, "required");
    json_string(json, NULL, "message");
    json_end_row(json);
    json_begin_object(json, "properties");
    json_begin_object(json, "message");
    json_string(json, "type", "string");
    json_end_object(json);
    json_end_object(json);
    json_end_object(json);
    json_end_object(json);
    json_begin_object(json, "securitySchemes");
    json_begin_object(json, "token");
    json_string(json, "type", "http");
    json_string(json, "scheme", "bearer");
    json_end_object(json);
    json_end_object(json);
    json_end_object(json);
}

int
web_api_document(struct api_call *call, struct error *error)
{
    struct json json = {.out = call->out};
    json_begin_object(&json, NULL);
    json_string(&json, "openapi", "3.1.0");
    json_begin_object(&json, "info");
    json_string(&json, "title", "Noctule");
    json_string(&json, "version", NOCTULE_VERSION);
    json_string(&json, "description", "Jobs, results, deliveries and decisions. Rows are those of the public views.");
    json_end_object(&json);
    json_begin_object(&json, "paths");
    const int rc = write_paths(call, &json, error);
    json_end_object(&json);
    document_components(&json);
    json_begin_array(&json, "security");
    json_begin_object(&json, NULL);
    json_end_object(&json);
    json_begin_object(&json, NULL);
    json_begin_array(&json, "token");
    json_end_array(&json);
    json_end_object(&json);
    json_end_array(&json);
    json_end_object(&json);
    fputc('\n', call->out);
    return rc;
}
