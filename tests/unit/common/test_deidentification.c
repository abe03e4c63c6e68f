/* test_deidentification.c - UIDs, pseudonyms and texts of de-identified copies. tests/integ/test_deidentify.py checks whole objects. */
#include "dicom/deidentify/deidentify.h"
#include "service/common/deidentification.h"

#include "tests/unit/suite.h"

#include <stdio.h>
#include <string.h>

static const char *const words[] = {"axial", "liver", "lésion", "t1"};
static struct pseudonym_key key = {{1, 2, 3}};

static struct deidentify
settings(unsigned keep)
{
    return (struct deidentify){.keep = keep,
                               .digest = pseudonym_digest,
                               .key = &key,
                               .words = words,
                               .word_count = sizeof words / sizeof *words};
}

static int
fails(const void *context, const char *text, uint8_t digest[DEIDENTIFY_DIGEST])
{
    (void)context;
    (void)text;
    (void)digest;
    return -12;
}

START_TEST(uids_are_replaced_by_the_key)
{
    struct deidentify how = settings(0);
    char first[DICOM_UID_SIZE], again[DICOM_UID_SIZE], other[DICOM_UID_SIZE];
    ck_assert_int_eq(deidentify_uid(&how, "1.2.3", first), 0);
    ck_assert_int_eq(deidentify_uid(&how, "1.2.3", again), 0);
    ck_assert_int_eq(deidentify_uid(&how, "1.2.4", other), 0);
    ck_assert_str_eq(first, again);
    ck_assert_str_ne(first, other);
    ck_assert_int_eq(strncmp(first, "2.25.", 5), 0);
    struct pseudonym_key another = {{9}};
    how.key = &another;
    ck_assert_int_eq(deidentify_uid(&how, "1.2.3", other), 0);
    ck_assert_str_ne(first, other);
}

END_TEST

START_TEST(uids_of_the_standard_and_kept_ones_stay)
{
    const struct deidentify how = settings(0), keeps = settings(DEIDENTIFY_UIDS);
    char uid[DICOM_UID_SIZE];
    ck_assert_int_eq(deidentify_uid(&how, "1.2.840.10008.5.1.4.1.1.2", uid), 0);
    ck_assert_str_eq(uid, "1.2.840.10008.5.1.4.1.1.2");
    ck_assert_int_eq(deidentify_uid(&how, "1.2.840.100081.5", uid), 0); /* of another root */
    ck_assert_int_eq(strncmp(uid, "2.25.", 5), 0);
    ck_assert_int_eq(deidentify_uid(&keeps, "1.2.3", uid), 0);
    ck_assert_str_eq(uid, "1.2.3");
}

END_TEST

START_TEST(the_pseudonym_of_a_patient_is_that_of_the_database)
{
    const struct deidentify how = settings(0);
    char own[DEIDENTIFY_WORD], stored[PSEUDONYM_SIZE];
    ck_assert_int_eq(deidentify_patient(&how, "KH-77281934", own), 0);
    ck_assert_int_eq(pseudonym_of(&key, "KH-77281934", stored), 0);
    ck_assert_str_eq(own, stored);
}

END_TEST

START_TEST(without_memory_nothing_is_made)
{
    struct deidentify how = settings(0);
    char uid[DICOM_UID_SIZE], word[DEIDENTIFY_WORD];
    how.digest = fails;
    ck_assert_int_eq(deidentify_uid(&how, "1.2.3", uid), -12);
    ck_assert_int_eq(deidentify_patient(&how, "A", word), -12);
    ck_assert_str_eq(word, "");
}

END_TEST

static const struct {
    const char *text, *left; /* NULL: nothing */
} texts[] = {
    {"Liver", "Liver"},
    {"T1 AXIAL", "T1 AXIAL"},
    {"liver 12", "liver 12"},
    {"liver 1234", "liver"},
    {"axial, of Smith", "axial"},
    {"Smith", NULL},
    {"12.3.1955", NULL},
    {"liver 12.3", "liver"},
    {"lésion", "lésion"},
    {"Müller lésion liver", "liver"},
    {"", NULL},
    {"axial\\liver", NULL},
};

START_TEST(texts_keep_listed_words)
{
    const struct deidentify how = settings(0);
    char left[64];
    const bool any = deidentify_text(&how, texts[_i].text, strlen(texts[_i].text), left, sizeof left);
    ck_assert_int_eq(any, texts[_i].left != NULL);
    if (any)
        ck_assert_str_eq(left, texts[_i].left);
    ck_assert(!deidentify_text(&how, "liver", 5, left, 5));
}

END_TEST

START_TEST(what_is_no_object_makes_no_copy)
{
    const struct deidentify how = settings(0);
    struct dicom_form made;
    struct error error = {0};
    FILE *out = tmpfile();
    ck_assert_ptr_nonnull(out);
    ck_assert_int_lt(deidentify_file(&how, "/nowhere/image.dcm", fileno(out), &made, &error), 0);
    ck_assert_int_ne(error.code, CODE_NONE);
    fclose(out);
}

END_TEST

int
main(void)
{
    dicom_init();
    Suite *suite = suite_create("common_deidentification");
    TCase *tests = tcase_create("copies");
    tcase_add_test(tests, uids_are_replaced_by_the_key);
    tcase_add_test(tests, uids_of_the_standard_and_kept_ones_stay);
    tcase_add_test(tests, the_pseudonym_of_a_patient_is_that_of_the_database);
    tcase_add_test(tests, without_memory_nothing_is_made);
    tcase_add_loop_test(tests, texts_keep_listed_words, 0, (int)(sizeof texts / sizeof *texts));
    tcase_add_test(tests, what_is_no_object_makes_no_copy);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
