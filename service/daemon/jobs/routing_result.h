/*
 * routing_result.h - what the rules, or an operator, want done with a series: which stacks by which pipeline.
 *
 * Pipelines differ in what they take, and so in the stacks that a series makes for them
 * (routing_options.h). It is judged for all that rules can name for it, and each pipeline sees its own.
 */
#ifndef NOCTULE_SERVICE_DAEMON_JOBS_ROUTING_RESULT_H
#define NOCTULE_SERVICE_DAEMON_JOBS_ROUTING_RESULT_H

#include "service/common/routing/routing_rules.h"
#include "service/daemon/core.h"
#include "service/daemon/jobs/awaited.h"

struct wish_stack {
    struct rules_stack is;
    bool passed_over;
    const char *options; /* of the pipelines that it is of (routing_options_text) */
};

struct wish {
    struct rules_pick *picks;
    size_t count;
    struct rules_outcome outcome;

    /* Pipelines that a rule names and that take none of its stacks. */
    struct wish_refusal {
        const char *pipeline;
        size_t stack; /* the first that is refused for it */
    } * refusals;

    size_t refusal_count;
};

/* A bit for each judgement to ask for: of the pipelines that rules can name for the series; where no
 * rule does, of the most lenient. */
unsigned wish_judgements(const struct conf *conf, const struct queue_series *series);

/* The number of the first rule that may match the series by what is known only while it settles
 * (routing_conditions.h); 0: none. */
size_t wish_find_unknown(const struct conf *conf, const struct queue_series *series);

/*
 * Of the rules and titles in force; or of this rule alone, NULL: not. A pipeline whose judgement none
 * of the stacks is of (it was configured later) sees all of them, and the job finds out. -ENOMEM.
 */
int wish_make(const struct conf *conf, const struct queue_series *series,
              const struct wish_stack *stacks, size_t count, const struct conf_rule *only,
              struct wish *wish);
void wish_release(struct wish *wish);

/* One job of a wish. */
struct wish_job {
    const char *stack;
    const struct rules_pick *pick;
    bool again, dry_run; /* as in queue_new_job */
    const char *asked;   /* likewise */
    int64_t id;          /* of the job: the new one, or with -EEXIST the one that there is */
    /* Of a new one: what it waits for, and in words; "": nothing. */
    enum code lacks_code;
    char lacks[AWAITED_WORDS];
};

/* In the open batch, as queue_add_job does; stops those that give way. */
int wish_add_job(struct core *core, const struct queue_series *series, struct wish_job *job);

#endif
