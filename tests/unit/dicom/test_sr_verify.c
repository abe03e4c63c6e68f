/* sr_verify: each kind of damage to a valid report must be detected and named. */
#include "tests/unit/dicom/sr_sample.h"
#include "tests/unit/dicom/written_object.h"
#include "tests/unit/suite.h"

static const struct sr_sample_shape shape = {
    .seg = {.columns = 33, .rows = 7, .planes = 3, .segments = 1},
    .segments = 2,
    .measurements = 2,
};

static struct sr_sample sample;

static int
write_sample(int fd, struct derived_summary *summary, struct error *error)
{
    return sr_write(&sample.request, fd, summary, error);
}

static int
verify_sample(const char *path, struct error *error)
{
    return sr_verify(&sample.request, path, error);
}

static struct written_object object = {
    .path = sample.seg.target,
    .mismatch = CODE_SR_MISMATCH,
    .write = write_sample,
    .verify = verify_sample,
};

static void
make(void)
{
    dicom_init();
    sr_sample_make(&sample, &shape);
    sample.segments[0].region = (struct coded_concept){"12738006", "SCT", "Brain"};
    sample.segments[0].modifier = (struct coded_concept){"7771000", "SCT", "Left"};
    sample.measurements[1].absence = "ONE_GREY_LEVEL";
    written_take(&object);
}

static void
drop(void)
{
    written_free(&object);
    sr_sample_free(&sample);
}

/* Flips every bit of a number, in the first group, the second, and in a setting. */
START_TEST(any_bit_of_a_value)
{
    const double values[] = {sr_sample_value(0, 0), sr_sample_value(1, 1), 32.0};
    for (int i = 0; i < 3; i++) {
        uint8_t *place = written_find(&object, &values[i], sizeof(double), 1);
        for (int bit = 0; bit < 64; bit++)
            written_expect_damage(&object, place + bit / 8, (uint8_t)(1 << bit % 8),
                                  i == 2 ? "Number of grey levels" : "Joint entropy");
    }
}

END_TEST

START_TEST(a_decimal_text)
{
    uint8_t *text = written_find_value(&object, 0x0040A30A, "DS", 6); /* after five descriptors of the images */
    written_expect_damage(&object, text, '1' ^ '2', "is written");
}

END_TEST

START_TEST(codes)
{
    written_expect_damage(&object, written_find_text(&object, "M000", 1), 1, "a concept name");
    written_expect_damage(&object, written_find_text(&object, "Joint entropy", 1), 1, "a concept name");
    written_expect_damage(&object, written_find_text(&object, "IAZD", 1), 1, "Aggregation");
    written_expect_damage(&object, written_find_text(&object, "12738006", 1), 1, "Finding");
    written_expect_damage(&object, written_find_text(&object, "7771000", 1), 1, "Laterality");
    written_expect_damage(&object, written_find_text(&object, "126000", 1), 1, "the title");
    written_expect_damage(&object, written_find_text(&object, "114000", 1), 1, "Joint entropy is");
    written_expect_damage(&object, written_find_text(&object, "no units", 1), 1, "a unit");
}

END_TEST

START_TEST(settings_as_text)
{
    sample.measurements[0].words[0] = (struct sr_words){{"IN_WORDS", "99NOCTULE", "Words"}, "0,90"};
    sample.measurements[0].words_count = 1;
    written_take(&object);
    written_expect_damage(&object, written_find_text(&object, "0,90", 1), 1, "Words is");
    written_expect_damage(&object, written_find_text(&object, "IN_WORDS", 1), 1, "a concept name");
}

END_TEST

/* Of a Comprehensive 3D SR only: an Enhanced SR has no 3D coordinates (PS3.3 A.35.2.3.1). They are part of the UIDs. */
START_TEST(ends_of_a_length)
{
    sample.measurements[0].has_path = true;
    memcpy(sample.measurements[0].path, (const double[2][3]){{-1.5, 2.25, 3}, {4, -5.125, 1e-3}}, sizeof(double[2][3]));
    written_expect_same_again(&object);
    ck_assert_int_eq(written_count_text(&object, "SCOORD3D"), 0);
    sample.request.comprehensive_3d = true;
    written_take(&object);
    ck_assert_int_eq(written_count_text(&object, "SCOORD3D"), 1);
    for (int byte = 0; byte < 24; byte++)
        written_expect_damage(&object, written_find_value(&object, 0x00700022, "FL", 1) + byte, 1,
                              "an end of a length");
    written_expect_damage(&object, written_find_text(&object, "POLYLINE", 1), 'P' ^ 'Q', "");
    written_expect_damage(&object, written_find_value(&object, 0x30060024, "UI", 1), 1,
                          "the frame of reference of a length");
    written_expect_damage(&object, written_find_text(&object, "121055", 1), 1, "a concept name");
    sample.measurements[0].path[1][2] += 1e-9; /* less than single precision has */
    written_expect_refused(&object, "SOPInstanceUID");
    sample.measurements[0].has_path = false;
    written_expect_refused(&object, "SOPInstanceUID");
}

END_TEST

/* A number must not match an absent value, nor an absent value a number. */
START_TEST(reasons_for_absent_values)
{
    written_expect_damage(&object, written_find_text(&object, "ONE_GREY_LEVEL", 1), 1, "Comment");
    sample.measurements[1].value = 0.0;
    sample.measurements[1].absence = "";
    written_save(&object, object.size);
    written_expect_refused(&object, "SOPInstanceUID");
}

END_TEST

START_TEST(identifiers_of_the_segment)
{
    written_expect_damage(&object, written_find_text(&object, "head-ct: Part 1", 1), 1, "Tracking Identifier");
    uint8_t *uid = written_find_value(&object, 0x0040A124, "UI", 3); /* after device and frame of reference */
    written_expect_damage(&object, uid + 8, 1, "Tracking Unique Identifier");
    written_expect_damage(&object, written_find_value(&object, 0x0062000B, "US", 2), 1, "segment 2");
}

END_TEST

START_TEST(references)
{
    written_expect_damage(&object, written_find_text(&object, "1.2.3.4.5001", 1) + 11, 8, "the evidence lists");
    written_expect_damage(&object, written_find_text(&object, "1.2.3.4.5001", 2) + 11, 8, "the image library");
    written_expect_damage(&object, written_find_text(&object, sample.identity.sop_instance_uid, 1) + 8, 1,
                          "the evidence lists");
    written_expect_damage(&object, written_find_text(&object, sample.identity.sop_instance_uid, 2) + 8, 1,
                          "it refers to");
    written_expect_damage(&object, written_find_text(&object, sample.identity.series_uid, 1) + 8, 1,
                          "SeriesInstanceUID of");
}

END_TEST

/* The objects of the job that a root lists, in its evidence and in its image library. */
START_TEST(references_of_a_root)
{
    const struct sr_result results[] = {
        {SEG_SOP_CLASS_UID, sample.identity.sop_instance_uid, sample.identity.series_uid},
        {"1.2.840.10008.5.1.4.1.1.481.3", "2.25.31", "2.25.30"},
        {"1.2.840.10008.5.1.4.1.1.7.4", "2.25.33", "2.25.32"},
        {"1.2.840.10008.5.1.4.1.1.7.4", "2.25.34", "2.25.32"},
    };
    sample.request.comprehensive_3d = true;
    sample.request.results = results;
    sample.request.result_count = 4;
    sample.groups[1].measurement_count = 0;
    written_take(&object);
    static const char *const instances[] = {"2.25.31", "2.25.33", "2.25.34"};
    for (size_t i = 0; i < 3; i++) {
        written_expect_damage(&object, written_find_text(&object, instances[i], 1) + 6, 1, "the evidence lists");
        written_expect_damage(&object, written_find_text(&object, instances[i], 2) + 6, 1, "it refers to");
    }
    written_expect_damage(&object, written_find_text(&object, "2.25.32", 1) + 6, 1, "SeriesInstanceUID of");
    written_expect_damage(&object, written_find_text(&object, sample.identity.sop_instance_uid, 2) + 8, 1,
                          "it refers to");
    written_expect_damage(&object, written_find_text(&object, "1.2.840.10008.5.1.4.1.1.88.34", 2) + 28, 6,
                          "SOPClassUID");
    written_expect_damage(&object, written_find_text(&object, "Image Library Group", 2), 1, "a concept name");
}

END_TEST

/* Frames 5, 4 and 3 of five, and their instance. */
START_TEST(references_of_the_volume)
{
    struct sr_sample_shape enhanced = shape;
    enhanced.seg.multi_frame = true;
    enhanced.seg.planes = 5;
    drop();
    sr_sample_make(&sample, &enhanced);
    sample.groups[0].segment = SR_WHOLE_VOLUME;
    sample.seg.stack.plane_count = 3;
    written_take(&object);
    written_expect_damage(&object, written_find_value(&object, 0x00081160, "IS", 1) + 4, '3' ^ '1',
                          "instead of \"5\\4\\3\"");
    written_expect_damage(&object, written_find_text(&object, "1.2.3.4.5000", 3) + 11, 8, "it refers to");
    written_expect_damage(&object, written_find_text(&object, "whole volume", 1), 1, "Tracking Identifier");
    written_expect_damage(&object, written_find_text(&object, "121112", 1), 1, "a concept name");
}

END_TEST

START_TEST(identifiers_of_the_report)
{
    written_expect_damage(&object, written_find_value(&object, 0x00080018, "UI", 1) + 8, 1, "SOPInstanceUID");
    written_expect_damage(&object, written_find_value(&object, 0x00080060, "CS", 1), 1, "Modality");
    written_expect_damage(&object, written_find_value(&object, 0x0020000D, "UI", 1), 1, "StudyInstanceUID");
    written_expect_damage(&object, written_find_text(&object, "COMPLETE", 1), 1, "CompletionFlag");
    written_expect_damage(&object, written_find_text(&object, "1500", 1), 1, "TemplateIdentifier");
}

END_TEST

START_TEST(undeclared_coding_schemes)
{
    written_expect_damage(&object, written_find_text(&object, "IBSI", 1), 1, "lacks IBSI");
}

END_TEST

/* Another relationship, and one that an Enhanced SR must not have. */
START_TEST(relationships)
{
    uint8_t *relation = written_find_text(&object, "HAS PROPERTIES", 1);
    memcpy(relation, "INFERRED FROM ", 14);
    written_save(&object, object.size);
    written_expect_refused(&object, "another relationship");
    memcpy(relation, "SELECTED FROM ", 14);
    written_save(&object, object.size);
    written_expect_refused(&object, "another relationship");
}

END_TEST

/* If the measurements change after the report was written, the report must be rejected. */
START_TEST(another_request)
{
    sample.groups[1].measurement_count = 1;
    written_expect_refused(&object, "SOPInstanceUID");
    sample.groups[1].measurement_count = 2;
    sample.segments[1].region = sample.segments[0].region; /* not part of a UID */
    written_expect_refused(&object, "concept name");
    sample.segments[1].region.value = NULL;
    sample.segments[0].label = "Part 7";
    written_expect_refused(&object, "Tracking Identifier");
}

END_TEST

START_TEST(truncated_files)
{
    written_expect_cuts_refused(&object, 29);
}

END_TEST

START_TEST(any_byte)
{
    written_expect_no_crash(&object, 7);
}

END_TEST

/* Returns the end of the Numeric Value (0040,A30A) that the byte is in, with its VR and length, or the byte. */
static size_t
end_of_decimal(size_t i)
{
    static const uint8_t tag[] = {0x40, 0x00, 0x0A, 0xA3};
    const uint8_t *at = object.bytes + i;
    return memcmp(at - 8, tag, sizeof tag) == 0 ? i + at[-2] : i;
}

/* Each byte from the Content Sequence to the end of the file, but the digits of Numeric Value: they have a tolerance. */
START_TEST(any_byte_of_the_content)
{
    size_t i = (size_t)(written_find(&object, "\x40\x00\x30\xA7SQ", 6, 1) - object.bytes);
    size_t decimals = 0;
    for (; i < object.size; i++) {
        const size_t end = end_of_decimal(i);
        decimals += end > i;
        i = end;
        if (i < object.size)
            written_expect_damage(&object, &object.bytes[i], (uint8_t)(1 << i % 8), "differs from the written one");
    }
    ck_assert_uint_eq(decimals, 5 + 3 + 4);
}

END_TEST

START_TEST(no_file)
{
    written_expect_no_file_refused(&object);
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("dicom_sr_verify");
    TCase *tests = tcase_create("damage");
    tcase_add_checked_fixture(tests, make, drop);
    tcase_add_test(tests, any_bit_of_a_value);
    tcase_add_test(tests, a_decimal_text);
    tcase_add_test(tests, codes);
    tcase_add_test(tests, settings_as_text);
    tcase_add_test(tests, ends_of_a_length);
    tcase_add_test(tests, reasons_for_absent_values);
    tcase_add_test(tests, identifiers_of_the_segment);
    tcase_add_test(tests, references);
    tcase_add_test(tests, references_of_a_root);
    tcase_add_test(tests, references_of_the_volume);
    tcase_add_test(tests, identifiers_of_the_report);
    tcase_add_test(tests, undeclared_coding_schemes);
    tcase_add_test(tests, relationships);
    tcase_add_test(tests, another_request);
    tcase_add_test(tests, truncated_files);
    tcase_add_test(tests, any_byte);
    tcase_add_test(tests, any_byte_of_the_content);
    tcase_add_test(tests, no_file);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
