/*
 * keyed_text.h - text files with one key and its value per line (job_file.h describes the format and its escapes).
 *
 * Functions return 0 or -errno. The reader's line is always one ahead of the value that was taken.
 */
#ifndef NOCTULE_SERVICE_COMMON_JOBS_KEYED_TEXT_H
#define NOCTULE_SERVICE_COMMON_JOBS_KEYED_TEXT_H

#include "base/error.h"

#include <stdint.h>
#include <stdio.h>

/* Writes a line. A NULL value counts as "". */
void keyed_put(FILE *out, const char *key, const char *value);
/* Writes "input" and, if it has a digest, "sha256" per path. `sha256` may be NULL. */
void keyed_put_inputs(FILE *out, char *const *paths, char *const *sha256, size_t count);

struct keyed_reader {
    FILE *in;
    char *line; /* getline's buffer */
    size_t capacity;
    ssize_t length; /* -1: no more lines */
    int number;
    struct error *error;
};

/* Sets the error "line N: WHAT". Returns -EBADMSG. */
int keyed_bad(const struct keyed_reader *reader, const char *what);
/* Reads the first line, which must be `format`, and the next. */
int keyed_begin(struct keyed_reader *reader, const char *format);
/* Splits the line. The key and the text are valid until a value is taken. */
int keyed_split(struct keyed_reader *reader, const char **key, const char **text);
/* These take the value that starts at `text`. The caller must free *value; it must be NULL before. */
int keyed_take_text(struct keyed_reader *reader, const char *text, char **value);
int keyed_take_number(struct keyed_reader *reader, const char *text, int64_t *value);
/* Appends the text to an array that array_grow() enlarges. */
int keyed_take_item(struct keyed_reader *reader, const char *text, char ***values, size_t *count, size_t *room);
/* Takes "input": appends the path, and NULL to the array of digests. */
int keyed_take_input(struct keyed_reader *reader, const char *text, char ***paths, char ***sha256, size_t *count,
                     size_t rooms[2]);
/* Takes "sha256", the digest of the last input. */
int keyed_take_digest(struct keyed_reader *reader, const char *text, char **sha256, size_t count);

#endif
