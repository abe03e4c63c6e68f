/*
 * alert_list.h - the list of alerts: conditions that need attention, and reasons for which work waits.
 *
 * Only alerts_collect() makes the complete list. The daemon reports its own conditions as lines
 * (PING, ALERTS). The database has all other alerts (v_alerts) and the acknowledgements.
 * alert_list.def describes each kind and explains how to add one.
 *
 * A list must be used by one thread at a time.
 */
#ifndef NOCTULE_SERVICE_COMMON_ALERT_ALERT_LIST_H
#define NOCTULE_SERVICE_COMMON_ALERT_ALERT_LIST_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct conf;
struct json;
struct report;

enum alert_severity {
    ALERT_WAITS,     /* work waits for a known reason */
    ALERT_ATTENTION, /* a person should act */
    ALERT_BROKEN,    /* the service does not do its work */
};

/* "waits", "attention", "broken" */
extern const char *const alert_words[];

enum alert_kind {

#define ALERT(kind, ...) ALERT_##kind,
#include "service/common/alert/alert_list.def"
    ALERT_KINDS, /* unknown kind, reported by a program of another version */
};

/* A row of alert_list.def. An unknown kind has a row of empty texts. */
struct alert_row {
    const char *name, *message, *remedy;
    bool from_daemon, may_acknowledge;
};

struct alert_ack {
    int64_t at_ms, until_ms; /* Unix time; until_ms 0: no end */
    char *by, *reason;       /* `by` is NULL: not acknowledged */
};

struct alert {
    char *id; /* "KIND" or "KIND:SUBJECT" */
    enum alert_kind kind;
    enum alert_severity severity;
    int64_t since_ms;   /* Unix time; 0: unknown */
    int64_t changed_ms; /* time of the last occurrence or growth; 0: from the daemon */
    int64_t size;       /* greater is worse, where a time cannot express it */
    char *text;         /* names, numbers and paths; no control characters */
    struct alert_ack ack;
};

/* Zero-initialise. The caller must free it with alerts_clear. */
struct alerts {
    struct alert *items;
    size_t count, room;
    bool is_starved; /* memory was short, so an alert is missing */
};

const struct alert_row *alert_row(enum alert_kind kind);
/* Returns the kind by the part of an id before ":", or ALERT_KINDS if it is unknown. */
enum alert_kind alert_find_kind(const char *id);

/* Adds a copy. If the subject is empty, the id is "KIND". */
void alerts_add(struct alerts *alerts, enum alert_kind kind, const char *subject, enum alert_severity severity,
                int64_t since_ms, const char *format, ...) __attribute__((format(printf, 6, 7)));
/* Adds a copy of an alert without its acknowledgement. The kind follows from the id. */
void alerts_append(struct alerts *alerts, const struct alert *alert);
void alerts_clear(struct alerts *alerts);

/* Writes an array of the alerts, with remedies and acknowledgements. */
void alerts_to_json(const struct alerts *alerts, const char *key, struct json *json);

/* Returns one line per alert: severity, since, size, id and text, separated by tabs. The caller
 * must free it. Returns NULL if memory is short. */
char *alerts_to_lines(const struct alerts *alerts);
/* Adds the alerts of such lines. Skips invalid lines. */
void alerts_from_lines(struct alerts *alerts, const char *lines);

/* Adds the alerts of the database and the configuration to the daemon's, marks acknowledged ones, and sorts: the worst
 * first, acknowledged ones after all that need attention. If the report is NULL, only the configuration's are added.
 * Returns 0, or -errno with a message; the list is then incomplete. */
int alerts_collect(struct alerts *alerts, const struct conf *conf, struct report *report, int64_t now_ms,
                   struct error *error);

/* Returns the worst severity that is not acknowledged, or ALERT_WAITS if there is none. */
enum alert_severity alerts_worst(const struct alerts *alerts);
/* Returns whether the list has alerts of that kind and all of them are acknowledged. */
bool alerts_is_acknowledged(const struct alerts *alerts, enum alert_kind kind);
const struct alert *alerts_find(const struct alerts *alerts, const char *id);

/* ------------------------------------------------------------------------------ deadlines ---- */

/* Calls `take` for each pipeline that cannot finish its jobs by its deadline (deadline_alerts.c). If `take` returns a
 * negative errno, the loop ends and returns that. Without a report, job durations are unknown. If `queued`, it also
 * reports pipelines whose queued jobs need more time than the window is open until the deadline. For windows that the
 * daemon knows, v_wanted reports those. */
int deadline_alerts_each(const struct conf *conf, struct report *report, bool queued, int64_t now_ms,
                         int (*take)(void *context, const char *pipeline, const char *text), void *context);

#endif
