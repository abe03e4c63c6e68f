/*
 * input_units.h - splits input files into units: each stack of each series is one job, or is
 * refused before output is written.
 */
#ifndef NOCTULE_SERVICE_CLI_INPUT_INPUT_UNITS_H
#define NOCTULE_SERVICE_CLI_INPUT_INPUT_UNITS_H

#include "service/cli/input/input_sorted.h"

#include "config/config.h"
#include "dicom/read/geometry/geometry.h"

struct unit {
    const struct headers *headers; /* of its series; owned by struct units */
    char **paths;                  /* headers->count elements, borrowed */
    char stack[sizeof((struct geometry_stack *)0)->name];
    struct error refusal; /* CODE_NONE: run it */
    char note[200];       /* accepted missing files or slices, or "" */
    char *output;         /* folder */
};

struct units {
    struct unit *items; /* by series in order of first appearance, then by stack */
    size_t count;
    struct sorted sorted;
    size_t stacks; /* stacks that may be processed, before the selection */
};

struct units_request {
    const struct headers *headers; /* borrowed */
    char *const *paths;            /* headers->count elements */
    const struct conf_pipeline *pipeline;
    const struct conf_series *series_limits;
    const char *stack;   /* stack name; NULL: see `stacks` */
    const char *stacks;  /* as the option of a rule; NULL: all, unless there are too many */
    bool accept_missing; /* run incomplete series */
    const char *output;
    struct input_skipped *skipped; /* skipped files are added here */
};

/* Sorts and checks the files. One unit goes into `output` itself. Several units go into folders
 * below it, named "<Modality>-<Series Number>-<Series Description>". The Series Instance UID
 * replaces a missing or ambiguous number, and "-<stack>" follows if a series has several stacks.
 * Returns 0 or -errno with a message. */
int input_units_make(const struct units_request *request, struct units *units, struct error *error);
void input_units_free(struct units *units);

#endif
