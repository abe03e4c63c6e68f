#include "dicom/value/value.h"

#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    DS_LENGTH = VALUE_DS_SIZE - 1,
    IS_LENGTH = 12,
    CS_LENGTH = VALUE_CS_SIZE - 1,
    UI_LENGTH = 64,
};

static bool
is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Formats with `digits` significant digits. Returns whether the text reads back as the same
 * number. */
static bool
format_digits(double number, int digits, char text[32])
{
    snprintf(text, 32, "%.*g", digits, number);
    bool same = strtod(text, NULL) == number;
    for (char *c = text; *c; c++) {
        if (*c == ',') /* some locales have this radix character */
            *c = '.';
    }
    char *place = strchr(text, 'e');
    if (!place)
        return same;
    /* Remove leading zeros and the plus sign of the exponent: 1e+05, 1e-05 -> 1e5, 1e-5. */
    char *from = ++place;
    if (*from == '+')
        from++;
    else if (*from == '-')
        place = ++from;
    while (*from == '0' && from[1] != '\0')
        from++;
    memmove(place, from, strlen(from) + 1);
    return same;
}

void
value_ds_format(double number, char text[VALUE_DS_SIZE])
{
    char attempt[32];
    if (number == 0.0) /* also for -0 */
        number = 0.0;
    /* 15 digits restore any decimal of at most 15 digits. 17 digits restore every double. */
    int digits = 15;
    while (digits < 17 && !format_digits(number, digits, attempt))
        digits++;
    do {
        format_digits(number, digits, attempt);
    } while (strlen(attempt) > DS_LENGTH && --digits > 0);
    memcpy(text, attempt, VALUE_DS_SIZE);
    text[DS_LENGTH] = '\0';
}

static bool
is_integer(const char *text, size_t size)
{
    size_t i = size > 0 && (text[0] == '+' || text[0] == '-') ? 1 : 0;
    if (i == size)
        return false;
    for (; i < size; i++) {
        if (!is_digit(text[i]))
            return false;
    }
    return true;
}

/* Checks one number: sign, digits with at most one point, exponent. */
static bool
is_decimal(const char *text, size_t size)
{
    size_t i = 0;
    size_t digits = 0;
    if (i < size && (text[i] == '+' || text[i] == '-'))
        i++;
    for (bool point = false; i < size && (is_digit(text[i]) || (text[i] == '.' && !point)); i++) {
        if (text[i] == '.')
            point = true;
        else
            digits++;
    }
    if (digits == 0)
        return false;
    if (i == size)
        return true;
    return (text[i] == 'e' || text[i] == 'E') && is_integer(text + i + 1, size - i - 1);
}

/* Removes spaces around a value, and the NUL that some senders pad with. */
static void
trim(const char **text, size_t *size)
{
    while (*size > 0 && **text == ' ') {
        (*text)++;
        (*size)--;
    }
    while (*size > 0 && ((*text)[*size - 1] == ' ' || (*text)[*size - 1] == '\0'))
        (*size)--;
}

void
value_ds_copy(const char *source, double number, char text[VALUE_DS_SIZE])
{
    size_t size = strlen(source);
    trim(&source, &size);
    if (size <= DS_LENGTH && is_decimal(source, size)) {
        memcpy(text, source, size);
        text[size] = '\0';
    } else {
        value_ds_format(number, text);
    }
}

static char
clean_ascii(char c, enum value_text_kind kind)
{
    if (kind == VALUE_LINES && (c == '\r' || c == '\n' || c == '\\'))
        return c;
    if (c == '\\')
        return '/';
    if (c == '\t' || c == '\n' || c == '\r')
        return ' ';
    return (uint8_t)c < 0x20 || c == 0x7F ? '_' : c;
}

char *
value_text_clean(const char *text, size_t characters, enum value_text_kind kind, bool ascii)
{
    char *clean = malloc(strlen(text) + 1);
    if (!clean)
        return NULL;
    size_t size = 0;
    for (size_t count = 0; *text && count < characters; count++) {
        size_t length = text_utf8_length(text);
        if (length == 1) {
            clean[size++] = clean_ascii(*text, kind);
        } else if (length == 0 || ascii) {
            clean[size++] = '?';
        } else {
            memcpy(clean + size, text, length);
            size += length;
        }
        text += length ? length : 1;
    }
    while (size > 0 && clean[size - 1] == ' ')
        size--;
    clean[size] = '\0';
    return clean;
}

bool
value_text_is_ascii(const char *text)
{
    for (; *text; text++) {
        if ((uint8_t)*text >= 0x80)
            return false;
    }
    return true;
}

void
value_cs_make(const char *text, const char *otherwise, char cs[VALUE_CS_SIZE])
{
    size_t size = 0;
    bool any = false;
    for (; *text && size < CS_LENGTH; text++) {
        if ((*text & 0xC0) == 0x80) /* rest of a UTF-8 character: one '_' per character */
            continue;
        char c = *text >= 'a' && *text <= 'z' ? (char)(*text - 'a' + 'A') : *text;
        bool allowed = (c >= 'A' && c <= 'Z') || is_digit(c);
        any = any || allowed;
        cs[size++] = allowed ? c : '_';
    }
    cs[size] = '\0';
    if (!any)
        snprintf(cs, VALUE_CS_SIZE, "%s", otherwise);
}

static bool
is_age(const char *text, size_t size)
{
    return size == 4 && is_digit(text[0]) && is_digit(text[1]) && is_digit(text[2]) && strchr("DWMY", text[3]);
}

static bool
in_range(const char *two_digits, int lo, int hi)
{
    int value = (two_digits[0] - '0') * 10 + (two_digits[1] - '0');
    return value >= lo && value <= hi;
}

static bool
is_date(const char *text, size_t size)
{
    return size == 8 && is_integer(text, size) && is_digit(text[0]) && in_range(text + 4, 1, 12) &&
           in_range(text + 6, 1, 31);
}

/* Checks for HH, HHMM, HHMMSS or HHMMSS.F, with one to six F. */
static bool
is_time(const char *text, size_t size)
{
    size_t whole = size < 6 ? size : 6;
    if (whole == 0 || whole % 2 != 0 || !is_digit(text[0]) || !is_integer(text, whole))
        return false;
    if (!in_range(text, 0, 23) || (whole >= 4 && !in_range(text + 2, 0, 59)) ||
        (whole == 6 && !in_range(text + 4, 0, 60)))
        return false;
    if (size == whole)
        return true;
    return text[6] == '.' && size >= 8 && is_digit(text[7]) && is_integer(text + 7, size - 7);
}

static bool
is_code_string(const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (!(text[i] >= 'A' && text[i] <= 'Z') && !is_digit(text[i]) && text[i] != '_' && text[i] != ' ')
            return false;
    }
    return true;
}

/* Checks for numbers without leading zeros, separated by dots (PS3.5 9.1). */
static bool
is_uid(const char *text, size_t size)
{
    bool begins = true;
    for (size_t i = 0; i < size; i++) {
        const bool ends = i + 1 == size || text[i + 1] == '.';
        if (!is_digit(text[i]) && (text[i] != '.' || begins || i + 1 == size))
            return false;
        if (begins && text[i] == '0' && !ends)
            return false;
        begins = text[i] == '.';
    }
    return true;
}

bool
value_is_legal(const char vr[2], const char *value, size_t size)
{
    static const struct {
        char vr[3];
        size_t size;
        bool (*is_legal)(const char *text, size_t size);
    } forms[] = {
        {"AS", 4, is_age},
        {"CS", CS_LENGTH, is_code_string},
        {"DA", 8, is_date},
        {"DS", DS_LENGTH, is_decimal},
        {"IS", IS_LENGTH, is_integer},
        {"TM", 13, is_time},
        {"UI", UI_LENGTH, is_uid},
    };

    for (;;) {
        const char *end = size > 0 ? memchr(value, '\\', size) : NULL;
        const char *text = value;
        size_t length = end ? (size_t)(end - value) : size;
        size_t rest = size - length;
        trim(&text, &length);
        for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]) && length > 0; i++)
            if (memcmp(forms[i].vr, vr, 2) == 0 && (length > forms[i].size || !forms[i].is_legal(text, length)))
                return false;
        if (!end)
            return true;
        value = end + 1;
        size = rest - 1;
    }
}

enum value_vr_form
value_vr_form(const void *vr)
{
    static const char short_form[] = "AEASATCSDADSDTFDFLISLOLTPNSHSLSSSTTMUIULUS";
    static const char long_form[] = "OBODOFOLOVOWSQSVUCUNURUTUV";
    for (size_t i = 0; i + 1 < sizeof(short_form); i += 2)
        if (memcmp(short_form + i, vr, 2) == 0)
            return VALUE_VR_SHORT;
    for (size_t i = 0; i + 1 < sizeof(long_form); i += 2)
        if (memcmp(long_form + i, vr, 2) == 0)
            return VALUE_VR_LONG;
    return VALUE_VR_UNKNOWN;
}
