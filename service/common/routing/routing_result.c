#include "service/common/routing/routing_result.h"

#include "service/common/routing/routing_options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Returns the rules that apply: the given one, that of the AE title (made in `of_title`) if it has
 * a pipeline, or those of the configuration. */
static const struct conf_rule *
routing_rules_of(const struct conf *conf, const struct rules_series *series, const struct conf_rule *only,
                 struct conf_rule *of_title, size_t *count)
{
    const struct conf_title *title = conf_find_title(conf, series->called_ae ? series->called_ae : "");
    *count = 1;
    if (only)
        return only;
    if (title && title->pipeline) {
        *of_title = (struct conf_rule){.name = title->ae_title, .pipeline = title->pipeline, .stacks = title->stacks};
        return of_title;
    }
    *count = conf->rule_count;
    return conf->rules;
}

size_t
routing_find_unknown(const struct conf *conf, const struct rules_series *series)
{
    struct conf_rule of_title;
    size_t count;
    const struct conf_rule *rules = routing_rules_of(conf, series, NULL, &of_title, &count);
    for (size_t i = 0; i < count; i++)
        if (conditions_need_facts(&rules[i]) && rules_match_series(&rules[i], series))
            return i + 1;
    return 0;
}

static int
routing_option_set_of(const struct conf *conf, const struct conf_rule *rule)
{
    return routing_options_of(conf_find_pipeline(conf, rule->pipeline));
}

unsigned
routing_option_sets(const struct conf *conf, const struct rules_series *series, const struct conf_rule *only)
{
    struct conf_rule of_title;
    size_t count;
    unsigned wanted = 0;
    const struct conf_rule *rules = routing_rules_of(conf, series, only, &of_title, &count);
    for (size_t i = 0; i < count; i++)
        if (rules_match_series(&rules[i], series))
            wanted |= 1u << routing_option_set_of(conf, &rules[i]);
    return wanted ? wanted : 1u << routing_options_lenient(conf);
}

/* ---------------------------------------------------------------------- one set of options ---- */

/* State while a result is made. */
struct routing_work {
    const struct conf *conf;
    const struct routing_stack *stacks;
    struct rules_series subject;
    struct rules_stack *own; /* all stacks; those of other options not accepted */
    const char *options;     /* current options; NULL: no stack has them */
};

static bool
routing_owns(const struct routing_work *work, size_t i)
{
    return !work->options || strcmp(work->stacks[i].options, work->options) == 0;
}

static void
routing_begin_set(struct routing_work *work, int set)
{
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

/* Counts the stacks that match a rule. Returns the first match, preferably one that is not skipped,
 * or the number of all stacks if none matches. */
static size_t
routing_count_matches(const struct routing_work *work, struct routing_rule *rule)
{
    const size_t none = work->subject.stack_count;
    size_t first = none;
    for (size_t i = 0; i < none; i++) {
        const bool skipped = work->stacks[i].passed_over;
        if (!routing_owns(work, i))
            continue;
        const bool matches = rules_match(rule->rule, &work->subject, &work->own[i], NULL);
        if (!skipped && (!rule->shown || (!matches && rule->matching == rule->checked)))
            rule->shown = &work->stacks[i].is;
        rule->checked += !skipped;
        rule->matching += matches && !skipped;
        rule->accepted += matches && work->own[i].accepted;
        if (matches && (first == none || (work->stacks[first].passed_over && !skipped)))
            first = i;
    }
    return first;
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

/* Adds the rules of one kind whose pipelines have these options. */
static void
routing_add_set(struct routing_work *work, bool otherwise, int set, struct routing_result *result)
{
    struct routing_rule *const end = result->rules + result->rule_count;
    routing_begin_set(work, set);
    for (struct routing_rule *rule = result->rules; rule < end; rule++)
        if (rule->rule->otherwise == otherwise && routing_option_set_of(work->conf, rule->rule) == set) {
            result->count = rules_add_picks(rule->rule, &work->subject, result->picks, result->count, &result->outcome);
            rule->selected = result->outcome.selected;
        }
    for (struct routing_rule *rule = result->rules; rule < end; rule++) {
        if (rule->rule->otherwise != otherwise || routing_option_set_of(work->conf, rule->rule) != set)
            continue;
        const size_t first = routing_count_matches(work, rule);
        /* an accepted stack that `stacks` does not select is no refusal */
        if (rule->accepted == 0 && first < work->subject.stack_count && !routing_has(result, rule->rule->pipeline))
            result->refusals[result->refusal_count++] = (struct routing_refusal){rule->rule->pipeline, first};
        if (!otherwise && rule->matching > 0 && (!result->first_match || rule < result->first_match))
            result->first_match = rule;
    }
}

/* ---------------------------------------------------------------------------------- result ---- */

int
routing_result_make(const struct conf *conf, const struct rules_series *series, const struct routing_stack *stacks,
                    size_t count, const struct conf_rule *only, struct routing_result *result)
{
    *result = (struct routing_result){0};
    const struct conf_rule *rules = routing_rules_of(conf, series, only, &result->of_title, &result->rule_count);
    struct routing_work work = {
        .conf = conf, .stacks = stacks, .subject = *series, .own = calloc(count + 1, sizeof *work.own)};
    result->picks = calloc(count * result->rule_count + 1, sizeof *result->picks);
    result->refusals = calloc(result->rule_count + 1, sizeof *result->refusals);
    result->rules = calloc(result->rule_count + 1, sizeof *result->rules);
    const bool able = work.own && result->picks && result->refusals && result->rules;
    work.subject.stacks = work.own;
    work.subject.stack_count = count;
    for (size_t i = 0; i < result->rule_count && able; i++)
        result->rules[i].rule = &rules[i];
    for (int set = 0; set < ROUTING_OPTION_SETS && able; set++)
        routing_add_set(&work, false, set, result);
    for (int set = 0; set < ROUTING_OPTION_SETS && able && !result->first_match; set++)
        routing_add_set(&work, true, set, result);
    free(work.own);
    if (!able)
        routing_result_release(result);
    return able ? 0 : -ENOMEM;
}

void
routing_result_release(struct routing_result *result)
{
    free(result->picks);
    free(result->refusals);
    free(result->rules);
    *result = (struct routing_result){0};
}

bool
routing_object_fits(const struct conf_segment *segment, const char *kind, const char *sender)
{
    const struct conf_object *wanted = &segment->object;
    return segment->method == CONF_OBJECT && strcmp(conf_object_kind_names[wanted->kind], kind) == 0 &&
           (!wanted->from_ae || strcmp(wanted->from_ae, sender) == 0);
}

const struct conf_companion *
routing_find_lacking(const struct conf *conf, const struct rules_series *series, const char *pipeline)
{
    const struct conf_companion *lacking = NULL;
    for (size_t i = 0; i < conf->rule_count; i++) {
        const struct conf_rule *rule = &conf->rules[i];
        size_t there = 0;
        if (rule->study_count == 0 || strcmp(rule->pipeline, pipeline) != 0 || !rules_match_series(rule, series))
            continue;
        while (there < rule->study_count && conditions_find_companion(&rule->study[there], series->study))
            there++;
        if (there == rule->study_count)
            return NULL;
        lacking = lacking ? lacking : &rule->study[there];
    }
    return lacking;
}
