/* text.h - UTF-8, numbers as text, CSV fields, and streams in memory. */
#ifndef NOCTULE_BASE_TEXT_H
#define NOCTULE_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Returns the last part of a path, for messages. */
const char *text_base_name(const char *path);

bool text_ends_in(const char *text, const char *ending);

/* Returns the bytes of the UTF-8 character at `text` (RFC 3629, no surrogates), or 0 at the end and for invalid
 * bytes. */
size_t text_utf8_length(const char *text);

/* Likewise, but returns 0 for control characters (C0, DEL and C1), which must not reach a line of text. */
size_t text_line_length(const char *text);

/* Returns the number of characters of UTF-8 text. */
size_t text_characters(const char *text);

/* Checks the form of a UID: 1 to 64 digits and points. */
bool text_is_uid(const char *text);

/* Removes an incomplete character at the end of UTF-8 text that was cut. */
void text_utf8_mend_end(char *text);

#define TEXT_DIGITS 32

/* Writes a finite number with the fewest digits that read back as the same double: "0.1". */
void text_digits(double value, char text[TEXT_DIGITS]);

/* Writes a field of a CSV file (RFC 4180), in quotes if necessary. */
void text_csv(FILE *out, const char *text);

/*
 * A stream in memory, so that lack of memory has its errno. Both calls return 0 or -errno. After text_close the caller
 * must free `bytes`, which end in a NUL that `size` does not count; they are NULL on failure. The struct must not move
 * between the calls.
 */
struct text_stream {
    FILE *out;
    char *bytes;
    size_t size, capacity;
};

int text_open(struct text_stream *stream);
int text_close(struct text_stream *stream);

#ifdef __cplusplus
}
#endif
#endif
