#include "service/web/server/web_form.h"

#include "base/text.h"
#include "db/report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define FORM_NAME(name) #name,

static const char *const form_names[FORM_VALUE_COUNT] = {FORM_VALUES(FORM_NAME)};

static int
form_hex(char c)
{
    static const char digits[] = "0123456789abcdef";
    const char *at = c ? strchr(digits, c | 0x20) : NULL;
    return at ? (int)(at - digits) : -1;
}

/* Decodes application/x-www-form-urlencoded in place. Returns false for a broken encoding. */
static bool
form_decode(char *text)
{
    char *out = text;
    for (const char *in = text; *in; in++) {
        if (*in != '%') {
            *out++ = *in == '+' ? ' ' : *in;
            continue;
        }
        const int high = form_hex(in[1]), low = high < 0 ? -1 : form_hex(in[2]);
        if (low < 0 || high + low == 0)
            return false;
        *out++ = (char)(16 * high + low);
        in += 2;
    }
    *out = '\0';
    return true;
}

bool
web_form_is_line(const char *text)
{
    size_t length;
    while ((length = text_line_length(text)) > 0)
        text += length;
    return !*text;
}

/* Sets a value. Returns the fault, or NULL. */
static const char *
form_set(struct web_form *form, const char *name, char *value)
{
    int at = 0;
    if (form->takes_any) {
        if (form->parameter_count == WEB_PARAMETERS)
            return "it has too many fields";
        form->parameters[form->parameter_count++] = (struct web_parameter){name, value, false};
        return web_form_is_line(value) ? NULL : "a value is not one line of UTF-8";
    }
    while (at < FORM_VALUE_COUNT && strcmp(form_names[at], name) != 0)
        at++;
    if (at == FORM_VALUE_COUNT)
        return "it has an unknown field";
    if (form->values[at])
        return "it has a field twice";
    if (!web_form_is_line(value))
        return "a value is not one line of UTF-8";
    form->values[at] = value;
    return NULL;
}

static const char *
form_parse(struct web_form *form, const char *body)
{
    form->text = strdup(body);
    if (!form->text)
        return "memory is short";
    for (char *rest = form->text, *pair; (pair = strsep(&rest, "&"));) {
        char *value = strchr(pair, '=');
        if (!value)
            return "a field has no value";
        *value++ = '\0';
        if (!form_decode(pair) || !form_decode(value))
            return "its encoding is broken";
        const char *fault = form_set(form, pair, value);
        if (fault)
            return fault;
    }
    return NULL;
}

/* The members are in form->text: name, NUL, value, NUL for each. */
static const char *
form_parse_members(struct web_form *form, size_t size)
{
    for (char *name = form->text; name < form->text + size;) {
        char *value = name + strlen(name) + 1;
        const char *fault = form_set(form, name, value);
        if (fault)
            return fault;
        name = value + strlen(value) + 1;
    }
    return NULL;
}

static bool
form_is_type(const char *type, const char *wanted)
{
    const size_t length = strcspn(type, "; ");
    return strlen(wanted) == length && strncasecmp(type, wanted, length) == 0;
}

static int
form_read(const struct web_request *request, struct report *report, struct web_form *form, struct error *error)
{
    const char *fault = NULL;
    size_t size = 0;
    form->is_json = form_is_type(request->content_type, "application/json");
    if (strlen(request->body) != request->body_size || strstr(request->body, "\\u0000")) {
        fault = "it has a NUL"; /* where SQLite would cut a text of JSON */
    } else if (form->is_json) {
        const int rc = report_json_texts(report, request->body, &form->text, &size, error);
        if (rc)
            return rc;
        fault = form_parse_members(form, size);
    } else if (form_is_type(request->content_type, "application/x-www-form-urlencoded")) {
        fault = form_parse(form, request->body);
    } else {
        return error_set(error, -ENOTSUP, CODE_NONE,
                         "the body must be application/json or application/x-www-form-urlencoded");
    }
    return fault ? error_set(error, -EINVAL, CODE_NONE, "the body cannot be read: %s", fault) : 0;
}

int
web_form_read(const struct web_request *request, struct report *report, struct web_form *form, struct error *error)
{
    static char nothing[] = "";
    *form = (struct web_form){0};
    const int rc = form_read(request, report, form, error);
    for (int i = 0; i < FORM_VALUE_COUNT; i++)
        if (!form->values[i])
            form->values[i] = nothing;
    return rc;
}

int
web_form_read_query(struct web_request *request, struct report *report, struct web_form *form, struct error *error)
{
    *form = (struct web_form){.takes_any = true};
    if (request->parameter_count > 0)
        return error_set(error, -EINVAL, CODE_NONE, "the parameters go in the body, as addresses stay in logs");
    const int rc = form_read(request, report, form, error);
    if (rc)
        return rc;
    memcpy(request->parameters, form->parameters, sizeof form->parameters);
    request->parameter_count = form->parameter_count;
    for (size_t i = 0; i < form->parameter_count; i++)
        for (int name = 0; name < REQUEST_VALUE_COUNT; name++)
            if (strcmp(web_request_value_names[name], form->parameters[i].name) == 0)
                request->values[name] = form->parameters[i].value;
    return 0;
}

void
web_form_free(struct web_form *form)
{
    free(form->text);
    *form = (struct web_form){0};
}
