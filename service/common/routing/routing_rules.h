/*
 * routing_rules.h - select the pipelines for the stacks of a series. Pure: no I/O, no clock.
 *
 * A rule matches a stack if all its conditions hold (routing_conditions.h). The rule takes the accepted stacks that
 * match and that its `stacks` selects. All rules count. A pipeline named by several rules runs once per stack, with the
 * highest priority. The caller must check a rule with `otherwise` only if no other rule matches the series
 * (routing_result.h).
 */
#ifndef NOCTULE_SERVICE_COMMON_ROUTING_ROUTING_RULES_H
#define NOCTULE_SERVICE_COMMON_ROUTING_ROUTING_RULES_H

#include "service/common/routing/routing_conditions.h"

#include <stddef.h>

#define RULES_MAX_STACKS 8 /* max number of stacks for a rule without `stacks` */

struct rules_pick {
    size_t stack;         /* index in the series */
    const char *pipeline; /* points into the rules */
    int priority;
    bool waits; /* for other series of the study: all its rules require one */
    /* The rule with that priority; `rule` may be NULL. Number 0: the AE title `rule`, or none. */
    const char *rule;
    int number;
};

/* Reasons for which a series may have no picks. */
struct rules_outcome {
    bool matched;                   /* a rule matches */
    size_t too_many;                /* number of stacks that match a rule without `stacks`; 0: within the limit */
    const char *pipeline;           /* of that rule */
    const char *undecided;          /* an attribute that a rule cannot compare (routing_conditions.h), or NULL */
    const char *undecided_pipeline; /* of that rule */
    size_t selected;                /* number of stacks that the last rule selects */
};

#define RULES_REASONS 512

/* Returns whether the rule can match a stack of this series. */
bool rules_match_series(const struct conf_rule *rule, const struct rules_series *series);

/* Returns whether the rule matches this stack; ignores its `stacks`. If it does not, writes the conditions that do not
 * hold to `reasons`, which may be NULL: "modality CT is not MR; 12 slices are fewer than 30". */
bool rules_match(const struct conf_rule *rule, const struct rules_series *series, const struct rules_stack *stack,
                 char reasons[RULES_REASONS]);

/* Fills `picks`, which must have room for each stack with each rule, and for at least one per
 * stack. Returns their number. They are sorted by rule, then by stack. */
size_t rules_pick(const struct conf_rule *rules, size_t rule_count, const struct rules_series *series,
                  struct rules_pick *picks, struct rules_outcome *outcome);

/* Adds the picks of one more rule to `count` picks, and its outcome. Returns the new number. */
size_t rules_add_picks(const struct conf_rule *rule, const struct rules_series *series, struct rules_pick *picks,
                       size_t count, struct rules_outcome *outcome);

#endif
