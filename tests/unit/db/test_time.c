/* Milliseconds to text and back. */
#include "db/iso_time.h"

#include "tests/unit/db/sample.h"

#include <time.h>

START_TEST(known_times)
{
    static const struct {
        int64_t ms;
        const char *text;
    } cases[] = {
        {0, "1970-01-01T00:00:00.000Z"},
        {-1, "1969-12-31T23:59:59.999Z"},
        {INT64_C(951782399999), "2000-02-28T23:59:59.999Z"},
        {INT64_C(951782400000), "2000-02-29T00:00:00.000Z"},
        {INT64_C(1769824984567), "2026-01-31T02:03:04.567Z"},
        {INT64_C(253402300799999), "9999-12-31T23:59:59.999Z"},
        {INT64_C(-62167219200000), "0000-01-01T00:00:00.000Z"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[ISO_TIME_SIZE];
        int64_t ms;
        ck_assert_int_eq(iso_time_from_ms(cases[i].ms, text), 0);
        ck_assert_str_eq(text, cases[i].text);
        ck_assert_int_eq(iso_time_to_ms(text, &ms), 0);
        ck_assert_int_eq(ms, cases[i].ms);
    }
}

END_TEST

START_TEST(texts_sort_like_times)
{
    char before[ISO_TIME_SIZE], after[ISO_TIME_SIZE];
    for (int64_t ms = -100000000000000 / 2; ms < 100000000000000; ms += 987654321987) {
        ck_assert_int_eq(iso_time_from_ms(ms, before), 0);
        ck_assert_int_eq(iso_time_from_ms(ms + 1, after), 0);
        ck_assert_int_lt(strcmp(before, after), 0);
    }
}

END_TEST

START_TEST(out_of_range)
{
    char text[ISO_TIME_SIZE];
    ck_assert_int_eq(iso_time_from_ms(INT64_C(253402300800000), text), -ERANGE);
    ck_assert_int_eq(iso_time_from_ms(INT64_C(-62167219200001), text), -ERANGE);
    ck_assert_int_eq(iso_time_from_ms(INT64_MAX, text), -ERANGE);
    ck_assert_int_eq(iso_time_from_ms(INT64_MIN, text), -ERANGE);
}

END_TEST

START_TEST(not_a_time)
{
    static const char *const texts[] = {
        "",
        "now",
        "2026-01-31 02:03:04.567Z",
        "2026-01-31T02:03:04.567",
        "2026-01-31T02:03:04.567ZZ",
        "2026-02-30T02:03:04.567Z",
        "2026-13-01T02:03:04.567Z",
        "2026-01-31T24:00:00.000Z",
        "2026-01-31T02:60:04.567Z",
        "2026-01-31T02:03:60.567Z",
        "2026-01-00T02:03:04.567Z",
        "-026-01-31T02:03:04.567Z",
        "2026-01-31T02:03:04.56xZ",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        int64_t ms = 42;
        ck_assert_msg(iso_time_to_ms(texts[i], &ms) == -EINVAL, "%s", texts[i]);
        ck_assert_int_eq(ms, 42);
    }
}

END_TEST

/* Central Europe, by its rule: one hour ahead of UTC in winter, two in summer. */
static void
go_to_europe(void)
{
    setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1);
    tzset();
}

START_TEST(local_times_have_an_offset)
{
    char local[LOCAL_TIME_SIZE];
    go_to_europe();
    ck_assert_int_eq(iso_time_to_local("2026-01-31T02:03:04.567Z", local), 0);
    ck_assert_str_eq(local, "2026-01-31 03:03:04 +0100");
    ck_assert_int_eq(iso_time_to_local("2026-07-01T22:30:00.000Z", local), 0);
    ck_assert_str_eq(local, "2026-07-02 00:30:00 +0200");
    ck_assert_int_eq(iso_time_to_local("2026-07-01", local), -EINVAL);
    ck_assert_str_eq(local, "");
}

END_TEST

START_TEST(sentences_have_local_times)
{
    static const char *const sentences[][2] = {
        {"", ""},
        {"the first until 2026-01-31T02:03:04.567Z", "the first until 2026-01-31 03:03:04 +0100"},
        {"2026-01-31T02:03:04Z to 2026-07-01T22:30Z.", "2026-01-31 03:03:04 +0100 to 2026-07-02 00:30:00 +0200."},
        {"2026-01-31T02:03Z2026-01-31T02:03Z", "2026-01-31 03:03:00 +01002026-01-31 03:03:00 +0100"},
        {"1.2.840.2026-01-31 at 2026-01-31T25:03Z", "1.2.840.2026-01-31 at 2026-01-31T25:03Z"},
        {"2026-01-31T02:03:04.567", "2026-01-31T02:03:04.567"},
    };

    go_to_europe();
    for (size_t i = 0; i < sizeof sentences / sizeof *sentences; i++) {
        char *local = iso_time_localise(sentences[i][0]);
        ck_assert_str_eq(local, sentences[i][1]);
        free(local);
    }
}

END_TEST

SAMPLE_MAIN("db_time", NULL, NULL, local_times_have_an_offset, sentences_have_local_times, known_times,
            texts_sort_like_times, out_of_range, not_a_time)
