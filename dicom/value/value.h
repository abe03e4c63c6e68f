/*
 * value.h - text values and colours in the form that DICOM requires (PS3.5 6.2).
 *
 * Pure functions. They do not depend on the locale.
 */
#ifndef NOCTULE_DICOM_VALUE_VALUE_H
#define NOCTULE_DICOM_VALUE_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define VALUE_DS_SIZE 17 /* 16 characters and the NUL */
#define VALUE_CS_SIZE 17
#define VALUE_DA_SIZE 9  /* YYYYMMDD */
#define VALUE_TM_SIZE 14 /* HHMMSS.FFFFFF */

/* Formats a finite number. Uses the shortest text that reads back as the same double, if 16
 * characters suffice, or else the most accurate text of 16 characters. */
void value_ds_format(double number, char text[VALUE_DS_SIZE]);

/* Copies the source's text if it is a valid DS of at most 16 characters. Otherwise uses
 * value_ds_format. */
void value_ds_copy(const char *source, double number, char text[VALUE_DS_SIZE]);

/* Characters that a text value may contain. */
enum value_text_kind {
    VALUE_LINE,  /* LO, SH, UC: no backslash, no control characters */
    VALUE_LINES, /* ST, LT, UT: also line breaks and backslashes */
};

/*
 * Copies at most `characters` characters of UTF-8 text. Replaces characters that the kind forbids:
 * a backslash by '/', a tab or line break by ' ', other control characters by '_'. Bytes that are
 * not UTF-8 become '?'. So does every non-ASCII character if `ascii` is set. Drops trailing spaces.
 * Returns a string that the caller must free, or NULL if memory is short.
 */
char *value_text_clean(const char *text, size_t characters, enum value_text_kind kind, bool ascii);

bool value_text_is_ascii(const char *text);

/* Makes a Code String from any text: capitals, digits, '_' and ' '. Copies `otherwise` if no
 * character is left. */
void value_cs_make(const char *text, const char *otherwise, char cs[VALUE_CS_SIZE]);

/* Returns whether a value (possibly multi-valued, padding included) has a legal form for its VR.
 * Checks AS, CS, DA, DS, IS, TM and UI. Accepts every other VR. */
bool value_is_legal(const char vr[2], const char *value, size_t size);

/* ---- display colours: PCS-values of CIELab (PS3.3 C.10.7.1.1, D50 white of ICC) ---- */

/* Converts sRGB, each 0..1 (clamped), to L 0..65535 (for 0..100) and a, b 0..65535 (for
 * -128..127). */
void value_lab_from_srgb(const double rgb[3], uint16_t lab[3]);

/* Converts back. Colours outside sRGB are clamped. */
void value_srgb_from_lab(const uint16_t lab[3], double rgb[3]);

/* ---- encoded numbers and VRs ---- */

static inline uint16_t
value_u16(const uint8_t *bytes, bool big_endian)
{
    return (uint16_t)(big_endian ? bytes[0] << 8 | bytes[1] : bytes[1] << 8 | bytes[0]);
}

static inline uint32_t
value_u32(const uint8_t *bytes, bool big_endian)
{
    const uint32_t first = value_u16(bytes, big_endian), second = value_u16(bytes + 2, big_endian);
    return big_endian ? first << 16 | second : second << 16 | first;
}

/* Returns a tag as group << 16 | element. */
static inline uint32_t
value_tag(const uint8_t *bytes, bool big_endian)
{
    return (uint32_t)value_u16(bytes, big_endian) << 16 | value_u16(bytes + 2, big_endian);
}

/* Form of an element in explicit VR (PS3.5 table 7.1-1). */
enum value_vr_form {
    VALUE_VR_UNKNOWN,
    VALUE_VR_SHORT, /* 16-bit length */
    VALUE_VR_LONG,  /* two reserved bytes and a 32-bit length */
};

enum value_vr_form value_vr_form(const void *vr);

#ifdef __cplusplus
}
#endif
#endif
