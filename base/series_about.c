#include "base/series_about.h"

#include <stddef.h>
#include <string.h>

#define BETWEEN '\x1f' /* DICOM text cannot contain it (PS3.5, 6.1) */

static const struct {
    size_t offset;
    bool identifies;
} rows[] = {

#define ABOUT(name, keyword, identifies) {offsetof(struct series_about, name), identifies},
#include "base/series_about.def"
};

char *
series_about_value(struct series_about *about, int number)
{
    return (char *)about + rows[number].offset;
}

bool
series_about_identifies(int number)
{
    return rows[number].identifies;
}

void
series_about_join(const struct series_about *about, char text[SERIES_ABOUT_TEXT])
{
    char *to = text;
    for (int i = 0; i < SERIES_ABOUT_COUNT; i++) {
        for (const char *from = (const char *)about + rows[i].offset; *from; from++)
            *to++ = (char)(*from == BETWEEN ? ' ' : *from);
        *to++ = (char)(i + 1 < SERIES_ABOUT_COUNT ? BETWEEN : '\0');
    }
}

bool
series_about_split(const char *text, struct series_about *about)
{
    *about = (struct series_about){0};
    for (int i = 0; i < SERIES_ABOUT_COUNT; i++) {
        const char *end = strchr(text, BETWEEN);
        const size_t length = end ? (size_t)(end - text) : strlen(text);
        if (!end != (i + 1 == SERIES_ABOUT_COUNT) || length >= SERIES_ABOUT_SIZE)
            return false;
        memcpy(series_about_value(about, i), text, length);
        text += length + 1;
    }
    return true;
}
