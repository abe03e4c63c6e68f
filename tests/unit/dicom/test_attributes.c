/* Attributes by keyword or tag: their entries in the dictionary, and their values in files. */
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

START_TEST(the_dictionary_has_the_attributes)
{
    ck_assert_msg(dicom_attribute_kind(attributes[_i].name) == attributes[_i].kind, "%s", attributes[_i].name);
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
expect_values_of(const struct sample_image *image, int32_t frame, const char *asked, const char *expected)
{
    struct error error = {0};
    const struct dicom_value_request question = {
        .path = scratch_path("a.dcm"), .attributes = asked, .frames = &frame, .frame_count = 1};
    char *values;
    sample_write(image, scratch_path("a.dcm"));
    ck_assert_msg(dicom_read_values(&question, &values, &error) == 0, "%s", error.message);
    ck_assert_str_eq(values, expected);
    free(values);
}

static void
expect_values(const struct sample_image *image, const char *asked, const char *expected)
{
    expect_values_of(image, 0, asked, expected);
}

#define ASKED                                                                                                          \
    "Manufacturer\t\n(0008,0008)\t\nRows\t\nPatientName\t\nPatientID\t\n(0029,100C)\tMAKER\n"                          \
    "(0029,FF0C)\tOTHER\n(0029,100C)\tNOBODY\n(0029,100D)\tMAKER\n"                                                    \
    "RequestedProcedureDescription\t\nRequestAttributesSequence\t\n"                                                   \
    "CommentsOnThePerformedProcedureStep\t\nKVP\t\n(0040,0310)\t\n"
#define VALUES                                                                                                         \
    "=Maker\n=ORIGINAL\\PRIMARY\\AXIAL\n=4\n~Doe^Jane\n~42\n=50\n=1\n-\n!\n=Sch\xc3\xa4"                               \
    "del\n-\n=two  lines\n-\n-\n"

START_TEST(values_are_returned_as_text)
{
    struct sample_image image = SAMPLE_IMAGE;
    image.extra = put_extra;
    expect_values(&image, ASKED, VALUES);
}

END_TEST

/* Private elements have no VR in implicit VR, so bytes that are text must be compared as text. */
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

/* Bytes outside the character set that their file declares are not text, and must not match another value. */
START_TEST(text_in_an_unknown_character_set_is_not_compared)
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

static void
put_group(struct dicom_bytes *bytes, uint32_t sequence, uint32_t tag, const char *vr, const char *const *texts)
{
    bytes_sequence(bytes, sequence);
    for (; *texts; texts++) {
        bytes_item(bytes);
        bytes_text(bytes, tag, vr, *texts);
        bytes_item_end(bytes);
    }
    bytes_sequence_end(bytes);
}

#define TEXTS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* Puts two frames. The second has its own type and slope, and both have two sources of X-rays. */
static void
put_groups(struct dicom_bytes *bytes)
{
    bytes_sequence(bytes, 0x52009229);
    bytes_item(bytes);
    put_group(bytes, 0x00189325, 0x00180060, "DS", TEXTS("80", "140"));
    put_group(bytes, 0x00189329, 0x00089007, "CS", TEXTS("ORIGINAL\\PRIMARY"));
    put_group(bytes, 0x00209071, 0x00104000, "LT", TEXTS("Doe"));
    put_group(bytes, 0x00289145, 0x00281053, "DS", TEXTS("2"));
    bytes_item_end(bytes);
    bytes_sequence_end(bytes);
    bytes_sequence(bytes, 0x52009230);
    bytes_item(bytes);
    put_group(bytes, 0x00189341, 0x00189342, "CS", TEXTS("NO"));
    bytes_item_end(bytes);
    bytes_item(bytes);
    put_group(bytes, 0x00189329, 0x00089007, "CS", TEXTS("DERIVED\\PRIMARY"));
    put_group(bytes, 0x00189341, 0x00189342, "CS", TEXTS("YES"));
    put_group(bytes, 0x00289145, 0x00281053, "DS", TEXTS("3"));
    bytes_item_end(bytes);
    bytes_sequence_end(bytes);
}

#define ASKED_OF_FRAMES                                                                                                \
    "KVP\t\nImageType\t\nRescaleSlope\t\nContrastBolusAgentAdministered\t\nModality\t\n"                               \
    "PatientComments\t\nEchoTime\t\n"
#define OF_ALL      " of all frames\n"
#define KVP_OF_ALL  "=80\\140\tKVP in CTXRayDetailsSequence" OF_ALL
#define TYPE_OF_ALL "=ORIGINAL\\PRIMARY\tFrameType in CTImageFrameTypeSequence" OF_ALL
#define THE_OTHERS  "=CT\n~Doe\tPatientComments in FrameAnatomySequence" OF_ALL "-\n"

static const char *const of_frames[] = {
    KVP_OF_ALL TYPE_OF_ALL "=2\tRescaleSlope in PixelValueTransformationSequence" OF_ALL
                           "=NO\tContrastBolusAgentAdministered in ContrastBolusUsageSequence of frame 1\n" THE_OTHERS,
    KVP_OF_ALL "=DERIVED\\PRIMARY\tFrameType in CTImageFrameTypeSequence of frame 2\n"
               "=3\tRescaleSlope in PixelValueTransformationSequence of frame 2\n"
               "=YES\tContrastBolusAgentAdministered in ContrastBolusUsageSequence of frame 2\n" THE_OTHERS,
    KVP_OF_ALL TYPE_OF_ALL "=2\tRescaleSlope in PixelValueTransformationSequence" OF_ALL "-\n" THE_OTHERS,
};

/*
 * Values come from the frame, then from the shared groups, then from the data set, by the name for enhanced images. A
 * frame need not have groups.
 */
START_TEST(values_are_found_in_functional_groups)
{
    static const char *const syntaxes[] = {SYNTAX_EXPLICIT, SYNTAX_IMPLICIT, SYNTAX_BIG_ENDIAN};
    struct sample_image image = SAMPLE_IMAGE;
    image.syntax = syntaxes[_i / 3];
    image.frames = "3";
    image.slope = NULL;
    image.extra = put_groups;
    expect_values_of(&image, _i % 3, ASKED_OF_FRAMES, of_frames[_i % 3]);
}

END_TEST

START_TEST(a_missing_file_is_an_error)
{
    struct error error = {0};
    const struct dicom_value_request question = {
        .path = scratch_path("gone"), .attributes = "KVP\t\n", .frames = (const int32_t[]){0, 1}, .frame_count = 2};
    char *values[2];
    ck_assert_int_lt(dicom_read_values(&question, values, &error), 0);
    ck_assert_int_eq(error.code, CODE_FILE_UNREADABLE);
    ck_assert(!values[0] && !values[1]);
}

END_TEST

int
main(void)
{
    dicom_init();
    Suite *suite = suite_create("dicom_attributes");
    TCase *tests = tcase_create("attributes");
    tcase_add_checked_fixture(tests, scratch_make, scratch_remove);
    tcase_add_loop_test(tests, the_dictionary_has_the_attributes, 0, sizeof attributes / sizeof attributes[0]);
    tcase_add_test(tests, values_are_returned_as_text);
    tcase_add_test(tests, implicit_files_have_the_same_values);
    tcase_add_test(tests, text_in_an_unknown_character_set_is_not_compared);
    tcase_add_test(tests, long_values_are_not_compared);
    tcase_add_loop_test(tests, values_are_found_in_functional_groups, 0, 9);
    tcase_add_test(tests, a_missing_file_is_an_error);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
