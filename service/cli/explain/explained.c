#include "service/cli/explain/explained.h"

#include "base/array.h"
#include "service/pipeline/pipeline.h"
#include "service/pipeline/suv_series.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------------ geometry check ---- */

static int
explained_make_views(const struct explained_request *request, const struct rules_series *subject,
                     struct explained *explained)
{
    const struct conf *conf = request->conf;
    const struct headers *headers = &explained->files->headers;
    const unsigned wanted = routing_option_sets(conf, subject, request->pipeline ? &explained->only : NULL);
    struct routing_view_input input = {
        .instances = headers->instances,
        .paths = (const char *const *)explained->files->paths,
        .count = (int32_t)headers->count,
        .limits = request->pipeline ? pipeline_limits(request->pipeline) : routing_options_lenient_limits(conf),
        .attributes = explained->attributes = conditions_attributes(conf->rules, conf->rule_count)};
    if (!explained->attributes)
        return -ENOMEM;
    input.limits.allow_missing = request->accept_missing;
    explained->refusal = explained->files->refusal;
    for (int options = 0; options < ROUTING_OPTION_SETS; options++) {
        if (!(wanted >> options & 1))
            continue;
        struct routing_view *view = &explained->views[explained->view_count++];
        view->options = options;
        if (explained->refusal.code != CODE_NONE)
            continue;
        int rc = routing_view_make(&input, options, view, &explained->refusal);
        if (rc == -ENOMEM)
            return rc;
        if (rc)
            routing_view_release(view);
        else if (!request->accept_missing)
            input_sorted_refuse_damaged(explained->files, view->grouped);
    }
    return 0;
}

static int
explained_place_frames(struct explained *explained)
{
    const struct headers *headers = &explained->files->headers;
    const struct geometry_series *grouped = explained->views[0].grouped;
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
    for (int32_t s = 0; grouped && s < grouped->stack_count; s++)
        for (int32_t z = 0; z < grouped->stacks[s].plane_count; z++) {
            const struct geometry_plane *plane = &grouped->stacks[s].planes[z];
            explained->places[plane->instance][plane->frame] = (struct explained_place){s, z};
        }
    return 0;
}

/* --------------------------------------------------------------------------------- rules ---- */

/* Adds a condition. Without memory for it, its rule is NULL. */
static void
explained_add_condition(void *context, const struct rules_condition *condition)
{
    struct explained_rule *rule = context;
    struct explained_condition *grown =
        array_grow(rule->conditions, &rule->room, rule->condition_count + 1, sizeof *grown);
    if (!grown) {
        rule->is = NULL;
        return;
    }
    rule->conditions = grown;
    struct explained_condition *added = &grown[rule->condition_count++];
    snprintf(added->text, sizeof added->text, "%s", condition->text);
    snprintf(added->reason, sizeof added->reason, "%s", condition->reason);
    snprintf(added->note, sizeof added->note, "%s", condition->note);
}

/* Adds the reasons of the rules. */
static int
explained_check_rules(const struct rules_series *subject, struct explained *explained)
{
    struct routing_result *result = &explained->result;
    explained->rules = calloc(result->rule_count + 1, sizeof *explained->rules);
    for (size_t i = 0; explained->rules && i < result->rule_count; i++) {
        struct routing_rule *is = &result->rules[i];
        struct explained_rule *rule = &explained->rules[i];
        rule->is = is;
        rule->too_many = !is->rule->stacks && is->accepted > RULES_MAX_STACKS;
        if (is->rule->otherwise && result->first_match) {
            is->checked = 1;
            snprintf(rule->reasons, sizeof rule->reasons, "otherwise: rule %zu matches",
                     (size_t)(result->first_match - result->rules) + 1);
            continue;
        }
        if (is->matching < is->checked)
            rules_match(is->rule, subject, is->shown, rule->reasons);
        conditions_hold(is->rule, subject, is->shown, explained_add_condition, rule);
        if (!rule->is)
            return -ENOMEM;
    }
    return explained->rules ? 0 : -ENOMEM;
}

static int
explained_apply_rules(const struct explained_request *request, const struct rules_series *subject,
                      struct explained *explained)
{
    size_t count = 0;
    for (size_t v = 0; v < explained->view_count; v++)
        if (explained->views[v].grouped)
            count += (size_t)explained->views[v].grouped->stack_count;
    explained->stacks = calloc(count + 1, sizeof *explained->stacks);
    explained->geometry = calloc(count + 1, sizeof *explained->geometry);
    if (!explained->stacks || !explained->geometry)
        return -ENOMEM;
    count = 0;
    for (size_t v = 0; v < explained->view_count; v++) {
        const struct routing_view *view = &explained->views[v];
        for (int32_t i = 0; view->grouped && i < view->grouped->stack_count; i++) {
            const struct geometry_stack *stack = &view->grouped->stacks[i];
            explained->geometry[count] = stack;
            explained->stacks[count++] =
                (struct routing_stack){.is = {stack->name, stack->plane_count, stack->accepted, &view->facts[i]},
                                       .passed_over = stack->passed_over,
                                       .options = routing_options_text(view->options)};
        }
    }
    int rc = routing_result_make(request->conf, subject, explained->stacks, count,
                                 request->pipeline ? &explained->only : NULL, &explained->result);
    explained->title = explained->result.of_title.name;
    return rc ? rc : explained_check_rules(subject, explained);
}

/* ---------------------------------------------------------------------------------- jobs ---- */

/* Checks the stacks with the limits of one pipeline, as a worker does. Completeness is already
 * decided. */
static int
explained_check_jobs(struct explained *explained, const struct conf_pipeline *pipeline)
{
    const struct headers *headers = &explained->files->headers;
    struct geometry_limits limits = pipeline_limits(pipeline);
    struct geometry_series *grouped;
    struct error error;
    limits.allow_missing = true;
    int rc = geometry_group(headers->instances, (int32_t)headers->count, &limits, &grouped, &error);
    if (rc)
        return rc;
    for (size_t i = 0; i < explained->result.count && rc == 0; i++) {
        struct explained_job *job = &explained->jobs[i];
        int32_t s = 0;
        if (strcmp(job->pipeline, pipeline->name) != 0)
            continue;
        while (s < grouped->stack_count && strcmp(grouped->stacks[s].name, job->stack->name) != 0)
            s++;
        if (s == grouped->stack_count)
            error_set(&job->geometry, 0, CODE_STACK_NOT_FOUND,
                      "with the pipeline's own limits the series has no such stack.");
        else if (!grouped->stacks[s].accepted)
            job->geometry = grouped->stacks[s].error;
        else { /* the values must be convertible to the unit of the pipeline */
            struct suv_series suv;
            rc = suv_series_make(pipeline, headers, &grouped->stacks[s], &suv, &job->geometry) == -ENOMEM ? -ENOMEM : 0;
            suv_series_release(&suv);
        }
    }
    geometry_series_free(grouped);
    return rc;
}

static void
explained_list_takers(const struct conf *conf, const struct conf_pipeline *pipeline, char text[CONDITION_TEXT])
{
    size_t used = 0;
    char takes[CONF_TAKES];
    for (size_t i = 0; i < pipeline->deliver_count && used < CONDITION_TEXT; i++) {
        const struct conf_destination *destination = conf_find_destination(conf, pipeline->deliver[i]);
        if (destination && destination->takes) {
            conf_takes(destination, takes);
            used += (size_t)snprintf(text + used, CONDITION_TEXT - used, "%s%s takes%.*s", used ? ", " : "",
                                     destination->name, (int)strlen(takes) - 1, takes);
        }
    }
}

static int
explained_add_jobs(const struct explained_request *request, const struct rules_series *subject,
                   struct explained *explained)
{
    const struct rules_pick *picks = explained->result.picks;
    const size_t count = explained->result.count;
    int rc = 0;
    explained->jobs = calloc(count + 1, sizeof *explained->jobs);
    if (!explained->jobs)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++) {
        const struct conf_pipeline *pipeline = conf_find_pipeline(request->conf, picks[i].pipeline);
        const struct conf_companion *lacking =
            picks[i].waits && subject->study ? routing_find_lacking(request->conf, subject, picks[i].pipeline) : NULL;
        explained->jobs[i] = (struct explained_job){.pipeline = picks[i].pipeline,
                                                    .priority = picks[i].priority,
                                                    .window = pipeline->window,
                                                    .done_by = pipeline->done_by,
                                                    .stack = explained->geometry[picks[i].stack]};
        char *programs = explained->jobs[i].programs;
        for (size_t k = 0, used = 0; k < request->conf->program_count && used < CONDITION_TEXT; k++)
            if (conf_pipeline_names_program(pipeline, request->conf->programs[k].name))
                used += (size_t)snprintf(programs + used, CONDITION_TEXT - used, "%s%s", used ? ", " : "",
                                         request->conf->programs[k].name);
        explained_list_takers(request->conf, pipeline, explained->jobs[i].takers);
        if (lacking)
            conditions_describe_companion(lacking, explained->jobs[i].lacks);
    }
    for (size_t i = 0; i < count && rc == 0; i++) {
        size_t first = 0;
        while (strcmp(picks[first].pipeline, picks[i].pipeline) != 0)
            first++;
        if (first == i)
            rc = explained_check_jobs(explained, conf_find_pipeline(request->conf, picks[i].pipeline));
    }
    return rc;
}

/* -------------------------------------------------------------------------- entry points ---- */

int
explained_make(const struct explained_request *request, const struct sorted_series *series, struct explained *explained)
{
    const struct dicom_instance *first = series->headers.instances[0];
    const struct rules_series subject = {.modality = first->modality,
                                         .body_part = first->body_part,
                                         .description = first->series_description,
                                         .inbox = request->inbox,
                                         .called_ae = request->called_ae,
                                         .sender = request->sender,
                                         .study = request->study};
    *explained = (struct explained){.files = series, .named = request->named, .pipeline = request->pipeline};
    if (request->pipeline)
        explained->only.pipeline = request->pipeline->name;
    int rc = explained_make_views(request, &subject, explained);
    if (rc == 0)
        rc = explained_place_frames(explained);
    if (rc == 0)
        rc = explained_apply_rules(request, &subject, explained);
    if (rc == 0)
        rc = explained_add_jobs(request, &subject, explained);
    if (rc)
        explained_free(explained);
    return rc;
}

void
explained_free(struct explained *explained)
{
    for (size_t i = 0; explained->places && i < explained->files->headers.count; i++)
        free(explained->places[i]);
    for (size_t i = 0; i < explained->view_count; i++)
        routing_view_release(&explained->views[i]);
    for (size_t i = 0; explained->rules && i < explained->result.rule_count; i++)
        free(explained->rules[i].conditions);
    routing_result_release(&explained->result);
    free(explained->places);
    free(explained->stacks);
    free(explained->geometry);
    free(explained->rules);
    free(explained->jobs);
    free(explained->attributes);
    *explained = (struct explained){0};
}
