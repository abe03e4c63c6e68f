/*
 * web_api.h - /api/v1: JSON and CSV for programs. Without side effects, but for decisions (web_decide.h).
 *
 * web_api_routes.c has a row per address. The parameters of a request, the answers and the OpenAPI document follow from
 * it, and from the lists of db/report_lists.h.
 */
#ifndef NOCTULE_SERVICE_WEB_API_WEB_API_H
#define NOCTULE_SERVICE_WEB_API_WEB_API_H

#include "service/common/json.h"
#include "service/web/web.h"

#define API_ROOT "/api/v1/"

struct api_call;

/* A parameter of an address that is no list. */
struct api_parameter {
    const char *key, *help;
    const char *const *words; /* up to NULL; NULL: any text */
    bool is_moment, is_needed;
    int64_t most;        /* a whole number from 1; 0: it is no number */
    const char *pattern; /* regular expression for the document; the answer checks the text; NULL: none */
};

/* An address below API_ROOT. A part in braces is a field of the list, and identifies the thing. */
struct api_route {
    const char *path;    /* "jobs/{job}/segments" */
    const char *summary; /* of the document */

    enum {
        API_LIST,      /* the rows of `list`, as JSON or CSV */
        API_ONE,       /* the first row of `list`, as an object */
        API_ANSWER,    /* `answer` writes it */
        API_ELSEWHERE, /* a row of web_routes.c answers it; this one describes it */
        API_DECIDES    /* the same: web_decide() takes the decision */
    } kind;

    enum { API_GET, API_POST, API_DELETE } verb; /* a POST has its parameters in the body */

    enum { API_ANYONE, API_PERSON, API_OPERATOR } role; /* its readers: any, or persons with a name */

    enum report_browse_name list;
    int (*answer)(struct api_call *call, struct error *error);
    const struct api_parameter *parameters; /* up to one without a key; NULL: none */
    const char *types[3];                   /* that can be accepted, up to NULL; the first is the default */
    const char *since;                      /* of a list: the value of this field if the request has none; NULL */
    const char *needs;                      /* of a list: a field that must have a value, or NULL */
    bool is_of_job;                         /* the job of the path must exist */

    /* Of API_DECIDES, unless the body has both (service/common/decisions). */
    const char *actions[4]; /* up to NULL; if there are several, the body names one */
    const char *subject;    /* the kind of object in the path: "job" */
    bool takes_file;        /* the body is a DICOM file: web_upload() takes it */
};

extern const struct api_route api_routes[];
extern const size_t api_route_count;

#define API_VALUE 512
#define API_LIMIT 10000 /* max rows of an answer */

/* A request for an address. */
struct api_call {
    struct web *web;
    const struct web_request *request;
    const struct api_route *route;
    char identity[API_VALUE]; /* the part of the path in braces; "" */
    const char *type;         /* of the answer */
    struct report_browse browse;
    const char *values[8]; /* of route->parameters; NULL: not given */
    char pseudonym[PSEUDONYM_SIZE];
    FILE *out;
    struct web_reply *reply;
};

/* Answers an address below API_ROOT. Writes a problem for a request that it cannot understand, and returns 0. Returns
 * -errno for other errors. */
int web_api_answer(struct web *web, const struct web_request *request, struct web_reply *answer, struct error *error);

/* Writes a problem (RFC 9457). `title` must be one of the table in web_api.c. */
void web_api_refuse(int status, const char *title, const char *detail, struct web_reply *answer);

/* Writes the person of the request (web_me.c). */
int web_api_views(struct api_call *call, struct error *error);
int web_api_me(struct api_call *call, struct error *error);
int web_api_log_in(struct web *web, const struct web_request *request, struct web_reply *answer, struct error *error);
int web_api_log_out(struct web *web, const struct web_request *request, struct web_reply *answer, struct error *error);

/* Compares a path below API_ROOT with one that may have a part in braces. Returns false, or true with that part. */
bool web_api_matches(const char *pattern, const char *path, char identity[API_VALUE]);

/* Finds the address that takes a decision, with the name in its path. Returns NULL if the path has no decision. */
const struct api_route *web_api_find_decision(const char *path, char name[API_VALUE]);
bool web_api_is_decision(const char *path);
/* Returns why the action and the subject of a body do not fit the address, or NULL. */
const char *web_api_decision_fault(const struct api_route *route, const char *action, const char *subject);
/* Returns whether page.may allows the decisions of this address, and a subject can exist. */
bool web_api_may_decide(const struct api_route *route, const struct conf *conf);
/* Writes the schema of a body with the decision of this address. */
void web_api_document_decision(struct json *json, const struct api_route *route);

/* rules/try */
extern const struct api_parameter web_api_rules_parameters[];
int web_api_rules_try(struct api_call *call, struct error *error);

/* Writes the OpenAPI document. Returns 0 or -errno. */
int web_api_document(struct api_call *call, struct error *error);

#endif
