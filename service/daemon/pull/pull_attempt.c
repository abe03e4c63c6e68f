#include "service/daemon/pull/pull_attempt.h"

#include "base/test_hook.h"
#include "service/common/clock.h"
#include "service/common/log.h"
#include "service/daemon/attempt.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct pull_attempt *
pull_attempt_new(struct attempts *attempts, struct queue_pull *pull, char *accession)
{
    struct pull_attempt *attempt = calloc(1, sizeof *attempt);
    if (!attempt)
        return NULL;
    attempt_add(attempts, &attempt->base, pull->id);
    attempt->pull = *pull;
    attempt->pull.attempts++;
    if (!attempt->pull.since_ms)
        attempt->pull.since_ms = clock_unix_ms();
    attempt->accession = accession;
    *pull = (struct queue_pull){0};
    return attempt;
}

static void
pull_attempt_free(struct attempt *base)
{
    struct pull_attempt *attempt = (struct pull_attempt *)base;
    queue_pull_clear(&attempt->pull);
    queue_pull_parts_free(attempt->parts, attempt->part_count);
    free(attempt->accession);
    free(attempt->file);
    free(attempt);
}

bool
pull_part_is_here(const struct queue_pull_part *part)
{
    return part->expected > 0 && part->arrived + part->unwanted >= part->expected;
}

/* If the archive gives no number of instances, a part is complete if instances were stored and the archive reported
 * that it sent all. */
bool
pull_attempt_is_here(const struct pull_attempt *attempt)
{
    for (size_t i = 0; i < attempt->part_count; i++) {
        const struct queue_pull_part *part = &attempt->parts[i];
        const bool guessed = part->expected < 0 && part->arrived + part->unwanted > 0 &&
                             attempt->stage == PULL_ARRIVING && attempt->error.code == CODE_NONE;
        if (!guessed && !pull_part_is_here(part))
            return false;
    }
    return attempt->part_count > 0;
}

bool
pull_code_is_unreachable(enum code code)
{
    switch (code) {
    case CODE_PEER_UNREACHABLE:
    case CODE_PEER_BUSY:
    case CODE_PEER_REJECTED:
    case CODE_TLS_FAILED:
        return true;
    default:
        return false;
    }
}

void
pull_attempt_set_error(struct pull_attempt *attempt, enum code code, const char *message)
{
    if (attempt->error.code == CODE_NONE)
        error_set(&attempt->error, -EREMOTEIO, code, "%s", message);
}

void
pull_attempt_end(struct pull_attempt *attempt, enum pull_end end)
{
    static const char *const names[] = {"ALL_HERE", "NOTHING_THERE", "SHORT", "AWAY", "REFUSED", "UNTRIED"};
    attempt->end = end;
    attempt->requested = attempt->has_step = false;
    attempt_end(&attempt->base);
    log_write(end == PULL_ALL_HERE ? LOG_INFO : LOG_WARN, "pull.ended",
              LOG_FIELDS(LOG_INT("item", attempt->base.id), LOG_INT("batch", attempt->pull.batch),
                         LOG_STR("source", attempt->pull.source), LOG_INT("attempt", attempt->pull.attempts),
                         LOG_STR("outcome", names[end]), LOG_STR("code", code_name(attempt->error.code)),
                         LOG_STR("message", attempt->error.message)));
}

static int
pull_attempt_write_later(const struct pull_attempt *attempt, bool counted)
{
    const struct core *core = attempt->base.all->core;
    const struct conf_delivery *settings = &core->conf->delivery;
    const int64_t wait_ms =
        backoff_ms(settings->retry_seconds, settings->retry_max_seconds, attempt->pull.attempts, attempt->base.id);
    const int64_t now_ms = clock_unix_ms();
    return queue_delay_pull(core->queue, attempt->base.id, now_ms + wait_ms, counted, attempt->error.code,
                            attempt->error.message, now_ms);
}

/* Records the failure, with the number of stored instances. */
static int
pull_attempt_write_failure(const struct pull_attempt *attempt)
{
    const struct error *error = &attempt->error;
    int64_t expected = 0, arrived = 0;
    char message[sizeof error->message + 64];
    for (size_t i = 0; i < attempt->part_count; i++) {
        const int64_t promised = attempt->parts[i].expected;
        expected = expected < 0 || promised < 0 ? -1 : expected + promised;
        arrived += attempt->parts[i].arrived;
    }
    snprintf(message, sizeof message, expected > 0 ? "%s (%" PRId64 " of %" PRId64 " are stored.)" : "%s",
             error->message, arrived, expected);
    return queue_end_pull(attempt->base.all->core->queue, attempt->base.id,
                          arrived > 0 ? QUEUE_PULL_PARTIAL : QUEUE_PULL_FAILED, error->code, message, clock_unix_ms());
}

static int
pull_attempt_write(struct attempt *base)
{
    const struct pull_attempt *attempt = (const struct pull_attempt *)base;
    const struct core *core = base->all->core;
    const int64_t now_ms = clock_unix_ms();
    const double age_seconds = (double)(now_ms - attempt->pull.since_ms) / 1000;
    int rc = -EINVAL;
    switch (attempt->end) {
    case PULL_ALL_HERE:
        rc = queue_end_pull(core->queue, base->id, QUEUE_PULL_DONE, CODE_NONE, "", now_ms);
        break;
    case PULL_NOTHING_THERE:
        rc = queue_end_pull(core->queue, base->id, QUEUE_PULL_NOT_FOUND, CODE_PULL_NOT_FOUND,
                            "The source has no such study or series.", now_ms);
        break;
    case PULL_SHORT:
        rc = attempt->pull.attempts < PULL_TRIES ? pull_attempt_write_later(attempt, true)
                                                 : pull_attempt_write_failure(attempt);
        break;
    case PULL_AWAY:
        rc = age_seconds >= core->conf->delivery.give_up_seconds ? pull_attempt_write_failure(attempt)
                                                                 : pull_attempt_write_later(attempt, false);
        break;
    case PULL_REFUSED:
        rc = pull_attempt_write_failure(attempt);
        break;
    case PULL_UNTRIED:
        rc = queue_return_pull(core->queue, base->id, attempt->error.message, now_ms);
        break;
    }
    if (!rc)
        crash_point("daemon_after_pull_before_commit");
    return rc;
}

static int
pull_attempt_fail(struct attempt *base, enum code code, const char *message)
{
    return queue_end_pull(base->all->core->queue, base->id, QUEUE_PULL_FAILED, code, message, clock_unix_ms());
}

static void
pull_attempt_recorded(struct attempt *base)
{
    if (((const struct pull_attempt *)base)->accession)
        pull_accessions_sweep(base->all->core);
}

const struct attempt_type pull_attempt_type = {
    .subject = "item",
    .child = "courier",
    .action = "record how a pull ended",
    .write = pull_attempt_write,
    .fail = pull_attempt_fail,
    .recorded = pull_attempt_recorded,
    .free = pull_attempt_free,
};
