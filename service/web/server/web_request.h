/*
 * web_request.h - a request to the web UI and its answer, without the HTTP part, which is in
 * web_server.c.
 */
#ifndef NOCTULE_SERVICE_WEB_SERVER_WEB_REQUEST_H
#define NOCTULE_SERVICE_WEB_SERVER_WEB_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Names of query parameters. Others are ignored. */
#define REQUEST_VALUES(VALUE)                                                                                          \
    VALUE(id)                                                                                                          \
    VALUE(uid)                                                                                                         \
    VALUE(q) VALUE(after) VALUE(list) VALUE(day) VALUE(live) VALUE(view) VALUE(at) VALUE(of) VALUE(x) VALUE(y)
#define REQUEST_VALUE(name) REQUEST_##name,

enum request_value { REQUEST_VALUES(REQUEST_VALUE) REQUEST_VALUE_COUNT };

extern const char *const web_request_value_names[REQUEST_VALUE_COUNT];

/* A query parameter as it was sent; a list takes its fields by their names. */
struct web_parameter {
    const char *name, *value; /* UTF-8, decoded */
    bool is_cut;              /* a NUL was in it */
};

#define WEB_PARAMETERS 32

struct web_request {
    const char *path;
    const char *values[REQUEST_VALUE_COUNT]; /* UTF-8, decoded; "" if missing */
    const char *host, *authorization;        /* headers; "" if missing */
    const char *accept, *if_none_match;      /* the same; NULL is allowed */
    struct web_parameter parameters[WEB_PARAMETERS];
    size_t parameter_count; /* those behind WEB_PARAMETERS are counted only */
    const char *origin, *fetch_site, *cookie, *content_type;
    const char *address; /* of the peer; "" if unknown */
    bool posts;          /* POST, else GET or HEAD */
    const char *body;    /* of a POST, with a NUL behind it; NULL: none */
    size_t body_size;
    int upload; /* descriptor of the body of an upload, which the server closes; 0: none */
    /* Returns a header, "" if it is missing or comes twice. */
    const char *(*header)(const void *connection, const char *name);
    const void *connection;
    const struct web_person *person; /* set by web_answer (web_session.h) */
};

struct web_person;

/* A decision that the daemon must make before the answer is written (web_decide.h). */
struct web_decision;

/* RFC 9110, section 15 */
enum http_status {
    HTTP_OK = 200,
    HTTP_MOVED_PERMANENTLY = 301,
    HTTP_SEE_OTHER = 303,
    HTTP_NOT_MODIFIED = 304,
    HTTP_BAD_REQUEST = 400,
    HTTP_UNAUTHORIZED = 401,
    HTTP_FORBIDDEN = 403,
    HTTP_NOT_FOUND = 404,
    HTTP_METHOD_NOT_ALLOWED = 405,
    HTTP_NOT_ACCEPTABLE = 406,
    HTTP_CONFLICT = 409,
    HTTP_LENGTH_REQUIRED = 411,
    HTTP_CONTENT_TOO_LARGE = 413,
    HTTP_UNSUPPORTED_MEDIA_TYPE = 415,
    HTTP_MISDIRECTED_REQUEST = 421,
    HTTP_UNPROCESSABLE_CONTENT = 422,
    HTTP_TOO_MANY_REQUESTS = 429, /* RFC 6585 */
    HTTP_SERVER_ERROR = 500,
    HTTP_SERVICE_UNAVAILABLE = 503,
    HTTP_GATEWAY_TIMEOUT = 504,
    HTTP_INSUFFICIENT_STORAGE = 507, /* RFC 4918 */
};

struct web_reply {
    int status;
    const char *type;              /* static */
    bool keeps;                    /* browsers may cache it for an hour; must not contain patient data */
    char back[40];                 /* of a refusal: the page to go back to; "": the first one */
    char *location;                /* the address of a redirect, malloc'd; the server frees it */
    bool is_asset;                 /* its address has the hash of its content: browsers may cache it for a year */
    bool runs_script;              /* a page with the slice viewer */
    bool needs_token;              /* request credentials from the browser */
    bool posts_only;               /* with status 405: the path takes POST only */
    char cookie[512];              /* to set; "": none */
    char etag[24];                 /* of the content, with its quotes; "": none */
    char *link;                    /* of the header Link, malloc'd; the server frees it */
    int64_t job;                   /* job of its data, or 0 */
    struct web_decision *decision; /* NULL: the answer is complete */
    FILE *out;                     /* stream for the text; web_server.c checks it for errors */
    char *bytes;                   /* or the content, malloc'd; the server frees it */
    size_t size;
    int file; /* or a file, which the server closes; 0: none */
};

/* Returns a positive decimal number, or 0 if it is not one. */
int64_t web_request_number(const struct web_request *request, enum request_value value);

#endif
