/*
 * stow_answer.c - see stow.h.
 *
 * Both formats are read as a list of values, each under the latest tag: "00081155" as a key in
 * JSON, tag="00081155" in XML. A sequence extends from its tag to the tag of the next sequence. An
 * item ends where a second SOP Class UID or SOP Instance UID begins.
 */
#include "service/common/stow/stow.h"

#include <stdlib.h>
#include <string.h>

enum {
    TAG_REFERENCED_CLASS = 0x00081150,
    TAG_REFERENCED_INSTANCE = 0x00081155,
    TAG_WARNING_REASON = 0x00081196,
    TAG_FAILURE_REASON = 0x00081197,
    TAG_FAILED = 0x00081198,
    TAG_STORED = 0x00081199,
    TAG_OTHER_FAILURES = 0x0008119A,
};

#define VALUE_SIZE 128 /* enough for a UID or a number */

struct answer_reading {
    const char *at, *end;
    const char *sop_instance;
    struct stow_answer *answer;
    uint32_t tag;      /* the latest tag */
    uint32_t sequence; /* one of the three sequences, or 0 */
    /* Of the current item: */
    bool is_ours, has_class, has_instance;
    int32_t number; /* reason or warning, or -1 */
};

/* ------------------------------------------------------------------------------- items ---- */

static void
item_end(struct answer_reading *reading)
{
    struct stow_answer *answer = reading->answer;
    const bool other = reading->sequence == TAG_OTHER_FAILURES && reading->number >= 0;
    if (reading->is_ours && reading->sequence == TAG_STORED) {
        answer->stored = true;
        answer->warning = reading->number > 0 ? reading->number : 0;
    } else if ((reading->is_ours && reading->sequence == TAG_FAILED) || other) {
        answer->failed = true;
        answer->reason = reading->number;
    }
    reading->is_ours = reading->has_class = reading->has_instance = false;
    reading->number = -1;
}

static void
answer_take_tag(struct answer_reading *reading, uint32_t tag)
{
    reading->tag = tag;
    if (tag != TAG_FAILED && tag != TAG_STORED && tag != TAG_OTHER_FAILURES)
        return;
    item_end(reading);
    reading->sequence = tag;
}

static void
answer_take_value(struct answer_reading *reading, const char *value)
{
    bool *seen = reading->tag == TAG_REFERENCED_CLASS      ? &reading->has_class
                 : reading->tag == TAG_REFERENCED_INSTANCE ? &reading->has_instance
                                                           : NULL;
    if (seen) {
        if (*seen)
            item_end(reading);
        *seen = true;
        if (reading->tag == TAG_REFERENCED_INSTANCE)
            reading->is_ours = strcmp(value, reading->sop_instance) == 0;
    } else if (reading->tag == TAG_FAILURE_REASON || reading->tag == TAG_WARNING_REASON) {
        char *end;
        const long number = strtol(value, &end, 10);
        if (reading->number >= 0) /* belongs to the next item, which has no UIDs */
            item_end(reading);
        if (end != value && !*end && number >= 0 && number <= UINT16_MAX)
            reading->number = (int32_t)number;
    }
}

/* Returns whether the text is exactly 8 hexadecimal digits. */
static bool
is_tag(const char *text, size_t length, uint32_t *tag)
{
    char copy[9] = "", *end;
    if (length != 8)
        return false;
    memcpy(copy, text, 8);
    if (strspn(copy, "0123456789abcdefABCDEF") != 8)
        return false;
    *tag = (uint32_t)strtoul(copy, &end, 16);
    return true;
}

static void
answer_take_text(struct answer_reading *reading, const char *text, size_t length)
{
    char value[VALUE_SIZE];
    while (length > 0 && strchr(" \t\r\n", text[length - 1]))
        length--;
    while (length > 0 && strchr(" \t\r\n", *text)) {
        text++;
        length--;
    }
    if (length == 0 || length >= sizeof value || memchr(text, '\0', length))
        return;
    memcpy(value, text, length);
    value[length] = '\0';
    answer_take_value(reading, value);
}

/* --------------------------------------------------------------------------------- JSON ---- */

/* At a quote: returns the string's bytes without unescaping and advances behind it. A string that
 * is cut off is empty. */
static const char *
json_take_string(struct answer_reading *reading, size_t *length)
{
    const char *start = ++reading->at;
    while (reading->at < reading->end && *reading->at != '"')
        reading->at += *reading->at == '\\' && reading->at + 1 < reading->end ? 2 : 1;
    *length = reading->at < reading->end ? (size_t)(reading->at - start) : 0;
    if (reading->at < reading->end)
        reading->at++;
    return start;
}

static bool
json_is_key(const struct answer_reading *reading)
{
    const char *at = reading->at;
    while (at < reading->end && strchr(" \t\r\n", *at))
        at++;
    return at < reading->end && *at == ':';
}

static void
answer_read_json(struct answer_reading *reading)
{
    bool is_value = false; /* under the key Value */
    while (reading->at < reading->end) {
        size_t length;
        uint32_t tag;
        if (*reading->at == '"') {
            const char *text = json_take_string(reading, &length);
            if (!json_is_key(reading)) {
                if (is_value)
                    answer_take_text(reading, text, length);
            } else if (is_tag(text, length, &tag)) {
                answer_take_tag(reading, tag);
                is_value = false;
            } else {
                is_value = length == 5 && memcmp(text, "Value", 5) == 0;
            }
        } else if (*reading->at >= '0' && *reading->at <= '9') {
            const char *start = reading->at;
            while (reading->at < reading->end && *reading->at >= '0' && *reading->at <= '9')
                reading->at++;
            if (is_value && reading->at < reading->end)
                answer_take_text(reading, start, (size_t)(reading->at - start));
        } else {
            reading->at++;
        }
    }
}

/* ---------------------------------------------------------------------------------- XML ---- */

/* Finds tag="..." within an element's text. */
static bool
xml_find_tag(const char *element, size_t length, uint32_t *tag)
{
    for (size_t i = 0; i + 15 <= length; i++) {
        const char quote = element[i + 5];
        if (memcmp(element + i, " tag=", 5) == 0 && (quote == '"' || quote == '\'') && element[i + 14] == quote)
            return is_tag(element + i + 6, 8, tag);
    }
    return false;
}

static void
answer_read_xml(struct answer_reading *reading)
{
    while (reading->at < reading->end) {
        const char *open = memchr(reading->at, '<', (size_t)(reading->end - reading->at));
        const char *close = open ? memchr(open, '>', (size_t)(reading->end - open)) : NULL;
        uint32_t tag;
        if (!close)
            return;
        const size_t length = (size_t)(close - open);
        reading->at = close + 1;
        if (xml_find_tag(open, length, &tag)) {
            answer_take_tag(reading, tag);
        } else if (length > 6 && memcmp(open, "<Value", 6) == 0 && close[-1] != '/') {
            const char *stop = memchr(close, '<', (size_t)(reading->end - close));
            if (stop)
                answer_take_text(reading, close + 1, (size_t)(stop - close - 1));
        }
    }
}

void
stow_answer_read(const char *bytes, size_t size, const char *sop_instance, struct stow_answer *answer)
{
    struct answer_reading reading = {
        .at = bytes, .end = bytes + size, .sop_instance = sop_instance, .answer = answer, .number = -1};
    *answer = (struct stow_answer){.reason = -1};
    while (reading.at < reading.end && strchr(" \t\r\n\xef\xbb\xbf", *reading.at))
        reading.at++;
    if (reading.at < reading.end && *reading.at == '<')
        answer_read_xml(&reading);
    else
        answer_read_json(&reading);
    item_end(&reading);
}
