/*
 * web_request.h - a request to the web UI and its answer, without the HTTP part, which is in
 * web_server.c.
 */
#ifndef NOCTULE_SERVICE_WEB_WEB_REQUEST_H
#define NOCTULE_SERVICE_WEB_WEB_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Names of query parameters. Others are ignored. */
#define REQUEST_VALUES(VALUE) VALUE(id) VALUE(uid) VALUE(q) VALUE(after) VALUE(list) VALUE(day) VALUE(live)
#define REQUEST_VALUE(name)   REQUEST_##name,

enum request_value { REQUEST_VALUES(REQUEST_VALUE) REQUEST_VALUE_COUNT };

extern const char *const web_request_value_names[REQUEST_VALUE_COUNT];

struct web_request {
    const char *path;
    const char *values[REQUEST_VALUE_COUNT]; /* UTF-8, decoded; "" if missing */
    const char *host, *authorization;        /* headers; "" if missing */
};

struct web_reply {
    int status;
    const char *type; /* static */
    bool keeps;       /* browsers may cache it for an hour; must not contain patient data */
    char *location;   /* the address of a redirect, malloc'd; the server frees it */
    bool needs_token; /* request credentials from the browser */
    FILE *out;        /* stream for the text; web_server.c checks it for errors */
    char *bytes;      /* or the content, malloc'd; the server frees it */
    size_t size;
};

/* Returns a positive decimal number, or 0 if it is not one. */
int64_t web_request_number(const struct web_request *request, enum request_value value);

#endif
