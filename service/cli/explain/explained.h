/*
 * explained.h - what would become of a series, and why: its stacks, the gate, the rules, the jobs.
 *
 * Nothing is run and nothing is written. It is judged as the daemon judges it: for each combination
 * of options among the pipelines that rules can name for it (routing_options.h), and each job then by its
 * own limits.
 */
#ifndef NOCTULE_SERVICE_CLI_EXPLAIN_EXPLAINED_H
#define NOCTULE_SERVICE_CLI_EXPLAIN_EXPLAINED_H

#include "config/config.h"
#include "dicom/read/geometry/geometry.h"
#include "service/cli/input/input_collect.h"
#include "service/cli/input/input_sorted.h"
#include "service/common/routing/routing_options.h"
#include "service/common/routing/routing_rules.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where a frame goes. */
struct explained_place {
    int32_t stack; /* -1: none, the series was not grouped */
    int32_t plane; /* from 0 */
};

/* One condition of a rule, and why it does not hold; "" where it does. */
struct explained_condition {
    char text[CONDITION_TEXT], reason[RULES_REASONS], note[CONDITION_TEXT];
};

/* What a rule says to the stacks that are not passed over. */
struct explained_rule {
    const struct conf_rule *rule;
    size_t asked, matching;                 /* stacks */
    size_t accepted;                        /* of the matching ones */
    size_t wanted;                          /* of these, as its `stacks` says */
    bool too_many;                          /* it does not say, and they are too many */
    char reasons[RULES_REASONS];            /* of the first stack that it does not match */
    struct explained_condition *conditions; /* asked of this one, or of the first */
    size_t condition_count;
};

struct explained_job {
    const char *pipeline;
    int priority;
    const struct conf_window *window, *done_by; /* NULL: it has none */
    const struct geometry_stack *stack;
    struct error gate;          /* what the pipeline's own limits say; CODE_NONE: accepted */
    char lacks[CONDITION_TEXT]; /* the series of the study that it would wait for; "": none */
};

/* The stacks of pipelines that agree. */
struct explained_view {
    int judgement;
    struct geometry_series *grouped; /* NULL beside a refusal */
};

struct explained {
    const struct sorted_series *files;
    const struct collection *named;
    struct error refusal;                             /* of the series as a whole, or CODE_NONE */
    struct explained_view views[ROUTING_OPTION_SETS]; /* one at least */
    size_t view_count;
    struct explained_place **places; /* in the first view: by instance, then by frame */
    const char *title;               /* whose pipeline it gets, and no rule is asked; NULL: none */
    struct conf_rule own; /* the rule in place of the configured ones, where there is one */
    struct explained_rule *rules;
    size_t rule_count;
    struct explained_job *jobs;
    size_t job_count;
};

struct explained_request {
    const struct conf *conf;
    const struct conf_pipeline *pipeline; /* as if that were run; NULL: the rules decide */
    const struct conf_inbox *inbox;       /* that it came by; NULL: none of ours, or unknown */
    const char *called_ae, *sender;       /* of its first C-STORE; "": unknown, or by a folder */
    const struct rules_study *study;      /* the other series; NULL: not known */
    bool accept_missing;                  /* an operator has accepted it as it is */
    const struct collection *named; /* by path: what was asked about, where its series has more */
};

/* 0 or -ENOMEM; the series is borrowed. */
int explained_make(const struct explained_request *request, const struct sorted_series *series,
                   struct explained *explained);
void explained_free(struct explained *explained);

/* Is file i of the series one that was asked about? */
bool explained_is_named(const struct explained *explained, size_t i);

/* What a header says, fact by fact. */
struct explained_fact {
    const char *title; /* for people; the attributes, where it sets volumes apart */
    const char *key;
    bool sets_apart; /* one of keys.def */
    void (*tell)(const struct dicom_instance *instance, const struct dicom_frame *frame, char *text,
                 size_t size);
};

extern const struct explained_fact explained_facts[]; /* a NULL title behind the last */

#define EXPLAINED_TEXT  256
#define EXPLAINED_WORDS 400 /* such a text, and what is said of it */

/* For people on a terminal; and all of it, as members of the open object. */
void explained_to_text(const struct explained *explained);
void explained_to_json(const struct explained *explained, struct json *json);

/* A line of the text: a title, and words that go on below where they are too long for one. */
void explained_put_line(const char *title, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
