/*
 * inspection.c - see inspection.h.
 *
 * Nothing here has to survive a restart. What is gathering, and since when, stands in the database;
 * an inspection that is lost is asked for again.
 *
 * An inspection reads files that nobody has read so far, so it may be what kills the intake.
 * Whatever was being inspected when the intake died is inspected again with no other beside it, and
 * refused after the third death. What could not be read for want of this machine's memory or
 * descriptors is inspected again, less and less often, before that is believed.
 */
#include "service/daemon/series/inspection.h"

#include "service/common/clock.h"
#include "service/common/handle.h"
#include "service/common/log.h"
#include "service/common/routing/routing_conditions.h"
#include "service/common/routing/routing_options.h"
#include "service/common/series_size.h"
#include "service/common/wire/messages.h"
#include "service/daemon/jobs/routing_result.h"
#include "service/daemon/series/series.h"
#include "service/daemon/series/settle.h"

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
#define MAX_LOOK_MILLIS   60000 /* looks again at least so often: the clock may be set */
#define MIN_LOOK_MILLIS   50

struct series_inspection {
    int64_t series_id;           /* 0: free */
    int32_t revision, instances; /* as they are when it is asked for */
    int64_t last_seen_ms;        /* likewise */
    bool allow_missing;          /* an operator takes it as it is */
    unsigned judgements;         /* that are asked for */
    int crash_count;             /* deaths of the intake meanwhile; above 0 it is retried alone */
    int unread_count;            /* answers that it could not be read just now */
    uint64_t again_at;           /* after such an answer: not before */
    bool gathering;              /* at the last look */
    bool planned;                /* had come to rest at the last look */
    bool asked;                  /* of the intake that lives now */
    uint64_t asked_at;
    char evidence[SERIES_EVIDENCE];
};

struct inspections {
    struct core *core;
    uv_timer_t timer;
    int64_t listening_since_ms; /* 0: the intake takes nothing */
    struct series_inspection items[MAX_INSPECTIONS];
};

/* ------------------------------------------------------------------------- when to look ---- */

/* Looks in so many milliseconds, or sooner if that was agreed before. */
static void
inspections_look_within(struct inspections *all, int64_t millis)
{
    uint64_t delay = (uint64_t)(millis < MIN_LOOK_MILLIS   ? MIN_LOOK_MILLIS
                                : millis > MAX_LOOK_MILLIS ? MAX_LOOK_MILLIS
                                                           : millis);
    if (!uv_is_active((uv_handle_t *)&all->timer) || uv_timer_get_due_in(&all->timer) > delay)
        uv_timer_start(&all->timer, all->timer.timer_cb, delay, 0);
}

void
inspections_look(struct inspections *all)
{
    inspections_look_within(all, 0);
}

/* An instance cannot make its series settle earlier than the shortest wait. */
void
inspections_look_for_news(struct inspections *all)
{
    const struct conf_series *timers = &all->core->conf->series;
    inspections_look_within(
        all, (int64_t)(1000 * fmin(timers->quiet_seconds,
                                   fmin(timers->complete_seconds, timers->patience_seconds))));
}

/* ------------------------------------------------------------------------------ looking ---- */

static struct series_inspection *
inspections_find(struct inspections *all, int64_t series_id)
{
    for (int i = 0; i < MAX_INSPECTIONS; i++) {
        if (all->items[i].series_id == series_id)
            return &all->items[i];
    }
    return NULL;
}

/* Plans the inspection of a series that has come to rest, if there is room. */
static void
inspections_plan(struct inspections *all, const struct queue_series *series, const char *evidence)
{
    struct series_inspection *inspection = inspections_find(all, series->id);
    if (!inspection)
        inspection = inspections_find(all, 0);
    if (!inspection || inspection->asked)
        return;
    inspection->series_id = series->id;
    inspection->revision = series->revision;
    inspection->instances = series->instances;
    inspection->last_seen_ms = series->last_seen_ms;
    inspection->allow_missing = *series->missing_accepted_by != 0;
    inspection->judgements = wish_judgements(all->core->conf, series);
    inspection->gathering = inspection->planned = true;
    snprintf(inspection->evidence, sizeof inspection->evidence, "%s", evidence);
}

static void
inspections_forget_plans(struct inspections *all)
{
    for (int i = 0; i < MAX_INSPECTIONS; i++)
        all->items[i].planned = all->items[i].gathering = false;
}

/* What was not planned again is free, but for those that are retried: their counts last as long as
 * they gather. */
static void
inspections_free_unplanned(struct inspections *all)
{
    for (int i = 0; i < MAX_INSPECTIONS; i++) {
        struct series_inspection *inspection = &all->items[i];
        bool retried = inspection->crash_count + inspection->unread_count > 0;
        if (!inspection->asked && !inspection->planned && !(retried && inspection->gathering))
            *inspection = (struct series_inspection){0};
    }
}

/* If not, slices came in, a missing one returned or the rules changed meanwhile: it is asked about
 * again. */
static bool
inspection_is_current(const struct conf *conf, const struct queue_series *series,
                      const struct series_inspection *inspection)
{
    return series->revision == inspection->revision && series->instances == inspection->instances &&
           series->last_seen_ms == inspection->last_seen_ms &&
           (*series->missing_accepted_by != 0) == inspection->allow_missing &&
           wish_judgements(conf, series) == inspection->judgements;
}

static void
inspection_settle(struct inspections *all, struct series_inspection *inspection,
                  struct queue_stack *stacks, const struct rules_facts *facts, size_t count)
{
    struct core *core = all->core;
    struct queue_series series;
    struct series_inspection inspected = *inspection;
    *inspection = (struct series_inspection){0};
    inspections_look(all);
    int error = queue_get_series(core->queue, inspected.series_id, &series);
    if (core_failed(core, error, "read a series"))
        return;
    if (inspection_is_current(core->conf, &series, &inspected) && core_change(core)) {
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
inspection_refuse(struct inspections *all, struct series_inspection *inspection, enum code code,
                  const char *message)
{
    struct queue_stack stack = {
        .name = "", .code = code, .message = message, .file_a = "", .file_b = "", .options = ""};
    inspection_settle(all, inspection, &stack, NULL, 1);
}

/* ------------------------------------------------------------------------------- asking ---- */

/* The paths of its files; -ENOMEM is the writer's to tell. */
static void
inspection_add_paths(const struct core *core, struct queue_file *files, size_t count,
                     struct proto_writer *writer)
{
    for (size_t i = 0; i < count; i++) {
        char *path = core_path(core, files[i].path);
        if (path)
            message_add_path(writer, &(struct message_path){.path = path});
        else
            writer->error = -ENOMEM;
        free(path);
        queue_file_clear(&files[i]);
    }
}

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
    inspection_add_paths(core, files, count, &writer);
    free(files);
    free(attributes);
    return pool_send(core->pool, core->intake, &writer);
}

/* Before any of its files is opened: -E2BIG with why. */
static int
inspection_check_size(struct core *core, const struct series_inspection *inspection,
                      struct error *why)
{
    struct queue_series series;
    int64_t bytes;
    int error = queue_get_series(core->queue, inspection->series_id, &series);
    if (error)
        return error;
    error = queue_series_bytes(core->queue, series.id, &bytes);
    if (!error)
        error =
            series_size_check(&core->conf->series, series.series_uid, series.instances, bytes, why);
    queue_series_clear(&series);
    return error;
}

static void
inspection_ask(struct inspections *all, struct series_inspection *inspection)
{
    const uint64_t now = uv_now(&all->core->loop);
    if (now < inspection->again_at) {
        inspections_look_within(all, (int64_t)(inspection->again_at - now));
        return;
    }
    struct error why;
    int error = inspection_check_size(all->core, inspection, &why);
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
    inspection->asked = error == 0;
    inspection->asked_at = uv_now(&all->core->loop);
}

/* Those that are retried alone go before the others. */
static void
inspections_ask_planned(struct inspections *all)
{
    size_t asked = 0;
    struct series_inspection *alone = NULL;
    for (int i = 0; i < MAX_INSPECTIONS; i++) {
        struct series_inspection *inspection = &all->items[i];
        asked += inspection->asked;
        if (inspection->crash_count > 0 && (inspection->planned || inspection->asked))
            alone = inspection->asked || !alone ? inspection : alone;
    }
    if (alone) {
        if (asked == 0)
            inspection_ask(all, alone);
        return;
    }
    for (int i = 0; i < MAX_INSPECTIONS; i++) {
        if (all->items[i].planned && !all->items[i].asked)
            inspection_ask(all, &all->items[i]);
    }
}

/* Returns in how many milliseconds to look again. */
static int64_t
inspections_look_at(struct inspections *all, const struct queue_series *series, size_t count)
{
    int64_t now_ms = clock_unix_ms(), soonest = MAX_LOOK_MILLIS;
    int64_t listening_ms = all->listening_since_ms ? all->listening_since_ms : now_ms;
    inspections_forget_plans(all);
    for (size_t i = 0; i < count; i++) {
        struct series_inspection *inspection = inspections_find(all, series[i].id);
        if (inspection)
            inspection->gathering = true;
        struct series_decision decision;
        series_decide(&series[i], &all->core->conf->series, listening_ms, now_ms, &decision);
        /* A full table is looked at again when an answer makes room. */
        if (decision.settle)
            inspections_plan(all, &series[i], decision.evidence);
        else if (decision.due_ms - now_ms < soonest)
            soonest = decision.due_ms - now_ms;
    }
    inspections_free_unplanned(all);
    return soonest;
}

static void
inspections_on_look(uv_timer_t *timer)
{
    struct inspections *all = timer->data;
    struct core *core = all->core;
    if (core->draining || core->trouble || core->auditing || !pool_ready(core->pool, core->intake))
        return; /* the intake's return, the end of the trouble or of the audit look again */
    struct queue_series *series;
    size_t count;
    if (core_failed(core, queue_gathering(core->queue, &series, &count),
                    "read the gathering series")) {
        inspections_look_within(all, MAX_LOOK_MILLIS);
        return;
    }
    int64_t soonest = inspections_look_at(all, series, count);
    for (size_t i = 0; i < count; i++)
        queue_series_clear(&series[i]);
    free(series);
    inspections_ask_planned(all);
    if (count)
        inspections_look_within(all, soonest);
}

/* ------------------------------------------------------------------------------ answers ---- */

/* Returns CONF_ANY_ORIENTATION for a stack without an orientation, and for numbers that mean none. */
static enum conf_orientation
inspection_orientation(const struct message_stack *told)
{
    return told->orientation > 0 && told->orientation <= CONF_OBLIQUE
               ? (enum conf_orientation)told->orientation
               : CONF_ANY_ORIENTATION;
}

static struct queue_stack
inspection_stack(const struct message_stack *told)
{
    const enum conf_orientation orientation = inspection_orientation(told);
    return (struct queue_stack){
        .name = told->name,
        .accepted = told->accepted != 0,
        .passed_over = told->passed_over != 0,
        .split_by = told->split_by,
        .planes = core_count(told->planes),
        .columns = core_count(told->columns),
        .rows = core_count(told->rows),
        .spacing_mm = told->spacing,
        .code = told->code,
        .message = told->message,
        .file_a = told->file_a,
        .file_b = told->file_b,
        .times = core_count(told->times),
        .times_announced = core_count(told->times_announced),
        .options = routing_options_text(told->options),
        .pixel_mm = {told->column_mm, told->row_mm},
        .orientation = orientation ? conditions_orientation_name(orientation) : "",
        .cosines = told->cosines,
    };
}

/* True where it is to be asked again. */
static bool
inspection_put_off(struct inspections *all, struct series_inspection *inspection, enum code code)
{
    if ((code != CODE_IO_ERROR && code != CODE_OUT_OF_MEMORY) ||
        ++inspection->unread_count >= MAX_UNREAD)
        return false;
    log_warn("inspection.put_off", LOG_INT("series_id", inspection->series_id),
             LOG_STR("code", code_name(code)), LOG_INT("times", inspection->unread_count));
    const uint64_t wait = (uint64_t)UNREAD_MILLIS << inspection->unread_count;
    inspection->asked = false;
    inspection->again_at = uv_now(&all->core->loop) + wait;
    inspections_look(all);
    return true;
}

static struct rules_facts
inspection_facts(const struct message_inspected *told, const struct message_stack *stack)
{
    return (struct rules_facts){.orientation = inspection_orientation(stack),
                                .spacing = stack->planes > 1 ? stack->spacing : 0,
                                .asked = told->attributes,
                                .values = stack->values};
}

/* Does the answer say what the rules in force ask? Else it is asked for again. */
static bool
inspection_answers(const struct conf *conf, const struct message_inspected *told)
{
    char *asked = conditions_attributes(conf->rules, conf->rule_count);
    const bool same = asked && strcmp(asked, told->attributes) == 0;
    free(asked);
    return same;
}

/* With room for the stacks of the frame, from it. */
static size_t
inspection_read_stacks(struct proto_reader *reader, const struct message_inspected *told,
                       struct queue_stack *stacks, struct rules_facts *facts)
{
    struct message_stack stack;
    size_t count = 0;
    while (message_next_stack(reader, &stack)) {
        facts[count] = inspection_facts(told, &stack);
        stacks[count++] = inspection_stack(&stack);
    }
    return count;
}

/* What the frame says settles the series. */
static void
inspection_take(struct inspections *all, struct series_inspection *inspection,
                const struct message_inspected *told, struct proto_reader *reader)
{
    const size_t room = (size_t)reader->rows + 1;
    struct queue_stack *stacks = calloc(room, sizeof *stacks);
    struct rules_facts *facts = calloc(room, sizeof *facts);
    if (stacks && facts) { /* else asked again when it has taken too long */
        const size_t count = inspection_read_stacks(reader, told, stacks, facts);
        if (count == 0)
            inspection_refuse(all, inspection, CODE_INSPECT_FAILED,
                              "the inspection found no stack of slices in the series");
        else if (!inspection_put_off(all, inspection, stacks[0].code))
            inspection_settle(all, inspection, stacks, facts, count);
    }
    free(facts);
    free(stacks);
}

void
inspections_frame(struct inspections *all, struct proto_reader *reader)
{
    struct message_inspected told;
    if (message_read_inspected(reader, &told))
        return;
    struct series_inspection *inspection =
        told.series_id > 0 ? inspections_find(all, told.series_id) : NULL;
    if (!inspection || !inspection->asked || inspection->revision != told.revision)
        return;
    if (!inspection_answers(all->core->conf, &told)) {
        inspection->asked = false;
        inspections_look(all);
        return;
    }
    inspection_take(all, inspection, &told, reader);
}

/* ------------------------------------------------------------------------------- intake ---- */

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
    inspections_look(all);
}

void
inspections_intake_gone(struct inspections *all, bool crashed)
{
    for (int i = 0; i < MAX_INSPECTIONS; i++) {
        struct series_inspection *inspection = &all->items[i];
        if (!inspection->asked)
            continue;
        inspection->asked = false;
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
        if (inspection->asked && uv_now(&core->loop) - inspection->asked_at > INSPECTION_MILLIS)
            pool_kill(core->pool, core->intake, "an inspection takes too long");
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
    uv_timer_init(&core->loop, &all->timer); /* has no way to fail */
    all->timer.data = all;
    all->timer.timer_cb = inspections_on_look;
    *out = all;
    return 0;
}

void
inspections_close(struct inspections *all)
{
    if (all)
        uv_close((uv_handle_t *)&all->timer, handle_free_owner);
}
