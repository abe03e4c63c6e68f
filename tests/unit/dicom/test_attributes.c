/* Attributes by keyword or tag: what the dictionary says of them, and their values in files. */
#include "dicom/dicom.h"
#include "tests/unit/dicom_bytes.h"
#include "tests/unit/edge.h"
#include "tests/unit/scratch_folder.h"
#include "tests/unit/suite.h"

static const struct {
    const char *name;
    enum attribute_kind kind;
} attributes[] = {
    {"StudyDescription", ATTRIBUTE_VALUE},
    {"(0008,1030)", ATTRIBUTE_VALUE},
    {"(0008,103e)", ATTRIBUTE_VALUE},
    {"KVP", ATTRIBUTE_VALUE},
    {"Rows", ATTRIBUTE_VALUE},
    {"SmallestImagePixelValue", ATTRIBUTE_VALUE},
    {"RequestAttributesSequence", ATTRIBUTE_SEQUENCE},
    {"(0018,0012)", ATTRIBUTE_SEQUENCE},
    {"PixelData", ATTRIBUTE_BYTES},
    {"(0019,100C)", ATTRIBUTE_PRIVATE},
    {"(0019,0010)", ATTRIBUTE_UNKNOWN},
    {"TransferSyntaxUID", ATTRIBUTE_UNKNOWN},
    {"(0008,0000)", ATTRIBUTE_UNKNOWN},
    {"(0008,9999)", ATTRIBUTE_UNKNOWN},
    {"studydescription", ATTRIBUTE_UNKNOWN},
    {"StudyDescriptionn", ATTRIBUTE_UNKNOWN},
    {"0008,1030", ATTRIBUTE_UNKNOWN},
    {"(0008,1030", ATTRIBUTE_UNKNOWN},
    {"(8,1030)", ATTRIBUTE_UNKNOWN},
    {"(0008,1030)x", ATTRIBUTE_UNKNOWN},
    {"", ATTRIBUTE_UNKNOWN},
};

START_TEST(the_dictionary_knows_them)
{
    ck_assert_msg(dicom_attribute_kind(attributes[_i].name) == attributes[_i].kind, "%s",
                  attributes[_i].name);
}

END_TEST

static size_t comment_size;

static void
put_extra(struct dicom_bytes *bytes)
{
    char comment[LIMIT_TEXT_BYTES + 2];
    memset(comment, 'x', sizeof comment);
    bytes_text(bytes, 0x00290010, "LO", "OTHER");
    bytes_text(bytes, 0x00290011, "LO", "MAKER ");
    bytes_text(bytes, 0x0029100C, "IS", "1");
    bytes_text(bytes, 0x0029110C, "IS", "50");
    bytes_element(bytes, 0x0029110D, "OB", "\1\2\3\4", 4);
    bytes_text(bytes, 0x00321060, "LO",
               "Sch\xe4"
               "del");
    bytes_header(bytes, 0x00400275, "SQ", 0);
    bytes_text(bytes, 0x00400280, "ST", " two\r\nlines ");
    bytes_text(bytes, 0x00400310, "ST", "");
    if (comment_size > 0)
        bytes_element(bytes, 0x00400400, "LT", comment, comment_size);
}

static void
expect_values(const struct sample_image *image, const char *asked, const char *expected)
{
    struct error error = {0};
    char *values;
    sample_write(image, scratch_path("a.dcm"));
    ck_assert_msg(dicom_read_values(scratch_path("a.dcm"), asked, &values, &error) == 0, "%s",
                  error.message);
    ck_assert_str_eq(values, expected);
    free(values);
}

#define ASKED                                                                                      \
    "Manufacturer\t\n(0008,0008)\t\nRows\t\nPatientName\t\nPatientID\t\n(0029,100C)\tMAKER\n"      \
    "(0029,FF0C)\tOTHER\n(0029,100C)\tNOBODY\n(0029,100D)\tMAKER\n"                                \
    "RequestedProcedureDescription\t\nRequestAttributesSequence\t\n"                               \
    "CommentsOnThePerformedProcedureStep\t\nKVP\t\n(0040,0310)\t\n"
#define VALUES                                                                                     \
    "=Maker\n=ORIGINAL\\PRIMARY\\AXIAL\n=4\n~Doe^Jane\n~42\n=50\n=1\n-\n!\n=Sch\xc3\xa4"           \
    "del\n-\n=two  lines\n-\n-\n"

START_TEST(values_are_told_as_text)
{
    struct sample_image image = SAMPLE_IMAGE;
    image.extra = put_extra;
    expect_values(&image, ASKED, VALUES);
}

END_TEST

/* No VR says what is private there: bytes that are text are compared as text. */
START_TEST(implicit_files_have_the_same_values)
{
    struct sample_image image = SAMPLE_IMAGE;
    image.extra = put_extra;
    image.syntax = SYNTAX_IMPLICIT;
    expect_values(&image, ASKED, VALUES);
}

END_TEST

static void
put_utf8_in_latin(struct dicom_bytes *bytes)
{
    bytes_text(bytes, 0x00080005, "CS", "ISO_IR 192");
    bytes_text(bytes, 0x00081030, "LO",
               "Sch\xe4"
               "del");
}

/* What is not in the character set that its file declares is no text, and not taken for another. */
START_TEST(text_of_no_character_set_is_not_compared)
{
    struct sample_image image = SAMPLE_IMAGE;
    image.without = 0x00080005;
    image.extra = put_utf8_in_latin;
    expect_values(&image, "StudyDescription\t\nModality\t\n", "!\n=CT\n");
}

END_TEST

START_TEST(long_values_are_not_compared)
{
    static const struct edge bytes = EDGE(RULE_BYTES);
    char expected[LIMIT_RULE_BYTES + 8] = "=";
    struct sample_image image = SAMPLE_IMAGE;
    image.extra = put_extra;
    comment_size = (size_t)bytes.most;
    memset(expected + 1, 'x', comment_size);
    strcat(expected, "\n");
    expect_values(&image, "(0040,0400)\t\n", expected);
    comment_size++;
    expect_values(&image, "(0040,0400)\t\n", "!\n");
}

END_TEST

START_TEST(a_file_that_is_gone_is_an_error)
{
    struct error error = {0};
    char *values;
    ck_assert_int_lt(dicom_read_values(scratch_path("gone"), "KVP\t\n", &values, &error), 0);
    ck_assert_int_eq(error.code, CODE_FILE_UNREADABLE);
    ck_assert_ptr_null(values);
}

END_TEST

int
main(void)
{
    dicom_init();
    Suite *suite = suite_create("dicom_attributes");
    TCase *tests = tcase_create("attributes");
    tcase_add_checked_fixture(tests, scratch_make, scratch_remove);
    tcase_add_loop_test(tests, the_dictionary_knows_them, 0,
                        sizeof attributes / sizeof attributes[0]);
    tcase_add_test(tests, values_are_told_as_text);
    tcase_add_test(tests, implicit_files_have_the_same_values);
    tcase_add_test(tests, text_of_no_character_set_is_not_compared);
    tcase_add_test(tests, long_values_are_not_compared);
    tcase_add_test(tests, a_file_that_is_gone_is_an_error);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
