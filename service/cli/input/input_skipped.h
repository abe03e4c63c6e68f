/* input_skipped.h - files that `run` and `explain` skip without an error, with the reasons. */
#ifndef NOCTULE_SERVICE_CLI_INPUT_INPUT_SKIPPED_H
#define NOCTULE_SERVICE_CLI_INPUT_INPUT_SKIPPED_H

#include "base/error.h"
#include "service/common/json.h"

#include <stddef.h>

struct passed_over_file {
    const char *path; /* borrowed */
    enum code code;
    char *message;
};

struct passed_over {
    struct passed_over_file *files;
    size_t count, room;
};

/* Adds a file. Returns 0 or -ENOMEM. */
int passed_over_add(struct passed_over *all, const char *path, enum code code, const char *message);

/*
 * Prints the files on standard error: one line per file, or, if there are too many, per code and
 * folder, or per code.
 */
void passed_over_tell(struct passed_over *all);

/* Writes the JSON array "passed_over". */
void passed_over_put(struct passed_over *all, struct json *json);

/* Writes one element of a file list: {file, code, message}. */
void passed_over_put_one(struct json *json, const char *path, enum code code, const char *message);

void passed_over_clear(struct passed_over *all);

#endif
