/*
 * rules.h - which pipelines does a stack get? Pure: no I/O, no clock.
 *
 * A rule matches when each of its conditions does; modality and body part compare whole and
 * without regard to case, the description as a substring. Every matching rule counts; a pipeline
 * named by several runs once, with the largest priority. A series that was sent to an AE title with
 * a pipeline of its own gets that one, and no rule is asked.
 */
#ifndef NOCTULE_RULES_H
#define NOCTULE_RULES_H

#include "config/config.h"

#include <stddef.h>
#include <stdint.h>

struct rules_subject {
    const char *modality, *body_part, *description; /* of the series; "" when unknown */
    int32_t planes;                                 /* of the stack */
    const char *pipeline;                           /* of its AE title; NULL: the rules decide */
};

struct rules_pick {
    const char *pipeline; /* points into the rules */
    int priority;
};

/* Fills picks (room for rule_count, and for one) in the order of the rules and returns how many. */
size_t rules_pick(const struct conf_rule *rules, size_t rule_count,
                  const struct rules_subject *subject, struct rules_pick *picks);

#endif
