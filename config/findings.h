/*
 * findings.h - collects errors and warnings while a configuration is read; private to config/.
 *
 * Reading continues after an error, so that one run reports all errors. A member with a rejected
 * value is lost. Checks must not report consequences of a lost member.
 */
#ifndef NOCTULE_CONFIG_FINDINGS_H
#define NOCTULE_CONFIG_FINDINGS_H

#include "config/config.h"
#include "config/source.h"

enum { FINDINGS_MAX = 1000 }; /* reading stops after this many errors */

struct lost {
    const char *at;
    size_t size;
};

struct findings {
    const struct source *source;
    struct conf_findings *all; /* ordered by line */
    size_t wrong;              /* all errors, also those beyond CONF_FINDINGS */
    bool warnings;             /* the caller wants warnings */
    struct lost *lost;
    size_t lost_count, lost_room;
    int stop; /* -ENOMEM, or -E2BIG after FINDINGS_MAX errors; 0: continue */
};

/* Adds an error or a warning about this option (may be "") at this line of the expanded text. A
 * finding is added once if its file is included twice. Returns -EINVAL, or findings.stop if reading
 * must stop. */
int findings_add(struct findings *findings, bool wrong, unsigned line, const char *option, const char *text);

/* Marks the member as lost: its value, or the value that contains it, was rejected. */
void findings_lose(struct findings *findings, const void *member, size_t size);
/* Returns whether any part of the member is lost. */
bool findings_lost(const struct findings *findings, const void *member, size_t size);

/* Returns 0 if there is no error, else -EINVAL with the first error, or -ENOMEM. */
int findings_first_error(const struct findings *findings, struct error *error);

#endif
