/* Which pipelines a stack gets: a table of single rules, then several together. */
#include "service/daemon/series/rules.h"

#include <check.h>
#include <stdlib.h>

static const struct {
    struct conf_rule rule;
    struct rules_subject subject;
    bool matches;
} cases[] = {
    {{0}, {"CT", "HEAD", "Brain 5mm", 30, NULL}, true},
    {{0}, {"", "", "", 0, NULL}, true},
    {{.modality = "CT"}, {"CT", "", "", 1, NULL}, true},
    {{.modality = "CT"}, {"ct", "", "", 1, NULL}, true},
    {{.modality = "CT"}, {"MR", "", "", 1, NULL}, false},
    {{.modality = "CT"}, {"CTX", "", "", 1, NULL}, false},
    {{.modality = "CT"}, {"", "", "", 1, NULL}, false},
    {{.body_part = "HEAD"}, {"CT", "HEAD", "", 1, NULL}, true},
    {{.body_part = "HEAD"}, {"CT", "Head", "", 1, NULL}, true},
    {{.body_part = "HEAD"}, {"CT", "HEADNECK", "", 1, NULL}, false},
    {{.body_part = "HEAD"}, {"CT", "", "", 1, NULL}, false},
    {{.description = "brain"}, {"CT", "", "Axial BRAIN 5 mm", 1, NULL}, true},
    {{.description = "brain"}, {"CT", "", "brain", 1, NULL}, true},
    {{.description = "brain"}, {"CT", "", "Bone", 1, NULL}, false},
    {{.description = "brain"}, {"CT", "", "", 1, NULL}, false},
    {{.description = ""}, {"CT", "", "", 1, NULL}, true},
    {{.min_slices = 20}, {"CT", "", "", 19, NULL}, false},
    {{.min_slices = 20}, {"CT", "", "", 20, NULL}, true},
    {{.max_slices = 20}, {"CT", "", "", 20, NULL}, true},
    {{.max_slices = 20}, {"CT", "", "", 21, NULL}, false},
    {{.min_slices = 5, .max_slices = 9}, {"CT", "", "", 7, NULL}, true},
    {{.min_slices = 5, .max_slices = 9}, {"CT", "", "", 10, NULL}, false},
    {{.modality = "CT", .body_part = "HEAD", .description = "brain", .min_slices = 20},
     {"CT", "HEAD", "Brain", 20, NULL},
     true},
    {{.modality = "CT", .body_part = "HEAD", .description = "brain", .min_slices = 20},
     {"CT", "HEAD", "Brain", 5, NULL},
     false},
};

START_TEST(one_rule)
{
    struct conf_rule rule = cases[_i].rule;
    char name[] = "p";
    struct rules_pick picks[1];
    rule.pipeline = name;
    rule.priority = 7;
    ck_assert_uint_eq(rules_pick(&rule, 1, &cases[_i].subject, picks), cases[_i].matches);
    if (cases[_i].matches) {
        ck_assert_str_eq(picks[0].pipeline, "p");
        ck_assert_int_eq(picks[0].priority, 7);
    }
}

END_TEST

START_TEST(several_rules)
{
    struct conf_rule rules[] = {
        {.modality = "CT", .pipeline = "a", .priority = 1},
        {.modality = "MR", .pipeline = "b", .priority = 2},
        {.pipeline = "c", .priority = -3},
        {.body_part = "HEAD", .pipeline = "a", .priority = 9},
        {.body_part = "HEAD", .pipeline = "c", .priority = -8},
    };
    const struct rules_subject subject = {"CT", "HEAD", "", 10, NULL};
    struct rules_pick picks[5];
    ck_assert_uint_eq(rules_pick(rules, 5, &subject, picks), 2);
    ck_assert_str_eq(picks[0].pipeline, "a");
    ck_assert_int_eq(picks[0].priority, 9);
    ck_assert_str_eq(picks[1].pipeline, "c");
    ck_assert_int_eq(picks[1].priority, -3);
}

END_TEST

START_TEST(an_ae_title_of_its_own_overrides_the_rules)
{
    struct conf_rule rules[] = {
        {.modality = "CT", .pipeline = "a", .priority = 1},
        {.pipeline = "c", .priority = -3},
    };
    const struct rules_subject subject = {"CT", "HEAD", "", 10, "of-the-title"};
    struct rules_pick picks[2];
    ck_assert_uint_eq(rules_pick(rules, 2, &subject, picks), 1);
    ck_assert_str_eq(picks[0].pipeline, "of-the-title");
    ck_assert_int_eq(picks[0].priority, 0);
    ck_assert_uint_eq(rules_pick(NULL, 0, &subject, picks), 1);
    ck_assert_str_eq(picks[0].pipeline, "of-the-title");
}

END_TEST

START_TEST(no_rules_no_pipelines)
{
    const struct rules_subject subject = {"CT", "HEAD", "", 10, NULL};
    struct rules_pick pick;
    ck_assert_uint_eq(rules_pick(NULL, 0, &subject, &pick), 0);
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("service_rules");
    TCase *tests = tcase_create("rules");
    tcase_add_loop_test(tests, one_rule, 0, sizeof cases / sizeof cases[0]);
    tcase_add_test(tests, several_rules);
    tcase_add_test(tests, an_ae_title_of_its_own_overrides_the_rules);
    tcase_add_test(tests, no_rules_no_pipelines);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
