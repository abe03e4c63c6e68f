/*
 * web_request.h - what somebody asks of the page, and what is answered: without HTTP's own, which web_server.c does.
 */
#ifndef NOCTULE_SERVICE_WEB_WEB_REQUEST_H
#define NOCTULE_SERVICE_WEB_WEB_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* What a request can say behind its path. Others are passed over. */
#define REQUEST_VALUES(VALUE)                                                                      \
    VALUE(id) VALUE(uid) VALUE(q) VALUE(after) VALUE(list) VALUE(day) VALUE(still)
#define REQUEST_VALUE(name) REQUEST_##name,

enum request_value { REQUEST_VALUES(REQUEST_VALUE) REQUEST_VALUE_COUNT };

extern const char *const request_value_names[REQUEST_VALUE_COUNT];

struct page_request {
    const char *path;
    const char *values[REQUEST_VALUE_COUNT]; /* UTF-8, decoded; "" where not given */
    const char *host, *authorization;        /* headers; "" where there are none */
};

struct page_reply {
    int status;
    const char *type; /* static */
    bool keeps;       /* browsers may keep it for an hour: nothing of a patient */
    bool asks_token;  /* who has none is asked */
    FILE *out;        /* the text goes here; its failures are web_server.c's */
    char *bytes;      /* or this is it, malloc'd: the server's from then on */
    size_t size;
};

/* A positive number of decimal digits; 0: it is none. */
int64_t request_number(const struct page_request *request, enum request_value value);
/* A UID: digits and points, as many as DICOM allows. */
bool request_is_uid(const char *text);

#endif
