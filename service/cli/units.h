/* units.h - what a heap of files is to be processed as: each stack of each series is one job. */
#ifndef NOCTULE_UNITS_H
#define NOCTULE_UNITS_H

#include "service/pipeline/headers.h"

#include "config/config.h"
#include "dicom/read/geometry/geometry.h"

struct unit {
    const struct headers *headers; /* of its series alone; the units' */
    char **paths;                  /* headers->count of them, borrowed */
    char stack[sizeof((struct geometry_stack *)0)->name];
    char *output; /* folder */
};

struct units {
    struct unit *items; /* by series in order of first appearance, then by stack */
    size_t count;
    size_t series_count;
    struct headers *series; /* their instances are borrowed from the headers given */
    char ***paths;
};

/*
 * Groups the instances in `headers` (errors are passed over; borrowed). One unit goes into `output`
 * itself; several into folders below it: "series-<Series Number>", or the Series Instance UID where
 * the number is missing or not unique, with "-<stack>" for each of several stacks. `stack` picks
 * the stacks of that name; NULL: all. 0 or -errno with the error.
 */
int units_make(const struct headers *headers, const struct conf_pipeline *pipeline,
               const char *stack, const char *output, struct units *units, struct error *error);
void units_free(struct units *units);

#endif
