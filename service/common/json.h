/*
 * json.h - write one JSON document to a stream, indented.
 *
 * The writer adds commas, indentation and escapes. Keys must be NULL inside arrays. Numbers that JSON cannot express
 * become null. Bytes that are not UTF-8 become U+FFFD. The caller must check ferror().
 */
#ifndef NOCTULE_SERVICE_COMMON_JSON_H
#define NOCTULE_SERVICE_COMMON_JSON_H

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct json {
    FILE *out;
    int depth;
    bool filled; /* the innermost object or array has an element */
    bool in_row; /* elements share one line */
};

void json_open(struct json *json, const char *key, char bracket);
void json_close(struct json *json, char bracket);
#define json_begin_object(json, key) json_open(json, key, '{')
#define json_end_object(json)        json_close(json, '}')
#define json_begin_array(json, key)  json_open(json, key, '[')
#define json_end_array(json)         json_close(json, ']')
/* Opens an array of numbers that is written on one line. */
void json_begin_row(struct json *json, const char *key);
void json_end_row(struct json *json);
void json_string(struct json *json, const char *key, const char *value);
void json_integer(struct json *json, const char *key, int64_t value);
void json_number(struct json *json, const char *key, double value); /* 9 digits */
void json_exact(struct json *json, const char *key, double value);  /* as text_digits */
void json_literal(struct json *json, const char *key, const char *text);
/* Writes a Unix time as ISO 8601 in UTC; null if it is not above 0. */
void json_time(struct json *json, const char *key, int64_t ms);

#define json_null(json, key)           json_literal(json, key, "null")
#define json_boolean(json, key, value) json_literal(json, key, (value) ? "true" : "false")
/* Writes the members code, message and files. */
void json_error(struct json *json, const struct error *error);

#endif
