/*
 * pull_scheduler.c - see pull_scheduler.h.
 *
 * An item is under way from its FINDING row, which is committed before FIND is sent, until its attempt has ended.
 * pull_attempt.c then records the outcome. Each step depends only on the stored instances: stored parts are not
 * requested, and a sender's claim that it sent an instance does not count. If the sender process dies
 *
 *     by itself, or killed after its deadline   the attempt counts
 *     by order of the daemon (drain)            the item returns, the attempt does not count
 */
#include "service/daemon/pull/pull_scheduler.h"

#include "base/test_hook.h"
#include "service/common/clock.h"
#include "service/common/log.h"

#include "service/daemon/delivery/deliveries.h"
#include "service/daemon/pull/pull_attempt.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STOP_MILLIS 10000 /* between STOP_PULL and the end of the sender */

struct pulls {
    struct core *core;
    struct sender_targets targets; /* one per configured source */
    struct attempts attempts;
    bool check_due; /* an item may be ready to start */
    bool outdated;  /* there was no memory to follow the configuration: no item starts */
    bool swept;     /* items of sources that were removed from the configuration have failed */
};

/* ------------------------------------------------------------------------------- targets --- */

int
pulls_reload(struct pulls *pulls)
{
    const struct conf_pull *conf = &pulls->core->conf->pull;
    const char **names = calloc(conf->source_count + 1, sizeof *names);
    for (size_t i = 0; names && i < conf->source_count; i++)
        names[i] = conf->sources[i].name;
    pulls->outdated = !names || senders_follow(pulls->core, &pulls->targets, names, conf->source_count) != 0;
    free(names);
    pulls->check_due = true;
    pulls->swept = false;
    return pulls->outdated ? -ENOMEM : 0;
}

/* Updates the circuit breaker from the sender's report. */
static void
pulls_update_breaker(struct pulls *pulls, const struct pull_attempt *attempt, enum code code, const char *message)
{
    struct core *core = pulls->core;
    struct sender_target *target = senders_find(&pulls->targets, attempt->pull.source);
    char detail[512];
    if (!target)
        return;
    const enum breaker_change change =
        pull_code_is_unreachable(code) ? breaker_failed(&target->breaker, &core->conf->delivery, uv_now(&core->loop))
                                       : breaker_succeeded(&target->breaker);
    if (change == BREAKER_OPENED) {
        snprintf(detail, sizeof detail, "%s: %d failures in a row; the last: %s", target->name,
                 target->breaker.failures, message);
        log_warn("source.down", LOG_STR("source", target->name));
        core_note(core, "SOURCE_DOWN", detail);
    } else if (change == BREAKER_CLOSED) {
        snprintf(detail, sizeof detail, "%s: it answers again", target->name);
        log_info("source.up", LOG_STR("source", target->name));
        core_note(core, "SOURCE_UP", detail);
    }
}

/* ------------------------------------------------------------------------------ requests -- */

static void
pull_attempt_request(struct pull_attempt *attempt, struct proto_writer *writer)
{
    const struct core *core = attempt->base.all->core;
    const struct conf_source *source = conf_find_source(core->conf, attempt->pull.source);
    const double seconds = source ? source->deadline_seconds : 0.0;
    attempt->requested = true;
    attempt->stop_at = uv_now(&core->loop) + (uint64_t)(1000 * seconds);
    attempt->stopped = false;
    if (pool_send(core->pool, attempt->sender, writer)) {
        pull_attempt_set_error(attempt, CODE_RETURNED, "the request could not be sent to the sender process");
        pull_attempt_end(attempt, PULL_UNTRIED);
    }
}

static void
pull_attempt_on_start(void *context, int status)
{
    struct pull_attempt *attempt = context;
    const struct queue_pull *pull = &attempt->pull;
    struct proto_writer writer;
    if (status) {
        attempt_drop(&attempt->base);
        return;
    }
    crash_point("daemon_after_finding_before_find");
    const struct message_find message = {
        .pull = pull->id,
        .source = pull->source,
        .accession = attempt->accession,
        .study = pull->key == QUEUE_PULL_STUDY ? pull->identifier : "",
        .series = pull->key == QUEUE_PULL_SERIES ? pull->identifier : "",
        .file = attempt->file,
    };
    message_write_find(&writer, &message);
    pull_attempt_request(attempt, &writer);
}

static void
pull_attempt_on_move(void *context, int status)
{
    struct pull_attempt *attempt = context;
    struct proto_writer writer;
    attempt->has_step = status != 0; /* the step is taken again */
    if (status)
        return;
    crash_point("daemon_after_moving_before_move");
    const struct queue_pull_part *part = &attempt->parts[attempt->next];
    const struct message_move message = {
        .pull = attempt->pull.id, .source = attempt->pull.source, .study = part->study_uid, .series = part->series_uid};
    message_write_move(&writer, &message);
    pull_attempt_request(attempt, &writer);
}

/* ------------------------------------------------------------------------------ starting --- */

/* Finds a file of the series for which the item wants the earlier study. Ends the item if no job waits for it; then *path is
 * NULL. */
static int
pulls_find_file(struct core *core, const struct queue_pull *pull, char **path)
{
    char *below;
    *path = NULL;
    int rc = queue_prior_file(core->queue, pull->id, &below);
    if (rc == 1)
        return queue_end_pull(core->queue, pull->id, QUEUE_PULL_CANCELLED, CODE_CANCELLED,
                              "The job that it was for has ended.", clock_unix_ms());
    if (rc == 0)
        *path = core_path(core, below);
    free(below);
    return rc ? rc : *path ? 0 : -ENOMEM;
}

/* Starts an item in the open batch and takes over its strings. */
static int
pulls_begin(struct pulls *pulls, const struct sender_target *target, struct queue_pull *pull)
{
    struct core *core = pulls->core;
    char text[PULL_ACCESSION_SIZE], *accession = NULL, *file = NULL;
    int rc = 0;
    if (pull->key == QUEUE_PULL_PRIOR) {
        rc = pulls_find_file(core, pull, &file);
        if (rc || !file)
            return rc;
    } else if (pull->key == QUEUE_PULL_ACCESSION) {
        rc = pull_accessions_find(core, pull->batch, pull->line, text);
        accession = rc ? NULL : strdup(text);
        if (!rc && !accession)
            rc = -ENOMEM;
    }
    if (rc == -ENOENT || rc == -EBADMSG) {
        char message[128];
        snprintf(message, sizeof message, "Its accession number cannot be read any more: %s.", strerror(-rc));
        log_warn("pull.key_lost", LOG_INT("item", pull->id), LOG_INT("batch", pull->batch));
        return queue_end_pull(core->queue, pull->id, QUEUE_PULL_FAILED, CODE_PULL_KEY_LOST, message, clock_unix_ms());
    }
    struct pull_attempt *attempt = rc ? NULL : pull_attempt_new(&pulls->attempts, pull, accession);
    if (!attempt) {
        free(accession);
        free(file);
        return rc ? rc : -ENOMEM;
    }
    attempt->file = file;
    attempt->sender = target->slot;
    rc = queue_start_pull(core->queue, attempt->base.id, clock_unix_ms());
    if (rc) {
        attempt_drop(&attempt->base);
        return rc == -EAGAIN ? 0 : rc; /* cancelled in the same batch */
    }
    return batch_on_commit(core->batch, pull_attempt_on_start, attempt);
}

/* Returns 1 if the next item of the source may start now, 0 if not, or -errno. */
static int
pulls_may_begin(struct pulls *pulls, const struct conf_source *source, int64_t due_ms)
{
    const int64_t now_ms = clock_unix_ms();
    int64_t moved_ms;
    if (due_ms > now_ms || (source->window && !time_window_is_open(source->window->times, now_ms)))
        return 0;
    int rc = source->per_hour ? queue_last_move(pulls->core->queue, source->name, &moved_ms) : 0;
    if (rc || !source->per_hour)
        return rc ? rc : 1;
    return moved_ms > now_ms || now_ms - moved_ms >= 3600 * 1000 / source->per_hour;
}

/* Starts an item, or first the target's sender when its first item is due. */
static int
pulls_start_of(struct pulls *pulls, struct sender_target *target)
{
    struct core *core = pulls->core;
    const struct conf_source *source = conf_find_source(core->conf, target->name);
    struct queue_pull pull;
    int64_t due_ms;
    size_t under_way = 0;
    for (const struct attempt *base = pulls->attempts.first; base; base = base->next)
        under_way += strcmp(((const struct pull_attempt *)base)->pull.source, target->name) == 0;
    if (!source || breaker_room(&target->breaker, under_way, 1, uv_now(&core->loop)) == 0)
        return 0;
    int rc = queue_next_pull(core->queue, target->name, &pull, &due_ms);
    if (rc)
        return rc < 0 ? rc : 0;
    rc = pulls_may_begin(pulls, source, due_ms);
    if (rc > 0 && target->slot < 0) {
        const int slot = senders_take(core);
        target->slot = slot < 0 ? -1 : slot;
        rc = slot < 0 ? slot : 0;
    } else if (rc > 0) {
        const bool may_start = pool_ready(core->pool, target->slot) && core_change(core);
        rc = may_start ? pulls_begin(pulls, target, &pull) : 0;
    }
    queue_pull_clear(&pull);
    return rc;
}

/* Fails all items of a source that was removed from the configuration. */
static int
pulls_fail_source(struct pulls *pulls, const char *source)
{
    struct queue *queue = pulls->core->queue;
    struct queue_pull pull;
    int64_t due_ms;
    int rc;
    while ((rc = queue_next_pull(queue, source, &pull, &due_ms)) == 0) {
        rc = queue_end_pull(queue, pull.id, QUEUE_PULL_FAILED, CODE_NO_SUCH_SOURCE,
                            "The source is not configured any more.", clock_unix_ms());
        queue_pull_clear(&pull);
        if (rc)
            break;
    }
    return rc < 0 ? rc : 0;
}

static void
pulls_on_swept(void *context, int status)
{
    struct pulls *pulls = context;
    pulls->swept = !status;
    if (!status)
        pull_accessions_sweep(pulls->core);
}

/* Fails the items of removed sources and removes accession numbers that are no longer needed, once per
 * configuration. */
static int
pulls_sweep(struct pulls *pulls)
{
    char **sources;
    size_t count;
    int rc = queue_pulled_sources(pulls->core->queue, &sources, &count);
    for (size_t i = 0; i < count; i++) {
        if (rc == 0 && !senders_find(&pulls->targets, sources[i]))
            rc = core_change(pulls->core) ? pulls_fail_source(pulls, sources[i]) : 0;
        free(sources[i]);
    }
    free(sources);
    return rc ? rc : batch_on_commit(pulls->core->batch, pulls_on_swept, pulls);
}

/* --------------------------------------------------------------------------------- steps -- */

/* Reads how many instances of each part are stored. */
static int
pull_attempt_count(struct pull_attempt *attempt)
{
    struct queue_pull_part *parts;
    size_t count;
    int rc = queue_pull_parts(attempt->base.all->core->queue, attempt->base.id, &parts, &count);
    if (rc)
        return rc;
    queue_pull_parts_free(attempt->parts, attempt->part_count);
    attempt->parts = parts;
    attempt->part_count = count;
    return 0;
}

/* Requests the next part, or waits for the instances of the last one, in the open batch. */
static int
pull_attempt_move_on(struct pull_attempt *attempt)
{
    struct core *core = attempt->base.all->core;
    attempt->stage = PULL_MOVING;
    while (attempt->next < attempt->part_count && pull_part_is_here(&attempt->parts[attempt->next]))
        attempt->next++;
    if (attempt->next < attempt->part_count) {
        int rc = queue_note_move(core->queue, attempt->base.id, clock_unix_ms());
        return rc ? rc : batch_on_commit(core->batch, pull_attempt_on_move, attempt);
    }
    const struct conf_source *source = conf_find_source(core->conf, attempt->pull.source);
    const double seconds = source && attempt->error.code == CODE_NONE ? source->arrival_seconds : 0.0;
    attempt->stage = PULL_ARRIVING;
    attempt->stop_at = uv_now(&core->loop) + (uint64_t)(1000 * seconds);
    return 0;
}

/* Writes the archive's parts if they are new, and requests the next one. */
static void
pulls_take_step(struct pulls *pulls, struct pull_attempt *attempt)
{
    struct core *core = pulls->core;
    int rc = 0;
    if (!core_change(core))
        return;
    attempt->has_step = false;
    if (attempt->stage == PULL_FINDING)
        rc = queue_pull_found(core->queue, attempt->base.id, attempt->parts, attempt->part_count, clock_unix_ms());
    if (rc == 0)
        rc = pull_attempt_count(attempt);
    if (rc == 0)
        rc = pull_attempt_move_on(attempt);
    if (rc == -EAGAIN || rc == -ENOENT) /* it was cancelled, or its parts were lost with a batch */
        pull_attempt_end(attempt, PULL_UNTRIED);
    else if (core_failed(core, rc, "continue a pull"))
        attempt->has_step = true;
}

/* ------------------------------------------------------------------------------ deadlines -- */

static void
pulls_stop(struct pulls *pulls, struct pull_attempt *attempt)
{
    struct proto_writer writer;
    const struct message_stop_pull message = {.pull = attempt->base.id};
    attempt->stopped = true;
    attempt->kill_at = uv_now(&pulls->core->loop) + STOP_MILLIS;
    message_write_stop_pull(&writer, &message);
    pool_send(pulls->core->pool, attempt->sender, &writer);
}

void
pulls_tick(struct pulls *pulls)
{
    const uint64_t now = uv_now(&pulls->core->loop);
    if (pulls->outdated)
        (void)pulls_reload(pulls);
    for (struct attempt *base = pulls->attempts.first; base; base = base->next) {
        struct pull_attempt *attempt = (struct pull_attempt *)base;
        if (base->ended || !attempt->requested)
            continue;
        if (!attempt->stopped && now >= attempt->stop_at) {
            pull_attempt_set_error(attempt, CODE_PULL_DEADLINE,
                                   "The source took longer than its deadline_seconds and got a C-CANCEL.");
            pulls_stop(pulls, attempt);
        } else if (attempt->stopped && now >= attempt->kill_at) {
            pool_kill(pulls->core->pool, attempt->sender, "a pull did not stop in time");
        }
    }
    pulls->check_due = true;
}

/* Continues the attempts that wait for the database or for instances. */
static void
pulls_continue(struct pulls *pulls)
{
    const uint64_t now = uv_now(&pulls->core->loop);
    const bool draining = pulls->core->draining;
    for (struct attempt *base = pulls->attempts.first; base; base = base->next) {
        struct pull_attempt *attempt = (struct pull_attempt *)base;
        if (base->ended || attempt->requested)
            continue;
        if (draining && (attempt->has_step || attempt->stage == PULL_ARRIVING))
            pull_attempt_end(attempt, PULL_UNTRIED);
        else if (attempt->has_step)
            pulls_take_step(pulls, attempt);
        if (base->ended || attempt->stage != PULL_ARRIVING || pull_attempt_count(attempt) != 0)
            continue;
        if (pull_attempt_is_here(attempt)) {
            pull_attempt_end(attempt, PULL_ALL_HERE);
        } else if (now >= attempt->stop_at) {
            pull_attempt_set_error(attempt, CODE_PULL_INCOMPLETE,
                                   "The source reports that it sent all instances, but some are missing. See its "
                                   "log, and v_quarantine.");
            pull_attempt_end(attempt, PULL_SHORT);
        }
    }
}

void
pulls_before_commit(struct pulls *pulls)
{
    struct core *core = pulls->core;
    if (core->db_failed && !core->probing)
        return;
    pulls_continue(pulls);
    attempts_write(&pulls->attempts);
    if (!pulls->check_due || pulls->outdated || core->draining || core->disk_low || core->db_failed)
        return;
    /* A source that cannot connect to our port would use up the attempts of an item. */
    if (!core->reception.open)
        return;
    pulls->check_due = false;
    int rc = pulls->swept ? 0 : pulls_sweep(pulls);
    for (size_t i = 0; i < pulls->targets.count && rc == 0; i++)
        rc = pulls_start_of(pulls, &pulls->targets.at[i]);
    core_failed(core, rc, "start a pull");
}

/* ------------------------------------------------------------------------------- frames ---- */

/* Returns the attempt that the frame is about, or NULL for a frame that breaks the protocol. */
static struct pull_attempt *
pulls_expect(const struct pulls *pulls, struct proto_reader *reader, int64_t id, enum pull_stage stage, int64_t outcome)
{
    struct attempt *base = attempts_find(&pulls->attempts, id);
    struct pull_attempt *attempt = (struct pull_attempt *)base;
    if (base && !base->ended && attempt->requested && attempt->stage == stage && outcome >= PROTO_PULL_OK &&
        outcome <= PROTO_PULL_RETURNED)
        return attempt;
    reader->error = -EBADMSG;
    return NULL;
}

/* Requests another sweep if the source of a returned item was removed meanwhile. */
static void
pulls_expect_source(struct pulls *pulls, const struct pull_attempt *attempt)
{
    pulls->swept = pulls->swept && senders_find(&pulls->targets, attempt->pull.source);
}

/* Ends a failed attempt. Only the daemon stops one: for a drain, a deadline or a cancellation. */
static void
pulls_end_failed(struct pulls *pulls, struct pull_attempt *attempt, int64_t outcome, enum code code,
                 const char *message)
{
    const bool deadline = attempt->stopped && attempt->error.code == CODE_PULL_DEADLINE;
    pulls_expect_source(pulls, attempt);
    if (outcome == PROTO_PULL_RETURNED) {
        pull_attempt_set_error(attempt, CODE_RETURNED, message);
        pull_attempt_end(attempt, deadline ? PULL_SHORT : PULL_UNTRIED);
        return;
    }
    pulls_update_breaker(pulls, attempt, code, message);
    pull_attempt_set_error(attempt, code, message);
    pull_attempt_end(attempt, outcome == PROTO_PULL_PERMANENT  ? PULL_REFUSED
                              : pull_code_is_unreachable(code) ? PULL_AWAY
                                                               : PULL_SHORT);
}

static int
pull_attempt_read_parts(struct pull_attempt *attempt, struct proto_reader *reader)
{
    struct message_part message;
    attempt->parts = calloc((size_t)reader->rows + 1, sizeof *attempt->parts);
    if (!attempt->parts)
        return -ENOMEM;
    while (message_next_part(reader, &message)) {
        struct queue_pull_part *part = &attempt->parts[attempt->part_count++];
        /* some archives send 0 if they do not count */
        *part = (struct queue_pull_part){strdup(message.study), strdup(message.series),
                                         message.instances > 0 ? message.instances : -1, 0, 0};
        if (!part->study_uid || !part->series_uid)
            return -ENOMEM;
    }
    return 0;
}

static void
pulls_handle_found(struct pulls *pulls, struct proto_reader *reader)
{
    struct message_found message;
    if (message_read_found(reader, &message))
        return;
    struct pull_attempt *attempt = pulls_expect(pulls, reader, message.pull, PULL_FINDING, message.outcome);
    if (!attempt)
        return;
    attempt->requested = false;
    if (message.outcome != PROTO_PULL_OK) {
        pulls_end_failed(pulls, attempt, message.outcome, message.code, message.message);
    } else if (pull_attempt_read_parts(attempt, reader)) {
        pull_attempt_set_error(attempt, CODE_OUT_OF_MEMORY, "the daemon had no memory for the answer");
        pull_attempt_end(attempt, PULL_SHORT);
    } else {
        pulls_update_breaker(pulls, attempt, CODE_NONE, "");
        attempt->has_step = true;
        if (attempt->part_count == 0)
            pull_attempt_end(attempt, PULL_NOTHING_THERE);
    }
}

/* Keeps the reported error. The stored instances decide whether the part is complete. */
static void
pulls_handle_moved(struct pulls *pulls, struct proto_reader *reader)
{
    struct message_moved message;
    if (message_read_moved(reader, &message))
        return;
    struct pull_attempt *attempt = pulls_expect(pulls, reader, message.pull, PULL_MOVING, message.outcome);
    if (!attempt)
        return;
    attempt->requested = false;
    /* These codes concern only this part: the other parts may succeed. */
    const bool is_of_part =
        message.code == CODE_MOVE_INCOMPLETE || message.code == CODE_MOVE_REFUSED || message.code == CODE_MOVE_FAILED;
    if (message.outcome != PROTO_PULL_OK && !is_of_part) {
        pulls_end_failed(pulls, attempt, message.outcome, message.code, message.message);
        return;
    }
    pulls_update_breaker(pulls, attempt, message.code, message.message);
    if (message.outcome != PROTO_PULL_OK)
        pull_attempt_set_error(attempt, message.code, message.message);
    attempt->next++;
    attempt->has_step = true;
}

void
pulls_frame(struct pulls *pulls, struct proto_reader *reader)
{
    if (reader->type == PROTO_FOUND)
        pulls_handle_found(pulls, reader);
    else
        pulls_handle_moved(pulls, reader);
    pulls->check_due = true;
}

void
pulls_sender_gone(struct pulls *pulls, int slot, const struct pool_gone *gone)
{
    const bool returned = gone->ordered || pulls->core->draining;
    for (struct attempt *base = pulls->attempts.first; base; base = base->next) {
        struct pull_attempt *attempt = (struct pull_attempt *)base;
        if (base->ended || !attempt->requested || attempt->sender != slot)
            continue;
        pulls_expect_source(pulls, attempt);
        pull_attempt_set_error(attempt, returned ? CODE_RETURNED : CODE_COURIER_DIED,
                               returned ? "the courier was stopped" : "the courier died while it was at this");
        pull_attempt_end(attempt, returned ? PULL_UNTRIED : PULL_SHORT);
    }
    pulls->check_due = true;
}

const char *
pulls_served_from(const struct pulls *pulls, int slot)
{
    return senders_served_from(&pulls->targets, slot);
}

size_t
pulls_unrecorded(const struct pulls *pulls)
{
    return attempts_count(&pulls->attempts);
}

/* ----------------------------------------------------------------------------- cancelling -- */

static void
pulls_on_cancelled(void *context, int status)
{
    struct pulls *pulls = context;
    if (!status)
        pull_accessions_sweep(pulls->core);
}

int
pulls_cancel(struct pulls *pulls, int64_t batch, const char *by, char *reply, size_t size)
{
    struct core *core = pulls->core;
    struct queue_ids busy;
    int64_t count;
    int rc = queue_cancel_pulls(core->queue, batch, by, clock_unix_ms(), &busy, &count);
    for (size_t i = 0; i < busy.count && rc == 0; i++) {
        struct pull_attempt *attempt = (struct pull_attempt *)attempts_find(&pulls->attempts, busy.at[i]);
        if (attempt && !attempt->base.ended && attempt->requested && !attempt->stopped)
            pulls_stop(pulls, attempt);
    }
    free(busy.at);
    if (rc)
        return rc;
    snprintf(reply, size, "batch %" PRId64 ": %" PRId64 " item%s cancelled; received instances stay", batch, count,
             count == 1 ? " is" : "s are");
    return batch_on_commit(core->batch, pulls_on_cancelled, pulls);
}

/* -------------------------------------------------------------------------- open, close ---- */

void
pulls_close(struct pulls *pulls)
{
    if (!pulls)
        return;
    attempts_free(&pulls->attempts);
    senders_free(&pulls->targets);
    free(pulls);
}

int
pulls_open(struct core *core, struct pulls **out)
{
    struct pulls *pulls = calloc(1, sizeof *pulls);
    if (!pulls)
        return -ENOMEM;
    pulls->core = core;
    pulls->attempts = (struct attempts){.core = core, .type = &pull_attempt_type};
    const int error = pulls_reload(pulls);
    if (error) {
        pulls_close(pulls);
        return error;
    }
    *out = pulls;
    return 0;
}
