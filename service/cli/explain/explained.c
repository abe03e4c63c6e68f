/* explained.c - see explained.h. */
#include "service/cli/explain/explained.h"

#include "base/array.h"
#include "service/common/routing/routing_options.h"
#include "service/pipeline/pipeline.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------------ geometry check ---- */

static struct rules_series
explained_subject(const struct explained_request *request, const struct explained *explained)
{
    const struct dicom_instance *first = explained->files->headers.instances[0];
    return (struct rules_series){.modality = first->modality,
                                 .body_part = first->body_part,
                                 .description = first->series_description,
                                 .inbox = request->inbox,
                                 .called_ae = request->called_ae,
                                 .sender = request->sender,
                                 .study = request->study};
}

static int
explained_options_of(const struct conf *conf, const char *pipeline)
{
    return routing_options_of(conf_find_pipeline(conf, pipeline));
}

/* Returns a bit for each set of routing options in use, as the daemon's inspection computes it. */
static unsigned
explained_option_sets(const struct explained_request *request, const struct explained *explained)
{
    const struct rules_series subject = explained_subject(request, explained);
    const struct conf *conf = request->conf;
    unsigned wanted = 0;
    for (size_t i = 0; i < explained->rule_count; i++)
        if (rules_match_series(explained->rules[i].rule, &subject))
            wanted |= 1u << explained_options_of(conf, explained->rules[i].rule->pipeline);
    return wanted ? wanted : 1u << routing_options_lenient(conf);
}

static struct geometry_limits
explained_limits(const struct explained_request *request, int judgement)
{
    struct geometry_limits limits = request->pipeline
                                        ? pipeline_limits(request->pipeline)
                                        : routing_options_lenient_limits(request->conf);
    routing_options_set_limits(judgement, &limits);
    limits.allow_missing = request->accept_missing;
    return limits;
}

static int
explained_group(const struct explained *explained, const struct geometry_limits *limits,
                struct geometry_series **grouped, struct error *error)
{
    const struct headers *headers = &explained->files->headers;
    return geometry_group(headers->instances, (int32_t)headers->count, limits, grouped, error);
}

static int
explained_add_view(const struct explained_request *request, struct explained *explained,
                   int judgement)
{
    struct explained_view *view = &explained->views[explained->view_count++];
    const struct geometry_limits limits = explained_limits(request, judgement);
    view->judgement = judgement;
    if (explained->refusal.code != CODE_NONE)
        return 0;
    int rc = explained_group(explained, &limits, &view->grouped, &explained->refusal);
    if (rc == 0 && !request->accept_missing)
        input_sorted_refuse_damaged(explained->files, view->grouped);
    return rc == -ENOMEM ? rc : 0;
}

static int
explained_group_all(const struct explained_request *request, struct explained *explained)
{
    const unsigned wanted = explained_option_sets(request, explained);
    int rc = 0;
    explained->refusal = explained->files->refusal;
    for (int judgement = 0; judgement < ROUTING_OPTION_SETS && rc == 0; judgement++)
        if (wanted >> judgement & 1)
            rc = explained_add_view(request, explained, judgement);
    return rc;
}

static void
places_fill(struct explained *explained)
{
    const struct geometry_series *grouped = explained->views[0].grouped;
    for (int32_t s = 0; grouped && s < grouped->stack_count; s++) {
        const struct geometry_stack *stack = &grouped->stacks[s];
        for (int32_t z = 0; z < stack->plane_count; z++)
            explained->places[stack->planes[z].instance][stack->planes[z].frame] =
                (struct explained_place){s, z};
    }
}

static int
explained_place_frames(struct explained *explained)
{
    const struct headers *headers = &explained->files->headers;
    explained->places = calloc(headers->count + 1, sizeof *explained->places);
    if (!explained->places)
        return -ENOMEM;
    for (size_t i = 0; i < headers->count; i++) {
        const int32_t frames = headers->instances[i]->frame_count;
        struct explained_place *places = calloc((size_t)frames + 1, sizeof *places);
        if (!places)
            return -ENOMEM;
        for (int32_t f = 0; f < frames; f++)
            places[f].stack = -1;
        explained->places[i] = places;
    }
    places_fill(explained);
    return 0;
}

/* --------------------------------------------------------------------------------- rules ---- */

/* The stacks of a view in the form of the rules, with buffers for the rules and their results. */
struct rule_check {
    const struct geometry_series *grouped;
    struct rules_series series;
    struct rules_stack *stacks;
    struct rules_facts *facts;  /* one per stack */
    char *attributes, **values; /* requested attributes, and their values per stack */
    struct rules_pick *picks;
    struct conf_rule *rules;
    size_t rule_count;
};

static void
rule_check_release(struct rule_check *check)
{
    for (size_t i = 0; check->values && i < check->series.stack_count; i++)
        free(check->values[i]);
    free(check->values);
    free(check->attributes);
    free(check->facts);
    free(check->stacks);
    free(check->picks);
    free(check->rules);
}

/* Fills in the facts of a stack as the daemon's inspection does. */
static void
rule_check_add_stack(struct rule_check *check, size_t i)
{
    const struct geometry_stack *stack = &check->grouped->stacks[i];
    struct rules_facts *facts = &check->facts[i];
    *facts = conditions_facts(stack->normal, stack->spacing[2], stack->plane_count);
    if (!stack->has_geometry)
        facts->orientation = CONF_ANY_ORIENTATION;
    facts->asked = check->attributes;
    facts->values = check->values[i] ? check->values[i] : "";
    check->stacks[i] = (struct rules_stack){.name = stack->name,
                                            .planes = stack->plane_count,
                                            .accepted = stack->accepted,
                                            .facts = facts};
}

static int
rule_check_open(const struct explained_request *request, const struct explained *explained,
                const struct explained_view *view, struct rule_check *check)
{
    const struct geometry_series *grouped = view->grouped;
    const size_t count = grouped ? (size_t)grouped->stack_count : 0;
    *check = (struct rule_check){
        .grouped = grouped,
        .series = explained_subject(request, explained),
        .stacks = calloc(count + 1, sizeof *check->stacks),
        .facts = calloc(count + 1, sizeof *check->facts),
        .attributes = conditions_attributes(request->conf->rules, request->conf->rule_count),
        .values = calloc(count + 1, sizeof *check->values),
        .picks = calloc(count * (explained->rule_count + 1) + 1, sizeof *check->picks),
        .rules = calloc(explained->rule_count + 1, sizeof *check->rules)};
    if (!check->stacks || !check->facts || !check->attributes || !check->values || !check->picks ||
        !check->rules) {
        rule_check_release(check);
        return -ENOMEM;
    }
    check->series.stacks = check->stacks;
    check->series.stack_count = count;
    struct error error; /* an unreadable file leaves its values unknown */
    if (grouped)
        routing_read_stack_values(grouped, (const char *const *)explained->files->paths,
                                  check->attributes, check->values, &error);
    for (size_t i = 0; i < count; i++)
        rule_check_add_stack(check, i);
    return 0;
}

/* Collects the conditions of a rule. `full` is set without memory for one. */
struct condition_list {
    struct explained_rule *answer;
    size_t room;
    bool full;
};

static void
condition_list_add(void *context, const struct rules_condition *condition)
{
    struct condition_list *list = context;
    struct explained_rule *answer = list->answer;
    struct explained_condition *grown =
        array_grow(answer->conditions, &list->room, answer->condition_count + 1, sizeof *grown);
    list->full |= !grown;
    if (!grown)
        return;
    answer->conditions = grown;
    struct explained_condition *added = &grown[answer->condition_count++];
    snprintf(added->text, sizeof added->text, "%s", condition->text);
    snprintf(added->reason, sizeof added->reason, "%s", condition->reason);
    snprintf(added->note, sizeof added->note, "%s", condition->note);
}

/* Returns 0 or -ENOMEM. */
static int
explained_apply_rule(struct rule_check *check, struct explained_rule *answer)
{
    char reasons[RULES_REASONS];
    const struct rules_stack *shown = NULL;
    for (size_t i = 0; i < check->series.stack_count; i++) {
        if (check->grouped->stacks[i].passed_over)
            continue;
        answer->checked++;
        shown = shown ? shown : &check->stacks[i];
        if (rules_match(answer->rule, &check->series, &check->stacks[i], reasons)) {
            answer->matching++;
            answer->accepted += check->stacks[i].accepted;
        } else if (!answer->reasons[0]) {
            memcpy(answer->reasons, reasons, sizeof reasons);
            shown = &check->stacks[i];
        }
    }
    struct condition_list list = {.answer = answer};
    conditions_hold(answer->rule, &check->series, shown, condition_list_add, &list);
    struct rules_outcome outcome;
    answer->wanted = rules_pick(answer->rule, 1, &check->series, check->picks, &outcome);
    answer->too_many = outcome.too_many > 0;
    return list.full ? -ENOMEM : 0;
}

static void
explained_job_check(struct explained_job *job, const struct geometry_series *grouped)
{
    for (int32_t i = 0; i < grouped->stack_count; i++) {
        const struct geometry_stack *stack = &grouped->stacks[i];
        if (strcmp(stack->name, job->stack->name) != 0)
            continue;
        if (!stack->accepted)
            job->geometry = stack->error;
        return;
    }
    error_set(&job->geometry, 0, CODE_STACK_NOT_FOUND,
              "with the pipeline's own limits the series has no such stack.");
}

/* Checks the stacks with the limits of one pipeline, as a worker does. Completeness is already
 * decided. */
static int
explained_check_jobs(const struct explained_request *request, struct explained *explained,
                     const char *name)
{
    struct geometry_limits limits = pipeline_limits(conf_find_pipeline(request->conf, name));
    limits.allow_missing = true;
    struct geometry_series *grouped;
    struct error error;
    int rc = explained_group(explained, &limits, &grouped, &error);
    if (rc)
        return rc;
    for (size_t i = 0; i < explained->job_count; i++)
        if (strcmp(explained->jobs[i].pipeline, name) == 0)
            explained_job_check(&explained->jobs[i], grouped);
    geometry_series_free(grouped);
    return 0;
}

/* Finds the series of the study that a job waits for, as the daemon does
 * (service/daemon/jobs/awaited.c). A job does not wait once one of its rules has all its series. */
static void
job_await_study(const struct explained_request *request, const struct rules_series *series,
                struct explained_job *job)
{
    for (size_t i = 0; i < request->conf->rule_count && request->study; i++) {
        const struct conf_rule *rule = &request->conf->rules[i];
        size_t there = 0;
        if (rule->study_count == 0 || strcmp(rule->pipeline, job->pipeline) != 0 ||
            !rules_match_series(rule, series))
            continue;
        while (there < rule->study_count &&
               conditions_find_companion(&rule->study[there], request->study))
            there++;
        if (there == rule->study_count) {
            job->lacks[0] = '\0';
            return;
        }
        if (!job->lacks[0])
            conditions_describe_companion(&rule->study[there], job->lacks);
    }
}

static int
explained_add_jobs(const struct explained_request *request, struct explained *explained,
                   const struct rule_check *check, size_t count)
{
    const struct rules_pick *picks = check->picks;
    const size_t total = explained->job_count + count;
    struct explained_job *jobs = realloc(explained->jobs, (total + 1) * sizeof *jobs);
    if (!jobs)
        return -ENOMEM;
    explained->jobs = jobs;
    for (size_t i = 0; i < count; i++) {
        const struct conf_pipeline *pipeline = conf_find_pipeline(request->conf, picks[i].pipeline);
        jobs[explained->job_count++] =
            (struct explained_job){.pipeline = picks[i].pipeline,
                                   .priority = picks[i].priority,
                                   .window = pipeline ? pipeline->window : NULL,
                                   .done_by = pipeline ? pipeline->done_by : NULL,
                                   .stack = &check->grouped->stacks[picks[i].stack]};
        if (picks[i].waits)
            job_await_study(request, &check->series, &jobs[explained->job_count - 1]);
    }
    int rc = 0;
    for (size_t i = 0; i < count && rc == 0; i++) {
        size_t first = 0;
        while (strcmp(picks[first].pipeline, picks[i].pipeline) != 0)
            first++;
        if (first == i)
            rc = explained_check_jobs(request, explained, picks[i].pipeline);
    }
    return rc;
}

/* Selects the rules: the given pipeline, else that of the AE title, else the configured rules. */
static int
explained_find_rules(const struct explained_request *request, struct explained *explained)
{
    const struct conf *conf = request->conf;
    const struct conf_title *title = conf_find_title(conf, request->called_ae);
    if (request->pipeline) {
        explained->own = (struct conf_rule){.pipeline = request->pipeline->name};
    } else if (title && title->pipeline) {
        explained->own = (struct conf_rule){.pipeline = title->pipeline, .stacks = title->stacks};
        explained->title = title->ae_title;
    }
    explained->rule_count = explained->own.pipeline ? 1 : conf->rule_count;
    explained->rules = calloc(explained->rule_count + 1, sizeof *explained->rules);
    if (!explained->rules)
        return -ENOMEM;
    for (size_t i = 0; i < explained->rule_count; i++)
        explained->rules[i].rule = explained->own.pipeline ? &explained->own : &conf->rules[i];
    return 0;
}

/* Returns the view of a rule's pipeline, or the first view if the rule cannot match the series. */
static const struct explained_view *
view_of_rule(const struct explained_request *request, const struct explained *explained,
             const struct conf_rule *rule)
{
    const int judgement = explained_options_of(request->conf, rule->pipeline);
    for (size_t i = 0; i < explained->view_count; i++)
        if (explained->views[i].judgement == judgement)
            return &explained->views[i];
    return &explained->views[0];
}

static int
explained_apply_view(const struct explained_request *request, struct explained *explained,
                     const struct explained_view *view, bool otherwise)
{
    struct rule_check check;
    struct rules_outcome outcome;
    int rc = rule_check_open(request, explained, view, &check);
    if (rc)
        return rc;
    for (size_t i = 0; i < explained->rule_count && rc == 0; i++) {
        struct explained_rule *answer = &explained->rules[i];
        if (answer->rule->otherwise != otherwise ||
            view_of_rule(request, explained, answer->rule) != view)
            continue;
        rc = explained_apply_rule(&check, answer);
        check.rules[check.rule_count++] = *answer->rule;
    }
    const size_t count =
        rules_pick(check.rules, check.rule_count, &check.series, check.picks, &outcome);
    if (rc == 0)
        rc = explained_add_jobs(request, explained, &check, count);
    rule_check_release(&check);
    return rc;
}

/* Rules with `otherwise` apply last, and only if no other rule matches. */
static int
explained_apply_rules(const struct explained_request *request, struct explained *explained)
{
    const struct explained_rule *fits = NULL;
    int rc = 0;
    for (size_t i = 0; i < explained->view_count && rc == 0; i++)
        rc = explained_apply_view(request, explained, &explained->views[i], false);
    for (size_t i = 0; i < explained->rule_count && !fits; i++)
        if (explained->rules[i].matching > 0)
            fits = &explained->rules[i];
    for (size_t i = 0; i < explained->view_count && rc == 0 && !fits; i++)
        rc = explained_apply_view(request, explained, &explained->views[i], true);
    for (size_t i = 0; i < explained->rule_count && fits; i++) {
        struct explained_rule *answer = &explained->rules[i];
        if (!answer->rule->otherwise)
            continue;
        answer->checked = 1;
        snprintf(answer->reasons, sizeof answer->reasons, "otherwise: rule %zu matches",
                 (size_t)(fits - explained->rules) + 1);
    }
    return rc;
}

/* -------------------------------------------------------------------------- entry points ---- */

int
explained_make(const struct explained_request *request, const struct sorted_series *series,
               struct explained *explained)
{
    *explained = (struct explained){.files = series, .named = request->named};
    int rc = explained_find_rules(request, explained);
    if (rc == 0)
        rc = explained_group_all(request, explained);
    if (rc == 0)
        rc = explained_place_frames(explained);
    if (rc == 0)
        rc = explained_apply_rules(request, explained);
    if (rc)
        explained_free(explained);
    return rc;
}

bool
explained_is_named(const struct explained *explained, size_t i)
{
    return input_collect_has(explained->named, explained->files->paths[i]);
}

void
explained_free(struct explained *explained)
{
    for (size_t i = 0; explained->places && i < explained->files->headers.count; i++)
        free(explained->places[i]);
    free(explained->places);
    for (size_t i = 0; i < explained->view_count; i++)
        geometry_series_free(explained->views[i].grouped);
    for (size_t i = 0; explained->rules && i < explained->rule_count; i++)
        free(explained->rules[i].conditions);
    free(explained->rules);
    free(explained->jobs);
    *explained = (struct explained){0};
}
