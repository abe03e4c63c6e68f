#include "service/daemon/jobs/awaited.h"

#include "service/common/clock.h"
#include "service/common/routing/routing_result.h"
#include "service/daemon/programs/program_plan.h"
#include "service/daemon/series/series.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The names of kinds, for people. */
static const char *const awaited_names[] = {
    [CONF_RTSTRUCT] = "structure set (rtstruct)", [CONF_SEG] = "segmentation (seg)", [CONF_SR] = "report (sr)"};

bool
awaited_is_named(const struct conf_pipeline *pipeline, const char *kind, const char *sender)
{
    for (size_t i = 0; i < pipeline->segment_count; i++)
        if (routing_object_fits(&pipeline->segments[i], kind, sender))
            return true;
    return false;
}

static void
inputs_free(struct queue_input *inputs, size_t count)
{
    for (size_t i = 0; i < count; i++)
        queue_input_clear(&inputs[i]);
    free(inputs);
}

static bool
inputs_have(const struct queue_input *inputs, size_t count, const struct conf_segment *segment)
{
    for (size_t i = 0; i < count; i++)
        if (routing_object_fits(segment, inputs[i].kind, inputs[i].sender))
            return true;
    return false;
}

int
awaited_lacks(struct core *core, int64_t series_id, const struct conf_pipeline *pipeline, enum code *code,
              char text[AWAITED_TEXT])
{
    struct queue_input *inputs;
    size_t count, used;
    *text = '\0';
    *code = CODE_OBJECT_OPTIONAL;
    int error = queue_series_inputs(core->queue, series_id, &inputs, &count);
    if (error)
        return error;
    for (size_t i = 0; i < pipeline->segment_count; i++) {
        const struct conf_segment *segment = &pipeline->segments[i];
        const struct conf_object *object = &segment->object;
        bool is_described = false;
        if (segment->method != CONF_OBJECT || inputs_have(inputs, count, segment))
            continue;
        if (!object->optional)
            *code = CODE_OBJECT_WAITING;
        for (const struct conf_segment *earlier = pipeline->segments; earlier < segment; earlier++)
            is_described |= earlier->method == CONF_OBJECT && earlier->object.kind == object->kind;
        if (is_described)
            continue;
        used = strlen(text);
        snprintf(text + used, AWAITED_TEXT - used, "%s %s%s%s", used ? "," : "It waits for a",
                 awaited_names[object->kind], object->from_ae ? " from " : "", object->from_ae ? object->from_ae : "");
    }
    inputs_free(inputs, count);
    used = strlen(text);
    if (used > 0)
        snprintf(text + used, AWAITED_TEXT - used, " drawn on the series.%s",
                 *code == CODE_OBJECT_OPTIONAL ? " If none comes, it runs without." : "");
    return 0;
}

int
awaited_paths(const struct core *core, int64_t series_id, const struct conf_pipeline *pipeline, char ***paths,
              size_t *count)
{
    struct queue_input *inputs;
    size_t input_count;
    *paths = NULL;
    *count = 0;
    int error = queue_series_inputs(core->queue, series_id, &inputs, &input_count);
    if (error)
        return error;
    char **found = calloc(input_count + 1, sizeof *found);
    error = found ? 0 : -ENOMEM;
    for (size_t i = 0; i < input_count && !error; i++) {
        if (!awaited_is_named(pipeline, inputs[i].kind, inputs[i].sender))
            continue;
        found[*count] = core_path(core, inputs[i].path);
        error = found[*count] ? 0 : -ENOMEM;
        *count += !error;
    }
    inputs_free(inputs, input_count);
    *paths = found;
    return error;
}

int
awaited_lacks_study(struct core *core, const struct queue_series *series, const char *pipeline, char text[AWAITED_TEXT])
{
    struct rules_series subject = routing_subject(core->conf, series);
    struct queue_companion *companions;
    size_t count;
    char wanted[CONDITION_TEXT];
    *text = '\0';
    int error = queue_companions(core->queue, series->id, &companions, &count);
    struct rules_companion *others = error ? NULL : calloc(count + 1, sizeof *others);
    error = error || others ? error : -ENOMEM;
    for (size_t i = 0; i < count && others; i++)
        others[i] = (struct rules_companion){.modality = companions[i].modality,
                                             .body_part = companions[i].body_part,
                                             .description = companions[i].description};
    const struct rules_study study = {others, count};
    subject.study = &study;
    const struct conf_companion *lacking = others ? routing_find_lacking(core->conf, &subject, pipeline) : NULL;
    if (lacking) {
        conditions_describe_companion(lacking, wanted);
        snprintf(text, AWAITED_TEXT, "It waits for another series of the study: %s.", wanted);
    }
    free(others);
    for (size_t i = 0; i < count; i++)
        queue_companion_clear(&companions[i]);
    free(companions);
    return error;
}

int
awaited_order_prior(const struct core *core, int64_t job_id, const struct conf_pipeline *pipeline)
{
    const struct conf_pull *pull = &core->conf->pull;
    const char *name = pipeline->prior_source;
    if (pull->source_count == 0)
        return 0;
    return queue_order_prior(core->queue, job_id, name && *name ? name : pull->sources[0].name, clock_unix_ms());
}

/* Checks again the missing inputs of a job that waits for a series or an annotation object. */
static int
awaited_check_again(struct core *core, const struct queue_job *job, const struct conf_pipeline *pipeline, bool of_study)
{
    struct queue_series series;
    char text[AWAITED_TEXT] = "";
    enum code code = CODE_STUDY_WAITING;
    int error = of_study ? queue_get_series(core->queue, job->series_id, &series) : 0;
    if (error)
        return error;
    if (of_study) {
        error = awaited_lacks_study(core, &series, job->pipeline, text);
        queue_series_clear(&series);
    }
    if (!error && !*text)
        error = awaited_lacks(core, job->series_id, pipeline, &code, text);
    if (error)
        return error;
    error = queue_job_lacks(core->queue, job->id, code, *text ? text : NULL, clock_unix_ms());
    return error || *text ? error : programs_plan(core, job->id, false);
}

int
awaited_series_completed(struct core *core, int64_t series_id)
{
    struct conf_pipeline *pipeline;
    struct queue_job job;
    struct queue_ids jobs;
    int error = queue_study_waiting(core->queue, series_id, &jobs);
    for (size_t i = 0; i < jobs.count && !error; i++) {
        error = queue_get_job(core->queue, jobs.at[i], &job);
        if (error)
            break;
        if (conf_pipeline_from_text(job.settings, &pipeline, NULL) == 0) {
            error = awaited_check_again(core, &job, pipeline, true);
            conf_pipeline_free(pipeline);
        }
        queue_job_clear(&job);
    }
    if (jobs.count > 0)
        due_now(&core->jobs_due);
    free(jobs.at);
    return error;
}

/* Handles a new annotation object of one series. A job that began or ended without the object must be repeated. A READY
 * job takes all objects that are present at its start; a cancelled one must stay cancelled. */
static int
awaited_object_of_series(struct core *core, int64_t series_id, const char *kind, const char *sender)
{
    struct conf_pipeline *pipeline;
    struct queue_job *jobs;
    size_t count;
    bool revise = false;
    int error = queue_series_jobs(core->queue, series_id, &jobs, &count);
    if (error)
        return error;
    for (size_t i = 0; i < count; i++) {
        const struct queue_job *job = &jobs[i];
        /* the worker reports settings of another version */
        if (!error && conf_pipeline_from_text(job->settings, &pipeline, NULL) == 0) {
            const bool is_named = awaited_is_named(pipeline, kind, sender);
            if (is_named && job->awaits && !job->awaits_program)
                error = awaited_check_again(core, job, pipeline, job->awaits_study);
            else if (is_named && job->state != QUEUE_READY && job->state != QUEUE_DELAYED &&
                     job->state != QUEUE_CANCELLED)
                revise = true;
            conf_pipeline_free(pipeline);
        }
        queue_job_clear(&jobs[i]);
    }
    free(jobs);
    if (error || !revise)
        return error;
    error =
        queue_revise_series(core->queue, series_id, "another version of an annotation object arrived", clock_unix_ms());
    return error < 0 ? error : 0;
}

int
awaited_object_arrived(struct core *core, int64_t object_id, const char *kind, const char *sender)
{

    struct queue_ids series;
    int error = queue_object_is_input(core->queue, object_id);
    if (error <= 0)
        return error;
    error = queue_object_series(core->queue, object_id, &series);
    for (size_t i = 0; i < series.count && !error; i++)
        error = awaited_object_of_series(core, series.at[i], kind, sender);
    free(series.at);
    due_now(&core->jobs_due);
    return error;
}
