/*
 * work_folder.h - the folder of one attempt at a run: "in", "out" and "tmp" of the program, and the mask.
 *
 * The program may leave any kind of file there. Links are not followed. Functions return 0 or -errno.
 */
#ifndef NOCTULE_SERVICE_COMMON_PROGRAM_WORK_FOLDER_H
#define NOCTULE_SERVICE_COMMON_PROGRAM_WORK_FOLDER_H

#include "base/limits.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The last LIMIT_PROGRAM_OUTPUT_BYTES of the output of a program (output_tail.c). */

struct output_tail {
    char bytes[LIMIT_PROGRAM_OUTPUT_BYTES];
    size_t used, next; /* the ring's number of bytes, and the place of the next */
};

void output_tail_add(struct output_tail *tail, const char *bytes, size_t size);
/* Copies the bytes in their order, with a NUL at the end. Returns their number. */
size_t output_tail_copy(const struct output_tail *tail, char text[LIMIT_PROGRAM_OUTPUT_BYTES + 1]);

/* Makes the folder and those in it. -EEXIST: it exists. */
int work_folder_make(const char *path);
/* Removes it, also if the mode of a folder does not permit that. */
int work_folder_remove(const char *path);

struct work_usage {
    int64_t bytes;   /* sizes of files in "out" and "tmp" */
    int64_t entries; /* in "out" */
    bool unbounded;  /* too many entries or levels to count; the numbers are too small */
};

/* Measures the folder, at most `entries` + 1 entries of "out". */
void work_folder_measure(const char *path, int64_t entries, struct work_usage *usage);

/* Moves the mask (if `well`) and the output of the program into the folder `result`, durably. Replaces that folder. */
int work_folder_finish(const char *path, const char *result, bool well, const struct output_tail *tail);

#endif
