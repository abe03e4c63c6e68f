/*
 * test_time_window.c - opening times of windows: over midnight, by days, in zones, over both
 * changes of daylight saving time; and invalid windows. Times are written as UTC.
 */
#include "base/calendar/time_window.h"
#include "base/calendar/time_zone.h"
#include "tests/share.h"
#include "tests/unit/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define HOUR   INT64_C(3600)
#define BERLIN " Europe/Berlin" /* 2026: forward on March 29, back on October 25, at 01:00 UTC */

/* "2026-03-28 21:00", UTC; "": never. */
static int64_t
at(const char *text)
{
    int year, month, day, hour, minute, second = 0;
    if (!*text)
        return TIME_WINDOW_NEVER;
    ck_assert_int_ge(sscanf(text, "%d-%d-%d %d:%d:%d", &year, &month, &day, &hour, &minute, &second), 5);
    return 1000 * (time_zone_day(year, month, day) * 24 * HOUR + hour * HOUR + minute * 60 + second);
}

static struct time_window *
window_of(const char *text)
{
    char why[TIME_WINDOW_WHY] = "";
    struct time_window *window = NULL;
    ck_assert_msg(time_window_parse(text, &window, why) == 0, "%s: %s", text, why);
    return window;
}

/* From a time on: it opens, and then it closes. A window that is open opens at that time. */
static const struct {
    const char *window, *from, *opens, *closes;
} nights[] = {
    /* within a day, and over midnight */
    {"08:00-12:00", "2026-05-04 07:59:59", "2026-05-04 08:00", "2026-05-04 12:00"},
    {"08:00-12:00", "2026-05-04 08:00", "2026-05-04 08:00", "2026-05-04 12:00"},
    {"08:00-12:00", "2026-05-04 12:00", "2026-05-05 08:00", "2026-05-05 12:00"},
    {"22:00-06:00", "2026-05-04 21:00", "2026-05-04 22:00", "2026-05-05 06:00"},
    {"22:00-06:00", "2026-05-05 02:30", "2026-05-05 02:30", "2026-05-05 06:00"},
    {"22:00-06:00", "2026-05-05 06:00", "2026-05-05 22:00", "2026-05-06 06:00"},
    {"22:00-24:00", "2026-12-31 23:00", "2026-12-31 23:00", "2027-01-01 00:00"},
    {"22:00-00:00", "2026-12-31 23:00", "2026-12-31 23:00", "2027-01-01 00:00"},
    {"00:00-24:00", "2026-05-05 06:00", "2026-05-05 06:00", ""},
    {"06:00-05:59", "2026-05-05 05:59:30", "2026-05-05 06:00", "2026-05-06 05:59"},
    /* days, of the opening: 2026-05-08 was a Friday */
    {"Fri 22:00-06:00", "2026-05-09 05:00", "2026-05-09 05:00", "2026-05-09 06:00"},
    {"Fri 22:00-06:00", "2026-05-09 23:00", "2026-05-15 22:00", "2026-05-16 06:00"},
    {"mon-FRI 20:00-06:00; Sat,Sun 00:00-24:00", "2026-05-08 21:00", "2026-05-08 21:00", "2026-05-11 00:00"},
    {"Mon-Fri 20:00-06:00 ;Sat,Sun 00:00-24:00", "2026-05-11 01:00", "2026-05-11 20:00", "2026-05-12 06:00"},
    {"Sat-Mon,Wed 10:00-11:00", "2026-05-05 00:00", "2026-05-06 10:00", "2026-05-06 11:00"},
    {"Sat-Mon,Wed 10:00-11:00", "2026-05-06 12:00", "2026-05-09 10:00", "2026-05-09 11:00"},
    {"Mon-Sun 00:00-24:00", "2026-05-05 06:00", "2026-05-05 06:00", ""},
    {"10:00-12:00; 11:00-13:00; 13:00-14:00", "2026-05-05 09:00", "2026-05-05 10:00", "2026-05-05 14:00"},
    /* zones, also where the day is another, and not of whole hours */
    {"22:00-06:00" BERLIN, "2026-05-04 12:00", "2026-05-04 20:00", "2026-05-05 04:00"},
    {"22:00-06:00" BERLIN, "2026-01-04 12:00", "2026-01-04 21:00", "2026-01-05 05:00"},
    {"Mon 00:00-06:00 Pacific/Auckland", "2026-05-09 12:00", "2026-05-10 12:00", "2026-05-10 18:00"},
    {"22:00-06:00 Asia/Kathmandu", "2026-05-04 12:00", "2026-05-04 16:15", "2026-05-05 00:15"},
    /*
     * forward: a night of seven hours, one that ends or begins in the skipped hour, one within it
     */
    {"22:00-06:00" BERLIN, "2026-03-28 12:00", "2026-03-28 21:00", "2026-03-29 04:00"},
    {"22:00-02:30" BERLIN, "2026-03-28 12:00", "2026-03-28 21:00", "2026-03-29 01:00"},
    {"02:30-06:00" BERLIN, "2026-03-28 12:00", "2026-03-29 01:00", "2026-03-29 04:00"},
    {"02:10-02:50" BERLIN, "2026-03-28 12:00", "2026-03-30 00:10", "2026-03-30 00:50"},
    /* back: nine hours, and the repeated hour */
    {"22:00-06:00" BERLIN, "2026-10-24 12:00", "2026-10-24 20:00", "2026-10-25 05:00"},
    {"22:00-02:30" BERLIN, "2026-10-24 12:00", "2026-10-24 20:00", "2026-10-25 00:30"},
    {"22:00-02:30" BERLIN, "2026-10-25 01:15", "2026-10-25 21:00", "2026-10-26 01:30"},
    {"02:30-06:00" BERLIN, "2026-10-24 12:00", "2026-10-25 00:30", "2026-10-25 05:00"},
    {"02:10-02:50" BERLIN, "2026-10-25 00:55", "2026-10-26 01:10", "2026-10-26 01:50"},
    /* the clocks are set at midnight: 2026-04-24 begins at 01:00 in Cairo */
    {"Fri 00:00-06:00 Africa/Cairo", "2026-04-23 12:00", "2026-04-23 22:00", "2026-04-24 03:00"},
    /* by the rule after the listed changes, and in the south */
    {"22:00-06:00" BERLIN, "2070-03-29 12:00", "2070-03-29 21:00", "2070-03-30 04:00"},
    {"22:00-06:00 America/Santiago", "2070-01-10 12:00", "2070-01-11 01:00", "2070-01-11 09:00"},
    {"22:00-06:00 America/Santiago", "2070-07-10 12:00", "2070-07-11 02:00", "2070-07-11 10:00"},
};

START_TEST(a_window_opens_and_closes)
{
    struct time_window *window = window_of(nights[_i].window);
    const int64_t from = at(nights[_i].from), opens = at(nights[_i].opens);
    ck_assert_int_eq(time_window_opens(window, from), opens);
    ck_assert_int_eq(time_window_closes(window, opens), at(nights[_i].closes));
    ck_assert_int_eq(time_window_is_open(window, from), from == opens);
    ck_assert(time_window_is_open(window, opens));
    if (from != opens) {
        ck_assert(!time_window_is_open(window, opens - 1));
        ck_assert_int_eq(time_window_closes(window, from), from);
    }
    time_window_free(window);
}

END_TEST

static const struct {
    const char *moments, *after, *next;
} mornings[] = {
    {"07:00", "2026-05-04 06:00", "2026-05-04 07:00"},
    {"07:00", "2026-05-04 07:00", "2026-05-05 07:00"},
    {"Mon-Fri 07:00; Sat 09:00", "2026-05-08 08:00", "2026-05-09 09:00"},
    {"Mon-Fri 07:00; Sat 09:00", "2026-05-09 10:00", "2026-05-11 07:00"},
    {"07:00" BERLIN, "2026-03-28 12:00", "2026-03-29 05:00"},
    {"02:30" BERLIN, "2026-03-28 12:00", "2026-03-29 01:00"},
    {"02:30" BERLIN, "2026-10-25 00:30", "2026-10-26 01:30"},
};

START_TEST(the_next_occurrence_of_a_time)
{
    char why[TIME_WINDOW_WHY];
    struct time_window *moments = NULL;
    ck_assert_int_eq(time_window_parse_moments(mornings[_i].moments, &moments, why), 0);
    ck_assert_int_eq(time_window_starts(moments, at(mornings[_i].after)), at(mornings[_i].next));
    ck_assert(!time_window_is_open(moments, at(mornings[_i].next)));
    time_window_free(moments);
}

END_TEST

START_TEST(a_missing_window_is_always_open)
{
    ck_assert(time_window_is_open(NULL, 0));
    ck_assert_int_eq(time_window_opens(NULL, 5), 5);
    ck_assert_int_eq(time_window_closes(NULL, 5), TIME_WINDOW_NEVER);
}

END_TEST

static const struct {
    const char *window, *why;
} malformed[] = {
    {"", "lacks a time interval: write \"22:00-06:00\""},
    {"  ", "lacks a time interval"},
    {"Mon-Fri", "lacks a time interval"},
    {"22:00-06:00;", "lacks a time interval"},
    {"22:00", "\"22:00\" is not a time interval: write 22:00-06:00"},
    {"22-06", "\"22-06\" is not a time interval"},
    {"25:00-06:00", "\"25:00-06:00\" is not a time interval"},
    {"22:60-06:00", "is not a time interval"},
    {"24:01-06:00", "is not a time interval"},
    {"22:00-06:00x", "is not a time interval"},
    {"24:00-06:00", "begins at the end of the day: write 00:00"},
    {"22:00-22:00", "is empty: all day is 00:00-24:00"},
    {"24:00-00:00", "is empty"},
    {"Mo-Fr 22:00-06:00", "\"Mo-Fr\" is not a day or range of days: write Mon-Fri or Sat,Sun"},
    {"Mon- 22:00-06:00", "is not a day or range of days"},
    {"Mon,,Tue 22:00-06:00", "is not a day or range of days"},
    {"Mon-Tue-Wed 22:00-06:00", "is not a day or range of days"},
    {"22:00-06:00 Europe/Berlyn", "\"Europe/Berlyn\" is not a time zone"},
    {"22:00-06:00 ../../../etc/passwd", "is not a time zone"},
    {"22:00-06:00 Europe/../../passwd", "is not a time zone"},
    {"22:00-06:00 Europe", "is not a time zone"},
    {"22:00-06:00 zone.tab", "is not a time zone"},
    {"22:00-06:00 tzdata.zi", "is not a time zone"},
    {"22:00-06:00 UTC UTC", "write one time zone at the end"},
    {"22:00-06:00 UTC; 08:00-09:00", "write one time zone at the end"},
    {"22:00-06:00 08:00-09:00", "is not a time zone"},
    {"1:00-2:00;1:00-2:00", "is not a time interval"},
};

START_TEST(invalid_windows_are_refused)
{
    char why[TIME_WINDOW_WHY] = "";
    struct time_window *window = NULL;
    ck_assert_int_ne(time_window_parse(malformed[_i].window, &window, why), 0);
    ck_assert_ptr_null(window);
    ck_assert_msg(strstr(why, malformed[_i].why), "%s: %s", malformed[_i].window, why);
}

END_TEST

START_TEST(invalid_times_are_refused)
{
    static const char *const texts[] = {"24:00", "07:00-08:00", "7:00", ""};
    char why[TIME_WINDOW_WHY];
    struct time_window *moments = NULL;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        ck_assert_int_ne(time_window_parse_moments(texts[i], &moments, why), 0);
}

END_TEST

START_TEST(periods_have_a_limit)
{
    char text[512] = "01:00-02:00", why[TIME_WINDOW_WHY];
    struct time_window *window = NULL;
    for (int i = 1; i < 16; i++)
        strcat(text, ";01:00-02:00");
    time_window_free(window_of(text));
    strcat(text, ";01:00-02:00");
    ck_assert_int_ne(time_window_parse(text, &window, why), 0);
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    ck_assert_int_ne(time_window_parse(text, &window, why), 0);
}

END_TEST

/* The C library is the oracle, for one zone at a time. */
static const char *const zones[] = {
    "UTC",
    "Europe/Berlin",
    "Europe/Dublin",
    "America/New_York",
    "Asia/Kolkata",
    "America/Santiago",
    "Australia/Lord_Howe",
    "Africa/Cairo",
    "Asia/Jerusalem",
    "America/Nuuk",
    "Africa/Casablanca",
    "Pacific/Chatham",
    "Antarctica/Troll",
    "Asia/Gaza",
    "Pacific/Apia",
};

START_TEST(zones_equal_those_of_the_library)
{
    struct time_zone *zone = NULL;
    ck_assert_int_eq(time_zone_load(zones[_i], &zone), 0);
    setenv("TZ", zones[_i], 1);
    tzset();
    const int64_t shift = 5 * HOUR + 1777, step = shift * (int64_t)test_share();
    for (int64_t t = -HOUR * 24 * 365 * 30 + shift * (int64_t)test_share_first(); t < HOUR * 24 * 365 * 110;
         t += step) {
        const time_t time = (time_t)t;
        struct tm shown;
        localtime_r(&time, &shown);
        ck_assert_msg(time_zone_offset(zone, t) == shown.tm_gmtoff, "%s at %lld", zones[_i], (long long)t);
        ck_assert_int_eq(time_zone_offset(NULL, t), shown.tm_gmtoff);
    }
    time_zone_free(zone);
}

END_TEST

START_TEST(the_default_zone_is_the_hosts)
{
    setenv("TZ", "America/New_York", 1);
    tzset();
    struct time_window *window = window_of("22:00-06:00");
    struct time_window *elsewhere = window_of("22:00-06:00" BERLIN);
    ck_assert_int_eq(time_window_opens(window, at("2026-11-01 12:00")), at("2026-11-02 03:00"));
    ck_assert_int_eq(time_window_opens(window, at("2026-07-01 12:00")), at("2026-07-02 02:00"));
    ck_assert_int_eq(time_window_opens(elsewhere, at("2026-07-01 12:00")), at("2026-07-01 20:00"));
    time_window_free(elsewhere);
    time_window_free(window);
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("base_time_window");
    TCase *tests = tcase_create("time_window");
    setenv("TZ", "UTC", 1);
    tcase_add_loop_test(tests, a_window_opens_and_closes, 0, sizeof nights / sizeof *nights);
    tcase_add_loop_test(tests, the_next_occurrence_of_a_time, 0, sizeof mornings / sizeof *mornings);
    tcase_add_test(tests, a_missing_window_is_always_open);
    tcase_add_loop_test(tests, invalid_windows_are_refused, 0, sizeof malformed / sizeof *malformed);
    tcase_add_test(tests, invalid_times_are_refused);
    tcase_add_test(tests, periods_have_a_limit);
    tcase_add_loop_test(tests, zones_equal_those_of_the_library, 0, sizeof zones / sizeof *zones);
    tcase_add_test(tests, the_default_zone_is_the_hosts);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
