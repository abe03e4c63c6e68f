/* settle.c - see settle.h. */
#include "service/daemon/series/settle.h"

#include "service/common/clock.h"
#include "service/common/log.h"
#include "service/daemon/jobs/jobs.h"
#include "service/daemon/series/rules.h"
#include "service/daemon/series/series.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static struct rules_subject
settle_subject(const struct conf *conf, const struct queue_series *series,
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
settle_add_job(struct core *core, const struct queue_series *series,
               const struct queue_stack *stack, const struct rules_pick *pick)
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
settle_add_stack_jobs(struct core *core, const struct queue_series *series,
                      const struct queue_stack *stack, size_t *count)
{
    const struct rules_subject subject = settle_subject(core->conf, series, stack);
    struct rules_pick *picks = calloc(core->conf->rule_count + 1, sizeof *picks);
    if (!picks)
        return -ENOMEM;
    size_t found = rules_pick(core->conf->rules, core->conf->rule_count, &subject, picks);
    int error = 0;
    for (size_t i = 0; i < found && !error; i++)
        error = settle_add_job(core, series, stack, &picks[i]);
    free(picks);
    *count += found;
    return error;
}

/* An accepted series for which nothing is to be done: somebody may have expected a result. */
static int
settle_note_no_rule(struct core *core, const struct queue_series *series)
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
settle_is_wanted(const struct core *core, const struct queue_series *series,
                 const struct queue_stack *stacks, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct rules_subject subject = settle_subject(core->conf, series, &stacks[i]);
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
settle_has_accepted(const struct queue_stack *stacks, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (stacks[i].accepted)
            return true;
    }
    return false;
}

int
settle_series(struct core *core, const struct queue_series *series, char *evidence,
              const struct queue_stack *stacks, size_t count)
{
    bool accepted = settle_has_accepted(stacks, count);
    bool no_rule = accepted && !settle_is_wanted(core, series, stacks, count);
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
            error = settle_add_stack_jobs(core, series, &stacks[i], &jobs);
    }
    if (!error && no_rule)
        error = settle_note_no_rule(core, series);
    log_info(accepted ? "series.settled" : "series.refused", LOG_STR("series", series->series_uid),
             LOG_INT("revision", series->revision), LOG_INT("stacks", count), LOG_INT("jobs", jobs),
             LOG_STR("evidence", evidence));
    return error;
}
