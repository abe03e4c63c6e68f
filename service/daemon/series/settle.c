/*
 * settle.c - decides the outcome of an inspected series: SETTLED with the jobs of its rules or AE
 * title, or REFUSED. Declared in series.h.
 */
#include "service/daemon/series/series.h"

#include "base/limits.h"
#include "base/text.h"
#include "service/common/clock.h"
#include "service/common/log.h"
#include "service/daemon/jobs/awaited.h"
#include "service/daemon/jobs/jobs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ----------------------------------------------------------------------------------- jobs ---- */

/* The stacks as checked, and one per name: a name that one set of options accepts is accepted. */
struct settle_stacks {
    const struct queue_stack *checked;
    const struct rules_facts *facts; /* of the checked stacks; NULL: unknown */
    size_t count;
    bool any_accepted;
    struct queue_stack *merged;
    size_t merged_count;
};

static int
settle_route(struct core *core, const struct queue_series *series, const struct settle_stacks *stacks,
             struct routing_result *result)
{
    const size_t count = stacks->count;
    const struct queue_stack *checked = stacks->checked;
    struct routing_stack *inputs = calloc(count + 1, sizeof *inputs);
    if (!inputs)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++)
        inputs[i] = (struct routing_stack){.is = {.name = checked[i].name,
                                                  .planes = checked[i].planes,
                                                  .accepted = checked[i].accepted,
                                                  .facts = stacks->facts ? &stacks->facts[i] : NULL},
                                           .passed_over = checked[i].passed_over,
                                           .options = checked[i].options};
    const struct rules_series subject = routing_subject(core->conf, series);
    int error = routing_result_make(core->conf, &subject, inputs, count, NULL, result);
    free(inputs);
    return error;
}

/* Flags an accepted series without a job: a user may expect a result. */
static int
settle_note_no_rule(struct core *core, const struct queue_series *series, const struct rules_outcome *outcome)
{
    char message[256];
    snprintf(message, sizeof message, "%s (revision %d, modality %s, body part %s): noctule explain shows the reasons.",
             outcome->matched ? "No rule selects a volume of it, by its `stacks`" : "No rule matches", series->revision,
             series->modality ? series->modality : "-",
             series->body_part && *series->body_part ? series->body_part : "-");
    log_warn("series.no_rule", LOG_STR("series", series->series_uid), LOG_INT("revision", series->revision));
    return queue_flag_series(core->queue, series->id, CODE_NO_RULE, message, clock_unix_ms());
}

/* Flags a series of which a rule selects more volumes than plausible. */
static int
settle_note_too_many(struct core *core, const struct queue_series *series, const struct rules_outcome *outcome)
{
    char message[320];
    snprintf(message, sizeof message,
             "The series has %zu volumes for pipeline %s: select volumes with `stacks` in the rule or "
             "the AE title, reload, and run noctule submit --rules.",
             outcome->too_many, outcome->pipeline);
    log_warn("series.too_many_stacks", LOG_STR("series", series->series_uid), LOG_INT("revision", series->revision),
             LOG_INT("stacks", outcome->too_many), LOG_STR("pipeline", outcome->pipeline));
    return queue_flag_series(core->queue, series->id, CODE_TOO_MANY_STACKS, message, clock_unix_ms());
}

/* Flags a series for which a rule could not be decided. Other rules have made their jobs. */
static int
settle_note_undecided(struct core *core, const struct queue_series *series, const struct rules_outcome *outcome)
{
    char message[400];
    snprintf(message, sizeof message,
             "A rule for pipeline %s cannot be decided: %s is longer than %d bytes, or no text of "
             "its character set. To run the pipeline: noctule submit --pipeline %s %s.",
             outcome->undecided_pipeline, outcome->undecided, LIMIT_RULE_BYTES, outcome->undecided_pipeline,
             series->series_uid);
    log_warn("series.rule_undecided", LOG_STR("series", series->series_uid), LOG_INT("revision", series->revision),
             LOG_STR("attribute", outcome->undecided), LOG_STR("pipeline", outcome->undecided_pipeline));
    return queue_flag_series(core->queue, series->id, CODE_RULE_UNDECIDED, message, clock_unix_ms());
}

/* Flags a settled series that this pipeline rejects, to explain the missing result. Skipped images
 * are only in the evidence. */
static int
settle_note_refusal(struct core *core, const struct queue_series *series, const struct queue_stack *stack,
                    const char *pipeline)
{
    char message[700];
    if (stack->passed_over)
        return 0;
    snprintf(message, sizeof message, "Pipeline %s makes no job of it: %s", pipeline, stack->message);
    log_warn("series.no_job", LOG_STR("series", series->series_uid), LOG_INT("revision", series->revision),
             LOG_STR("pipeline", pipeline), LOG_STR("code", code_name(stack->code)));
    return queue_flag_series(core->queue, series->id, stack->code, message, clock_unix_ms());
}

static int
settle_add_jobs(struct core *core, const struct queue_series *series, const struct queue_stack *stacks,
                const struct routing_result *result)
{
    int error = 0;
    for (size_t i = 0; i < result->count && !error; i++) {
        struct routing_job job = {.stack = stacks[result->picks[i].stack].name, .pick = &result->picks[i]};
        error = routing_add_job(core, series, &job);
        error = error == -EEXIST ? 0 : error;
    }
    return error;
}

/* --------------------------------------------------------------------------------- outcome ---- */

/* Writes the series with its jobs in the open batch. */
static int
settle_write(struct core *core, const struct queue_series *series, const char *evidence,
             const struct settle_stacks *stacks, const struct routing_result *result)
{
    const bool accepted = stacks->any_accepted;
    int error = queue_settle(core->queue, series->id, series->revision, evidence, stacks->merged, stacks->merged_count,
                             clock_unix_ms());
    if (!error)
        error = settle_add_jobs(core, series, stacks->checked, result);
    if (!error && accepted)
        error = awaited_series_completed(core, series->id);
    for (size_t i = 0; i < result->refusal_count && accepted && !error; i++)
        error = settle_note_refusal(core, series, &stacks->checked[result->refusals[i].stack],
                                    result->refusals[i].pipeline);
    if (!error && result->outcome.too_many)
        return settle_note_too_many(core, series, &result->outcome);
    if (!error && accepted && result->outcome.undecided)
        return settle_note_undecided(core, series, &result->outcome);
    if (!error && result->count == 0 && accepted)
        error = settle_note_no_rule(core, series, &result->outcome);
    return error;
}

static int
settle_checked(struct core *core, const struct queue_series *series, char *evidence, const struct settle_stacks *stacks)
{
    struct routing_result result;
    const bool accepted = stacks->any_accepted;
    int error = settle_route(core, series, stacks, &result);
    if (error)
        return error;
    series_add_geometry(evidence, stacks->merged, stacks->merged_count);
    const struct rules_outcome *outcome = &result.outcome;
    if (accepted && outcome->too_many)
        series_add_evidence(evidence, "; %zu volumes, and `stacks` does not select any", outcome->too_many);
    else if (accepted && outcome->undecided)
        series_add_evidence(evidence, "; %s cannot be compared for pipeline %s", outcome->undecided,
                            outcome->undecided_pipeline);
    else if (accepted && result.count == 0)
        series_add_evidence(evidence, outcome->matched ? "; `stacks` of the rules names none" : "; no rule matches");
    for (size_t i = 0; i < result.refusal_count && accepted; i++)
        series_add_evidence(evidence, "; none for pipeline %s (%s)", result.refusals[i].pipeline,
                            code_name(stacks->checked[result.refusals[i].stack].code));
    error = settle_write(core, series, evidence, stacks, &result);
    if (!error)
        log_info(accepted ? "series.settled" : "series.refused", LOG_STR("series", series->series_uid),
                 LOG_INT("revision", series->revision), LOG_INT("stacks", stacks->merged_count),
                 LOG_INT("jobs", result.count), LOG_STR("evidence", evidence));
    routing_result_release(&result);
    return error;
}

/* Orders by name, accepted stacks first. */
static int
compare_merged(const void *left, const void *right)
{
    const struct queue_stack *a = left, *b = right;
    int order = strverscmp(a->name, b->name);
    if (!order)
        order = b->accepted - a->accepted;
    return order ? order : strcmp(a->options, b->options);
}

static int
settle_merged(struct core *core, const struct queue_series *series, char *evidence, const struct queue_stack *checked,
              const struct rules_facts *facts, size_t count)
{
    struct settle_stacks stacks = {
        .checked = checked, .facts = facts, .count = count, .merged = calloc(count + 1, sizeof *checked)};
    if (!stacks.merged)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++) {
        stacks.merged[i] = checked[i];
        stacks.any_accepted |= checked[i].accepted;
    }
    qsort(stacks.merged, count, sizeof *stacks.merged, compare_merged);
    for (size_t i = 0; i < count; i++)
        if (i == 0 || strcmp(stacks.merged[i].name, stacks.merged[stacks.merged_count - 1].name) != 0)
            stacks.merged[stacks.merged_count++] = stacks.merged[i];
    int error = settle_checked(core, series, evidence, &stacks);
    free(stacks.merged);
    return error;
}

int
settle_series(struct core *core, const struct queue_series *series, char *evidence, struct queue_stack *stacks,
              const struct rules_facts *facts, size_t count)
{
    struct queue_lacking lacking;
    char message[1024];
    int error = queue_find_lacking(core->queue, series->series_uid, &lacking);
    if (error)
        return error;
    if (lacking.count > 0)
        series_add_evidence(evidence, "; %lld damaged or not whole", (long long)lacking.count);
    if (*series->missing_accepted_by)
        series_add_evidence(evidence, "; taken as it is by %s", series->missing_accepted_by);
    else if (lacking.count > 0) {
        const char *them = lacking.count == 1 ? "it" : "them";
        snprintf(message, sizeof message,
                 "%lld instance%s of the series arrived damaged or incomplete, and no good file of "
                 "%s since%s: %s, quarantined file %lld (%s). %.512s Send %s again, or process the "
                 "series without %s by noctule complete --accept-missing.",
                 (long long)lacking.count, lacking.count == 1 ? "" : "s", them, lacking.count == 1 ? "" : "; the first",
                 lacking.sop_instance_uid, (long long)lacking.id, lacking.code, lacking.message, them, them);
        /* A known missing instance takes precedence over the headers. Other refusals stay. */
        for (size_t i = 0; i < count; i++) {
            if (!stacks[i].accepted && stacks[i].code != CODE_INCOMPLETE_SERIES)
                continue;
            stacks[i].accepted = false;
            stacks[i].code = CODE_INCOMPLETE_SERIES;
            stacks[i].message = message;
            stacks[i].file_a = lacking.path;
            stacks[i].file_b = "";
        }
    }
    error = settle_merged(core, series, evidence, stacks, facts, count);
    queue_lacking_clear(&lacking);
    return error;
}
