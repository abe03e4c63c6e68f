/*
 * alert_list.h - the list of alerts: conditions that need attention, and reasons for which work waits.
 *
 * The list is made by alerts_collect() alone. The daemon reports its conditions as lines (PING, ALERTS); the database
 * has the others (v_alerts) and the acknowledgements. alert_list.def describes each kind, and how to add one.
 *
 * One thread per list.
 */
#ifndef NOCTULE_SERVICE_COMMON_ALERT_ALERT_LIST_H
#define NOCTULE_SERVICE_COMMON_ALERT_ALERT_LIST_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct conf;
struct report;

enum alert_severity {
    ALERT_WAITS,     /* work waits, nothing is wrong */
    ALERT_ATTENTION, /* a person should act */
    ALERT_BROKEN,    /* the service does not do its work */
};

enum alert_kind {

#define ALERT(kind, ...) ALERT_##kind,
#include "service/common/alert/alert_list.def"
    ALERT_KINDS, /* unknown: reported by a program of another version */
};

/* A row of alert_list.def; of an unknown kind a row without text. */
struct alert_row {
    const char *name, *message, *remedy;
    bool from_daemon, may_acknowledge;
};

struct alert_ack {
    int64_t at_ms, until_ms; /* Unix time; until_ms 0: no end */
    char *by, *reason;       /* by NULL: not acknowledged */
};

struct alert {
    char *id; /* "KIND" or "KIND:SUBJECT" */
    enum alert_kind kind;
    enum alert_severity severity;
    int64_t since_ms;   /* Unix time; 0: unknown */
    int64_t changed_ms; /* when it last occurred or grew; 0 from the daemon */
    int64_t size;       /* greater is worse, where a time cannot express it */
    char *text;         /* names, numbers and paths; no control characters */
    struct alert_ack ack;
};

/* Zero is an empty list. Free with alerts_clear. */
struct alerts {
    struct alert *items;
    size_t count, room;
    bool is_starved; /* an alert is missing for want of memory */
};

const struct alert_row *alert_row(enum alert_kind kind);
/* By the part of an id before ":"; ALERT_KINDS if there is none. */
enum alert_kind alert_find_kind(const char *id);

/* Adds a copy; an empty subject gives the id "KIND". */
void alerts_add(struct alerts *alerts, enum alert_kind kind, const char *subject,
                enum alert_severity severity, int64_t since_ms, const char *format, ...)
    __attribute__((format(printf, 6, 7)));
/* Adds a copy of an alert; its kind follows from its id, and the acknowledgement is not copied. */
void alerts_append(struct alerts *alerts, const struct alert *alert);
void alerts_clear(struct alerts *alerts);

/* A line per alert: severity, since, size, id, text, with tabs between. malloc'd; NULL: no memory. */
char *alerts_to_lines(const struct alerts *alerts);
/* Adds the alerts of such lines; skips a line that is none. */
void alerts_from_lines(struct alerts *alerts, const char *lines);

/*
 * Adds those of the database and the configuration to the daemon's, marks acknowledged ones, and sorts: worst first,
 * acknowledged ones after all that need attention. Without a report only the configuration's are added. Returns 0 or
 * -errno with a message; the list then has what was found.
 */
int alerts_collect(struct alerts *alerts, const struct conf *conf, struct report *report,
                   int64_t now_ms, struct error *error);

/* The worst severity of those that are not acknowledged; ALERT_WAITS if there are none. */
enum alert_severity alerts_worst(const struct alerts *alerts);
/* Whether an acknowledged one of that kind is in the list, and no other of the kind. */
bool alerts_is_acknowledged(const struct alerts *alerts, enum alert_kind kind);
const struct alert *alerts_find(const struct alerts *alerts, const char *id);

#endif
