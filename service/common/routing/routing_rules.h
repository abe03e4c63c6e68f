/*
 * routing_rules.h - which pipelines do the volumes of a series get? Pure: no I/O, no clock.
 *
 * A rule matches a stack when each of its conditions does (routing_conditions.h). Of the accepted stacks that match it, a
 * rule takes those that its `stacks` says. Every rule counts; a pipeline named by several runs once
 * on a stack, with the largest priority. The caller asks a rule with `otherwise` only where no other rule fits the series.
 * A series that was sent to an AE title with a pipeline of
 * its own gets that one, and no rule is asked.
 */
#ifndef NOCTULE_SERVICE_COMMON_ROUTING_ROUTING_RULES_H
#define NOCTULE_SERVICE_COMMON_ROUTING_ROUTING_RULES_H

#include "service/common/routing/routing_conditions.h"

#include <stddef.h>
#include <stdint.h>

#define RULES_MAX_STACKS 8 /* that a rule takes without saying which */

struct rules_pick {
    size_t stack;         /* its place in the series */
    const char *pipeline; /* points into the rules */
    int priority;
    bool waits; /* for other series of the study: each rule that asks for it does */
    /* The rule with that priority; `rule` may be NULL. Number 0: that of the AE title `rule`, or none. */
    const char *rule;
    int number;
};

/* Why a series may have got nothing. */
struct rules_outcome {
    bool matched;    /* a rule did, or there is a title's pipeline */
    size_t too_many; /* stacks that a rule matches without saying which it wants; 0: none does */
    const char *pipeline; /* of that rule */
    const char
        *undecided; /* an attribute that a rule cannot compare (routing_conditions.h); NULL: none */
    const char *undecided_pipeline; /* of that rule */
};

#define RULES_REASONS 512

/* Can it match a stack of this series? */
bool rules_match_series(const struct conf_rule *rule, const struct rules_series *series);

/* Does it match this stack, whatever its `stacks`? If not, `reasons` (NULL: nobody asks) gets each
 * condition that does not hold: "modality CT is not MR; 12 slices are fewer than 30". */
bool rules_match(const struct conf_rule *rule, const struct rules_series *series,
                 const struct rules_stack *stack, char reasons[RULES_REASONS]);

/* Fills picks (room for each stack with each rule, and with one) and returns how many: by rule, then
 * by stack. */
size_t rules_pick(const struct conf_rule *rules, size_t rule_count,
                  const struct rules_series *series, struct rules_pick *picks,
                  struct rules_outcome *outcome);

#endif
