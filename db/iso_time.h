/*
 * iso_time.h - converts Unix milliseconds to text and back. Other code must not do it.
 *
 * The text is UTC in ISO 8601, always 24 characters: "2026-01-31T02:03:04.567Z". Texts of this form
 * sort like their times; indices and views need that.
 */
#ifndef NOCTULE_DB_ISO_TIME_H
#define NOCTULE_DB_ISO_TIME_H

#include <stddef.h>
#include <stdint.h>

#define ISO_TIME_LENGTH 24
#define ISO_TIME_SIZE   (ISO_TIME_LENGTH + 1)

/* Returns -ERANGE outside the years 0000 to 9999, whose text would not sort. */
int iso_time_from_ms(int64_t ms, char text[ISO_TIME_SIZE]);

/* Returns -EINVAL for a text that iso_time_from_ms() cannot have written. */
int iso_time_to_ms(const char *text, int64_t *ms);

/* The size of a local time with its offset, for people: "2026-01-31 03:03:04 +0100". */
#define LOCAL_TIME_SIZE 32

/* Writes the local time of a text that iso_time_to_ms() reads. Writes "" and returns -EINVAL for other texts. */
int iso_time_to_local(const char *text, char local[LOCAL_TIME_SIZE]);

/* Returns the length of the UTC time at the start of a text, with or without seconds, and sets *ms. Returns 0 if there
 * is none. */
size_t iso_time_at(const char *text, int64_t *ms);

/*
 * Returns a copy of a text in which each UTC time, with or without seconds, is a local time. The
 * caller must free it; NULL: no memory.
 */
char *iso_time_localise(const char *text);

#endif
