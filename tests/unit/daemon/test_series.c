/*
 * Times at which a series is complete: a table of cases, and the text of the evidence.
 */
#include "service/daemon/series/series.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#define NOW INT64_C(1800000000000)

static const struct conf_series timers = {.quiet_seconds = 60, .complete_seconds = 5, .patience_seconds = 600};

/* Ages are in milliseconds before NOW. */
static const struct {
    const char *what;
    int32_t instances, expected;
    int64_t last_seen_age, listening_age;
    bool requested;
    bool settle;
    int64_t due_in; /* if it does not settle */
} cases[] = {
    {"unknown count, just arrived", 3, 0, 0, 999999, false, false, 60000},
    {"unknown count, half quiet", 3, 0, 30000, 999999, false, false, 30000},
    {"unknown count, a millisecond short", 3, 0, 59999, 999999, false, false, 1},
    {"unknown count, quiet", 3, 0, 60000, 999999, false, true, 0},
    {"unknown count, long quiet", 3, 0, 600000, 999999, false, true, 0},
    {"all there, just arrived", 30, 30, 0, 999999, false, false, 5000},
    {"all there, short quiet", 30, 30, 5000, 999999, false, true, 0},
    {"more than expected", 31, 30, 5000, 999999, false, true, 0},
    {"fewer, quiet", 29, 30, 60000, 999999, false, false, 540000},
    {"fewer, patience over", 29, 30, 600000, 999999, false, true, 0},
    {"fewer, a millisecond of patience", 29, 30, 599999, 999999, false, false, 1},
    {"operator, just arrived", 3, 0, 0, 999999, true, true, 0},
    {"operator, fewer", 3, 30, 0, 999999, true, true, 0},
    {"operator, intake just came up", 3, 30, 1000, 0, true, true, 0},
    {"quiet while nobody listened", 3, 0, 3600000, 0, false, false, 60000},
    {"quiet while nobody listened, heard a while", 3, 0, 3600000, 59000, false, false, 1000},
    {"quiet since somebody listens", 3, 0, 3600000, 60000, false, true, 0},
    {"all there, nobody listened", 30, 30, 3600000, 1000, false, false, 4000},
    {"clock set back by a day", 3, 0, -86400000, 999999, false, true, 0},
    {"clock set back a little", 3, 0, -1000, 999999, false, false, 61000},
    {"clock set back, operator", 3, 0, -1000, 999999, true, true, 0},
    {"clock set back, listening in the future", 3, 0, 1000, -86400000, false, true, 0},
    {"one instance, quiet", 1, 0, 60000, 999999, false, true, 0},
    {"one of one expected", 1, 1, 5000, 999999, false, true, 0},
    {"negative expectation is none", 3, -1, 30000, 999999, false, false, 30000},
};

START_TEST(the_table_of_decisions)
{
    size_t i = (size_t)_i;
    struct queue_series series = {
        .instances = cases[i].instances,
        .expected_instances = cases[i].expected,
        .last_seen_ms = NOW - cases[i].last_seen_age,
        .complete_requested = cases[i].requested,
    };
    struct series_decision decision;
    series_decide(&series, &timers, NOW - cases[i].listening_age, NOW, &decision);
    ck_assert_msg(decision.settle == cases[i].settle, "%s", cases[i].what);
    if (decision.settle)
        ck_assert_msg(*decision.evidence, "%s: no evidence", cases[i].what);
    else
        ck_assert_msg(decision.due_ms - NOW == cases[i].due_in, "%s: due in %lld", cases[i].what,
                      (long long)(decision.due_ms - NOW));
}

END_TEST

/* A check at exactly due_ms settles the series: rounding must not require a second one. */
START_TEST(a_due_series_is_completed)
{
    struct queue_series series = {.instances = 2, .last_seen_ms = NOW};
    struct conf_series odd = {.quiet_seconds = 0.3337};
    struct series_decision decision;
    series_decide(&series, &odd, 0, NOW, &decision);
    ck_assert(!decision.settle);
    series_decide(&series, &odd, 0, decision.due_ms, &decision);
    ck_assert(decision.settle);
}

END_TEST

static const char *
evidence_of(int32_t instances, int32_t expected, int64_t age, bool requested)
{
    static struct series_decision decision;
    struct queue_series series = {.instances = instances,
                                  .expected_instances = expected,
                                  .last_seen_ms = NOW - age,
                                  .complete_requested = requested};
    series_decide(&series, &timers, 0, NOW, &decision);
    ck_assert(decision.settle);
    return decision.evidence;
}

START_TEST(the_evidence_lists_the_known_facts)
{
    ck_assert_str_eq(evidence_of(30, 30, 5200, false), "30 of 30 expected instances, quiet 5.2 s");
    ck_assert_str_eq(evidence_of(20, 30, 600100, false), "20 of 30 expected instances, quiet 600.1 s");
    ck_assert_str_eq(evidence_of(12, 0, 61000, false), "12 instances, expected number not known, quiet 61.0 s");
    ck_assert_str_eq(evidence_of(1, 0, 61000, false), "1 instance, expected number not known, quiet 61.0 s");
    ck_assert_str_eq(evidence_of(12, 30, 1000, true),
                     "12 of 30 expected instances, declared complete by an operator, quiet 1.0 s");
    ck_assert_ptr_nonnull(strstr(evidence_of(3, 0, -86400000, false), "clock was set back"));
}

END_TEST

START_TEST(the_geometry_is_added)
{
    const struct queue_stack stacks[] = {
        {.name = "", .accepted = true, .planes = 30, .columns = 512, .rows = 400, .spacing_mm = 5},
        {.name = "echo 2", .accepted = true, .planes = 1, .columns = 64, .rows = 64},
        {.name = "echo 3", .accepted = false, .code = CODE_MISSING_SLICE},
    };
    char evidence[SERIES_EVIDENCE] = "E";
    series_add_geometry(evidence, stacks, 1);
    ck_assert_str_eq(evidence, "E; 1 stack: 30 planes of 512 x 400, 5 mm apart, unbroken");
    strcpy(evidence, "E");
    series_add_geometry(evidence, stacks + 1, 2);
    ck_assert_str_eq(evidence, "E; 2 stacks: echo 2 1 plane of 64 x 64, echo 3 refused (MISSING_SLICE)");
}

END_TEST

START_TEST(the_evidence_lists_splits_and_skipped_images)
{
    const struct queue_stack stacks[] = {
        {.name = "localizer",
         .planes = 3,
         .passed_over = true,
         .code = CODE_LOCALIZER,
         .times = 2,
         .times_announced = 16},
        {.name = "time 1",
         .accepted = true,
         .planes = 1,
         .columns = 8,
         .rows = 8,
         .split_by = "Temporal Position Identifier (0020,0100)"},
        {.name = "time 2", .code = CODE_INCOMPLETE_SERIES},
        {.name = "derived", .planes = 1, .passed_over = true, .code = CODE_DERIVED_IMAGE},
    };
    char evidence[SERIES_EVIDENCE] = "E";
    series_add_geometry(evidence, stacks, 4);
    ck_assert_str_eq(evidence, "E; 2 stacks by Temporal Position Identifier (0020,0100): time 1 "
                               "1 plane of 8 x 8, time 2 refused (INCOMPLETE_SERIES); 3 images "
                               "passed over (LOCALIZER); 1 image passed over (DERIVED_IMAGE); 2 of 16 "
                               "temporal positions");
    strcpy(evidence, "E");
    series_add_geometry(evidence, stacks, 1);
    ck_assert_str_eq(evidence, "E; 0 stacks; 3 images passed over (LOCALIZER); 2 of 16 temporal "
                               "positions");
}

END_TEST

START_TEST(many_stacks_are_cut_and_counted)
{
    struct queue_stack stacks[300];
    char evidence[SERIES_EVIDENCE] = "";
    for (size_t i = 0; i < 300; i++)
        stacks[i] = (struct queue_stack){.name = "stack", .accepted = false, .code = CODE_GANTRY_TILT};
    series_add_geometry(evidence, stacks, 300);
    ck_assert_ptr_nonnull(strstr(evidence, "300 stacks"));
    ck_assert_ptr_nonnull(strstr(evidence, " and 292 more"));
    for (int i = 0; i < 100; i++)
        series_add_evidence(evidence, "%s", "0123456789012345678901234567890123456789");
    ck_assert_uint_eq(strlen(evidence), SERIES_EVIDENCE - 1);
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("service_series");
    TCase *tests = tcase_create("series");
    tcase_add_loop_test(tests, the_table_of_decisions, 0, sizeof cases / sizeof cases[0]);
    tcase_add_test(tests, a_due_series_is_completed);
    tcase_add_test(tests, the_evidence_lists_the_known_facts);
    tcase_add_test(tests, the_geometry_is_added);
    tcase_add_test(tests, many_stacks_are_cut_and_counted);
    tcase_add_test(tests, the_evidence_lists_splits_and_skipped_images);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
