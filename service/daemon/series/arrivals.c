/*
 * arrivals.c - see arrivals.h.
 *
 * Nothing here has to survive a restart. What is gathering, and since when, stands in the database;
 * an inspection that is lost is asked for again; a row that could not be committed is reported by
 * the intake again, because it was not told STORED.
 *
 * An inspection reads files that nobody has read so far, so it may be what kills the intake.
 * Whatever was being inspected when the intake died is a suspect: it is inspected again with no
 * other beside it, and refused after the third death.
 */
#include "service/daemon/series/arrivals.h"

#include "service/common/clock.h"
#include "service/common/log.h"
#include "service/common/messages.h"
#include "service/daemon/delivery/deliveries.h"
#include "service/daemon/jobs/jobs.h"
#include "service/daemon/series/rules.h"
#include "service/daemon/series/series.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_INSPECTIONS   8
#define MAX_STRIKES       3
#define INSPECTION_MILLIS 600000u
#define MAX_LOOK_MILLIS   60000 /* looks again at least so often: the clock may be set */
#define MIN_LOOK_MILLIS   50

struct inspection {
    int64_t series_id;           /* 0: free */
    int32_t revision, instances; /* as they are when it is asked for */
    int64_t last_seen_ms;        /* likewise */
    int strikes;
    bool gathering; /* at the last look */
    bool planned;   /* had come to rest at the last look */
    bool asked;     /* of the intake that lives now */
    uint64_t asked_at;
    char evidence[SERIES_EVIDENCE];
};

struct arrivals {
    struct core *core;
    uv_timer_t timer;
    int64_t listening_since_ms; /* 0: not listening */
    bool paused;                /* what the intake was told */
    struct inspection inspections[MAX_INSPECTIONS];
};

/* ------------------------------------------------------------------------- when to look ---- */

/* Looks in so many milliseconds, or sooner if that was agreed before. */
static void
look_within(struct arrivals *arrivals, int64_t millis)
{
    uint64_t delay = (uint64_t)(millis < MIN_LOOK_MILLIS   ? MIN_LOOK_MILLIS
                                : millis > MAX_LOOK_MILLIS ? MAX_LOOK_MILLIS
                                                           : millis);
    if (!uv_is_active((uv_handle_t *)&arrivals->timer) ||
        uv_timer_get_due_in(&arrivals->timer) > delay)
        uv_timer_start(&arrivals->timer, arrivals->timer.timer_cb, delay, 0);
}

void
arrivals_look(struct arrivals *arrivals)
{
    look_within(arrivals, 0);
}

/* An instance cannot make its series settle earlier than the shortest wait. */
static void
look_for_news(struct arrivals *arrivals)
{
    const struct conf_series *timers = &arrivals->core->conf->series;
    look_within(arrivals,
                (int64_t)(1000 * fmin(timers->quiet_seconds,
                                      fmin(timers->complete_seconds, timers->patience_seconds))));
}

/* ---------------------------------------------------------------------------- instances ---- */

struct receipt {
    struct core *core;
    int64_t token;
};

static void
send_stored(void *context, int status)
{
    struct receipt *receipt = context;
    struct core *core = receipt->core;
    if (status == 0) {
        struct proto_writer writer;
        message_write_stored(&writer, &(struct message_stored){.token = receipt->token});
        pool_send(core->pool, core->intake, &writer); /* -EPIPE: the next intake reports again */
    }
    free(receipt);
}

static void
store_later(struct core *core, int64_t token)
{
    struct receipt *receipt = malloc(sizeof *receipt);
    if (!receipt)
        return; /* not told STORED, the intake reports again */
    *receipt = (struct receipt){core, token};
    if (batch_on_commit(core->batch, send_stored, receipt))
        free(receipt);
}

static int32_t
clamp_count(int64_t value)
{
    return value < 0 ? 0 : value > INT32_MAX ? INT32_MAX : (int32_t)value;
}

/* Paths come from the intake, which reads what strangers wrote: they stay below the root. */
static bool
is_below_root(const char *path)
{
    return *path && *path != '/' && strncmp(path, "../", 3) != 0 && !strstr(path, "/../");
}

static struct queue_instance
instance_of(const struct message_arrived *told)
{
    return (struct queue_instance){
        .sop_instance_uid = told->sop_instance,
        .sop_class_uid = told->sop_class,
        .transfer_syntax_uid = told->transfer_syntax,
        .series_uid = told->series,
        .study_uid = told->study,
        .modality = told->modality,
        .body_part = told->body_part,
        .series_description = told->series_description,
        .path = told->path,
        .source = told->source,
        .called_ae = told->called_ae,
        .sender = told->sender,
        .size = told->size,
        .frames = clamp_count(told->frames),
        .expected_instances = clamp_count(told->expected),
    };
}

static void
hear_arrived(struct arrivals *arrivals, struct proto_reader *reader)
{
    struct core *core = arrivals->core;
    struct message_arrived told;
    if (message_read_arrived(reader, &told))
        return;
    if (!is_below_root(told.path)) {
        reader->error = -EBADMSG;
        return;
    }
    if (!core_change(core))
        return;
    const struct queue_instance instance = instance_of(&told);
    enum queue_arrival arrival;
    int64_t series_id;
    int error = queue_add_instance(core->queue, &instance, clock_unix_ms(), &arrival, &series_id);
    if (error) {
        core_failed(core, error, "store an instance");
        return;
    }
    log_debug("instance.stored", LOG_STR("sop", instance.sop_instance_uid),
              LOG_STR("series", instance.series_uid), LOG_INT("new", arrival == QUEUE_NEW));
    store_later(core, told.token);
    if (arrival != QUEUE_KNOWN)
        look_for_news(arrivals);
}

static void
hear_quarantined(struct arrivals *arrivals, struct proto_reader *reader)
{
    struct core *core = arrivals->core;
    struct message_quarantined told;
    if (message_read_quarantined(reader, &told))
        return;
    if (!is_below_root(told.path)) {
        reader->error = -EBADMSG;
        return;
    }
    if (!core_change(core))
        return;
    int error = queue_add_quarantine(core->queue, told.path, told.original, told.series, told.code,
                                     told.sentence, clock_unix_ms());
    if (error) {
        core_failed(core, error, "record a quarantined file");
        return;
    }
    /* Its name may be a patient's: the row has it, the log has not. */
    log_warn("file.quarantined", LOG_STR("code", told.code), LOG_STR("series", told.series));
    store_later(core, told.token);
}

/* ------------------------------------------------------------------------------ looking ---- */

static struct inspection *
find_inspection(struct arrivals *arrivals, int64_t series_id)
{
    for (int i = 0; i < MAX_INSPECTIONS; i++) {
        if (arrivals->inspections[i].series_id == series_id)
            return &arrivals->inspections[i];
    }
    return NULL;
}

/* Plans the inspection of a series that has come to rest, if there is room. */
static void
plan_inspection(struct arrivals *arrivals, const struct queue_series *series, const char *evidence)
{
    struct inspection *inspection = find_inspection(arrivals, series->id);
    if (!inspection)
        inspection = find_inspection(arrivals, 0);
    if (!inspection || inspection->asked)
        return;
    inspection->series_id = series->id;
    inspection->revision = series->revision;
    inspection->instances = series->instances;
    inspection->last_seen_ms = series->last_seen_ms;
    inspection->gathering = inspection->planned = true;
    snprintf(inspection->evidence, sizeof inspection->evidence, "%s", evidence);
}

static void
forget_plans(struct arrivals *arrivals)
{
    for (int i = 0; i < MAX_INSPECTIONS; i++)
        arrivals->inspections[i].planned = arrivals->inspections[i].gathering = false;
}

/* What was not planned again is free, but for suspects: their strikes count as long as they
 * gather. */
static void
free_unplanned(struct arrivals *arrivals)
{
    for (int i = 0; i < MAX_INSPECTIONS; i++) {
        struct inspection *inspection = &arrivals->inspections[i];
        bool suspect = inspection->strikes > 0 && inspection->gathering;
        if (!inspection->asked && !inspection->planned && !suspect)
            *inspection = (struct inspection){0};
    }
}

static void settle_as_refused(struct arrivals *arrivals, struct inspection *inspection,
                              const char *code, const char *sentence);

/* The most lenient pipeline counts: each job's own gate applies its own tolerance. */
static double
spacing_tolerance(const struct conf *conf)
{
    double tolerance = 0;
    for (size_t i = 0; i < conf->pipeline_count; i++) {
        if (conf->pipelines[i].spacing_tolerance > tolerance)
            tolerance = conf->pipelines[i].spacing_tolerance;
    }
    return tolerance;
}

static int
send_inspect(struct core *core, const struct inspection *inspection)
{
    char **paths;
    size_t count;
    int error = queue_series_paths(core->queue, inspection->series_id, &paths, &count);
    if (error)
        return error;
    struct proto_writer writer;
    const struct message_inspect inspect = {.series_id = inspection->series_id,
                                            .revision = inspection->revision,
                                            .spacing_tolerance = spacing_tolerance(core->conf)};
    message_write_inspect(&writer, &inspect);
    for (size_t i = 0; i < count; i++) {
        char *path = core_path(core, paths[i]);
        message_add_path(&writer, &(struct message_path){.path = path});
        free(path);
        free(paths[i]);
    }
    free(paths);
    return pool_send(core->pool, core->intake, &writer);
}

static void
ask(struct arrivals *arrivals, struct inspection *inspection)
{
    int error = send_inspect(arrivals->core, inspection);
    if (error == -EMSGSIZE) {
        settle_as_refused(arrivals, inspection, "TOO_MANY_INSTANCES",
                          "the series has more files than Noctule can inspect together");
        return;
    }
    if (error && error != -EPIPE)
        core_failed(arrivals->core, error, "inspect a series");
    inspection->asked = error == 0;
    inspection->asked_at = uv_now(&arrivals->core->loop);
}

/* Suspects go alone, and before the others. */
static void
ask_what_is_planned(struct arrivals *arrivals)
{
    size_t asked = 0;
    struct inspection *suspect = NULL;
    for (int i = 0; i < MAX_INSPECTIONS; i++) {
        struct inspection *inspection = &arrivals->inspections[i];
        asked += inspection->asked;
        if (inspection->strikes > 0 && (inspection->planned || inspection->asked))
            suspect = inspection->asked || !suspect ? inspection : suspect;
    }
    if (suspect) {
        if (asked == 0)
            ask(arrivals, suspect);
        return;
    }
    for (int i = 0; i < MAX_INSPECTIONS; i++) {
        if (arrivals->inspections[i].planned && !arrivals->inspections[i].asked)
            ask(arrivals, &arrivals->inspections[i]);
    }
}

/* Returns in how many milliseconds to look again. */
static int64_t
look_at(struct arrivals *arrivals, const struct queue_series *series, size_t count)
{
    int64_t now_ms = clock_unix_ms(), soonest = MAX_LOOK_MILLIS;
    int64_t listening_ms = arrivals->paused ? now_ms : arrivals->listening_since_ms;
    forget_plans(arrivals);
    for (size_t i = 0; i < count; i++) {
        struct inspection *inspection = find_inspection(arrivals, series[i].id);
        if (inspection)
            inspection->gathering = true;
        struct series_decision decision;
        series_decide(&series[i], &arrivals->core->conf->series, listening_ms, now_ms, &decision);
        /* A full table is looked at again when an answer makes room. */
        if (decision.settle)
            plan_inspection(arrivals, &series[i], decision.evidence);
        else if (decision.due_ms - now_ms < soonest)
            soonest = decision.due_ms - now_ms;
    }
    free_unplanned(arrivals);
    return soonest;
}

static void
on_look(uv_timer_t *timer)
{
    struct arrivals *arrivals = timer->data;
    struct core *core = arrivals->core;
    if (core->draining || core->trouble || core->auditing || !pool_ready(core->pool, core->intake))
        return; /* the intake's return, the end of the trouble or of the audit look again */
    struct queue_series *series;
    size_t count;
    int error = queue_gathering(core->queue, &series, &count);
    if (error) {
        core_failed(core, error, "read the gathering series");
        look_within(arrivals, MAX_LOOK_MILLIS);
        return;
    }
    int64_t soonest = look_at(arrivals, series, count);
    for (size_t i = 0; i < count; i++)
        queue_series_clear(&series[i]);
    free(series);
    ask_what_is_planned(arrivals);
    if (count)
        look_within(arrivals, soonest);
}

/* ----------------------------------------------------------------------------- settling ---- */

static struct rules_subject
subject_of(const struct conf *conf, const struct queue_series *series,
           const struct queue_stack *stack)
{
    const struct conf_title *title =
        conf_find_title(conf, series->called_ae ? series->called_ae : "");
    return (struct rules_subject){
        .pipeline = title ? title->pipeline : NULL,
        .modality = series->modality ? series->modality : "",
        .body_part = series->body_part ? series->body_part : "",
        .description = series->description ? series->description : "",
        .planes = stack->planes,
    };
}

static int
add_job(struct core *core, const struct queue_series *series, const struct queue_stack *stack,
        const struct rules_pick *pick)
{
    char *settings = conf_pipeline_to_text(conf_find_pipeline(core->conf, pick->pipeline));
    if (!settings)
        return -ENOMEM;
    const struct queue_new_job new_job = {series->id,     series->revision, stack->name,
                                          pick->pipeline, settings,         pick->priority};
    struct queue_ids superseded;
    int64_t job;
    int error = queue_add_job(core->queue, &new_job, clock_unix_ms(), &job, &superseded);
    free(settings);
    for (size_t i = 0; i < superseded.count; i++)
        jobs_stop(core->jobs, superseded.at[i]);
    free(superseded.at);
    if (!error)
        log_info("job.new", LOG_INT("job", job), LOG_STR("series", series->series_uid),
                 LOG_INT("revision", series->revision), LOG_STR("stack", stack->name),
                 LOG_STR("pipeline", pick->pipeline));
    return error == -EEXIST ? 0 : error;
}

/* The jobs of one stack; adds to *count. */
static int
add_stack_jobs(struct core *core, const struct queue_series *series,
               const struct queue_stack *stack, size_t *count)
{
    const struct rules_subject subject = subject_of(core->conf, series, stack);
    struct rules_pick *picks = calloc(core->conf->rule_count + 1, sizeof *picks);
    if (!picks)
        return -ENOMEM;
    size_t found = rules_pick(core->conf->rules, core->conf->rule_count, &subject, picks);
    int error = 0;
    for (size_t i = 0; i < found && !error; i++)
        error = add_job(core, series, stack, &picks[i]);
    free(picks);
    *count += found;
    return error;
}

/* An accepted series for which nothing is to be done: somebody may have expected a result. */
static int
note_no_rule(struct core *core, const struct queue_series *series)
{
    char detail[256];
    snprintf(detail, sizeof detail, "series %s, revision %d (modality %s, body part %s)",
             series->series_uid, series->revision, series->modality ? series->modality : "-",
             series->body_part && *series->body_part ? series->body_part : "-");
    log_warn("series.no_rule", LOG_STR("series", series->series_uid),
             LOG_INT("revision", series->revision));
    return queue_note(core->queue, "NO_RULE", detail, clock_unix_ms());
}

/* Does any rule, or its AE title, want any accepted stack? */
static bool
is_wanted(const struct core *core, const struct queue_series *series,
          const struct queue_stack *stacks, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct rules_subject subject = subject_of(core->conf, series, &stacks[i]);
        if (subject.pipeline && stacks[i].accepted)
            return true;
        for (size_t r = 0; r < core->conf->rule_count && stacks[i].accepted; r++) {
            struct rules_pick pick;
            if (rules_pick(&core->conf->rules[r], 1, &subject, &pick))
                return true;
        }
    }
    return false;
}

static bool
has_accepted(const struct queue_stack *stacks, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (stacks[i].accepted)
            return true;
    }
    return false;
}

static int
settle_in_batch(struct core *core, const struct queue_series *series, char *evidence,
                const struct queue_stack *stacks, size_t count)
{
    bool accepted = has_accepted(stacks, count);
    bool no_rule = accepted && !is_wanted(core, series, stacks, count);
    series_add_geometry(evidence, stacks, count);
    if (no_rule)
        series_add_evidence(evidence, "; no rule matches");
    int error = queue_settle(core->queue, series->id, series->revision, evidence, stacks, count,
                             clock_unix_ms());
    if (error)
        return error;
    size_t jobs = 0;
    for (size_t i = 0; i < count && !error; i++) {
        if (stacks[i].accepted)
            error = add_stack_jobs(core, series, &stacks[i], &jobs);
    }
    if (!error && no_rule)
        error = note_no_rule(core, series);
    log_info(accepted ? "series.settled" : "series.refused", LOG_STR("series", series->series_uid),
             LOG_INT("revision", series->revision), LOG_INT("stacks", count), LOG_INT("jobs", jobs),
             LOG_STR("evidence", evidence));
    return error;
}

/* If not, slices came in or a missing one returned while it was inspected: it is asked about again.
 */
static bool
is_as_inspected(const struct queue_series *series, const struct inspection *inspection)
{
    return series->revision == inspection->revision && series->instances == inspection->instances &&
           series->last_seen_ms == inspection->last_seen_ms;
}

/* All of it in one transaction, or nothing: a settled series without its jobs would be forgotten.
 */
static void
settle(struct arrivals *arrivals, struct inspection *inspection, const struct queue_stack *stacks,
       size_t count)
{
    struct core *core = arrivals->core;
    struct queue_series series;
    struct inspection inspected = *inspection;
    *inspection = (struct inspection){0};
    arrivals_look(arrivals);
    int error = queue_get_series(core->queue, inspected.series_id, &series);
    if (error) {
        core_failed(core, error, "read a series");
        return;
    }
    if (is_as_inspected(&series, &inspected) && core_change(core)) {
        error = settle_in_batch(core, &series, inspected.evidence, stacks, count);
        if (error && error != -EAGAIN) {
            batch_abort(core->batch, error);
            core_failed(core, error, "settle a series");
        }
        due_now(&core->jobs_due);
    }
    queue_series_clear(&series);
}

static void
settle_as_refused(struct arrivals *arrivals, struct inspection *inspection, const char *code,
                  const char *sentence)
{
    const struct queue_stack stack = {
        .name = "", .code = code, .sentence = sentence, .file_a = "", .file_b = ""};
    settle(arrivals, inspection, &stack, 1);
}

static struct queue_stack
stack_of(const struct message_stack *told)
{
    return (struct queue_stack){
        .name = told->name,
        .accepted = told->accepted != 0,
        .planes = clamp_count(told->planes),
        .columns = clamp_count(told->columns),
        .rows = clamp_count(told->rows),
        .spacing_mm = told->spacing,
        .code = told->code,
        .sentence = told->sentence,
        .file_a = told->file_a,
        .file_b = told->file_b,
    };
}

static void
hear_inspected(struct arrivals *arrivals, struct proto_reader *reader)
{
    struct message_inspected told;
    struct message_stack stack;
    if (message_read_inspected(reader, &told))
        return;
    struct inspection *inspection =
        told.series_id > 0 ? find_inspection(arrivals, told.series_id) : NULL;
    if (!inspection || !inspection->asked || inspection->revision != told.revision)
        return;
    struct queue_stack *stacks = calloc((size_t)reader->rows + 1, sizeof *stacks);
    if (!stacks)
        return; /* asked again when it has taken too long */
    size_t count = 0;
    while (message_next_stack(reader, &stack))
        stacks[count++] = stack_of(&stack);
    if (count > 0)
        settle(arrivals, inspection, stacks, count);
    else
        settle_as_refused(arrivals, inspection, "INSPECT_FAILED",
                          "the inspection found no stack of slices in the series");
    free(stacks);
}

/* ------------------------------------------------------------------------------- intake ---- */

void
arrivals_frame(struct arrivals *arrivals, struct proto_reader *reader)
{
    if (reader->type == PROTO_ARRIVED)
        hear_arrived(arrivals, reader);
    else if (reader->type == PROTO_QUARANTINED)
        hear_quarantined(arrivals, reader);
    else if (reader->type == PROTO_INSPECTED)
        hear_inspected(arrivals, reader);
    else if (reader->type == PROTO_COMMITTED)
        deliveries_committed(arrivals->core->deliveries, reader);
    else
        reader->error = -EBADMSG;
}

void
arrivals_intake_ready(struct arrivals *arrivals)
{
    arrivals->paused = false;
    arrivals->listening_since_ms = clock_unix_ms();
    arrivals_pause_or_resume(arrivals, "the daemon is not ready for more");
    arrivals_look(arrivals);
}

void
arrivals_intake_gone(struct arrivals *arrivals)
{
    deliveries_intake_gone(arrivals->core->deliveries);
    for (int i = 0; i < MAX_INSPECTIONS; i++) {
        struct inspection *inspection = &arrivals->inspections[i];
        if (!inspection->asked)
            continue;
        inspection->asked = false;
        if (++inspection->strikes >= MAX_STRIKES)
            settle_as_refused(arrivals, inspection, "INSPECT_FAILED",
                              "reading the files of the series ended the intake three times");
    }
}

void
arrivals_pause_or_resume(struct arrivals *arrivals, const char *why)
{
    struct core *core = arrivals->core;
    bool pause = core->disk_low || core->trouble;
    if (pause == arrivals->paused || !pool_ready(core->pool, core->intake))
        return;
    arrivals->paused = pause;
    if (pause) {
        struct proto_writer writer;
        message_write_pause(&writer, &(struct message_pause){.why = why});
        pool_send(core->pool, core->intake, &writer);
        return;
    }
    arrivals->listening_since_ms = clock_unix_ms();
    pool_tell(core->pool, core->intake, PROTO_RESUME);
    arrivals_look(arrivals);
}

void
arrivals_tick(struct arrivals *arrivals)
{
    struct core *core = arrivals->core;
    for (int i = 0; i < MAX_INSPECTIONS; i++) {
        const struct inspection *inspection = &arrivals->inspections[i];
        if (inspection->asked && uv_now(&core->loop) - inspection->asked_at > INSPECTION_MILLIS)
            pool_kill(core->pool, core->intake, "an inspection takes too long");
    }
}

int
arrivals_open(struct core *core, struct arrivals **out)
{
    struct arrivals *arrivals = calloc(1, sizeof *arrivals);
    if (!arrivals)
        return -ENOMEM;
    arrivals->core = core;
    uv_timer_init(&core->loop, &arrivals->timer); /* has no way to fail */
    arrivals->timer.data = arrivals;
    arrivals->timer.timer_cb = on_look;
    *out = arrivals;
    return 0;
}

static void
free_arrivals(uv_handle_t *timer)
{
    free(timer->data);
}

void
arrivals_close(struct arrivals *arrivals)
{
    if (arrivals)
        uv_close((uv_handle_t *)&arrivals->timer, free_arrivals);
}
