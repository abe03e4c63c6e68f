/* routing_result.c - see routing_result.h. */
#include "service/daemon/jobs/routing_result.h"

#include "service/common/clock.h"
#include "service/common/log.h"
#include "service/common/routing/routing_options.h"
#include "service/daemon/jobs/job_windows.h"
#include "service/daemon/jobs/jobs.h"
#include "service/daemon/series/routing_subject.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WISH_RULE 96 /* room for a rule's name */

/* ---------------------------------------------------------------------------------- rules ---- */

/* Finds the rules that can match the series, or only that of its AE title if the title has a
 * pipeline. `found` must have room for all rules and one more. */
static size_t
wish_find_rules(const struct conf *conf, const struct queue_series *series, struct conf_rule *found)
{
    const struct rules_series subject = subject_of(conf, series);
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
wish_find_unknown(const struct conf *conf, const struct queue_series *series)
{
    const struct rules_series subject = subject_of(conf, series);
    const struct conf_title *title =
        conf_find_title(conf, series->called_ae ? series->called_ae : "");
    for (size_t i = 0; i < conf->rule_count && !(title && title->pipeline); i++)
        if (conditions_need_facts(&conf->rules[i]) && rules_match_series(&conf->rules[i], &subject))
            return i + 1;
    return 0;
}

static int
judgement_of_rule(const struct conf *conf, const struct conf_rule *rule)
{
    return routing_options_of(conf_find_pipeline(conf, rule->pipeline));
}

unsigned
wish_judgements(const struct conf *conf, const struct queue_series *series)
{
    unsigned wanted = 0;
    struct conf_rule *rules = calloc(conf->rule_count + 1, sizeof *rules);
    const size_t count = rules ? wish_find_rules(conf, series, rules) : 0;
    for (size_t i = 0; i < count; i++)
        wanted |= 1u << judgement_of_rule(conf, &rules[i]);
    free(rules);
    return wanted ? wanted : 1u << routing_options_lenient(conf);
}

/* ---------------------------------------------------------------------- one set of options ---- */

/* State while a result is made. */
struct wishing {
    const struct conf *conf;
    const struct wish_stack *stacks;
    struct rules_series subject;
    struct rules_stack *own; /* all stacks; those of other options not accepted */
    const struct conf_rule *rules;
    struct conf_rule *own_rules; /* those with the current options */
    size_t rule_count, own_count;
    const char *options; /* current options; NULL: no stack has them */
    bool otherwise;      /* whether `otherwise` rules are applied */
};

static bool
wishing_owns(const struct wishing *wishing, size_t i)
{
    return !wishing->options || strcmp(wishing->stacks[i].options, wishing->options) == 0;
}

static void
wishing_begin(struct wishing *wishing, int judgement)
{
    wishing->own_count = 0;
    for (size_t i = 0; i < wishing->rule_count; i++)
        if (wishing->rules[i].otherwise == wishing->otherwise &&
            judgement_of_rule(wishing->conf, &wishing->rules[i]) == judgement)
            wishing->own_rules[wishing->own_count++] = wishing->rules[i];
    bool any = false;
    wishing->options = routing_options_text(judgement);
    for (size_t i = 0; i < wishing->subject.stack_count; i++)
        any |= wishing_owns(wishing, i);
    if (!any)
        wishing->options = NULL;
    for (size_t i = 0; i < wishing->subject.stack_count; i++) {
        wishing->own[i] = wishing->stacks[i].is;
        wishing->own[i].accepted &= wishing_owns(wishing, i);
    }
}

static bool
wish_has(const struct wish *wish, const char *pipeline)
{
    for (size_t i = 0; i < wish->count; i++)
        if (strcmp(wish->picks[i].pipeline, pipeline) == 0)
            return true;
    for (size_t i = 0; i < wish->refusal_count; i++)
        if (strcmp(wish->refusals[i].pipeline, pipeline) == 0)
            return true;
    return false;
}

/* Adds a refusal with the first stack that a rule without a job would have matched, preferably one
 * that is not skipped. Adds none if a stack is accepted but not requested by `stacks`. */
static void
wish_add_refusal(const struct wishing *wishing, const struct conf_rule *rule, struct wish *wish)
{
    const size_t none = wishing->subject.stack_count;
    size_t refused = none;
    for (size_t i = 0; i < none; i++) {
        if (!wishing_owns(wishing, i) ||
            !rules_match(rule, &wishing->subject, &wishing->own[i], NULL))
            continue;
        if (wishing->own[i].accepted)
            return;
        if (refused == none ||
            (wishing->stacks[refused].passed_over && !wishing->stacks[i].passed_over))
            refused = i;
    }
    if (refused < none)
        wish->refusals[wish->refusal_count++] = (struct wish_refusal){rule->pipeline, refused};
}

static void
wish_add(const struct wishing *wishing, struct wish *wish)
{
    struct rules_outcome outcome;
    wish->count += rules_pick(wishing->own_rules, wishing->own_count, &wishing->subject,
                              wish->picks + wish->count, &outcome);
    wish->outcome.matched |= outcome.matched;
    if (!wish->outcome.too_many) {
        wish->outcome.too_many = outcome.too_many;
        wish->outcome.pipeline = outcome.pipeline;
    }
    if (!wish->outcome.undecided) {
        wish->outcome.undecided = outcome.undecided;
        wish->outcome.undecided_pipeline = outcome.undecided_pipeline;
    }
    for (size_t i = 0; i < wishing->own_count; i++)
        if (!wish_has(wish, wishing->own_rules[i].pipeline))
            wish_add_refusal(wishing, &wishing->own_rules[i], wish);
}

/* Returns whether a rule with the current options matches a stack, accepted or not. */
static bool
wishing_fits(const struct wishing *wishing)
{
    for (size_t i = 0; i < wishing->own_count; i++)
        for (size_t k = 0; k < wishing->subject.stack_count; k++)
            if (wishing_owns(wishing, k) && !wishing->stacks[k].passed_over &&
                rules_match(&wishing->own_rules[i], &wishing->subject, &wishing->own[k], NULL))
                return true;
    return false;
}

/* Adds the rules of one kind. Returns whether one of them matches. */
static bool
wish_add_rules(struct wishing *wishing, bool otherwise, struct wish *wish)
{
    bool fits = false;
    wishing->otherwise = otherwise;
    for (int judgement = 0; judgement < ROUTING_OPTION_SETS; judgement++) {
        wishing_begin(wishing, judgement);
        wish_add(wishing, wish);
        fits |= wishing_fits(wishing);
    }
    return fits;
}

/* ---------------------------------------------------------------------------------- result ---- */

int
wish_make(const struct conf *conf, const struct queue_series *series,
          const struct wish_stack *stacks, size_t count, const struct conf_rule *only,
          struct wish *wish)
{
    const size_t room = conf->rule_count + 1;
    struct conf_rule *rules = calloc(2 * room, sizeof *rules);
    struct rules_stack *own = calloc(count + 1, sizeof *own);
    *wish = (struct wish){.picks = calloc(count * room + 1, sizeof *wish->picks),
                          .refusals = calloc(room, sizeof *wish->refusals)};
    const bool able = rules && own && wish->picks && wish->refusals;
    if (able) {
        struct wishing wishing = {.conf = conf,
                                  .stacks = stacks,
                                  .subject = subject_of(conf, series),
                                  .own = own,
                                  .rules = only ? only : rules,
                                  .own_rules = rules + room,
                                  .rule_count = only ? 1 : wish_find_rules(conf, series, rules)};
        wishing.subject.stacks = own;
        wishing.subject.stack_count = count;
        if (!wish_add_rules(&wishing, false, wish))
            wish_add_rules(&wishing, true, wish);
    }
    free(rules);
    free(own);
    if (!able)
        wish_release(wish);
    return able ? 0 : -ENOMEM;
}

void
wish_release(struct wish *wish)
{
    free(wish->picks);
    free(wish->refusals);
    *wish = (struct wish){0};
}

/* ----------------------------------------------------------------------------------- jobs ---- */

/* Formats "head", "rule-2" for an unnamed rule, "title NOCTULE_HEAD", or "". */
static void
wish_name_rule(const struct rules_pick *pick, char name[WISH_RULE])
{
    if (pick->number && !pick->rule)
        snprintf(name, WISH_RULE, "rule-%d", pick->number);
    else
        snprintf(name, WISH_RULE, "%s%s", pick->number || !pick->rule ? "" : "title ",
                 pick->rule ? pick->rule : "");
}

int
wish_add_job(struct core *core, const struct queue_series *series, struct wish_job *job)
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
    char rule[WISH_RULE];
    wish_name_rule(job->pick, rule);
    const struct queue_new_job new_job = {.series_id = series->id,
                                          .revision = series->revision,
                                          .stack = job->stack,
                                          .pipeline = pipeline,
                                          .settings = settings,
                                          .priority = job->pick->priority,
                                          .again = job->again,
                                          .asked = job->asked,
                                          .dry_run = job->dry_run,
                                          .done_by_ms = windows_done_by(conf, clock_unix_ms()),
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
