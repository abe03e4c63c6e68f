/*
 * web_looks.h - looks at jobs, which the daemon must store in the audit. All functions are thread-safe.
 *
 * A person, a job and an hour are sent once. The daemon's table has the same rule, so a forgotten one does no harm.
 */
#ifndef NOCTULE_SERVICE_WEB_DECIDE_WEB_LOOKS_H
#define NOCTULE_SERVICE_WEB_DECIDE_WEB_LOOKS_H

#include "service/common/wire/proto.h"
#include "service/web/server/web_session.h"

#include <pthread.h>

#define WEB_LOOKS_WAITING 256
#define WEB_LOOKS_KNOWN   4096

struct web_looks {
    pthread_mutex_t lock;

    struct web_look {
        int64_t job;
        struct web_person person;
        char address[64];
    } waiting[WEB_LOOKS_WAITING];

    size_t count, lost;              /* lost: there was no room */
    uint64_t known[WEB_LOOKS_KNOWN]; /* hashes of those that were sent */
};

/* Notes that the person was shown the job. */
void web_looks_add(struct web_looks *looks, const struct web_person *person, const char *address, int64_t job,
                   int64_t now_ms);
/* Returns whether there are some to send. */
bool web_looks_wait(struct web_looks *looks);
/* Writes LOOKED of the oldest one. Returns false if the queue is empty. */
bool web_looks_take(struct web_looks *looks, struct proto_writer *writer);

#endif
