/* web_api_document.c - the OpenAPI document of /api/v1, from the table of addresses and the fields of the lists. */
#include "service/web/web_api.h"

#include "db/report.h"
#include "service/common/json.h"

#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------------------ parameters --- */

static void
schema_number(struct json *json, const char *type, int64_t least, int64_t most)
{
    json_string(json, "type", type);
    json_integer(json, "minimum", least);
    json_integer(json, "maximum", most);
}

static void
schema_text(struct json *json)
{
    json_string(json, "type", "string");
    json_integer(json, "minLength", 1);
    json_integer(json, "maxLength", 256);
    json_string(json, "pattern", "^[^\\u0000]+$");
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
schema_of_field(struct json *json, const struct report_field *field)
{
    switch (field->form) {
    case REPORT_COUNT:
        schema_number(json, "integer", 0, INT64_C(999999999999999999));
        break;
    case REPORT_AMOUNT:
        schema_number(json, "number", 0, INT64_C(1000000000));
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
        schema_text(json);
        break;
    }
}

/* Opens a parameter and its schema. */
static void
parameter_begin(struct json *json, const char *name, const char *in, const char *help, bool is_needed)
{
    json_begin_object(json, NULL);
    json_string(json, "name", name);
    json_string(json, "in", in);
    json_string(json, "description", help);
    json_boolean(json, "required", is_needed);
    json_begin_object(json, "schema");
}

static void
parameter_end(struct json *json)
{
    json_end_object(json);
    json_end_object(json);
}

/* A list has its fields, an order, a mark and a limit. */
static void
write_list_parameters(struct json *json, const struct api_route *route, const char *in_path)
{
    const struct report_list *list = &report_browsed[route->list];
    for (size_t i = 0; i < list->field_count; i++) {
        if (strcmp(list->fields[i].key, in_path) == 0)
            continue;
        parameter_begin(json, list->fields[i].key, "query", list->fields[i].title, false);
        schema_of_field(json, &list->fields[i]);
        parameter_end(json);
    }
    parameter_begin(json, "sort", "query", "The order; with \"-\" before it descending", false);
    json_string(json, "type", "string");
    json_begin_array(json, "enum");
    for (size_t i = 0; i < 2 * list->sort_count; i++) {
        char key[32];
        snprintf(key, sizeof key, "%s%s", i % 2 ? "-" : "", list->sorts[i / 2].key);
        json_string(json, NULL, key);
    }
    json_end_array(json);
    parameter_end(json);
    parameter_begin(json, "after", "query", "The mark \"next\" of an earlier answer in the same order", false);
    json_string(json, "type", "string");
    json_string(json, "pattern", "^[^\\u0000]{0,256} -?[0-9]{1,18}$");
    parameter_end(json);
    parameter_begin(json, "limit", "query", "Rows of the answer; the default is 50", false);
    schema_number(json, "integer", 1, API_LIMIT);
    parameter_end(json);
}

static void
write_parameters(struct json *json, const struct api_route *route)
{
    char in_path[32] = "";
    const char *brace = strchr(route->path, '{');
    json_begin_array(json, "parameters");
    if (brace) {
        snprintf(in_path, sizeof in_path, "%.*s", (int)strcspn(brace + 1, "}"), brace + 1);
        const bool is_number = strcmp(in_path, "job") == 0;
        parameter_begin(json, in_path, "path", is_number ? "Number of the job" : "DICOM UID", true);
        if (is_number)
            schema_number(json, "integer", 1, INT64_C(999999999999999999));
        else
            json_string(json, "type", "string");
        if (!is_number)
            json_string(json, "pattern", "^[0-9.]{1,64}$");
        parameter_end(json);
    }
    if (route->kind == API_LIST)
        write_list_parameters(json, route, in_path);
    for (const struct api_parameter *parameter = route->parameters; parameter && parameter->key; parameter++) {
        parameter_begin(json, parameter->key, "query", parameter->help, parameter->is_needed);
        if (parameter->words)
            schema_words(json, parameter->words);
        else if (parameter->is_moment)
            schema_moment(json);
        else
            schema_text(json);
        parameter_end(json);
    }
    if (route->types[1]) {
        const bool is_list = route->kind == API_LIST;
        parameter_begin(json, "format", "query", "The type of the answer, instead of the header Accept", false);
        schema_words(json, is_list ? (const char *const[]){"json", "csv", NULL}
                                   : (const char *const[]){"json", "dicom", NULL});
        parameter_end(json);
    }
    json_end_array(json);
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
        if (strcmp(name, "application/json") == 0) {
            rc = write_json_schema(call, route, json, error);
        } else {
            json_begin_object(json, "schema");
            json_string(json, "type", "string");
            if (strcmp(name, "application/dicom") == 0)
                json_string(json, "format", "binary");
            json_end_object(json);
        }
        json_end_object(json);
    }
    json_end_object(json);
    return rc;
}

static int
write_operation(struct api_call *call, const struct api_route *route, struct json *json, struct error *error)
{
    static const char *const problems[][2] = {{"400", "A parameter is unknown, repeated, empty or invalid"},
                                              {"401", "The token is missing or wrong"},
                                              {"404", "There is no such job, series or result"},
                                              {"406", "No type of the header Accept is offered"},
                                              {"421", "The host name is not configured"},
                                              {"503", "The database is not ready, or the query took too long"}};
    char path[128];
    snprintf(path, sizeof path, API_ROOT "%s", route->path);
    json_begin_object(json, path);
    json_begin_object(json, "get");
    json_string(json, "summary", route->summary);
    write_parameters(json, route);
    json_begin_object(json, "responses");
    json_begin_object(json, "200");
    json_string(json, "description", "The answer, with an ETag");
    const int rc = write_content(call, route, json, error);
    json_end_object(json);
    json_begin_object(json, "304");
    json_string(json, "description", "The ETag of If-None-Match is that of the answer");
    json_end_object(json);
    for (size_t i = 0; i < sizeof problems / sizeof *problems; i++) {
        json_begin_object(json, problems[i][0]);
        json_string(json, "description", problems[i][1]);
        json_begin_object(json, "content");
        json_begin_object(json, "application/problem+json");
        json_begin_object(json, "schema");
        json_string(json, "$ref", "#/components/schemas/Problem");
        json_end_object(json);
        json_end_object(json);
        json_end_object(json);
        json_end_object(json);
    }
    json_end_object(json);
    json_end_object(json);
    json_end_object(json);
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
    int rc = 0;
    json_begin_object(&json, NULL);
    json_string(&json, "openapi", "3.1.0");
    json_begin_object(&json, "info");
    json_string(&json, "title", "Noctule");
    json_string(&json, "version", NOCTULE_VERSION);
    json_string(&json, "description", "Jobs, results and deliveries, read-only. Rows are those of the public views.");
    json_end_object(&json);
    json_begin_object(&json, "paths");
    for (size_t i = 0; i < api_route_count && rc == 0; i++)
        rc = write_operation(call, &api_routes[i], &json, error);
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
