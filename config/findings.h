/*
 * findings.h - collects errors and warnings while a configuration is read; private to config/.
 *
 * Reading continues after an error, so that one run reports all errors. A member whose value was
 * rejected is lost. Checks must not report consequences of a lost member.
 */
#ifndef NOCTULE_FINDINGS_H
#define NOCTULE_FINDINGS_H

#include "config/config.h"
#include "config/source.h"

enum { FINDINGS_MOST = 1000 }; /* reading stops after this many errors */

struct finding {
    bool wrong;    /* false: a warning */
    unsigned line; /* of the expanded text */
    char *message; /* with file and line; malloc'd */
    char *text;    /* the part of message after the option's name */
};

struct lost {
    const char *at;
    size_t size;
};

struct findings {
    const struct source *source;
    struct finding items[CONF_FINDINGS]; /* ordered by line */
    size_t count, more;                  /* more: findings beyond CONF_FINDINGS */
    size_t wrong;                        /* all errors, also those beyond CONF_FINDINGS */
    bool doubts;                         /* the caller wants warnings */
    struct lost *lost;
    size_t lost_count, lost_room;
    int stop; /* -ENOMEM, or -E2BIG after FINDINGS_MOST errors; 0: continue */
};

/* The caller must release the findings with findings_release(). */
void findings_open(struct findings *findings, const struct source *source);
void findings_release(struct findings *findings);

/* Adds an error or a warning about this option ("": none) at this line of the expanded text. A
 * finding is added once if its file is included twice. Returns -EINVAL, or findings.stop if reading
 * must stop. */
int findings_add(struct findings *findings, bool wrong, unsigned line, const char *option,
                 const char *text);

/* Marks the member as lost: its value, or the value that contains it, was rejected. */
void findings_lose(struct findings *findings, const void *member, size_t size);
/* Returns whether any part of the member is lost. */
bool findings_lost(const struct findings *findings, const void *member, size_t size);

/* Returns 0 if there is no error, else -EINVAL with the first error, or -ENOMEM. */
int findings_settle(const struct findings *findings, struct error *error);

/* Moves the findings to `all`, if it is not NULL. */
void findings_give(struct findings *findings, struct conf_findings *all);

#endif
