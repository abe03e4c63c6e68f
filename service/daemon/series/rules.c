/* rules.c - see rules.h. */
#include "service/daemon/series/rules.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

static bool
rule_matches(const struct conf_rule *rule, const struct rules_subject *subject)
{
    if (rule->modality && strcasecmp(rule->modality, subject->modality) != 0)
        return false;
    if (rule->body_part && strcasecmp(rule->body_part, subject->body_part) != 0)
        return false;
    if (rule->description && !strcasestr(subject->description, rule->description))
        return false;
    if (rule->min_slices > 0 && subject->planes < rule->min_slices)
        return false;
    return rule->max_slices <= 0 || subject->planes <= rule->max_slices;
}

static struct rules_pick *
rules_find(struct rules_pick *picks, size_t count, const char *pipeline)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(picks[i].pipeline, pipeline) == 0)
            return &picks[i];
    }
    return NULL;
}

size_t
rules_pick(const struct conf_rule *rules, size_t rule_count, const struct rules_subject *subject,
           struct rules_pick *picks)
{
    size_t count = 0;
    if (subject->pipeline) {
        picks[0] = (struct rules_pick){subject->pipeline, 0};
        return 1;
    }
    for (size_t i = 0; i < rule_count; i++) {
        if (!rule_matches(&rules[i], subject))
            continue;
        struct rules_pick *known = rules_find(picks, count, rules[i].pipeline);
        if (!known)
            picks[count++] = (struct rules_pick){rules[i].pipeline, rules[i].priority};
        else if (rules[i].priority > known->priority)
            known->priority = rules[i].priority;
    }
    return count;
}
