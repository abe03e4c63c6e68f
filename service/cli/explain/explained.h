/*
 * explained.h - the predicted processing of a series: its stacks, the geometry check, the rules and
 * the jobs.
 *
 * No job runs and no file is written. Stacks, rules and jobs are those of the functions that the
 * daemon uses (routing_view.h, routing_result.h). Each job is then checked with its pipeline's own
 * limits.
 */
#ifndef NOCTULE_SERVICE_CLI_EXPLAIN_EXPLAINED_H
#define NOCTULE_SERVICE_CLI_EXPLAIN_EXPLAINED_H

#include "config/config.h"
#include "dicom/read/geometry/geometry.h"
#include "service/cli/input/input.h"
#include "service/common/routing/routing_result.h"
#include "service/common/routing/routing_view.h"

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

/* A rule of the result, checked on its `shown` stack. */
struct explained_rule {
    const struct routing_rule *is;
    bool too_many;               /* too many stacks for a rule without `stacks` */
    char reasons[RULES_REASONS]; /* for which the stack does not match */
    struct explained_condition *conditions;
    size_t condition_count, room;
};

struct explained_job {
    const char *pipeline;
    int priority;
    const struct conf_window *window, *done_by; /* NULL if unset */
    const struct geometry_stack *stack;
    struct error geometry;         /* result with the pipeline's own limits and unit; CODE_NONE: accepted */
    char lacks[CONDITION_TEXT];    /* the series of the study that it would wait for, or "" */
    char programs[CONDITION_TEXT]; /* names of programs whose masks it would wait for, or "" */
    char takers[CONDITION_TEXT];   /* destinations with `takes`, and the kinds of results that each gets, or "" */
};

struct explained {
    const struct sorted_series *files;
    const struct collection *named;
    const struct conf_pipeline *pipeline; /* the given one, or NULL */
    struct conf_rule only;                /* with the given pipeline */
    struct error refusal;                 /* of the whole series, or CODE_NONE */
    char *attributes;                     /* that the rules check */
    /* The stacks for pipelines with the same options, at least one; without stacks if refused. */
    struct routing_view views[ROUTING_OPTION_SETS];
    size_t view_count;
    struct explained_place **places; /* in the first view: by instance, then by frame */
    struct routing_stack *stacks;    /* of all views */
    const struct geometry_stack **geometry;
    struct routing_result result;
    const char *title;            /* AE title with a pipeline of its own; NULL: rules apply */
    struct explained_rule *rules; /* result.rule_count elements */
    struct explained_job *jobs;   /* result.count elements */
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

/* Computes the result for a series. Returns 0 or -ENOMEM. The series must outlive the result, which
 * must not be copied. */
int explained_make(const struct explained_request *request, const struct sorted_series *series,
                   struct explained *explained);
void explained_free(struct explained *explained);

#define EXPLAINED_TEXT  256
#define EXPLAINED_WORDS 400 /* an object description with its finding */

#define FACT_TEXT       320

/* The facts of a DICOM header. */
enum explained_fact {
    FACT_CLASS,
    FACT_SYNTAX,
    FACT_TYPES,
    FACT_FRAMES,
    FACT_SIZE,
    FACT_PIXELS,
    FACT_SPACING,
    FACT_THICKNESS,
    FACT_ORIENTATION,
    FACT_RESCALE,
    FACT_MAPPING,
    FACT_LOCATIONS,
    FACT_FRAME_OF_REFERENCE,
    FACT_ANNOUNCED,
    FACT_EXPECTED,

#define KEY(id, rule, tolerance, prefix, what) FACT_KEY_##id,
#include "dicom/read/image/keys.def"
#undef KEY
    FACT_COUNT
};

extern const struct explained_fact_name {
    const char *title; /* for text output; the attributes, for facts that split volumes */
    const char *key;
    bool sets_apart; /* one of keys.def: it splits a series into volumes */
} explained_fact_names[FACT_COUNT];

/* Writes the facts of a frame; "": none. */
void explained_describe(const struct dicom_instance *instance, const struct dicom_frame *frame,
                        char texts[FACT_COUNT][FACT_TEXT]);

/* Print the result as text for a terminal, or write all of it into the open JSON object. */
void explained_to_text(const struct explained *explained);
void explained_to_json(const struct explained *explained, struct json *json);

/* Prints a title and a text. Long texts continue on indented lines. */
void explained_put_line(const char *title, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
