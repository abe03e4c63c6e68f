/*
 * Delays before the next attempt.
 */
#include "service/daemon/attempt.h"

#include <check.h>
#include <stdlib.h>

static const struct {
    double first, most;
    int32_t attempts;
    int64_t about_ms;
} cases[] = {
    {10, 100, 0, 10000},
    {10, 100, 1, 10000},
    {10, 100, 2, 20000},
    {10, 100, 3, 40000},
    {10, 100, 4, 80000},
    {10, 100, 5, 100000},
    {10, 100, 6, 100000},
    {10, 5, 1, 5000},
    {0.1, 0.4, 3, 400},
    {30, 3600, 7, 1920000},
    {30, 3600, 8, 3600000},
    {30, 3600, 100000, 3600000},
    {30, 3600, INT32_MAX, 3600000},
};

START_TEST(delays_double_up_to_the_limit_within_a_tenth)
{
    for (int64_t salt = 1; salt < 200; salt++) {
        int64_t wait = backoff_ms(cases[_i].first, cases[_i].most, cases[_i].attempts, salt);
        ck_assert_int_ge(wait, cases[_i].about_ms * 9 / 10);
        ck_assert_int_le(wait, cases[_i].about_ms * 11 / 10);
    }
}

END_TEST

START_TEST(rows_that_failed_together_retry_apart)
{
    int64_t least = INT64_MAX, most = 0;
    for (int64_t salt = 1; salt <= 100; salt++) {
        int64_t wait = backoff_ms(60, 3600, 1, salt);
        least = wait < least ? wait : least;
        most = wait > most ? wait : most;
    }
    ck_assert_int_gt(most - least, 10000);
    ck_assert_int_eq(backoff_ms(60, 3600, 1, 7), backoff_ms(60, 3600, 1, 7));
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("service_backoff");
    TCase *tests = tcase_create("backoff");
    tcase_add_loop_test(tests, delays_double_up_to_the_limit_within_a_tenth, 0, sizeof cases / sizeof cases[0]);
    tcase_add_test(tests, rows_that_failed_together_retry_apart);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
