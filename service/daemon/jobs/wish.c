/* wish.c - see wish.h. */
#include "service/daemon/jobs/wish.h"

#include "service/common/clock.h"
#include "service/common/log.h"
#include "service/daemon/jobs/jobs.h"

#include <errno.h>
#include <stdlib.h>

int
wish_make(const struct conf *conf, const struct queue_series *series,
          const struct rules_stack *stacks, size_t count, const struct conf_rule *only,
          struct wish *wish)
{
    const size_t rule_count = only ? 1 : conf->rule_count;
    *wish = (struct wish){.picks = calloc(count * (rule_count + 1) + 1, sizeof *wish->picks)};
    if (!wish->picks)
        return -ENOMEM;
    const struct rules_series subject = {
        .modality = series->modality ? series->modality : "",
        .body_part = series->body_part ? series->body_part : "",
        .description = series->description ? series->description : "",
        .title = only ? NULL : conf_find_title(conf, series->called_ae ? series->called_ae : ""),
        .stacks = stacks,
        .stack_count = count,
    };
    wish->count =
        rules_pick(only ? only : conf->rules, rule_count, &subject, wish->picks, &wish->outcome);
    return 0;
}

void
wish_release(struct wish *wish)
{
    free(wish->picks);
    *wish = (struct wish){0};
}

int
wish_add_job(struct core *core, const struct queue_series *series, struct wish_job *job)
{
    const char *pipeline = job->pick->pipeline;
    char *settings = conf_pipeline_to_text(conf_find_pipeline(core->conf, pipeline));
    if (!settings)
        return -ENOMEM;
    const struct queue_new_job new_job = {.series_id = series->id,
                                          .revision = series->revision,
                                          .stack = job->stack,
                                          .pipeline = pipeline,
                                          .settings = settings,
                                          .priority = job->pick->priority,
                                          .again = job->again,
                                          .asked = job->asked,
                                          .dry_run = job->dry_run};
    struct queue_ids superseded;
    int error = queue_add_job(core->queue, &new_job, clock_unix_ms(), &job->id, &superseded);
    free(settings);
    jobs_stop_superseded(core->jobs, &superseded);
    if (error || job->dry_run)
        return error;
    due_now(&core->jobs_due);
    log_info("job.new", LOG_INT("job", job->id), LOG_STR("series", series->series_uid),
             LOG_INT("revision", series->revision), LOG_STR("stack", job->stack),
             LOG_STR("pipeline", pipeline));
    return 0;
}
