/*
 * submit.c - adds jobs for a stored series, as requested by `noctule submit`. Declared in jobs.h.
 */
#include "service/daemon/jobs/jobs.h"

#include "base/test_hook.h"
#include "base/text.h"
#include "service/common/json.h"
#include "service/daemon/series/series.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A requested job and its outcome. */
struct submitted {
    const char *stack, *pipeline;
    int64_t job; /* 0: a dry run of a new job */
    bool is_new;
    enum queue_job_state state;
    enum code lacks_code;
    char lacks[AWAITED_TEXT]; /* missing inputs of a new job */
};

struct submission {
    struct core *core;
    const struct message_submit *request;
    const char *by;
    struct queue_series series;
    struct queue_stored_stack *stacks;
    size_t stack_count;
    struct routing_result result;
    struct submitted *jobs;
    size_t job_count;
    enum code code; /* reason if there is no job */
    char message[512];
};

static int __attribute__((format(printf, 3, 4)))
submit_refuse(struct submission *s, enum code code, const char *format, ...)
{
    va_list values;
    s->code = code;
    va_start(values, format);
    vsnprintf(s->message, sizeof s->message, format, values);
    va_end(values);
    return -EINVAL;
}

/* -------------------------------------------------------------------------------- checks ---- */

/* Checks that the series may have jobs. */
static int
submit_check_series(struct submission *s)
{
    if (s->series.removed)
        return submit_refuse(s, CODE_SERIES_REMOVED, "its files are removed; send them again");
    if (strcmp(s->series.state, "GATHERING") == 0)
        return submit_refuse(s, CODE_NOT_SETTLED, "the series is still being received: %d instances so far",
                             s->series.instances);
    if (strcmp(s->series.state, "REFUSED") == 0) { /* repeat the reason shown in v_series */
        size_t first = 0;
        while (first < s->stack_count && s->stacks[first].accepted)
            first++;
        return first == s->stack_count
                   ? submit_refuse(s, CODE_INSPECT_FAILED, "the series was refused")
                   : submit_refuse(s, code_find(s->stacks[first].code), "%s", s->stacks[first].message);
    }
    if (s->series.missing_files > 0)
        return submit_refuse(s, CODE_FILE_UNREADABLE, "%d of its %d files are missing", s->series.missing_files,
                             s->series.instances);
    return 0;
}

/* -------------------------------------------------------------------------------- routing ---- */

/* Explains an empty result. It is an error only if the operator named a missing stack or
 * pipeline. */
static int
submit_explain_none(struct submission *s)
{
    const struct message_submit *request = s->request;
    if (s->result.outcome.too_many)
        return submit_refuse(s, CODE_TOO_MANY_STACKS, "the series has %zu volumes for pipeline %s: select them with %s",
                             s->result.outcome.too_many, s->result.outcome.pipeline,
                             *request->pipeline ? "--stacks" : "`stacks` in the rule");
    if (*request->pipeline)
        return submit_refuse(s, CODE_STACK_NOT_FOUND, "the series has no volume \"%s\"", request->stacks);
    submit_refuse(s, CODE_NO_RULE, "no rule selects a pipeline");
    return 0;
}

/* Rejects a pipeline that needs Noctule's own results: the service never receives those as objects
 * of a series. */
static int
submit_check_own_results(struct submission *s, const struct conf_pipeline *pipeline)
{
    char lacks[AWAITED_TEXT];
    enum code code;
    if (!pipeline || !conf_pipeline_takes_own(pipeline))
        return 0;
    int error = awaited_lacks(s->core, s->series.id, pipeline, &code, lacks);
    if (error || !*lacks || code == CODE_OBJECT_OPTIONAL)
        return error;
    return submit_refuse(s, CODE_OBJECT_MISSING,
                         "pipeline %s has object = { own = true; }, but the service does not receive its own results, "
                         "and the series has no other object that the pipeline names: use noctule run --object",
                         pipeline->name);
}

static int
submit_route(struct submission *s)
{
    const struct message_submit *request = s->request;
    const struct conf_pipeline *pipeline =
        *request->pipeline ? conf_find_pipeline(s->core->conf, request->pipeline) : NULL;
    if (*request->pipeline && !pipeline)
        return submit_refuse(s, CODE_NO_SUCH_PIPELINE, "the configuration has no pipeline %s", request->pipeline);
    const struct rules_series subject = routing_subject(s->core->conf, &s->series);
    const size_t rule = pipeline ? 0 : routing_find_unknown(s->core->conf, &subject);
    if (rule > 0)
        return submit_refuse(s, CODE_ATTRIBUTES_NOT_KEPT,
                             "rule %zu uses attributes, contrast or geometry, which are not stored: "
                             "noctule explain shows the matching rules; name the pipeline",
                             rule);
    int error = submit_check_own_results(s, pipeline);
    if (error)
        return error;
    struct routing_stack *stacks = calloc(s->stack_count + 1, sizeof *stacks);
    if (!stacks)
        return -ENOMEM;
    for (size_t i = 0; i < s->stack_count; i++)
        stacks[i] = (struct routing_stack){.is = {s->stacks[i].name, s->stacks[i].planes, s->stacks[i].accepted, NULL},
                                           .options = s->stacks[i].options};
    const struct conf_rule only = {.pipeline = pipeline ? pipeline->name : NULL,
                                   .stacks = *request->stacks ? (char *)(uintptr_t)request->stacks : NULL};
    error = routing_result_make(s->core->conf, &subject, stacks, s->stack_count, pipeline ? &only : NULL, &s->result);
    free(stacks);
    return error || s->result.count ? error : submit_explain_none(s);
}

/* ----------------------------------------------------------------------------------- jobs ---- */

static int
submit_add(struct submission *s, const struct rules_pick *pick, const char *asked)
{
    struct routing_job job = {.stack = s->stacks[pick->stack].name,
                              .pick = pick,
                              .again = s->request->again != 0,
                              .dry_run = s->request->dry_run != 0,
                              .asked = asked};
    int error = routing_add_job(s->core, &s->series, &job);
    if (error && error != -EEXIST)
        return error;
    struct submitted *submitted = &s->jobs[s->job_count++];
    *submitted = (struct submitted){job.stack, pick->pipeline, job.id, !error, QUEUE_READY, CODE_NONE, ""};
    if (!error && *job.lacks) {
        submitted->state = QUEUE_DELAYED;
        submitted->lacks_code = job.lacks_code;
        memcpy(submitted->lacks, job.lacks, sizeof job.lacks);
    }
    if (!error)
        return 0;
    struct queue_job row;
    error = queue_get_job(s->core->queue, job.id, &row);
    if (error)
        return error;
    submitted->state = row.state;
    queue_job_clear(&row);
    return 0;
}

static int
submit_add_all(struct submission *s)
{
    char asked[128];
    int error = 0;
    snprintf(asked, sizeof asked, "submitted by %.100s", s->by);
    s->jobs = calloc(s->result.count + 1, sizeof *s->jobs);
    if (!s->jobs)
        return -ENOMEM;
    for (size_t i = 0; i < s->result.count && !error; i++)
        error = submit_add(s, &s->result.picks[i], asked);
    if (!error && s->job_count > 0)
        crash_point("daemon_after_submit_before_commit");
    return error;
}

/* ---------------------------------------------------------------------------------- reply ---- */

static void
submit_print_json(const struct submission *s, FILE *out)
{
    struct json json = {.out = out};
    json_begin_object(&json, NULL);
    json_string(&json, "series_uid", s->request->series_uid);
    json_string(&json, "code", code_name(s->code));
    json_string(&json, "message", s->message);
    json_begin_array(&json, "jobs");
    for (size_t i = 0; i < s->job_count; i++) {
        const struct submitted *job = &s->jobs[i];
        json_begin_object(&json, NULL);
        json_integer(&json, "job", job->job);
        json_string(&json, "pipeline", job->pipeline);
        json_string(&json, "stack", job->stack);
        json_string(&json, "outcome", !job->is_new ? "known" : s->request->dry_run ? "would be new" : "new");
        json_string(&json, "state", queue_job_state_name(job->state));
        json_string(&json, "code", code_name(job->lacks_code));
        json_string(&json, "message", job->lacks);
        json_end_object(&json);
    }
    json_end_array(&json);
    json_end_object(&json);
}

static int
submit_reply(const struct submission *s, char **body)
{
    struct text_stream text;
    int error = text_open(&text);
    if (error)
        return error;
    if (s->request->json) {
        submit_print_json(s, text.out);
    } else {
        FILE *out = text.out;
        const char *uid = s->request->series_uid;
        if (*s->message)
            fprintf(out, "%s: %s%s%s\n", uid, code_name(s->code), s->code ? ": " : "", s->message);
        for (size_t i = 0; i < s->job_count; i++) {
            const struct submitted *job = &s->jobs[i];
            fprintf(out, "%s: ", uid);
            if (job->is_new && s->request->dry_run)
                fprintf(out, "a job would be new");
            else if (job->is_new)
                fprintf(out, "job %" PRId64 " is new", job->job);
            else
                fprintf(out, "job %" PRId64 " is %s already", job->job, queue_job_state_name(job->state));
            fprintf(out, " (%s%s%s)\n", job->pipeline, *job->stack ? ", " : "", job->stack);
            if (*job->lacks)
                fprintf(out, "%s: %s: %s\n", uid, code_name(job->lacks_code), job->lacks);
        }
    }
    error = text_close(&text);
    *body = text.bytes;
    return error;
}

int
submit_series(struct core *core, const struct message_submit *request, const char *by, char **body)
{
    struct submission s = {.core = core, .request = request, .by = by};
    int64_t id;
    *body = NULL;
    int error = queue_find_series(core->queue, request->series_uid, &id);
    if (!error)
        error = queue_get_series(core->queue, id, &s.series);
    if (!error)
        error = queue_series_stacks(core->queue, id, &s.stacks, &s.stack_count);
    if (!error)
        error = submit_check_series(&s);
    if (!error)
        error = submit_route(&s);
    if (!error)
        error = submit_add_all(&s);
    if (error && !s.code && !core_is_transient(error)) /* the queue rejected it */
        submit_refuse(&s, CODE_NONE, "%s", queue_reason(core->queue));
    if (!error || *s.message) {
        int reply_error = submit_reply(&s, body);
        error = error ? error : reply_error;
    }
    for (size_t i = 0; i < s.stack_count; i++)
        queue_stored_stack_clear(&s.stacks[i]);
    free(s.stacks);
    free(s.jobs);
    routing_result_release(&s.result);
    queue_series_clear(&s.series);
    return error;
}
