/*
 * explained.h - the predicted processing of a series: its stacks, the geometry check, the rules and
 * the jobs.
 *
 * No job runs and no file is written. The result follows the daemon: one view for each set of
 * options among the pipelines that rules can select (routing_options.h). Each job is then checked
 * with its pipeline's own limits.
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

/* The stack and slice of a frame. */
struct explained_place {
    int32_t stack; /* -1: the series was not grouped */
    int32_t plane; /* from 0 */
};

/* A condition of a rule. reason is "" if the condition holds, else the mismatch. */
struct explained_condition {
    char text[CONDITION_TEXT], reason[RULES_REASONS], note[CONDITION_TEXT];
};

/* The result of a rule for all stacks that are not skipped. */
struct explained_rule {
    const struct conf_rule *rule;
    size_t checked, matching; /* numbers of stacks */
    size_t accepted;          /* of the matching ones */
    /* of the accepted ones, selected by the rule's `stacks` */
    size_t wanted;
    bool too_many;                          /* too many stacks for a rule without `stacks` */
    char reasons[RULES_REASONS];            /* of the first stack that does not match */
    struct explained_condition *conditions; /* for that stack, else for the first */
    size_t condition_count;
};

struct explained_job {
    const char *pipeline;
    int priority;
    const struct conf_window *window, *done_by; /* NULL if unset */
    const struct geometry_stack *stack;
    struct error geometry;      /* result with the pipeline's own limits; CODE_NONE: accepted */
    char lacks[CONDITION_TEXT]; /* the series of the study that it would wait for, or "" */
};

/* The stacks for pipelines with the same options. */
struct explained_view {
    int judgement;
    struct geometry_series *grouped; /* NULL after a refusal */
};

struct explained {
    const struct sorted_series *files;
    const struct collection *named;
    struct error refusal;                             /* of the whole series, or CODE_NONE */
    struct explained_view views[ROUTING_OPTION_SETS]; /* at least one */
    size_t view_count;
    struct explained_place **places; /* in the first view: by instance, then by frame */
    const char *title;               /* AE title with a pipeline of its own; NULL: rules apply */
    struct conf_rule own;            /* replaces the configured rules if its pipeline is set */
    struct explained_rule *rules;
    size_t rule_count;
    struct explained_job *jobs;
    size_t job_count;
};

struct explained_request {
    const struct conf *conf;
    const struct conf_pipeline *pipeline; /* run this pipeline; NULL: rules decide */
    /* inbox of the series; NULL: unknown or not from an inbox */
    const struct conf_inbox *inbox;
    const char *called_ae, *sender;  /* of its first C-STORE; "": unknown, or from a folder */
    const struct rules_study *study; /* other series of the study; NULL: unknown */
    bool accept_missing;             /* an operator accepted missing instances */
    const struct collection *named;  /* files given by name, sorted by path */
};

/* Computes the result for a series. Returns 0 or -ENOMEM. The series must outlive the result. */
int explained_make(const struct explained_request *request, const struct sorted_series *series,
                   struct explained *explained);
void explained_free(struct explained *explained);

/* Checks whether file i of the series was given by name. */
bool explained_is_named(const struct explained *explained, size_t i);

/* A fact of a DICOM header. */
struct explained_fact {
    const char *title; /* for text output; the attributes, for facts that split volumes */
    const char *key;
    bool sets_apart; /* one of keys.def: it splits a series into volumes */
    void (*describe)(const struct dicom_instance *instance, const struct dicom_frame *frame,
                     char *text, size_t size);
};

extern const struct explained_fact explained_facts[]; /* ends with a NULL title */

#define EXPLAINED_TEXT  256
#define EXPLAINED_WORDS 400 /* an object description with its finding */

/* Print the result as text for a terminal, or write all of it into the open JSON object. */
void explained_to_text(const struct explained *explained);
void explained_to_json(const struct explained *explained, struct json *json);

/* Prints a title and a text. Long texts continue on indented lines. */
void explained_put_line(const char *title, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
