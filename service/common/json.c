#include "service/common/json.h"

#include "base/text.h"
#include "db/iso_time.h"

#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>

static void
line(struct json *json)
{
    fputc('\n', json->out);
    for (int i = 0; i < json->depth; i++)
        fputs("  ", json->out);
}

/* Returns the number of characters that are written as they are. */
static size_t
plain(const char *text)
{
    size_t count = 0;
    while (text[count] >= ' ' && text[count] < 0x7F && text[count] != '"' && text[count] != '\\')
        count++;
    return count;
}

static void
quoted(FILE *out, const char *text)
{
    fputc('"', out);
    while (*text) {
        const size_t as_it_is = plain(text);
        if (as_it_is > 0) {
            fwrite(text, 1, as_it_is, out);
            text += as_it_is;
            continue;
        }
        unsigned char c = (unsigned char)*text;
        size_t length = text_utf8_length(text);
        if (length == 0) {
            fputs("\\ufffd", out);
            length = 1;
        } else if (c == '"' || c == '\\') {
            fprintf(out, "\\%c", c);
        } else if (c == '\n') {
            fputs("\\n", out);
        } else if (text_line_length(text) == 0) {
            fprintf(out, "\\u%04x", (unsigned char)text[length - 1]);
        } else {
            fwrite(text, 1, length, out);
        }
        text += length;
    }
    fputc('"', out);
}

static void
element(struct json *json, const char *key)
{
    if (json->filled)
        fputs(json->in_row ? ", " : ",", json->out);
    if (json->depth > 0 && !json->in_row)
        line(json);
    json->filled = true;
    if (key) {
        quoted(json->out, key);
        fputs(": ", json->out);
    }
}

void
json_open(struct json *json, const char *key, char bracket)
{
    element(json, key);
    fputc(bracket, json->out);
    json->depth++;
    json->filled = false;
}

void
json_close(struct json *json, char bracket)
{
    json->depth--;
    if (json->filled)
        line(json);
    fputc(bracket, json->out);
    json->filled = true;
    if (json->depth == 0)
        fputc('\n', json->out);
}

void
json_begin_row(struct json *json, const char *key)
{
    json_open(json, key, '[');
    json->in_row = true;
}

void
json_end_row(struct json *json)
{
    json->in_row = false;
    json->depth--;
    json->filled = true;
    fputc(']', json->out);
}

void
json_string(struct json *json, const char *key, const char *value)
{
    element(json, key);
    quoted(json->out, value);
}

void
json_integer(struct json *json, const char *key, int64_t value)
{
    element(json, key);
    fprintf(json->out, "%" PRId64, value);
}

void
json_literal(struct json *json, const char *key, const char *text)
{
    element(json, key);
    fputs(text, json->out);
}

void
json_number(struct json *json, const char *key, double value)
{
    char text[TEXT_DIGITS];
    snprintf(text, sizeof text, "%.9g", value);
    json_literal(json, key, isfinite(value) ? text : "null");
}

void
json_exact(struct json *json, const char *key, double value)
{
    char text[TEXT_DIGITS];
    text_digits(value, text);
    json_literal(json, key, isfinite(value) ? text : "null");
}

void
json_error(struct json *json, const struct error *error)
{
    json_string(json, "code", code_name(error->code));
    json_string(json, "message", error->message);
    json_begin_array(json, "files");
    for (int i = 0; i < 2; i++)
        if (error->file[i][0])
            json_string(json, NULL, error->file[i]);
    json_end_array(json);
}

void
json_time(struct json *json, const char *key, int64_t ms)
{
    char text[ISO_TIME_SIZE];
    if (ms > 0 && iso_time_from_ms(ms, text) == 0)
        json_string(json, key, text);
    else
        json_null(json, key);
}
