/* Validations of pipelines, and the ranges of images that the last one of a pipeline allows. */
#include "tests/unit/db/sample.h"

#define DIGEST "4355a46b19d348dc2f57c046f8ef63d4538ebb936000f3c9ee954a27460dd865"

static struct sample s;

static void
open_sample(void)
{
    sample_open(&s);
}

static void
close_sample(void)
{
    sample_assert_sound(s.queue);
    sample_close(&s);
}

/* Adds a case of a patient to the record. */
static void
put_case(FILE *out, int number, const char *kernel, const char *outcome, const char *noise, bool other)
{
    fprintf(
        out,
        "%s{ \"other\": %d, \"complete\": %d, \"patient\": \"h:%d\", \"series\": \"h:%d\", \"manufacturer\": \"M\", "
        "\"model\": \"X\", \"kernel\": \"%s\", \"thickness\": \"2.5 to 5 mm\", \"slice_mm\": 3, \"noise\": %s, "
        "\"outcome\": \"%s\", \"checks\": \"\", \"wrong\": 0, \"regions\": [ { \"region\": \"Lungs\", "
        "\"reference_region\": \"L\", \"dice\": 0.97, \"surface_dice\": 0.9, \"distance_95_mm\": null, "
        "\"volume_ratio\": 1.01, \"bias_ml\": 4.5 } ] }",
        number > 0 ? ", " : "", other, !other, number, number, kernel, noise, outcome);
}

/* A record with `patients` DONE cases of kernel K, one under review, one of kernel L, and one of another region. */
static void
add_validation(bool passed, int patients, const char *noise)
{
    char *record = NULL;
    size_t size;
    FILE *out = open_memstream(&record, &size);
    ck_assert_ptr_nonnull(out);
    fprintf(out,
            "{ \"name\": \"lung\", \"digest\": \"" DIGEST
            "\", \"version\": \"1.2.3\", \"passed\": %d, \"why\": \"%s\", "
            "\"patients\": %d, \"tolerance_mm\": 2, \"cases\": [ ",
            passed, passed ? "" : "few", patients);
    for (int i = 0; i < patients; i++)
        put_case(out, i, "K", "DONE", i == 0 ? noise : "7", false);
    put_case(out, patients, "K", "REVIEW", "30", false);
    put_case(out, patients + 1, "L", "DONE", "30", false);
    put_case(out, patients + 2, "K", "REVIEW", "null", true);
    fputs(" ] }", out);
    fclose(out);
    ck_assert_int_eq(queue_add_validation(s.queue, record, "someone", SAMPLE_NOW), 0);
    free(record);
}

static const char *
ranges_of(const char *digest)
{
    static char text[256];
    char *ranges = NULL;
    ck_assert_int_eq(queue_validated(s.queue, digest, &ranges), 0);
    snprintf(text, sizeof text, "%s", ranges);
    free(ranges);
    return text;
}

START_TEST(ranges_of_the_last_validation)
{
    ck_assert_str_eq(ranges_of(DIGEST), "");
    add_validation(true, 4, "12.1");
    ck_assert_str_eq(ranges_of(DIGEST), "M\tX\tK\t2.5 to 5 mm\t7.0\t12.1");
    ck_assert_str_eq(ranges_of("other"), "");
    add_validation(true, 3, "12.1"); /* with the one under review, four patients */
    ck_assert_str_eq(ranges_of(DIGEST), "");
    add_validation(true, 5, "null");
    ck_assert_str_eq(ranges_of(DIGEST), "M\tX\tK\t2.5 to 5 mm\t7.0\t7.0");
    add_validation(false, 30, "7");
    ck_assert_str_eq(ranges_of(DIGEST), "");
    assert_answer(&s, "SELECT group_concat(in_force, '') FROM v_validations", "0000");
    assert_answer(&s, "SELECT count(*) FROM v_events WHERE kind = 'PIPELINE_VALIDATED'", "4");
}

END_TEST

START_TEST(figures)
{
    add_validation(true, 28, "7");
    assert_answer(&s, "SELECT by || cases || ' ' || done || ' ' || others || others_done || wrong FROM v_validations",
                  "someone30 29 100");
    assert_answer(&s, "SELECT round(wrong_share_95, 6) FROM v_validations", "0.096774");
    assert_answer(&s,
                  "SELECT count(*) || ' ' || sum(dice IS 0.97) || ' ' || count(distance_95_mm) FROM v_validation_cases",
                  "31 31 0");
}

END_TEST

START_TEST(damaged_records)
{
    static const char *const records[] = {"", "no JSON", "{}", "{ \"name\": \"lung\", \"digest\": \"" DIGEST "\" }"};
    for (size_t i = 0; i < sizeof records / sizeof records[0]; i++)
        ck_assert_int_lt(queue_add_validation(s.queue, records[i], "someone", SAMPLE_NOW), 0);
    assert_answer(&s, "SELECT count(*) FROM v_validations", "0");
}

END_TEST

SAMPLE_MAIN("db_validations", open_sample, close_sample, ranges_of_the_last_validation, figures, damaged_records)
