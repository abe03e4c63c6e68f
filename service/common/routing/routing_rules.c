#include "service/common/routing/routing_rules.h"

#include "base/text.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Appends the reason of a condition that does not hold. */
static void
reasons_add(void *context, const struct rules_condition *condition)
{
    char *reasons = context;
    size_t used = strlen(reasons);
    if (!*condition->reason)
        return;
    if (used > 0 && used + 2 < RULES_REASONS)
        used = (size_t)(stpcpy(reasons + used, "; ") - reasons);
    snprintf(reasons + used, RULES_REASONS - used, "%s", condition->reason);
    text_utf8_mend_end(reasons);
}

bool
rules_match_series(const struct conf_rule *rule, const struct rules_series *series)
{
    return conditions_hold(rule, series, NULL, NULL, NULL);
}

bool
rules_match(const struct conf_rule *rule, const struct rules_series *series, const struct rules_stack *stack,
            char reasons[RULES_REASONS])
{
    if (reasons)
        reasons[0] = '\0';
    return conditions_hold(rule, series, stack, reasons ? reasons_add : NULL, reasons);
}

/* Returns the b-value in a stack's name ("echo 1, b 800"), or 0 if there is none (geometry_stack.name). */
static double
stack_b_value(const struct rules_stack *stack)
{
    for (const char *part = stack->name; part; part = strstr(part, ", ")) {
        part += part == stack->name ? 0 : 2;
        if (strncmp(part, "b ", 2) == 0)
            return strtod(part + 2, NULL);
    }
    return 0;
}

/* The stacks of a series that match a rule. */
struct rules_matches {
    size_t count, first, last;
    bool weighted; /* one has a b-value above 0 */
};

static struct rules_matches
rules_find_matches(const struct conf_rule *rule, const struct rules_series *series)
{
    struct rules_matches matches = {0};
    for (size_t i = 0; i < series->stack_count; i++) {
        const struct rules_stack *stack = &series->stacks[i];
        if (!stack->accepted || !rules_match(rule, series, stack, NULL))
            continue;
        if (matches.count++ == 0)
            matches.first = i;
        matches.last = i;
        matches.weighted |= stack_b_value(stack) > 0;
    }
    return matches;
}

/* Returns whether a matching stack is selected by the rule's `stacks`. */
static bool
rule_wants(const char *which, const struct rules_matches *matches, const struct rules_stack *stack, size_t place)
{
    if (!which)
        return matches->count <= RULES_MAX_STACKS;
    if (strcmp(which, CONF_ALL_STACKS) == 0)
        return true;
    if (strcmp(which, CONF_FIRST_STACK) == 0)
        return place == matches->first;
    if (strcmp(which, CONF_LAST_STACK) == 0)
        return place == matches->last;
    if (strcmp(which, CONF_B0_STACKS) == 0)
        return matches->weighted && stack_b_value(stack) <= 0;
    return fnmatch(which, stack->name, 0) == 0;
}

static struct rules_pick *
rules_find(struct rules_pick *picks, size_t count, size_t stack, const char *pipeline)
{
    for (size_t i = 0; i < count; i++) {
        if (picks[i].stack == stack && strcmp(picks[i].pipeline, pipeline) == 0)
            return &picks[i];
    }
    return NULL;
}

size_t
rules_add_picks(const struct conf_rule *rule, const struct rules_series *series, struct rules_pick *picks, size_t count,
                struct rules_outcome *outcome)
{
    const struct rules_matches matches = rules_find_matches(rule, series);
    outcome->matched |= matches.count > 0;
    outcome->selected = 0;
    for (size_t i = 0; i < series->stack_count && !outcome->undecided; i++) {
        if (!series->stacks[i].accepted)
            continue;
        outcome->undecided = conditions_undecided(rule, series, &series->stacks[i]);
        outcome->undecided_pipeline = rule->pipeline;
    }
    if (!rule->stacks && matches.count > RULES_MAX_STACKS && !outcome->too_many) {
        outcome->too_many = matches.count;
        outcome->pipeline = rule->pipeline;
    }
    for (size_t i = 0; i < series->stack_count; i++) {
        const struct rules_stack *stack = &series->stacks[i];
        if (!stack->accepted || !rules_match(rule, series, stack, NULL) ||
            !rule_wants(rule->stacks, &matches, stack, i))
            continue;
        outcome->selected++;
        struct rules_pick *known = rules_find(picks, count, i, rule->pipeline);
        const bool waits = rule->study_count > 0;
        if (!known) {
            picks[count++] = (struct rules_pick){i, rule->pipeline, rule->priority, waits, rule->name, rule->number};
            continue;
        }
        known->waits &= waits;
        if (rule->priority > known->priority) {
            known->priority = rule->priority;
            known->rule = rule->name;
            known->number = rule->number;
        }
    }
    return count;
}

size_t
rules_pick(const struct conf_rule *rules, size_t rule_count, const struct rules_series *series,
           struct rules_pick *picks, struct rules_outcome *outcome)
{
    *outcome = (struct rules_outcome){0};
    size_t count = 0;
    for (size_t i = 0; i < rule_count; i++)
        count = rules_add_picks(&rules[i], series, picks, count, outcome);
    return count;
}
