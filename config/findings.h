/*
 * findings.h - what is wrong with a configuration while it is read; private to config/.
 *
 * Reading goes on after an error, so that all of them are told at once. What was refused is
 * remembered as lost, by the member that has no value for it: nothing is concluded from that.
 */
#ifndef NOCTULE_FINDINGS_H
#define NOCTULE_FINDINGS_H

#include "config/config.h"
#include "config/source.h"

enum { FINDINGS_MOST = 1000 }; /* errors after which reading stops */

struct finding {
    bool wrong;    /* else it is a doubt */
    unsigned line; /* of the expanded text */
    char *message; /* with its place; malloc'd */
    char *text;    /* within it: behind the place and the option's name */
};

struct lost {
    const char *at;
    size_t size;
};

struct findings {
    const struct source *source;
    struct finding items[CONF_FINDINGS]; /* by line */
    size_t count, more;                  /* more: that there was no room for */
    size_t wrong;                        /* of both, errors */
    bool doubts;                         /* are wanted, too */
    struct lost *lost;
    size_t lost_count, lost_room;
    int stop; /* -ENOMEM, or -E2BIG after FINDINGS_MOST errors; 0: go on */
};

/* Release them in the end. */
void findings_open(struct findings *findings, const struct source *source);
void findings_release(struct findings *findings);

/* An error or a doubt at this line of the text, about this option ("": none). One that an include
 * brings twice is told once. -EINVAL, or why to stop. */
int findings_add(struct findings *findings, bool wrong, unsigned line, const char *option,
                 const char *text);

/* The member has no value: it was refused, or it lies within what was. */
void findings_lose(struct findings *findings, const void *member, size_t size);
/* Is anything of it lost? */
bool findings_lost(const struct findings *findings, const void *member, size_t size);

/* Those of a configuration that was read. -EINVAL with the first error; 0: there is none. */
int findings_settle(const struct findings *findings, struct error *error);

/* Moves the messages to `all`, if that is not NULL. */
void findings_give(struct findings *findings, struct conf_findings *all);

#endif
