/* output_tail.h - the last LIMIT_PROGRAM_OUTPUT_BYTES of the output of a program. */
#ifndef NOCTULE_SERVICE_COMMON_PROGRAM_OUTPUT_TAIL_H
#define NOCTULE_SERVICE_COMMON_PROGRAM_OUTPUT_TAIL_H

#include "base/limits.h"

#include <stddef.h>

struct output_tail {
    char bytes[LIMIT_PROGRAM_OUTPUT_BYTES];
    size_t used, next; /* the ring's number of bytes, and the place of the next */
};

void output_tail_add(struct output_tail *tail, const char *bytes, size_t size);
/* Copies the bytes in their order, with a NUL at the end. Returns their number. */
size_t output_tail_copy(const struct output_tail *tail, char text[LIMIT_PROGRAM_OUTPUT_BYTES + 1]);

#endif
