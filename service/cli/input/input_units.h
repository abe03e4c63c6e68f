/*
 * input_units.h - what a heap of files is to be processed as: each stack of each series is one job, or is
 * refused before anything is written.
 */
#ifndef NOCTULE_SERVICE_CLI_INPUT_INPUT_UNITS_H
#define NOCTULE_SERVICE_CLI_INPUT_INPUT_UNITS_H

#include "service/cli/input/input_sorted.h"

#include "config/config.h"
#include "dicom/read/geometry/geometry.h"

struct unit {
    const struct headers *headers; /* of its series alone; the units' */
    char **paths;                  /* headers->count of them, borrowed */
    char stack[sizeof((struct geometry_stack *)0)->name];
    struct error refusal; /* CODE_NONE: it is to be run */
    char note[200];       /* what is missing and was accepted; "": nothing */
    char *output;         /* folder */
};

struct units {
    struct unit *items; /* by series in order of first appearance, then by stack */
    size_t count;
    struct sorted sorted;
    size_t stacks; /* that may be processed, whatever was asked for */
};

struct units_request {
    const struct headers *headers; /* borrowed */
    char *const *paths;            /* headers->count of them */
    const struct conf_pipeline *pipeline;
    const struct conf_series *most;
    const char *stack;   /* the stacks of that name; NULL: see `stacks` */
    const char *stacks;  /* as a rule's option; NULL: all, unless they are too many */
    bool accept_missing; /* series that are known not to be whole are run */
    const char *output;
    struct passed_over *passed_over; /* what is passed over is added */
};

/*
 * Sorts and judges. One unit goes into `output` itself; several into folders below it:
 * "<Modality>-<Series Number>-<Series Description>", with the Series Instance UID where the number is missing or not
 * unique, and "-<stack>" for each of several stacks. 0 or -errno with the error.
 */
int units_make(const struct units_request *request, struct units *units, struct error *error);
void units_free(struct units *units);

#endif
