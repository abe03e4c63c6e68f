/*
 * routing_conditions.h - check the conditions of a rule on a series and on a stack, one after the
 * other. Pure: no I/O, no clock. Thread-safe.
 *
 * Modality and body part must match completely, the description as a substring. ASCII case is ignored there and for
 * attributes, but not for AE titles and inboxes. If an attribute has several values, one must pass; with `not`, no
 * value may pass. A value that cannot be compared fails in both cases.
 *
 * Attributes are those of the first slice of the stack; in an enhanced image, those of its frame.
 * Attributes, contrast and geometry are known only while a series is being inspected and are not
 * stored (rules_facts). If they are unknown, such a condition does not hold.
 */
#ifndef NOCTULE_SERVICE_COMMON_ROUTING_ROUTING_CONDITIONS_H
#define NOCTULE_SERVICE_COMMON_ROUTING_ROUTING_CONDITIONS_H

#include "config/config.h"

#include <stddef.h>
#include <stdint.h>

/* Properties of a stack other than its name and size. */
struct rules_facts {
    enum conf_orientation orientation; /* CONF_ANY_ORIENTATION: it has no orientation */
    double spacing;                    /* mm between planes; 0: unknown */
    const char *asked;                 /* conditions_attributes */
    const char *values;                /* dicom_read_values of its first plane; "": not known */
};

struct rules_stack {
    const char *name;
    int32_t planes;
    bool accepted;
    const struct rules_facts *facts; /* NULL: not known */
};

/* Another series of the study that is complete and accepted. */
struct rules_companion {
    const char *series_uid, *modality, *body_part, *description;
};

struct rules_study {
    const struct rules_companion *series;
    size_t count;
};

struct rules_series {
    const char *modality, *body_part, *description; /* "": unknown */
    const struct rules_stack *stacks;
    size_t stack_count;
    const struct conf_inbox *inbox;  /* the inbox it came from; NULL: not configured, or unknown */
    const char *called_ae, *sender;  /* AE titles of its first C-STORE; "": unknown */
    const struct rules_study *study; /* for reports only; NULL: unknown */
};

#define CONDITION_TEXT 192

struct rules_condition {
    const char *text;   /* the condition as configured: "modality CT" */
    const char *reason; /* the reason for which it does not hold; "": it holds */
    const char *note;   /* an addition, such as the place of a value, or "" */
};

typedef void rules_report(void *context, const struct rules_condition *condition);

/* Checks all conditions and reports each to `report`, which may be NULL. If `stack` is NULL, checks only those on the
 * series. Returns whether all hold. Reports must not contain values that identify a person. */
bool conditions_hold(const struct conf_rule *rule, const struct rules_series *series, const struct rules_stack *stack,
                     rules_report *report, void *context);

/* Returns the first attribute whose value cannot be compared, if all other conditions of the rule
 * hold. Whether the rule matches is then undecided. Returns NULL otherwise. */
const char *conditions_undecided(const struct conf_rule *rule, const struct rules_series *series,
                                 const struct rules_stack *stack);

/* Returns the first series of the study that matches, or NULL. */
const struct rules_companion *conditions_find_companion(const struct conf_companion *wanted,
                                                        const struct rules_study *study);
/* Describes the required series: "CT HEAD "native"". */
void conditions_describe_companion(const struct conf_companion *companion, char text[CONDITION_TEXT]);

/* Returns whether the rule needs facts that are known only while a series is being inspected. */
bool conditions_need_facts(const struct conf_rule *rule);

/* Returns the attributes that the rules need, in the form for dicom_read_values, or "". The
 * caller must free them. Returns NULL if memory is short. */
char *conditions_attributes(const struct conf_rule *rules, size_t count);

/* Returns the facts of a stack from the normal of its planes and their spacing in mm. */
struct rules_facts conditions_facts(const double normal[3], double spacing, int32_t planes);

/* Returns "axial", "coronal", "sagittal" or "oblique"; "of no orientation" for CONF_ANY_ORIENTATION. */
const char *conditions_orientation_name(enum conf_orientation orientation);

#endif
