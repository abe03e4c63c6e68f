/* corrections.c - see jobs.h. */
#include "service/daemon/jobs/jobs.h"

#include "service/common/clock.h"
#include "service/common/log.h"
#include "service/daemon/jobs/awaited.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The jobs that an object may correct. */
struct corrections {
    struct core *core;
    int64_t object_id;
    const struct queue_object *object;
    int64_t only;          /* the job for which a person uploaded it; 0: any */
    struct error *refusal; /* of a trial, which makes no event; else NULL */
    struct queue_corrected *jobs;
    size_t count;
    bool *matches; /* one per job: a region has the name of a visible segment */
};

/* Returns whether one of the lines is the text. */
static bool
corrections_has_line(const char *lines, const char *text)
{
    const size_t length = strlen(text);
    for (const char *line = lines, *end; (end = strchr(line, '\n')); line = end + 1)
        if ((size_t)(end - line) == length && strncmp(line, text, length) == 0)
            return true;
    return false;
}

static bool
corrections_match(const struct queue_corrected *job, const char *regions)
{
    struct conf_pipeline *pipeline;
    bool matches = false;
    if (conf_pipeline_from_text(job->settings, &pipeline, NULL))
        return false; /* settings of another version */
    for (size_t i = 0; i < pipeline->segment_count; i++)
        matches |= !pipeline->segments[i].hidden && corrections_has_line(regions, pipeline->segments[i].label);
    conf_pipeline_free(pipeline);
    return matches;
}

/* Returns 1 if a job of a series that the object refers to reads such objects, 0 if not, or -errno. */
static int
corrections_is_input(struct core *core, int64_t object_id, const struct queue_object *object)
{
    struct conf_pipeline *pipeline;
    struct queue_ids series;
    struct queue_job *jobs;
    size_t count;
    int reads = 0;
    int error = queue_object_series(core->queue, object_id, &series);
    for (size_t i = 0; i < series.count && !error; i++) {
        error = queue_series_jobs(core->queue, series.at[i], &jobs, &count);
        for (size_t k = 0; k < count && !error; k++) {
            if (conf_pipeline_from_text(jobs[k].settings, &pipeline, NULL) == 0) {
                reads |= awaited_is_named(pipeline, object->kind, object->sender ? object->sender : "");
                conf_pipeline_free(pipeline);
            }
            queue_job_clear(&jobs[k]);
        }
        if (!error)
            free(jobs);
    }
    free(series.at);
    return error ? error : reads;
}

static int
corrections_refuse(const struct corrections *all, const struct queue_corrected *job, enum code code,
                   const char *message)
{
    if (all->refusal)
        return error_set(all->refusal, -EINVAL, code, "%s", message);
    log_warn("correction.refused", LOG_INT("job", job->id), LOG_STR("code", code_name(code)),
             LOG_STR("reason", message));
    return queue_refuse_correction(all->core->queue, job->id, all->object_id, code, message, clock_unix_ms());
}

/* An upload has its audit row since it was accepted. */
static int
corrections_audit(const struct corrections *all, int64_t job)
{
    const struct queue_object *object = all->object;
    const bool is_sent = object->sender && *object->sender;
    const char *source = object->source ? object->source : "";
    const bool by_inbox = strncmp(source, "inbox:", strlen("inbox:")) == 0;
    char subject[32], reason[256];
    snprintf(subject, sizeof subject, "job %" PRId64, job);
    snprintf(reason, sizeof reason, "%s %s, %" PRId64 " bytes", object->kind, object->sop_instance_uid, object->size);
    const struct queue_audit row = {.action = "correct",
                                    .subject = subject,
                                    .job_id = job,
                                    .reason = reason,
                                    .actor = is_sent    ? object->sender
                                             : by_inbox ? source + strlen("inbox:")
                                             : *source  ? source
                                                        : "unknown",
                                    .how = is_sent    ? "store"
                                           : by_inbox ? "inbox"
                                                      : "recovered",
                                    .role = "sender",
                                    .address = "",
                                    .seen = ""};
    return all->only ? 0 : queue_add_audit(all->core->queue, &row, clock_unix_ms());
}

/* Makes the job that measures the masks. */
static int
corrections_add(const struct corrections *all, const struct queue_corrected *job)
{
    struct core *core = all->core;
    struct queue_ids superseded;
    int64_t id = 0;
    int error = queue_correct_job(core->queue, job->id, all->object_id, clock_unix_ms(), &id, &superseded);
    if (error == -EAGAIN || error == -ESTALE)
        return corrections_refuse(all, job, CODE_CORRECTION_LATE, queue_reason(core->queue));
    if (!error)
        error = corrections_audit(all, job->id);
    if (error || all->refusal) {
        free(superseded.at);
        return error;
    }
    jobs_stop_superseded(core->jobs, &superseded);
    due_now(&core->jobs_due);
    log_info("job.correction", LOG_INT("job", id), LOG_INT("corrects", job->id));
    return 0;
}

/* Decides about the jobs with a matching segment, all of them or those that the object names. */
static int
corrections_decide(const struct corrections *all, bool named, bool *is_correction)
{
    const struct queue_corrected *open = NULL, *late = NULL;
    size_t open_count = 0;
    char text[160];
    int error = 0;
    for (size_t i = 0; i < all->count; i++) {
        const struct queue_corrected *job = &all->jobs[i];
        if (!all->matches[i] || (named && !job->named))
            continue;
        const bool is_open = strcmp(job->state, "REVIEW") == 0 && !job->outdated;
        open_count += is_open;
        if (is_open)
            open = job;
        else
            late = job;
    }
    for (size_t i = 0; i < all->count && open_count > 1 && !error; i++)
        if (all->matches[i] && (!named || all->jobs[i].named) && strcmp(all->jobs[i].state, "REVIEW") == 0)
            error = corrections_refuse(all, &all->jobs[i], CODE_CORRECTION_AMBIGUOUS,
                                       "it fits several results under review");
    if (open_count > 1 || error)
        return error;
    if (open) {
        error = corrections_add(all, open);
        *is_correction = !error;
        return error;
    }
    if (!late)
        return 0;
    snprintf(text, sizeof text, "job %" PRId64 " is %s%s", late->id, late->state,
             late->outdated ? ", and its series has other slices by now" : "");
    return corrections_refuse(all, late, CODE_CORRECTION_LATE, text);
}

static int
corrections_handle(struct corrections *all, const struct queue_object *object, const char *regions, bool *is_correction)
{
    const struct queue_corrected *unfit = NULL;
    bool named = false, any = false;
    for (size_t i = 0; i < all->count; i++) {
        all->matches[i] = corrections_match(&all->jobs[i], regions);
        named |= all->matches[i] && all->jobs[i].named;
        any |= all->matches[i];
        if (all->jobs[i].named && !all->matches[i])
            unfit = &all->jobs[i];
    }
    if (!named && unfit)
        return corrections_refuse(all, unfit, CODE_CORRECTION_NO_SEGMENT,
                                  "none of its regions has the name of a segment");
    if (!any)
        return 0;
    const int reads = named ? 0 : corrections_is_input(all->core, all->object_id, object);
    return reads ? (reads < 0 ? reads : 0) : corrections_decide(all, named, is_correction);
}

/* Decides about the job for which a person uploaded the object. */
static int
corrections_handle_upload(const struct corrections *all, const char *regions, bool *is_correction)
{
    const struct queue_corrected *mine = NULL, *other = NULL;
    char text[160] = "it refers to no image of this job, and not to its result";
    for (size_t i = 0; i < all->count; i++) {
        if (all->jobs[i].id == all->only)
            mine = &all->jobs[i];
        else if (all->jobs[i].named)
            other = &all->jobs[i];
    }
    if (!mine || (other && !mine->named)) {
        if (other)
            snprintf(text, sizeof text, "it refers to the result of job %" PRId64, other->id);
        return corrections_refuse(all, &(struct queue_corrected){.id = all->only}, CODE_CORRECTION_OTHER_JOB, text);
    }
    if (!corrections_match(mine, regions))
        return corrections_refuse(all, mine, CODE_CORRECTION_NO_SEGMENT,
                                  "none of its regions has the name of a segment");
    snprintf(text, sizeof text, "job %" PRId64 " is %s%s", mine->id, mine->state,
             mine->outdated ? ", and its series has other slices by now" : "");
    if (strcmp(mine->state, "REVIEW") != 0 || mine->outdated)
        return corrections_refuse(all, mine, CODE_CORRECTION_LATE, text);
    const int error = corrections_add(all, mine);
    *is_correction = !error;
    return error;
}

static int
corrections_run(struct corrections *all, const char *regions, bool *is_correction)
{
    struct queue *queue = all->core->queue;
    const char *kind = all->object->kind;
    int64_t result;
    *is_correction = false;
    if (strcmp(kind, "seg") != 0 && strcmp(kind, "rtstruct") != 0)
        return 0;
    int error = queue_object_is_result(queue, all->object_id, &result);
    if (error < 0)
        return error;
    if (error == 1)
        return corrections_refuse(all, &(struct queue_corrected){.id = result}, CODE_CORRECTION_UNCHANGED,
                                  "it is the result itself, so nothing happened");
    error = queue_corrected_jobs(queue, all->object_id, &all->jobs, &all->count);
    all->matches = error ? NULL : calloc(all->count + 1, sizeof *all->matches);
    if (!error && !all->matches)
        error = -ENOMEM;
    if (!error)
        error = all->only ? corrections_handle_upload(all, regions, is_correction)
                          : corrections_handle(all, all->object, regions, is_correction);
    for (size_t i = 0; i < all->count; i++)
        queue_corrected_clear(&all->jobs[i]);
    free(all->jobs);
    free(all->matches);
    return error;
}

int
corrections_object_arrived(struct core *core, int64_t object_id, const struct queue_object *object, const char *regions,
                           int64_t only, bool *is_correction)
{
    struct corrections all = {.core = core, .object_id = object_id, .object = object, .only = only};
    return corrections_run(&all, regions, is_correction);
}

struct correction_trial {
    struct corrections all;
    const char *regions;
};

/* Adds the object, and the job that would measure it. */
static int
corrections_attempt(void *context)
{
    struct correction_trial *trial = context;
    struct corrections *all = &trial->all;
    enum queue_arrival arrival;
    bool is_correction = false;
    int error = queue_add_object(all->core->queue, all->object, clock_unix_ms(), &arrival, &all->object_id);
    if (!error && arrival != QUEUE_NEW)
        return error_set(all->refusal, -EINVAL, CODE_CORRECTION_KNOWN,
                         "an object with this SOP Instance UID was received before");
    if (!error)
        error = corrections_run(all, trial->regions, &is_correction);
    return error;
}

int
corrections_try(struct core *core, const struct queue_object *object, const char *regions, int64_t job,
                struct error *refusal)
{
    struct correction_trial trial = {.all = {.core = core, .object = object, .only = job, .refusal = refusal},
                                     .regions = regions};
    if (strcmp(object->kind, "seg") != 0 && strcmp(object->kind, "rtstruct") != 0)
        return error_set(refusal, -EINVAL, CODE_CORRECTION_NOT_MASK,
                         "the file is neither a Segmentation nor an RT Structure Set");
    return queue_try(core->queue, corrections_attempt, &trial);
}
