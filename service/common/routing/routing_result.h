/*
 * routing_result.h - the jobs that rules, or an operator, request for a series: pairs of a stack
 * and a pipeline. The daemon makes them, and `noctule explain` shows them. Pure: no I/O, no clock.
 *
 * Pipelines accept different geometry, so the stacks of a series differ with a pipeline's options
 * (routing_options.h). A series is checked with the options of each pipeline that rules can name
 * for it. Each pipeline uses the stacks of its own options.
 */
#ifndef NOCTULE_SERVICE_COMMON_ROUTING_ROUTING_RESULT_H
#define NOCTULE_SERVICE_COMMON_ROUTING_ROUTING_RESULT_H

#include "service/common/routing/routing_rules.h"

struct routing_stack {
    struct rules_stack is;
    bool passed_over;
    const char *options; /* of the pipelines that this stack is for (routing_options_text) */
};

/* The result of one rule for the stacks of its pipeline's options that are not skipped. */
struct routing_rule {
    const struct conf_rule *rule;
    size_t checked, matching;        /* numbers of stacks; 0 and 0 if `otherwise` did not apply */
    size_t accepted;                 /* of the matching ones */
    size_t selected;                 /* of the accepted ones, by the rule's `stacks` */
    const struct rules_stack *shown; /* the first that does not match, else the first; or NULL */
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
    struct routing_rule *rules; /* all that apply, in their order */
    size_t rule_count;
    const struct routing_rule *first_match; /* a rule without `otherwise`, or NULL */
    struct conf_rule of_title;              /* the rule, if the AE title has a pipeline */
};

/* Each function applies the rules and AE titles in force, or `only` this rule (NULL: all). */

/* Returns a bit for each set of options to check: those of the pipelines that rules can name for
 * the series, or the most lenient set if no rule can match. */
unsigned routing_option_sets(const struct conf *conf, const struct rules_series *series, const struct conf_rule *only);

/* Returns the number of the first rule that may match the series by facts that are known only
 * during its inspection (routing_conditions.h); 0: no rule. */
size_t routing_find_unknown(const struct conf *conf, const struct rules_series *series);

/*
 * Makes the result for a series with these stacks. If no stack was checked with a pipeline's
 * options, because it was configured later, the pipeline sees all stacks and the job checks them.
 * The result borrows all arguments. Returns 0 or -ENOMEM. The caller must release the result, and
 * must not copy it.
 */
int routing_result_make(const struct conf *conf, const struct rules_series *series, const struct routing_stack *stacks,
                        size_t count, const struct conf_rule *only, struct routing_result *result);
void routing_result_release(struct routing_result *result);

/* Returns whether a segment wants annotation objects of this kind and sender. An unknown sender ("")
 * is not one that the configuration gives. */
bool routing_object_fits(const struct conf_segment *segment, const char *kind, const char *sender);

/* Returns the first series that a job waits for: one that a rule for the pipeline requires
 * (`study`) and that series->study lacks. Returns NULL if one of these rules has all its series. */
const struct conf_companion *routing_find_lacking(const struct conf *conf, const struct rules_series *series,
                                                  const char *pipeline);

#endif
