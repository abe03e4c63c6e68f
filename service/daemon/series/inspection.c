/*
 * inspection.c - see inspection.h.
 *
 * No state here must survive a restart: series being received and their times are in the database,
 * and a lost inspection is requested again.
 *
 * An inspection is the first to read the files and may crash the receiver. A series that was being
 * inspected when the receiver died is inspected again alone, and rejected after the third death. If
 * files could not be read for lack of memory or descriptors, the inspection is repeated with
 * growing delays before that result is accepted.
 */
#include "service/daemon/series/inspection.h"

#include "service/common/clock.h"
#include "service/common/handle.h"
#include "service/common/log.h"
#include "service/common/routing/routing_conditions.h"
#include "service/common/routing/routing_options.h"
#include "service/common/routing/routing_result.h"
#include "service/common/series_size.h"
#include "service/common/wire/messages.h"
#include "service/daemon/series/series.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_INSPECTIONS   8
#define MAX_CRASHES       3
#define MAX_UNREAD        8 /* about two minutes */
#define UNREAD_MILLIS     500
#define INSPECTION_MILLIS 600000u
#define MAX_CHECK_MILLIS  60000 /* longest time between checks: the clock may be set */
#define MIN_CHECK_MILLIS  50

struct series_inspection {
    int64_t series_id;           /* 0: free entry */
    int32_t revision, instances; /* as of the request */
    int64_t last_seen_ms;        /* as of the request */
    bool allow_missing;          /* an operator accepts missing instances */
    unsigned judgements;         /* sets of options to check */
    int crash_count;             /* deaths of the receiver during it; above 0 it is retried alone */
    int unread_count;            /* results that the files could not be read */
    uint64_t again_at;           /* after such a result: earliest time of the next request */
    bool receiving;              /* still being received at the last check */
    bool planned;                /* complete at the last check */
    bool requested;              /* requested from the current receiver */
    uint64_t requested_at;
    char evidence[SERIES_EVIDENCE];
};

struct inspections {
    struct core *core;
    uv_timer_t timer;
    int64_t listening_since_ms; /* 0: the receiver accepts no slices */
    struct series_inspection items[MAX_INSPECTIONS];
};

/* ------------------------------------------------------------------------- next check ---- */

/* Schedules a check in this time, unless one is due earlier. */
static void
inspections_check_within(struct inspections *all, int64_t millis)
{
    uint64_t delay = (uint64_t)(millis < MIN_CHECK_MILLIS   ? MIN_CHECK_MILLIS
                                : millis > MAX_CHECK_MILLIS ? MAX_CHECK_MILLIS
                                                            : millis);
    if (!uv_is_active((uv_handle_t *)&all->timer) || uv_timer_get_due_in(&all->timer) > delay)
        uv_timer_start(&all->timer, all->timer.timer_cb, delay, 0);
}

void
inspections_check(struct inspections *all)
{
    inspections_check_within(all, 0);
}

/* A new instance cannot complete its series before the shortest wait has passed. */
void
inspections_check_later(struct inspections *all)
{
    const struct conf_series *timers = &all->core->conf->series;
    inspections_check_within(
        all, (int64_t)(1000 * fmin(timers->quiet_seconds, fmin(timers->complete_seconds, timers->patience_seconds))));
}

/* ----------------------------------------------------------------------------- checking ---- */

static struct series_inspection *
inspections_find(struct inspections *all, int64_t series_id)
{
    for (int i = 0; i < MAX_INSPECTIONS; i++) {
        if (all->items[i].series_id == series_id)
            return &all->items[i];
    }
    return NULL;
}

/* Plans the inspection of a complete series, if there is a free entry. */
static void
inspections_plan(struct inspections *all, const struct queue_series *series, const char *evidence)
{
    struct series_inspection *inspection = inspections_find(all, series->id);
    if (!inspection)
        inspection = inspections_find(all, 0);
    if (!inspection || inspection->requested)
        return;
    inspection->series_id = series->id;
    inspection->revision = series->revision;
    inspection->instances = series->instances;
    inspection->last_seen_ms = series->last_seen_ms;
    inspection->allow_missing = *series->missing_accepted_by != 0;
    const struct rules_series subject = routing_subject(all->core->conf, series);
    inspection->judgements = routing_option_sets(all->core->conf, &subject, NULL);
    inspection->receiving = inspection->planned = true;
    snprintf(inspection->evidence, sizeof inspection->evidence, "%s", evidence);
}

static void
inspection_settle(struct inspections *all, struct series_inspection *inspection, struct queue_stack *stacks,
                  const struct rules_facts *facts, size_t count)
{
    struct core *core = all->core;
    struct queue_series series;
    struct series_inspection inspected = *inspection;
    *inspection = (struct series_inspection){0};
    inspections_check(all);
    int error = queue_get_series(core->queue, inspected.series_id, &series);
    if (core_failed(core, error, "read a series"))
        return;
    /* The series and the rules must not have changed since the request. */
    const struct rules_series subject = routing_subject(core->conf, &series);
    const bool is_current = series.revision == inspected.revision && series.instances == inspected.instances &&
                            series.last_seen_ms == inspected.last_seen_ms &&
                            (*series.missing_accepted_by != 0) == inspected.allow_missing &&
                            routing_option_sets(core->conf, &subject, NULL) == inspected.judgements;
    if (is_current && core_change(core)) {
        error = settle_series(core, &series, inspected.evidence, stacks, facts, count);
        if (error && error != -EAGAIN) {
            batch_abort(core->batch, error);
            core_failed(core, error, "settle a series");
        }
        due_now(&core->jobs_due);
    }
    queue_series_clear(&series);
}

static void
inspection_refuse(struct inspections *all, struct series_inspection *inspection, enum code code, const char *message)
{
    struct queue_stack stack = {
        .name = "", .code = code, .message = message, .file_a = "", .file_b = "", .options = ""};
    inspection_settle(all, inspection, &stack, NULL, 1);
}

/* ----------------------------------------------------------------------------- requests ---- */

static int
inspection_send(struct core *core, const struct series_inspection *inspection)
{
    struct queue_file *files;
    size_t count;
    int error = queue_series_files(core->queue, inspection->series_id, &files, &count);
    if (error)
        return error;
    char *attributes = conditions_attributes(core->conf->rules, core->conf->rule_count);
    const struct geometry_limits limits = routing_options_lenient_limits(core->conf);
    struct proto_writer writer;
    struct message_inspect inspect = {.series_id = inspection->series_id,
                                      .revision = inspection->revision,
                                      .min_slices = limits.min_planes,
                                      .spacing_tolerance = limits.spacing_tolerance,
                                      .allow_missing = inspection->allow_missing,
                                      .option_sets = inspection->judgements,
                                      .attributes = attributes};
    message_write_inspect(&writer, &inspect);
    if (!attributes)
        writer.error = -ENOMEM;
    for (size_t i = 0; i < count; i++) {
        char *path = core_path(core, files[i].path);
        if (path)
            message_add_path(&writer, &(struct message_path){.path = path});
        else
            writer.error = -ENOMEM;
        free(path);
        queue_file_clear(&files[i]);
    }
    free(files);
    free(attributes);
    return pool_send(core->pool, core->receiver, &writer);
}

static void
inspection_request(struct inspections *all, struct series_inspection *inspection)
{
    const uint64_t now = uv_now(&all->core->loop);
    if (now < inspection->again_at) {
        inspections_check_within(all, (int64_t)(inspection->again_at - now));
        return;
    }
    /* The size is checked before any file is opened. */
    struct core *core = all->core;
    struct queue_series series;
    struct error why = {.code = CODE_NONE};
    int64_t bytes;
    int error = queue_get_series(core->queue, inspection->series_id, &series);
    if (!error) {
        error = queue_series_bytes(core->queue, series.id, &bytes);
        if (!error)
            error = series_size_check(&core->conf->series, series.series_uid, series.instances, bytes, &why);
        queue_series_clear(&series);
    }
    if (error == -E2BIG) {
        inspection_refuse(all, inspection, why.code, why.message);
        return;
    }
    if (!error)
        error = inspection_send(all->core, inspection);
    if (error == -EMSGSIZE) {
        inspection_refuse(all, inspection, CODE_TOO_MANY_INSTANCES,
                          "the series has more files than Noctule can inspect together");
        return;
    }
    if (error && error != -EPIPE)
        core_failed(all->core, error, "inspect a series");
    inspection->requested = error == 0;
    inspection->requested_at = uv_now(&all->core->loop);
}

/* Requests the planned inspections. Series that are retried alone go first. */
static void
inspections_request_planned(struct inspections *all)
{
    size_t requested = 0;
    struct series_inspection *alone = NULL;
    for (int i = 0; i < MAX_INSPECTIONS; i++) {
        struct series_inspection *inspection = &all->items[i];
        requested += inspection->requested;
        if (inspection->crash_count > 0 && (inspection->planned || inspection->requested))
            alone = inspection->requested || !alone ? inspection : alone;
    }
    if (alone) {
        if (requested == 0)
            inspection_request(all, alone);
        return;
    }
    for (int i = 0; i < MAX_INSPECTIONS; i++) {
        if (all->items[i].planned && !all->items[i].requested)
            inspection_request(all, &all->items[i]);
    }
}

/* Checks all series. Returns the time until the next check in milliseconds. */
static int64_t
inspections_check_all(struct inspections *all, const struct queue_series *series, size_t count)
{
    int64_t now_ms = clock_unix_ms(), soonest = MAX_CHECK_MILLIS;
    int64_t listening_ms = all->listening_since_ms ? all->listening_since_ms : now_ms;
    for (int i = 0; i < MAX_INSPECTIONS; i++)
        all->items[i].planned = all->items[i].receiving = false;
    for (size_t i = 0; i < count; i++) {
        struct series_inspection *inspection = inspections_find(all, series[i].id);
        if (inspection)
            inspection->receiving = true;
        struct series_decision decision;
        series_decide(&series[i], &all->core->conf->series, listening_ms, now_ms, &decision);
        /* If the table is full, the next result triggers another check. */
        if (decision.settle)
            inspections_plan(all, &series[i], decision.evidence);
        else if (decision.due_ms - now_ms < soonest)
            soonest = decision.due_ms - now_ms;
    }
    /* Free entries that were not planned again. Keep those of retried series while they are being
     * received, for their counts. */
    for (int i = 0; i < MAX_INSPECTIONS; i++) {
        struct series_inspection *inspection = &all->items[i];
        bool retried = inspection->crash_count + inspection->unread_count > 0;
        if (!inspection->requested && !inspection->planned && !(retried && inspection->receiving))
            *inspection = (struct series_inspection){0};
    }
    return soonest;
}

static void
inspections_on_check(uv_timer_t *timer)
{
    struct inspections *all = timer->data;
    struct core *core = all->core;
    if (core->draining || core->db_failed || core->auditing || !pool_ready(core->pool, core->receiver))
        /* the receiver's start, or the end of the failure or the audit, triggers another check */
        return;
    struct queue_series *series;
    size_t count;
    if (core_failed(core, queue_gathering(core->queue, &series, &count), "read the series being received")) {
        inspections_check_within(all, MAX_CHECK_MILLIS);
        return;
    }
    int64_t soonest = inspections_check_all(all, series, count);
    for (size_t i = 0; i < count; i++)
        queue_series_clear(&series[i]);
    free(series);
    inspections_request_planned(all);
    if (count)
        inspections_check_within(all, soonest);
}

/* ------------------------------------------------------------------------------ results ---- */

/* Returns CONF_ANY_ORIENTATION for a stack without an orientation, and for unknown numbers. */
static enum conf_orientation
inspection_orientation(const struct message_stack *message)
{
    return message->orientation > 0 && message->orientation <= CONF_OBLIQUE
               ? (enum conf_orientation)message->orientation
               : CONF_ANY_ORIENTATION;
}

static struct queue_stack
inspection_stack(const struct message_stack *message)
{
    const enum conf_orientation orientation = inspection_orientation(message);
    return (struct queue_stack){
        .name = message->name,
        .accepted = message->accepted != 0,
        .passed_over = message->passed_over != 0,
        .split_by = message->split_by,
        .planes = core_count(message->planes),
        .columns = core_count(message->columns),
        .rows = core_count(message->rows),
        .spacing_mm = message->spacing,
        .code = message->code,
        .message = message->message,
        .file_a = message->file_a,
        .file_b = message->file_b,
        .times = core_count(message->times),
        .times_announced = core_count(message->times_announced),
        .options = routing_options_text(message->options),
        .pixel_mm = {message->column_mm, message->row_mm},
        .orientation = orientation ? conditions_orientation_name(orientation) : "",
        .cosines = message->cosines,
    };
}

/* Returns whether the inspection is postponed. */
static bool
inspection_postpone(struct inspections *all, struct series_inspection *inspection, enum code code)
{
    if ((code != CODE_IO_ERROR && code != CODE_OUT_OF_MEMORY) || ++inspection->unread_count >= MAX_UNREAD)
        return false;
    log_warn("inspection.put_off", LOG_INT("series_id", inspection->series_id), LOG_STR("code", code_name(code)),
             LOG_INT("times", inspection->unread_count));
    const uint64_t wait = (uint64_t)UNREAD_MILLIS << inspection->unread_count;
    inspection->requested = false;
    inspection->again_at = uv_now(&all->core->loop) + wait;
    inspections_check(all);
    return true;
}

/* Settles the series with the stacks of the frame. */
static void
inspection_take(struct inspections *all, struct series_inspection *inspection, const struct message_inspected *message,
                struct proto_reader *reader)
{
    const size_t room = (size_t)reader->rows + 1;
    struct queue_stack *stacks = calloc(room, sizeof *stacks);
    struct rules_facts *facts = calloc(room, sizeof *facts);
    if (stacks && facts) { /* without memory, a deadline repeats the request */
        struct message_stack stack;
        size_t count = 0;
        while (message_next_stack(reader, &stack)) {
            facts[count] = (struct rules_facts){.orientation = inspection_orientation(&stack),
                                                .spacing = stack.planes > 1 ? stack.spacing : 0,
                                                .asked = message->attributes,
                                                .values = stack.values};
            stacks[count++] = inspection_stack(&stack);
        }
        if (count == 0)
            inspection_refuse(all, inspection, CODE_INSPECT_FAILED,
                              "the inspection found no stack of slices in the series");
        else if (!inspection_postpone(all, inspection, stacks[0].code))
            inspection_settle(all, inspection, stacks, facts, count);
    }
    free(facts);
    free(stacks);
}

void
inspections_frame(struct inspections *all, struct proto_reader *reader)
{
    struct message_inspected message;
    if (message_read_inspected(reader, &message))
        return;
    struct series_inspection *inspection = message.series_id > 0 ? inspections_find(all, message.series_id) : NULL;
    if (!inspection || !inspection->requested || inspection->revision != message.revision)
        return;
    const struct conf *conf = all->core->conf;
    char *attributes = conditions_attributes(conf->rules, conf->rule_count);
    if (attributes && strcmp(attributes, message.attributes) == 0) {
        inspection_take(all, inspection, &message, reader);
    } else { /* the rules in force use other attributes: request it again */
        inspection->requested = false;
        inspections_check(all);
    }
    free(attributes);
}

/* ----------------------------------------------------------------------------- receiver ---- */

void
inspections_listening(struct inspections *all, bool listening)
{
    all->listening_since_ms = listening ? clock_unix_ms() : 0;
}

void
inspections_clock_was_set(struct inspections *all, int64_t by_ms)
{
    if (all->listening_since_ms)
        all->listening_since_ms += by_ms;
    inspections_check(all);
}

void
inspections_receiver_gone(struct inspections *all, bool crashed)
{
    for (int i = 0; i < MAX_INSPECTIONS; i++) {
        struct series_inspection *inspection = &all->items[i];
        if (!inspection->requested)
            continue;
        inspection->requested = false;
        inspection->crash_count += crashed;
        if (inspection->crash_count >= MAX_CRASHES)
            inspection_refuse(all, inspection, CODE_INSPECT_FAILED,
                              "reading the files of the series ended the intake three times");
    }
}

void
inspections_tick(struct inspections *all)
{
    struct core *core = all->core;
    for (int i = 0; i < MAX_INSPECTIONS; i++) {
        const struct series_inspection *inspection = &all->items[i];
        if (inspection->requested && uv_now(&core->loop) - inspection->requested_at > INSPECTION_MILLIS)
            pool_kill(core->pool, core->receiver, "an inspection takes too long");
    }
}

/* -------------------------------------------------------------------------- open, close ---- */

int
inspections_open(struct core *core, struct inspections **out)
{
    struct inspections *all = calloc(1, sizeof *all);
    if (!all)
        return -ENOMEM;
    all->core = core;
    uv_timer_init(&core->loop, &all->timer); /* cannot fail */
    all->timer.data = all;
    all->timer.timer_cb = inspections_on_check;
    *out = all;
    return 0;
}

void
inspections_close(struct inspections *all)
{
    if (all)
        uv_close((uv_handle_t *)&all->timer, handle_free_owner);
}
