/*
 * routing_conditions.h - what a rule asks of a series and of a stack, one condition after the other. Pure: no
 * I/O, no clock; safe from any thread.
 *
 * Modality and body part compare whole, the description as a substring; capitals of ASCII matter in
 * none, nor in what is asked of attributes, but in AE titles and inboxes. Of an attribute with several values one has to pass, and
 * with `not` none may; what is there and cannot be compared passes neither. They are those of the first slice
 * of the stack, in an enhanced image those of its frame. What a rule asks of
 * attributes, of contrast and of the geometry is known of a stack while its series settles, and kept
 * nowhere (rules_facts): where it is not known, such a condition does not hold.
 */
#ifndef NOCTULE_SERVICE_COMMON_ROUTING_ROUTING_CONDITIONS_H
#define NOCTULE_SERVICE_COMMON_ROUTING_ROUTING_CONDITIONS_H

#include "config/config.h"

#include <stddef.h>
#include <stdint.h>

/* What is told of a stack beyond its name and its size. */
struct rules_facts {
    enum conf_orientation orientation; /* CONF_ANY_ORIENTATION: it has none */
    double spacing;                    /* mm from plane to plane; 0: it has none */
    const char *asked;                 /* conditions_attributes */
    const char *values;                /* dicom_read_values of its first plane; "": not known */
};

struct rules_stack {
    const char *name;
    int32_t planes;
    bool accepted;
    const struct rules_facts *facts; /* NULL: not known */
};

/* Other series of its study that are settled and accepted. */
struct rules_companion {
    const char *series_uid, *modality, *body_part, *description;
};

struct rules_study {
    const struct rules_companion *series;
    size_t count;
};

struct rules_series {
    const char *modality, *body_part, *description; /* "" when unknown */
    const struct conf_title *title; /* that it was sent to; NULL: none of ours, or unknown */
    const struct rules_stack *stacks;
    size_t stack_count;
    const struct conf_inbox *inbox;  /* that it came by; NULL: none of ours, or unknown */
    const char *called_ae, *sender;  /* of its first C-STORE; "" when none is known */
    const struct rules_study *study; /* only to be told; NULL: not known */
};

#define CONDITION_TEXT 192

struct rules_condition {
    const char *text;   /* as it is configured: "modality CT" */
    const char *reason; /* why it does not hold; "": it does */
    const char *note;   /* what more there is to know: where a value stands; "": nothing */
};

typedef void rules_tell(void *context, const struct rules_condition *condition);

/* Do all conditions hold? Of the series alone where `stack` is NULL. Each is told (NULL: to nobody);
 * values that say who somebody is are not. */
bool conditions_hold(const struct conf_rule *rule, const struct rules_series *series,
                     const struct rules_stack *stack, rules_tell *tell, void *context);

/*
 * Returns the first attribute whose value cannot be compared, if every other condition of the rule holds: then it is open
 * whether the rule matches. Else NULL.
 */
const char *conditions_undecided(const struct conf_rule *rule, const struct rules_series *series,
                                 const struct rules_stack *stack);

/* Is a series one that the rule has to have beside it in the study? */
bool conditions_fit_companion(const struct conf_companion *companion, const char *modality,
                              const char *body_part, const char *description);
/* The first that is; NULL: none is there. */
const struct rules_companion *conditions_find_companion(const struct conf_companion *wanted,
                                                        const struct rules_study *study);
/* "CT HEAD "native"": what of a companion is given, in words. */
void conditions_describe_companion(const struct conf_companion *companion,
                                   char text[CONDITION_TEXT]);

/* Does the rule ask for what is known only while a series settles? */
bool conditions_ask_facts(const struct conf_rule *rule);

/* What to ask of a file for all rules, as dicom_read_values takes it: malloc'd, "" for nothing; NULL: no
 * memory. */
char *conditions_attributes(const struct conf_rule *rules, size_t count);

/* The facts of a stack whose planes have this normal, this far apart. */
struct rules_facts conditions_facts(const double normal[3], double spacing, int32_t planes);

/* "axial", "coronal", "sagittal", "oblique"; "of no orientation" for CONF_ANY_ORIENTATION. */
const char *conditions_orientation_name(enum conf_orientation orientation);

#endif
