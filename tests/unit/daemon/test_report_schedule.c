/*
 * Ends of report periods; base/calendar handles clocks that are set twice a year.
 */
#include "base/calendar/time_window.h"
#include "db/iso_time.h"
#include "service/daemon/report/report_schedule.h"
#include "tests/unit/suite.h"

#include <check.h>
#include <string.h>

static int64_t
ms_of(const char *text)
{
    int64_t ms;
    ck_assert_int_eq(iso_time_to_ms(text, &ms), 0);
    return ms;
}

/* "": no period ended. */
static void
assert_end(const char *at, const char *after, const char *now, const char *expected)
{
    struct time_window *moments;
    char why[TIME_WINDOW_WHY];
    ck_assert_int_eq(time_window_parse_moments(at, &moments, why), 0);
    const int64_t end = report_schedule_last_end(moments, ms_of(after), ms_of(now));
    ck_assert_int_eq(end, *expected ? ms_of(expected) : 0);
    time_window_free(moments);
}

START_TEST(the_last_end_before_now_is_found)
{
    const char *at = "07:00 Europe/Berlin"; /* 06:00 UTC, and 05:00 in summer */
    assert_end(at, "2026-11-22T06:00:00.000Z", "2026-11-23T05:59:59.999Z", "");
    assert_end(at, "2026-11-22T06:00:00.000Z", "2026-11-23T06:00:00.000Z", "2026-11-23T06:00:00.000Z");
    assert_end(at, "2026-11-23T06:00:00.000Z", "2026-11-23T06:00:00.000Z", "");
    assert_end(at, "2026-11-12T10:00:00.000Z", "2026-11-23T10:00:00.000Z", "2026-11-23T06:00:00.000Z");
    assert_end(at, "2026-03-28T06:00:00.000Z", "2026-03-29T05:00:00.000Z", "2026-03-29T05:00:00.000Z");
    assert_end(at, "2026-10-24T05:00:00.000Z", "2026-10-25T05:59:59.000Z", "");
    assert_end("Mon-Fri 07:00 UTC", "2026-11-20T07:00:00.000Z", "2026-11-22T12:00:00.000Z", "");
}

END_TEST

/* The clock was set back before the last end. */
START_TEST(no_period_ends_before_its_start)
{
    assert_end("07:00 UTC", "2026-11-23T07:00:00.000Z", "2026-11-22T12:00:00.000Z", "");
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("daemon_nights");
    TCase *tests = tcase_create("nights");
    tcase_add_test(tests, the_last_end_before_now_is_found);
    tcase_add_test(tests, no_period_ends_before_its_start);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
