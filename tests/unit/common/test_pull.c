/* Valid keys of archive queries, and the limit of matches. */
#include "base/limits.h"
#include "service/common/pull/pull_keys.h"
#include "service/common/pull/pull_query.h"
#include "tests/unit/edge.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

START_TEST(accession_numbers_are_no_patterns)
{
    static const char *const good[] = {"A", "1234567890123456", "A 1", "A-1/2.3_4"};
    static const char *const bad[] = {"", "12345678901234567", "*", "A?", "A\\B", " A", "A ", "A\n", "\xc3\x84"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        ck_assert_msg(pull_accession_fits(good[i]), "%s", good[i]);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        ck_assert_msg(!pull_accession_fits(bad[i]), "%s", bad[i]);
}

END_TEST

START_TEST(uids_are_digits_and_dots)
{
    char longest[66];
    memset(longest, '1', 65);
    longest[65] = '\0';
    ck_assert(pull_uid_fits("1.2.840.10008") && pull_uid_fits(longest + 1));
    ck_assert(!pull_uid_fits(longest) && !pull_uid_fits("") && !pull_uid_fits("A-1") && !pull_uid_fits(".1") &&
              !pull_uid_fits("1.") && !pull_uid_fits("1..2"));
}

END_TEST

START_TEST(a_batch_has_an_end)
{
    static const struct edge edge = EDGE(PULL_ITEMS);
    ck_assert(!pull_count_fits(0) && pull_count_fits((size_t)edge.most) && !pull_count_fits((size_t)edge.most + 1));
}

END_TEST

START_TEST(matches_are_distinct_and_limited)
{
    static const struct edge edge = EDGE(PULL_MATCHES);
    struct pull_found found = {0};
    struct dicom_match match = {.instances = 1};
    for (int64_t i = 0; i < edge.most; i++) {
        snprintf(match.study_uid, sizeof match.study_uid, "1.2.%lld", (long long)i);
        ck_assert_int_eq(pull_found_add(&found, &match), 0);
        if (i % 1000 == 0)
            ck_assert_int_eq(pull_found_add(&found, &match), 0);
    }
    ck_assert_int_eq(pull_found_add(&found, &match), 0);
    ck_assert_uint_eq(found.count, (size_t)edge.most);
    strcpy(match.study_uid, "1.3");
    ck_assert_int_eq(pull_found_add(&found, &match), -E2BIG);
    free(found.parts);
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("common_pull");
    TCase *tests = tcase_create("pull");
    tcase_add_test(tests, accession_numbers_are_no_patterns);
    tcase_add_test(tests, uids_are_digits_and_dots);
    tcase_add_test(tests, a_batch_has_an_end);
    tcase_add_test(tests, matches_are_distinct_and_limited);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
