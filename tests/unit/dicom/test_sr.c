/* sr_write: the content of a report, its patient and study, and failures to write it. */
#include "dicom/objects/sr/sr_internal.h"
#include "dicom/read/annotation/sr_source.h"
#include "tests/unit/dicom/sr_sample.h"
#include "tests/unit/dicom/written_object.h"
#include "tests/unit/suite.h"

#include <math.h>

static const struct sr_sample_shape shape = {
    .seg = {.columns = 33, .rows = 7, .planes = 5, .segments = 1},
    .segments = 2,
    .measurements = 3,
};

static struct sr_sample sample;

static int
write_sample(int fd, struct derived_summary *summary, struct error *error)
{
    return sr_write(&sample.request, fd, summary, error);
}

/* DCMTK's dcmsr must read the content, too, within the limits of reports of other programs. */
static int
verify_sample(const char *path, struct error *error)
{
    struct sr_source *report = NULL;
    int rc = sr_verify(&sample.request, path, error);
    if (rc == 0)
        rc = sr_source_open(path, &report, error);
    sr_source_close(report);
    return rc != 0 && error->code == CODE_SIZE_IMPLAUSIBLE ? 0 : rc;
}

static struct written_object object = {
    .path = sample.seg.target,
    .mismatch = CODE_SR_MISMATCH,
    .write = write_sample,
    .verify = verify_sample,
};

static struct error error;

static void
make(void)
{
    dicom_init();
    sr_sample_make(&sample, &shape);
    memset(&error, 0, sizeof(error));
}

static void
drop(void)
{
    written_free(&object);
    sr_sample_free(&sample);
}

static void
remake(const struct sr_sample_shape *other)
{
    drop();
    sr_sample_make(&sample, other);
}

START_TEST(the_file)
{
    written_take(&object);
    ck_assert_int_eq(object.summary.frames, 0);
    ck_assert_str_eq(object.summary.identity.dimension_organization_uid, "");
    ck_assert_mem_eq(object.bytes + 128, "DICM", 4);
    ck_assert_int_eq(written_count_text(&object, "Doe^Jane"), 1);
    ck_assert_int_eq(written_count_text(&object, "UNVERIFIED"), 1);
    ck_assert_int_eq(written_count_text(&object, "head-ct measurements"), 1);
    ck_assert_int_eq(written_count_text(&object, "20241121"), 2); /* series, content */
    ck_assert_int_eq(written_count_text(&object, "1.2.840.10008.2.16.13"), 1);
    /* Frame of Reference is not a module of a report: only the image library has it. */
    ck_assert_int_eq(written_count(&object, "\x20\x00\x52\x00UI", 6), 0);
    ck_assert_int_eq(written_count(&object, "\x20\x00\x40\x10LO", 6), 0);
}

END_TEST

START_TEST(the_same_bytes_again)
{
    written_take(&object);
    written_expect_same_again(&object);
}

END_TEST

/* UIDs follow the SEG and the content, down to the last bit of a value. */
START_TEST(identity)
{
    struct derived_identity first;
    written_take(&object);
    first = object.summary.identity;
    ck_assert_int_eq(strncmp(first.sop_instance_uid, "2.25.", 5), 0);
    ck_assert_str_ne(first.sop_instance_uid, first.series_uid);
    ck_assert_str_ne(first.series_uid, sample.identity.series_uid);

    sample.measurements[1].value = nextafter(sample.measurements[1].value, 1e9);
    written_take(&object);
    ck_assert_str_ne(object.summary.identity.sop_instance_uid, first.sop_instance_uid);
    sample.measurements[1].value = sr_sample_value(0, 1);

    sample.measurements[0].parameters[0].value = 33;
    written_take(&object);
    ck_assert_str_ne(object.summary.identity.sop_instance_uid, first.sop_instance_uid);
    sample.measurements[0].parameters[0].value = 32;

    /* The very same report does not replace itself; another one does, and names it. */
    const struct derived_earlier earlier = {.latest = {first.sop_instance_uid, first.series_uid, "1.2.3.4.7"}};
    sample.request.earlier = &earlier;
    written_take(&object);
    ck_assert_str_eq(object.summary.identity.sop_instance_uid, first.sop_instance_uid);
    ck_assert_ptr_null(object.summary.identity.replaces);

    strcpy(sample.identity.sop_instance_uid, "2.25.7");
    written_take(&object);
    ck_assert_str_ne(object.summary.identity.sop_instance_uid, first.sop_instance_uid);
    ck_assert_int_eq(written_count_text(&object, first.sop_instance_uid), 1);
    ck_assert_int_eq(written_count_text(&object, first.series_uid), 1);
    ck_assert_int_eq(written_count_text(&object, "1.2.3.4.7"), 1);
    ck_assert_int_eq(written_count_text(&object, "Replaced report"), 1);
}

END_TEST

/* Without the concepts, their schemes must not be listed. */
START_TEST(used_coding_schemes_are_listed)
{
    for (int i = 0; i < 6; i++) {
        sample.measurements[i].concept = (struct coded_concept){"118565006", "SCT", "Volume"};
        sample.measurements[i].modifier_count = 0;
        sample.measurements[i].parameter_count = 0;
    }
    written_take(&object);
    ck_assert_int_eq(written_count(&object, "\x08\x00\x10\x01SQ", 6), 0);
    sample.measurements[5].concept.scheme = "99NOCTULE";
    written_take(&object);
    ck_assert_int_eq(written_count(&object, "\x08\x00\x10\x01SQ", 6), 1);
    ck_assert_int_eq(written_count_text(&object, "1.2.840.10008.2.16.13"), 0);
    ck_assert_int_eq(written_count_text(&object, "Noctule: measurements"), 1);
}

END_TEST

/* Values at the ends of a double's range; the text has at most 16 characters (sr_verify). */
START_TEST(extreme_values)
{
    static const double values[] = {0.0, -0.0, 5e-324, -1.2345678901234567e307, 1.0 / 3.0, 1e16};
    for (int i = 0; i < 6; i++)
        sample.measurements[i].value = values[i];
    written_take(&object);
    for (int i = 0; i < 6; i++)
        ck_assert_int_ge(written_count(&object, &values[i], sizeof(double)), 1);
}

END_TEST

START_TEST(absent_values)
{
    sample.measurements[1].absence = "ONE_GREY_LEVEL";
    sample.measurements[2].absence = "NO_NEIGHBOURS";
    sample.measurements[2].qualifier = SR_MEASUREMENT_FAILURE;
    sample.measurements[2].modifier_count = 0;
    sample.measurements[2].parameter_count = 0;
    written_take(&object);
    ck_assert_int_eq(written_count_text(&object, "ONE_GREY_LEVEL"), 1);
    ck_assert_int_eq(written_count_text(&object, "114000"), 1);
    ck_assert_int_eq(written_count_text(&object, "114006"), 1);
    double made_up = sr_sample_value(0, 1);
    ck_assert_int_eq(written_count(&object, &made_up, sizeof(made_up)), 0);
}

END_TEST

/* A reader that expects a value must find one in each NUM. */
START_TEST(absent_values_are_no_numbers)
{
    sample.measurements[0].absence = "ONE_GREY_LEVEL";
    sample.measurements[0].parameter_count = 0;
    written_take(&object);
    const int numbers = 5 + 5 + 5; /* of the image library, of measurements and of settings */
    ck_assert_int_eq(written_count(&object,
                                   "\x40\x00\x40\xA0"
                                   "CS\x04\x00NUM ",
                                   12),
                     numbers);
    ck_assert_int_eq(written_count(&object, "\x40\x00\x00\xA3SQ", 6), numbers);
}

END_TEST

START_TEST(settings_as_text)
{
    static const char text[] = "(1,0,0)(2,1,0)";
    sample.measurements[4].words[0] = (struct sr_words){{"DIRECTIONS", CONCEPT_OWN_SCHEME, "Directions"}, text};
    sample.measurements[4].words_count = 1;
    written_take(&object);
    const struct derived_identity first = object.summary.identity;
    ck_assert_int_eq(written_count_text(&object, text), 1);
    sample.measurements[4].words[0].text = "(1,0,0)(2,1,1)";
    written_take(&object);
    ck_assert_str_ne(object.summary.identity.sop_instance_uid, first.sop_instance_uid);
    sample.measurements[4].words_count = 0;
    written_take(&object);
    ck_assert_int_eq(written_count_text(&object, "DIRECTIONS"), 0);
}

END_TEST

/* A value that is not finite must not become a number. */
START_TEST(infinite_and_undefined_values)
{
    sample.measurements[0].value = NAN;
    sample.measurements[1].value = INFINITY;
    sample.measurements[2].value = -INFINITY;
    written_take(&object);
    ck_assert_int_eq(written_count_text(&object, "114000"), 3);
    ck_assert_int_eq(written_count_text(&object, "no finite number"), 3);
    ck_assert_int_eq(written_count_text(&object, "inf"), 0);
}

END_TEST

START_TEST(sites_and_sides)
{
    sample.segments[0].region = (struct coded_concept){"12738006", "SCT", "Brain"};
    sample.segments[0].modifier = (struct coded_concept){"7771000", "SCT", "Left"};
    sample.segments[1].modifier = (struct coded_concept){"24028007", "SCT", "Right"};
    written_take(&object);
    ck_assert_int_eq(written_count_text(&object, "363698007"), 1);
    ck_assert_int_eq(written_count_text(&object, "272741003"), 2);
    ck_assert_int_eq(written_count_text(&object, "TYPE_MODIFIER"), 0);
    sample.segments[0].modifier = (struct coded_concept){"255503000", "SCT", "Entire"};
    written_take(&object);
    ck_assert_int_eq(written_count_text(&object, "TYPE_MODIFIER"), 1);
}

END_TEST

START_TEST(a_long_code_value)
{
    sample.measurements[0].concept.value = "a-code-of-more-than-16-characters";
    written_take(&object);
    ck_assert_int_eq(written_count(&object, "\x08\x00\x19\x01UC", 6), 1);
}

END_TEST

/* One group, and as many as a whole-body study may have. */
START_TEST(one_segment)
{
    static const struct sr_sample_shape one = {
        .seg = {.columns = 8, .rows = 8, .planes = 1, .segments = 1},
        .segments = 1,
        .measurements = 1,
    };
    remake(&one);
    written_take(&object);
    ck_assert_int_eq(written_count_text(&object, "Spacing between slices"), 0);
}

END_TEST

START_TEST(many_segments_and_features)
{
    static const struct sr_sample_shape many = {
        .seg = {.columns = 8, .rows = 8, .planes = 3, .segments = 1},
        .segments = 256,
        .measurements = 107,
    };
    remake(&many);
    written_take(&object);
    ck_assert_int_eq(written_count_text(&object, "Tracking Unique Identifier"), 256);
    ck_assert_int_eq(written_count_text(&object, "5QB6"), 256 * 107);
}

END_TEST

/* Groups need not include all segments, nor be in their order. */
START_TEST(some_segments)
{
    static const struct sr_sample_shape five = {
        .seg = {.columns = 8, .rows = 8, .planes = 3, .segments = 1},
        .segments = 5,
        .measurements = 1,
    };
    remake(&five);
    sample.groups[0].segment = 4;
    sample.groups[1].segment = 2;
    sample.request.group_count = 2;
    written_take(&object);
    ck_assert_int_eq(written_count_text(&object, "head-ct: Part 5"), 1);
    ck_assert_int_eq(written_count_text(&object, "head-ct: Part 1"), 0);
}

END_TEST

/* Each instance must be listed once in the library and once in the evidence. */
START_TEST(a_multi_frame_source)
{
    struct sr_sample_shape enhanced = shape;
    enhanced.seg.multi_frame = true;
    remake(&enhanced);
    written_take(&object);
    ck_assert_int_eq(written_count_text(&object, "1.2.3.4.5000"), 2);
}

END_TEST

/* The report must not mention a segmentation, which need not exist. */
START_TEST(the_whole_volume)
{
    sample.groups[0].segment = SR_WHOLE_VOLUME;
    sample.request.group_count = 1;
    sample.request.seg_identity = NULL;
    sample.seg.request.segment_count = 0;
    written_take(&object);
    const struct derived_identity first = object.summary.identity;
    ck_assert_int_eq(written_count_text(&object, "1.2.840.10008.5.1.4.1.1.66.4"), 0);
    ck_assert_int_eq(written_count_text(&object, "head-ct: whole volume"), 1);
    ck_assert_int_eq(written_count_text(&object, "Source of Measurement"), 5);
    sample.seg.request.source.pipeline_settings = "other";
    written_take(&object);
    ck_assert_str_ne(object.summary.identity.sop_instance_uid, first.sop_instance_uid);
}

END_TEST

/* Segments come first. The volume is a separate group. */
START_TEST(the_whole_volume_and_a_segment)
{
    sample.groups[0].segment = SR_WHOLE_VOLUME;
    sample.segments[1].label = "whole volume";
    written_take(&object);
    const double volume = sr_sample_value(0, 0);
    const double segment = sr_sample_value(1, 0);
    ck_assert(written_find(&object, &segment, sizeof(segment), 1) < written_find(&object, &volume, sizeof(volume), 1));
    char ids[2][SEG_TRACKING_ID_SIZE];
    char uids[2][DICOM_UID_SIZE];
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(sr_track(&sample.request, &sample.groups[i], ids[i], uids[i]), 0);
    ck_assert_str_ne(uids[0], uids[1]);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(written_count_text(&object, uids[i]), 1);
}

END_TEST

/* A stack need not have all frames of its instance. */
START_TEST(the_volume_of_some_frames)
{
    struct sr_sample_shape enhanced = shape;
    enhanced.seg.multi_frame = true;
    remake(&enhanced);
    sample.groups[0].segment = SR_WHOLE_VOLUME;
    written_take(&object);
    ck_assert_int_eq(written_count(&object, "\x08\x00\x60\x11IS", 6), 0);
    sample.seg.stack.plane_count = 3;
    written_take(&object);
    ck_assert_int_eq(written_count(&object, "\x08\x00\x60\x11IS", 6), 1);
    ck_assert_int_eq(written_count_text(&object, "5\\4\\3"), 1);
}

END_TEST

/*
 * A segment of a 2-D image refers to its frame, not to the series, in the library and as source of the segmentation. The
 * spacing is there only if it is known, and the frame of reference of the source is not.
 */
START_TEST(a_frame_of_a_2d_image)
{
    static const char number[] = "\x08\x00\x60\x11IS\x02\x00"
                                 "4 ";
    struct sr_sample_shape image = shape;
    image.seg.multi_frame = _i % 2;
    remake(&image);
    seg_sample_flatten(&sample.seg, image.seg.multi_frame ? 3 : 0);
    sample.seg.stack.spacing_source = _i < 2 ? DICOM_SPACING_NONE : DICOM_SPACING_IMAGER;
    strcpy(sample.seg.storage[0].modality, _i < 2 ? "US" : "DX");
    sample.request.comprehensive_3d = true;
    sample.measurements[0].has_path = true;
    written_take(&object);
    ck_assert_int_eq(written_count_text(&object, "Source series for segmentation"), 0);
    ck_assert_int_eq(written_count_text(&object, "Source image for segmentation"), 2);
    ck_assert_int_eq(written_count(&object, number, 10), image.seg.multi_frame ? 3 : 0); /* library, two segments */
    /* The segments are empty, so the SEG has no frame of them; then both are of the same bits, its frames 1 and 2. */
    ck_assert_int_eq(written_count_text(&object, "Referenced Segmentation Frame"), 0);
    sample.seg.words[0] = 1;
    written_take(&object);
    ck_assert_int_eq(written_count_text(&object, "Referenced Segmentation Frame"), 2);
    ck_assert_int_eq(written_count_text(&object, "Referenced Segment "), 0);
    ck_assert_int_eq(written_count(&object,
                                   "\x08\x00\x60\x11IS\x02\x00"
                                   "1 ",
                                   10),
                     1);
    ck_assert_int_eq(written_count(&object,
                                   "\x08\x00\x60\x11IS\x02\x00"
                                   "2 ",
                                   10),
                     1);
    ck_assert_int_eq(written_count(&object, "\x62\x00\x0B\x00US", 6), 0); /* Referenced Segment Number */
    ck_assert_int_eq(written_count_text(&object, "Horizontal Pixel Spacing"), _i < 2 ? 0 : 1);
    ck_assert_int_eq(written_count_text(&object, "Vertical Pixel Spacing"), _i < 2 ? 0 : 1);
    ck_assert_int_eq(written_count_text(&object, "Spacing between slices"), 0);
    ck_assert_int_eq(written_count_text(&object, _i < 2 ? "Ultrasound" : "Digital Radiography"), 1);
    ck_assert_int_eq(written_count_text(&object, "1.2.3.4.3"), 0);
    ck_assert_int_eq(written_count_text(&object, "SCOORD3D"), 0);
    if (image.seg.multi_frame)
        written_expect_damage(&object, written_find_value(&object, 0x00081160, "IS", 1), '4' ^ '5',
                              "the image library");
}

END_TEST

START_TEST(a_latin_1_patient)
{
    struct sr_sample_shape latin = shape;
    latin.seg.charset = "ISO_IR 100";
    latin.seg.patient = "M\xFCller^J\xF6rg";
    remake(&latin);
    written_take(&object); /* Noctule's own text is all ASCII: unchanged */
    ck_assert_int_eq(written_count_text(&object, "M\xFCller^J\xF6rg"), 1);
    ck_assert_int_eq(written_count_text(&object, "ISO_IR 100"), 1);

    sample.segments[1].label = "Gr\xC3\xB6\xC3\x9F"
                               "e";
    written_take(&object);
    ck_assert_int_eq(written_count_text(&object, "M\xC3\xBCller^J\xC3\xB6rg"), 1);
    ck_assert_int_eq(written_count_text(&object, "ISO_IR 192"), 1);
    ck_assert_int_eq(written_count_text(&object, "head-ct: Gr\xC3\xB6\xC3\x9F"), 1);
}

END_TEST

/* A reason in words is part of Noctule's own text. */
START_TEST(a_reason_beyond_ascii)
{
    sample.measurements[0].absence = "zu wenig Gr\xC3\xBCnde";
    written_take(&object);
    ck_assert_int_eq(written_count_text(&object, "ISO_IR 192"), 1);
    ck_assert_int_eq(written_count_text(&object, "zu wenig Gr\xC3\xBCnde"), 1);
}

END_TEST

/* In text without a known set, ASCII must stay. */
START_TEST(an_unconvertible_patient_name)
{
    struct sr_sample_shape broken = shape;
    broken.seg.patient = "M\xFCller";
    broken.seg.charset = "NO_SUCH_SET";
    remake(&broken);
    sample.segments[1].label = "Gr\xC3\xB6\xC3\x9F"
                               "e";
    written_take(&object);
    ck_assert_int_eq(written_count_text(&object, "M?ller"), 1);
    ck_assert_int_eq(written_count_text(&object, "head-ct: Gr\xC3\xB6\xC3\x9F"
                                                 "e"),
                     1);
}

END_TEST

static void
expect_invalid(const char *word)
{
    ck_assert_int_eq(written_try(&object, &error), -EINVAL);
    ck_assert_int_eq(error.code, CODE_SR_REQUEST_INVALID);
    ck_assert_msg(strstr(error.message, word) != NULL, "\"%s\" lacks \"%s\"", error.message, word);
}

START_TEST(invalid_requests_are_refused)
{
    sample.request.group_count = 0;
    expect_invalid("no measurement group");
    sample.request.group_count = 2;
    sample.groups[1].segment = 2;
    expect_invalid("without a segment");
    sample.groups[1].segment = -2;
    expect_invalid("without a segment");
    sample.groups[1].segment = 1;
    sample.segments[1].region = (struct coded_concept){"12738006", "SCT", NULL};
    expect_invalid("an incomplete code");
    sample.segments[1].region.value = NULL;
    sample.groups[1].measurement_count = 0;
    expect_invalid("without a measurement");
    sample.groups[1].measurement_count = 3;
    sample.measurements[3].unit.value = "";
    expect_invalid("concept or unit");
    sample.measurements[3].unit.value = "1";
    sample.measurements[3].parameters[0].value = NAN;
    expect_invalid("not a number");
    sample.measurements[3].parameters[0].value = 1;
    sample.measurements[3].modifier_count = SR_MAX_MODIFIERS + 1;
    expect_invalid("too many settings");
    sample.measurements[3].modifier_count = 2;
    sample.measurements[3].words[0].text = "of no concept";
    sample.measurements[3].words_count = 1;
    expect_invalid("a textual setting");
    sample.measurements[3].words_count = 0;
    /* The root of results is a Comprehensive 3D SR, and lists the segmentation that it refers to. */
    const struct sr_result other = {"1.2.840.10008.5.1.4.1.1.30", "2.25.31", "2.25.30"};
    sample.request.results = &other;
    sample.request.result_count = 1;
    expect_invalid("an Enhanced SR as the root");
    sample.request.comprehensive_3d = true;
    expect_invalid("without identity");
    sample.request.result_count = 0;
    sample.identity.sop_instance_uid[0] = '\0';
    expect_invalid("without identity");
    sample.request.seg_identity = NULL;
    expect_invalid("without identity");
}

END_TEST

/* The class, and each object that a root lists, are part of the identity. */
START_TEST(identity_of_a_root)
{
    struct derived_identity kinds[4];
    struct sr_result results[] = {{SEG_SOP_CLASS_UID, sample.identity.sop_instance_uid, sample.identity.series_uid},
                                  {"1.2.840.10008.5.1.4.1.1.30", "2.25.31", "2.25.30"}};
    sample.request.results = results;
    for (int kind = 0; kind < 4; kind++) {
        sample.request.comprehensive_3d = kind > 0;
        sample.request.result_count = kind > 1 ? 2 : 0;
        results[1].instance_uid = kind == 3 ? "2.25.32" : "2.25.31";
        written_take(&object);
        kinds[kind] = object.summary.identity;
        for (int other = 0; other < kind; other++)
            ck_assert_str_ne(kinds[kind].sop_instance_uid, kinds[other].sop_instance_uid);
    }
    ck_assert_int_eq(written_count_text(&object, "2.25.32"), 2);
    ck_assert_int_eq(written_count_text(&object, "2.25.30"), 1);
    /* Another class than its own is that of the replaced report. */
    const struct derived_earlier earlier = {.latest = {"2.25.41", "2.25.40", "1.2.3.4.7", SR_SOP_CLASS}};
    sample.request.earlier = &earlier;
    written_take(&object);
    ck_assert_int_eq(written_count_text(&object, SR_SOP_CLASS), 1);
    ck_assert_int_eq(written_count_text(&object, SR_3D_SOP_CLASS), 2); /* file meta information, data set */
}

END_TEST

START_TEST(a_missing_source_is_an_error)
{
    unlink(sample.seg.source);
    ck_assert_int_eq(written_try(&object, &error), -ENOENT);
    ck_assert_int_eq(error.code, CODE_FILE_UNREADABLE);
}

END_TEST

START_TEST(a_full_device)
{
    written_expect_full_device_told(&object);
}

END_TEST

START_TEST(a_full_disk_is_an_error)
{
    written_expect_full_disk_told(&object);
}

END_TEST

static TCase *
failure_case(void)
{
    TCase *tests = tcase_create("failures");
    tcase_add_checked_fixture(tests, make, drop);
    tcase_add_test(tests, invalid_requests_are_refused);
    tcase_add_test(tests, a_missing_source_is_an_error);
    tcase_add_test(tests, a_full_device);
    tcase_add_test(tests, a_full_disk_is_an_error);
    return tests;
}

int
main(void)
{
    Suite *suite = suite_create("dicom_sr");
    TCase *tests = tcase_create("reports");
    tcase_add_checked_fixture(tests, make, drop);
    tcase_add_test(tests, the_file);
    tcase_add_test(tests, the_same_bytes_again);
    tcase_add_test(tests, identity);
    tcase_add_test(tests, identity_of_a_root);
    tcase_add_test(tests, used_coding_schemes_are_listed);
    tcase_add_test(tests, extreme_values);
    tcase_add_test(tests, absent_values);
    tcase_add_test(tests, absent_values_are_no_numbers);
    tcase_add_test(tests, settings_as_text);
    tcase_add_test(tests, infinite_and_undefined_values);
    tcase_add_test(tests, sites_and_sides);
    tcase_add_test(tests, a_long_code_value);
    tcase_add_test(tests, one_segment);
    tcase_add_test(tests, many_segments_and_features);
    tcase_add_test(tests, some_segments);
    tcase_add_test(tests, a_multi_frame_source);
    tcase_add_test(tests, the_whole_volume);
    tcase_add_test(tests, the_whole_volume_and_a_segment);
    tcase_add_test(tests, the_volume_of_some_frames);
    tcase_add_loop_test(tests, a_frame_of_a_2d_image, 0, 4);
    tcase_add_test(tests, a_latin_1_patient);
    tcase_add_test(tests, a_reason_beyond_ascii);
    tcase_add_test(tests, an_unconvertible_patient_name);
    suite_add_tcase(suite, tests);
    suite_add_tcase(suite, failure_case());
    return suite_run(suite);
}
