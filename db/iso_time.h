/*
 * iso_time.h - the one place where Unix milliseconds become text and text becomes milliseconds.
 *
 * The text is UTC, ISO-8601, always 24 characters: "2026-01-31T02:03:04.567Z". Texts of this form
 * compare like the times they stand for, which is what the indices and views rely on.
 */
#ifndef NOCTULE_DB_ISO_TIME_H
#define NOCTULE_DB_ISO_TIME_H

#include <stdint.h>

#define ISO_TIME_LENGTH 24
#define ISO_TIME_SIZE   (ISO_TIME_LENGTH + 1)

/* -ERANGE outside of the years 0000 to 9999: their text would not sort. */
int iso_time_from_ms(int64_t ms, char text[ISO_TIME_SIZE]);

/* -EINVAL for anything that iso_time_from_ms would not have written. */
int iso_time_to_ms(const char *text, int64_t *ms);

/* For people: local time with its offset, "2026-01-31 03:03:04 +0100". */
#define LOCAL_TIME_SIZE 32

/* Writes the local time of a text that iso_time_to_ms reads; "" and -EINVAL for any other. */
int iso_time_to_local(const char *text, char local[LOCAL_TIME_SIZE]);

/* Returns a copy of a text with each UTC time in it, with or without seconds, as local time: malloc'd; NULL: no
 * memory. */
char *iso_time_localise(const char *text);

#endif
