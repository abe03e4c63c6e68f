/* routing_job.c - see jobs.h. */
#include "service/daemon/jobs/jobs.h"

#include "service/common/clock.h"
#include "service/common/log.h"
#include "service/daemon/programs/program_plan.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

int
routing_add_job(struct core *core, const struct queue_series *series, struct routing_job *job)
{
    const struct rules_pick *pick = job->pick;
    const char *pipeline = pick->pipeline;
    const struct conf_pipeline *conf = conf_find_pipeline(core->conf, pipeline);
    job->lacks_code = CODE_STUDY_WAITING;
    job->lacks[0] = '\0';
    int error = pick->waits ? awaited_lacks_study(core, series, pipeline, job->lacks) : 0;
    if (!error && !job->lacks[0])
        error = awaited_lacks(core, series->id, conf, &job->lacks_code, job->lacks);
    char *settings = error ? NULL : conf_pipeline_to_text(conf);
    if (!settings)
        return error ? error : -ENOMEM;
    char rule[96]; /* "head", "rule-2" for an unnamed rule, "title NOCTULE_HEAD", or "" */
    if (pick->number && !pick->rule)
        snprintf(rule, sizeof rule, "rule-%d", pick->number);
    else
        snprintf(rule, sizeof rule, "%s%s", pick->number || !pick->rule ? "" : "title ", pick->rule ? pick->rule : "");
    const struct queue_new_job new_job = {.series_id = series->id,
                                          .revision = series->revision,
                                          .stack = job->stack,
                                          .pipeline = pipeline,
                                          .settings = settings,
                                          .priority = pick->priority,
                                          .again = job->again,
                                          .asked = job->asked,
                                          .dry_run = job->dry_run,
                                          .done_by_ms = windows_deadline(conf, clock_unix_ms()),
                                          .lacks = job->lacks[0] ? job->lacks : NULL,
                                          .lacks_code = job->lacks_code,
                                          .until_ms = clock_unix_ms() + (int64_t)(1000 * conf->patience_seconds),
                                          .rule = rule};
    struct queue_ids superseded;
    error = queue_add_job(core->queue, &new_job, clock_unix_ms(), &job->id, &superseded);
    free(settings);
    jobs_stop_superseded(core->jobs, &superseded);
    if (error || job->dry_run)
        return error;
    if (conf->changes == CONF_CHANGES_PULL)
        error = awaited_order_prior(core, job->id, conf);
    if (!error && !job->lacks[0] && conf_pipeline_names_program(conf, NULL))
        error = programs_plan(core, job->id, false);
    if (error)
        return error;
    due_now(&core->jobs_due);
    log_info("job.new", LOG_INT("job", job->id), LOG_STR("series", series->series_uid),
             LOG_INT("revision", series->revision), LOG_STR("stack", job->stack), LOG_STR("pipeline", pipeline));
    return 0;
}
