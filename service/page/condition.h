/*
 * condition.h - how the service is, as the daemon tells its page each second. A page that has not heard of it lately knows
 * nothing, and says so.
 *
 * One thread at a time.
 */
#ifndef NOCTULE_PAGE_CONDITION_H
#define NOCTULE_PAGE_CONDITION_H

#include "service/common/troubles.h"
#include "service/common/wire/messages.h"

#include <stdio.h>

#define CONDITION_SECONDS 10 /* for which what was heard holds */

struct condition {
    int64_t heard_ms; /* of clock_steady_ms; 0: never */

    struct {
        bool is_there;
        int64_t since_ms; /* Unix time; 0: not known */
    } troubles[TROUBLE_KINDS];
};

/* A CONDITION that came now; what no daemon says is latched in the reader. */
void condition_hear(struct condition *condition, struct proto_reader *reader, int64_t now_ms);

/* A line for each trouble, "KIND: what it is (since WHEN)"; false: there is none, the service is ready. */
bool condition_write(const struct condition *condition, int64_t now_ms, FILE *out);

#endif
