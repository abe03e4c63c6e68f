#include "service/common/alert/alert_list.h"

#include "base/array.h"
#include "base/text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ID_BYTES   256
#define TEXT_BYTES 1024

enum { SOURCE_DAEMON, SOURCE_DATABASE, ACK_MAY, ACK_NEVER };

const char *const alert_words[] = {[ALERT_WAITS] = "waits", [ALERT_ATTENTION] = "attention", [ALERT_BROKEN] = "broken"};

static const struct alert_row alert_rows[] = {

#define ALERT(kind_, source_, acknowledge_, message_, remedy_)                                                         \
    {.name = #kind_,                                                                                                   \
     .message = (message_),                                                                                            \
     .remedy = (remedy_),                                                                                              \
     .from_daemon = SOURCE_##source_ == SOURCE_DAEMON,                                                                 \
     .may_acknowledge = ACK_##acknowledge_ == ACK_MAY},
#include "service/common/alert/alert_list.def"
    {.name = "", .message = "", .remedy = ""}};

const struct alert_row *
alert_row(enum alert_kind kind)
{
    return &alert_rows[kind];
}

enum alert_kind
alert_find_kind(const char *id)
{
    const size_t length = strcspn(id, ":");
    int kind = 0;
    while (kind < ALERT_KINDS &&
           (strncmp(id, alert_rows[kind].name, length) != 0 || alert_rows[kind].name[length] != '\0'))
        kind++;
    return (enum alert_kind)kind;
}

/* ---------------------------------------------------------------------------------- list ---- */

static char *
alert_copy_text(const char *text)
{
    char *copy = strdup(text);
    for (char *at = copy; at && *at; at++)
        if ((unsigned char)*at < ' ' || *at == 0x7f)
            *at = '?';
    return copy;
}

static void
alert_clear(struct alert *alert)
{
    free(alert->id);
    free(alert->text);
    free(alert->ack.by);
    free(alert->ack.reason);
}

void
alerts_append(struct alerts *alerts, const struct alert *alert)
{
    struct alert copy = *alert;
    struct alert *grown = array_grow(alerts->items, &alerts->room, alerts->count + 1, sizeof *grown);
    if (grown)
        alerts->items = grown;
    copy.kind = alert_find_kind(alert->id);
    copy.id = alert_copy_text(alert->id);
    copy.text = alert_copy_text(alert->text);
    copy.ack = (struct alert_ack){0};
    if (!grown || !copy.id || !copy.text) {
        alert_clear(&copy);
        alerts->is_starved = true;
        return;
    }
    alerts->items[alerts->count++] = copy;
}

void
alerts_add(struct alerts *alerts, enum alert_kind kind, const char *subject, enum alert_severity severity,
           int64_t since_ms, const char *format, ...)
{
    char id[ID_BYTES], text[TEXT_BYTES];
    va_list values;
    snprintf(id, sizeof id, "%s%s%s", alert_row(kind)->name, *subject ? ":" : "", subject);
    va_start(values, format);
    vsnprintf(text, sizeof text, format, values);
    va_end(values);
    alerts_append(alerts, &(struct alert){.id = id, .severity = severity, .since_ms = since_ms, .text = text});
}

void
alerts_clear(struct alerts *alerts)
{
    for (size_t i = 0; i < alerts->count; i++)
        alert_clear(&alerts->items[i]);
    free(alerts->items);
    *alerts = (struct alerts){0};
}

enum alert_severity
alerts_worst(const struct alerts *alerts)
{
    enum alert_severity worst = ALERT_WAITS;
    for (size_t i = 0; i < alerts->count; i++) {
        const struct alert *alert = &alerts->items[i];
        if (!alert->ack.by && alert->severity > worst)
            worst = alert->severity;
    }
    return worst;
}

bool
alerts_is_acknowledged(const struct alerts *alerts, enum alert_kind kind)
{
    bool any = false;
    for (size_t i = 0; i < alerts->count; i++) {
        if (alerts->items[i].kind != kind)
            continue;
        if (!alerts->items[i].ack.by)
            return false;
        any = true;
    }
    return any;
}

const struct alert *
alerts_find(const struct alerts *alerts, const char *id)
{
    for (size_t i = 0; i < alerts->count; i++)
        if (strcmp(alerts->items[i].id, id) == 0)
            return &alerts->items[i];
    return NULL;
}

/* --------------------------------------------------------------------------------- lines ---- */

char *
alerts_to_lines(const struct alerts *alerts)
{
    struct text_stream stream;
    if (text_open(&stream))
        return NULL;
    for (size_t i = 0; i < alerts->count; i++) {
        const struct alert *alert = &alerts->items[i];
        fprintf(stream.out, "%d\t%" PRId64 "\t%" PRId64 "\t%s\t%s\n", (int)alert->severity, alert->since_ms,
                alert->size, alert->id, alert->text);
    }
    return text_close(&stream) ? NULL : stream.bytes;
}

/* Cuts the line into its fields. False: there are fewer than five. */
static bool
alert_from_line(char *line, struct alert *alert)
{
    char *fields[5];
    for (int i = 0; i < 5; i++) {
        fields[i] = line;
        char *end = i < 4 ? strchr(line, '\t') : NULL;
        if (i < 4 && !end)
            return false;
        if (end) {
            *end = '\0';
            line = end + 1;
        }
    }
    const long severity = strtol(fields[0], NULL, 10);
    *alert =
        (struct alert){.id = fields[3],
                       .severity = severity == ALERT_WAITS || severity == ALERT_BROKEN ? (enum alert_severity)severity
                                                                                       : ALERT_ATTENTION,
                       .since_ms = strtoll(fields[1], NULL, 10),
                       .size = strtoll(fields[2], NULL, 10),
                       .text = fields[4]};
    return true;
}

void
alerts_from_lines(struct alerts *alerts, const char *lines)
{
    char *copy = strdup(lines), *rest = NULL;
    struct alert alert;
    alerts->is_starved |= !copy;
    for (char *line = copy ? strtok_r(copy, "\n", &rest) : NULL; line; line = strtok_r(NULL, "\n", &rest))
        if (alert_from_line(line, &alert))
            alerts_append(alerts, &alert);
    free(copy);
}
