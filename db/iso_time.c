/* iso_time.c - see iso_time.h. Thread-safe; TZ defines local time. */
#include "db/iso_time.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define FIRST_MS INT64_C(-62167219200000) /* 0000-01-01T00:00:00.000Z */
#define LAST_MS  INT64_C(253402300799999) /* 9999-12-31T23:59:59.999Z */

int
iso_time_from_ms(int64_t ms, char text[ISO_TIME_SIZE])
{
    if (ms < FIRST_MS || ms > LAST_MS)
        return -ERANGE;
    int64_t fraction = ms % 1000;
    if (fraction < 0)
        fraction += 1000;
    time_t seconds = (time_t)((ms - fraction) / 1000);
    struct tm tm;
    if (!gmtime_r(&seconds, &tm))
        return -ERANGE;
    /* The remainders change no value; they show the compiler that the text fits. */
    snprintf(text, ISO_TIME_SIZE, "%04u-%02u-%02uT%02u:%02u:%02u.%03uZ", (unsigned)(tm.tm_year + 1900) % 10000u,
             (unsigned)(tm.tm_mon + 1) % 100u, (unsigned)tm.tm_mday % 100u, (unsigned)tm.tm_hour % 100u,
             (unsigned)tm.tm_min % 100u, (unsigned)tm.tm_sec % 100u, (unsigned)fraction % 1000u);
    return 0;
}

/* Returns the number of `count` digits at `text`; the caller must have checked that they are digits. */
static int
iso_number(const char *text, int count)
{
    int value = 0;
    for (int i = 0; i < count; i++)
        value = value * 10 + (text[i] - '0');
    return value;
}

int
iso_time_to_ms(const char *text, int64_t *ms)
{
    static const char form[] = "dddd-dd-ddTdd:dd:dd.dddZ";
    if (strlen(text) != ISO_TIME_LENGTH)
        return -EINVAL;
    for (int i = 0; i < ISO_TIME_LENGTH; i++) {
        int fits = form[i] == 'd' ? text[i] >= '0' && text[i] <= '9' : text[i] == form[i];
        if (!fits)
            return -EINVAL;
    }
    struct tm tm = {
        .tm_year = iso_number(text, 4) - 1900,
        .tm_mon = iso_number(text + 5, 2) - 1,
        .tm_mday = iso_number(text + 8, 2),
        .tm_hour = iso_number(text + 11, 2),
        .tm_min = iso_number(text + 14, 2),
        .tm_sec = iso_number(text + 17, 2),
    };
    int64_t value = (int64_t)timegm(&tm) * 1000 + iso_number(text + 20, 3);
    /* timegm() accepts 31 February; converting back detects it. */
    char again[ISO_TIME_SIZE];
    if (iso_time_from_ms(value, again) < 0 || strcmp(again, text) != 0)
        return -EINVAL;
    *ms = value;
    return 0;
}

/* Writes the local time of Unix milliseconds. Returns whether the text is complete. */
static bool
iso_time_write_local(int64_t ms, char local[LOCAL_TIME_SIZE])
{
    time_t seconds = (time_t)((ms - (ms % 1000 + 1000) % 1000) / 1000);
    struct tm tm;
    return localtime_r(&seconds, &tm) && strftime(local, LOCAL_TIME_SIZE, "%Y-%m-%d %H:%M:%S %z", &tm) > 0;
}

int
iso_time_to_local(const char *text, char local[LOCAL_TIME_SIZE])
{
    int64_t ms;
    if (iso_time_to_ms(text, &ms) == 0 && iso_time_write_local(ms, local))
        return 0;
    local[0] = '\0';
    return -EINVAL;
}

size_t
iso_time_at(const char *text, int64_t *ms)
{
    static const char *const rests[] = {":00.000Z", ".000Z", "Z"};
    static const size_t lengths[] = {16, 19, 23}; /* to minutes, to seconds, to milliseconds */
    char whole[ISO_TIME_SIZE];
    if (*text < '0' || *text > '9')
        return 0;
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        if (strnlen(text, lengths[i] + 1) <= lengths[i] || text[lengths[i]] != 'Z')
            continue;
        snprintf(whole, ISO_TIME_SIZE, "%.*s%s", (int)lengths[i], text, rests[i]);
        if (iso_time_to_ms(whole, ms) == 0)
            return lengths[i] + 1;
    }
    return 0;
}

char *
iso_time_localise(const char *text)
{
    char local[LOCAL_TIME_SIZE];
    int64_t ms;
    /* The shortest time, of 17 characters, becomes one of 25. */
    char *copy = malloc(2 * strlen(text) + LOCAL_TIME_SIZE), *end = copy;
    while (copy && *text) {
        const size_t length = iso_time_at(text, &ms);
        if (length > 0 && iso_time_write_local(ms, local)) {
            end = stpcpy(end, local);
            text += length;
        } else {
            *end++ = *text++;
        }
    }
    if (copy)
        *end = '\0';
    return copy;
}
