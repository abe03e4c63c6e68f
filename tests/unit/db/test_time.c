/* Milliseconds to text and back. */
#include "db/iso_time.h"

#include "tests/unit/db/sample.h"

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

SAMPLE_MAIN("db_time", NULL, NULL, known_times, texts_sort_like_times, out_of_range, not_a_time)
