/* input_skipped.h - files that `run` and `explain` skip without an error, with the reasons. */
#ifndef NOCTULE_SERVICE_CLI_INPUT_INPUT_SKIPPED_H
#define NOCTULE_SERVICE_CLI_INPUT_INPUT_SKIPPED_H

#include "base/error.h"
#include "service/common/json.h"

#include <stddef.h>

struct input_skipped_file {
    const char *path; /* borrowed */
    enum code code;
    char *message;
};

struct input_skipped {
    struct input_skipped_file *files;
    size_t count, room;
};

/* Adds a file. Returns 0 or -ENOMEM. */
int input_skipped_add(struct input_skipped *all, const char *path, enum code code,
                      const char *message);

/* Prints the files on standard error: one line per file, or, if there are too many, per code and
 * folder, or per code. */
void input_skipped_print(struct input_skipped *all);

/* Writes the JSON array "passed_over". */
void input_skipped_put(struct input_skipped *all, struct json *json);

/* Writes one element of a file list: {file, code, message}. */
void input_skipped_put_one(struct json *json, const char *path, enum code code,
                           const char *message);

void input_skipped_clear(struct input_skipped *all);

#endif
