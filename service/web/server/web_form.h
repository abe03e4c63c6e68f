/* web_form.h - the body of a POST: a form of a page, or a JSON object. */
#ifndef NOCTULE_SERVICE_WEB_SERVER_WEB_FORM_H
#define NOCTULE_SERVICE_WEB_SERVER_WEB_FORM_H

#include "base/error.h"
#include "service/web/server/web_request.h"

struct report;

/* Names of fields. Others are refused. `form`: the token of web_session.h. */
#define FORM_VALUES(VALUE)                                                                                             \
    VALUE(action)                                                                                                      \
    VALUE(subject)                                                                                                     \
    VALUE(reason)                                                                                                      \
    VALUE(value) VALUE(seen) VALUE(form) VALUE(back) VALUE(person) VALUE(secret) VALUE(list) VALUE(name) VALUE(filter)
#define FORM_VALUE(name) FORM_##name,

enum form_value { FORM_VALUES(FORM_VALUE) FORM_VALUE_COUNT };

struct web_form {
    bool is_json, takes_any;                         /* takes_any: web_form_read_query() */
    char *values[FORM_VALUE_COUNT];                  /* UTF-8 without control characters; "" if missing */
    char *text;                                      /* memory of the values */
    struct web_parameter parameters[WEB_PARAMETERS]; /* with takes_any, instead of `values` */
    size_t parameter_count;
};

/* Reads the body. Returns 0, -EINVAL or -ENOTSUP (the type) with a message, or another -errno. `report` parses JSON. The
 * caller must call web_form_free() in any case. */
int web_form_read(const struct web_request *request, struct report *report, struct web_form *form, struct error *error);
/* Returns whether a text is one line of UTF-8. */
bool web_form_is_line(const char *text);
void web_form_free(struct web_form *form);

/* Reads the body as the query of the request: any names, in request->parameters and request->values, which then point to
 * the form. Returns the same. The caller must call web_form_free() in any case. */
int web_form_read_query(struct web_request *request, struct report *report, struct web_form *form, struct error *error);

#endif
