/*
 * iso_time.c - see iso_time.h. Pure functions; any thread.
 */
#include "db/iso_time.h"

#include <errno.h>
#include <stdio.h>
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
    /* The remainders change nothing; they tell the compiler that the text fits. */
    snprintf(text, ISO_TIME_SIZE, "%04u-%02u-%02uT%02u:%02u:%02u.%03uZ",
             (unsigned)(tm.tm_year + 1900) % 10000u, (unsigned)(tm.tm_mon + 1) % 100u,
             (unsigned)tm.tm_mday % 100u, (unsigned)tm.tm_hour % 100u, (unsigned)tm.tm_min % 100u,
             (unsigned)tm.tm_sec % 100u, (unsigned)fraction % 1000u);
    return 0;
}

/* The number that `count` digits at `text` stand for; the caller has checked that they are digits.
 */
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
    /* timegm accepts 31 February; the way back shows whether it was a date. */
    char again[ISO_TIME_SIZE];
    if (iso_time_from_ms(value, again) < 0 || strcmp(again, text) != 0)
        return -EINVAL;
    *ms = value;
    return 0;
}
