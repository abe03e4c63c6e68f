/* The fields by which people find a series, as one text and back. */
#include "base/series_about.h"
#include "tests/unit/suite.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

START_TEST(the_text_form_reads_back)
{
    struct series_about about = {.accession_number = "A 4711",
                                 .study_description = "Sch\xc3\xa4"
                                                      "del nativ",
                                 .institution = "St. Elsewhere"},
                        back;
    char text[SERIES_ABOUT_TEXT];
    memset(about.model, 'm', sizeof about.model - 1);
    series_about_join(&about, text);
    ck_assert(series_about_split(text, &back));
    ck_assert_mem_eq(&about, &back, sizeof about);
}

END_TEST

START_TEST(a_value_cannot_pass_for_two)
{
    struct series_about about = {.accession_number = "1\x1f"
                                                     "2"},
                        back;
    char text[SERIES_ABOUT_TEXT];
    series_about_join(&about, text);
    ck_assert(series_about_split(text, &back));
    ck_assert_str_eq(back.accession_number, "1 2");
    ck_assert_str_eq(back.patient_id, "");
}

END_TEST

START_TEST(invalid_text_is_refused)
{
    struct series_about about;
    char many[] = "a\x1f"
                  "b\x1f\x1f\x1f\x1f\x1f\x1f\x1f\x1f",
         text[2 * SERIES_ABOUT_SIZE];
    ck_assert(!series_about_split("", &about));
    ck_assert(!series_about_split("a\x1f"
                                  "b",
                                  &about));
    ck_assert(!series_about_split(many, &about));
    many[strlen(many) - 1] = '\0';
    ck_assert(series_about_split(many, &about));
    snprintf(text, sizeof text, "%0*d\x1f\x1f\x1f\x1f\x1f\x1f\x1f\x1f", SERIES_ABOUT_SIZE, 0);
    ck_assert(!series_about_split(text, &about));
}

END_TEST

/* Patients are identified by these fields only. */
START_TEST(fields_that_identify_the_patient)
{
    struct series_about about = {0};
    int identify = 0;
    for (int i = 0; i < SERIES_ABOUT_COUNT; i++)
        identify += series_about_identifies(i);
    ck_assert_int_eq(identify, 3);
    ck_assert(series_about_identifies(SERIES_ABOUT_patient_issuer));
    ck_assert(series_about_identifies(SERIES_ABOUT_patient_id));
    ck_assert(series_about_identifies(SERIES_ABOUT_accession_number));
    ck_assert_ptr_eq(series_about_value(&about, SERIES_ABOUT_model), about.model);
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("base_series_about");
    TCase *tests = tcase_create("series_about");
    tcase_add_test(tests, the_text_form_reads_back);
    tcase_add_test(tests, a_value_cannot_pass_for_two);
    tcase_add_test(tests, invalid_text_is_refused);
    tcase_add_test(tests, fields_that_identify_the_patient);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
