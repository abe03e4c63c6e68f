/*
 * value_text.h - text values as DICOM wants them (PS3.5 6.2). Pure functions, independent of the
 * locale.
 */
#ifndef NOCTULE_VALUE_TEXT_H
#define NOCTULE_VALUE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define VALUE_DS_SIZE 17 /* 16 characters and the end */
#define VALUE_CS_SIZE 17
#define VALUE_DA_SIZE 9  /* YYYYMMDD */
#define VALUE_TM_SIZE 14 /* HHMMSS.FFFFFF */

/*
 * The decimal text of a finite number: the shortest that reads back as the same double where
 * 16 characters suffice, else the most accurate one of 16 characters.
 */
void value_ds_format(double number, char text[VALUE_DS_SIZE]);

/* The source's own text when it is a valid DS of at most 16 characters, else value_ds_format. */
void value_ds_copy(const char *source, double number, char text[VALUE_DS_SIZE]);

/* What a text value may hold. */
enum value_text_kind {
    VALUE_LINE,  /* LO, SH, UC: no backslash, no control characters */
    VALUE_LINES, /* ST, LT, UT: line breaks and backslashes too */
};

/*
 * Copies UTF-8 text, at most `characters` characters of it: what the kind forbids becomes '/' (a
 * backslash), ' ' (a tab, a line break) or '_' (other control characters); bytes that are no UTF-8,
 * and every character beyond ASCII when `ascii` is set, become '?'. Spaces at the end are dropped.
 * Returns a string to free, or NULL without memory.
 */
char *value_text_clean(const char *text, size_t characters, enum value_text_kind kind, bool ascii);

bool value_text_is_ascii(const char *text);

/* A Code String from any text: capitals, digits, '_' and ' '; `otherwise` when nothing is left. */
void value_cs_make(const char *text, const char *otherwise, char cs[VALUE_CS_SIZE]);

/*
 * Whether a value (possibly multi-valued, with its padding) has a legal form for its VR. Judged are
 * AS, CS, DA, DS, IS, TM and UI; every other VR passes.
 */
bool value_is_legal(const char vr[2], const char *value, size_t size);

#ifdef __cplusplus
}
#endif
#endif
