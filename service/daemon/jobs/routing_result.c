/* routing_result.c - see routing_result.h. */
#include "service/daemon/jobs/routing_result.h"

#include "service/common/clock.h"
#include "service/common/log.h"
#include "service/common/routing/routing_options.h"
#include "service/daemon/jobs/jobs.h"
#include "service/daemon/series/series.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROUTING_RULE_NAME 96 /* room for a rule's name */

/* ---------------------------------------------------------------------------------- rules ---- */

/* Finds the rules that can match the series, or only that of its AE title if the title has a
 * pipeline. `found` must have room for all rules and one more. */
static size_t
routing_find_rules(const struct conf *conf, const struct queue_series *series,
                   struct conf_rule *found)
{
    const struct rules_series subject = routing_subject(conf, series);
    const struct conf_title *title =
        conf_find_title(conf, series->called_ae ? series->called_ae : "");
    size_t count = 0;
    if (title && title->pipeline) {
        found[0] = (struct conf_rule){
            .name = title->ae_title, .pipeline = title->pipeline, .stacks = title->stacks};
        return 1;
    }
    for (size_t i = 0; i < conf->rule_count; i++)
        if (rules_match_series(&conf->rules[i], &subject))
            found[count++] = conf->rules[i];
    return count;
}

size_t
routing_find_unknown(const struct conf *conf, const struct queue_series *series)
{
    const struct rules_series subject = routing_subject(conf, series);
    const struct conf_title *title =
        conf_find_title(conf, series->called_ae ? series->called_ae : "");
    for (size_t i = 0; i < conf->rule_count && !(title && title->pipeline); i++)
        if (conditions_need_facts(&conf->rules[i]) && rules_match_series(&conf->rules[i], &subject))
            return i + 1;
    return 0;
}

static int
routing_option_set_of(const struct conf *conf, const struct conf_rule *rule)
{
    return routing_options_of(conf_find_pipeline(conf, rule->pipeline));
}

unsigned
routing_option_sets(const struct conf *conf, const struct queue_series *series)
{
    unsigned wanted = 0;
    struct conf_rule *rules = calloc(conf->rule_count + 1, sizeof *rules);
    const size_t count = rules ? routing_find_rules(conf, series, rules) : 0;
    for (size_t i = 0; i < count; i++)
        wanted |= 1u << routing_option_set_of(conf, &rules[i]);
    free(rules);
    return wanted ? wanted : 1u << routing_options_lenient(conf);
}

/* ---------------------------------------------------------------------- one set of options ---- */

/* State while a result is made. */
struct routing_work {
    const struct conf *conf;
    const struct routing_stack *stacks;
    struct rules_series subject;
    struct rules_stack *own; /* all stacks; those of other options not accepted */
    const struct conf_rule *rules;
    struct conf_rule *own_rules; /* those with the current options */
    size_t rule_count, own_count;
    const char *options; /* current options; NULL: no stack has them */
    bool otherwise;      /* whether `otherwise` rules are applied */
};

static bool
routing_owns(const struct routing_work *work, size_t i)
{
    return !work->options || strcmp(work->stacks[i].options, work->options) == 0;
}

static void
routing_begin_set(struct routing_work *work, int set)
{
    work->own_count = 0;
    for (size_t i = 0; i < work->rule_count; i++)
        if (work->rules[i].otherwise == work->otherwise &&
            routing_option_set_of(work->conf, &work->rules[i]) == set)
            work->own_rules[work->own_count++] = work->rules[i];
    bool any = false;
    work->options = routing_options_text(set);
    for (size_t i = 0; i < work->subject.stack_count; i++)
        any |= routing_owns(work, i);
    if (!any)
        work->options = NULL;
    for (size_t i = 0; i < work->subject.stack_count; i++) {
        work->own[i] = work->stacks[i].is;
        work->own[i].accepted &= routing_owns(work, i);
    }
}

static bool
routing_has(const struct routing_result *result, const char *pipeline)
{
    for (size_t i = 0; i < result->count; i++)
        if (strcmp(result->picks[i].pipeline, pipeline) == 0)
            return true;
    for (size_t i = 0; i < result->refusal_count; i++)
        if (strcmp(result->refusals[i].pipeline, pipeline) == 0)
            return true;
    return false;
}

/* Adds a refusal with the first stack that a rule without a job would have matched, preferably one
 * that is not skipped. Adds none if a stack is accepted but not requested by `stacks`. */
static void
routing_add_refusal(const struct routing_work *work, const struct conf_rule *rule,
                    struct routing_result *result)
{
    const size_t none = work->subject.stack_count;
    size_t refused = none;
    for (size_t i = 0; i < none; i++) {
        if (!routing_owns(work, i) || !rules_match(rule, &work->subject, &work->own[i], NULL))
            continue;
        if (work->own[i].accepted)
            return;
        if (refused == none || (work->stacks[refused].passed_over && !work->stacks[i].passed_over))
            refused = i;
    }
    if (refused < none)
        result->refusals[result->refusal_count++] =
            (struct routing_refusal){rule->pipeline, refused};
}

static void
routing_add_set(const struct routing_work *work, struct routing_result *result)
{
    struct rules_outcome outcome;
    result->count += rules_pick(work->own_rules, work->own_count, &work->subject,
                                result->picks + result->count, &outcome);
    result->outcome.matched |= outcome.matched;
    if (!result->outcome.too_many) {
        result->outcome.too_many = outcome.too_many;
        result->outcome.pipeline = outcome.pipeline;
    }
    if (!result->outcome.undecided) {
        result->outcome.undecided = outcome.undecided;
        result->outcome.undecided_pipeline = outcome.undecided_pipeline;
    }
    for (size_t i = 0; i < work->own_count; i++)
        if (!routing_has(result, work->own_rules[i].pipeline))
            routing_add_refusal(work, &work->own_rules[i], result);
}

/* Returns whether a rule with the current options matches a stack, accepted or not. */
static bool
routing_fits(const struct routing_work *work)
{
    for (size_t i = 0; i < work->own_count; i++)
        for (size_t k = 0; k < work->subject.stack_count; k++)
            if (routing_owns(work, k) && !work->stacks[k].passed_over &&
                rules_match(&work->own_rules[i], &work->subject, &work->own[k], NULL))
                return true;
    return false;
}

/* Adds the rules of one kind. Returns whether one of them matches. */
static bool
routing_add_rules(struct routing_work *work, bool otherwise, struct routing_result *result)
{
    bool fits = false;
    work->otherwise = otherwise;
    for (int set = 0; set < ROUTING_OPTION_SETS; set++) {
        routing_begin_set(work, set);
        routing_add_set(work, result);
        fits |= routing_fits(work);
    }
    return fits;
}

/* ---------------------------------------------------------------------------------- result ---- */

int
routing_result_make(const struct conf *conf, const struct queue_series *series,
                    const struct routing_stack *stacks, size_t count, const struct conf_rule *only,
                    struct routing_result *result)
{
    const size_t room = conf->rule_count + 1;
    struct conf_rule *rules = calloc(2 * room, sizeof *rules);
    struct rules_stack *own = calloc(count + 1, sizeof *own);
    *result = (struct routing_result){.picks = calloc(count * room + 1, sizeof *result->picks),
                                      .refusals = calloc(room, sizeof *result->refusals)};
    const bool able = rules && own && result->picks && result->refusals;
    if (able) {
        struct routing_work work = {.conf = conf,
                                    .stacks = stacks,
                                    .subject = routing_subject(conf, series),
                                    .own = own,
                                    .rules = only ? only : rules,
                                    .own_rules = rules + room,
                                    .rule_count =
                                        only ? 1 : routing_find_rules(conf, series, rules)};
        work.subject.stacks = own;
        work.subject.stack_count = count;
        if (!routing_add_rules(&work, false, result))
            routing_add_rules(&work, true, result);
    }
    free(rules);
    free(own);
    if (!able)
        routing_result_release(result);
    return able ? 0 : -ENOMEM;
}

void
routing_result_release(struct routing_result *result)
{
    free(result->picks);
    free(result->refusals);
    *result = (struct routing_result){0};
}

/* ----------------------------------------------------------------------------------- jobs ---- */

/* Formats "head", "rule-2" for an unnamed rule, "title NOCTULE_HEAD", or "". */
static void
routing_name_rule(const struct rules_pick *pick, char name[ROUTING_RULE_NAME])
{
    if (pick->number && !pick->rule)
        snprintf(name, ROUTING_RULE_NAME, "rule-%d", pick->number);
    else
        snprintf(name, ROUTING_RULE_NAME, "%s%s", pick->number || !pick->rule ? "" : "title ",
                 pick->rule ? pick->rule : "");
}

int
routing_add_job(struct core *core, const struct queue_series *series, struct routing_job *job)
{
    const char *pipeline = job->pick->pipeline;
    const struct conf_pipeline *conf = conf_find_pipeline(core->conf, pipeline);
    job->lacks_code = CODE_STUDY_WAITING;
    job->lacks[0] = '\0';
    int error = job->pick->waits ? awaited_lacks_study(core, series, pipeline, job->lacks) : 0;
    if (!error && !job->lacks[0])
        error = awaited_lacks(core, series->id, conf, &job->lacks_code, job->lacks);
    char *settings = error ? NULL : conf_pipeline_to_text(conf);
    if (!settings)
        return error ? error : -ENOMEM;
    char rule[ROUTING_RULE_NAME];
    routing_name_rule(job->pick, rule);
    const struct queue_new_job new_job = {.series_id = series->id,
                                          .revision = series->revision,
                                          .stack = job->stack,
                                          .pipeline = pipeline,
                                          .settings = settings,
                                          .priority = job->pick->priority,
                                          .again = job->again,
                                          .asked = job->asked,
                                          .dry_run = job->dry_run,
                                          .done_by_ms = windows_deadline(conf, clock_unix_ms()),
                                          .lacks = job->lacks[0] ? job->lacks : NULL,
                                          .lacks_code = job->lacks_code,
                                          .until_ms = clock_unix_ms() +
                                                      (int64_t)(1000 * conf->patience_seconds),
                                          .rule = rule};
    struct queue_ids superseded;
    error = queue_add_job(core->queue, &new_job, clock_unix_ms(), &job->id, &superseded);
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
