/*
 * Jobs that rules request for a series whose pipelines accept different geometry.
 */
#include "service/common/routing/routing_result.h"

#include <check.h>
#include <stdlib.h>

static char strict_name[] = "strict", newest_name[] = "newest", derived_name[] = "derived", title_name[] = "DERIVED",
            ct[] = "CT", mr[] = "MR", first[] = "first";

static struct conf_pipeline pipelines[] = {
    {.name = strict_name},
    {.name = newest_name, .duplicates = CONF_NEWEST},
    {.name = derived_name, .derived = true},
};

static struct conf_rule rules[] = {
    {.modality = ct, .pipeline = strict_name},
    {.modality = ct, .pipeline = newest_name, .priority = 3},
    {.modality = mr, .pipeline = derived_name},
    {.modality = mr, .pipeline = strict_name, .min_slices = 9},
};

static struct conf_title titles[] = {{.ae_title = title_name, .pipeline = derived_name}};

static struct routing_stack
stack_of(const char *options, const char *name, int32_t planes, bool accepted)
{
    return (struct routing_stack){.is = {name, planes, accepted}, .options = options};
}

static const struct conf conf = {.pipelines = pipelines,
                                 .pipeline_count = 3,
                                 .rules = rules,
                                 .rule_count = 4,
                                 .dicom = {.titles = titles, .title_count = 1}};

START_TEST(requested_sets_of_options)
{
    ck_assert_uint_eq(
        routing_option_sets(&conf, &(struct rules_series){.modality = ct, .body_part = "", .description = ""}, NULL),
        1 | 1 << 2);
    ck_assert_uint_eq(
        routing_option_sets(&conf, &(struct rules_series){.modality = mr, .body_part = "", .description = ""}, NULL),
        1 | 1 << 1);
    ck_assert_uint_eq(
        routing_option_sets(
            &conf, &(struct rules_series){.modality = ct, .body_part = "", .description = "", .called_ae = title_name},
            NULL),
        1 << 1);
    /* No rule can match: use the most lenient options. */
    ck_assert_uint_eq(
        routing_option_sets(&conf, &(struct rules_series){.modality = "", .body_part = "", .description = ""}, NULL),
        1 << 3);
}

END_TEST

/* One pipeline accepts the newer of two slices, the other neither. */
START_TEST(one_pipeline_accepts_a_stack_that_another_rejects)
{
    const struct rules_series series = {.modality = ct, .body_part = "", .description = ""};
    const struct routing_stack stacks[] = {stack_of("", "", 9, false), stack_of("duplicates", "", 8, true),
                                           stack_of("duplicates", "older slices", 1, false)};
    struct routing_result result;
    ck_assert_int_eq(routing_result_make(&conf, &series, stacks, 3, NULL, &result), 0);
    ck_assert_uint_eq(result.count, 1);
    ck_assert_str_eq(result.picks[0].pipeline, "newest");
    ck_assert_uint_eq(result.picks[0].stack, 1);
    ck_assert_int_eq(result.picks[0].priority, 3);
    ck_assert_uint_eq(result.refusal_count, 1);
    ck_assert_str_eq(result.refusals[0].pipeline, "strict");
    ck_assert_uint_eq(result.refusals[0].stack, 0);
    routing_result_release(&result);
}

END_TEST

/* Each has its own stacks; skipped stacks are reported only if no other is rejected. */
START_TEST(each_pipeline_has_separate_stacks)
{
    const struct rules_series series = {.modality = mr, .body_part = "", .description = ""};
    struct routing_stack stacks[] = {stack_of("", "", 9, true), stack_of("", "derived", 6, false),
                                     stack_of("derived", "axial", 9, true), stack_of("derived", "coronal", 6, true)};
    stacks[1].passed_over = true;
    struct routing_result result;
    ck_assert_int_eq(routing_result_make(&conf, &series, stacks, 4, NULL, &result), 0);
    ck_assert_uint_eq(result.count, 3);
    ck_assert_str_eq(result.picks[0].pipeline, "strict");
    ck_assert_uint_eq(result.picks[0].stack, 0);
    ck_assert_str_eq(result.picks[1].pipeline, "derived");
    ck_assert_uint_eq(result.picks[1].stack, 2);
    ck_assert_uint_eq(result.picks[2].stack, 3);
    ck_assert_uint_eq(result.refusal_count, 0);
    routing_result_release(&result);
    stacks[1].is.planes = 9;
    stacks[0] = stacks[1];
    ck_assert_int_eq(routing_result_make(&conf, &series, stacks, 4, NULL, &result), 0);
    ck_assert_uint_eq(result.refusal_count, 1);
    ck_assert_uint_eq(result.refusals[0].stack, 0);
    routing_result_release(&result);
    stacks[1].passed_over = false;
    ck_assert_int_eq(routing_result_make(&conf, &series, stacks, 4, NULL, &result), 0);
    ck_assert_uint_eq(result.refusals[0].stack, 1);
    routing_result_release(&result);
    stacks[0].is.planes = stacks[1].is.planes = 8; /* the rule requires more */
    ck_assert_int_eq(routing_result_make(&conf, &series, stacks, 4, NULL, &result), 0);
    ck_assert_uint_eq(result.refusal_count, 0);
    routing_result_release(&result);
}

END_TEST

/* A rule's unwanted stack is not a rejection, nor is one too many. If the title has a pipeline,
 * only that counts. */
START_TEST(unwanted_stacks_are_not_rejections)
{
    struct routing_stack stacks[9];
    const struct rules_series series = {.modality = ct, .body_part = "", .description = "", .called_ae = title_name};
    struct routing_result result;
    for (size_t i = 0; i < 9; i++)
        stacks[i] = stack_of("derived", "volume", 9, i > 0);
    ck_assert_int_eq(routing_result_make(&conf, &series, stacks, 9, NULL, &result), 0);
    ck_assert_uint_eq(result.count, 8);
    ck_assert_uint_eq(result.refusal_count, 0);
    routing_result_release(&result);
    stacks[0].is.accepted = true;
    ck_assert_int_eq(routing_result_make(&conf, &series, stacks, 9, NULL, &result), 0);
    ck_assert(result.count == 0 && result.outcome.too_many == 9 && result.outcome.matched);
    ck_assert_uint_eq(result.refusal_count, 0);
    routing_result_release(&result);
    titles[0].stacks = first;
    ck_assert_int_eq(routing_result_make(&conf, &series, stacks, 9, NULL, &result), 0);
    ck_assert(result.count == 1 && result.picks[0].stack == 0);
    routing_result_release(&result);
}

END_TEST

START_TEST(a_called_title_with_a_pipeline_overrides_the_rules)
{
    struct conf_rule some[] = {
        {.modality = ct, .pipeline = strict_name, .priority = 1},
        {.pipeline = newest_name, .priority = -3},
    };
    struct conf_title ours[] = {{.ae_title = title_name, .pipeline = derived_name}, {.ae_title = first}};
    struct conf served = conf;
    served.rules = some;
    served.rule_count = 2;
    served.dicom.titles = ours;
    served.dicom.title_count = 2;
    struct rules_series series = {.modality = ct, .body_part = "HEAD", .description = ""};
    const struct routing_stack stack = stack_of("derived", "", 10, true);
    struct routing_result result;
    for (int with_rules = 1; with_rules >= 0; with_rules--) {
        served.rule_count = with_rules ? 2 : 0;
        series.called_ae = title_name;
        ck_assert_int_eq(routing_result_make(&served, &series, &stack, 1, NULL, &result), 0);
        ck_assert_uint_eq(result.count, 1);
        ck_assert_str_eq(result.picks[0].pipeline, derived_name);
        ck_assert_int_eq(result.picks[0].priority, 0);
        ck_assert_str_eq(result.picks[0].rule, title_name);
        routing_result_release(&result);
    }
    served.rule_count = 2;
    series.called_ae = first;
    ck_assert_int_eq(routing_result_make(&served, &series, &stack, 1, NULL, &result), 0);
    ck_assert_uint_eq(result.count, 2);
    routing_result_release(&result);
}

END_TEST

/* The numbers and the stack that noctule explain shows. */
START_TEST(each_rule_has_its_numbers)
{
    const struct rules_series series = {.modality = mr, .body_part = "", .description = ""};
    const struct routing_stack stacks[] = {stack_of("", "", 9, true), stack_of("", "short", 6, true),
                                           stack_of("derived", "axial", 9, true)};
    struct routing_result result;
    ck_assert_int_eq(routing_result_make(&conf, &series, stacks, 3, NULL, &result), 0);
    ck_assert_uint_eq(result.rule_count, 4);
    ck_assert(result.rules[0].rule == &rules[0] && result.first_match == &result.rules[2]);
    ck_assert(result.rules[0].matching == 0 && result.rules[0].shown == &stacks[0].is);
    ck_assert(result.rules[2].checked == 1 && result.rules[2].selected == 1);
    ck_assert(result.rules[3].checked == 2 && result.rules[3].matching == 1);
    ck_assert(result.rules[3].accepted == 1 && result.rules[3].shown == &stacks[1].is);
    routing_result_release(&result);
}

END_TEST

/* One rule instead of all; and a pipeline that was configured after the series was inspected. */
START_TEST(a_rule_given_by_an_operator)
{
    const struct conf_rule only = {.pipeline = derived_name};
    const struct routing_stack stacks[] = {stack_of("", "", 9, true), stack_of("", "x", 9, false)};
    struct routing_result result;
    ck_assert_int_eq(routing_result_make(&conf,
                                         &(struct rules_series){.modality = ct, .body_part = "", .description = ""},
                                         stacks, 2, &only, &result),
                     0);
    ck_assert(result.count == 1 && result.picks[0].stack == 0 && result.refusal_count == 0);
    ck_assert_str_eq(result.picks[0].pipeline, "derived");
    routing_result_release(&result);
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("common_routing_result");
    TCase *tests = tcase_create("routing_result");
    tcase_add_test(tests, requested_sets_of_options);
    tcase_add_test(tests, one_pipeline_accepts_a_stack_that_another_rejects);
    tcase_add_test(tests, each_pipeline_has_separate_stacks);
    tcase_add_test(tests, unwanted_stacks_are_not_rejections);
    tcase_add_test(tests, a_called_title_with_a_pipeline_overrides_the_rules);
    tcase_add_test(tests, each_rule_has_its_numbers);
    tcase_add_test(tests, a_rule_given_by_an_operator);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
