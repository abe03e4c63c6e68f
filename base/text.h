/* text.h - what is written: UTF-8, and texts made in memory. */
#ifndef NOCTULE_TEXT_H
#define NOCTULE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Last part of a path, for messages. */
const char *text_base_name(const char *path);

bool text_ends_in(const char *text, const char *ending);

/* Bytes of the UTF-8 character at `text` (RFC 3629, no surrogates); 0 at the end, or when what is
 * there is none. */
size_t text_utf8_length(const char *text);

/* The same, but 0 for controls, too (C0, DEL and C1): what is not to reach a line of text. */
size_t text_line_length(const char *text);

/* Takes the part of a character off that UTF-8 text was cut within. */
void text_utf8_mend_end(char *text);

#define TEXT_DIGITS 32

/* A finite number with as few digits as read back as the same double: "0.1". */
void text_digits(double value, char text[TEXT_DIGITS]);

/* A field of a CSV file (RFC 4180): in quotes where it has to be. */
void text_csv(FILE *out, const char *text);

/*
 * A text that is made in memory before it is written, so that every failure to write it has its
 * errno. 0 or -errno; after text_close the bytes, ended by a NUL that `size` does not count, are
 * the caller's to free, and NULL on failure. The struct stays where it is meanwhile.
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
