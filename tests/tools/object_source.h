/*
 * object_source.h - for the programs that write objects for tests: the series that an object is
 * made from, and what their requests have in common. Whatever fails ends the program with status 1
 * and a code and message on standard error.
 */
#ifndef NOCTULE_TESTS_OBJECT_SOURCE_H
#define NOCTULE_TESTS_OBJECT_SOURCE_H

#include "dicom/objects/seg/seg.h"

struct object_source {
    struct dicom_instance **instances;
    int32_t count;
    struct geometry_series *series;
    const struct geometry_stack *stack; /* of the series */
};

/* The stack of that name in the files; NULL: the only one. */
void object_source_read(char **paths, int count, const char *stack, struct object_source *source);
void object_source_free(struct object_source *source);

/* Without segments. Borrows from the source. */
struct seg_request object_source_request(const struct object_source *source, const char *pipeline);

/* An empty file to write to. */
int object_create(const char *path);

_Noreturn void die(const char *code, const char *message);
void check(int rc, const struct error *error);
void *need(void *memory);

/* Since some time in the past. */
double seconds(void);

#endif
