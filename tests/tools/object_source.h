/*
 * object_source.h - for the test programs that write objects: the source series, and the common part of their
 * requests. On any failure, exits with status 1 and prints a code and a message to standard error.
 */
#ifndef NOCTULE_TESTS_OBJECT_SOURCE_H
#define NOCTULE_TESTS_OBJECT_SOURCE_H

#include "dicom/objects/seg/seg.h"

struct object_source {
    struct dicom_instance **instances;
    int32_t count;
    struct geometry_series *series;
    const struct geometry_stack *stack; /* the stack of the series */
};

/* Reads the files and finds the stack of that name; NULL: the only one. */
void object_source_read(char **paths, int count, const char *stack, struct object_source *source);
void object_source_free(struct object_source *source);

/* Returns a request without segments. The source must outlive it. */
struct seg_request object_source_request(const struct object_source *source, const char *pipeline);

int object_create(const char *path);

_Noreturn void die(const char *code, const char *message);
void check(int rc, const struct error *error);
void *need(void *memory);

/* Returns the time since a fixed point in the past. */
double seconds(void);

#endif
