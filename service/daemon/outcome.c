/* outcome.c - see outcome.h. */
#include "outcome.h"

#include "backoff.h"
#include "clock.h"
#include "crash_point.h"
#include "deliveries.h"
#include "jobs.h"
#include "layout.h"
#include "log.h"
#include "routes.h"
#include "spool.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SENTENCE_BYTES    256
#define RESULT_MIN_BYTES  36u /* of one result in a DONE frame */
#define FEATURE_MIN_BYTES 116u

struct outcome {
    struct outcome *next;
    struct outcomes *outcomes;
    int64_t job;
    int32_t attempts;
    enum outcome_end end;
    bool last_chance;
    bool in_turn; /* written, not committed */
    bool moot;    /* in this turn: the row was no longer RUNNING */
    const char *code, *sentence, *file_a, *file_b;
    char own_sentence[SENTENCE_BYTES];
    struct queue_figures figures;
    struct queue_result *results;
    char **paths; /* of the results; NULL from the first that could not be made */
    size_t result_count;
    /* As they came, frame by frame; they count when it ends as DONE or EMPTY. */
    struct queue_feature *features;
    size_t feature_count;
    struct queue_histogram *histograms;
    size_t histogram_count;
    size_t measurement_bytes; /* of their frames */
    bool forgetful;           /* some of them found no memory */
    struct block *blocks;     /* frames of the worker, that all strings above point into */
};

struct block {
    struct block *next;
    int64_t words[];
};

struct outcomes {
    struct core *core;
    struct outcome *first; /* ended, not yet recorded */
};

const char *
outcome_end_name(enum outcome_end end)
{
    switch (end) {
    case OUTCOME_DONE:
        return "DONE";
    case OUTCOME_EMPTY:
        return "EMPTY";
    case OUTCOME_RETRY:
        return "RETRY";
    case OUTCOME_REJECTED:
        return "REJECTED";
    case OUTCOME_CRASHED:
        return "CRASHED";
    case OUTCOME_RETURNED:
        return "RETURNED";
    case OUTCOME_CANCELLED:
        return "CANCELLED";
    }
    return "UNKNOWN";
}

/* -------------------------------------------------------------------------- one outcome ---- */

struct outcome *
outcome_new(struct outcomes *outcomes, int64_t job, int32_t attempts)
{
    struct outcome *outcome = calloc(1, sizeof *outcome);
    if (!outcome)
        return NULL;
    outcome->outcomes = outcomes;
    outcome->job = job;
    outcome->attempts = attempts;
    outcome_blame(outcome, "", "%s", "");
    return outcome;
}

/* Zeroed memory that lives as long as the outcome. */
static void *
keep(struct outcome *outcome, size_t size)
{
    struct block *block = calloc(1, sizeof *block + size);
    if (!block)
        return NULL;
    block->next = outcome->blocks;
    outcome->blocks = block;
    return block->words;
}

static void
free_blocks(struct block *blocks)
{
    struct block *next;
    for (; blocks; blocks = next) {
        next = blocks->next;
        free(blocks);
    }
}

void
outcome_free(struct outcome *outcome)
{
    for (size_t i = 0; i < outcome->result_count; i++)
        free(outcome->paths[i]);
    free(outcome->paths);
    free(outcome->results);
    free(outcome->features);
    free(outcome->histograms);
    free_blocks(outcome->blocks);
    free(outcome);
}

int64_t
outcome_job(const struct outcome *outcome)
{
    return outcome->job;
}

const char *
outcome_code(const struct outcome *outcome)
{
    return outcome->code;
}

int32_t
outcome_attempts(const struct outcome *outcome)
{
    return outcome->attempts;
}

void
outcome_blame(struct outcome *outcome, const char *code, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(outcome->own_sentence, sizeof outcome->own_sentence, format, arguments);
    va_end(arguments);
    outcome->code = code;
    outcome->sentence = outcome->own_sentence;
    outcome->file_a = outcome->file_b = "";
}

void
outcome_end(struct outcome *outcome, enum outcome_end end, bool last_chance)
{
    outcome->end = end;
    outcome->last_chance = last_chance;
    outcome->next = outcome->outcomes->first;
    outcome->outcomes->first = outcome;
    log_info("job.ended", LOG_INT("job", outcome->job), LOG_INT("attempt", outcome->attempts),
             LOG_STR("end", outcome_end_name(end)), LOG_STR("code", outcome->code),
             LOG_NUM("seconds", outcome->figures.total_seconds),
             LOG_STR("sentence", outcome->sentence));
}

/* ----------------------------------------------------------------------------- reading ----- */

static void
read_figures(struct proto_reader *reader, struct queue_figures *figures)
{
    figures->read_seconds = proto_get_f64(reader);
    figures->compute_seconds = proto_get_f64(reader);
    figures->write_seconds = proto_get_f64(reader);
    figures->verify_seconds = proto_get_f64(reader);
    figures->total_seconds = proto_get_f64(reader);
    figures->voxels = proto_get_i64(reader);
    figures->segmented_voxels = proto_get_i64(reader);
    figures->peak_bytes = proto_get_i64(reader);
    figures->backend = proto_get_str(reader);
    figures->note = proto_get_str(reader);
}

static void
read_result(struct proto_reader *reader, struct outcome *outcome, size_t i)
{
    struct queue_result *result = &outcome->results[i];
    result->kind = proto_get_str(reader);
    const char *file = proto_get_str(reader);
    result->sop_class_uid = proto_get_str(reader);
    result->sop_instance_uid = proto_get_str(reader);
    result->series_uid = proto_get_str(reader);
    result->size = proto_get_i64(reader);
    result->frames = proto_get_i64(reader);
    if (!*file || strchr(file, '/'))
        reader->error = -EBADMSG;
    else if (asprintf(&outcome->paths[i], LAYOUT_OUTBOX "/%" PRId64 "/%s", outcome->job, file) < 0)
        reader->error = -ENOMEM;
    else
        result->path = outcome->paths[i];
}

static void
read_results(struct proto_reader *reader, struct outcome *outcome, size_t count)
{
    outcome->results = calloc(count + 1, sizeof *outcome->results);
    outcome->paths = calloc(count + 1, sizeof *outcome->paths);
    if (!outcome->results || !outcome->paths) {
        reader->error = -ENOMEM;
        return;
    }
    outcome->result_count = count;
    for (size_t i = 0; i < count && !reader->error; i++)
        read_result(reader, outcome, i);
}

static int
end_of_verdict(int64_t verdict, bool empty, enum outcome_end *end)
{
    switch (verdict) {
    case PROTO_VERDICT_DONE:
        *end = empty ? OUTCOME_EMPTY : OUTCOME_DONE;
        return 0;
    case PROTO_VERDICT_RETRY:
        *end = OUTCOME_RETRY;
        return 0;
    case PROTO_VERDICT_REJECT:
        *end = OUTCOME_REJECTED;
        return 0;
    case PROTO_VERDICT_STOPPED:
        *end = OUTCOME_RETURNED;
        return 0;
    default:
        return -EBADMSG;
    }
}

static void
read_done(struct proto_reader *reader, struct outcome *outcome, enum outcome_end *end)
{
    int64_t verdict = proto_get_i64(reader);
    outcome->code = proto_get_str(reader);
    outcome->sentence = proto_get_str(reader);
    outcome->file_a = proto_get_str(reader);
    outcome->file_b = proto_get_str(reader);
    bool empty = proto_get_i64(reader) != 0;
    read_figures(reader, &outcome->figures);
    int64_t count = proto_get_i64(reader);
    if (reader->error)
        return;
    if (end_of_verdict(verdict, empty, end) || count < 0 ||
        (uint64_t)count > reader->size / RESULT_MIN_BYTES || (*end == OUTCOME_DONE && count == 0))
        reader->error = -EBADMSG;
    else
        read_results(reader, outcome, (size_t)count);
}

/* The strings have to outlive the frame: they are read from a copy of it, which the outcome keeps.
 */
static int
keep_frame(struct outcome *outcome, struct proto_reader *reader, struct proto_reader *copy)
{
    *copy = *reader;
    reader->at = reader->size;
    copy->bytes = keep(outcome, copy->size);
    if (!copy->bytes)
        return -ENOMEM;
    memcpy(copy->bytes, reader->bytes, copy->size);
    return 0;
}

int
outcome_read(struct outcome *outcome, struct proto_reader *reader, enum outcome_end *end)
{
    struct proto_reader copy;
    int error = keep_frame(outcome, reader, &copy);
    if (error || outcome->forgetful)
        return -ENOMEM;
    read_done(&copy, outcome, end);
    return proto_end(&copy);
}

static int32_t
read_int32(struct proto_reader *reader)
{
    int64_t value = proto_get_i64(reader);
    if (value < 0 || value > INT32_MAX)
        reader->error = -EBADMSG;
    return (int32_t)value;
}

/* A child that makes up numbers is not to be believed anything. */
static double
read_finite(struct proto_reader *reader)
{
    double value = proto_get_f64(reader);
    if (!isfinite(value))
        reader->error = -EBADMSG;
    return value;
}

static void
read_feature(struct proto_reader *reader, struct queue_feature *feature)
{
    feature->segment = read_int32(reader);
    feature->label = proto_get_str(reader);
    feature->family = proto_get_str(reader);
    feature->name = proto_get_str(reader);
    feature->meaning = proto_get_str(reader);
    feature->ibsi_code = proto_get_str(reader);
    feature->value = read_finite(reader);
    feature->reason = proto_get_str(reader);
    feature->unit = proto_get_str(reader);
    feature->aggregation = proto_get_str(reader);
    feature->aggregation_ibsi_code = proto_get_str(reader);
    feature->discretisation = proto_get_str(reader);
    feature->levels = read_int32(reader);
    feature->bin_width = read_finite(reader);
    feature->distance = read_int32(reader);
    feature->symmetric = proto_get_i64(reader) != 0;
    feature->has_range = proto_get_i64(reader) != 0;
    feature->range[0] = read_finite(reader);
    feature->range[1] = read_finite(reader);
    feature->directions = proto_get_str(reader);
    if (!*feature->name || feature->bin_width < 0 || feature->range[0] > feature->range[1])
        reader->error = -EBADMSG;
}

/* After the job's number. */
static int
read_features(struct proto_reader *reader, struct outcome *outcome)
{
    int64_t count = proto_get_i64(reader);
    if (reader->error || count < 0 || (uint64_t)count > reader->size / FEATURE_MIN_BYTES ||
        (uint64_t)count > PROTO_MAX_FEATURES - outcome->feature_count)
        return -EBADMSG;
    size_t wanted = outcome->feature_count + (size_t)count;
    struct queue_feature *grown = realloc(outcome->features, (wanted + 1) * sizeof *grown);
    if (!grown)
        return -ENOMEM;
    outcome->features = grown;
    for (; outcome->feature_count < wanted && !reader->error; outcome->feature_count++)
        read_feature(reader, &grown[outcome->feature_count]);
    return proto_end(reader);
}

static void
read_counts(struct proto_reader *reader, int64_t *counts)
{
    if (proto_get_i64(reader) != PROTO_CODES)
        reader->error = -EBADMSG;
    for (int i = 0; i < PROTO_CODES && !reader->error; i++) {
        counts[i] = proto_get_i64(reader);
        if (counts[i] < 0)
            reader->error = -EBADMSG;
    }
}

static int
read_histogram(struct proto_reader *reader, struct outcome *outcome)
{
    if (outcome->histogram_count == PROTO_MAX_HISTOGRAMS)
        return -EBADMSG;
    struct queue_histogram *grown =
        realloc(outcome->histograms, (outcome->histogram_count + 1) * sizeof *grown);
    if (grown)
        outcome->histograms = grown;
    int64_t *counts = keep(outcome, PROTO_CODES * sizeof *counts);
    if (!grown || !counts)
        return -ENOMEM;
    struct queue_histogram *histogram = &grown[outcome->histogram_count++];
    histogram->counts = counts;
    histogram->segment = read_int32(reader);
    histogram->label = proto_get_str(reader);
    histogram->pattern = proto_get_str(reader);
    histogram->settings = proto_get_str(reader);
    read_counts(reader, counts);
    return *histogram->pattern ? proto_end(reader) : -EBADMSG;
}

int
outcome_read_measurements(struct outcome *outcome, struct proto_reader *reader)
{
    struct proto_reader copy;
    if (reader->size > PROTO_MAX_MEASUREMENTS - outcome->measurement_bytes)
        return -EBADMSG;
    outcome->measurement_bytes += reader->size;
    int error = keep_frame(outcome, reader, &copy);
    if (!error)
        error = reader->type == PROTO_FEATURES ? read_features(&copy, outcome)
                                               : read_histogram(&copy, outcome);
    if (error != -ENOMEM)
        return error;
    outcome->forgetful = true;
    return 0;
}

/* ---------------------------------------------------------------------------- recording ---- */

static void
remove_outcome(struct outcome *outcome)
{
    struct outcome **link = &outcome->outcomes->first;
    while (*link != outcome)
        link = &(*link)->next;
    *link = outcome->next;
    outcome_free(outcome);
}

static void
on_recorded(void *context, int status)
{
    struct outcome *outcome = context;
    struct core *core = outcome->outcomes->core;
    outcome->in_turn = false;
    if (status)
        return;
    crash_point("daemon_after_done_after_commit");
    spool_sweep_job(core->root, outcome->job);
    if (outcome->end == OUTCOME_CANCELLED || outcome->moot)
        spool_remove_output(core->root, outcome->job);
    remove_outcome(outcome);
    jobs_look(core->jobs); /* it was held back until here, and may be READY */
    deliveries_look(core->deliveries);
}

static int
record_retry(const struct outcome *outcome)
{
    const struct core *core = outcome->outcomes->core;
    const struct conf_jobs *settings = &core->conf->jobs;
    int64_t now_ms = clock_unix_ms();
    if (outcome->attempts >= settings->max_attempts && outcome->last_chance)
        return queue_fail_job(core->queue, outcome->job, outcome->code, outcome->sentence,
                              outcome->file_a, outcome->file_b, now_ms);
    int64_t wait_ms = backoff_ms(settings->retry_seconds, settings->retry_max_seconds,
                                 outcome->attempts, outcome->job);
    return queue_delay_job(core->queue, outcome->job, now_ms + wait_ms,
                           outcome->end == OUTCOME_CRASHED, outcome->code, outcome->sentence,
                           now_ms);
}

static struct queue_figures
with_features(const struct outcome *outcome)
{
    struct queue_figures figures = outcome->figures;
    figures.features = outcome->features;
    figures.feature_count = outcome->feature_count;
    figures.histograms = outcome->histograms;
    figures.histogram_count = outcome->histogram_count;
    return figures;
}

/* With the deliveries of all results that are DICOM objects. */
static int
record_done(const struct outcome *outcome)
{
    const struct queue_figures figures = with_features(outcome);
    struct core *core = outcome->outcomes->core;
    struct routes routes;
    int error = routes_find(core, outcome->job, &routes);
    for (size_t i = 0; i < outcome->result_count && !error; i++) {
        struct queue_result *result = &outcome->results[i];
        bool is_object = *result->sop_instance_uid != 0;
        result->destinations = is_object ? routes.destinations : NULL;
        result->destination_count = is_object ? routes.count : 0;
    }
    if (!error)
        error = queue_finish_job(core->queue, outcome->job, QUEUE_DONE, &figures, outcome->results,
                                 outcome->result_count, outcome->code, outcome->sentence,
                                 clock_unix_ms());
    routes_free(&routes);
    return error;
}

static int
record_empty(const struct outcome *outcome)
{
    const struct queue_figures figures = with_features(outcome);
    return queue_finish_job(outcome->outcomes->core->queue, outcome->job, QUEUE_EMPTY, &figures,
                            NULL, 0, outcome->code, outcome->sentence, clock_unix_ms());
}

static int
record_as_ended(const struct outcome *outcome)
{
    struct queue *queue = outcome->outcomes->core->queue;
    switch (outcome->end) {
    case OUTCOME_DONE:
        return record_done(outcome);
    case OUTCOME_EMPTY:
        return record_empty(outcome);
    case OUTCOME_REJECTED:
        return queue_fail_job(queue, outcome->job, outcome->code, outcome->sentence,
                              outcome->file_a, outcome->file_b, clock_unix_ms());
    case OUTCOME_RETRY:
    case OUTCOME_CRASHED:
        return record_retry(outcome);
    case OUTCOME_RETURNED:
        return queue_return_job(queue, outcome->job, outcome->sentence, clock_unix_ms());
    case OUTCOME_CANCELLED:
        return 0;
    }
    return -EINVAL;
}

/* What the database will never take must not be tried for ever: the job fails instead. */
static int
record_refused(const struct outcome *outcome)
{
    struct queue *queue = outcome->outcomes->core->queue;
    char sentence[2 * SENTENCE_BYTES];
    snprintf(sentence, sizeof sentence, "what the worker said cannot be recorded: %s",
             queue_reason(queue));
    log_error("job.record_failed", LOG_INT("job", outcome->job), LOG_STR("sentence", sentence));
    return queue_fail_job(queue, outcome->job, "RECORD_FAILED", sentence, "", "", clock_unix_ms());
}

/* 0, or -errno: nothing of it is written, and it is tried again. */
static int
record(struct outcome *outcome)
{
    int error = record_as_ended(outcome);
    outcome->moot = error == -EAGAIN || error == -ENOENT; /* cancelled in the same breath */
    if (!error || outcome->moot)
        return 0;
    if (!core_is_trouble(error))
        error = record_refused(outcome);
    /* A row that takes neither is put right by the next start. */
    return core_is_trouble(error) ? error : 0;
}

static int
record_in_turn(struct outcome *outcome)
{
    struct core *core = outcome->outcomes->core;
    int error = record(outcome);
    if (error)
        return error;
    crash_point("daemon_after_done_before_commit");
    outcome->in_turn = true;
    error = turn_after(core->turn, on_recorded, outcome);
    if (error) {
        outcome->in_turn = false;
        turn_abort(core->turn, error);
    }
    return error;
}

static struct outcome *
first_unrecorded(const struct outcomes *outcomes)
{
    struct outcome *outcome = outcomes->first;
    while (outcome && outcome->in_turn)
        outcome = outcome->next;
    return outcome;
}

void
outcomes_record(struct outcomes *outcomes)
{
    /* Looked for anew each time: joining the turn may commit a full one, which frees outcomes. */
    while (first_unrecorded(outcomes)) {
        if (!core_change(outcomes->core))
            return;
        int error = record_in_turn(first_unrecorded(outcomes));
        if (error) {
            core_failed(outcomes->core, error, "record how a job ended");
            return;
        }
    }
}

/* ------------------------------------------------------------------------------ the list --- */

bool
outcomes_hold(const struct outcomes *outcomes, int64_t job)
{
    const struct outcome *outcome = outcomes->first;
    while (outcome && outcome->job != job)
        outcome = outcome->next;
    return outcome != NULL;
}

size_t
outcomes_count(const struct outcomes *outcomes)
{
    size_t count = 0;
    for (const struct outcome *outcome = outcomes->first; outcome; outcome = outcome->next)
        count++;
    return count;
}

int
outcomes_open(struct core *core, struct outcomes **out)
{
    struct outcomes *outcomes = calloc(1, sizeof *outcomes);
    if (!outcomes)
        return -ENOMEM;
    outcomes->core = core;
    *out = outcomes;
    return 0;
}

void
outcomes_close(struct outcomes *outcomes)
{
    if (!outcomes)
        return;
    struct outcome *next;
    for (struct outcome *outcome = outcomes->first; outcome; outcome = next) {
        next = outcome->next;
        outcome_free(outcome);
    }
    free(outcomes);
}
