/*
 * routing_result.h - the jobs that rules, or an operator, request for a series: pairs of a stack
 * and a pipeline.
 *
 * Pipelines accept different geometry, so the stacks of a series differ with a pipeline's options
 * (routing_options.h). A series is checked with the options of each pipeline that rules can name
 * for it. Each pipeline uses the stacks of its own options.
 */
#ifndef NOCTULE_SERVICE_DAEMON_JOBS_ROUTING_RESULT_H
#define NOCTULE_SERVICE_DAEMON_JOBS_ROUTING_RESULT_H

#include "service/common/routing/routing_rules.h"
#include "service/daemon/core.h"
#include "service/daemon/jobs/awaited.h"

struct routing_stack {
    struct rules_stack is;
    bool passed_over;
    const char *options; /* of the pipelines that this stack is for (routing_options_text) */
};

struct routing_result {
    struct rules_pick *picks;
    size_t count;
    struct rules_outcome outcome;

    /* Pipelines that a rule names and that accept no stack of the series. */
    struct routing_refusal {
        const char *pipeline;
        size_t stack; /* the first stack rejected for it */
    } * refusals;

    size_t refusal_count;
};

/* Returns a bit for each set of options to check: those of the pipelines that rules can name for
 * the series, or the most lenient set if no rule can match. */
unsigned routing_option_sets(const struct conf *conf, const struct queue_series *series);

/* Returns the number of the first rule that may match the series by facts that are known only
 * during its inspection (routing_conditions.h); 0: no rule. */
size_t routing_find_unknown(const struct conf *conf, const struct queue_series *series);

/*
 * Applies the rules and AE titles in force, or only this rule (NULL: all). If no stack was checked
 * with a pipeline's options, because it was configured later, the pipeline sees all stacks and the
 * job checks them. Returns 0 or -ENOMEM. The caller must release the result.
 */
int routing_result_make(const struct conf *conf, const struct queue_series *series,
                        const struct routing_stack *stacks, size_t count,
                        const struct conf_rule *only, struct routing_result *result);
void routing_result_release(struct routing_result *result);

/* One job to add. */
struct routing_job {
    const char *stack;
    const struct rules_pick *pick;
    bool again, dry_run; /* as in queue_new_job */
    const char *asked;   /* as in queue_new_job */
    int64_t id;          /* of the new job, or with -EEXIST of the existing one */
    /* The missing inputs of a new job, as code and text; "": it can start. */
    enum code lacks_code;
    char lacks[AWAITED_TEXT];
};

/* Adds a job in the open batch, as queue_add_job() does, and stops superseded jobs. */
int routing_add_job(struct core *core, const struct queue_series *series, struct routing_job *job);

#endif
