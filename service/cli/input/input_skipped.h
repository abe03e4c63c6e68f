/* input_skipped.h - files that `run` does not process and that are no failure, each with why. */
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

/* 0 or -ENOMEM. */
int passed_over_add(struct passed_over *all, const char *path, enum code code, const char *message);

/* On standard error: a line each, or when there are many one for each code and folder, or code. */
void passed_over_tell(struct passed_over *all);

/* The array "passed_over". */
void passed_over_put(struct passed_over *all, struct json *json);

/* An object of a list of files that something is said of: {file, code, message}. */
void passed_over_put_one(struct json *json, const char *path, enum code code, const char *message);

void passed_over_clear(struct passed_over *all);

#endif
