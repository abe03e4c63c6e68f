#include "service/daemon/attempt.h"

#include "service/common/log.h"

#include <errno.h>
#include <stdio.h>

void
attempt_add(struct attempts *attempts, struct attempt *attempt, int64_t id)
{
    struct attempt **bucket = &attempts->buckets[(uint64_t)id % ATTEMPT_BUCKETS];
    *attempt = (struct attempt){
        .next = attempts->first, .link = &attempts->first, .next_in_bucket = *bucket, .all = attempts, .id = id};
    if (attempt->next)
        attempt->next->link = &attempt->next;
    attempts->first = *bucket = attempt;
}

void
attempt_end(struct attempt *attempt)
{
    struct attempt **link = &attempt->all->ended;
    if (attempt->ended)
        return;
    while (*link)
        link = &(*link)->next_ended;
    *link = attempt;
    attempt->ended = true;
}

void
attempt_drop(struct attempt *attempt)
{
    struct attempt **link = &attempt->all->buckets[(uint64_t)attempt->id % ATTEMPT_BUCKETS];
    while (*link != attempt)
        link = &(*link)->next_in_bucket;
    *link = attempt->next_in_bucket;
    for (link = &attempt->all->ended; *link && *link != attempt;)
        link = &(*link)->next_ended;
    if (*link)
        *link = attempt->next_ended;
    *attempt->link = attempt->next;
    if (attempt->next)
        attempt->next->link = attempt->link;
    attempt->all->type->free(attempt);
}

static void
attempt_on_commit(void *context, int status)
{
    struct attempt *attempt = context;
    attempt->written = false;
    if (status)
        return;
    attempt->all->core->ends++;
    attempt->all->type->recorded(attempt);
    attempt_drop(attempt);
}

static struct attempt *
attempts_first_unwritten(const struct attempts *attempts)
{
    bool (*may_write)(const struct attempt *) = attempts->type->may_write;
    struct attempt *attempt = attempts->ended;
    while (attempt && (attempt->written || (may_write && !may_write(attempt))))
        attempt = attempt->next_ended;
    return attempt;
}

void
attempts_write(struct attempts *attempts)
{
    struct core *core = attempts->core;
    const struct attempt_type *type = attempts->type;
    /* Search again each time: joining the batch may commit a full one, which frees attempts. */
    while (attempts_first_unwritten(attempts)) {
        if (!core_change(core))
            return;
        struct attempt *attempt = attempts_first_unwritten(attempts);
        int rc = type->write(attempt);
        attempt->superseded = rc == -EAGAIN || rc == -ENOENT;
        if (rc && !attempt->superseded && !core_is_transient(rc)) {
            char event[32], message[512];
            snprintf(event, sizeof event, "%s.record_failed", type->subject);
            snprintf(message, sizeof message, "the report of the %s cannot be recorded: %s", type->child,
                     queue_reason(core->queue));
            log_error(event, LOG_INT(type->subject, attempt->id), LOG_STR("message", message));
            rc = type->fail(attempt, CODE_RECORD_FAILED, message);
        }
        /* The next start repairs a row that accepts neither the outcome nor the failure. */
        attempt->written = !core_is_transient(rc);
        if (attempt->written)
            rc = batch_on_commit(core->batch, attempt_on_commit, attempt);
        if (core_failed(core, rc, type->action))
            return;
    }
}

struct attempt *
attempts_find(const struct attempts *attempts, int64_t id)
{
    struct attempt *attempt = attempts->buckets[(uint64_t)id % ATTEMPT_BUCKETS];
    while (attempt && attempt->id != id)
        attempt = attempt->next_in_bucket;
    return attempt;
}

size_t
attempts_count(const struct attempts *attempts)
{
    size_t count = 0;
    for (const struct attempt *attempt = attempts->first; attempt; attempt = attempt->next)
        count++;
    return count;
}

void
attempts_free(struct attempts *attempts)
{
    while (attempts->first)
        attempt_drop(attempts->first);
}
