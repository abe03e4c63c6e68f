#include "base/calendar/time_window.h"

#include "base/calendar/time_zone.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define DAY_SECONDS  INT64_C(86400)
#define DAY_MINUTES  1440
#define PERIODS_MAX  16
#define HORIZON_DAYS 16 /* a window that does not open within two weeks and the widest clock change never opens */
#define WORD_SIZE    96

struct time_window {
    struct time_zone *zone; /* NULL: the host's zone */
    size_t count;

    struct period {
        unsigned days;  /* bit 0: Monday */
        int start, end; /* minutes of the day; an end before the start is on the next day */
    } periods[PERIODS_MAX];
};

/* ------------------------------------------------------------------------------- the text ---- */

struct window_parser {
    const char *at;
    bool moments;
    char *why;
};

__attribute__((format(printf, 2, 3))) static int
parser_refuse(const struct window_parser *parser, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    vsnprintf(parser->why, TIME_WINDOW_WHY, format, values);
    va_end(values);
    return -EINVAL;
}

/* A word ends at a space or a semicolon. */
static int
parser_word(struct window_parser *parser, char word[WORD_SIZE])
{
    parser->at += strspn(parser->at, " ");
    const size_t length = strcspn(parser->at, " ;");
    if (length >= WORD_SIZE)
        return parser_refuse(parser, "\"%.40s...\" is too long", parser->at);
    memcpy(word, parser->at, length);
    word[length] = '\0';
    parser->at += length + strspn(parser->at + length, " ");
    return 0;
}

/* Returns the day of a word such as "Mon", from 0 for Monday, or -1. */
static int
parse_day(const char *text, size_t length)
{
    static const char *const days[] = {"Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"};
    for (int i = 0; i < 7; i++)
        if (length == 3 && strncasecmp(text, days[i], 3) == 0)
            return i;
    return -1;
}

static int
parse_days(const struct window_parser *parser, const char *word, unsigned *days)
{
    const char *at = word;
    *days = 0;
    for (;; at++) {
        const size_t length = strcspn(at, "-,");
        const int first = parse_day(at, length);
        int last = first;
        at += length;
        if (*at == '-') {
            const size_t rest = strcspn(++at, ",");
            last = parse_day(at, rest);
            at += rest;
        }
        if (first < 0 || last < 0)
            return parser_refuse(parser, "\"%s\" is not a day or range of days: write Mon-Fri or Sat,Sun", word);
        for (int day = first; *days |= 1u << day, day != last;)
            day = (day + 1) % 7;
        if (!*at)
            return 0;
    }
}

/* Parses a time such as "22:00". Returns its minutes and the text after it, or -1. */
static int
parse_time(const char **at)
{
    const char *text = *at;
    for (int i = 0; i < 5; i++)
        if (i == 2 ? text[i] != ':' : !isdigit((unsigned char)text[i]))
            return -1;
    const int hours = 10 * (text[0] - '0') + text[1] - '0';
    const int minutes = 10 * (text[3] - '0') + text[4] - '0';
    *at += 5;
    return minutes < 60 && hours * 60 + minutes <= DAY_MINUTES ? hours * 60 + minutes : -1;
}

static int
parse_times(const struct window_parser *parser, const char *word, struct period *period)
{
    const char *at = word;
    period->start = period->end = parse_time(&at);
    if (parser->moments)
        return period->start >= 0 && period->start < DAY_MINUTES && !*at
                   ? 0
                   : parser_refuse(parser, "\"%s\" is not a time of day: write 07:00, from 00:00 to 23:59", word);
    if (period->start >= 0 && *at++ == '-')
        period->end = parse_time(&at);
    else
        period->end = -1;
    if (period->end < 0 || *at)
        return parser_refuse(parser, "\"%s\" is not a time interval: write 22:00-06:00, within 00:00 and 24:00", word);
    if (period->start % DAY_MINUTES == period->end)
        return parser_refuse(parser, "\"%s\" is empty: all day is 00:00-24:00", word);
    if (period->start == DAY_MINUTES)
        return parser_refuse(parser, "\"%s\" begins at the end of the day: write 00:00", word);
    return 0;
}

static int
parse_zone(struct window_parser *parser, const char *name, struct time_window *window)
{
    if (window->zone || *parser->at)
        return parser_refuse(
            parser, "\"%s\" follows a time: write one time zone at the end, and separate intervals by \";\"", name);
    const int rc = time_zone_load(name, &window->zone);
    if (rc == -ENOMEM)
        return rc;
    return rc < 0 ? parser_refuse(parser,
                                  "\"%s\" is not a time zone of " TIME_ZONES
                                  " (package tzdata): write one like Europe/Berlin",
                                  name)
                  : 0;
}

/* Reads one period and the separator after it. */
static int
parse_period(struct window_parser *parser, struct time_window *window)
{
    char word[WORD_SIZE];
    if (window->count == PERIODS_MAX)
        return parser_refuse(parser, "has more than %d periods", PERIODS_MAX);
    struct period *period = &window->periods[window->count++];
    int rc = parser_word(parser, word);
    period->days = 0x7f;
    if (rc == 0 && isalpha((unsigned char)*word)) {
        rc = parse_days(parser, word, &period->days);
        if (rc == 0)
            rc = parser_word(parser, word);
    }
    if (rc == 0 && !*word)
        rc = parser_refuse(parser, parser->moments ? "lacks a time: write \"07:00\" or \"Mon-Fri 07:00\""
                                                   : "lacks a time interval: write \"22:00-06:00\" or "
                                                     "\"Mon-Fri 22:00-06:00\"");
    if (rc == 0)
        rc = parse_times(parser, word, period);
    if (rc == 0 && *parser->at && *parser->at != ';') {
        rc = parser_word(parser, word);
        if (rc == 0)
            rc = parse_zone(parser, word, window);
    }
    return rc;
}

static int
parse_window(struct window_parser *parser, const char *text, struct time_window **out)
{
    struct time_window *window = calloc(1, sizeof *window);
    if (!window)
        return -ENOMEM;
    parser->at = text;
    int rc = parse_period(parser, window);
    while (rc == 0 && *parser->at == ';') {
        parser->at++;
        rc = parse_period(parser, window);
    }
    if (rc < 0)
        time_window_free(window);
    else
        *out = window;
    return rc;
}

int
time_window_parse(const char *text, struct time_window **window, char why[TIME_WINDOW_WHY])
{
    return parse_window(&(struct window_parser){.why = why}, text, window);
}

int
time_window_parse_moments(const char *text, struct time_window **moments, char why[TIME_WINDOW_WHY])
{
    return parse_window(&(struct window_parser){.moments = true, .why = why}, text, moments);
}

void
time_window_free(struct time_window *window)
{
    if (window)
        time_zone_free(window->zone);
    free(window);
}

/* ------------------------------------------------------------------------------- queries ----- */

/* Unix seconds; empty unless start < end. */
struct stretch {
    int64_t start, end;
};

static int64_t
window_day(const struct time_window *window, int64_t seconds)
{
    const int64_t civil = seconds + time_zone_offset(window->zone, seconds);
    return civil >= 0 ? civil / DAY_SECONDS : (civil - DAY_SECONDS + 1) / DAY_SECONDS;
}

/* Returns whether a period opens on a day, and sets the span. */
static bool
window_stretch(const struct time_window *window, size_t period, int64_t day, struct stretch *stretch)
{
    const struct period *p = &window->periods[period];
    const int64_t weekday = ((day + 3) % 7 + 7) % 7; /* 1970-01-01 was a Thursday */
    if (!(p->days >> weekday & 1))
        return false;
    const int64_t last = p->end < p->start ? day + 1 : day;
    stretch->start = time_zone_reaches(window->zone, day * DAY_SECONDS + 60 * (int64_t)p->start);
    stretch->end = time_zone_reaches(window->zone, last * DAY_SECONDS + 60 * (int64_t)p->end);
    return true;
}

/* Returns the end of the longest span that is open at this second, or the second itself if it is closed. */
static int64_t
window_reach(const struct time_window *window, int64_t seconds)
{
    const int64_t today = window_day(window, seconds);
    int64_t end = seconds;
    for (int64_t day = today - 1; day <= today; day++)
        for (size_t i = 0; i < window->count; i++) {
            struct stretch s;
            if (window_stretch(window, i, day, &s) && s.start <= seconds && s.end > end)
                end = s.end;
        }
    return end;
}

static int64_t
window_seconds(int64_t ms)
{
    return ms >= 0 ? ms / 1000 : (ms - 999) / 1000;
}

bool
time_window_is_open(const struct time_window *window, int64_t at_ms)
{
    const int64_t seconds = window_seconds(at_ms);
    return !window || window_reach(window, seconds) > seconds;
}

int64_t
time_window_starts(const struct time_window *window, int64_t after_ms)
{
    const int64_t today = window_day(window, window_seconds(after_ms));
    int64_t first = TIME_WINDOW_NEVER;
    for (int64_t day = today - 1; day <= today + HORIZON_DAYS; day++)
        for (size_t i = 0; i < window->count; i++) {
            const bool moment = window->periods[i].start == window->periods[i].end;
            struct stretch s;
            if (window_stretch(window, i, day, &s) && s.start * 1000 > after_ms && s.start * 1000 < first &&
                (moment || s.end > s.start))
                first = s.start * 1000;
        }
    return first;
}

int64_t
time_window_opens(const struct time_window *window, int64_t from_ms)
{
    return time_window_is_open(window, from_ms) ? from_ms : time_window_starts(window, from_ms);
}

int64_t
time_window_closes(const struct time_window *window, int64_t at_ms)
{
    if (!window)
        return TIME_WINDOW_NEVER;
    const int64_t from = window_seconds(at_ms);
    int64_t at = from, end = window_reach(window, at);
    while (end > at && end - from < HORIZON_DAYS * DAY_SECONDS) {
        at = end;
        end = window_reach(window, at);
    }
    return at == from ? at_ms : end > at ? TIME_WINDOW_NEVER : at * 1000;
}
