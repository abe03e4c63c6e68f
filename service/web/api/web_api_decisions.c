/* web_api_decisions.c - the addresses of /api/v1 that take a decision (web_decide.h): rows of api_routes. */
#include "service/web/api/web_api.h"

#include "service/common/decisions/decisions.h"

#include <string.h>

const struct api_route *
web_api_find_decision(const char *path, char name[API_VALUE])
{
    if (strncmp(path, API_ROOT, strlen(API_ROOT)) != 0)
        return NULL;
    for (size_t i = 0; i < api_route_count; i++)
        if (api_routes[i].kind == API_DECIDES && web_api_matches(api_routes[i].path, path + strlen(API_ROOT), name))
            return &api_routes[i];
    return NULL;
}

bool
web_api_is_decision(const char *path)
{
    char name[API_VALUE];
    return web_api_find_decision(path, name) != NULL;
}

const char *
web_api_decision_fault(const struct api_route *route, const char *action, const char *subject)
{
    if (*subject)
        return "subject: the address has it";
    if (!route->actions[1])
        return *action ? "action: the address has it" : NULL;
    for (size_t i = 0; route->actions[i]; i++)
        if (strcmp(route->actions[i], action) == 0)
            return NULL;
    return "action: accept, reject or undo is expected";
}

static const struct decision_rule *
decision_rule_of(const struct api_route *route, const char *action)
{
    char subject[32];
    const char *name;
    snprintf(subject, sizeof subject, "%s 1", route->subject);
    return decision_find(action, subject, &name);
}

bool
web_api_may_decide(const struct api_route *route, const struct conf *conf)
{
    if (!route->subject)
        return conf->page.may != 0;
    return (conf->page.may & decision_rule_of(route, route->actions[0])->may) &&
           (strcmp(route->subject, "destination") != 0 || conf->destination_count > 0);
}

/* ------------------------------------------------------------------------------ document ---- */

/* A whole number is as good as its text. */
static void
decision_document_text(struct json *json, const char *key, const char *help, int64_t least)
{
    json_begin_object(json, key);
    json_string(json, "description", help);
    json_begin_row(json, "type");
    json_string(json, NULL, "string");
    json_string(json, NULL, "integer");
    json_end_row(json);
    json_integer(json, "minLength", least);
    json_integer(json, "maxLength", DECISION_REASON);
    json_string(json, "pattern", "^[^\\u0000-\\u001f\\u007f-\\u009f]*$");
    json_end_object(json);
}

static void
decision_document_priority(struct json *json)
{
    json_begin_object(json, "value");
    json_string(json, "type", "integer");
    json_integer(json, "minimum", CONF_MIN_PRIORITY);
    json_integer(json, "maximum", CONF_MAX_PRIORITY);
    json_end_object(json);
}

/* Writes the schema of a body that makes this decision. */
static void
decision_document_body(struct json *json, const struct api_route *route, const char *action)
{
    const bool has_reason = decision_rule_of(route, action)->has_reason;
    const bool is_priority = strcmp(action, "priority") == 0;
    json_string(json, "type", "object");
    json_boolean(json, "additionalProperties", false);
    json_begin_row(json, "required");
    if (route->actions[1])
        json_string(json, NULL, "action");
    if (is_priority)
        json_string(json, NULL, "value");
    if (has_reason)
        json_string(json, NULL, "reason");
    json_end_row(json);
    json_begin_object(json, "properties");
    if (route->actions[1]) {
        json_begin_object(json, "action");
        json_string(json, "const", action);
        json_end_object(json);
    }
    if (is_priority)
        decision_document_priority(json);
    decision_document_text(json, "reason", "One line of at most 400 bytes", has_reason);
    decision_document_text(json, "seen",
                           "The version of the result that the person has seen: 409 if it is another one now", 0);
    json_end_object(json);
}

void
web_api_document_decision(struct json *json, const struct api_route *route)
{
    if (!route->actions[1]) {
        decision_document_body(json, route, route->actions[0]);
        return;
    }
    json_begin_array(json, "anyOf");
    for (size_t i = 0; route->actions[i]; i++) {
        json_begin_object(json, NULL);
        decision_document_body(json, route, route->actions[i]);
        json_end_object(json);
    }
    json_end_array(json);
}
