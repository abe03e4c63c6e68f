/* Ranges of images that a site has validated, and the reasons for results outside of them. */
#include "service/common/trust.h"

#include <check.h>
#include <math.h>
#include <string.h>

static const char ranges[] = "SIEMENS\tForce\tBr40\t1.25 to 2.5 mm\t8\t17.5\n"
                             "SIEMENS\tForce\tBr40\t2.5 to 5 mm\t6\t12\n"
                             "GE\tRevolution\tSTANDARD\tup to 1.25 mm\t\t";

static const struct {
    const char *ranges;
    struct trust_images images;
    const char *why; /* NULL: covered */
} cases[] = {
    {ranges, {"SIEMENS", "Force", "Br40", 2, 17.5}, NULL},
    {ranges, {"SIEMENS", "Force", "Br40", 2, 3}, NULL},
    {ranges, {"SIEMENS", "Force", "Br40", 1.25 + 1e-7, 10}, "not validated for slices of 1.25 mm"},
    {ranges, {"SIEMENS", "Force", "Br40", 5, 12}, NULL},
    {ranges, {"SIEMENS", "Force", "Br40", 5, 12.5}, "not validated for this noise (12.5 HU, validated up to 12 HU)"},
    {ranges, {"SIEMENS", "Force", "Br40", 2, NAN}, "not validated for this noise, which is not known"},
    {ranges, {"GE", "Revolution", "STANDARD", 1, NAN}, NULL},
    {ranges, {"GE", "Revolution", "STANDARD", 1, 400}, NULL},
    {ranges, {"GE", "Revolution", "LUNG", 1, 4}, "not validated for this kernel (LUNG)"},
    {ranges, {"GE", "Revolution", "", 1, 4}, "not validated for this kernel (not stated)"},
    {ranges, {"GE", "Force", "Br40", 2, 4}, "not validated for this scanner (GE Force)"},
    {ranges, {"", "", "", 2, 4}, "not validated for this scanner ( )"},
    {"", {"GE", "Force", "Br40", 2, 4}, "not validated at this site (noctule validate)"},
    {NULL, {"GE", "Force", "Br40", 2, 4}, "not validated at this site (noctule validate)"},
};

START_TEST(images_in_ranges)
{
    char why[TRUST_WHY] = "";
    ck_assert_int_eq(trust_covers(cases[_i].ranges, &cases[_i].images, why), !cases[_i].why);
    if (cases[_i].why)
        ck_assert_str_eq(why, cases[_i].why);
}

END_TEST

START_TEST(thickness)
{
    ck_assert_str_eq(trust_thickness(0.6), "up to 1.25 mm");
    ck_assert_str_eq(trust_thickness(1.2501), "up to 1.25 mm");
    ck_assert_str_eq(trust_thickness(1.251), "1.25 to 2.5 mm");
    ck_assert_str_eq(trust_thickness(5), "2.5 to 5 mm");
    ck_assert_str_eq(trust_thickness(5.5), "above 5 mm");
}

END_TEST

static char *
digest_of(const char *text, char digest[TRUST_DIGEST])
{
    struct conf_pipeline *pipeline = NULL;
    struct error error;
    ck_assert_msg(conf_pipeline_from_text(text, &pipeline, &error) == 0, "%s", error.message);
    ck_assert_int_eq(trust_digest(pipeline, digest), 0);
    conf_pipeline_free(pipeline);
    return digest;
}

#define PIPELINE(more, low)                                                                                            \
    "name = \"" more "\"; segments = ( { label = \"A\"; method = \"range\"; range = [ " low                            \
    ", 100.0 ]; type = { code = \"1\"; scheme = \"SCT\"; meaning = \"x\"; }; } );"

/* Options of masks and checks count. Names, results and deliveries do not. */
START_TEST(digests)
{
    char a[TRUST_DIGEST], b[TRUST_DIGEST];
    digest_of(PIPELINE("a", "0.0"), a);
    ck_assert_str_eq(a, digest_of(PIPELINE("b", "0.0") " series_number = 7; unreviewed = true; texture = { };", b));
    ck_assert_str_eq(
        a, digest_of(
               "name = \"a\"; segments = ( { label = \"A\"; method = \"range\"; range = [ 0.0, 100.0 ]; quantities = [ "
               "\"pd15\" ]; type = { code = \"1\"; scheme = \"SCT\"; meaning = \"x\"; }; } );",
               b));
    ck_assert_str_ne(a, digest_of(PIPELINE("a", "1.0"), b));
    ck_assert_str_ne(a, digest_of(PIPELINE("a", "0.0") " min_slices = 9;", b));
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("common/trust");
    TCase *tests = tcase_create("all");
    tcase_add_loop_test(tests, images_in_ranges, 0, sizeof cases / sizeof cases[0]);
    tcase_add_test(tests, thickness);
    tcase_add_test(tests, digests);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
