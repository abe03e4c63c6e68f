/* awaited.c - see awaited.h. */
#include "service/daemon/jobs/awaited.h"

#include "service/common/clock.h"
#include "service/common/log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Named by a segment: its kind, and the AE title that it is to come from; NULL: from anybody. */
struct awaited {
    const char *kind, *sender;
};

/* False when the segment names none. */
static bool
awaited_of(const struct conf_segment *segment, struct awaited *awaited)
{
    if (segment->method != CONF_OBJECT)
        return false;
    *awaited =
        (struct awaited){conf_object_kind_names[segment->object.kind], segment->object.from_ae};
    return true;
}

static bool
awaited_fits(const struct awaited *awaited, const char *kind, const char *sender)
{
    return strcmp(awaited->kind, kind) == 0 &&
           (!awaited->sender || strcmp(awaited->sender, sender) == 0);
}

static bool
awaited_is_named(const struct conf_pipeline *pipeline, const char *kind, const char *sender)
{
    struct awaited awaited;
    for (size_t i = 0; i < pipeline->segment_count; i++)
        if (awaited_of(&pipeline->segments[i], &awaited) && awaited_fits(&awaited, kind, sender))
            return true;
    return false;
}

/* ---------------------------------------------------------------------------- what is there -- */

struct inputs {
    struct queue_input *at;
    size_t count;
};

static int
inputs_read(const struct core *core, int64_t series_id, struct inputs *inputs)
{
    return queue_series_inputs(core->queue, series_id, &inputs->at, &inputs->count);
}

static void
inputs_free(struct inputs *inputs)
{
    for (size_t i = 0; i < inputs->count; i++)
        queue_input_clear(&inputs->at[i]);
    free(inputs->at);
}

static bool
inputs_have(const struct inputs *inputs, const struct awaited *awaited)
{
    for (size_t i = 0; i < inputs->count; i++)
        if (awaited_fits(awaited, inputs->at[i].kind, inputs->at[i].sender))
            return true;
    return false;
}

/* One that a segment before it has named is told once. */
static bool
awaited_is_first(const struct conf_pipeline *pipeline, size_t segment)
{
    struct awaited awaited, earlier;
    awaited_of(&pipeline->segments[segment], &awaited);
    for (size_t i = 0; i < segment; i++)
        if (awaited_of(&pipeline->segments[i], &earlier) && strcmp(earlier.kind, awaited.kind) == 0)
            return false;
    return true;
}

static void
awaited_tell(const struct awaited *awaited, char words[AWAITED_WORDS])
{
    const size_t used = strlen(words);
    snprintf(words + used, AWAITED_WORDS - used, "%s %s%s%s", used ? "," : "It waits for a",
             strcmp(awaited->kind, "rtstruct") == 0 ? "structure set (rtstruct)"
             : strcmp(awaited->kind, "seg") == 0    ? "segmentation (seg)"
                                                    : "report (sr)",
             awaited->sender ? " from " : "", awaited->sender ? awaited->sender : "");
}

int
awaited_lacks(struct core *core, int64_t series_id, const struct conf_pipeline *pipeline,
              char words[AWAITED_WORDS])
{
    struct inputs inputs;
    struct awaited awaited;
    *words = '\0';
    int error = inputs_read(core, series_id, &inputs);
    if (error)
        return error;
    for (size_t i = 0; i < pipeline->segment_count; i++)
        if (awaited_of(&pipeline->segments[i], &awaited) && !inputs_have(&inputs, &awaited) &&
            awaited_is_first(pipeline, i))
            awaited_tell(&awaited, words);
    inputs_free(&inputs);
    if (*words)
        strncat(words, " drawn on the series.", AWAITED_WORDS - strlen(words) - 1);
    return 0;
}

int
awaited_paths(const struct core *core, int64_t series_id, const struct conf_pipeline *pipeline,
              char ***paths, size_t *count)
{
    struct inputs inputs;
    *paths = NULL;
    *count = 0;
    int error = inputs_read(core, series_id, &inputs);
    if (error)
        return error;
    char **found = calloc(inputs.count + 1, sizeof *found);
    error = found ? 0 : -ENOMEM;
    for (size_t i = 0; i < inputs.count && !error; i++) {
        if (!awaited_is_named(pipeline, inputs.at[i].kind, inputs.at[i].sender))
            continue;
        found[*count] = core_path(core, inputs.at[i].path);
        error = found[*count] ? 0 : -ENOMEM;
        *count += !error;
    }
    inputs_free(&inputs);
    *paths = found;
    return error;
}

/* -------------------------------------------------------------------------------- an object -- */

/* What has come to be with one object of a series: its jobs. */
struct came {
    struct core *core;
    const char *kind, *sender;
    bool revise;
};

/* A job that has begun, or ended, without it has to be made anew; but for what an operator has
 * cancelled. One that is READY takes what there is when it starts. */
static bool
came_makes_anew(const struct queue_job *job)
{
    return job->state != QUEUE_READY && job->state != QUEUE_DELAYED &&
           job->state != QUEUE_CANCELLED;
}

static int
came_to_job(struct came *came, const struct queue_job *job)
{
    struct conf_pipeline *pipeline;
    char words[AWAITED_WORDS];
    if (conf_pipeline_from_text(job->settings, &pipeline, NULL) != 0)
        return 0; /* of another version, which is the worker's to say */
    const bool named = awaited_is_named(pipeline, came->kind, came->sender);
    int error = 0;
    if (named && job->awaits) {
        error = awaited_lacks(came->core, job->series_id, pipeline, words);
        if (!error && !*words)
            error = queue_object_came(came->core->queue, job->id, clock_unix_ms());
    } else if (named && came_makes_anew(job)) {
        came->revise = true;
    }
    conf_pipeline_free(pipeline);
    return error;
}

static int
came_to_series(struct came *came, int64_t series_id)
{
    struct core *core = came->core;
    struct queue_job *jobs;
    size_t count;
    int error = queue_series_jobs(core->queue, series_id, &jobs, &count);
    if (error)
        return error;
    came->revise = false;
    for (size_t i = 0; i < count; i++) {
        if (!error)
            error = came_to_job(came, &jobs[i]);
        queue_job_clear(&jobs[i]);
    }
    free(jobs);
    if (error || !came->revise)
        return error;
    error = queue_revise_series(core->queue, series_id, "another version of an object came",
                                clock_unix_ms());
    return error < 0 ? error : 0;
}

int
awaited_came(struct core *core, int64_t object_id, const char *kind, const char *sender)
{
    struct came came = {.core = core, .kind = kind, .sender = sender};
    struct queue_ids series;
    int error = queue_object_is_input(core->queue, object_id);
    if (error <= 0)
        return error;
    error = queue_object_series(core->queue, object_id, &series);
    for (size_t i = 0; i < series.count && !error; i++)
        error = came_to_series(&came, series.at[i]);
    free(series.at);
    due_now(&core->jobs_due);
    return error;
}
