/* sr_verify: each kind of damage to a good report is noticed, and named. */
#include "sr_sample.h"

#include <check.h>
#include <errno.h>
#include <math.h>

static const struct sr_sample_shape shape = {
    .seg = {.columns = 33, .rows = 7, .planes = 3, .segments = 1},
    .segments = 2,
    .measurements = 2,
};

static struct sr_sample sample;
static uint8_t *bytes;
static size_t size;

/* Writes the sample and takes its bytes. */
static void
take(void)
{
    struct seg_summary summary;
    struct dicom_fault fault;
    ck_assert_int_eq(sr_sample_write(&sample, &summary, &fault), 0);
    ck_assert_int_eq(sr_verify(&sample.request, sample.seg.target, &fault), 0);
    FILE *file = fopen(sample.seg.target, "rb");
    ck_assert_ptr_nonnull(file);
    bytes = malloc(1 << 20);
    ck_assert_ptr_nonnull(bytes);
    size = fread(bytes, 1, 1 << 20, file);
    fclose(file);
}

static void
make(void)
{
    dicom_init();
    sr_sample_make(&sample, &shape);
    sample.segments[0].region = (struct seg_code){"12738006", "SCT", "Brain"};
    sample.segments[0].modifier = (struct seg_code){"7771000", "SCT", "Left"};
    sample.measurements[1].absence = "ONE_GREY_LEVEL";
    take();
}

static void
drop(void)
{
    free(bytes);
    bytes = NULL;
    sr_sample_free(&sample);
}

static void
write_bytes(size_t count)
{
    FILE *file = fopen(sample.seg.target, "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(bytes, 1, count, file), count);
    ck_assert_int_eq(fclose(file), 0);
}

/* The n-th place (from 1) of a pattern. */
static uint8_t *
find(const void *pattern, size_t length, int nth)
{
    uint8_t *place = bytes;
    for (;;) {
        place = memmem(place, size - (size_t)(place - bytes), pattern, length);
        ck_assert_ptr_nonnull(place);
        if (--nth == 0)
            return place;
        place++;
    }
}

static uint8_t *
find_text(const char *text, int nth)
{
    return find(text, strlen(text), nth);
}

/* The value of the n-th element with the tag and a 16-bit length. */
static uint8_t *
find_value(uint32_t tag, const char *vr, int nth)
{
    const uint8_t head[6] = {(uint8_t)(tag >> 16), (uint8_t)(tag >> 24), (uint8_t)tag,
                             (uint8_t)(tag >> 8),  (uint8_t)vr[0],       (uint8_t)vr[1]};
    return find(head, sizeof(head), nth) + 8;
}

static void
expect_refused(const char *word)
{
    struct dicom_fault fault = {0};
    ck_assert_int_eq(sr_verify(&sample.request, sample.seg.target, &fault), -EBADMSG);
    ck_assert_str_eq(fault.code, "SR_MISMATCH");
    ck_assert_str_eq(fault.file[0], sample.seg.target);
    ck_assert_msg(strstr(fault.sentence, word) != NULL, "\"%s\" lacks \"%s\"", fault.sentence,
                  word);
}

/* Flips bits of a byte, expects the damage to be named with `word`, and repairs it. */
static void
expect_damage(uint8_t *byte, uint8_t bits, const char *word)
{
    *byte ^= bits;
    write_bytes(size);
    expect_refused(word);
    *byte ^= bits;
}

/* Every bit of a number, in the first group, the second, and of a setting. */
START_TEST(any_bit_of_a_value)
{
    const double values[] = {sr_sample_value(0, 0), sr_sample_value(1, 1), 32.0};
    for (int i = 0; i < 3; i++) {
        uint8_t *place = find(&values[i], sizeof(double), 1);
        for (int bit = 0; bit < 64; bit++)
            expect_damage(place + bit / 8, (uint8_t)(1 << bit % 8),
                          i == 2 ? "Number of grey levels" : "Joint entropy");
    }
}

END_TEST

START_TEST(a_decimal_text)
{
    uint8_t *text = find_value(0x0040A30A, "DS", 6); /* after five descriptors of the images */
    expect_damage(text, '1' ^ '2', "is written");
}

END_TEST

START_TEST(codes)
{
    expect_damage(find_text("M000", 1), 1, "a concept name");
    expect_damage(find_text("Joint entropy", 1), 1, "a concept name");
    expect_damage(find_text("IAZD", 1), 1, "Aggregation");
    expect_damage(find_text("12738006", 1), 1, "Finding");
    expect_damage(find_text("7771000", 1), 1, "Laterality");
    expect_damage(find_text("126000", 1), 1, "the title");
    expect_damage(find_text("114000", 1), 1, "Joint entropy is");
    expect_damage(find_text("no units", 1), 1, "a unit");
}

END_TEST

START_TEST(settings_in_words)
{
    sample.measurements[0].words = (struct sr_words){{"IN_WORDS", "99NOCTULE", "Words"}, "0,90"};
    free(bytes);
    take();
    expect_damage(find_text("0,90", 1), 1, "Words is");
    expect_damage(find_text("IN_WORDS", 1), 1, "a concept name");
}

END_TEST

/* A number cannot pass for none, nor none for a number. */
START_TEST(why_there_is_no_value)
{
    expect_damage(find_text("ONE_GREY_LEVEL", 1), 1, "Comment");
    sample.measurements[1].value = 0.0;
    sample.measurements[1].absence = "";
    write_bytes(size);
    expect_refused("SOPInstanceUID");
}

END_TEST

START_TEST(who_the_segment_is)
{
    expect_damage(find_text("head-ct: Part 1", 1), 1, "Tracking Identifier");
    uint8_t *uid = find_value(0x0040A124, "UI", 3); /* after device and frame of reference */
    expect_damage(uid + 8, 1, "Tracking Unique Identifier");
    expect_damage(find_value(0x0062000B, "US", 2), 1, "segment 2");
}

END_TEST

START_TEST(references)
{
    expect_damage(find_text("1.2.3.4.5001", 1) + 11, 8, "the evidence names");
    expect_damage(find_text("1.2.3.4.5001", 2) + 11, 8, "the image library");
    expect_damage(find_text(sample.identity.sop_instance_uid, 1) + 8, 1, "the evidence names");
    expect_damage(find_text(sample.identity.sop_instance_uid, 2) + 8, 1, "it refers to");
    expect_damage(find_text(sample.identity.series_uid, 1) + 8, 1, "SeriesInstanceUID of");
}

END_TEST

/* Frames 5, 4 and 3 of five, and the instance that they are of. */
START_TEST(references_of_the_volume)
{
    struct sr_sample_shape enhanced = shape;
    enhanced.seg.multi_frame = true;
    enhanced.seg.planes = 5;
    drop();
    sr_sample_make(&sample, &enhanced);
    sample.groups[0].segment = SR_WHOLE_VOLUME;
    sample.seg.stack.plane_count = 3;
    take();
    expect_damage(find_value(0x00081160, "IS", 1) + 4, '3' ^ '1', "frame 3");
    expect_damage(find_text("1.2.3.4.5000", 3) + 11, 8, "it refers to");
    expect_damage(find_text("whole volume", 1), 1, "Tracking Identifier");
    expect_damage(find_text("121112", 1), 1, "a concept name");
}

END_TEST

START_TEST(who_the_report_is)
{
    expect_damage(find_value(0x00080018, "UI", 1) + 8, 1, "SOPInstanceUID");
    expect_damage(find_value(0x00080060, "CS", 1), 1, "Modality");
    expect_damage(find_value(0x0020000D, "UI", 1), 1, "StudyInstanceUID");
    expect_damage(find_text("COMPLETE", 1), 1, "CompletionFlag");
    expect_damage(find_text("1500", 1), 1, "TemplateIdentifier");
}

END_TEST

START_TEST(schemes_that_nobody_explains)
{
    expect_damage(find_text("IBSI", 1), 1, "lacks IBSI");
}

END_TEST

/* Another relationship, and one that an Enhanced SR must not have. */
START_TEST(relationships)
{
    uint8_t *relation = find_text("HAS PROPERTIES", 1);
    memcpy(relation, "INFERRED FROM ", 14);
    write_bytes(size);
    expect_refused("another relationship");
    memcpy(relation, "SELECTED FROM ", 14);
    write_bytes(size);
    expect_refused("cannot be read");
}

END_TEST

/* What was measured changed after the report was written: the report is the wrong one. */
START_TEST(another_request)
{
    sample.groups[1].measurement_count = 1;
    expect_refused("SOPInstanceUID");
    sample.groups[1].measurement_count = 2;
    sample.segments[1].region = sample.segments[0].region; /* part of no UID */
    expect_refused("concept name");
    sample.segments[1].region.value = NULL;
    sample.segments[0].label = "Part 7";
    expect_refused("Tracking Identifier");
}

END_TEST

/* Cut anywhere, the file is refused, and nothing crashes. */
START_TEST(truncated_files)
{
    for (size_t cut = 0; cut < size; cut += 29) {
        write_bytes(cut);
        expect_refused("not the one written");
    }
}

END_TEST

/* Any one byte changed: nothing crashes, whatever the verdict on texts that are not compared. */
START_TEST(any_byte)
{
    for (size_t i = 132; i < size; i += 7) {
        struct dicom_fault fault = {0};
        bytes[i] ^= 0xFF;
        write_bytes(size);
        int error = sr_verify(&sample.request, sample.seg.target, &fault);
        ck_assert(error == 0 || error == -EBADMSG);
        bytes[i] ^= 0xFF;
    }
}

END_TEST

START_TEST(no_file)
{
    unlink(sample.seg.target);
    expect_refused("cannot be read");
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
    tcase_add_test(tests, settings_in_words);
    tcase_add_test(tests, why_there_is_no_value);
    tcase_add_test(tests, who_the_segment_is);
    tcase_add_test(tests, references);
    tcase_add_test(tests, references_of_the_volume);
    tcase_add_test(tests, who_the_report_is);
    tcase_add_test(tests, schemes_that_nobody_explains);
    tcase_add_test(tests, relationships);
    tcase_add_test(tests, another_request);
    tcase_add_test(tests, truncated_files);
    tcase_add_test(tests, any_byte);
    tcase_add_test(tests, no_file);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
