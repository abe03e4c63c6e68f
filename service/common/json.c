/* json.c - see json.h. */
#include "service/common/json.h"

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

/* Length of the well-formed UTF-8 sequence at `s` (RFC 3629, no surrogates), 0 if there is none. */
static size_t
utf8_length(const unsigned char *s)
{
    size_t length = s[0] < 0x80 ? 1 : s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
    if (s[0] > 0xf4)
        return 0;
    for (size_t i = 1; i < length; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    }
    if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
        (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
        return 0;
    return length;
}

static void
quoted(FILE *out, const char *text)
{
    const unsigned char *s = (const unsigned char *)text;
    fputc('"', out);
    while (*s) {
        size_t length = utf8_length(s);
        if (length == 0) {
            fputs("\\ufffd", out);
            length = 1;
        } else if (*s == '"' || *s == '\\') {
            fprintf(out, "\\%c", *s);
        } else if (*s == '\n') {
            fputs("\\n", out);
        } else if (*s < 0x20 || *s == 0x7f) {
            fprintf(out, "\\u%04x", *s);
        } else {
            fwrite(s, 1, length, out);
        }
        s += length;
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

static void
begin(struct json *json, const char *key, char bracket)
{
    element(json, key);
    fputc(bracket, json->out);
    json->depth++;
    json->filled = false;
}

static void
end(struct json *json, char bracket)
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
json_begin_object(struct json *json, const char *key)
{
    begin(json, key, '{');
}

void
json_end_object(struct json *json)
{
    end(json, '}');
}

void
json_begin_array(struct json *json, const char *key)
{
    begin(json, key, '[');
}

void
json_end_array(struct json *json)
{
    end(json, ']');
}

void
json_begin_row(struct json *json, const char *key)
{
    begin(json, key, '[');
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
json_digits(double value, char text[JSON_NUMBER])
{
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, JSON_NUMBER, "%.*g", digits, value);
        if (strtod(text, NULL) == value)
            return;
    }
}

static void
number(struct json *json, const char *key, double value, const char *text)
{
    element(json, key);
    fputs(isfinite(value) ? text : "null", json->out);
}

void
json_number(struct json *json, const char *key, double value)
{
    char text[JSON_NUMBER];
    snprintf(text, sizeof text, "%.9g", value);
    number(json, key, value, text);
}

void
json_exact(struct json *json, const char *key, double value)
{
    char text[JSON_NUMBER];
    json_digits(value, text);
    number(json, key, value, text);
}

void
json_null(struct json *json, const char *key)
{
    element(json, key);
    fputs("null", json->out);
}

void
json_boolean(struct json *json, const char *key, bool value)
{
    element(json, key);
    fputs(value ? "true" : "false", json->out);
}
