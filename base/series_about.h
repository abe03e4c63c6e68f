/*
 * series_about.h - search fields of a series: scanner, study and patient (series_about.def). Values are UTF-8,
 * and "" if the image lacks the field.
 */
#ifndef NOCTULE_BASE_SERIES_ABOUT_H
#define NOCTULE_BASE_SERIES_ABOUT_H

#include <stdbool.h>

#define SERIES_ABOUT_SIZE 260 /* 64 characters of up to 4 bytes, and the end */

struct series_about {
#define ABOUT(name, keyword, identifies) char name[SERIES_ABOUT_SIZE];
#include "base/series_about.def"
};

enum {

#define ABOUT(name, keyword, identifies) SERIES_ABOUT_##name,
#include "base/series_about.def"
    SERIES_ABOUT_COUNT
};

#define SERIES_ABOUT_TEXT (SERIES_ABOUT_COUNT * SERIES_ABOUT_SIZE)

/* Joins all fields to one text, for a message between processes. */
void series_about_join(const struct series_about *about, char text[SERIES_ABOUT_TEXT]);
/* Splits a joined text. Returns false if it is malformed. */
bool series_about_split(const char *text, struct series_about *about);

/* Returns the value of a row of the table, by its index. */
char *series_about_value(struct series_about *about, int number);
bool series_about_identifies(int number);

#endif
